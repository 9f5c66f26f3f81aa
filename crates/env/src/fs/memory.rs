//! Files in memory, with a model of what survives a power failure.
//!
//! Each file keeps its durable bytes and the writes since its last sync; each directory keeps its
//! durable names and the changes since its last sync. [`MemFs::crash_clone`] decides for each of
//! these, independently, whether it reached the platter:
//!
//! ```text
//!   write [a....b)   kept | lost | torn: every 512-byte or 4-KiB piece decides for itself
//!   growth           may be there as zeros or garbage although the data is not
//!   set_len          kept | lost
//!   create, rename, link, remove     kept | lost, in their order
//! ```
//!
//! A later write may survive where an earlier one did not: that is what real disks do between two
//! syncs. What it does not model: a disk that lies about a completed sync (see `FaultFs`).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{DirLock, File, FileSystem, Space};
use crate::random::Random;

/// What a crash does to everything that was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPolicy {
    /// Nothing unsynced survives.
    LoseAll,
    /// Everything survives, as when only the process dies.
    KeepAll,
    /// Each unsynced change is kept with this percentage; kept writes may be torn.
    Random(u8),
    /// Data survives, names changed since the last directory sync do not.
    LoseNames,
}

#[derive(Clone)]
enum Change {
    /// These bytes of the current contents were added at the end, and are still what they were.
    Append(Range<usize>),
    Write {
        offset: u64,
        data: Vec<u8>,
    },
    SetLen(u64),
}

/// Bytes in pieces of a fixed size: a file that grows never moves what it holds, which for large
/// files would cost more than the writes themselves.
#[derive(Default)]
struct Image {
    /// All full but the last.
    pieces: Vec<Vec<u8>>,
    len: usize,
}

const PIECE: usize = 1 << 20;

impl Image {
    fn append(&mut self, mut data: &[u8]) {
        self.len += data.len();
        while !data.is_empty() {
            if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
                // A first piece may stay small.
                let room = if self.pieces.is_empty() { 0 } else { PIECE };
                self.pieces.push(Vec::with_capacity(room));
            }
            let piece = self.pieces.last_mut().expect("just made sure");
            let (now, rest) = data.split_at(data.len().min(PIECE - piece.len()));
            piece.extend_from_slice(now);
            data = rest;
        }
    }

    fn resize(&mut self, len: usize) {
        self.pieces.truncate(len.div_ceil(PIECE));
        if len < self.len
            && let Some(last) = self.pieces.last_mut()
            && !len.is_multiple_of(PIECE)
        {
            last.truncate(len % PIECE);
        }
        self.len = self.len.min(len);
        while self.len < len {
            let zeros = [0; 4096];
            self.append(&zeros[..zeros.len().min(len - self.len)]);
        }
    }

    /// Calls `each` with the parts of `range` in order.
    fn parts(&self, range: Range<usize>, mut each: impl FnMut(&[u8])) {
        let mut at = range.start;
        while at < range.end {
            let stop = ((at / PIECE + 1) * PIECE).min(range.end);
            each(&self.pieces[at / PIECE][at % PIECE..(stop - 1) % PIECE + 1]);
            at = stop;
        }
    }

    fn to_vec(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(range.len());
        self.parts(range, |part| bytes.extend_from_slice(part));
        bytes
    }

    fn write(&mut self, mut data: &[u8], mut offset: usize) {
        if self.len < offset {
            self.resize(offset);
        }
        while offset < self.len && !data.is_empty() {
            let piece = &mut self.pieces[offset / PIECE][offset % PIECE..];
            let (now, rest) = data.split_at(data.len().min(piece.len()));
            piece[..now.len()].copy_from_slice(now);
            offset += now.len();
            data = rest;
        }
        self.append(data);
    }

    fn byte_mut(&mut self, offset: usize) -> Option<&mut u8> {
        self.pieces.get_mut(offset / PIECE)?.get_mut(offset % PIECE)
    }
}

