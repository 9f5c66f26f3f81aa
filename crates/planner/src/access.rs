//! From conditions to key spans: which part of a table or index a WHERE clause needs.
//!
//! ```text
//!   key (a, b, c)   WHERE a = 1 AND b IN (2, 3) AND c > 7 AND d = 5
//!                   eq [1] [2, 3]   range c in (7, ..)   rest: d = 5
//!                   spans [/1/2/7.., /1/2/max) [/1/3/7.., /1/3/max)
//! ```
//! A condition that a span expresses exactly is not evaluated again; what is left is the *rest*.
//! An OR whose every alternative bounds the key gives the spans of all of them together, which is
//! also how row values are read: `(a, b) > (1, 2)` is `a > 1 OR a = 1 AND b > 2`.
//! Values are expressions without columns of the table itself; they become bytes when the statement
//! runs. In a join they may use the columns of the tables before it (a *lookup*).

use std::cmp::Ordering;
use std::ops::Bound as Limit;

use braid_kv::KeySpan;
use braid_types::{Datum, SqlResult, SqlType};

use crate::Same;
use crate::implied::implies;
use braid_rows::layout::united;
use braid_rows::{KeyColumn, Layout, TableLayout};
use braid_scalar::{Bound, CmpOp, EvalContext, Node, QuantifiedOp, Volatility};

/// Most combinations of several lists; where there are more, the last lists become a filter.
const MAX_SPANS: usize = 16_384;
/// Most alternatives of an OR that are looked at one by one.
const MAX_ALTERNATIVES: usize = 2_048;
/// ORs inside of alternatives of ORs: one less than the columns of the longest row value.
const MAX_DEPTH: usize = 8;

/// Values that one key column may have.
#[derive(Clone, Debug)]
pub enum Values {
    /// `= e` or `IN (e, ..)`.
    List(Vec<Bound>),
    /// `= ANY (array)`.
    Array(Bound),
}

impl Values {
    /// The one value that there is, whatever the parameters.
    fn only(&self) -> Option<&Bound> {
        match self {
            Values::List(list) if list.len() == 1 => list.first(),
            _ => None,
        }
    }
}

/// Bounds of the key column after those with values.
#[derive(Clone, Debug, Default)]
pub struct RangeOn {
    /// The lower one, and whether it belongs to them.
    pub lower: Option<(Bound, bool)>,
    /// The upper one.
    pub upper: Option<(Bound, bool)>,
}

/// `(a, b) IN ((1, 2), ..)`: values of leading key columns that belong together.
#[derive(Clone, Debug)]
pub struct Tuples {
    /// The columns.
    pub fields: Vec<Field>,
    /// Their values.
    pub rows: Vec<Vec<Bound>>,
    /// How many values a row has.
    columns: usize,
}

/// Where the value of a key column comes from.
#[derive(Clone, Debug)]
pub enum Field {
    /// It is the same for all rows.
    Known(Bound),
    /// From this place of each row.
    OfRow(usize),
}

impl Tuples {
    /// Whether all values of the rows are among the fields.
    fn say_all(&self) -> bool {
        let of_row = |field: &&Field| matches!(field, Field::OfRow(_));
        self.fields.iter().filter(of_row).count() == self.columns
    }

    /// The values of each row, NULLs left out: they equal nothing.
    fn prefixes(&self, outer: &[Datum], eval: &EvalContext) -> SqlResult<Vec<Vec<Datum>>> {
        let mut out = Vec::with_capacity(self.rows.len());
        let known = |field: &Field| match field {
            Field::Known(value) => value.eval(outer, eval).map(Some),
            Field::OfRow(_) => Ok(None),
        };
        let known = self.fields.iter().map(known).collect::<SqlResult<Vec<_>>>()?;
        for row in &self.rows {
            let mut prefix = Vec::with_capacity(known.len());
            for (field, known) in self.fields.iter().zip(&known) {
                prefix.push(match (field, known) {
                    (Field::OfRow(at), _) => row[*at].eval(outer, eval)?,
                    (_, Some(value)) => value.clone(),
                    (Field::Known(value), None) => value.eval(outer, eval)?,
                });
            }
            if !prefix.iter().any(Datum::is_null) {
                out.push(prefix);
            }
        }
        Ok(out)
    }

