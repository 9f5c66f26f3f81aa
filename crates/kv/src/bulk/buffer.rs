//! Rows in memory: their bytes in chunks, and an index of them that is sorted.
//!
//! Keys of one target share a long beginning (the table's), so comparisons start behind what all
//! have in common, with eight bytes as a number that decide nearly always.
//!
//! What the rows take is asked for before it grows, chunk by chunk; a buffer that is refused has to
//! be emptied first.

use std::ops::Range;
use std::sync::Arc;

use braid_env::memory::{Account, Exceeded, Held};

/// The first chunk has so many bytes, the next ones as many as all before together,
const CHUNK_MIN: usize = 16 << 10;
/// but no more than this, unless a row is longer.
const CHUNK_MAX: usize = 1 << 20;

/// Rows are compared with those that are this part of the buffer ahead, to see their order.
const ORDER_PARTS: usize = 16;

/// A row's place in the chunks.
#[derive(Clone, Copy)]
struct Slot {
    /// Eight bytes of the key behind the common beginning, big endian.
    hint: u64,
    chunk: u32,
    at: u32,
    key: u32,
    value: u32,
}

/// Rows of one target.
pub(crate) struct Buffer {
    chunks: Vec<Vec<u8>>,
    /// The chunk that is being filled: those before it are full.
    filling: usize,
    slots: Vec<Slot>,
    /// Length of what all keys begin with.
    common: usize,
    sorted: bool,
    /// Rows that came behind the one before them.
    rising: usize,
    /// Bytes of keys and values.
    rows: usize,
    held: Held,
}

impl Buffer {
    pub(crate) fn new(account: &Arc<Account>) -> Buffer {
        let held = account.hold("rows to be loaded");
        let (chunks, slots) = (Vec::new(), Vec::new());
        Buffer { chunks, filling: 0, slots, common: 0, sorted: true, rising: 0, rows: 0, held }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes of the rows and their index.
    pub(crate) fn bytes(&self) -> usize {
        self.rows + self.slots.len() * size_of::<Slot>()
    }

    /// Adds a row.
    ///
    /// # Errors
    /// There is no memory for more; nothing was added.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Exceeded> {
        self.make_room(key.len() + value.len())?;
        match self.slots.first() {
            None => (self.common, self.sorted) = (key.len(), true),
            Some(_) => {
                let (last, _) = self.row(self.slots.len() - 1);
                let same = last.iter().zip(key).take(self.common).take_while(|(a, b)| a == b);
                let common = same.count();
                let rises = last[common..] <= key[common..];
                self.sorted = self.sorted && rises;
                self.rising += usize::from(rises);
                self.common = common;
            }
        }
        let chunk = &mut self.chunks[self.filling];
        let (at, filling) = (chunk.len() as u32, self.filling as u32);
        chunk.extend_from_slice(key);
        chunk.extend_from_slice(value);
        self.rows += key.len() + value.len();
        let (key, value) = (key.len() as u32, value.len() as u32);
        self.slots.push(Slot { hint: 0, chunk: filling, at, key, value });
        Ok(())
    }

    /// Sees to it that one row of so many bytes fits without more memory.
    fn make_room(&mut self, row: usize) -> Result<(), Exceeded> {
        let fits = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= row;
        let open = self.chunks.iter().skip(self.filling).position(fits);
        if self.slots.len() == self.slots.capacity() {
            let more = (self.slots.len() / 2).max(CHUNK_MIN / size_of::<Slot>());
            self.held.grow(more * size_of::<Slot>())?;
            self.slots.reserve_exact(more);
        }
        match open {
            Some(ahead) => self.filling += ahead,
            None => {
                let size = self.rows.clamp(CHUNK_MIN, CHUNK_MAX).max(row);
                self.held.grow(size)?;
                self.filling = self.chunks.len();
                self.chunks.push(Vec::with_capacity(size));
            }
        }
        Ok(())
    }

    fn place(&self, slot: &Slot) -> (&[u8], &[u8]) {
        let rest = &self.chunks[slot.chunk as usize][slot.at as usize..];
        let (key, rest) = rest.split_at(slot.key as usize);
        (key, &rest[..slot.value as usize])
    }

    fn row(&self, n: usize) -> (&[u8], &[u8]) {
        self.place(&self.slots[n])
    }

    /// Puts the rows into key order; rows with equal keys stay in the order in which they came.
    pub(crate) fn sort(&mut self) {
        if self.sorted {
            return;
        }
        let mut slots = std::mem::take(&mut self.slots);
        let rest = |slot: &Slot| &self.place(slot).0[self.common..];
        for slot in &mut slots {
            let rest = rest(slot);
            let mut hint = [0; 8];
            let n = rest.len().min(8);
            hint[..n].copy_from_slice(&rest[..n]);
            slot.hint = u64::from_be_bytes(hint);
        }
        slots.sort_unstable_by(|a, b| {
            let came = |slot: &Slot| (slot.chunk, slot.at);
            a.hint
                .cmp(&b.hint)
                .then_with(|| rest(a).cmp(rest(b)))
                .then_with(|| came(a).cmp(&came(b)))
        });
        self.slots = slots;
        self.sorted = true;
    }

