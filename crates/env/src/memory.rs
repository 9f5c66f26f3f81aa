//! Who holds how much memory, and the limit.
//!
//! ```text
//!   Pool        one per node: what all statements, transactions and messages may hold together
//!    └ Account  one per statement, transaction or connection: what it may hold, and holds;
//!       │        all goes back to the pool with it
//!       └ Held  one operator or buffer that gives back earlier
//! ```
//!
//! Nobody asks the allocator. Whoever is about to keep an amount that a client decides says so
//! first, and gets [`Exceeded`] when there is no room: then it spills, or its statement fails by
//! that error, which names who wanted the memory.
//!
//! What is small for every statement is not counted, amounts are estimates, and an allocator keeps
//! pages for later. So somebody looks now and then how much the process really has
//! ([`resident`]) and tells the pool: what nobody counted is taken off its limit
//! ([`Pool::note_resident`]), down to a quarter of it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The memory of a node.
#[derive(Debug)]
pub struct Pool {
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
    /// Of what is used, what nobody has written to yet: the process does not have it.
    unwritten: AtomicUsize,
    /// What the process has and nobody counted, as far as it was seen last.
    uncounted: AtomicUsize,
    /// Gives the calling thread's free memory back to the system.
    trim: OnceLock<fn()>,
}

/// More than this part of the pool that nobody counted is much: it is worth giving memory back.
const MUCH_PART: usize = 8;

impl Pool {
    /// A pool of so many bytes.
    pub fn new(limit: usize) -> Arc<Pool> {
        let zero = || AtomicUsize::new(0);
        let trim = OnceLock::new();
        let (used, peak) = (zero(), zero());
        Arc::new(Pool { limit, used, peak, unwritten: zero(), uncounted: zero(), trim })
    }

    /// A pool that refuses nothing, for tools and tests.
    pub fn unlimited() -> Arc<Pool> {
        Pool::new(usize::MAX)
    }

    /// Bytes that it was made for.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that it gives at present: what nobody counted is taken off, down to a quarter.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.uncounted()).max(self.limit / 4)
    }

    /// Bytes that the process has and nobody counted, as far as it was seen last.
    pub fn uncounted(&self) -> usize {
        self.uncounted.load(Ordering::Relaxed)
    }

    /// Tells how much the process really has, of which `fixed` bytes are nobody's concern here:
    /// caches and the like with limits of their own.
    pub fn note_resident(&self, resident: usize, fixed: usize) {
        let written = self.used().saturating_sub(self.unwritten.load(Ordering::Relaxed));
        let counted = written.saturating_add(fixed);
        self.uncounted.store(resident.saturating_sub(counted), Ordering::Relaxed);
    }

    /// Whether much is in use that nobody counted.
    pub fn is_strained(&self) -> bool {
        self.uncounted() > self.limit / MUCH_PART
    }

    /// Says how a thread gives its free memory back to the system; the first one counts.
    pub fn trim_by(&self, trim: fn()) {
        // Whoever comes later says the same: there is one allocator.
        let _ = self.trim.set(trim);
    }

    /// Called by a thread that has just freed much: an allocator keeps that for the thread, which
    /// may sleep soon.
    pub fn relieve(&self) {
        if self.is_strained()
            && let Some(trim) = self.trim.get()
        {
            trim();
        }
    }

    /// Bytes held now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Most bytes held at any time.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// An account of this pool that may hold `limit` bytes.
    pub fn account(self: &Arc<Self>, limit: usize) -> Arc<Account> {
        Arc::new(Account::of(self, limit))
    }

    fn take(&self, bytes: usize) -> bool {
        let taken = take(&self.used, self.room(), bytes);
        if let Some(used) = taken {
            self.peak.fetch_max(used, Ordering::Relaxed);
        }
        taken.is_some()
    }
}

/// Adds to a counter unless it would pass its limit; the new value.
fn take(used: &AtomicUsize, limit: usize, bytes: usize) -> Option<usize> {
    used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        used.checked_add(bytes).filter(|sum| *sum <= limit)
    })
    .ok()
    .map(|before| before + bytes)
}

/// What one statement, transaction or connection holds.
#[derive(Debug)]
pub struct Account {
    pool: Arc<Pool>,
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
    /// Taken from the pool for values that were passed on.
    passed: AtomicUsize,
    /// Whose limit holds for this one, too.
    parent: Option<Arc<Account>>,
    /// What it would have held last, had it not been refused by its own limit.
    refused: AtomicUsize,
}

/// Values of so many bytes are counted though nobody keeps them.
pub const LARGE_VALUE: usize = 256 << 10;

impl Account {
    /// An account without limits, for tools and tests.
    pub fn unlimited() -> Arc<Account> {
        Pool::unlimited().account(usize::MAX)
    }

