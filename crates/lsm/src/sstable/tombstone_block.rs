//! Range tombstones of an sst: one entry per tombstone, clipped to the sst's bounds.
//!
//! `n u32`, then per tombstone, oldest first: `ts u64 | start (varint length, bytes) | end`.
//! O(n) bytes whatever the nesting. The skyline over them is put together once, when the sst is
//! opened, in O(n log n): entries are stored in the order in which a skyline takes them.

use bytes::Bytes;

use super::format::le_u64;
use crate::batch::{put_varint, take_bytes};
use crate::memtable::Tombstone;
use crate::range_tombstone::Skyline;

pub(crate) fn encode(tombstones: &[Tombstone]) -> Vec<u8> {
    let mut out = (tombstones.len() as u32).to_le_bytes().to_vec();
    for tombstone in tombstones {
        out.extend_from_slice(&tombstone.ts.to_le_bytes());
        put_varint(&mut out, tombstone.start.len() as u64);
        out.extend_from_slice(&tombstone.start);
        put_varint(&mut out, tombstone.end.len() as u64);
        out.extend_from_slice(&tombstone.end);
    }
    out
}

pub(crate) fn decode(image: &Bytes) -> Result<Vec<Tombstone>, &'static str> {
    const CUT: &str = "tombstone block is cut off";
    let count = image.get(..4).ok_or(CUT)?;
    let count = u32::from_le_bytes(count.try_into().expect("four bytes"));
    let mut rest = &image[4..];
    let mut tombstones: Vec<Tombstone> = Vec::new();
    for _ in 0..count {
        if rest.len() < 8 {
            return Err(CUT);
        }
        let ts = le_u64(rest, 0);
        rest = &rest[8..];
        let start = image.slice_ref(take_bytes(&mut rest).ok_or(CUT)?);
        let end = image.slice_ref(take_bytes(&mut rest).ok_or(CUT)?);
        if start >= end || tombstones.last().is_some_and(|last| last.ts > ts) {
            return Err("tombstones are not in order");
        }
        tombstones.push(Tombstone { start, end, ts });
    }
    if rest.is_empty() { Ok(tombstones) } else { Err("bytes behind the tombstones") }
}

/// The skyline of tombstones that are in ascending order of their timestamps.
pub(crate) fn skyline(tombstones: &[Tombstone]) -> Skyline {
    let mut skyline = Skyline::new();
    for tombstone in tombstones {
        skyline.insert_bytes(tombstone.start.clone(), tombstone.end.clone(), tombstone.ts, 0);
    }
    skyline
}
