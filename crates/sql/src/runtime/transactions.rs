//! Transactions by kind: in how many ranges they had to agree, how long they took and what they
//! lost against, since the node began and for each of the last minutes.
//!
//! ```text
//!   statement alone ─ Measure ──► Tally::alone of its fingerprint ─┐
//!                                                                  ├─► all ─► braid_transaction_
//!   block ─ Story ─ COMMIT, ROLLBACK ──► Kind ─────────────────────┘    │     statistics
//!                                                     close_minute: all, less all a minute ago
//!                                                                       └─► .._minute
//! ```
//! A kind is the fingerprints of a transaction's statements in their order, several of one behind
//! each other as one: a block of a thousand equal INSERTs is of the kind of a block of one. Spanner
//! keeps the same by `fprint` in `SPANNER_SYS.TXN_STATS_*`, whose `avg_participants` this is about.
//!
//! Minutes are made from sums: who runs statements adds to its kind's sum and never looks at the
//! time for it. Of each minute the kinds are kept that took longest.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use braid_kv::TxnStats;
use braid_types::SqlError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::measure::now_nanos;
use super::statements::StatementStatistics;
use super::tally::{Lost, Transacted};

/// Statements that tell a kind; what comes behind them does not count.
const STATEMENTS_MAX: usize = 64;
/// Minutes that are kept.
const MINUTES: usize = 60;
/// Kinds that are kept of each.
const KINDS_OF_MINUTE: usize = 100;
/// So many of a hundred kinds are forgotten at once.
const FORGOTTEN_PERCENT: usize = 5;

/// All kinds of transactions of a node; see the [module documentation](self).
pub struct Transactions {
    kinds: Mutex<Kinds>,
    /// Kinds of blocks at most.
    max: usize,
    minutes: Mutex<Minutes>,
}

#[derive(Default)]
struct Kinds {
    all: HashMap<Key, Kind>,
    /// Blocks that have ended.
    ended: u64,
}

/// Database and fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    database: u32,
    id: i64,
}

struct Kind {
    statements: Arc<[i64]>,
    sum: Transacted,
    /// Which of all blocks was the last of this kind.
    last: u64,
}

#[derive(Default)]
struct Minutes {
    closed: VecDeque<Minute>,
    /// Sums when the open one began.
    before: HashMap<Key, Transacted>,
    /// Which minute since 2000 is open.
    open: i64,
}

/// What was done in one minute.
#[derive(Clone, Debug)]
pub struct Minute {
    /// When it ended, microseconds since 2000.
    pub end: i64,
    /// What took longest, the longest first.
    pub kinds: Vec<TransactionStatistics>,
}

/// What is known of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransactionStatistics {
    /// Database id.
    pub database: u32,
    /// Of a statement that stood alone that of the statement.
    pub id: i64,
    /// Fingerprints of its statements.
    pub statements: Vec<i64>,
    /// What was counted.
    pub sum: Transacted,
}

impl TransactionStatistics {
    /// Those of statements that stood alone.
    pub(crate) fn alone(
        statements: &[StatementStatistics],
    ) -> impl Iterator<Item = TransactionStatistics> {
        let alone = statements.iter().filter(|s| s.tally.alone != Transacted::default());
        alone.map(|s| TransactionStatistics {
            database: s.database,
            id: s.id,
            statements: vec![s.id],
            sum: s.tally.alone,
        })
    }
}

/// What a block has done so far.
#[derive(Default)]
pub(crate) struct Story {
    statements: Vec<i64>,
    /// When it began, nanoseconds of the monotonic clock.
    begun: u64,
    lost: Lost,
}

impl Story {
    /// A block begins.
    pub(crate) fn begin() -> Story {
        Story { begun: now_nanos(), ..Story::default() }
    }

    /// A statement of this fingerprint begins.
    pub(crate) fn runs(&mut self, id: i64) {
        if self.statements.last() != Some(&id) && self.statements.len() < STATEMENTS_MAX {
            self.statements.push(id);
        }
    }

    /// Something was lost, by a try or for good.
    pub(crate) fn loses(&mut self, error: &SqlError) {
        self.lost.add(error.retry_reason());
    }
}

