//! What a statement over many rows is going to ask, asked in batches before its rows are written
//! one by one.
//!
//! ```text
//!   insert 1,024 rows    1  values of their keys and unique entries, as of the statement's view
//!                        2  referenced rows, newest state: which are there to be locked?
//!                        3  locks, in the order in which the rows will ask for them
//!                        4  parents and referenced rows again, under those locks
//! ```
//! Nothing is decided here: a row's own code asks for the same things in its own order, and finds
//! the answers with the transaction ([`braid_kv::Txn::get_ahead`] and its like, which say when an
//! answer may be used). What was not foreseen here it asks for itself, and where a lock is not
//! free, it waits in its turn. So this may be incomplete, and never wrong; `tests/batches.rs`
//! counts the requests.

use std::collections::HashSet;
use std::sync::Arc;

use braid_catalog::{ForeignKey, RefAction, kv_error};
use braid_kv::{KeySpan, LockItem, LockMode, ReadMode, Target};
use braid_types::{Datum, SqlResult};
use bytes::Bytes;
use foldhash::HashMap;

use super::references::{Place, lookup_of, place_of, reference_values};
use super::writer::{TableInfo, changed};
use crate::session::Context;
use braid_rows::Row;
use braid_rows::TableLayout;
use braid_rows::layout::IndexLayout;
use braid_rows::scan::{get_row_as, rows_ahead, stored_rows};

/// A row that is replaced by another: its key, itself, the new one.
pub(super) type Change<'a> = (&'a Arc<TableInfo>, &'a Bytes, &'a Row, &'a Row);

