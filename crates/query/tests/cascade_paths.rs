//! Cascades always take the fast path: whatever names the parents, EXPLAIN says `range delete`, there
//! is at most one tombstone per family and no entry of an index is deleted by itself; and what is left
//! is what foreign keys with ON DELETE CASCADE leave of flat tables.

use crate::harness::Db;

/// The same in families and, with `flat_` before the names, by foreign keys. Outside of the families:
/// rows that refer to them, and `kept`, which lies in them for locality only.
const SCHEMA: &str = "
    create table c (id int primary key, name text, n int);
    create table o (id int, o int, n int, primary key (id, o))
        interleave in parent c on delete cascade;
    create table l (id int, o int, l int, n int, primary key (id, o, l))
        interleave in parent o on delete cascade;
    create table kept (id int, o int, k int, primary key (id, o, k)) interleave in o;
    create index o_n on o (n);
    create index l_in_c on l (id, n) interleave in c;
    create table nulls (k int primary key, id int references c on delete set null);
    create index on nulls (id);
    create table gone (k int primary key, id int, o int,
        foreign key (id, o) references o on delete cascade);
    create index on gone (id, o);
    create table flat_c (id int primary key, name text, n int);
    create table flat_o (id int references flat_c on delete cascade, o int, n int,
        primary key (id, o));
    create table flat_l (id int, o int, l int, n int, primary key (id, o, l),
        foreign key (id, o) references flat_o on delete cascade);
    create table flat_kept (id int, o int, k int, primary key (id, o, k));
    create table flat_nulls (k int primary key, id int references flat_c on delete set null);
    create table flat_gone (k int primary key, id int, o int,
        foreign key (id, o) references flat_o on delete cascade);";

const TABLES: [&str; 6] = ["c", "o", "l", "kept", "nulls", "gone"];

fn filled() -> Db {
    let mut db = Db::new();
    db.run(SCHEMA);
    for flat in ["", "flat_"] {
        db.run(&format!(
            "insert into {flat}c select g, 'n' || g % 4, g from generate_series(1, 40) g;
             insert into {flat}o select c, o, o + c % 2 from generate_series(1, 40) c,
                 generate_series(1, 3) o;
             insert into {flat}l select c, o, l, l * o from generate_series(1, 40) c,
                 generate_series(1, 3) o, generate_series(1, 4) l;
             insert into {flat}kept select c, 2, 1 from generate_series(7, 8) c;
             insert into {flat}nulls select g, 1 + g % 40 from generate_series(1, 60) g;
             insert into {flat}gone select g, 1 + g % 40, 1 + g % 3 from generate_series(1, 60) g"
        ));
    }
    db.run("analyze");
    db
}

/// The statement with the names of the flat tables: a table's name has a blank before it, and a
/// blank, a point or the end behind.
fn flat(sql: &str) -> String {
    let word = |w: &str| match TABLES.contains(&w.split('.').next().unwrap_or_default()) {
        true => format!("flat_{w}"),
        false => w.to_string(),
    };
    sql.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn contents(db: &mut Db, prefix: &str) -> Vec<String> {
    let mut out = Vec::new();
    for t in TABLES {
        let rows = db.run(&format!("select * from {prefix}{t}"));
        let mut rows: Vec<String> = rows.into_iter().map(|row| format!("{t}: {row}")).collect();
        rows.sort();
        out.extend(rows);
    }
    out
}

fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!("{name}: ")).unwrap_or_else(|| panic!("{line}"));
    rest.split(',').next().unwrap().trim().parse().unwrap()
}

