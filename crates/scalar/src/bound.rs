//! The typed expression tree and its evaluation.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_types::{
    ArrayValue, CastContext, Collated, Datum, RecordValue, SqlResult, SqlType,
    commit_time_is_pending,
};

use crate::conversion::convert;
use crate::registry::Builtin;
use crate::{EvalContext, limits};

/// How often an expression's value may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// Same arguments, same value, forever.
    Immutable,
    /// Same value within one statement.
    Stable,
    /// Any call may differ.
    Volatile,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CmpOp {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl CmpOp {
    /// Whether the operator holds for values in this order.
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            CmpOp::Eq => order.is_eq(),
            CmpOp::Ne => order.is_ne(),
            CmpOp::Lt => order.is_lt(),
            CmpOp::Le => order.is_le(),
            CmpOp::Gt => order.is_gt(),
            CmpOp::Ge => order.is_ge(),
        }
    }

    /// The operator with its sides exchanged.
    pub fn flipped(self) -> CmpOp {
        match self {
            CmpOp::Lt => CmpOp::Gt,
            CmpOp::Le => CmpOp::Ge,
            CmpOp::Gt => CmpOp::Lt,
            CmpOp::Ge => CmpOp::Le,
            same => same,
        }
    }

    /// The operator that holds where this one does not.
    pub fn negated(self) -> CmpOp {
        match self {
            CmpOp::Eq => CmpOp::Ne,
            CmpOp::Ne => CmpOp::Eq,
            CmpOp::Lt => CmpOp::Ge,
            CmpOp::Le => CmpOp::Gt,
            CmpOp::Gt => CmpOp::Le,
            CmpOp::Ge => CmpOp::Lt,
        }
    }

    /// As written in SQL.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            CmpOp::Eq => "=",
            CmpOp::Ne => "<>",
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
        }
    }
}

/// One WHEN of a CASE.
#[derive(Clone, Debug)]
pub struct CaseBranch {
    /// The condition.
    pub when: Bound,
    /// The value.
    pub then: Bound,
}

/// The operator of `x op ANY (array)`.
#[derive(Clone, Debug)]
pub enum QuantifiedOp {
    /// A comparison.
    Compare(CmpOp),
    /// A boolean function of two arguments, such as LIKE.
    Function(&'static Builtin),
}

/// What an expression does; see [`Bound`].
#[derive(Clone, Debug)]
pub enum Node {
    /// A constant.
    Const(Datum),
    /// The row's column with this ordinal.
    Column(usize),
    /// The parameter with this zero-based index.
    Param(usize),
    /// Conjunction, at least two parts.
    And(Vec<Bound>),
    /// Disjunction, at least two parts.
    Or(Vec<Bound>),
    /// Negation.
    Not(Bound),
    /// Comparison of two values whose types are comparable as they are (same representation, or
    /// both integers).
    Compare(CmpOp, Bound, Bound),
    /// `IS DISTINCT FROM`, or `IS NOT DISTINCT FROM` when the flag is set.
    IsDistinct(Bound, Bound, bool),
    /// `IS NULL`, or `IS NOT NULL` when the flag is set.
    IsNull(Bound, bool),
    /// `IS TRUE`, `IS FALSE`, `IS UNKNOWN` (None); the flag is NOT.
    IsTruth(Bound, Option<bool>, bool),
    /// `needle [NOT] IN (list)`; the flag is NOT.
    InList(Bound, Vec<Bound>, bool),
    /// `left op ANY (array)`, or ALL when the flag is set.
    Quantified(QuantifiedOp, Bound, Bound, bool),
    /// Conversion to this expression's type.
    Cast(Bound, CastContext),
    /// CASE; no ELSE is NULL.
    Case(Vec<CaseBranch>, Option<Bound>),
    /// First value that is not NULL.
    Coalesce(Vec<Bound>),
    /// NULL if both are equal, else the first.
    NullIf(Bound, Bound),
    /// Largest (or with the flag, smallest) value that is not NULL.
    Extreme(Vec<Bound>, bool),
    /// `ARRAY[...]`.
    Array(Vec<Bound>),
    /// `ROW(...)`, or a table's row with the names of its columns.
    Row(Vec<Bound>, Option<FieldNames>),
    /// `(row).field`: the field at a place of a value of a composite type.
    Field(Bound, usize),
    /// `array[index][index]`.
    Subscript(Bound, Vec<Bound>),
    /// `array[low:high][low:high]`.
    Slice(Bound, Vec<(Option<Bound>, Option<Bound>)>),
    /// A function or operator.
    Call(&'static Builtin, Vec<Bound>),
    /// A computation that the planner supplies, such as a subquery.
    Apply(Arc<dyn Applied>, Vec<Bound>),
}

/// Names of a row's fields.
pub type FieldNames = Arc<[Arc<str>]>;

/// A computation from outside of this crate inside an expression. It runs when its value is
/// wanted, so CASE, AND and the others stay lazy around it.
pub trait Applied: Send + Sync {
    /// The value for these arguments.
    ///
    /// # Errors
    /// Its own.
    fn apply(&self, args: &[Datum], ctx: &EvalContext) -> SqlResult<Datum>;

