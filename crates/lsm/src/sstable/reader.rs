//! An open sst: top index and skyline in memory; filter and partitions of the index are loaded when
//! a read first needs them and stay; row blocks come and go through the slots of the cache.
//!
//! ```text
//!   get:  filter line -> top index -> partition -> slot -> heads of the block -> the row
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::{File, FileSystem};
use bytes::Bytes;

use super::block_walker::BlockWalker;
use super::filter::Filter;
use super::format::{BlockHandle, BlockKind, FOOTER, Footer, FooterError, TRAILER, open_block};
use super::index_block::IndexBlock;
use super::properties::Properties;
use super::row_block::RowBlock;
use super::tombstone_block::StoredSkyline;
use crate::cache::{BlockCache, Frames, OnShelf, Pinned, Sidecar, WARM};
use crate::error::{Error, Result};
use crate::iter::ReadWork;
use crate::key::{Between, KeySpan, Kind};

/// Which file this is, and how to read it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SstIdentity {
    /// Number in the file's name; names its blocks in the cache.
    pub(crate) file_no: u64,
    /// Number that its checksums were made with; `None`: whatever its footer says.
    pub(crate) sealed_no: Option<u64>,
    /// All entries count as written at this timestamp; 0: each has its own.
    pub(crate) ts_override: u64,
}

impl SstIdentity {
    /// A file that its store wrote under this number.
    pub(crate) fn own(file_no: u64) -> SstIdentity {
        SstIdentity { file_no, sealed_no: Some(file_no), ts_override: 0 }
    }

    /// Seed of the checksums.
    fn seal(&self) -> u64 {
        self.sealed_no.unwrap_or(self.file_no)
    }
}

/// An sst that can be read. Shared by all readers.
pub(crate) struct SstReader {
    file: Arc<dyn File>,
    path: PathBuf,
    identity: SstIdentity,
    top: IndexBlock,
    parts: OnShelf<Partition>,
    /// One, unless the sst has none.
    filter: OnShelf<HeldFilter>,
    skyline: StoredSkyline,
    properties: Properties,
    /// What the top of the index takes.
    _pinned: Pinned,
    cache: Arc<BlockCache>,
}

/// A part of the block index, with the slots of its blocks.
pub(crate) struct Partition {
    pub(crate) index: IndexBlock,
    frames: Frames,
}

impl Partition {
    /// Brings what lies beside the block of an entry closer, if anything does.
    pub(super) fn prefetch_sidecar(&self, at: usize) {
        self.frames.prefetch_sidecar(at);
    }

    /// What lies beside the block of an entry.
    pub(super) fn sidecar(&self, at: usize) -> Option<Arc<Sidecar>> {
        self.frames.sidecar(at)
    }

    /// Says that somebody uses that.
    pub(super) fn note_use_of_sidecar(&self, at: usize) {
        self.frames.note_use_of_sidecar(at);
    }

    /// Whether there is room for something beside blocks.
    pub(super) fn has_room_beside(&self) -> bool {
        self.frames.has_room_beside()
    }

    /// Puts something beside it, if it is in the cache.
    pub(super) fn set_sidecar(&self, at: usize, sidecar: Arc<Sidecar>) {
        self.frames.set_sidecar(at, sidecar);
    }
}

/// A filter, and what it takes of the cache's budget.
struct HeldFilter {
    filter: Filter,
    _pinned: Pinned,
}

impl HeldFilter {
    fn of(image: &[u8], cache: &Arc<BlockCache>) -> HeldFilter {
        let filter = Filter::of(image);
        let _pinned = cache.pin(filter.memory());
        HeldFilter { filter, _pinned }
    }
}

/// One point entry found in an sst.
pub(crate) struct Found {
    pub(crate) ts: u64,
    pub(crate) kind: Kind,
    pub(crate) value: Bytes,
}

