//! Writing rows: keys, index entries, constraints, referential actions.
//!
//! One [`Writer`] per statement. Constraints of a row itself are checked as it is written;
//! what other rows say is checked at the end of the statement ([`Writer::finish`]), as SQL wants
//! it for NO ACTION: a parent may go before its children go in the same statement.
//!
//! ```text
//!   insert   parent row? ─ key free? ─ unique entries free? ─ put row, put entries ─ references?
//!   delete   remove row, entries ─ for each who refers to it: cascade | set null | later
//!   update   remove what changes ─ put anew ─ the same questions for changed keys only
//! ```

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, OnceLock};

use braid_catalog::{ForeignKey, RefAction, Table, kv_error};
use braid_kv::{LockMode, ReadMode, Wait};
use braid_types::{Datum, SqlError, SqlResult, SqlState};
use bytes::Bytes;
use foldhash::HashMap;

use super::ahead;
use super::defaults::Filler;
use super::family::fate::Fate;
use super::family::moves::Moving;
use super::keys::duplicate_key;
use super::later::Later;
use super::references::{
    parent_exists, reference_exists, rows_with, still_has_children, still_referenced,
};
use crate::session::Context;
use crate::statistics::{Delta, Tally};
use braid_rows::Row;
use braid_rows::layout::{IndexLayout, Layout};
use braid_rows::scan::{get_row_as, live_row};
use braid_rows::{TableLayout, TableScan};

/// What writing a table needs to know, worked out once per plan.
pub struct TableInfo {
    /// Keys, values, indexes.
    pub layout: Arc<TableLayout>,
    /// Defaults and checks.
    pub filler: Filler,
    /// Foreign keys with the layout of the referenced table.
    pub(super) references: Vec<(ForeignKey, Arc<TableLayout>)>,
    /// Enforcing interleave parent.
    pub(super) parent: Option<Arc<TableLayout>>,
    /// Foreign keys of others (and of itself) to this table.
    pub(super) referenced_by: Vec<(Arc<Table>, ForeignKey)>,
    /// Tables interleaved in this one that enforce it.
    pub(super) children: Vec<Arc<Table>>,
    /// What goes with its rows; worked out when it is asked for.
    fate: OnceLock<Arc<Fate>>,
}

impl TableInfo {
    /// Works it out.
    pub fn new(ctx: &Context, table: &Arc<Table>) -> SqlResult<TableInfo> {
        let c = &ctx.catalog;
        let layout_of = |id: u32| -> SqlResult<Arc<TableLayout>> {
            let t = c.table(id).ok_or_else(|| SqlError::internal("referenced table is gone"))?;
            Ok(Arc::new(TableLayout::new(c, t)?))
        };
        let asked = ctx.asks_references_of(table);
        let references = table
            .kept_foreign_keys()
            .filter(|_| asked)
            .map(|fk| Ok((fk.clone(), layout_of(fk.parent)?)))
            .collect::<SqlResult<_>>()?;
        let parent = match &table.interleave {
            Some(i) if i.enforced() => Some(layout_of(i.parent)?),
            _ => None,
        };
        let referenced_by = c
            .referencing_tables(table.id)
            .filter(|_| asked)
            .flat_map(|r| {
                r.kept_foreign_keys()
                    .filter(|fk| fk.parent == table.id)
                    .map(|fk| (r.clone(), fk.clone()))
            })
            .collect();
        let children = c
            .interleaved_children(table.id)
            .filter(|t| t.interleave.as_ref().is_some_and(|i| i.enforced()))
            .cloned()
            .collect();
        Ok(TableInfo {
            layout: Arc::new(TableLayout::new(c, table)?),
            filler: Filler::new(ctx, table)?,
            references,
            parent,
            referenced_by,
            children,
            fate: OnceLock::new(),
        })
    }

    /// What goes with its rows when they are deleted.
    pub(super) fn fate(&self, ctx: &Context) -> SqlResult<Arc<Fate>> {
        if let Some(fate) = self.fate.get() {
            return Ok(fate.clone());
        }
        let fate = Arc::new(Fate::of_deleted(ctx, self.table())?);
        Ok(self.fate.get_or_init(|| fate).clone())
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.layout.table
    }

    /// Whether columns differ that others refer to.
    pub(super) fn referenced_changes(&self, old: &Row, new: &Row) -> bool {
        let by = &self.referenced_by;
        by.iter().any(|(_, fk)| changed(self.table(), &fk.parent_columns, old, new))
    }
}

