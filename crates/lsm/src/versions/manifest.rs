//! The manifest: the file of version edits, and `CURRENT`, which names it.
//!
//! Records are framed as in the wal. Every open writes a new manifest that begins with a snapshot
//! edit, so that an old one is only ever read; so does a manifest that has become much larger than
//! its snapshot ([`Manifest::rotate`]). `CURRENT` holds the name and a checksum; it is replaced by
//! write, sync, rename, directory sync. Until the rename the old manifest is the current one and
//! says the same.
//!
//! An edit is durable when [`Manifest::append`] returns. If that fails, what is on disk is not
//! known, and the manifest refuses all later edits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::{File, FileSystem, read_all};
use braid_env::random::Random;
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::edit::Edit;
use super::sst_meta::SstFacts;
use super::version::Version;
use crate::error::{Error, Result};
use crate::versions::SstEnv;
use crate::wal::{
    Framer, LogFacts, LogMark, LogWitness, SegmentEnd, SpaceReserve, any_number, read_segment,
};

/// The store format that this build writes and reads.
///
/// 2: a store has an identity, wal segments have heads, and the manifest knows how far the log
/// reaches. A store of version 1 becomes one of version 2 when it is opened.
const FORMAT_VERSION: u32 = 2;

/// Name of a manifest's file.
pub(crate) fn manifest_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("MANIFEST-{number:06}"))
}

/// What a manifest says.
#[derive(Clone)]
pub(crate) struct Recovered {
    pub(crate) number: u64,
    pub(crate) version: Arc<Version>,
    pub(crate) wal_floor: u64,
    pub(crate) next_file: u64,
    pub(crate) next_arrival: u64,
    pub(crate) gc_threshold: u64,
    pub(crate) newest_ts: u64,
    /// Ingests and excises whose records may still be in the wal, though they are in the version:
    /// wal segment and number.
    pub(crate) installed: Vec<(u64, u64)>,
    /// Identity of the store; 0 in format version 1.
    pub(crate) store: u64,
    /// The log is durable at least up to here.
    pub(crate) log_mark: LogMark,
    /// Wal segments from here on begin with a head.
    pub(crate) chained_from: u64,
    /// The manifest is sealed: the store was closed, and the log ends at the mark.
    pub(crate) closed: bool,
}

impl Recovered {
    /// The state of a new store.
    pub(crate) fn new_store() -> Recovered {
        let mut recovered = Recovered { chained_from: 1, ..Recovered::fresh() };
        recovered.name_store();
        recovered
    }

    /// Gives the store an identity if it has none.
    pub(crate) fn name_store(&mut self) {
        if self.store == 0 {
            self.store = Random::from_entropy().next_u64() | 1;
        }
    }

    /// What recovery must find of the log.
    pub(crate) fn log(&self) -> LogFacts {
        LogFacts {
            store: self.store,
            floor: self.wal_floor,
            chained_from: self.chained_from,
            mark: self.log_mark,
            // Version 1 did not say where the log ends.
            closed: self.closed && self.store != 0,
        }
    }

    /// Nothing is known yet.
    pub(crate) fn fresh() -> Recovered {
        Recovered {
            number: 0,
            version: Arc::new(Version::empty()),
            wal_floor: 1,
            next_file: 1,
            next_arrival: 1,
            gc_threshold: 0,
            newest_ts: 0,
            installed: Vec::new(),
            store: 0,
            log_mark: LogMark::default(),
            chained_from: u64::MAX,
            closed: false,
        }
    }

    /// An edit that says all of it.
    pub(crate) fn snapshot(&self) -> Edit {
        Edit {
            added: self.version.ssts().map(|sst| sst.facts().clone()).collect(),
            dropped: Vec::new(),
            wal_floor: Some(self.wal_floor),
            next_file: Some(self.next_file),
            gc_threshold: Some(self.gc_threshold),
            format_version: Some(FORMAT_VERSION),
            newest_ts: Some(self.newest_ts),
            next_arrival: Some(self.next_arrival),
            snapshot: true,
            installed: self.installed.clone(),
            store: Some(self.store),
            log_mark: Some(self.log_mark),
            chained_from: Some(self.chained_from),
            time: None,
            reason: None,
        }
    }

