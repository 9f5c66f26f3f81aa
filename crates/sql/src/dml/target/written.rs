//! The written table: its name, the scope of its columns, RETURNING.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use braid_catalog::{Relation, Table, oid_of};
use braid_kv::SavepointId;
use braid_types::{SqlError, SqlResult, SqlState, SqlType, quote_ident};
use braid_walk::WalkMut;
use bytes::Bytes;
use sqlparser::ast::{
    self, SelectItem, SelectItemQualifiedWildcardKind, Spanned, TableFactor, VisitorMut,
};

use super::by_query::{ReturningByQuery, beginning};
use super::table_oid::with_table_oid;
use super::through::{Through, Verb, ViewChecks, key_name};
use crate::general_query::ColumnInfo;
use crate::partitions;
use crate::session::{Context, current_row};
use braid_parser::cursor_of;
use braid_rows::Row;
use braid_scalar::{Bound, ParamTypes, Scope, ident_name, is_only, object_name_parts};

/// What is only said of a table whose rows are all in its partitions.
fn only_of_partitioned(table: &Table) -> SqlError {
    SqlError::unsupported(format!("writing to ONLY the partitioned table \"{}\"", table.name))
        .with_hint("All its rows are in its partitions: leave ONLY out, or name a partition.")
}

/// 42501: what the catalogs show is made when it is read.
fn of_system(name: &str) -> SqlError {
    let text = format!("permission denied for table {name}");
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, text)
        .with_hint("Statements such as ALTER and COMMENT change what the catalogs show.")
}

/// A table with the name it goes by in the statement.
#[derive(Clone)]
pub(in crate::dml) struct Target {
    pub(in crate::dml) table: Arc<Table>,
    pub(in crate::dml) alias: String,
    pub(in crate::dml) schema: Option<String>,
    /// The view that the statement names in its place.
    through: Option<Arc<Through>>,
}