impl TableInfo {
    /// The tables that its rows refer to, the interleave parent among them.
    pub(crate) fn referenced(&self) -> impl Iterator<Item = &Arc<TableLayout>> {
        self.references.iter().map(|(_, parent)| parent).chain(&self.parent)
    }
}

/// Writes rows of one statement.
pub struct Writer {
    pub(super) ctx: Context,
    infos: HashMap<u32, Arc<TableInfo>>,
    pub(super) later: Vec<Later>,
    /// Parent key that was found last, per table: children come in groups.
    last_parent: HashMap<u32, Vec<Datum>>,
    /// Rows that are or will be deleted in this statement: cascades may meet in a row.
    deleted: HashSet<Bytes>,
    /// What referential actions have left to do: a list, since chains of references may be longer
    /// than a stack is deep.
    actions: VecDeque<Action>,
    /// Rows have changed or gone that may wait for an action in their older form.
    stale: bool,
    /// For statistics.
    pub(super) tally: Tally,
    /// For EXPLAIN ANALYZE.
    pub(super) work: WriteWork,
}

/// What writing took, besides what the transaction counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteWork {
    /// Rows elsewhere that were looked at: do they refer to what goes?
    pub probes: u64,
    /// Entries of indexes that were written or deleted one by one.
    pub entries: u64,
}

/// A referential action on a row of a table, or on many.
#[derive(Clone)]
pub(super) enum Action {
    Delete(Arc<TableInfo>, Bytes, Row),
    /// New values by ordinal.
    Set(Arc<TableInfo>, Bytes, Vec<(usize, Datum)>),
    /// All rows with these leading key values go.
    Erase(Arc<TableInfo>, Vec<Vec<Datum>>),
    /// All rows go that refer by this key to these values.
    Follow(Arc<TableInfo>, ForeignKey, Vec<Datum>),
}

impl Writer {
    /// A writer for a statement.
    pub fn new(ctx: &Context) -> Writer {
        Writer {
            ctx: ctx.clone(),
            infos: HashMap::default(),
            later: Vec::new(),
            last_parent: HashMap::default(),
            deleted: HashSet::new(),
            actions: VecDeque::new(),
            stale: false,
            tally: Tally::default(),
            work: WriteWork::default(),
        }
    }

    /// A writer that has nothing left to do but answer what others left for the end.
    pub(super) fn ending(ctx: &Context, later: Vec<Later>) -> Writer {
        Writer { later, ..Writer::new(ctx) }
    }

    /// Makes a table's prepared facts known, and keeps the table's shape.
    pub(crate) fn use_info(&mut self, info: &Arc<TableInfo>) -> SqlResult<()> {
        if info.table().window().is_some() {
            // What follows from it may touch rows of other partitions.
            return self.ctx.lock_shape(info.table());
        }
        if !self.infos.contains_key(&info.table().id) {
            self.ctx.lock_shape(info.table())?;
            self.infos.insert(info.table().id, info.clone());
        }
        Ok(())
    }

    pub(super) fn info(&mut self, table: u32) -> SqlResult<Arc<TableInfo>> {
        if let Some(i) = self.infos.get(&table) {
            return Ok(i.clone());
        }
        let t = self.ctx.catalog.table(table).cloned();
        let t = t.ok_or_else(|| SqlError::internal("referencing table is gone"))?;
        let info = Arc::new(TableInfo::new(&self.ctx, &t)?);
        self.use_info(&info)?;
        Ok(info)
    }

    /// Checks the interleave parent, remembering the last one found.
    fn check_parent(&mut self, info: &TableInfo, row: &[Datum]) -> SqlResult<()> {
        let Some(parent) = &info.parent else { return Ok(()) };
        let n = parent.rows.columns().len();
        let key: Vec<Datum> =
            info.layout.rows.columns()[..n].iter().map(|c| row[c.ordinal].clone()).collect();
        let id = info.table().id;
        let same = self
            .last_parent
            .get(&id)
            .is_some_and(|last| last.iter().zip(&key).all(|(a, b)| a.cmp_sql(b).is_eq()));
        if !same {
            parent_exists(&self.ctx, &info.layout, parent, row)?;
            self.last_parent.insert(id, key);
        }
        Ok(())
    }

    /// The row that a new row would collide with in a unique key: of the primary key (`None`) or
    /// of the secondary index at a position. Waits for transactions that are about to remove it or
    /// put it there. If there is none the key is locked, so that none can come.
    pub(crate) fn find_conflict(
        &self,
        info: &TableInfo,
        index: Option<usize>,
        row: &[Datum],
    ) -> SqlResult<Option<(Bytes, Row)>> {
        let layout = &info.layout;
        match index {
            None => {
                let key = Bytes::from(layout.row_key(row)?);
                let Some(value) = self.occupied(&key)? else { return Ok(None) };
                Ok(layout.decode(&key, &value, None)?.map(|row| (key, row)))
            }
            Some(n) => self.find_in_index(layout, &layout.indexes[n], row),
        }
    }

