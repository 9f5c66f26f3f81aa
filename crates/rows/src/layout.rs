//! Where rows and index entries lie.
//!
//! ```text
//!   table lines in orders in customers, key (id, order_id, line):
//!     elements  customers(1 column) # orders(1) # lines(1)
//!     columns   id                    order_id     line
//!   span of prefix (7)     [ /customers/7          , .. FF )   also holds the customer, its notes
//!   span of prefix (7, 3)  [ /customers/7/#/orders/3/#/lines , .. FF )   lines only: "pure"
//! ```
//! A prefix that fills all elements but the last steps into the last: its span is *pure*, it holds
//! nothing but the table's rows and what is interleaved in them.

use std::ops::Bound as Limit;
use std::sync::Arc;

use braid_catalog::{Catalog, Index, NOTES_GENERATION, Table, kv_error};
use braid_keys::column::{Direction, decode_column, encode_column, is_composite, skip_column};
use braid_keys::{CHILD_MARKER, END_MARKER, KeyBuilder, family_end, path, system};
use braid_kv::{KeySpan, KeyTime, ReadMode, ScanOptions, Txn};
use braid_scalar::Bound;
use braid_types::{Datum, SqlError, SqlResult, SqlType, TimeZone, commit_time_is_pending};
use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3Default;

use super::computed::{Computed, Predicate};
use super::row_codec::decode_payload;
use super::row_value::{self, RowReader, RowWriter, Stored, split_pending};
use crate::Row;

/// A key column.
#[derive(Clone, Debug)]
pub struct KeyColumn {
    /// Position in the table's row.
    pub ordinal: usize,
    /// Column id.
    pub column: u32,
    /// Type.
    pub ty: SqlType,
    /// Direction.
    pub dir: Direction,
}

#[derive(Clone, Debug, PartialEq)]
struct Element {
    id: u32,
    generation: u32,
    columns: usize,
    /// What its part of a key begins with.
    start: Vec<u8>,
}

impl Element {
    fn new(is_root: bool, id: u32, generation: u32, columns: usize) -> Element {
        let start = if is_root {
            KeyBuilder::root(id, generation)
        } else {
            let mut start = KeyBuilder::from_key(&[]);
            start.child(id, generation);
            start
        };
        Element { id, generation, columns, start: start.as_bytes().to_vec() }
    }
}

/// Key layout of a table's rows or of an index's entries.
#[derive(Clone, Debug)]
pub struct Layout {
    elements: Vec<Element>,
    columns: Vec<KeyColumn>,
}

impl Layout {
    /// Key columns, ancestors' first.
    pub fn columns(&self) -> &[KeyColumn] {
        &self.columns
    }

    /// Engine class mask of exactly these keys (classes are shared by every 31st table).
    pub fn class_mask(&self) -> u32 {
        let last = self.elements.last().expect("a layout has a root");
        1 << path::class_of(last.id, last.generation)
    }

    /// Tells keys of the layout from all others: what the elements begin with, and how many columns
    /// each has.
    pub(super) fn digest(&self) -> u128 {
        let mut hash = Xxh3Default::new();
        for element in &self.elements {
            hash.update(&(element.start.len() as u64).to_le_bytes());
            hash.update(&element.start);
            hash.update(&(element.columns as u64).to_le_bytes());
        }
        hash.digest128()
    }

    /// Number of elements of its path, one for a root.
    pub fn depth(&self) -> usize {
        self.elements.len()
    }

    /// How long the part of a key is that ends where the columns of an element begin: everything
    /// with that start lies below one row, in one table or index. `None` if the key is of another.
    pub fn cut(&self, key: &[u8], element: usize) -> SqlResult<Option<usize>> {
        let (mut rest, mut cut) = (key, 0);
        for (n, e) in self.elements.iter().enumerate() {
            match rest.strip_prefix(e.start.as_slice()) {
                Some(behind) => rest = behind,
                None => return Ok(None),
            }
            if n == element {
                cut = key.len() - rest.len();
            }
            // A short entry ends before the last columns.
            for _ in 0..e.columns {
                if rest.is_empty() && n + 1 == self.elements.len() {
                    break;
                }
                if rest.is_empty() {
                    return Ok(None);
                }
                rest = &rest[skip_column(rest)?..];
            }
        }
        Ok(rest.is_empty().then_some(cut))
    }

