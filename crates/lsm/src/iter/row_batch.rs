//! Rows in columns: what a fast scan hands out.
//!
//! All keys lie in one buffer and all values in another, so filling a batch is two copies per row
//! and no allocation once the buffers have grown.

use crate::key::CommitTs;

/// Some rows of a scan.
#[derive(Debug, Clone, Default)]
pub struct RowBatch {
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    values: Vec<u8>,
    value_ends: Vec<usize>,
    timestamps: Vec<u64>,
}

impl RowBatch {
    /// An empty batch.
    pub fn new() -> RowBatch {
        RowBatch::default()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    /// Bytes of keys and values.
    pub fn byte_len(&self) -> usize {
        self.keys.len() + self.values.len()
    }

    /// Key of row `i`; panics if `i >= len()`.
    pub fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.key_ends[i - 1] };
        &self.keys[start..self.key_ends[i]]
    }

    /// Value of row `i`; panics if `i >= len()`.
    pub fn value(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.value_ends[i - 1] };
        &self.values[start..self.value_ends[i]]
    }

    /// Commit timestamp of row `i`; panics if `i >= len()`.
    pub fn ts(&self, i: usize) -> CommitTs {
        CommitTs(self.timestamps[i])
    }

    /// The rows as (key, value, timestamp).
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], CommitTs)> {
        (0..self.len()).map(|i| (self.key(i), self.value(i), self.ts(i)))
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.values.clear();
        self.value_ends.clear();
        self.timestamps.clear();
    }

    /// Makes room for rows like the first one, of which about so many will come.
    fn reserve_like(&mut self, key: &[u8], value: &[u8], rows: usize) {
        const MAX_ROWS: usize = 1_024;
        const MAX_BYTES: usize = 256 << 10;
        let rows = rows.clamp(1, MAX_ROWS);
        self.keys.reserve((rows * key.len()).min(MAX_BYTES));
        self.values.reserve((rows * value.len()).min(MAX_BYTES));
        self.key_ends.reserve(rows);
        self.value_ends.reserve(rows);
        self.timestamps.reserve(rows);
    }

    /// Adds a row to a batch that will have about `rows`.
    #[inline]
    pub(crate) fn push_of(&mut self, rows: usize, key: &[u8], value: &[u8], ts: u64) {
        if self.timestamps.capacity() == 0 {
            self.reserve_like(key, value, rows);
        }
        self.push(key, value, ts);
    }

    fn push(&mut self, key: &[u8], value: &[u8], ts: u64) {
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len());
        self.values.extend_from_slice(value);
        self.value_ends.push(self.values.len());
        self.timestamps.push(ts);
    }
}
