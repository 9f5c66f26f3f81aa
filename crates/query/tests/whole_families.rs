//! Whole families as values: JSON and arrays of what lies in a row, at all levels, in one pass along
//! the hierarchy. Random queries answer as on flat tables, where general plans run them.

use crate::harness::Db;
use braid_env::random::Random;

/// A table of the hierarchy: name, key, what lies in it.
struct Table(&'static str, &'static [&'static str], &'static [usize]);

const TABLES: [Table; 5] = [
    Table("c", &["id"], &[1, 2, 3]),
    Table("o", &["id", "o"], &[2, 4]),
    Table("l", &["id", "o", "l"], &[4]),
    Table("s", &["id", "s"], &[]),
    // For locality only: it has rows without a parent.
    Table("k", &["id", "o", "l", "k"], &[]),
];

const SCHEMA: &str = "
    create table c (id int primary key, n int, t text);
    create table o (id int, o int, n int, t text, primary key (id, o))
        interleave in parent c on delete cascade;
    create table l (id int, o int, l int, n int, t text, primary key (id, o, l))
        interleave in parent o on delete cascade;
    create table s (id int, s int, n int, t text, primary key (id, s))
        interleave in parent c on delete cascade;
    create table k (id int, o int, l int, k int, n int, t text, primary key (id, o, l, k))
        interleave in l;
    create index l_n on l (id, n) interleave in c;
    create table flat_c (id int primary key, n int, t text);
    create table flat_o (id int, o int, n int, t text, primary key (id, o));
    create table flat_l (id int, o int, l int, n int, t text, primary key (id, o, l));
    create table flat_s (id int, s int, n int, t text, primary key (id, s));
    create table flat_k (id int, o int, l int, k int, n int, t text, primary key (id, o, l, k));";

fn filled(large: bool) -> Db {
    let mut db = Db::new();
    db.run(SCHEMA);
    let mut r = Random::seeded(5);
    let mut put = |table: &str, key: String| {
        let n = if r.below(5) == 0 { "null".into() } else { r.below(5).to_string() };
        let row = format!("({key}, {n}, 't{}')", r.below(3));
        for flat in ["", "flat_"] {
            db.run(&format!("insert into {flat}{table} values {row}"));
        }
    };
    for id in 1..=8 {
        put("c", format!("{id}"));
        (0..id % 4).for_each(|s| put("s", format!("{id}, {s}")));
        for o in 0..(id + 1) % 4 {
            put("o", format!("{id}, {o}"));
            for l in 0..(id + o) % 3 {
                put("l", format!("{id}, {o}, {l}"));
                (0..(l + o) % 3).for_each(|k| put("k", format!("{id}, {o}, {l}, {k}")));
            }
        }
    }
    put("k", "3, 7, 1, 1".into());
    put("k", "99, 1, 1, 1".into());
    if large {
        // One family that is too large to be gathered.
        for flat in ["", "flat_"] {
            db.run(&format!(
                "insert into {flat}l select 6, 1, 100 + g, g % 4, repeat('x', 15000)
                 from generate_series(1, 100) g"
            ));
        }
    }
    db.run("analyze");
    db
}

/// Makes queries; tables are named in braces.
struct Questions {
    random: Random,
    aliases: usize,
}

impl Questions {
    fn pick(&mut self, all: &[&str]) -> String {
        (*self.random.pick(all)).to_string()
    }

    /// FROM and WHERE of the rows of a table that lie in a row of one around it, and how they are
    /// ordered.
    fn rows(&mut self, around: &[(usize, String)]) -> (usize, String, String, String) {
        let at = self.random.below(around.len() as u64) as usize;
        let (outer, outer_alias) = around[at].clone();
        let inside = TABLES[outer].2;
        if inside.is_empty() {
            return self.rows(&around[..1]);
        }
        let table = *self.random.pick(inside);
        self.aliases += 1;
        let alias = format!("a{}", self.aliases);
        let Table(name, key, _) = TABLES[table];
        let on: Vec<String> =
            TABLES[outer].1.iter().map(|k| format!("{alias}.{k} = {outer_alias}.{k}")).collect();
        let more = self.pick(&["", "", " and @.n > 1", " and @.t <> 't1'", " and @.n is null"]);
        let from = format!(
            "from {{{name}}} {alias} where {}{}",
            on.join(" and "),
            more.replace('@', &alias)
        );
        let down = self.pick(&["", " desc"]);
        let mut by: Vec<String> = key.iter().map(|k| format!("{alias}.{k}{down}")).collect();
        if self.random.below(3) == 0 {
            by.insert(0, format!("{alias}.n{}", self.pick(&["", " desc", " nulls first"])));
        }
        (table, alias, from, by.join(", "))
    }

    /// A value of each row of a table, with values of what lies in it.
    fn of_row(&mut self, around: &[(usize, String)], depth: u32) -> String {
        let alias = &around[around.len() - 1].1;
        match self.random.below(if depth > 0 { 6 } else { 3 }) {
            0 => format!("{alias}.n"),
            1 => format!("{alias}.t || {}.id", around[0].1),
            2 => format!("jsonb_build_array({alias}.t, {alias}.n)"),
            3 => format!("json_build_object('n', {alias}.n, 'in', {})", self.value(around, depth)),
            4 => format!("coalesce({}, '7')::text", self.value(around, depth)),
            _ => format!("row({alias}.n, {})::text", self.value(around, depth)),
        }
    }

    /// A subquery.
    fn value(&mut self, around: &[(usize, String)], depth: u32) -> String {
        let (table, alias, from, by) = self.rows(around);
        let mut inside = around.to_vec();
        inside.push((table, alias.clone()));
        let depth = depth.saturating_sub(1);
        match self.random.below(8) {
            0 => format!("(select count(*) {from})::text"),
            1 => format!("(select sum({alias}.n) + max({alias}.id) {from})::text"),
            2 => format!("(select json_agg({alias} order by {by}) {from})::text"),
            3 => {
                format!("array(select {} {from} order by {by})::text", { self.of_row(&inside, 0) })
            }
            4 | 5 => {
                let own = self.of_row(&inside, depth);
                format!("(select coalesce(json_agg({own} order by {by}), '[]') {from})::text")
            }
            _ => {
                self.aliases += 1;
                let name = format!("d{}", self.aliases);
                let own = self.of_row(&inside, depth);
                let key = TABLES[table].1;
                let keys: Vec<String> =
                    key.iter().enumerate().map(|(n, k)| format!("{alias}.{k} as k{n}")).collect();
                let by: Vec<String> = (0..key.len())
                    .map(|n| format!("{name}.k{n}{}", self.pick(&["", " desc"])))
                    .collect();
                let what = self.pick(&[
                    "json_agg(@ order by $)",
                    "jsonb_agg(@.v order by @.n, $)",
                    "json_agg(row_to_json(@) order by $)",
                    "array_agg(@.v || 'x' order by $)",
                ]);
                format!(
                    "(select {} from (select {}, {alias}.n, {own}::text as v {from}) {name})::text",
                    what.replace('@', &name).replace('$', &by.join(", ")),
                    keys.join(", ")
                )
            }
        }
    }

    fn query(&mut self) -> String {
        let around = [(0, "c".to_string())];
        let mut list = "c.id".to_string();
        let mut from = "{c} c".to_string();
        for _ in 0..1 + self.random.below(2) {
            list += &format!(", {}", self.value(&around, 2));
        }
        if self.random.below(3) == 0 {
            let (table, alias, rows, by) = self.rows(&around);
            let inside = [around[0].clone(), (table, alias)];
            let own = self.of_row(&inside, 1);
            let join = self.pick(&["left join lateral @ on true", "cross join lateral @"]);
            let query =
                format!("(select count(*) as n, json_agg({own} order by {by}) as j {rows}) x");
            from += &format!(" {}", join.replace('@', &query));
            list += ", x.n, x.j::text";
        }
        let filter =
            self.pick(&["c.id between 2 and 7", "c.id in (1, 3, 6)", "c.id = 6", "c.id < 5"]);
        format!("select {list} from {from} where {filter} order by c.id")
    }
}

fn named(sql: &str, prefix: &str) -> String {
    TABLES.iter().fold(sql.to_string(), |sql, Table(name, ..)| {
        sql.replace(&format!("{{{name}}}"), &format!("{prefix}{name}"))
    })
}

fn compare(db: &mut Db, seed: u64, count: usize) -> usize {
    let mut questions = Questions { random: Random::seeded(seed), aliases: 0 };
    let mut passes = 0;
    for n in 0..count {
        let sql = questions.query();
        let (inside, flat) = (named(&sql, ""), named(&sql, "flat_"));
        let plan = db.run(&format!("explain {inside}")).join("\n");
        passes += usize::from(plan.contains("(same pass)"));
        let plan = db.run(&format!("explain {flat}")).join("\n");
        assert!(!plan.contains("same pass"), "{flat}\n{plan}");
        assert_eq!(db.run(&inside), db.run(&flat), "{n}: {inside}\n{plan}");
    }
    passes
}

#[test]
fn families_as_json_answer_as_flat_tables() {
    let passes = compare(&mut filled(false), 1, 300);
    assert!(passes > 250, "{passes}");
}

#[test]
fn large_families_are_looked_up_and_answer_the_same() {
    let passes = compare(&mut filled(true), 2, 8);
    assert!(passes > 3, "{passes}");
}

#[test]
fn rows_come_in_the_order_of_a_query_in_from() {
    let mut db = filled(false);
    db.check(&[
        (
            "select c.id, (select json_agg(x) from (select s, s * 2 as d from s where s.id = c.id
                           order by d desc) x)::text, array(select s from s where s.id = c.id)
             from c where c.id = 3",
            "3|[{\"s\":2,\"d\":4}, \n {\"s\":1,\"d\":2}, \n {\"s\":0,\"d\":0}]|{0,1,2}",
        ),
        (
            "select array(select s as v from s where s.id = c.id order by v desc),
                    (select json_agg(s.s order by s.s % 2, s.s desc) from s where s.id = c.id)::text
             from c where c.id = 3",
            "{2,1,0}|[2, 0, 1]",
        ),
        // Nothing is there: arrays are empty, aggregates NULL.
        (
            "select array(select s from s where s.id = c.id), x.n, x.j
             from c left join lateral (select count(*) n, json_agg(s) j from s where s.id = c.id) x
             on true where c.id = 4",
            "{}|0|",
        ),
    ]);
    // What a transaction has written itself is there.
    db.run("begin; insert into s values (4, 9, 1, 'own'); delete from s where id = 3 and s = 1");
    let found = db.run(
        "select c.id, (select json_agg(json_build_array(s.s, (select max(n) from c))) from s
                       where s.id = c.id)::text from c where c.id in (3, 4)",
    );
    assert_eq!(found.len(), 2);
    let found = db.run("select array(select s from s where s.id = c.id) from c where id in (3, 4)");
    assert_eq!(found, ["{0,2}", "{9}"]);
    db.run("rollback");
}

