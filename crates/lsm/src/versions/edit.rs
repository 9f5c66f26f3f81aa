//! A version edit: one atomic change of what is live, as a record of tagged fields.
//!
//! `tag varint | length varint | bytes`, repeated. Tags below 64 must be understood by a reader;
//! tags from 64 on may be skipped. The same holds inside the record of an sst. Reserved for later:
//! ceilings, history files, stream positions.

use std::borrow::Cow;

use bytes::Bytes;

use super::sst_meta::{Backing, SstFacts};
use crate::batch::{put_varint, take_bytes, take_varint};
use crate::key::KeySpan;
use crate::wal::LogMark;

const ADD_SST: u64 = 1;
const DROP_SST: u64 = 2;
const WAL_FLOOR: u64 = 3;
const NEXT_FILE: u64 = 4;
const GC_THRESHOLD: u64 = 5;
const FORMAT_VERSION: u64 = 6;
const NEWEST_TS: u64 = 7;
const SNAPSHOT: u64 = 8;
const NEXT_ARRIVAL: u64 = 9;
const INSTALLED: u64 = 10;
const STORE: u64 = 20;
const LOG_MARK: u64 = 21;
const CHAINED_FROM: u64 = 22;
/// From here on tags may be skipped by readers that do not know them.
const TIME: u64 = 64;
const REASON: u64 = 65;

/// Fields inside an sst's record.
const BACKING: u64 = 1;
const SEALED_NO: u64 = 2;
const TS_OVERRIDE: u64 = 3;
const CEILING: u64 = 4;
const IDENTITY: u64 = 5;

/// One atomic change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Edit {
    /// Ssts that are added, or moved: then the same edit drops their number.
    pub(crate) added: Vec<SstFacts>,
    pub(crate) dropped: Vec<u64>,
    /// Wal segments below are not needed any more.
    pub(crate) wal_floor: Option<u64>,
    /// Numbers below may be in use.
    pub(crate) next_file: Option<u64>,
    pub(crate) gc_threshold: Option<u64>,
    pub(crate) format_version: Option<u32>,
    /// Nothing in the ssts of the store is newer.
    pub(crate) newest_ts: Option<u64>,
    /// Arrival numbers below may be in use.
    pub(crate) next_arrival: Option<u64>,
    /// The edit says everything: what came before it in the manifest does not count.
    pub(crate) snapshot: bool,
    /// Ingests and excises that this edit makes part of the version: segment and number of their
    /// wal records, which are not to be carried out again.
    pub(crate) installed: Vec<(u64, u64)>,
    /// Identity of the store, chosen at random.
    pub(crate) store: Option<u64>,
    /// The log is durable at least up to here.
    pub(crate) log_mark: Option<LogMark>,
    /// Wal segments from here on begin with a head.
    pub(crate) chained_from: Option<u64>,
    /// When it was made, in microseconds since 1970. For people and tools.
    pub(crate) time: Option<u64>,
    /// Why it was made. For people and tools.
    pub(crate) reason: Option<Cow<'static, str>>,
}

impl Edit {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut field = |tag: u64, bytes: &[u8]| {
            put_varint(&mut out, tag);
            put_varint(&mut out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        };
        if let Some(version) = self.format_version {
            field(FORMAT_VERSION, &number(u64::from(version)));
        }
        if self.snapshot {
            field(SNAPSHOT, &[]);
        }
        for new in &self.added {
            field(ADD_SST, &encode_sst(new));
        }
        for (segment, number_of) in &self.installed {
            let mut bytes = number(*segment);
            put_varint(&mut bytes, *number_of);
            field(INSTALLED, &bytes);
        }
        if let Some(mark) = self.log_mark {
            let mut bytes = number(mark.segment);
            put_varint(&mut bytes, mark.position);
            put_varint(&mut bytes, mark.identity);
            field(LOG_MARK, &bytes);
        }
        for file_no in &self.dropped {
            field(DROP_SST, &number(*file_no));
        }
        if let Some(reason) = &self.reason {
            field(REASON, reason.as_bytes());
        }
        let numbers = [
            (STORE, self.store),
            (CHAINED_FROM, self.chained_from),
            (TIME, self.time),
            (WAL_FLOOR, self.wal_floor),
            (NEXT_FILE, self.next_file),
            (GC_THRESHOLD, self.gc_threshold),
            (NEWEST_TS, self.newest_ts),
            (NEXT_ARRIVAL, self.next_arrival),
        ];
        for (tag, value) in numbers {
            if let Some(value) = value {
                field(tag, &number(value));
            }
        }
        out
    }

