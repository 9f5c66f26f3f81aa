//! [`Chain`]: the planned form of one SELECT of ours.

use std::sync::Arc;

use braid_catalog::{Lost, Table, kv_error};
use braid_kv::{KvError, LockMode, Locked, ReadMode, Wait};
use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::aggregate::{Aggregate, State};
use super::build::first_rows;
use super::columnar::{ColumnarRows, OneByOne};
use super::compound::{Keys, Made, Telling};
use super::first_rows::FirstRows;
use super::groups::Groups;
use super::joined::{Joined, passes};
use super::order::Met;
use super::passes::AllPasses;
use super::rows::row_by_key;
use super::select_list::Window;
use super::semi::Semi;
use super::shown::Shown;
use super::stream::SelectStream;
use super::value::Value;
use crate::explain::{Actual, PlanLine};
use crate::general_query::{ColumnInfo, RowStream};
use crate::session::{Context, VecRows};
use braid_planner::Known;
use braid_planner::access::Access;
use braid_planner::facts::Facts;
use braid_planner::share::Estimator;
use braid_rows::Row;
use braid_rows::TableLayout;
use braid_scalar::{Bound, OrderKey, Volatility, can_fail};
use sqlparser::ast::OrderByOptions;

/// One table of the chain.
pub(super) struct Step {
    pub(super) layout: Arc<TableLayout>,
    /// Ordinal of its first column in the joined row.
    pub(super) offset: usize,
    pub(super) access: Access,
    /// LEFT JOIN: a row without a match stays, with NULLs.
    pub(super) left: bool,
    /// It only asks whether there is a row. Its columns mean nothing afterwards.
    pub(super) semi: Option<Semi>,
    /// It gives one value for each row before it, behind its columns, which mean nothing then.
    pub(super) value: Option<Arc<Value>>,
    /// Only some of its rows are wanted for each row before it.
    pub(super) first: Option<Arc<FirstRows>>,
    /// Its rows are those of a query, and by what they are looked up.
    pub(super) made: Option<(Arc<Made>, Option<Keys>)>,
    /// Its keys give the order in which its value takes rows in, or in which its first rows are
    /// wanted, forwards or backwards: the first of them are enough.
    pub(super) in_order: Option<Met>,
    /// What its value needs of each of its rows: steps that give values, one behind the other.
    pub(super) nested: Vec<Step>,
    /// Conditions after the join (of a LEFT JOIN: those of WHERE).
    pub(super) after: Vec<Bound>,
    pub(super) wanted: Option<Vec<bool>>,
    /// Its rows lie inside the row of the step before.
    pub(super) family: bool,
}

/// FOR UPDATE / FOR SHARE.
#[derive(Clone, Copy)]
pub(super) struct Locking {
    pub(super) mode: LockMode,
    pub(super) wait: Wait,
}

impl Locking {
    /// Locks a row of a table; `false` if it is passed over.
    pub(super) fn take(self, ctx: &Context, key: &[u8], table: &Table) -> SqlResult<bool> {
        match ctx.txn.lock(key, self.mode, self.wait) {
            Ok(Locked::Yes) => Ok(true),
            Ok(Locked::Skipped) => Ok(false),
            Err(KvError::LockNotAvailable) => Err(Lost::NotFree
                .error(format!("could not obtain lock on row in relation \"{}\"", table.name))),
            Err(e) => Err(kv_error(e)),
        }
    }
}

/// A sort key over the joined row.
pub(super) struct SortKey {
    pub(super) expr: Bound,
    pub(super) desc: bool,
    pub(super) nulls_first: bool,
}

impl SortKey {
    /// As ORDER BY says: NULLs are larger than all else unless it says where they are.
    pub(super) fn by(expr: Bound, options: &OrderByOptions) -> SortKey {
        let OrderKey { desc, nulls_first } = OrderKey::of(options);
        SortKey { expr, desc, nulls_first }
    }