    /// An account for a part of what this one is for: what it holds is held by this one, too, and
    /// both limits count.
    pub fn part(self: &Arc<Self>, limit: usize) -> Arc<Account> {
        let mut part = Account::of(&self.pool, limit);
        part.parent = Some(self.clone());
        Arc::new(part)
    }

    fn of(pool: &Arc<Pool>, limit: usize) -> Account {
        let zero = || AtomicUsize::new(0);
        let (pool, used, peak) = (pool.clone(), zero(), zero());
        Account { pool, limit, used, peak, passed: zero(), parent: None, refused: zero() }
    }

    /// Bytes that it may hold.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The pool it belongs to.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Bytes held now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Most bytes held at any time.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// What it would have held when its limit refused something last; 0 if it never did.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Begins to hold memory, nothing at first. `what` is the name that an error will give.
    pub fn hold(self: &Arc<Self>, what: &'static str) -> Held {
        Held { account: Arc::clone(self), what, bytes: 0, unwritten: 0 }
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// The account or the pool has not so many left; nothing was taken.
    pub fn take(&self, what: &str, bytes: usize) -> Result<(), Exceeded> {
        let exceeded = |scope, limit| Exceeded { what: what.to_string(), bytes, scope, limit };
        let Some(used) = take(&self.used, self.limit, bytes) else {
            self.refused.store(self.used().saturating_add(bytes), Ordering::Relaxed);
            return Err(exceeded(Scope::Statement, self.limit));
        };
        let above = match &self.parent {
            Some(parent) => parent.take(what, bytes),
            None if self.pool.take(bytes) => Ok(()),
            None => Err(exceeded(Scope::Node, self.pool.room())),
        };
        match above {
            Ok(()) => self.note_peak(used),
            Err(_) => _ = self.used.fetch_sub(bytes, Ordering::Relaxed),
        }
        above
    }

    /// Counts what a list or a table takes that is copied into a larger one by `copy`: both are
    /// there meanwhile.
    ///
    /// # Errors
    /// There is no room for both; nothing was copied.
    pub fn regrow(
        &self,
        what: &str,
        old: usize,
        new: usize,
        copy: impl FnOnce(),
    ) -> Result<(), Exceeded> {
        self.take(what, new)?;
        copy();
        self.give(old);
        Ok(())
    }

    /// A value of so many bytes is on its way through the statement, where it will be so many times
    /// at once. Room for the one that needs most is taken from the node, not from the statement's
    /// own limit, until the account ends: nobody knows when the last copy is gone. Cheap for what
    /// is not large.
    ///
    /// # Errors
    /// The node has not so much room.
    #[inline]
    pub fn pass(&self, bytes: usize, copies: usize) -> Result<(), Exceeded> {
        if bytes < LARGE_VALUE { Ok(()) } else { self.pass_large(bytes.saturating_mul(copies)) }
    }

    fn pass_large(&self, wanted: usize) -> Result<(), Exceeded> {
        let before = self.passed.fetch_max(wanted, Ordering::Relaxed);
        if wanted <= before || self.pool.take(wanted - before) {
            return Ok(());
        }
        // Others of the statement's threads may have added to it: what they took stays.
        self.passed.fetch_sub(wanted - before, Ordering::Relaxed);
        let (what, scope) = ("a large value".to_string(), Scope::Node);
        Err(Exceeded { what, bytes: wanted, scope, limit: self.pool.room() })
    }

    /// Takes bytes that are already in use: over the limits if need be.
    pub fn take_anyway(&self, bytes: usize) {
        self.note_peak(self.used.fetch_add(bytes, Ordering::Relaxed) + bytes);
        if let Some(parent) = &self.parent {
            return parent.take_anyway(bytes);
        }
        let used = self.pool.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.pool.peak.fetch_max(used, Ordering::Relaxed);
    }

    fn note_peak(&self, used: usize) {
        if used > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(used, Ordering::Relaxed);
        }
    }

    /// Gives bytes back.
    pub fn give(&self, bytes: usize) {
        if bytes == 0 {
            // All threads count in the pool: it is left alone where there is nothing to count.
            return;
        }
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        match &self.parent {
            Some(parent) => parent.give(bytes),
            None => _ = self.pool.used.fetch_sub(bytes, Ordering::Relaxed),
        }
    }
}

/// What nobody gave back goes with the account: most of a statement's memory lives as long as it.
impl Drop for Account {
    fn drop(&mut self) {
        let left = *self.used.get_mut();
        self.give(left);
        let passed = *self.passed.get_mut();
        if passed > 0 {
            self.pool.used.fetch_sub(passed, Ordering::Relaxed);
        }
    }
}