#[test]
fn aggregates_of_general_plans_see_the_order_of_a_query_in_from() {
    let mut db = filled(false);
    db.run("create table t (id int primary key, g int, n int, name text)");
    db.run("insert into t select i, i % 2, 10 - i, 'n' || i % 3 from generate_series(1, 6) i");
    db.check(&[
        ("select json_agg(d.id)::text from (select id, n from t order by n) d", "[6, 5, 4, 3, 2, 1]"),
        ("select array_agg(id) from (select * from t order by t.g, n) d", "{6,4,2,5,3,1}"),
        ("select array_agg(id) from (select * from t order by name desc, id) d", "{2,5,1,4,3,6}"),
        ("select string_agg(d.x, ',') from (select name as x, id from t order by 2 desc) d",
            "n0,n2,n1,n0,n2,n1"),
        ("select array_agg(k) from (select n * 2 % 7 as k from t order by n * 2 % 7) d",
            "{0,1,2,3,4,5}"),
        ("select g, array_agg(id) from (select * from t order by n) d group by g order by g",
            "0|{6,4,2}; 1|{5,3,1}"),
        ("select array_agg(d.id order by d.id) from (select id from t order by id desc) d",
            "{1,2,3,4,5,6}"),
        ("select sum(d.n), array_agg(d.n) from (select n from t order by n desc nulls last limit 3) d",
            "24|{9,8,7}"),
        // What is ordered by is not selected: nobody knows it outside.
        ("select count(*) from (select id from t order by n) d", "6"),
    ]);
}