    /// An order for EXPLAIN, behind a word where there is one.
    pub(super) fn describe(
        order: &[SortKey],
        word: &str,
        names: &dyn Fn(usize) -> String,
    ) -> String {
        let key = |key: &SortKey| {
            let desc = if key.desc { " desc" } else { "" };
            format!("{}{desc}", key.expr.to_sql(names))
        };
        let keys: Vec<String> = order.iter().map(key).collect();
        if keys.is_empty() { String::new() } else { format!("{word}{}", keys.join(", ")) }
    }
}

/// What becomes of the joined rows.
pub(super) enum Output {
    /// One row each.
    Rows(EachRow),
    /// One row in all.
    Aggregates(Totals),
    /// One row for each group.
    Groups(Groups),
}

/// Most columns of a row of which it is found out whether one stands in it twice.
const MOVED_MAX: usize = 32;

/// What is shown of each row.
pub(super) struct EachRow {
    pub(super) exprs: Vec<Bound>,
    /// DISTINCT ON: of rows that come one behind the other and have the same values of these, the
    /// first.
    pub(super) on: Vec<Bound>,
    /// What is computed over all rows, and stands behind their columns.
    pub(super) windows: Vec<Window>,
}

impl EachRow {
    /// All that it computes.
    pub(super) fn all(&self) -> impl Iterator<Item = &Bound> {
        let windows = self.windows.iter().flat_map(Window::exprs);
        self.exprs.iter().chain(&self.on).chain(windows)
    }

    /// Whether each row is shown, whatever the others are.
    pub(super) fn is_plain(&self) -> bool {
        self.on.is_empty() && self.windows.is_empty()
    }

    /// Whether a row is nothing but columns, none of them twice: then their values need not be
    /// copied.
    pub(super) fn are_moved(&self) -> bool {
        let exprs = &self.exprs;
        let once = |(n, e): (usize, &Bound)| {
            e.as_column().is_some_and(|at| exprs[..n].iter().all(|o| o.as_column() != Some(at)))
        };
        exprs.len() <= MOVED_MAX && exprs.iter().enumerate().all(once)
    }

    /// What is shown of a joined row, whose values go along if they are `moved`.
    pub(super) fn show(&self, mut row: Row, moved: bool, ctx: &Context) -> SqlResult<Row> {
        let value = |e: &Bound| match e.as_column().filter(|_| moved) {
            Some(at) => Ok(std::mem::replace(&mut row[at], Datum::Null)),
            None => e.eval(&row, &ctx.eval),
        };
        self.exprs.iter().map(value).collect()
    }
}

impl Output {
    /// Whether what is shown of a row depends on other rows.
    pub(super) fn wants_all(&self) -> bool {
        matches!(self, Output::Rows(out) if !out.is_plain())
    }

    /// Whether there are windows.
    pub(super) fn has_windows(&self) -> bool {
        matches!(self, Output::Rows(out) if !out.windows.is_empty())
    }

    /// Whether rows are shown one by one, as they come.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Output::Rows(out) if out.is_plain())
    }
}

/// Aggregates of all rows, and what is shown of them.
pub(super) struct Totals {
    pub(super) list: Vec<Aggregate>,
    pub(super) shown: Shown,
}

pub(super) struct Parts {
    pub(super) steps: Vec<Step>,
    pub(super) passes: AllPasses,
    /// Conditions without tables (`WHERE false`, `WHERE $1`).
    pub(super) constant: Vec<Bound>,
    pub(super) output: Output,
    /// Sort needed because keys do not give the order.
    pub(super) sort: Vec<SortKey>,
    pub(super) reverse: bool,
    /// min or max along a key: the first row tells.
    pub(super) first_only: bool,
    pub(super) limit: Option<Bound>,
    pub(super) offset: Option<Bound>,
    pub(super) locking: Option<Locking>,
    pub(super) columns: Vec<ColumnInfo>,
}

