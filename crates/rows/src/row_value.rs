//! The value of a row or index entry: the columns that the key does not hold, each found at once.
//!
//! ```text
//!   02 | highest column id | which are there | end of each | payloads
//!        of the time of      one bit for       1, 2 or 4
//!        writing, LEB128     each id           bytes: 02, 03, 04
//! ```
//! NULL columns are not there. A column whose id is above the highest id of the time of writing was
//! added later: it has its table's "missing" value. The payload of a column begins where that of
//! the one before it ends, so a reader that wants one column looks at two ends, however many others
//! there are; rows with the same columns share the work of finding out which ends those are. What
//! was dropped meanwhile is passed over. Rows of format 1, a list of ids, lengths and payloads, are
//! read as well. Byte tables: `docs/formats/keys.md`.

use braid_keys::column::{Direction, encode_column};
use braid_kv::{CommitTs, Coordinator, RowForm};
use braid_types::{
    Datum, SqlError, SqlResult, SqlState, UNIX_EPOCH_MICROS, commit_time_is_pending,
};
use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3Default;

use super::layout::behind;
use super::row_codec::{encode_payload, push_varint, read_varint, short_varint};

/// A list of columns; no longer written.
const LISTED: u8 = 1;
/// First bytes of rows whose ends have 1, 2 and 4 bytes.
const PLACED: [u8; 3] = [2, 3, 4];
/// Ids of columns whose value is when the row is committed; behind them a row without them.
const STAMPED: u8 = 5;

/// XX001.
pub(super) fn damaged(what: &str) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, format!("damaged row value: {what}"))
}

/// Builds a row value. Columns must be added by ascending id.
pub struct RowWriter {
    highest: u32,
    last: u32,
    map: Vec<u8>,
    ends: Vec<u32>,
    body: Vec<u8>,
    /// Columns that get the time of the commit.
    pending: Vec<u32>,
}

impl RowWriter {
    /// Starts a value; `highest` is the table's highest column id so far.
    pub fn new(highest: u32) -> RowWriter {
        let map = vec![0; map_bytes(highest)];
        let (ends, body) = (Vec::with_capacity(8), Vec::with_capacity(64));
        RowWriter { highest, last: 0, map, ends, body, pending: Vec::new() }
    }

    /// Starts another value, for the same table.
    pub fn again(&mut self) {
        self.last = 0;
        self.map.fill(0);
        self.ends.clear();
        self.body.clear();
        self.pending.clear();
    }

    /// Adds a column; NULL takes no space.
    pub fn column(&mut self, id: u32, value: &Datum) {
        if value.is_null() {
            return;
        }
        if value.is_pending_commit_time() {
            return self.pending.push(id);
        }
        self.payload(id, |body| encode_payload(body, value));
    }

    fn payload(&mut self, id: u32, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(id > self.last && id <= self.highest, "columns come by ascending id");
        self.last = id;
        let bit = (id - 1) as usize;
        self.map[bit / 8] |= 1 << (bit % 8);
        write(&mut self.body);
        self.ends.push(self.body.len() as u32);
    }

    /// The value.
    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_to(&mut out);
        out
    }

    /// Appends the value.
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        let wide = match self.body.len() {
            0..=0xFF => 0,
            0x100..=0xFFFF => 1,
            _ => 2,
        };
        let ends = self.ends.len() << wide;
        out.reserve(6 + self.map.len() + ends + self.body.len());
        if !self.pending.is_empty() {
            out.push(STAMPED);
            push_varint(out, self.pending.len() as u64);
            self.pending.iter().for_each(|id| push_varint(out, u64::from(*id)));
        }
        out.push(PLACED[wide]);
        push_varint(out, u64::from(self.highest));
        out.extend_from_slice(&self.map);
        for end in &self.ends {
            out.extend_from_slice(&end.to_le_bytes()[..1 << wide]);
        }
        out.extend_from_slice(&self.body);
    }
}

fn map_bytes(highest: u32) -> usize {
    (highest as usize).div_ceil(8)
}

/// Ends and payloads of a row.
#[derive(Clone, Copy)]
struct Placed<'a> {
    /// The power of two that an end's width is.
    wide: usize,
    ends: &'a [u8],
    body: &'a [u8],
}