    /// The key of the root row in whose family another key of the root table lies; `None` if that
    /// is too short.
    pub fn head_of(&self, key: &[u8]) -> SqlResult<Option<Vec<u8>>> {
        let root = &self.elements[0];
        let Some(mut rest) = key.strip_prefix(root.start.as_slice()) else { return Ok(None) };
        for _ in 0..root.columns {
            // A cut may lie between keys, where no column begins.
            match skip_column(rest) {
                Ok(column) => rest = &rest[column..],
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(key[..key.len() - rest.len()].to_vec()))
    }

    /// The root table in whose span all keys lie, or the global index.
    pub fn root(&self) -> u32 {
        self.elements[0].id
    }

    /// Number of leading columns after which a span is pure.
    pub fn pure_len(&self) -> usize {
        self.columns.len() - self.elements.last().expect("a layout has a root").columns
    }

    /// The key's start for the leading values; steps into as many elements as are filled.
    pub fn prefix(&self, values: &[Datum]) -> SqlResult<Vec<u8>> {
        self.prefix_of(Vec::with_capacity(32), values.iter())
    }

    /// A key in the memory of another one.
    fn prefix_of<'a>(
        &self,
        memory: Vec<u8>,
        mut values: impl Iterator<Item = &'a Datum>,
    ) -> SqlResult<Vec<u8>> {
        let root = &self.elements[0];
        let mut key = KeyBuilder::root_in(memory, root.id, root.generation);
        let mut at = 0;
        for (i, e) in self.elements.iter().enumerate() {
            if i > 0 {
                key.child(e.id, e.generation);
            }
            for column in &self.columns[at..at + e.columns] {
                match values.next() {
                    Some(v) => key.column(v, column.dir)?,
                    None => return key.finish(),
                }
            }
            at += e.columns;
        }
        key.finish()
    }

    /// The key of a row of the table.
    pub(crate) fn key_of_row(&self, row: &[Datum]) -> SqlResult<Vec<u8>> {
        self.partial_key_of_row(row, self.columns.len())
    }

