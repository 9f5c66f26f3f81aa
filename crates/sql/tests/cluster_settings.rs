//! Cluster settings: classes of statements that are switched off, and statements that are denied.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use braid_env::fs::{FileSystem, MemFs};
use braid_settings::{DiskCopy, Feature, setting, settings};
use braid_sim::{LiveCluster, LiveOptions};
use braid_sql::{Database, NoGeneralQueries, Outcome, Session, SessionOptions};
use braid_types::SqlState;

use crate::harness::{database, database_on, rows, run, session, tag, try_run};

const TABLES: &str =
    "create table t (a int primary key, b int); insert into t values (1, 10), (2, 20);
    create table u (a int primary key)";

fn state(s: &mut Session, sql: &str) -> Option<SqlState> {
    try_run(s, sql, &[]).err().map(|e| e.state())
}

fn is_denied(s: &mut Session, sql: &str) -> bool {
    state(s, sql) == Some(SqlState::OPERATOR_INTERVENTION)
}

/// For each class a statement of it; a second one is refused as well, a third one is none of it.
const OF_FEATURES: &[(Feature, &str, &str, &str)] = &[
    (Feature::Analyze, "analyze t", "analyze", "select 1"),
    (
        Feature::AsOf,
        "select * from t as of system time '-1us'",
        "begin as of system time '-1us'",
        "table t",
    ),
    (Feature::Copy, "copy t to stdout", "copy (select 1) to stdout", "table t"),
    (
        Feature::CreateIndex,
        "create index i1 on t (b)",
        "create table i2 (a int primary key, b int, index (b))",
        "create table i3 (a int primary key, b int unique)",
    ),
    (
        Feature::Cursor,
        "declare c cursor with hold for table t",
        "declare d cursor for table t",
        "fetch 1 from c",
    ),
    (Feature::Do, "do 'begin null; end'", "do $$begin perform 1; end$$", "select 1"),
    (
        Feature::ExplainAnalyze,
        "explain analyze table t",
        "explain (analyze) select 1",
        "explain table t",
    ),
    (
        Feature::ExplainDebug,
        "explain (analyze, debug) table t",
        "explain (debug, analyze) select 1",
        "explain analyze table t",
    ),
    (
        Feature::Export,
        "export into csv 'x' from table t",
        "export into parquet 'x' from table t",
        "table t",
    ),
    (
        Feature::Function,
        "create function f1(int) returns int language sql as 'select $1'",
        "drop function if exists f1",
        "select abs(1)",
    ),
    (
        Feature::Import,
        "import into t csv data ('x')",
        "import into t jsonl data ('x')",
        "insert into t values (7, 7)",
    ),
    (Feature::ImportDump, "import pgdump 'x'", "import pgdump 'x' with dry_run", "table t"),
    (
        Feature::Interleave,
        "create table c1 (a int, n int, primary key (a, n)) interleave in parent u",
        "alter table t set interleave in parent u",
        "create table c2 (a int primary key)",
    ),
    (
        Feature::MaterializedView,
        "create materialized view m1 as select 1 as one",
        "refresh materialized view m1",
        "create view v1 as select 1 as one",
    ),
    (
        Feature::Merge,
        "merge into t using u on t.a = u.a when matched then delete",
        "merge into u using t on t.a = u.a when matched then do nothing",
        "delete from t where a = 99",
    ),
    (Feature::Notify, "listen x", "notify x", "unlisten x"),
    (
        Feature::Recursion,
        "with recursive r(n) as (select 1 union all select n + 1 from r where n < 2) table r",
        "insert into u with recursive r(n) as (select 1 union all select n + 1 from r where n < 2) table r",
        "with r as (select 1) table r",
    ),
    (Feature::Role, "create role r1", "grant select on t to public", "select current_user"),
    (
        Feature::RowDeletionPolicy,
        "create table p1 (a timestamptz primary key) row deletion policy (older_than(a, interval 1 day))",
        "alter table p2 add row deletion policy (older_than(a, interval 1 day))",
        "create table p2 (a timestamptz primary key)",
    ),
    (Feature::SchemaChange, "create table s1 (a int)", "truncate u", "insert into t values (8, 8)"),
    (
        Feature::SplitAt,
        "alter table t split at values (1)",
        "alter table u split at values (1)",
        "table t",
    ),
    (
        Feature::Temporary,
        "create temp table t1 (a int)",
        "create temp sequence q1",
        "create table t2 (a int)",
    ),
    (Feature::Truncate, "truncate u", "truncate table only u restart identity", "delete from u"),
    (
        Feature::UnfilteredWrite,
        "delete from u",
        "explain analyze update t set b = b",
        "update t set b = b where a = 1",
    ),
];