/// Questions of many rows.
pub(super) struct Ahead<'a> {
    ctx: &'a Context,
    /// In the order in which rows will ask for them.
    locks: Vec<LockItem>,
    /// Keys whose newest value will be asked for under a lock.
    newest: Vec<Bytes>,
    /// Referenced rows that must stay.
    places: Vec<(Arc<TableLayout>, Place)>,
    seen_places: HashSet<Bytes>,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(ctx: &'a Context) -> Ahead<'a> {
        let (locks, newest, places) = (Vec::new(), Vec::new(), Vec::new());
        Ahead { ctx, locks, newest, places, seen_places: HashSet::new() }
    }

    fn lock(&mut self, key: impl Into<Bytes>, mode: LockMode, check: bool) {
        self.locks.push(LockItem { target: Target::Key(key.into()), mode, check });
    }

    /// The lock for writing a key.
    fn write(&mut self, key: impl Into<Bytes>) {
        self.lock(key, LockMode::Exclusive, true);
    }

    /// The lock for noting a row whose index is being built.
    fn note(&mut self, layout: &TableLayout, row: &Row) -> SqlResult<()> {
        if let Some(notes) = layout.notes() {
            notes.entry_key(row)?.into_iter().for_each(|key| self.write(key));
        }
        Ok(())
    }

    /// Whether nothing is stored under a key as the statement sees it.
    fn is_free(&self, key: &[u8]) -> SqlResult<bool> {
        let value = self.ctx.txn.get_as(key, ReadMode::Unrecorded).map_err(kv_error)?;
        Ok(value.is_none())
    }

    /// A row that must be there, and stay.
    fn keep(&mut self, key: Vec<u8>) {
        let key = Bytes::from(key);
        self.newest.push(key.clone());
        self.lock(key, LockMode::KeyShare, false);
    }

    fn reference(
        &mut self,
        parent: &Arc<TableLayout>,
        fk: &ForeignKey,
        values: &[Datum],
    ) -> SqlResult<()> {
        let place = place_of(parent, &fk.parent_columns, values)?;
        if self.seen_places.insert(place.key().clone()) {
            self.places.push((parent.clone(), place));
        }
        Ok(())
    }

    /// A row that may be found, and is not locked for that.
    pub(super) fn find(
        &mut self,
        layout: &Arc<TableLayout>,
        fk: &ForeignKey,
        values: &[Datum],
    ) -> SqlResult<()> {
        self.newest.push(place_of(layout, &fk.parent_columns, values)?.key().clone());
        Ok(())
    }

    /// A key whose newest value will be asked for.
    pub(super) fn newest(&mut self, key: Vec<u8>) {
        self.newest.push(key.into());
    }

    pub(super) fn references(
        &mut self,
        info: &TableInfo,
        row: &Row,
        old: Option<&Row>,
    ) -> SqlResult<()> {
        for (fk, parent) in &info.references {
            if old.is_some_and(|old| !changed(info.table(), &fk.columns, old, row)) {
                continue;
            }
            // What MATCH FULL refuses is refused in its turn.
            if let Ok(Some(values)) = reference_values(info.table(), fk, row) {
                self.reference(parent, fk, &values)?;
            }
        }
        Ok(())
    }

    fn parent(&mut self, info: &TableInfo, row: &Row) -> SqlResult<()> {
        if let Some(parent) = &info.parent {
            let key = info.layout.parent_key(parent, row)?;
            if self.seen_places.insert(Bytes::copy_from_slice(&key)) {
                self.keep(key);
            }
        }
        Ok(())
    }

    /// Asks: referenced rows, locks, and what must be known under them.
    pub(super) fn ask(mut self) -> SqlResult<()> {
        for key in self.find_places()? {
            self.lock(key, LockMode::KeyShare, false);
        }
        let txn = &self.ctx.txn;
        txn.lock_ahead(self.locks).map_err(kv_error)?;
        txn.get_ahead(self.newest, ReadMode::Latest).map_err(kv_error)
    }

    /// Asks for referenced rows by their unique keys: the keys of those that are there.
    fn find_places(&mut self) -> SqlResult<Vec<Bytes>> {
        let txn = &self.ctx.txn;
        let keys = self.places.iter().map(|(_, place)| place.key().clone());
        let keys: Vec<Bytes> = keys.collect();
        txn.get_ahead(keys.clone(), ReadMode::Latest).map_err(kv_error)?;
        self.newest.extend(keys);
        let mut held = Vec::new();
        for (layout, place) in &self.places {
            let found = txn.get_as(place.key(), ReadMode::Latest).map_err(kv_error)?;
            match (found, place) {
                (None, _) => {}
                (Some(_), Place::Row(key)) => held.push(key.clone()),
                (Some(value), Place::Entry(n, key)) => {
                    let index = &layout.indexes[*n];
                    let row = layout.row_key_of_entry(index, key, &value)?.map(Bytes::from);
                    self.newest.extend(row.clone());
                    held.extend(row);
                }
            }
        }
        Ok(held)
    }
}

/// Before complete rows go into a load: what they refer to. Writers are kept out, so that nothing
/// of it needs a lock.
pub(super) fn of_loads<'r>(
    ctx: &Context,
    info: &TableInfo,
    rows: impl Iterator<Item = &'r Row>,
) -> SqlResult<()> {
    let mut ahead = Ahead::new(ctx);
    for row in rows {
        ahead.references(info, row, None)?;
        ahead.parent(info, row)?;
    }
    ahead.find_places()?;
    ctx.txn.get_ahead(ahead.newest, ReadMode::Latest).map_err(kv_error)
}