impl Parts {
    /// What is made of the joined rows, for EXPLAIN.
    fn explain_output(&self) -> Option<PlanLine> {
        let column = |at| self.column_name(at);
        match &self.output {
            Output::Rows(out) => {
                let list = |exprs: Vec<String>| exprs.join(", ");
                let windows: Vec<_> = out.windows.iter().map(|w| w.describe(&column)).collect();
                if !windows.is_empty() {
                    return Some(format!("window: {}", list(windows)).into());
                }
                let on: Vec<_> = out.on.iter().map(|e| e.to_sql(&column)).collect();
                (!on.is_empty()).then(|| format!("distinct on: {}", list(on)).into())
            }
            Output::Aggregates(totals) => {
                let names: Vec<_> = totals.list.iter().map(|a| a.describe(&column)).collect();
                let first = if self.first_only { " (first row of the key)" } else { "" };
                let having = totals.shown.describe_having(&|at| names[at].clone());
                Some(format!("aggregate: {}{first}{having}", names.join(", ")).into())
            }
            Output::Groups(groups) => Some(groups.describe(&column).into()),
        }
    }

    /// The only step, if it finds one row by its key, of which nothing is wanted but to be shown.
    /// Such a statement does most of its work around the row, so that it has a way of its own.
    fn keyed(&self, ctx: &Context) -> Option<&Step> {
        let [step] = self.steps.as_slice() else { return None };
        let plain = self.output.is_plain()
            && self.sort.is_empty()
            && self.locking.is_none()
            && ctx.within.measured.is_none();
        (plain && step.is_rows_of_table() && step.access.is_key(&step.layout)).then_some(step)
    }