impl<'a> Placed<'a> {
    /// What comes behind the map of a row with so many columns.
    #[inline]
    fn new(wide: usize, columns: usize, rest: &'a [u8]) -> SqlResult<Placed<'a>> {
        let (ends, body) =
            rest.split_at_checked(columns << wide).ok_or_else(|| damaged("ends of columns"))?;
        let placed = Placed { wide, ends, body };
        if placed.end(columns) != body.len() {
            return Err(damaged("length"));
        }
        Ok(placed)
    }

    /// Where the first `columns` of them end.
    #[inline]
    fn end(&self, columns: usize) -> usize {
        if columns == 0 {
            return 0;
        }
        let at = (columns - 1) << self.wide;
        match self.wide {
            0 => usize::from(self.ends[at]),
            1 => usize::from(u16::from_le_bytes([self.ends[at], self.ends[at + 1]])),
            _ => {
                let end = &self.ends[at..at + 4];
                u32::from_le_bytes([end[0], end[1], end[2], end[3]]) as usize
            }
        }
    }

    /// The payload of the column that has so many before it.
    #[inline]
    fn payload(&self, before: usize) -> SqlResult<&'a [u8]> {
        let payload = self.body.get(self.end(before)..self.end(before + 1));
        payload.ok_or_else(|| damaged("column length"))
    }
}

/// The parts of a row value before the ends: its format, the highest id, the map.
fn split_head(value: &[u8]) -> SqlResult<(usize, u32, &[u8], &[u8])> {
    let Some((format, mut rest)) = value.split_first() else {
        return Err(damaged("unknown row format"));
    };
    let wide = PLACED.iter().position(|placed| placed == format);
    let wide = wide.ok_or_else(|| damaged("unknown row format"))?;
    let highest = read_highest(&mut rest)?;
    let (map, rest) =
        rest.split_at_checked(map_bytes(highest)).ok_or_else(|| damaged("map of columns"))?;
    Ok((wide, highest, map, rest))
}

fn read_highest(rest: &mut &[u8]) -> SqlResult<u32> {
    short_varint(rest)?.try_into().map_err(|_| damaged("column id"))
}

/// The ids of the columns that get the time of the commit, and the row without them; `None` for
/// rows that have no such columns.
pub(super) fn split_pending(value: &[u8]) -> SqlResult<Option<(Vec<u32>, &[u8])>> {
    let Some((&STAMPED, mut rest)) = value.split_first() else { return Ok(None) };
    let count = read_varint(&mut rest)?;
    let id = |_| u32::try_from(read_varint(&mut rest)?).map_err(|_| damaged("column id"));
    let ids = (0..count).map(id).collect::<SqlResult<Vec<u32>>>()?;
    Ok(Some((ids, rest)))
}

/// A row as it is when committed at this time, if columns of it wait for that.
fn settle(value: &[u8], micros: i64) -> SqlResult<Option<Vec<u8>>> {
    let Some((pending, rest)) = split_pending(value)? else { return Ok(None) };
    let mut reader = RowReader::new(rest)?;
    let mut writer = RowWriter::new(reader.highest());
    let mut pending = pending.into_iter().peekable();
    loop {
        let next = reader.next_column()?;
        while let Some(id) = pending.next_if(|id| next.is_none_or(|(at, _)| *id < at)) {
            writer.payload(id, |body| encode_payload(body, &Datum::TimestampTz(micros)));
        }
        match next {
            Some((id, payload)) => writer.payload(id, |body| body.extend_from_slice(payload)),
            None => return Ok(Some(writer.finish())),
        }
    }
}

/// What the store is told of row values.
pub const ROW_FORM: RowForm = RowForm {
    part_digest,
    stamped: STAMPED,
    settle: |key, value, at| {
        let is_row = key.first() == Some(&braid_keys::path::DATA_PREFIX);
        is_row.then(|| settle(value, commit_micros(at)).ok().flatten()).flatten()
    },
    key_time: |at, descending| {
        let mut column = Vec::with_capacity(9);
        let dir = if descending { Direction::DESC } else { Direction::ASC };
        let encoded = encode_column(&mut column, &Datum::TimestampTz(commit_micros(at)), dir);
        debug_assert!(encoded.is_ok(), "a time can be a key");
        column
    },
};

