//! What a join has read of one side narrows the scan of the other: few keys are looked up one by
//! one, and the answer is that of a join that tells nobody what it knows.

use crate::harness::Db;
use braid_types::Datum;

fn stock() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE c (id int PRIMARY KEY, grp int, name text, k numeric(10,2));
         CREATE TABLE o (cid int, no bigint, sku text, amount int, note text,
             PRIMARY KEY (cid, no));
         CREATE INDEX o_sku ON o (sku);
         INSERT INTO c SELECT i, nullif(i % 500, 499), 'name ' || i, i / 4.0
             FROM generate_series(1, 2000) AS g(i);
         INSERT INTO o SELECT i, n, 'sku ' || (i * 5 + n) % 3000, (i + n) % 100, repeat('x', 40)
             FROM generate_series(1, 2000) AS g(i), generate_series(1, 10) AS h(n);
         INSERT INTO o SELECT 3000 + i, 1, NULL, NULL, NULL FROM generate_series(1, 20) AS g(i);",
    );
    db
}

/// How many spans the scans of a statement looked up.
fn looked_up(db: &mut Db, sql: &str) -> usize {
    let plan = db.run(&format!("EXPLAIN ANALYZE {sql}")).join("\n");
    let counts = plan.split("looked up=").skip(1);
    counts.map(|rest| rest.split([',', ' ', '\n']).next().unwrap().parse::<usize>().unwrap()).sum()
}

#[test]
fn joins_look_up_what_they_need() {
    let mut db = stock();
    db.run("ANALYZE");
    // Statement, the same with keys that no scan understands, spans.
    let cases = [
        (
            "SELECT c.id, count(*) FROM c JOIN o ON o.cid = c.id WHERE c.grp = 7 GROUP BY c.id",
            "SELECT c.id, count(*) FROM c JOIN o ON o.cid + 0 = c.id + 0 WHERE c.grp = 7
                GROUP BY c.id",
            4,
        ),
        (
            "SELECT DISTINCT c.id FROM c JOIN o ON (o.cid, o.no) = (c.id, c.grp) WHERE c.grp = 3",
            "SELECT DISTINCT c.id FROM c JOIN o ON (o.cid + 0, o.no + 0) = (c.id, c.grp)
                WHERE c.grp = 3",
            4,
        ),
        (
            "SELECT count(*), sum(o.amount) FROM (VALUES ('sku 7', row(1)),
                ('sku 8', row(1)), ('none', row(1)), (NULL, row(1))) AS v(s, r)
                JOIN o ON o.sku = v.s WHERE v.s <> ''",
            "SELECT count(*), sum(o.amount) FROM (VALUES ('sku 7', row(1)),
                ('sku 8', row(1)), ('none', row(1)), (NULL, row(1))) AS v(s, r)
                JOIN o ON o.sku || '' = v.s || '' WHERE v.s <> ''",
            3,
        ),
        (
            "SELECT c.id FROM c WHERE c.grp = 9 AND EXISTS (SELECT 1 FROM o WHERE o.cid = c.id
                AND o.amount > 90)",
            "SELECT c.id FROM c WHERE c.grp = 9 AND EXISTS (SELECT 1 FROM o WHERE o.cid + 0 = c.id
                AND o.amount > 90)",
            4,
        ),
        (
            "SELECT c.id FROM c WHERE c.grp = 9 AND NOT EXISTS (SELECT 1 FROM o WHERE o.cid = c.id
                AND o.amount > 90)",
            "SELECT c.id FROM c WHERE c.grp = 9 AND NOT EXISTS (SELECT 1 FROM o
                WHERE o.cid + 0 = c.id AND o.amount > 90)",
            4,
        ),
        (
            "SELECT c.id, (SELECT sum(amount) FROM o WHERE o.cid = c.id) FROM c WHERE grp = 11",
            "SELECT c.id, (SELECT sum(amount) FROM o WHERE o.cid + 0 = c.id) FROM c WHERE grp = 11",
            4,
        ),
        (
            "SELECT c.id, o.no FROM c LEFT JOIN o ON o.cid = c.id AND o.amount = 5 WHERE c.grp = 4",
            "SELECT c.id, o.no FROM c LEFT JOIN o ON o.cid + 0 = c.id AND o.amount = 5
                WHERE c.grp = 4",
            4,
        ),
    ];
    for (sql, plain, spans) in cases {
        let sorted = |mut rows: Vec<String>| {
            rows.sort();
            rows
        };
        let (got, want) = (db.run(sql), db.run(plain));
        assert_eq!(sorted(got), sorted(want), "{sql}");
        assert_eq!(looked_up(&mut db, plain), 0, "{plain}");
        assert_eq!(looked_up(&mut db, sql), spans, "{sql}");
    }
}

