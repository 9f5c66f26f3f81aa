//! Declarations of hierarchies that change: what that costs, and what it means from then on.

use std::sync::Arc;

use crate::harness::{error, rows, run, session, state, tag};
use braid_env::clock::WallClock;
use braid_env::fs::MemFs;
use braid_kv::{Store, StoreOptions};
use braid_sql::{Database, NoGeneralQueries, Session};

fn open() -> (Arc<Store>, Arc<Database>) {
    let mut options = StoreOptions::new(Arc::new(MemFs::new()), "db", Arc::new(WallClock));
    options.engine.row_class = braid_keys::row_class;
    let store = Store::open(options).unwrap();
    let db = Database::open(store.coordinator(), Arc::new(NoGeneralQueries)).unwrap();
    (store, db)
}

const SCHEMA: &str = "
    create table c (id int primary key);
    create table o (id int, o int, n int, primary key (id, o)) interleave in parent c on delete cascade;
    create table l (id int, o int, l int, primary key (id, o, l)) interleave in parent o on delete cascade;
    create index by_n on o (n);
    create index inside on o (id, n) interleave in c;";

fn filled(s: &mut Session, parents: usize) {
    run(s, SCHEMA);
    let of = |each: &dyn Fn(usize) -> String| (0..parents).map(each).collect::<Vec<_>>().join(", ");
    run(s, &format!("insert into c values {}", of(&|id| format!("({id})"))));
    run(
        s,
        &format!("insert into o values {}", of(&|id| format!("({id}, 1, {id}), ({id}, 2, {id})"))),
    );
    run(s, &format!("insert into l values {}", of(&|id| format!("({id}, 1, 1), ({id}, 2, 1)"))));
}

/// Keys and tombstones that a change has written.
fn written(parents: usize, change: &str) -> (u64, u64) {
    let (store, db) = open();
    let s = &mut session(&db);
    filled(s, parents);
    let count = || {
        let metrics = store.engine().metrics();
        (metrics.points_written, metrics.tombstones_written)
    };
    let before = count();
    run(s, change);
    let after = count();
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn truncate_and_drop_write_the_same_for_few_rows_and_many() {
    for change in [
        "truncate l",
        "truncate o, l",
        "truncate c cascade",
        "drop table l",
        "drop table o cascade",
        "drop table c cascade",
        "drop index by_n",
        "drop index inside",
        "alter table o set on delete no action",
        "alter table l set interleave in o",
    ] {
        let (few, many) = (written(3, change), written(2_000, change));
        assert_eq!(few, many, "{change}");
        assert!(many.0 < 40, "{change}: {many:?}");
    }
}

#[test]
fn what_becomes_of_children_changes_at_once() {
    let (store, db) = open();
    let s = &mut session(&db);
    filled(s, 500);
    let before = store.engine().metrics().points_written;
    run(s, "alter table o set on delete no action");
    assert!(store.engine().metrics().points_written - before < 10, "the catalog only");
    assert!(rows(s, "show create table o")[0].contains("ON DELETE NO ACTION"));
    let e = error(s, "delete from c where id = 7");
    assert_eq!(e.state().0, "23503");
    assert!(e.message().contains("\"o\""), "{e}");
    // Those below go with their parents still.
    assert_eq!(tag(s, "delete from o where id = 7"), "DELETE 2");
    assert_eq!(rows(s, "select count(*) from l where id = 7"), ["0"]);
    assert_eq!(tag(s, "delete from c where id = 7"), "DELETE 1");
    run(s, "alter table o set on delete restrict");
    assert_eq!(state(s, "delete from c where id = 8"), "23503");
    run(s, "begin; alter table o set on delete cascade");
    assert_eq!(tag(s, "delete from c where id = 8"), "DELETE 1");
    run(s, "rollback");
    assert_eq!(state(s, "delete from c where id = 8"), "23503");
    run(s, "alter table o set on delete cascade");
    assert_eq!(tag(s, "delete from c where id < 10"), "DELETE 9");
    assert_eq!(rows(s, "select count(*), min(id) from l"), ["980|10"]);
}