    fn describe<'a>(
        &self,
        name: &dyn Fn(usize) -> &'a str,
        names: &dyn Fn(usize) -> String,
    ) -> String {
        let mut parts = Vec::new();
        let mut columns = Vec::new();
        for (n, field) in self.fields.iter().enumerate() {
            match field {
                Field::Known(value) => {
                    parts.push(format!("{} = {}", name(n), value.to_sql(names)));
                }
                Field::OfRow(at) => columns.push((name(n), *at)),
            }
        }
        let row = |row: &Vec<Bound>| {
            let values = columns.iter().map(|(_, at)| row[*at].to_sql(names));
            let values: Vec<String> = values.collect();
            format!("({})", values.join(", "))
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        parts.push(format!("({}) IN ({})", names.join(", "), rows.join(", ")));
        parts.join(" AND ")
    }

    fn values(&self) -> impl Iterator<Item = &Bound> {
        let known = self.fields.iter().filter_map(|field| match field {
            Field::Known(value) => Some(value),
            Field::OfRow(_) => None,
        });
        known.chain(self.rows.iter().flatten())
    }
}

/// Which keys to read: of the primary key, or of a secondary index.
#[derive(Clone, Debug)]
pub struct Access {
    /// Position among the table's secondary indexes; `None` is the primary key.
    pub index: Option<usize>,
    /// Values of leading key columns.
    pub eq: Vec<Values>,
    /// Bounds of the key column behind them.
    pub range: RangeOn,
    /// One access for each alternative of an OR; then there is nothing above.
    pub either: Vec<Access>,
    /// Rows of values for the leading columns; then there is nothing above.
    pub tuples: Option<Tuples>,
    /// The index is partial, and the conditions imply its predicate.
    pub partial: bool,
    /// What the spans do not express; every part must hold. (Of an alternative: what its own spans
    /// do not express, which nobody but estimates asks for.)
    pub rest: Vec<Bound>,
}

/// A condition on one column.
struct Condition {
    ordinal: usize,
    kind: ConditionKind,
    /// Position in the list of conjuncts.
    at: usize,
}

enum ConditionKind {
    Values(Values),
    Lower(Bound, bool),
    Upper(Bound, bool),
}

/// Whether values of the expression's type encode like the column's.
fn fits(column: &SqlType, value: &SqlType) -> bool {
    let text = |t: &SqlType| matches!(t, SqlType::Text | SqlType::Varchar(_) | SqlType::Name);
    match column {
        // Values beside such a column are padded as it is; other lengths are compared as text.
        SqlType::Char(length) => *length > 0 && column == value,
        c if c.is_integer() => value.is_integer(),
        c if text(c) => text(value),
        c => c.same_base(value),
    }
}

fn to_limit(b: &Option<(Datum, bool)>) -> Limit<&Datum> {
    match b {
        None => Limit::Unbounded,
        Some((v, true)) => Limit::Included(v),
        Some((v, false)) => Limit::Excluded(v),
    }
}

/// Where conditions find what a key consists of: columns of its table, whose first one has ordinal
/// `offset` in the conditions, and expressions of its index.
struct Parts<'a> {
    table: &'a TableLayout,
    index: Option<usize>,
    offset: usize,
}

impl Parts<'_> {
    /// The column of the table that an expression is, and its type.
    fn column(&self, b: &Bound) -> Option<(usize, SqlType)> {
        let columns = &self.table.table.columns;
        let typed = |at: usize| columns.get(at).map(|c| (at, c.ty.clone()));
        if let Some(at) = b.as_column() {
            return typed(at.checked_sub(self.offset)?);
        }
        let key = self.table.indexes[self.index?].layout.columns();
        let like = self.table.computed_like(b, self.offset);
        typed(like.into_iter().find(|at| key.iter().any(|k| k.ordinal == *at))?)
    }

    /// Whether an expression has a value before the table is read.
    fn knows(&self, b: &Bound) -> bool {
        b.volatility() < Volatility::Volatile && b.columns().into_iter().all(|c| c < self.offset)
    }
}