impl Transactions {
    /// None yet; blocks of at most so many kinds.
    pub(crate) fn new(max: usize) -> Transactions {
        Transactions { kinds: Mutex::default(), max, minutes: Mutex::default() }
    }

    /// A block has ended. One in which nothing was counted leaves nothing.
    pub(crate) fn ended(&self, database: u32, story: Story, stats: &TxnStats, committed: bool) {
        if !story.statements.is_empty() {
            let nanos = now_nanos().saturating_sub(story.begun);
            self.count(database, story, stats, committed, nanos);
        }
    }

    fn count(&self, database: u32, story: Story, stats: &TxnStats, committed: bool, nanos: u64) {
        let Story { statements, lost, .. } = story;
        let key = Key { database, id: fingerprint(&statements) };
        let mut kinds = self.kinds.lock();
        kinds.ended += 1;
        let last = kinds.ended;
        if kinds.all.len() >= self.max && !kinds.all.contains_key(&key) {
            kinds.make_room();
        }
        let new = || Kind { statements: statements.into(), sum: Transacted::default(), last };
        let kind = kinds.all.entry(key).or_insert_with(new);
        kind.last = last;
        kind.sum.end(stats, committed, nanos);
        kind.sum.lost.merge(&lost);
    }

    /// All of them: those of blocks, and those of statements that stood alone.
    pub fn all(&self, statements: &[StatementStatistics]) -> Vec<TransactionStatistics> {
        TransactionStatistics::alone(statements).chain(self.blocks()).collect()
    }

    /// Those of blocks.
    pub(crate) fn blocks(&self) -> Vec<TransactionStatistics> {
        let shown = |(key, kind): (&Key, &Kind)| TransactionStatistics {
            database: key.database,
            id: key.id,
            statements: kind.statements.to_vec(),
            sum: kind.sum,
        };
        self.kinds.lock().all.iter().map(shown).collect()
    }

    /// Whether the minute that is open ended before that time, in microseconds since 2000.
    pub(crate) fn is_minute_over(&self, now: i64) -> bool {
        self.minutes.lock().open != now.div_euclid(MINUTE)
    }

    /// The minute that was open is over; `now` belongs to the next one.
    pub(crate) fn close_minute(&self, now: i64, all: Vec<TransactionStatistics>) {
        let mut minutes = self.minutes.lock();
        minutes.open = now.div_euclid(MINUTE);
        let end = minutes.open * MINUTE;
        let key = |s: &TransactionStatistics| Key { database: s.database, id: s.id };
        let sums = all.iter().map(|s| (key(s), s.sum)).collect();
        let before = std::mem::replace(&mut minutes.before, sums);
        let since = |s: TransactionStatistics| {
            let sum = match before.get(&key(&s)) {
                // Less than it was: it was forgotten meanwhile and begun anew.
                Some(then) if then.count() <= s.sum.count() => s.sum.since(then),
                _ => s.sum,
            };
            TransactionStatistics { sum, ..s }
        };
        let mut kinds: Vec<TransactionStatistics> =
            all.into_iter().map(since).filter(|s| s.sum.count() > 0).collect();
        kinds.sort_by_key(|s| std::cmp::Reverse(s.sum.nanos));
        kinds.truncate(KINDS_OF_MINUTE);
        if !kinds.is_empty() {
            minutes.closed.push_back(Minute { end, kinds });
        }
        let first = minutes.closed.partition_point(|m| m.end <= end - MINUTES as i64 * MINUTE);
        minutes.closed.drain(..first);
    }

    /// The last minutes in which there was something, the newest last.
    pub fn minutes(&self) -> Vec<Minute> {
        self.minutes.lock().closed.iter().cloned().collect()
    }

    /// Forgets all of a database, and of a kind; `None`: of any.
    pub(crate) fn reset(&self, database: Option<u32>, id: Option<i64>) {
        let stays =
            |k: &Key| database.is_some_and(|d| d != k.database) || id.is_some_and(|id| id != k.id);
        self.kinds.lock().all.retain(|key, _| stays(key));
        let mut minutes = self.minutes.lock();
        minutes.before.retain(|key, _| stays(key));
        for minute in &mut minutes.closed {
            minute.kinds.retain(|s| stays(&Key { database: s.database, id: s.id }));
        }
        minutes.closed.retain(|minute| !minute.kinds.is_empty());
    }
}

