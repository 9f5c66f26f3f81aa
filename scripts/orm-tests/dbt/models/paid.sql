{{ config(materialized='view') }}
select o.*, {{ cents('o.total') }} as cents from {{ ref('orders') }} o where state = 'paid'
