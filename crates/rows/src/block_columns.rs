//! Columns beside blocks: what was decoded of a block's rows is kept there for the next scan.
//!
//! ```text
//!   block    c1 o1 o2 c2 o3 ..     beside it    customers  rows 0 3     name ▒▒  since ▒▒
//!            (rows of a tree)                   orders     rows 1 2 4   total ▒▒▒
//! ```
//! A scan that reads a block that others have read before decodes its columns for all of the
//! table's rows, whoever sees them, packs them ([`super::packed`]) and keeps them as long as the
//! cache keeps the block. From then on a column costs a copy, and rows of other tables in between
//! cost nothing. Of blocks that come from the device nothing is made: who reads a table once, or
//! one that does not fit into memory, pays nothing for readers who will not come.
//!
//! Rows that the scan does not see may be of another time, when a column had another type (ALTER
//! COLUMN .. TYPE writes all rows anew, under the same keys). Where such a row cannot be decoded,
//! that is kept of the column instead, and the rows that are seen are decoded one by one until the
//! others are compacted away.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use braid_kv::{BlockPart, Piece, Rows, SingleRows};
use braid_types::SqlResult;

use super::beside::{TableColumns, find_beside, keep, most_beside};
use super::columns::{Column, FEW, Located, RowDecoder, StoredRows, Target};
use super::packed::{PackedColumn, Picks};

/// What columns are called beside blocks: all that their values depend on apart from the block.
pub(super) struct Names {
    /// The table, by its place in the tree of keys.
    pub(super) table: u128,
    /// In the order of the decoder's columns.
    pub(super) out: Vec<u128>,
    /// Those of its filter.
    pub(super) probe: Vec<u128>,
}

/// Rows of a block, to be decoded one by one.
struct RowsOfBlock<'a> {
    part: &'a BlockPart,
    rows: Vec<u16>,
    keys: Vec<u8>,
    /// Where each key ends; nothing where keys are not wanted.
    ends: Vec<usize>,
}

impl<'a> RowsOfBlock<'a> {
    fn new(part: &'a BlockPart, rows: Vec<u16>) -> RowsOfBlock<'a> {
        let (mut keys, mut ends, mut key) =
            (Vec::new(), Vec::with_capacity(rows.len()), Vec::new());
        for row in &rows {
            part.read_key(usize::from(*row), &mut key);
            keys.extend_from_slice(&key);
            ends.push(keys.len());
        }
        RowsOfBlock { part, rows, keys, ends }
    }

    /// Those of which nobody asks for the keys: they are empty.
    fn without_keys(part: &'a BlockPart, rows: Vec<u16>) -> RowsOfBlock<'a> {
        RowsOfBlock { part, rows, keys: Vec::new(), ends: Vec::new() }
    }
}

impl StoredRows for RowsOfBlock<'_> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    fn key(&self, i: usize) -> &[u8] {
        let Some(end) = self.ends.get(i) else { return &[] };
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.keys[start..*end]
    }

    #[inline]
    fn value(&self, i: usize) -> &[u8] {
        self.part.value(usize::from(self.rows[i]))
    }
}

impl StoredRows for SingleRows<'_> {
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn key(&self, i: usize) -> &[u8] {
        SingleRows::key(self, i)
    }

    #[inline]
    fn value(&self, i: usize) -> &[u8] {
        SingleRows::value(self, i)
    }
}

/// Rows that came together.
enum Source<'a> {
    Single(SingleRows<'a>),
    Block(RowsOfBlock<'a>),
    Kept(Kept<'a>),
}

impl Source<'_> {
    fn rows_at_most(&self) -> usize {
        match self {
            Source::Single(rows) => rows.len(),
            Source::Block(rows) => rows.rows.len(),
            Source::Kept(kept) => kept.places.as_picks().len(),
        }
    }
}

/// Rows of a block with columns beside it.
struct Kept<'a> {
    part: &'a BlockPart,
    table: Arc<TableColumns>,
    places: Places,
    /// Whether columns that are not there may be added: there is room for them.
    may_add: bool,
}

/// A source whose columns for the filter are known.
enum Looked<'a> {
    Rows(Located<'a>),
    Kept(Arc<TableColumns>),
}

/// How many rows there were, how many of them the filter let pass, and how many had columns beside
/// their blocks.
struct Pushed {
    rows: usize,
    passed: usize,
    kept: usize,
}

/// Which of a table's rows in a block are wanted.
#[derive(Clone)]
enum Places {
    Run(usize, usize),
    These(Vec<u16>),
}