    /// For EXPLAIN.
    fn label(&self) -> String;

    /// How often the value may change.
    fn volatility(&self) -> Volatility;

    /// Told the arguments of calls that may follow, so that they can be computed together.
    fn expect(&self, _args: Vec<Vec<Datum>>) {}

    /// For the planner, which knows what it supplied.
    fn as_any(&self) -> &dyn std::any::Any;
}

impl std::fmt::Debug for dyn Applied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.label())
    }
}

/// A bound expression: a node, its type and its collation. Cloning shares the tree.
#[derive(Clone, Debug)]
pub struct Bound {
    ty: SqlType,
    collation: Collated,
    node: Arc<Node>,
}

impl Bound {
    /// Whether this is a clone of the other one.
    pub(crate) fn is_unchanged(&self, other: &Bound) -> bool {
        Arc::ptr_eq(&self.node, &other.node) && self.ty == other.ty
    }

    /// Wraps a node; the caller vouches for the type. Its collation is that of its parts.
    pub fn new(node: Node, ty: SqlType) -> Bound {
        let collation = collation_of(&node, &ty);
        Bound { ty, collation, node: Arc::new(node) }
    }

    /// The same value with another collation.
    #[must_use]
    pub fn with_collation(mut self, collation: Collated) -> Bound {
        self.collation = collation;
        self
    }

    /// Its collation.
    pub fn collation(&self) -> &Collated {
        &self.collation
    }

    /// A constant.
    pub fn constant(value: Datum, ty: SqlType) -> Bound {
        Bound::new(Node::Const(value), ty)
    }

    /// A column of the row.
    pub fn column(ordinal: usize, ty: SqlType) -> Bound {
        Bound::new(Node::Column(ordinal), ty)
    }

    /// A boolean constant.
    pub fn boolean(value: bool) -> Bound {
        Bound::constant(Datum::Bool(value), SqlType::Bool)
    }

    /// The conjunction of the parts; true if there are none.
    pub fn and(mut parts: Vec<Bound>) -> Bound {
        match parts.len() {
            0 => Bound::boolean(true),
            1 => parts.pop().expect("one part"),
            _ => Bound::new(Node::And(parts), SqlType::Bool),
        }
    }

    /// The disjunction of the parts; false if there are none.
    pub fn or(mut parts: Vec<Bound>) -> Bound {
        match parts.len() {
            0 => Bound::boolean(false),
            1 => parts.pop().expect("one part"),
            _ => Bound::new(Node::Or(parts), SqlType::Bool),
        }
    }

    /// Negation.
    pub fn negated(self) -> Bound {
        Bound::new(Node::Not(self), SqlType::Bool)
    }

    /// Its type.
    pub fn ty(&self) -> &SqlType {
        &self.ty
    }

    /// Its node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The same value under another name of its type (`varchar` as `text`). A cast stays what it
    /// is, because its type is its target.
    pub(crate) fn relabeled(mut self, ty: SqlType) -> Bound {
        if let Node::Cast(..) = self.node() {
            return Bound::new(Node::Cast(self, CastContext::Explicit), ty);
        }
        self.ty = ty;
        self
    }

    /// The constant, if this is one.
    pub fn as_const(&self) -> Option<&Datum> {
        match self.node() {
            Node::Const(value) => Some(value),
            _ => None,
        }
    }

    /// The ordinal, if this is a bare column.
    pub fn as_column(&self) -> Option<usize> {
        match self.node() {
            Node::Column(at) => Some(*at),
            _ => None,
        }
    }

