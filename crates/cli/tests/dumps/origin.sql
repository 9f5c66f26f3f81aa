-- What a database of PostgreSQL 15 can have: everything that we claim in the schema `every`, with
-- what is ignored without asking beside it; in the schema `beyond` what needs
-- WITH ignore_unsupported_statements. scripts/dump-to-dump makes it and dumps it; what pg_dump has
-- written of it once is claimed.sql and beyond.sql here.
CREATE EXTENSION citext;
CREATE SCHEMA every;
COMMENT ON SCHEMA every IS 'what there is';
SET search_path = every, public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s; happy');
CREATE DOMAIN positive AS int DEFAULT 1 NOT NULL CONSTRAINT above_zero CHECK (VALUE > 0);
CREATE DOMAIN small AS positive CHECK (VALUE < 100);
CREATE DOMAIN words AS text[] CHECK (array_length(VALUE, 1) < 5);
CREATE DOMAIN mail AS citext CHECK (VALUE ~ '@');
CREATE TYPE place AS (street text, "Number" int, c text);
CREATE TYPE resident AS (home place, moods mood[], age positive);
CREATE TYPE span_of_floats AS RANGE (subtype = float8, subtype_diff = float8mi, multirange_type_name = spans_of_floats);
CREATE COLLATION german (provider = icu, locale = 'de-u-co-phonebk');
CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE SEQUENCE numbers AS smallint START 5 INCREMENT 5 MINVALUE -10 MAXVALUE 1000 CYCLE CACHE 3;
SELECT setval('numbers', 10);
CREATE SEQUENCE never_called INCREMENT -1;
CREATE FUNCTION twice(a int) RETURNS int LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT a * 2';
CREATE FUNCTION atomic(a int, b int DEFAULT 7) RETURNS int LANGUAGE sql IMMUTABLE BEGIN ATOMIC SELECT a + b; END;
CREATE FUNCTION rows_of(n int) RETURNS TABLE (a int, b text) LANGUAGE sql STABLE AS $$ SELECT g, 'x;' || g FROM generate_series(1, n) g $$;
CREATE FUNCTION pl() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 7; END; $$;
CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; -- ;
END $$;
CREATE PROCEDURE proc() LANGUAGE sql AS 'SELECT 1';
CREATE AGGREGATE sum_of(int) (sfunc = int4pl, stype = int, initcond = '0');
CREATE OPERATOR === (leftarg = int, rightarg = int, function = int4eq);
CREATE TABLE every_type (
  id int PRIMARY KEY,
  b boolean, i2 smallint, i4 int, i8 bigint, f4 real, f8 double precision, n numeric, n2 numeric(30,10), n3 numeric(3,-2), n4 numeric(3,5),
  t text, v varchar, v5 varchar(5), c char, c5 char(5), qc "char", nm name, ci citext,
  d date, ti time, ti2 time(2), tz timetz, tz0 timetz(0), ts timestamp, ts3 timestamp(3), tstz timestamptz, tstz0 timestamptz(0),
  iv interval, iv2 interval day to second(2), ivy interval year to month, by bytea, u uuid, j json, jb jsonb, jp jsonpath,
  o oid, rc regclass, rt regtype, rp regproc, m money, bi bit(5), bv bit varying, bv7 varbit(7),
  ip inet, net cidr, ma macaddr, ma8 macaddr8, ln pg_lsn, td tid, x8 xid8,
  pt point, li line, ls lseg, bx box, pa path, po polygon, ci2 circle,
  r4 int4range, r8 int8range, rn numrange, rd daterange, rts tsrange, rtz tstzrange, rf span_of_floats,
  m4 int4multirange, m8 int8multirange, mn nummultirange, md datemultirange, mts tsmultirange, mtz tstzmultirange, mf spans_of_floats,
  e mood, dom small, dw words, dm mail, pl place, re resident,
  ge text COLLATE german, nc text COLLATE no_case, cc text COLLATE "C");