/// Sends a statement as clients do: COPY has its own way to end.
fn send(s: &mut Session, sql: &str) -> Result<(), SqlState> {
    let statement = s.parse_script(sql).map_err(|e| e.state())?.remove(0);
    let p = s.prepare(statement, &[]).map_err(|e| e.state())?;
    match s.execute(&p, Vec::new()).map_err(|e| e.state())? {
        Outcome::Rows(mut rows) => while rows.next_batch().map_err(|e| e.state())?.is_some() {},
        Outcome::Done(_) | Outcome::Empty | Outcome::CopyIn(_) | Outcome::CopyOut(_) => {}
    }
    Ok(())
}

#[test]
fn each_class_is_switched_off_and_on_again() {
    let named: Vec<Feature> = OF_FEATURES.iter().map(|one| one.0).collect();
    assert_eq!(named, Feature::ALL, "each class has its statements here");
    assert!(named.len() >= 12);
    for (feature, one, other, outside) in OF_FEATURES {
        let mut s = session(&database());
        run(&mut s, TABLES);
        run(&mut s, &format!("set cluster setting {} = false", feature.setting()));
        let off = Some(SqlState::OPERATOR_INTERVENTION);
        for sql in [one, other] {
            let e = try_run(&mut s, sql, &[]).expect_err(sql);
            assert_eq!(Some(e.state()), off, "{sql}");
            let wanted =
                format!("feature {} was disabled by the database administrator", feature.class());
            assert_eq!(e.message(), wanted, "{sql}");
            assert!(e.hint().is_some_and(|hint| hint.contains(feature.setting())), "{sql}");
            assert_eq!(send(&mut s, sql).err(), off, "{sql}");
        }
        assert_ne!(send(&mut s, outside).err(), off, "{outside}");
        let (refused, _) = s.state().db().cluster_settings().refused();
        assert!(refused >= 4, "{refused}");
        run(&mut s, &format!("reset cluster setting {}", feature.setting()));
        for sql in [one, other] {
            assert_ne!(send(&mut s, sql).err(), off, "{sql}");
        }
    }
}

#[test]
fn what_was_prepared_before_is_refused_too() {
    let mut s = session(&database());
    run(&mut s, TABLES);
    let statement = s.parse_script("delete from u").expect("SQL").remove(0);
    let p = s.prepare(statement, &[]).expect("a plan");
    let mut other = session(s.state().db());
    run(&mut other, "set cluster setting feature.unfiltered_write.enabled = off");
    assert_eq!(
        s.execute(&p, Vec::new()).err().map(|e| e.state()),
        Some(SqlState::OPERATOR_INTERVENTION)
    );
    run(&mut other, "set cluster setting feature.unfiltered_write.enabled = default");
    s.execute(&p, Vec::new()).expect("it is on again");
}

