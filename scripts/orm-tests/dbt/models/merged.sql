{{ config(materialized='incremental', incremental_strategy='append') }}
select id, state from {{ ref('orders') }} {% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
