//! What a serializable transaction has read, so that commit can check that nobody changed it.

use braid_lsm::KeySpan;
use bytes::Bytes;

/// Above this many entries neighbouring reads are merged, which can only add false conflicts.
const ENTRIES_MAX: usize = 16_384;

/// A part of a value, or that there was none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadPart {
    /// Which part: known to the [`RowForm`](crate::RowForm) of the store.
    pub what: Bytes,
    /// Its digest; `None`: there was no value.
    pub digest: Option<u128>,
}

/// A key that was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PointRead {
    /// The key.
    pub key: Bytes,
    /// What of its value mattered; `None`: all.
    pub part: Option<ReadPart>,
}

/// What was read: keys, and spans with what was not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Single keys.
    pub points: Vec<PointRead>,
    /// Whole spans.
    pub spans: Vec<KeySpan>,
}

#[derive(Default)]
pub(crate) struct ReadSet {
    reads: Reads,
    /// How often entries were merged, which makes earlier marks useless.
    compactions: u64,
    /// Bytes of keys, and of the entries that hold them.
    size_bytes: usize,
}

/// What an entry takes besides its keys.
const ENTRY_BYTES: usize = size_of::<PointRead>();

fn point_bytes(read: &PointRead) -> usize {
    read.key.len() + read.part.as_ref().map_or(0, |part| part.what.len())
}

/// A position in the order of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadMark {
    points: usize,
    spans: usize,
    compactions: u64,
}

impl ReadSet {
    pub(crate) fn add_point(&mut self, key: &[u8]) {
        self.add(PointRead { key: Bytes::copy_from_slice(key), part: None });
    }

    pub(crate) fn add_part(&mut self, key: &[u8], part: ReadPart) {
        self.add(PointRead { key: Bytes::copy_from_slice(key), part: Some(part) });
    }

    fn add(&mut self, read: PointRead) {
        self.size_bytes += point_bytes(&read) + ENTRY_BYTES;
        self.reads.points.push(read);
        if self.reads.points.len() > ENTRIES_MAX {
            self.compact();
        }
    }

    pub(crate) fn add_span(&mut self, span: KeySpan) {
        self.size_bytes += span.start.len() + span.end.len() + ENTRY_BYTES;
        self.reads.spans.push(span);
        if self.reads.spans.len() > ENTRIES_MAX {
            self.compact();
        }
    }

    pub(crate) fn mark(&self) -> ReadMark {
        let (points, spans) = (self.reads.points.len(), self.reads.spans.len());
        ReadMark { points, spans, compactions: self.compactions }
    }

    /// Forgets what was read since the mark. After a compaction nothing is forgotten: entries from
    /// before and after it are one then, and too many reads are only too careful.
    pub(crate) fn forget_since(&mut self, mark: ReadMark) {
        if mark.compactions == self.compactions {
            self.reads.points.truncate(mark.points);
            self.reads.spans.truncate(mark.spans);
            self.measure();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.reads.points.clear();
        self.reads.spans.clear();
        self.size_bytes = 0;
    }

    /// Bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    fn measure(&mut self) {
        let points = self.reads.points.iter().map(point_bytes);
        let spans = self.reads.spans.iter().map(|s| s.start.len() + s.end.len());
        let entries = self.reads.points.len() + self.reads.spans.len();
        self.size_bytes = points.chain(spans).sum::<usize>() + entries * ENTRY_BYTES;
    }

    pub(crate) fn all(&self) -> &Reads {
        &self.reads
    }

    /// Lends the reads out, to be asked about; [`ReadSet::put_back`] must follow.
    pub(crate) fn take(&mut self) -> Reads {
        std::mem::take(&mut self.reads)
    }

    pub(crate) fn put_back(&mut self, reads: Reads) {
        self.reads = reads;
    }

    /// Takes over what another transaction has read.
    pub(crate) fn adopt(&mut self, reads: &Reads) {
        reads.points.iter().for_each(|read| self.add(read.clone()));
        reads.spans.iter().for_each(|span| self.add_span(span.clone()));
    }

    /// Sorts, removes duplicates, and if that is not enough joins neighbours pairwise.
    fn compact(&mut self) {
        self.compactions += 1;
        self.reads.points.sort_unstable();
        self.reads.points.dedup();
        if self.reads.points.len() > ENTRIES_MAX / 2 {
            let points = std::mem::take(&mut self.reads.points);
            for chunk in points.chunks(16) {
                let (first, last) = (&chunk[0].key, &chunk[chunk.len() - 1].key);
                self.reads.spans.push(KeySpan::new(first.clone(), successor(last)));
            }
        }
        self.reads.spans.sort_unstable_by(|a, b| a.start.cmp(&b.start));
        let mut merged: Vec<KeySpan> = Vec::with_capacity(self.reads.spans.len());
        for span in self.reads.spans.drain(..) {
            match merged.last_mut() {
                Some(last) if span.start <= last.end => {
                    if span.end > last.end {
                        last.end = span.end;
                    }
                }
                _ => merged.push(span),
            }
        }
        while merged.len() > ENTRIES_MAX / 2 {
            merged = merged
                .chunks(2)
                .map(|pair| KeySpan::new(pair[0].start.clone(), pair[pair.len() - 1].end.clone()))
                .collect();
        }
        self.reads.spans = merged;
        self.measure();
    }
}

/// The smallest key above `key`.
pub(crate) fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_since_a_mark_can_be_forgotten() {
        let mut set = ReadSet::default();
        set.add_point(b"a");
        let mark = set.mark();
        set.add_point(b"b");
        set.add_span(KeySpan::new("c", "d"));
        set.forget_since(mark);
        assert_eq!(
            (&set.reads.points[..], &set.reads.spans[..]),
            ([PointRead { key: Bytes::from("a"), part: None }].as_slice(), [].as_slice())
        );
        set.add_point(b"b");
        set.compact();
        set.forget_since(mark);
        assert_eq!(set.reads.points.len(), 2, "compacted reads stay");
    }

    #[test]
    fn compaction_never_forgets_a_read() {
        let mut set = ReadSet::default();
        let keys: Vec<Vec<u8>> = (0..3 * ENTRIES_MAX as u64)
            .map(|i| (i * 7919 % 1_000_003).to_be_bytes().to_vec())
            .collect();
        for key in &keys {
            set.add_point(key);
        }
        assert!(set.reads.points.len() + set.reads.spans.len() <= 2 * ENTRIES_MAX);
        for key in keys.iter().step_by(61) {
            let covered = set.reads.points.iter().any(|p| p.key == key)
                || set.reads.spans.iter().any(|s| s.contains(key));
            assert!(covered, "{key:?}");
        }
    }
}
