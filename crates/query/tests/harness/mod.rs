//! A database in memory with general queries, and answers as text.
#![allow(dead_code, reason = "every test file uses another part")]

use std::sync::Arc;

use braid_env::fs::MemFs;
use braid_kv::{KeySpan, Store, StoreOptions};
use braid_query::{Engine, SpillDirectory};
use braid_sim::{LiveCluster, LiveOptions};
use braid_sql::{Database, Outcome, Session, SessionOptions};
use braid_types::{SqlResult, TimeZone};

fn session(db: Arc<Database>) -> Session {
    let options = SessionOptions {
        user: "root".into(),
        database: "defaultdb".into(),
        ..SessionOptions::default()
    };
    Session::new(db, options).expect("session")
}

/// One session of a fresh database.
pub struct Db {
    /// The session.
    pub session: Session,
    /// Where its keys are, if that is one store.
    pub store: Option<Arc<Store>>,
}

impl Db {
    /// An empty database. In a test crate whose name says so, its keys are kept by three replicas of
    /// several ranges that are split all the time.
    pub fn new() -> Db {
        if !env!("CARGO_CRATE_NAME").ends_with("over_ranges") {
            return Db::on(MemFs::new());
        }
        let options = LiveOptions {
            row_class: Some(braid_keys::row_class),
            row_form: Some(braid_rows::ROW_FORM),
            split_at_commits: Some(3),
            ..LiveOptions::default()
        };
        let engine = Engine::new(SpillDirectory::default()).expect("engine");
        let coordinator = LiveCluster::start(options).coordinator();
        let database = Database::open(coordinator, engine).expect("database");
        Db { session: session(database), store: None }
    }

    /// The database in these files, which one before may have left.
    pub fn on(files: MemFs) -> Db {
        Db::with(files, |_| {})
    }

    /// As [`Db::on`], with a store that is set up otherwise.
    pub fn with(files: MemFs, set: impl FnOnce(&mut StoreOptions)) -> Db {
        let clock = Arc::new(braid_env::clock::WallClock);
        let mut options = StoreOptions::new(Arc::new(files), "/data", clock);
        set(&mut options);
        options.engine.row_class = braid_keys::row_class;
        options.row_form = Some(braid_rows::ROW_FORM);
        let store = Store::open(options).expect("store");
        let engine = Engine::new(SpillDirectory::default()).expect("engine");
        let db = Database::open(store.coordinator(), engine).expect("database");
        Db { session: session(db), store: Some(store) }
    }

    /// Brings all that was written into one sorted run of files.
    pub fn compact(&self) {
        let store = self.store.as_ref().expect("one store");
        store.engine().compact_span(&KeySpan::all()).expect("compacts");
    }

    /// Another session of the same database.
    pub fn another(&self) -> Db {
        let db = self.session.state().db().clone();
        Db { session: session(db), store: self.store.clone() }
    }

    /// Runs statements; gives the rows of the last as `a|b` lines, NULL as nothing.
    pub fn try_run(&mut self, sql: &str) -> SqlResult<Vec<String>> {
        let mut lines = Vec::new();
        for statement in self.session.parse_script(sql)? {
            let prepared = self.session.prepare(statement, &[])?;
            lines.clear();
            if let Outcome::Rows(mut rows) = self.session.execute(&prepared, Vec::new())? {
                let columns = prepared.columns().expect("columns");
                let names = self.session.object_names();
                while let Some(batch) = rows.next_answer()? {
                    for row in batch.into_rows() {
                        let cells: Vec<String> = (row.iter().zip(columns))
                            .map(|(v, c)| {
                                let name = names.of(v, &c.ty).expect("a name");
                                name.as_ref().unwrap_or(v).to_text(TimeZone::utc())
                            })
                            .map(Option::unwrap_or_default)
                            .collect();
                        lines.push(cells.join("|"));
                    }
                }
            }
        }
        Ok(lines)
    }

    /// Names of a query's columns.
    pub fn titles(&mut self, sql: &str) -> Vec<String> {
        let statement = self.session.parse_script(sql).expect(sql).remove(0);
        let prepared = self.session.prepare(statement, &[]).expect(sql);
        prepared.columns().expect("rows").iter().map(|c| c.name.clone()).collect()
    }

    /// Runs statements that must succeed.
    pub fn run(&mut self, sql: &str) -> Vec<String> {
        self.try_run(sql).unwrap_or_else(|e| panic!("{sql}\n{e}"))
    }

    /// Checks that queries have own plans with this mark in them, and the answers of the general
    /// plans that a subquery in FROM makes of them; with statistics of the tables and without.
    pub fn check_own_plans(&mut self, queries: &[&str], mark: &str) {
        for analyzed in [false, true] {
            if analyzed {
                self.run("analyze");
            }
            for sql in queries {
                let plan = self.run(&format!("explain {sql}")).join("\n");
                assert!(plan.contains(mark) && !plan.contains("general"), "{sql}\n{plan}");
                let mut own = self.run(sql);
                let mut other = self.run(&format!("select * from ({sql}) x"));
                own.sort();
                other.sort();
                assert_eq!(own, other, "{sql}\n{plan}");
            }
        }
    }

    /// Checks many queries and reports all differences at once. Rows are joined by `; `.
    pub fn check(&mut self, cases: &[(&str, &str)]) {
        let mut wrong = Vec::new();
        for (sql, want) in cases {
            match self.try_run(sql) {
                Ok(rows) if rows.join("; ") == *want => {}
                Ok(rows) => {
                    wrong.push(format!("{sql}\n   got  {}\n   want {want}", rows.join("; ")))
                }
                Err(e) => wrong.push(format!("{sql}\n   got  {e}\n   want {want}")),
            }
        }
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }
}