    fn find_in_index(
        &self,
        layout: &TableLayout,
        i: &IndexLayout,
        row: &[Datum],
    ) -> SqlResult<Option<(Bytes, Row)>> {
        if !i.index.unique || !i.enforces_for(row) {
            return Ok(None);
        }
        let Some(key) = i.entry_key(row)? else { return Ok(None) };
        let Some(value) = self.occupied(&key)? else { return Ok(None) };
        let txn = &self.ctx.txn;
        let found = live_row(txn, layout, i, &key, &value, ReadMode::Recorded)?;
        match &found {
            // The row may be about to go without its entry, in a deleted span.
            Some((row_key, _)) => txn.await_key(row_key, LockMode::KeyShare),
            None => txn.lock(&key, LockMode::Exclusive, Wait::Block).map(|_| ()),
        }
        .map_err(kv_error)?;
        Ok(found)
    }

    /// Notes that the entry of a row in an index that is being built may have come or gone.
    fn note(&self, layout: &TableLayout, row: &Row) -> SqlResult<()> {
        let Some(notes) = layout.notes() else { return Ok(()) };
        let Some(key) = notes.entry_key(row)? else { return Ok(()) };
        let value = layout.entry_value(notes, row);
        self.ctx.txn.put(key.clone(), value).map_err(kv_error)?;
        self.name(&notes.layout, &key, row, false)
    }

    /// Has a key get the time of the commit, if the row waits for it there. `own`: the row's key;
    /// an entry of an index may be left behind by whoever deletes a span.
    fn name(&self, layout: &Layout, key: &[u8], row: &Row, own: bool) -> SqlResult<()> {
        if !layout.columns().iter().any(|column| row[column.ordinal].is_pending_commit_time()) {
            return Ok(());
        }
        let times = layout.key_times(key, row)?;
        self.ctx.txn.name(Bytes::copy_from_slice(key), times, own).map_err(kv_error)
    }

    /// The value under a key that a new row wants. If there is none, the key is locked; else the
    /// value stands: whoever was about to take it away has ended.
    fn occupied(&self, key: &[u8]) -> SqlResult<Option<Bytes>> {
        let txn = &self.ctx.txn;
        if txn.get_as(key, ReadMode::Unrecorded).map_err(kv_error)?.is_none() {
            // With the lock it is granted that nothing came there since the view.
            txn.lock(key, LockMode::Exclusive, Wait::Block).map_err(kv_error)?;
            return Ok(None);
        }
        txn.await_key(key, LockMode::KeyShare).map_err(kv_error)?;
        txn.get(key).map_err(kv_error)
    }

    /// Makes rows ready for [`Writer::insert`], and asks ahead what writing them will ask;
    /// `upsert`: rows that are there already are going to be updated. Rows from the first one on
    /// that is no good are taken away; its error is returned, to be told after those before it were
    /// written.
    pub fn prepare<T>(
        &mut self,
        info: &Arc<TableInfo>,
        rows: &mut Vec<(T, Row)>,
        upsert: bool,
    ) -> SqlResult<Option<(T, SqlError)>> {
        self.lock_tables_instead()?;
        let mut bad = None;
        for (n, (_, row)) in rows.iter_mut().enumerate() {
            if let Err(e) = info.filler.complete(&self.ctx, row) {
                bad = Some((n, e));
                break;
            }
        }
        let bad = bad.and_then(|(n, e)| {
            rows.truncate(n + 1);
            rows.pop().map(|(place, _)| (place, e))
        });
        if rows.len() > 1 {
            let all: Vec<&Row> = rows.iter().map(|(_, row)| row).collect();
            ahead::of_inserts(&self.ctx, info, &all, upsert)?;
        }
        Ok(bad)
    }

    /// Inserts a row that was [prepared](Writer::prepare).
    pub fn insert(&mut self, info: &Arc<TableInfo>, row: Row) -> SqlResult<Row> {
        // Duplicate keys are reported before missing parents, as in PostgreSQL.
        self.put_new(info, &row, None)?;
        self.check_parent(info, &row)?;
        self.check_references(info, &row, None)?;
        self.tally.add(info.table(), Delta::inserted(1));
        Ok(row)
    }

