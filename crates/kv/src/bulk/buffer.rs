//! Rows in memory: their bytes in chunks, and an index of them that is sorted.
//!
//! Keys of one target share a long beginning (the table's), so comparisons start behind what all
//! have in common, with eight bytes as a number that decide nearly always.
//!
//! What the rows take is asked for before it grows, chunk by chunk; a buffer that is refused, or
//! has all that it may have, has to be emptied first.

use std::ops::Range;
use std::sync::Arc;

use braid_env::memory::{Account, Exceeded, Held};

/// The first chunk has so many bytes, the next ones as many as all before together,
const CHUNK_MIN: usize = 16 << 10;
/// but no more than this, unless a row is longer.
const CHUNK_MAX: usize = 1 << 20;

/// Memory of the index is asked for by half of it, but for no more rows than this, and no fewer
/// than that.
const SLOTS_MAX: usize = CHUNK_MAX / size_of::<Slot>();
const SLOTS_MIN: usize = (CHUNK_MIN / 4) / size_of::<Slot>();
/// The index itself grows to so many times what it is, unless the buffer is full before: it would
/// be copied again and again, and what was reserved takes no memory until it is used.
const SLOTS_AHEAD: usize = 16;

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
    /// Rows whose slots are counted in what is held.
    counted: usize,
    /// Length of what all keys begin with.
    common: usize,
    sorted: bool,
    /// Rows that came behind the one before them.
    rising: usize,
    /// Bytes of keys and values.
    rows: usize,
    /// Bytes that it may hold, unless a single row is longer.
    limit: usize,
    held: Held,
}

/// There is no room for another row.
#[derive(Debug)]
pub(crate) enum Full {
    /// It holds what it may hold.
    Limit,
    /// It was refused more.
    Refused(Exceeded),
}

impl From<Exceeded> for Full {
    fn from(e: Exceeded) -> Full {
        Full::Refused(e)
    }
}

impl Buffer {
    pub(crate) fn new(account: &Arc<Account>, limit: usize) -> Buffer {
        let held = account.hold("rows to be loaded");
        Buffer {
            chunks: Vec::new(),
            filling: 0,
            slots: Vec::new(),
            counted: 0,
            common: 0,
            sorted: true,
            rising: 0,
            rows: 0,
            limit,
            held,
        }
    }

    /// From now on it may hold so much.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Bytes of memory that it has.
    pub(crate) fn held(&self) -> usize {
        self.held.bytes()
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
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Full> {
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
    fn make_room(&mut self, row: usize) -> Result<(), Full> {
        let fits = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= row;
        let open = self.chunks.iter().skip(self.filling).position(fits);
        let count = self.slots.len();
        let mut slots = match count == self.counted {
            true => (count / 2).clamp(SLOTS_MIN, SLOTS_MAX),
            false => 0,
        };
        let chunk = match open {
            Some(_) => 0,
            None => self.rows.clamp(CHUNK_MIN, CHUNK_MAX).min(self.limit / 8).max(row),
        };
        if slots * size_of::<Slot>() + chunk > 0 {
            let held = self.held.bytes();
            let fits = |slots: usize| held + slots * size_of::<Slot>() + chunk <= self.limit;
            if !fits(slots) {
                slots = slots.min(SLOTS_MIN);
            }
            if !self.is_empty() && !fits(slots) {
                return Err(Full::Limit);
            }
            self.held.grow(slots * size_of::<Slot>() + chunk)?;
            self.counted += slots;
            if self.slots.capacity() < self.counted {
                self.slots.reserve_exact(self.slots_ahead(row).max(self.counted - count));
            }
        }
        match open {
            Some(ahead) => self.filling += ahead,
            None => {
                self.filling = self.chunks.len();
                self.chunks.push(Vec::with_capacity(chunk));
            }
        }
        Ok(())
    }

    /// How many more slots may be wanted, if the rows to come are like those before and this one.
    fn slots_ahead(&self, row: usize) -> usize {
        let count = self.slots.len() + 1;
        let each = (self.rows + row) / count + size_of::<Slot>();
        (self.limit / each).saturating_sub(count).min(count * SLOTS_AHEAD)
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

    /// The part of the rows, in percent, that came in the order of their keys, or in the opposite
    /// one, but for their neighbourhood: each is compared with one that is some way ahead. The rows
    /// are sorted.
    pub(crate) fn ordered_percent(&self) -> usize {
        let came = |slot: &Slot| (slot.chunk, slot.at);
        let way = (self.slots.len() / ORDER_PARTS).max(1);
        let ahead = self.slots.iter().skip(way);
        let pairs = self.slots.len().saturating_sub(way);
        let rising = self.slots.iter().zip(ahead).filter(|(a, b)| came(a) < came(b)).count();
        match pairs {
            0 => 100,
            pairs => rising.max(pairs - rising) * 100 / pairs,
        }
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

    /// Forgets the rows, and keeps the memory for the next ones, but for that of very long ones.
    pub(crate) fn clear(&mut self) {
        let most = CHUNK_MAX.min(self.limit / 8);
        let (chunks, held) = (&mut self.chunks, &mut self.held);
        chunks.retain(|chunk| {
            let keeps = chunk.capacity() <= most;
            if !keeps {
                held.shrink(chunk.capacity());
            }
            keeps
        });
        self.chunks.iter_mut().for_each(Vec::clear);
        self.slots.clear();
        (self.filling, self.rows, self.rising) = (0, 0, 0);
    }

    /// Forgets the rows and gives their memory back.
    pub(crate) fn release(&mut self) {
        (self.chunks, self.slots, self.counted) = (Vec::new(), Vec::new(), 0);
        (self.filling, self.rows, self.rising) = (0, 0, 0);
        self.held.release();
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
        let mut buffer = Buffer::new(&Account::unlimited(), usize::MAX);
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
        let mut buffer = Buffer::new(&pool.account(usize::MAX), usize::MAX);
        let mut rows = 0;
        let refused = loop {
            match buffer.push(&[7; 100], &[8; 400]) {
                Ok(()) => rows += 1,
                Err(Full::Refused(e)) => break e,
                Err(Full::Limit) => panic!("it has no limit"),
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

    #[test]
    fn a_buffer_holds_what_it_may_hold_and_a_single_row_of_any_length() {
        for (limit, value) in [(64 << 10, 5), (64 << 10, 300), (4 << 20, 20), (4 << 20, 50_000)] {
            let account = Account::unlimited();
            let mut buffer = Buffer::new(&account, limit);
            let value = vec![7; value];
            for round in 0..3 {
                while buffer.push(b"some key", &value).is_ok() {}
                assert!(account.used() <= limit, "{} of {limit}", account.used());
                assert!(buffer.bytes() * 2 > limit, "{round}: {} of {limit}", buffer.bytes());
                buffer.clear();
                buffer.push(b"k", &vec![1; limit * 2]).unwrap();
                assert!(account.used() > limit * 2);
                assert!(buffer.push(b"l", b"").is_err());
                buffer.clear();
                assert!(account.used() <= limit);
            }
            buffer.release();
            assert_eq!(account.used(), 0);
        }
    }
}
