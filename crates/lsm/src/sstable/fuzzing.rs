//! What a fuzzer calls to decode parts of an sst, and valid samples to start from.
//!
//! A decoder may say no; it must not panic or read outside of its input. What it accepts is then
//! read in every way that the engine reads it.

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::{FileSystem, MemFs};
use bytes::Bytes;

use super::filter::Filter;
pub(crate) use super::format::BlockKind;
use super::format::{BlockHandle, FOOTER, Footer, TRAILER, open_block, seal_block, seal_footer};
use super::index_block::IndexBlock;
use super::row_block::RowBlock;
use super::tombstone_block::StoredSkyline;
use super::{Properties, SstEntries, SstIdentity, SstReader, sst_path};
use crate::cache::BlockCache;
use crate::iter::ReadWork;

/// A row block's image.
pub fn row_block(data: &[u8]) {
    let Ok(block) = RowBlock::parse(data) else { return };
    let mut key = Vec::new();
    for row in 0..block.len() {
        key.clear();
        block.read_key(row, &mut key);
        assert!(block.key_is(row, &key), "a row has its own key");
        let (ts, kind, class) = (block.ts(row), block.kind(row), block.class(row));
        std::hint::black_box((ts, kind, class, block.value(row).len(), block.same_key(row)));
        std::hint::black_box(block.lower_bound(&key));
    }
    for probe in [&b""[..], b"customer/2", &[0xff; 9], data] {
        assert!(block.lower_bound(probe) <= block.len());
    }
    for ts in [0, block.min_ts(), block.max_ts(), u64::MAX] {
        let mut carry = false;
        for word in 0..block.len().div_ceil(64) {
            let rows = block.len() - word * 64;
            let seen = block.visible(word, ts, u32::MAX, &mut carry);
            assert!(rows >= 64 || seen >> rows == 0, "only rows that are there are seen");
        }
    }
}

/// The image of an index partition or of the top index.
pub fn index_block(data: &[u8]) {
    let Ok(index) = IndexBlock::parse(data) else { return };
    for i in 0..index.len() {
        let separator = index.separator(i).to_vec();
        let facts = (index.handle(i), index.cum_live(i), index.classes(i));
        std::hint::black_box((facts, index.min_ts(i), index.max_ts(i)));
        assert!(index.lower_bound(&separator) <= index.len());
    }
    assert!(index.lower_bound(data) <= index.len());
}

/// A tombstone block's image.
pub fn tombstone_block(data: &[u8]) {
    let Ok(skyline) = StoredSkyline::parse(Bytes::copy_from_slice(data)) else { return };
    for tombstone in &skyline.tombstones() {
        std::hint::black_box(skyline.stab(&tombstone.start, tombstone.ts));
        std::hint::black_box(skyline.max_ts_in(&tombstone.start, &tombstone.end));
        for backward in [false, true] {
            std::hint::black_box(skyline.cover(&tombstone.end, tombstone.ts, backward).ts);
        }
    }
}

/// A filter's image.
pub fn filter(data: &[u8]) {
    let filter = Filter::of(data);
    for hash in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
        std::hint::black_box(filter.may_contain(hash));
    }
}

/// The properties' image.
pub fn properties(data: &[u8]) {
    std::hint::black_box(Properties::decode(&Bytes::copy_from_slice(data)).is_ok());
}

/// A footer.
pub fn footer(data: &[u8]) {
    if let Some(bytes) = data.first_chunk::<FOOTER>() {
        std::hint::black_box(Footer::decode(bytes).is_ok());
    }
}

fn reader(data: &[u8]) -> Option<SstReader> {
    let fs = MemFs::new();
    let path = sst_path(Path::new("/"), 7);
    fs.create(&path).and_then(|file| file.write_at(data, 0)).ok()?;
    let cache = Arc::new(BlockCache::new(1 << 20));
    SstReader::open(&fs, &path, SstIdentity::own(7), cache).ok()
}