impl Places {
    fn as_picks(&self) -> Picks<'_> {
        match self {
            Places::Run(from, to) => Picks::Run(*from, *to),
            Places::These(places) => Picks::These(places),
        }
    }

    /// Where `wanted` are among `rows`; both ascend. Those that are not there are left out.
    fn of(rows: &[u16], wanted: &[u16]) -> Places {
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
            return Places::Run(0, 0);
        };
        let from = rows.partition_point(|row| row < first);
        let to = rows.partition_point(|row| row <= last);
        if rows[from..to] == *wanted {
            return Places::Run(from, to);
        }
        let mut wanted = wanted.iter().peekable();
        let is_wanted = |place: &usize| {
            while wanted.next_if(|next| **next < rows[*place]).is_some() {}
            wanted.next_if(|next| **next == rows[*place]).is_some()
        };
        Places::These((from..to).filter(is_wanted).map(|place| place as u16).collect())
    }

    /// Of these, the chosen ones.
    fn chosen(&self, chosen: Option<&Chosen<'_>>) -> Cow<'_, Places> {
        let Some(chosen) = chosen else { return Cow::Borrowed(self) };
        if chosen.rows.len() == self.as_picks().len() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Places::These(match self {
            Places::Run(from, _) => chosen.iter().map(|at| at as u16 + *from as u16).collect(),
            Places::These(places) => chosen.iter().map(|at| places[at as usize]).collect(),
        }))
    }
}

/// Chosen rows of a source.
struct Chosen<'a> {
    /// Counted from the first row of all sources.
    rows: &'a [u32],
    /// The source's first row, counted so.
    from: usize,
}

impl<'a> Chosen<'a> {
    /// Takes those of a source's rows, which are the next ones, off what is left.
    fn take(left: &mut &'a [u32], from: usize, to: usize) -> Chosen<'a> {
        let (rows, rest) = left.split_at(left.partition_point(|row| (*row as usize) < to));
        *left = rest;
        Chosen { rows, from }
    }

    /// Counted from the source's first row.
    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows.iter().map(|row| row - self.from as u32)
    }
}

impl RowDecoder {
    /// As [`RowDecoder::push`], of rows of which many came as parts of blocks.
    ///
    /// # Errors
    /// As there.
    pub(super) fn push_pieces(
        &mut self,
        rows: &Rows<'_>,
        filter: impl FnOnce(Vec<Column>, usize) -> SqlResult<Option<Vec<u32>>>,
    ) -> SqlResult<()> {
        let names = self.take_names();
        let mut columns = self.take_columns();
        let pushed = self.push_sources(rows, &names, filter, &mut columns);
        self.put_back(columns, names);
        let Pushed { rows, passed, kept } = pushed?;
        self.note_passed(rows, passed);
        self.note_kept(kept);
        Ok(())
    }

    fn push_sources(
        &self,
        rows: &Rows<'_>,
        names: &Names,
        filter: impl FnOnce(Vec<Column>, usize) -> SqlResult<Option<Vec<u32>>>,
        columns: &mut [Column],
    ) -> SqlResult<Pushed> {
        let pieces: Vec<Piece<'_>> = rows.pieces().collect();
        let mut known = find_beside(&pieces, names).into_iter();
        let sources = pieces.into_iter().map(|piece| match piece {
            Piece::Single(rows) => Source::Single(rows),
            Piece::Part(part, wanted) => {
                self.source_of(part, wanted, names, known.next().flatten())
            }
        });
        let sources: Vec<Source<'_>> = sources.collect();
        let (mut probed, mut total, mut kept) = (self.empty_probe(), 0, 0);
        let most = sources.iter().map(Source::rows_at_most).sum();
        probed.iter_mut().for_each(|column| column.reserve(most));
        let mut looked = Vec::with_capacity(sources.len());
        for source in &sources {
            let (look, rows) = self.look_at(source, names, (&mut probed, total))?;
            kept += if matches!(look, Looked::Kept(_)) { rows } else { 0 };
            looked.push((look, rows));
            total += rows;
        }
        let chosen = if total > 0 { filter(probed, total)? } else { None };
        let passed = chosen.as_ref().map_or(total, Vec::len);
        columns.iter_mut().for_each(|column| column.reserve(passed));
        let (mut from, mut before, mut left) = (0, self.len(), chosen.as_deref());
        for (source, (look, rows)) in sources.iter().zip(looked) {
            let chosen = left.as_mut().map(|left| Chosen::take(left, from, from + rows));
            let passed = chosen.as_ref().map_or(rows, |chosen| chosen.rows.len());
            if passed > 0 {
                self.give(source, look, names, chosen, (columns, before))?;
            }
            from += rows;
            before += passed;
        }
        Ok(Pushed { rows: total, passed: before - self.len(), kept })
    }