    /// Prepares and inserts rows.
    ///
    /// # Errors
    /// With the place of the row that is no good, if it is one's fault.
    pub(crate) fn insert_together<T>(
        &mut self,
        info: &Arc<TableInfo>,
        mut rows: Vec<(T, Row)>,
    ) -> Result<(), (Option<T>, SqlError)> {
        let bad = self.prepare(info, &mut rows, false).map_err(|e| (None, e))?;
        for (place, row) in rows {
            if let Err(e) = self.insert(info, row) {
                return Err((Some(place), e));
            }
        }
        bad.map_or(Ok(()), |(place, e)| Err((Some(place), e)))
    }

    /// Puts a row and its entries, checking unique keys. `old` is the row it replaces, whose key
    /// and differing entries were removed before.
    fn put_new(&mut self, info: &Arc<TableInfo>, row: &Row, old: Option<&Row>) -> SqlResult<()> {
        let layout = &info.layout;
        let txn = &self.ctx.txn;
        let key = layout.row_key(row)?;
        let same_key = match old {
            Some(old) => layout.row_key(old)? == key,
            None => false,
        };
        if !same_key && self.occupied(&key)?.is_some() {
            return Err(duplicate_key(&self.ctx, &layout.table, &layout.table.primary, row));
        }
        for i in layout.kept_indexes() {
            let Some(entry) = i.entry_key(row)? else { continue };
            let unchanged = match old {
                Some(old) => i.entry_key(old)?.as_ref() == Some(&entry),
                None => false,
            };
            if !unchanged && self.find_in_index(layout, i, row)?.is_some() {
                return Err(duplicate_key(&self.ctx, &layout.table, &i.index, row));
            }
            if !unchanged && i.index.deferral.is_some() {
                self.later.push(Later::Unique(info.clone(), i.index.id, row.clone()));
            }
            let value = layout.entry_value(i, row);
            if !unchanged || old.is_some_and(|o| layout.entry_value(i, o) != value) {
                txn.put(entry.clone(), value).map_err(kv_error)?;
                self.name(&i.layout, &entry, row, false)?;
                self.work.entries += 1;
            }
        }
        self.note(layout, row)?;
        self.deleted.remove(key.as_slice());
        match old {
            Some(old) if same_key && !info.referenced_changes(old, row) => {
                txn.put_same_key(key.clone(), layout.row_value(row))
            }
            _ => txn.put(key.clone(), layout.row_value(row)),
        }
        .map_err(kv_error)?;
        self.name(&layout.rows, &key, row, true)
    }

    /// Foreign keys of a new row; with `old`, only those whose columns changed. A reference that
    /// is missing now may come later in the statement.
    fn check_references(
        &mut self,
        info: &Arc<TableInfo>,
        row: &Row,
        old: Option<&Row>,
    ) -> SqlResult<()> {
        for (n, (fk, parent)) in info.references.iter().enumerate() {
            if let Some(old) = old
                && !changed(info.table(), &fk.columns, old, row)
            {
                continue;
            }
            if !reference_exists(&self.ctx, info.table(), fk, parent, row)? {
                self.later.push(Later::Reference(info.clone(), n, row.clone()));
            }
        }
        Ok(())
    }

    /// Deletes rows, and then does what others declared for that.
    pub fn delete(&mut self, info: &Arc<TableInfo>, rows: &[(Bytes, Row)]) -> SqlResult<()> {
        if info.fate(&self.ctx)?.is_family() {
            self.erase_rows(info, rows)?;
            return self.act();
        }
        for part in rows.chunks(self.ctx.txn.batch_max()) {
            if part.len() > 1 {
                let all: Vec<_> = part.iter().map(|(key, row)| (info.clone(), key, row)).collect();
                self.ask_deletes(&all)?;
            }
            for (key, row) in part {
                if !self.deleted.insert(key.clone()) {
                    continue;
                }
                match self.delete_one(info, key, row) {
                    // What stands in the way may be about to go with a row before this one.
                    Err(e)
                        if e.state() == SqlState::FOREIGN_KEY_VIOLATION
                            && !self.actions.is_empty() =>
                    {
                        self.act()?;
                        self.delete_one(info, key, row)?;
                    }
                    other => other?,
                }
            }
        }
        self.act()
    }

