//! Writes one sst, front to back.

use std::path::PathBuf;
use std::sync::Arc;

use braid_env::fs::{File, FileSystem};
use braid_env::random::Random;
use bytes::Bytes;

use super::filter::{self, key_hash};
use super::format::{BlockHandle, BlockKind, Footer, Packer, TRAILER, append_block};
use super::index_block::{IndexBuilder, separator};
use super::properties::Properties;
use super::row_block_builder::{BlockFacts, RowBlockBuilder};
use super::tombstone_block;
use crate::error::{Error, Result};
use crate::key::{KeySpan, Kind};
use crate::memtable::Tombstone;
use crate::options::{Codec, RowClassFn};

/// How to write an sst.
#[derive(Clone)]
pub(crate) struct WriterOptions {
    pub(crate) block_size: usize,
    pub(crate) index_partition_size: usize,
    pub(crate) filter_bits_per_key: u32,
    pub(crate) codec: Codec,
    pub(crate) row_class: RowClassFn,
    /// Bytes that go to the disk at once.
    pub(crate) write_size: usize,
}

/// An sst being written. Rows are added in order: keys ascending, timestamps descending.
pub(crate) struct SstWriter {
    options: WriterOptions,
    file: Arc<dyn File>,
    path: PathBuf,
    file_no: u64,
    buffer: Vec<u8>,
    packer: Packer,
    /// Bytes of the file before `buffer`.
    flushed: u64,
    block: RowBlockBuilder,
    /// A finished block that waits for the next key, to get a short separator.
    waiting: Option<(Vec<u8>, BlockHandle, BlockFacts)>,
    partition: IndexBuilder,
    top: IndexBuilder,
    live: u64,
    hashes: Vec<u64>,
    last_key: Vec<u8>,
    properties: Properties,
}

/// A block of rows holds at most this many, so that counts fit their fields.
const MAX_BLOCK_ROWS: usize = 4_096;
/// Rows of one class that make up this part of a block stand in blocks without others: a child's
/// rows, of one family, that scans of its neighbours then pass by the index.
const RUN_OF_BLOCK: usize = 2;
/// Bytes that go to the disk at once, unless memory is short.
pub(crate) const WRITE_SIZE: usize = 1 << 20;
/// So much of a file is made durable at once. Whoever commits meanwhile syncs the log, and the
/// device makes him wait for all that is on its way to it.
const SYNC_SIZE: u64 = 4 << 20;

impl SstWriter {
    pub(crate) fn create(
        fs: &dyn FileSystem,
        path: PathBuf,
        file_no: u64,
        options: WriterOptions,
    ) -> Result<SstWriter> {
        let file = fs
            .create(&path)
            .map_err(|error| Error::io(format!("creating {}", path.display()), &error))?;
        Ok(SstWriter {
            options,
            file,
            path,
            file_no,
            buffer: Vec::new(),
            packer: Packer::default(),
            flushed: 0,
            block: RowBlockBuilder::default(),
            waiting: None,
            partition: IndexBuilder::default(),
            top: IndexBuilder::default(),
            live: 0,
            hashes: Vec::new(),
            last_key: Vec::new(),
            properties: Properties { min_ts: u64::MAX, ..Properties::default() },
        })
    }

    /// Writes so many bytes at once, unless a block is longer.
    pub(crate) fn write_at_once(&mut self, bytes: usize) {
        self.options.write_size = bytes.min(WRITE_SIZE);
    }

    /// Bytes of memory that it takes, with what the filter needs in the end.
    pub(crate) fn memory(&self) -> usize {
        let hashes = self.hashes.capacity() * size_of::<u64>();
        // Once by itself, and once more as a block.
        let filter = self.hashes.len() * self.options.filter_bits_per_key as usize / 8 * 2;
        let index = (self.partition.size() + self.top.size()) * 2;
        let blocks = self.block.memory() + self.packer.memory();
        self.buffer.capacity() + blocks + index + hashes + filter
    }

    /// Key of the last row added.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Bytes so far, about.
    pub(crate) fn size(&self) -> u64 {
        self.position() + self.block.size() as u64
    }

    fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, key: &[u8], ts: u64, kind: Kind, value: &[u8]) -> Result<()> {
        let same_key = self.properties.rows > 0 && self.last_key == key;
        debug_assert!(self.properties.rows == 0 || self.last_key.as_slice() <= key);
        let full = self.block.size() >= self.options.block_size;
        // The versions of one key stay together unless they fill a block by themselves.
        let crowded = self.block.size() >= 8 * self.options.block_size;
        let class = (self.options.row_class)(key) & 31;
        let long_run = self.options.block_size / RUN_OF_BLOCK;
        let ends_run = self.block.ends_run(class, long_run);
        if (full && (!same_key || crowded)) || ends_run || self.block.len() >= MAX_BLOCK_ROWS {
            self.finish_block()?;
        }
        if let Some((last, handle, facts)) = self.waiting.take() {
            let between = separator(&last, Some(key));
            self.index(between, handle, facts)?;
        }
        if !same_key {
            if self.hashes.len() == self.hashes.capacity() {
                self.hashes.reserve_exact((self.hashes.len() / 4).max(512));
            }
            self.hashes.push(key_hash(key));
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        self.block.add(key, ts, kind, value, class, same_key);
        if let Some(run) = self.block.split_run(long_run) {
            self.finish_in_front_of(run)?;
        }
        let facts = &mut self.properties;
        facts.rows += 1;
        facts.deletes += u64::from(kind == Kind::Delete);
        facts.raw_key_bytes += key.len() as u64;
        facts.raw_value_bytes += value.len() as u64;
        facts.min_ts = facts.min_ts.min(ts);
        facts.max_point_ts = facts.max_point_ts.max(ts);
        if facts.rows == 1 {
            facts.start = Bytes::copy_from_slice(key);
        }
        Ok(())
    }

    fn finish_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let last = self.block.last_key().to_vec();
        let (image, facts) = self.block.finish();
        self.live += u64::from(facts.live);
        self.properties.blocks += 1;
        let handle = self.append(&image, BlockKind::Rows)?;
        self.block.recycle(image);
        self.waiting = Some((last, handle, facts));
        Ok(())
    }

    /// The rows of a run get a block of their own.
    fn finish_in_front_of(&mut self, run: RowBlockBuilder) -> Result<()> {
        self.finish_block()?;
        if let Some((last, handle, facts)) = self.waiting.take() {
            self.index(separator(&last, Some(run.first_key())), handle, facts)?;
        }
        self.block = run;
        Ok(())
    }

    fn index(&mut self, separator: Vec<u8>, handle: BlockHandle, facts: BlockFacts) -> Result<()> {
        self.partition.add(separator, handle, facts, self.live);
        if self.partition.size() >= self.options.index_partition_size {
            self.finish_partition()?;
        }
        Ok(())
    }

    fn finish_partition(&mut self) -> Result<()> {
        if self.partition.is_empty() {
            return Ok(());
        }
        let (separator, facts, live) = self.partition.summary();
        let image = self.partition.finish();
        let handle = self.append(&image, BlockKind::Index)?;
        self.top.add(separator, handle, facts, live);
        Ok(())
    }

    fn append(&mut self, image: &[u8], kind: BlockKind) -> Result<BlockHandle> {
        let offset = self.position();
        let codec = match kind {
            BlockKind::Rows | BlockKind::Index => self.options.codec,
            _ => Codec::None,
        };
        let packing = (codec, &mut self.packer);
        let len = append_block(&mut self.buffer, image, kind, packing, self.file_no, offset);
        debug_assert_eq!(self.position(), offset + u64::from(len) + TRAILER as u64);
        if self.buffer.len() >= self.options.write_size {
            self.write_out()?;
        }
        Ok(BlockHandle { offset, len })
    }

    fn write_out(&mut self) -> Result<()> {
        self.file
            .write_at(&self.buffer, self.flushed)
            .map_err(|error| Error::io(format!("writing {}", self.path.display()), &error))?;
        let synced = self.flushed / SYNC_SIZE;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        if self.flushed / SYNC_SIZE > synced { self.sync() } else { Ok(()) }
    }

    fn sync(&self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|error| Error::io(format!("syncing {}", self.path.display()), &error))
    }

    /// Ends the sst: adds its range tombstones (ascending timestamps, clipped to its bounds),
    /// writes index, properties and footer, and syncs. Returns its facts and its size.
    pub(crate) fn finish(
        mut self,
        tombstones: &[Tombstone],
        arrival: (u64, u64),
    ) -> Result<(Properties, u64)> {
        self.finish_block()?;
        if let Some((last, handle, facts)) = self.waiting.take() {
            self.index(last, handle, facts)?;
        }
        self.finish_partition()?;
        self.finish_bounds(tombstones);
        if !tombstones.is_empty() {
            let image = tombstone_block::encode(tombstones);
            self.properties.tombstone_block = self.append(&image, BlockKind::Tombstones)?;
        }
        if self.options.filter_bits_per_key > 0 && !self.hashes.is_empty() {
            let image = filter::build(&self.hashes, self.options.filter_bits_per_key);
            self.properties.filter_block = self.append(&image, BlockKind::Filter)?;
        }
        (self.properties.arrival_low, self.properties.arrival_high) = arrival;
        let top = self.top.finish();
        let top_index = self.append(&top, BlockKind::TopIndex)?;
        let image = self.properties.encode();
        let properties = self.append(&image, BlockKind::Properties)?;
        self.properties.identity = Random::from_entropy().next_u64() | 1;
        let identity = self.properties.identity;
        let footer = Footer { file_no: self.file_no, top_index, properties, identity };
        self.buffer.extend_from_slice(&footer.encode());
        self.write_out()?;
        self.sync()?;
        Ok((self.properties, self.flushed))
    }

    fn finish_bounds(&mut self, tombstones: &[Tombstone]) {
        let facts = &mut self.properties;
        facts.max_ts = facts.max_point_ts;
        let mut bounds = if facts.rows > 0 {
            let mut end = self.last_key.clone();
            end.push(0);
            KeySpan::new(facts.start.clone(), end)
        } else {
            let first = tombstones.first().expect("an sst has a row or a tombstone");
            KeySpan::new(first.start.clone(), first.end.clone())
        };
        for tombstone in tombstones {
            facts.tombstones += 1;
            facts.min_ts = facts.min_ts.min(tombstone.ts);
            facts.max_ts = facts.max_ts.max(tombstone.ts);
            if tombstone.start < bounds.start {
                bounds.start = tombstone.start.clone();
            }
            if tombstone.end > bounds.end {
                bounds.end = tombstone.end.clone();
            }
        }
        facts.start = bounds.start;
        facts.end = bounds.end;
    }
}
