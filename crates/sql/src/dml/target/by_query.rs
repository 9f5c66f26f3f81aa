//! Values for written rows that only a query can tell: those of SET and WHERE behind ON CONFLICT,
//! and of RETURNING, with subqueries or whole rows in them.
//!
//! ```text
//!   ON CONFLICT .. DO UPDATE SET n = (SELECT ..) WHERE ..
//!     SELECT .. FROM "existing row" AS t, "excluded row" AS excluded
//!   RETURNING *, (SELECT ..)
//!     SELECT t.a, t.b, (SELECT ..) FROM "written rows" AS t ORDER BY their number
//! ```
//! The rows are *given* to the query, as those of an earlier part of WITH are, under names that
//! nobody can type; it reads everything else as it was before the statement.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_catalog::{Identity, Table, kv_error, oid_of};
use braid_kv::SavepointId;
use braid_rows::Row;
use braid_scalar::{ParamTypes, ident_name, object_name_parts, output_name};
use braid_types::{Collated, Datum, SqlError, SqlResult, SqlState, SqlType, quote_ident};
use braid_walk::WalkMut;
use sqlparser::ast::{self, Expr, Ident, SelectItem, SelectItemQualifiedWildcardKind, VisitorMut};

use super::sets::Sets;
use super::written::Target;
use crate::dml::assigned::calls::refuse_calls;
use crate::dml::source::Source;
use crate::dml::with::With;
use crate::dml::writer::TableInfo;
use crate::general_query::{ColumnInfo, GivenRows};
use crate::session::Context;

/// What the names of given rows begin with.
const MARK: char = '\0';
/// The number of a written row.
const NUMBER: &str = "\0number";
/// Whether a row was there before INSERT.
const XMAX: &str = "\0xmax";

/// Rows that a query reads under a name.
struct Given {
    name: String,
    alias: String,
    columns: Vec<(String, SqlType)>,
    collations: Vec<Collated>,
    origins: Vec<Option<(u32, i16)>>,
}

impl Given {
    /// Rows of a table, whose hidden columns cannot be named.
    fn rows_of(name: &str, table: &Table, alias: &str) -> Given {
        let shown = |c: &braid_catalog::Column| match c.hidden {
            true => format!("{MARK}{}", c.name),
            false => c.name.clone(),
        };
        let columns = table.columns.iter().map(|c| (shown(c), c.ty.clone()));
        let collations = table.columns.iter().map(braid_catalog::Column::collated).collect();
        let origin = |c: &braid_catalog::Column| Some((oid_of(table.id), c.id as i16));
        let origins = table.columns.iter().map(origin).collect();
        let (name, alias) = (name.to_string(), alias.to_string());
        Given { name, alias, columns: columns.collect(), collations, origins }
    }

    /// What a table that is joined with the written one has beside each of its rows.
    fn beside(at: usize, joined: &JoinedRows) -> Given {
        let columns = joined.columns.iter().map(|c| (c.name.clone(), c.ty.clone()));
        Given {
            name: format!("\0joined rows {at}"),
            alias: joined.alias.clone(),
            columns: columns.chain([(NUMBER.to_string(), SqlType::Int8)]).collect(),
            collations: joined.columns.iter().map(|c| c.collation.clone()).collect(),
            origins: joined.columns.iter().map(ColumnInfo::origin).collect(),
        }
    }

    fn of(&self, rows: Option<Vec<Row>>) -> GivenRows {
        GivenRows {
            name: self.name.clone(),
            columns: Some(self.columns.clone()),
            collations: self.collations.clone(),
            origins: self.origins.clone(),
            of_table: true,
            rows: rows.map(Arc::new),
        }
    }
}

/// A context in which queries find these rows.
fn giving(ctx: &Context, given: impl Iterator<Item = GivenRows>) -> Context {
    let mut with = ctx.with.as_deref().cloned().unwrap_or_default();
    Arc::make_mut(&mut with.given).extend(given);
    Context { with: Some(Arc::new(with)), ..ctx.clone() }
}

/// A query over given rows.
pub(in crate::dml) struct ByQuery {
    source: Source,
    given: Vec<Given>,
}

impl ByQuery {
    /// Plans `SELECT items FROM given ..`.
    fn plan(
        ctx: &Context,
        items: &[String],
        given: Vec<Given>,
        tail: &str,
        params: &mut ParamTypes,
    ) -> SqlResult<ByQuery> {
        let from: Vec<String> = given
            .iter()
            .map(|g| format!("{} AS {}", quote_ident(&g.name), quote_ident(&g.alias)))
            .collect();
        let text = format!("SELECT {} FROM {}{tail}", items.join(", "), from.join(", "));
        let ctx = giving(ctx, given.iter().map(|g| g.of(None)));
        let source = Source::plan(&ctx, &*braid_parser::parse_query(&text)?, params)?;
        Ok(ByQuery { source, given })
    }

    fn columns(&self) -> &[ColumnInfo] {
        self.source.columns()
    }

