//! Calls that are not scalar: aggregates, windows, set-returning functions, subqueries.

use std::any::Any;
use std::sync::Arc;

use braid_scalar::{
    Applied, Bound, CmpOp, EvalContext, Node, Volatility, coerce, compare_bound, comparison,
    is_aggregate, is_called_as_window, is_set_returning, object_name_parts,
};
use braid_types::{CastContext, Collated, Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::logical_expr::{Expr, LogicalPlan};
use parking_lot::Mutex;
use sqlparser::ast;

use super::{Binder, Bounded, Level};
use crate::exec::scalar::next_id;
use crate::exec::subquery::{Across, ForMany, Shape, Subquery};

/// A subquery bound over its own level: plan, columns, outer columns.
pub(super) struct Inner {
    pub(super) plan: LogicalPlan,
    pub(super) types: Vec<SqlType>,
    pub(super) collations: Vec<Collated>,
    pub(super) names: Vec<String>,
    pub(super) values: Vec<Expr>,
    pub(super) nullable: Vec<bool>,
    /// Computing it for rows that do not ask for it could raise an error.
    pub(super) risky: bool,
    /// It calls a function that differs from call to call, or has effects.
    volatile: bool,
    pub(super) outer: Vec<(String, Bound)>,
}

impl Inner {
    /// The subquery as what runs inside of plans.
    pub(super) fn prepared(&self, shape: Shape, binder: &Binder<'_>) -> Subquery {
        Subquery {
            id: next_id(),
            plan: self.plan.clone(),
            types: self.types.clone(),
            outer: self.outer.iter().map(|(name, b)| (name.clone(), b.ty().clone())).collect(),
            shape,
            place: Arc::downgrade(&binder.place),
            for_one: Mutex::default(),
            for_many: Mutex::new(ForMany::of(self.volatile)),
        }
    }
}

impl Binder<'_> {
    /// Name of a called function without schema.
    pub(super) fn bare_name(name: &ast::ObjectName) -> String {
        object_name_parts(name).pop().unwrap_or_default()
    }

    pub(super) fn special_call(&mut self, function: &ast::Function) -> SqlResult<Option<Bound>> {
        if let Some(call) = self.call_of_user(function)? {
            return Ok(Some(call));
        }
        let name = Self::bare_name(&function.name);
        if let ast::FunctionArguments::Subquery(query) = &function.args
            && name == "array"
        {
            let inner = self.inner_query(query)?;
            let [ty] = inner.types.as_slice() else { return Err(one_column()) };
            let (ty, collation) = (ty.clone(), inner.collations[0].clone());
            let array = ty.array_of();
            let value = self.subquery_slot(inner, Shape::Array(ty), Vec::new(), array)?;
            return Ok(Some(value.with_collation(collation)));
        }
        if function.over.is_some() {
            return self.window_call(&name, function).map(Some);
        }
        if name == "grouping" {
            return self.grouping_call(function).map(Some);
        }
        if is_aggregate(&name) && !is_called_as_window(&name, function) {
            return self.aggregate_call(&name, function).map(Some);
        }
        if is_set_returning(&name) {
            return self.set_function_call(&name, function).map(Some);
        }
        Ok(None)
    }

    pub(super) fn subquery_expr(&mut self, expr: &ast::Expr) -> SqlResult<Option<Bound>> {
        match expr {
            ast::Expr::Subquery(query) => {
                let inner = self.inner_query(query)?;
                let [ty] = inner.types.as_slice() else { return Err(one_column()) };
                let (ty, collation) = (ty.clone(), inner.collations[0].clone());
                let value = self.subquery_slot(inner, Shape::Scalar, Vec::new(), ty)?;
                Ok(Some(value.with_collation(collation)))
            }
            ast::Expr::Exists { subquery, negated } => {
                let mut inner = self.inner_query(subquery)?;
                // What the rows hold is not wanted, only whether there is one.
                while let LogicalPlan::Projection(projection) = &inner.plan {
                    inner.plan = (*projection.input).clone();
                }
                inner.types.clear();
                inner.values.clear();
                let found = self.subquery_slot(inner, Shape::Exists, Vec::new(), SqlType::Bool)?;
                Ok(Some(if *negated { found.negated() } else { found }))
            }
            ast::Expr::InSubquery { expr, subquery, negated } => {
                let found = self.in_subquery(expr, subquery)?;
                Ok(Some(if *negated { found.negated() } else { found }))
            }
            ast::Expr::AnyOp { left, compare_op, right, .. } => {
                self.quantified(left, compare_op, right, false)
            }
            ast::Expr::AllOp { left, compare_op, right } => {
                self.quantified(left, compare_op, right, true)
            }
            _ => Ok(None),
        }
    }

    fn quantified(
        &mut self,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        right: &ast::Expr,
        all: bool,
    ) -> SqlResult<Option<Bound>> {
        let mut inner = right;
        while let ast::Expr::Nested(deeper) = inner {
            inner = deeper;
        }
        let ast::Expr::Subquery(query) = inner else { return Ok(None) };
        let op = match op {
            ast::BinaryOperator::Eq if !all => return self.in_subquery(left, query).map(Some),
            ast::BinaryOperator::NotEq if all => {
                return Ok(Some(self.in_subquery(left, query)?.negated()));
            }
            other => match comparison(other) {
                Some(op) => op,
                None if row_parts(left).is_some() => return Err(no_row_operator(other)),
                // Its rows as an array.
                None => return self.quantified_array(left, other, query, all).map(Some),
            },
        };
        let needles = self.needles(left)?;
        let [needle] = needles.as_slice() else {
            let across = if all { Across::All } else { Across::Any };
            return self.rowwise(op, needles, query, across).map(Some);
        };
        let needle = needle.clone();
        let bound = self.inner_query(query)?;
        check_width(1, &bound)?;
        let ty = &bound.types[0];
        let column = Bound::column(0, ty.clone()).with_collation(bound.collations[0].clone());
        let (needle, converter) = self.converters(op, needle, column)?;
        let shape = Shape::Quantified(op, converter, all);
        self.subquery_slot(bound, shape, vec![needle], SqlType::Bool).map(Some)
    }

    /// `x ~~ ANY (SELECT ..)` as `x ~~ ANY (ARRAY(SELECT ..))`.
    fn quantified_array(
        &mut self,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        query: &ast::Query,
        all: bool,
    ) -> SqlResult<Bound> {
        let array = ast::Expr::Function(ast::Function {
            name: ast::ObjectName::from(vec![ast::Ident::new("array")]),
            uses_odbc_syntax: false,
            parameters: ast::FunctionArguments::None,
            args: ast::FunctionArguments::Subquery(Box::new(query.clone())),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: Vec::new(),
        });
        let (left, right) = (Box::new(left.clone()), Box::new(array));
        let compare_op = op.clone();
        self.expr(&match all {
            true => ast::Expr::AllOp { left, compare_op, right },
            false => ast::Expr::AnyOp { left, compare_op, right, is_some: false },
        })
    }

    fn in_subquery(&mut self, expr: &ast::Expr, query: &ast::Query) -> SqlResult<Bound> {
        let needles = self.needles(expr)?;
        let inner = self.inner_query(query)?;
        let (args, converters) = self.all_converters(CmpOp::Eq, needles, &inner)?;
        self.subquery_slot(inner, Shape::In(converters), args, SqlType::Bool)
    }

    /// `(a, b) < (SELECT ..)`; `None` for a comparison of other things.
    pub(super) fn row_beside_query(
        &mut self,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        right: &ast::Expr,
    ) -> SqlResult<Option<Bound>> {
        let mut inner = right;
        while let ast::Expr::Nested(deeper) = inner {
            inner = deeper;
        }
        let (ast::Expr::Subquery(query), Some(_)) = (inner, row_parts(left)) else {
            return Ok(None);
        };
        let op = comparison(op).ok_or_else(|| no_row_operator(op))?;
        let needles = self.needles(left)?;
        self.rowwise(op, needles, query, Across::One).map(Some)
    }

    /// A row compared with rows of a query, field by field.
    fn rowwise(
        &mut self,
        op: CmpOp,
        needles: Vec<Bound>,
        query: &ast::Query,
        across: Across,
    ) -> SqlResult<Bound> {
        let inner = self.inner_query(query)?;
        let (args, converters) = self.all_converters(op, needles, &inner)?;
        self.subquery_slot(inner, Shape::Rowwise(op, converters, across), args, SqlType::Bool)
    }

    /// The fields of a row that is written out, or one value. Literals stay unknown: they take the
    /// types of what they are compared with.
    fn needles(&mut self, expr: &ast::Expr) -> SqlResult<Vec<Bound>> {
        if let Some(parts) = row_parts(expr) {
            return parts.into_iter().map(|part| self.expr(part)).collect();
        }
        let needle = self.expr(expr)?;
        Ok(match needle.node() {
            Node::Row(parts, None) => parts.clone(),
            _ => vec![needle],
        })
    }

    /// [`Self::converters`] of each field.
    fn all_converters(
        &mut self,
        op: CmpOp,
        needles: Vec<Bound>,
        inner: &Inner,
    ) -> SqlResult<(Vec<Bound>, Vec<Bound>)> {
        check_width(needles.len(), inner)?;
        let mut args = Vec::new();
        let mut converters = Vec::new();
        for (at, needle) in needles.into_iter().enumerate() {
            let column = Bound::column(at, inner.types[at].clone());
            let column = column.with_collation(inner.collations[at].clone());
            let (needle, converter) = self.converters(op, needle, column)?;
            args.push(needle);
            converters.push(converter);
        }
        Ok((args, converters))
    }

    /// The needle and the conversion of the subquery's column that make them comparable.
    fn converters(&mut self, op: CmpOp, needle: Bound, column: Bound) -> SqlResult<(Bound, Bound)> {
        let needle = match needle.ty() {
            SqlType::Unknown => coerce(needle, &column.ty().base(), CastContext::Implicit, self)?,
            _ => needle,
        };
        if needle.as_const().is_some_and(Datum::is_null) {
            // Compared with whatever it may be, it is unknown.
            return Ok((needle, column));
        }
        let compared = compare_bound(op, needle, column, self)?;
        match compared.node() {
            Node::Compare(_, l, r) => Ok((l.clone(), r.clone())),
            _ => Err(SqlError::unsupported("this comparison with a subquery")),
        }
    }

    /// Binds a query one level deeper.
    pub(super) fn inner_query(&mut self, query: &ast::Query) -> SqlResult<Inner> {
        self.inner_level(Level::default(), |b| b.query(query))
    }

    /// Binds what stands in a level of its own.
    pub(super) fn inner_level(
        &mut self,
        level: Level,
        bind: impl FnOnce(&mut Self) -> SqlResult<Bounded>,
    ) -> SqlResult<Inner> {
        if self.levels.len() > 32 {
            return Err(SqlError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                "subqueries are nested too deeply",
            ));
        }
        self.levels.push(level);
        let before = (std::mem::take(&mut self.risky), std::mem::take(&mut self.volatile));
        let bound = bind(self);
        let (risky, volatile) = (self.risky, self.volatile);
        self.risky |= before.0;
        self.volatile |= before.1;
        let level = self.levels.pop().expect("just pushed");
        let bound = bound?;
        let mut outer: Vec<(String, Bound)> = Vec::with_capacity(level.outer.len());
        for (name, bound, _) in level.outer {
            if !outer.iter().any(|(known, _)| *known == name) {
                outer.push((name, bound));
            }
        }
        let types = bound.columns.iter().map(|c| c.ty.clone()).collect();
        let collations = bound.columns.iter().map(|c| c.collation.of_column()).collect();
        let values = bound.columns.iter().map(|c| c.expr.clone()).collect();
        let nullable = bound.columns.iter().map(|c| c.nullable).collect();
        let names = bound.columns.iter().map(|c| c.name.clone()).collect();
        let plan = bound.plan;
        Ok(Inner { plan, types, collations, names, values, nullable, risky, volatile, outer })
    }

    pub(super) fn subquery_slot(
        &mut self,
        inner: Inner,
        shape: Shape,
        mut args: Vec<Bound>,
        ty: SqlType,
    ) -> SqlResult<Bound> {
        let label: &'static str = match &shape {
            Shape::Scalar => "subquery",
            Shape::First => "function",
            Shape::Exists => "exists",
            Shape::In(_) => "in_subquery",
            Shape::Quantified(..) | Shape::Rowwise(..) => "compare_subquery",
            Shape::Array(_) => "array_subquery",
            Shape::Rows => "lateral_subquery",
        };
        let subquery = inner.prepared(shape, self);
        args.extend(inner.outer.into_iter().map(|(_, bound)| bound));
        let Inner { values, nullable, risky, .. } = inner;
        let code = AppliedSubquery { subquery, label, values, nullable, risky };
        Ok(Bound::new(Node::Apply(Arc::new(code), args), ty))
    }

    /// Argument expressions of a call.
    pub(super) fn arguments(function: &ast::Function) -> SqlResult<Arguments<'_>> {
        let mut out = Arguments::default();
        let ast::FunctionArguments::List(list) = &function.args else { return Ok(out) };
        out.distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        for arg in &list.args {
            match arg {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => out.exprs.push(e),
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard) => out.star = true,
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(name)) => {
                    out.rows.push(Self::bare_name(name));
                }
                other => return Err(SqlError::unsupported(format!("the argument {other}"))),
            }
        }
        if out.distinct && out.star {
            return Err(SqlError::syntax("syntax error at or near \"*\""));
        }
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::OrderBy(order) => out.order = order,
                other => return Err(SqlError::unsupported(format!("{other} in a call"))),
            }
        }
        Ok(out)
    }
}