/// Conditions on what a key consists of.
fn conditions(conjuncts: &[Bound], parts: &Parts<'_>) -> Vec<Condition> {
    let mut out = Vec::new();
    for (at, c) in conjuncts.iter().enumerate() {
        match c.node() {
            Node::Compare(op, a, b) => {
                let (column, op, value) = match (parts.column(a), parts.column(b)) {
                    (Some(column), _) if parts.knows(b) => (column, *op, b),
                    (_, Some(column)) if parts.knows(a) => (column, op.flipped(), a),
                    _ => continue,
                };
                if !fits(&column.1, value.ty()) {
                    continue;
                }
                let v = value.clone();
                let kind = match op {
                    CmpOp::Eq => ConditionKind::Values(Values::List(vec![v])),
                    CmpOp::Gt => ConditionKind::Lower(v, false),
                    CmpOp::Ge => ConditionKind::Lower(v, true),
                    CmpOp::Lt => ConditionKind::Upper(v, false),
                    CmpOp::Le => ConditionKind::Upper(v, true),
                    CmpOp::Ne => continue,
                };
                out.push(Condition { ordinal: column.0, kind, at });
            }
            Node::InList(needle, list, false) => {
                let Some((ordinal, ty)) = parts.column(needle) else { continue };
                if list.iter().all(|v| parts.knows(v) && fits(&ty, v.ty())) {
                    let kind = ConditionKind::Values(Values::List(list.clone()));
                    out.push(Condition { ordinal, kind, at });
                }
            }
            // a = 1 OR a IN (2, 3)
            Node::Or(alternatives) => {
                if let Some((ordinal, list)) = one_of(alternatives, parts) {
                    let kind = ConditionKind::Values(Values::List(list));
                    out.push(Condition { ordinal, kind, at });
                }
            }
            Node::Quantified(QuantifiedOp::Compare(CmpOp::Eq), needle, array, false) => {
                let Some((ordinal, ty)) = parts.column(needle) else { continue };
                let fits_element = array.ty().element().is_some_and(|e| fits(&ty, e));
                if parts.knows(array) && fits_element {
                    let kind = ConditionKind::Values(Values::Array(array.clone()));
                    out.push(Condition { ordinal, kind, at });
                }
            }
            _ => {}
        }
    }
    out
}

/// The column and its values when all alternatives of an OR are values of one column.
fn one_of(alternatives: &[Bound], parts: &Parts<'_>) -> Option<(usize, Vec<Bound>)> {
    let each = conditions(alternatives, parts);
    let ordinal = each.first()?.ordinal;
    let list = |c: Condition| match c.kind {
        ConditionKind::Values(Values::List(list)) if c.ordinal == ordinal => Some(list),
        _ => None,
    };
    let lists = each.into_iter().map(list).collect::<Option<Vec<_>>>()?;
    (lists.len() == alternatives.len()).then(|| (ordinal, lists.concat()))
}

/// Takes a bound of a column together with the one that is there, if it is known which of both
/// narrows more: `narrows` says it of the new one in comparison with the other.
fn narrow(
    bound: &mut Option<(Bound, bool)>,
    value: &Bound,
    inclusive: bool,
    narrows: fn(Ordering) -> bool,
) -> bool {
    if let Some((old, old_inclusive)) = bound {
        let known = |b: &Bound| b.as_const().filter(|v| !v.is_null()).cloned();
        let (Some(a), Some(b)) = (known(value), known(old)) else { return false };
        if !value.ty().same_base(old.ty()) {
            return false;
        }
        let order = a.cmp_sql(&b);
        if order.is_eq() {
            *old_inclusive &= inclusive;
        }
        if !narrows(order) {
            return true;
        }
    }
    *bound = Some((value.clone(), inclusive));
    true
}

/// The access along one key layout.
fn along(
    layout: &Layout,
    index: Option<usize>,
    columns: usize,
    conditions: &[Condition],
    conjuncts: &[Bound],
) -> Access {
    let mut used = Vec::new();
    let mut eq = Vec::new();
    let mut range = RangeOn::default();
    for key in &layout.columns()[..columns] {
        let found = conditions.iter().find_map(|c| match &c.kind {
            ConditionKind::Values(v) if c.ordinal == key.ordinal => Some((c.at, v)),
            _ => None,
        });
        match found {
            Some((at, v)) => {
                used.push(at);
                eq.push(v.clone());
            }
            None => {
                for c in conditions.iter().filter(|c| c.ordinal == key.ordinal) {
                    let said = match &c.kind {
                        ConditionKind::Lower(v, inclusive) => {
                            narrow(&mut range.lower, v, *inclusive, Ordering::is_gt)
                        }
                        ConditionKind::Upper(v, inclusive) => {
                            narrow(&mut range.upper, v, *inclusive, Ordering::is_lt)
                        }
                        ConditionKind::Values(_) => false,
                    };
                    used.extend(said.then_some(c.at));
                }
                break;
            }
        }
    }
    let rest = without(conjuncts, &used);
    Access { index, eq, range, either: Vec::new(), tuples: None, partial: false, rest }
}

/// The conditions but for those at these positions.
fn without(conjuncts: &[Bound], said: &[usize]) -> Vec<Bound> {
    let left = conjuncts.iter().enumerate().filter(|(at, _)| !said.contains(at));
    left.map(|(_, condition)| condition.clone()).collect()
}

/// A table's key, of the rows or of an index, and where conditions find the table's columns.
struct Key<'a> {
    table: &'a TableLayout,
    layout: &'a Layout,
    index: Option<usize>,
    columns: usize,
    offset: usize,
}

