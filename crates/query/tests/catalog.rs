//! What psql 15 asks for `\d`, `\dt` and friends, and `information_schema`.

use crate::harness::Db;

fn schema() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE singers (id varchar(36) PRIMARY KEY, name text NOT NULL DEFAULT 'x');
         CREATE TABLE albums (id varchar(36), album int, title text, price numeric(8,2) CHECK (price > 0),
            PRIMARY KEY (id, album)) INTERLEAVE IN PARENT singers ON DELETE CASCADE;
         CREATE INDEX albums_by_title ON albums (title DESC);
         CREATE SEQUENCE numbers;
         CREATE VIEW names AS SELECT name FROM singers;",
    );
    db
}

/// The queries of `\d albums`, as `psql -E` shows them, with the oid filled in.
#[test]
fn describe_table() {
    let mut db = schema();
    let oid = db.run(
        "SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c
         LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relname OPERATOR(pg_catalog.~) '^(albums)$' COLLATE pg_catalog.default
           AND pg_catalog.pg_table_is_visible(c.oid)
         ORDER BY 2, 3;",
    );
    assert_eq!(oid.len(), 1, "{oid:?}");
    let oid = oid[0].split('|').next().expect("oid").to_string();
    let about = format!(
        "SELECT c.relchecks, c.relkind, c.relhasindex, c.relhasrules, c.relhastriggers,
         c.relrowsecurity, c.relforcerowsecurity, false AS relhasoids, c.relispartition, '',
         c.reltablespace, CASE WHEN c.reloftype = 0 THEN '' ELSE
         c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, c.relreplident,
         am.amname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_class tc ON
         (c.reltoastrelid = tc.oid) LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid)
         WHERE c.oid = '{oid}';"
    );
    let columns = format!(
        "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
         (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d
          WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attnotnull,
         (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t WHERE c.oid =
          a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation,
         a.attidentity, a.attgenerated FROM pg_catalog.pg_attribute a
         WHERE a.attrelid = '{oid}' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;"
    );
    let indexes = format!(
        "SELECT c2.relname, i.indisprimary, i.indisunique, i.indisclustered, i.indisvalid,
         pg_catalog.pg_get_indexdef(i.indexrelid, 0, true),
         pg_catalog.pg_get_constraintdef(con.oid, true), contype, condeferrable, condeferred,
         i.indisreplident, c2.reltablespace FROM pg_catalog.pg_class c, pg_catalog.pg_class c2,
         pg_catalog.pg_index i LEFT JOIN pg_catalog.pg_constraint con ON (conrelid = i.indrelid AND
         conindid = i.indexrelid AND contype IN ('p','u','x'))
         WHERE c.oid = '{oid}' AND c.oid = i.indrelid AND i.indexrelid = c2.oid
         ORDER BY i.indisprimary DESC, c2.relname;"
    );
    let checks = format!(
        "SELECT r.conname, pg_catalog.pg_get_constraintdef(r.oid, true)
         FROM pg_catalog.pg_constraint r WHERE r.conrelid = '{oid}' AND r.contype = 'c' ORDER BY 1;"
    );
    let foreign = format!(
        "SELECT true as sametable, conname, pg_catalog.pg_get_constraintdef(r.oid, true) as condef,
         conrelid::pg_catalog.regclass AS ontable FROM pg_catalog.pg_constraint r
         WHERE r.conrelid = '{oid}' AND r.contype = 'f' AND conparentid = 0 ORDER BY conname"
    );
    let publications = format!(
        "SELECT pubname, NULL, NULL FROM pg_catalog.pg_publication p
         JOIN pg_catalog.pg_publication_namespace pn ON p.oid = pn.pnpubid
         JOIN pg_catalog.pg_class pc ON pc.relnamespace = pn.pnnspid
         WHERE pc.oid ='{oid}' and pg_catalog.pg_relation_is_publishable('{oid}')
         UNION SELECT pubname, pg_get_expr(pr.prqual, c.oid), (CASE WHEN pr.prattrs IS NOT NULL THEN
         (SELECT string_agg(attname, ', ') FROM pg_catalog.generate_series(0,
         pg_catalog.array_upper(pr.prattrs::pg_catalog.int2[], 1)) s, pg_catalog.pg_attribute
         WHERE attrelid = pr.prrelid AND attnum = prattrs[s]) ELSE NULL END)
         FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel pr ON p.oid = pr.prpubid
         JOIN pg_catalog.pg_class c ON c.oid = pr.prrelid WHERE pr.prrelid = '{oid}'
         UNION SELECT pubname, NULL, NULL FROM pg_catalog.pg_publication p
         WHERE p.puballtables AND pg_catalog.pg_relation_is_publishable('{oid}') ORDER BY 1;"
    );
    let inherits = format!(
        "SELECT c.oid::pg_catalog.regclass FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i
         WHERE c.oid = i.inhparent AND i.inhrelid = '{oid}'
         AND c.relkind != 'p' AND c.relkind != 'I' ORDER BY inhseqno;"
    );
    let statistics = format!(
        "SELECT oid, stxrelid::pg_catalog.regclass, stxnamespace::pg_catalog.regnamespace::pg_catalog.text
         AS nsp, stxname, pg_catalog.pg_get_statisticsobjdef_columns(oid) AS columns,
         'd' = any(stxkind) AS ndist_enabled, stxstattarget FROM pg_catalog.pg_statistic_ext
         WHERE stxrelid = '{oid}' ORDER BY nsp, stxname;"
    );
    let policies = format!(
        "SELECT pol.polname, pol.polpermissive, CASE WHEN pol.polroles = '{{0}}' THEN NULL ELSE
         pg_catalog.array_to_string(array(select rolname from pg_catalog.pg_roles where oid = any
         (pol.polroles) order by 1),',') END, pg_catalog.pg_get_expr(pol.polqual, pol.polrelid),
         CASE pol.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' END AS cmd
         FROM pg_catalog.pg_policy pol WHERE pol.polrelid = '{oid}' ORDER BY 1;"
    );
    db.check(&[
        (&about, "1|r|t|f|f|f|f|f|f||0||p|d|heap"),
        (
            &columns,
            "id|character varying(36)||t|||; album|integer||t|||; title|text||f|||; price|numeric(8,2)||f|||",
        ),
        (
            &indexes,
            "albums_pkey|t|t|f|t|CREATE UNIQUE INDEX albums_pkey ON albums USING btree (id, album)|PRIMARY KEY (id, album)|p|f|f|f|0; albums_by_title|f|f|f|t|CREATE INDEX albums_by_title ON albums USING btree (title DESC)|||||f|0",
        ),
        (&checks, "albums_price_check|CHECK (price > 0::numeric)"),
        (&foreign, ""),
        (&publications, ""),
        (&inherits, ""),
        (&statistics, ""),
        (&policies, ""),
    ]);
}

#[test]
fn lists() {
    schema().check(&[
        (
            "SELECT n.nspname as \"Schema\", c.relname as \"Name\", CASE c.relkind WHEN 'r' THEN 'table'
             WHEN 'v' THEN 'view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' END as \"Type\",
             pg_catalog.pg_get_userbyid(c.relowner) as \"Owner\" FROM pg_catalog.pg_class c
             LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam
             WHERE c.relkind IN ('r','p','v','m','S','f','') AND n.nspname <> 'pg_catalog'
             AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema'
             AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;",
            "public|albums|table|root; public|names|view|root; public|numbers|sequence|root; public|singers|table|root",
        ),
        (
            "SELECT d.datname as \"Name\", pg_catalog.pg_get_userbyid(d.datdba) as \"Owner\",
             pg_catalog.pg_encoding_to_char(d.encoding) as \"Encoding\", d.datcollate, d.datctype,
             d.daticulocale, CASE d.datlocprovider WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' END,
             pg_catalog.array_to_string(d.datacl, E'\\n') AS \"Access privileges\"
             FROM pg_catalog.pg_database d ORDER BY 1;",
            "defaultdb|root|UTF8|C.UTF-8|C.UTF-8||libc|; \
             postgres|root|UTF8|C.UTF-8|C.UTF-8||libc|; \
             template1|root|UTF8|C.UTF-8|C.UTF-8||libc|",
        ),
        (
            "SELECT r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin,
             r.rolconnlimit, r.rolvaliduntil, ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m
             JOIN pg_catalog.pg_roles b ON (m.roleid = b.oid) WHERE m.member = r.oid) as memberof,
             r.rolreplication, r.rolbypassrls FROM pg_catalog.pg_roles r WHERE r.rolname !~ '^pg_'
             ORDER BY 1;",
            "root|t|t|t|t|t|-1||{}|t|t",
        ),
        (
            "SELECT n.nspname AS \"Name\", pg_catalog.pg_get_userbyid(n.nspowner) AS \"Owner\"
             FROM pg_catalog.pg_namespace n WHERE n.nspname !~ '^pg_' AND n.nspname <>
             'information_schema' ORDER BY 1;",
            "public|pg_database_owner",
        ),
        (
            "SELECT n.nspname, p.proname, pg_catalog.pg_get_function_result(p.oid),
             pg_catalog.pg_get_function_arguments(p.oid), CASE p.prokind WHEN 'a' THEN 'agg' ELSE
             'func' END FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid =
             p.pronamespace WHERE pg_catalog.pg_function_is_visible(p.oid) AND n.nspname <>
             'pg_catalog' AND n.nspname <> 'information_schema' ORDER BY 1, 2, 4;",
            "",
        ),
        (
            "SELECT table_name, parent_table_name, on_delete_action, interleave_type FROM
             information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
            "albums|singers|CASCADE|IN PARENT; names|||; singers|||",
        ),
        (
            "SELECT column_name, data_type, is_nullable, column_default, character_maximum_length
             FROM information_schema.columns WHERE table_name = 'singers' ORDER BY ordinal_position",
            "id|character varying|NO||36; name|text|NO|'x'::text|",
        ),
        (
            "SELECT constraint_name, column_name, ordinal_position FROM
             information_schema.key_column_usage ORDER BY 1, 3",
            "albums_pkey|id|1; albums_pkey|album|2; singers_pkey|id|1",
        ),
        ("SELECT indexname FROM pg_indexes WHERE tablename = 'albums' ORDER BY 1",
            "albums_by_title; albums_pkey"),
        ("SELECT 'albums'::regclass::text, to_regclass('nope') IS NULL", "albums|t"),
        ("SELECT count(*) FROM information_schema.schemata", "3"),
        ("SELECT typname FROM pg_type WHERE oid = 'integer'::regtype", "int4"),
        ("SELECT * FROM names", ""),
    ]);
}