    /// Appends the key of these columns, encoded as they are in it.
    pub(super) fn append_key_of_columns<'a>(
        &self,
        mut columns: impl Iterator<Item = &'a [u8]>,
        key: &mut Vec<u8>,
    ) {
        for element in &self.elements {
            key.extend_from_slice(&element.start);
            for column in columns.by_ref().take(element.columns) {
                key.extend_from_slice(column);
            }
        }
    }

    /// The key of the first `n` columns of a row.
    pub(crate) fn partial_key_of_row(&self, row: &[Datum], n: usize) -> SqlResult<Vec<u8>> {
        self.partial_key_in(Vec::with_capacity(32), row, n)
    }

    /// As [`Layout::partial_key_of_row`], in the memory of another key.
    fn partial_key_in(&self, memory: Vec<u8>, row: &[Datum], n: usize) -> SqlResult<Vec<u8>> {
        self.prefix_of(memory, self.columns[..n].iter().map(|c| &row[c.ordinal]))
    }

    /// Span of all keys that start with these values, families included.
    pub fn prefix_span(&self, values: &[Datum]) -> SqlResult<KeySpan> {
        let start = self.prefix(values)?;
        let end = family_end(&start);
        Ok(KeySpan::new(start, end))
    }

    /// Span of all keys that start with this one.
    pub fn span_behind(&self, key: Vec<u8>) -> KeySpan {
        let end = family_end(&key);
        KeySpan::new(key, end)
    }

    /// Span of `prefix` and bounds on the next column. NULLs of that column are not inside when a
    /// bound is given, as in SQL.
    pub fn range_span(
        &self,
        prefix: &[Datum],
        lower: Limit<&Datum>,
        upper: Limit<&Datum>,
    ) -> SqlResult<KeySpan> {
        let column = &self.columns[prefix.len()];
        let base = self.prefix(prefix)?;
        let with = |v: &Datum| -> SqlResult<Vec<u8>> {
            let mut key = base.clone();
            encode_column(&mut key, v, column.dir)?;
            Ok(key)
        };
        if matches!((&lower, &upper), (Limit::Unbounded, Limit::Unbounded)) {
            let end = family_end(&base);
            return Ok(KeySpan::new(base, end));
        }
        let (first, last) = if column.dir.desc { (upper, lower) } else { (lower, upper) };
        let start = match first {
            Limit::Included(v) => with(v)?,
            Limit::Excluded(v) => family_end(&with(v)?),
            Limit::Unbounded if column.dir.nulls_first => family_end(&with(&Datum::Null)?),
            Limit::Unbounded => base.clone(),
        };
        let end = match last {
            Limit::Included(v) => family_end(&with(v)?),
            Limit::Excluded(v) => with(v)?,
            Limit::Unbounded if column.dir.nulls_first => family_end(&base),
            Limit::Unbounded => with(&Datum::Null)?,
        };
        Ok(KeySpan::new(start, end))
    }

    /// Span of all keys of this layout; not pure for a child.
    pub fn whole_span(&self) -> KeySpan {
        let start = self.elements[0].start.clone();
        let end = family_end(&start);
        KeySpan::new(start, end)
    }

    /// Tells where each column of a key lies, by its position among the key's columns. `false` if
    /// the key is of another table or index, or lacks columns.
    #[inline]
    pub(super) fn split<'a>(
        &self,
        key: &'a [u8],
        mut found: impl FnMut(usize, &'a [u8]),
    ) -> SqlResult<bool> {
        let mut rest = key;
        let mut column = 0;
        for element in &self.elements {
            match behind(rest, &element.start) {
                Some(behind) => rest = behind,
                None => return Ok(false),
            }
            for _ in 0..element.columns {
                if rest.is_empty() {
                    return Ok(false);
                }
                let (bytes, behind) = rest.split_at(skip_column(rest)?);
                found(column, bytes);
                rest = behind;
                column += 1;
            }
        }
        Ok(rest.is_empty())
    }

    /// Where the time of its commit comes into the key of a row that waits for it.
    pub fn key_times(&self, key: &[u8], row: &[Datum]) -> SqlResult<Vec<KeyTime>> {
        let mut times = Vec::new();
        let base = key.as_ptr().addr();
        self.split(key, |at, bytes| {
            let column = &self.columns[at];
            if row[column.ordinal].is_pending_commit_time() {
                let start = bytes.as_ptr().addr() - base;
                let descending = column.dir.desc;
                times.push(KeyTime { at: start..start + bytes.len(), descending });
            }
        })?;
        Ok(times)
    }

    /// Decodes a key into the columns of `row` that are wanted. `false` if the key is of another
    /// table or index. A key with fewer columns (a unique entry) decodes what is there.
    pub fn decode(
        &self,
        key: &[u8],
        row: &mut [Datum],
        wanted: Option<&[bool]>,
    ) -> SqlResult<bool> {
        let mut at = 1;
        let mut column = 0;
        for (i, e) in self.elements.iter().enumerate() {
            if i > 0 {
                if key.get(at) != Some(&CHILD_MARKER) {
                    return Ok(false);
                }
                at += 1;
            }
            for want in [e.id, e.generation] {
                match path::read_number(key.get(at..).unwrap_or(&[])) {
                    Some((n, len)) if n == u64::from(want) => at += len,
                    _ => return Ok(false),
                }
            }
            for c in &self.columns[column..column + e.columns] {
                let rest = &key[at..];
                if rest.is_empty() && i + 1 == self.elements.len() {
                    return Ok(true);
                }
                if wanted.is_none_or(|w| w[c.ordinal]) {
                    let (v, n) = decode_column(rest, &c.ty, c.dir)?;
                    row[c.ordinal] = v;
                    at += n;
                } else {
                    at += skip_column(rest)?;
                }
            }
            column += e.columns;
        }
        Ok(at == key.len())
    }
}

/// As `strip_prefix`, of a prefix that is mostly short: then nothing is called.
#[inline]
pub(super) fn behind<'a>(bytes: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    fn ends<const N: usize>(a: &[u8], b: &[u8]) -> bool {
        a.first_chunk::<N>() == b.first_chunk::<N>() && a.last_chunk::<N>() == b.last_chunk::<N>()
    }
    let (head, rest) = bytes.split_at_checked(prefix.len())?;
    let same = match prefix.len() {
        0 => true,
        1 => head[0] == prefix[0],
        2..4 => ends::<2>(head, prefix),
        4..8 => ends::<4>(head, prefix),
        8..=16 => ends::<8>(head, prefix),
        _ => head == prefix,
    };
    same.then_some(rest)
}

