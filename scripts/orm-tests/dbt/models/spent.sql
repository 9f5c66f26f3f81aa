{{ config(materialized='ephemeral') }}
select customer_id, sum(total) as spent from {{ ref('paid') }} group by customer_id
