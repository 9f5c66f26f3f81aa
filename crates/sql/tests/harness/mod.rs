//! A database in memory and sessions that run scripts, for the tests of this crate.
#![allow(dead_code, reason = "every test file uses another part")]

pub mod actors;
pub mod import_files;
pub mod promises;
pub mod schedules;

use std::sync::Arc;

use braid_env::clock::WallClock;
use braid_env::fs::MemFs;
use braid_kv::{ScanOptions, Store, StoreOptions, Txn};
use braid_rows::Row;
use braid_rows::{TableLayout, TableScan};
use braid_sim::{LiveCluster, LiveOptions};
use braid_sql::{
    ColumnInfo, Database, GeneralQueries, NoGeneralQueries, Outcome, Session, SessionOptions,
};
use braid_types::{Datum, SqlError, SqlResult, TimeZone};

/// A fresh database on an in-memory file system.
pub fn database() -> Arc<Database> {
    database_with(Arc::new(NoGeneralQueries))
}

/// A fresh database with a planner of general queries. In a test crate whose name says so, its keys
/// are kept by three replicas of a range, or of several that are split all the time.
pub fn database_with(general: Arc<dyn GeneralQueries>) -> Arc<Database> {
    let name = env!("CARGO_CRATE_NAME");
    if name.ends_with("over_a_range") || name.ends_with("over_ranges") {
        let (row_class, row_form) = (Some(braid_keys::row_class as _), Some(braid_rows::ROW_FORM));
        let split_at_commits = name.ends_with("over_ranges").then_some(3);
        let options =
            LiveOptions { row_class, row_form, split_at_commits, ..LiveOptions::default() };
        return Database::open(LiveCluster::start(options).coordinator(), general).unwrap();
    }
    on_files(MemFs::new(), general)
}

/// The database in these files, which one before may have left.
pub fn database_on(files: MemFs) -> Arc<Database> {
    on_files(files, Arc::new(NoGeneralQueries))
}

fn on_files(files: MemFs, general: Arc<dyn GeneralQueries>) -> Arc<Database> {
    let mut options = StoreOptions::new(Arc::new(files), "db", Arc::new(WallClock));
    options.engine.row_class = braid_keys::row_class;
    options.row_form = Some(braid_rows::ROW_FORM);
    Database::open(Store::open(options).unwrap().coordinator(), general).unwrap()
}

/// A session of user root. `BRAID_TRANSACTION_MEM=1kB` in the environment makes the writes of all of them
/// go to disk.
pub fn session(db: &Arc<Database>) -> Session {
    session_in(db, "defaultdb")
}

/// A session of user root in another database.
pub fn session_in(db: &Arc<Database>, database: &str) -> Session {
    let options = SessionOptions {
        user: "root".into(),
        database: database.into(),
        ..SessionOptions::default()
    };
    let mut session = Session::new(db.clone(), options).unwrap();
    // Any test with writes that go to disk, and tables locked in the place of rows: a campaign.
    if let Ok(memory) = std::env::var("BRAID_TRANSACTION_MEM") {
        run(&mut session, &format!("set braid.transaction_mem = '{memory}'"));
    }
    session
}

/// What a statement answered: rows as text, and the command tag.
#[derive(Debug)]
pub struct Answer {
    pub rows: Vec<Vec<String>>,
    pub tag: String,
}

/// Runs all statements of a text; the answer is that of the last.
pub fn try_run(s: &mut Session, sql: &str, params: &[Datum]) -> SqlResult<Answer> {
    let mut last = Answer { rows: Vec::new(), tag: String::new() };
    for statement in s.parse_script(sql)? {
        let p = s.prepare(statement, &[])?;
        last = match s.execute(&p, params.to_vec())? {
            Outcome::Rows(mut rows) => {
                let mut out = Vec::new();
                let names = s.object_names();
                let columns = p.columns().expect("columns");
                while let Some(batch) = rows.next_batch()? {
                    for row in batch {
                        let shown = |(d, c): (&Datum, &ColumnInfo)| {
                            text(names.of(d, &c.ty).expect("a name").as_ref().unwrap_or(d))
                        };
                        out.push(row.iter().zip(columns).map(shown).collect());
                    }
                }
                Answer { rows: out, tag: rows.tag() }
            }
            Outcome::Done(tag) => Answer { rows: Vec::new(), tag },
            Outcome::Empty => Answer { rows: Vec::new(), tag: String::new() },
            Outcome::CopyIn(_) | Outcome::CopyOut(_) => panic!("COPY has its own tests"),
        };
    }
    Ok(last)
}

fn text(d: &Datum) -> String {
    d.to_text(TimeZone::utc()).unwrap_or_else(|| "NULL".into())
}

/// Runs statements that must work.
pub fn run(s: &mut Session, sql: &str) -> Answer {
    try_run(s, sql, &[]).unwrap_or_else(|e| panic!("{sql}\n{e:?}"))
}

/// The rows of a query, one line each, columns separated by `|`.
pub fn rows(s: &mut Session, sql: &str) -> Vec<String> {
    run(s, sql).rows.into_iter().map(|r| r.join("|")).collect()
}

/// The command tag.
pub fn tag(s: &mut Session, sql: &str) -> String {
    run(s, sql).tag
}

/// The error of statements that must fail.
pub fn error(s: &mut Session, sql: &str) -> SqlError {
    match try_run(s, sql, &[]) {
        Err(e) => e,
        Ok(a) => panic!("{sql}\nshould have failed, answered {}", a.tag),
    }
}

/// SQLSTATE of statements that must fail.
pub fn state(s: &mut Session, sql: &str) -> &'static str {
    error(s, sql).state().0
}

/// Keys of entries, and the rows that they lead to.
pub type Entries = Vec<(Vec<u8>, Row)>;

/// The entries that the rows of a table ask for, and those that are stored.
pub fn entries(txn: &Arc<Txn>, layout: &Arc<TableLayout>) -> (Vec<Vec<u8>>, Entries) {
    let (mut wanted, mut stored) = (Vec::new(), Vec::new());
    let span = vec![layout.rows.whole_span()];
    let mut scan = TableScan::new(txn.clone(), layout.clone(), span, None, false);
    while let Some((_, row)) = scan.next_row().unwrap() {
        wanted.extend(layout.indexes.iter().filter_map(|i| i.entry_key(&row).unwrap()));
    }
    for i in &layout.indexes {
        let options = ScanOptions { classes: i.layout.class_mask(), ..ScanOptions::default() };
        let mut scan = txn.scan(i.layout.whole_span(), options).unwrap();
        while let Some((key, value)) = scan.next().unwrap() {
            if let Some(row) = layout.row_of_entry(i, &key, &value).unwrap() {
                stored.push((key.to_vec(), row));
            }
        }
    }
    wanted.sort();
    stored.sort_by(|a, b| a.0.cmp(&b.0));
    (wanted, stored)
}
