{% snapshot customers_history %}
{{ config(target_schema='dbt_snapshots', unique_key='id', strategy='timestamp', updated_at='updated_at', invalidate_hard_deletes=True) }}
select * from {{ ref('customers') }}
{% endsnapshot %}
{% snapshot customers_checked %}
{{ config(target_schema='dbt_snapshots', unique_key='id', strategy='check', check_cols=['city', 'name']) }}
select * from {{ ref('customers') }}
{% endsnapshot %}
