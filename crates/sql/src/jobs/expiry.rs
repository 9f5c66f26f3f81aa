//! Rows that a row deletion policy finds too old, taken away a little at a time.
//!
//! ```text
//!   the column leads the key    DELETE .. WHERE created < x               one tombstone for all
//!   else                        DELETE .. WHERE created < x LIMIT 500     families, in small
//!                               a pause, the next 500, ..                 transactions
//!   someone refers to a row     one by one; those that cannot go are counted
//! ```
//! The statements are those that a user would write: families go along, foreign keys do what they
//! declare, statistics are told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use braid_catalog::{After, Catalog, Table, Ttl};
use braid_kv::TxnOptions;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, TimeZone, quote_ident};
use parking_lot::Mutex;

use crate::database::Database;
use crate::session::{Outcome, Session, SessionOptions};

/// Rows of one transaction.
const AT_ONCE: u64 = 500;
/// Transactions for one table before others have their turn.
const BATCHES: usize = 20;
/// Between two transactions.
const PAUSE: Duration = Duration::from_millis(5);
/// Rows that are tried one by one in one turn.
const SINGLE: u64 = 2_000;

/// What was done for one table since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Rows that went, those inside of them not counted.
    pub deleted: u64,
    /// Rows that could not go in the last turn.
    pub undeletable: u64,
    /// When that was, in microseconds since 1970.
    pub last_us: u64,
}

/// By table.
#[derive(Default)]
pub(crate) struct Expiry(Mutex<BTreeMap<u32, Expired>>);

impl Expiry {
    pub(crate) fn of(&self, table: u32) -> Expired {
        self.0.lock().get(&table).copied().unwrap_or_default()
    }
}

impl Database {
    /// Takes rows away that are too old, of every table with a policy. `ending` is asked now and
    /// then whether to give up. Called from time to time by a background task.
    pub fn expire_rows(self: &Arc<Self>, ending: &dyn Fn() -> bool) -> SqlResult<()> {
        if !self.cluster_settings().deletes_old_rows() {
            return Ok(());
        }
        let (_, catalog) = self.begin(TxnOptions { read_only: true, ..TxnOptions::default() })?;
        for t in catalog.tables() {
            let Some(ttl) = &t.upkeep.ttl else { continue };
            let Some(database) = catalog.schema_by_id(t.schema).map(|s| s.database) else {
                continue;
            };
            let Some(database) = catalog.databases().find(|d| d.id == database) else { continue };
            let options = SessionOptions {
                user: "root".into(),
                database: database.name.clone(),
                settings: vec![("application_name".into(), "row deletion policy".into())],
                ..SessionOptions::default()
            };
            let mut turn = Turn {
                session: Session::new(self.clone(), options)?,
                statement: statement(&catalog, t, ttl),
                ending,
            };
            let (deleted, undeletable) = match turn.run(t, ttl) {
                // Somebody was in the way, or has changed the table: another time.
                Err(e) if After::error(&e) != After::Never => continue,
                other => other?,
            };
            let mut done = self.expiry().0.lock();
            let sum = done.entry(t.id).or_default();
            sum.deleted += deleted;
            sum.undeletable = undeletable;
            sum.last_us = self.coordinator().wall_clock_us();
        }
        Ok(())
    }
}

/// `FROM t WHERE column < now() - interval`.
fn statement(catalog: &Catalog, t: &Table, ttl: &Ttl) -> String {
    let (schema, name) = catalog.qualified_name(t.id).unwrap_or_default();
    let column = t.column(ttl.column);
    let age = format!("interval '{}'", ttl.interval);
    let limit = match column.map(|c| &c.ty) {
        Some(SqlType::TimestampTz) => format!("now() - {age}"),
        Some(SqlType::Date) => format!("CAST((now() AT TIME ZONE 'UTC') - {age} AS date)"),
        _ => format!("(now() AT TIME ZONE 'UTC') - {age}"),
    };
    format!(
        "FROM {}.{} WHERE {} < {limit}",
        quote_ident(&schema),
        quote_ident(&name),
        quote_ident(column.map_or("", |c| &c.name)),
    )
}

/// One table's turn.
struct Turn<'a> {
    session: Session,
    statement: String,
    ending: &'a dyn Fn() -> bool,
}

impl Turn<'_> {
    /// Rows that went, and those that cannot go.
    fn run(&mut self, t: &Table, ttl: &Ttl) -> SqlResult<(u64, u64)> {
        let leads = t.interleave.is_none()
            && t.primary.columns.first().is_some_and(|k| k.column == ttl.column);
        let limit = if leads { String::new() } else { format!(" LIMIT {AT_ONCE}") };
        let sql = format!("DELETE {}{limit}", self.statement);
        let mut deleted = 0;
        for _ in 0..BATCHES {
            match self.execute(&sql) {
                Ok((count, _)) => {
                    deleted += count;
                    if count < AT_ONCE || leads {
                        return Ok((deleted, 0));
                    }
                }
                Err(e) if e.state() == SqlState::FOREIGN_KEY_VIOLATION => {
                    let (single, undeletable) = self.one_by_one(t)?;
                    return Ok((deleted + single, undeletable));
                }
                Err(e) => return Err(e),
            }
            if (self.ending)() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Ok((deleted, 0))
    }

    fn one_by_one(&mut self, t: &Table) -> SqlResult<(u64, u64)> {
        let key: Vec<String> = (t.primary.columns.iter())
            .filter_map(|k| t.column(k.column))
            .map(|c| quote_ident(&c.name))
            .collect();
        let (_, rows) =
            self.execute(&format!("SELECT {} {} LIMIT {SINGLE}", key.join(", "), self.statement))?;
        let (mut deleted, mut undeletable) = (0, 0);
        for row in rows {
            if (self.ending)() {
                break;
            }
            let same: Vec<String> =
                key.iter().zip(&row).map(|(name, v)| format!("{name} = {}", literal(v))).collect();
            let sql = format!("DELETE {} AND {}", self.statement, same.join(" AND "));
            match self.execute(&sql) {
                Ok((count, _)) => deleted += count,
                Err(e) if e.state() == SqlState::FOREIGN_KEY_VIOLATION => undeletable += 1,
                Err(e) if After::error(&e) != After::Never => {}
                Err(e) => return Err(e),
            }
        }
        Ok((deleted, undeletable))
    }

    /// Runs one statement: the number of rows written, and the rows that came back.
    fn execute(&mut self, sql: &str) -> SqlResult<(u64, Vec<Vec<Datum>>)> {
        let statement = self.session.parse_script(sql)?.pop();
        let statement = statement.ok_or_else(|| SqlError::internal("no statement"))?;
        let prepared = self.session.prepare(statement, &[])?;
        match self.session.execute(&prepared, Vec::new())? {
            Outcome::Rows(mut rows) => {
                let mut out = Vec::new();
                while let Some(batch) = rows.next_batch()? {
                    out.extend(batch);
                }
                Ok((0, out))
            }
            Outcome::Done(tag) => {
                let count = tag.rsplit(' ').next().and_then(|n| n.parse().ok());
                Ok((count.unwrap_or_default(), Vec::new()))
            }
            _ => Ok((0, Vec::new())),
        }
    }
}

/// A value as an untyped literal.
fn literal(value: &Datum) -> String {
    let text = value.to_text(TimeZone::utc()).unwrap_or_default();
    format!("'{}'", text.replace('\'', "''"))
}
