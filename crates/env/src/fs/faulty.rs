//! A file system that fails on purpose, by rules.
//!
//! A rule is one line of a small language:
//!
//! ```text
//!   <operation>(<part of the file name>) [nth=N] [times=N] [p=F] -> <outcome>
//!
//!   write(.wal) nth=37            -> EIO
//!   sync(*) p=0.01 times=5        -> ENOSPC
//!   write(.sst) nth=2             -> short
//!   sync(MANIFEST)                -> lies
//!   read(.sst) nth=3              -> flip
//! ```
//!
//! Operations: `create open read write sync allocate rename link remove list syncdir`, or `any`.
//! Outcomes: `EIO`, `ENOSPC`, `short` (half of the write happens, then EIO), `lies` (sync says yes
//! and does nothing), `flip` (one bit of what is read is wrong). `nth` counts matching calls from
//! 1; `times` is how often the rule fires at most (default 1, with `p` unlimited).
//!
//! After a failed sync a file is poisoned: every later sync of it fails too, because a kernel that
//! could not write a page may have dropped it. Nobody may believe a retry.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{DirLock, File, FileSystem, Space};
use crate::random::Random;

/// What happens instead of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Fails with an I/O error.
    Eio,
    /// Fails because the device is full.
    Enospc,
    /// Half of a write happens, then an I/O error.
    Short,
    /// A sync returns success and does nothing.
    Lies,
    /// A read returns with one bit changed.
    Flip,
}

/// One rule; see the module for the language.
#[derive(Debug, Clone)]
pub struct FaultRule {
    operation: String,
    name: String,
    nth: u64,
    times: u64,
    probability: f64,
    outcome: Outcome,
    matched: u64,
    fired: u64,
}

impl FaultRule {
    /// Reads one line of the rule language; the error says what is wrong with it.
    pub fn parse(line: &str) -> Result<FaultRule, String> {
        let (left, outcome) =
            line.split_once("->").ok_or_else(|| format!("no '->' in rule '{line}'"))?;
        let outcome = match outcome.trim() {
            "EIO" => Outcome::Eio,
            "ENOSPC" => Outcome::Enospc,
            "short" => Outcome::Short,
            "lies" => Outcome::Lies,
            "flip" => Outcome::Flip,
            other => return Err(format!("unknown outcome '{other}'")),
        };
        let (operation, rest) =
            left.split_once('(').ok_or_else(|| format!("no '(' in rule '{line}'"))?;
        let (name, options) =
            rest.split_once(')').ok_or_else(|| format!("no ')' in rule '{line}'"))?;
        let mut rule = FaultRule {
            operation: operation.trim().to_string(),
            name: if name.trim() == "*" { String::new() } else { name.trim().to_string() },
            nth: 1,
            times: 1,
            probability: 1.0,
            outcome,
            matched: 0,
            fired: 0,
        };
        for option in options.split_whitespace() {
            let (key, value) =
                option.split_once('=').ok_or_else(|| format!("no '=' in '{option}'"))?;
            let bad = |_| format!("'{value}' is not a number");
            match key {
                "nth" => rule.nth = value.parse().map_err(bad)?,
                "times" => rule.times = value.parse().map_err(bad)?,
                "p" => {
                    rule.probability =
                        value.parse().map_err(|_| format!("'{value}' is not a number"))?;
                    rule.times = u64::MAX;
                }
                other => return Err(format!("unknown option '{other}'")),
            }
        }
        Ok(rule)
    }

    fn hits(&mut self, operation: &str, path: &Path, random: &mut Random) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if (self.operation != "any" && self.operation != operation) || !name.contains(&self.name) {
            return false;
        }
        self.matched += 1;
        if self.matched < self.nth || self.fired >= self.times {
            return false;
        }
        if self.probability < 1.0 && random.fraction() >= self.probability {
            return false;
        }
        self.fired += 1;
        true
    }
}

struct Rules {
    rules: Vec<FaultRule>,
    random: Random,
}

struct Shared {
    rules: Mutex<Rules>,
    operations: AtomicU64,
}

impl Shared {
    fn judge(&self, operation: &str, path: &Path) -> Option<Outcome> {
        self.operations.fetch_add(1, Ordering::SeqCst);
        let mut rules = self.rules.lock();
        let Rules { rules, random } = &mut *rules;
        let mut outcome = None;
        for rule in rules {
            if rule.hits(operation, path, random) && outcome.is_none() {
                outcome = Some(rule.outcome);
            }
        }
        outcome
    }

    fn check(&self, operation: &str, path: &Path) -> io::Result<()> {
        match self.judge(operation, path) {
            None | Some(Outcome::Lies | Outcome::Flip) => Ok(()),
            Some(outcome) => Err(error_of(outcome)),
        }
    }
}

fn error_of(outcome: Outcome) -> io::Error {
    match outcome {
        Outcome::Enospc => io::Error::new(io::ErrorKind::StorageFull, "injected: device full"),
        _ => io::Error::other("injected: input/output error"),
    }
}

