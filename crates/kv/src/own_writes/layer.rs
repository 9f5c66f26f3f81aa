//! A part of a transaction's writes on disk: one state for each key, sorted, and the spans that
//! were deleted before those.
//!
//! A row of the file is a key, and its value behind a byte 1, or a byte 0 alone: deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_lsm::KeySpan;
use bytes::Bytes;
use parking_lot::Mutex;

use super::filter::{self, Filter};
use crate::buffer::{Part, Slot};
use crate::bulk::BulkFolder;
use crate::bulk::frame::Frame;
use crate::bulk::run::{Run, RunWriter};
use crate::error::{KvError, KvResult};
use crate::span_map::SpanMap;

/// Payload at which a frame of the file ends: what is read for one key.
const FRAME_BYTES: usize = 16 << 10;

/// See the module.
pub(crate) struct Layer {
    run: Run,
    filter: Filter,
    /// The frame that was read last: keys are often asked for in order.
    recent: Mutex<Option<(usize, Arc<Frame>)>>,
    memory: usize,
    /// Deleted before the points of this layer were written.
    pub(super) spans: SpanMap,
    /// The position behind its last change.
    pub(super) end: usize,
}

/// A layer being written. Its file goes if that does not come to its end.
pub(super) struct LayerWriter<'a> {
    run: RunWriter,
    hashes: Vec<u64>,
    /// The row's value as it is written.
    value: Vec<u8>,
    last: Vec<u8>,
    stop: &'a AtomicBool,
}

impl<'a> LayerWriter<'a> {
    /// `stop`: ends it with [`KvError::Canceled`].
    pub(super) fn create(folder: &BulkFolder, stop: &'a AtomicBool) -> KvResult<LayerWriter<'a>> {
        let path = folder.new_path(None, "own")?;
        let run = RunWriter::create(folder.fs(), &Arc::default(), path)?;
        let run = run.with_frames_of(FRAME_BYTES);
        Ok(LayerWriter { run, hashes: Vec::new(), value: Vec::new(), last: Vec::new(), stop })
    }

    /// Adds a point; keys ascend.
    pub(super) fn put(&mut self, key: &[u8], slot: Option<&[u8]>) -> KvResult<()> {
        if self.hashes.len().is_multiple_of(1024) && self.stop.load(Ordering::Relaxed) {
            return Err(KvError::Canceled);
        }
        self.value.clear();
        self.value.push(u8::from(slot.is_some()));
        self.value.extend_from_slice(slot.unwrap_or_default());
        self.run.put(key, &self.value)?;
        self.hashes.push(filter::hash(key));
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    pub(super) fn finish(self, spans: SpanMap, end: usize) -> KvResult<Layer> {
        let run = self.run.finish(&self.last)?;
        let filter = Filter::new(&self.hashes);
        let memory = filter.memory() + run.index_memory() + FRAME_BYTES;
        Ok(Layer { run, filter, recent: Mutex::default(), memory, spans, end })
    }
}

impl Layer {
    /// Writes a part of a buffer.
    pub(super) fn write(
        folder: &BulkFolder,
        part: &Part,
        end: usize,
        stop: &AtomicBool,
    ) -> KvResult<Layer> {
        let mut writer = LayerWriter::create(folder, stop)?;
        for (key, slot) in &part.points {
            writer.put(key, slot.as_deref())?;
        }
        writer.finish(part.spans.clone(), end)
    }

    /// Bytes that it keeps in memory.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// Its bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.run.byte_len()
    }

    /// Whether a point of it may lie in a span.
    pub(super) fn may_meet(&self, span: &KeySpan) -> bool {
        self.run.may_meet(&span.start, &span.end)
    }

    /// What it says about a key with this hash.
    pub(super) fn get(&self, key: &[u8], hash: u64) -> KvResult<Option<Slot>> {
        if !self.filter.may_contain(hash) {
            return Ok(None);
        }
        let Some(n) = self.run.frame_of(key) else { return Ok(None) };
        let frame = self.frame(n)?;
        let at = frame.position(key);
        Ok((at < frame.len() && frame.key(at) == key).then(|| slot(&frame, at)))
    }

    fn frame(&self, n: usize) -> KvResult<Arc<Frame>> {
        let mut recent = self.recent.lock();
        if let Some((at, frame)) = &*recent
            && *at == n
        {
            return Ok(frame.clone());
        }
        let frame = Arc::new(self.run.frame(n)?);
        *recent = Some((n, frame.clone()));
        Ok(frame)
    }
}

fn slot(frame: &Frame, at: usize) -> Slot {
    let value = frame.value(at);
    (value.first() == Some(&1)).then(|| value.slice(1..))
}

/// The points of a layer in a span, in order or against it.
pub(super) struct Cursor {
    layer: Arc<Layer>,
    span: KeySpan,
    reverse: bool,
    /// Number of the frame that is read.
    number: usize,
    frame: Option<Frame>,
    /// Rows of the frame that were not given yet.
    left: std::ops::Range<usize>,
}

impl Cursor {
    pub(super) fn open(layer: Arc<Layer>, span: &KeySpan, reverse: bool) -> KvResult<Cursor> {
        let edge = if reverse { &span.end } else { &span.start };
        let number = layer.run.frame_of(edge).unwrap_or(0);
        let span = span.clone();
        let mut cursor = Cursor { layer, span, reverse, number, frame: None, left: 0..0 };
        cursor.read()?;
        Ok(cursor)
    }

    fn read(&mut self) -> KvResult<()> {
        self.frame = None;
        if self.number < self.layer.run.frame_count() {
            let frame = self.layer.run.frame(self.number)?;
            self.left = frame.position(&self.span.start)..frame.position(&self.span.end);
            self.frame = Some(frame);
        }
        Ok(())
    }

    /// The next point.
    pub(super) fn next(&mut self) -> KvResult<Option<(Bytes, Slot)>> {
        loop {
            let Some(frame) = &self.frame else { return Ok(None) };
            let at = if self.reverse { self.left.next_back() } else { self.left.next() };
            if let Some(at) = at {
                return Ok(Some((frame.key(at), slot(frame, at))));
            }
            let ended = match self.reverse {
                true => self.number == 0 || frame.key(0) <= self.span.start,
                false => frame.key(frame.len() - 1) >= self.span.end,
            };
            if ended {
                self.frame = None;
                return Ok(None);
            }
            self.number = if self.reverse { self.number - 1 } else { self.number + 1 };
            self.read()?;
        }
    }
}