/// A file that only ever grew, as most do, holds its bytes once: what is durable is the beginning
/// of what is current. The first write elsewhere parts the two.
#[derive(Default)]
struct Contents {
    current: Image,
    /// What is durable; `None`: the first `synced` bytes of `current`.
    durable: Option<Vec<u8>>,
    synced: usize,
    unsynced: Vec<Change>,
}

impl Contents {
    fn of(image: &[u8]) -> Contents {
        let mut current = Image::default();
        current.append(image);
        Contents { synced: image.len(), current, ..Contents::default() }
    }

    fn durable(&self) -> Vec<u8> {
        match &self.durable {
            Some(durable) => durable.clone(),
            None => self.current.to_vec(0..self.synced),
        }
    }

    /// A change with the bytes that it wrote.
    fn spelled_out(&self, change: &Change) -> Change {
        match change {
            Change::Append(range) => {
                let data = self.current.to_vec(range.clone());
                Change::Write { offset: range.start as u64, data }
            }
            other => other.clone(),
        }
    }

    /// Before something else than an append.
    fn part(&mut self) {
        if self.durable.is_none() {
            self.durable = Some(self.durable());
            self.unsynced = self.unsynced.iter().map(|change| self.spelled_out(change)).collect();
        }
    }

    fn write(&mut self, data: &[u8], offset: u64) {
        let len = self.current.len;
        if self.durable.is_none() && offset as usize == len {
            self.unsynced.push(Change::Append(len..len + data.len()));
            self.current.append(data);
            return;
        }
        self.part();
        self.current.write(data, offset as usize);
        self.unsynced.push(Change::Write { offset, data: data.to_vec() });
    }

    fn set_len(&mut self, len: u64) {
        self.part();
        self.current.resize(len as usize);
        self.unsynced.push(Change::SetLen(len));
    }

    fn sync(&mut self) {
        match &mut self.durable {
            Some(durable) => self.unsynced.drain(..).for_each(|change| apply(durable, &change)),
            None => {
                self.synced = self.current.len;
                self.unsynced.clear();
            }
        }
    }
}

#[derive(Default)]
struct Inode {
    contents: Mutex<Contents>,
}

#[derive(Clone)]
enum NameChange {
    Insert(PathBuf, Arc<Inode>),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf, Arc<Inode>),
}

impl NameChange {
    fn directory(&self) -> Option<&Path> {
        match self {
            NameChange::Insert(path, _) | NameChange::Remove(path) => path.parent(),
            NameChange::Rename(_, to, _) => to.parent(),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, Arc<Inode>>) {
        match self {
            NameChange::Insert(path, inode) => {
                names.insert(path.clone(), inode.clone());
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
            NameChange::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), inode.clone());
            }
        }
    }
}

#[derive(Default)]
struct Names {
    durable: BTreeMap<PathBuf, Arc<Inode>>,
    current: BTreeMap<PathBuf, Arc<Inode>>,
    unsynced: Vec<NameChange>,
    directories: BTreeSet<PathBuf>,
}

#[derive(Default)]
struct Shared {
    names: Mutex<Names>,
    locks: Arc<Mutex<HashSet<PathBuf>>>,
    capacity: AtomicU64,
    used: AtomicU64,
    armed: Mutex<Option<Armed>>,
    crashed: Mutex<Option<MemFs>>,
}

/// A crash that will be taken after some more changes.
struct Armed {
    changes_left: u64,
    random: Random,
    policy: CrashPolicy,
}

/// A file system in memory. Clones share the same files.
#[derive(Clone, Default)]
pub struct MemFs {
    shared: Arc<Shared>,
}

impl MemFs {
    /// An empty file system without a size limit.
    pub fn new() -> MemFs {
        MemFs::default()
    }

    /// Limits the device to `bytes`; writes beyond fail with `StorageFull`. 0 means no limit.
    pub fn set_capacity(&self, bytes: u64) {
        self.shared.capacity.store(bytes, Ordering::SeqCst);
    }

    /// Bytes in all files that have a name or are open.
    pub fn used(&self) -> u64 {
        self.shared.used.load(Ordering::SeqCst)
    }