impl Target {
    pub(in crate::dml) fn named(
        ctx: &Context,
        name: &ast::ObjectName,
        alias: Option<&ast::Ident>,
        verb: Verb,
    ) -> SqlResult<Target> {
        let start = name.span().start;
        let (only, name) = (is_only(name), object_name_parts(name));
        let mut through = None;
        let found = ctx.relation(&name).map_err(|e| {
            match braid_types::system_relation_named(&name.join(".")) {
                Some(relation) => of_system(relation.name),
                None => e.or_at(start.line, start.column),
            }
        });
        let table = match found? {
            Relation::Table(t) if t.materialized().is_some() => {
                return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("cannot change materialized view \"{}\"", t.name),
                ));
            }
            Relation::Table(t) | Relation::Partition(t) if only && t.is_divided() => {
                return Err(only_of_partitioned(&t));
            }
            Relation::Table(t) | Relation::Partition(t) => t,
            Relation::View(v) => {
                let way = Through::open(ctx, v, verb)?;
                through.insert(Arc::new(way)).table().clone()
            }
            other => {
                return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("cannot write to {} \"{}\"", other.kind(), name.join(".")),
                ));
            }
        };
        let (schema, own) = match &through {
            Some(way) => (way.view().schema, way.view().name.clone()),
            None => (table.schema, table.name.clone()),
        };
        Ok(match alias {
            Some(a) => Target { table, alias: ident_name(a), schema: None, through },
            None => {
                let schema = Some(ctx.schema_name(schema));
                Target { alias: own, schema, table, through }
            }
        })
    }

    pub(in crate::dml) fn factor(
        ctx: &Context,
        factor: &TableFactor,
        verb: Verb,
    ) -> SqlResult<Target> {
        match factor {
            TableFactor::Table { sample: Some(_), .. } => {
                Err(SqlError::syntax("syntax error at or near \"tablesample\""))
            }
            TableFactor::Table { name, alias, .. } => {
                Target::named(ctx, name, alias.as_ref().map(|a| &a.name), verb)
            }
            _ => Err(SqlError::syntax("a table name is expected here")),
        }
    }

    /// What WHERE CURRENT OF a cursor means, if the condition is that.
    ///
    /// # Errors
    /// 0A000 for views.
    pub(in crate::dml) fn under_cursor(
        &self,
        selection: Option<&ast::Expr>,
    ) -> SqlResult<Option<ast::Expr>> {
        let Some(cursor) = cursor_of(selection) else { return Ok(None) };
        if self.is_view() {
            let text = "WHERE CURRENT OF on a view is not implemented";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
        current_row(&self.table, &self.alias, cursor).map(Some)
    }

    /// The table in the FROM of a query; `text` is how the statement names it.
    pub(in crate::dml) fn in_from(&self, ctx: &Context, text: String) -> String {
        if let Some(way) = &self.through {
            return way.subquery(ctx, &self.alias);
        }
        if !ctx.with.as_ref().is_some_and(|with| with.names(&self.table.name)) {
            return text;
        }
        // A query of WITH has its name, which is never what is written to.
        let quoted = [&ctx.schema_name(self.table.schema), &self.table.name, &self.alias]
            .map(|name| quote_ident(name));
        format!("{}.{} AS {}", quoted[0], quoted[1], quoted[2])
    }

    /// Which rows are written, over the table's row: by a condition, by the partition that is
    /// named, and by views.
    ///
    /// # Errors
    /// Those of binding; [`braid_scalar::needs_general_query`].
    pub(in crate::dml) fn filter(
        &self,
        selection: Option<&ast::Expr>,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<Bound>> {
        let Some(way) = &self.through else {
            let all = self.within(selection)?;
            let bound = all.map(|e| braid_scalar::bind_bool(&e, "WHERE", &self.scope(), params));
            return bound.transpose();
        };
        let mut parts = Vec::new();
        if let Some(own) = partitions::condition(&self.table)? {
            let scope = scope_of(&self.table, &self.alias, None);
            parts.push(braid_scalar::bind_bool(&own, "WHERE", &scope, params)?);
        }
        parts.extend(way.condition()?);
        if let Some(e) = selection {
            let bound = braid_scalar::bind_bool(e, "WHERE", &self.scope(), params)?;
            parts.push(way.settle(&bound)?);
        }
        Ok((!parts.is_empty()).then(|| Bound::and(parts)))
    }

    /// An expression over [`Target::scope`], and over values behind it, as one over the table's row
    /// and those values.
    ///
    /// # Errors
    /// [`braid_scalar::needs_general_query`] for a column that only a query can tell.
    pub(in crate::dml) fn settle(&self, bound: Bound) -> SqlResult<Bound> {
        self.through.as_ref().map_or(Ok(bound.clone()), |way| way.settle(&bound))
    }

    /// The scope with the row that was to be inserted, called `excluded`.
    pub(in crate::dml) fn scope_with_excluded(&self) -> Scope {
        let mut scope = self.scope();
        let first = scope.len();
        match &self.through {
            Some(way) => {
                let own = way.scope("excluded", None);
                own.columns()[first - way.view().columns.len()..].iter().for_each(|c| {
                    scope.push(c.clone());
                });
            }
            None => {
                let columns = self.table.columns.iter();
                let columns = columns.map(|c| (c.name.clone(), c.ty.clone(), c.nullable));
                scope.push_table("excluded", None, columns);
                for (s, c) in scope.columns_mut()[first..].iter_mut().zip(&self.table.columns) {
                    s.hidden = c.hidden;
                    s.collation = c.collated();
                }
            }
        }
        scope
    }

    /// As [`Target::settle`], over [`Target::scope_with_excluded`].
    pub(in crate::dml) fn settle_excluded(&self, bound: Bound) -> SqlResult<Bound> {
        self.through.as_ref().map_or(Ok(bound.clone()), |way| way.settle_excluded(&bound))
    }

    /// The column of the table that a name means.
    ///
    /// # Errors
    /// 42703; 0A000 for a column that a view computes.
    pub(in crate::dml) fn ordinal(&self, name: &str) -> SqlResult<usize> {
        match &self.through {
            Some(way) => way.ordinal(name),
            None => column_ordinal(&self.table, name),
        }
    }

    /// The same of the first part of a name as it was written, with its place in the error.
    pub(in crate::dml) fn ordinal_of(&self, name: &ast::ObjectName) -> SqlResult<usize> {
        let start = name.span().start;
        let first = object_name_parts(name).into_iter().next().unwrap_or_default();
        self.ordinal(&first).map_err(|e| e.or_at(start.line, start.column))
    }

    /// The columns that an INSERT without a list of them is about, and why there are no more.
    pub(in crate::dml) fn in_order(&self) -> (Vec<usize>, Option<SqlError>) {
        let columns = &self.table.columns;
        let own = || (0..columns.len()).filter(|i| !columns[*i].hidden).collect();
        self.through.as_ref().map_or_else(|| (own(), None), |way| way.in_order())
    }

    /// What the statement calls a column of the table.
    pub(in crate::dml) fn name_of(&self, ordinal: usize) -> &str {
        let shown = self.through.as_ref().and_then(|way| way.name_of(ordinal));
        shown.unwrap_or(&self.table.columns[ordinal].name)
    }

    /// The names of the columns that `*` stands for.
    pub(in crate::dml) fn shown_names(&self) -> Vec<String> {
        let scope = self.scope();
        scope.columns().iter().filter(|c| !c.hidden).map(|c| c.name.clone()).collect()
    }

    /// The columns of the table's key, where the statement's query has them.
    pub(in crate::dml) fn key_items(&self) -> Vec<String> {
        let alias = quote_ident(&self.alias);
        let keys = self.table.primary.columns.iter();
        let keys = keys.filter_map(|k| self.table.column(k.column)).enumerate();
        keys.map(|(at, c)| match &self.through {
            Some(_) => format!("{alias}.{}", key_name(at)),
            None => format!("{alias}.{}", quote_ident(&c.name)),
        })
        .collect()
    }

    /// What views say of new rows.
    pub(in crate::dml) fn view_checks(&self) -> SqlResult<Option<ViewChecks>> {
        self.through.as_ref().map_or(Ok(None), |way| way.checks())
    }

    /// Whether the statement names a view.
    pub(in crate::dml) fn is_view(&self) -> bool {
        self.through.is_some()
    }

    /// A condition on the rows that are written, and what limits them to those of a partition.
    fn within<'a>(
        &self,
        selection: Option<&'a ast::Expr>,
    ) -> SqlResult<Option<Cow<'a, ast::Expr>>> {
        let Some(own) = partitions::condition(&self.table)? else {
            return Ok(selection.map(Cow::Borrowed));
        };
        Ok(Some(Cow::Owned(match selection {
            None => own,
            Some(e) => ast::Expr::BinaryOp {
                left: Box::new(ast::Expr::Nested(Box::new(own))),
                op: ast::BinaryOperator::And,
                right: Box::new(ast::Expr::Nested(Box::new(e.clone()))),
            },
        })))
    }

    pub(in crate::dml) fn scope(&self) -> Scope {
        if let Some(way) = &self.through {
            return way.scope(&self.alias, self.schema.as_deref());
        }
        scope_of(&self.table, &self.alias, self.schema.as_deref())
    }
}