    /// Its rows, for these; `since`: where the statement began.
    fn rows(
        &self,
        ctx: &Context,
        since: SavepointId,
        rows: impl IntoIterator<Item = Vec<Row>>,
    ) -> SqlResult<Vec<Row>> {
        let given = self.given.iter().zip(rows).map(|(g, rows)| g.of(Some(rows)));
        let ctx = giving(ctx, given);
        let _past = ctx.txn.look_back(since).map_err(kv_error)?;
        self.source.rows(&ctx)
    }
}

/// 428C9 for a column whose value is not the user's to set.
pub(in crate::dml) fn check_settable(table: &Table, at: usize) -> SqlResult<()> {
    let c = &table.columns[at];
    let what = match (&c.generated, c.identity) {
        (Some(_), _) => "a generated column",
        (_, Some(Identity::Always)) => "an identity column defined as GENERATED ALWAYS",
        _ => return Ok(()),
    };
    let text = format!("column \"{}\" can only be updated to DEFAULT", c.name);
    Err(SqlError::new(SqlState("428C9"), text)
        .with_detail(format!("Column \"{}\" is {what}.", c.name)))
}

/// SET and WHERE of ON CONFLICT DO UPDATE, by queries.
pub(in crate::dml) struct UpdateByQuery {
    filter: Option<ByQuery>,
    values: Option<ByQuery>,
    sets: Sets,
}

impl UpdateByQuery {
    pub(in crate::dml) fn plan(
        ctx: &Context,
        target: &Target,
        update: &ast::DoUpdate,
        params: &mut ParamTypes,
    ) -> SqlResult<UpdateByQuery> {
        if target.is_view() {
            return Err(SqlError::unsupported(
                "a subquery in ON CONFLICT DO UPDATE of an INSERT into a view",
            )
            .with_hint("Name the table in place of the view."));
        }
        let table = &target.table;
        let both = || {
            vec![
                Given::rows_of("\0existing row", table, &target.alias),
                Given::rows_of("\0excluded row", table, "excluded"),
            ]
        };
        let filter = match &update.selection {
            Some(e) => {
                let plan = ByQuery::plan(ctx, &[e.to_string()], both(), "", params)?;
                if !matches!(plan.columns()[0].ty, SqlType::Bool | SqlType::Unknown) {
                    let ty = plan.columns()[0].ty.base_name();
                    let text = format!("argument of WHERE must be type boolean, not type {ty}");
                    return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text));
                }
                Some(plan)
            }
            None => None,
        };
        let mut sets = Sets::new(target, &update.assignments, params)?;
        let values = match sets.items.is_empty() {
            true => None,
            false => Some(ByQuery::plan(ctx, &sets.items, both(), "", params)?),
        };
        if let Some(values) = &values {
            let plan = |items: &[String]| {
                Ok(ByQuery::plan(ctx, items, both(), "", params)?.columns().to_vec())
            };
            sets.typed(table, values.columns(), plan)?;
        }
        Ok(UpdateByQuery { filter, values, sets })
    }

    /// What an existing row becomes; `None` if it stays as it is.
    pub(in crate::dml) fn updated(
        &self,
        ctx: &Context,
        info: &TableInfo,
        since: SavepointId,
        (old, excluded): (&Row, &Row),
    ) -> SqlResult<Option<Row>> {
        let both = || [vec![old.clone()], vec![excluded.clone()]];
        if let Some(filter) = &self.filter {
            let rows = filter.rows(ctx, since, both())?;
            if !matches!(rows.first().map(Vec::as_slice), Some([Datum::Bool(true)])) {
                return Ok(None);
            }
        }
        let values = match &self.values {
            Some(values) => values.rows(ctx, since, both())?.pop().unwrap_or_default(),
            None => Vec::new(),
        };
        let mut new = old.clone();
        self.sets.apply(ctx, info, &values, &mut new)?;
        Ok(Some(new))
    }
}

/// A table that an UPDATE or DELETE joins with the one that it writes to.
pub(in crate::dml) struct JoinedRows {
    pub(in crate::dml) alias: String,
    pub(in crate::dml) columns: Vec<ColumnInfo>,
}

impl JoinedRows {
    /// Its columns, as select items.
    pub(in crate::dml) fn items(&self) -> impl Iterator<Item = String> {
        let alias = quote_ident(&self.alias);
        self.columns.iter().map(move |c| format!("{alias}.{}", quote_ident(&c.name)))
    }
}

/// RETURNING by a query.
pub(in crate::dml) struct ReturningByQuery {
    query: ByQuery,
}

impl ReturningByQuery {
    /// Plans it; `inserted`: rows have one value more, whether they were there before.
    pub(in crate::dml) fn plan(
        ctx: &Context,
        items: &[SelectItem],
        target: &Target,
        inserted: bool,
        params: &mut ParamTypes,
    ) -> SqlResult<ReturningByQuery> {
        Self::over(ctx, items, target, (inserted, &[]), params)
    }

    /// Plans it for rows behind each of which stand those of other tables.
    pub(in crate::dml) fn joined(
        ctx: &Context,
        items: &[SelectItem],
        target: &Target,
        others: &[JoinedRows],
        params: &mut ParamTypes,
    ) -> SqlResult<ReturningByQuery> {
        Self::over(ctx, items, target, (false, others), params)
    }

