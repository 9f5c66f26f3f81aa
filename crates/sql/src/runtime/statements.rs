//! The statements of a node by fingerprint, each with what its executions have done.
//!
//! ```text
//!   Prepared ──► Counted ┬ text
//!                       └ STRIPES tallies, each under its own lock: a session always takes the
//!                         same one, so that sessions that run one statement do not meet
//! ```
//! A plan keeps the entry that it was counted at, so finding it by its fingerprint is not on the
//! way of an execution. There are at most `max` entries: before one more, those are forgotten that
//! were used least lately. Whoever still holds such an entry sees that it is gone and finds or
//! makes it anew.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use braid_parser::Fingerprint;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::tally::Tally;

/// Entries at most: PostgreSQL's default of `pg_stat_statements.max`.
pub(crate) const ENTRIES_MAX: usize = 5_000;
/// Tallies of one entry.
const STRIPES: usize = 4;
/// Longer texts are cut.
pub(crate) const TEXT_MAX: usize = 16 << 10;
/// So many of a hundred entries are forgotten at once.
const FORGOTTEN_PERCENT: usize = 5;
/// What earlier use counts beside later use, each time that entries are forgotten.
const USE_DECAY: f64 = 0.99;

/// All statements of a node.
pub struct Statements {
    entries: Mutex<HashMap<Key, Arc<Counted>>>,
    max: usize,
    /// Times that entries were forgotten for lack of room.
    forgotten: AtomicU64,
    /// When all were reset last, microseconds since 2000.
    reset_at: AtomicI64,
}

/// Database and fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    database: u32,
    id: i64,
}

/// One statement. See the [module documentation](self).
pub(crate) struct Counted {
    key: Key,
    text: String,
    tallies: [Stripe; STRIPES],
    usage: Mutex<Usage>,
    /// It was forgotten: counts go to a new one.
    gone: AtomicBool,
}

/// Alone in its cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Stripe(Mutex<Tally>);

/// How much an entry was used, the last time that somebody looked.
#[derive(Default)]
struct Usage {
    calls: u64,
    weight: f64,
}

/// What is known of one statement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatementStatistics {
    /// Database id.
    pub database: u32,
    /// See [`Fingerprint`].
    pub id: i64,
    /// With `$n` for its constants.
    pub text: String,
    /// What its executions have done.
    pub tally: Tally,
}

impl Counted {
    fn new(key: Key, mut text: String) -> Counted {
        if text.len() > TEXT_MAX {
            text.truncate(text.floor_char_boundary(TEXT_MAX));
        }
        let (tallies, usage) = (Default::default(), Mutex::default());
        Counted { key, text, tallies, usage, gone: AtomicBool::new(false) }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    pub(crate) fn id(&self) -> i64 {
        self.key.id
    }

    /// Counts, in the stripe of a session.
    pub(crate) fn count(&self, session: i32, f: impl FnOnce(&mut Tally)) {
        f(&mut self.tallies[session as usize % STRIPES].0.lock());
    }

    fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        self.tallies.iter().for_each(|stripe| sum.merge(&stripe.0.lock()));
        sum
    }

    /// How much it is used: what was counted since the last look, and less and less of what was
    /// before.
    fn weigh(&self) -> f64 {
        let tally = self.tally();
        let calls = tally.executions.count + tally.errors;
        let mut usage = self.usage.lock();
        usage.weight = usage.weight * USE_DECAY + calls.saturating_sub(usage.calls) as f64;
        usage.calls = calls;
        usage.weight
    }
}

impl Statements {
    /// None yet, and at most `max`.
    pub fn new(max: usize, now_micros: i64) -> Statements {
        Statements {
            entries: Mutex::default(),
            max,
            forgotten: AtomicU64::new(0),
            reset_at: AtomicI64::new(now_micros),
        }
    }

    /// The entry of a statement of a database.
    pub(crate) fn entry(&self, database: u32, sql: &str) -> Arc<Counted> {
        let Fingerprint { id, text } = Fingerprint::of(sql);
        let key = Key { database, id };
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(&key) {
            return entry.clone();
        }
        if entries.len() >= self.max {
            self.make_room(&mut entries);
        }
        let entry = Arc::new(Counted::new(key, text));
        entries.insert(key, entry.clone());
        entry
    }