/// Memory of one holder; dropping it gives all of it back.
#[derive(Debug)]
pub struct Held {
    account: Arc<Account>,
    what: &'static str,
    bytes: usize,
    unwritten: usize,
}

impl Held {
    /// Tells how much of it nobody has written to yet. It is held, but what the process really has
    /// does not show it.
    pub fn note_unwritten(&mut self, bytes: usize) {
        let pool = &self.account.pool;
        match bytes.checked_sub(self.unwritten) {
            Some(0) => return,
            Some(more) => pool.unwritten.fetch_add(more, Ordering::Relaxed),
            None => pool.unwritten.fetch_sub(self.unwritten - bytes, Ordering::Relaxed),
        };
        self.unwritten = bytes;
    }

    /// Takes more.
    ///
    /// # Errors
    /// There is no room; nothing was taken.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.account.take(self.what, bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes or gives back, to hold exactly so much.
    ///
    /// # Errors
    /// There is no room for more; it holds what it held.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Exceeded> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.account.give(self.bytes - bytes);
                self.bytes = bytes;
                Ok(())
            }
        }
    }

    /// Gives some of it back.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.account.give(bytes);
        self.bytes -= bytes;
    }

    /// Gives all of it back.
    pub fn release(&mut self) {
        self.note_unwritten(0);
        self.account.give(std::mem::take(&mut self.bytes));
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

/// Whose limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The account's.
    Statement,
    /// The pool's.
    Node,
}

/// There is no room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Who wanted the memory.
    pub what: String,
    /// How much.
    pub bytes: usize,
    /// Whose limit it would have passed.
    pub scope: Scope,
    /// That limit.
    pub limit: usize,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = match self.scope {
            Scope::Statement => "the statement",
            Scope::Node => "the node",
        };
        write!(f, "{} asked for {} bytes; {scope} may hold {}", self.what, self.bytes, self.limit)
    }
}

impl std::error::Error for Exceeded {}

/// The memory that this process may use: the machine's, or less if its control group says so.
pub fn available() -> usize {
    let machine = kib_of("/proc/meminfo", "MemTotal:");
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let own = own_groups();
    let limits = groups.iter().map(|g| g.to_string()).chain(own).filter_map(|path| {
        std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<usize>().ok())
    });
    limits.chain(machine).min().unwrap_or(1 << 30)
}

/// Bytes of memory that this process has, the pages of its code included. 0 where the system does
/// not tell.
pub fn resident() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    // Read very often, and what says the same in words costs the system ten times as much.
    let page = *PAGE.get_or_init(|| {
        let (all, _) = pages().unwrap_or_default();
        let bytes = kib_of("/proc/self/status", "VmSize:").unwrap_or(0);
        // Both grow: a page is a power of two all the same.
        bytes.checked_div(all).map_or(4096, |about| (about + about / 2).next_power_of_two() / 2)
    });
    pages().map_or(0, |(_, resident)| resident * page)
}

/// Pages of this process's address space, and how many of them are in memory.
fn pages() -> Option<(usize, usize)> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut numbers = text.split_whitespace().map_while(|number| number.parse::<usize>().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// Bytes of a line such as `MemTotal:  2048 kB`.
fn kib_of(file: &str, name: &str) -> Option<usize> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib << 10)
}