    /// Takes an edit in. Ssts gather in `live`; a version is made of them once, at the end.
    fn apply(
        &mut self,
        edit: Edit,
        live: &mut BTreeMap<u64, SstFacts>,
    ) -> std::result::Result<(), String> {
        if edit.snapshot {
            live.clear();
        }
        self.note(&edit);
        for file_no in &edit.dropped {
            live.remove(file_no)
                .ok_or_else(|| format!("drops sst {file_no}, which is not live"))?;
        }
        for new in edit.added {
            let file_no = new.file_no;
            if live.insert(file_no, new).is_some() {
                return Err(format!("adds sst {file_no}, which is live already"));
            }
        }
        Ok(())
    }

    /// Takes in all of an edit but its ssts.
    fn note(&mut self, edit: &Edit) {
        if edit.snapshot {
            self.installed.clear();
        }
        let take = |slot: &mut u64, value: Option<u64>| *slot = value.unwrap_or(*slot);
        take(&mut self.wal_floor, edit.wal_floor);
        take(&mut self.next_file, edit.next_file);
        take(&mut self.gc_threshold, edit.gc_threshold);
        take(&mut self.newest_ts, edit.newest_ts);
        take(&mut self.next_arrival, edit.next_arrival);
        take(&mut self.store, edit.store);
        take(&mut self.chained_from, edit.chained_from);
        // Whoever made the edit may have looked at the log before another edit said more.
        self.log_mark = self.log_mark.max(edit.log_mark.unwrap_or_default());
        self.installed.extend(&edit.installed);
        let floor = self.wal_floor;
        self.installed.retain(|(segment, _)| *segment >= floor);
    }
}

/// Reads `CURRENT` and the manifest it names; `None` if there is no store yet.
pub(crate) fn load_manifest(env: &SstEnv) -> Result<Option<Recovered>> {
    let current = env.dir.join("CURRENT");
    let io = |error| Error::io(format!("reading {}", current.display()), &error);
    if !env.fs.exists(&current).map_err(io)? {
        check_never_current(env, 0)?;
        return Ok(None);
    }
    let text = read_all(&*env.fs, &current).map_err(io)?;
    let (number, store) = parse_current(&text)
        .ok_or_else(|| Error::corruption(&current, 0, "CURRENT does not name a manifest"))?;
    check_never_current(env, number)?;
    let recovered = read_manifest(env, number)?;
    if recovered.store != store {
        let (expected, found) = (store, recovered.store);
        let reason = format!("expected store {expected:016x} as CURRENT says, found {found:016x}");
        return Err(Error::corruption(manifest_path(&env.dir, number), 0, reason));
    }
    Ok(Some(recovered))
}

