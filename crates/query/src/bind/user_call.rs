//! Calls of functions of users whose bodies are queries, or that give rows.
//!
//! ```text
//!   level 0   SELECT stock(i.id) FROM items i          the call; its arguments are bound here
//!   level 1            `-- SELECT sum(n) FROM parts WHERE item = $1
//!                          $1 is an outer column, whose value is `i.id` one level up
//! ```
//! A body is a subquery that sees of the levels around it nothing but its arguments: no table, no
//! WITH. Everything that is known of subqueries (joins in their place, one run for many rows) holds
//! for it. Names in it are found by the search path of whoever calls.
//!
//! Arguments that differ each time they are computed are computed before the body, once.

use std::borrow::Cow;
use std::sync::Arc;

use braid_scalar::{
    Bound, CaseBranch, Node, UserCall, UserFunction, Volatility, argument_number, as_result,
    needs_general_query, no_argument, object_name_parts, over_arguments, user_call,
};
use braid_types::{
    CastContext, Collated, Datum, SqlError, SqlResult, SqlState, SqlType, cast_exists,
};
use datafusion::common::JoinType;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use sqlparser::ast;

use super::call::Inner;
use super::from::{Item, empty_item};
use super::lateral::{Lateral, Source};
use super::{Binder, Bounded, ELSEWHERE, Level, OutputColumn, column};
use crate::decorrelate::outer::OUTER;
use crate::error::from_df;
use crate::exec::scalar;
use crate::exec::subquery::Shape;
use crate::planning::too_complex;
use crate::system;

/// What a body sees of the query that calls it.
pub(super) struct Arguments {
    function: Arc<UserFunction>,
    /// Over the slots of the level that calls.
    values: Vec<Bound>,
    /// What they are called in the body's plan.
    names: Vec<String>,
}