    pub(crate) fn decode(input: &[u8]) -> Result<Edit, String> {
        let cut = || "version edit is cut off".to_string();
        let mut edit = Edit::default();
        let mut rest = input;
        while !rest.is_empty() {
            let tag = take_varint(&mut rest).ok_or_else(cut)?;
            let mut bytes = take_bytes(&mut rest).ok_or_else(cut)?;
            let mut value = || take_varint(&mut bytes).ok_or_else(cut);
            match tag {
                TIME => edit.time = Some(value()?),
                REASON => {
                    edit.reason = Some(String::from_utf8_lossy(bytes).into_owned().into());
                }
                ADD_SST => {
                    edit.added.push(decode_sst(bytes)?);
                }
                INSTALLED => edit.installed.push((value()?, value()?)),
                DROP_SST => edit.dropped.push(value()?),
                WAL_FLOOR => edit.wal_floor = Some(value()?),
                NEXT_FILE => edit.next_file = Some(value()?),
                GC_THRESHOLD => edit.gc_threshold = Some(value()?),
                FORMAT_VERSION => edit.format_version = Some(value()? as u32),
                NEWEST_TS => edit.newest_ts = Some(value()?),
                NEXT_ARRIVAL => edit.next_arrival = Some(value()?),
                SNAPSHOT => edit.snapshot = true,
                STORE => edit.store = Some(value()?),
                LOG_MARK => {
                    let (segment, position, identity) = (value()?, value()?, value()?);
                    edit.log_mark = Some(LogMark { segment, position, identity });
                }
                CHAINED_FROM => edit.chained_from = Some(value()?),
                66.. => {}
                unknown => return Err(format!("version edit has unknown field {unknown}")),
            }
        }
        Ok(edit)
    }
}

fn number(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, value);
    out
}

/// The record of an sst, as it stands in an edit.
pub(crate) fn encode_sst(facts: &SstFacts) -> Vec<u8> {
    let mut out = Vec::new();
    let numbers = [
        facts.file_no,
        facts.level as u64,
        facts.size,
        facts.arrival_low,
        facts.arrival_high,
        facts.min_ts,
        facts.max_ts,
        facts.max_point_ts,
        facts.rows,
        facts.deletes,
        facts.tombstones,
    ];
    for value in numbers {
        put_varint(&mut out, value);
    }
    for key in [&facts.bounds.start, &facts.bounds.end] {
        put_varint(&mut out, key.len() as u64);
        out.extend_from_slice(key);
    }
    let Backing { file_no, size, sealed_no, ts_override, identity } = facts.backing;
    let mut field = |tag: u64, numbers: &[u64]| {
        let mut bytes = Vec::new();
        numbers.iter().for_each(|value| put_varint(&mut bytes, *value));
        put_varint(&mut out, tag);
        put_varint(&mut out, bytes.len() as u64);
        out.extend_from_slice(&bytes);
    };
    if (file_no, size) != (facts.file_no, facts.size) {
        field(BACKING, &[file_no, size]);
    }
    if sealed_no != file_no {
        field(SEALED_NO, &[sealed_no]);
    }
    if ts_override > 0 {
        field(TS_OVERRIDE, &[ts_override]);
    }
    if identity > 0 {
        field(IDENTITY, &[identity]);
    }
    out
}

/// Reads the record of an sst.
pub(crate) fn decode_sst(mut input: &[u8]) -> Result<SstFacts, String> {
    let mut facts =
        decode_numbers(&mut input).ok_or_else(|| "the record of an sst is cut off".to_string())?;
    decode_extensions(&mut facts, input)?;
    Ok(facts)
}