    /// Asks ahead what deleting rows will ask.
    fn ask_deletes(&mut self, rows: &[(Arc<TableInfo>, &Bytes, &Row)]) -> SqlResult<()> {
        let mut tables: Vec<u32> = Vec::new();
        let mut single = Vec::with_capacity(rows.len());
        for (info, key, row) in rows {
            // Families are not looked into.
            if info.fate(&self.ctx)?.is_family() {
                continue;
            }
            single.push((info, *key, *row));
            let referring = info.referenced_by.iter().map(|(t, _)| t.id);
            for id in referring.chain(info.children.iter().map(|t| t.id)) {
                if !tables.contains(&id) {
                    tables.push(id);
                }
            }
        }
        // Before the questions: this may lock the tables' shapes.
        let infos: HashMap<u32, Arc<TableInfo>> =
            tables.into_iter().map(|id| Ok((id, self.info(id)?))).collect::<SqlResult<_>>()?;
        ahead::of_deletes(&self.ctx, &single, &|id| infos.get(&id).cloned())
    }

    /// Asks ahead what the next actions will ask; how many they are.
    fn ask_actions(&mut self) -> SqlResult<usize> {
        let count = self.actions.len().min(self.ctx.txn.batch_max());
        if count < 2 {
            return Ok(count);
        }
        let actions: Vec<Action> = self.actions.iter().take(count).cloned().collect();
        // After the first of them that sets something, rows are looked at again.
        let updates = self.stale || actions.iter().any(|a| matches!(a, Action::Set(..)));
        let keys: Vec<(Arc<TableInfo>, Bytes)> = actions
            .iter()
            .filter(|_| updates)
            .filter_map(|action| match action {
                Action::Delete(info, key, _) | Action::Set(info, key, _) => {
                    Some((info.clone(), key.clone()))
                }
                Action::Erase(..) | Action::Follow(..) => None,
            })
            .collect();
        let mut now = ahead::newest_rows(&self.ctx, &keys)?.into_iter();
        let (mut gone, mut set) = (Vec::new(), Vec::new());
        for action in actions {
            match action {
                Action::Delete(info, key, row) if !updates => gone.push((info, key, row)),
                Action::Delete(info, key, _) => {
                    gone.extend(now.next().flatten().map(|row| (info, key, row)));
                }
                Action::Set(info, key, values) => {
                    let Some(old) = now.next().flatten() else { continue };
                    let mut new = old.clone();
                    for (at, value) in values {
                        new[at] = value;
                    }
                    set.push((info, key, old, new));
                }
                Action::Erase(..) | Action::Follow(..) => {}
            }
        }
        if !set.is_empty() {
            let changes: Vec<ahead::Change<'_>> =
                set.iter().map(|(info, key, old, new)| (info, key, old, new)).collect();
            ahead::of_updates(&self.ctx, &changes)?;
        }
        let gone: Vec<_> = gone.iter().map(|(info, key, row)| (info.clone(), key, row)).collect();
        self.ask_deletes(&gone)?;
        // Under the locks that were taken meanwhile.
        ahead::newest_rows(&self.ctx, &keys)?;
        Ok(count)
    }

    /// Does all that referential actions have left to do.
    pub(super) fn act(&mut self) -> SqlResult<()> {
        let mut asked = 0usize;
        while !self.actions.is_empty() {
            if asked == 0 {
                asked = self.ask_actions()?;
            }
            asked -= 1;
            let Some(action) = self.actions.pop_front() else { break };
            self.ctx.check_cancel()?;
            let txn = self.ctx.txn.clone();
            let now = |info: &TableInfo, key: &Bytes| {
                get_row_as(&txn, &info.layout, key.clone(), ReadMode::Latest)
            };
            match action {
                Action::Delete(info, key, row) => {
                    let family = info.fate(&self.ctx)?.is_family();
                    let mut rows = vec![(key, row)];
                    while family && let Some((key, row)) = self.next_deleted(&info) {
                        asked = asked.saturating_sub(1);
                        rows.push((key, row));
                    }
                    if self.stale {
                        let old = std::mem::take(&mut rows);
                        for (key, _) in old {
                            rows.extend(now(&info, &key)?);
                        }
                    }
                    if family {
                        self.erase_rows(&info, &rows)?;
                        continue;
                    }
                    for (key, row) in &rows {
                        self.delete_one(&info, key, row)?;
                    }
                }
                Action::Set(info, key, values) => {
                    if self.deleted.contains(&key) {
                        continue;
                    }
                    let Some((key, old)) = now(&info, &key)? else { continue };
                    let mut new = old.clone();
                    for (at, value) in values {
                        new[at] = value;
                    }
                    self.stale = true;
                    self.update_all(&info, vec![(key, old, new)])?;
                }
                Action::Erase(info, heads) => self.erase_under(&info, heads)?,
                Action::Follow(info, fk, values) => self.delete_following(&info, &fk, &values)?,
            }
        }
        Ok(())
    }