impl Key<'_> {
    fn parts(&self) -> Parts<'_> {
        Parts { table: self.table, index: self.index, offset: self.offset }
    }

    fn plain(&self, conjuncts: &[Bound]) -> Access {
        let conditions = conditions(conjuncts, &self.parts());
        along(self.layout, self.index, self.columns, &conditions, conjuncts)
    }

    /// The access for all conditions. Of the ORs among them, those from the position `ors` on may
    /// be cut into alternatives.
    fn best(&self, conjuncts: &[Bound], ors: usize, depth: usize) -> Access {
        let mut best = self.plain(conjuncts);
        for (at, conjunct) in conjuncts.iter().enumerate().skip(ors) {
            let Node::Or(parts) = conjunct.node() else { continue };
            if parts.len() > MAX_ALTERNATIVES || depth == MAX_DEPTH {
                continue;
            }
            let mut others = conjuncts.to_vec();
            others.remove(at);
            let all = match self.tuples(parts, conjuncts) {
                Some((tuples, mut said)) => {
                    said.extend(tuples.say_all().then_some(at));
                    let rest = without(conjuncts, &said);
                    Access { tuples: Some(tuples), ..Access::nothing(self.index, rest) }
                }
                None => {
                    let Some((either, left)) = self.either(parts, &others, depth) else { continue };
                    let rest = left.unwrap_or_else(|| conjuncts.to_vec());
                    Access { either, ..Access::nothing(self.index, rest) }
                }
            };
            if all.score(self.table) > best.score(self.table) {
                best = all;
            }
        }
        best
    }

    /// One access for each alternative of an OR, together with the other conditions, if each bounds
    /// the key. If their spans together say what the OR says, then also those of the other
    /// conditions that they do not say. What is left of an alternative stays with it for estimates;
    /// a row is asked the whole.
    fn either(
        &self,
        parts: &[Bound],
        others: &[Bound],
        depth: usize,
    ) -> Option<(Vec<Access>, Option<Vec<Bound>>)> {
        let (mut either, mut exact, mut spans) = (Vec::with_capacity(parts.len()), true, 0);
        let mut unsaid = vec![false; others.len()];
        for part in parts {
            let mut with = others.to_vec();
            with.extend(part.conjuncts());
            let access = self.best(&with, others.len(), depth + 1);
            if access.is_full() {
                return None;
            }
            for condition in &access.rest {
                match others.iter().position(|other| condition.is_like(other, 0)) {
                    Some(at) => unsaid[at] = true,
                    None => exact = false,
                }
            }
            spans += access.spans_max().unwrap_or(MAX_SPANS + 1);
            either.push(access);
        }
        let left = others.iter().zip(unsaid).filter(|(_, unsaid)| *unsaid).map(|(c, _)| c.clone());
        // Of more spans, one is made that holds them all.
        let left = (exact && spans <= MAX_SPANS).then(|| left.collect());
        Some((either, left))
    }

    /// The rows of values that the alternatives of an OR are, if they bound this key together with
    /// the other conditions, and which of these they say.
    fn tuples(&self, parts: &[Bound], conjuncts: &[Bound]) -> Option<(Tuples, Vec<usize>)> {
        let equality = |c: Condition| match c.kind {
            ConditionKind::Values(Values::List(list)) if list.len() == 1 => {
                Some((c.ordinal, list.into_iter().next()?, c.at))
            }
            _ => None,
        };
        let value = |c: Condition| equality(c).map(|(ordinal, value, _)| (ordinal, value));
        let mut ordinals: Vec<usize> = Vec::new();
        let mut rows = Vec::with_capacity(parts.len());
        for part in parts {
            let equalities = part.conjuncts();
            let found = conditions(&equalities, &self.parts()).into_iter().map(value);
            let (columns, row): (Vec<usize>, Vec<Bound>) =
                found.collect::<Option<Vec<_>>>()?.into_iter().unzip();
            if rows.is_empty() {
                ordinals = columns;
            } else if ordinals != columns {
                return None;
            }
            if row.len() < equalities.len() {
                return None;
            }
            rows.push(row);
        }
        let others: Vec<(usize, Bound, usize)> =
            conditions(conjuncts, &self.parts()).into_iter().filter_map(equality).collect();
        let mut said = Vec::new();
        let field = |key: &KeyColumn| match ordinals.iter().position(|o| *o == key.ordinal) {
            Some(at) => Some(Field::OfRow(at)),
            None => {
                let known = others.iter().find(|(ordinal, ..)| *ordinal == key.ordinal);
                known.map(|(_, value, at)| {
                    said.push(*at);
                    Field::Known(value.clone())
                })
            }
        };
        let fields: Vec<Field> =
            self.layout.columns()[..self.columns].iter().map_while(field).collect();
        let of_rows = fields.iter().any(|field| matches!(field, Field::OfRow(_)));
        of_rows.then(|| (Tuples { fields, rows, columns: ordinals.len() }, said))
    }
}

