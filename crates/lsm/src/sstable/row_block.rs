//! Row blocks: columns instead of records.
//!
//! ```text
//!   header 40 B | block prefix | heads u64 x bundles | bundle meta (key_off u32, prefix u16) |
//!   ts | same_key bits | is_put bits | classes | key offsets | value offsets | keys | values
//! ```
//!
//! Rows come in bundles of 16. A key is block prefix + bundle prefix + its own suffix, so any row
//! is reached in O(1). `head` is the first eight bytes of a bundle's first key behind the block
//! prefix: a binary search over a dense column of numbers touches few cache lines. Timestamps are
//! stored as the distance from the block's smallest one, in 0, 1, 2, 4 or 8 bytes.

use bytes::Bytes;

use super::format::{le_u16, le_u32, le_u64};
use crate::key::Kind;

pub(crate) const BUNDLE: usize = 16;
const HEADER: usize = 40;
const META: usize = 6;
/// Flag: the first row continues the key of the block before.
const CONTINUES: u8 = 1;
/// Flag: there is a class column (more than one class).
const HAS_CLASSES: u8 = 2;
/// No fixed value length: there are offsets.
const NO_FIXED_LEN: u16 = 0xFFFF;

struct PendingRow {
    key: (usize, usize),
    value: (usize, usize),
    ts: u64,
    kind: Kind,
    class: u8,
    same_key: bool,
}

/// Collects rows of one block.
#[derive(Default)]
pub(crate) struct RowBlockBuilder {
    rows: Vec<PendingRow>,
    keys: Vec<u8>,
    values: Vec<u8>,
}

/// What an index says about a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockFacts {
    pub(crate) classes: u32,
    pub(crate) min_ts: u64,
    pub(crate) max_ts: u64,
    /// Keys whose newest entry here is a put.
    pub(crate) live: u32,
    pub(crate) has_delete: bool,
    pub(crate) has_multi: bool,
}

impl RowBlockBuilder {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Rough size of the finished block.
    pub(crate) fn size(&self) -> usize {
        self.keys.len() / 2 + self.values.len() + self.rows.len() * 8
    }

    pub(crate) fn last_key(&self) -> &[u8] {
        self.rows.last().map_or(&[], |row| &self.keys[row.key.0..row.key.1])
    }

    pub(crate) fn add(
        &mut self,
        key: &[u8],
        ts: u64,
        kind: Kind,
        value: &[u8],
        class: u8,
        same_key: bool,
    ) {
        let (k, v) = (self.keys.len(), self.values.len());
        self.keys.extend_from_slice(key);
        self.values.extend_from_slice(value);
        self.rows.push(PendingRow {
            key: (k, self.keys.len()),
            value: (v, self.values.len()),
            ts,
            kind,
            class,
            same_key,
        });
    }

    fn key(&self, row: usize) -> &[u8] {
        let (start, end) = self.rows[row].key;
        &self.keys[start..end]
    }

    fn facts(&self) -> BlockFacts {
        let mut facts = BlockFacts {
            classes: 0,
            min_ts: u64::MAX,
            max_ts: 0,
            live: 0,
            has_delete: false,
            has_multi: false,
        };
        for row in &self.rows {
            facts.classes |= 1 << (row.class & 31);
            facts.min_ts = facts.min_ts.min(row.ts);
            facts.max_ts = facts.max_ts.max(row.ts);
            facts.live += u32::from(row.kind == Kind::Put && !row.same_key);
            facts.has_delete |= row.kind == Kind::Delete;
            facts.has_multi |= row.same_key;
        }
        facts
    }