    /// The value for one row.
    ///
    /// # Errors
    /// Whatever SQL functions and casts raise.
    pub fn eval(&self, row: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
        match self.node() {
            Node::Const(value) => Ok(value.clone()),
            Node::Column(at) => column(row, *at),
            Node::Param(index) => ctx.param(*index),
            Node::And(parts) => eval_connective(parts, false, row, ctx),
            Node::Or(parts) => eval_connective(parts, true, row, ctx),
            Node::Not(inner) => Ok(match inner.eval(row, ctx)? {
                Datum::Bool(b) => Datum::Bool(!b),
                _ => Datum::Null,
            }),
            Node::Compare(op, left, right) => {
                let (l, r) = (left.eval(row, ctx)?, right.eval(row, ctx)?);
                Ok(compare(*op, &l, &r))
            }
            Node::IsDistinct(left, right, not) => {
                let (l, r) = (left.eval(row, ctx)?, right.eval(row, ctx)?);
                Ok(Datum::Bool(l.cmp_sql(&r).is_ne() != *not))
            }
            Node::IsNull(inner, not) => Ok(Bound::null_test(&inner.eval(row, ctx)?, *not)),
            Node::IsTruth(inner, truth, not) => {
                let found = match inner.eval(row, ctx)? {
                    Datum::Bool(b) => Some(b),
                    _ => None,
                };
                Ok(Datum::Bool((found == *truth) != *not))
            }
            Node::InList(needle, list, not) => {
                let needle = needle.eval(row, ctx)?;
                eval_any(CmpOp::Eq, &needle, list.iter().map(|e| e.eval(row, ctx)), *not)
            }
            Node::Quantified(op, left, array, all) => {
                let left = left.eval(row, ctx)?;
                let Datum::Array(array) = array.eval(row, ctx)? else { return Ok(Datum::Null) };
                eval_quantified(op, &left, &array.items, *all, ctx)
            }
            Node::Cast(inner, context) => {
                convert(&inner.eval(row, ctx)?, inner.ty(), &self.ty, *context, ctx)
            }
            Node::Case(branches, otherwise) => {
                for branch in branches {
                    if branch.when.eval_bool(row, ctx)? {
                        return branch.then.eval(row, ctx);
                    }
                }
                otherwise.as_ref().map_or(Ok(Datum::Null), |e| e.eval(row, ctx))
            }
            Node::Coalesce(parts) => {
                for part in parts {
                    let value = part.eval(row, ctx)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Datum::Null)
            }
            Node::NullIf(value, equality) => {
                if equality.eval_bool(row, ctx)? {
                    Ok(Datum::Null)
                } else {
                    value.eval(row, ctx)
                }
            }
            Node::Extreme(parts, smallest) => eval_extreme(parts, *smallest, row, ctx),
            Node::Array(parts) => {
                let items = parts.iter().map(|p| p.eval(row, ctx)).collect::<SqlResult<_>>()?;
                let element = self.ty.element().cloned().unwrap_or(SqlType::Text);
                let nested = parts.iter().any(|p| matches!(p.ty(), SqlType::Array(_)));
                let array = match nested {
                    true => stacked(element, items)?,
                    false => ArrayValue::list(element, items),
                };
                Ok(Datum::Array(Arc::new(array)))
            }
            Node::Row(parts, names) => {
                let fields = parts.iter().map(|p| p.eval(row, ctx)).collect::<SqlResult<_>>()?;
                Ok(Datum::Record(Arc::new(RecordValue { names: names.clone(), fields })))
            }
            Node::Apply(code, args) => {
                let values =
                    args.iter().map(|a| a.eval(row, ctx)).collect::<SqlResult<Vec<_>>>()?;
                code.apply(&values, ctx)
            }
            Node::Field(whole, at) => Ok(field_at(&whole.eval(row, ctx)?, *at)),
            Node::Subscript(array, indexes) => {
                subscripted(&array.eval(row, ctx)?, indexes, row, ctx)
            }
            Node::Slice(array, bounds) => eval_slice(array, bounds, row, ctx),
            Node::Call(function, args) => self.call(function, args, row, ctx),
        }
    }

