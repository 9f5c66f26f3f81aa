//! Scans in columns give what scans in rows give: random tables of all types, with NULLs, columns
//! that came and went, families, and own writes over all of it.

use crate::harness::Db;
use braid_env::fs::MemFs;
use braid_env::random::Random;

/// Types with values that are worth a test.
const TYPES: [(&str, &[&str]); 19] = [
    ("bool", &["true", "false"]),
    ("int2", &["0", "-1", "32767", "-32768", "255"]),
    ("int4", &["0", "1", "-1", "2147483647", "-2147483648", "65536"]),
    ("int8", &["0", "9223372036854775807", "-9223372036854775808", "-256", "4294967296"]),
    ("float4", &["0", "1.5", "'-0'", "'NaN'", "'Infinity'", "-3.25"]),
    ("float8", &["0", "2.5", "'-0'", "'NaN'", "'-Infinity'", "1e300"]),
    ("numeric", &["0", "1.50", "1.5", "'NaN'", "'Infinity'", "-123456789012345678901234567890.1"]),
    ("numeric(12,2)", &["0", "1.50", "-0.01", "'NaN'", "9999999999.99", "-9999999999.99"]),
    ("numeric(38,10)", &["0", "1.5", "9999999999999999999999999999.9999999999", "'NaN'"]),
    ("numeric(5,0)", &["0", "7", "-99999"]),
    ("text", &["''", "'a'", "'héllo'", "'a long text that does not fit into a few bytes'"]),
    ("varchar(5)", &["''", "'abc'", "'ääääö'"]),
    ("char(4)", &["'x'", "'abcd'", "''"]),
    ("bytea", &["'\\x'", "'\\x00ff0001'"]),
    ("date", &["'2024-02-29'", "'infinity'", "'0044-03-15 BC'"]),
    ("timestamp", &["'2024-02-29 12:34:56.789'", "'infinity'"]),
    ("interval", &["'1 month 2 days 3 seconds'", "'-5 years'", "'0'"]),
    ("uuid", &["'00112233-4455-6677-8899-aabbccddeeff'"]),
    ("int4[]", &["'{}'", "'{1,2,NULL}'"]),
];
/// Those whose equal values look the same, for keys.
const KEYS: [usize; 8] = [1, 2, 3, 10, 11, 14, 15, 17];

struct Table {
    name: String,
    /// Types by column; the first ones are the key, as it is declared.
    columns: Vec<(String, usize)>,
    key: Vec<String>,
    parent: Option<String>,
    next: usize,
    /// Ids are below this.
    ids: u64,
}

fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

fn value(random: &mut Random, ty: usize) -> String {
    if random.below(4) == 0 { "NULL".into() } else { (*pick(random, TYPES[ty].1)).into() }
}

impl Table {
    fn like(&self) -> Table {
        let (name, key, parent) = (self.name.clone(), self.key.clone(), self.parent.clone());
        Table { name, columns: self.columns.clone(), key, parent, next: self.next, ids: self.ids }
    }

    fn insert(&self, db: &mut Db, random: &mut Random, rows: u64) {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        for _ in 0..rows {
            let id = random.below(self.ids).to_string();
            let mut values = vec![id.clone(), (*pick(random, TYPES[self.columns[1].1].1)).into()];
            if self.parent.is_some() {
                values = vec!["id".into(), "k".into()];
            }
            for (_, ty) in &self.columns[values.len()..self.key.len()] {
                values.push((*pick(random, TYPES[*ty].1)).into());
            }
            values.extend(self.columns[self.key.len()..].iter().map(|(_, ty)| value(random, *ty)));
            let casts = values.iter().zip(&self.columns);
            let casts = casts.map(|(value, (_, ty))| format!("({value})::{}", TYPES[*ty].0));
            let values = casts.collect::<Vec<_>>().join(", ");
            let rows = match &self.parent {
                None => format!("VALUES ({values})"),
                Some(parent) => format!("SELECT {values} FROM {parent} WHERE id = {id}"),
            };
            let (name, names) = (&self.name, names.join(", "));
            db.run(&format!("INSERT INTO {name} ({names}) {rows} ON CONFLICT DO NOTHING"));
        }
    }

    /// A column comes or goes.
    fn alter(&mut self, db: &mut Db, random: &mut Random) {
        let free = self.columns.len() - self.key.len();
        if free > 2 && random.below(2) == 0 {
            let at = self.key.len() + random.below(free as u64) as usize;
            let (name, _) = self.columns.remove(at);
            db.run(&format!("ALTER TABLE {} DROP COLUMN {name}", self.name));
            return;
        }
        let ty = random.below(TYPES.len() as u64) as usize;
        let name = format!("c{}", self.next);
        self.next += 1;
        let default = match random.below(2) {
            0 => format!(" DEFAULT {}", pick(random, TYPES[ty].1)),
            _ => String::new(),
        };
        db.run(&format!("ALTER TABLE {} ADD COLUMN {name} {}{default}", self.name, TYPES[ty].0));
        self.columns.push((name, ty));
    }