/// Spans in order, none of which touches the next; one for all if they are too many.
fn merged(spans: Vec<KeySpan>) -> Vec<KeySpan> {
    let out = united(spans);
    if let (Some(first), Some(last), true) = (out.first(), out.last(), out.len() > MAX_SPANS) {
        return vec![KeySpan::new(first.start.clone(), last.end.clone())];
    }
    out
}

impl Access {
    /// All keys.
    fn nothing(index: Option<usize>, rest: Vec<Bound>) -> Access {
        let (eq, range, either) = (Vec::new(), RangeOn::default(), Vec::new());
        Access { index, eq, range, either, tuples: None, partial: false, rest }
    }

    /// The best access for a list of conditions, by the rules.
    pub fn choose_among(layout: &TableLayout, conjuncts: &[Bound]) -> Access {
        let mut all = Access::candidates(layout, conjuncts, 0);
        let best = Access::best_of(&all, layout);
        all.swap_remove(best)
    }

    /// Which of several accesses is the best by the rules; 0 if there is none.
    pub fn best_of(all: &[Access], layout: &TableLayout) -> usize {
        (0..all.len()).max_by_key(|at| all[*at].score(layout)).unwrap_or(0)
    }

    /// The access along the primary key only.
    pub fn primary(layout: &TableLayout, filter: Option<&Bound>) -> Access {
        let conjuncts = filter.map(Bound::conjuncts).unwrap_or_default();
        Access::candidates(layout, &conjuncts, 0).swap_remove(0)
    }

    /// One access per key, the primary one first. The table's first column has ordinal `offset`
    /// in the conditions; values may use columns before it.
    pub fn candidates(layout: &TableLayout, conjuncts: &[Bound], offset: usize) -> Vec<Access> {
        let rows = (None, &layout.rows, layout.rows.columns().len());
        let indexes = layout.indexes.iter().enumerate();
        let indexes = indexes.map(|(i, index)| (Some(i), &index.layout, index.declared));
        let keys = std::iter::once(rows).chain(indexes);
        let best = |(index, key, columns): (Option<usize>, _, _)| {
            let predicate = index.and_then(|at| layout.indexes[at].predicate.as_ref());
            if predicate.is_some_and(|p| !implies(conjuncts, &p.condition, offset)) {
                return None;
            }
            let mut best =
                Key { table: layout, layout: key, index, columns, offset }.best(conjuncts, 0, 0);
            if let Some(predicate) = predicate {
                best.partial = true;
                // Entries say it by being there.
                let said = predicate.condition.conjuncts();
                best.leave_out(&|c| said.iter().any(|p| c.is_like(p, offset)));
            }
            Some(best)
        };
        keys.filter_map(best).collect()
    }

    /// Takes conditions out of what is left, which hold for other reasons.
    fn leave_out(&mut self, holds: &impl Fn(&Bound) -> bool) {
        self.rest.retain(|condition| !holds(condition));
        self.either.iter_mut().for_each(|one| one.leave_out(holds));
    }

    /// How good it is by the rules: the larger, the better.
    pub fn score(&self, layout: &TableLayout) -> (u32, usize, bool, bool) {
        if let Some(worst) = self.either.iter().map(|a| a.score(layout)).min() {
            return worst;
        }
        let bounds = u32::from(self.range.lower.is_some()) + u32::from(self.range.upper.is_some());
        let given = self.tuples.as_ref().map_or(self.eq.len(), |tuples| tuples.fields.len());
        let whole = self.is_whole_key(layout);
        let narrowed = given as u32 * 4 + bounds;
        // A partial index is small, or nobody would have made it.
        let weight = if whole { 1000 } else { narrowed.max(u32::from(self.partial)) };
        (weight, given, self.index.is_none(), whole)
    }

    /// Whether each of its spans is the whole of a key that tells rows apart.
    pub fn is_whole_key(&self, layout: &TableLayout) -> bool {
        let given = self.tuples.as_ref().map_or(self.eq.len(), |tuples| tuples.fields.len());
        match self.index {
            _ if !self.either.is_empty() => false,
            None => given == layout.rows.columns().len(),
            Some(i) => {
                let index = &layout.indexes[i];
                index.index.unique && given == index.declared
            }
        }
    }

    /// Whether it reads less than another access of the same table.
    pub fn is_better_than(&self, other: &Access, layout: &TableLayout) -> bool {
        self.score(layout) > other.score(layout)
    }

