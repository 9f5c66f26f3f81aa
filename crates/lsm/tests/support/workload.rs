//! A random history against a store and the oracle.

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::{FileSystem, MemFs};
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_lsm::{
    Batch, CommitTs, Db, Durability, Error, KeySpan, Options, Scan, ScanOptions, View, check_store,
};

use super::options;
use super::oracle::{Call, Key, Oracle, Written};

/// A store under test.
pub struct Subject {
    pub fs: MemFs,
    /// What the store sees; `fs` itself or a wrapper of it.
    pub seen: Arc<dyn FileSystem>,
    pub db: Db,
    pub tasks: Arc<SeededTasks>,
    pub oracle: Oracle,
    pub random: Random,
    /// Choices that differ between option sets must not disturb the others.
    pub side: Random,
    pub clock: u64,
    pub gc: u64,
    /// Batches that are known to be durable.
    pub synced: usize,
    pub set: usize,
    held: Vec<(View, u64, usize)>,
    pub context: String,
    /// Number of the last file made beside the store.
    pub files: u64,
}

pub fn dir() -> &'static Path {
    Path::new("/store")
}

pub fn open_at(fs: Arc<dyn FileSystem>, dir: &Path, options: Options) -> Result<Db, Error> {
    Db::open(fs, dir, options)
}

pub fn open_on(fs: Arc<dyn FileSystem>, options: Options) -> Result<Db, Error> {
    Db::open(fs, dir(), options)
}

impl Subject {
    pub fn new(seed: u64, set: usize) -> Subject {
        let fs = MemFs::new();
        let tasks = Arc::new(SeededTasks::new(seed));
        let seen: Arc<dyn FileSystem> = Arc::new(fs.clone());
        let db = open_on(seen.clone(), options::set(set, tasks.clone())).unwrap();
        Subject {
            fs,
            seen,
            db,
            tasks,
            oracle: Oracle::default(),
            random: Random::seeded(seed),
            side: Random::seeded(!seed),
            clock: 10,
            gc: 0,
            synced: 0,
            set,
            held: Vec::new(),
            context: format!("seed {seed}, options '{}'", options::SETS[set]),
            files: 0,
        }
    }

    pub fn key(&mut self) -> Key {
        let family = b'a' + self.random.below(5) as u8;
        match self.random.below(4) {
            0 => vec![family],
            1 => format!("{}{:02}", family as char, self.random.below(12)).into_bytes(),
            2 => {
                let (a, b) = (self.random.below(6), self.random.below(8));
                format!("{}{a:02}/child/{b}", family as char).into_bytes()
            }
            _ => {
                let mut key = vec![family; 1 + self.random.below(20) as usize];
                key.push(self.random.below(256) as u8);
                key
            }
        }
    }

    pub fn span(&mut self) -> (Key, Key) {
        let (a, b) = (self.key(), self.key());
        match self.random.below(6) {
            0 => (Key::new(), vec![0xFF; 30]),
            1 => {
                let mut end = a.clone();
                end.push(0xFF);
                (a, end)
            }
            _ if a <= b => (a, b),
            _ => (b, a),
        }
    }

    pub fn random_batch(&mut self) -> Written {
        self.clock += self.random.below(4);
        let ts = match self.random.below(12) {
            0 => self.clock.saturating_sub(self.random.below(30)),
            1 => self.clock + self.random.below(10),
            _ => self.clock,
        };
        let size = match self.random.below(10) {
            0 => self.random.between(10, 60),
            1..=4 => self.random.between(2, 6),
            _ => 1,
        };
        let mut calls = Vec::new();
        for _ in 0..size {
            calls.push(match self.random.below(20) {
                0..=2 => Call::Delete(self.key()),
                3 => {
                    let (start, end) = self.span();
                    Call::DeleteSpan(start, end)
                }
                _ => {
                    let len = match self.random.below(30) {
                        0 => self.random.below(4_000),
                        1..=5 => self.random.below(200),
                        _ => self.random.below(20),
                    };
                    let mut value = vec![0; len as usize];
                    self.random.fill(&mut value);
                    Call::Put(self.key(), value)
                }
            });
        }
        Written { ts, calls }
    }

    /// Writes one random batch and checks that it is accepted exactly if the contracts allow it.
    pub fn write(&mut self) -> Result<(), Error> {
        let written = self.random_batch();
        self.write_this(written)
    }