/// The scope of a table's columns under an alias; hidden columns are hidden.
pub(crate) fn scope_of(table: &Table, alias: &str, schema: Option<&str>) -> Scope {
    let mut scope = Scope::table(
        alias,
        schema,
        table.columns.iter().map(|c| (c.name.clone(), c.ty.clone(), c.nullable)),
    );
    for (s, c) in scope.columns_mut().iter_mut().zip(&table.columns) {
        s.hidden = c.hidden;
        s.collation = c.collated();
    }
    scope
}

/// A bound RETURNING list (or select list over one table).
pub struct Returning {
    /// Values, over the table's row.
    pub exprs: Vec<Bound>,
    /// Names and types.
    pub columns: Vec<ColumnInfo>,
    /// What tells the values in place of the expressions.
    by_query: Option<ReturningByQuery>,
}

impl Returning {
    /// Whether a query tells the values.
    pub(in crate::dml) fn is_by_query(&self) -> bool {
        self.by_query.is_some()
    }

    /// Where the statement begins, if that is going to be asked: before it writes.
    pub(in crate::dml) fn began(&self, ctx: &Context) -> Option<SavepointId> {
        self.by_query.as_ref().map(|_| beginning(ctx))
    }

    /// A list whose values a query tells.
    pub(in crate::dml) fn of_query(query: ReturningByQuery) -> Returning {
        let columns = query.columns().to_vec();
        Returning { exprs: Vec::new(), columns, by_query: Some(query) }
    }

    /// Whether it looks at values behind so many columns.
    pub(in crate::dml) fn looks_behind(&self, width: usize) -> bool {
        self.is_by_query()
            || self.exprs.iter().any(|e| e.columns().into_iter().any(|at| at >= width))
    }

    /// The values for a row.
    pub fn row(&self, ctx: &Context, row: &[braid_types::Datum]) -> SqlResult<Row> {
        self.exprs.iter().map(|e| e.eval(row, &ctx.eval)).collect()
    }
}

