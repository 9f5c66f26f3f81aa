//! Files to be imported, and jobs that import them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use braid_env::fs::{DiskFs, FileSystem, MemFs};
use braid_env::random::Random;
use braid_sql::{Database, Session};

use super::{database, database_on, run, session};

/// A folder for imports that goes with the test.
pub struct Files(pub PathBuf);

impl Files {
    pub fn new() -> Files {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("braid-import-{}-{n}", std::process::id());
        let path = std::env::temp_dir().join(name);
        DiskFs.create_dir_all(&path).unwrap();
        Files(path)
    }

    /// A database on these files that imports from here, and a session.
    pub fn database_on(&self, fs: &MemFs) -> (Arc<Database>, Session) {
        let db = database_on(fs.clone());
        db.set_import_folder(&self.0);
        let s = session(&db);
        (db, s)
    }

    /// A database that imports from here, and a session.
    pub fn database(&self) -> (Arc<Database>, Session) {
        let db = database();
        db.set_import_folder(&self.0);
        let s = session(&db);
        (db, s)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) -> &Files {
        let path = self.0.join(name);
        DiskFs.create_dir_all(path.parent().unwrap()).unwrap();
        DiskFs.create(&path).unwrap().write_at(content.as_ref(), 0).unwrap();
        self
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) {
        let path = self.0.join(name);
        if DiskFs.exists(&path).unwrap() {
            DiskFs.remove(&path).unwrap();
        }
    }

    pub fn text(&self, name: &str) -> String {
        let bytes = braid_env::fs::read_all(&DiskFs, &self.0.join(name)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    pub fn names(&self) -> Vec<String> {
        DiskFs.list(&self.0).unwrap()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until a job has ended; its state and error.
pub fn ended(s: &mut Session, job: &str) -> (String, String) {
    for _ in 0..600 {
        let jobs = run(s, "show jobs").rows;
        let found = jobs.into_iter().find(|j| j[0] == job);
        if let Some(j) = found.filter(|j| !["running", "paused"].contains(&&*j[3])) {
            return (j[3].clone(), j[6].clone());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("job {job} does not end");
}

/// Damages a file in one place.
pub fn mutate(content: &mut Vec<u8>, random: &mut Random) {
    let length = content.len().max(1) as u64;
    // Headers and footers are short, and say the most.
    let at = match random.below(8) {
        0 => random.below(length.min(256)),
        1 => length - 1 - random.below(length.min(2048)),
        _ => random.below(length),
    } as usize;
    match random.below(7) {
        0 => content.truncate(at),
        1 if at < content.len() => content[at] = random.next_u64() as u8,
        2 if at < content.len() => content[at] ^= 1 << random.below(8),
        3 => {
            let end = (at + random.below(16) as usize).min(content.len());
            content.drain(at..end);
        }
        4 => {
            let end = (at + random.below(64) as usize).min(content.len());
            let again = content[at..end].to_vec();
            content.splice(at..at, again);
        }
        5 => {
            // Numbers that are too large, or negative.
            let end = (at + [4, 8][random.below(2) as usize]).min(content.len());
            let with = [0, 0x7f, 0x80, 0xff][random.below(4) as usize];
            content[at.min(end)..end].fill(with);
        }
        _ => {
            let special = b"\"\n,\\{}[]\0\xff:-";
            let special = special[random.below(special.len() as u64) as usize];
            content.insert(at.min(content.len()), special);
        }
    }
}
