//! Taking away what nobody can reach any more, a little at a time.
//!
//! ```text
//!   rows and entries inside of families,        left by TRUNCATE, DROP and rewrites, which write a
//!     of a generation that is over              record of it; found by their row class
//!   entries of indexes outside of the rows      left by range deletes, which put a mark on the
//!     that are gone                             table; each entry is compared with its row
//! ```
//! Until that has happened, a record tells readers of entries where dead ones may be
//! ([`braid_rows::erased`]).
//!
//! Everything goes by ordinary transactions that delete what they have found, under its locks: a
//! reader of the past goes on seeing what was there, a writer who is in the way is let go first.
//! Work begins when nobody can read the time any more at which it became garbage, so that the next
//! compaction drops it for good. It goes on after a restart where it was: the place is stored with
//! each batch. Marks live in memory; a fresh process marks every table that may need it, once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use braid_catalog::{After, Catalog, Index, Table, kv_error};
use braid_keys::{KeyBuilder, family_end, path, system};
use braid_kv::{
    CommitTs, Coordinator, Isolation, KeySpan, KvError, LockMode, ReadMode, ScanOptions, Txn,
    TxnOptions,
};
use braid_types::{SqlError, SqlResult, SqlState};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::database::Database;
use crate::session::Context;
use braid_rows::scan::live_row;
use braid_rows::{TableLayout, erased};

/// Keys that are looked at for one transaction.
const AT_ONCE: usize = 512;
/// Whoever holds a lock longer than this is not waited for: the batch is tried again later.
const PATIENCE: Duration = Duration::from_millis(100);

/// Work done since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Keys that were looked at.
    pub examined: u64,
    /// Rows and entries of generations that are over.
    pub discarded: u64,
    /// Entries of indexes without their rows.
    pub dead_entries: u64,
}

/// What is left to do, and what was done.
#[derive(Default)]
pub(crate) struct Reclaim {
    /// Tables of which range deletes may have left entries, with the time of the last one.
    marks: Mutex<BTreeMap<u32, u64>>,
    /// The table that is being looked at, and the index that comes next.
    under_way: Mutex<Option<(u32, usize)>>,
    /// Records of erasures that are done with when all entries of that table were looked at.
    settling: Mutex<Vec<Bytes>>,
    examined: AtomicU64,
    discarded: AtomicU64,
    dead_entries: AtomicU64,
}

impl Reclaim {
    /// After the start: marks all tables that range deletes have reached, or may have.
    ///
    /// # Errors
    /// Of the store.
    pub(crate) fn for_catalog(
        txn: &Arc<Txn>,
        catalog: &Catalog,
        now_us: u64,
    ) -> SqlResult<Reclaim> {
        let reclaim = Reclaim::default();
        // Of a table that lies in no other one, as a foreign key has taken them along.
        let noted = erased::tables(txn)?;
        for t in catalog.tables() {
            let in_families =
                t.interleave.is_some() || catalog.interleaved_children(t.id).next().is_some();
            if in_families || noted.contains(&t.id) {
                reclaim.mark(t, |i| i.interleave_in != Some(t.id), now_us);
            }
        }
        Ok(reclaim)
    }

    /// Rows of a table were erased; entries of some of its indexes may be left.
    fn mark(&self, table: &Table, leaves: impl Fn(&Index) -> bool, now_us: u64) {
        if table.indexes.iter().filter(|i| i.unread.is_none()).any(leaves) {
            self.marks.lock().insert(table.id, now_us);
        }
    }

    pub(crate) fn done(&self) -> Reclaimed {
        Reclaimed {
            examined: self.examined.load(Ordering::Relaxed),
            discarded: self.discarded.load(Ordering::Relaxed),
            dead_entries: self.dead_entries.load(Ordering::Relaxed),
        }
    }
}

/// A generation of a table or index inside of families that is over.
struct Discarded {
    id: u32,
    generation: u32,
    /// The root table, and the generation, in whose rows it lies.
    root: (u32, u32),
    /// When that happened, in microseconds.
    since: u64,
    /// Where the search goes on; empty at first.
    place: Vec<u8>,
}

impl Discarded {
    fn encode(&self) -> Vec<u8> {
        let mut out = self.root.0.to_be_bytes().to_vec();
        out.extend(self.root.1.to_be_bytes());
        out.extend(self.since.to_be_bytes());
        out.extend(&self.place);
        out
    }