/// Microseconds of a minute.
pub(crate) const MINUTE: i64 = 60_000_000;

impl Kinds {
    /// Forgets those that were there least lately.
    fn make_room(&mut self) {
        let mut lasts: Vec<(u64, Key)> = self.all.iter().map(|(k, kind)| (kind.last, *k)).collect();
        lasts.sort_unstable_by_key(|(last, _)| *last);
        let count = (self.all.len() * FORGOTTEN_PERCENT / 100).max(1);
        for (_, key) in lasts.into_iter().take(count) {
            self.all.remove(&key);
        }
    }
}

/// Also of a block of one statement another one than the statement's: alone that takes no longer
/// than it needs, and a block as long as its client wants.
fn fingerprint(statements: &[i64]) -> i64 {
    let mut hasher = DefaultHasher::new();
    statements.hash(&mut hasher);
    hasher.finish() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(all: &Transactions, statements: &[i64], participants: u64, nanos: u64) {
        let mut story = Story::default();
        statements.iter().for_each(|id| story.runs(*id));
        let stats = TxnStats { participants, ..TxnStats::default() };
        all.count(1, story, &stats, true, nanos);
    }

    fn shown(all: &[TransactionStatistics]) -> Vec<String> {
        let one = |s: &TransactionStatistics| {
            format!("{:?}: {} of {}", s.statements, s.sum.participants, s.sum.commits)
        };
        let mut shown: Vec<String> = all.iter().map(one).collect();
        shown.sort();
        shown
    }

    #[test]
    fn a_kind_is_its_statements_in_order_whatever_their_number() {
        let all = Transactions::new(10);
        end(&all, &[1, 2], 1, 5);
        end(&all, &[1, 2, 2, 2], 3, 5);
        end(&all, &[2, 1], 1, 5);
        all.ended(1, Story::begin(), &TxnStats::default(), true);
        assert_eq!(shown(&all.all(&[])), ["[1, 2]: 4 of 2", "[2, 1]: 1 of 1"]);
        all.reset(Some(2), None);
        assert_eq!(all.all(&[]).len(), 2);
        all.reset(Some(1), None);
        assert_eq!(all.all(&[]).len(), 0);
    }

    #[test]
    fn the_least_lately_used_are_forgotten() {
        let all = Transactions::new(3);
        for statement in [1, 2, 3, 1, 4] {
            end(&all, &[statement], 1, 5);
        }
        assert_eq!(shown(&all.all(&[])), ["[1]: 2 of 2", "[3]: 1 of 1", "[4]: 1 of 1"]);
    }

    #[test]
    fn a_minute_has_what_came_in_it_and_the_longest_first() {
        let all = Transactions::new(1_000);
        let minute = |number: i64| {
            assert!(all.is_minute_over(number * MINUTE + 1));
            all.close_minute(number * MINUTE + 1, all.all(&[]));
            assert!(!all.is_minute_over(number * MINUTE + 2));
            all.minutes().last().cloned()
        };
        end(&all, &[1], 1, 5);
        end(&all, &[2], 2, 7);
        let first = minute(1).expect("something was done");
        let order: Vec<i64> = first.kinds.iter().map(|s| s.statements[0]).collect();
        assert_eq!((first.end, order), (MINUTE, vec![2, 1]));
        end(&all, &[2], 1, 1);
        let second = minute(2).expect("something was done");
        assert_eq!(shown(&second.kinds), ["[2]: 1 of 1"]);
        // A minute without anything is not there, and old ones go.
        assert_eq!(minute(3).map(|m| m.end), Some(2 * MINUTE));
        assert_eq!(minute(61).map(|m| m.end), Some(2 * MINUTE));
        assert_eq!(minute(62).map(|m| m.end), None);
        for n in 0..300 {
            end(&all, &[n], 1, 5);
        }
        assert_eq!(minute(63).expect("something was done").kinds.len(), KINDS_OF_MINUTE);
    }
}