fn read_manifest(env: &SstEnv, number: u64) -> Result<Recovered> {
    let path = manifest_path(&env.dir, number);
    let io = |error| Error::io(format!("reading {}", path.display()), &error);
    if !env.fs.exists(&path).map_err(io)? {
        return Err(Error::corruption(path, 0, "CURRENT names this manifest, but it is missing"));
    }
    let mut recovered = Recovered { number, ..Recovered::fresh() };
    let mut edits = 0u64;
    let mut live = BTreeMap::new();
    let read = read_segment(&*env.fs, &path, number, &mut |offset, record| {
        let edit =
            Edit::decode(record).map_err(|reason| Error::corruption(&path, offset, reason))?;
        if let Some(found) = edit.format_version.filter(|version| *version > FORMAT_VERSION) {
            let supported = FORMAT_VERSION;
            return Err(Error::FormatTooNew { file: path.clone(), found, supported });
        }
        if edits == 0 && !edit.snapshot {
            return Err(Error::corruption(&path, offset, "the first edit is not a snapshot"));
        }
        edits += 1;
        recovered.apply(edit, &mut live).map_err(|reason| Error::corruption(&path, offset, reason))
    })?;
    if edits == 0 {
        // CURRENT was written after the snapshot was durable.
        let found = any_number(&*env.fs, &path).map_err(io)?;
        let found = found.map_or("none".into(), |found| format!("that of file number {found}"));
        let reason = format!("expected the snapshot of manifest {number}, found {found}");
        return Err(Error::corruption(&path, 0, reason));
    }
    match read.end {
        SegmentEnd::Sealed => recovered.closed = true,
        SegmentEnd::Torn { at, .. } => tracing::debug!(at, "the manifest ends without a seal"),
    }
    let all = Edit { added: live.into_values().collect(), ..Edit::default() };
    recovered.version = Arc::new(Version::empty().apply(&all, env, &[]).0);
    Ok(recovered)
}

/// Manifests behind the one that CURRENT names were never current: a crash came before that. One
/// that was has an edit behind its snapshot.
fn check_never_current(env: &SstEnv, current: u64) -> Result<()> {
    let io = |error| Error::io(format!("reading {}", env.dir.display()), &error);
    let names = env.fs.list(&env.dir).map_err(io)?;
    for number in manifest_numbers(&names).into_iter().filter(|number| *number > current) {
        let (path, mut edits) = (manifest_path(&env.dir, number), 0);
        let read = read_segment(&*env.fs, &path, number, &mut |_, _| {
            edits += 1;
            Ok(())
        });
        if edits > 1 || read.is_ok_and(|read| read.end == SegmentEnd::Sealed) {
            let path = env.dir.join("CURRENT");
            let reason = match current {
                0 => format!("it is missing, but manifest {number} was current"),
                _ => format!("it names manifest {current}, but {number} was current after that"),
            };
            return Err(Error::corruption(path, 0, reason));
        }
    }
    Ok(())
}

