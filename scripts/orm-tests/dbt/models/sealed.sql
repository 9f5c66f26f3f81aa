{{ config(materialized='materialized_view', indexes=[{'columns': ['state']}]) }}
select state, count(*) as orders from {{ ref('orders') }} group by state
