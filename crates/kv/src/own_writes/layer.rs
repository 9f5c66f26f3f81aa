//! A part of a transaction's writes on disk: one state for each key, sorted, and the spans that
//! were deleted before those.
//!
//! ```text
//!   partition 0                       partition 1
//!   frame  frame  frame  directory    frame  frame  directory     ...
//!   first key, place of the directory     first key, ...          these are always in memory
//! ```
//! A row of a frame is a key, and its value behind a byte 1, or a byte 0 alone: deleted. Memory
//! grows by a key for each partition; directories are kept as far as there is room
//! ([`super::directory`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_lsm::KeySpan;
use bytes::Bytes;
use parking_lot::Mutex;

use super::directory::{Directories, Directory};
use super::filter;
use crate::buffer::{Part, Slot};
use crate::bulk::BulkFolder;
use crate::bulk::frame::{FRAME_HEAD, Frame, FrameFile, put_row};
use crate::error::{KvError, KvResult};
use crate::span_map::SpanMap;

/// Payload at which a frame ends: what is read for one key.
const FRAME_BYTES: usize = 16 << 10;
/// Bytes of frames at which a partition ends.
const PARTITION_BYTES: u64 = 2 << 20;
/// What a partition takes in memory besides its key.
const PARTITION_MEMORY: usize = 48;

/// See the module.
pub(crate) struct Layer {
    file: FrameFile,
    /// First keys of the partitions, and where their directories lie.
    partitions: Vec<(Box<[u8]>, u64)>,
    /// Its last key.
    last: Vec<u8>,
    /// Which of all layers it is to the directories.
    number: u64,
    directories: Arc<Directories>,
    /// Bytes of memory for all its directories.
    directory_memory: usize,
    /// The frame that was read last, by its place: keys are often asked for in order.
    recent: Mutex<Option<(u64, Arc<Frame>)>>,
    /// Deleted before the points of this layer were written.
    pub(super) spans: SpanMap,
    /// The position behind its last change.
    pub(super) end: usize,
}

/// A layer being written. Its file goes if that does not come to its end.
pub(super) struct LayerWriter<'a> {
    layer: Layer,
    /// Rows that were put.
    count: u64,
    frame: Vec<u8>,
    /// The first key of the frame.
    first: Bytes,
    /// The frames of the partition, and the hashes of its keys.
    frames: Vec<(Bytes, u64)>,
    hashes: Vec<u64>,
    /// Where the partition begins.
    begins: u64,
    stop: &'a AtomicBool,
}

impl<'a> LayerWriter<'a> {
    /// `stop`: ends it with [`KvError::Canceled`].
    pub(super) fn create(
        folder: &BulkFolder,
        directories: &Arc<Directories>,
        stop: &'a AtomicBool,
    ) -> KvResult<LayerWriter<'a>> {
        let path = folder.new_path(None, "own")?;
        let layer = Layer {
            file: FrameFile::create(folder.fs(), &Arc::default(), path)?,
            partitions: Vec::new(),
            last: Vec::new(),
            number: directories.new_layer(),
            directories: directories.clone(),
            directory_memory: 0,
            recent: Mutex::default(),
            spans: SpanMap::default(),
            end: 0,
        };
        Ok(LayerWriter {
            layer,
            count: 0,
            frame: vec![0; FRAME_HEAD],
            first: Bytes::new(),
            frames: Vec::new(),
            hashes: Vec::new(),
            begins: 0,
            stop,
        })
    }

    /// Adds a point; keys ascend.
    pub(super) fn put(&mut self, key: &[u8], slot: Option<&[u8]>) -> KvResult<()> {
        if self.count.is_multiple_of(1024) && self.stop.load(Ordering::Relaxed) {
            return Err(KvError::Canceled);
        }
        self.count += 1;
        if self.frame.len() == FRAME_HEAD {
            self.first = Bytes::copy_from_slice(key);
        }
        let value = (&[u8::from(slot.is_some())][..], slot.unwrap_or_default());
        put_row(&mut self.frame, key, value);
        self.hashes.push(filter::hash(key));
        self.layer.last.clear();
        self.layer.last.extend_from_slice(key);
        if self.frame.len() >= FRAME_BYTES {
            self.end_frame()?;
        }
        Ok(())
    }

    fn end_frame(&mut self) -> KvResult<()> {
        if self.frame.len() > FRAME_HEAD {
            let at = self.layer.file.append(&mut self.frame)?;
            self.frames.push((std::mem::take(&mut self.first), at));
            self.frame.truncate(FRAME_HEAD);
        }
        if self.layer.file.byte_len() - self.begins >= PARTITION_BYTES {
            self.end_partition()?;
        }
        Ok(())
    }

    fn end_partition(&mut self) -> KvResult<()> {
        let Some((first, _)) = self.frames.first() else { return Ok(()) };
        let first: Box<[u8]> = first[..].into();
        let directory = Directory::new(std::mem::take(&mut self.frames), &self.hashes);
        self.hashes.clear();
        let at = self.layer.file.append(&mut directory.encode())?;
        self.layer.directory_memory += directory.memory();
        self.layer.partitions.push((first, at));
        self.begins = self.layer.file.byte_len();
        Ok(())
    }

    pub(super) fn finish(mut self, spans: SpanMap, end: usize) -> KvResult<Layer> {
        self.end_frame()?;
        self.end_partition()?;
        (self.layer.spans, self.layer.end) = (spans, end);
        Ok(self.layer)
    }
}