    /// A new file system that holds what may be on disk if the power fails now.
    pub fn crash_clone(&self, random: &mut Random, policy: CrashPolicy) -> MemFs {
        let names = self.shared.names.lock();
        let mut survived = names.durable.clone();
        for change in &names.unsynced {
            let kept = match policy {
                CrashPolicy::LoseAll | CrashPolicy::LoseNames => false,
                CrashPolicy::KeepAll => true,
                CrashPolicy::Random(percent) => random.chance(u64::from(percent), 100),
            };
            if kept {
                change.apply(&mut survived);
            }
        }
        // Two names of one file must stay two names of one file.
        let mut copies: Vec<(Arc<Inode>, Arc<Inode>)> = Vec::new();
        let mut current = BTreeMap::new();
        let mut used = 0;
        for (path, inode) in survived {
            let copied = copies.iter().find(|(old, _)| Arc::ptr_eq(old, &inode));
            let copy = if let Some((_, copy)) = copied {
                copy.clone()
            } else {
                let image = crash_image(&inode.contents.lock(), random, policy);
                used += image.len() as u64;
                let copy = Arc::new(Inode { contents: Mutex::new(Contents::of(&image)) });
                copies.push((inode, copy.clone()));
                copy
            };
            current.insert(path, copy);
        }
        let shared = Shared {
            names: Mutex::new(Names {
                durable: current.clone(),
                current,
                unsynced: Vec::new(),
                directories: names.directories.clone(),
            }),
            locks: Arc::default(),
            capacity: AtomicU64::new(self.shared.capacity.load(Ordering::SeqCst)),
            used: AtomicU64::new(used),
            ..Shared::default()
        };
        MemFs { shared: Arc::new(shared) }
    }

    /// Takes a [`MemFs::crash_clone`] in front of the change that follows after `changes` more
    /// (writes, syncs, allocations, changes of names). Fetch it with [`MemFs::take_crash`].
    pub fn arm_crash(&self, changes: u64, random: Random, policy: CrashPolicy) {
        *self.shared.armed.lock() = Some(Armed { changes_left: changes, random, policy });
    }

    /// Takes back [`MemFs::arm_crash`], if that moment has not come.
    pub fn disarm_crash(&self) {
        *self.shared.armed.lock() = None;
    }

    /// The file system as an armed crash left it, if that moment has come.
    pub fn take_crash(&self) -> Option<MemFs> {
        self.shared.crashed.lock().take()
    }

    /// Called in front of every change.
    fn tick(&self) {
        let mut armed = self.shared.armed.lock();
        match &mut *armed {
            None => {}
            Some(crash) if crash.changes_left > 0 => crash.changes_left -= 1,
            Some(crash) => {
                let policy = crash.policy;
                let clone = self.crash_clone(&mut crash.random, policy);
                *self.shared.crashed.lock() = Some(clone);
                *armed = None;
            }
        }
    }

    /// Replaces one byte of a file by its exclusive-or with `mask`, behind everybody's back.
    pub fn flip(&self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        let inode = self.find(path)?;
        let mut contents = inode.contents.lock();
        let contents = &mut *contents;
        let current = contents.current.byte_mut(offset as usize);
        let durable = contents.durable.as_mut().and_then(|image| image.get_mut(offset as usize));
        for byte in [current, durable].into_iter().flatten() {
            *byte ^= mask;
        }
        Ok(())
    }

    fn find(&self, path: &Path) -> io::Result<Arc<Inode>> {
        self.shared.names.lock().current.get(path).cloned().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("no file {}", path.display()))
        })
    }

    fn change(&self, names: &mut Names, change: NameChange) {
        change.apply(&mut names.current);
        names.unsynced.push(change);
    }

    fn file(&self, inode: Arc<Inode>) -> Arc<dyn File> {
        Arc::new(MemFile { inode, fs: self.clone() })
    }

    fn release(&self, inode: Option<Arc<Inode>>) {
        if let Some(inode) = inode {
            let len = inode.contents.lock().current.len as u64;
            self.shared.used.fetch_sub(len, Ordering::SeqCst);
        }
    }
}