    pub fn write_this(&mut self, written: Written) -> Result<(), Error> {
        let mut batch = Batch::at(CommitTs(written.ts));
        for call in &written.calls {
            match call {
                Call::Put(key, value) => batch.put(key, value),
                Call::Delete(key) => batch.delete(key),
                Call::DeleteSpan(start, end) => batch.delete_span(start, end),
                Call::Excise(..) => unreachable!("a batch excises nothing"),
            }
        }
        let allowed = self.oracle.allows(&written, self.gc);
        let how = self.random.below(3);
        let applied = if self.random.chance(3, 4) {
            self.db.apply(batch)
        } else {
            let ts = CommitTs(written.ts);
            // What took its place needs no relief to be right.
            self.db.prepare(batch).and_then(|mut prepared| prepared.apply(ts))
        };
        match applied {
            Ok(pending) => {
                assert!(allowed, "{}: accepted {written:?}", self.context);
                if !written.calls.is_empty() {
                    self.oracle.write(written);
                }
                let batches = self.oracle.batches();
                if self.random.chance(2, 3) {
                    pending.relieve()?;
                }
                match how {
                    0 => {
                        pending.wait_durable()?;
                        self.synced = batches;
                    }
                    1 => pending.wait_written()?,
                    _ => drop(pending),
                }
                Ok(())
            }
            Err(error @ Error::TimestampContract { .. }) => {
                assert!(!allowed, "{}: refused {written:?}: {error}", self.context);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn read_ts(&mut self) -> u64 {
        let top = self.clock + 12;
        match self.random.below(3) {
            0 => u64::MAX - 1,
            _ => self.random.between(self.gc, top.max(self.gc)),
        }
    }

    fn view(&mut self) -> Result<(View, u64, usize), Error> {
        let ts = self.read_ts();
        if !self.held.is_empty() && self.random.chance(1, 4) {
            let at = self.random.below(self.held.len() as u64) as usize;
            return Ok(self.held[at].clone());
        }
        let view = self.db.view(CommitTs(ts))?;
        if self.gc > 0 {
            let below = self.db.view(CommitTs(self.gc - 1));
            assert!(matches!(below, Err(Error::BelowGcThreshold { .. })), "{}", self.context);
        }
        let entry = (view, ts, self.oracle.batches());
        if self.random.chance(1, 10) {
            if self.held.len() > 3 {
                self.held.remove(0);
            }
            self.held.push(entry.clone());
        }
        Ok(entry)
    }

    pub fn check_get(&mut self) -> Result<(), Error> {
        let (view, ts, batches) = self.view()?;
        let key = self.key();
        let found = view.get_with_ts(&key)?.map(|(value, ts)| (value.to_vec(), ts.0));
        let expected = self.oracle.get(&key, ts, batches);
        let context = &self.context;
        assert_eq!(found, expected, "{context}: get {} at {ts}", key.escape_ascii());
        if self.side.chance(1, 8) {
            let now = CommitTs(ts.max(self.gc));
            let story = self.db.explain_get(&key, now)?;
            let expected = self.oracle.get(&key, now.0, self.oracle.batches());
            let said = story.trim_end().ends_with("present");
            assert_eq!(said, expected.is_some(), "{context}: {story}");
        }
        if self.side.chance(1, 6) {
            self.check_get_many(&key, CommitTs(ts.max(self.gc)))?;
        }
        Ok(())
    }

    /// Many keys at once, in order or not, some of them nobody's, one of them twice.
    fn check_get_many(&mut self, key: &Key, ts: CommitTs) -> Result<(), Error> {
        let nobody = [&key[..], b"?"].concat();
        let mut keys = vec![key.clone(), nobody, key.clone()];
        let step = 1 + self.side.below(20) as usize;
        keys.extend(self.oracle.keys().step_by(step).take(30).cloned());
        if self.side.chance(1, 2) {
            keys.sort();
        }
        let asked: Vec<bytes::Bytes> = keys.iter().map(|k| k.to_vec().into()).collect();
        let (found, _) = self.db.get_many(&asked, ts)?;
        assert_eq!(found.len(), keys.len(), "{}", self.context);
        for (key, found) in keys.iter().zip(found) {
            let expected = self.oracle.get(key, ts.0, self.oracle.batches()).map(|(v, _)| v);
            let found = found.map(|value| value.to_vec());
            assert_eq!(found, expected, "{}: {} of many", self.context, key.escape_ascii());
        }
        Ok(())
    }

    pub fn check_scan(&mut self) -> Result<(), Error> {
        let (view, ts, batches) = self.view()?;
        let (start, end) = self.span();
        let reverse = self.random.chance(1, 2);
        let classes =
            if self.random.chance(1, 3) { self.random.below(16) as u32 } else { u32::MAX };
        let limit = self.random.chance(1, 5).then(|| self.random.below(10) as usize);
        let jumps = self.random.chance(1, 3);
        let mut rows = self.oracle.scan(&start, &end, ts, batches);
        rows.retain(|(key, _, _)| classes & (1 << options::class_of(key)) != 0);
        if reverse {
            rows.reverse();
        }
        let fill_cache = self.random.chance(1, 2);
        // Many rows of a block come as a part of it, or one by one.
        let blocks = fill_cache;
        let options = ScanOptions { reverse, classes, limit, fill_cache, blocks };
        let mut scan = view.scan(KeySpan::new(start.clone(), end.clone()), options)?;
        let what = format!(
            "{}: scan [{}, {}) at {ts} reverse {reverse} classes {classes:x} limit {limit:?}",
            self.context,
            start.escape_ascii(),
            end.escape_ascii()
        );
        if jumps {
            self.follow_with_jumps(&mut scan, &rows, reverse, limit, &what)
        } else {
            rows.truncate(limit.unwrap_or(usize::MAX));
            let found = collect(&mut scan)?;
            assert_eq!(found, rows, "{what}");
            Ok(())
        }
    }

    fn follow_with_jumps(
        &mut self,
        scan: &mut Scan,
        rows: &[(Key, Vec<u8>, u64)],
        reverse: bool,
        limit: Option<usize>,
        what: &str,
    ) -> Result<(), Error> {
        let mut at = 0;
        let mut left = limit.unwrap_or(usize::MAX);
        for _ in 0..rows.len() + 5 {
            if self.random.chance(1, 4) {
                let to = self.key();
                scan.seek(&to)?;
                let passed = |key: &Key| if reverse { *key >= to } else { *key < to };
                at += rows[at..].iter().take_while(|(key, _, _)| passed(key)).count();
            }
            let found =
                scan.next_row()?.map(|row| (row.key.to_vec(), row.value.to_vec(), row.ts.0));
            let expected = if left > 0 { rows.get(at).cloned() } else { None };
            assert_eq!(found, expected, "{what} with jumps");
            if found.is_none() {
                return Ok(());
            }
            at += 1;
            left -= 1;
        }
        Ok(())
    }

    pub fn check_newest(&mut self) -> Result<(), Error> {
        let key = self.key();
        let all = usize::MAX;
        // What garbage collection removed may be missing, never more.
        let same = |found: u64, expected: u64, gc: u64| {
            if expected > gc { found == expected } else { found <= expected }
        };
        let (found, expected) = (self.db.max_ts(&key)?.0, self.oracle.max_ts(&key, all));
        assert!(same(found, expected, self.gc), "{}: {found} {expected}", self.context);
        let (start, end) = self.span();
        let expected = self.oracle.max_ts_in_span(&start, &end, u64::MAX);
        let (floor, upto) = (self.read_ts(), self.read_ts());
        let between = self.oracle.max_ts_in_span(&start, &end, upto);
        let span = KeySpan::new(start, end);
        let found = self.db.max_ts_in_span(&span)?.0;
        assert!(same(found, expected, self.gc), "{}: {found} {expected} {span:?}", self.context);
        let found = self.db.newest_above(&span, CommitTs(floor))?.map(|ts| ts.0);
        let expected = (expected > floor).then_some(expected);
        assert_eq!(found, expected, "{}: above {floor} in {span:?}", self.context);
        let found = self.db.newest_between(&span, CommitTs(floor), CommitTs(upto))?.map(|ts| ts.0);
        let expected = (between > floor).then_some(between);
        let context = &self.context;
        assert_eq!(found, expected, "{context}: above {floor} up to {upto} in {span:?}");
        let (view, ts, batches) = self.view()?;
        let found = view.covering_tombstone_ts(&key)?.map_or(0, |ts| ts.0);
        let expected = self.oracle.tombstone(&key, ts, batches);
        // A view keeps what it pinned, but tombstones may be gone from what a new one pins.
        assert!(same(found, expected, self.gc), "{}: tombstone {found} {expected}", self.context);
        Ok(())
    }

    /// Compares everything, at several timestamps, through every kind of read.
    pub fn check_all(&mut self) -> Result<(), Error> {
        let batches = self.oracle.batches();
        for ts in [
            u64::MAX - 1,
            self.clock,
            self.gc,
            self.gc + (self.clock - self.gc.min(self.clock)) / 2,
        ] {
            let ts = ts.max(self.gc);
            let rows = self.oracle.scan(b"", &[0xFF; 40], ts, batches);
            let view = self.db.view(CommitTs(ts))?;
            for reverse in [false, true] {
                let options = ScanOptions { reverse, ..ScanOptions::default() };
                let mut found = collect(&mut view.scan(KeySpan::all(), options)?)?;
                if reverse {
                    found.reverse();
                }
                assert_eq!(found, rows, "{}: all rows at {ts}", self.context);
            }
            for (key, value, ts) in &rows {
                let found = view.get_with_ts(key)?.map(|(value, ts)| (value.to_vec(), ts.0));
                assert_eq!(found, Some((value.clone(), *ts)), "{}", self.context);
            }
        }
        Ok(())
    }

    /// One random step that is not a crash.
    pub fn step(&mut self) -> Result<(), Error> {
        if options::SETS[self.set] == "structural" && self.side.chance(1, 3) {
            let what = self.side.below(7);
            self.restructure(what)?;
        }
        match self.random.below(100) {
            0..=49 => self.write()?,
            50..=64 => self.check_get()?,
            65..=79 => self.check_scan()?,
            80..=85 => self.check_newest()?,
            86..=87 => {
                self.gc = self.random.between(self.gc, self.clock.max(self.gc));
                self.db.set_gc_threshold(CommitTs(self.gc))?;
            }
            88..=89 => {
                self.db.flush()?;
            }
            90 => {
                let (start, end) = self.span();
                self.db.compact_span(&KeySpan::new(start, end))?;
            }
            91..=97 => {
                let what = self.random.below(8);
                self.restructure(what)?;
            }
            98 => {
                let (start, end) = self.span();
                self.db.delete_files_in_range(&KeySpan::new(start, end))?;
            }
            _ => {}
        }
        if self.side.chance(1, 3) {
            self.tasks.run_one();
        }
        Ok(())
    }

    /// Closes and opens again, with another option set.
    pub fn reopen(&mut self, set: usize) -> Result<(), Error> {
        self.held.clear();
        self.db.close()?;
        self.synced = self.oracle.batches();
        let report = check_store(self.seen.clone(), dir())?;
        assert!(report.problems.is_empty(), "{}: {:?}", self.context, report.problems);
        self.tasks.clear();
        self.set = set;
        self.db = open_on(self.seen.clone(), options::set(set, self.tasks.clone()))?;
        assert_eq!(self.db.gc_threshold().0, self.gc, "{}", self.context);
        Ok(())
    }

    /// Replaces the store by one that was recovered from a crash.
    pub fn recover(&mut self, fs: MemFs) -> Result<(), Error> {
        self.held.clear();
        self.tasks.clear();
        self.seen = Arc::new(fs.clone());
        self.fs = fs;
        self.db = open_on(self.seen.clone(), options::set(self.set, self.tasks.clone()))?;
        Ok(())
    }

    pub fn write_durable(&mut self, written: Written) -> Result<(), Error> {
        let mut batch = Batch::at(CommitTs(written.ts));
        for call in &written.calls {
            if let Call::Put(key, value) = call {
                batch.put(key, value);
            }
        }
        self.db.write(batch, Durability::Sync)?;
        self.oracle.write(written);
        self.synced = self.oracle.batches();
        Ok(())
    }
}

pub fn collect(scan: &mut Scan) -> Result<Vec<(Key, Vec<u8>, u64)>, Error> {
    let mut rows = Vec::new();
    loop {
        // Few rows, then many, which may be parts of blocks.
        let most = if rows.is_empty() { 7 } else { 300 };
        let batch = scan.next_batch(most, 1 << 16)?;
        if batch.is_empty() {
            return Ok(rows);
        }
        rows.extend(batch.iter().map(|(key, value, ts)| (key.to_vec(), value.to_vec(), ts.0)));
    }
}
