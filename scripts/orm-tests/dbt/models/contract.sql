{{ config(materialized='table', contract={'enforced': true}) }}
select id::bigint as id, name::text as name, 1.5::numeric(10,2) as factor from {{ ref('customers') }}