impl Binder<'_> {
    /// A call of a function of a user; `None` if it is none.
    pub(super) fn call_of_user(&mut self, function: &ast::Function) -> SqlResult<Option<Bound>> {
        if self.context.catalog.functions().next().is_none() {
            return Ok(None);
        }
        let scope = self.level().scope.clone();
        let call = match user_call(function, &scope, self)? {
            None => return Ok(None),
            Some(Err(bound)) => return Ok(Some(bound)),
            Some(Ok(call)) => call,
        };
        match call.value(self) {
            Err(e) if needs_general_query(&e) => {}
            done => return done.map(Some),
        }
        if call.function.set {
            return self.set_of_user(&call).map(Some);
        }
        self.value_of_user(&call).map(Some)
    }

    /// `t.f`, which calls a function of a user with a row of `t`; `None` if there is no such one.
    pub(super) fn call_of_row(&mut self, parts: &[String]) -> SqlResult<Option<Bound>> {
        let [alias, name] = parts else { return Ok(None) };
        let known = self.context.catalog.functions().any(|f| f.name == *name);
        if !known || self.row_parts(alias)?.is_none() {
            return Ok(None);
        }
        let quoted = |name: &String| ast::Ident::with_quote('"', name);
        let row = ast::FunctionArgExpr::Expr(ast::Expr::Identifier(quoted(alias)));
        let name = ast::ObjectName::from(vec![quoted(name)]);
        match self.call_of_user(&call_named(&name, &[ast::FunctionArg::Unnamed(row)])) {
            Err(e) if e.state() == SqlState::UNDEFINED_FUNCTION => Ok(None),
            called => called,
        }
    }

    /// The first row of a body as a value.
    fn value_of_user(&mut self, call: &UserCall) -> SqlResult<Bound> {
        let function = call.function.clone();
        // What differs from call to call must not be computed for each use.
        let once = call.args.iter().any(|a| a.volatility() == Volatility::Volatile);
        let types = call.args.iter().map(|a| a.ty().clone());
        let values = match once {
            true => types
                .zip(&call.args)
                .map(|(ty, arg)| (ty, arg.collation().of_column()))
                .enumerate()
                .map(|(at, (ty, collation))| Bound::column(at, ty).with_collation(collation))
                .collect(),
            false => call.args.clone(),
        };
        let body = body_of(call)?;
        let query = ordered_first(&body)?;
        let inner =
            self.body_query(&function, &query, values, &mut |b, bound| b.as_row(&function, bound))?;
        let [ty, ..] = inner.types.as_slice() else { return Err(one_column(&function)) };
        if inner.types.len() > 1 && function.returns != SqlType::Void {
            return Err(one_column(&function));
        }
        let (ty, collation) = (ty.clone(), inner.collations[0].clone());
        let value = self.subquery_slot(inner, Shape::First, Vec::new(), ty)?;
        let value = value.with_collation(collation);
        if once {
            let value = as_result(value, &function.returns, self)?;
            return Ok(over_arguments(&function, value, &call.args));
        }
        if function.returns == SqlType::Void {
            // It is computed, and what it gives is not wanted.
            let nothing = || Bound::constant(Datum::Null, SqlType::Void);
            let when = Bound::new(Node::IsNull(value, false), SqlType::Bool);
            let branch = CaseBranch { when, then: nothing() };
            return Ok(Bound::new(Node::Case(vec![branch], Some(nothing())), SqlType::Void));
        }
        let value = as_result(value, &function.returns, self)?;
        Ok(self.unless_null(&function, &call.args, value))
    }

    /// A STRICT function gives NULL where an argument is NULL.
    fn unless_null(&mut self, function: &UserFunction, args: &[Bound], value: Bound) -> Bound {
        let maybe: Vec<Bound> = match function.strict {
            true => args.iter().filter(|a| self.nullable(a)).cloned().collect(),
            false => Vec::new(),
        };
        if maybe.is_empty() {
            return value;
        }
        let is_null = |a: Bound| Bound::new(Node::IsNull(a, false), SqlType::Bool);
        let ty = value.ty().clone();
        let when = Bound::or(maybe.into_iter().map(is_null).collect());
        let branch = CaseBranch { when, then: Bound::constant(Datum::Null, ty.clone()) };
        Bound::new(Node::Case(vec![branch], Some(value)), ty)
    }

    /// Binds a body one level deeper, where it sees its arguments.
    fn body_query(
        &mut self,
        function: &Arc<UserFunction>,
        query: &ast::Query,
        values: Vec<Bound>,
        shape: &mut dyn FnMut(&mut Self, Bounded) -> SqlResult<Bounded>,
    ) -> SqlResult<Inner> {
        let active = self.params.active().to_vec();
        if active.contains(&function.id) {
            let what = format!("function {} with a query calls itself", function.name);
            return Err(too_complex(what));
        }
        let names = values.iter().map(|_| self.fresh(OUTER)).collect();
        let volatile = values.iter().any(|v| v.volatility() == Volatility::Volatile);
        let arguments = Arguments { function: function.clone(), values, names };
        let level = Level { arguments: Some(Arc::new(arguments)), ..Level::default() };
        let ctes = std::mem::take(&mut self.ctes);
        let called = self.params.called().len();
        self.params.set_active(active.iter().copied().chain([function.id]).collect());
        let inner = self.inner_level(level, |b| {
            let bound = b.query(query)?;
            shape(b, bound)
        });
        self.params.set_active(active);
        self.params.forget_called(called);
        self.ctes = ctes;
        let mut inner = inner?;
        inner.risky |= volatile;
        Ok(inner)
    }

    /// The rows of a call of FROM. Its arguments are bound here, where its body will find them.
    pub(super) fn rows_of_call(&mut self, function: &ast::Function) -> SqlResult<Inner> {
        let scope = self.level().scope.clone();
        match user_call(function, &scope, self)?.and_then(Result::ok) {
            Some(call) => self.rows_of_user(&call),
            None => Err(SqlError::internal("a function of a user that is none")),
        }
    }

    /// The rows of a call, in the columns that it is declared with.
    fn rows_of_user(&mut self, call: &UserCall) -> SqlResult<Inner> {
        let function = call.function.clone();
        let body = body_of(call)?;
        let query = rows_of_body(&function, &body)?;
        let (names, types): (Vec<String>, Vec<SqlType>) = function.columns.iter().cloned().unzip();
        self.body_query(&function, &query, call.args.clone(), &mut |b, bound| {
            let bound = b.fields_apart(&function, bound)?;
            if bound.columns.len() != types.len() {
                return Err(other_columns(&function, bound.columns.len()));
            }
            b.declared(&function, bound, &names, &types)
        })
    }

    /// A body that gives values of a composite type gives its fields.
    fn fields_apart(&mut self, function: &UserFunction, bound: Bounded) -> SqlResult<Bounded> {
        let [only] = bound.columns.as_slice() else { return Ok(bound) };
        let gives = function.returns_whole(&only.ty) || function.takes_fields_of(&only.ty);
        if function.columns.len() == 1 || !gives {
            return Ok(bound);
        }
        let given = vec![("row".to_string(), only.ty.clone(), only.expr.clone())];
        let rows = self.with_fields(bound.plan, given)?;
        let columns = rows.columns.into_iter().map(|(name, ty, expr)| computed(name, ty, expr));
        Ok(Bounded { plan: rows.plan, columns: columns.collect() })
    }

    /// What a body gives, as one column where the function's value is a row.
    fn as_row(&mut self, function: &UserFunction, bound: Bounded) -> SqlResult<Bounded> {
        let whole = matches!(bound.columns.as_slice(), [only] if function.returns_whole(&only.ty));
        if whole || function.columns.is_empty() || !function.returns.is_row() {
            return Ok(bound);
        }
        let bound = self.fields_apart(function, bound)?;
        if bound.columns.len() != function.columns.len() {
            return Err(other_columns(function, bound.columns.len()));
        }
        let (names, types): (Vec<String>, Vec<SqlType>) = function.columns.iter().cloned().unzip();
        let bound = self.declared(function, bound, &names, &types)?;
        let fields = types.iter().enumerate().map(|(at, ty)| Bound::column(at, ty.clone()));
        let names = names.iter().map(|name| Arc::from(name.as_str())).collect();
        let row = Node::Row(fields.collect(), Some(names));
        let given = bound.columns.into_iter().map(|c| (c.expr, c.ty)).collect();
        let row = Bound::new(row, function.returns.clone());
        let name = self.fresh("row");
        let expr = scalar::bound_expr(row, &self.place, given).alias(name.clone());
        let plan = LogicalPlanBuilder::from(bound.plan)
            .project([expr])
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let only = computed("row".to_string(), function.returns.clone(), column(&name));
        Ok(Bounded { plan, columns: vec![only] })
    }

    /// What a body gives, in the columns that its function is declared with.
    fn declared(
        &mut self,
        function: &UserFunction,
        bound: Bounded,
        names: &[String],
        types: &[SqlType],
    ) -> SqlResult<Bounded> {
        for (at, (given, wanted)) in bound.columns.iter().zip(types).enumerate() {
            let cast = cast_exists(&given.ty, wanted);
            let fits = given.ty.same_base(wanted)
                || matches!(cast, Some(CastContext::Implicit | CastContext::Assignment));
            if !fits {
                return Err(mismatch(function).with_detail(format!(
                    "Final statement returns {} instead of {} at column {}.",
                    given.ty.base_name(),
                    wanted.base_name(),
                    at + 1
                )));
            }
        }
        let fresh: Vec<String> = names.iter().map(|_| self.fresh("row")).collect();
        let plan = self.converted(bound, types, &fresh, "")?;
        let columns = names.iter().zip(types).zip(&fresh);
        let columns =
            columns.map(|((name, ty), fresh)| computed(name.clone(), ty.clone(), column(fresh)));
        Ok(Bounded { plan, columns: columns.collect() })
    }

    /// A function of a user in FROM; `None` if it is none.
    pub(super) fn item_of_user(
        &mut self,
        name: &ast::ObjectName,
        args: &[ast::FunctionArg],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
        left: Option<&Item>,
    ) -> SqlResult<Option<(Item, bool)>> {
        if self.context.catalog.functions().next().is_none() {
            return Ok(None);
        }
        let function = call_named(name, args);
        let nothing = empty_item()?;
        let beside = left.unwrap_or(&nothing);
        let Some(call) = self.over(beside, |b| {
            let scope = b.level().scope.clone();
            Ok(user_call(&function, &scope, b)?.and_then(Result::ok))
        })?
        else {
            return Ok(None);
        };
        if !call.function.gives_rows() {
            let call = ast::Expr::Function(function);
            let name = Self::bare_name(name);
            return self.value_item(&name, &call, ordinality, alias, left).map(Some);
        }
        if ordinality {
            return Err(SqlError::unsupported("WITH ORDINALITY of a function in SQL")
                .with_hint("Number its rows with row_number()."));
        }
        let alias = alias.cloned().unwrap_or_else(|| ast::TableAlias {
            explicit: true,
            name: ast::Ident::with_quote('"', call.function.name.clone()),
            columns: Vec::new(),
            at: None,
        });
        let alias = named_like_values(&call.function, alias);
        let source = Source::Call(&function);
        let made = self.lateral_item(source, Some(&alias), beside, (JoinType::Inner, None))?;
        Ok(Some(match made {
            Lateral::Plain(item) => (item, false),
            Lateral::Joined(item) => (item, true),
        }))
    }

    /// The argument that a name means in the body of a function, or a field of one.
    pub(super) fn argument_named(&mut self, parts: &[String]) -> SqlResult<Option<Bound>> {
        let Some(arguments) = self.level().arguments.clone() else { return Ok(None) };
        match arguments.function.param_named(parts) {
            Some(at) => Ok(Some(self.argument(&arguments, at))),
            None => {
                let function = arguments.function.clone();
                function.field_named(parts, |at| self.argument(&arguments, at))
            }
        }
    }

    /// `$1` in the body of a function; `None` outside of one.
    pub(super) fn argument_at(&mut self, expr: &ast::Expr) -> SqlResult<Option<Bound>> {
        if !self.levels.iter().any(|level| level.arguments.is_some()) {
            return Ok(None);
        }
        let Some(at) = argument_number(expr)? else { return Ok(None) };
        self.argument_numbered(at)
    }

    fn argument_numbered(&mut self, at: usize) -> SqlResult<Option<Bound>> {
        if let Some(arguments) = self.level().arguments.clone() {
            return match at < arguments.values.len() {
                true => Ok(Some(self.argument(&arguments, at))),
                false => Err(no_argument(at)),
            };
        }
        let outer = self.one_level_out(|b| b.argument_numbered(at))?;
        Ok(outer.map(|outer| self.brought_in(outer)))
    }

    /// An argument as this level knows it: every use of it is the same column.
    fn argument(&mut self, arguments: &Arguments, at: usize) -> Bound {
        let value = arguments.values[at].clone();
        if matches!(value.node(), Node::Const(_) | Node::Param(_)) {
            return value;
        }
        let (name, ty) = (&arguments.names[at], value.ty().clone());
        let mut known = self.level().outer.iter();
        if let Some((_, _, slot)) = known.find(|(n, _, slot)| n == name && *slot != ELSEWHERE) {
            let collation = value.collation().of_column();
            return Bound::column(*slot, ty).with_collation(collation);
        }
        self.outer_slot(name.clone(), value)
    }

    /// A set of a user in the select list: its rows multiply the row.
    fn set_of_user(&mut self, call: &UserCall) -> SqlResult<Bound> {
        self.check_sets_allowed()?;
        let function = call.function.clone();
        let (ty, inner) = match function.columns.as_slice() {
            [(_, ty)] => (ty.clone(), self.rows_of_user(call)?),
            _ => {
                let body = body_of(call)?;
                let query = rows_of_body(&function, &body)?;
                let shape = &mut |b: &mut Self, bound| b.as_row(&function, bound);
                let inner = self.body_query(&function, &query, call.args.clone(), shape)?;
                (function.returns.clone(), inner)
            }
        };
        let collation = inner.collations.first().cloned().unwrap_or_default();
        Ok(self.set_of_rows(inner, ty).with_collation(collation))
    }
}