/// Reads the footer of a file of `len` bytes; returns it with its offset.
fn read_footer(file: &dyn File, len: u64, path: &Path) -> Result<(Footer, u64)> {
    let at = len
        .checked_sub(FOOTER as u64)
        .ok_or_else(|| Error::corruption(path, 0, "file is shorter than a footer"))?;
    let mut bytes = [0; FOOTER];
    file.read_exact_at(&mut bytes, at)
        .map_err(|error| Error::io(format!("reading {}", path.display()), &error))?;
    let footer = Footer::decode(&bytes).map_err(|error| match error {
        FooterError::Damaged(reason) => Error::corruption(path, at, reason),
        FooterError::TooNew(found) => Error::FormatTooNew {
            file: path.to_path_buf(),
            found,
            supported: super::format::FORMAT_VERSION,
        },
    })?;
    Ok((footer, at))
}

/// Whether a file is the sst that somebody expects: numbers that its checksums were made with, and
/// its identity, if that is known. Reads the footer only.
pub(crate) fn check_identity(
    file: &dyn File,
    len: u64,
    path: &Path,
    (sealed_no, identity): (u64, u64),
) -> Result<()> {
    let (footer, at) = read_footer(file, len, path)?;
    let wrong = |reason: String| Err(Error::corruption(path, at, reason));
    if footer.file_no != sealed_no {
        return wrong(format!("expected file number {sealed_no}, found {}", footer.file_no));
    }
    if identity != 0 && footer.identity != identity {
        let found = footer.identity;
        return wrong(format!("expected the sst {identity:016x}, found {found:016x}"));
    }
    Ok(())
}

impl SstReader {
    /// Opens an sst and checks everything but its row blocks and index partitions.
    pub(crate) fn open(
        fs: &dyn FileSystem,
        path: &Path,
        identity: SstIdentity,
        cache: Arc<BlockCache>,
    ) -> Result<SstReader> {
        SstReader::open_as(fs, path, identity, cache, true)
    }

    /// As [`SstReader::open`], without its filter, for those who read rows in order and have little
    /// memory.
    pub(crate) fn open_for_rows(
        fs: &dyn FileSystem,
        path: &Path,
        identity: SstIdentity,
        cache: Arc<BlockCache>,
    ) -> Result<SstReader> {
        SstReader::open_as(fs, path, identity, cache, false)
    }

    fn open_as(
        fs: &dyn FileSystem,
        path: &Path,
        mut identity: SstIdentity,
        cache: Arc<BlockCache>,
        with_filter: bool,
    ) -> Result<SstReader> {
        let io = |error| Error::io(format!("opening {}", path.display()), &error);
        let file = fs.open(path).map_err(io)?;
        let len = file.len().map_err(io)?;
        let (footer, footer_at) = read_footer(&*file, len, path)?;
        if identity.sealed_no.is_some_and(|sealed_no| sealed_no != footer.file_no) {
            let expected = identity.seal();
            let reason = format!("expected file number {expected}, found {}", footer.file_no);
            return Err(Error::corruption(path, footer_at, reason));
        }
        identity.sealed_no = Some(footer.file_no);
        let load = |handle, kind| load(&*file, path, footer.file_no, handle, kind);
        let image = load(footer.properties, BlockKind::Properties)?;
        let mut properties = Properties::decode(&image)
            .map_err(|reason| Error::corruption(path, footer.properties.offset, reason))?;
        properties.identity = footer.identity;
        let mut top = IndexBlock::parse(&load(footer.top_index, BlockKind::TopIndex)?)
            .map_err(|reason| Error::corruption(path, footer.top_index.offset, reason))?;
        let filter = match properties.filter_block {
            BlockHandle { len: 0, .. } => None,
            _ if !with_filter => None,
            handle => Some(HeldFilter::of(&load(handle, BlockKind::Filter)?, &cache)),
        };
        let mut skyline = match properties.tombstone_block {
            BlockHandle { len: 0, .. } => StoredSkyline::default(),
            handle => StoredSkyline::parse(load(handle, BlockKind::Tombstones)?)
                .map_err(|reason| Error::corruption(path, handle.offset, reason))?,
        };
        if identity.ts_override > 0 {
            properties.override_ts(identity.ts_override);
            top.override_ts(identity.ts_override);
            skyline.override_ts(identity.ts_override);
        }
        let path = path.to_path_buf();
        let parts = OnShelf::new(top.len(), &cache);
        let cells = OnShelf::new(usize::from(filter.is_some()), &cache);
        if let Some(filter) = filter {
            let bytes = filter.filter.memory();
            cells.put(0, filter, bytes);
        }
        let _pinned = cache.pin(top.memory());
        Ok(SstReader {
            file,
            path,
            identity,
            top,
            parts,
            filter: cells,
            skyline,
            properties,
            _pinned,
            cache,
        })
    }

