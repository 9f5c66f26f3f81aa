//! From a parsed query to a DataFusion plan, with names, types and conversions by our own binder.
//!
//! ```text
//!   level 0   SELECT a, (SELECT max(x) FROM u WHERE u.k = t.k) FROM t
//!   level 1            `----------------- its own level; t.k is found one level up
//! ```
//! Each SELECT is a *level*: an ordered list of *slots*. The first slots are the columns of FROM;
//! groups, aggregates, windows, subqueries and outer columns get further slots as they are met. A
//! bound expression names slots by ordinal; a slot knows the plan's expression for it.
//!
//! Every column that a plan node makes has a name used nowhere else, so DataFusion never has to
//! resolve a name.

mod aggregate_level;
pub(crate) mod assumed;
mod call;
mod cte;
mod faults;
mod frames;
mod from;
mod function_table;
mod grouped_sets;
mod grouping;
mod grouping_sets;
mod guests;
mod lateral;
mod lift;
mod populate;
mod recursion;
mod rows_from;
mod select;
mod set_op;
mod table_oid;
mod ties;
mod ungrouped;
mod user_call;
mod window;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_scalar::{
    BindContext, Bound, CaseBranch, EvalContext, Node, Padding, ParamTypes, Scope, Volatility,
    bind_unsettled, ident_name, missing_table, object_name_parts, order_form,
};
use braid_sql::session::types_in_reach;
use braid_sql::{GivenRows, PlanContext};
use braid_types::{
    CastContext, Collated, CompositeType, Datum, SqlError, SqlResult, SqlState, SqlType,
};
use datafusion::common::Column;
use datafusion::logical_expr::expr::{InList, Placeholder};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr};
use sqlparser::ast;

use self::assumed::Assumed;
use crate::arrow_form;
use crate::decorrelate::outer::OUTER;
use crate::error::from_df;
use crate::exec::execution::Place;
use crate::exec::materialized::Materialized;
use crate::exec::stoppable::check;
use crate::exec::{constant, scalar, vector};
use crate::planning::too_complex;

/// Queries may stand in each other this deep, views and operands of set operations included.
const DEPTH_MAX: usize = 250;

/// A bound relation: its plan, and for each column of the scope its plan expression.
pub struct Relation {
    /// The plan.
    pub plan: LogicalPlan,
    /// Names and types.
    pub scope: Scope,
    /// Plan expressions, one per column of the scope.
    pub columns: Vec<Expr>,
}

/// A column of a plan by its name, with its type and its collation.
type Named = (String, SqlType, Collated);

/// One result column of a query.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    /// Name for the client.
    pub name: String,
    /// Type.
    pub ty: SqlType,
    /// Collation.
    pub collation: Collated,
    /// Plan expression.
    pub expr: Expr,
    /// Table oid and column number, if it is a plain column of a table.
    pub origin: Option<(u32, i16)>,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// A bound query.
pub struct Bounded {
    /// The plan.
    pub plan: LogicalPlan,
    /// Result columns.
    pub columns: Vec<OutputColumn>,
}

/// What a slot stands for: an expression of the current plan.
#[derive(Clone)]
enum SlotKind {
    Plan(Expr),
}

#[derive(Clone)]
struct Slot {
    kind: SlotKind,
    ty: SqlType,
}

/// One SELECT being bound.
#[derive(Default)]
struct Level {
    scope: Scope,
    slots: Vec<Slot>,
    /// Outer columns: placeholder name, expression in the parent's slots.
    outer: Vec<(String, Bound, usize)>,
    groups: Vec<grouping::Group>,
    grouping: Option<grouping_sets::GroupingSets>,
    aggregates: Vec<grouping::Pending>,
    windows: Vec<window::Pending>,
    set_functions: Vec<function_table::Pending>,
    named_windows: Vec<window::Named>,
    /// Number of slots that are columns of FROM.
    inputs: usize,
    /// For each input: (relation number, table oid, attnum, part of the primary key).
    origins: Vec<Option<Origin>>,
    aggregating: Aggregating,
    /// Columns that WHERE makes equal to constants.
    fixed: Vec<(usize, Bound)>,
    /// Slots of numerics that have a bounded number of digits.
    short: HashSet<usize>,
    /// It is the body of a function: all that it sees of the levels around it.
    arguments: Option<Arc<user_call::Arguments>>,
}