    /// A call: all arguments are computed, as PostgreSQL does, before a strict function gives NULL.
    fn call(
        &self,
        function: &Builtin,
        args: &[Bound],
        row: &[Datum],
        ctx: &EvalContext,
    ) -> SqlResult<Datum> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(arg.eval(row, ctx)?);
        }
        if function.strict && values.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let value = limits::checked(function.eval(&values, ctx)?, &values, ctx)?;
        // An array made of NULLs alone does not know its type.
        match (&value, &self.ty) {
            (Datum::Array(array), SqlType::Array(element)) if array.element == SqlType::Unknown => {
                let (element, items) = ((**element).clone(), array.items.clone());
                Ok(Datum::Array(Arc::new(array.like(element, items))))
            }
            _ => Ok(value),
        }
    }

    fn null_test(value: &Datum, not: bool) -> Datum {
        Datum::Bool(match value {
            // A row IS NULL when all fields are, IS NOT NULL when none is.
            Datum::Record(fields) if not => !fields.iter().any(Datum::is_null),
            Datum::Record(fields) => fields.iter().all(Datum::is_null),
            other => other.is_null() != not,
        })
    }

    /// Whether something that the planner supplied is inside.
    pub fn has_applied(&self) -> bool {
        matches!(self.node(), Node::Apply(..)) || self.children().iter().any(|c| c.has_applied())
    }

    /// Tells what the planner supplied the arguments that these rows will have for it, as far as it
    /// is clear that their values will be asked for.
    pub fn expect(&self, mut rows: Vec<&[Datum]>, ctx: &EvalContext) {
        if rows.is_empty() || !self.has_applied() {
            return;
        }
        match self.node() {
            Node::Apply(code, args) => {
                args.iter().for_each(|a| a.expect(rows.clone(), ctx));
                if args.iter().any(|a| a.volatility() == Volatility::Volatile) {
                    return;
                }
                let of = |row: &&[Datum]| -> Option<Vec<Datum>> {
                    args.iter().map(|a| a.eval(row, ctx).ok()).collect()
                };
                code.expect(rows.iter().filter_map(of).collect());
            }
            Node::And(parts) | Node::Or(parts) => {
                let decisive = matches!(self.node(), Node::Or(_));
                for part in parts {
                    part.expect(rows.clone(), ctx);
                    part.keep(&mut rows, decisive, ctx);
                }
            }
            Node::Case(branches, otherwise) => {
                for branch in branches {
                    branch.when.expect(rows.clone(), ctx);
                    let mut taken = rows.clone();
                    branch.when.keep(&mut taken, false, ctx);
                    branch.then.expect(taken, ctx);
                    branch.when.keep(&mut rows, true, ctx);
                }
                otherwise.iter().for_each(|e| e.expect(rows.clone(), ctx));
            }
            _ => self.children().iter().for_each(|c| c.expect(rows.clone(), ctx)),
        }
    }

    /// Drops the rows for which a condition has this value, where that can be told beforehand.
    fn keep(&self, rows: &mut Vec<&[Datum]>, value: bool, ctx: &EvalContext) {
        if !self.has_applied() && self.volatility() < Volatility::Volatile {
            rows.retain(|row| !matches!(self.eval(row, ctx), Ok(Datum::Bool(b)) if b == value));
        }
    }

    /// The value as a condition: NULL is false.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn eval_bool(&self, row: &[Datum], ctx: &EvalContext) -> SqlResult<bool> {
        Ok(matches!(self.eval(row, ctx)?, Datum::Bool(true)))
    }

    /// The direct parts of this expression.
    pub fn children(&self) -> Vec<&Bound> {
        match self.node() {
            Node::Const(_) | Node::Column(_) | Node::Param(_) => Vec::new(),
            Node::And(p)
            | Node::Or(p)
            | Node::Coalesce(p)
            | Node::Extreme(p, _)
            | Node::Array(p)
            | Node::Row(p, _)
            | Node::Apply(_, p)
            | Node::Call(_, p) => p.iter().collect(),
            Node::Not(a)
            | Node::IsNull(a, _)
            | Node::IsTruth(a, _, _)
            | Node::Field(a, _)
            | Node::Cast(a, _) => vec![a],
            Node::Compare(_, a, b)
            | Node::IsDistinct(a, b, _)
            | Node::Quantified(_, a, b, _)
            | Node::NullIf(a, b) => vec![a, b],
            Node::InList(a, list, _) | Node::Subscript(a, list) => {
                std::iter::once(a).chain(list).collect()
            }
            Node::Case(branches, otherwise) => {
                branches.iter().flat_map(|b| [&b.when, &b.then]).chain(otherwise.as_ref()).collect()
            }
            Node::Slice(a, bounds) => {
                let both = |(low, high)| [low, high];
                let both = bounds.iter().map(|(low, high)| (low, high)).flat_map(both);
                std::iter::once(a).chain(both.flatten()).collect()
            }
        }
    }

    /// The expression with each direct part replaced.
    pub fn map_children(&self, f: &mut dyn FnMut(&Bound) -> Bound) -> Bound {
        let mut all = |parts: &[Bound]| -> Vec<Bound> { parts.iter().map(&mut *f).collect() };
        let node = match self.node() {
            Node::Const(_) | Node::Column(_) | Node::Param(_) => return self.clone(),
            Node::And(p) => Node::And(all(p)),
            Node::Or(p) => Node::Or(all(p)),
            Node::Coalesce(p) => Node::Coalesce(all(p)),
            Node::Extreme(p, s) => Node::Extreme(all(p), *s),
            Node::Array(p) => Node::Array(all(p)),
            Node::Row(p, names) => Node::Row(all(p), names.clone()),
            Node::Apply(code, p) => Node::Apply(code.clone(), all(p)),
            Node::Call(function, p) => Node::Call(function, all(p)),
            Node::Not(a) => Node::Not(f(a)),
            Node::IsNull(a, n) => Node::IsNull(f(a), *n),
            Node::IsTruth(a, t, n) => Node::IsTruth(f(a), *t, *n),
            Node::Cast(a, c) => Node::Cast(f(a), *c),
            Node::Field(a, at) => Node::Field(f(a), *at),
            Node::Compare(op, a, b) => Node::Compare(*op, f(a), f(b)),
            Node::IsDistinct(a, b, n) => Node::IsDistinct(f(a), f(b), *n),
            Node::Quantified(op, a, b, n) => Node::Quantified(op.clone(), f(a), f(b), *n),
            Node::NullIf(a, b) => Node::NullIf(f(a), f(b)),
            Node::Subscript(a, list) => {
                let a = f(a);
                Node::Subscript(a, list.iter().map(&mut *f).collect())
            }
            Node::InList(a, list, n) => {
                let a = f(a);
                Node::InList(a, list.iter().map(&mut *f).collect(), *n)
            }
            Node::Case(branches, otherwise) => Node::Case(
                branches
                    .iter()
                    .map(|b| CaseBranch { when: f(&b.when), then: f(&b.then) })
                    .collect(),
                otherwise.as_ref().map(&mut *f),
            ),
            Node::Slice(a, bounds) => {
                let a = f(a);
                let mut both = |(low, high): &(Option<Bound>, Option<Bound>)| {
                    (low.as_ref().map(&mut *f), high.as_ref().map(&mut *f))
                };
                Node::Slice(a, bounds.iter().map(&mut both).collect())
            }
        };
        Bound { ty: self.ty.clone(), collation: self.collation.clone(), node: Arc::new(node) }
    }

    /// Whether the value is the same for all rows of one execution: no columns, nothing volatile.
    /// It may hold parameters.
    pub fn is_const(&self) -> bool {
        self.columns().is_empty() && self.volatility() < Volatility::Volatile
    }

    /// Ordinals of the columns used.
    pub fn columns(&self) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        self.collect_columns(&mut found);
        found
    }

    fn collect_columns(&self, found: &mut BTreeSet<usize>) {
        if let Node::Column(at) = self.node() {
            found.insert(*at);
        }
        for child in self.children() {
            child.collect_columns(found);
        }
    }

    /// The parts of a conjunction, or the expression itself.
    pub fn conjuncts(&self) -> Vec<Bound> {
        match self.node() {
            Node::And(parts) => parts.iter().flat_map(Bound::conjuncts).collect(),
            _ => vec![self.clone()],
        }
    }

    /// The same expression over a row whose columns are elsewhere.
    pub fn remap_columns(&self, map: &dyn Fn(usize) -> usize) -> Bound {
        match self.node() {
            Node::Column(at) => Bound { node: Arc::new(Node::Column(map(*at))), ..self.clone() },
            _ => self.map_children(&mut |child| child.remap_columns(map)),
        }
    }

    /// How often the value may change.
    pub fn volatility(&self) -> Volatility {
        let own = match self.node() {
            Node::Call(function, _) => function.volatility,
            Node::Apply(code, _) => code.volatility(),
            Node::Param(_) => Volatility::Stable,
            Node::Cast(inner, _) if zone_matters(inner.ty(), &self.ty) => Volatility::Stable,
            _ => Volatility::Immutable,
        };
        self.children().iter().map(|c| c.volatility()).fold(own, Volatility::max)
    }
}