/// Files with the limit of this process's own control group, in both layouts.
fn own_groups() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut out = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        match (parts.next(), parts.next()) {
            (Some(""), Some(path)) => out.push(format!("/sys/fs/cgroup{path}/memory.max")),
            (Some(names), Some(path)) if names.split(',').any(|n| n == "memory") => {
                out.push(format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"));
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_account_share_its_limit() {
        let pool = Pool::new(1000);
        let whole = pool.account(100);
        let (a, b) = (whole.part(usize::MAX), whole.part(30));
        a.take("a", 60).unwrap();
        assert_eq!(b.take("b", 40).unwrap_err().limit, 30);
        b.take("b", 30).unwrap();
        let e = a.take("a", 20).unwrap_err();
        assert_eq!((e.scope, e.limit, whole.refused()), (Scope::Statement, 100, 110));
        assert_eq!((a.used(), b.used(), whole.used(), pool.used()), (60, 30, 90, 90));
        drop(b);
        assert_eq!((whole.used(), whole.peak(), pool.used()), (60, 90, 60));
        a.take_anyway(60);
        a.give(20);
        assert_eq!((a.used(), whole.used(), pool.used()), (100, 100, 100));
        drop(a);
        assert_eq!((whole.used(), pool.used()), (0, 0));
    }

    #[test]
    fn what_is_taken_is_given_back_and_limits_hold() {
        let pool = Pool::new(100);
        let (a, b) = (pool.account(60), pool.account(90));
        let mut sort = a.hold("sort");
        sort.grow(50).unwrap();
        let e = sort.grow(20).unwrap_err();
        assert_eq!((e.scope, e.limit, e.what.as_str()), (Scope::Statement, 60, "sort"));
        let mut join = b.hold("join");
        let e = join.grow(60).unwrap_err();
        assert_eq!((e.scope, e.limit), (Scope::Node, 100));
        assert_eq!((pool.used(), a.used(), b.used()), (50, 50, 0));
        join.grow(50).unwrap();
        sort.resize(10).unwrap();
        assert_eq!((pool.used(), sort.bytes()), (60, 10));
        drop((sort, join));
        assert_eq!((pool.used(), pool.peak()), (0, 100));
        // What was refused was never held.
        assert_eq!((a.peak(), b.peak()), (50, 50));
        a.take("rows", 7).unwrap();
        assert_eq!(pool.used(), 7);
        drop(a);
        assert_eq!(pool.used(), 0, "what a statement held goes with it");
        assert!(available() > 0);
        let shown = kib_of("/proc/self/status", "VmRSS:").unwrap();
        assert!((shown / 2..shown * 2).contains(&resident()), "{} {shown}", resident());
    }

    #[test]
    fn the_largest_value_that_is_passed_on_has_room_for_its_copies() {
        let pool = Pool::new(100 << 20);
        let account = pool.account(1);
        account.pass(LARGE_VALUE - 1, 1000).unwrap();
        assert_eq!(pool.used(), 0);
        account.pass(2 << 20, 4).unwrap();
        account.pass(1 << 20, 5).unwrap();
        assert_eq!((pool.used(), account.used()), (8 << 20, 0), "no part of what it may keep");
        let e = account.pass(30 << 20, 4).unwrap_err();
        assert_eq!(
            (e.what.as_str(), e.scope, pool.used()),
            ("a large value", Scope::Node, 8 << 20)
        );
        account.pass(20 << 20, 4).unwrap();
        assert_eq!(pool.used(), 80 << 20);
        drop(account);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn who_copies_into_a_larger_one_has_room_for_both() {
        let pool = Pool::new(100);
        let account = pool.account(100);
        account.take("list", 30).unwrap();
        account.regrow("list", 30, 60, || assert_eq!(pool.used(), 90)).unwrap();
        assert_eq!((account.used(), account.peak()), (60, 90));
        let copy = || panic!("there is no room for both");
        assert_eq!(account.regrow("list", 60, 120, copy).unwrap_err().bytes, 120);
        assert_eq!(pool.used(), 60);
    }

    #[test]
    fn what_nobody_counted_is_taken_off_down_to_a_quarter() {
        let pool = Pool::new(100);
        let account = pool.account(usize::MAX);
        account.take("rows", 20).unwrap();
        pool.note_resident(70, 30);
        assert_eq!((pool.uncounted(), pool.room()), (20, 80));
        let e = account.take("sort", 61).unwrap_err();
        assert_eq!((e.scope, e.limit), (Scope::Node, 80));
        account.take("sort", 60).unwrap();
        pool.note_resident(1000, 0);
        assert_eq!(pool.room(), 25);
        pool.note_resident(0, 0);
        assert_eq!((pool.uncounted(), pool.room()), (0, 100));
    }

    #[test]
    fn what_is_held_and_not_written_hides_nothing() {
        let pool = Pool::new(100);
        let mut message = pool.account(usize::MAX).hold("message");
        message.grow(60).unwrap();
        message.note_unwritten(50);
        // Of 40 that the process has, 10 are the message's.
        pool.note_resident(40, 0);
        assert_eq!((pool.uncounted(), pool.room()), (30, 70));
        message.note_unwritten(0);
        pool.note_resident(90, 0);
        assert_eq!((pool.uncounted(), pool.room()), (30, 70));
        message.note_unwritten(60);
        drop(message);
        pool.note_resident(40, 0);
        assert_eq!((pool.used(), pool.uncounted()), (0, 40));
    }

    #[test]
    fn free_memory_is_given_back_while_much_is_not_counted() {
        static TRIMMED: AtomicUsize = AtomicUsize::new(0);
        let pool = Pool::new(800);
        pool.note_resident(101, 0);
        pool.relieve();
        pool.trim_by(|| {
            TRIMMED.fetch_add(1, Ordering::Relaxed);
        });
        pool.relieve();
        assert_eq!((pool.is_strained(), TRIMMED.load(Ordering::Relaxed)), (true, 1));
        pool.note_resident(100, 0);
        pool.relieve();
        assert_eq!((pool.is_strained(), TRIMMED.load(Ordering::Relaxed)), (false, 1));
    }
}