#[test]
fn a_join_of_most_rows_reads_them_all() {
    let mut db = stock();
    let all = "SELECT count(*), sum(o.amount) FROM c JOIN o ON o.cid = c.id WHERE c.id % 2 = 0";
    assert_eq!(looked_up(&mut db, all), 0);
    assert_eq!(db.run(all), db.run(&all.replace("o.cid = c.id", "o.cid + 0 = c.id")));
}

/// What one execution has learned is nothing to the next.
#[test]
fn each_execution_learns_anew() {
    let mut db = stock();
    let sql = "SELECT c.id, sum(o.amount) FROM c JOIN o ON o.cid = c.id WHERE c.grp = $1
        GROUP BY c.id ORDER BY sum(o.amount) DESC, c.id LIMIT 2";
    let statement = db.session.parse_script(sql).expect("parses").remove(0);
    let prepared = db.session.prepare(statement, &[]).expect("plans");
    for grp in [3, 498, 3, 1000, 17, 0] {
        let outcome = db.session.execute(&prepared, vec![Datum::Int4(grp)]).expect("runs");
        let braid_sql::Outcome::Rows(mut rows) = outcome else { panic!("rows expected") };
        let mut got = Vec::new();
        while let Some(batch) = rows.next_batch().expect("rows") {
            got.extend(batch.iter().map(|row| format!("{}|{}", row[0], row[1])));
        }
        drop(rows);
        let plain = sql.replace("o.cid = c.id", "o.cid + 0 = c.id");
        assert_eq!(got, db.run(&plain.replace("$1", &grp.to_string())), "{grp}");
    }
}

/// Own writes of the transaction are found by key as well.
#[test]
fn own_writes_are_looked_up() {
    let mut db = stock();
    let sql = "SELECT o.no, o.amount FROM c JOIN o ON o.cid = c.id WHERE c.grp = 498
        GROUP BY o.no, o.amount ORDER BY 1, 2";
    let plain = sql.replace("o.cid = c.id", "o.cid + 0 = c.id");
    db.run(
        "BEGIN; INSERT INTO o VALUES (498, 77, 'new', 1, NULL); DELETE FROM o WHERE cid = 998;
         UPDATE o SET amount = -1 WHERE cid = 1498 AND no = 3",
    );
    let got = db.run(sql);
    assert!(got.contains(&"77|1".to_string()) && got.contains(&"3|-1".to_string()), "{got:?}");
    assert_eq!(got, db.run(&plain));
    db.run("ROLLBACK");
    assert_eq!(db.run(sql), db.run(&plain));
}

/// Other kinds of joins, keys with NULLs, wider types, limits: against joins that tell nothing.
#[test]
fn answers_do_not_depend_on_what_scans_learn() {
    let mut db = stock();
    let cases = [
        "SELECT count(*), sum(o.amount) FROM o RIGHT JOIN c ON o.cid = c.id WHERE c.id < 9",
        "SELECT count(*), sum(c.id), sum(o.no) FROM (SELECT * FROM c WHERE id < 5) AS c
            FULL JOIN (SELECT * FROM o WHERE cid < 7 OR cid > 3010) AS o ON o.cid = c.id",
        "SELECT count(*) FROM c WHERE grp IN (SELECT cid FROM o WHERE amount = 3 AND cid = c.id)",
        "SELECT count(*) FROM c WHERE id < 40 AND grp NOT IN (SELECT amount FROM o WHERE cid = c.id)",
        "SELECT count(*), sum(x.no) FROM c JOIN o AS x ON x.cid = c.id AND x.no = c.grp
            WHERE c.id < 30",
        "SELECT c.id, o.no FROM c JOIN o ON o.cid = c.id WHERE c.k = 2.25 ORDER BY o.no DESC LIMIT 3",
        "SELECT c.id, o.sku FROM o JOIN c ON o.cid = c.id ORDER BY o.amount, o.sku, c.id LIMIT 4",
        "SELECT id, name FROM c ORDER BY k DESC, name LIMIT 3",
        "SELECT count(*) FROM c AS a JOIN c AS b ON a.grp = b.grp JOIN o ON o.cid = b.id
            WHERE a.id IN (3, 4, 499)",
        "SELECT count(*) FROM c WHERE id < 20 AND (grp = 3 OR EXISTS (SELECT 1 FROM o
            WHERE o.cid = c.id AND o.amount = 7))",
    ];
    for sql in cases {
        let plain = sql
            .replace("o.cid = c.id", "o.cid + 0 = c.id + 0")
            .replace("x.cid = c.id", "x.cid + 0 = c.id + 0")
            .replace("cid = c.id", "cid + 0 = c.id + 0")
            .replace("ORDER BY k", "ORDER BY k + 0")
            .replace("BY o.amount", "BY o.amount + 0")
            .replace("a.grp = b.grp", "a.grp + 0 = b.grp + 0")
            .replace("o.cid = b.id", "o.cid + 0 = b.id + 0");
        assert_ne!(plain, sql);
        assert_eq!(db.run(sql), db.run(&plain), "{sql}");
    }
}