/// A subquery inside an expression.
pub(super) struct AppliedSubquery {
    pub(super) subquery: Subquery,
    label: &'static str,
    /// Its result columns, as expressions over the plan.
    pub(super) values: Vec<Expr>,
    /// Which of them may be NULL.
    pub(super) nullable: Vec<bool>,
    /// Computing it for rows that do not ask for it could raise an error.
    pub(super) risky: bool,
}

impl Applied for AppliedSubquery {
    fn apply(&self, args: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
        self.subquery.value(args)
    }

    fn expect(&self, args: Vec<Vec<Datum>>) {
        self.subquery.expect(&args);
    }

    fn label(&self) -> String {
        self.label.to_string()
    }

    fn volatility(&self) -> Volatility {
        Volatility::Stable
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The parts of a call's argument list.
#[derive(Default)]
pub(super) struct Arguments<'a> {
    pub(super) exprs: Vec<&'a ast::Expr>,
    pub(super) star: bool,
    /// `t.*` as an argument: the whole row.
    pub(super) rows: Vec<String>,
    pub(super) distinct: bool,
    pub(super) order: &'a [ast::OrderByExpr],
}

/// The fields of `(a, b)` or `ROW(a)`.
fn row_parts(expr: &ast::Expr) -> Option<Vec<&ast::Expr>> {
    match expr {
        ast::Expr::Nested(inner) => row_parts(inner),
        ast::Expr::Tuple(parts) => Some(parts.iter().collect()),
        ast::Expr::Function(function) => braid_scalar::row_fields(function),
        _ => None,
    }
}

/// 42601 for a subquery beside so many values that has another number of columns.
fn check_width(needles: usize, inner: &Inner) -> SqlResult<()> {
    if needles == inner.types.len() {
        return Ok(());
    }
    let few = if needles > inner.types.len() { "few" } else { "many" };
    Err(SqlError::syntax(format!("subquery has too {few} columns")))
}

/// 0A000 for an operator that compares no rows.
fn no_row_operator(op: &ast::BinaryOperator) -> SqlError {
    let text = format!("could not determine interpretation of row comparison operator {op}");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
        .with_hint("Row comparison operators must be associated with btree operator families.")
}

fn one_column() -> SqlError {
    SqlError::syntax("subquery must return only one column")
}