fn crash_image(contents: &Contents, random: &mut Random, policy: CrashPolicy) -> Vec<u8> {
    let mut image = contents.durable();
    for change in &contents.unsynced {
        let change = contents.spelled_out(change);
        match policy {
            CrashPolicy::LoseAll => {}
            CrashPolicy::KeepAll | CrashPolicy::LoseNames => apply(&mut image, &change),
            CrashPolicy::Random(percent) => {
                apply_some(&mut image, &change, random, u64::from(percent));
            }
        }
    }
    image
}

fn apply(image: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, data } => {
            let start = *offset as usize;
            if image.len() < start + data.len() {
                image.resize(start + data.len(), 0);
            }
            image[start..start + data.len()].copy_from_slice(data);
        }
        Change::SetLen(len) => image.resize(*len as usize, 0),
        Change::Append(_) => unreachable!("appends are spelled out before they are applied"),
    }
}

/// Applies a change as a disk that lost power in the middle of it may have.
fn apply_some(image: &mut Vec<u8>, change: &Change, random: &mut Random, percent: u64) {
    let Change::Write { offset, data } = change else {
        if random.chance(percent, 100) {
            apply(image, change);
        }
        return;
    };
    let end = *offset as usize + data.len();
    let grew = image.len() < end;
    match random.below(3) {
        // Whole or not at all.
        0 => {
            if random.chance(percent, 100) {
                apply(image, change);
            }
        }
        // Torn: each piece of the device decides for itself.
        _ => {
            let piece = if random.chance(1, 2) { 512 } else { 4096 };
            let mut at = *offset as usize;
            while at < end {
                let stop = ((at / piece + 1) * piece).min(end);
                if random.chance(percent, 100) {
                    let from = at - *offset as usize;
                    let part = data[from..from + (stop - at)].to_vec();
                    apply(image, &Change::Write { offset: at as u64, data: part });
                }
                at = stop;
            }
        }
    }
    // The length may have been journalled before the data arrived.
    if grew && image.len() < end && random.chance(1, 4) {
        let from = image.len();
        image.resize(end, 0);
        if random.chance(1, 2) {
            random.fill(&mut image[from..]);
        }
    }
}

struct MemFile {
    inode: Arc<Inode>,
    fs: MemFs,
}

impl MemFile {
    fn grow(&self, from: usize, to: usize) -> io::Result<()> {
        if to <= from {
            self.fs.shared.used.fetch_sub((from - to) as u64, Ordering::SeqCst);
            return Ok(());
        }
        let more = (to - from) as u64;
        let capacity = self.fs.shared.capacity.load(Ordering::SeqCst);
        if capacity > 0 && self.fs.shared.used.load(Ordering::SeqCst) + more > capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.fs.shared.used.fetch_add(more, Ordering::SeqCst);
        Ok(())
    }
}

impl File for MemFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let contents = self.inode.contents.lock();
        let from = (offset as usize).min(contents.current.len);
        let n = buffer.len().min(contents.current.len - from);
        let mut at = 0;
        contents.current.parts(from..from + n, |part| {
            buffer[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        });
        Ok(n)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.fs.tick();
        let mut contents = self.inode.contents.lock();
        let end = offset as usize + data.len();
        if end > contents.current.len {
            self.grow(contents.current.len, end)?;
        }
        contents.write(data, offset);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.inode.contents.lock().current.len as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.fs.tick();
        let mut contents = self.inode.contents.lock();
        self.grow(contents.current.len, len as usize)?;
        contents.set_len(len);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        // Room matters only where it is limited; zeros that nobody reads cost time in every test.
        let limited = self.fs.shared.capacity.load(Ordering::SeqCst) > 0;
        if limited && self.len()? < len {
            self.set_len(len)?;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.fs.tick();
        self.inode.contents.lock().sync();
        Ok(())
    }
}

