{{ config(materialized='table', indexes=[{'columns': ['city'], 'unique': true}, {'columns': ['orders', 'city'], 'type': 'hash' if false else 'btree'}], grants={'select': ['dbt_reader']}) }}
select coalesce(c.city, 'nowhere') as city, count(o.id) as orders, sum(o.total) as total
from {{ ref('customers') }} c left join {{ ref('orders') }} o on o.customer_id = c.id
group by 1
