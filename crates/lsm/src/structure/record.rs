//! What a wal record may hold: a batch, or the order to ingest files and excise a span.
//!
//! ```text
//!   batch        count u32 | flags u16 (below 0x100) | 0 u16 | commit timestamp u64 | entries
//!   structural   ssts u32  | flags u16: 0x100, 0x200 with a span | 0 u16 | number u64 |
//!                [start, end of the span] | per ingested sst its facts; each with a varint length
//! ```
//!
//! The files of an ingest are durable under their names before its record is written. The record
//! is carried out again at replay, unless the manifest says that it was installed (by segment and
//! number).

use bytes::Bytes;

use crate::batch::{Batch, put_varint, take_bytes};
use crate::key::KeySpan;
use crate::versions::{SstFacts, decode_sst, encode_sst};

const STRUCTURAL: u16 = 0x100;
const EXCISES: u16 = 0x200;
const HEADER_LEN: usize = 16;

/// One record of the wal.
pub(crate) enum Record {
    Batch(Batch),
    Structural(StructuralRecord),
}

/// The order to ingest, excise or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StructuralRecord {
    pub(crate) number: u64,
    pub(crate) excised: Option<KeySpan>,
    /// Disjoint, in key order.
    pub(crate) ssts: Vec<SstFacts>,
}

impl Record {
    /// Reads a record; the error says what is wrong with it.
    pub(crate) fn decode(input: &[u8]) -> Result<Record, String> {
        let flags = input.get(4..6).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
        if flags & STRUCTURAL == 0 {
            return Ok(Record::Batch(Batch::decode(input)?));
        }
        StructuralRecord::decode(input, flags).map(Record::Structural)
    }
}

impl StructuralRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let flags = STRUCTURAL | if self.excised.is_some() { EXCISES } else { 0 };
        let mut out = (self.ssts.len() as u32).to_le_bytes().to_vec();
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.number.to_le_bytes());
        let mut field = |bytes: &[u8]| {
            put_varint(&mut out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        };
        if let Some(span) = &self.excised {
            field(&span.start);
            field(&span.end);
        }
        self.ssts.iter().for_each(|facts| field(&encode_sst(facts)));
        out
    }

    fn decode(input: &[u8], flags: u16) -> Result<StructuralRecord, String> {
        let cut = || "structural record is cut off".to_string();
        if flags & !(STRUCTURAL | EXCISES) != 0 {
            return Err("structural record of unknown kind".into());
        }
        let header = input.get(..HEADER_LEN).ok_or_else(cut)?;
        let count = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
        let number = u64::from_le_bytes(header[8..].try_into().expect("eight bytes"));
        let mut rest = &input[HEADER_LEN..];
        let mut excised = None;
        if flags & EXCISES != 0 {
            let start = Bytes::copy_from_slice(take_bytes(&mut rest).ok_or_else(cut)?);
            let end = Bytes::copy_from_slice(take_bytes(&mut rest).ok_or_else(cut)?);
            excised = Some(KeySpan { start, end });
        }
        let mut ssts = Vec::new();
        for _ in 0..count {
            ssts.push(decode_sst(take_bytes(&mut rest).ok_or_else(cut)?)?);
        }
        if !rest.is_empty() {
            return Err("bytes behind a structural record".into());
        }
        Ok(StructuralRecord { number, excised, ssts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::Backing;

    #[test]
    fn records_round_trip_and_cuts_are_noticed() {
        let (sealed_no, identity) = (1 << 63, 5);
        let backing = Backing { file_no: 4, size: 99, sealed_no, ts_override: 7, identity };
        let sst = SstFacts {
            file_no: 4,
            level: 0,
            size: 99,
            bounds: KeySpan::new("c", "d"),
            arrival_low: 0,
            arrival_high: 0,
            min_ts: 7,
            max_ts: 7,
            max_point_ts: 7,
            rows: 3,
            deletes: 0,
            tombstones: 0,
            backing,
        };
        let excised = Some(KeySpan::new("a", "z"));
        let record = StructuralRecord { number: 12, excised, ssts: vec![sst] };
        let bytes = record.encode();
        assert!(matches!(Record::decode(&bytes), Ok(Record::Structural(found)) if found == record));
        for len in 0..bytes.len() {
            assert!(Record::decode(&bytes[..len]).is_err(), "{len}");
        }
    }
}
