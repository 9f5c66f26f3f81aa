{{ config(materialized='incremental', unique_key='day', incremental_strategy='delete+insert', on_schema_change='append_new_columns') }}
select day, count(*) as orders, max(id) as last_id from {{ ref('orders') }}
{% if is_incremental() %} where day >= (select max(day) from {{ this }}) {% endif %}
group by day
