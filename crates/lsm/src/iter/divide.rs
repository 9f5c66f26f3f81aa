//! Dividing a span into parts of about the same size, for readers that work side by side.
//!
//! The separators of the ssts' indexes are keys at known distances: every sst of the span gives
//! some, each standing for its share of the sst's bytes. So do the upper levels of memtables'
//! lists, whose entries are spread evenly. In key order, a cut comes wherever the next share of all
//! bytes is full. What lies under a range tombstone is nobody's work: it does not count.

use bytes::Bytes;

use crate::error::Result;
use crate::iter::ReadWork;
use crate::key::KeySpan;
use crate::memtable::Memtable;
use crate::sstable::{IndexBlock, SstReader};
use crate::structure::Queued;
use crate::versions::RunFile;
use crate::view::View;

/// An sst gives at least so many separators, if it has them.
const SEPARATORS: usize = 16;
/// A memtable gives so many keys for each part, since what lies between two of them varies.
const KEYS_FOR_EACH: usize = 8;
/// And up to so many times as many where most of its entries are erased.
const MOST_ERASED: usize = 64;

/// A key, the bytes between it and the one before, and the newest timestamp among them.
pub(crate) struct Mark {
    pub(crate) key: Bytes,
    pub(crate) bytes: u64,
    newest: u64,
}

/// The files of a version that a span may have something in.
fn files_in<'a>(view: &'a View, span: &'a KeySpan) -> impl Iterator<Item = &'a RunFile> {
    view.state().version.runs_for_reads().iter().flat_map(|run| {
        let files = run.files().iter().skip(run.first_ending_above(&span.start));
        files.take_while(|file| file.sst.bounds().start < span.end)
    })
}

impl View {
    /// About how many bytes a span has in ssts: what lies in memtables is not counted, versions
    /// that nobody reads are.
    ///
    /// # Errors
    /// Those of reading indexes of ssts.
    pub fn stored_bytes(&self, span: &KeySpan) -> Result<u64> {
        let mut bytes = 0;
        for file in files_in(self, span) {
            let own = file.sst.bounds();
            let size = file.sst.facts().backing.size;
            bytes += match span.start <= own.start && own.end <= span.end {
                true => size,
                false => self.bytes_of(file, span, size)?,
            };
        }
        Ok(bytes)
    }

    /// A file's share in a span: parts of its index that lie inside count as a whole, those at the
    /// edges by the blocks that they name.
    fn bytes_of(&self, file: &RunFile, span: &KeySpan, size: u64) -> Result<u64> {
        let reader = file.reader(self.env())?;
        let (top, mut work) = (reader.top(), ReadWork::default());
        let per_part = size / (top.len() as u64).max(1);
        let mut bytes = 0;
        for n in 0..top.len() {
            // A separator is at or above the last key before it.
            let starts = if n == 0 { &[][..] } else { top.separator(n - 1) };
            let ends = top.separator(n);
            if ends < &span.start[..] || starts >= &span.end[..] {
                continue;
            }
            if starts >= &span.start[..] && ends < &span.end[..] {
                bytes += per_part;
                continue;
            }
            let index = &reader.partition(n, true, &mut work)?.index;
            let inside = (0..index.len()).map(|n| index.separator(n));
            let inside = inside.filter(|key| *key >= &span.start[..] && *key < &span.end[..]);
            bytes += per_part * inside.count() as u64 / (index.len() as u64).max(1);
        }
        Ok(bytes)
    }

    /// Keys inside of a span that cut it into at most `parts` parts of about the same number of
    /// bytes, each at least `least` bytes long. Fewer or none if the span holds less.
    ///
    /// # Errors
    /// Those of reading indexes of ssts.
    pub fn divide(&self, span: &KeySpan, parts: usize, least: u64) -> Result<Vec<Bytes>> {
        let (mut marks, erased) = self.marks(span, SEPARATORS)?;
        // The upper indexes are too coarse for so many, or for what erased rows have left.
        if marks.len() < parts || erased > 0 && marks.len() < parts.saturating_mul(KEYS_FOR_EACH) {
            marks = self.marks(span, usize::MAX)?.0;
        }
        for layer in self.state().queue() {
            if let Queued::Memtable(memtable) = layer {
                let enough = parts.saturating_mul(KEYS_FOR_EACH);
                marks.extend(self.living_in(memtable, span, enough)?);
            }
        }
        Ok(even_cuts(marks, parts, least))
    }

    /// Keys of a memtable with the bytes that they stand for: about so many, if it has them.
    fn living_in(
        &self,
        memtable: &Memtable,
        span: &KeySpan,
        enough: usize,
    ) -> Result<Vec<(Bytes, u64)>> {
        let mut asked = enough;
        loop {
            let (mut marks, mut living) = (Vec::new(), Vec::new());
            mark_memtable(memtable, span, asked, &mut marks);
            let all = marks.len();
            self.add_living(marks, &mut living)?;
            // Where most are erased, those between them are too few.
            if living.len() == all || living.len() >= enough || asked > enough {
                return Ok(living);
            }
            asked = enough.saturating_mul((all / living.len().max(1)).min(MOST_ERASED) + 1);
        }
    }

