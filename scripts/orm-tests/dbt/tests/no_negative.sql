select * from {{ ref('orders') }} where total < 0