/// Binds a list of select items over a scope whose columns `origin` tells the table column of.
pub fn returning(
    items: &[SelectItem],
    scope: &Scope,
    origin: &dyn Fn(usize) -> Option<(u32, u32)>,
    params: &mut ParamTypes,
) -> SqlResult<Returning> {
    let mut out = Returning { exprs: Vec::new(), columns: Vec::new(), by_query: None };
    let push_column = |out: &mut Returning, at: usize| {
        let c = &scope.columns()[at];
        let column = Bound::column(at, c.ty.clone()).with_collation(c.collation.clone());
        out.push(&c.name, column, origin);
    };
    for item in items {
        match item {
            SelectItem::Wildcard(_) => {
                for at in scope.expand_star(None)? {
                    push_column(&mut out, at);
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(n), _) => {
                let start = n.span().start;
                let name = object_name_parts(n).pop().unwrap_or_default();
                let columns = scope.expand_star(Some(&name));
                for at in columns.map_err(|e| e.or_at(start.line, start.column))? {
                    if !scope.columns()[at].hidden {
                        push_column(&mut out, at);
                    }
                }
            }
            SelectItem::UnnamedExpr(e) if let Some(row) = braid_scalar::all_fields(e) => {
                let bound = braid_scalar::bind(&row, scope, params)?;
                let fields = braid_scalar::fields_of(&bound)?.ok_or_else(|| {
                    let text = format!("type {} is not composite", bound.ty().base_name());
                    SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                })?;
                for (name, field) in fields {
                    out.push(&name, field, origin);
                }
            }
            SelectItem::UnnamedExpr(e) => {
                let bound = braid_scalar::bind(e, scope, params)?;
                out.push(&braid_scalar::output_name(e), bound, origin);
            }
            SelectItem::ExprWithAlias { expr: e, alias } => {
                let bound = braid_scalar::bind(e, scope, params)?;
                out.push(&ident_name(alias), bound, origin);
            }
            other => return Err(SqlError::unsupported(format!("the select item {other}"))),
        }
    }
    Ok(out)
}

impl Returning {
    /// The list over the table's row.
    pub(in crate::dml) fn settled(self, target: &Target) -> SqlResult<Returning> {
        let exprs = self.exprs.into_iter().map(|e| target.settle(e));
        Ok(Returning { exprs: exprs.collect::<SqlResult<_>>()?, ..self })
    }

    /// Adds a result column.
    fn push(&mut self, name: &str, bound: Bound, origin: &dyn Fn(usize) -> Option<(u32, u32)>) {
        self.columns.push(column_info(name, &bound, origin));
        self.exprs.push(bound);
    }
}

fn column_info(
    name: &str,
    bound: &Bound,
    origin: &dyn Fn(usize) -> Option<(u32, u32)>,
) -> ColumnInfo {
    let mut info = ColumnInfo::computed(name, bound.ty().clone());
    info.collation = bound.collation().of_column();
    if let Some((table, column)) = bound.as_column().and_then(origin) {
        info.table_oid = oid_of(table);
        info.attnum = i16::try_from(column).unwrap_or(0);
    }
    info
}

/// RETURNING of a statement that names one table.
pub(in crate::dml) fn bind_returning(
    ctx: &Context,
    items: Option<&[SelectItem]>,
    target: &Target,
    params: &mut ParamTypes,
) -> SqlResult<Option<Returning>> {
    let Some(items) = items else { return Ok(None) };
    let items = with_table_oid(items, target)?;
    bind_over(ctx, &items, target, (&target.scope(), false), params).map(Some)
}

/// The name of PostgreSQL's hidden column that tells inserted rows from updated ones: 0 in those.
const XMAX: &str = "xmax";

/// RETURNING of INSERT, whose rows have one value more if it is looked at
/// ([`Returning::looks_behind`]): 1 if the row was there before, and ON CONFLICT has updated it; 0
/// if not. It is called `xmax`, since `xmax = 0` is how that is asked.
pub(in crate::dml) fn bind_inserted(
    ctx: &Context,
    items: Option<&[SelectItem]>,
    target: &Target,
    params: &mut ParamTypes,
) -> SqlResult<Option<Returning>> {
    let Some(items) = items else { return Ok(None) };
    let items = with_table_oid(items, target)?;
    let mut scope = target.scope();
    if target.table.column_named(XMAX).is_some() {
        return bind_over(ctx, &items, target, (&scope, false), params).map(Some);
    }
    let schema = target.schema.as_deref();
    let at = scope.push_table(&target.alias, schema, [(XMAX.into(), SqlType::Int8, false)]);
    scope.columns_mut()[at].hidden = true;
    let mut items = items.into_owned();
    let _ = items.walk_mut(&mut Named(&target.alias));
    bind_over(ctx, &items, target, (&scope, true), params).map(Some)
}

/// Puts the table's name in front of `xmax`: hidden columns are not found without.
struct Named<'a>(&'a str);