    fn decode(key: &[u8], value: &[u8]) -> Option<Discarded> {
        let (id, generation) = system::discarded_id(key)?;
        let (root_id, rest) = value.split_first_chunk::<4>()?;
        let (root_generation, rest) = rest.split_first_chunk::<4>()?;
        let (since, place) = rest.split_first_chunk::<8>()?;
        let root = (u32::from_be_bytes(*root_id), u32::from_be_bytes(*root_generation));
        let since = u64::from_be_bytes(*since);
        Some(Discarded { id, generation, root, since, place: place.to_vec() })
    }
}

/// Rows of tables of one hierarchy are erased in these spans, and entries of the indexes for which
/// `leaves` holds stay behind: readers of entries alone are told, and somebody will look for them.
pub(crate) fn erased(
    ctx: &Context,
    tables: &[Arc<Table>],
    leaves: impl Fn(&Index) -> bool,
    spans: &[KeySpan],
) -> SqlResult<()> {
    let coordinator = ctx.db.coordinator();
    let now = coordinator.wall_clock_us();
    let mut left = Vec::new();
    for t in tables {
        let building = t.building_index().map(|(index, _)| index);
        let kept = t.indexes.iter().filter(|i| i.unread.is_none());
        if kept.chain(building).any(&leaves) {
            left.push(t.id);
            ctx.db.reclaim_state().mark(t, &leaves, now);
        }
    }
    let root = tables.first().and_then(|t| ctx.catalog.chain(t).first().map(|root| root.id));
    match root.filter(|_| !left.is_empty() && !spans.is_empty()) {
        Some(root) => {
            let number = coordinator.unique_number() as u64;
            erased::note(&ctx.txn, (root, number), left, spans)
        }
        None => Ok(()),
    }
}

/// Makes sure that erasures in a store have records: in one from before there were any, entries of
/// all tables may be dead.
pub(crate) fn adopt(coordinator: &Arc<Coordinator>, catalog: &Catalog) -> SqlResult<()> {
    let txn = coordinator.begin(patient()).map_err(kv_error)?;
    let noted = system::erasures_are_noted();
    if txn.get_as(&noted, ReadMode::Unrecorded).map_err(kv_error)?.is_some() {
        return Ok(());
    }
    for t in catalog.tables().filter(|t| !t.indexes.is_empty()) {
        let rows = TableLayout::new(catalog, t)?.rows;
        let name = (rows.root(), coordinator.unique_number() as u64);
        erased::note(&txn, name, vec![t.id], &[rows.whole_span()])?;
    }
    txn.put(noted, Vec::new()).map_err(kv_error)?;
    txn.commit().map(|_| ()).map_err(kv_error)
}

/// Notes with a transaction that a generation inside of the families of `catalog` is over.
pub(crate) fn discard(
    txn: &Txn,
    catalog: &Catalog,
    lies_in: &Arc<Table>,
    (id, generation): (u32, u32),
    since: u64,
) -> SqlResult<()> {
    match catalog.chain(lies_in).first() {
        Some(root) => discard_below(txn, (root.id, root.generation), (id, generation), since),
        None => Ok(()),
    }
}

/// As [`discard`], inside of the families of a generation of a root table.
pub(crate) fn discard_below(
    txn: &Txn,
    root: (u32, u32),
    (id, generation): (u32, u32),
    since: u64,
) -> SqlResult<()> {
    let record = Discarded { id, generation, root, since, place: Vec::new() };
    txn.put(system::discarded(id, generation), record.encode()).map_err(kv_error)
}

/// As [`discard`], of everything that a table keeps inside of families.
pub(crate) fn discard_table(
    txn: &Txn,
    catalog: &Catalog,
    table: &Arc<Table>,
    since: u64,
) -> SqlResult<()> {
    if table.interleave.is_some() {
        discard(txn, catalog, table, (table.id, table.generation), since)?;
    }
    for i in &table.indexes {
        if let Some(lies_in) = i.interleave_in.and_then(|id| catalog.table(id)) {
            discard(txn, catalog, lies_in, (i.id, i.generation), since)?;
        }
    }
    Ok(())
}

/// Looks at up to `budget` keys. What became garbage up to `readable` is taken away.
pub(crate) fn step(db: &Database, readable: CommitTs, budget: usize) -> SqlResult<()> {
    let mut left = budget;
    while left > 0 {
        let part = left.min(AT_ONCE);
        let examined = match discards(db, readable, part)? {
            Some(examined) => examined,
            None => match dead_entries(db, readable, part)? {
                Some(examined) => examined,
                None => return Ok(()),
            },
        };
        db.reclaim_state().examined.fetch_add(examined as u64, Ordering::Relaxed);
        left -= examined.clamp(1, left);
    }
    Ok(())
}

