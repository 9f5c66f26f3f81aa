//! The directory of a partition of a layer: where its frames begin, and which keys it certainly
//! does not have. It is what must be in memory for a layer to be asked, so a layer has many small
//! ones.
//!
//! | bytes | meaning |
//! |---|---|
//! | u32 | number of frames |
//! | .. | for each u64 where it begins, u32 length of its first key, the key |
//! | .. | the words of the filter |
//!
//! ```text
//!   get ─► known? ─yes────────────────────────────────► asked
//!            │ no                                         ▲
//!            └► read from the layer's file ─► kept ───────┘
//!                                              │ too much
//!                                              ▼
//!                       who was not asked for again since he was last looked at goes
//! ```
//! (*Second chance*: Corbató, "A paging experiment with the Multics system", 1968.)

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, Bytes};
use parking_lot::Mutex;

use super::filter::Filter;
use crate::bulk::frame::FRAME_HEAD;
use crate::error::KvResult;

/// See the module.
pub(super) struct Directory {
    /// First keys, and where the frames begin.
    frames: Vec<(Bytes, u64)>,
    filter: Filter,
}

/// What a frame of a directory takes besides its key.
const PLACE_BYTES: usize = 56;

impl Directory {
    /// Of frames, and of keys with these hashes.
    pub(super) fn new(frames: Vec<(Bytes, u64)>, hashes: &[u64]) -> Directory {
        Directory { frames, filter: Filter::new(hashes) }
    }

    /// Its bytes, behind room for the head of a frame.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; FRAME_HEAD];
        out.extend_from_slice(&(self.frames.len() as u32).to_le_bytes());
        for (first, at) in &self.frames {
            out.extend_from_slice(&at.to_le_bytes());
            out.extend_from_slice(&(first.len() as u32).to_le_bytes());
            out.extend_from_slice(first);
        }
        self.filter.words().iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out
    }

    /// From its bytes; `None` for others.
    pub(super) fn decode(mut bytes: Bytes) -> Option<Directory> {
        let count = bytes.try_get_u32_le().ok()?;
        let mut frames = Vec::new();
        for _ in 0..count {
            let at = bytes.try_get_u64_le().ok()?;
            let len = bytes.try_get_u32_le().ok()? as usize;
            if len > bytes.len() {
                return None;
            }
            frames.push((bytes.split_to(len), at));
        }
        let (words, rest) = bytes.as_chunks();
        let filter = Filter::of_words(words.iter().map(|word| u64::from_le_bytes(*word)).collect());
        rest.is_empty().then_some(Directory { frames, filter: filter? })
    }

    /// Bytes that it takes in memory.
    pub(super) fn memory(&self) -> usize {
        let frames = self.frames.iter().map(|(first, _)| first.len() + PLACE_BYTES);
        frames.sum::<usize>() + self.filter.memory()
    }

    /// Whether a key with this hash may be there.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        self.filter.may_contain(hash)
    }

    /// How many frames there are.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// The frame in which a key would be, by number: the first one if it is in front of all.
    pub(super) fn frame_of(&self, key: &[u8]) -> usize {
        self.frames.partition_point(|(first, _)| &first[..] <= key).saturating_sub(1)
    }

    /// Where a frame begins.
    pub(super) fn place(&self, frame: usize) -> u64 {
        self.frames[frame].1
    }
}

/// Directories of a transaction's layers, as many as there is room for.
pub(super) struct Directories {
    /// Bytes of memory for them.
    room: usize,
    kept: Mutex<Kept>,
    next_layer: AtomicU64,
}

/// A layer and a partition of it.
type Id = (u64, usize);

#[derive(Default)]
struct Kept {
    bytes: usize,
    by_id: HashMap<Id, Entry>,
    /// In the order in which they are looked at when one has to go.
    order: VecDeque<Id>,
}

struct Entry {
    directory: Arc<Directory>,
    asked_again: bool,
}

impl Directories {
    pub(super) fn new(room: usize) -> Directories {
        Directories { room, kept: Mutex::default(), next_layer: AtomicU64::new(0) }
    }