/// A commit timestamp as it is in columns: rounded up, so that what AS OF SYSTEM TIME sees at some
/// microsecond are the commits whose time is at or before it.
pub fn commit_micros(at: CommitTs) -> i64 {
    let micros = at.0.div_ceil(Coordinator::timestamp_at(1).0);
    i64::try_from(micros).unwrap_or(i64::MAX).saturating_sub(UNIX_EPOCH_MICROS)
}

/// Reads a row value column by column.
pub struct RowReader<'a> {
    highest: u32,
    last: u32,
    columns: Columns<'a>,
}

enum Columns<'a> {
    Listed(&'a [u8]),
    Placed { map: &'a [u8], placed: Placed<'a>, before: usize },
}

impl<'a> RowReader<'a> {
    /// Starts reading.
    pub fn new(bytes: &'a [u8]) -> SqlResult<RowReader<'a>> {
        if let Some((&LISTED, mut rest)) = bytes.split_first() {
            let highest = read_highest(&mut rest)?;
            return Ok(RowReader { highest, last: 0, columns: Columns::Listed(rest) });
        }
        let (wide, highest, map, rest) = split_head(bytes)?;
        let placed = Placed::new(wide, ones(map), rest)?;
        Ok(RowReader { highest, last: 0, columns: Columns::Placed { map, placed, before: 0 } })
    }

    /// Highest column id of the table when the row was written.
    pub fn highest(&self) -> u32 {
        self.highest
    }

    /// The next column: its id and payload.
    pub fn next_column(&mut self) -> SqlResult<Option<(u32, &'a [u8])>> {
        match &mut self.columns {
            Columns::Listed(rest) => {
                if rest.is_empty() {
                    return Ok(None);
                }
                let delta = read_varint(rest)? as u32;
                self.last = self.last.checked_add(delta).ok_or_else(|| damaged("column id"))?;
                let len = read_varint(rest)? as usize;
                let (payload, behind) =
                    rest.split_at_checked(len).ok_or_else(|| damaged("column length"))?;
                *rest = behind;
                Ok(Some((self.last, payload)))
            }
            Columns::Placed { map, placed, before } => {
                let next = (self.last..).find(|bit| {
                    map.get((bit / 8) as usize).is_none_or(|byte| byte & (1 << (bit % 8)) != 0)
                });
                let Some(bit) = next.filter(|bit| ((bit / 8) as usize) < map.len()) else {
                    return Ok(None);
                };
                let payload = placed.payload(*before)?;
                *before += 1;
                self.last = bit + 1;
                Ok(Some((self.last, payload)))
            }
        }
    }
}

/// Names columns to [`part_digest`], by their ids.
pub(super) fn part(mut ids: Vec<u32>) -> Bytes {
    ids.sort_unstable();
    ids.iter().flat_map(|id| id.to_le_bytes()).collect()
}

/// Tells what some columns of a row are from what they are in another, whatever the others are and
/// however the row is written. `None` for damaged rows.
fn part_digest(value: &[u8], columns: &[u8]) -> Option<u128> {
    let mut reader = RowReader::new(value).ok()?;
    let mut next = reader.next_column().ok()?;
    let mut hash = Xxh3Default::new();
    for id in columns.chunks_exact(4) {
        let id = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
        while next.is_some_and(|(at, _)| at < id) {
            next = reader.next_column().ok()?;
        }
        match next {
            Some((at, payload)) if at == id => {
                hash.update(b"=");
                hash.update(&(payload.len() as u64).to_le_bytes());
                hash.update(payload);
            }
            // Older than the column: it is what the table says.
            _ if id > reader.highest() => hash.update(b"?"),
            _ => hash.update(b"0"),
        }
    }
    Some(hash.digest128())
}

fn ones(map: &[u8]) -> usize {
    map.iter().map(|byte| byte.count_ones() as usize).sum()
}

/// A wanted column of row values.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) id: u32,
    /// What it is in rows older than the column, encoded; `None`: NULL.
    pub(super) missing: Option<Vec<u8>>,
}