#[test]
fn a_value_that_may_not_be_is_refused_as_by_general_plans() {
    let mut db = filled(false);
    for (sql, state) in [
        ("select (select s from s where s.id = c.id) from c where c.id = 3", "21000"),
        ("select array(select s, n from s where s.id = c.id) from c where c.id = 3", "42601"),
        (
            "select (select json_agg(x.nope) from (select s from s where s.id = c.id) x) from c",
            "42703",
        ),
        (
            "select (select json_agg(s.n) from (select s from s where s.id = c.id) x) from c",
            "42P01",
        ),
        ("select x.n from c, lateral (select count(*) n from s where s.id = d.id) x", "42P01"),
        (
            "select n from c, lateral (select count(*) n from s where s.id = c.id) x where c.id = 1",
            "42702",
        ),
    ] {
        let error = db.try_run(sql).unwrap_err();
        assert_eq!(error.state().0, state, "{sql}: {error}");
    }
}

#[test]
fn a_family_at_all_levels_is_one_request() {
    let mut db = filled(false);
    let sql = "select c.t, (select json_agg(json_build_object('o', o.o, 'lines',
                    (select json_agg(json_build_object('n', l.n, 'words',
                        array(select k.k from k where k.id = l.id and k.o = l.o and k.l = l.l)))
                     from l where l.id = o.id and l.o = o.o))) from o where o.id = c.id),
                 array(select s.s from s where s.id = c.id)
               from c where c.id = 6";
    assert_eq!(
        db.run(&format!("explain {sql}")),
        [
            "point read on c",
            "  key: id = 6",
            "  span read on o (value: json_agg(json_build_object('o', o.o, 'lines', \
             (json_agg(json_build_object('n', l.n, 'words', (ARRAY(k.k)))))))) (same pass)",
            "    key: id = c.id",
            "    span read on l (value: json_agg(json_build_object('n', l.n, 'words', \
             (ARRAY(k.k))))) (same pass)",
            "      key: id = o.id AND o = o.o",
            "      span read on k (value: ARRAY(k.k)) (same pass)",
            "        key: id = l.id AND o = l.o AND l = l.l",
            "    span read on s (value: ARRAY(s.s)) (same pass)",
            "      key: id = c.id",
        ]
    );
    let ran = db.run(&format!("explain analyze {sql}")).join("\n");
    assert!(ran.contains("requests: 1"), "{ran}");
}
