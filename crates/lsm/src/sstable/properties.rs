//! Facts about an sst, as tagged fields: readers skip tags they do not know.

use bytes::Bytes;

use super::format::BlockHandle;
use crate::batch::{put_varint, take_bytes, take_varint};

/// Everything an sst says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Properties {
    /// Point entries.
    pub(crate) rows: u64,
    /// Point entries that are deletes.
    pub(crate) deletes: u64,
    /// Range tombstones.
    pub(crate) tombstones: u64,
    /// Bytes of keys before compression of any kind.
    pub(crate) raw_key_bytes: u64,
    /// Bytes of values.
    pub(crate) raw_value_bytes: u64,
    /// Smallest timestamp of an entry or tombstone.
    pub(crate) min_ts: u64,
    /// Largest timestamp of an entry or tombstone.
    pub(crate) max_ts: u64,
    /// Largest timestamp of a point entry; 0 if there are none.
    pub(crate) max_point_ts: u64,
    /// Row blocks.
    pub(crate) blocks: u64,
    /// Arrival of the oldest and the newest memtable in here.
    pub(crate) arrival_low: u64,
    /// See `arrival_low`.
    pub(crate) arrival_high: u64,
    /// Bounds: every key and tombstone lies in `[start, end)`.
    pub(crate) start: Bytes,
    /// See `start`.
    pub(crate) end: Bytes,
    /// What tells the file from every other one, chosen at random. It stands in the footer; 0 in
    /// files of format version 1.
    pub(crate) identity: u64,
    /// Range tombstones, if there are any.
    pub(crate) tombstone_block: BlockHandle,
    /// Filter, if there is one.
    pub(crate) filter_block: BlockHandle,
}

impl Properties {
    fn numbers(&mut self) -> [(u64, &mut u64); 11] {
        [
            (1, &mut self.rows),
            (2, &mut self.deletes),
            (3, &mut self.tombstones),
            (4, &mut self.raw_key_bytes),
            (5, &mut self.raw_value_bytes),
            (6, &mut self.min_ts),
            (7, &mut self.max_ts),
            (8, &mut self.max_point_ts),
            (9, &mut self.blocks),
            (10, &mut self.arrival_low),
            (11, &mut self.arrival_high),
        ]
    }

    /// As if all entries had been written at `ts`.
    pub(crate) fn override_ts(&mut self, ts: u64) {
        (self.min_ts, self.max_ts) = (ts, ts);
        self.max_point_ts = if self.rows > 0 { ts } else { 0 };
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut field = |tag: u64, bytes: &[u8]| {
            put_varint(&mut out, tag);
            put_varint(&mut out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        };
        for (tag, value) in self.clone().numbers() {
            field(tag, &value.to_le_bytes());
        }
        field(20, &self.start);
        field(21, &self.end);
        for (tag, handle) in [(22, self.tombstone_block), (23, self.filter_block)] {
            let mut bytes = handle.offset.to_le_bytes().to_vec();
            bytes.extend_from_slice(&handle.len.to_le_bytes());
            field(tag, &bytes);
        }
        out
    }

    pub(crate) fn decode(image: &Bytes) -> Result<Properties, &'static str> {
        const CUT: &str = "properties are cut off";
        let mut properties = Properties::default();
        let mut rest = image.as_ref();
        while !rest.is_empty() {
            let tag = take_varint(&mut rest).ok_or(CUT)?;
            let bytes = take_bytes(&mut rest).ok_or(CUT)?;
            match tag {
                20 => properties.start = Bytes::copy_from_slice(bytes),
                21 => properties.end = Bytes::copy_from_slice(bytes),
                22 => properties.tombstone_block = handle(bytes).ok_or(CUT)?,
                23 => properties.filter_block = handle(bytes).ok_or(CUT)?,
                _ => {
                    if let Some((_, slot)) =
                        properties.numbers().into_iter().find(|(known, _)| *known == tag)
                    {
                        *slot = u64::from_le_bytes(bytes.try_into().map_err(|_| CUT)?);
                    }
                }
            }
        }
        Ok(properties)
    }
}

fn handle(bytes: &[u8]) -> Option<BlockHandle> {
    Some(BlockHandle {
        offset: u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?),
        len: u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?),
    })
}
