//! A batch: everything one commit writes, at one timestamp, atomically.
//!
//! The order of calls matters inside a batch: a later call wins over an earlier one. Before it is
//! applied a batch is *normalised* to its net effect, because entries of one batch share a
//! timestamp, and at equal timestamps the rule is "points win over range tombstones":
//!
//! ```text
//!   put a1; put a2; delete_span [a, b); put a3     becomes     delete_span [a, b); put a3
//! ```
//!
//! Encoded form (the payload of a wal record, `docs/formats/wal.md`): a header, then entries.

use crate::error::{Error, Result};
use crate::key::{CommitTs, Kind};
use crate::options::{MAX_BATCH_LEN, MAX_KEY_LEN, MAX_VALUE_LEN};
use crate::range_tombstone::Skyline;

const HEADER_LEN: usize = 16;
const TAG_RANGE: u8 = 8;
const FLAG_HAS_RANGE: u16 = 4;

/// Writes at one commit timestamp.
///
/// It is encoded while it is built: what goes to the wal is what the calls wrote, unless
/// normalising changes it.
#[derive(Debug, Clone)]
pub struct Batch {
    ts: CommitTs,
    /// The wal form, with a header that is filled in at the end; empty if nothing was added.
    bytes: Vec<u8>,
    count: u32,
    puts: usize,
    spans: usize,
    /// Bytes of keys and values.
    data_len: usize,
    /// Where the key of the last entry is.
    last_key: (usize, usize),
    sorted: bool,
    oversized: Option<(&'static str, u64, u64)>,
}

/// One entry as the engine sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BatchOp<'a> {
    Point { key: &'a [u8], kind: Kind, value: &'a [u8] },
    Span { start: &'a [u8], end: &'a [u8] },
}

/// One call that was made to a [`Batch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchWrite<'a> {
    /// [`Batch::put`]: key and value.
    Put(&'a [u8], &'a [u8]),
    /// [`Batch::delete`].
    Delete(&'a [u8]),
    /// [`Batch::delete_span`]: start and end.
    DeleteSpan(&'a [u8], &'a [u8]),
}

impl<'a> BatchOp<'a> {
    /// The tag and the two byte strings of an entry.
    fn of(tag: u8, key: &'a [u8], value: &'a [u8]) -> BatchOp<'a> {
        match Kind::from_u8(tag) {
            Some(kind) => BatchOp::Point { key, kind, value },
            None => BatchOp::Span { start: key, end: value },
        }
    }
}

impl Batch {
    /// An empty batch that will be committed at `ts`.
    pub fn at(ts: CommitTs) -> Batch {
        Batch {
            ts,
            bytes: Vec::new(),
            count: 0,
            puts: 0,
            spans: 0,
            data_len: 0,
            last_key: (0, 0),
            sorted: true,
            oversized: None,
        }
    }

    /// The commit timestamp.
    pub fn ts(&self) -> CommitTs {
        self.ts
    }

    /// Changes the commit timestamp of the whole batch (it is chosen last, at commit).
    pub(crate) fn set_ts(&mut self, ts: CommitTs) {
        self.ts = ts;
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.push(Kind::Put as u8, key, value);
    }

    /// Deletes a key; it need not exist.
    pub fn delete(&mut self, key: &[u8]) {
        self.push(Kind::Delete as u8, key, &[]);
    }

    /// Deletes every key in `[start, end)` by one range tombstone. An empty span does nothing.
    pub fn delete_span(&mut self, start: &[u8], end: &[u8]) {
        if start < end {
            self.push(TAG_RANGE, start, end);
        }
    }

    /// Number of entries as they were added.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of keys and values.
    pub fn byte_len(&self) -> usize {
        self.data_len
    }