    /// Whether at least this part of the rows, in percent, came in the order of their keys, or in
    /// the opposite one, but for their neighbourhood: each is compared with one that is some way
    /// ahead. The rows are sorted.
    pub(crate) fn is_ordered(&self, percent: usize) -> bool {
        let came = |slot: &Slot| (slot.chunk, slot.at);
        let way = (self.slots.len() / ORDER_PARTS).max(1);
        let ahead = self.slots.iter().skip(way);
        let pairs = self.slots.len().saturating_sub(way);
        let rising = self.slots.iter().zip(ahead).filter(|(a, b)| came(a) < came(b)).count();
        rising.max(pairs - rising) * 100 >= pairs * percent
    }

    /// Whether all rows came in ascending order, or all in descending order.
    pub(crate) fn came_in_order(&self) -> bool {
        self.rising == 0 || self.rising + 1 >= self.slots.len()
    }

    /// Whether two rows have one key. The rows are sorted.
    pub(crate) fn has_twins(&self) -> bool {
        self.slots.windows(2).any(|pair| self.place(&pair[0]).0 == self.place(&pair[1]).0)
    }

    /// The key at a position of the current order.
    pub(crate) fn key(&self, n: usize) -> Option<&[u8]> {
        self.slots.get(n).map(|slot| self.place(slot).0)
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The position of the first row at or behind a key. The rows are sorted.
    pub(crate) fn position(&self, key: &[u8]) -> usize {
        self.slots.partition_point(|slot| self.place(slot).0 < key)
    }

    /// The rows at these positions of the current order.
    pub(crate) fn rows(&self, at: Range<usize>) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.slots[at].iter().map(|slot| self.place(slot))
    }

    /// Forgets the rows, and keeps the memory for the next ones.
    pub(crate) fn clear(&mut self) {
        self.chunks.iter_mut().for_each(Vec::clear);
        self.slots.clear();
        (self.filling, self.rows, self.rising) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::memory::Pool;

    fn keys(buffer: &Buffer) -> Vec<String> {
        let all = buffer.rows(0..buffer.len());
        all.map(|(k, v)| format!("{}={}", k.escape_ascii(), v.escape_ascii())).collect()
    }

    #[test]
    fn rows_are_sorted_behind_what_they_have_in_common() {
        let mut buffer = Buffer::new(&Account::unlimited());
        for (key, value) in [("tab/10", "a"), ("tab/1", "b"), ("tab/2", "c"), ("tab/10", "d")] {
            buffer.push(key.as_bytes(), value.as_bytes()).unwrap();
        }
        buffer.sort();
        assert_eq!(keys(&buffer), ["tab/1=b", "tab/10=a", "tab/10=d", "tab/2=c"]);
        assert_eq!([b"tab/", b"tab0"].map(|key| buffer.position(key)), [0, 4]);
        assert_eq!((buffer.position(b"tab/10"), buffer.position(b"tab/100")), (1, 3));
        buffer.clear();
        assert!(buffer.is_empty() && keys(&buffer).is_empty());
        for key in ["b", "a", "", "ab", "a\0", "abcdefghij", "abcdefghia"] {
            buffer.push(key.as_bytes(), b"").unwrap();
        }
        buffer.sort();
        let all = ["=", "a=", "a\\x00=", "ab=", "abcdefghia=", "abcdefghij=", "b="];
        assert_eq!(keys(&buffer), all);
    }

    #[test]
    fn memory_is_asked_for_before_it_grows() {
        let pool = Pool::new(100 << 10);
        let mut buffer = Buffer::new(&pool.account(usize::MAX));
        let mut rows = 0;
        let refused = loop {
            match buffer.push(&[7; 100], &[8; 400]) {
                Ok(()) => rows += 1,
                Err(e) => break e,
            }
        };
        assert_eq!(refused.what, "rows to be loaded");
        assert!((40..200).contains(&rows) && buffer.len() == rows, "{rows}");
        assert!(pool.used() >= buffer.bytes() && pool.used() <= 100 << 10);
        // Emptied it takes as many again, out of the memory that it has.
        let held = pool.used();
        buffer.clear();
        for _ in 0..rows {
            buffer.push(&[7; 100], &[8; 400]).unwrap();
        }
        assert_eq!((pool.used(), buffer.len()), (held, rows));
        drop(buffer);
        assert_eq!(pool.used(), 0);
    }
}
