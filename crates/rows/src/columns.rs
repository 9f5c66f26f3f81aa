//! Rows to columns, without a value in between.
//!
//! ```text
//!   batch of rows      key  value        located        columns
//!                      ...7 .a..b..      b  a   7       b: 1 2 ..   a: x NULL ..
//!                      ...8 .b....   ->  b  -   8   ->
//! ```
//!
//! A batch is read in two steps. First each row says where the wanted columns lie in its key and
//! value; the others are skipped by their lengths, and what lies behind the last wanted one is not
//! looked at. Then column after column is decoded, for all rows or only for some: columns that a
//! filter needs come first, and the rest is decoded for the rows that it leaves. Where it leaves
//! few, the rest is not even looked for in the others.
//!
//! What no typed form carries is decoded to a [`Datum`] and packed by whoever wants the columns.

use std::sync::Arc;

use braid_keys::column::{decode_bytes, decode_column, decode_int, is_composite};
use braid_kv::Rows;
use braid_types::{Datum, OrderedKind, SqlResult, SqlType};
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

use super::block_columns::Names;
use super::row_codec::{DecimalOf, decode_decimal, decode_integer, decode_payload};
use super::row_value::{Finder, Stored, damaged};
use super::{Layout, TableLayout};

/// How the values of a column are carried.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// One byte each.
    Bool,
    /// `smallint`.
    I16,
    /// `integer`, dates.
    I32,
    /// `bigint`, times.
    I64,
    /// Oids.
    U32,
    /// `real`.
    F32,
    /// `double precision`.
    F64,
    /// `numeric` at this scale.
    I128(i64),
    /// Bytes as they are: text, `bytea`, `uuid`.
    Bytes,
    /// Bytes that this makes of a value, which is not NULL.
    Packed(fn(&Datum, &mut Vec<u8>)),
    /// Values, made one by one.
    Made,
}

/// Values in one piece of memory. NULLs have one that means nothing.
#[derive(Debug)]
pub enum Values {
    /// Of [`Form::Bool`].
    Bool(Vec<bool>),
    /// Of [`Form::I16`].
    I16(Vec<i16>),
    /// Of [`Form::I32`].
    I32(Vec<i32>),
    /// Of [`Form::I64`].
    I64(Vec<i64>),
    /// Of [`Form::U32`].
    U32(Vec<u32>),
    /// Of [`Form::F32`].
    F32(Vec<f32>),
    /// Of [`Form::F64`].
    F64(Vec<f64>),
    /// Of [`Form::I128`].
    I128(Vec<i128>),
    /// Of [`Form::Made`].
    Made(Vec<Datum>),
    /// Of the others: where each begins, and behind the last where it ends.
    Bytes(Vec<i32>, Vec<u8>),
}

/// A column of some rows.
#[derive(Debug)]
pub struct Column {
    /// Its values.
    pub values: Values,
    /// Which rows are NULL, ascending.
    pub nulls: Vec<u32>,
}

impl Column {
    pub(super) fn new(form: Form) -> Column {
        let values = match form {
            Form::Bool => Values::Bool(Vec::new()),
            Form::I16 => Values::I16(Vec::new()),
            Form::I32 => Values::I32(Vec::new()),
            Form::I64 => Values::I64(Vec::new()),
            Form::U32 => Values::U32(Vec::new()),
            Form::F32 => Values::F32(Vec::new()),
            Form::F64 => Values::F64(Vec::new()),
            Form::I128(_) => Values::I128(Vec::new()),
            Form::Made => Values::Made(Vec::new()),
            Form::Bytes | Form::Packed(_) => Values::Bytes(vec![0], Vec::new()),
        };
        Column { values, nulls: Vec::new() }
    }