impl Layer {
    /// Writes a part of a buffer.
    pub(super) fn write(
        (folder, directories): (&BulkFolder, &Arc<Directories>),
        part: &Part,
        end: usize,
        stop: &AtomicBool,
    ) -> KvResult<Layer> {
        let mut writer = LayerWriter::create(folder, directories, stop)?;
        for (key, slot) in &part.points {
            writer.put(key, slot.as_deref())?;
        }
        writer.finish(part.spans.clone(), end)
    }

    /// Bytes that it keeps in memory, without its directories.
    pub(super) fn memory(&self) -> usize {
        let partitions = self.partitions.iter().map(|(first, _)| first.len() + PARTITION_MEMORY);
        partitions.sum::<usize>() + FRAME_BYTES
    }

    /// Bytes that its directories take if all of them are kept.
    pub(super) fn directory_memory(&self) -> usize {
        self.directory_memory
    }

    /// Its bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.file.byte_len()
    }

    /// Whether a point of it may lie in a span.
    pub(super) fn may_meet(&self, span: &KeySpan) -> bool {
        let first = self.partitions.first().is_some_and(|(first, _)| first[..] < span.end[..]);
        first && self.last[..] >= span.start[..]
    }

    /// What it says about a key with this hash.
    pub(super) fn get(&self, key: &[u8], hash: u64) -> KvResult<Option<Slot>> {
        let Some(partition) = self.partition_of(key) else { return Ok(None) };
        let directory = self.directory(partition)?;
        if !directory.may_contain(hash) {
            return Ok(None);
        }
        let frame = self.frame(directory.place(directory.frame_of(key)))?;
        let at = frame.position(key);
        Ok((at < frame.len() && frame.key(at) == key).then(|| slot(&frame, at)))
    }

    /// The partition in which a key would be; `None`: in front of all.
    fn partition_of(&self, key: &[u8]) -> Option<usize> {
        self.partitions.partition_point(|(first, _)| first[..] <= *key).checked_sub(1)
    }

    fn directory(&self, partition: usize) -> KvResult<Arc<Directory>> {
        self.directories.get((self.number, partition), || {
            let at = self.partitions[partition].1;
            let directory = Directory::decode(self.file.payload(at)?);
            directory.ok_or_else(|| self.file.place().damaged(at, "no directory is here"))
        })
    }

    fn frame(&self, place: u64) -> KvResult<Arc<Frame>> {
        let mut recent = self.recent.lock();
        if let Some((at, frame)) = &*recent
            && *at == place
        {
            return Ok(frame.clone());
        }
        let frame = Arc::new(self.file.rows(place)?);
        *recent = Some((place, frame.clone()));
        Ok(frame)
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        self.directories.forget(self.number);
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
    /// What is read.
    partition: usize,
    directory: Arc<Directory>,
    number: usize,
    /// `None`: at the end.
    frame: Option<Frame>,
    /// Rows of the frame that were not given yet.
    left: std::ops::Range<usize>,
}

impl Cursor {
    /// Over a layer that may have points in the span.
    pub(super) fn open(layer: Arc<Layer>, span: &KeySpan, reverse: bool) -> KvResult<Cursor> {
        let edge = if reverse { &span.end } else { &span.start };
        let partition = layer.partition_of(edge).unwrap_or(0);
        let directory = layer.directory(partition)?;
        let number = directory.frame_of(edge);
        let (span, frame, left) = (span.clone(), None, 0..0);
        let mut cursor = Cursor { layer, span, reverse, partition, directory, number, frame, left };
        cursor.read()?;
        Ok(cursor)
    }

    fn read(&mut self) -> KvResult<()> {
        let frame = self.layer.file.rows(self.directory.place(self.number))?;
        self.left = frame.position(&self.span.start)..frame.position(&self.span.end);
        self.frame = Some(frame);
        Ok(())
    }

    /// Goes to the next frame; `false`: there is none.
    fn step(&mut self) -> KvResult<bool> {
        let (inside, next) = match self.reverse {
            true => (self.number.checked_sub(1), self.partition.checked_sub(1)),
            false => (Some(self.number + 1), Some(self.partition + 1)),
        };
        if let Some(number) = inside.filter(|number| *number < self.directory.len()) {
            self.number = number;
            return Ok(true);
        }
        let Some(next) = next.filter(|next| *next < self.layer.partitions.len()) else {
            return Ok(false);
        };
        self.partition = next;
        self.directory = self.layer.directory(next)?;
        self.number = if self.reverse { self.directory.len() - 1 } else { 0 };
        Ok(true)
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
                true => frame.key(0) <= self.span.start,
                false => frame.key(frame.len() - 1) >= self.span.end,
            };
            if ended || !self.step()? {
                self.frame = None;
                return Ok(None);
            }
            self.read()?;
        }
    }
}