fn decode_numbers(input: &mut &[u8]) -> Option<SstFacts> {
    let mut facts = SstFacts {
        file_no: take_varint(input)?,
        level: take_varint(input)? as usize,
        size: take_varint(input)?,
        arrival_low: take_varint(input)?,
        arrival_high: take_varint(input)?,
        min_ts: take_varint(input)?,
        max_ts: take_varint(input)?,
        max_point_ts: take_varint(input)?,
        rows: take_varint(input)?,
        deletes: take_varint(input)?,
        tombstones: take_varint(input)?,
        bounds: KeySpan::new("", ""),
        backing: Backing::own(0, 0, 0),
    };
    facts.bounds.start = Bytes::copy_from_slice(take_bytes(input)?);
    facts.bounds.end = Bytes::copy_from_slice(take_bytes(input)?);
    let own = facts.file_no;
    facts.backing = Backing::own(own, facts.size, 0);
    (facts.level < super::LEVELS).then_some(facts)
}

/// Reads the tagged fields behind an sst's numbers.
fn decode_extensions(facts: &mut SstFacts, mut input: &[u8]) -> Result<(), String> {
    let cut = || "the record of an sst is cut off".to_string();
    let mut sealed_no = None;
    while !input.is_empty() {
        let tag = take_varint(&mut input).ok_or_else(cut)?;
        let mut bytes = take_bytes(&mut input).ok_or_else(cut)?;
        let mut value = || take_varint(&mut bytes).ok_or_else(cut);
        match tag {
            BACKING => (facts.backing.file_no, facts.backing.size) = (value()?, value()?),
            SEALED_NO => sealed_no = Some(value()?),
            TS_OVERRIDE => facts.backing.ts_override = value()?,
            IDENTITY => facts.backing.identity = value()?,
            CEILING => return Err("an sst has a ceiling, which this version does not know".into()),
            64.. => {}
            unknown => return Err(format!("the record of an sst has unknown field {unknown}")),
        }
    }
    facts.backing.sealed_no = sealed_no.unwrap_or(facts.backing.file_no);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Edit {
        let facts = SstFacts {
            file_no: 7,
            level: 3,
            size: 1 << 40,
            bounds: KeySpan::new("a", "b\0"),
            arrival_low: 1,
            arrival_high: 9,
            min_ts: 5,
            max_ts: u64::MAX - 1,
            max_point_ts: 0,
            rows: 10,
            deletes: 1,
            tombstones: 2,
            backing: Backing::own(7, 1 << 40, 1 << 62),
        };
        let backing =
            Backing { file_no: 3, size: 1 << 41, sealed_no: 1 << 63, ts_override: 6, identity: 0 };
        let part = SstFacts { file_no: 8, backing, ..facts.clone() };
        Edit {
            added: vec![facts, part],
            dropped: vec![1, 2],
            wal_floor: Some(3),
            next_file: Some(8),
            gc_threshold: Some(4),
            format_version: Some(1),
            newest_ts: Some(99),
            next_arrival: Some(10),
            snapshot: true,
            installed: vec![(3, 12)],
            store: Some(u64::MAX),
            log_mark: Some(LogMark { segment: 4, position: 1 << 33, identity: 1 << 63 }),
            chained_from: Some(2),
            time: Some(1),
            reason: Some("because".into()),
        }
    }

    #[test]
    fn edits_round_trip_and_cuts_are_noticed_or_shorter() {
        let edit = sample();
        let bytes = edit.encode();
        assert_eq!(Edit::decode(&bytes).unwrap(), edit);
        for len in 0..bytes.len() {
            assert_ne!(Edit::decode(&bytes[..len]).ok(), Some(edit.clone()));
        }
    }

    #[test]
    fn a_file_of_another_size_than_its_sst_round_trips() {
        // Found by the fuzz target: the size was written only for files of another number.
        let mut edit = sample();
        edit.added[0].backing.size = 3;
        assert_eq!(Edit::decode(&edit.encode()).unwrap(), edit);
    }

    #[test]
    fn unknown_fields_are_refused_below_64_and_skipped_above() {
        let mut bytes = sample().encode();
        bytes.extend_from_slice(&[90, 2, 1, 1]);
        assert_eq!(Edit::decode(&bytes).unwrap(), sample());
        bytes.extend_from_slice(&[50, 0]);
        assert!(Edit::decode(&bytes).is_err());
    }
}