    /// Whether nothing narrows the read.
    pub fn is_full(&self) -> bool {
        !self.partial
            && self.eq.is_empty()
            && self.range.lower.is_none()
            && self.range.upper.is_none()
            && self.either.is_empty()
            && self.tuples.is_none()
    }

    /// Ordinals of the leading key columns that have given values in each span.
    pub(crate) fn bound_columns(&self, table: &TableLayout) -> Vec<usize> {
        let given = match (&self.tuples, self.either.is_empty()) {
            (Some(tuples), _) => tuples.fields.len(),
            (None, true) => self.eq.len(),
            (None, false) => 0,
        };
        self.layout(table).columns()[..given].iter().map(|key| key.ordinal).collect()
    }

    /// Number of leading key columns that have given values.
    pub fn eq_len(&self) -> usize {
        self.eq.len()
    }

    /// Whether the leading column at this position has exactly one value.
    pub fn is_single(&self, n: usize) -> bool {
        self.single(n).is_some()
    }

    /// The value of the leading column at this position, if it has exactly one.
    pub fn single(&self, n: usize) -> Option<&Bound> {
        self.eq.get(n).and_then(Values::only)
    }

    /// Whether it reads along the primary key, for rows whose leading key columns equal exactly
    /// these, and asks nothing more of the key. They are the key of a row that is there for sure,
    /// if `outer` says how it is found along its primary key; then what has one value there may be
    /// written as that value here, or as one of which `same` says that it is the same.
    pub fn is_exactly(
        &self,
        mut columns: impl Iterator<Item = usize>,
        outer: Option<&Access>,
        same: Same<'_>,
    ) -> bool {
        let same = |n: usize, column: usize| {
            self.single(n).is_some_and(|own| {
                let value = outer.and_then(|outer| outer.single(n));
                own.as_column() == Some(column) || value.is_some_and(|value| same(own, value))
            })
        };
        let each = (0..self.eq.len()).all(|n| columns.next().is_some_and(|at| same(n, at)));
        let open = self.range.lower.is_none() && self.range.upper.is_none();
        let open = open && self.either.is_empty() && self.tuples.is_none();
        each && open && self.index.is_none() && columns.next().is_none()
    }

    /// Ordinals of columns of other tables that the values use.
    pub fn columns(&self) -> std::collections::BTreeSet<usize> {
        let mut out = std::collections::BTreeSet::new();
        for v in &self.eq {
            match v {
                Values::List(l) => l.iter().for_each(|e| out.extend(e.columns())),
                Values::Array(e) => out.extend(e.columns()),
            }
        }
        for (e, _) in self.range.lower.iter().chain(&self.range.upper) {
            out.extend(e.columns());
        }
        self.either.iter().for_each(|access| out.extend(access.columns()));
        let tuples = self.tuples.iter().flat_map(Tuples::values);
        tuples.for_each(|value| out.extend(value.columns()));
        out
    }

    /// The bounds of the column behind those with values.
    fn range_holds(&self, value: &Datum, outer: &[Datum], eval: &EvalContext) -> SqlResult<bool> {
        let mut holds =
            !value.is_null() || (self.range.lower.is_none() && self.range.upper.is_none());
        if let Some((e, inclusive)) = &self.range.lower {
            let order = value.cmp_sql(&e.eval(outer, eval)?);
            holds &= order.is_gt() || (*inclusive && order.is_eq());
        }
        if let Some((e, inclusive)) = &self.range.upper {
            let order = value.cmp_sql(&e.eval(outer, eval)?);
            holds &= order.is_lt() || (*inclusive && order.is_eq());
        }
        Ok(holds)
    }

    /// Whether a row has one of the values of each column in an [`Access::excess`], and lies in
    /// the range behind them.
    pub fn admits(
        &self,
        excess: &[(usize, Vec<Datum>)],
        table: &TableLayout,
        row: &[Datum],
        outer: &[Datum],
        eval: &EvalContext,
    ) -> SqlResult<bool> {
        let listed = |(at, values): &(usize, Vec<Datum>)| {
            values.binary_search_by(|v| v.cmp_sql(&row[*at])).is_ok()
        };
        if !excess.iter().all(listed) {
            return Ok(false);
        }
        match self.layout(table).columns().get(self.eq.len()) {
            Some(behind) => self.range_holds(&row[behind.ordinal], outer, eval),
            None => Ok(true),
        }
    }