    /// Writes the block's image and empties the builder. Must hold at least one row.
    pub(crate) fn finish(&mut self) -> (Vec<u8>, BlockFacts) {
        let facts = self.facts();
        let n = self.rows.len();
        let n_bundles = n.div_ceil(BUNDLE);
        let prefix_len = common_prefix(self.key(0), self.key(n - 1)).min(u16::MAX as usize);
        let (key_area, key_offsets, metas, heads) = self.lay_out_keys(prefix_len, n_bundles);
        let ts_width = width_of(facts.max_ts - facts.min_ts);
        let wide = key_area.len().max(self.values.len()) > usize::from(u16::MAX);
        let off_width = if wide { 4 } else { 2 };
        let has_classes = !facts.classes.is_power_of_two();
        let mut flags = 0;
        if self.rows[0].same_key {
            flags |= CONTINUES;
        }
        if has_classes {
            flags |= HAS_CLASSES;
        }
        let mut out = vec![0; HEADER];
        out.extend_from_slice(&self.key(0)[..prefix_len]);
        for head in &heads {
            out.extend_from_slice(&head.to_le_bytes());
        }
        for (offset, len) in &metas {
            out.extend_from_slice(&offset.to_le_bytes());
            out.extend_from_slice(&len.to_le_bytes());
        }
        for row in &self.rows {
            let distance = (row.ts - facts.min_ts).to_le_bytes();
            out.extend_from_slice(&distance[..ts_width]);
        }
        push_bits(&mut out, self.rows.iter().map(|row| row.same_key));
        push_bits(&mut out, self.rows.iter().map(|row| row.kind == Kind::Put));
        if has_classes {
            out.extend(self.rows.iter().map(|row| row.class));
        }
        for offset in key_offsets {
            out.extend_from_slice(&(offset as u32).to_le_bytes()[..off_width]);
        }
        for end in std::iter::once(0).chain(self.rows.iter().map(|row| row.value.1)) {
            out.extend_from_slice(&(end as u32).to_le_bytes()[..off_width]);
        }
        let keys_start = out.len() as u32;
        out.extend_from_slice(&key_area);
        let values_start = out.len() as u32;
        out.extend_from_slice(&self.values);
        out[0..2].copy_from_slice(&(n as u16).to_le_bytes());
        out[2..4].copy_from_slice(&(n_bundles as u16).to_le_bytes());
        out[4] = flags;
        out[6] = ts_width as u8;
        out[7] = off_width as u8;
        out[8..10].copy_from_slice(&(prefix_len as u16).to_le_bytes());
        out[10..12].copy_from_slice(&NO_FIXED_LEN.to_le_bytes());
        out[12..16].copy_from_slice(&facts.classes.to_le_bytes());
        out[16..24].copy_from_slice(&facts.min_ts.to_le_bytes());
        out[24..32].copy_from_slice(&facts.max_ts.to_le_bytes());
        out[32..36].copy_from_slice(&keys_start.to_le_bytes());
        out[36..40].copy_from_slice(&values_start.to_le_bytes());
        self.rows.clear();
        self.keys.clear();
        self.values.clear();
        (out, facts)
    }