/// The parts of `\d` about foreign keys, sequences and indexes.
#[test]
fn foreign_keys_sequences_and_indexes() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE customers (id int PRIMARY KEY);
         CREATE TABLE orders (id serial PRIMARY KEY, ref int REFERENCES customers (id) ON DELETE SET NULL);",
    );
    let oid = |db: &mut Db, name: &str| {
        db.run(&format!("SELECT oid FROM pg_class WHERE relname = '{name}'")).remove(0)
    };
    let (customers, orders) = (oid(&mut db, "customers"), oid(&mut db, "orders"));
    let (sequence, key) = (oid(&mut db, "orders_id_seq"), oid(&mut db, "orders_pkey"));
    db.check(&[
        ("SELECT relname FROM pg_class WHERE relhastriggers ORDER BY 1", "customers; orders"),
        (
            &format!(
                "SELECT true as sametable, conname, pg_catalog.pg_get_constraintdef(r.oid, true) as
                 condef, conrelid::pg_catalog.regclass AS ontable FROM pg_catalog.pg_constraint r
                 WHERE r.conrelid = '{orders}' AND r.contype = 'f' AND conparentid = 0
                 ORDER BY conname"
            ),
            "t|orders_ref_fkey|FOREIGN KEY (ref) REFERENCES customers(id) ON DELETE SET NULL|orders",
        ),
        (
            &format!(
                "SELECT conname, conrelid::pg_catalog.regclass AS ontable,
                 pg_catalog.pg_get_constraintdef(oid, true) AS condef FROM pg_catalog.pg_constraint c
                 WHERE confrelid IN (SELECT pg_catalog.pg_partition_ancestors('{customers}')
                 UNION ALL VALUES ('{customers}'::pg_catalog.regclass))
                 AND contype = 'f' AND conparentid = 0 ORDER BY conname;"
            ),
            "orders_ref_fkey|orders|FOREIGN KEY (ref) REFERENCES customers(id) ON DELETE SET NULL",
        ),
        (
            &format!(
                "SELECT t.tgname, pg_catalog.pg_get_triggerdef(t.oid, true), t.tgenabled,
                 t.tgisinternal, CASE WHEN t.tgparentid != 0 THEN (SELECT
                 u.tgrelid::pg_catalog.regclass FROM pg_catalog.pg_trigger AS u,
                 pg_catalog.pg_partition_ancestors(t.tgrelid) WITH ORDINALITY AS a(relid, depth)
                 WHERE u.tgname = t.tgname AND u.tgrelid = a.relid AND u.tgparentid = 0
                 ORDER BY a.depth LIMIT 1) END AS parent FROM pg_catalog.pg_trigger t
                 WHERE t.tgrelid = '{orders}' AND (NOT t.tgisinternal OR (t.tgisinternal AND
                 t.tgenabled = 'D') OR EXISTS (SELECT 1 FROM pg_catalog.pg_depend WHERE objid = t.oid
                 AND refclassid = 'pg_catalog.pg_trigger'::pg_catalog.regclass)) ORDER BY 1;"
            ),
            "",
        ),
        (
            &format!(
                "SELECT pg_catalog.format_type(seqtypid, NULL) AS \"Type\", seqstart, seqmin, seqmax,
                 seqincrement, CASE WHEN seqcycle THEN 'yes' ELSE 'no' END, seqcache
                 FROM pg_catalog.pg_sequence WHERE seqrelid = '{sequence}';"
            ),
            "integer|1|1|2147483647|1|no|1",
        ),
        (
            &format!(
                "SELECT pg_catalog.quote_ident(nspname) || '.' || pg_catalog.quote_ident(relname) ||
                 '.' || pg_catalog.quote_ident(attname), d.deptype FROM pg_catalog.pg_class c
                 INNER JOIN pg_catalog.pg_depend d ON c.oid=d.refobjid
                 INNER JOIN pg_catalog.pg_namespace n ON n.oid=c.relnamespace
                 INNER JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid AND a.attnum=d.refobjsubid)
                 WHERE d.classid='pg_catalog.pg_class'::pg_catalog.regclass
                 AND d.refclassid='pg_catalog.pg_class'::pg_catalog.regclass
                 AND d.objid='{sequence}' AND d.objsubid=0 AND d.deptype IN ('a', 'i')"
            ),
            "public.orders.id|a",
        ),
        (
            &format!(
                "SELECT i.indisunique, i.indisprimary, i.indisclustered, i.indisvalid,
                 (NOT i.indimmediate) AND EXISTS (SELECT 1 FROM pg_catalog.pg_constraint WHERE
                 conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x') AND
                 condeferrable) AS condeferrable, i.indisreplident, i.indnullsnotdistinct, a.amname,
                 c2.relname, pg_catalog.pg_get_expr(i.indpred, i.indrelid, true)
                 FROM pg_catalog.pg_index i, pg_catalog.pg_class c, pg_catalog.pg_class c2,
                 pg_catalog.pg_am a WHERE i.indexrelid = c.oid AND c.oid = '{key}' AND
                 c.relam = a.oid AND i.indrelid = c2.oid;"
            ),
            "t|t|f|t|f|f|f|btree|orders|",
        ),
        (
            &format!(
                "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnum
                 <= (SELECT i.indnkeyatts FROM pg_catalog.pg_index i WHERE i.indexrelid = '{key}')
                 THEN 'yes' ELSE 'no' END AS is_key, pg_catalog.pg_get_indexdef(a.attrelid, a.attnum,
                 TRUE) AS indexdef FROM pg_catalog.pg_attribute a WHERE a.attrelid = '{key}'
                 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;"
            ),
            "id|integer|yes|id",
        ),
        ("SELECT pg_get_serial_sequence('orders', 'id')", "public.orders_id_seq"),
    ]);
}