    /// Whether the spans are single keys of the primary key.
    pub fn is_point(&self, layout: &TableLayout) -> bool {
        if !self.either.is_empty() {
            return self.either.iter().all(|a| a.is_point(layout) && a.spans_max().is_some());
        }
        let given = self.tuples.as_ref().map_or(self.eq.len(), |tuples| tuples.fields.len());
        self.index.is_none() && given == layout.rows.columns().len()
    }

    /// Whether it is the key of one row, whatever its values are.
    pub fn is_one_point(&self, layout: &TableLayout) -> bool {
        self.is_point(layout) && self.spans_max() == Some(1)
    }

    /// The most spans that its values make; `None`: too many, or that depends on the values.
    fn spans_max(&self) -> Option<usize> {
        let few = |n: usize| (n <= MAX_SPANS).then_some(n);
        if !self.either.is_empty() {
            let add = |n: usize, access: &Access| access.spans_max().and_then(|own| few(n + own));
            return self.either.iter().try_fold(0, add);
        }
        if let Some(tuples) = &self.tuples {
            return few(tuples.rows.len());
        }
        let times = |n: usize, values: &Values| match values {
            Values::List(list) => n.checked_mul(list.len()).and_then(few),
            Values::Array(_) => None,
        };
        self.eq.iter().try_fold(1, times)
    }

    /// The values of each leading column: no value twice, NULLs left out.
    fn values(&self, outer: &[Datum], eval: &EvalContext) -> SqlResult<Vec<Vec<Datum>>> {
        let mut out = Vec::new();
        for v in &self.eq {
            let mut list = Vec::new();
            match v {
                Values::List(exprs) => {
                    for e in exprs {
                        list.push(e.eval(outer, eval)?);
                    }
                }
                Values::Array(e) => {
                    if let Datum::Array(a) = e.eval(outer, eval)? {
                        list.extend(a.items.iter().cloned());
                    }
                }
            }
            list.retain(|d| !d.is_null());
            list.sort_by(Datum::cmp_sql);
            list.dedup_by(|a, b| a.cmp_sql(b).is_eq());
            out.push(list);
        }
        Ok(out)
    }

    /// How many of the leading columns are combined into spans: all, as long as that are not too
    /// many. One list alone may be as long as it wants.
    fn combined(values: &[Vec<Datum>]) -> usize {
        let mut product = 1usize;
        for (n, list) in values.iter().enumerate() {
            product = product.saturating_mul(list.len());
            if product > MAX_SPANS && product != list.len() {
                return n;
            }
        }
        values.len()
    }

    /// The combinations of values of the leading columns, in key order of ascending columns. Of
    /// columns that would make too many nothing is said: see [`Access::excess`].
    pub fn prefixes(&self, outer: &[Datum], eval: &EvalContext) -> SqlResult<Vec<Vec<Datum>>> {
        if let Some(tuples) = &self.tuples {
            return tuples.prefixes(outer, eval);
        }
        // So it is nearly always.
        if self.eq.iter().all(|values| values.only().is_some()) {
            let values = self.eq.iter().filter_map(Values::only);
            let one = values.map(|e| e.eval(outer, eval)).collect::<SqlResult<Vec<_>>>()?;
            return Ok(if one.iter().any(Datum::is_null) { vec![] } else { vec![one] });
        }
        let mut out: Vec<Vec<Datum>> = vec![Vec::new()];
        let mut values = self.values(outer, eval)?;
        values.truncate(Access::combined(&values));
        for list in values {
            out = out
                .into_iter()
                .flat_map(|p| {
                    list.iter().map(move |v| {
                        let mut p = p.clone();
                        p.push(v.clone());
                        p
                    })
                })
                .collect();
        }
        Ok(out)
    }

    /// What the spans do not say because that would make too many: ordinals with the values, in
    /// order, of which a row must have one; and the range behind them. Usually nothing.
    pub fn excess(
        &self,
        table: &TableLayout,
        outer: &[Datum],
        eval: &EvalContext,
    ) -> SqlResult<Vec<(usize, Vec<Datum>)>> {
        if self.eq.iter().filter(|values| values.only().is_none()).count() < 2 {
            return Ok(Vec::new());
        }
        let mut values = self.values(outer, eval)?;
        let combined = Access::combined(&values);
        let columns = self.layout(table).columns();
        let left = values.split_off(combined);
        Ok(left.into_iter().zip(&columns[combined..]).map(|(v, c)| (c.ordinal, v)).collect())
    }

