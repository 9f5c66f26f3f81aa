//! Which messages a client hears.

use crate::harness::{database, error, rows, run, session};

#[test]
fn clients_hear_what_is_important_enough_to_them() {
    let s = &mut session(&database());
    let heard = |s: &mut braid_sql::Session, level: &str| -> Vec<String> {
        run(s, &format!("set client_min_messages = {level}"));
        s.take_notices();
        run(s, "begin; create temp table t (id serial primary key, n int unique)");
        run(s, "alter table t add m serial; drop table if exists missing; commit; commit");
        let heard = s.take_notices();
        run(s, "drop table t");
        heard.into_iter().map(|n| format!("{}: {}", n.severity, n.message)).collect()
    };
    let all = [
        "DEBUG: CREATE TABLE will create implicit sequence \"t_id_seq\" for serial column \"t.id\"",
        "DEBUG: CREATE TABLE / PRIMARY KEY will create implicit index \"t_pkey\" for table \"t\"",
        "DEBUG: CREATE TABLE / UNIQUE will create implicit index \"t_n_key\" for table \"t\"",
        "DEBUG: ALTER TABLE will create implicit sequence \"t_m_seq\" for serial column \"t.m\"",
        "NOTICE: table \"missing\" does not exist, skipping",
        "WARNING: there is no transaction in progress",
    ];
    for (level, from) in [
        ("debug1", 0),
        ("debug", 0),
        ("log", 4),
        ("notice", 4),
        ("info", 4),
        ("warning", 5),
        ("error", 6),
    ] {
        assert_eq!(heard(s, level), all[from..], "{level}");
    }
    let e = error(s, "set client_min_messages = loud");
    assert_eq!(e.state().0, "22023");
    assert!(e.hint().is_some_and(|hint| hint.contains("debug1, log, notice")), "{e:?}");
    run(s, "reset client_min_messages");
    assert_eq!(rows(s, "show client_min_messages"), ["notice"]);
}