#[test]
fn settings_are_typed_shown_and_kept() {
    let files = MemFs::new();
    let db = database_on(files.clone());
    let mut s = session(&db);
    assert_eq!(rows(&mut s, "show cluster setting feature.import.enabled"), ["true"]);
    assert_eq!(rows(&mut s, "show cluster settings").len(), settings().len());
    assert_eq!(
        tag(&mut s, "SET CLUSTER SETTING feature.import.enabled = FALSE"),
        "SET CLUSTER SETTING"
    );
    run(&mut s, "set cluster setting sql.defaults.lock_timeout to '2s'");
    run(&mut s, "set cluster setting sql.denied_queries.max_rules = 5 for all nodes");
    let of_nodes = rows(&mut s, "show cluster setting feature.import.enabled for all nodes");
    assert_eq!(of_nodes, ["1|NULL|alone|false|3|0|0"]);
    for (sql, wanted) in [
        ("set cluster setting no.such = 1", "42704"),
        ("show cluster setting no.such", "42704"),
        ("reset cluster setting no.such", "42704"),
        ("set cluster setting feature.import.enabled = 'perhaps'", "22023"),
        ("set cluster setting sql.denied_queries.max_rules = -1", "22023"),
        ("set cluster setting sql.defaults.lock_timeout = 'soon'", "22023"),
        ("set cluster setting sql.defaults.default_transaction_isolation = 'chaos'", "22023"),
        ("set cluster setting feature.import.enabled", "42601"),
    ] {
        assert_eq!(state(&mut s, sql).map(|state| state.0), Some(wanted), "{sql}");
    }
    for sql in ["set cluster setting autovacuum = off", "deny query 'select 1'", "allow query all"]
    {
        run(&mut s, "begin");
        assert_eq!(state(&mut s, sql).map(|state| state.0), Some("25001"), "{sql}");
        run(&mut s, "rollback");
    }
    let told = rows(&mut s, "show cluster settings")
        .into_iter()
        .find(|row| row.starts_with("feature.import.enabled"));
    let told = told.expect("it is listed");
    assert!(
        told.starts_with("feature.import.enabled|false|boolean|true|2") && told.contains("|root|"),
        "{told}"
    );
    // New sessions begin with it, old ones do not change.
    assert_eq!(rows(&mut s, "show lock_timeout"), ["0"]);
    assert_eq!(rows(&mut session(&db), "show lock_timeout"), ["2s"]);
    let own = SessionOptions {
        user: "root".into(),
        database: "defaultdb".into(),
        settings: vec![("lock_timeout".into(), "3s".into())],
        ..SessionOptions::default()
    };
    let mut own = Session::new(db.clone(), own).expect("a session");
    assert_eq!(rows(&mut own, "show lock_timeout"), ["3s"]);
    drop((s, own, db));
    let again = database_on(files);
    let mut s = session(&again);
    assert_eq!(rows(&mut s, "show cluster setting feature.import.enabled"), ["false"]);
    assert_eq!(rows(&mut s, "show lock_timeout"), ["2s"]);
    assert_eq!(again.cluster_settings().version(), 3);
}

#[test]
fn autovacuum_is_a_cluster_setting_with_two_names() {
    let db = database();
    let mut s = session(&db);
    assert_eq!(rows(&mut s, "show autovacuum"), ["on"]);
    run(&mut s, "alter system set autovacuum = off");
    assert_eq!(rows(&mut s, "show cluster setting autovacuum"), ["false"]);
    assert_eq!(rows(&mut s, "show autovacuum"), ["off"]);
    assert!(!db.cluster_settings().analyzes());
    run(&mut s, "alter system reset autovacuum");
    assert_eq!(rows(&mut s, "show autovacuum"), ["on"]);
    // As a release before wrote it.
    let txn = db.coordinator().begin(Default::default()).expect("a transaction");
    txn.put(braid_keys::system::setting("autovacuum"), "off").expect("a put");
    txn.commit().expect("a commit");
    run(&mut s, "set cluster setting feature.do.enabled = true");
    assert!(!db.cluster_settings().analyzes());
    assert_eq!(setting("autovacuum").expect("it is there").default, "true");
}