/// The collation of a value of a type that is made so, as it follows from its parts.
fn collation_of(node: &Node, ty: &SqlType) -> Collated {
    let all = |parts: &[Bound]| {
        parts.iter().fold(Collated::Default, |all, part| match part.collation {
            Collated::Default => all,
            _ => all.with(&part.collation),
        })
    };
    if ty.is_row() || ty.element().is_some_and(SqlType::is_row) {
        let inside = match node {
            Node::Row(parts, _)
            | Node::Coalesce(parts)
            | Node::Extreme(parts, _)
            | Node::Array(parts)
            | Node::Call(_, parts) => parts.clone(),
            Node::Cast(inner, _) | Node::Subscript(inner, _) | Node::Slice(inner, _) => {
                vec![inner.clone()]
            }
            Node::Case(..) => case_values(node),
            _ => Vec::new(),
        };
        return match inside.iter().all(|part| part.collation.is_by_bytes()) {
            true => Collated::Default,
            false => Collated::Row(inside.iter().all(|part| part.collation.is_deterministic())),
        };
    }
    if !ty.is_collatable() {
        return Collated::Default;
    }
    match node {
        Node::Coalesce(parts)
        | Node::Extreme(parts, _)
        | Node::Array(parts)
        | Node::Call(_, parts) => all(parts),
        Node::Cast(inner, _) if inner.ty.is_collatable() => inner.collation.clone(),
        Node::NullIf(inner, _) | Node::Subscript(inner, _) | Node::Slice(inner, _) => {
            inner.collation.clone()
        }
        Node::Case(..) => all(&case_values(node)),
        // Which of its fields have which is not known.
        Node::Field(whole, _) => whole.collation.clone(),
        _ => Collated::Default,
    }
}