/// A whole file; then the same with checksums that match, so that damage reaches what lies behind
/// them.
pub fn sst(data: &[u8]) {
    read_all(data);
    let mut sealed = data.to_vec();
    seal(&mut sealed);
    read_all(&sealed);
}

/// Makes the checksums of a damaged file match, as far as its blocks can be found.
fn seal(file: &mut [u8]) {
    let Some(footer) = file.last_chunk_mut::<FOOTER>() else { return };
    seal_footer(footer);
    let Ok(footer) = Footer::decode(footer) else { return };
    if let Some(properties) = seal_at(file, footer.properties, BlockKind::Properties)
        && let Ok(facts) = Properties::decode(&properties)
    {
        seal_at(file, facts.filter_block, BlockKind::Filter);
        seal_at(file, facts.tombstone_block, BlockKind::Tombstones);
    }
    let parse = |image: Option<Bytes>| image.and_then(|image| IndexBlock::parse(&image).ok());
    let Some(top) = parse(seal_at(file, footer.top_index, BlockKind::TopIndex)) else { return };
    for part in (0..top.len()).map(|i| top.handle(i)) {
        let Some(part) = parse(seal_at(file, part, BlockKind::Index)) else { continue };
        for i in 0..part.len() {
            seal_at(file, part.handle(i), BlockKind::Rows);
        }
    }
}

/// Seals one block and returns its raw image.
fn seal_at(file: &mut [u8], handle: BlockHandle, kind: BlockKind) -> Option<Bytes> {
    let from = usize::try_from(handle.offset).ok()?;
    let to = from.checked_add(handle.len as usize)?.checked_add(TRAILER)?;
    let bytes = file.get_mut(from..to)?;
    seal_block(bytes, 7, handle.offset);
    open_block(bytes.to_vec(), kind, 7, handle.offset).ok()
}

/// Reads all entries of a file, and looks for some keys.
fn read_all(data: &[u8]) {
    let Some(reader) = reader(data) else { return };
    for key in [&b"customer/004/order/3"[..], b"", b"\xff"] {
        let found = reader.get(key, u64::MAX, &mut ReadWork::default());
        std::hint::black_box(found.is_ok_and(|found| found.is_some()));
    }
    let Ok(mut entries) = SstEntries::open(Arc::new(reader)) else { return };
    while entries.key().is_some() {
        std::hint::black_box((entries.ts(), entries.kind(), entries.value().len()));
        if entries.advance().is_err() {
            return;
        }
    }
}

/// The raw images of a valid sst's blocks, by kind.
pub(crate) fn images(file: &[u8]) -> Vec<(BlockKind, Vec<u8>)> {
    let image = |handle: BlockHandle, kind| {
        let (from, len) = (handle.offset as usize, handle.len as usize);
        let stored = file[from..from + len + TRAILER].to_vec();
        open_block(stored, kind, 7, handle.offset).expect("a sample is valid").to_vec()
    };
    let bytes: &[u8; FOOTER] = file.last_chunk().expect("a sample is whole");
    let Ok(footer) = Footer::decode(bytes) else { panic!("a sample is valid") };
    let mut out = vec![
        (BlockKind::TopIndex, image(footer.top_index, BlockKind::TopIndex)),
        (BlockKind::Properties, image(footer.properties, BlockKind::Properties)),
    ];
    let facts = Properties::decode(&out[1].1.clone().into()).expect("a sample is valid");
    out.push((BlockKind::Filter, image(facts.filter_block, BlockKind::Filter)));
    out.push((BlockKind::Tombstones, image(facts.tombstone_block, BlockKind::Tombstones)));
    let top = IndexBlock::parse(&out[0].1).expect("a sample is valid");
    for part in 0..top.len() {
        let part = image(top.handle(part), BlockKind::Index);
        let index = IndexBlock::parse(&part).expect("a sample is valid");
        out.push((BlockKind::Index, part));
        for i in 0..index.len() {
            out.push((BlockKind::Rows, image(index.handle(i), BlockKind::Rows)));
        }
    }
    out
}
