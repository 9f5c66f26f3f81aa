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
//! stored as the distance from the block's smallest one, in 0, 1, 2, 4 or 8 bytes. If all values
//! have one length, there are no value offsets.
//!
//! Which rows a read sees is found for 64 rows at once. Versions of a key are newest first, so
//! the bits `le` (timestamp at or below the read) go from 0 to 1 once per key:
//!
//! ```text
//!   key        a a a b c c          visible = le and not (same and le of the row before)
//!   ts         9 5 3 7 8 2
//!   le (T=7)   0 1 1 1 0 1
//!   same       0 1 1 0 0 1
//!   visible    0 1 0 1 0 1
//! ```

use arc_swap::RefCnt;
use bytes::Bytes;

use super::columns::{head_at, head_of, partition_point, slice_at, u8_at, u16_at, u32_at, u64_at};
use super::format::{le_u16, le_u32, le_u64};
use crate::cache::{Frame, Header, Life, prefetch};
use crate::key::Kind;

pub(crate) const BUNDLE: usize = 16;
pub(super) const HEADER: usize = 40;
const META: usize = 6;
/// Flag: the first row continues the key of the block before.
pub(super) const CONTINUES: u8 = 1;
/// Flag: there is a class column (more than one class).
pub(super) const HAS_CLASSES: u8 = 2;
/// No fixed value length: there are offsets.
pub(super) const NO_FIXED_LEN: u16 = 0xFFFF;

/// A row block in memory. Cloning counts a reference. Everything that leads from one place of the
/// image to another is checked by [`RowBlock::parse`]; the SAFETY notes below refer to that.
#[derive(Clone)]
pub(crate) struct RowBlock {
    frame: Frame<Columns>,
}

impl Header for Columns {
    const LIFE: Life = Life::Passing;
}

/// Where the columns of a block begin, and what its header says.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    n_rows: usize,
    n_bundles: usize,
    ts_base: u64,
    max_ts: u64,
    prefix_end: u32,
    heads: u32,
    metas: u32,
    ts: u32,
    same_key: u32,
    is_put: u32,
    /// Position of the class column; 0 if there is none.
    class: u32,
    key_offsets: u32,
    value_offsets: u32,
    keys: u32,
    values: u32,
    classes: u32,
    fixed_len: Option<u16>,
    ts_width: u8,
    wide_offsets: bool,
    /// Whether any row is an older version of the key before it.
    multi: bool,
    all_puts: bool,
    /// Bit `b % 64` is set if a value begins with byte b.
    first_bytes: u64,
}

impl std::fmt::Debug for RowBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Columns { n_rows, ts_base, max_ts, .. } = **self;
        write!(f, "{n_rows} rows @{ts_base}..={max_ts}")
    }
}

impl std::ops::Deref for RowBlock {
    type Target = Columns;

    #[inline(always)]
    fn deref(&self) -> &Columns {
        self.frame.header()
    }
}

/// A value that keeps its block in memory.
struct PinnedValue {
    block: RowBlock,
    start: u32,
    end: u32,
}

impl AsRef<[u8]> for PinnedValue {
    fn as_ref(&self) -> &[u8] {
        &self.block.image()[self.start as usize..self.end as usize]
    }
}

// SAFETY: hands on what `Frame` promises; a block is nothing but its frame.
unsafe impl RefCnt for RowBlock {
    type Base = u8;

    fn into_ptr(me: RowBlock) -> *mut u8 {
        Frame::into_ptr(me.frame)
    }

    fn as_ptr(me: &RowBlock) -> *mut u8 {
        Frame::as_ptr(&me.frame)
    }

    unsafe fn from_ptr(ptr: *const u8) -> RowBlock {
        // SAFETY: the pointer came from `into_ptr` or `as_ptr`, that is, from a frame.
        RowBlock { frame: unsafe { Frame::from_ptr(ptr) } }
    }
}