/// Before rows are inserted; `upsert`: those that are there already are going to be updated.
/// The rows are complete.
pub(super) fn of_inserts(
    ctx: &Context,
    info: &TableInfo,
    rows: &[&Row],
    upsert: bool,
) -> SqlResult<()> {
    let layout = &info.layout;
    let mut keys: Vec<Bytes> = Vec::new();
    for row in rows {
        keys.push(layout.row_key(row)?.into());
        for i in layout.kept_indexes().filter(|i| i.index.unique && i.enforces_for(row)) {
            keys.extend(i.entry_key(row)?.map(Bytes::from));
        }
    }
    ctx.txn.get_ahead(keys, ReadMode::Unrecorded).map_err(kv_error)?;
    let mut behind: Vec<Bytes> = Vec::new();
    for row in rows {
        for i in layout.kept_indexes().filter(|i| i.index.unique && i.enforces_for(row)) {
            let Some(entry) = i.entry_key(row)? else { continue };
            behind.extend(row_behind(ctx, layout, i, &entry)?);
        }
    }
    ctx.txn.get_ahead(behind, ReadMode::Unrecorded).map_err(kv_error)?;
    let mut ahead = Ahead::new(ctx);
    let mut taken: Vec<Bytes> = Vec::new();
    for row in rows {
        let key = Bytes::from(layout.row_key(row)?);
        match ahead.is_free(&key)? {
            true => ahead.write(key),
            false if upsert => ahead.lock(key, LockMode::NoKeyExclusive, true),
            // Nothing else is asked for a row that is there.
            false => {
                taken.push(key);
                continue;
            }
        }
        for i in layout.kept_indexes() {
            let Some(entry) = i.entry_key(row)?.map(Bytes::from) else { continue };
            if i.index.unique
                && i.enforces_for(row)
                && let Some(holder) = row_behind(ctx, layout, i, &entry)?
            {
                taken.push(entry.clone());
                // An entry whose row is gone does not stand for it: a new row takes its place.
                if has_entry(ctx, layout, i, &entry, &holder)? {
                    taken.push(holder);
                    continue;
                }
            }
            ahead.write(entry);
        }
        ahead.note(layout, row)?;
        ahead.parent(info, row)?;
        ahead.references(info, row, None)?;
    }
    ctx.txn.await_ahead(taken, LockMode::KeyShare).map_err(kv_error)?;
    ahead.ask()
}

/// The key of the row that an entry of a unique index leads to, if there is an entry.
pub(super) fn row_behind(
    ctx: &Context,
    layout: &TableLayout,
    index: &IndexLayout,
    entry: &[u8],
) -> SqlResult<Option<Bytes>> {
    match ctx.txn.get_as(entry, ReadMode::Unrecorded).map_err(kv_error)? {
        Some(value) => Ok(layout.row_key_of_entry(index, entry, &value)?.map(Bytes::from)),
        None => Ok(None),
    }
}

/// Whether there is a row with this key, and it has this entry.
fn has_entry(
    ctx: &Context,
    layout: &TableLayout,
    index: &IndexLayout,
    entry: &[u8],
    row: &Bytes,
) -> SqlResult<bool> {
    match get_row_as(&ctx.txn, layout, row.clone(), ReadMode::Unrecorded)? {
        Some((_, row)) => Ok(index.entry_key(&row)?.as_deref() == Some(entry)),
        None => Ok(false),
    }
}

/// Before rows are updated of which it is not known yet what they will be: their locks.
pub(super) fn of_locks(ctx: &Context, keys: Vec<Bytes>) -> SqlResult<()> {
    let mut ahead = Ahead::new(ctx);
    keys.into_iter().for_each(|key| ahead.lock(key, LockMode::NoKeyExclusive, true));
    ahead.ask()
}

/// Before it is asked of many rows whether what they refer to is there: nothing is locked.
pub(super) fn of_probes<'v>(
    ctx: &Context,
    parent: &Arc<TableLayout>,
    fk: &ForeignKey,
    values: impl Iterator<Item = &'v Vec<Datum>>,
) -> SqlResult<()> {
    let mut ahead = Ahead::new(ctx);
    for values in values {
        ahead.reference(parent, fk, values)?;
    }
    ahead.find_places()?;
    ctx.txn.get_ahead(ahead.newest, ReadMode::Latest).map_err(kv_error)
}