/// What aggregates have to know of their place.
#[derive(Default)]
struct Aggregating {
    /// It is in the arguments of one.
    inside: bool,
    /// What may not hold aggregates, for the error.
    refused_in: Option<&'static str>,
    /// Why there may be no window functions.
    no_windows: Option<&'static str>,
    /// The order of the query that is all of FROM.
    from_order: Vec<ast::OrderByExpr>,
}

impl Level {
    /// The table and the column that a slot is of: an input, or a group that is one.
    fn origin_of(&self, slot: usize) -> Option<(u32, i16)> {
        let group = self.groups.iter().find(|group| group.slot == slot);
        let at = group.map_or(Some(slot), |group| group.bound.as_column())?;
        self.origins.get(at).copied().flatten().map(|o| (o.table_oid, o.attnum))
    }

    /// Whether a value is this input column, which USING may have put in two places.
    fn is_column(&self, value: &Bound, at: usize) -> bool {
        let expr = |at: usize| match self.slots.get(at).map(|slot| &slot.kind) {
            Some(SlotKind::Plan(Expr::Column(column))) => Some(column),
            _ => None,
        };
        value.as_column().is_some_and(|of| of == at || expr(of).is_some() && expr(of) == expr(at))
    }

    /// Whether a hidden column is one that USING merged with another: it is a column of its table
    /// all the same.
    fn is_merged(&self, at: usize) -> bool {
        let columns = self.scope.columns();
        let name = &columns[at].name;
        columns.iter().any(|c| c.table.is_none() && c.name == *name && !c.hidden)
    }
}

/// Where an input column comes from.
#[derive(Clone, Copy, Debug)]
struct Origin {
    relation: usize,
    table_oid: u32,
    attnum: i16,
    key: bool,
    keys: usize,
    /// Whether its relation here is the stored table itself, and not a view or a subquery over it.
    stored: bool,
    /// Whether its relation here is what the oid is of: a stored table or a view.
    whole: bool,
}

/// A common table expression in reach.
#[derive(Clone)]
enum Cte {
    /// Bound anew at each use.
    Query { name: String, columns: Vec<String>, query: Arc<ast::Query>, recursive: bool },
    /// Computed once and read by every use.
    Shared {
        name: String,
        columns: Vec<(String, SqlType)>,
        collations: Vec<Collated>,
        /// Of which tables the columns are.
        origins: Vec<Option<(u32, i16)>>,
        rows: Arc<Materialized>,
    },
    /// Rows of an earlier part of the statement; no columns if it returns none.
    Given(GivenRows),
    /// The work table of a recursive one.
    Work {
        name: String,
        columns: Vec<(String, SqlType)>,
        /// Of the columns.
        collations: Vec<Collated>,
        table: String,
    },
}

impl Cte {
    fn name(&self) -> &str {
        match self {
            Cte::Query { name, .. } | Cte::Work { name, .. } | Cte::Shared { name, .. } => name,
            Cte::Given(given) => &given.name,
        }
    }
}

/// See the [module documentation](self).
pub struct Binder<'a> {
    context: &'a PlanContext,
    eval: EvalContext,
    place: Arc<Place>,
    cancel: Arc<AtomicBool>,
    binding: Binding,
    params: ParamTypes,
    levels: Vec<Level>,
    ctes: Vec<Cte>,
    next_name: usize,
    next_relation: usize,
    view_depth: usize,
    /// How many queries are being bound inside each other.
    depth: usize,
    /// Depth of levels at which the work table of a recursive query may be named.
    work_level: usize,
    search_path: Vec<String>,
    catalog_rows: HashMap<String, Arc<Vec<Vec<Datum>>>>,
    /// Whether something that can raise an error was planned since this was last cleared.
    risky: bool,
    /// Whether something volatile was.
    volatile: bool,
    /// A materialized view without data that it names.
    unpopulated: Option<String>,
    /// What the shape of the plan depends on.
    assumed: Assumed,
}

/// What a plan is bound for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Many executions: whatever differs between them is looked up when it is wanted.
    Kept,
    /// As that, and it was found that the plan is another one for other values (LIMIT $1).
    ByValues,
    /// As [`Binding::Kept`], for executions with those values that the one has that begins.
    ForValues,
    /// It was found that parts depend on the execution.
    Anew,
    /// The execution that runs at the [`Place`]; values are built into the plan.
    Once,
}

/// What binding needs beside the query.
pub struct Surroundings<'a> {
    /// Catalog, names.
    pub context: &'a PlanContext,
    /// Parameters, clock.
    pub eval: EvalContext,
    /// Where the plan will find its execution.
    pub place: Arc<Place>,
    /// For which executions.
    pub binding: Binding,
    /// Cancel flag.
    pub cancel: Arc<AtomicBool>,
    /// Parameter types so far.
    pub params: ParamTypes,
}

