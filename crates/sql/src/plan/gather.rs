//! Families with siblings in one pass: all rows that a row of the first table leads to are gathered
//! while its family is scanned, and then joined in memory.
//!
//! ```text
//!   SELECT c.name, n.text, (SELECT json_agg(o.o) FROM orders o WHERE o.id = c.id)
//!   FROM customers c LEFT JOIN notes n ON n.id = c.id WHERE c.id BETWEEN 1 AND 100
//!
//!   keys, one scan        gathered                      handed out, when /c/8 comes
//!   /c/7                  c7 | orders      | notes      c7 n1, c7 n2, with the value of o1 o2
//!   /c/7/#/o/1            c7 | o1          |
//!   /c/7/#/o/2            c7 | o1 o2       |
//!   /c/7/#/n/1            c7 | o1 o2       | n1 ..
//! ```
//! What is joined, asked (EXISTS) and computed for a row is what the steps say, as nested loops
//! would have it ([`super::joined`]); only the rows come from memory. A family of many bytes is not
//! gathered: its rows are looked up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use braid_catalog::{Catalog, kv_error};
use braid_keys::family_end;
use braid_kv::{KeySpan, ScanOptions, TxnScan};
use braid_scalar::{Bound, Node};
use braid_types::{Datum, SqlResult};
use bytes::Bytes;

use super::family::{is_inside, joined};
use super::joined::{ended, passes};
use super::rows::RowSource;
use super::select::{Parts, Step};
use super::semi::Semi;
use super::value::Computing;
use crate::session::Context;
use braid_planner::Same;
use braid_planner::facts::Facts;
use braid_rows::TableLayout;
use braid_rows::scan::Lookahead;
use braid_rows::{Row, row_memory};

/// Bytes of one family that are gathered.
const FAMILY_BYTES: usize = 1 << 20;
/// Rows that nobody wants which are passed over rather than to look up once more.
const PASSED: f64 = 32.0;

/// Which steps are answered by one pass, from the first one on.
pub(super) struct Gather {
    /// The last of them.
    pub(super) last: usize,
    /// What is gathered, each table once.
    tables: Vec<Gathered>,
    /// For each step behind the first and those within it, by its offset in the joined row: which
    /// of the tables, and the offset of the step in whose row it lies.
    of: BTreeMap<usize, (usize, usize)>,
}

struct Gathered {
    layout: Arc<TableLayout>,
    wanted: Option<Vec<bool>>,
    /// What is asked of its rows alone: others need not be gathered.
    filter: Vec<Bound>,
    /// Nothing else is asked, and only whether the first table's row has one: the first one tells,
    /// and nobody looks at it.
    first_tells: bool,
}

impl Gather {
    /// Finds out whether the first steps can be one pass, and whether that is less work than to
    /// look up; `passes` are those of chains, which need no memory.
    pub(super) fn plan(
        ctx: &Context,
        steps: &[Step],
        passes: &[usize],
        same: Same<'_>,
    ) -> Option<Gather> {
        let is_head =
            |head: &&Step| head.access.index.is_none() && !head.left && head.made.is_none();
        let head = steps.first().filter(is_head)?;
        let mut out = Gather { last: 0, tables: Vec::new(), of: BTreeMap::new() };
        for n in 1..steps.len() {
            let before: Vec<&Step> =
                steps[..n].iter().filter(|s| s.semi.is_none() && s.value.is_none()).collect();
            let mut found = Vec::new();
            if !anchored(ctx, &steps[n], (&before, same), &mut found) {
                break;
            }
            found.iter().for_each(|(step, anchor)| out.add(step, *anchor));
            out.last = n;
        }
        out.note_filters(steps);
        let more =
            out.last > passes[0] && out.tables.iter().all(|t| t.layout.table.id != head.id());
        (more && out.is_cheap(ctx, steps)).then_some(out)
    }