    /// Key bytes in storage order: per bundle its prefix, then the suffixes.
    #[expect(clippy::type_complexity, reason = "the four key columns of one block")]
    fn lay_out_keys(
        &self,
        prefix_len: usize,
        n_bundles: usize,
    ) -> (Vec<u8>, Vec<usize>, Vec<(u32, u16)>, Vec<u64>) {
        let n = self.rows.len();
        let mut area = Vec::new();
        let mut offsets = Vec::with_capacity(n + 1);
        let mut metas = Vec::with_capacity(n_bundles);
        let mut heads = Vec::with_capacity(n_bundles);
        for bundle in 0..n_bundles {
            let (first, end) = (bundle * BUNDLE, ((bundle + 1) * BUNDLE).min(n));
            let first_key = &self.key(first)[prefix_len..];
            let last_key = &self.key(end - 1)[prefix_len..];
            let shared = common_prefix(first_key, last_key).min(u16::MAX as usize);
            heads.push(head_of(first_key));
            metas.push((area.len() as u32, shared as u16));
            area.extend_from_slice(&first_key[..shared]);
            for row in first..end {
                offsets.push(area.len());
                area.extend_from_slice(&self.key(row)[prefix_len + shared..]);
            }
        }
        offsets.push(area.len());
        (area, offsets, metas, heads)
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let n = key.len().min(8);
    head[..n].copy_from_slice(&key[..n]);
    u64::from_be_bytes(head)
}

fn width_of(distance: u64) -> usize {
    match distance {
        0 => 0,
        1..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

fn push_bits(out: &mut Vec<u8>, bits: impl ExactSizeIterator<Item = bool>) {
    let start = out.len();
    out.resize(start + bits.len().div_ceil(64) * 8, 0);
    for (i, bit) in bits.enumerate() {
        out[start + i / 8] |= u8::from(bit) << (i % 8);
    }
}

/// A row block in memory, checked when it was loaded: no access can go out of bounds.
pub(crate) struct RowBlock {
    image: Bytes,
    n_rows: usize,
    n_bundles: usize,
    continues: bool,
    ts_width: usize,
    off_width: usize,
    prefix_end: usize,
    ts_base: u64,
    max_ts: u64,
    classes: u32,
    heads: usize,
    metas: usize,
    ts: usize,
    same_key: usize,
    is_put: usize,
    class: Option<usize>,
    key_offsets: usize,
    value_offsets: usize,
    keys: usize,
    values: usize,
}

impl RowBlock {
    /// Reads and checks an image.
    pub(crate) fn parse(image: Bytes) -> Result<RowBlock, &'static str> {
        if image.len() < HEADER {
            return Err("row block header is cut off");
        }
        let n_rows = usize::from(le_u16(&image, 0));
        let n_bundles = usize::from(le_u16(&image, 2));
        let flags = image[4];
        let (ts_width, off_width) = (usize::from(image[6]), usize::from(image[7]));
        if n_rows == 0 || n_bundles != n_rows.div_ceil(BUNDLE) {
            return Err("row block with impossible counts");
        }
        if !matches!(ts_width, 0 | 1 | 2 | 4 | 8) || !matches!(off_width, 2 | 4) {
            return Err("row block with impossible column widths");
        }
        if flags & !(CONTINUES | HAS_CLASSES) != 0 || image[5] != 0 {
            return Err("row block with unknown flags");
        }
        let words = n_rows.div_ceil(64) * 8;
        let prefix_end = HEADER + usize::from(le_u16(&image, 8));
        let heads = prefix_end;
        let metas = heads + n_bundles * 8;
        let ts = metas + n_bundles * META;
        let same_key = ts + n_rows * ts_width;
        let is_put = same_key + words;
        let after_bits = is_put + words;
        let has_classes = flags & HAS_CLASSES != 0;
        let key_offsets = after_bits + if has_classes { n_rows } else { 0 };
        let value_offsets = key_offsets + (n_rows + 1) * off_width;
        let keys = le_u32(&image, 32) as usize;
        let values = le_u32(&image, 36) as usize;
        if value_offsets + (n_rows + 1) * off_width != keys || keys > values || values > image.len()
        {
            return Err("row block columns do not fit together");
        }
        let block = RowBlock {
            n_rows,
            n_bundles,
            continues: flags & CONTINUES != 0,
            ts_width,
            off_width,
            prefix_end,
            ts_base: le_u64(&image, 16),
            max_ts: le_u64(&image, 24),
            classes: le_u32(&image, 12),
            heads,
            metas,
            ts,
            same_key,
            is_put,
            class: has_classes.then_some(after_bits),
            key_offsets,
            value_offsets,
            keys,
            values,
            image,
        };
        block.check_offsets()?;
        Ok(block)
    }

    /// As if all rows had been written at `ts`; for blocks with one row per key.
    pub(crate) fn override_ts(&mut self, ts: u64) {
        (self.ts_base, self.max_ts, self.ts_width) = (ts, ts, 0);
    }

    fn check_offsets(&self) -> Result<(), &'static str> {
        let mut last = 0;
        for row in 0..=self.n_rows {
            if row < self.n_rows && row % BUNDLE == 0 {
                let (offset, len) = self.meta(row / BUNDLE);
                if offset < last {
                    return Err("row block keys overlap");
                }
                last = offset + len;
            }
            let offset = self.offset(self.key_offsets, row);
            if offset < last {
                return Err("row block keys overlap");
            }
            last = offset;
        }
        if last != self.values - self.keys {
            return Err("row block keys have another length than they say");
        }
        let mut last = 0;
        for row in 0..=self.n_rows {
            let offset = self.offset(self.value_offsets, row);
            if offset < last {
                return Err("row block values overlap");
            }
            last = offset;
        }
        if last != self.image.len() - self.values {
            return Err("row block values have another length than they say");
        }
        Ok(())
    }

    fn meta(&self, bundle: usize) -> (usize, usize) {
        let at = self.metas + bundle * META;
        (le_u32(&self.image, at) as usize, usize::from(le_u16(&self.image, at + 4)))
    }

    fn offset(&self, column: usize, row: usize) -> usize {
        let at = column + row * self.off_width;
        if self.off_width == 2 {
            usize::from(le_u16(&self.image, at))
        } else {
            le_u32(&self.image, at) as usize
        }
    }

    fn bit(&self, column: usize, row: usize) -> bool {
        self.image[column + row / 8] & (1 << (row % 8)) != 0
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.image.len() + size_of::<RowBlock>()
    }

    pub(crate) fn len(&self) -> usize {
        self.n_rows
    }

    /// Whether the first row has the same key as the last row of the block before.
    pub(crate) fn continues(&self) -> bool {
        self.continues
    }

    pub(crate) fn min_ts(&self) -> u64 {
        self.ts_base
    }

    pub(crate) fn max_ts(&self) -> u64 {
        self.max_ts
    }

    pub(crate) fn classes(&self) -> u32 {
        self.classes
    }

    pub(crate) fn ts(&self, row: usize) -> u64 {
        let at = self.ts + row * self.ts_width;
        let distance = match self.ts_width {
            0 => 0,
            1 => u64::from(self.image[at]),
            2 => u64::from(le_u16(&self.image, at)),
            4 => u64::from(le_u32(&self.image, at)),
            _ => le_u64(&self.image, at),
        };
        self.ts_base.wrapping_add(distance)
    }

    /// Whether the row has the same key as the one before it.
    pub(crate) fn same_key(&self, row: usize) -> bool {
        self.bit(self.same_key, row)
    }

    pub(crate) fn kind(&self, row: usize) -> Kind {
        if self.bit(self.is_put, row) { Kind::Put } else { Kind::Delete }
    }

    pub(crate) fn class(&self, row: usize) -> u8 {
        match self.class {
            Some(column) => self.image[column + row],
            None => self.classes.trailing_zeros() as u8,
        }
    }

    fn value_bounds(&self, row: usize) -> (usize, usize) {
        let start = self.values + self.offset(self.value_offsets, row);
        (start, self.values + self.offset(self.value_offsets, row + 1))
    }

    pub(crate) fn value(&self, row: usize) -> &[u8] {
        let (start, end) = self.value_bounds(row);
        &self.image[start..end]
    }

    /// The value, sharing the block's memory.
    pub(crate) fn value_bytes(&self, row: usize) -> Bytes {
        let (start, end) = self.value_bounds(row);
        self.image.slice(start..end)
    }

    fn prefix(&self) -> &[u8] {
        &self.image[HEADER..self.prefix_end]
    }

    fn bundle_prefix(&self, bundle: usize) -> &[u8] {
        let (offset, len) = self.meta(bundle);
        &self.image[self.keys + offset..self.keys + offset + len]
    }

    fn suffix(&self, row: usize) -> &[u8] {
        let start = self.keys + self.offset(self.key_offsets, row);
        let next = row + 1;
        let end = if next < self.n_rows && next.is_multiple_of(BUNDLE) {
            self.meta(next / BUNDLE).0
        } else {
            self.offset(self.key_offsets, next)
        };
        &self.image[start..self.keys + end]
    }

    /// Puts the key of a row into `out`.
    pub(crate) fn read_key(&self, row: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.prefix());
        out.extend_from_slice(self.bundle_prefix(row / BUNDLE));
        out.extend_from_slice(self.suffix(row));
    }