#[test]
fn whatever_names_the_parents_they_go_by_range_deletes() {
    let spaces = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (sql, rows, spared) in [
        ("delete from c where id = 2", 1, 0),
        ("delete from c where id = 2 returning *", 1, 0),
        ("delete from c where id = 2.0", 1, 0),
        ("delete from c where id = 7", 1, 1),
        ("delete from c where id between 6 and 9", 4, 2),
        ("delete from c where id = 2 or id = 3 or id = 12", 3, 0),
        ("delete from c where id = 2 or name = 'n3' and id < 12", 4, 1),
        ("delete from c where id in (2, 3, 15)", 3, 0),
        ("delete from c where id = any (array[2, 3, 15])", 3, 0),
        ("delete from c where (id, n) in ((12, 12), (13, 13), (14, 1))", 2, 0),
        ("delete from c where (id, name) = (12, 'n0')", 1, 0),
        ("delete from c where n > 30", 10, 0),
        ("delete from c where id > 30 and name like 'n%1'", 2, 0),
        ("delete from c where n % 2 = 0 and id between 20 and 30", 6, 0),
        ("delete from c where id in ( select id from o where n = 4 and id < 6 )", 3, 0),
        (
            "delete from c where exists ( select 1 from l where l.id = c.id and n = 12 and id > 35 )",
            5,
            0,
        ),
        ("delete from c where not exists ( select from o where o.id = c.id and n = 1 )", 20, 1),
        ("delete from c using nulls where nulls.id = c.id and k between 20 and 25", 6, 0),
        ("delete from c using o where o.id = c.id and o.n = 4 and c.id in (11, 13)", 2, 0),
        ("delete from c where id = ( select max(id) from c )", 1, 0),
        ("delete from c where id > 20 order by id desc limit 3", 3, 0),
        ("delete from c where n = 1 + 1 and id is not null", 1, 0),
        ("delete from c", 40, 2),
        ("delete from o where id = 12", 3, 0),
        ("delete from o where id = 12 and (o)= 2", 1, 0),
        ("delete from o where id = 12 and (o)> 1 returning n", 2, 0),
        ("delete from o where n = 4 and id < 6", 3, 0),
        ("delete from o where (id, o) in ((12, 1), (13, 2))", 2, 0),
        ("delete from o using c where c.id = o.id and name = 'n1' and o.o = 1", 10, 0),
    ] {
        let sql = spaces(sql);
        let db = &mut filled();
        let table = sql.split(' ').nth(2).unwrap();
        let tables = if table == "c" { "range delete: c, o, l" } else { "range delete: o, l" };
        let plan = db.run(&format!("explain {sql}")).join("\n");
        assert!(plan.contains(tables), "{sql}\n{plan}");
        assert!(plan.contains("stays: kept (for locality only)"), "{sql}\n{plan}");
        assert!(plan.contains("gone_id_o_fkey of gone (ON DELETE CASCADE)"), "{sql}\n{plan}");
        let ran = db.run(&format!("explain (analyze, timing off, summary off) {sql}"));
        let line = &ran[ran.len() - 1];
        assert_eq!(number(line, "rows"), rows, "{sql}\n{line}");
        // One for each family, or fewer; what stays cuts a family in two.
        assert!(number(line, "tombstones") <= rows + spared, "{sql}\n{line}");
        // Those of rows outside only: one that goes, or the old and the new one of a change.
        let outside = "select 2 * (select count(*) from nulls where id is null)
                              + 60 - (select count(*) from gone)";
        let entries = number(line, "index entries").to_string();
        assert_eq!(db.run(outside), [entries], "{sql}\n{line}");
        db.run(&flat(&sql));
        assert_eq!(contents(db, ""), contents(db, "flat_"), "{sql}\n{plan}");
        for by_index in
            ["select count(*) from o where n >= 0", "select count(*) from l where n > 0"]
        {
            assert_eq!(db.run(by_index), db.run(&flat(by_index)), "{sql}: {by_index}");
        }
    }
}

/// Tools that must write a condition write one that always holds.
#[test]
fn a_condition_that_always_holds_is_none() {
    let plan = |sql: &str| {
        let db = &mut filled();
        let plan = db.run(&format!("explain {sql}"));
        let ran = db.run(&format!("explain (analyze, timing off, summary off) {sql}"));
        let tombstones = number(&ran[ran.len() - 1], "tombstones");
        (plan, tombstones, contents(db, ""))
    };
    for table in ["c", "o"] {
        let all = plan(&format!("delete from {table}"));
        for always in ["true", "1 = 1", "1 = 1 and id is not null", "not false and 'a' < 'b'"] {
            assert_eq!(plan(&format!("delete from {table} where {always}")), all, "{always}");
        }
    }
    let db = &mut filled();
    assert_eq!(db.run("delete from c where false returning id"), [""; 0]);
    assert_eq!(db.run("delete from c where name is not null and id = 3 returning id"), ["3"]);
    assert_eq!(db.run("select count(*) from c"), ["39"]);
}