/// Spans in order, none of which touches the next.
pub fn united(mut spans: Vec<KeySpan>) -> Vec<KeySpan> {
    spans.sort_by(|a, b| a.start.cmp(&b.start));
    let mut out: Vec<KeySpan> = Vec::with_capacity(spans.len());
    for span in spans {
        match out.last_mut() {
            Some(last) if span.start <= last.end => last.end = span.end.max(last.end.clone()),
            _ => out.push(span),
        }
    }
    out
}

/// A secondary index of a table.
#[derive(Clone, Debug)]
pub struct IndexLayout {
    /// The descriptor.
    pub index: Index,
    /// Keys: index columns, then the primary key's columns that are not among them.
    pub layout: Layout,
    /// Number of leading key columns that the index declares (ancestor columns included).
    pub declared: usize,
    /// Which rows have entries, if not all.
    pub predicate: Option<Predicate>,
    /// For each column of a row's key, which column of an entry's key holds the same bytes; `None`
    /// if some do not.
    pub(super) row_places: Option<Vec<usize>>,
}

impl IndexLayout {
    /// Whether entries of this row have the short key that makes duplicates collide.
    fn short(&self, row: &[Datum]) -> bool {
        self.index.unique && self.tells_apart(row)
    }

    /// Whether a unique key says anything about rows with these values.
    fn tells_apart(&self, row: &[Datum]) -> bool {
        self.index.nulls_not_distinct
            || self.index.columns.iter().all(|c| {
                let k = self.layout.columns.iter().find(|k| k.column == c.column);
                k.is_some_and(|k| !row[k.ordinal].is_null())
            })
    }

    /// What the keys of all entries begin with that a DEFERRABLE constraint would not let be there
    /// beside this row's; `None` if it would let them all.
    pub fn deferred_key(&self, row: &[Datum]) -> SqlResult<Option<Vec<u8>>> {
        if self.index.deferral.is_none() || !self.tells_apart(row) || !self.takes(row)? {
            return Ok(None);
        }
        self.layout.partial_key_of_row(row, self.declared).map(Some)
    }

    /// The key of the entry that a row has; `None` if a partial index leaves it out.
    pub fn entry_key(&self, row: &[Datum]) -> SqlResult<Option<Vec<u8>>> {
        match self.takes(row)? {
            true => self.key_of(row).map(Some),
            false => Ok(None),
        }
    }

    /// Whether a row has an entry.
    pub fn takes(&self, row: &[Datum]) -> SqlResult<bool> {
        self.predicate.as_ref().map_or(Ok(true), |predicate| predicate.holds(row))
    }

    /// The key of an entry for these values of its columns.
    pub fn key_of(&self, row: &[Datum]) -> SqlResult<Vec<u8>> {
        self.key_in(Vec::with_capacity(32), row)
    }

    /// As [`IndexLayout::key_of`], in the memory of another key.
    pub(super) fn key_in(&self, memory: Vec<u8>, row: &[Datum]) -> SqlResult<Vec<u8>> {
        let n = if self.short(row) { self.declared } else { self.layout.columns.len() };
        self.layout.partial_key_in(memory, row, n)
    }

    /// Whether two rows with these values would collide, if both have entries (a unique index
    /// without NULLs).
    pub fn enforces_for(&self, row: &[Datum]) -> bool {
        self.short(row)
    }

    /// Whether no two rows of the table have the same key: it is unique, and knows all rows.
    pub fn tells_rows_apart(&self) -> bool {
        self.index.unique && self.predicate.is_none()
    }
}

impl IndexLayout {
    /// Reads of the index's entries.
    pub fn scan_options(&self, mode: ReadMode, reverse: bool) -> ScanOptions {
        let classes = self.layout.class_mask();
        ScanOptions { reverse, classes, mode, ..ScanOptions::default() }
    }
}