    fn push(&mut self, tag: u8, key: &[u8], value: &[u8]) {
        let key_limit = if tag == TAG_RANGE { MAX_KEY_LEN + 1 } else { MAX_KEY_LEN };
        self.limit("key", key.len(), key_limit);
        let value_limit = if tag == TAG_RANGE { MAX_KEY_LEN + 1 } else { MAX_VALUE_LEN };
        self.limit("value", value.len(), value_limit);
        if self.oversized.is_some() {
            return;
        }
        if self.sorted && self.count > 0 {
            let (start, end) = self.last_key;
            self.sorted = &self.bytes[start..end] < key;
        }
        const MOST_FRAMING: usize = 1 + 3 + 5;
        if self.bytes.is_empty() {
            self.bytes.reserve_exact(HEADER_LEN + MOST_FRAMING + key.len() + value.len());
            self.bytes.extend_from_slice(&[0; HEADER_LEN]);
        } else {
            self.bytes.reserve(MOST_FRAMING + key.len() + value.len());
        }
        self.bytes.push(tag);
        put_varint(&mut self.bytes, key.len() as u64);
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.last_key = (key_at, self.bytes.len());
        put_varint(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(value);
        self.count += 1;
        self.puts += usize::from(tag == Kind::Put as u8);
        self.spans += usize::from(tag == TAG_RANGE);
        self.data_len += key.len() + value.len();
        let framed = self.data_len + self.len() * 12;
        self.limit("batch", framed, MAX_BATCH_LEN);
    }

    fn limit(&mut self, what: &'static str, size: usize, limit: usize) {
        if size > limit && self.oversized.is_none() {
            self.oversized = Some((what, size as u64, limit as u64));
        }
    }

    /// Whether anything in the batch adds data rather than deleting it.
    pub(crate) fn adds_data(&self) -> bool {
        self.puts > 0
    }

    /// Number of range tombstones.
    pub(crate) fn span_count(&self) -> usize {
        self.spans
    }

    /// Reduces the batch to its net effect: each key at most once, in key order, no point that a
    /// later `delete_span` of this batch covers. Reports keys, values or batches over the limit.
    pub(crate) fn normalise(&mut self) -> Result<()> {
        if let Some((what, size, limit)) = self.oversized {
            return Err(Error::TooLarge { what, size, limit });
        }
        if self.count <= 1 || (self.spans == 0 && self.sorted) {
            return Ok(());
        }
        let killers = Skyline::default();
        for (order, (tag, start, end)) in self.entries().enumerate() {
            if tag == TAG_RANGE {
                killers.insert(start, end, order as u64 + 1, 0);
            }
        }
        let mut points = Vec::with_capacity(self.len());
        let mut net = Batch::at(self.ts);
        net.bytes.reserve(self.bytes.len());
        for (order, (tag, key, value)) in self.entries().enumerate() {
            if tag == TAG_RANGE {
                net.push(tag, key, value);
            } else if killers.stab(key, u64::MAX, u64::MAX) <= order as u64 {
                points.push((key, order, tag, value));
            }
        }
        // Newest first inside a key, so that dedup keeps the last call.
        points.sort_by(|a, b| a.0.cmp(b.0).then(b.1.cmp(&a.1)));
        points.dedup_by_key(|point| point.0);
        for (key, _, tag, value) in points {
            net.push(tag, key, value);
        }
        net.sorted = true;
        *self = net;
        Ok(())
    }

    /// Tag, key and value of each entry.
    fn entries(&self) -> impl Iterator<Item = (u8, &[u8], &[u8])> {
        let mut rest = self.bytes.get(HEADER_LEN..).unwrap_or_default();
        std::iter::from_fn(move || {
            let (&tag, after) = rest.split_first()?;
            rest = after;
            let mut bytes = || take_bytes(&mut rest).expect("push wrote whole entries");
            let key = bytes();
            Some((tag, key, bytes()))
        })
    }

    /// What was written into it, in the order of the calls.
    pub fn writes(&self) -> impl Iterator<Item = BatchWrite<'_>> {
        self.ops().map(|op| match op {
            BatchOp::Point { key, kind: Kind::Put, value } => BatchWrite::Put(key, value),
            BatchOp::Point { key, kind: Kind::Delete, .. } => BatchWrite::Delete(key),
            BatchOp::Span { start, end } => BatchWrite::DeleteSpan(start, end),
        })
    }