    /// Keys of ssts with the bytes that they stand for, and how many stand for erased rows only.
    fn marks(&self, span: &KeySpan, enough: usize) -> Result<(Vec<(Bytes, u64)>, usize)> {
        let (mut marks, mut living) = (Vec::new(), Vec::new());
        for file in files_in(self, span) {
            self.mark(file, span, enough, &mut marks)?;
        }
        let all = marks.len();
        self.add_living(marks, &mut living)?;
        let erased = all - living.len();
        Ok((living, erased))
    }

    /// Those of the marks that do not stand for erased rows only.
    fn add_living(&self, marks: Vec<Mark>, living: &mut Vec<(Bytes, u64)>) -> Result<()> {
        for Mark { key, bytes, newest } in marks {
            if self.covering_tombstone_ts(&key)?.is_none_or(|erased| erased.0 <= newest) {
                living.push((key, bytes));
            }
        }
        Ok(())
    }

    /// Separators of a file inside of a span.
    fn mark(
        &self,
        file: &RunFile,
        span: &KeySpan,
        enough: usize,
        marks: &mut Vec<Mark>,
    ) -> Result<()> {
        let inside = span.intersect(file.sst.bounds());
        marks_of(file.reader(self.env())?, &inside, file.sst.facts().backing.size, enough, marks)
    }
}

/// Adds keys of a memtable inside of a span, each with the bytes that it stands for.
fn mark_memtable(memtable: &Memtable, span: &KeySpan, enough: usize, marks: &mut Vec<Mark>) {
    let (start, end) = (&span.start[..], &span.end[..]);
    let (entries, each) = memtable.points().spread((start, end), enough);
    for entry in entries.into_iter().filter(|entry| entry.key() > start) {
        let bytes = (entry.key().len() + entry.value().len()) as u64 * each;
        let (key, newest) = (Bytes::copy_from_slice(entry.key()), entry.ts());
        marks.push(Mark { key, bytes, newest });
    }
}

/// Adds separators of a file of `size` bytes inside of a span, each with the bytes in front of it;
/// from the lower indexes if the upper one has fewer than `enough`.
pub(crate) fn marks_of(
    reader: &SstReader,
    span: &KeySpan,
    size: u64,
    enough: usize,
    marks: &mut Vec<Mark>,
) -> Result<()> {
    let (top, mut work) = (reader.top(), ReadWork::default());
    let (start, end) = (&span.start[..], &span.end[..]);
    let mut push = |index: &IndexBlock, bytes: u64| {
        for n in 0..index.len() {
            let key = index.separator(n);
            // Parts of a span are cut in front of a key: one behind the separator is as good.
            if key > start && key < end {
                let (key, newest) = (Bytes::copy_from_slice(key), index.max_ts(n));
                marks.push(Mark { key, bytes: bytes / index.len() as u64, newest });
            }
        }
    };
    if top.len() >= enough {
        push(top, size);
        return Ok(());
    }
    for n in 0..top.len() {
        let before = n > 0 && top.separator(n - 1) >= end;
        if before || top.separator(n) < start {
            continue;
        }
        push(&reader.partition(n, true, &mut work)?.index, size / top.len() as u64);
    }
    Ok(())
}

/// Keys that cut rows into at most `parts` parts of about the same number of bytes, each at least
/// `least` bytes long. A mark is a key and the bytes between it and the mark before.
pub fn even_cuts<K: Ord>(mut marks: Vec<(K, u64)>, parts: usize, least: u64) -> Vec<K> {
    marks.sort_unstable();
    let all: u64 = marks.iter().map(|(_, bytes)| bytes).sum();
    let parts = (parts as u64).min(all / least.max(1));
    let (mut seen, mut cuts) = (0, Vec::<K>::new());
    for (key, bytes) in marks {
        seen += bytes;
        let next = cuts.len() as u64 + 1;
        if next < parts && seen * parts >= all * next && cuts.last().is_none_or(|last| *last < key)
        {
            cuts.push(key);
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_comes_where_a_part_is_full() {
        let even = vec![("d", 10), ("b", 10), ("c", 10), ("a", 10)];
        assert_eq!(even_cuts(even.clone(), 2, 1), ["b"]);
        assert_eq!(even_cuts(even.clone(), 4, 1), ["a", "b", "c"]);
        assert_eq!(even_cuts(even.clone(), 4, 20), ["b"], "no part is too small");
        assert!(even_cuts(even.clone(), 1, 1).is_empty() && even_cuts(even, 4, 41).is_empty());
        assert_eq!(even_cuts(vec![("a", 1), ("b", 90), ("c", 5), ("d", 4)], 2, 1), ["b"]);
        assert!(even_cuts(Vec::<(u8, u64)>::new(), 3, 1).is_empty());
        assert_eq!(even_cuts(vec![("k", 5), ("k", 5), ("k", 5)], 3, 1), ["k"]);
    }
}