    fn over(
        ctx: &Context,
        items: &[SelectItem],
        target: &Target,
        (inserted, others): (bool, &[JoinedRows]),
        params: &mut ParamTypes,
    ) -> SqlResult<ReturningByQuery> {
        if target.is_view() {
            return Err(SqlError::unsupported("a subquery or whole row in RETURNING of a view")
                .with_hint("Name the table in place of the view."));
        }
        refuse_calls(&items.to_vec(), "RETURNING")?;
        let mut written = Given::rows_of("\0written rows", &target.table, &target.alias);
        if inserted {
            written.columns.push((XMAX.to_string(), SqlType::Int8));
        }
        written.columns.push((NUMBER.to_string(), SqlType::Int8));
        let mut shown = Vec::new();
        for item in items {
            shown.extend(written_out(item, target, others)?);
        }
        let number = |alias: &str| format!("{}.{}", quote_ident(alias), quote_ident(NUMBER));
        let own = number(&target.alias);
        let paired: Vec<String> =
            others.iter().map(|other| format!("{} = {own}", number(&other.alias))).collect();
        let paired = match paired.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", paired.join(" AND ")),
        };
        let beside = others.iter().enumerate().map(|(at, joined)| Given::beside(at, joined));
        let given = std::iter::once(written).chain(beside).collect();
        let tail = format!("{paired} ORDER BY {own}");
        let query = ByQuery::plan(ctx, &shown, given, &tail, params)?;
        Ok(ReturningByQuery { query })
    }

    pub(in crate::dml) fn columns(&self) -> &[ColumnInfo] {
        self.query.columns()
    }

    /// The values of rows, in their order.
    pub(in crate::dml) fn rows(
        &self,
        ctx: &Context,
        since: SavepointId,
        rows: &[Row],
    ) -> SqlResult<Vec<Row>> {
        let mut start = 0;
        let mut given = Vec::with_capacity(self.query.given.len());
        for part in &self.query.given {
            let width = part.columns.len() - 1;
            let numbered = rows.iter().zip(0i64..).map(|(row, number)| {
                let own = row.iter().skip(start).take(width).cloned();
                own.chain([Datum::Int8(number)]).collect()
            });
            given.push(numbered.collect());
            start += width;
        }
        self.query.rows(ctx, since, given)
    }
}

/// A select item with its stars, and with its name where `xmax` changes how it reads.
fn written_out(
    item: &SelectItem,
    target: &Target,
    others: &[JoinedRows],
) -> SqlResult<Vec<String>> {
    let own = || {
        let alias = quote_ident(&target.alias);
        let columns = target.table.visible_columns();
        columns.map(move |c| format!("{alias}.{}", quote_ident(&c.name)))
    };
    let (mut expr, name) = match item {
        SelectItem::Wildcard(_) => {
            return Ok(own().chain(others.iter().flat_map(JoinedRows::items)).collect());
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(n), _)
            if object_name_parts(n).last() == Some(&target.alias) =>
        {
            return Ok(own().collect());
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(n), _)
            if let Some(other) =
                others.iter().find(|other| object_name_parts(n).last() == Some(&other.alias)) =>
        {
            return Ok(other.items().collect());
        }
        SelectItem::UnnamedExpr(e) if braid_scalar::all_fields(e).is_some() => {
            return Ok(vec![item.to_string()]);
        }
        SelectItem::UnnamedExpr(e) => (e.clone(), output_name(e)),
        SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), ident_name(alias)),
        other => return Err(SqlError::unsupported(format!("the select item {other}"))),
    };
    if target.table.column_named("xmax").is_none() {
        let _ = expr.walk_mut(&mut Xmax(&target.alias));
    }
    Ok(vec![format!("{expr} AS {}", quote_ident(&name))])
}

/// Calls `xmax` by the name that the given rows have for it.
struct Xmax<'a>(&'a str);

impl VisitorMut for Xmax<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_xmax = match expr {
            Expr::Identifier(name) => ident_name(name) == "xmax",
            Expr::CompoundIdentifier(parts) => {
                let parts: Vec<String> = parts.iter().map(ident_name).collect();
                matches!(parts.as_slice(), [table, name] if table == self.0 && name == "xmax")
            }
            _ => false,
        };
        if is_xmax {
            let parts = [self.0, XMAX].map(|name| Ident::with_quote('"', name));
            *expr = Expr::CompoundIdentifier(parts.to_vec());
        }
        ControlFlow::Continue(())
    }
}

impl With {
    /// Where the statement began that this is a part of.
    fn began(&self) -> Option<SavepointId> {
        self.as_one.as_ref().map(|one| one.since())
    }
}

/// Where a statement begins, for those of its queries that read the state before it.
pub(in crate::dml) fn beginning(ctx: &Context) -> SavepointId {
    let around = ctx.with.as_ref().and_then(|with| with.began());
    around.unwrap_or_else(|| ctx.txn.savepoint())
}