    /// A condition on one column or two.
    fn condition(&self, random: &mut Random) -> String {
        let (name, ty) = pick(random, &self.columns);
        let value = |random: &mut Random| format!("({})::{}", value(random, *ty), TYPES[*ty].0);
        match random.below(8) {
            0 => format!("{name} IS NULL"),
            1 => format!("{name} IS NOT NULL"),
            2 => format!("{name} IN ({}, {})", value(random), value(random)),
            3 => format!("NOT ({name} < {})", value(random)),
            4 => format!("({name} = {} OR id < {})", value(random), random.below(self.ids)),
            5 => format!("{name} IS DISTINCT FROM {}", value(random)),
            n => format!("{name} {} {}", [">=", "<>"][n as usize - 6], value(random)),
        }
    }

    /// Both forms of some columns, of all rows and of some.
    fn check(&self, db: &mut Db, random: &mut Random) {
        for _ in 0..3 {
            let mut names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
            names.retain(|_| random.below(3) > 0);
            let mut conditions = match random.below(3) {
                0 => Vec::new(),
                1 => vec![format!("id >= {}", random.below(self.ids))],
                _ => {
                    let ids = (random.below(self.ids), random.below(self.ids));
                    vec![format!("id IN ({}, {})", ids.0, ids.1)]
                }
            };
            for _ in 0..random.below(3) {
                conditions.push(self.condition(random));
            }
            let bound = match conditions.len() {
                0 => String::new(),
                _ => format!(" WHERE {}", conditions.join(" AND ")),
            };
            let list = if names.is_empty() { "1".into() } else { names.join(", ") };
            let rows = format!("SELECT {list} FROM {}{bound}", self.name);
            let columns = format!(
                "SELECT {list} FROM {} CROSS JOIN (VALUES (row(1))) one (one){bound}",
                self.name
            );
            let (mut by_rows, mut by_columns) = (db.run(&rows), db.run(&columns));
            by_rows.sort();
            by_columns.sort();
            assert_eq!(by_columns, by_rows, "{columns}");
            let count =
                format!("SELECT count(*) FROM (SELECT 2 FROM {}{bound} OFFSET 0) x", self.name);
            assert_eq!(db.run(&count), [by_rows.len().to_string()], "{count}");
        }
    }
}

fn table(
    db: &mut Db,
    random: &mut Random,
    (name, ids): (&str, u64),
    parent: Option<&Table>,
) -> Table {
    let mut columns = vec![("id".to_string(), 2)];
    let desc = if random.below(2) == 0 { " DESC" } else { "" };
    let mut key = vec!["id".to_string(), format!("k{desc}")];
    match parent {
        None => columns.push(("k".into(), *pick(random, &KEYS))),
        Some(parent) => {
            columns.push(parent.columns[1].clone());
            columns.push(("n".into(), *pick(random, &[1, 2, 10])));
            key = parent.key.clone();
            key.push("n".into());
        }
    }
    for n in 0..3 + random.below(8) {
        columns.push((format!("c{n}"), random.below(TYPES.len() as u64) as usize));
    }
    let list = columns.iter().map(|(name, ty)| format!("{name} {}, ", TYPES[*ty].0));
    let list: String = list.collect();
    let parent = parent.map(|parent| parent.name.clone());
    let inside = parent.as_ref().map(|p| format!(" INTERLEAVE IN PARENT {p} ON DELETE CASCADE"));
    let (inside, keys) = (inside.unwrap_or_default(), key.join(", "));
    db.run(&format!("CREATE TABLE {name} ({list}PRIMARY KEY ({keys})){inside}"));
    Table { name: name.into(), columns, key, parent, next: 100, ids }
}

