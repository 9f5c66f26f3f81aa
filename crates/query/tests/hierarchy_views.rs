//! `braid_interleaved`, `braid_families` and Spanner's columns of `information_schema`.

use crate::harness::Db;

const SCHEMA: &str = "
    create table c (id int, t text, primary key (id));
    create table o (id int, o int, t text, primary key (id, o desc))
        interleave in parent c on delete cascade;
    create table l (id int, o int, l int, t text, primary key (id, o desc, l)) interleave in o;
    create index in_c on o (id, t) interleave in c;
    create index in_o on l (id, o desc, t) interleave in o;
    create table alone (id int primary key);";

#[test]
fn what_lies_in_what_is_listed_with_what_is_known_of_it() {
    let mut db = Db::new();
    db.run(SCHEMA);
    db.run(
        "insert into c select g, 'c' from generate_series(1, 10) g;
         insert into o select c, o, 'o' from generate_series(1, 10) c, generate_series(1, 3) o;
         insert into l select 4, 1, g, 'l' from generate_series(1, 7) g;
         analyze",
    );
    assert_eq!(
        db.run(
            "select tablename, indexname, parent_tablename, root_tablename, depth, form, on_delete,
                    key, rows,
                    round(rows_per_parent::numeric, 3), most_per_parent
             from braid_interleaved order by depth, tablename, indexname nulls first"
        ),
        [
            "c|||c|1|||id|10||",
            "o||c|c|2|enforced|CASCADE|id, o DESC|30|3.000|3",
            "o|in_c|c|c|2|||id, t|||",
            "l||o|c|3|locality||id, o DESC, l|7|0.233|7",
            "l|in_o|o|c|3|||id, o DESC, t|||",
        ]
    );
    assert_eq!(db.run("select count(*) from braid_interleaved where bytes > 0"), ["3"]);
}

#[test]
fn the_largest_families_are_found_among_many_small_ones() {
    let mut db = Db::new();
    db.run(SCHEMA);
    db.run(
        "insert into c select g, 'c' from generate_series(1, 20000) g;
         insert into o select case when g <= 10000 then 77 when g <= 15000 then 1500 else g end, g,
                md5(g::text) || md5((g + 1)::text) || md5((g + 2)::text) || md5((g + 3)::text)
             from generate_series(1, 20000) g",
    );
    // Keys and the roots' rows count, too.
    let found = db.run(
        "select key, share > 0.25, share > 0.12, tree_bytes > bytes from braid_families
         order by bytes desc limit 2",
    );
    assert_eq!(found, ["77|t|t|t", "1500|f|t|t"]);
    let small = "select count(*) from braid_families where bytes > 100000 and tablename = 'c'";
    assert_eq!(db.run(small), ["2"]);
    // Keys are values: not for those who may not read them.
    db.run("create role reader");
    db.run("set role reader");
    assert_eq!(db.run("select count(*) from braid_families"), ["0"]);
    db.run("reset role");
    assert_ne!(db.run("select count(*) from braid_families"), ["0"]);
}

#[test]
fn information_schema_has_spanners_columns() {
    let mut db = Db::new();
    db.run(SCHEMA);
    db.run(
        "create table g (id int primary key, n varchar(9), s int generated always as (id) stored)",
    );
    assert_eq!(
        db.run(
            "select column_name, spanner_type, is_generated, is_stored, spanner_state
             from information_schema.columns where table_name = 'g' order by ordinal_position"
        ),
        [
            "id|integer|NEVER||COMMITTED",
            "n|character varying(9)|NEVER||COMMITTED",
            "s|integer|ALWAYS|YES|COMMITTED",
        ]
    );
    assert_eq!(db.run("select count(*) from information_schema.column_options"), ["0"]);
    assert_eq!(
        db.run(
            "select table_name, parent_table_name, on_delete_action, interleave_type, spanner_state
             from information_schema.tables where table_schema = 'public' order by table_name"
        ),
        [
            "alone||||COMMITTED",
            "c||||COMMITTED",
            "g||||COMMITTED",
            "l|o||IN|COMMITTED",
            "o|c|CASCADE|IN PARENT|COMMITTED",
        ]
    );
    assert_eq!(
        db.run(
            "select index_name, parent_table_name from information_schema.indexes
             where table_schema = 'public' and index_type = 'INDEX' order by index_name"
        ),
        ["in_c|c", "in_o|o"]
    );
}