    /// The row of [`Parts::keyed`], as it is shown.
    fn row_by_key(&self, step: &Step, ctx: &Context) -> SqlResult<Option<Row>> {
        let Output::Rows(each) = &self.output else { return Ok(None) };
        ctx.check_cancel()?;
        match row_by_key(ctx, &step.layout, &step.access, step.wanted.as_deref())? {
            Some(row)
                if passes(&step.access.rest, &row, ctx)? && passes(&step.after, &row, ctx)? =>
            {
                each.show(row, each.are_moved(), ctx).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The name of a column of the joined row; with its table's, if there are several.
    fn column_name(&self, at: usize) -> String {
        match name_in(&self.steps, at) {
            Some((_, Ok(value))) => format!("({})", value.describe(&|at| self.column_name(at))),
            Some((step, Err(column))) if self.steps.len() > 1 => {
                format!("{}.{column}", step.layout.table.name)
            }
            Some((_, Err(column))) => column,
            None => format!("column {at}"),
        }
    }
}

/// The step that a column of the joined row belongs to, and its name or the value that it is.
fn name_in(steps: &[Step], at: usize) -> Option<(&Step, Result<&Value, String>)> {
    let step = steps.iter().rev().find(|step| step.offset <= at)?;
    match &step.value {
        Some(value) if at == step.offset + step.inner_width() => Some((step, Ok(value))),
        _ if at < step.offset + step.layout.table.columns.len() => {
            Some((step, Err(step.layout.column_name(at - step.offset))))
        }
        _ => name_in(&step.nested, at),
    }
}

/// A planned SELECT; see the [module documentation](super).
pub(super) struct Chain {
    pub(super) parts: Arc<Parts>,
}

impl Chain {
    /// Runs it, for so many rows if not all are wanted. Locking reads are done when this returns,
    /// so that they can be tried again.
    pub(super) fn run(
        &self,
        ctx: &Arc<Context>,
        most: Option<u64>,
    ) -> SqlResult<Box<dyn RowStream>> {
        let p = &self.parts;
        let limit = count(&p.limit, "LIMIT", ctx)?;
        let limit = limit.into_iter().chain(most).min();
        let offset = count(&p.offset, "OFFSET", ctx)?.unwrap_or(0);
        let mut run = true;
        for c in &p.constant {
            run &= c.eval_bool(&[], &ctx.eval)?;
        }
        if let Output::Aggregates(totals) = &p.output {
            let row = self.aggregate(ctx, totals, run)?;
            let kept = row.filter(|_| offset == 0 && limit != Some(0));
            return Ok(Box::new(VecRows::new(kept.into_iter().collect())));
        }
        if !run || limit == Some(0) {
            return Ok(Box::new(VecRows::new(Vec::new())));
        }
        if let Output::Groups(groups) = &p.output {
            let rows = groups.collect(ctx, p)?;
            let [skip, most] = [Some(offset), limit].map(|n| n.map(|n| n as usize));
            let kept = rows.into_iter().skip(skip.unwrap_or(0)).take(most.unwrap_or(usize::MAX));
            return Ok(Box::new(VecRows::new(kept.collect())));
        }
        if offset == 0
            && let Some(step) = p.keyed(ctx)
        {
            return Ok(Box::new(VecRows::new(p.row_by_key(step, ctx)?.into_iter().collect())));
        }
        let ctx = match p.locking.is_some_and(|l| l.wait == Wait::SkipLocked) {
            // What others work on is passed over: the answer promises nothing about other rows, so
            // the commit does not depend on them. The returned rows are locked.
            true => Arc::new(Context { reading: ReadMode::Unrecorded, ..Context::clone(ctx) }),
            false => ctx.clone(),
        };
        let mut stream = SelectStream::open(ctx, p.clone(), limit, offset)?;
        if p.locking.is_none() {
            return Ok(Box::new(stream));
        }
        let mut all: Vec<Row> = Vec::new();
        while let Some(batch) = stream.next_batch()? {
            all.extend(batch);
        }
        Ok(Box::new(VecRows::new(all)))
    }

    fn aggregate(&self, ctx: &Arc<Context>, totals: &Totals, run: bool) -> SqlResult<Option<Row>> {
        let aggregates = totals.list.as_slice();
        let account = Some(&ctx.memory);
        let mut states: Vec<_> = aggregates.iter().map(|a| a.start(account)).collect();
        if run {
            self.add_all(ctx, aggregates, &mut states)?;
        }
        let given = aggregates.iter().zip(&mut states).map(|(a, s)| a.finish(s, &ctx.eval));
        let given = given.collect::<SqlResult<Row>>()?;
        totals.shown.row(&given, &ctx.eval)
    }

    /// Adds all rows to aggregates.
    fn add_all(
        &self,
        ctx: &Arc<Context>,
        aggregates: &[Aggregate],
        states: &mut [State],
    ) -> SqlResult<()> {
        let first = self.parts.first_only.then_some(1);
        if let Some(columns) = ColumnarRows::open(ctx, &self.parts, first)? {
            return columns.aggregate(ctx, aggregates, states);
        }
        let mut add = |row: &[Datum]| {
            let mut each = aggregates.iter().zip(&mut *states);
            each.try_for_each(|(a, s)| a.add(s, row, &ctx.eval))
        };
        let steps = self.parts.steps.len();
        if first.is_none()
            && let Some(mut rows) = OneByOne::open(ctx, &self.parts, steps)?
        {
            while let Some(row) = rows.next(ctx)? {
                ctx.check_cancel()?;
                add(row)?;
            }
            return Ok(());
        }
        let first = first.map(|rows| rows as usize);
        let mut joined = Joined::open(ctx.clone(), self.parts.clone(), first);
        while let Some((_, row)) = joined.next_row()? {
            add(&row)?;
            if self.parts.first_only {
                break;
            }
        }
        Ok(())
    }

    /// EXPLAIN.
    pub(super) fn explain(&self, ctx: &Context, telling: &mut Telling<'_>) -> Vec<PlanLine> {
        let p = &self.parts;
        let ran = telling.ran.map(|ran| ran.of(p));
        let column = |at| p.column_name(at);
        let mut lines: Vec<PlanLine> = p.explain_output().into_iter().collect();
        if p.limit.is_some() || p.offset.is_some() {
            let show = |b: &Option<Bound>| b.as_ref().map_or("none".into(), ToString::to_string);
            lines.push(format!("limit: {}, offset: {}", show(&p.limit), show(&p.offset)).into());
        }
        if !p.sort.is_empty() {
            lines.push(format!("sort: {} keys", p.sort.len()).into());
        }
        if let Some(l) = p.locking {
            lines.push(format!("lock rows: {:?}", l.mode).into());
        }
        if p.steps.is_empty() {
            lines.push(PlanLine::operator("result", "Result", None));
        }
        let mut pass_ends = None;
        let expected = self.rows_expected(ctx);
        let alike = p.passes.are_alike(&ctx.eval);
        let (passes, late) = (p.passes.of(alike), p.late_from(alike));
        for (n, s) in p.steps.iter().enumerate() {
            let indent = "  ".repeat(n);
            let mut own = s.describe(&indent, &column);
            if s.family {
                own[0].text = format!("{indent}family read of {}", s.layout.table.name);
            }
            let in_pass = pass_ends.is_some_and(|end| n <= end);
            if p.locking.is_none() && s.is_covered() {
                own[0].covers();
            }
            // What is said of a pass stands where it begins.
            own[0].expect(expected[if in_pass { n } else { passes.ends[n] }]);
            if !in_pass {
                pass_ends = Some(passes.ends[n]);
            }
            let gathered = passes.gather.as_ref().is_some_and(|gather| n <= gather.last);
            if in_pass && gathered && (s.semi.is_some() || s.value.is_some()) {
                own[0].text.push_str(&s.purpose(&column));
                own[0].text.push_str(" (same pass)");
            } else if in_pass {
                own[0].text.push_str(if s.left { " (left, same pass)" } else { " (same pass)" });
            } else if n > 0 || s.value.is_some() {
                own[0].text.push_str(&s.purpose(&column));
                own[0].text.push_str(s.direction());
            } else if p.reverse {
                own[0].text.push_str(" (backwards)");
            }
            // The steps of one pass are measured together.
            if let Some(ran) = ran.as_ref().filter(|_| !in_pass) {
                own[0].ran(with_inputs(ran, n));
            }
            if n >= late {
                own[0].text.push_str(", behind the limit");
            }
            lines.extend(own);
            s.explain_nested(&format!("{indent}  "), &column, &mut lines);
            lines.extend(telling.query_of(s, ctx, n + 2));
            if !s.after.is_empty() {
                let parts: Vec<_> = s.after.iter().map(|part| part.to_sql(&column)).collect();
                lines.push(format!("{indent}  filter after join: {}", parts.join(" AND ")).into());
            }
        }
        lines
    }

    /// How many rows it is expected to look at, about: no more than a LIMIT wants that ends it.
    pub(super) fn work(&self, ctx: &Context) -> f64 {
        let p = &self.parts;
        let (mut work, mut outer) = (0.0, 1.0_f64);
        let (late, most) = self.waiting(ctx);
        for (n, step) in p.steps.iter().enumerate() {
            outer = if n == late { outer.min(most) } else { outer };
            let found = step.rows_found(ctx);
            work += outer * if step.semi.is_some() { found.min(1.0) } else { found };
            outer = step.rows_expected(ctx, outer);
        }
        let ends = p.sort.is_empty() && p.output.is_plain();
        let limit = p.limit.as_ref().filter(|_| ends);
        let wanted = limit.map(|limit| first_rows(ctx, limit, p.offset.as_ref()));
        if p.first_only { 1.0 } else { work.min(wanted.unwrap_or(work)) }
    }

    /// How many rows it is expected to give, about.
    pub(super) fn rows_given(&self, ctx: &Context) -> f64 {
        let found = self.rows_expected(ctx).last().copied().unwrap_or(1.0);
        let limit = self.parts.limit.as_ref().map(|limit| first_rows(ctx, limit, None));
        match self.parts.output {
            Output::Aggregates(_) => 1.0,
            _ => found.min(limit.unwrap_or(found)),
        }
    }

    /// Whether nothing that it computes can fail, or does anything: then nobody sees whether it is
    /// computed.
    pub(super) fn is_quiet(&self) -> bool {
        let p = &self.parts;
        let quiet = |e: &Bound| {
            let short = |column: &Bound| column.ty().typmod() >= 0;
            e.volatility() != Volatility::Volatile && !can_fail(e, &short)
        };
        let output = match &p.output {
            Output::Rows(out) => out.all().all(quiet),
            Output::Aggregates(totals) => {
                let exprs = totals.list.iter().flat_map(Aggregate::exprs);
                exprs.chain(totals.shown.exprs()).all(quiet)
            }
            Output::Groups(groups) => groups.exprs().chain(groups.shown().exprs()).all(quiet),
        };
        let sort = p.sort.iter().map(|key| &key.expr);
        output
            && p.constant.iter().chain(sort).all(quiet)
            && p.steps.iter().all(|s| s.is_quiet(&quiet))
    }

    /// Whether it has rows that are made first.
    pub(super) fn makes_rows(&self) -> bool {
        self.parts.steps.iter().any(Step::is_made)
    }

    /// The first step that waits for the limit, and for how many rows it is asked at most.
    fn waiting(&self, ctx: &Context) -> (usize, f64) {
        let p = &self.parts;
        let wanted = p.limit.as_ref().map(|limit| first_rows(ctx, limit, p.offset.as_ref()));
        (p.late_from(p.passes.are_alike(&ctx.eval)), wanted.unwrap_or(f64::INFINITY))
    }

    /// Rows that each step is expected to give in all.
    pub(super) fn rows_expected(&self, ctx: &Context) -> Vec<f64> {
        let mut rows = 1.0_f64;
        let (late, most) = self.waiting(ctx);
        let each = self.parts.steps.iter().enumerate().map(|(n, step)| {
            rows = if n == late { rows.min(most) } else { rows };
            rows = if self.parts.first_only { 1.0 } else { step.rows_expected(ctx, rows) };
            rows
        });
        each.collect()
    }
}

impl Step {
    /// Whether it gives the rows of its table, and nothing made of them.
    fn is_rows_of_table(&self) -> bool {
        self.semi.is_none() && self.value.is_none() && self.first.is_none() && self.made.is_none()
    }

    /// How the order of its first rows is read, for EXPLAIN.
    fn direction(&self) -> &'static str {
        match self.in_order {
            Some(Met::Forward) => " along the key",
            Some(_) => " backwards along the key",
            None => "",
        }
    }

    /// How many columns of the joined row are its own, but for its value.
    pub(super) fn inner_width(&self) -> usize {
        let nested = self.nested.iter().map(|inner| inner.inner_width() + 1);
        self.layout.table.columns.len() + nested.sum::<usize>()
    }

    /// How its rows are found, for EXPLAIN.
    fn describe(&self, indent: &str, names: &dyn Fn(usize) -> String) -> Vec<PlanLine> {
        let Some((made, _)) = &self.made else {
            return super::rows::describe(&self.layout, &self.access, indent, names);
        };
        let mut lines = vec![made.described(indent)];
        if !self.access.rest.is_empty() {
            let parts: Vec<_> = self.access.rest.iter().map(|part| part.to_sql(names)).collect();
            lines.push(format!("{indent}  filter: {}", parts.join(" AND ")).into());
        }
        lines
    }

    /// What is computed for each of its rows, for EXPLAIN: all of it in the same pass.
    fn explain_nested(
        &self,
        indent: &str,
        names: &dyn Fn(usize) -> String,
        lines: &mut Vec<PlanLine>,
    ) {
        for inner in &self.nested {
            let mut own = inner.describe(indent, names);
            own[0].text.push_str(&inner.purpose(names));
            own[0].text.push_str(" (same pass)");
            lines.extend(own);
            inner.explain_nested(&format!("{indent}  "), names, lines);
        }
    }

    /// Whether it may give several rows for one before it.
    pub(super) fn multiplies(&self) -> bool {
        self.semi.is_none() && self.value.is_none()
    }

    /// What a step behind the first does, for EXPLAIN.
    fn purpose(&self, names: &dyn Fn(usize) -> String) -> String {
        match (self.semi, &self.value) {
            (Some(Semi::Exists), _) => " (is there one?)".into(),
            (Some(Semi::Absent), _) => " (is there none?)".into(),
            (None, Some(value)) => format!(" (value: {})", value.describe(names)),
            (None, None) if self.first.is_some() => {
                let first = self.first.iter().map(|first| first.describe(names));
                let left = if self.left { "left, " } else { "" };
                format!(" ({left}{})", first.collect::<String>())
            }
            (None, None) if self.left => " (left lookup)".into(),
            (None, None) => " (lookup)".into(),
        }
    }

    /// Whether the entries of its index tell all that is wanted.
    pub(super) fn is_covered(&self) -> bool {
        let (Some(at), Some(wanted)) = (self.access.index, &self.wanted) else { return false };
        self.layout.is_covered_by(&self.layout.indexes[at], wanted)
    }

    /// Rows that it is expected to find for one row of the steps before.
    pub(super) fn rows_found(&self, ctx: &Context) -> f64 {
        let facts = self.facts(ctx);
        let estimator = Estimator { facts: &facts, eval: Some(&ctx.eval), offset: self.offset };
        let found = estimator.rows_found(&self.access);
        if matches!(self.made, Some((_, Some(_)))) { found.min(1.0) } else { found }
    }

    /// What is known of its rows.
    pub(super) fn facts(&self, ctx: &Context) -> Facts {
        let known: Arc<dyn Known> = match &self.made {
            Some((made, _)) => made.clone(),
            None => ctx.db.clone(),
        };
        Facts::new(known, self.layout.clone())
    }

    /// Whether its rows, or those of a step within it, are made first.
    fn is_made(&self) -> bool {
        self.made.is_some() || self.nested.iter().any(Step::is_made)
    }

    /// See [`Chain::is_quiet`].
    fn is_quiet(&self, quiet: &dyn Fn(&Bound) -> bool) -> bool {
        let value = self.value.as_ref().is_none_or(|value| {
            let one = || self.access.is_whole_key(&self.layout) && self.made.is_none();
            value.exprs().chain(value.shown()).all(quiet) && (!value.wants_one_row() || one())
        });
        let first = self.first.iter().flat_map(|first| first.exprs());
        let made = self.made.as_ref().is_none_or(|(made, _)| made.is_quiet());
        value
            && made
            && self.access.rest.iter().chain(&self.after).chain(first).all(quiet)
            && self.nested.iter().all(|inner| inner.is_quiet(quiet))
    }

    /// Whether it reads all rows of a stored table.
    pub(super) fn is_whole_table(&self) -> bool {
        self.access.is_full() && self.made.is_none()
    }

    /// Rows that it is expected to give in all, for so many rows of the steps before.
    pub(super) fn rows_expected(&self, ctx: &Context, outer: f64) -> f64 {
        let facts = self.facts(ctx);
        let estimator = Estimator { facts: &facts, eval: Some(&ctx.eval), offset: self.offset };
        let matches = outer * estimator.rows_passing(&self.access);
        if self.value.is_some() {
            return outer * estimator.share(&self.after);
        }
        match self.semi {
            Some(Semi::Exists) => return matches.min(outer),
            Some(Semi::Absent) => return outer,
            None => {}
        }
        let joined = if self.left { matches.max(outer) } else { matches };
        joined * estimator.share(&self.after)
    }
}

/// What a step did, with the time of those that stand below it.
fn with_inputs(steps: &[Actual], step: usize) -> Actual {
    let mut own = steps[step];
    let below: u64 = steps[step + 1..].iter().filter_map(|s| Some(s.nanos?.1)).sum();
    let (first, all) = own.nanos.unwrap_or_default();
    own.nanos = Some((first, all + below));
    own
}

/// The value of LIMIT or OFFSET.
pub(super) fn count(e: &Option<Bound>, what: &str, ctx: &Context) -> SqlResult<Option<u64>> {
    count_for(e, what, &[], ctx)
}

/// The same, for a row of the tables around the query.
pub(super) fn count_for(
    e: &Option<Bound>,
    what: &str,
    row: &[Datum],
    ctx: &Context,
) -> SqlResult<Option<u64>> {
    let Some(e) = e else { return Ok(None) };
    match e.eval(row, &ctx.eval)? {
        Datum::Null => Ok(None),
        Datum::Int8(v) if v >= 0 => Ok(Some(v as u64)),
        _ => Err(SqlError::new(
            SqlState(if what == "LIMIT" { "2201W" } else { "2201X" }),
            format!("{what} must not be negative"),
        )),
    }
}