    /// Makes room for so many more values, if they have one size.
    pub(super) fn reserve(&mut self, rows: usize) {
        match &mut self.values {
            Values::Bool(all) => all.reserve(rows),
            Values::I16(all) => all.reserve(rows),
            Values::I32(all) => all.reserve(rows),
            Values::I64(all) => all.reserve(rows),
            Values::U32(all) => all.reserve(rows),
            Values::F32(all) => all.reserve(rows),
            Values::F64(all) => all.reserve(rows),
            Values::I128(all) => all.reserve(rows),
            Values::Made(all) => all.reserve(rows),
            Values::Bytes(ends, _) => ends.reserve(rows),
        }
    }

    /// Bytes of variable length.
    fn byte_len(&self) -> usize {
        match &self.values {
            Values::Bytes(_, bytes) => bytes.len(),
            Values::Made(values) => values.iter().map(Datum::memory).sum(),
            _ => 0,
        }
    }
}

/// Where a column is found.
#[derive(Clone, Debug)]
enum Place {
    /// In the key, at this position among the wanted columns of keys.
    Key(usize),
    /// In the value, at this position among the wanted columns of values.
    Value(usize),
}

/// A wanted column.
#[derive(Clone, Debug)]
pub(super) struct Target {
    place: Place,
    ty: SqlType,
    pub(super) form: Form,
    dir: braid_keys::Direction,
}

/// Rows as they are stored, to be decoded.
pub trait StoredRows {
    /// How many.
    fn count(&self) -> usize;
    /// Key of row `i`; panics if `i >= count()`.
    fn key(&self, i: usize) -> &[u8];
    /// Value of row `i`; panics if `i >= count()`.
    fn value(&self, i: usize) -> &[u8];
}

impl StoredRows for Rows<'_> {
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn key(&self, i: usize) -> &[u8] {
        Rows::key(self, i)
    }

    #[inline]
    fn value(&self, i: usize) -> &[u8] {
        Rows::value(self, i)
    }
}

/// Keys with their values, which lie wherever they were found.
impl StoredRows for Vec<(Bytes, Bytes)> {
    fn count(&self) -> usize {
        self.len()
    }

    fn key(&self, i: usize) -> &[u8] {
        &self[i].0
    }

    fn value(&self, i: usize) -> &[u8] {
        &self[i].1
    }
}

/// Turns batches of a table's rows, or of an index's entries that tell what is wanted of them, into
/// columns. See the [module's page](self).
pub struct RowDecoder {
    layout: Arc<TableLayout>,
    /// Whose entries they are; `None`: rows.
    index: Option<usize>,
    all: Wanted,
    out: Vec<Target>,
    probe: Vec<Target>,
    /// What is looked for first where a filter leaves few rows: columns of `probe` alone.
    first: Wanted,
    first_probe: Vec<Target>,
    /// Whether it left few of the last batch.
    few_pass: bool,
    columns: Vec<Column>,
    rows: usize,
    /// What the columns are called beside blocks, once that is asked.
    names: Option<Names>,
    /// Rows that were read, and how many of them have columns beside their blocks.
    read: (u64, u64),
}

/// Which columns are looked for in rows.
#[derive(Default)]
struct Wanted {
    /// By position in the key: which of the wanted columns of keys it is.
    keys: Vec<Option<usize>>,
    key_count: usize,
    stored: Vec<Stored>,
}

/// A filter leaves few rows if it is less than one of so many: then it is cheaper to look twice at
/// these than at all columns of all rows.
pub(super) const FEW: usize = 4;
/// Of fewer rows nothing is concluded.
const CONCLUSIVE: usize = 64;

/// Some rows of a batch, with where their wanted columns lie.
pub(super) struct Located<'a> {
    pub(super) rows: usize,
    /// Where they are in the batch; `None`: it has no others.
    places: Option<Vec<u32>>,
    keys: Parts<'a>,
    values: Parts<'a>,
}

/// Wanted parts of some rows, row after row; `None` for NULL.
struct Parts<'a> {
    /// How many each row has.
    width: usize,
    all: Vec<Option<&'a [u8]>>,
}

