{{ config(materialized='incremental', unique_key=['id'], incremental_strategy='merge') }}
select c.id, c.name, c.city, s.spent from {{ ref('customers') }} c left join {{ ref('spent') }} s on s.customer_id = c.id