    fn add(&mut self, step: &Step, anchor: usize) {
        let of = |known: &Gathered| known.layout.table.id == step.layout.table.id;
        let table = self.tables.iter().position(of).unwrap_or_else(|| {
            let (layout, wanted) = (step.layout.clone(), step.wanted.clone());
            self.tables.push(Gathered { layout, wanted, filter: Vec::new(), first_tells: false });
            self.tables.len() - 1
        });
        let known = &mut self.tables[table].wanted;
        *known = match (known.take(), &step.wanted) {
            (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| a | b).collect()),
            _ => None,
        };
        self.of.insert(step.offset, (table, anchor));
    }

    /// Finds out what is asked of rows alone, of tables that one step reads.
    fn note_filters(&mut self, steps: &[Step]) {
        let mut all = Vec::new();
        steps.iter().for_each(|step| step.with_nested(&mut all));
        for (n, table) in self.tables.iter_mut().enumerate() {
            let uses = |step: &&&Step| self.of.get(&step.offset).is_some_and(|(of, _)| *of == n);
            if let [step] = all.iter().filter(uses).collect::<Vec<_>>().as_slice() {
                table.filter = step.own_filter();
                let says_all = table.filter.len() == step.access.rest.len();
                let in_head = self.of[&step.offset].1 == 0;
                table.first_tells = step.semi.is_some() && says_all && in_head;
            }
        }
    }

    /// Whether little is read that nobody wants.
    fn is_cheap(&self, ctx: &Context, steps: &[Step]) -> bool {
        let rows = |layout: &Arc<TableLayout>| Facts::new(ctx.db.clone(), layout.clone()).rows();
        let heads = rows(&steps[0].layout).max(1.0);
        // The first rows may be enough for these.
        let few = |step: &&Step| step.semi.is_some() || step.in_order.is_some();
        let asked = steps[1..=self.last].iter().filter(few);
        if asked.map(|step| rows(&step.layout)).any(|all| all / heads > PASSED) {
            return false;
        }
        let catalog = &ctx.catalog;
        let mut passed = 0.0;
        for t in catalog.subtree(&steps[0].layout.table).iter() {
            let Ok(layout) = TableLayout::new(catalog, t).map(Arc::new) else { return false };
            let wanted = self.tables.iter().any(|known| known.layout.table.id == t.id);
            let inside = t.indexes.iter().filter(|i| i.interleave_in.is_some()).count();
            let is_head = t.id == steps[0].id();
            let times = inside + usize::from(!wanted && !is_head);
            if times > 0 {
                passed += rows(&layout) * times as f64;
            }
        }
        passed / heads <= PASSED * self.of.len() as f64
    }
}

impl Step {
    fn id(&self) -> u32 {
        self.layout.table.id
    }

    /// It, and all that are within it.
    pub(super) fn with_nested<'s>(&'s self, out: &mut Vec<&'s Step>) {
        out.push(self);
        self.nested.iter().for_each(|inner| inner.with_nested(out));
    }

    /// The conditions on its columns alone that cannot fail, over a row of its table.
    fn own_filter(&self) -> Vec<Bound> {
        let own = self.offset..self.offset + self.layout.table.columns.len();
        let is_plain = |e: &Bound| match e.node() {
            Node::Const(_) | Node::Param(_) => true,
            Node::Column(at) => own.contains(at),
            _ => false,
        };
        let is_own = |e: &&Bound| match e.node() {
            Node::Compare(_, a, b) => is_plain(a) && is_plain(b),
            Node::InList(a, list, _) => is_plain(a) && list.iter().all(is_plain),
            Node::IsNull(a, _) => is_plain(a),
            _ => false,
        };
        let conditions = self.access.rest.iter().filter(is_own);
        conditions.map(|e| at_own_place(e, self.offset)).collect()
    }
}