/// Wraps a file system and makes operations fail by rules.
#[derive(Clone)]
pub struct FaultFs {
    base: Arc<dyn FileSystem>,
    shared: Arc<Shared>,
}

impl FaultFs {
    /// Wraps `base` without any rule yet; `seed` drives rules with a probability.
    pub fn new(base: Arc<dyn FileSystem>, seed: u64) -> FaultFs {
        FaultFs {
            base,
            shared: Arc::new(Shared {
                rules: Mutex::new(Rules { rules: Vec::new(), random: Random::seeded(seed) }),
                operations: AtomicU64::new(0),
            }),
        }
    }

    /// Adds a rule in the language of this module.
    pub fn add_rule(&self, line: &str) -> Result<(), String> {
        let rule = FaultRule::parse(line)?;
        self.shared.rules.lock().rules.push(rule);
        Ok(())
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.shared.rules.lock().rules.clear();
    }

    /// Number of operations so far: a campaign runs a script once to count them, then fails each.
    pub fn operations(&self) -> u64 {
        self.shared.operations.load(Ordering::SeqCst)
    }

    fn wrap(&self, path: &Path, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultFile {
            base: file,
            path: path.to_path_buf(),
            shared: self.shared.clone(),
            poisoned: AtomicBool::new(false),
        })
    }
}

struct FaultFile {
    base: Arc<dyn File>,
    path: std::path::PathBuf,
    shared: Arc<Shared>,
    poisoned: AtomicBool,
}

impl File for FaultFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let outcome = self.shared.judge("read", &self.path);
        if let Some(outcome @ (Outcome::Eio | Outcome::Enospc | Outcome::Short)) = outcome {
            return Err(error_of(outcome));
        }
        let n = self.base.read_at(buffer, offset)?;
        if outcome == Some(Outcome::Flip) && n > 0 {
            buffer[n / 2] ^= 0x10;
        }
        Ok(n)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        match self.shared.judge("write", &self.path) {
            None | Some(Outcome::Lies | Outcome::Flip) => self.base.write_at(data, offset),
            Some(Outcome::Short) => {
                self.base.write_at(&data[..data.len() / 2], offset)?;
                Err(error_of(Outcome::Short))
            }
            Some(outcome) => Err(error_of(outcome)),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.base.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.shared.check("allocate", &self.path)?;
        self.base.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.shared.check("allocate", &self.path)?;
        self.base.allocate(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected: an earlier sync of this file failed"));
        }
        match self.shared.judge("sync", &self.path) {
            None | Some(Outcome::Flip) => self.base.sync_data(),
            Some(Outcome::Lies) => Ok(()),
            Some(outcome) => {
                self.poisoned.store(true, Ordering::SeqCst);
                Err(error_of(outcome))
            }
        }
    }
}

impl FileSystem for FaultFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.shared.check("create", path)?;
        Ok(self.wrap(path, self.base.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.shared.check("open", path)?;
        Ok(self.wrap(path, self.base.open(path)?))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.shared.check("open", path)?;
        Ok(self.wrap(path, self.base.open_write(path)?))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.base.create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        match self.shared.judge("syncdir", path) {
            None | Some(Outcome::Flip) => self.base.sync_dir(path),
            Some(Outcome::Lies) => Ok(()),
            Some(outcome) => Err(error_of(outcome)),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.shared.check("rename", to)?;
        self.base.rename(from, to)
    }

    fn link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        self.shared.check("link", new)?;
        self.base.link(existing, new)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.shared.check("remove", path)?;
        self.base.remove(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.shared.check("list", path)?;
        self.base.list(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.base.exists(path)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.base.space(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirLock>> {
        self.base.lock(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::MemFs;

    #[test]
    fn the_nth_matching_operation_fails_once() {
        let fs = FaultFs::new(Arc::new(MemFs::new()), 1);
        fs.add_rule("write(.wal) nth=2 -> EIO").unwrap();
        let wal = fs.create(Path::new("/d/1.wal")).unwrap();
        let sst = fs.create(Path::new("/d/1.sst")).unwrap();
        wal.write_at(b"a", 0).unwrap();
        sst.write_at(b"a", 0).unwrap();
        assert!(wal.write_at(b"a", 1).is_err());
        wal.write_at(b"a", 1).unwrap();
    }

    #[test]
    fn a_failed_sync_is_never_retried_into_success() {
        let fs = FaultFs::new(Arc::new(MemFs::new()), 1);
        fs.add_rule("sync(*) -> ENOSPC").unwrap();
        let file = fs.create(Path::new("/d/a")).unwrap();
        assert_eq!(file.sync_data().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(file.sync_data().is_err());
    }

    #[test]
    fn a_rule_with_a_mistake_says_which() {
        assert!(FaultRule::parse("write(*) -> EOHNO").unwrap_err().contains("EOHNO"));
        assert!(FaultRule::parse("write(*) nth=x -> EIO").unwrap_err().contains('x'));
        assert!(FaultRule::parse("write(*").is_err());
    }
}