/// Also tens of thousands of keys, where a scan of the other side would read many more rows.
#[test]
fn many_keys_of_a_large_table_are_looked_up() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE c (id int PRIMARY KEY, grp int);
         CREATE TABLE l (id int, no int, PRIMARY KEY (id, no));
         INSERT INTO c SELECT i, i % 2 FROM generate_series(1, 18000) i;
         INSERT INTO l SELECT i * 3, n FROM generate_series(1, 210000) i, generate_series(1, 2) n;
         ANALYZE c, l",
    );
    let matched = "SELECT count(*), sum(c.id) FROM c WHERE grp = 0 AND EXISTS
        (SELECT 1 FROM l WHERE l.id = c.id AND l.no > 1)";
    assert_eq!(looked_up(&mut db, matched), 9_000);
    assert_eq!(db.run(matched), db.run(&matched.replace("l.id = c.id", "l.id + 0 = c.id")));
    // Who may hold little is told fewer keys.
    db.run("SET statement_mem = '16MB'");
    assert_eq!(looked_up(&mut db, matched), 0);
    assert_eq!(db.run(matched), ["3000|27009000"]);
}

/// A row of a table whose columns lie beside its blocks costs so much less than a look-up that only
/// few keys are looked up there.
#[test]
fn what_lies_beside_blocks_is_read_rather_than_looked_up() {
    let mut db = stock();
    db.run("ANALYZE");
    // About 240 of 2,000 keys, with ten rows each.
    let sql = "SELECT count(*), sum(o.amount) FROM c JOIN o ON o.cid = c.id WHERE c.grp < 60";
    let few = "SELECT count(*) FROM c JOIN o ON o.cid = c.id WHERE c.grp = 7";
    let (answer, keys) = (db.run(sql), looked_up(&mut db, sql));
    assert!(keys > 200, "{keys} keys");
    db.compact();
    for _ in 0..3 {
        assert_eq!(
            db.run("SELECT count(amount) FROM o CROSS JOIN (VALUES (row(1))) one (one)"),
            ["20000"]
        );
    }
    assert_eq!((db.run(sql), looked_up(&mut db, sql)), (answer, 0));
    assert_eq!(looked_up(&mut db, few), 4);
}

/// Tasks of their own read held sides from the first moment on: what a join above knows a little
/// later must not be too late.
#[test]
fn held_sides_wait_for_what_joins_above_know() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE nation (k int PRIMARY KEY, name text);
         CREATE TABLE supplier (s int PRIMARY KEY, nation int, name text);
         CREATE INDEX supplier_nation ON supplier (nation);
         CREATE TABLE stock (part int, s int, amount int, PRIMARY KEY (part, s));
         INSERT INTO nation SELECT i, 'nation ' || i FROM generate_series(1, 400) AS g(i);
         INSERT INTO supplier SELECT i, i % 400 + 1, 'supplier ' || i
             FROM generate_series(1, 8000) AS g(i);
         INSERT INTO stock SELECT i / 4, i % 8000 + 1, i % 7 + 1
             FROM generate_series(1, 20000) AS g(i);
         ANALYZE;
         SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 1",
    );
    let sql = "SELECT s.name FROM supplier s, nation n WHERE s.s IN \
        (SELECT t.s FROM stock t WHERE t.amount > 0) AND s.nation = n.k AND n.name = 'nation 7'";
    let plan = db.run(&format!("EXPLAIN {sql}")).join("\n");
    let (outer, inner) = plan.split_once("LeftSemi").expect("a join inside of a join's other side");
    assert!(outer.contains("join_type=Inner") && inner.contains("supplier"), "{plan}");
    let rows = db.run(sql);
    assert_eq!(rows.len(), 20);
    for _ in 0..30 {
        assert_eq!(looked_up(&mut db, sql), 1, "the nation's suppliers");
        assert_eq!(db.run(sql).len(), rows.len());
    }
}
