//! All runs and buffers of a load as one stream in key order.
//!
//! A heap of sources, smallest key on top. Sources are few (a buffer a target, a run for each time
//! that one was full), so it is a plain binary heap of their numbers.

use std::sync::Arc;

use braid_env::memory::{Account, Held};
use braid_lsm::SstRowReader;

use super::buffer::Buffer;
use super::load::Loaded;
use super::run::{Run, RunReader};
use crate::error::KvResult;

/// A part of key space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Its first key; `None`: everything before its end is in it.
    pub(crate) from: Option<Vec<u8>>,
    /// The key that it ends in front of; `None`: nothing.
    pub(crate) to: Option<Vec<u8>>,
}

impl Part {
    /// All of key space, cut in front of these keys.
    pub(crate) fn between(cuts: Vec<Vec<u8>>) -> Vec<Part> {
        let from = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
        let to = cuts.iter().cloned().map(Some).chain([None]);
        from.zip(to).map(|(from, to)| Part { from, to }).collect()
    }
}

/// Rows of a buffer that are fetched at once, unless they have more bytes than this: then fewer.
const FETCH: usize = 64;
const FETCH_BYTES: usize = 16 << 10;

/// One sorted stream of rows.
pub(crate) enum Source<'a> {
    Memory(BufferReader<'a>),
    Run(RunReader),
    Sst(Box<SstRowReader>),
}

impl<'a> Source<'a> {
    /// The rows of a sorted buffer that lie in a part.
    pub(crate) fn memory(buffer: &'a Buffer, part: &Part) -> Source<'a> {
        Source::Memory(BufferReader::new(buffer, part))
    }

    /// The rows of a run that lie in a part.
    pub(crate) fn run(run: &Run, part: &Part) -> KvResult<Source<'a>> {
        run.reader(part.clone()).map(Source::Run)
    }

    /// The current row; `None` at the end.
    fn row(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Source::Memory(reader) => reader.row(),
            Source::Run(reader) => reader.row(),
            Source::Sst(reader) => reader.row(),
        }
    }

    fn advance(&mut self) -> KvResult<()> {
        match self {
            Source::Memory(reader) => {
                reader.advance();
                Ok(())
            }
            Source::Run(reader) => reader.advance(),
            Source::Sst(reader) => Ok(reader.advance()?),
        }
    }
}

/// Reads a part of a sorted buffer. Its rows lie scattered over memory, so some are fetched
/// together, which lets the processor wait for all of them at the same time.
pub(crate) struct BufferReader<'a> {
    buffer: &'a Buffer,
    /// The row of the buffer that is fetched next, and the end.
    next: usize,
    end: usize,
    fetched: Vec<u8>,
    /// Where the fetched rows begin, with the lengths of their keys; the last one is where the
    /// next would begin.
    places: Vec<(usize, usize)>,
    at: usize,
    /// The current row was not fetched: it is the one in front of `next`.
    is_in_place: bool,
}

impl<'a> BufferReader<'a> {
    fn new(buffer: &'a Buffer, part: &Part) -> BufferReader<'a> {
        let next = part.from.as_deref().map_or(0, |key| buffer.position(key));
        let end = part.to.as_deref().map_or(buffer.len(), |key| buffer.position(key));
        let (fetched, places) = (Vec::new(), Vec::new());
        let (at, is_in_place) = (0, false);
        let mut reader = BufferReader { buffer, next, end, fetched, places, at, is_in_place };
        reader.fetch();
        reader
    }

    fn fetch(&mut self) {
        (self.at, self.next) = (0, self.next.min(self.end));
        self.fetched.clear();
        self.places.clear();
        let until = (self.next + FETCH).min(self.end);
        for (key, value) in self.buffer.rows(self.next..until) {
            if self.fetched.len() + key.len() + value.len() > FETCH_BYTES {
                break;
            }
            self.places.push((self.fetched.len(), key.len()));
            self.fetched.extend_from_slice(key);
            self.fetched.extend_from_slice(value);
        }
        // A long row is looked at where it lies.
        self.is_in_place = self.places.is_empty() && self.next < until;
        self.next += self.places.len() + usize::from(self.is_in_place);
        self.places.push((self.fetched.len(), 0));
    }

    fn row(&self) -> Option<(&[u8], &[u8])> {
        if self.is_in_place {
            return self.buffer.rows(self.next - 1..self.next).next();
        }
        let (start, key) = self.places[self.at];
        let (end, _) = self.places.get(self.at + 1)?;
        Some(self.fetched[start..*end].split_at(key))
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.at + 1 >= self.places.len() {
            self.fetch();
        }
    }
}

/// The merged stream.
pub(crate) struct Merge<'a> {
    sources: Vec<(usize, Source<'a>)>,
    /// Numbers of sources that have a row, as a heap by key.
    heap: Vec<usize>,
    /// The key given last.
    last: Vec<u8>,
    begun: bool,
    /// What the sources take, until they are gone.
    held: Option<Held>,
}

impl<'a> Merge<'a> {
    pub(crate) fn new(sources: Vec<(usize, Source<'a>)>) -> Merge<'a> {
        let heap = (0..sources.len()).filter(|n| sources[*n].1.row().is_some()).collect();
        let mut merge = Merge { sources, heap, last: Vec::new(), begun: false, held: None };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sink(at);
        }
        merge
    }

    /// Counts what its sources take.
    ///
    /// # Errors
    /// The account has a limit, and no room for that.
    pub(crate) fn counted(mut self, account: &Arc<Account>, memory: usize) -> KvResult<Merge<'a>> {
        let mut held = account.hold("sorted rows that are merged");
        let grown = held.grow(memory);
        if account.limit() < usize::MAX {
            grown?;
        }
        self.held = Some(held);
        Ok(self)
    }

    /// The next row. It stays valid until the next call.
    pub(crate) fn next(&mut self) -> KvResult<Option<Loaded<'_>>> {
        if self.begun
            && let Some(&top) = self.heap.first()
        {
            let (_, source) = &mut self.sources[top];
            self.last.clear();
            self.last.extend_from_slice(source.row().expect("it is in the heap").0);
            source.advance()?;
            if source.row().is_none() {
                self.heap.swap_remove(0);
            }
            self.sink(0);
        }
        let first = !std::mem::replace(&mut self.begun, true);
        let Some(&top) = self.heap.first() else { return Ok(None) };
        let (target, source) = &self.sources[top];
        let (key, value) = source.row().expect("it is in the heap");
        let again = !first && self.last == key;
        Ok(Some(Loaded { target: *target, key, value, again }))
    }

    fn key(&self, at: usize) -> &[u8] {
        self.sources[self.heap[at]].1.row().expect("it is in the heap").0
    }

    /// Restores the heap below a position whose key has grown.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.key(child) < self.key(least) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}