impl<'a> Parts<'a> {
    fn new(width: usize, rows: usize) -> Parts<'a> {
        Parts { width, all: Vec::with_capacity(width * rows) }
    }

    /// Part number `at` of each row.
    fn each(&self, at: usize) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> {
        self.all.chunks_exact(self.width).map(move |row| row[at])
    }

    /// Part number `at` of these rows.
    fn of(&self, rows: &[u32], at: usize) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> {
        rows.iter().map(move |row| self.all[*row as usize * self.width + at])
    }
}

impl RowDecoder {
    /// Decodes these columns, by ordinal, and for filters those of `probe`: of rows, or of entries
    /// of the index at this position, which [cover](TableLayout::is_covered_by) them.
    pub(super) fn new(
        layout: Arc<TableLayout>,
        index: Option<usize>,
        out: &[(usize, Form)],
        probe: &[(usize, Form)],
    ) -> RowDecoder {
        let mut decoder = RowDecoder {
            layout,
            index,
            all: Wanted::default(),
            out: Vec::new(),
            probe: Vec::new(),
            first: Wanted::default(),
            first_probe: Vec::new(),
            few_pass: false,
            columns: Vec::new(),
            rows: 0,
            names: None,
            read: (0, 0),
        };
        let mut all = decoder.wanted(out.iter().chain(probe));
        decoder.out = decoder.targets(out, &mut all);
        decoder.probe = decoder.targets(probe, &mut all);
        decoder.all = all;
        let mut first = decoder.wanted(probe.iter());
        decoder.first_probe = decoder.targets(probe, &mut first);
        decoder.first = first;
        decoder.columns = decoder.out.iter().map(|target| Column::new(target.form)).collect();
        decoder
    }

