//! Rows in memory: bytes in one piece, and an index of them that is sorted.
//!
//! Keys of one target share a long beginning (the table's), so comparisons start behind what all
//! have in common, with eight bytes as a number that decide nearly always.

/// A row's place in the bytes.
#[derive(Clone, Copy)]
struct Slot {
    /// Eight bytes of the key behind the common beginning, big endian.
    hint: u64,
    at: usize,
    key: u32,
    value: u32,
}

/// Rows of one target.
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// Length of what all keys begin with.
    common: usize,
    sorted: bool,
}

impl Buffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Memory that the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.slots.len() * size_of::<Slot>()
    }

    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        let at = self.bytes.len();
        match self.slots.first() {
            None => (self.common, self.sorted) = (key.len(), true),
            Some(_) => {
                let (last, _) = self.row(self.slots.len() - 1);
                let same = last.iter().zip(key).take(self.common).take_while(|(a, b)| a == b);
                let common = same.count();
                self.sorted = self.sorted && last <= key;
                self.common = common;
            }
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let (key, value) = (key.len() as u32, value.len() as u32);
        self.slots.push(Slot { hint: 0, at, key, value });
    }

    fn row(&self, n: usize) -> (&[u8], &[u8]) {
        let slot = &self.slots[n];
        let key = &self.bytes[slot.at..slot.at + slot.key as usize];
        let end = slot.at + slot.key as usize;
        (key, &self.bytes[end..end + slot.value as usize])
    }

    /// Puts the rows into key order; rows with equal keys stay in the order in which they came.
    pub(crate) fn sort(&mut self) {
        if self.sorted {
            return;
        }
        let (bytes, common) = (&self.bytes, self.common);
        let key = |slot: &Slot| &bytes[slot.at + common..slot.at + slot.key as usize];
        for slot in &mut self.slots {
            let rest = key(slot);
            let mut hint = [0; 8];
            let n = rest.len().min(8);
            hint[..n].copy_from_slice(&rest[..n]);
            slot.hint = u64::from_be_bytes(hint);
        }
        self.slots.sort_unstable_by(|a, b| {
            a.hint.cmp(&b.hint).then_with(|| key(a).cmp(key(b))).then_with(|| a.at.cmp(&b.at))
        });
        self.sorted = true;
    }

    /// The row at a position of the current order.
    pub(crate) fn get(&self, n: usize) -> Option<(&[u8], &[u8])> {
        (n < self.slots.len()).then(|| self.row(n))
    }

    /// All rows in the current order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.slots.len()).map(|n| self.row(n))
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(buffer: &Buffer) -> Vec<String> {
        buffer.rows().map(|(k, v)| format!("{}={}", k.escape_ascii(), v.escape_ascii())).collect()
    }

    #[test]
    fn rows_are_sorted_behind_what_they_have_in_common() {
        let mut buffer = Buffer::default();
        for (key, value) in [("tab/10", "a"), ("tab/1", "b"), ("tab/2", "c"), ("tab/10", "d")] {
            buffer.push(key.as_bytes(), value.as_bytes());
        }
        buffer.sort();
        assert_eq!(keys(&buffer), ["tab/1=b", "tab/10=a", "tab/10=d", "tab/2=c"]);
        buffer.clear();
        assert!(buffer.is_empty() && buffer.get(0).is_none());
        for key in ["b", "a", "", "ab", "a\0", "abcdefghij", "abcdefghia"] {
            buffer.push(key.as_bytes(), b"");
        }
        buffer.sort();
        let all = ["=", "a=", "a\\x00=", "ab=", "abcdefghia=", "abcdefghij=", "b="];
        assert_eq!(keys(&buffer), all);
    }
}