impl RowBlock {
    /// Reads and checks an image.
    pub(crate) fn parse(image: &[u8]) -> Result<RowBlock, &'static str> {
        if image.len() < HEADER || u32::try_from(image.len()).is_err() {
            return Err("row block header is cut off");
        }
        let n_rows = usize::from(le_u16(image, 0));
        let n_bundles = usize::from(le_u16(image, 2));
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
        let fixed_len = Some(le_u16(image, 10)).filter(|len| *len != NO_FIXED_LEN);
        let words = n_rows.div_ceil(64) * 8;
        let prefix_end = HEADER + usize::from(le_u16(image, 8));
        let heads = prefix_end;
        let metas = heads + n_bundles * 8;
        let ts = metas + n_bundles * META;
        let same_key = ts + n_rows * ts_width;
        let is_put = same_key + words;
        let after_bits = is_put + words;
        let has_classes = flags & HAS_CLASSES != 0;
        let key_offsets = after_bits + if has_classes { n_rows } else { 0 };
        let value_offsets = key_offsets + (n_rows + 1) * off_width;
        let columns_end =
            value_offsets + if fixed_len.is_some() { 0 } else { (n_rows + 1) * off_width };
        let keys = le_u32(image, 32) as usize;
        let values = le_u32(image, 36) as usize;
        if columns_end != keys || keys > values || values > image.len() {
            return Err("row block columns do not fit together");
        }
        let columns = Columns {
            n_rows,
            n_bundles,
            multi: false,
            all_puts: true,
            first_bytes: 0,
            ts_width: ts_width as u8,
            wide_offsets: off_width == 4,
            fixed_len,
            prefix_end: prefix_end as u32,
            heads: heads as u32,
            metas: metas as u32,
            ts: ts as u32,
            same_key: same_key as u32,
            is_put: is_put as u32,
            class: if has_classes { after_bits as u32 } else { 0 },
            key_offsets: key_offsets as u32,
            value_offsets: value_offsets as u32,
            keys: keys as u32,
            values: values as u32,
            classes: le_u32(image, 12),
            ts_base: le_u64(image, 16),
            max_ts: le_u64(image, 24),
        };
        let mut block = RowBlock { frame: Frame::new(columns, image) };
        block.check_offsets()?;
        let (mut multi, mut all_puts) = (false, true);
        for word in 0..n_rows.div_ceil(64) {
            let rows = block.rows_of(word);
            multi |= block.bits(block.same_key, word) & rows != 0;
            all_puts &= block.bits(block.is_put, word) & rows == rows;
        }
        let first = |row| block.value(row).first().map_or(0, |byte| 1 << (byte % 64));
        let first_bytes = (0..n_rows).fold(0, |bytes, row| bytes | first(row));
        let columns = block.frame.header_mut().expect("nobody else has it yet");
        (columns.multi, columns.all_puts) = (multi, all_puts);
        columns.first_bytes = first_bytes;
        Ok(block)
    }

    #[inline(always)]
    fn image(&self) -> &[u8] {
        self.frame.image()
    }

    /// As if all rows had been written at `ts`; for blocks with one row per key.
    pub(crate) fn override_ts(&mut self, ts: u64) {
        let columns = self.frame.header_mut().expect("a block is overridden before it is shared");
        (columns.ts_base, columns.max_ts, columns.ts_width) = (ts, ts, 0);
    }

    /// From here on, keys and values can be sliced without looking at bounds again.
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
        if last != (self.values - self.keys) as usize {
            return Err("row block keys have another length than they say");
        }
        let value_bytes = self.image().len() - self.values as usize;
        if let Some(len) = self.fixed_len {
            return if usize::from(len) * self.n_rows == value_bytes {
                Ok(())
            } else {
                Err("row block values have another length than they say")
            };
        }
        let mut last = 0;
        for row in 0..=self.n_rows {
            let offset = self.offset(self.value_offsets, row);
            if offset < last || (row == 0 && offset != 0) {
                return Err("row block values overlap");
            }
            last = offset;
        }
        if last != value_bytes {
            return Err("row block values have another length than they say");
        }
        Ok(())
    }

    fn meta(&self, bundle: usize) -> (usize, usize) {
        debug_assert!(bundle < self.n_bundles);
        let at = self.metas as usize + bundle * META;
        // SAFETY: `bundle < n_bundles`, and the columns lie in the image (parse).
        unsafe { (u32_at(self.image(), at) as usize, usize::from(u16_at(self.image(), at + 4))) }
    }

    #[inline(always)]
    fn offset(&self, column: u32, row: usize) -> usize {
        debug_assert!(row <= self.n_rows);
        // SAFETY: `row <= n_rows`, and the columns lie in the image (parse).
        unsafe {
            if self.wide_offsets {
                u32_at(self.image(), column as usize + row * 4) as usize
            } else {
                usize::from(u16_at(self.image(), column as usize + row * 2))
            }
        }
    }

    /// 64 bits of a bit column.
    fn bits(&self, column: u32, word: usize) -> u64 {
        debug_assert!(word * 64 < self.n_rows);
        // SAFETY: bit columns have a whole word for each begun 64 rows (parse).
        unsafe { u64_at(self.image(), column as usize + word * 8) }
    }

    fn bit(&self, column: u32, row: usize) -> bool {
        debug_assert!(row < self.n_rows);
        // SAFETY: `row < n_rows`, and the columns lie in the image (parse).
        unsafe { u8_at(self.image(), column as usize + row / 8) & (1 << (row % 8)) != 0 }
    }

    /// Bits of the rows that there are in a word.
    fn rows_of(&self, word: usize) -> u64 {
        match self.n_rows - word * 64 {
            rows @ 0..64 => (1 << rows) - 1,
            _ => u64::MAX,
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.frame.memory()
    }

    pub(crate) fn len(&self) -> usize {
        self.n_rows
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

    #[inline(always)]
    fn distance(&self, row: usize) -> u64 {
        debug_assert!(row < self.n_rows);
        let (image, at) = (self.image(), self.ts as usize);
        // SAFETY: `row < n_rows`, and the columns lie in the image (parse).
        unsafe {
            match self.ts_width {
                0 => 0,
                1 => u64::from(u8_at(image, at + row)),
                2 => u64::from(u16_at(image, at + row * 2)),
                4 => u64::from(u32_at(image, at + row * 4)),
                _ => u64_at(image, at + row * 8),
            }
        }
    }

    #[inline(always)]
    pub(crate) fn ts(&self, row: usize) -> u64 {
        self.ts_base.wrapping_add(self.distance(row))
    }

    /// Whether the row has the same key as the one before it.
    pub(crate) fn same_key(&self, row: usize) -> bool {
        self.multi && self.bit(self.same_key, row)
    }

    pub(crate) fn kind(&self, row: usize) -> Kind {
        if self.all_puts || self.bit(self.is_put, row) { Kind::Put } else { Kind::Delete }
    }

    pub(crate) fn class(&self, row: usize) -> u8 {
        debug_assert!(row < self.n_rows);
        match self.class {
            0 => self.classes.trailing_zeros() as u8,
            // SAFETY: `row < n_rows`, and the columns lie in the image (parse).
            column => unsafe { u8_at(self.image(), column as usize + row) },
        }
    }

    /// Of rows 64 `word` to 64 `word` + 63, the newest version of each key with a timestamp up to
    /// `read_ts`, of the given classes. `carry`: the row before this word can be seen; it is set
    /// for the next word.
    pub(crate) fn visible(&self, word: usize, read_ts: u64, classes: u32, carry: &mut bool) -> u64 {
        let rows = self.rows_of(word);
        let le = if read_ts >= self.max_ts {
            rows
        } else if read_ts < self.ts_base {
            0
        } else {
            let limit = read_ts - self.ts_base;
            let first = word * 64;
            let end = (first + 64).min(self.n_rows);
            (first..end).fold(0, |bits, row| {
                bits | (u64::from(self.distance(row) <= limit) << (row - first))
            })
        };
        let mut seen = le;
        if self.multi {
            let same = self.bits(self.same_key, word);
            seen = le & !(same & ((le << 1) | u64::from(*carry)));
        }
        *carry = le & (rows ^ (rows >> 1)) != 0;
        if self.classes & !classes == 0 {
            return seen;
        }
        // One class of few, mostly: a parent's rows among its children's.
        let mut left = self.classes & classes;
        let mut wanted = 0;
        while left != 0 {
            wanted |= self.of_class(word, left.trailing_zeros() as u8);
            left &= left - 1;
        }
        wanted & seen
    }

    /// Of rows 64 `word` to 64 `word` + 63, those of a class, where there are several.
    fn of_class(&self, word: usize, class: u8) -> u64 {
        let (first, column) = (word * 64, self.class as usize);
        let end = (first + 64).min(self.n_rows);
        let classes = &self.image()[column + first..column + end];
        let (eights, rest) = classes.as_chunks::<8>();
        let mut found = 0;
        for (i, eight) in eights.iter().enumerate() {
            found |= equal_bytes(u64::from_le_bytes(*eight), class) << (8 * i);
        }
        for (i, byte) in rest.iter().enumerate() {
            found |= u64::from(*byte == class) << (8 * eights.len() + i);
        }
        found
    }

    /// Of rows 64 `word` to 64 `word` + 63, those that nobody gets to see: deletes, and what is
    /// older than `hidden_below`.
    pub(crate) fn not_handed_out(&self, word: usize, hidden_below: u64) -> u64 {
        let rows = self.rows_of(word);
        let deletes = if self.all_puts { 0 } else { rows & !self.bits(self.is_put, word) };
        if hidden_below <= self.ts_base {
            return deletes;
        }
        if hidden_below > self.max_ts {
            return rows;
        }
        let (limit, first) = (hidden_below - self.ts_base, word * 64);
        let end = (first + 64).min(self.n_rows);
        (first..end).fold(deletes, |bits, row| {
            bits | (u64::from(self.distance(row) < limit) << (row - first))
        })
    }

    #[inline(always)]
    pub(crate) fn value_bounds(&self, row: usize) -> (usize, usize) {
        debug_assert!(row < self.n_rows);
        let values = self.values as usize;
        if let Some(len) = self.fixed_len {
            let start = values + row * usize::from(len);
            return (start, start + usize::from(len));
        }
        let start = values + self.offset(self.value_offsets, row);
        (start, values + self.offset(self.value_offsets, row + 1))
    }

    #[inline(always)]
    pub(crate) fn value(&self, row: usize) -> &[u8] {
        let (start, end) = self.value_bounds(row);
        // SAFETY: value offsets ascend and end at the image's end (check_offsets).
        unsafe { slice_at(self.image(), start, end) }
    }

    /// Bytes of the image, between places that [`RowBlock::value_bounds`] gave.
    pub(crate) fn bytes_at(&self, start: usize, len: usize) -> &[u8] {
        &self.image()[start..start + len]
    }

    /// Whether it is the same block in the same place of memory.
    pub(crate) fn is(&self, other: &RowBlock) -> bool {
        std::ptr::eq(self.image(), other.image())
    }

    /// Whether a value may begin with this byte.
    pub(crate) fn may_begin_with(&self, first: u8) -> bool {
        self.first_bytes & (1 << (first % 64)) != 0
    }

    /// Bytes of a row's key and value, on average.
    pub(crate) fn bytes_each(&self) -> usize {
        let keys = self.prefix().len() + (self.values - self.keys) as usize / self.n_rows;
        keys + self.value_bytes_len() / self.n_rows
    }

    /// Bytes of all values.
    pub(crate) fn value_bytes_len(&self) -> usize {
        self.image().len() - self.values as usize
    }

    /// The value, sharing the block's memory. Does not touch its bytes.
    pub(crate) fn value_bytes(&self, row: usize) -> Bytes {
        let (start, end) = self.value_bounds(row);
        prefetch(self.image().as_ptr().wrapping_add(start));
        let (start, end) = (start as u32, end as u32);
        Bytes::from_owner(PinnedValue { block: self.clone(), start, end })
    }

    fn prefix(&self) -> &[u8] {
        // SAFETY: the prefix lies before the columns, which lie in the image (parse).
        unsafe { slice_at(self.image(), HEADER, self.prefix_end as usize) }
    }

    fn bundle_prefix(&self, bundle: usize) -> &[u8] {
        let (offset, len) = self.meta(bundle);
        let start = self.keys as usize + offset;
        // SAFETY: bundle prefixes lie between suffixes in the key bytes (check_offsets).
        unsafe { slice_at(self.image(), start, start + len) }
    }

    #[inline(always)]
    fn suffix_bounds(&self, row: usize) -> (usize, usize) {
        debug_assert!(row < self.n_rows);
        let start = self.offset(self.key_offsets, row);
        let next = row + 1;
        let end = if next < self.n_rows && next.is_multiple_of(BUNDLE) {
            self.meta(next / BUNDLE).0
        } else {
            self.offset(self.key_offsets, next)
        };
        (self.keys as usize + start, self.keys as usize + end)
    }

    #[inline(always)]
    fn suffix(&self, row: usize) -> &[u8] {
        let (start, end) = self.suffix_bounds(row);
        // SAFETY: suffixes ascend within the key bytes, which lie in the image (check_offsets).
        unsafe { slice_at(self.image(), start, end) }
    }

    /// Puts the key of a row into `out`.
    pub(crate) fn read_key(&self, row: usize, out: &mut Vec<u8>) {
        out.clear();
        self.append_key(row, out);
    }

    /// Puts what the keys of a row's bundle share into `out`.
    pub(super) fn read_shared(&self, row: usize, out: &mut Vec<u8>) {
        out.clear();
        self.append_shared(row, out);
    }

    /// Appends the key of a row to `out`.
    pub(crate) fn append_key(&self, row: usize, out: &mut Vec<u8>) {
        self.append_shared(row, out);
        out.extend_from_slice(self.suffix(row));
    }

    /// Appends what the keys of a row's bundle share to `out`.
    pub(super) fn append_shared(&self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix());
        out.extend_from_slice(self.bundle_prefix(row / BUNDLE));
    }

    /// How much the keys of a row's bundle share.
    pub(super) fn shared_len(&self, row: usize) -> usize {
        self.prefix().len() + self.meta(row / BUNDLE).1
    }

    /// Copies what the keys of a row's bundle share to the head of `out`, which has room for it.
    pub(super) fn copy_shared(&self, row: usize, out: &mut [u8]) {
        let (prefix, bundle) = (self.prefix(), self.bundle_prefix(row / BUNDLE));
        out[..prefix.len()].copy_from_slice(prefix);
        out[prefix.len()..][..bundle.len()].copy_from_slice(bundle);
    }

    /// The first eight bytes of [`RowBlock::own_key`], zero padded, and its length.
    #[inline(always)]
    pub(super) fn own_head(&self, row: usize) -> ([u8; 8], usize) {
        let (start, end) = self.suffix_bounds(row);
        // SAFETY: suffixes lie in the image (check_offsets).
        let head = unsafe { head_at(self.image(), start, end) };
        (head.to_be_bytes(), end - start)
    }

    /// What a row's key has behind what its bundle shares.
    #[inline(always)]
    pub(crate) fn own_key(&self, row: usize) -> &[u8] {
        self.suffix(row)
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

    #[inline(always)]
    fn head(&self, bundle: usize) -> u64 {
        debug_assert!(bundle < self.n_bundles);
        // SAFETY: `bundle < n_bundles`, and the columns lie in the image (parse).
        unsafe { u64_at(self.image(), self.heads as usize + bundle * 8) }
    }

    /// Brings the part of the block closer where a search begins.
    #[inline]
    pub(crate) fn prefetch(&self) {
        // Counters and columns, header and prefix, heads.
        self.frame.prefetch(6);
    }

    /// Brings closer what the block's header says.
    #[inline]
    pub(crate) fn prefetch_header(&self) {
        self.frame.prefetch(3);
    }

    /// Brings the rows' classes closer, if there are several. The block's header is there already.
    #[inline]
    pub(crate) fn prefetch_classes(&self) {
        if self.class > 0 {
            let classes = self.image().as_ptr().wrapping_add(self.class as usize);
            for row in (0..=self.n_rows).step_by(64) {
                prefetch(classes.wrapping_add(row));
            }
        }
    }

    /// Brings closer what the rows of a bundle will be asked for: keys, offsets, timestamps, kinds.
    #[inline]
    fn prefetch_bundle(&self, bundle: usize) {
        let start = self.image().as_ptr();
        let at = |position: usize| prefetch(start.wrapping_add(position));
        let row = bundle * BUNDLE;
        at(self.key_offsets as usize + row * if self.wide_offsets { 4 } else { 2 });
        at(self.ts as usize + row * usize::from(self.ts_width));
        at(self.is_put as usize + row / 8);
        let keys = self.keys as usize + self.meta(bundle).0;
        at(keys);
        at(keys + 64);
    }

    /// Brings closer what a scan reads first. The block's header is there already.
    pub(crate) fn prefetch_columns(&self) {
        let start = self.image().as_ptr();
        for column in [self.ts, self.same_key, self.key_offsets, self.keys] {
            for line in 0..3 {
                prefetch(start.wrapping_add(column as usize + line * 64));
            }
        }
        self.prefetch_values(0, 8);
    }

    /// Brings a value closer whose place [`RowBlock::value_bounds`] gave.
    #[inline(always)]
    pub(crate) fn prefetch_value(&self, start: usize) {
        prefetch(self.image().as_ptr().wrapping_add(start));
    }

    /// Brings the values of some rows from `row` on closer, up to a KiB.
    #[inline]
    pub(crate) fn prefetch_values(&self, row: usize, rows: usize) {
        let (start, first_end) = self.value_bounds(row);
        let bytes = (first_end - start).saturating_mul(rows).min(1 << 10);
        let image = self.image().as_ptr();
        for at in (start..start + bytes).step_by(64) {
            prefetch(image.wrapping_add(at));
        }
    }

    /// First row with a key at or after `key`; `len()` if there is none.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        let prefix = self.prefix();
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.n_rows };
        };
        let head = head_of(rest);
        // First bundle whose first key is at or after `key`.
        let mut bundle = partition_point(self.n_bundles, |i| self.head(i) < head);
        if bundle < self.n_bundles && self.head(bundle) == head {
            // Equal heads do not decide: compare the keys of those bundles.
            let ties = self.n_bundles - bundle;
            let equal = partition_point(ties, |i| self.head(bundle + i) == head);
            let before = |i: usize| self.compare((bundle + i) * BUNDLE, rest).is_lt();
            bundle += partition_point(equal, before);
        }
        if bundle == 0 {
            return 0;
        }
        self.prefetch_bundle(bundle - 1);
        self.lower_bound_within(bundle - 1, rest)
    }

    /// A number of rows, at most sixteen less than [`RowBlock::lower_bound`] if no heads are equal,
    /// that are below `key` for certain. Looks at the heads alone: the keys near `key` may be cold.
    pub(crate) fn rows_surely_below(&self, key: &[u8]) -> usize {
        let prefix = self.prefix();
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.n_rows };
        };
        let head = head_of(rest);
        let bundles = partition_point(self.n_bundles, |i| self.head(i) < head);
        bundles.saturating_sub(1) * BUNDLE
    }

    /// As [`RowBlock::lower_bound`], among the rows of a bundle behind its first; `rest` is above
    /// the first.
    fn lower_bound_within(&self, bundle: usize, rest: &[u8]) -> usize {
        let first = bundle * BUNDLE + 1;
        let end = (bundle * BUNDLE + BUNDLE).min(self.n_rows);
        let shared = self.bundle_prefix(bundle);
        let Some(rest) = rest.strip_prefix(shared) else {
            // `rest` is above the first key and does not share its prefix: above all of them.
            return end;
        };
        let head = head_of(rest);
        first
            + partition_point(end - first, |i| {
                let (start, end) = self.suffix_bounds(first + i);
                // SAFETY: suffixes lie in the image (check_offsets).
                let own = unsafe { head_at(self.image(), start, end) };
                own < head || (own == head && self.suffix(first + i) < rest)
            })
    }
}