impl Stored {
    pub(super) fn new(id: u32, missing: &Datum) -> Stored {
        let mut bytes = Vec::new();
        encode_payload(&mut bytes, missing);
        Stored { id, missing: (!missing.is_null()).then_some(bytes) }
    }
}

/// Finds wanted columns in row values, one after the other.
pub(super) struct Finder<'a> {
    /// By ascending id.
    wanted: &'a [Stored],
    /// Format, highest id and map of the row before: most rows have the same.
    head: &'a [u8],
    wide: usize,
    /// Columns of such a row.
    columns: usize,
    /// For each wanted column, where it is in such a row.
    places: Vec<Found<'a>>,
}

#[derive(Clone, Copy)]
enum Found<'a> {
    /// So many are before it.
    Behind(usize),
    /// The same in all such rows.
    Known(Option<&'a [u8]>),
}

impl<'a> Finder<'a> {
    pub(super) fn new(wanted: &'a [Stored]) -> Finder<'a> {
        Finder { wanted, head: &[], wide: 0, columns: 0, places: Vec::new() }
    }

    /// Tells where each wanted column lies in a row value, one after the other: its payload, or
    /// `None` for NULL. Does not look at the others.
    #[inline]
    pub(super) fn find(
        &mut self,
        value: &'a [u8],
        found: impl FnMut(Option<&'a [u8]>),
    ) -> SqlResult<()> {
        if let Some(rest) = behind(value, self.head).filter(|_| !self.head.is_empty()) {
            return self.find_placed(rest, found);
        }
        if value.first() == Some(&LISTED) {
            return find_listed(value, self.wanted, found);
        }
        if let Some((pending, rest)) = split_pending(value)? {
            if self.wanted.iter().any(|column| pending.contains(&column.id)) {
                return Err(commit_time_is_pending());
            }
            return self.find(rest, found);
        }
        self.learn(value)?;
        self.find_placed(&value[self.head.len()..], found)
    }

    #[inline]
    fn find_placed(
        &self,
        rest: &'a [u8],
        mut found: impl FnMut(Option<&'a [u8]>),
    ) -> SqlResult<()> {
        let placed = Placed::new(self.wide, self.columns, rest)?;
        for place in &self.places {
            match *place {
                Found::Behind(before) => found(Some(placed.payload(before)?)),
                Found::Known(payload) => found(payload),
            }
        }
        Ok(())
    }

    /// Works out where the columns are in rows like this one.
    #[cold]
    fn learn(&mut self, value: &'a [u8]) -> SqlResult<()> {
        let (wide, highest, map, rest) = split_head(value)?;
        self.places.clear();
        for column in self.wanted {
            let bit = (column.id - 1) as usize;
            self.places.push(if column.id > highest {
                Found::Known(column.missing.as_deref())
            } else if map[bit / 8] & (1 << (bit % 8)) == 0 {
                Found::Known(None)
            } else {
                let in_byte = map[bit / 8] & ((1 << (bit % 8)) - 1);
                Found::Behind(ones(&map[..bit / 8]) + in_byte.count_ones() as usize)
            });
        }
        self.head = &value[..value.len() - rest.len()];
        (self.wide, self.columns) = (wide, ones(map));
        Ok(())
    }
}

/// As [`Finder::find`], in a row of format 1. Looks at nothing behind the last wanted column.
fn find_listed<'a>(
    value: &'a [u8],
    wanted: &'a [Stored],
    mut found: impl FnMut(Option<&'a [u8]>),
) -> SqlResult<()> {
    let mut reader = RowReader::new(value)?;
    let highest = reader.highest();
    let absent = |column: &'a Stored| column.missing.as_deref().filter(|_| column.id > highest);
    let mut at = 0;
    while at < wanted.len() {
        let Some((id, payload)) = reader.next_column()? else {
            wanted[at..].iter().for_each(|column| found(absent(column)));
            break;
        };
        while at < wanted.len() && wanted[at].id < id {
            found(absent(&wanted[at]));
            at += 1;
        }
        if at < wanted.len() && wanted[at].id == id {
            found(Some(payload));
            at += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use braid_types::SqlType;

    use super::super::row_codec::decode_payload;
    use super::*;

    /// A row as it was written in format 1.
    fn listed(highest: u32, columns: &[(u32, Datum)]) -> Vec<u8> {
        let mut out = vec![LISTED];
        push_varint(&mut out, u64::from(highest));
        let mut last = 0;
        for (id, value) in columns.iter().filter(|(_, value)| !value.is_null()) {
            let mut payload = Vec::new();
            encode_payload(&mut payload, value);
            push_varint(&mut out, u64::from(id - last));
            push_varint(&mut out, payload.len() as u64);
            out.extend_from_slice(&payload);
            last = *id;
        }
        out
    }

    fn placed(highest: u32, columns: &[(u32, Datum)]) -> Vec<u8> {
        let mut writer = RowWriter::new(highest);
        columns.iter().for_each(|(id, value)| writer.column(*id, value));
        writer.finish()
    }

    #[test]
    fn a_row_that_waits_becomes_the_row_with_its_time() {
        let at = CommitTs((7 << 12) + 1);
        assert_eq!(commit_micros(CommitTs(7 << 12)), 7 - UNIX_EPOCH_MICROS);
        let time = Datum::TimestampTz(8 - UNIX_EPOCH_MICROS);
        // In front of all others, between them, behind them; several.
        for pending in [vec![1], vec![4], vec![199], vec![1, 4, 5, 151, 199]] {
            let row = |time: &Datum| {
                let mut columns = some_columns(300);
                columns.retain(|(id, _)| !pending.contains(id));
                columns.extend(pending.iter().map(|id| (*id, time.clone())));
                columns.sort_by_key(|(id, _)| *id);
                placed(200, &columns)
            };
            let (waiting, settled) = (row(&Datum::PENDING_COMMIT_TIME), row(&time));
            let settle = |key: &[u8], value: &[u8]| (ROW_FORM.settle)(key, value, at);
            assert_eq!(waiting[0], ROW_FORM.stamped);
            assert_eq!(settle(b"\x02key", &waiting), Some(settled.clone()));
            assert_eq!(settle(b"\x02key", &settled), None);
            assert_eq!(settle(b"\x01key", &waiting), None);
            // What is not pending is found in it, and what is says so.
            let stored = [Stored::new(2, &Datum::Null), Stored::new(7, &Datum::Null)];
            let mut found = Vec::new();
            Finder::new(&stored).find(&waiting, |payload| found.push(payload)).unwrap();
            assert!(found.iter().all(Option::is_some));
            let asked = [Stored::new(pending[0], &Datum::Null)];
            let refused = Finder::new(&asked).find(&waiting, |_| {});
            assert_eq!(refused.unwrap_err().state().0, "55000");
            for cut in 0..waiting.len() {
                assert_eq!(settle(b"\x02key", &waiting[..cut]), None, "cut at {cut}");
            }
        }
    }

    fn some_columns(text: usize) -> Vec<(u32, Datum)> {
        vec![
            (2, Datum::Int4(-70_000)),
            (3, Datum::text("é".repeat(text))),
            (4, Datum::Null),
            (7, Datum::Numeric(Arc::new("-12.50".parse().unwrap()))),
            (8, Datum::text("")),
            (150, Datum::Int8(i64::MIN)),
        ]
    }

    #[test]
    fn both_formats_give_back_what_was_written() {
        for text in [0, 3, 200, 40_000] {
            let columns = some_columns(text);
            for (first, bytes) in [(1, listed(200, &columns)), (2, placed(200, &columns))] {
                let wide = (text >= 200) as u8 + (text >= 40_000) as u8;
                assert_eq!(bytes[0], if first == 1 { 1 } else { 2 + wide });
                let mut reader = RowReader::new(&bytes).unwrap();
                assert_eq!(reader.highest(), 200);
                for (id, value) in columns.iter().filter(|(_, value)| !value.is_null()) {
                    let (found, payload) = reader.next_column().unwrap().expect("a column");
                    let ty = match id {
                        2 => SqlType::Int4,
                        7 => SqlType::Numeric(None),
                        150 => SqlType::Int8,
                        _ => SqlType::Text,
                    };
                    let read = decode_payload(payload, &ty).unwrap();
                    assert_eq!((found, format!("{read:?}")), (*id, format!("{value:?}")));
                }
                assert!(reader.next_column().unwrap().is_none());
            }
        }
        let empty = placed(0, &[]);
        assert_eq!(empty, [2, 0]);
        assert!(RowReader::new(&empty).unwrap().next_column().unwrap().is_none());
    }

    #[test]
    fn parts_of_rows_have_the_same_digest_when_they_are_the_same() {
        let row = |highest: u32, columns: &[(u32, i64)]| {
            let mut w = RowWriter::new(highest);
            columns.iter().for_each(|(id, value)| w.column(*id, &Datum::Int8(*value)));
            w.finish()
        };
        let old = row(3, &[(1, 10), (2, 20)]);
        let digest = |row: &[u8], ids: &[u32]| part_digest(row, &part(ids.to_vec())).expect("good");
        let others = [
            (row(3, &[(1, 11), (2, 20)]), vec![1]),
            (row(3, &[(2, 20)]), vec![1]),
            (row(3, &[(1, 10), (2, 20), (3, 5)]), vec![3]),
            // Column 4 is what the table says, and NULL.
            (row(4, &[(1, 10), (2, 20)]), vec![4]),
        ];
        for (new, changed) in others {
            for ids in [vec![], vec![1], vec![2], vec![3], vec![4], vec![2, 1], vec![4, 3, 2, 1]] {
                let same = !ids.iter().any(|id| changed.contains(id));
                assert_eq!(digest(&old, &ids) == digest(&new, &ids), same, "{new:?} {ids:?}");
            }
        }
        assert_ne!(digest(&row(2, &[(1, 7)]), &[1, 2]), digest(&row(2, &[(2, 7)]), &[1, 2]));
        assert_eq!(part_digest(b"\x09", &part(vec![1])), None);
    }

    #[test]
    fn found_columns_are_those_that_are_read_and_damage_has_one_name() {
        let missing = Datum::text("missing");
        let wanted = [1, 2, 3, 4, 7, 8, 150, 199, 200, 201].map(|id| Stored::new(id, &missing));
        let columns = some_columns(2);
        for whole in [listed(200, &columns), placed(200, &columns)] {
            let mut cases: Vec<Vec<u8>> = (0..=whole.len()).map(|n| whole[..n].to_vec()).collect();
            for at in 0..whole.len() {
                let mut changed = whole.clone();
                changed[at] ^= 0xFF;
                cases.push(changed);
            }
            let other = placed(250, &columns[..2]);
            let mut finder = Finder::new(&wanted);
            for bytes in &cases {
                let read = || -> SqlResult<_> {
                    let mut reader = RowReader::new(bytes)?;
                    let mut found = vec![None; wanted.len()];
                    for (column, found) in wanted.iter().zip(&mut found) {
                        *found = column.missing.as_deref().filter(|_| column.id > reader.highest());
                    }
                    while let Some((id, payload)) = reader.next_column()? {
                        if let Some(at) = wanted.iter().position(|column| column.id == id) {
                            found[at] = Some(payload);
                        }
                    }
                    Ok(found)
                };
                let mut located = Vec::new();
                let told = finder.find(bytes, |payload| located.push(payload));
                match (read(), told) {
                    (Ok(found), Ok(())) => assert_eq!(located, found, "{bytes:?}"),
                    (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
                    // Other columns are not looked at.
                    (Err(_), Ok(())) => assert!(*bytes != whole),
                    (Ok(_), Err(error)) => panic!("{bytes:?}: {error}"),
                }
                // What was learned from one row is not applied to another.
                let mut located = Vec::new();
                finder.find(&other, |payload| located.push(payload)).unwrap();
                let there = [false, true, true, false, false, false, false, false, false, false];
                let found: Vec<bool> = located.iter().map(Option::is_some).collect();
                assert_eq!(found, there);
            }
        }
    }
}