#[test]
fn columns_hold_what_rows_hold() {
    for seed in 0..7 {
        let mut random = Random::seeded(seed);
        let db = &mut Db::new();
        let mut tables = vec![table(db, &mut random, ("t", 40), None)];
        if seed % 3 > 0 {
            let child = table(db, &mut random, ("c", 40), Some(&tables[0]));
            tables.push(child);
        }
        for round in 0..6 {
            let some = 5 + random.below(40);
            for table in &tables {
                table.insert(db, &mut random, some);
                table.check(db, &mut random);
            }
            let at = random.below(tables.len() as u64) as usize;
            tables[at].alter(db, &mut random);
            tables[at].insert(db, &mut random, 10);
            // Own writes over it, that are taken back.
            db.run("BEGIN");
            let low = random.below(40);
            for table in &tables {
                table.insert(db, &mut random, 15);
                db.run(&format!(
                    "DELETE FROM {} WHERE id >= {low} AND id < {}",
                    table.name,
                    low + 9
                ));
                let (name, ty) = table.columns.last().expect("has columns");
                let new = value(&mut random, *ty);
                db.run(&format!("UPDATE {} SET {name} = {new} WHERE id % 3 = 0", table.name));
                table.insert(db, &mut random, 5);
                table.check(db, &mut random);
            }
            db.run(if round % 2 == 0 { "COMMIT" } else { "ROLLBACK" });
            tables.iter().for_each(|table| table.check(db, &mut random));
        }
    }
}

/// What is kept beside blocks is what rows hold, as they are and as they were, whatever became of
/// the tables' columns since it was kept.
#[test]
fn columns_beside_blocks_hold_what_rows_hold() {
    for seed in 0..5 {
        let mut random = Random::seeded(seed + 50);
        // With room for all, with room for some columns, and hardly for the blocks.
        let cache = [32 << 20, 32 << 20, 32 << 20, 192 << 10, 64 << 10][seed as usize];
        let db = &mut Db::with(MemFs::new(), |options| options.engine.block_cache_size = cache);
        let mut most = 0;
        let mut tables = vec![table(db, &mut random, ("t", 200), None)];
        if seed > 0 {
            let child = table(db, &mut random, ("c", 200), Some(&tables[0]));
            tables.push(child);
        }
        for round in 0..3 {
            for table in &tables {
                table.insert(db, &mut random, 200);
            }
            if round % 2 == 1 {
                let low = random.below(180);
                db.run(&format!("DELETE FROM t WHERE id >= {low} AND id < {}", low + 12));
                let (name, ty) = tables[0].columns.last().expect("has columns");
                let new = value(&mut random, *ty);
                db.run(&format!("UPDATE t SET {name} = {new} WHERE id % 5 = 0"));
            }
            db.compact();
            for _ in 0..3 {
                tables.iter().for_each(|table| table.check(db, &mut random));
            }
            let store = db.store.as_ref().expect("one store");
            most = most.max(store.engine().metrics().cache_sidecar_bytes);
            // A state that is not the newest one any more.
            let mut then = db.another();
            then.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
            then.run("SELECT count(*) FROM t");
            let mut now = db.another();
            now.run("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT count(*) FROM t");
            let at = random.below(tables.len() as u64) as usize;
            let before = tables[at].like();
            tables[at].insert(db, &mut random, 30);
            db.run("DELETE FROM t WHERE id % 7 = 1");
            db.compact();
            tables.iter().for_each(|table| table.check(db, &mut random));
            before.check(&mut then, &mut random);
            then.run("ROLLBACK");
            tables.iter().for_each(|table| table.check(&mut now, &mut random));
            now.run("ROLLBACK");
            tables[at].alter(db, &mut random);
            tables.iter().for_each(|table| table.check(db, &mut random));
        }
        let least = if cache > 100 << 10 { 2_000 } else { 0 };
        assert!((least..=cache as u64 / 2).contains(&most), "{most} bytes were kept at most");
    }
}

/// A block has rows of two types of a column until the older ones are forgotten: those who see the
/// newer ones, and those who look back, each see theirs, however often the block is read.
#[test]
fn rows_of_another_type_lie_in_the_same_block() {
    let db = &mut Db::new();
    db.run("CREATE TABLE t (id int4 PRIMARY KEY, v int4, w text)");
    db.run("INSERT INTO t SELECT g, g * 65537, g FROM generate_series(1, 5000) g");
    db.run("CREATE TABLE c (id int4, n int4, PRIMARY KEY (id, n)) INTERLEAVE IN PARENT t (id)");
    db.run("INSERT INTO c SELECT g, n FROM generate_series(1, 5000) g, generate_series(1, 2) n");
    let sum = |db: &mut Db| {
        let all = "SELECT count(*), sum(v::numeric::int8), max(w::numeric::int8) FROM t";
        db.run(all).join("")
    };
    let wanted = format!("5000|{}|5000", 65_537u64 * 5000 * 5001 / 2);
    for to in ["text", "int8", "text", "numeric(20,2)", "text", "int4"] {
        let mut then = db.another();
        then.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
        db.run(&format!("ALTER TABLE t ALTER v TYPE {to} USING v::numeric::{to}"));
        db.run(&format!("ALTER TABLE t ALTER w TYPE {to} USING w::numeric::int8::{to}"));
        db.compact();
        for read in 0..4 {
            assert_eq!(sum(db), wanted, "{to}, read {read}");
            assert_eq!(sum(&mut then), wanted, "before {to}, read {read}");
            let few = db.run("SELECT id FROM t WHERE v::numeric = 65537 * 7 OR w::numeric = 9");
            assert_eq!(few, ["7", "9"], "{to}, read {read}");
        }
        then.run("ROLLBACK");
    }
}

