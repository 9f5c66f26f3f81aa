//! Durable names: one sync of the directory for all who wait for one.
//!
//! ```text
//!   a  links  asks ─► syncs ─────────────────► done
//!   b     links  asks ... waits ...            ─► syncs ─────► done     for b and c
//!   c          links  asks ... waits ...                       ─► done
//! ```
//! A sync that runs already may have missed a name that came later, so the next one counts for
//! all who asked meanwhile.

use std::io;
use std::path::Path;

use braid_env::fs::FileSystem;
use parking_lot::{Condvar, Mutex};

/// See the [module documentation](self).
#[derive(Default)]
pub(crate) struct NameSyncs {
    round: Mutex<Round>,
    ended: Condvar,
}

#[derive(Default)]
struct Round {
    /// How many have asked.
    asked: u64,
    /// Of them, so many have their sync.
    done: u64,
    runs: bool,
}

impl NameSyncs {
    /// Makes all names durable that the caller has made. Blocks on the device; without any lock.
    pub(crate) fn sync(&self, fs: &dyn FileSystem, dir: &Path) -> io::Result<()> {
        let mut round = self.round.lock();
        round.asked += 1;
        let own = round.asked;
        while round.runs {
            self.ended.wait(&mut round);
            if round.done >= own {
                return Ok(());
            }
        }
        round.runs = true;
        let upto = round.asked;
        drop(round);
        let synced = fs.sync_dir(dir);
        let mut round = self.round.lock();
        round.runs = false;
        if synced.is_ok() {
            round.done = round.done.max(upto);
        }
        // Without success the next one tries it.
        self.ended.notify_all();
        synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::fs::MemFs;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn many_share_few_syncs_and_each_has_its_own() {
        let (fs, syncs, done) = (MemFs::new(), NameSyncs::default(), AtomicU64::new(0));
        let dir = Path::new("db");
        fs.create_dir_all(dir).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (fs, syncs, done) = (&fs, &syncs, &done);
                scope.spawn(move || {
                    for n in 0..50 {
                        let path = dir.join(format!("{thread}-{n}"));
                        fs.create(&path).unwrap().sync_data().unwrap();
                        syncs.sync(fs, dir).unwrap();
                        // A crash now keeps it.
                        let random = &mut braid_env::random::Random::seeded(n);
                        let policy = braid_env::fs::CrashPolicy::LoseAll;
                        assert!(fs.crash_clone(random, policy).exists(&path).unwrap());
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(done.load(Ordering::Relaxed), 200);
        assert!(syncs.sync(&fs, Path::new("nowhere")).is_err() || syncs.round.lock().done == 201);
    }
}