    /// These columns, of which those of keys are noted when they become targets.
    fn wanted<'a>(&self, columns: impl Iterator<Item = &'a (usize, Form)>) -> Wanted {
        let mut ids: Vec<u32> =
            columns.filter_map(|(ordinal, _)| self.stored_id(*ordinal)).collect();
        ids.sort_unstable();
        ids.dedup();
        let stored = |id: u32| match self.index {
            None => self.layout.stored_column(id),
            Some(_) => Stored::new(id, &Datum::Null),
        };
        let keys = vec![None; self.keys().columns().len()];
        Wanted { keys, key_count: 0, stored: ids.into_iter().map(stored).collect() }
    }

    fn targets(&self, columns: &[(usize, Form)], wanted: &mut Wanted) -> Vec<Target> {
        columns.iter().map(|(ordinal, form)| self.target(*ordinal, *form, wanted)).collect()
    }

    /// The id of a column that values hold.
    fn stored_id(&self, ordinal: usize) -> Option<u32> {
        let Some(at) = self.index else { return self.layout.stored_id(ordinal) };
        let column = &self.layout.table.columns[ordinal];
        let in_key = self.layout.indexes[at].layout.columns().iter().any(|k| k.ordinal == ordinal);
        (!in_key || is_composite(&column.ty)).then_some(column.id)
    }

    /// Where the columns of their keys lie.
    fn keys(&self) -> &Layout {
        self.layout.keys_of(self.index)
    }

    fn target(&self, ordinal: usize, form: Form, wanted: &mut Wanted) -> Target {
        let ty = self.layout.table.columns[ordinal].ty.clone();
        let dir = braid_keys::Direction::ASC;
        if let Some(id) = self.stored_id(ordinal) {
            let at = wanted.stored.partition_point(|stored| stored.id < id);
            return Target { place: Place::Value(at), ty, form, dir };
        }
        let keys = self.keys().columns();
        let at = keys.iter().position(|key| key.ordinal == ordinal);
        let at = at.expect("a column is in the key or in the value");
        let dir = keys[at].dir;
        let next = wanted.key_count;
        let place = *wanted.keys[at].get_or_insert(next);
        wanted.key_count += usize::from(place == next);
        Target { place: Place::Key(place), ty, form, dir }
    }

    /// Rows decoded since [`RowDecoder::take`].
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes of variable length decoded since then.
    pub fn byte_len(&self) -> usize {
        self.columns.iter().map(Column::byte_len).sum()
    }

    /// The columns, and how many rows they have.
    pub fn take(&mut self) -> (Vec<Column>, usize) {
        let fresh = self.out.iter().map(|target| Column::new(target.form)).collect();
        (std::mem::replace(&mut self.columns, fresh), std::mem::take(&mut self.rows))
    }

    /// Decodes the rows of a batch that are the table's, or entries that are the index's. `filter`
    /// is given the columns of `probe` and the number of rows, and says which of them go on; `None`
    /// stands for all of them.
    ///
    /// # Errors
    /// XX001 for damaged keys and values; of the filter.
    pub fn push(
        &mut self,
        batch: &impl StoredRows,
        filter: impl FnOnce(Vec<Column>, usize) -> SqlResult<Option<Vec<u32>>>,
    ) -> SqlResult<()> {
        let mut columns = self.take_columns();
        let mut probed = self.empty_probe();
        let located = self.look(batch, (&mut probed, 0))?;
        let rows = located.rows;
        let chosen = if rows > 0 { filter(probed, rows)? } else { None };
        let passed = chosen.as_ref().map_or(rows, Vec::len);
        self.finish(batch, located, chosen, (&mut columns, self.rows))?;
        self.columns = columns;
        self.note_passed(rows, passed);
        Ok(())
    }

    /// How many rows were read, and how many of them have columns beside their blocks.
    pub fn rows_read(&self) -> (u64, u64) {
        self.read
    }

    pub(super) fn note_kept(&mut self, rows: usize) {
        self.read.1 += rows as u64;
    }

    /// The columns so far, until they are put back.
    pub(super) fn take_columns(&mut self) -> Vec<Column> {
        std::mem::take(&mut self.columns)
    }

    /// What the columns are called beside blocks, until that is put back.
    pub(super) fn take_names(&mut self) -> Names {
        if let Some(names) = self.names.take() {
            return names;
        }
        let name = |target: &Target| xxh3_128(self.describe(target).as_bytes());
        let names = |targets: &[Target]| targets.iter().map(name).collect();
        Names { table: self.keys().digest(), out: names(&self.out), probe: names(&self.probe) }
    }

    pub(super) fn put_back(&mut self, columns: Vec<Column>, names: Names) {
        (self.columns, self.names) = (columns, Some(names));
    }

    /// All that the values of a column depend on apart from rows.
    fn describe(&self, target: &Target) -> String {
        let Target { place, ty, form, dir } = target;
        let place = match place {
            Place::Key(at) => {
                let key = self.all.keys.iter().position(|key| key == &Some(*at));
                format!("key {key:?} {dir:?}")
            }
            Place::Value(at) => format!("{:?}", self.all.stored[*at]),
        };
        format!("{place} {ty:?} {form:?}")
    }

    /// Whether columns can be kept beside blocks: not where values are made one by one, nor of
    /// entries of indexes.
    pub(super) fn reads_parts(&self) -> bool {
        let made = |target: &Target| matches!(target.form, Form::Made);
        self.index.is_none() && !self.out.iter().chain(&self.probe).any(made)
    }

    pub(super) fn out_targets(&self) -> &[Target] {
        &self.out
    }

    pub(super) fn probe_targets(&self) -> &[Target] {
        &self.probe
    }

    /// Whether rows of this class may be the table's.
    pub(super) fn is_of_class(&self, class: u8) -> bool {
        self.keys().class_mask() & (1 << (class & 31)) != 0
    }

    /// Whether a key is one of the table's rows.
    pub(super) fn is_own(&self, key: &[u8]) -> SqlResult<bool> {
        self.keys().split(key, |_, _| {})
    }

    /// Columns for the filter, without rows.
    pub(super) fn empty_probe(&self) -> Vec<Column> {
        self.probe.iter().map(|target| Column::new(target.form)).collect()
    }

    /// Notes how many of the rows passed the filter and were added.
    pub(super) fn note_passed(&mut self, rows: usize, passed: usize) {
        if rows >= CONCLUSIVE {
            self.few_pass = !self.probe.is_empty() && passed < rows / FEW;
        }
        self.read.0 += rows as u64;
        self.rows += passed;
    }

    /// Finds what is looked for first, and adds the filter's columns to `probed`, which has
    /// `before` rows.
    pub(super) fn look<'a>(
        &'a self,
        batch: &'a impl StoredRows,
        (probed, before): (&mut [Column], usize),
    ) -> SqlResult<Located<'a>> {
        let (wanted, probe) = match self.few_pass {
            true => (&self.first, &self.first_probe),
            false => (&self.all, &self.probe),
        };
        let located = self.locate(batch, wanted, 0..batch.count())?;
        for (target, column) in probe.iter().zip(probed) {
            self.decode(target, &located, None, (column, before))?;
        }
        Ok(located)
    }

    /// Whether anything is wanted that stands in keys.
    pub(super) fn wants_keys(&self) -> bool {
        self.all.key_count > 0
    }

    /// Finds all that is wanted of rows that are known to be the table's.
    pub(super) fn locate_own<'a>(&'a self, batch: &'a impl StoredRows) -> SqlResult<Located<'a>> {
        if self.wants_keys() {
            return self.locate(batch, &self.all, 0..batch.count());
        }
        let rows = batch.count();
        let mut values = Parts::new(self.all.stored.len(), rows);
        if values.width > 0 {
            let mut finder = Finder::new(&self.all.stored);
            for i in 0..rows {
                finder.find(batch.value(i), |payload| values.all.push(payload))?;
            }
        }
        Ok(Located { rows, places: None, keys: Parts::new(0, rows), values })
    }

    /// Adds the chosen rows of a batch that [`RowDecoder::look`] has looked at.
    pub(super) fn finish<'a>(
        &'a self,
        batch: &'a impl StoredRows,
        mut located: Located<'a>,
        mut chosen: Option<Vec<u32>>,
        (columns, before): (&mut [Column], usize),
    ) -> SqlResult<()> {
        if self.few_pass {
            let of = |row: u32| located.places.as_ref().map_or(row, |places| places[row as usize]);
            let of: Vec<usize> = match chosen.take() {
                Some(chosen) => chosen.into_iter().map(|row| of(row) as usize).collect(),
                None => (0..located.rows as u32).map(|row| of(row) as usize).collect(),
            };
            located = self.locate(batch, &self.all, of.into_iter())?;
        }
        self.decode_out(&located, chosen.as_deref(), (columns, before))
    }

    /// Adds the chosen ones of rows in which all that is wanted was found.
    pub(super) fn decode_out(
        &self,
        located: &Located<'_>,
        chosen: Option<&[u32]>,
        (columns, before): (&mut [Column], usize),
    ) -> SqlResult<()> {
        for (target, column) in self.out.iter().zip(columns) {
            self.decode(target, located, chosen, (column, before))?;
        }
        Ok(())
    }

    /// Finds the wanted columns of those of the rows in a batch that are the table's.
    fn locate<'a>(
        &'a self,
        batch: &'a impl StoredRows,
        wanted: &'a Wanted,
        of: impl ExactSizeIterator<Item = usize>,
    ) -> SqlResult<Located<'a>> {
        let count = of.len();
        let mut keys = Parts::new(wanted.key_count, count);
        let mut values = Parts::new(wanted.stored.len(), count);
        let mut rows = 0;
        let mut places: Option<Vec<u32>> = None;
        let mut finder = Finder::new(&wanted.stored);
        let layout = self.keys();
        for (nth, i) in of.enumerate() {
            let before = keys.all.len();
            keys.all.extend(std::iter::repeat_n(None, keys.width));
            let is_own = layout.split(batch.key(i), |at, column| {
                if let Some(at) = wanted.keys[at] {
                    keys.all[before + at] = Some(column);
                }
            })?;
            if !is_own {
                keys.all.truncate(before);
                // All before it were its own, if it is the first that is not.
                places.get_or_insert_with(|| (0..nth as u32).collect());
                continue;
            }
            if let Some(places) = &mut places {
                places.push(nth as u32);
            }
            if values.width > 0 {
                finder.find(batch.value(i), |payload| values.all.push(payload))?;
            }
            rows += 1;
        }
        Ok(Located { rows, places, keys, values })
    }

    /// Adds the values of the chosen rows to a column that has `before` rows.
    pub(super) fn decode(
        &self,
        target: &Target,
        located: &Located<'_>,
        chosen: Option<&[u32]>,
        (column, before): (&mut Column, usize),
    ) -> SqlResult<()> {
        let (parts, at, from_key) = match target.place {
            Place::Key(at) => (&located.keys, at, true),
            Place::Value(at) => (&located.values, at, false),
        };
        let mut adding = Adding { target, from_key, row: before as u32, nulls: &mut column.nulls };
        match chosen {
            None => adding.all(&mut column.values, parts.each(at)),
            Some(rows) => adding.all(&mut column.values, parts.of(rows, at)),
        }
    }
}