    /// Bytes of memory for them at most.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// A number for a new layer.
    pub(super) fn new_layer(&self) -> u64 {
        self.next_layer.fetch_add(1, Ordering::Relaxed)
    }

    /// A directory; if it is not kept here it is read.
    pub(super) fn get(
        &self,
        id: Id,
        read: impl FnOnce() -> KvResult<Directory>,
    ) -> KvResult<Arc<Directory>> {
        if let Some(entry) = self.kept.lock().by_id.get_mut(&id) {
            entry.asked_again = true;
            return Ok(entry.directory.clone());
        }
        let directory = Arc::new(read()?);
        let mut kept = self.kept.lock();
        let bytes = directory.memory();
        // Somebody else may have read it meanwhile.
        if bytes <= self.room && !kept.by_id.contains_key(&id) {
            kept.make_room(self.room - bytes);
            kept.bytes += bytes;
            kept.order.push_back(id);
            kept.by_id.insert(id, Entry { directory: directory.clone(), asked_again: false });
        }
        Ok(directory)
    }

    /// Those of a layer are not needed any more.
    pub(super) fn forget(&self, layer: u64) {
        let mut kept = self.kept.lock();
        let kept = &mut *kept;
        let (bytes, by_id) = (&mut kept.bytes, &mut kept.by_id);
        kept.order.retain(|id| {
            if id.0 == layer
                && let Some(gone) = by_id.remove(id)
            {
                *bytes -= gone.directory.memory();
            }
            id.0 != layer
        });
    }
}

impl Kept {
    /// Lets some go until the others take so much at most.
    fn make_room(&mut self, most: usize) {
        while self.bytes > most {
            let Some(id) = self.order.pop_front() else { return };
            match self.by_id.get_mut(&id) {
                Some(entry) if entry.asked_again => {
                    entry.asked_again = false;
                    self.order.push_back(id);
                }
                _ => {
                    let gone = self.by_id.remove(&id);
                    self.bytes -= gone.map_or(0, |entry| entry.directory.memory());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::own_writes::filter::hash;

    fn directory(keys: std::ops::Range<u32>) -> Directory {
        let key = |n: u32| Bytes::from(format!("{n:08}"));
        let hashes: Vec<u64> = keys.clone().map(|n| hash(&key(n))).collect();
        Directory::new(keys.step_by(10).map(|n| (key(n), u64::from(n) * 7)).collect(), &hashes)
    }

    #[test]
    fn a_directory_is_read_back_and_nothing_else_is_one() {
        let bytes = Bytes::from(directory(100..300).encode()).slice(FRAME_HEAD..);
        let read = Directory::decode(bytes.clone()).expect("is one");
        assert_eq!((read.len(), read.frame_of(b"00000095"), read.frame_of(b"9")), (20, 0, 19));
        assert_eq!(read.place(read.frame_of(b"00000119")), 110 * 7);
        assert!((100..300_u32).all(|n| read.may_contain(hash(format!("{n:08}").as_bytes()))));
        assert_eq!(read.memory(), directory(100..300).memory());
        for len in 0..bytes.len() {
            let cut = Directory::decode(bytes.slice(..len));
            assert!(cut.is_none_or(|cut| cut.len() == 20), "{len} bytes, all of the frames");
        }
    }

    #[test]
    fn those_that_are_asked_for_stay_and_the_room_is_kept() {
        let one = directory(0..100).memory();
        let all = Directories::new(3 * one + one / 2);
        let read = Cell::new(0);
        let ask = |layer: u64, partition: usize| {
            let fresh = || {
                read.set(read.get() + 1);
                Ok(directory(0..100))
            };
            all.get((layer, partition), fresh).map(|found| found.len()).expect("is read");
            assert!(all.kept.lock().bytes <= all.room());
        };
        for n in 0..50 {
            ask(1, 0);
            ask(2, n);
        }
        assert_eq!(read.get(), 51, "the one that is asked for again and again is read once");
        all.forget(2);
        assert_eq!(all.kept.lock().bytes, one);
        ask(1, 0);
        assert_eq!(read.get(), 51);
        all.forget(1);
        let kept = all.kept.lock();
        assert!(kept.bytes == 0 && kept.by_id.is_empty() && kept.order.is_empty());
    }
}