impl VisitorMut for Named<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Identifier(name) = expr
            && ident_name(name) == XMAX
        {
            let table = ast::Ident::with_quote('"', self.0);
            *expr = ast::Expr::CompoundIdentifier(vec![table, name.clone()]);
        }
        ControlFlow::Continue(())
    }
}

fn bind_over(
    ctx: &Context,
    items: &[SelectItem],
    target: &Target,
    (scope, inserted): (&Scope, bool),
    params: &mut ParamTypes,
) -> SqlResult<Returning> {
    let table = target.table.clone();
    let origin = move |at: usize| table.columns.get(at).map(|c| (table.id, c.id));
    let mut tried = params.clone();
    let settled = |list: Returning| list.settled(target);
    match returning(items, scope, &origin, &mut tried).and_then(settled) {
        Err(e) if braid_scalar::needs_general_query(&e) => {
            let query = ReturningByQuery::plan(ctx, items, target, inserted, params)?;
            Ok(Returning::of_query(query))
        }
        other => {
            *params = tried;
            other
        }
    }
}

/// Puts what a query selected besides behind the rows with these keys.
pub(in crate::dml) fn with_extras(
    rows: &mut [Row],
    keys: &[Bytes],
    extras: &HashMap<Bytes, Row>,
) -> SqlResult<()> {
    if extras.is_empty() {
        return Ok(());
    }
    if rows.len() != keys.len() {
        return Err(SqlError::internal("rows and their keys differ"));
    }
    for (row, key) in rows.iter_mut().zip(keys) {
        let more = extras.get(key).ok_or_else(|| SqlError::internal("a row has no extras"))?;
        row.extend(more.iter().cloned());
    }
    Ok(())
}

/// Rows of RETURNING that are computed and counted at once.
const RETURNED_AT_ONCE: usize = 256;

/// The values of RETURNING for all rows, if asked for; `since`: [`Returning::began`].
pub(in crate::dml) fn returned(
    ctx: &Context,
    r: Option<&Returning>,
    rows: &[Row],
    since: Option<SavepointId>,
) -> SqlResult<Option<Vec<Row>>> {
    let Some(r) = r else { return Ok(None) };
    if let (Some(query), Some(since)) = (&r.by_query, since) {
        return query.rows(ctx, since, rows).map(Some);
    }
    let mut out = Vec::with_capacity(rows.len());
    for piece in rows.chunks(RETURNED_AT_ONCE) {
        let before = out.len();
        for row in piece {
            ctx.check_cancel()?;
            out.push(r.row(ctx, row)?);
        }
        ctx.keep_rows("RETURNING", &out[before..])?;
    }
    Ok(Some(out))
}

/// 42703 for a column that a written table does not have.
pub(in crate::dml) fn column_ordinal(table: &Table, name: &str) -> SqlResult<usize> {
    table.column_named(name).and_then(|c| table.ordinal(c.id)).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
        )
    })
}

/// Whether an expression is the word DEFAULT.
pub(in crate::dml) fn is_default(e: &ast::Expr) -> bool {
    matches!(e, ast::Expr::Identifier(i)
        if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("default"))
}

/// 428C9: a column whose value is not the user's to give.
pub(in crate::dml) fn refuse_given(table: &Table, at: usize) -> SqlError {
    let c = &table.columns[at];
    let text = format!("cannot insert a non-DEFAULT value into column \"{}\"", c.name);
    let e = SqlError::new(SqlState("428C9"), text);
    if c.generated.is_some() {
        e.with_detail(format!("Column \"{}\" is a generated column.", c.name))
    } else {
        e.with_detail(format!(
            "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
            c.name
        ))
    }
}

/// Cast of a query's column to the column it is written to; `expr` is what it is computed by.
pub(in crate::dml) fn check_assignable(
    table: &Table,
    at: usize,
    from: &SqlType,
    expr: Option<&ast::Expr>,
) -> SqlResult<()> {
    use braid_types::CastContext::{Assignment, Implicit};
    let to = &table.columns[at].ty;
    let ok = *from == SqlType::Unknown
        || from.same_base(to)
        || matches!(braid_types::cast_exists(from, to), Some(Implicit | Assignment));
    if ok {
        return Ok(());
    }
    let text = format!(
        "column \"{}\" is of type {} but expression is of type {}",
        table.columns[at].name,
        to.base_name(),
        from.base_name()
    );
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text)
        .with_hint("You will need to rewrite or cast the expression.")
        .or_place(expr.and_then(braid_scalar::beginning)))
}