#[test]
fn sizes_are_those_of_what_is_stored() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE parent (id int PRIMARY KEY, name text);
         CREATE TABLE child (id int, no int, note text, PRIMARY KEY (id, no))
             INTERLEAVE IN PARENT parent ON DELETE CASCADE;
         CREATE INDEX by_note ON child (note);
         CREATE TABLE alone (id int PRIMARY KEY, note text);
         CREATE VIEW shown AS SELECT id FROM alone; CREATE SEQUENCE counted;
         INSERT INTO parent SELECT i, 'name ' || i FROM generate_series(1, 500) i;
         INSERT INTO child SELECT i, n, repeat(md5(i::text || n), 4)
             FROM generate_series(1, 500) i, generate_series(1, 20) n;
         INSERT INTO alone SELECT i, md5(i::text) FROM generate_series(1, 500) i; ANALYZE",
    );
    let size = |db: &mut Db, of: &str| -> i64 {
        db.run(&format!("SELECT {of}"))[0].parse().unwrap_or_else(|_| panic!("{of}"))
    };
    let parent = size(&mut db, "pg_relation_size('parent')");
    let child = size(&mut db, "pg_table_size('child'::regclass)");
    let alone = size(&mut db, "pg_relation_size('alone', 'main')");
    assert!(parent > 2_000 && child > 10 * parent, "{parent}, {child}");
    assert!(alone > 2_000 && alone < child, "{alone}, {child}");
    let index = size(&mut db, "pg_relation_size('by_note')");
    assert!(index > 10_000, "{index}");
    assert_eq!(size(&mut db, "pg_indexes_size('child')"), index);
    assert_eq!(size(&mut db, "pg_total_relation_size('child')"), child + index);
    assert_eq!(size(&mut db, "pg_relation_size('alone', 'fsm')"), 0);
    let all = parent + child + index + alone;
    assert_eq!(size(&mut db, "pg_database_size(current_database())"), all);
    assert!(size(&mut db, "pg_tablespace_size('pg_default')") >= all);
    let none = "SELECT pg_total_relation_size(1::oid::regclass), pg_relation_size('shown'),
        pg_table_size('counted'), pg_database_size(1::oid)";
    assert_eq!(db.run(none), ["|||"]);
    for (sql, state) in [
        ("SELECT pg_database_size('nowhere')", "3D000"),
        ("SELECT pg_relation_size('alone', 'nothing')", "22023"),
    ] {
        assert_eq!(db.try_run(sql).unwrap_err().state().0, state, "{sql}");
    }
}