    /// The same file, which is open, under the name and the timestamp that its store gives it. What
    /// was read through it before is forgotten: it may have had another timestamp, and lies in
    /// another cache.
    pub(crate) fn placed(
        self,
        path: PathBuf,
        identity: SstIdentity,
        cache: Arc<BlockCache>,
    ) -> SstReader {
        let SstReader { file, mut top, mut skyline, mut properties, .. } = self;
        let ts = identity.ts_override;
        if ts > 0 && ts != self.identity.ts_override {
            properties.override_ts(ts);
            top.override_ts(ts);
            skyline.override_ts(ts);
        }
        let parts = OnShelf::new(top.len(), &cache);
        let filter = OnShelf::new(usize::from(properties.filter_block.len > 0), &cache);
        let _pinned = cache.pin(top.memory());
        SstReader { file, path, identity, top, parts, filter, skyline, properties, _pinned, cache }
    }

    /// Number that the file's checksums were made with.
    pub(crate) fn sealed_no(&self) -> u64 {
        self.identity.seal()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn top(&self) -> &IndexBlock {
        &self.top
    }

    /// Length of the file in bytes.
    pub(crate) fn file_len(&self) -> std::io::Result<u64> {
        self.file.len()
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    pub(crate) fn skyline(&self) -> &StoredSkyline {
        &self.skyline
    }

    /// Whether the key with this hash may be here.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        if self.properties.filter_block.len == 0 {
            return true;
        }
        match &*self.filter.get(0) {
            Some(held) => held.filter.may_contain(hash),
            None => self.load_filter().is_none_or(|held| held.filter.may_contain(hash)),
        }
    }

    /// The filter; without it everything may be there. What cannot be read now is reported by
    /// whoever reads the blocks.
    #[cold]
    fn load_filter(&self) -> Option<Arc<HeldFilter>> {
        self.cache.count_miss();
        let (sealed_no, handle) = (self.identity.seal(), self.properties.filter_block);
        let image = load(&*self.file, &self.path, sealed_no, handle, BlockKind::Filter).ok()?;
        let held = HeldFilter::of(&image, &self.cache);
        let bytes = held.filter.memory();
        Some(self.filter.put(0, held, bytes))
    }

    /// Brings what [`SstReader::may_contain`] will look at closer.
    pub(crate) fn prefetch_filter(&self, hash: u64) {
        if self.properties.filter_block.len > 0
            && let Some(held) = &*self.filter.get(0)
        {
            held.filter.prefetch(hash);
        }
    }

    /// A partition of the index. `keep`: for others as well.
    #[inline]
    pub(crate) fn partition(
        &self,
        number: usize,
        keep: bool,
        work: &mut ReadWork,
    ) -> Result<Arc<Partition>> {
        work.blocks += 1;
        match &*self.parts.get(number) {
            Some(partition) => Ok(partition.clone()),
            None => self.load_partition(number, keep, work),
        }
    }

    #[cold]
    fn load_partition(
        &self,
        number: usize,
        keep: bool,
        work: &mut ReadWork,
    ) -> Result<Arc<Partition>> {
        work.from_disk += 1;
        self.cache.count_miss();
        let handle = self.top.handle(number);
        let image = load(&*self.file, &self.path, self.identity.seal(), handle, BlockKind::Index)?;
        let mut index = IndexBlock::parse(&image)
            .map_err(|reason| Error::corruption(&self.path, handle.offset, reason))?;
        if self.identity.ts_override > 0 {
            index.override_ts(self.identity.ts_override);
        }
        let bytes = index.memory() + Frames::memory(index.len());
        let frames = self.cache.frames(index.len(), bytes);
        let partition = Partition { index, frames };
        Ok(match keep {
            true => self.parts.put(number, partition, bytes),
            false => Arc::new(partition),
        })
    }