struct MemLock {
    locks: Arc<Mutex<HashSet<PathBuf>>>,
    path: PathBuf,
}

impl DirLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.locks.lock().remove(&self.path);
    }
}

impl FileSystem for MemFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.tick();
        let inode = Arc::new(Inode::default());
        let mut names = self.shared.names.lock();
        let old = names.current.get(path).cloned();
        self.change(&mut names, NameChange::Insert(path.to_path_buf(), inode.clone()));
        drop(names);
        self.release(old);
        Ok(self.file(inode))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.find(path)?))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut names = self.shared.names.lock();
        for ancestor in path.ancestors() {
            names.directories.insert(ancestor.to_path_buf());
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.tick();
        let mut names = self.shared.names.lock();
        let names = &mut *names;
        let mut kept = Vec::new();
        for change in names.unsynced.drain(..) {
            if change.directory() == Some(path) {
                change.apply(&mut names.durable);
            } else {
                kept.push(change);
            }
        }
        names.unsynced = kept;
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.tick();
        let inode = self.find(from)?;
        let mut names = self.shared.names.lock();
        let old = names.current.get(to).cloned();
        let change = NameChange::Rename(from.to_path_buf(), to.to_path_buf(), inode);
        self.change(&mut names, change);
        drop(names);
        self.release(old);
        Ok(())
    }

    fn link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        self.tick();
        let inode = self.find(existing)?;
        let mut names = self.shared.names.lock();
        if names.current.contains_key(new) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(&mut names, NameChange::Insert(new.to_path_buf(), inode));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.tick();
        let inode = self.find(path)?;
        let mut names = self.shared.names.lock();
        self.change(&mut names, NameChange::Remove(path.to_path_buf()));
        let linked = names.current.values().any(|other| Arc::ptr_eq(other, &inode));
        drop(names);
        if !linked {
            self.release(Some(inode));
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let names = self.shared.names.lock();
        let files = names.current.keys().filter(|name| name.parent() == Some(path));
        let directories = names.directories.iter().filter(|name| name.parent() == Some(path));
        let mut found: Vec<String> = files
            .map(PathBuf::as_path)
            .chain(directories.map(PathBuf::as_path))
            .filter_map(|name| Some(name.file_name()?.to_str()?.to_string()))
            .collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let names = self.shared.names.lock();
        Ok(names.current.contains_key(path) || names.directories.contains(path))
    }

    fn space(&self, _path: &Path) -> io::Result<Space> {
        let capacity = self.shared.capacity.load(Ordering::SeqCst);
        let total = if capacity == 0 { 1 << 40 } else { capacity };
        Ok(Space { total, free: total.saturating_sub(self.used()) })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirLock>> {
        if !self.shared.locks.lock().insert(path.to_path_buf()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(MemLock { locks: self.shared.locks.clone(), path: path.to_path_buf() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsynced_bytes_and_names_may_vanish_and_synced_ones_never() {
        let fs = MemFs::new();
        let dir = Path::new("/d");
        let file = fs.create(&dir.join("a")).unwrap();
        file.write_at(b"durable", 0).unwrap();
        file.sync_data().unwrap();
        fs.sync_dir(dir).unwrap();
        file.write_at(b"changed", 0).unwrap();
        fs.create(&dir.join("b")).unwrap();
        let mut random = Random::seeded(1);
        let lost = fs.crash_clone(&mut random, CrashPolicy::LoseAll);
        assert_eq!(super::super::read_all(&lost, &dir.join("a")).unwrap(), b"durable");
        assert!(!lost.exists(&dir.join("b")).unwrap());
        let kept = fs.crash_clone(&mut random, CrashPolicy::KeepAll);
        assert_eq!(super::super::read_all(&kept, &dir.join("a")).unwrap(), b"changed");
        assert!(kept.exists(&dir.join("b")).unwrap());
    }

    #[test]
    fn a_file_is_the_same_whether_it_grew_or_was_written_over() {
        let mut random = Random::seeded(9);
        for _ in 0..300 {
            let fs = MemFs::new();
            let (dir, path) = (Path::new("/d"), Path::new("/d/a"));
            let file = fs.create(path).unwrap();
            fs.sync_dir(dir).unwrap();
            let (mut current, mut durable) = (Vec::new(), Vec::new());
            for _ in 0..random.below(12) {
                match random.below(6) {
                    0 => {
                        file.sync_data().unwrap();
                        durable.clone_from(&current);
                    }
                    1 => {
                        let len = random.below(40);
                        file.set_len(len).unwrap();
                        current.resize(len as usize, 0);
                    }
                    n => {
                        let at = if n < 5 { current.len() } else { random.below(40) as usize };
                        let data = [n as u8 + 1; 5];
                        file.write_at(&data, at as u64).unwrap();
                        current.resize(current.len().max(at + 5), 0);
                        current[at..at + 5].copy_from_slice(&data);
                    }
                }
            }
            let image = |policy, random: &mut Random| {
                super::super::read_all(&fs.crash_clone(random, policy), path).unwrap()
            };
            assert_eq!(image(CrashPolicy::LoseAll, &mut random), durable);
            assert_eq!(image(CrashPolicy::KeepAll, &mut random), current);
        }
    }

    #[test]
    fn an_image_in_pieces_is_one_image() {
        let mut random = Random::seeded(4);
        let (mut image, mut expected) = (Image::default(), Vec::new());
        for turn in 0..60u8 {
            let at = random.below(3 * PIECE as u64) as usize;
            let data = vec![turn; random.below(PIECE as u64 * 3 / 2) as usize];
            match random.below(4) {
                0 => {
                    image.resize(at);
                    expected.resize(at, 0);
                }
                1 => {
                    image.write(&data, at);
                    expected.resize(expected.len().max(at + data.len()), 0);
                    expected[at..at + data.len()].copy_from_slice(&data);
                }
                _ => {
                    image.append(&data);
                    expected.extend_from_slice(&data);
                }
            }
            assert!(image.to_vec(0..image.len) == expected, "turn {turn}");
            let end = at.min(expected.len());
            assert!(image.to_vec(end / 3..end) == expected[end / 3..end], "turn {turn}");
        }
    }

    #[test]
    fn a_large_unsynced_write_can_be_torn() {
        let mut torn = 0;
        for seed in 0..200 {
            let fs = MemFs::new();
            let path = Path::new("/d/a");
            let file = fs.create(path).unwrap();
            file.write_at(&[0; 8192], 0).unwrap();
            file.sync_data().unwrap();
            fs.sync_dir(Path::new("/d")).unwrap();
            file.write_at(&[1; 8192], 0).unwrap();
            let after = fs.crash_clone(&mut Random::seeded(seed), CrashPolicy::Random(50));
            let bytes = super::super::read_all(&after, path).unwrap();
            let ones = bytes.iter().filter(|b| **b == 1).count();
            assert_eq!(ones % 512, 0);
            torn += usize::from(ones != 0 && ones != 8192);
        }
        assert!(torn > 20, "only {torn} of 200 crashes tore the write");
    }

    #[test]
    fn a_full_device_refuses_growth_and_frees_on_remove() {
        let fs = MemFs::new();
        fs.set_capacity(100);
        let a = fs.create(Path::new("/d/a")).unwrap();
        a.write_at(&[7; 90], 0).unwrap();
        let b = fs.create(Path::new("/d/b")).unwrap();
        let error = b.write_at(&[7; 20], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        fs.remove(Path::new("/d/a")).unwrap();
        b.write_at(&[7; 20], 0).unwrap();
    }

    #[test]
    fn a_lock_is_exclusive_until_dropped() {
        let fs = MemFs::new();
        let lock = fs.lock(Path::new("/d/LOCK")).unwrap();
        assert!(fs.lock(Path::new("/d/LOCK")).is_err());
        drop(lock);
        assert!(fs.lock(Path::new("/d/LOCK")).is_ok());
    }
}