/// An index that is being built.
#[derive(Clone, Debug)]
pub struct BuildingLayout {
    /// As it will be.
    pub index: IndexLayout,
    /// Notes about entries that writers would have touched: keyed as the index, in a place of their
    /// own, never short.
    pub notes: IndexLayout,
    /// Writers only note.
    pub noting: bool,
}

impl BuildingLayout {
    fn new(index: IndexLayout, noting: bool) -> BuildingLayout {
        let mut notes = index.clone();
        let columns = notes.layout.columns.len();
        let (id, generation) = (index.index.id, NOTES_GENERATION);
        notes.layout.elements = vec![Element::new(true, id, generation, columns)];
        notes.declared = columns;
        BuildingLayout { index, notes, noting }
    }
}

/// Everything needed to read and write a table's rows.
#[derive(Clone, Debug)]
pub struct TableLayout {
    /// The table.
    pub table: Arc<Table>,
    /// Keys of its rows.
    pub rows: Layout,
    /// Secondary indexes.
    pub indexes: Vec<IndexLayout>,
    /// An index that is being built: readers leave it alone.
    pub building: Option<BuildingLayout>,
    /// Whether other tables are interleaved in it.
    pub has_children: bool,
    /// Whether its row class tells its rows from those that they lie in.
    own_class: bool,
    /// Expressions of indexes, which rows in memory have as columns.
    pub computed: Vec<Computed>,
    /// Columns kept in the value: id, ordinal, type; by id.
    stored: Vec<(u32, usize, SqlType)>,
    /// Values of columns in rows older than the column, by ordinal.
    missing: Vec<Datum>,
    highest: u32,
    shape_key: Vec<u8>,
}

fn direction(c: &braid_catalog::IndexColumn) -> Direction {
    Direction { desc: c.desc, nulls_first: c.nulls_first }
}

fn key_column(table: &Table, c: &braid_catalog::IndexColumn) -> SqlResult<KeyColumn> {
    let ordinal = table.ordinal(c.column).ok_or_else(|| {
        SqlError::internal(format!("key of {} names a missing column", table.name))
    })?;
    Ok(KeyColumn {
        ordinal,
        column: c.column,
        ty: table.columns[ordinal].ty.clone(),
        dir: direction(c),
    })
}

/// Elements of a table's row keys.
fn table_elements(catalog: &Catalog, table: &Arc<Table>) -> Vec<Element> {
    let mut inherited = 0;
    catalog
        .chain(table)
        .iter()
        .enumerate()
        .map(|(depth, t)| {
            let columns = t.primary.columns.len() - inherited;
            inherited = t.primary.columns.len();
            Element::new(depth == 0, t.id, t.generation, columns)
        })
        .collect()
}

fn index_layout(catalog: &Catalog, table: &Arc<Table>, index: &Index) -> SqlResult<IndexLayout> {
    let mut columns = Vec::new();
    let mut elements = Vec::new();
    if let Some(ancestor) = index.interleave_in.and_then(|id| catalog.table(id)) {
        elements = table_elements(catalog, ancestor);
        for c in &table.primary.columns[..ancestor.primary.columns.len()] {
            columns.push(key_column(table, c)?);
        }
    }
    let inherited = columns.len();
    for c in &index.columns {
        if !columns.iter().any(|k| k.column == c.column) {
            columns.push(key_column(table, c)?);
        }
    }
    let declared = columns.len();
    for c in &table.primary.columns {
        if !columns.iter().any(|k| k.column == c.column) {
            columns.push(key_column(table, c)?);
        }
    }
    let (is_root, own) = (elements.is_empty(), columns.len() - inherited);
    elements.push(Element::new(is_root, index.id, index.generation, own));
    let predicate = Predicate::of_index(table, index)?;
    let place = |c: &braid_catalog::IndexColumn| {
        columns.iter().position(|own| own.column == c.column && own.dir == direction(c))
    };
    let row_places = table.primary.columns.iter().map(place).collect();
    let layout = Layout { elements, columns };
    Ok(IndexLayout { index: index.clone(), layout, declared, predicate, row_places })
}

impl TableLayout {
    /// The name of the column at this position, for EXPLAIN.
    pub fn column_name(&self, at: usize) -> String {
        match self.table.columns.get(at) {
            Some(column) => self.table.key_name(column.id).to_string(),
            None => format!("column {}", at + 1),
        }
    }

