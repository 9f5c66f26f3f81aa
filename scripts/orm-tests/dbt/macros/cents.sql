{% macro cents(column) %}({{ column }} * 100)::int{% endmacro %}