#[test]
fn denied_statements_fail_however_they_are_sent() {
    let mut s = session(&database());
    run(&mut s, TABLES);
    let shape = |a: i32| format!("select b from t where a = {a}");
    // Planned before anybody denies it: as a prepared statement, and as a shape.
    run(&mut s, "prepare p as select b from t where a = 1");
    (1..4).for_each(|a| drop(s.run_shape(&shape(a)).expect("it runs")));
    let given = rows(&mut s, "deny query 'SELECT b FROM t WHERE a = 7' reason 'it is slow'");
    let id: u32 = given[0].parse().expect("a number");
    let e = try_run(&mut s, "select b from t where a = 2", &[]).expect_err("it is denied");
    assert_eq!(e.state().0, "57000");
    let wanted =
        format!("the statement is denied by rule {id} of the database administrator: it is slow");
    assert_eq!(e.message(), wanted);
    assert!(e.detail().is_some_and(|detail| detail.contains("root")), "{e:?}");
    assert!(e.hint().is_some_and(|hint| hint.contains(&format!("ALLOW QUERY {id}"))), "{e:?}");
    assert_eq!(s.run_shape(&shape(2)).err().map(|e| e.state().0), Some("57000"));
    // A shape that nobody has planned before is not planned now: its statements are refused by
    // whoever reads them.
    for a in [1, 2, 3] {
        let unplanned = format!("select b  from t where a = {a}");
        assert!(s.run_shape(&unplanned).expect("it is not run").is_none());
        assert!(is_denied(&mut s, &unplanned));
    }
    for sql in [
        "execute p",
        "prepare q as select b from t where a = 1",
        "declare c cursor with hold for select b from t where a = 1",
        "explain analyze select b from t where a = 1",
        "explain select b from t where a = 1",
        "copy (select b from t where a = 1) to stdout",
        "create table w as select b from t where a = 1",
        "create view w as select b from t where a = 1",
        "insert into u select b from t where a = 1",
        "with x as (select b from t where a = 1) table x",
        "select (select b from t where a = 1)",
        "do $$begin perform b from t where a = 1; end$$; do $$begin execute 'select b from t where a = 1'; end$$",
        "select U&\"\\0062\" from public.t where (a) = 1::int -- harmless",
    ] {
        assert!(is_denied(&mut s, sql), "{sql}");
    }
    for sql in [
        "select b from t where a > 1",
        "select a from t where a = 1",
        "table t",
        "show denied queries",
    ] {
        assert!(!is_denied(&mut s, sql), "{sql}");
    }
    // A block goes on as behind any other error.
    run(&mut s, "begin; insert into u values (1); savepoint x");
    assert!(is_denied(&mut s, "select b from t where a = 1"));
    run(&mut s, "rollback to x; insert into u values (2); commit");
    assert_eq!(rows(&mut s, "table u"), ["1", "2"]);
    assert_eq!(tag(&mut s, &format!("allow query {id}")), "ALLOW QUERY 1");
    assert_eq!(rows(&mut s, "execute p"), ["10"]);
    assert_eq!(state(&mut s, &format!("allow query {id}")).map(|s| s.0), Some("42704"));
    assert_eq!(tag(&mut s, "allow query all"), "ALLOW QUERY 0");
}

#[test]
fn rules_name_users_applications_times_and_constants() {
    let mut s = session(&database());
    run(&mut s, TABLES);
    run(&mut s, "deny query 'select 1' for user nobody");
    run(&mut s, "deny query 'select 2' for application 'app'");
    run(&mut s, "deny query exact 'select a from t where a = 1'");
    run(&mut s, "deny query regex 'b\\s*=\\s*20'");
    run(&mut s, "deny query 'table u' action dry run reason 'to see how often'");
    assert!(!is_denied(&mut s, "select 1"), "another user");
    assert!(!is_denied(&mut s, "select 2"), "another application");
    run(&mut s, "set application_name = 'app'");
    assert!(is_denied(&mut s, "select 2"));
    run(&mut s, "allow query 2");
    assert!(is_denied(&mut s, "select  A from t where a=1"));
    assert!(!is_denied(&mut s, "select a from t where a = 2"));
    for b in [10, 20, 10, 20] {
        let sql = format!("select a from t where b = {b}");
        let ran = s.run_shape(&sql).expect("rules with constants have it parsed").is_some();
        assert!(!ran, "{sql}");
        assert_eq!(is_denied(&mut s, &sql), b == 20, "{sql}");
    }
    run(&mut s, "table u; table u");
    let shown = rows(&mut s, "show denied queries");
    let dry = shown.iter().find(|row| row.contains("DRY RUN")).expect("it is shown");
    assert!(dry.contains("|holds|2|") && dry.ends_with("|table u"), "{dry}");
    run(&mut s, "set bypass_denied_queries = on");
    assert!(!is_denied(&mut s, "select a from t where a = 1"));
    run(
        &mut s,
        "reset bypass_denied_queries; set cluster setting sql.denied_queries.enabled = false",
    );
    assert!(!is_denied(&mut s, "select a from t where a = 1"));
    assert!(rows(&mut s, "show denied queries").iter().all(|row| row.contains("|disabled|")));
}

