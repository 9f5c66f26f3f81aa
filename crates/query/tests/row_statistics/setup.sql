create table t (id int primary key, often text, n int, f float8, p numeric(8,2), day date,
  at timestamp, tz timestamptz, yes bool, words varchar(40), list int[], nothing text, one int2,
  small float4, big int8, tm time, span interval, key uuid, raw bytea, doc jsonb, plain json,
  padded char(8), long text, wild numeric);
insert into t select i, (array['often','often','often','rare','twice'])[1 + i % 5],
  case when i % 10 <> 0 then i * 37 % 101 end, i * 0.5, (i * i % 977)::numeric / 4,
  date '2024-01-01' + i / 7, timestamp '2024-01-01 12:00' + i * interval '1 hour',
  timestamptz '2024-01-01 12:00+00' - (i % 50) * interval '1 day', i % 3 = 0,
  'word, ' || i % 40 || ' "quoted"', array[i % 4, i % 2], null, 7,
  (i % 9)::float4 / 8, (i % 500)::int8 * 1000000007, time '00:00' + (i % 24) * interval '1 hour',
  (i % 6) * interval '1 month', ('00000000-0000-0000-0000-' || lpad((i % 300)::text, 12, '0'))::uuid,
  ('\x' || lpad(to_hex(i % 200), 4, '0'))::bytea, ('{"a": ' || i % 11 || '}')::jsonb, '{}'::json,
  'p' || i % 3, repeat('x', case when i % 4 = 0 then 2000 else i % 5 end),
  case i % 5 when 0 then 0 when 1 then 12345.678 when 2 then -0.0001 when 3 then 10000 else 'NaN' end
  from generate_series(1, 1000) g(i);
create table empty (a int, b text);
create table single (a int, b text);
insert into single values (1, '');