/// Bit i: whether byte i of `eight` is `byte`.
fn equal_bytes(eight: u64, byte: u8) -> u64 {
    const LOW: u64 = u64::MAX / 0xFF;
    let differs = eight ^ (LOW * u64::from(byte));
    // The highest bit of each byte: 0 where all bits of the byte are.
    let any = ((differs & (LOW * 0x7F)) + LOW * 0x7F) | differs;
    let equal = !any >> 7 & LOW;
    // Moves the lowest bit of byte i to bit i of the highest byte.
    equal.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::super::row_block_builder::RowBlockBuilder;
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
                let len = if seed % 4 == 0 { 9 } else { random.below(300) as usize };
                let value = vec![i as u8; len];
                let class = random.below(1 + seed % 3) as u8;
                builder.add(key, ts, kind, &value, class, same);
                rows.push((ts, kind, value, class, same));
            }
            let image = builder.finish().0;
            let block = RowBlock::parse(&image).unwrap();
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
            for (word, classes) in
                (0..rows.len().div_ceil(64)).flat_map(|w| (0..8).map(move |c| (w, c)))
            {
                let seen = block.visible(word, u64::MAX, u32::MAX, &mut false);
                let of_classes = block.visible(word, u64::MAX, classes, &mut false);
                for (i, row) in rows.iter().enumerate().skip(word * 64).take(64) {
                    let expected = seen >> (i % 64) & u64::from(classes >> row.3) & 1;
                    assert_eq!(of_classes >> (i % 64) & 1, expected, "seed {seed}, row {i}");
                }
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
                assert!(block.rows_surely_below(&probe) <= expected, "seed {seed}");
            }
        }
    }

    #[test]
    fn damaged_images_are_refused_or_readable_but_never_panic() {
        let mut builder = RowBlockBuilder::default();
        for i in 0..40u8 {
            builder.add(&[b'k', i], u64::from(i), Kind::Put, &[i; 5], i % 3, false);
        }
        let image = builder.finish().0;
        for at in 0..image.len() {
            for mask in [1, 0x80, 0xFF] {
                let mut broken = image.clone();
                broken[at] ^= mask;
                if let Ok(block) = RowBlock::parse(&broken) {
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