#[test]
fn rules_end_by_themselves() {
    let mut s = session(&database());
    run(&mut s, "deny query 'select 1' for interval '300 milliseconds'");
    assert!(is_denied(&mut s, "select 1"));
    std::thread::sleep(Duration::from_millis(320));
    assert!(!is_denied(&mut s, "select 1"));
    assert!(rows(&mut s, "show denied queries")[0].contains("|over|1|"));
    run(&mut s, "deny query 'select 1' until '2199-01-01 00:00:00+00'");
    assert!(is_denied(&mut s, "select 1"));
    for sql in [
        "deny query 'select 1' until '2001-01-01'",
        "deny query 'select 1' for '-1 day'",
        "deny query 'select 1' for '1 day' until '2199-01-01'",
        "deny query 'select 1' until 'whenever'",
    ] {
        let state = state(&mut s, sql).expect(sql);
        assert!(["22023", "42601", "22007"].contains(&state.0), "{sql}: {state:?}");
    }
}

#[test]
fn nobody_locks_himself_out() {
    let mut s = session(&database());
    for (sql, wanted) in [
        ("deny query 'allow query 1'", "22023"),
        ("deny query 'begin'", "22023"),
        ("deny query 'set cluster setting feature.do.enabled = true'", "22023"),
        ("deny query 'select 1; select 2'", "22023"),
        ("deny query ''", "22023"),
        ("deny query 'selec 1'", "42601"),
        ("deny query regex '('", "2201B"),
        ("deny query regex '(a{1000}){1000}'", "2201B"),
        ("deny query 4711", "42704"),
        ("deny query", "42601"),
        ("allow query", "42601"),
    ] {
        assert_eq!(state(&mut s, sql).map(|state| state.0), Some(wanted), "{sql}");
    }
    run(&mut s, "deny query regex '.'");
    assert!(is_denied(&mut s, "select 1"));
    for sql in [
        "begin",
        "savepoint a",
        "commit",
        "set datestyle = 'ISO'",
        "show datestyle",
        "show denied queries",
    ] {
        run(&mut s, sql);
    }
    run(&mut s, "set cluster setting sql.denied_queries.max_rules = 1");
    assert_eq!(state(&mut s, "deny query 'select 1'").map(|s| s.0), Some("54000"));
    run(&mut s, "allow query all");
    run(&mut s, "select 1");
}

#[test]
fn a_rule_may_name_a_statement_as_statistics_do() {
    let mut s = session(&database());
    run(&mut s, TABLES);
    run(&mut s, "select b from t where a = 1 and b > 5");
    let all = s.state().db().statements().all();
    let id = all.iter().find(|one| one.text.contains("b >")).expect("it was counted").id;
    run(&mut s, &format!("deny query fingerprint {id}"));
    assert!(is_denied(&mut s, "select b from t where a = 2 and b > 6"));
}

/// Two processes over the same ranges.
#[test]
fn another_process_hears_of_it_and_does_not_forget() {
    let options = LiveOptions {
        row_class: Some(braid_keys::row_class as _),
        row_form: Some(braid_rows::ROW_FORM),
        ..LiveOptions::default()
    };
    let cluster = LiveCluster::start(options);
    let fs: Arc<dyn FileSystem> = Arc::new(MemFs::new());
    let open = |node: u64| {
        let dir = format!("/n{node}");
        fs.create_dir_all(Path::new(&dir)).expect("a folder");
        let copy = DiskCopy::new(fs.clone(), dir);
        let at = cluster.coordinator_on(node);
        Database::open_shared(at, Arc::new(NoGeneralQueries), copy).expect("a database")
    };
    let (one, two) = (open(1), open(2));
    run(&mut session(&one), "set cluster setting feature.do.enabled = false");
    run(&mut session(&one), "deny query 'select 1'");
    let mut s = session(&two);
    assert!(!is_denied(&mut s, "select 1"), "it has not heard of it");
    two.follow_cluster_settings(Duration::ZERO, true).expect("it can read");
    assert!(is_denied(&mut s, "select 1") && is_denied(&mut s, "do 'begin null; end'"));
    // A change there is made to what is there, not to what was known.
    run(&mut session(&one), "set cluster setting feature.copy.enabled = false");
    run(&mut s, "set cluster setting feature.analyze.enabled = false");
    assert!(is_denied(&mut s, "analyze") && is_denied(&mut s, "copy (values (1)) to stdout"));
    drop((s, two));
    assert_eq!(open(2).cluster_settings().version(), 4);
}