INSERT INTO every_type (id, dom) VALUES (0, 1);
INSERT INTO every_type VALUES (1, true, -32768, -2147483648, -9223372036854775808, 'NaN', '-Infinity', 'NaN',
  12345678901234567890.0123456789, 12345, 0.00123, E'tab\t nl\n cr\r \\ \b\f\v é 𝄞', '', 'abc  ', 'x', 'a  ', 'z', 'a name', 'MiXed',
  '4713-01-01 BC', '24:00', '12:34:56.789', '12:00:00.123456+15:59:59', '23:59:59.5-08', '294276-12-31 23:59:59.999999', '1999-12-31 23:59:59.9996', 'infinity', '2020-02-29 12:00:00.5+02',
  '-178000000 years', '1 day 02:03:04.567', '3 years 2 mons', '\x00ff5c0a', '00000000-0000-0000-0000-000000000001', '{"a":  [1, 2], "a": null}', '{"b": 1e400, "a": ["\u00e9", {}]}', '$.a[*] ? (@ > 1)',
  4294967295, 'pg_class', 'int4', 'now', '-92233720368547758.08', B'10101', B'', B'1', '10.1.2.3/8', '10.0.0.0/8', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', '16/B374D848', '(7,3)', '18446744073709551615',
  '(1.5,-0)', '{1,-1,0}', '[(0,0),(1,1e-300)]', '(2,2),(1,1)', '[(0,0),(1,1),(2,0)]', '((0,0),(1,1),(2,0))', '<(1,2),3>',
  '[1,5)', '(,9)', '[1.5,2.5]', '[2020-01-01,infinity]', '[2020-01-01 01:00,2020-01-02)', '[2020-01-01 01:00+02,)', '(1.5,2]',
  '{[1,5),[7,9)}', '{(,9)}', '{[1.5,2.5],(7,)}', '{[2020-01-01,2021-01-01)}', '{}', '{[2020-01-01 01:00+02,)}', '{(1.5,2]}',
  'it''s; happy', 99, '{"a b",NULL,""}', 'A@b.c', ROW('a "street", (here)\', 7, 'ß'), ROW(ROW(NULL, NULL, ''), '{sad,NULL,"it''s; happy"}', 3), 'ä', 'É', 'é');
INSERT INTO every_type VALUES (2, false, 32767, 2147483647, 9223372036854775807, '1e-45', '5e-324', 'Infinity',
  0, -500, -0.00999, '\.', '\N', '', '', '', '', '', '',
  'infinity', '00:00', '00:00', '00:00-15:59', '00:00+00', '-infinity', '4713-01-01 00:00 BC', '4714-11-24 00:00+00 BC', '0001-01-01 00:00+00',
  '178000000 years -1 mons 5 days -00:00:00.000001', '0', '-1 mons', '', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'null', 'null', 'strict $',
  0, '0', '0', '0', '0', B'00000', B'1111111111', B'1111111', '::1', '::/0', '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff:ff:ff', '0/0', '(0,0)', '0',
  '(NaN,Infinity)', '{0,1,-7}', '[(1,2),(1,2)]', '(0,0),(0,0)', '((0,0),(1,1))', '((1,1))', '<(0,0),0>',
  'empty', '(,)', 'empty', '(,)', 'empty', '(,)', 'empty', '{}', '{(,)}', '{}', '{}', '{(,)}', '{}', '{}',
  'sad', 1, '{}', 'x@y', ROW(NULL, NULL, NULL), ROW(NULL, NULL, 1), '', '', '');
CREATE TABLE every_array AS SELECT id,
  ARRAY[b, NULL, b] AS b, ARRAY[i2] AS i2, ARRAY[[i4, 1], [NULL, 3]] AS i4, ARRAY[i8] AS i8, ARRAY[f4, '-0'] AS f4, ARRAY[f8] AS f8, ARRAY[n, 1.10, NULL] AS n,
  ARRAY[t, '', NULL, 'NULL', '{}', 'a,b', 'a"b', ' '] AS t, ARRAY[v] AS v, ARRAY[c5] AS c5, ARRAY[qc] AS qc, ARRAY[nm] AS nm, ARRAY[ci] AS ci, ARRAY[d] AS d, ARRAY[ti] AS ti, ARRAY[tz] AS tz, ARRAY[ts] AS ts, ARRAY[tstz] AS tstz,
  ARRAY[iv] AS iv, ARRAY[by] AS by, ARRAY[u] AS u, ARRAY[j] AS j, ARRAY[jb, NULL] AS jb, ARRAY[jp] AS jp, ARRAY[o] AS o, ARRAY[rt] AS rt, ARRAY[m] AS m, ARRAY[bi] AS bi, ARRAY[bv] AS bv, ARRAY[ip] AS ip, ARRAY[net] AS net, ARRAY[ma] AS ma, ARRAY[ma8] AS ma8, ARRAY[ln] AS ln, ARRAY[td] AS td, ARRAY[x8] AS x8,
  ARRAY[pt, '(1,2)'] AS pt, ARRAY[li] AS li, ARRAY[ls] AS ls, ARRAY[bx, '(2,2),(0,0)'] AS bx, ARRAY[pa] AS pa, ARRAY[po] AS po, ARRAY[ci2] AS ci2,
  ARRAY[r4] AS r4, ARRAY[rn, NULL] AS rn, ARRAY[rd] AS rd, ARRAY[rts] AS rts, ARRAY[rtz] AS rtz, ARRAY[rf] AS rf, ARRAY[m4] AS m4, ARRAY[mtz] AS mtz, ARRAY[mf] AS mf,
  ARRAY[e, NULL] AS e, ARRAY[dom] AS dom, ARRAY[dm] AS dm, ARRAY[pl, NULL] AS pl, ARRAY[re] AS re, '[0:1]={1,2}'::int[] AS bounds FROM every_type;
ALTER TABLE every_array ADD CONSTRAINT every_array_pk PRIMARY KEY (id);
CREATE TABLE people (
  id bigserial PRIMARY KEY, name varchar(40) NOT NULL UNIQUE, mood mood DEFAULT 'ok'::mood, born date,
  s smallint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME every.own_name START WITH 10 INCREMENT BY 2 CACHE 5 CYCLE),
  s2 int GENERATED BY DEFAULT AS IDENTITY, n int DEFAULT nextval('numbers'), x int DEFAULT twice(21), at timestamptz DEFAULT '2020-01-01 12:00+02',
  full_name text GENERATED ALWAYS AS (name || '!') STORED,
  dflt text DEFAULT (CASE WHEN 1 < 2 THEN 'a'::text ELSE lower('B') END), arr int[] DEFAULT ARRAY[1, 2] || 3, j jsonb DEFAULT '{}' NOT NULL,
  CONSTRAINT short CHECK (length(name) < 39), CHECK (born > '1800-01-01' OR name ~* '^x' AND name NOT LIKE '%y%' AND name IN ('a', 'b')),
  CHECK (twice(x) <> ALL (ARRAY[1, 3])), CONSTRAINT never CHECK (NOT (born IS NULL AND mood IS DISTINCT FROM 'ok')) NOT VALID);
INSERT INTO people (name, mood, born) SELECT E'n\t' || g, 'ok', date '1900-01-01' + g FROM generate_series(1, 50) g;
SELECT setval('people_id_seq', 4000000000), setval('own_name', 100, false);
CREATE TABLE stay (room int, during tsrange, who text, price numeric CHECK (price > 0) NO INHERIT);
INSERT INTO stay SELECT 1, tsrange(ts, ts + '1 hour'), 'w' || g, g FROM (SELECT g, timestamp '2020-01-01' + g * interval '2 hours' AS ts FROM generate_series(1, 20) g) s;
CREATE TABLE notes (person bigint REFERENCES people ON DELETE CASCADE ON UPDATE SET NULL, n int, note text, up int, up_n int, PRIMARY KEY (person, n),
  CONSTRAINT above FOREIGN KEY (up, up_n) REFERENCES notes (person, n) MATCH FULL DEFERRABLE INITIALLY DEFERRED);
INSERT INTO notes SELECT g % 50 + 1, g, NULLIF('note ' || g, 'note 7'), g % 50 + 1, g FROM generate_series(1, 150) g;
CREATE TABLE keeps (a int, b int, FOREIGN KEY (a, b) REFERENCES notes (person, n) ON DELETE SET NULL (b));
INSERT INTO keeps VALUES (2, 1), (2, NULL), (NULL, 77);
CREATE INDEX notes_note ON notes (note DESC NULLS LAST, n) WHERE n > 100 AND note IS NOT NULL;
CREATE INDEX ON people (lower(name) COLLATE "C" text_pattern_ops, (n + 1) DESC);
CREATE UNIQUE INDEX a_few ON people (name) INCLUDE (born, mood) WHERE born > '1900-01-01';
CREATE UNIQUE INDEX nulls ON notes (note, person, n) NULLS NOT DISTINCT;
CREATE INDEX by_gin ON every_type USING gin (jb jsonb_path_ops);
CREATE INDEX by_gist ON every_type USING gist (r4);
CREATE INDEX by_hash ON people USING hash (name);
CREATE INDEX by_brin ON people USING brin (born);
CREATE INDEX with_fill ON people (born) WITH (fillfactor = 70);
ALTER TABLE people CLUSTER ON with_fill;
ALTER TABLE people ALTER COLUMN name SET STATISTICS 50, ALTER COLUMN name SET STORAGE EXTERNAL;
ALTER TABLE notes REPLICA IDENTITY FULL;
CREATE STATISTICS people_stats (dependencies) ON name, born FROM people;
CREATE TABLE parted (id int, at date, t text, UNIQUE (id, at, t)) PARTITION BY RANGE (at);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM ('2020-01-01') TO ('2021-01-01') PARTITION BY LIST (t);
CREATE TABLE parted_2a PARTITION OF parted_2 FOR VALUES IN ('a', NULL);
CREATE TABLE parted_2d PARTITION OF parted_2 DEFAULT;
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM ('2021-01-01') TO (MAXVALUE);
CREATE INDEX parted_t ON parted (t);
INSERT INTO parted SELECT g, date '2019-01-01' + g, CASE g % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' END FROM generate_series(5, 1000, 7) g;
CREATE TABLE hashed (id int PRIMARY KEY, x text) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO hashed SELECT g, 'x' || g FROM generate_series(1, 100) g;
CREATE UNLOGGED TABLE unlogged (a int);
INSERT INTO unlogged VALUES (1);
CREATE TABLE once_called (a int GENERATED BY DEFAULT AS IDENTITY, b serial, c text UNIQUE WITH (fillfactor = 70), PRIMARY KEY (a) WITH (fillfactor = 90));
INSERT INTO once_called (c) VALUES ('x'), ('y');
ALTER TABLE once_called RENAME TO renamed;
ALTER TABLE renamed RENAME a TO first;
CREATE TABLE "Odd; name" (a int, "select" text, "with space" int, "quo""te" text, "ünï" int, UNIQUE NULLS NOT DISTINCT (a));
INSERT INTO "Odd; name" VALUES (1, 'x', 2, '"', 3), (NULL, NULL, NULL, NULL, NULL);
CREATE TABLE empty ();
INSERT INTO empty DEFAULT VALUES;
INSERT INTO empty DEFAULT VALUES;
CREATE TABLE stamped (a int DEFAULT pl(), b int CHECK (b > pl()), c int DEFAULT atomic(1));
INSERT INTO stamped (b) SELECT * FROM generate_series(8, 100);
CREATE FUNCTION named(wanted text) RETURNS SETOF people LANGUAGE sql STABLE AS 'SELECT * FROM every.people WHERE name = wanted';
CREATE FUNCTION how_many(OUT n bigint) LANGUAGE sql STABLE AS 'SELECT count(*) FROM every.notes';
CREATE VIEW counted_by AS SELECT how_many() AS n, id FROM named(E'n\t3');
COMMENT ON FUNCTION how_many() IS 'its body names a table that comes later';
CREATE VIEW stamps AS SELECT a, pl() FROM stamped;
CREATE TRIGGER tr BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION touched();
ALTER TABLE notes DISABLE TRIGGER tr;
CREATE RULE ru AS ON DELETE TO stamped DO INSTEAD NOTHING;
CREATE VIEW happy WITH (security_barrier) AS SELECT id, name FROM people WHERE mood = 'ok'::mood WITH LOCAL CHECK OPTION;
CREATE VIEW happier (i, "N") AS SELECT id, name FROM happy WHERE id > 3;
CREATE VIEW complex AS WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 5), c AS MATERIALIZED (SELECT person, count(*) FILTER (WHERE n > 3) AS k FROM notes GROUP BY person HAVING count(*) > 0)
  SELECT p.name, c.k, r.n, row_number() OVER (PARTITION BY r.n ORDER BY p.id DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w,
    CASE WHEN p.born BETWEEN '1900-01-01' AND '1900-02-01' THEN 1 ELSE 0 END AS x, EXISTS (SELECT 1 FROM stay s WHERE s.room = p.n) AS ex, (p.arr)[1] AS a1, p.j ->> 'a' AS ja,
    p.born + interval '1 day' AS nx, extract(year FROM p.born) AS y, COALESCE(p.n, 0) AS co, p.name LIKE 'n%' AS li, (SELECT max(price) FROM stay) AS mp, l.z, p.at AT TIME ZONE 'UTC' AS az
  FROM people p LEFT JOIN c ON c.person = p.id JOIN r ON r.n = p.id % 5 CROSS JOIN LATERAL (SELECT p.id * 2 AS z) l WHERE p.id IN (SELECT person FROM notes) OR p.name = ANY (ARRAY['a', 'b']) ORDER BY p.id, r.n DESC NULLS LAST LIMIT 30 OFFSET 1;
CREATE VIEW united AS SELECT id, name FROM people UNION SELECT n, note FROM notes EXCEPT ALL SELECT 1, 'x' INTERSECT SELECT 2, 'y';
CREATE VIEW grouped AS SELECT mood, born, count(DISTINCT name) AS c, string_agg(name, ',' ORDER BY id) AS s, percentile_cont(0.5) WITHIN GROUP (ORDER BY id) AS p FROM people GROUP BY GROUPING SETS ((mood), (born), ()), CUBE (mood);
CREATE VIEW using_join AS SELECT * FROM people JOIN notes n (id, m) USING (id) NATURAL LEFT JOIN stay TABLESAMPLE system (50);
CREATE VIEW of_places AS SELECT id, (pl).street, (re).home.street AS s2, pl, (ROW('x', 1, 'b')::place).c AS r, ARRAY[pl] AS a FROM every_type;
CREATE MATERIALIZED VIEW counted AS SELECT person, count(*) AS c FROM notes GROUP BY person;
CREATE UNIQUE INDEX ON counted (person);
CREATE MATERIALIZED VIEW not_filled AS SELECT 1 AS a WITH NO DATA;
COMMENT ON TABLE notes IS 'notes; of ''people''';
COMMENT ON COLUMN notes.note IS E'a\nb';
COMMENT ON INDEX notes_note IS 'an index';
COMMENT ON CONSTRAINT short ON people IS 'short';
COMMENT ON VIEW happy IS 'the happy';
COMMENT ON MATERIALIZED VIEW counted IS 'counted';
COMMENT ON SEQUENCE numbers IS 'numbers';
COMMENT ON TYPE mood IS 'a mood';
COMMENT ON DOMAIN positive IS 'above 0';
COMMENT ON FUNCTION twice(int) IS 'twice';
COMMENT ON TRIGGER tr ON notes IS 'a trigger';
COMMENT ON RULE ru ON stamped IS 'a rule';
COMMENT ON COLLATION german IS 'sorts';
COMMENT ON CONSTRAINT above_zero ON DOMAIN positive IS 'dom';
COMMENT ON STATISTICS people_stats IS 'stats';
COMMENT ON PROCEDURE proc IS 'a procedure';
COMMENT ON AGGREGATE sum_of(int) IS 'an aggregate';
COMMENT ON OPERATOR === (int, int) IS 'an operator';
GRANT SELECT, INSERT ON people TO reader;
GRANT UPDATE (note) ON notes TO reader WITH GRANT OPTION;
GRANT EXECUTE ON FUNCTION twice(int) TO PUBLIC;
GRANT USAGE ON TYPE mood TO reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA every GRANT SELECT ON TABLES TO reader;
ALTER TABLE people ENABLE ROW LEVEL SECURITY;
CREATE POLICY po ON people USING (id > 0);
CREATE PUBLICATION pub FOR TABLE notes;
CREATE FOREIGN DATA WRAPPER w;
CREATE SERVER sv FOREIGN DATA WRAPPER w;
CREATE TEXT SEARCH CONFIGURATION conf (COPY = simple);
CREATE FUNCTION ev() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE EVENT TRIGGER et ON ddl_command_end EXECUTE FUNCTION ev();
SELECT lo_from_bytea(0, 'a large object; '::bytea) > 0;
CREATE SCHEMA beyond;
CREATE TABLE beyond.of_type OF every.place (PRIMARY KEY (street));
INSERT INTO beyond.of_type VALUES ('a', 1, 'c');
CREATE TABLE beyond.papa (a int, b text DEFAULT 'p');
CREATE TABLE beyond.child (c int) INHERITS (beyond.papa);
INSERT INTO beyond.papa VALUES (1, 'x');
INSERT INTO beyond.child VALUES (2, 'y', 3);
CREATE FOREIGN TABLE beyond.far (a int) SERVER sv;
CREATE TABLE beyond.texts (a tsvector, b tsquery);
INSERT INTO beyond.texts VALUES ('a b', 'a & b');
CREATE VIEW beyond.called AS SELECT * FROM every.rows_of(3) WITH ORDINALITY f(a, b, o), ROWS FROM (generate_series(1, 2), unnest(ARRAY[1, 2])) g(x, y);
CREATE TABLE beyond.searched (id int PRIMARY KEY, t text, v tsvector, x xml[], g tsvector GENERATED ALWAYS AS (to_tsvector('simple', t)) STORED);
INSERT INTO beyond.searched VALUES (1, 'a b', 'a:1A b:2', '{<a/>,"<b c=\"d\"/>"}'), (2, NULL, NULL, NULL);
CREATE INDEX ON beyond.searched USING gin (v);
CREATE VIEW beyond.found AS SELECT id FROM beyond.searched WHERE v @@ to_tsquery('a');
CREATE TABLE beyond.stay (room int, during tsrange, who text, EXCLUDE USING gist (during WITH &&) WHERE (who IS NOT NULL),
  CONSTRAINT once EXCLUDE USING btree (who WITH =) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO beyond.stay SELECT 1, tsrange(ts, ts + '1 hour'), 'w' || g FROM (SELECT g, timestamp '2020-01-01' + g * interval '2 hours' AS ts FROM generate_series(1, 20) g) s;