/// The values that a CASE may have.
fn case_values(node: &Node) -> Vec<Bound> {
    let Node::Case(branches, otherwise) = node else { return Vec::new() };
    branches.iter().map(|b| &b.then).chain(otherwise).cloned().collect()
}

/// Whether a cast looks at the session: its time zone, its styles or its catalog.
pub(crate) fn zone_matters(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    fn zoned(t: &T) -> bool {
        let bounds = |t: &T| matches!(t, T::Range(kind) if zoned(&kind.element()));
        matches!(t, T::TimestampTz | T::TimeTz)
            || bounds(t)
            || t.names_objects()
            || t.parts().any(zoned)
    }
    fn styled(t: &T) -> bool {
        let own = matches!(
            t,
            T::Date
                | T::Timestamp
                | T::Range(_)
                | T::Interval
                | T::Float4
                | T::Float8
                | T::Bytea
                | T::Record
                | T::Geometry(_)
        );
        own || t.parts().any(styled)
    }
    fn ordered(t: &T) -> bool {
        let bounds = |t: &T| matches!(t, T::Range(kind) if ordered(&kind.element()));
        matches!(t, T::Date | T::Time | T::Timestamp | T::Interval)
            || bounds(t)
            || t.parts().any(ordered)
    }
    let text = |t: &T| t.is_text_like() || *t == T::Unknown;
    let by_values = matches!(from, T::Record | T::Json | T::Jsonb) && matches!(to, T::Composite(_));
    !from.same_base(to)
        && (by_values
            || zoned(from)
            || zoned(to)
            || (styled(from) && text(to))
            || (text(from) && ordered(to)))
}

/// Compares with SQL's NULL logic.
pub fn compare(op: CmpOp, left: &Datum, right: &Datum) -> Datum {
    if left.is_null() || right.is_null() {
        return Datum::Null;
    }
    Datum::Bool(op.holds(left.cmp_sql(right)))
}

/// What is at subscripts. Of no array no place is computed.
fn subscripted(
    whole: &Datum,
    indexes: &[Bound],
    row: &[Datum],
    ctx: &EvalContext,
) -> SqlResult<Datum> {
    if whole.is_null() {
        return Ok(Datum::Null);
    }
    let mut places = Vec::with_capacity(indexes.len());
    for index in indexes {
        match index.eval(row, ctx)? {
            Datum::Int4(place) => places.push(place),
            _ => return Ok(Datum::Null),
        }
    }
    let found = match whole {
        Datum::Array(array) => array.at(&places).cloned(),
        Datum::Geometry(shape) => shape.part(&places),
        _ => None,
    };
    Ok(found.unwrap_or(Datum::Null))
}

