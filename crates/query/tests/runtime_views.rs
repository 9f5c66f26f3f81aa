//! What sessions do and have done, as others see it.

use crate::harness::Db;

#[test]
fn a_session_sees_itself_and_others() {
    let mut db = Db::new();
    let mut other = db.another();
    other.run("set application_name = 'other'");
    other.run("begin");
    other.session.rests();
    let rows = db.run(
        "select application_name, usename, datname, state, query, wait_event, \
         xact_start <= query_start, backend_start <= state_change, backend_type \
         from pg_stat_activity order by 1",
    );
    assert_eq!(
        rows,
        [
            "|root|defaultdb|active|select application_name, usename, datname, state, query, \
             wait_event, xact_start <= query_start, backend_start <= state_change, backend_type \
             from pg_stat_activity order by 1||t|t|client backend",
            "other|root|defaultdb|idle in transaction|begin|ClientRead|f|t|client backend",
        ]
    );
    assert!(other.try_run("select 1 / 0").is_err());
    other.session.rests();
    let state = "select state from pg_stat_activity where application_name = 'other'";
    assert_eq!(db.run(state), ["idle in transaction (aborted)"]);
    other.run("rollback");
    other.session.rests();
    let state = "select state, xact_start is null from pg_stat_activity \
                 where application_name = 'other'";
    assert_eq!(db.run(state), ["idle|t"]);
    drop(other);
    assert_eq!(db.run("select count(*) from pg_stat_activity"), ["1"]);
    // The text is cut between characters, as `track_activity_query_size` says.
    let long = format!(
        "select length(query), query_id is not null from pg_stat_activity \
                        where 'ä{}' <> ''",
        "ä".repeat(2_000)
    );
    let length: usize = db.run(&long)[0].trim_end_matches("|t").parse().expect("a number");
    assert!((500..1_023).contains(&length), "{length}");
}

#[test]
fn who_waits_for_a_lock_is_shown_with_its_lock() {
    let mut db = Db::new();
    db.run("create table t (id int primary key, v text)");
    db.run("insert into t values (1, 'a')");
    db.run("begin");
    db.run("update t set v = 'b' where id = 1");
    let mut other = db.another();
    other.run("set application_name = 'waits'");
    let waiting = std::thread::Builder::new()
        .spawn(move || other.run("update t set v = 'c' where id = 1"))
        .expect("a thread");
    let wait = "select wait_event_type, wait_event, state from pg_stat_activity \
                where application_name = 'waits'";
    let mut seen = Vec::new();
    for _ in 0..1_000 {
        seen = db.run(wait);
        if seen == ["Lock|tuple|active"] {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(seen, ["Lock|tuple|active"]);
    // How far it has come: what it changes was read, and nothing is written.
    let progress = "select tries, requests > 1, entries_read > 0, memory_bytes >= 0, lock_waits \
                    from braid_active_statements where query like '%c%' and pid <> \
                    pg_backend_pid()";
    assert_eq!(db.run(progress), ["1|t|t|t|0"]);
    let locks = db.run(
        "select locktype, relation::regclass, mode, granted, pid = pg_backend_pid() \
         from pg_locks where locktype = 'tuple' order by granted desc",
    );
    assert_eq!(locks, ["tuple|t|ExclusiveLock|t|t", "tuple|t|ExclusiveLock|f|f"]);
    let tables = "select distinct relation::regclass, mode from pg_locks \
                  where locktype = 'relation'";
    assert_eq!(db.run(tables), ["t|AccessShareLock"]);
    db.run("commit");
    drop(waiting.join().expect("goes on"));
    assert_eq!(db.run("select count(*) from pg_locks"), ["0"]);
    let waited = "select calls, lock_waits, lock_wait_time > 1 from braid_statement_statistics \
                  where query like 'update t%' order by lock_waits desc";
    assert_eq!(db.run(waited), ["2|1|t"]);
    assert_eq!(db.run("select count(*) from braid_active_statements"), ["1"]);
}

#[test]
fn databases_sum_what_their_sessions_do() {
    let mut db = Db::new();
    db.run("create table t (id int primary key, v text)");
    let shown = "select xact_commit, xact_rollback, tup_inserted, tup_updated, tup_deleted \
                 from pg_stat_database where datname = current_database()";
    let numbers = |db: &mut Db| -> Vec<i64> {
        let row = db.run(shown).remove(0);
        row.split('|').map(|n| n.parse().expect("a number")).collect()
    };
    let before = numbers(&mut db);
    let mut other = db.another();
    other.run("insert into t values (1, 'a'), (2, 'b'), (3, 'c')");
    other.run("update t set v = 'x' where id < 3");
    other.run("begin");
    other.run("delete from t where id = 3");
    other.run("rollback");
    other.run("begin");
    other.run("delete from t where id = 2");
    other.run("commit");
    assert!(other.try_run("select 1 / 0").is_err());
    // What a session did stays when it has left.
    drop(other);
    let after = numbers(&mut db);
    let grown: Vec<i64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
    // Three commits of the other, and that of the look before.
    assert_eq!(grown, [4, 2, 3, 2, 2]);
    let read = "select tup_returned > 0, tup_fetched > 0, numbackends from pg_stat_database \
                where datname = current_database()";
    assert_eq!(db.run(read), ["t|t|1"]);
}