    /// The block of entry `at` of a partition, for as long as the caller wants it.
    pub(crate) fn block(
        &self,
        partition: &Partition,
        at: usize,
        heat: Option<u8>,
        work: &mut ReadWork,
    ) -> Result<RowBlock> {
        work.blocks += 1;
        if let Some(block) = &*partition.frames.get(at) {
            partition.frames.count_hit();
            return Ok(block.clone());
        }
        self.load_block(partition, at, heat, work)
    }

    /// `heat`: how long the cache should keep it; `None`: not at all.
    #[cold]
    fn load_block(
        &self,
        partition: &Partition,
        at: usize,
        heat: Option<u8>,
        work: &mut ReadWork,
    ) -> Result<RowBlock> {
        work.from_disk += 1;
        self.cache.count_miss();
        let handle = partition.index.handle(at);
        let image = load(&*self.file, &self.path, self.identity.seal(), handle, BlockKind::Rows)?;
        let mut block = RowBlock::parse(&image)
            .map_err(|reason| Error::corruption(&self.path, handle.offset, reason))?;
        if self.identity.ts_override > 0 {
            block.override_ts(self.identity.ts_override);
        }
        if let Some(heat) = heat {
            partition.frames.insert(at, &block, heat);
        }
        Ok(block)
    }

    /// Brings the block of an entry closer, if it is in memory.
    pub(crate) fn prefetch_block(&self, partition: &Partition, at: usize) {
        self.prefetch_of(partition, at, RowBlock::prefetch);
    }

    /// Brings the header of the block of an entry closer, if it is in memory.
    pub(crate) fn prefetch_header(&self, partition: &Partition, at: usize) {
        self.prefetch_of(partition, at, RowBlock::prefetch_header);
    }

    /// Brings the first rows of the block of an entry closer, if it is in memory.
    pub(crate) fn prefetch_columns(&self, partition: &Partition, at: usize) {
        self.prefetch_of(partition, at, RowBlock::prefetch_columns);
    }

    /// Brings closer which classes the rows of the block of an entry have, if it is in memory.
    pub(crate) fn prefetch_classes(&self, partition: &Partition, at: usize) {
        self.prefetch_of(partition, at, RowBlock::prefetch_classes);
    }

    fn prefetch_of(&self, partition: &Partition, at: usize, prefetch: impl Fn(&RowBlock)) {
        if at < partition.index.len()
            && let Some(block) = &*partition.frames.get(at)
        {
            prefetch(block);
        }
    }

    /// Reads all blocks that are not in the cache, in order.
    pub(crate) fn warm(&self) -> Result<()> {
        let mut work = ReadWork::default();
        for number in 0..self.top.len() {
            let partition = self.partition(number, true, &mut work)?;
            for at in 0..partition.index.len() {
                self.block(&partition, at, Some(WARM), &mut work)?;
            }
        }
        Ok(())
    }

    /// Finds the newest entry of `key` with `ts <= read_ts` and gives it to `take`.
    fn find_with<R>(
        &self,
        key: &[u8],
        read_ts: u64,
        work: &mut ReadWork,
        take: impl FnOnce(&RowBlock, usize) -> R,
    ) -> Result<Option<R>> {
        let mut part_no = self.top.lower_bound(key);
        let mut first = true;
        // A read of now need not look at timestamps in the index.
        let all_seen = read_ts >= self.properties.max_point_ts;
        while part_no < self.top.len() {
            work.blocks += 1;
            let kept = self.parts.get(part_no);
            let read;
            let partition: &Partition = if let Some(partition) = &*kept {
                partition
            } else {
                read = self.load_partition(part_no, true, work)?;
                &read
            };
            let index = &partition.index;
            let mut at = if first { index.lower_bound(key) } else { 0 };
            first = false;
            while at < index.len() {
                if all_seen || index.min_ts(at) <= read_ts {
                    work.blocks += 1;
                    let cached = partition.frames.get(at);
                    let loaded;
                    let block = if let Some(block) = &*cached {
                        partition.frames.count_hit();
                        block
                    } else {
                        loaded = self.load_block(partition, at, Some(WARM), work)?;
                        &loaded
                    };
                    let mut row = block.lower_bound(key);
                    let mut is_key = row < block.len() && block.key_is(row, key);
                    while is_key {
                        if block.ts(row) <= read_ts {
                            return Ok(Some(take(block, row)));
                        }
                        row += 1;
                        // A group that goes on in the next block is looked for there.
                        is_key = row < block.len() && block.same_key(row);
                    }
                    if row < block.len() {
                        return Ok(None);
                    }
                }
                // The key's versions may go on in the next block only if this one ends with it.
                if index.separator(at) != key {
                    return Ok(None);
                }
                at += 1;
            }
            part_no += 1;
        }
        Ok(None)
    }