    /// An action for later.
    pub(super) fn leave(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// Whether a row is or will be deleted in this statement, as far as it was named one by one.
    pub(super) fn is_deleted(&self, key: &Bytes) -> bool {
        self.deleted.contains(key)
    }

    /// Deletes rows in which nothing lies, one by one.
    pub(super) fn delete_each(
        &mut self,
        info: &Arc<TableInfo>,
        rows: &[(Bytes, Row)],
    ) -> SqlResult<()> {
        if rows.len() > 1 {
            let all: Vec<_> = rows.iter().map(|(key, row)| (info.clone(), key, row)).collect();
            self.ask_deletes(&all)?;
        }
        rows.iter().try_for_each(|(key, row)| self.delete_one(info, key, row))
    }

    /// The row of the next action, if it deletes one of this table too.
    fn next_deleted(&mut self, info: &TableInfo) -> Option<(Bytes, Row)> {
        match self.actions.front() {
            Some(Action::Delete(next, ..)) if next.table().id == info.table().id => {}
            _ => return None,
        }
        match self.actions.pop_front() {
            Some(Action::Delete(_, key, row)) => Some((key, row)),
            _ => None,
        }
    }

    /// Rows that wait for an action may not be any more what they were.
    pub(super) fn is_stale(&mut self) {
        self.stale = true;
    }

    /// A question for the end of the statement.
    pub(super) fn ask_later(&mut self, later: Later) {
        self.later.push(later);
    }

    pub(super) fn delete_later(&mut self, info: &Arc<TableInfo>, key: Bytes, row: Row) {
        if self.deleted.insert(key.clone()) {
            self.actions.push_back(Action::Delete(info.clone(), key, row));
        }
    }

    fn delete_one(&mut self, info: &Arc<TableInfo>, key: &Bytes, row: &Row) -> SqlResult<()> {
        self.ctx.check_cancel()?;
        let txn = &self.ctx.txn;
        txn.delete(key.clone()).map_err(kv_error)?;
        for i in info.layout.kept_indexes() {
            let Some(entry) = i.entry_key(row)? else { continue };
            txn.delete(entry).map_err(kv_error)?;
            self.work.entries += 1;
        }
        self.note(&info.layout, row)?;
        self.tally.add(info.table(), Delta::deleted(1));
        for (child, fk) in &info.referenced_by {
            self.referenced_gone(info, row, None, child, fk, fk.on_delete)?;
        }
        for child in &info.children {
            self.children_of_gone(info, row, child)?;
        }
        Ok(())
    }

    fn children_of_gone(
        &mut self,
        info: &Arc<TableInfo>,
        row: &Row,
        child: &Arc<Table>,
    ) -> SqlResult<()> {
        let on_delete = child.interleave.as_ref().map(|i| i.on_delete).unwrap_or_default();
        match on_delete {
            RefAction::Cascade => {
                let child = self.info(child.id)?;
                let rows = self.child_rows(&child, info, row, usize::MAX)?;
                for (k, r) in rows {
                    self.delete_later(&child, k, r);
                }
            }
            RefAction::Restrict => {
                let c = self.info(child.id)?;
                if !self.child_rows(&c, info, row, 1)?.is_empty() {
                    return Err(still_has_children(&self.ctx, info.table(), Some(row), child));
                }
            }
            _ => self.later.push(Later::Children(info.clone(), row.clone(), child.clone())),
        }
        Ok(())
    }

    /// Rows of `child` inside the row of its parent.
    pub(super) fn child_rows(
        &self,
        child: &TableInfo,
        parent: &TableInfo,
        parent_row: &Row,
        limit: usize,
    ) -> SqlResult<Vec<(Bytes, Row)>> {
        let values: Vec<Datum> =
            parent.layout.rows.columns().iter().map(|c| parent_row[c.ordinal].clone()).collect();
        let span = child.layout.rows.prefix_span(&values)?;
        let mut scan =
            TableScan::new(self.ctx.txn.clone(), child.layout.clone(), vec![span], None, false)
                .reading(ReadMode::Latest);
        let mut out = Vec::new();
        while out.len() < limit
            && let Some(found) = scan.next_row()?
        {
            out.push(found);
        }
        Ok(out)
    }

    /// A referenced key is gone (`new` is `None`) or has changed.
    fn referenced_gone(
        &mut self,
        info: &Arc<TableInfo>,
        old: &Row,
        new: Option<&Row>,
        child: &Arc<Table>,
        fk: &ForeignKey,
        action: RefAction,
    ) -> SqlResult<()> {
        let parent = info.table();
        let values: Vec<Datum> = fk
            .parent_columns
            .iter()
            .map(|c| parent.ordinal(*c).map_or(Datum::Null, |o| old[o].clone()))
            .collect();
        if values.iter().any(Datum::is_null) {
            return Ok(());
        }
        if action == RefAction::NoAction {
            let later = Later::Referenced(info.clone(), old.clone(), child.id, fk.clone());
            self.later.push(later);
            return Ok(());
        }
        let child = self.info(child.id)?;
        if action == RefAction::Cascade && new.is_none() {
            return self.follow_later(&child, fk, values);
        }
        let limit = if action == RefAction::Restrict { 1 } else { usize::MAX };
        let found = rows_with(&self.ctx, &child.layout, &fk.columns, &values, limit)?;
        for (key, _) in found {
            if self.deleted.contains(&key) {
                continue;
            }
            match action {
                RefAction::Restrict => {
                    return Err(still_referenced(&self.ctx, parent, old, child.table(), fk));
                }
                _ => self.set_later(parent, new, (&child, key), fk, action)?,
            }
        }
        if action == RefAction::SetDefault {
            // The default may be the very key that is gone.
            let child = child.table().id;
            self.later.push(Later::Referenced(info.clone(), old.clone(), child, fk.clone()));
        }
        Ok(())
    }

    /// A row that refers to a key which is gone or has become that of `new` gets other values.
    pub(super) fn set_later(
        &mut self,
        parent: &Table,
        new: Option<&Row>,
        (child, key): (&Arc<TableInfo>, Bytes),
        fk: &ForeignKey,
        action: RefAction,
    ) -> SqlResult<()> {
        let mut values = Vec::with_capacity(fk.columns.len());
        let is_set =
            |c: &u32| new.is_some() || fk.set_on_delete.is_empty() || fk.set_on_delete.contains(c);
        for (n, c) in fk.columns.iter().enumerate().filter(|(_, c)| is_set(c)) {
            let at = child.table().ordinal(*c).unwrap_or_default();
            let value = match (action, new) {
                (RefAction::Cascade, Some(new)) => {
                    let o = parent.ordinal(fk.parent_columns[n]).unwrap_or_default();
                    let (from, to) = (&parent.columns[o].ty, &child.table().columns[at].ty);
                    crate::dml::assign(&new[o], from, to, &self.ctx.eval)?
                }
                (RefAction::SetDefault, _) => child.filler.default(&self.ctx, at)?,
                _ => Datum::Null,
            };
            values.push((at, value));
        }
        self.actions.push_back(Action::Set(child.clone(), key, values));
        Ok(())
    }

    /// Replaces rows: (key, old row, new row). First everything that changes its place goes, then
    /// it comes back, so that rows may swap keys.
    pub fn update(
        &mut self,
        info: &Arc<TableInfo>,
        changes: Vec<(Bytes, Row, Row)>,
    ) -> SqlResult<Vec<Row>> {
        let rows = self.update_all(info, changes)?;
        self.act()?;
        Ok(rows)
    }

    fn update_all(
        &mut self,
        info: &Arc<TableInfo>,
        changes: Vec<(Bytes, Row, Row)>,
    ) -> SqlResult<Vec<Row>> {
        let mut ready = Vec::with_capacity(changes.len());
        let mut moving = Vec::new();
        let mut left = changes.into_iter();
        loop {
            let part = left.by_ref().take(self.ctx.txn.batch_max()).collect();
            if !self.remove_changing(info, part, &mut ready, &mut moving)? {
                break;
            }
        }
        let many = ready.len() > self.ctx.txn.batch_max();
        let out = self.put_changed(info, ready, many)?;
        self.tally.add(info.table(), Delta::updated(out.len() as u64));
        // All that lies in one table, before what lies below it.
        moving.sort_by_key(|one| one.depth());
        for mut one in moving {
            let child = one.info.clone();
            while let Some(mut rows) = one.next_part(&self.ctx)? {
                for (.., new) in &mut rows {
                    child.filler.complete(&self.ctx, new)?;
                }
                let count = self.put_changed(&child, rows, true)?.len();
                self.tally.add(child.table(), Delta::updated(count as u64));
                self.lock_tables_instead()?;
            }
        }
        Ok(out)
    }

    /// The second half of replacing rows: they come back. Asks ahead for all of it `again`, if the
    /// first half did not, or so much that it was forgotten.
    fn put_changed(
        &mut self,
        info: &Arc<TableInfo>,
        mut ready: Vec<(Bytes, Row, Row)>,
        again: bool,
    ) -> SqlResult<Vec<Row>> {
        let mut out = Vec::with_capacity(ready.len());
        let most = self.ctx.txn.batch_max();
        for n in 0..ready.len() {
            // What was asked for the first rows is forgotten, if there were many.
            if n.is_multiple_of(most) && most > 1 && ready.len() > 1 {
                let part = &ready[n..ready.len().min(n + most)];
                self.ask_updates(info, part, again)?;
            }
            let (key, old, new) = std::mem::take(&mut ready[n]);
            self.ctx.check_cancel()?;
            self.put_new(info, &new, Some(&old))?;
            if info.layout.row_key(&new)?[..] != key[..] {
                self.check_parent(info, &new)?;
            }
            self.check_references(info, &new, Some(&old))?;
            for (child, fk) in &info.referenced_by {
                if changed(info.table(), &fk.parent_columns, &old, &new) {
                    self.referenced_gone(info, &old, Some(&new), child, fk, fk.on_update)?;
                }
            }
            out.push(new);
        }
        Ok(out)
    }

    /// Asks ahead what the second half of replacing rows will ask: all of it `again`, and what
    /// refers to keys that change.
    fn ask_updates(
        &mut self,
        info: &Arc<TableInfo>,
        part: &[(Bytes, Row, Row)],
        again: bool,
    ) -> SqlResult<()> {
        let mut infos = HashMap::default();
        for (child, _) in &info.referenced_by {
            infos.insert(child.id, self.info(child.id)?);
        }
        let all: Vec<ahead::Change<'_>> =
            part.iter().map(|(key, old, new)| (info, key, old, new)).collect();
        if again {
            ahead::of_updates(&self.ctx, &all)?;
        }
        ahead::of_changed_keys(&self.ctx, &all, &infos)
    }

    /// The first half of replacing rows: they are made ready, and what changes its place goes.
    /// `false` if there were none.
    fn remove_changing(
        &mut self,
        info: &Arc<TableInfo>,
        mut changes: Vec<(Bytes, Row, Row)>,
        ready: &mut Vec<(Bytes, Row, Row)>,
        moving: &mut Vec<Moving>,
    ) -> SqlResult<bool> {
        let layout = &info.layout;
        let mut bad = None;
        for (n, (_, _, new)) in changes.iter_mut().enumerate() {
            if let Err(e) = info.filler.complete(&self.ctx, new) {
                bad = Some((n, e));
                break;
            }
        }
        let bad = bad.map(|(n, e)| {
            changes.truncate(n);
            e
        });
        if changes.len() > 1 {
            let all: Vec<ahead::Change<'_>> =
                changes.iter().map(|(key, old, new)| (info, key, old, new)).collect();
            ahead::of_updates(&self.ctx, &all)?;
        }
        let some = !changes.is_empty();
        let mut heads = Vec::new();
        for (key, old, new) in changes {
            let new_key = layout.row_key(&new)?;
            self.note(layout, &old)?;
            for i in layout.kept_indexes() {
                let Some(entry) = i.entry_key(&old)? else { continue };
                if i.entry_key(&new)?.as_ref() != Some(&entry) {
                    self.ctx.txn.delete(entry).map_err(kv_error)?;
                    self.work.entries += 1;
                }
            }
            if new_key[..] != key[..] {
                self.ctx.txn.delete(key.clone()).map_err(kv_error)?;
                if layout.has_children {
                    heads.push((key.clone(), old.clone(), new.clone()));
                }
            }
            ready.push((key, old, new));
        }
        if !heads.is_empty() {
            self.take_families(info, &heads, moving)?;
        }
        bad.map_or(Ok(some), Err)
    }

    /// Answers what was left for the end of the statement; what waits for that of the block is left
    /// to it.
    pub fn finish(&mut self) -> SqlResult<()> {
        if let Some(one) = self.ctx.as_one() {
            one.leave(&mut self.later);
        }
        if let Some(block) = self.ctx.block.clone() {
            block.deferred.take(&mut self.later)?;
        }
        self.answer_all()?;
        self.lock_tables_instead()
    }

    /// The tables that were written to.
    pub(super) fn infos(&self) -> impl Iterator<Item = &Arc<TableInfo>> {
        self.infos.values()
    }

    /// Rows that were deleted will not be met again.
    pub(super) fn forget_deleted(&mut self) {
        debug_assert!(self.actions.is_empty(), "nobody refers to them");
        self.deleted.clear();
    }
}

pub(super) fn changed(t: &Table, columns: &[u32], old: &Row, new: &Row) -> bool {
    columns.iter().any(|c| {
        t.ordinal(*c).is_some_and(|o| match (old[o].is_null(), new[o].is_null()) {
            (true, true) => false,
            (false, false) => !old[o].cmp_sql(&new[o]).is_eq(),
            _ => true,
        })
    })
}