impl<'a> Binder<'a> {
    /// A binder.
    pub fn new(s: Surroundings<'a>) -> Binder<'a> {
        Binder {
            search_path: s.context.search_path.clone(),
            context: s.context,
            eval: s.eval,
            place: s.place,
            binding: s.binding,
            cancel: s.cancel,
            params: s.params,
            levels: Vec::new(),
            ctes: Vec::new(),
            next_name: 0,
            next_relation: 0,
            view_depth: 0,
            depth: 0,
            work_level: 0,
            catalog_rows: HashMap::new(),
            risky: false,
            volatile: false,
            unpopulated: None,
            assumed: Assumed::default(),
        }
    }

    /// Parameter types after binding.
    pub fn params(&self) -> &ParamTypes {
        &self.params
    }

    /// Whether what was bound can be executed many times.
    pub(crate) fn can_be_kept(&self) -> bool {
        matches!(self.binding, Binding::Kept | Binding::ForValues)
    }

    /// Whether it can, for executions that have the same values where its shape depends on them.
    pub(crate) fn can_be_kept_for_values(&self) -> bool {
        self.binding == Binding::ByValues
    }

    /// What its executions must have in common.
    pub(crate) fn assumed(&mut self) -> Assumed {
        std::mem::take(&mut self.assumed)
    }

    /// A materialized view without data that was named.
    pub(crate) fn unpopulated(&self) -> Option<&str> {
        self.unpopulated.as_deref()
    }

    /// Whether what was bound calls volatile functions.
    pub(crate) fn is_volatile(&self) -> bool {
        self.volatile
    }

    /// What is bound next depends on the execution. Gives its context, if it is known; if not, the
    /// query will be bound again for each execution.
    fn bind_anew(&mut self) -> Option<EvalContext> {
        if self.binding == Binding::Once {
            return Some(self.eval.clone());
        }
        self.binding = Binding::Anew;
        None
    }

    /// As that, of what is the same for all executions that have the same values of parameters.
    fn bind_by_values(&mut self) -> Option<EvalContext> {
        match self.binding {
            Binding::Once | Binding::ForValues => return Some(self.eval.clone()),
            Binding::Kept => self.binding = Binding::ByValues,
            Binding::ByValues | Binding::Anew => {}
        }
        None
    }

    /// The value of an expression without columns that the plan's shape depends on, if it is known.
    fn value_now(&mut self, bound: &Bound) -> SqlResult<Option<Datum>> {
        let eval = match bound.volatility() {
            Volatility::Immutable => Some(self.eval.clone()),
            Volatility::Stable if !bound.has_applied() => self.bind_by_values(),
            Volatility::Stable | Volatility::Volatile => self.bind_anew(),
        };
        let value = eval.map(|eval| bound.eval(&[], &eval)).transpose()?;
        if let (Binding::ForValues, Some(value)) = (self.binding, &value) {
            self.assumed.values.push((bound.clone(), value.clone()));
        }
        Ok(value)
    }

    /// Types are found by the search path that holds now.
    fn name_types(&mut self) {
        let (catalog, database) = (&self.context.catalog, self.context.database_id());
        let types = types_in_reach(catalog, database, &self.search_path);
        self.params = std::mem::take(&mut self.params).with_types(types);
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.next_name += 1;
        format!("{prefix}{}", self.next_name)
    }

    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("binding happens inside a level")
    }

    /// 57014 when planning has to stop.
    fn check_cancel(&self) -> SqlResult<()> {
        check(&self.cancel).map_err(from_df)
    }