/// Before rows are replaced by others. The new rows are complete.
pub(super) fn of_updates(ctx: &Context, changes: &[Change<'_>]) -> SqlResult<()> {
    let mut keys: Vec<Bytes> = Vec::new();
    for (info, key, old, new) in changes {
        let new_key = info.layout.row_key(new)?;
        if new_key[..] != key[..] {
            keys.push(new_key.into());
        }
        for i in info.layout.kept_indexes().filter(|i| i.index.unique && i.enforces_for(new)) {
            let entry = i.entry_key(new)?;
            if i.entry_key(old)? != entry {
                keys.extend(entry.map(Bytes::from));
            }
        }
    }
    ctx.txn.get_ahead(keys, ReadMode::Unrecorded).map_err(kv_error)?;
    let mut ahead = Ahead::new(ctx);
    for (info, key, old, new) in changes {
        ahead.update(info, key, old, new)?;
    }
    ahead.ask()
}

/// Before rows are put whose keys have changed that others refer to. The tables that refer to them
/// are known to the writer.
pub(super) fn of_changed_keys(
    ctx: &Context,
    changes: &[Change<'_>],
    infos: &HashMap<u32, Arc<TableInfo>>,
) -> SqlResult<()> {
    let mut referring = Referring::new(ctx);
    for (info, _, old, new) in changes {
        for (child, fk) in info.referenced_by.iter().filter(|(_, fk)| acts(fk.on_update)) {
            if changed(info.table(), &fk.parent_columns, old, new)
                && let (Some(child), Some(values)) =
                    (infos.get(&child.id), key_values(info, fk, old))
            {
                referring.rows_with(&child.layout, &fk.columns, &values)?;
            }
        }
    }
    referring.ask()
}

impl Ahead<'_> {
    fn update(
        &mut self,
        info: &Arc<TableInfo>,
        key: &Bytes,
        old: &Row,
        new: &Row,
    ) -> SqlResult<()> {
        let layout = &info.layout;
        let new_key = Bytes::from(layout.row_key(new)?);
        self.note(layout, old)?;
        for i in layout.kept_indexes() {
            let (before, after) = (i.entry_key(old)?, i.entry_key(new)?);
            if before != after {
                before.into_iter().for_each(|entry| self.write(entry));
            } else if layout.entry_value(i, old) != layout.entry_value(i, new) {
                after.into_iter().for_each(|entry| self.write(entry));
            }
        }
        if new_key != *key {
            self.write(key.clone());
            if self.is_free(&new_key)? {
                self.write(new_key.clone());
            }
            self.parent(info, new)?;
        }
        for i in layout.kept_indexes() {
            let Some(after) = i.entry_key(new)? else { continue };
            let asks = i.index.unique && i.enforces_for(new);
            if i.entry_key(old)?.as_ref() != Some(&after) && (!asks || self.is_free(&after)?) {
                self.write(after);
            }
        }
        self.note(layout, new)?;
        if new_key == *key {
            let mode = match info.referenced_changes(old, new) {
                true => LockMode::Exclusive,
                false => LockMode::NoKeyExclusive,
            };
            self.lock(new_key, mode, true);
        }
        self.references(info, new, Some(old))
    }
}

/// Before rows are deleted: their locks, and then what refers to them or lies in them. The tables
/// that refer to them are known to the writer.
pub(super) fn of_deletes(
    ctx: &Context,
    rows: &[(&Arc<TableInfo>, &Bytes, &Row)],
    info_of: &dyn Fn(u32) -> Option<Arc<TableInfo>>,
) -> SqlResult<()> {
    let mut ahead = Ahead::new(ctx);
    for (info, key, row) in rows {
        ahead.write((*key).clone());
        for i in info.layout.kept_indexes() {
            i.entry_key(row)?.into_iter().for_each(|entry| ahead.write(entry));
        }
        ahead.note(&info.layout, row)?;
    }
    ahead.ask()?;
    let mut referring = Referring::new(ctx);
    for (info, _, row) in rows {
        for (child, fk) in info.referenced_by.iter().filter(|(_, fk)| acts(fk.on_delete)) {
            if let (Some(child), Some(values)) = (info_of(child.id), key_values(info, fk, row)) {
                referring.rows_with(&child.layout, &fk.columns, &values)?;
            }
        }
        for child in &info.children {
            let on_delete = child.interleave.as_ref().map(|i| i.on_delete).unwrap_or_default();
            if acts(on_delete)
                && let Some(child) = info_of(child.id)
            {
                referring.children(&child.layout, &info.layout, row)?;
            }
        }
    }
    referring.ask()
}

/// Whether something is done at once to the rows that refer to a row that goes.
fn acts(action: RefAction) -> bool {
    action != RefAction::NoAction
}

/// The values of a referenced key, if none is NULL.
pub(super) fn key_values(info: &TableInfo, fk: &ForeignKey, row: &Row) -> Option<Vec<Datum>> {
    let parent = info.table();
    let value = |c: &u32| parent.ordinal(*c).map(|o| row[o].clone()).filter(|v| !v.is_null());
    fk.parent_columns.iter().map(value).collect()
}

/// Spans in which rows are that refer to others, or lie in them.
pub(super) struct Referring<'a> {
    ctx: &'a Context,
    /// By table and index: they are scanned with the same options.
    spans: Vec<(Arc<TableLayout>, Option<usize>, Vec<KeySpan>)>,
}