/// Numbers of the manifests among the names of a directory, ascending.
pub(crate) fn manifest_numbers(names: &[String]) -> Vec<u64> {
    let number = |name: &String| name.strip_prefix("MANIFEST-")?.parse().ok();
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// Visits the edits of all manifests that are kept, up to the current one, oldest first. An old one
/// with damage is shown as far as it goes.
pub(crate) fn manifest_edits(env: &SstEnv, visit: &mut dyn FnMut(u64, Edit)) -> Result<()> {
    let io = |error| Error::io(format!("reading {}", env.dir.display()), &error);
    let names = env.fs.list(&env.dir).map_err(io)?;
    let text = read_all(&*env.fs, &env.dir.join("CURRENT")).map_err(io)?;
    let (current, _) = parse_current(&text).ok_or_else(|| {
        Error::corruption(env.dir.join("CURRENT"), 0, "CURRENT does not name a manifest")
    })?;
    for number in manifest_numbers(&names).into_iter().filter(|number| *number <= current) {
        let path = manifest_path(&env.dir, number);
        let read = read_segment(&*env.fs, &path, number, &mut |offset, record| {
            let edit =
                Edit::decode(record).map_err(|reason| Error::corruption(&path, offset, reason))?;
            visit(number, edit);
            Ok(())
        });
        match read {
            Err(error) if number == current => return Err(error),
            Err(error) => tracing::warn!(%error, "an old manifest is shown in part"),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// The text of CURRENT. Of format version 1 (`store` is 0) it has no identity.
fn current_text(number: u64, store: u64) -> String {
    let name = match store {
        0 => format!("MANIFEST-{number:06}"),
        _ => format!("MANIFEST-{number:06} {store:016x}"),
    };
    format!("{name} {:016x}\n", xxh3_64(name.as_bytes()))
}

/// Number of the manifest, and the store's identity.
fn parse_current(text: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(text).ok()?;
    let words: Vec<&str> = text.strip_prefix("MANIFEST-")?.split(' ').collect();
    let number = words.first()?.parse().ok()?;
    let store = match words.len() {
        3 => u64::from_str_radix(words[1], 16).ok()?,
        _ => 0,
    };
    (current_text(number, store) == text).then_some((number, store))
}

/// Lets the manifest know of new wal segments.
pub(crate) struct ManifestWitness {
    pub(crate) manifest: Arc<Mutex<Manifest>>,
    pub(crate) reserve: Arc<dyn SpaceReserve>,
}

impl LogWitness for ManifestWitness {
    fn segment_begun(&self, mark: LogMark) -> Result<()> {
        let edit = Edit { log_mark: Some(mark), ..Edit::default() };
        self.manifest.lock().append(&edit, &*self.reserve)
    }
}

/// The manifest that is being written.
pub(crate) struct Manifest {
    file: Arc<dyn File>,
    path: PathBuf,
    framer: Framer,
    synced: u64,
    failed: Option<Error>,
    /// All that it says, except for its ssts.
    said: Recovered,
    /// Bytes of the snapshot that it began with.
    snapshot_len: u64,
    /// A rotation is not tried before it has so many bytes.
    rotate_at: u64,
}

/// A manifest is rotated when it has become so many times as long as its snapshot.
const ROTATE_TIMES: u64 = 4;

impl Manifest {
    /// Starts manifest `number` with a snapshot and makes it the current one.
    pub(crate) fn create(
        fs: &dyn FileSystem,
        dir: &Path,
        number: u64,
        snapshot: &Edit,
        reserve: &dyn SpaceReserve,
    ) -> Result<Manifest> {
        let mut manifest = Manifest::prepare(fs, dir, number, snapshot, reserve)?;
        manifest.make_current(fs, dir)?;
        manifest.confirm(reserve)?;
        Ok(manifest)
    }

    /// A durable manifest, and a durable `CURRENT.tmp` that names it.
    fn prepare(
        fs: &dyn FileSystem,
        dir: &Path,
        number: u64,
        snapshot: &Edit,
        reserve: &dyn SpaceReserve,
    ) -> Result<Manifest> {
        let path = manifest_path(dir, number);
        let io = |error| Error::io(format!("creating {}", path.display()), &error);
        let file = fs.create(&path).map_err(io)?;
        let mut manifest = Manifest {
            file,
            path: path.clone(),
            framer: Framer::new(number),
            synced: 0,
            failed: None,
            said: Recovered { number, ..Recovered::fresh() },
            snapshot_len: 0,
            rotate_at: 0,
        };
        manifest.append(snapshot, reserve)?;
        manifest.snapshot_len = manifest.framer.position();
        fs.sync_dir(dir).map_err(io)?;
        let temporary = dir.join("CURRENT.tmp");
        let current = fs.create(&temporary).map_err(io)?;
        let text = current_text(number, manifest.said.store);
        current.write_at(text.as_bytes(), 0).map_err(io)?;
        current.sync_data().map_err(io)?;
        Ok(manifest)
    }

    fn make_current(&self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        let (from, to) = (dir.join("CURRENT.tmp"), dir.join("CURRENT"));
        let renamed = fs.rename(&from, &to).and_then(|()| fs.sync_dir(dir));
        renamed.map_err(|error| Error::io(format!("replacing {}", to.display()), &error))
    }

    /// Puts an edit behind the snapshot: it says that this manifest was current once.
    fn confirm(&mut self, reserve: &dyn SpaceReserve) -> Result<()> {
        let edit = Edit { reason: Some("this manifest is current".into()), ..Edit::default() };
        self.append(&edit, reserve)
    }

    /// If it is longer than `least` bytes and much longer than its snapshot was: goes on in a new
    /// file that begins with a snapshot of `version`, the ssts that it says are live. True if it
    /// did. A failure leaves all as it was, or, if it is not known which manifest is current now,
    /// lets this one refuse all later edits.
    pub(crate) fn rotate(
        &mut self,
        fs: &dyn FileSystem,
        dir: &Path,
        version: &Arc<Version>,
        least: u64,
        reserve: &dyn SpaceReserve,
    ) -> bool {
        let len = self.framer.position();
        let limit = least.max(self.snapshot_len.saturating_mul(ROTATE_TIMES)).max(self.rotate_at);
        if len < limit || self.failed.is_some() {
            return false;
        }
        let number = self.said.number + 1;
        let next = Recovered { version: version.clone(), number, ..self.said.clone() };
        let prepared = Manifest::prepare(fs, dir, number, &next.snapshot(), reserve);
        let next = match prepared {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "the manifest goes on as it is");
                self.rotate_at = len.saturating_mul(2);
                return false;
            }
        };
        if let Err(error) = next.make_current(fs, dir) {
            tracing::error!(%error, "nobody knows which manifest is current");
            self.failed = Some(error);
            return false;
        }
        *self = next;
        if let Err(error) = self.confirm(reserve) {
            // If it was not for lack of room, the next edit says so.
            tracing::warn!(%error, "cannot write the second edit of a manifest");
        }
        true
    }

    /// Its number.
    pub(crate) fn number(&self) -> u64 {
        self.said.number
    }

    /// Appends an edit; durable when it returns. `DiskFull` if there is no room even with the
    /// reserve: nothing was appended then, and a later try may succeed.
    pub(crate) fn append(&mut self, edit: &Edit, reserve: &dyn SpaceReserve) -> Result<()> {
        let mut out = Vec::new();
        let before = self.framer.clone();
        self.framer.frame(&edit.encode(), self.synced, &mut out);
        self.write(before, &out, reserve)?;
        self.said.note(edit);
        Ok(())
    }

    /// Marks the end, at a clean close: damage in front of it can then be told from a torn tail.
    pub(crate) fn seal(&mut self, reserve: &dyn SpaceReserve) -> Result<()> {
        let mut out = Vec::new();
        let before = self.framer.clone();
        self.framer.seal(self.synced, &mut out);
        self.write(before, &out, reserve)?;
        self.failed = Some(Error::Closed);
        Ok(())
    }

    fn write(&mut self, before: Framer, bytes: &[u8], reserve: &dyn SpaceReserve) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let full = |error: &std::io::Error| error.kind() == std::io::ErrorKind::StorageFull;
        let at = before.position();
        let mut written = self.file.write_at(bytes, at);
        if written.as_ref().is_err_and(full) && reserve.release() {
            written = self.file.write_at(bytes, at);
        }
        if written.as_ref().is_err_and(full) {
            self.framer = before;
            return Err(Error::DiskFull);
        }
        match written.and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.synced = self.framer.position();
                Ok(())
            }
            Err(error) => {
                let error = Error::io(format!("writing {}", self.path.display()), &error);
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::BlockCache;
    use braid_env::fs::MemFs;

    struct Nothing;

    impl SpaceReserve for Nothing {
        fn release(&self) -> bool {
            false
        }
    }

    fn env() -> SstEnv {
        SstEnv {
            fs: Arc::new(MemFs::new()),
            dir: PathBuf::from("/store"),
            cache: Arc::new(BlockCache::new(1 << 16)),
            l0_sublevels: true,
        }
    }

    #[test]
    fn a_store_of_a_newer_format_is_refused_with_its_version() {
        let env = env();
        let edit = Edit { format_version: Some(7), ..Recovered::fresh().snapshot() };
        Manifest::create(&*env.fs, &env.dir, 1, &edit, &Nothing).unwrap();
        let error = load_manifest(&env).err().unwrap();
        assert!(matches!(error, Error::FormatTooNew { found: 7, supported: 2, .. }), "{error}");
    }

    #[test]
    fn edits_come_back_and_a_sealed_manifest_takes_no_more() {
        let env = env();
        let snapshot = Recovered::fresh().snapshot();
        let mut manifest = Manifest::create(&*env.fs, &env.dir, 4, &snapshot, &Nothing).unwrap();
        let edit = Edit { gc_threshold: Some(9), wal_floor: Some(3), ..Edit::default() };
        manifest.append(&edit, &Nothing).unwrap();
        manifest.seal(&Nothing).unwrap();
        assert!(manifest.append(&edit, &Nothing).is_err());
        let recovered = load_manifest(&env).unwrap().unwrap();
        assert_eq!((recovered.number, recovered.gc_threshold, recovered.wal_floor), (4, 9, 3));
    }

    #[test]
    fn a_long_manifest_goes_on_in_a_new_file_that_says_the_same() {
        let env = env();
        let snapshot = Recovered::fresh().snapshot();
        let mut manifest = Manifest::create(&*env.fs, &env.dir, 4, &snapshot, &Nothing).unwrap();
        let version = Arc::new(Version::empty());
        let mut rotations = 0;
        for n in 1..100 {
            let edit = Edit {
                next_file: Some(n),
                wal_floor: Some(n / 10),
                installed: vec![(n / 10, n)],
                ..Edit::default()
            };
            manifest.append(&edit, &Nothing).unwrap();
            rotations += u64::from(manifest.rotate(&*env.fs, &env.dir, &version, 300, &Nothing));
            let recovered = load_manifest(&env).unwrap().unwrap();
            assert_eq!((recovered.number, recovered.next_file), (4 + rotations, n));
            let installed: Vec<(u64, u64)> = (n / 10 * 10..=n).map(|n| (n / 10, n)).collect();
            let since_one = installed.into_iter().filter(|(_, n)| *n > 0).collect::<Vec<_>>();
            assert_eq!(recovered.installed, since_one);
        }
        assert!((3..30).contains(&rotations), "{rotations}");
    }

    #[test]
    fn a_rotation_that_fails_loses_nothing() {
        let steps = ["create(MANIFEST-000005)", "write(MANIFEST-000005)", "sync(MANIFEST-000005)"];
        let later = ["create(CURRENT)", "write(CURRENT)", "sync(CURRENT)", "rename(CURRENT)"];
        let names = ["syncdir(store)", "syncdir(store) nth=2"];
        for step in steps.into_iter().chain(later).chain(names) {
            let memory = MemFs::new();
            let faulty = Arc::new(braid_env::fs::FaultFs::new(Arc::new(memory.clone()), 1));
            let env = SstEnv { fs: faulty.clone(), ..env() };
            let snapshot = Recovered::fresh().snapshot();
            let mut manifest =
                Manifest::create(&*env.fs, &env.dir, 4, &snapshot, &Nothing).unwrap();
            let edit = |n| Edit { next_file: Some(n), ..Edit::default() };
            (1..=50).for_each(|n| manifest.append(&edit(n), &Nothing).unwrap());
            faulty.add_rule(&format!("{step} -> EIO")).unwrap();
            let version = Arc::new(Version::empty());
            assert!(!manifest.rotate(&*env.fs, &env.dir, &version, 1, &Nothing), "{step}");
            let last = if manifest.append(&edit(51), &Nothing).is_ok() { 51 } else { 50 };
            // From the rename on, nobody knows which manifest a crash leaves behind.
            let is_known = !step.starts_with("rename") && !step.ends_with("nth=2");
            assert_eq!(last == 51, is_known, "{step}");
            let seen = SstEnv { fs: Arc::new(memory), ..super::tests::env() };
            assert_eq!(load_manifest(&seen).unwrap().unwrap().next_file, last, "{step}");
        }
    }
}