/// An expression over the columns from `offset` on, as one over columns from the first on.
pub(super) fn at_own_place(e: &Bound, offset: usize) -> Bound {
    match e.as_column() {
        Some(at) => Bound::column(at - offset, e.ty().clone()),
        None => e.map_children(&mut |part| at_own_place(part, offset)),
    }
}

/// Finds the step in whose row another one lies, and the same for those within it, with its offset;
/// `false` if one lies in none. `before` are the steps whose rows are known then.
fn anchored<'s>(
    ctx: &Context,
    step: &'s Step,
    (before, same): (&[&'s Step], Same<'_>),
    found: &mut Vec<(&'s Step, usize)>,
) -> bool {
    let Some(anchor) = before.iter().find(|outer| lies_in(outer, step, &ctx.catalog, same)) else {
        return false;
    };
    found.push((step, anchor.offset));
    let inside = [before, &[step]].concat();
    step.nested.iter().all(|inner| anchored(ctx, inner, (&inside, same), found))
}

/// Whether a step wants exactly the rows that lie inside of a row of another one.
fn lies_in(outer: &Step, inner: &Step, catalog: &Catalog, same: Same<'_>) -> bool {
    let key = outer.layout.rows.columns();
    let found = (!outer.left).then_some(&outer.access);
    let below = |t: &Arc<braid_catalog::Table>| catalog.is_self_or_ancestor(outer.id(), t);
    outer.access.index.is_none()
        && outer.made.is_none()
        && inner.made.is_none()
        && inner.id() != outer.id()
        && below(&inner.layout.table)
        && inner.access.is_exactly(key.iter().map(|k| outer.offset + k.ordinal), found, same)
}

/// A row of the first table with what was gathered for it.
struct Head {
    key: Bytes,
    row: Row,
    /// Rows by table, in key order.
    lists: Vec<Vec<(Bytes, Row)>>,
    bytes: usize,
    /// It is too much: rows are looked up.
    is_large: bool,
}

impl Head {
    /// Takes in a row of the family. `row`: where it may be decoded.
    fn take(
        &mut self,
        ctx: &Context,
        gather: &Gather,
        (key, value): (&[u8], &[u8]),
        row: &mut Row,
    ) -> SqlResult<()> {
        for (list, table) in self.lists.iter_mut().zip(&gather.tables) {
            if table.first_tells && !list.is_empty() {
                continue;
            }
            if table.layout.decode_into(key, value, table.wanted.as_deref(), row)? {
                if !passes(&table.filter, row, ctx)? {
                    break;
                }
                if table.first_tells {
                    list.push((Bytes::new(), Row::new()));
                    break;
                }
                self.bytes += key.len() + row_memory(row);
                list.push((Bytes::copy_from_slice(key), std::mem::take(row)));
                break;
            }
        }
        if self.bytes > FAMILY_BYTES {
            self.is_large = true;
            self.lists.iter_mut().for_each(|list| *list = Vec::new());
        }
        Ok(())
    }

    /// Where the rows of a table lie in its list that are inside of a row.
    fn inside(&self, table: usize, key: &[u8]) -> (usize, usize) {
        let (list, end) = (&self.lists[table], family_end(key));
        let from = list.partition_point(|(k, _)| k[..] <= *key);
        let to = list.partition_point(|(k, _)| k[..] < end[..]);
        (from, to.max(from))
    }

    /// A row of a step with the values of those within it. `places` are the rows that it lies in,
    /// and its own: the step's offset and the key.
    fn values(
        &self,
        (ctx, gather): (&Context, &Gather),
        places: &mut Vec<(usize, Bytes)>,
        step: &Step,
        mut row: Row,
    ) -> SqlResult<Row> {
        for inner in &step.nested {
            let Some(value) = &inner.value else { continue };
            let mut computing = value.start(ctx, false)?;
            let mut add = |places: &mut Vec<(usize, Bytes)>, key: &Bytes, found: Row| {
                if !passes(&inner.access.rest, &found, ctx)? {
                    return Ok(());
                }
                places.push((inner.offset, key.clone()));
                let found = self.values((ctx, gather), places, inner, found)?;
                places.pop();
                value.add(&mut computing, &found, &ctx.eval).map(|_| ())
            };
            if self.is_large {
                let (layout, wanted) = (&inner.layout, inner.wanted.clone());
                let mut rows = RowSource::lookup(ctx, layout, &inner.access, wanted, false, &row)?;
                while let Some((key, own)) = rows.next_row(ctx)? {
                    ctx.check_cancel()?;
                    add(places, &key, joined(&row, own))?;
                }
            } else {
                let (table, anchor) = gather.of[&inner.offset];
                let (from, to) = match places.iter().find(|(offset, _)| *offset == anchor) {
                    Some((_, key)) => self.inside(table, key),
                    None if anchor == 0 => (0, self.lists[table].len()),
                    None => (0, 0),
                };
                for (key, own) in &self.lists[table][from..to] {
                    add(places, key, joined(&row, own.iter().cloned()))?;
                }
            }
            row.extend(vec![Datum::Null; inner.inner_width()]);
            row.push(value.finish(computing, &ctx.eval)?);
        }
        Ok(row)
    }
}

/// Rows of a step for one row of those before.
enum Source {
    /// From here to there in the list of the step's table.
    List(usize, usize),
    Lookup(Box<RowSource>),
}

/// A step that goes through its rows.
struct Level {
    step: usize,
    source: Source,
    outer: Row,
    /// Of the row that it is at.
    key: Bytes,
    matched: bool,
    value: Option<Computing>,
}

/// One pass over families.
pub(super) struct GatherScan {
    parts: Arc<Parts>,
    spans: std::vec::IntoIter<KeySpan>,
    ahead: Lookahead,
    excess: Vec<(usize, Vec<Datum>)>,
    scan: Option<TxnScan>,
    /// Being gathered.
    next: Option<Head>,
    /// Being handed out.
    head: Option<Head>,
    levels: Vec<Level>,
    /// A row that was decoded and is not wanted: its place is used again.
    own: Row,
    /// Whole already.
    ready: VecDeque<Row>,
}

impl GatherScan {
    pub(super) fn open(ctx: &Context, parts: Arc<Parts>) -> SqlResult<GatherScan> {
        let step = &parts.steps[0];
        let spans = step.access.spans(&step.layout, &[], &ctx.eval)?;
        let excess = step.access.excess(&step.layout, &[], &ctx.eval)?;
        Ok(GatherScan {
            parts,
            spans: spans.into_iter(),
            ahead: Lookahead::new(1),
            excess,
            scan: None,
            next: None,
            head: None,
            levels: Vec::new(),
            own: Row::new(),
            ready: VecDeque::new(),
        })
    }

    /// The next row of all steps of the pass.
    pub(super) fn next_row(&mut self, ctx: &Context, gather: &Gather) -> SqlResult<Option<Row>> {
        loop {
            if let Some(row) = self.ready.pop_front() {
                return Ok(Some(row));
            }
            if self.head.is_some() {
                if let Some(row) = self.go_on(ctx, gather)? {
                    return Ok(Some(row));
                }
                self.head = None;
            }
            if !self.gather(ctx, gather)? {
                return Ok(None);
            }
        }
    }

    /// Gathers one more family; `false` at the end.
    fn gather(&mut self, ctx: &Context, gather: &Gather) -> SqlResult<bool> {
        let parts = self.parts.clone();
        let first = &parts.steps[0];
        loop {
            ctx.check_cancel()?;
            let Some(scan) = &mut self.scan else {
                let last = self.next.take();
                if self.begin_with(ctx, gather, last)? {
                    return Ok(true);
                }
                if !self.open_next(ctx, gather)? {
                    return Ok(false);
                }
                continue;
            };
            let Some((key, value)) = scan.next_row().map_err(kv_error)? else {
                self.scan = None;
                continue;
            };
            if let Some(head) = self.next.as_mut().filter(|head| is_inside(key, &head.key)) {
                head.take(ctx, gather, (key, value), &mut self.own)?;
                if head.is_large {
                    let key = head.key.clone();
                    self.pass(&key)?;
                }
                continue;
            }
            let wanted = if self.excess.is_empty() { first.wanted.as_deref() } else { None };
            let Some(row) = first.layout.decode(key, value, wanted)? else {
                // Its parent is missing, where only the layout was declared.
                continue;
            };
            let key = Bytes::copy_from_slice(key);
            let before = self.next.take();
            if self.admits(ctx, first, &row)? {
                let lists = gather.tables.iter().map(|_| Vec::new()).collect();
                self.next = Some(Head { key, row, lists, bytes: 0, is_large: false });
            } else {
                self.pass(&key)?;
            }
            if self.begin_with(ctx, gather, before)? {
                return Ok(true);
            }
        }
    }

    fn admits(&self, ctx: &Context, first: &Step, row: &Row) -> SqlResult<bool> {
        let (access, layout) = (&first.access, &first.layout);
        let fits = self.excess.is_empty()
            || access.admits(&self.excess, layout, row, &Row::new(), &ctx.eval)?;
        Ok(fits && passes(&access.rest, row, ctx)? && passes(&first.after, row, ctx)?)
    }

    /// Leaves the rest of a family alone.
    fn pass(&mut self, key: &[u8]) -> SqlResult<()> {
        match &mut self.scan {
            Some(scan) => scan.seek(&family_end(key)).map_err(kv_error),
            None => Ok(()),
        }
    }

    /// Opens the scan of the next span; `false` if there is none.
    fn open_next(&mut self, ctx: &Context, gather: &Gather) -> SqlResult<bool> {
        let head = &self.parts.steps[0].layout;
        let layouts = || gather.tables.iter().map(|t| &t.layout).chain([head]);
        let classes = layouts().fold(0, |mask, layout| mask | layout.rows.class_mask());
        let options = ScanOptions { classes, mode: ctx.reading, ..ScanOptions::default() };
        let waiting = self.spans.as_slice();
        if !waiting.is_empty() {
            let ask = self.ahead.next(waiting.len(), ctx.txn.batch_max());
            if ask > 1 {
                ctx.txn.scan_ahead(&waiting[..ask], &options).map_err(kv_error)?;
            }
        }
        let Some(span) = self.spans.next() else { return Ok(false) };
        for layout in layouts() {
            layout.used_by(&ctx.txn, ctx.reading)?;
        }
        self.scan = Some(ctx.txn.scan(span, options).map_err(kv_error)?);
        Ok(true)
    }

    /// Begins to hand out a family; `false` if there is none.
    fn begin_with(
        &mut self,
        ctx: &Context,
        gather: &Gather,
        head: Option<Head>,
    ) -> SqlResult<bool> {
        let Some(mut head) = head else { return Ok(false) };
        let row = std::mem::take(&mut head.row);
        self.head = Some(head);
        self.descend(ctx, gather, 0, row)?;
        Ok(true)
    }

    /// A row of the steps up to this one goes to the next.
    fn descend(&mut self, ctx: &Context, gather: &Gather, at: usize, row: Row) -> SqlResult<()> {
        if at == gather.last {
            self.ready.push_back(row);
            return Ok(());
        }
        let step = at + 1;
        let s = &self.parts.steps[step];
        let head = self.head.as_ref().expect("a family is handed out");
        let table = gather.of[&s.offset].0;
        if !head.is_large && gather.tables[table].first_tells {
            let matched = !head.lists[table].is_empty();
            return match told(s, row, matched, ctx)? {
                Some(row) => self.descend(ctx, gather, step, row),
                None => Ok(()),
            };
        }
        let source = if head.is_large {
            let (layout, wanted) = (&s.layout, s.wanted.clone());
            let rows = RowSource::lookup(ctx, layout, &s.access, wanted, false, &row)?;
            Source::Lookup(Box::new(rows))
        } else {
            let anchor = gather.of[&s.offset].1;
            let of = |level: &&Level| self.parts.steps[level.step].offset == anchor;
            let (from, to) = match self.levels.iter().find(of) {
                None if anchor == 0 => (0, head.lists[table].len()),
                // A LEFT JOIN has found nothing there.
                None => (0, 0),
                Some(level) => head.inside(table, &level.key),
            };
            Source::List(from, to)
        };
        let value = s.value.as_ref().map(|value| value.start(ctx, false)).transpose()?;
        let key = Bytes::new();
        self.levels.push(Level { step, source, outer: row, key, matched: false, value });
        Ok(())
    }

    /// A row of the step that the last level is at, with the values that its value needs.
    fn with_nested(&self, ctx: &Context, gather: &Gather, step: &Step, row: Row) -> SqlResult<Row> {
        if step.nested.is_empty() {
            return Ok(row);
        }
        let head = self.head.as_ref().expect("a family is handed out");
        let place = |level: &Level| (self.parts.steps[level.step].offset, level.key.clone());
        let mut places: Vec<(usize, Bytes)> = self.levels.iter().map(place).collect();
        head.values((ctx, gather), &mut places, step, row)
    }

    /// The next row of the family.
    fn go_on(&mut self, ctx: &Context, gather: &Gather) -> SqlResult<Option<Row>> {
        let parts = self.parts.clone();
        while let Some(level) = self.levels.last_mut() {
            ctx.check_cancel()?;
            let at = level.step;
            let step = &parts.steps[at];
            let found = match &mut level.source {
                Source::List(from, to) if *from < *to => {
                    let lists = &self.head.as_ref().expect("a family is handed out").lists;
                    *from += 1;
                    let (key, own) = &lists[gather.of[&step.offset].0][*from - 1];
                    Some((key.clone(), joined(&level.outer, own.iter().cloned())))
                }
                Source::List(..) => None,
                Source::Lookup(rows) => {
                    rows.next_row(ctx)?.map(|(key, own)| (key, joined(&level.outer, own)))
                }
            };
            let row = match found {
                Some((key, row)) => {
                    if !passes(&step.access.rest, &row, ctx)? {
                        continue;
                    }
                    level.key = key;
                    if let Some(value) = &step.value {
                        let row = self.with_nested(ctx, gather, step, row)?;
                        let computing = self.levels.last_mut().and_then(|l| l.value.as_mut());
                        if let Some(computing) = computing {
                            value.add(computing, &row, &ctx.eval)?;
                        }
                        continue;
                    }
                    level.matched = true;
                    match step.semi {
                        None if !passes(&step.after, &row, ctx)? => continue,
                        None => {}
                        // One is enough to know.
                        Some(semi) => {
                            self.levels.pop();
                            if semi == Semi::Absent {
                                continue;
                            }
                        }
                    }
                    row
                }
                None => {
                    let done = self.levels.pop().expect("it is the last");
                    let (steps, end) = (std::slice::from_ref(step), (done.value, done.matched));
                    let Some(row) = ended(steps, done.outer, end, ctx)? else { continue };
                    row
                }
            };
            self.descend(ctx, gather, at, row)?;
            if let Some(row) = self.ready.pop_front() {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

/// What becomes of a row of which it is known whether the step has a row for it.
fn told(step: &Step, mut outer: Row, matched: bool, ctx: &Context) -> SqlResult<Option<Row>> {
    if !matched {
        return ended(std::slice::from_ref(step), outer, (None, false), ctx);
    }
    if step.semi != Some(Semi::Exists) {
        return Ok(None);
    }
    // Its columns mean nothing afterwards.
    outer.resize(outer.len() + step.layout.table.columns.len(), Datum::Null);
    Ok(Some(outer))
}