fn is_over(since: u64, readable: CommitTs) -> bool {
    Coordinator::timestamp_at(since) <= readable
}

fn patient() -> TxnOptions {
    let isolation = Isolation::RepeatableRead;
    TxnOptions { isolation, lock_timeout: Some(PATIENCE), ..TxnOptions::default() }
}

/// Commits, unless somebody was in the way: then it is tried again later.
fn finish(txn: &Txn, result: SqlResult<u64>) -> SqlResult<Option<u64>> {
    let done = result.and_then(|n| match txn.commit() {
        Ok(_) => Ok(Some(n)),
        Err(KvError::Retry { .. }) => Ok(None),
        Err(e) => Err(kv_error(e)),
    });
    match done {
        Err(e) if After::error(&e) != After::Never => Ok(None),
        other => other,
    }
}

/// Deletes a part of a generation that is over; the number of keys that were looked at. `None`:
/// there is nothing to do now.
fn discards(db: &Database, readable: CommitTs, most: usize) -> SqlResult<Option<usize>> {
    let (txn, _) = db.begin(patient())?;
    let Some(mut record) = first_over(&txn, readable)? else { return Ok(None) };
    let root = KeyBuilder::root(record.root.0, record.root.1).as_bytes().to_vec();
    let end = family_end(&root);
    let start = if record.place.is_empty() { root } else { record.place.clone() };
    let classes = 1 << path::class_of(record.id, record.generation);
    let mode = ReadMode::Unrecorded;
    let options = ScanOptions { classes, mode, ..ScanOptions::default() };
    let mut scan = txn.scan(KeySpan::new(start, end), options).map_err(kv_error)?;
    let (mut examined, mut over, mut ended) = (0, Vec::new(), false);
    while examined < most {
        let Some((key, _)) = scan.next().map_err(kv_error)? else {
            ended = true;
            break;
        };
        examined += 1;
        let mut elements = path::elements(&key)?.into_iter();
        record.place = [&key[..], &[0]].concat();
        if elements.any(|e| (e.id, e.generation) == (record.id, record.generation)) {
            over.push(key);
        }
    }
    drop(scan);
    let work = || -> SqlResult<u64> {
        for key in &over {
            txn.delete(key.clone()).map_err(kv_error)?;
        }
        let key = system::discarded(record.id, record.generation);
        match ended {
            true => txn.delete(key).map_err(kv_error)?,
            false => txn.put(key, record.encode()).map_err(kv_error)?,
        }
        Ok(over.len() as u64)
    };
    match finish(&txn, work())? {
        Some(deleted) => {
            db.reclaim_state().discarded.fetch_add(deleted, Ordering::Relaxed);
            Ok(Some(examined))
        }
        None => Ok(None),
    }
}