    /// A part of a block: with what is known to lie beside the block, if it is read again.
    fn source_of<'a>(
        &self,
        part: &'a BlockPart,
        wanted: Range<usize>,
        names: &Names,
        known: Option<Arc<TableColumns>>,
    ) -> Source<'a> {
        let wanted = &part.rows()[wanted];
        let has = |wanted: &[u128]| known.as_ref().is_some_and(|table| table.has(wanted));
        let (has_probe, has_all) = (has(&names.probe), has(&names.probe) && has(&names.out));
        let lacks = known.as_ref().is_some_and(|t| t.lacks(&names.probe) || t.lacks(&names.out));
        let may_add = !has_all && !lacks && part.is_worth_keeping();
        // Where nothing may be added, columns for the filter are used if they are there.
        let table = match known {
            Some(table) if has_probe || may_add => Some(table),
            None if may_add => self.locate_beside(part, names),
            _ => None,
        };
        let probed = |table| self.with_columns(part, &table, (self.probe_targets(), &names.probe));
        match table.and_then(probed) {
            Some(table) => {
                let places = Places::of(&table.rows, wanted);
                Source::Kept(Kept { part, table, places, may_add })
            }
            None => Source::Block(RowsOfBlock::new(part, wanted.to_vec())),
        }
    }

    /// Finds the table's rows in a block and keeps where they are; `None` if keys are damaged: who
    /// reads them says so.
    fn locate_beside(&self, part: &BlockPart, names: &Names) -> Option<Arc<TableColumns>> {
        let mut key = Vec::new();
        let mut rows = Vec::with_capacity(part.block_len());
        for row in 0..part.block_len() {
            if part.has_value(row) && self.is_of_class(part.class(row)) {
                part.read_key(row, &mut key);
                if self.is_own(&key).ok()? {
                    rows.push(row as u16);
                }
            }
        }
        let columns = Vec::new();
        let table = Arc::new(TableColumns { table: names.table, rows: rows.into(), columns });
        // Who wants no column, as a count does, finds the rows there the next time.
        keep(part, &table);
        Some(table)
    }

    /// Adds the filter's columns of a source to `probed`, which has `before` rows. Returns how many
    /// rows the source has.
    fn look_at<'a>(
        &'a self,
        source: &'a Source<'a>,
        names: &Names,
        (probed, before): (&mut [Column], usize),
    ) -> SqlResult<(Looked<'a>, usize)> {
        let located = match source {
            Source::Single(rows) => self.look(rows, (probed, before))?,
            Source::Block(rows) => self.look(rows, (probed, before))?,
            Source::Kept(Kept { table, places, .. }) => {
                for (name, column) in names.probe.iter().zip(probed) {
                    table.give(*name, places.as_picks(), (column, before));
                }
                return Ok((Looked::Kept(table.clone()), places.as_picks().len()));
            }
        };
        let rows = located.rows;
        Ok((Looked::Rows(located), rows))
    }

    /// Adds the columns of a source's chosen rows, of which there are some.
    fn give<'a>(
        &'a self,
        source: &'a Source<'a>,
        looked: Looked<'a>,
        names: &Names,
        chosen: Option<Chosen<'_>>,
        (columns, before): (&mut [Column], usize),
    ) -> SqlResult<()> {
        let listed = || chosen.as_ref().map(|chosen| chosen.iter().collect());
        match (source, looked) {
            (Source::Single(rows), Looked::Rows(located)) => {
                self.finish(rows, located, listed(), (columns, before))
            }
            (Source::Block(rows), Looked::Rows(located)) => {
                self.finish(rows, located, listed(), (columns, before))
            }
            (Source::Kept(Kept { part, places, may_add, .. }), Looked::Kept(table)) => {
                let places = places.chosen(chosen.as_ref());
                let picks = places.as_picks();
                let is_worth_it = *may_add && picks.len() * FEW >= table.rows.len();
                let complete = match is_worth_it || table.has(&names.out) {
                    true => self.with_columns(part, &table, (self.out_targets(), &names.out)),
                    false => None,
                };
                let Some(table) = complete else {
                    let rows = table.picked(picks);
                    let rows = RowsOfBlock::new(part, rows);
                    let located = self.locate_own(&rows)?;
                    return self.decode_out(&located, None, (columns, before));
                };
                for (name, column) in names.out.iter().zip(columns) {
                    table.give(*name, picks, (column, before));
                }
                Ok(())
            }
            _ => unreachable!("what was looked at is of the source"),
        }
    }

    /// The table's columns beside a block with these among them; `None` if not all of its rows have
    /// them. What is wrong with those that are seen, they say who are decoded one by one.
    fn with_columns(
        &self,
        part: &BlockPart,
        table: &Arc<TableColumns>,
        (targets, names): (&[Target], &[u128]),
    ) -> Option<Arc<TableColumns>> {
        if table.has(names) {
            return Some(table.clone());
        }
        let rows = match self.wants_keys() {
            true => RowsOfBlock::new(part, table.rows.to_vec()),
            false => RowsOfBlock::without_keys(part, table.rows.to_vec()),
        };
        let located = self.locate_own(&rows).ok();
        // What is not used any more does not stay for ever.
        let is_full = table.memory() > most_beside(part);
        let known = table.columns.iter();
        let known = known.filter(|(name, _)| !is_full || names.contains(name));
        let mut columns: Vec<(u128, Option<Arc<PackedColumn>>)> = known.cloned().collect();
        for (target, name) in targets.iter().zip(names) {
            if columns.iter().any(|(known, _)| known == name) {
                continue;
            }
            let decoded = located.as_ref().and_then(|located| {
                let mut column = Column::new(target.form);
                self.decode(target, located, None, (&mut column, 0)).ok()?;
                Some(PackedColumn::new(&column).expect("such forms are not read in parts"))
            });
            columns.push((*name, decoded.map(Arc::new)));
        }
        let (name, rows) = (table.table, table.rows.clone());
        let table = Arc::new(TableColumns { table: name, rows, columns });
        keep(part, &table);
        table.has(names).then_some(table)
    }
}