fn computed(name: String, ty: SqlType, expr: Expr) -> OutputColumn {
    let collation = Collated::Default;
    OutputColumn { name, ty, collation, expr, origin: None, nullable: true }
}

/// A call by a name with its schema and the arguments as they are written.
fn call_named(name: &ast::ObjectName, args: &[ast::FunctionArg]) -> ast::Function {
    ast::Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: args.to_vec(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

/// A set of values that has no name of its own takes that of the alias.
fn named_like_values(function: &UserFunction, mut alias: ast::TableAlias) -> ast::TableAlias {
    let unnamed = matches!(function.columns.as_slice(), [(name, _)] if *name == function.name);
    if unnamed && alias.columns.is_empty() {
        let name = alias.name.clone();
        alias.columns.push(ast::TableAliasColumnDef { name, data_type: None });
    }
    alias
}

/// The query of a body. Of a row that is written out, the fields are what the function gives.
fn body_of(call: &UserCall) -> SqlResult<Cow<'_, ast::Query>> {
    let query = call.body.query.as_deref().ok_or_else(|| {
        braid_scalar::wrong_result(&call.function.returns, &SqlType::Void).with_detail(
            "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.",
        )
    })?;
    let width = call.function.columns.len();
    let ast::SetExpr::Select(select) = &*query.body else { return Ok(Cow::Borrowed(query)) };
    let fields = match select.projection.as_slice() {
        [ast::SelectItem::UnnamedExpr(row) | ast::SelectItem::ExprWithAlias { expr: row, .. }]
            if width > 1 && query.order_by.is_none() =>
        {
            written_fields(row).filter(|fields| fields.len() == width)
        }
        _ => None,
    };
    let Some(fields) = fields else { return Ok(Cow::Borrowed(query)) };
    let projection = fields.into_iter().cloned().map(ast::SelectItem::UnnamedExpr).collect();
    let select = ast::Select { projection, ..(**select).clone() };
    let body = Box::new(ast::SetExpr::Select(Box::new(select)));
    Ok(Cow::Owned(ast::Query { body, ..query.clone() }))
}

/// The fields of `ROW(..)`, or `(.., ..)`.
fn written_fields(row: &ast::Expr) -> Option<Vec<&ast::Expr>> {
    match row {
        ast::Expr::Tuple(fields) => Some(fields.iter().collect()),
        ast::Expr::Nested(inner) => written_fields(inner),
        ast::Expr::Function(f) if *object_name_parts(&f.name) == ["row"] => {
            let ast::FunctionArguments::List(list) = &f.args else { return None };
            list.args
                .iter()
                .map(|arg| match arg {
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => Some(e),
                    _ => None,
                })
                .collect()
        }
        _ => None,
    }
}

/// A query around a body, which is named `b` in it.
fn around(body: &ast::Query, text: &str) -> SqlResult<ast::Query> {
    let mut query = system::parse_query(text)?;
    let whole = body.clone();
    if let ast::SetExpr::Select(select) = &mut *query.body {
        for table in &mut select.from {
            let joined = table.joins.iter_mut().map(|join| &mut join.relation);
            for factor in std::iter::once(&mut table.relation).chain(joined) {
                if let ast::TableFactor::Derived { subquery, alias: Some(alias), .. } = factor
                    && alias.name.value == "b"
                {
                    **subquery = whole.clone();
                }
            }
        }
    }
    Ok(query)
}

/// A body whose first row is wanted: which that is, is said by its order.
fn ordered_first(body: &ast::Query) -> SqlResult<ast::Query> {
    let mut first = body.clone();
    if body.order_by.is_some() && body.limit_clause.is_none() && body.fetch.is_none() {
        first.limit_clause = system::parse_query("SELECT 1 LIMIT 1")?.limit_clause;
    }
    Ok(first)
}

/// A body as the rows of a call: none for NULL if it is strict, and one if it is no set.
fn rows_of_body(function: &UserFunction, body: &ast::Query) -> SqlResult<ast::Query> {
    let mut query = body.clone();
    if function.strict && !function.params.is_empty() {
        let given: Vec<String> =
            (1..=function.params.len()).map(|n| format!("${n} IS NOT NULL")).collect();
        let text = format!("SELECT * FROM (SELECT 1) AS b WHERE {}", given.join(" AND "));
        query = around(&query, &text)?;
    }
    if !function.set {
        query = around(&query, "SELECT * FROM (SELECT 1) AS b LIMIT 1")?;
        let text = "SELECT b.* FROM (SELECT 1) AS one LEFT JOIN LATERAL (SELECT 1) AS b ON true";
        query = around(&query, text)?;
    }
    Ok(query)
}

fn one_column(function: &UserFunction) -> SqlError {
    mismatch(function).with_detail("Final statement must return exactly one column.")
}

fn other_columns(function: &UserFunction, given: usize) -> SqlError {
    let detail = match given > function.columns.len() {
        true => "Final statement returns too many columns.",
        false => "Final statement returns too few columns.",
    };
    mismatch(function).with_detail(detail)
}

/// 42P13.
fn mismatch(function: &UserFunction) -> SqlError {
    let declared = function.returns.base_name();
    let text = format!("return type mismatch in function declared to return {declared}");
    SqlError::new(SqlState("42P13"), text)
}