    /// Whether the row has this key.
    pub(crate) fn key_is(&self, row: usize, key: &[u8]) -> bool {
        key.strip_prefix(self.prefix()).is_some_and(|rest| self.compare(row, rest).is_eq())
    }

    /// Compares the key of a row, without the block prefix, with `rest`.
    fn compare(&self, row: usize, rest: &[u8]) -> std::cmp::Ordering {
        let prefix = self.bundle_prefix(row / BUNDLE);
        let n = prefix.len().min(rest.len());
        prefix[..n].cmp(&rest[..n]).then_with(|| {
            if prefix.len() > rest.len() {
                std::cmp::Ordering::Greater
            } else {
                self.suffix(row).cmp(&rest[n..])
            }
        })
    }

    /// First row with a key at or after `key`; `len()` if there is none.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        let prefix = self.prefix();
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.n_rows };
        };
        let head = head_of(rest);
        // First bundle whose first key is at or after `key`.
        let (mut low, mut high) = (0, self.n_bundles);
        while low < high {
            let middle = low.midpoint(high);
            let order = le_u64(&self.image, self.heads + middle * 8)
                .cmp(&head)
                .then_with(|| self.compare(middle * BUNDLE, rest));
            if order.is_lt() { low = middle + 1 } else { high = middle }
        }
        if low == 0 {
            return 0;
        }
        let (mut first, mut end) = ((low - 1) * BUNDLE + 1, (low * BUNDLE).min(self.n_rows));
        while first < end {
            let middle = first.midpoint(end);
            if self.compare(middle, rest).is_lt() { first = middle + 1 } else { end = middle }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::random::Random;

    #[test]
    fn rows_come_back_and_every_key_is_found() {
        for seed in 0..200 {
            let mut random = Random::seeded(seed);
            let mut keys: Vec<Vec<u8>> = (0..random.between(1, 300))
                .map(|_| {
                    let mut key = b"shared/".to_vec();
                    let len = random.below(12) as usize;
                    key.extend((0..len).map(|_| b'a' + random.below(3) as u8));
                    if seed % 3 == 0 { key } else { key[random.below(2) as usize..].to_vec() }
                })
                .collect();
            keys.sort();
            let mut builder = RowBlockBuilder::default();
            let mut rows = Vec::new();
            for (i, key) in keys.iter().enumerate() {
                let same = i > 0 && keys[i - 1] == *key;
                let ts = 1_000_000 - i as u64 * random.below(1 << (seed % 12));
                let kind = if random.chance(1, 5) { Kind::Delete } else { Kind::Put };
                let value = vec![i as u8; random.below(300) as usize];
                let class = random.below(1 + seed % 3) as u8;
                builder.add(key, ts, kind, &value, class, same);
                rows.push((ts, kind, value, class, same));
            }
            let (image, _) = builder.finish();
            let block = RowBlock::parse(image.into()).unwrap();
            let mut key = Vec::new();
            for (i, row) in rows.iter().enumerate() {
                block.read_key(i, &mut key);
                assert_eq!(key, keys[i], "seed {seed}");
                let found = (
                    block.ts(i),
                    block.kind(i),
                    block.value(i).to_vec(),
                    block.class(i),
                    block.same_key(i),
                );
                assert_eq!(&found, row, "seed {seed}");
            }
            for _ in 0..200 {
                let mut probe = keys[random.below(keys.len() as u64) as usize].clone();
                match random.below(4) {
                    0 => probe.push(0),
                    1 => drop(probe.pop()),
                    2 => probe.push(b'z'),
                    _ => {}
                }
                let expected = keys.partition_point(|key| *key < probe);
                assert_eq!(block.lower_bound(&probe), expected, "seed {seed}");
            }
        }
    }

    #[test]
    fn damaged_images_are_refused_or_readable_but_never_panic() {
        let mut builder = RowBlockBuilder::default();
        for i in 0..40u8 {
            builder.add(&[b'k', i], u64::from(i), Kind::Put, &[i; 5], i % 3, false);
        }
        let (image, _) = builder.finish();
        for at in 0..image.len() {
            for mask in [1, 0x80, 0xFF] {
                let mut broken = image.clone();
                broken[at] ^= mask;
                if let Ok(block) = RowBlock::parse(broken.into()) {
                    let mut key = Vec::new();
                    for row in 0..block.len() {
                        block.read_key(row, &mut key);
                        block.lower_bound(&key);
                        assert!(block.value(row).len() <= image.len());
                    }
                }
            }
        }
    }
}