    /// Where the newest entry of `key` with `ts <= read_ts` is.
    pub(crate) fn find(
        &self,
        key: &[u8],
        read_ts: u64,
        work: &mut ReadWork,
    ) -> Result<Option<(RowBlock, usize)>> {
        self.find_with(key, read_ts, work, |block, row| (block.clone(), row))
    }

    /// The newest entry of `key` with `ts <= read_ts`.
    pub(crate) fn get(
        &self,
        key: &[u8],
        read_ts: u64,
        work: &mut ReadWork,
    ) -> Result<Option<Found>> {
        self.find_with(key, read_ts, work, |block, row| Found {
            ts: block.ts(row),
            kind: block.kind(row),
            value: block.value_bytes(row),
        })
    }

    /// Gives `f` the spans in which the points of the sst lie, block by block in key order.
    pub(crate) fn each_block(&self, f: &mut dyn FnMut(KeySpan) -> Result<()>) -> Result<()> {
        let mut walker = BlockWalker::new(false);
        walker.first(self)?;
        let mut start = self.properties.start.clone();
        while let Some(entry) = walker.entry() {
            let mut end = entry.separator().to_vec();
            end.push(0);
            let end: Bytes = end.into();
            f(KeySpan { start: std::mem::replace(&mut start, end.clone()), end })?;
            walker.next_where(self, |_, _| true)?;
        }
        Ok(())
    }

    /// Newest of some timestamps of a point in the span; their floor if there is none.
    ///
    /// The index answers for blocks that are wholly inside; only blocks at the edges are read, and
    /// those with newer points, too.
    pub(crate) fn newest_point(&self, span: &KeySpan, mut times: Between) -> Result<u64> {
        if self.properties.max_point_ts <= times.floor {
            return Ok(times.floor);
        }
        let mut walker = BlockWalker::new(true);
        walker.seek(self, &span.start)?;
        // The first block may begin before the span.
        let mut inside = false;
        let mut key = Vec::new();
        while let Some(entry) = walker.entry() {
            let separator = entry.separator();
            let ends_inside = separator < span.end.as_ref();
            if times.meets(entry.min_ts(), entry.max_ts()) {
                if inside && ends_inside && entry.max_ts() <= times.upto {
                    times.floor = entry.max_ts();
                } else {
                    let block = walker.load(self)?;
                    for row in block.lower_bound(&span.start)..block.len() {
                        block.read_key(row, &mut key);
                        if key.as_slice() >= span.end.as_ref() {
                            break;
                        }
                        times.floor = times.raised(block.ts(row));
                    }
                }
            }
            if !ends_inside {
                break;
            }
            inside = true;
            walker.next_where(self, |index, i| times.meets(index.min_ts(i), index.max_ts(i)))?;
        }
        Ok(times.floor)
    }
}

fn load(
    file: &dyn File,
    path: &Path,
    file_no: u64,
    handle: BlockHandle,
    kind: BlockKind,
) -> Result<Bytes> {
    /// A block that says it is larger must show that the file is: no memory for hostile lengths.
    const UNCHECKED: usize = 1 << 20;
    let ends_early = || Error::corruption(path, handle.offset, "the file ends inside a block");
    let io = |error| Error::io(format!("reading {}", path.display()), &error);
    let len = handle.len as usize + TRAILER;
    if len > UNCHECKED && handle.offset.saturating_add(len as u64) > file.len().map_err(io)? {
        return Err(ends_early());
    }
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, handle.offset).map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof { ends_early() } else { io(error) }
    })?;
    open_block(bytes, kind, file_no, handle.offset)
        .map_err(|reason| Error::corruption(path, handle.offset, reason))
}