impl<'a> Referring<'a> {
    pub(super) fn new(ctx: &'a Context) -> Referring<'a> {
        Referring { ctx, spans: Vec::new() }
    }

    fn add(&mut self, layout: &Arc<TableLayout>, index: Option<usize>, span: KeySpan) {
        let same = self.spans.iter_mut().find(|(l, i, _)| Arc::ptr_eq(l, layout) && *i == index);
        match same {
            Some((_, _, spans)) => spans.push(span),
            None => self.spans.push((layout.clone(), index, vec![span])),
        }
    }

    /// Rows with these values in these columns.
    pub(super) fn rows_with(
        &mut self,
        layout: &Arc<TableLayout>,
        columns: &[u32],
        values: &[Datum],
    ) -> SqlResult<()> {
        let (index, prefix) = lookup_of(layout, columns, values);
        // The whole table is no lookup.
        if prefix.is_empty() {
            return Ok(());
        }
        let keys = index.map_or(&layout.rows, |n| &layout.indexes[n].layout);
        self.add(layout, index, keys.prefix_span(&prefix)?);
        Ok(())
    }

    /// Rows of `child` inside of a row of `parent`.
    pub(super) fn children(
        &mut self,
        child: &Arc<TableLayout>,
        parent: &TableLayout,
        row: &Row,
    ) -> SqlResult<()> {
        let values = parent.rows.columns().iter().map(|c| row[c.ordinal].clone());
        let values: Vec<Datum> = values.collect();
        self.add(child, None, child.rows.prefix_span(&values)?);
        Ok(())
    }

    pub(super) fn ask(self) -> SqlResult<()> {
        let (txn, mode) = (&self.ctx.txn, ReadMode::Latest);
        for (layout, index, spans) in self.spans {
            match index {
                None => {
                    let options = layout.scan_options(mode, false);
                    txn.scan_ahead(&spans, &options).map_err(kv_error)?;
                }
                Some(n) => {
                    let index = &layout.indexes[n];
                    let options = index.scan_options(mode, false);
                    let entries = txn.scan_ahead(&spans, &options).map_err(kv_error)?;
                    let entries = entries.iter().flat_map(|rows| stored_rows(rows));
                    rows_ahead(txn, &layout, index, entries, mode)?;
                }
            }
        }
        Ok(())
    }
}

/// Rows of many keys in the newest state, as they are now.
pub(super) fn newest_rows(
    ctx: &Context,
    keys: &[(Arc<TableInfo>, Bytes)],
) -> SqlResult<Vec<Option<Row>>> {
    let all = keys.iter().map(|(_, key)| key.clone());
    ctx.txn.get_ahead(all, ReadMode::Latest).map_err(kv_error)?;
    keys.iter()
        .map(|(info, key)| {
            let found = get_row_as(&ctx.txn, &info.layout, key.clone(), ReadMode::Latest)?;
            Ok(found.map(|(_, row)| row))
        })
        .collect()
}