    fn make_room(&self, entries: &mut HashMap<Key, Arc<Counted>>) {
        let mut weights: Vec<(f64, Key)> = entries.iter().map(|(k, e)| (e.weigh(), *k)).collect();
        weights.sort_by(|a, b| a.0.total_cmp(&b.0));
        let count = (entries.len() * FORGOTTEN_PERCENT / 100).max(1);
        for (_, key) in weights.into_iter().take(count) {
            forget(entries, key);
        }
        self.forgotten.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them, the sum of each.
    pub fn all(&self) -> Vec<StatementStatistics> {
        let entries: Vec<Arc<Counted>> = self.entries.lock().values().cloned().collect();
        let shown = |e: &Counted| StatementStatistics {
            database: e.key.database,
            id: e.key.id,
            text: e.text.clone(),
            tally: e.tally(),
        };
        entries.iter().map(|e| shown(e)).filter(|s| s.tally != Tally::default()).collect()
    }

    /// Forgets those of a database and a fingerprint; `None`: of any.
    pub fn reset(&self, database: Option<u32>, id: Option<i64>, now_micros: i64) {
        let mut entries = self.entries.lock();
        let matches =
            |k: &&Key| database.is_none_or(|d| d == k.database) && id.is_none_or(|id| id == k.id);
        let keys: Vec<Key> = entries.keys().filter(matches).copied().collect();
        keys.into_iter().for_each(|key| forget(&mut entries, key));
        if database.is_none() && id.is_none() {
            self.forgotten.store(0, Ordering::Relaxed);
            self.reset_at.store(now_micros, Ordering::Relaxed);
        }
    }

    /// Times that entries were forgotten for lack of room since the last reset of all, and when
    /// that was, in microseconds since 2000.
    pub fn info(&self) -> (u64, i64) {
        (self.forgotten.load(Ordering::Relaxed), self.reset_at.load(Ordering::Relaxed))
    }
}

fn forget(entries: &mut HashMap<Key, Arc<Counted>>, key: Key) {
    if let Some(entry) = entries.remove(&key) {
        entry.gone.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(statements: &Statements, sql: &str, times: usize) {
        for _ in 0..times {
            statements.entry(1, sql).count(7, |t| t.executions.add(1.0));
        }
    }

    fn texts(statements: &Statements) -> Vec<String> {
        let mut texts: Vec<String> = statements.all().into_iter().map(|s| s.text).collect();
        texts.sort();
        texts
    }

    #[test]
    fn the_least_used_are_forgotten_and_found_anew() {
        let statements = Statements::new(3, 0);
        run(&statements, "select a", 5);
        run(&statements, "select b", 2);
        run(&statements, "select c", 3);
        let b = statements.entry(1, "select b");
        run(&statements, "select d", 1);
        assert_eq!(texts(&statements), ["select a", "select c", "select d"]);
        assert!(b.is_gone());
        assert_eq!(statements.info(), (1, 0));
        // What was used long ago counts less: by now c is used more than a.
        for n in 0..400 {
            run(&statements, "select c", 1);
            run(&statements, &format!("select x{n}"), 2);
        }
        run(&statements, "select a", 0);
        assert!(texts(&statements).contains(&"select c".to_string()), "{:?}", texts(&statements));
    }

    #[test]
    fn stripes_are_summed_and_reset_by_what_is_named() {
        let statements = Statements::new(10, 0);
        for session in 0..9 {
            statements.entry(1, "select 1").count(session, |t| t.rows += 1);
        }
        statements.entry(2, "select 2").count(0, |t| t.rows += 1);
        let rows = |database: u32| -> u64 {
            let all = statements.all().into_iter().filter(|s| s.database == database);
            all.map(|s| s.tally.rows).sum()
        };
        // One fingerprint in two databases: two entries.
        assert_eq!((rows(1), rows(2)), (9, 1));
        statements.reset(Some(1), None, 5);
        assert_eq!((rows(1), rows(2), statements.info().1), (0, 1, 0));
        statements.reset(None, None, 5);
        assert_eq!((rows(2), statements.info().1), (0, 5));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let statements = Statements::new(10, 0);
        let long = format!("select \"{}\"", "ä".repeat(TEXT_MAX));
        statements.entry(1, &long).count(0, |t| t.rows = 1);
        let all = statements.all();
        assert!(all[0].text.len() <= TEXT_MAX && all[0].text.len() > TEXT_MAX - 4);
    }
}