    /// Tells a transaction that it reads this table: its commit depends on the table's shape, since
    /// TRUNCATE and other schema changes alter nothing else that it reads.
    pub fn used_by(&self, txn: &Txn, mode: ReadMode) -> SqlResult<()> {
        match mode {
            ReadMode::Recorded => txn.depend_on(&self.shape_key).map_err(kv_error),
            ReadMode::Unrecorded | ReadMode::Latest => Ok(()),
        }
    }

    /// Reads of the table's rows alone: what lies inside of a row is passed over where it is kept.
    pub fn scan_options(&self, mode: ReadMode, reverse: bool) -> ScanOptions {
        let classes = self.rows.class_mask();
        let jump = self.jumps() && !reverse;
        let jump = jump.then_some((classes, END_MARKER));
        ScanOptions { reverse, classes, mode, jump, ..ScanOptions::default() }
    }

    /// Whether a scan can jump over what lies inside of each row without missing a row.
    pub fn jumps(&self) -> bool {
        self.has_children && self.own_class
    }

    /// Key of the interleave parent of a row: the row's own key, cut at the parent's last column.
    pub fn parent_key(&self, parent: &TableLayout, row: &[Datum]) -> SqlResult<Vec<u8>> {
        let n = parent.rows.columns().len();
        let values: Vec<Datum> =
            self.rows.columns()[..n].iter().map(|c| row[c.ordinal].clone()).collect();
        parent.rows.prefix(&values)
    }

    /// Works out the layout of a table.
    pub fn new(catalog: &Catalog, table: &Arc<Table>) -> SqlResult<TableLayout> {
        let columns = table
            .primary
            .columns
            .iter()
            .map(|c| key_column(table, c))
            .collect::<SqlResult<Vec<_>>>()?;
        let rows = Layout { elements: table_elements(catalog, table), columns };
        let indexes = table
            .indexes
            .iter()
            .filter(|i| i.unread.is_none())
            .map(|i| index_layout(catalog, table, i))
            .collect::<SqlResult<_>>()?;
        let building = match table.building_index() {
            Some((index, noting)) => {
                Some(BuildingLayout::new(index_layout(catalog, table, index)?, noting))
            }
            None => None,
        };
        let mut stored: Vec<_> = table
            .columns
            .iter()
            .enumerate()
            .filter(|(_, c)| c.expression.is_none())
            .filter(|(_, c)| is_composite(&c.ty) || !rows.columns.iter().any(|k| k.column == c.id))
            .map(|(i, c)| (c.id, i, c.ty.clone()))
            .collect();
        stored.sort_by_key(|s| s.0);
        let missing = table
            .columns
            .iter()
            .map(|c| match &c.missing {
                Some(m) => Datum::parse(&m.0, &c.ty, TimeZone::utc()),
                None => Ok(Datum::Null),
            })
            .collect::<SqlResult<_>>()?;
        let class_of = |t: &Table| path::class_of(t.id, t.generation);
        let class = class_of(table);
        let chain = catalog.chain(table);
        let own_class = !chain.iter().any(|t| t.id != table.id && class_of(t) == class);
        Ok(TableLayout {
            own_class,
            has_children: catalog.interleaved_children(table.id).next().is_some(),
            table: table.clone(),
            rows,
            indexes,
            computed: Computed::of_table(table)?,
            stored,
            missing,
            highest: table.next_column - 1,
            shape_key: system::shape(table.id),
            building,
        })
    }

    /// Indexes whose entries writers keep.
    pub fn kept_indexes(&self) -> impl Iterator<Item = &IndexLayout> {
        let building = self.building.as_ref().filter(|b| !b.noting).map(|b| &b.index);
        self.indexes.iter().chain(building)
    }

    /// Where writers note which entries of an index that is being built they would have touched.
    pub fn notes(&self) -> Option<&IndexLayout> {
        self.building.as_ref().filter(|b| b.noting).map(|b| &b.notes)
    }

    /// The key of a row.
    pub fn row_key(&self, row: &[Datum]) -> SqlResult<Vec<u8>> {
        self.rows.key_of_row(row)
    }