/// Adds values to one column.
struct Adding<'a> {
    target: &'a Target,
    from_key: bool,
    row: u32,
    nulls: &'a mut Vec<u32>,
}

impl Adding<'_> {
    fn all<'b>(
        &mut self,
        values: &mut Values,
        bytes: impl ExactSizeIterator<Item = Option<&'b [u8]>>,
    ) -> SqlResult<()> {
        match values {
            Values::Bool(out) => self.each(out, bytes, Self::boolean),
            Values::I16(out) => self.each(out, bytes, Self::integer),
            Values::I32(out) => self.each(out, bytes, Self::integer),
            Values::I64(out) => self.each(out, bytes, Self::integer),
            Values::U32(out) => self.each(out, bytes, Self::integer),
            Values::F32(out) => self.each(out, bytes, |adding, bytes| {
                let bytes = bytes.try_into().map_err(|_| damaged("real"))?;
                adding.stored_only().map(|()| Some(f32::from_le_bytes(bytes)))
            }),
            Values::F64(out) => self.each(out, bytes, |adding, bytes| {
                let bytes = bytes.try_into().map_err(|_| damaged("double"))?;
                adding.stored_only().map(|()| Some(f64::from_le_bytes(bytes)))
            }),
            Values::I128(out) => self.each(out, bytes, Self::decimal),
            Values::Made(out) => {
                out.reserve(bytes.len());
                for bytes in bytes {
                    out.push(bytes.map_or(Ok(Datum::Null), |bytes| self.value(bytes))?);
                }
                Ok(())
            }
            Values::Bytes(ends, out) => self.each_bytes(ends, out, bytes),
        }
    }

    /// Values of fixed width; `decode` gives `None` for a NULL in a key.
    fn each<'b, T: Default>(
        &mut self,
        out: &mut Vec<T>,
        bytes: impl ExactSizeIterator<Item = Option<&'b [u8]>>,
        decode: impl Fn(&Self, &[u8]) -> SqlResult<Option<T>>,
    ) -> SqlResult<()> {
        out.reserve(bytes.len());
        for bytes in bytes {
            let value = match bytes {
                Some(bytes) => decode(self, bytes)?,
                None => None,
            };
            out.push(value.unwrap_or_else(|| {
                self.nulls.push(self.row);
                T::default()
            }));
            self.row += 1;
        }
        Ok(())
    }

    fn each_bytes<'b>(
        &mut self,
        ends: &mut Vec<i32>,
        out: &mut Vec<u8>,
        bytes: impl ExactSizeIterator<Item = Option<&'b [u8]>>,
    ) -> SqlResult<()> {
        ends.reserve(bytes.len());
        for bytes in bytes {
            let is_value = match bytes {
                Some(bytes) => self.push_bytes(bytes, out)?,
                None => false,
            };
            if !is_value {
                self.nulls.push(self.row);
            }
            let end = i32::try_from(out.len()).map_err(|_| damaged("length"))?;
            ends.push(end);
            self.row += 1;
        }
        Ok(())
    }

    /// What composite types are in keys cannot be given back: their columns are stored.
    fn stored_only(&self) -> SqlResult<()> {
        if self.from_key { Err(damaged("column in the key")) } else { Ok(()) }
    }

    fn boolean(&self, bytes: &[u8]) -> SqlResult<Option<bool>> {
        if !self.from_key {
            return Ok(Some(bytes.first() == Some(&1)));
        }
        match self.value(bytes)? {
            Datum::Bool(value) => Ok(Some(value)),
            _ => Ok(None),
        }
    }

    #[inline]
    fn integer<T: TryFrom<i64>>(&self, bytes: &[u8]) -> SqlResult<Option<T>> {
        let wide = if self.from_key { decode_int(bytes)? } else { Some(decode_integer(bytes)?) };
        let Some(wide) = wide else { return Ok(None) };
        match wide.try_into() {
            Ok(value) => Ok(Some(value)),
            // It says what is wrong.
            Err(_) => self.value(bytes).and_then(|_| Err(damaged("integer out of range"))),
        }
    }

    fn decimal(&self, bytes: &[u8]) -> SqlResult<Option<i128>> {
        self.stored_only()?;
        let Form::I128(scale) = self.target.form else { return Err(damaged("numeric")) };
        match decode_decimal(bytes, scale)? {
            DecimalOf::Number(value) => Ok(Some(value)),
            // It sorts above all numbers and equals itself, as in SQL.
            DecimalOf::NotANumber => Ok(Some(i128::MAX)),
            DecimalOf::Unfit => Err(damaged("numeric out of its declared range")),
        }
    }

    /// `false`: NULL.
    fn push_bytes(&self, bytes: &[u8], out: &mut Vec<u8>) -> SqlResult<bool> {
        let is_text = match (&self.target.form, &self.target.ty) {
            (Form::Bytes, SqlType::Bytea) => false,
            (Form::Bytes, ty) if *ty == SqlType::Uuid || OrderedKind::of(ty).is_some() => {
                return self.push_value(bytes, out);
            }
            (Form::Bytes, _) => true,
            _ => return self.push_value(bytes, out),
        };
        let from = out.len();
        if self.from_key {
            if !decode_bytes(bytes, out)? {
                return Ok(false);
            }
        } else {
            out.extend_from_slice(bytes);
        }
        if is_text && std::str::from_utf8(&out[from..]).is_err() {
            // It says which kind of text it was.
            return self.value(bytes).and_then(|_| Err(damaged("text is not UTF-8")));
        }
        Ok(true)
    }

    fn push_value(&self, bytes: &[u8], out: &mut Vec<u8>) -> SqlResult<bool> {
        match (self.value(bytes)?, self.target.form) {
            (Datum::Null, _) => return Ok(false),
            (Datum::Uuid(value), Form::Bytes) => out.extend_from_slice(&value),
            (Datum::Ordered(value), Form::Bytes) => out.extend_from_slice(value.bytes()),
            (value, Form::Packed(pack)) => pack(&value, out),
            _ => return Err(damaged("type")),
        }
        Ok(true)
    }

    fn value(&self, bytes: &[u8]) -> SqlResult<Datum> {
        match self.from_key {
            true => Ok(decode_column(bytes, &self.target.ty, self.target.dir)?.0),
            false => decode_payload(bytes, &self.target.ty),
        }
    }
}