/// A field of a row; of NULL all are NULL.
fn field_at(whole: &Datum, at: usize) -> Datum {
    match whole {
        Datum::Record(fields) => fields.get(at).cloned().unwrap_or(Datum::Null),
        _ => Datum::Null,
    }
}

/// A column of a row, of which everything is known.
#[inline]
fn column(row: &[Datum], at: usize) -> SqlResult<Datum> {
    match row.get(at) {
        Some(value) if value.is_pending_commit_time() => Err(commit_time_is_pending()),
        Some(value) => Ok(value.clone()),
        None => Ok(Datum::Null),
    }
}

fn eval_connective(
    parts: &[Bound],
    decisive: bool,
    row: &[Datum],
    ctx: &EvalContext,
) -> SqlResult<Datum> {
    let mut unknown = false;
    for part in parts {
        match part.eval(row, ctx)? {
            Datum::Bool(b) if b == decisive => return Ok(Datum::Bool(decisive)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!decisive) })
}

fn eval_any(
    op: CmpOp,
    needle: &Datum,
    items: impl Iterator<Item = SqlResult<Datum>>,
    not: bool,
) -> SqlResult<Datum> {
    let mut unknown = false;
    for item in items {
        match compare(op, needle, &item?) {
            Datum::Bool(true) => return Ok(Datum::Bool(!not)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(not) })
}

fn eval_quantified(
    op: &QuantifiedOp,
    left: &Datum,
    items: &[Datum],
    all: bool,
    ctx: &EvalContext,
) -> SqlResult<Datum> {
    let mut unknown = false;
    for item in items {
        let result = match op {
            QuantifiedOp::Compare(op) => compare(*op, left, item),
            QuantifiedOp::Function(_) if left.is_null() || item.is_null() => Datum::Null,
            QuantifiedOp::Function(f) => f.eval(&[left.clone(), item.clone()], ctx)?,
        };
        match result {
            Datum::Bool(b) if b != all => return Ok(Datum::Bool(!all)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(all) })
}

fn eval_extreme(
    parts: &[Bound],
    smallest: bool,
    row: &[Datum],
    ctx: &EvalContext,
) -> SqlResult<Datum> {
    let mut best = Datum::Null;
    for part in parts {
        let value = part.eval(row, ctx)?;
        if value.is_null() {
            continue;
        }
        let order = value.cmp_sql(&best);
        if best.is_null() || (smallest && order.is_lt()) || (!smallest && order.is_gt()) {
            best = value;
        }
    }
    Ok(best)
}

/// Arrays in an array: one of a dimension more. NULLs go with empty arrays only.
fn stacked(element: SqlType, items: Vec<Datum>) -> SqlResult<ArrayValue> {
    let empty = || Arc::new(ArrayValue::list(element.clone(), Vec::new()));
    let parts: Vec<Arc<ArrayValue>> = items
        .into_iter()
        .map(|item| match item {
            Datum::Array(part) => part,
            _ => empty(),
        })
        .collect();
    ArrayValue::stack(element.clone(), &parts)
}

fn eval_slice(
    array: &Bound,
    bounds: &[(Option<Bound>, Option<Bound>)],
    row: &[Datum],
    ctx: &EvalContext,
) -> SqlResult<Datum> {
    let Datum::Array(array) = array.eval(row, ctx)? else { return Ok(Datum::Null) };
    // A bound that is NULL makes the whole NULL; one that is left out is the array's own.
    let limit = |bound: &Option<Bound>| -> SqlResult<Option<Option<i32>>> {
        let Some(bound) = bound else { return Ok(Some(None)) };
        Ok(match bound.eval(row, ctx)? {
            Datum::Int4(v) => Some(Some(v)),
            _ => None,
        })
    };
    let mut limits = Vec::with_capacity(bounds.len());
    for (low, high) in bounds {
        let (Some(low), Some(high)) = (limit(low)?, limit(high)?) else { return Ok(Datum::Null) };
        limits.push((low, high));
    }
    Ok(Datum::Array(Arc::new(array.slice(&limits))))
}