    /// The value of a row.
    pub fn row_value(&self, row: &[Datum]) -> Vec<u8> {
        let mut w = RowWriter::new(self.highest);
        for (id, ordinal, _) in &self.stored {
            w.column(*id, &row[*ordinal]);
        }
        w.finish()
    }

    /// A row from key and value; columns that are not wanted are NULL. `None` if the key is of
    /// another table.
    pub fn decode(
        &self,
        key: &[u8],
        value: &[u8],
        wanted: Option<&[bool]>,
    ) -> SqlResult<Option<Row>> {
        let mut row = Row::new();
        Ok(self.decode_into(key, value, wanted, &mut row)?.then_some(row))
    }

    /// As [`TableLayout::decode`], in place of what stands in `row`; `false`: the key is no row's
    /// of this table.
    pub fn decode_into(
        &self,
        key: &[u8],
        value: &[u8],
        wanted: Option<&[bool]>,
        row: &mut Row,
    ) -> SqlResult<bool> {
        let asked = |c: &&Computed| wanted.is_none_or(|w| w[c.ordinal]);
        let inputs = wanted.filter(|_| self.computed.iter().any(|c| asked(&c)));
        let inputs = inputs.map(|wanted| self.inputs(wanted));
        let decoded = inputs.as_deref().or(wanted);
        row.clear();
        // Not by copies of one: a copy of a value is a call.
        row.resize_with(self.table.columns.len(), || Datum::Null);
        if !self.rows.decode(key, row, decoded)? {
            return Ok(false);
        }
        self.decode_value(value, row, decoded)?;
        for computed in self.computed.iter().filter(asked) {
            row[computed.ordinal] = computed.value(row).unwrap_or(Datum::Null);
        }
        Ok(true)
    }

    /// Computes the expressions of an index of a row that is going to have an entry.
    ///
    /// # Errors
    /// Those of the expressions.
    pub fn compute(&self, index: &IndexLayout, row: &mut [Datum]) -> SqlResult<()> {
        for computed in &self.computed {
            let id = self.table.columns[computed.ordinal].id;
            if index.index.columns.iter().any(|key| key.column == id) {
                row[computed.ordinal] = computed.value(row)?;
            }
        }
        Ok(())
    }

    /// Positions of the columns that stand for expressions of indexes which this one is like. The
    /// table's first column is at `offset` in it.
    pub fn computed_like(&self, expr: &Bound, offset: usize) -> Vec<usize> {
        let like = self.computed.iter().filter(|c| expr.is_like(&c.expr, offset));
        like.map(|c| c.ordinal).collect()
    }

    /// The id of a column, by its ordinal, if row values hold it.
    pub(super) fn stored_id(&self, ordinal: usize) -> Option<u32> {
        self.stored.iter().find(|(_, at, _)| *at == ordinal).map(|(id, ..)| *id)
    }

    /// Keys of rows, or of the entries of the index at this position.
    pub(super) fn keys_of(&self, index: Option<usize>) -> &Layout {
        index.map_or(&self.rows, |at| &self.indexes[at].layout)
    }

    /// Names the columns of a row value that are looked at by who wants these columns.
    pub fn part(&self, wanted: &[bool]) -> Bytes {
        let inputs = self.inputs(wanted);
        let ids = self.stored.iter().filter(|(_, ordinal, _)| inputs[*ordinal]);
        row_value::part(ids.map(|(id, ..)| *id).collect())
    }

    /// What must be decoded for these columns: computed ones are made of others.
    fn inputs(&self, wanted: &[bool]) -> Vec<bool> {
        let mut inputs = wanted.to_vec();
        let asked = self.computed.iter().filter(|c| wanted[c.ordinal]);
        asked.flat_map(Computed::inputs).for_each(|at| inputs[*at] = true);
        inputs
    }

    /// What readers of columns know of one that row values hold.
    pub(super) fn stored_column(&self, id: u32) -> Stored {
        let ordinal = self.stored.iter().find(|(at, ..)| *at == id).map(|(_, ordinal, _)| *ordinal);
        Stored::new(id, ordinal.map_or(&Datum::Null, |ordinal| &self.missing[ordinal]))
    }