    /// The key layout it reads along.
    pub fn layout<'a>(&self, table: &'a TableLayout) -> &'a Layout {
        match self.index {
            None => &table.rows,
            Some(i) => &table.indexes[i].layout,
        }
    }

    /// The spans to read, sorted, not overlapping. Spans of the primary key hold whole families.
    pub fn spans(
        &self,
        table: &TableLayout,
        outer: &[Datum],
        eval: &EvalContext,
    ) -> SqlResult<Vec<KeySpan>> {
        if !self.either.is_empty() {
            let mut all = Vec::new();
            for access in &self.either {
                all.extend(access.spans(table, outer, eval)?);
            }
            return Ok(merged(all));
        }
        let layout = self.layout(table);
        let bound = |b: &Option<(Bound, bool)>| -> SqlResult<Option<(Datum, bool)>> {
            b.as_ref().map(|(e, inc)| Ok((e.eval(outer, eval)?, *inc))).transpose()
        };
        let (lower, upper) = (bound(&self.range.lower)?, bound(&self.range.upper)?);
        // A comparison with NULL is never true.
        if [&lower, &upper].iter().any(|b| b.as_ref().is_some_and(|(v, _)| v.is_null())) {
            return Ok(Vec::new());
        }
        let mut out = Vec::new();
        for prefix in self.prefixes(outer, eval)? {
            let cut = prefix.len() < self.eq.len();
            let span = if cut || (lower.is_none() && upper.is_none()) {
                layout.prefix_span(&prefix)?
            } else {
                layout.range_span(&prefix, to_limit(&lower), to_limit(&upper))?
            };
            if !span.is_empty() {
                out.push(span);
            }
        }
        if self.tuples.is_some() {
            return Ok(merged(out));
        }
        out.sort_by(|a, b| a.start.cmp(&b.start));
        Ok(out)
    }

    /// Exact keys, when [`Access::is_point`].
    pub fn points(
        &self,
        table: &TableLayout,
        outer: &[Datum],
        eval: &EvalContext,
    ) -> SqlResult<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        for access in &self.either {
            keys.extend(access.points(table, outer, eval)?);
        }
        if self.either.is_empty() {
            for prefix in self.prefixes(outer, eval)? {
                keys.push(table.rows.prefix(&prefix)?);
            }
        }
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    /// Whether it is the key of one row, each column of which has one value.
    pub fn is_key(&self, layout: &TableLayout) -> bool {
        self.either.is_empty()
            && self.tuples.is_none()
            && self.is_point(layout)
            && self.eq.iter().all(|values| values.only().is_some())
    }

    /// The key, when [`Access::is_key`]; `None` if one of its values is NULL.
    pub fn key(
        &self,
        table: &TableLayout,
        outer: &[Datum],
        eval: &EvalContext,
    ) -> SqlResult<Option<Vec<u8>>> {
        let value = |v: &Values| v.only().map_or(Ok(Datum::Null), |e| e.eval(outer, eval));
        let key = |values: &[Datum]| match values.iter().any(Datum::is_null) {
            true => Ok(None),
            false => table.rows.prefix(values).map(Some),
        };
        match self.eq.as_slice() {
            // Nearly always: no list is made for it.
            [one] => key(&[value(one)?]),
            all => key(&all.iter().map(value).collect::<SqlResult<Vec<_>>>()?),
        }
    }

    /// In words, for EXPLAIN. `names` are those of the columns that values come from.
    pub fn describe(&self, table: &TableLayout, names: &dyn Fn(usize) -> String) -> String {
        if !self.either.is_empty() {
            let each = self.either.iter().map(|one| format!("({})", one.describe(table, names)));
            return each.collect::<Vec<_>>().join(" OR ");
        }
        let layout = self.layout(table);
        let name = |n: usize| table.table.key_name(layout.columns()[n].column);
        let mut parts: Vec<String> = (0..self.eq.len())
            .map(|n| match &self.eq[n] {
                Values::List(l) if l.len() == 1 => {
                    format!("{} = {}", name(n), l[0].to_sql(names))
                }
                Values::List(l) => {
                    let items: Vec<_> = l.iter().map(|value| value.to_sql(names)).collect();
                    format!("{} IN ({})", name(n), items.join(", "))
                }
                Values::Array(a) => {
                    format!("{} = ANY ({})", name(n), a.to_sql(names))
                }
            })
            .collect();
        if let Some(tuples) = &self.tuples {
            parts.push(tuples.describe(&name, names));
        }
        let n = self.eq.len();
        if let Some((v, inc)) = &self.range.lower {
            let sign = if *inc { ">=" } else { ">" };
            parts.push(format!("{} {sign} {}", name(n), v.to_sql(names)));
        }
        if let Some((v, inc)) = &self.range.upper {
            let sign = if *inc { "<=" } else { "<" };
            parts.push(format!("{} {sign} {}", name(n), v.to_sql(names)));
        }
        if parts.is_empty() { "all rows".into() } else { parts.join(" AND ") }
    }
}