    /// The entries: range tombstones first after [`Batch::normalise`], then points in key order.
    pub(crate) fn ops(&self) -> impl Iterator<Item = BatchOp<'_>> {
        self.entries().map(|(tag, key, value)| BatchOp::of(tag, key, value))
    }

    /// The wal form of the batch.
    pub(crate) fn encoded(&mut self) -> &[u8] {
        if self.bytes.is_empty() {
            self.bytes.resize(HEADER_LEN, 0);
        }
        let flags = if self.spans > 0 { FLAG_HAS_RANGE } else { 0 };
        self.bytes[0..4].copy_from_slice(&self.count.to_le_bytes());
        self.bytes[4..6].copy_from_slice(&flags.to_le_bytes());
        // Bytes 6 and 7: number of stream positions, none in this format version.
        self.bytes[8..16].copy_from_slice(&self.ts.0.to_le_bytes());
        &self.bytes
    }

    /// Reads the wal form; the error says what is wrong with it.
    pub(crate) fn decode(input: &[u8]) -> std::result::Result<Batch, &'static str> {
        if input.len() < HEADER_LEN {
            return Err("batch header is cut off");
        }
        let count = u32::from_le_bytes(array(&input[0..4]));
        if u16::from_le_bytes(array(&input[4..6])) & !FLAG_HAS_RANGE != 0 {
            return Err("batch has flags that this version does not know");
        }
        let streams = u16::from_le_bytes(array(&input[6..8]));
        if streams != 0 {
            return Err("batch has stream positions, which this version does not know");
        }
        let mut batch = Batch::at(CommitTs(u64::from_le_bytes(array(&input[8..16]))));
        let mut rest = &input[HEADER_LEN..];
        for _ in 0..count {
            let (&tag, after) = rest.split_first().ok_or("batch is cut off")?;
            rest = after;
            let key = take_bytes(&mut rest).ok_or("batch entry is cut off")?;
            let value = take_bytes(&mut rest).ok_or("batch entry is cut off")?;
            match tag {
                TAG_RANGE => batch.delete_span(key, value),
                tag if Kind::from_u8(tag).is_some() => batch.push(tag, key, value),
                _ => return Err("batch entry of unknown kind"),
            }
        }
        if !rest.is_empty() {
            return Err("bytes after the last batch entry");
        }
        if batch.oversized.is_some() {
            return Err("batch entry over its size limit");
        }
        batch.sorted = true;
        Ok(batch)
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the caller sliced exactly N bytes")
}

/// Appends a number, seven bits per byte, low bits first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number written by [`put_varint`]; `None` if it is cut off or too long.
pub(crate) fn take_varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads a length and that many bytes.
pub(crate) fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take_varint(input)?;
    if len > input.len() as u64 {
        return None;
    }
    let (bytes, rest) = input.split_at(len as usize);
    *input = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(batch: &Batch) -> Vec<String> {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        batch
            .ops()
            .map(|op| match op {
                BatchOp::Point { key, kind: Kind::Put, value } => {
                    format!("{}={}", text(key), text(value))
                }
                BatchOp::Point { key, .. } => format!("-{}", text(key)),
                BatchOp::Span { start, end } => format!("-[{},{})", text(start), text(end)),
            })
            .collect()
    }

    #[test]
    fn normalising_keeps_the_net_effect() {
        let mut batch = Batch::at(CommitTs(5));
        batch.put(b"b", b"1");
        batch.put(b"a", b"1");
        batch.delete_span(b"a", b"c");
        batch.put(b"a", b"2");
        batch.put(b"a", b"3");
        batch.delete(b"z");
        batch.normalise().unwrap();
        assert_eq!(show(&batch), ["-[a,c)", "a=3", "-z"]);
    }

    #[test]
    fn encoding_round_trips_and_rejects_cuts() {
        let mut batch = Batch::at(CommitTs(77));
        batch.put(b"key", b"value");
        batch.delete_span(b"k", b"l");
        batch.delete(b"other");
        batch.normalise().unwrap();
        let bytes = batch.encoded().to_vec();
        assert_eq!(show(&Batch::decode(&bytes).unwrap()), show(&batch));
        for len in 0..bytes.len() {
            assert!(Batch::decode(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn a_key_over_the_limit_is_reported_and_nothing_else_is_lost() {
        let mut batch = Batch::at(CommitTs(1));
        batch.put(&vec![1; MAX_KEY_LEN + 1], b"");
        assert!(matches!(batch.normalise(), Err(Error::TooLarge { what: "key", .. })));
    }
}