fn first_over(txn: &Arc<Txn>, readable: CommitTs) -> SqlResult<Option<Discarded>> {
    let (start, end) = system::all_discarded();
    let options = ScanOptions { mode: ReadMode::Unrecorded, ..ScanOptions::default() };
    let mut scan = txn.scan(KeySpan::new(start, end), options).map_err(kv_error)?;
    while let Some((key, value)) = scan.next().map_err(kv_error)? {
        let record = Discarded::decode(&key, &value).ok_or_else(|| {
            let key = braid_keys::pretty::key(&key);
            SqlError::new(SqlState::DATA_CORRUPTED, format!("damaged system record: {key}"))
        })?;
        if is_over(record.since, readable) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// Looks at a part of an index that may have dead entries; the number of entries. `None`: there is
/// nothing to do now.
fn dead_entries(db: &Database, readable: CommitTs, most: usize) -> SqlResult<Option<usize>> {
    let state = db.reclaim_state();
    let (table, at) = {
        let mut under_way = state.under_way.lock();
        if under_way.is_none() {
            let mut marks = state.marks.lock();
            let Some(table) =
                marks.iter().find(|(_, since)| is_over(**since, readable)).map(|(id, _)| *id)
            else {
                return Ok(None);
            };
            // What comes from now on needs another look.
            marks.remove(&table);
            *state.settling.lock() = begun(db, table)?;
            *under_way = Some((table, 0));
        }
        under_way.expect("just made sure")
    };
    let (txn, catalog) = db.begin(patient())?;
    let layout = match catalog.table(table) {
        Some(t) => TableLayout::new(&catalog, t)?,
        None => {
            *state.settling.lock() = erased::records(&txn, None, table)?;
            return settled(db, &txn, &catalog, (None, table));
        }
    };
    if at >= layout.indexes.len() {
        return settled(db, &txn, &catalog, (Some(layout.rows.root()), table));
    }
    let result = part_of_index(&txn, &layout, at, most)?;
    let Some((examined, ended, work)) = result else {
        *state.under_way.lock() = Some((table, at + 1));
        return Ok(Some(0));
    };
    match finish(&txn, work)? {
        Some(deleted) => {
            state.dead_entries.fetch_add(deleted, Ordering::Relaxed);
            if ended {
                *state.under_way.lock() = Some((table, at + 1));
            }
            Ok(Some(examined))
        }
        None => Ok(None),
    }
}

/// A look at all entries of a table begins: which records of erasures it settles. None, if it goes
/// on where another one was.
fn begun(db: &Database, table: u32) -> SqlResult<Vec<Bytes>> {
    let (txn, catalog) = db.begin(patient())?;
    let Some(t) = catalog.table(table) else { return Ok(Vec::new()) };
    for i in &t.indexes {
        let place = system::reclaim_place(i.id, i.generation);
        if txn.get_as(&place, ReadMode::Unrecorded).map_err(kv_error)?.is_some() {
            return Ok(Vec::new());
        }
    }
    erased::records(&txn, Some(TableLayout::new(&catalog, t)?.rows.root()), table)
}

/// A look at all entries of a table has ended: the erasures before it have left none.
fn settled(
    db: &Database,
    txn: &Arc<Txn>,
    catalog: &Catalog,
    (root, table): (Option<u32>, u32),
) -> SqlResult<Option<usize>> {
    let state = db.reclaim_state();
    let records = std::mem::take(&mut *state.settling.lock());
    let others = erased::records(txn, root, table)?.len() > records.len();
    let work = || -> SqlResult<u64> {
        records.iter().try_for_each(|key| erased::settle(txn, catalog, key, table))?;
        Ok(records.len() as u64)
    };
    if finish(txn, work())?.is_none() {
        *state.settling.lock() = records;
        return Ok(None);
    }
    if others {
        // What it has not seen, or not all of it, needs another look.
        let now = db.coordinator().wall_clock_us();
        state.marks.lock().entry(table).or_insert(now);
    }
    *state.under_way.lock() = None;
    Ok(Some(0))
}

type Part = (usize, bool, SqlResult<u64>);

/// Entries from where the last part ended: how many, whether the index ended, and the deletion of
/// the dead ones. `None` for an index that lies in its own table's rows: entries go with those.
fn part_of_index(
    txn: &Arc<Txn>,
    layout: &TableLayout,
    at: usize,
    most: usize,
) -> SqlResult<Option<Part>> {
    let i = &layout.indexes[at];
    if i.index.interleave_in == Some(layout.table.id) {
        return Ok(None);
    }
    let place = system::reclaim_place(i.index.id, i.index.generation);
    let mut span = i.layout.whole_span();
    if let Some(start) = txn.get_as(&place, ReadMode::Unrecorded).map_err(kv_error)? {
        span = KeySpan::new(start, span.end);
    }
    let mode = ReadMode::Unrecorded;
    let mut scan = txn.scan(span, i.scan_options(mode, false)).map_err(kv_error)?;
    let (mut examined, mut dead, mut last) = (0, Vec::<Bytes>::new(), None);
    let mut ended = false;
    while examined < most {
        let Some((key, value)) = scan.next().map_err(kv_error)? else {
            ended = true;
            break;
        };
        examined += 1;
        // Inside of families there are others of the same class.
        let own = i.layout.cut(&key, 0)?.is_some();
        if own && live_row(txn, layout, i, &key, &value, mode)?.is_none() {
            dead.push(key.clone());
        }
        last = Some([&key[..], &[0]].concat());
    }
    drop(scan);
    let work = || -> SqlResult<u64> {
        let mut deleted = 0;
        for key in dead {
            txn.hold(&key, LockMode::Exclusive).map_err(kv_error)?;
            let now = txn.get_as(&key, ReadMode::Latest).map_err(kv_error)?;
            let Some(value) = now else { continue };
            if live_row(txn, layout, i, &key, &value, ReadMode::Latest)?.is_none() {
                txn.delete(key).map_err(kv_error)?;
                deleted += 1;
            }
        }
        match last.filter(|_| !ended) {
            Some(last) => txn.put(place.clone(), last).map_err(kv_error)?,
            None => txn.delete(place.clone()).map_err(kv_error)?,
        }
        Ok(deleted)
    };
    let work = work();
    Ok(Some((examined, ended, work)))
}