    /// Goes into a query inside of a query.
    ///
    /// # Errors
    /// 54001 when that is too deep for the stack; 57014 when planning has to stop.
    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        self.check_cancel()?;
        if self.depth >= DEPTH_MAX {
            return Err(too_complex(format!("it nests queries deeper than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn add_slot(&mut self, kind: SlotKind, ty: SqlType) -> usize {
        let level = self.level();
        level.slots.push(Slot { kind, ty });
        level.slots.len() - 1
    }

    /// A slot for a column of the plan, by its fresh name.
    fn add_column(&mut self, name: &str, ty: SqlType) -> usize {
        self.add_slot(SlotKind::Plan(column(name)), ty)
    }

    /// Binds an expression of the current level.
    fn expr(&mut self, expr: &ast::Expr) -> SqlResult<Bound> {
        self.check_cancel()?;
        let scope = self.level().scope.clone();
        bind_unsettled(expr, &scope, self)
    }

    fn settled(&mut self, expr: &ast::Expr) -> SqlResult<Bound> {
        let scope = self.level().scope.clone();
        braid_scalar::bind(expr, &scope, self)
    }

    fn condition(&mut self, expr: &ast::Expr, clause: &'static str) -> SqlResult<Bound> {
        let scope = self.level().scope.clone();
        let bound =
            self.without_aggregates(clause, |b| braid_scalar::bind_bool(expr, clause, &scope, b))?;
        Ok(faults::without_casts(&bound))
    }

    /// Binds what may hold no aggregates of this level.
    fn without_aggregates<T>(
        &mut self,
        clause: &'static str,
        bind: impl FnOnce(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<T> {
        let before = self.level().aggregating.refused_in.replace(clause);
        let bound = bind(self);
        self.level().aggregating.refused_in = before;
        bound
    }

    /// Runs `f` with a level of its own at the same depth; the outer columns that it finds belong
    /// to the current level as well.
    fn isolated<T>(&mut self, f: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        let saved = std::mem::take(self.level());
        self.level().arguments.clone_from(&saved.arguments);
        let result = f(self);
        let inner = std::mem::replace(self.level(), saved);
        let outer = inner.outer.into_iter().map(|(name, bound, _)| (name, bound, ELSEWHERE));
        self.level().outer.extend(outer);
        result
    }

    /// The plan expression of a bound expression of the current level.
    fn plan_expr(&mut self, bound: &Bound) -> SqlResult<Expr> {
        self.check_cancel()?;
        if self.binding != Binding::Once
            && bound.volatility() == Volatility::Stable
            && bound.columns().is_empty()
        {
            self.note(bound);
            if matches!(self.binding, Binding::ByValues | Binding::Anew) {
                // Nobody will execute this plan. A constant that runs a plan of its own would hold
                // the place that holds the constant, for ever.
                let nothing = arrow_form::scalar(&Datum::Null, bound.ty());
                return Ok(Expr::Literal(nothing, None));
            }
            let at = self.place.add_constant(bound.clone());
            return Ok(constant::placeholder(at, bound.ty()));
        }
        match bound.node() {
            Node::Const(value) => Ok(Expr::Literal(arrow_form::scalar(value, bound.ty()), None)),
            Node::Param(index) => {
                let value = self.eval.param(*index)?;
                Ok(Expr::Literal(arrow_form::scalar(&value, bound.ty()), None))
            }
            Node::Column(at) => {
                // The name of a column's type may have lost its modifiers on the way.
                let held = self.level().slots[*at].ty.clone();
                Ok(scalar::carried(self.slot_expr(*at)?, &held, bound.ty()))
            }
            // DataFusion computes both sides for a whole batch: what can fail or costs much is
            // computed row by row, from left to right, as far as its value is wanted.
            Node::And(_) | Node::Or(_) if self.can_fail(bound) => self.opaque(bound),
            Node::And(parts) => self.fold_parts(parts, Expr::and),
            Node::Or(parts) => self.fold_parts(parts, Expr::or),
            Node::Not(inner) => Ok(Expr::Not(Box::new(self.plan_expr(inner)?))),
            Node::IsNull(inner, not) if !inner.ty().is_row() => {
                let inner = self.plan_expr(inner)?;
                Ok(if *not { inner.is_not_null() } else { inner.is_null() })
            }
            // What is compared with NULL is computed if it can fail, as in our own plans.
            Node::Compare(_, left, right)
                if [left, right].iter().any(|s| s.as_const().is_some_and(Datum::is_null)) =>
            {
                self.opaque(bound)
            }
            Node::Compare(op, left, right) => self.comparison(bound, *op, left, right),
            Node::InList(needle, list, not) => {
                let carrier = arrow_form::data_type(needle.ty());
                let list: Vec<Bound> = list.iter().map(|i| fitted(i, needle.ty())).collect();
                let plain = arrow_form::is_native(needle.ty())
                    && list.iter().all(|i| arrow_form::data_type(i.ty()) == carrier);
                if !plain {
                    return self.opaque(bound);
                }
                let expr = Box::new(self.plan_expr(needle)?);
                let list = list.iter().map(|i| self.plan_expr(i)).collect::<SqlResult<Vec<_>>>()?;
                Ok(Expr::InList(InList { expr, list, negated: *not }))
            }
            _ => self.opaque(bound),
        }
    }

    fn fold_parts(&mut self, parts: &[Bound], join: fn(Expr, Expr) -> Expr) -> SqlResult<Expr> {
        let mut exprs = Vec::with_capacity(parts.len());
        for part in parts {
            exprs.push(self.plan_expr(part)?);
        }
        exprs.into_iter().reduce(join).ok_or_else(|| SqlError::internal("an empty conjunction"))
    }

    fn comparison(
        &mut self,
        bound: &Bound,
        op: braid_scalar::CmpOp,
        left: &Bound,
        right: &Bound,
    ) -> SqlResult<Expr> {
        use braid_scalar::CmpOp;
        let (left, right) = (&fitted(left, right.ty()), &fitted(right, left.ty()));
        let same = arrow_form::data_type(left.ty()) == arrow_form::data_type(right.ty());
        let native = arrow_form::is_native(left.ty()) && arrow_form::is_native(right.ty());
        let integers = left.ty().is_integer() && right.ty().is_integer();
        let df_op = match op {
            CmpOp::Eq => Operator::Eq,
            CmpOp::Ne => Operator::NotEq,
            CmpOp::Lt => Operator::Lt,
            CmpOp::Le => Operator::LtEq,
            CmpOp::Gt => Operator::Gt,
            CmpOp::Ge => Operator::GtEq,
        };
        if native && (same || integers) {
            let (l, r) = (self.plan_expr(left)?, self.plan_expr(right)?);
            return Ok(binary_expr(l, df_op, r));
        }
        let both_vary = !left.columns().is_empty() && !right.columns().is_empty();
        let numerics = [left, right].iter().all(|b| matches!(b.ty(), SqlType::Numeric(_)));
        if op == CmpOp::Eq && (same || numerics) && both_vary && !left.ty().is_row() {
            // Joins need an equality they can hash.
            let (l, r) = (self.join_key(left, same)?, self.join_key(right, same)?);
            return Ok(binary_expr(l, Operator::Eq, r));
        }
        self.opaque(bound)
    }

    /// One side of an equality in a form that compares as SQL compares. Numerics of different
    /// carriers meet in the one that holds them all.
    fn join_key(&mut self, side: &Bound, same: bool) -> SqlResult<Expr> {
        let ty = if same { side.ty().clone() } else { side.ty().base() };
        let expr = scalar::carried(self.plan_expr(side)?, side.ty(), &ty);
        Ok(scalar::sortable(expr, &ty))
    }

    /// As [`Binder::plan_expr`], where any carrier of a numeric will do: decimals if the scale is
    /// known.
    fn plan_number(&mut self, bound: &Bound) -> SqlResult<Expr> {
        if !matches!(bound.ty(), SqlType::Numeric(_)) || bound.columns().is_empty() {
            return self.plan_expr(bound);
        }
        let (moved, args) = self.row_function(bound)?;
        let types: Vec<SqlType> = args.iter().map(|(_, ty)| ty.clone()).collect();
        match (vector::decimal_carrier(&moved, &types), bound.node()) {
            (Some(_), Node::Column(at)) => self.slot_expr(*at),
            (Some(carrier), _) => Ok(scalar::decimal_expr(moved, &self.place, args, carrier)),
            (None, _) => self.plan_expr(bound),
        }
    }

    /// The whole expression as one row function over the slots it uses.
    fn opaque(&mut self, bound: &Bound) -> SqlResult<Expr> {
        let (moved, args) = self.row_function(bound)?;
        Ok(match *bound.ty() == SqlType::Bool && !self.can_fail(bound) {
            true => scalar::total_expr(moved, &self.place, args),
            false => scalar::bound_expr(moved, &self.place, args),
        })
    }

    /// A condition as one row function that the optimizer leaves where it stands: it can fail, so
    /// it may only see the rows that are left there.
    fn pinned(&mut self, bound: &Bound, joined: bool) -> SqlResult<Expr> {
        let (moved, mut args) = self.row_function(bound)?;
        // One column of every table: the condition then needs the whole join below it.
        let used = bound.columns();
        let columns = self.level().scope.columns().to_vec();
        let table_of = |at: usize| columns.get(at).and_then(|c| c.table.clone());
        let mut seen: Vec<Option<String>> = used.iter().map(|at| table_of(*at)).collect();
        for (at, column) in columns.iter().enumerate().filter(|_| joined) {
            if at < self.level().inputs && !seen.contains(&column.table) {
                seen.push(column.table.clone());
                args.push((self.slot_expr(at)?, column.ty.clone()));
            }
        }
        Ok(scalar::pinned_expr(moved, &self.place, args))
    }

    /// Notes what it means for the plan that it computes this.
    fn note(&mut self, bound: &Bound) {
        self.risky |= self.can_fail(bound);
        self.volatile |= bound.volatility() == Volatility::Volatile;
    }

    /// An expression over the slots it uses, and these.
    fn row_function(&mut self, bound: &Bound) -> SqlResult<(Bound, Vec<(Expr, SqlType)>)> {
        self.note(bound);
        let used: Vec<usize> = bound.columns().into_iter().collect();
        let mut args = Vec::with_capacity(used.len());
        for at in &used {
            let ty = self.level().slots[*at].ty.clone();
            args.push((self.slot_expr(*at)?, ty));
        }
        Ok((bound.remap_columns(&|at| used.binary_search(&at).unwrap_or(0)), args))
    }

    /// A column of the plan as what its values are sorted by.
    fn sort_form(&self, expr: Expr, ty: &SqlType, collation: &Collated) -> SqlResult<Expr> {
        if collation.is_by_bytes() {
            return Ok(scalar::sortable(expr, ty));
        }
        let value = Bound::column(0, ty.clone()).with_collation(collation.clone());
        let form = order_form(value)?;
        let form_ty = form.ty().clone();
        let expr = scalar::bound_expr(form, &self.place, vec![(expr, ty.clone())]);
        Ok(scalar::sortable(expr, &form_ty))
    }

    /// A column of the plan as what rows are grouped by.
    fn equal_form(&self, expr: Expr, ty: &SqlType, collation: &Collated) -> SqlResult<Expr> {
        match collation.is_deterministic() {
            true => Ok(scalar::sortable(expr, ty)),
            false => self.sort_form(expr, ty, collation),
        }
    }

    fn slot_expr(&mut self, at: usize) -> SqlResult<Expr> {
        let SlotKind::Plan(expr) = &self.level().slots[at].kind;
        Ok(expr.clone())
    }

    /// A name that this level does not have: looked up in the levels around it.
    fn outer_column(&mut self, parts: &[String]) -> SqlResult<Option<Bound>> {
        if self.level().arguments.is_some() {
            return self.argument_named(parts);
        }
        let found = self.one_level_out(|binder| binder.local_or_outer(parts))?;
        Ok(found.map(|outer| self.brought_in(outer)))
    }

    /// Looks for something in the levels around this one.
    fn one_level_out<T>(
        &mut self,
        look: impl FnOnce(&mut Self) -> SqlResult<Option<T>>,
    ) -> SqlResult<Option<T>> {
        if self.levels.len() < 2 {
            return Ok(None);
        }
        let inner = self.levels.pop().expect("at least two levels");
        let found = look(self);
        self.levels.push(inner);
        found
    }

    /// What the level around this one knows as `outer`, as this one knows it.
    fn brought_in(&mut self, outer: Bound) -> Bound {
        let known = self.level().outer.iter().find(|(_, b, slot)| {
            *slot != ELSEWHERE && b.as_column().is_some() && b.as_column() == outer.as_column()
        });
        if let Some((_, _, slot)) = known {
            let known = Bound::column(*slot, outer.ty().clone());
            return known.with_collation(outer.collation().of_column());
        }
        let name = self.fresh(OUTER);
        self.outer_slot(name, outer)
    }

    /// A column of this level for what the level around it knows as `outer`.
    fn outer_slot(&mut self, name: String, outer: Bound) -> Bound {
        let ty = outer.ty().clone();
        let field = arrow_form::field(&name, &ty);
        let expr = Expr::Placeholder(Placeholder::new_with_field(name.clone(), Some(field)));
        let slot = self.add_slot(SlotKind::Plan(expr), ty.clone());
        let collation = outer.collation().of_column();
        self.level().outer.push((name, outer, slot));
        Bound::column(slot, ty).with_collation(collation)
    }

    fn local_or_outer(&mut self, parts: &[String]) -> SqlResult<Option<Bound>> {
        match self.level().scope.find(parts)? {
            Some(at) => self.input_column(at).map(Some),
            None => self.outer_column(parts),
        }
    }

    /// An input column, or the group that it is.
    fn input_column(&mut self, at: usize) -> SqlResult<Bound> {
        let level = self.level();
        let ty = level.slots[at].ty.clone();
        let column = level.scope.columns().get(at);
        let collation = column.map_or(Collated::Default, |column| column.collation.clone());
        let group = level.groups.iter().find(|g| level.is_column(&g.bound, at));
        let place = match group.filter(|_| !level.aggregating.inside) {
            Some(group) => group.slot,
            None => at,
        };
        Ok(Bound::column(place, ty).with_collation(collation))
    }

    fn column_by_name(&mut self, parts: &[String]) -> SqlResult<Bound> {
        if let Some(found) = self.local_or_outer(parts)? {
            return Ok(found);
        }
        if let [name] = parts
            && let Some(row) = self.whole_row(name)?
        {
            return Ok(row);
        }
        if let Some(oid) = self.table_oid_in_reach(parts)? {
            return Ok(oid);
        }
        if let Some(value) = self.call_of_row(parts)? {
            return Ok(value);
        }
        Err(self.level().scope.not_found(parts))
    }

    /// A table's alias used as a value: all its columns as a row.
    pub(super) fn whole_row(&mut self, alias: &str) -> SqlResult<Option<Bound>> {
        let Some(RowParts { fields, names, scalar, telling, row_type }) = self.row_parts(alias)?
        else {
            return Ok(None);
        };
        if let ([only], true) = (fields.as_slice(), scalar) {
            // A function's alias means its value.
            return Ok(Some(only.clone()));
        }
        let (ty, names) = match row_type {
            Some(ty) => (SqlType::Composite(ty.clone()), ty.names().clone()),
            None => (SqlType::Record, names.into()),
        };
        let row = Bound::new(Node::Row(fields, Some(names)), ty.clone());
        if telling.is_empty() {
            return Ok(Some(row));
        }
        let is_null = |b: Bound| Bound::new(Node::IsNull(b, false), SqlType::Bool);
        let when = Bound::and(telling.into_iter().map(is_null).collect());
        let then = Bound::constant(Datum::Null, ty.clone());
        let branch = CaseBranch { when, then };
        Ok(Some(Bound::new(Node::Case(vec![branch], Some(row)), ty)))
    }

    /// What `t.*` stands for where the table belongs to a query around this one.
    fn outer_columns(&mut self, alias: &str) -> SqlResult<Option<Vec<(String, Bound)>>> {
        let row = self.row_parts(alias)?;
        let named = |row: RowParts| row.names.into_iter().zip(row.fields);
        Ok(row.map(|row| named(row).map(|(n, field)| (n.to_string(), field)).collect()))
    }

    /// The columns of a table of this level or one around it.
    fn row_parts(&mut self, alias: &str) -> SqlResult<Option<RowParts>> {
        if !self.level().scope.has_table(alias) {
            if self.level().arguments.is_some() {
                return Ok(None);
            }
            let Some(mut row) = self.one_level_out(|binder| binder.row_parts(alias))? else {
                return Ok(None);
            };
            for bound in row.fields.iter_mut().chain(&mut row.telling) {
                *bound = self.brought_in(bound.clone());
            }
            return Ok(Some(row));
        }
        let mut row = RowParts { scalar: true, ..RowParts::default() };
        let mut origins = Vec::new();
        let (mut telling, mut mixed) = (None, false);
        for at in self.level().scope.expand_star(Some(alias))? {
            let column = &self.level().scope.columns()[at];
            row.scalar &= column.scalar;
            mixed |= column.padding == Padding::Mixed;
            if column.padding == Padding::Telling {
                telling = Some(at);
            }
            if !column.hidden || column.table.is_some() && self.level().is_merged(at) {
                row.names.push(Arc::from(self.level().scope.columns()[at].name.as_str()));
                let field = self.input_column(at)?;
                origins.push(self.level().origins.get(at).copied().flatten());
                row.fields.push(field);
            }
        }
        match telling {
            Some(at) => row.telling.push(self.input_column(at)?),
            None if mixed => row.telling.clone_from(&row.fields),
            None => {}
        }
        row.row_type = self.row_type(&row.names, &origins);
        Ok(Some(row))
    }

    /// The type of the rows of the stored table that these columns are all of.
    fn row_type(
        &self,
        names: &[Arc<str>],
        origins: &[Option<Origin>],
    ) -> Option<Arc<CompositeType>> {
        let first = origins.first().copied().flatten()?;
        let same = |o: &Option<Origin>| o.is_some_and(|o| o.whole && o.relation == first.relation);
        let (catalog, id) = (&self.context.catalog, braid_catalog::id_of_oid(first.table_oid)?);
        let row_type = match catalog.table(id) {
            Some(table) => catalog.row_type(table),
            None => catalog.row_type_of_view(catalog.view(id)?),
        };
        let whole = origins.iter().all(same) && row_type.names()[..] == *names;
        whole.then_some(row_type)
    }
}

/// A row of a table as a value.
#[derive(Default)]
struct RowParts {
    fields: Vec<Bound>,
    names: Vec<Arc<str>>,
    /// It is a function's result, which has no fields.
    scalar: bool,
    /// All of these are NULL where an outer join found no row: the row itself is NULL there.
    telling: Vec<Bound>,
    /// Of a stored table.
    row_type: Option<Arc<CompositeType>>,
}

/// The slot of an outer column that a part of this level with slots of its own uses.
const ELSEWHERE: usize = usize::MAX;

/// Digits of the largest integer.
const WIDEST_INTEGER: i16 = 19;

/// A constant in the carrier of what it is compared with, if that can hold it; else as it is. So it
/// is not the column that is converted, which could not bound a scan then: numeric constants beside
/// declared numerics, and integers of an execution beside wider ones and declared numerics.
fn fitted(bound: &Bound, beside: &SqlType) -> Bound {
    use SqlType::{Int2, Int4, Int8};
    let wider = matches!((bound.ty(), beside), (Int2, Int4 | Int8) | (Int4, Int8));
    if wider && bound.as_const().is_none() && bound.columns().is_empty() {
        return Bound::new(Node::Cast(bound.clone(), CastContext::Implicit), beside.clone());
    }
    let Some(scale) = arrow_form::decimal_scale(beside) else { return bound.clone() };
    let ty = SqlType::Numeric(Some((38, i16::from(scale))));
    if let Node::Cast(inner, _) = bound.node()
        && inner.ty().is_integer()
        && inner.columns().is_empty()
        && i16::from(scale) <= 38 - WIDEST_INTEGER
    {
        return Bound::new(Node::Cast(inner.clone(), CastContext::Implicit), ty);
    }
    let Some(value) = bound.as_const() else { return bound.clone() };
    match arrow_form::to_decimal(value, scale) {
        Some(fits) => Bound::constant(arrow_form::from_decimal(fits, scale), ty),
        None if value.is_null() => Bound::constant(Datum::Null, ty),
        None => bound.clone(),
    }
}

/// A column of a plan by its unique name.
fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

impl BindContext for Binder<'_> {
    fn params(&mut self) -> &mut ParamTypes {
        &mut self.params
    }

    fn intercept(&mut self, expr: &ast::Expr, _: &Scope) -> SqlResult<Option<Bound>> {
        self.check_cancel()?;
        if let Some(found) = self.grouped_expr(expr)? {
            return Ok(Some(found));
        }
        match expr {
            ast::Expr::Identifier(ident) => self.column_by_name(&[ident_name(ident)]).map(Some),
            ast::Expr::CompoundIdentifier(parts) => {
                let parts: Vec<String> = parts.iter().map(ident_name).collect();
                self.column_by_name(&parts).map(Some)
            }
            ast::Expr::QualifiedWildcard(name, _) => {
                let parts = object_name_parts(name);
                match self.whole_row(parts.last().map_or("", String::as_str))? {
                    Some(row) => Ok(Some(row)),
                    None => match self.outer_column(&parts)? {
                        // An argument of the function whose body this is.
                        Some(row) if row.ty().is_row() => Ok(Some(row)),
                        _ => Err(missing_table(&parts.join("."))),
                    },
                }
            }
            ast::Expr::Subquery(_)
            | ast::Expr::Exists { .. }
            | ast::Expr::InSubquery { .. }
            | ast::Expr::AnyOp { .. }
            | ast::Expr::AllOp { .. } => self.subquery_expr(expr),
            ast::Expr::BinaryOp { left, op, right } => self.row_beside_query(left, op, right),
            ast::Expr::Case { .. } => self.check_not_conditional(expr).map(|()| None),
            ast::Expr::Function(function) => {
                self.check_not_conditional(expr)?;
                self.special_call(function)
            }
            ast::Expr::Value(_) => self.argument_at(expr),
            _ => Ok(None),
        }
    }
}

/// 42803 for an aggregate where none may be.
fn aggregate_not_allowed(clause: &str) -> SqlError {
    SqlError::new(
        SqlState::GROUPING_ERROR,
        format!("aggregate functions are not allowed in {clause}"),
    )
}