/// What drivers are told of a column's type goes beyond the type.
#[test]
fn columns_of_answers_have_the_modifiers_that_they_were_declared_with() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id int PRIMARY KEY, a timestamp(3), b varchar(5), c numeric(6,2), d time(0),
            e interval(1), f timestamptz(6), g timestamp)",
    );
    let modifiers = |db: &mut Db, sql: &str| -> Vec<i32> {
        let statement = db.session.parse_script(sql).expect(sql).remove(0);
        let prepared = db.session.prepare(statement, &[]).expect(sql);
        prepared.columns().expect("rows").iter().map(|c| c.modifier).collect()
    };
    let interval = (0x7fff << 16) | 1;
    let all = [3, 9, (6 << 16 | 2) + 4, 0, interval, 6, -1];
    for from in ["t", "t WHERE id = 1", "(SELECT * FROM t) AS x", "t JOIN t AS u USING (id)"] {
        let alias = if from.contains("USING") { "t." } else { "" };
        let list = ["a", "b", "c", "d", "e", "f", "g"].map(|c| format!("{alias}{c}")).join(", ");
        let found = modifiers(&mut db, &format!("SELECT {list} FROM {from}"));
        if from.contains("AS x") {
            // A subquery's columns are of no table, as far as this goes.
            assert_eq!(found[1..3], all[1..3], "{from}");
        } else {
            assert_eq!(found, all, "{from}");
        }
    }
    assert_eq!(
        modifiers(&mut db, "SELECT a + interval '1 day', max(b) FROM t GROUP BY a"),
        [-1, -1]
    );
    assert_eq!(modifiers(&mut db, "INSERT INTO t (id) VALUES (1) RETURNING a, d"), [3, 0]);
}
