//! All runs and buffers of a load as one stream in key order.
//!
//! A heap of sources, smallest key on top. Sources are few (a buffer a target, a run for each time
//! that one was full), so it is a plain binary heap of their numbers.

use super::Loaded;
use super::buffer::Buffer;
use super::run::RunReader;
use crate::error::KvResult;

/// One sorted stream of rows.
pub(crate) enum Source<'a> {
    Memory { buffer: &'a Buffer, next: usize },
    Run(RunReader),
}

impl<'a> Source<'a> {
    pub(crate) fn memory(buffer: &'a Buffer) -> Source<'a> {
        Source::Memory { buffer, next: 0 }
    }

    pub(crate) fn run(reader: RunReader) -> Source<'a> {
        Source::Run(reader)
    }

    /// The current row; `None` before the first [`Source::advance`] of a run and at the end.
    fn row(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Source::Memory { buffer, next } => buffer.get(*next),
            Source::Run(reader) => reader.row(),
        }
    }

    fn advance(&mut self) -> KvResult<()> {
        match self {
            Source::Memory { next, .. } => {
                *next += 1;
                Ok(())
            }
            Source::Run(reader) => reader.advance(),
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
}

impl<'a> Merge<'a> {
    pub(crate) fn new(mut sources: Vec<(usize, Source<'a>)>) -> KvResult<Merge<'a>> {
        for (_, source) in &mut sources {
            if let Source::Run(reader) = source {
                reader.advance()?;
            }
        }
        let heap = (0..sources.len()).filter(|n| sources[*n].1.row().is_some()).collect();
        let mut merge = Merge { sources, heap, last: Vec::new(), begun: false };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sink(at);
        }
        Ok(merge)
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