#[test]
fn what_is_compared_is_scanned_in_two_ways() {
    let db = &mut Db::new();
    db.run("CREATE TABLE t (id int4 PRIMARY KEY, v text)");
    let rows = db.run("EXPLAIN SELECT v FROM t WHERE id >= 3").join("\n");
    assert!(!rows.contains("general plan"), "{rows}");
    let columns = "EXPLAIN SELECT v FROM t CROSS JOIN (VALUES (row(1))) one (one) WHERE id >= 3";
    let columns = db.run(columns).join("\n");
    assert!(columns.contains("general plan"), "{columns}");
    assert!(columns.contains("filter=id@0 >= 3"), "{columns}");
}

#[test]
fn a_limit_counts_rows_that_passed() {
    let db = &mut Db::new();
    db.run("CREATE TABLE t (id int4 PRIMARY KEY, v int4, w text)");
    db.run("INSERT INTO t SELECT n, n % 50, 'w' || n FROM generate_series(1, 3000) n(n)");
    db.check(&[
        (
            "SELECT id, w FROM t CROSS JOIN (VALUES (row(1))) o (o) WHERE v = 49 LIMIT 2",
            "49|w49; 99|w99",
        ),
        ("SELECT count(*) FROM (SELECT 1 FROM t WHERE v = 7 LIMIT 50) x", "50"),
        ("SELECT count(*) FROM (SELECT 1 FROM t WHERE v = 7 LIMIT 90) x", "60"),
        ("SELECT count(*) FROM (SELECT 1 FROM t WHERE v < 7 OFFSET 100 LIMIT 290) x", "290"),
        ("SELECT count(*), min(w) FROM t WHERE v BETWEEN 3 AND 4 AND id > 2900", "4|w2903"),
    ]);
    db.run("CREATE INDEX by_v ON t (v)");
    db.check(&[
        ("SELECT count(*), max(w) FROM t WHERE v = 7 AND w > 'w2'", "38|w957"),
        (
            "SELECT id FROM t CROSS JOIN (VALUES (row(1))) o (o) WHERE v = 9 AND w > 'w29' LIMIT 2",
            "9; 59",
        ),
    ]);
}

/// A scan that finds out that few rows pass looks for the other columns in these alone, and again
/// in all rows where many pass; rows of other tables that have the same class lie between them.
#[test]
fn what_few_rows_need_is_looked_for_in_them() {
    let db = &mut Db::new();
    db.run(
        "CREATE TABLE p (id int4 PRIMARY KEY, v int4, w text, x numeric(9,2));
         CREATE TABLE c (id int4, n int4, v int4, w text, PRIMARY KEY (id, n))
             INTERLEAVE IN PARENT p (id);",
    );
    // Classes are few: some of these share one.
    let others: Vec<String> = (0..40)
        .map(|n| {
            format!(
                "CREATE TABLE o{n} (id int4, n int4, PRIMARY KEY (id, n))
                INTERLEAVE IN PARENT p (id); INSERT INTO o{n} SELECT i * 97 + 1, 1
                FROM generate_series(0, 60) g(i)"
            )
        })
        .collect();
    db.run(
        "INSERT INTO p SELECT n, n / 100 % 20, 'w' || n, n / 4.0 FROM generate_series(1, 6000) n(n);
         INSERT INTO c SELECT n, m, (n + m) % 300, nullif('w' || n + m, 'w77')
             FROM generate_series(1, 6000) n(n), generate_series(1, 2) m(m);
         ALTER TABLE c ADD COLUMN late int4 DEFAULT 5",
    );
    db.run(&others.join(";"));
    for table in ["p", "c"] {
        for condition in ["{v} = 7", "{v} < 3", "{v} < 15", "{v} > 17 AND {v} <= 19", "{v} = 1000"]
        {
            for columns in ["*", "id, w", "v", "count(*)", "w, id, v"] {
                let sql = |v: &str| {
                    let condition = condition.replace("{v}", v);
                    let from = format!("{table} CROSS JOIN (VALUES (row(1))) one (one)");
                    format!("SELECT {columns} FROM {from} WHERE {condition} ORDER BY 1")
                };
                let (got, want) = (db.run(&sql("v")), db.run(&sql("(v + 0)")));
                assert_eq!(got, want, "{}", sql("v"));
            }
        }
    }
}