    fn decode_value(&self, value: &[u8], row: &mut Row, wanted: Option<&[bool]>) -> SqlResult<()> {
        let value = match split_pending(value)? {
            None => value,
            Some((pending, rest)) => {
                self.decode_pending(&pending, row, wanted)?;
                rest
            }
        };
        let mut r = RowReader::new(value)?;
        let wants = |ordinal: usize| wanted.is_none_or(|w| w[ordinal]);
        // What lies behind the last one is not looked at.
        let last = self.stored.iter().rposition(|(_, ordinal, _)| wants(*ordinal));
        let Some(last) = last else { return Ok(()) };
        for (_, ordinal, _) in self.stored.iter().rev().take_while(|(id, ..)| *id > r.highest()) {
            row[*ordinal] = self.missing[*ordinal].clone();
        }
        let mut at = 0;
        while let Some((id, payload)) = r.next_column()? {
            while at < last && self.stored[at].0 < id {
                at += 1;
            }
            let (stored, ordinal, ty) = &self.stored[at];
            if *stored == id && wants(*ordinal) {
                row[*ordinal] = decode_payload(payload, ty)?;
            }
            if at == last && *stored <= id {
                break;
            }
        }
        Ok(())
    }

    /// Columns of a row of the transaction's own that wait for its commit: who takes the whole row,
    /// in order to write it again, gets placeholders.
    #[cold]
    fn decode_pending(
        &self,
        pending: &[u32],
        row: &mut Row,
        wanted: Option<&[bool]>,
    ) -> SqlResult<()> {
        for (_, ordinal, _) in self.stored.iter().filter(|(id, ..)| pending.contains(id)) {
            match wanted {
                None => row[*ordinal] = Datum::PENDING_COMMIT_TIME,
                Some(wanted) if wanted[*ordinal] => return Err(commit_time_is_pending()),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The value of an index entry: what the key lacks of the primary key, and INCLUDE columns.
    pub fn entry_value(&self, index: &IndexLayout, row: &[Datum]) -> Vec<u8> {
        let mut w = RowWriter::new(self.highest);
        self.value_columns(index).for_each(|(id, ordinal)| w.column(id, &row[ordinal]));
        w.finish()
    }

    /// Ids and ordinals of the columns in the values of an index's entries.
    pub(super) fn value_columns(&self, index: &IndexLayout) -> impl Iterator<Item = (u32, usize)> {
        let columns = self.table.columns.iter().enumerate();
        columns.filter(|(_, c)| self.is_in_value(index, c.id)).map(|(at, c)| (c.id, at))
    }

    /// The highest id of a column so far.
    pub(super) fn highest(&self) -> u32 {
        self.highest
    }

    pub(super) fn is_in_value(&self, index: &IndexLayout, column: u32) -> bool {
        self.rows.columns.iter().any(|k| k.column == column)
            || index.index.include.contains(&column)
    }

    /// By ordinal, the columns of which an index's entries are made.
    pub fn entry_columns(&self, index: &IndexLayout) -> Vec<bool> {
        let in_key = |id: u32| index.layout.columns.iter().any(|k| k.column == id);
        let columns = self.table.columns.iter();
        let mut of: Vec<bool> =
            columns.map(|c| in_key(c.id) || self.is_in_value(index, c.id)).collect();
        let predicate = index.predicate.iter().flat_map(Predicate::inputs);
        let own = self.computed.iter().filter(|c| of[c.ordinal]).flat_map(Computed::inputs);
        for at in predicate.chain(own).copied().collect::<Vec<_>>() {
            of[at] = true;
        }
        of
    }

    /// The row with everything interleaved in it.
    pub fn family_span(key: &[u8]) -> KeySpan {
        KeySpan::new(key.to_vec(), family_end(key))
    }
}

#[cfg(test)]
mod tests {
    use super::behind;

    #[test]
    fn behind_is_strip_prefix() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        for len in 0..=text.len() {
            let prefix = &text[..len];
            assert_eq!(behind(text, prefix), Some(&text[len..]), "{len}");
            assert_eq!(behind(&text[..len.saturating_sub(1)], prefix).is_some(), len == 0);
            for at in 0..len {
                let mut other = prefix.to_vec();
                other[at] ^= 1;
                assert_eq!(behind(text, &other), None, "{len}, {at}");
            }
        }
    }
}
