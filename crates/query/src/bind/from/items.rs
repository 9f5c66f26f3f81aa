//! FROM: tables, views, subqueries, functions, joins.

use std::sync::Arc;

use braid_catalog::Relation as CatalogRelation;
use braid_parser::take_join_alias;
use braid_rows::TableLayout;
use braid_scalar::{
    Padding, ScopeColumn, ident_name, is_only, object_name_parts, ordered_arguments,
};
use braid_sql::general_query::KEY_COLUMN;
use braid_types::{Collated, Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::common::{Column, JoinType};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use sqlparser::ast::{self, Spanned};

use super::order::with_keys;
use super::using::name_merged;
use crate::bind::function_table::{FunctionRows, plain_args, whole};
use crate::bind::lateral::{Lateral, Source as LateralSource, is_true};
use crate::bind::lift::has_subquery;
use crate::bind::rows_from::{BESIDE, rows_from};
use crate::bind::{Binder, Bounded, Cte, Level, Origin, Relation, Slot, SlotKind};
use crate::error::from_df;
use crate::exec::table::{Source, SqlTable};
use crate::system;

/// What a column is called that nobody can name.
const MERGED: &str = "\0merged";

/// Views may nest this deep.
const MAX_VIEW_DEPTH: usize = 32;

/// A relation with where its columns come from.
pub(in crate::bind) struct Item {
    pub(in crate::bind) relation: Relation,
    pub(in crate::bind) origins: Vec<Option<Origin>>,
}

impl Item {
    /// Gives its columns collations.
    pub(in crate::bind) fn collate(&mut self, collations: Vec<Collated>) {
        for (column, collation) in self.relation.scope.columns_mut().iter_mut().zip(collations) {
            column.collation = collation.of_column();
        }
    }
}

pub(in crate::bind) fn bare(relation: Relation) -> Item {
    let origins = vec![None; relation.columns.len()];
    Item { relation, origins }
}

/// Whether the joins of an item of FROM are not the same if what stands before the item is crossed
/// with its first table: names that both sides have would be those of other tables, too, and rows
/// of the right side without a match would not come once for each row before. What may speak of
/// tables before it is left as it is.
fn is_bound_alone(item: &ast::TableWithJoins) -> bool {
    use ast::JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    let depends = |join: &ast::Join| match &join.join_operator {
        Right(_) | RightOuter(_) | FullOuter(_) => true,
        Join(on) | Inner(on) | Left(on) | LeftOuter(on) => {
            matches!(on, ast::JoinConstraint::Using(_) | ast::JoinConstraint::Natural)
        }
        _ => false,
    };
    let is_lateral = |factor: &ast::TableFactor| match factor {
        ast::TableFactor::Table { args, .. } => args.is_some(),
        ast::TableFactor::Derived { lateral, .. } => *lateral,
        ast::TableFactor::NestedJoin { .. } => false,
        _ => true,
    };
    let mut all = std::iter::once(&item.relation).chain(item.joins.iter().map(|j| &j.relation));
    item.joins.iter().any(depends) && !all.any(is_lateral)
}

/// Where aggregates are not allowed in FROM.
pub(in crate::bind) const OWN_LEVEL: &str = "FROM clause of their own query level";

impl Binder<'_> {
    /// Binds FROM into the level's input slots; returns the plan.
    pub(in crate::bind) fn bind_from(
        &mut self,
        from: &[ast::TableWithJoins],
    ) -> SqlResult<LogicalPlan> {
        let mut whole: Option<Item> = None;
        for table in from {
            if let Some(left) = whole.take_if(|_| is_bound_alone(table)) {
                let mut own = self.table_item(&table.relation, None)?.0;
                for join in &table.joins {
                    own = self.join(own, join)?;
                }
                self.check_aliases(&left, &own)?;
                whole = Some(self.cross(left, own)?);
                continue;
            }
            let mut item = self.table_item(&table.relation, whole.as_ref())?;
            // A lateral function already holds what stands before it.
            let mut joined = match (whole.take(), item.1) {
                (Some(_), true) | (None, _) => item.0,
                (Some(left), false) => {
                    self.check_aliases(&left, &item.0)?;
                    self.cross(left, std::mem::replace(&mut item.0, empty_item()?))?
                }
            };
            for join in &table.joins {
                joined = self.join(joined, join)?;
            }
            whole = Some(joined);
        }
        let item = match whole {
            Some(item) => item,
            None => empty_item()?,
        };
        self.install(item)
    }

    /// Makes a relation's columns the inputs of the current level.
    pub(in crate::bind) fn install(&mut self, item: Item) -> SqlResult<LogicalPlan> {
        let level = self.level();
        level.slots = slots_of(&item.relation);
        level.inputs = level.slots.len();
        level.scope = item.relation.scope;
        level.origins = item.origins;
        Ok(item.relation.plan)
    }

    pub(in crate::bind) fn check_aliases(&self, left: &Item, right: &Item) -> SqlResult<()> {
        for column in right.relation.scope.columns() {
            let Some(table) = &column.table else { continue };
            let clash = left.relation.scope.columns().iter().any(|c| {
                c.table.as_ref() == Some(table)
                    && (c.schema == column.schema || c.schema.is_none() || column.schema.is_none())
            });
            if clash {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_ALIAS,
                    format!("table name \"{table}\" specified more than once"),
                ));
            }
        }
        Ok(())
    }

    fn cross(&mut self, left: Item, right: Item) -> SqlResult<Item> {
        let plan = LogicalPlanBuilder::from(left.relation.plan.clone())
            .cross_join(right.relation.plan.clone())
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok(combine(plan, left, right, false, false))
    }

    /// A table of FROM. The flag says that it already includes `left` (LATERAL functions).
    fn table_item(
        &mut self,
        factor: &ast::TableFactor,
        left: Option<&Item>,
    ) -> SqlResult<(Item, bool)> {
        match rows_from(factor)? {
            Some(functions) => self.plain_item(&functions, left),
            None => self.plain_item(factor, left),
        }
    }

    /// The same of what is not ROWS FROM.
    fn plain_item(
        &mut self,
        factor: &ast::TableFactor,
        left: Option<&Item>,
    ) -> SqlResult<(Item, bool)> {
        match factor {
            ast::TableFactor::Table {
                name, alias, args, with_ordinality, version, sample, ..
            } => {
                if version.is_some() {
                    return Err(SqlError::unsupported("a table version"));
                }
                match args {
                    Some(args) => {
                        let alias = alias.as_ref();
                        self.called_item(name, &args.args, *with_ordinality, alias, left)
                    }
                    None => {
                        let item = self.relation_item(name, alias.as_ref())?;
                        match sample {
                            None => Ok((item, false)),
                            Some(sample) => Ok((self.sampled(item, sample)?, false)),
                        }
                    }
                }
            }
            ast::TableFactor::Derived { lateral, subquery, alias, .. } => {
                if let (true, Some(left)) = (*lateral, left) {
                    let how = (JoinType::Inner, None);
                    let source = LateralSource::Query(subquery);
                    return Ok(match self.lateral_item(source, alias.as_ref(), left, how)? {
                        Lateral::Plain(item) => (item, false),
                        Lateral::Joined(item) => (item, true),
                    });
                }
                Ok((self.derived_item(subquery, alias.as_ref())?, false))
            }
            ast::TableFactor::Function { name, args, with_ordinality, alias, .. } => {
                self.called_item(name, args, *with_ordinality, alias.as_ref(), left)
            }
            ast::TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
                let exprs: Vec<&ast::Expr> = array_exprs.iter().collect();
                self.function_item("unnest", &exprs, *with_ordinality, alias.as_ref(), left)
            }
            ast::TableFactor::NestedJoin { table_with_joins, alias } => {
                let (mut item, _) = self.table_item(&table_with_joins.relation, None)?;
                for join in &table_with_joins.joins {
                    item = self.join(item, join)?;
                }
                if let Some(alias) = alias {
                    rename(&mut item.relation, alias)?;
                }
                Ok((item, false))
            }
            other => Err(SqlError::unsupported(format!("{other} in FROM"))),
        }
    }

    /// A call of a function of a user or of a built-in one.
    fn called_item(
        &mut self,
        name: &ast::ObjectName,
        args: &[ast::FunctionArg],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
        left: Option<&Item>,
    ) -> SqlResult<(Item, bool)> {
        if let Some(item) = self.item_of_user(name, args, ordinality, alias, left)? {
            return Ok(item);
        }
        let name = Self::bare_name(name);
        let ordered = ordered_arguments(&name, args)?;
        self.function_item(&name, &plain_args(&ordered, args)?, ordinality, alias, left)
    }

    fn function_item(
        &mut self,
        name: &str,
        exprs: &[&ast::Expr],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
        left: Option<&Item>,
    ) -> SqlResult<(Item, bool)> {
        let rows =
            self.beside(left, |b, input| b.function_rows(name, exprs, ordinality, alias, input))?;
        rows_item(name, rows, ordinality, alias, left)
    }

    /// A call of FROM that gives one value.
    pub(in crate::bind) fn value_item(
        &mut self,
        name: &str,
        call: &ast::Expr,
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
        left: Option<&Item>,
    ) -> SqlResult<(Item, bool)> {
        let rows = self.beside(left, |b, input| {
            let plan = match input {
                Some(plan) => plan,
                None => LogicalPlanBuilder::empty(true).build().map_err(from_df)?,
            };
            b.one_row(call, ordinality, plan)
        })?;
        rows_item(name, rows, ordinality, alias, left)
    }

    /// Binds a function of FROM, whose arguments see what stands before it.
    fn beside<T>(
        &mut self,
        left: Option<&Item>,
        bind: impl FnOnce(&mut Self, Option<LogicalPlan>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        self.isolated(|b| {
            if let Some(left) = left {
                b.level().slots = slots_of(&left.relation);
                b.level().inputs = b.level().slots.len();
                b.level().scope = left.relation.scope.clone();
                b.level().origins = left.origins.clone();
            }
            bind(b, left.map(|l| l.relation.plan.clone()))
        })
    }

    fn derived_item(
        &mut self,
        query: &ast::Query,
        alias: Option<&ast::TableAlias>,
    ) -> SqlResult<Item> {
        // The subquery sees the levels around this SELECT, not its other tables: outer columns
        // found on the way belong to this SELECT.
        let renamed = alias.is_some_and(|a| !a.columns.is_empty());
        let query = with_keys(query, renamed);
        let bound = self.isolated(|b| b.query(&query)).and_then(whole)?;
        let table = alias.map(|a| ident_name(&a.name));
        let origins: Vec<_> = bound.columns.iter().map(|column| column.origin).collect();
        let mut relation = relation_of(bound, table);
        if let Some(alias) = alias {
            rename_columns(&mut relation, alias)?;
        }
        Ok(self.coming_from(bare(relation), origins))
    }

    /// A relation by its name, whose place an error tells.
    fn relation_item(
        &mut self,
        name: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
    ) -> SqlResult<Item> {
        let start = name.span().start;
        let parts = object_name_parts(name);
        let mut item = self.named_item(&parts, alias).map_err(|e| match e.state() {
            SqlState::UNDEFINED_TABLE => e.or_at(start.line, start.column),
            _ => e,
        })?;
        if is_only(name) && self.is_divided(&parts) {
            // Its rows are all in its partitions.
            item.relation.plan = LogicalPlanBuilder::from(item.relation.plan)
                .filter(lit(false))
                .and_then(LogicalPlanBuilder::build)
                .map_err(from_df)?;
        }
        Ok(item)
    }

    fn is_divided(&self, parts: &[String]) -> bool {
        let (schema, name) = match parts {
            [name] => (None, name),
            [.., schema, name] => (Some(schema.as_str()), name),
            [] => return false,
        };
        match self.stored(schema, name) {
            Some(CatalogRelation::Table(t) | CatalogRelation::Partition(t)) => t.is_divided(),
            _ => false,
        }
    }

    /// What the catalog has under a name.
    fn stored(&self, schema: Option<&str>, name: &str) -> Option<CatalogRelation> {
        let (database, catalog) = (self.context.database_id(), &self.context.catalog);
        let Some(schema) = schema else {
            return catalog.resolve(database, &self.search_path, name);
        };
        // The first of the search path is the session's own.
        let own = self.search_path.first().map_or(schema, String::as_str);
        let schema = if schema == "pg_temp" { own } else { schema };
        catalog.schema(database, schema).and_then(|s| catalog.relation(s.id, name))
    }

    fn named_item(&mut self, parts: &[String], alias: Option<&ast::TableAlias>) -> SqlResult<Item> {
        let shown = alias
            .map(|a| ident_name(&a.name))
            .unwrap_or_else(|| parts.last().cloned().unwrap_or_default());
        if let [name] = parts
            && let Some(at) = self.ctes.iter().rposition(|c| c.name() == name)
        {
            return self.cte_item(at, &shown, alias);
        }
        let (schema, name) = match parts {
            [name] => (None, name),
            [schema, name] => (Some(schema.as_str()), name),
            [database, schema, name] if *database == self.context.database => {
                (Some(schema.as_str()), name)
            }
            _ => {
                return Err(SqlError::unsupported(format!(
                    "a reference to another database: \"{}\"",
                    parts.join(".")
                )));
            }
        };
        if let Some(item) = self.system_item(schema, name, &shown)? {
            return finish(item, alias);
        }
        let item = match self.stored(schema, name) {
            Some(CatalogRelation::Table(table)) => self.stored_item(&table, &shown, alias)?,
            Some(CatalogRelation::Partition(window)) => self.window_item(&window, &shown, alias)?,
            Some(CatalogRelation::View(view)) => self.view_item(&view, &shown, alias)?,
            Some(CatalogRelation::Sequence(s)) => self.sequence_item(&s, &shown)?,
            Some(CatalogRelation::Index(..)) => {
                return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("cannot open relation \"{name}\""),
                )
                .with_detail("This operation is not supported for indexes."));
            }
            None => {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{}\" does not exist", parts.join(".")),
                ));
            }
        };
        finish(item, alias)
    }

    /// The schema that a relation's columns can be named with: of one that has no alias.
    fn shown_schema(&self, schema: u32, alias: Option<&ast::TableAlias>) -> Option<String> {
        let schema = self.context.catalog.schema_by_id(schema).map(|s| s.name.clone());
        schema.filter(|_| alias.is_none())
    }

    fn stored_item(
        &mut self,
        table: &Arc<braid_catalog::Table>,
        shown: &str,
        alias: Option<&ast::TableAlias>,
    ) -> SqlResult<Item> {
        if table.materialized().is_some_and(|view| !view.populated) {
            self.unpopulated.get_or_insert_with(|| table.name.clone());
        }
        let layout = Arc::new(TableLayout::new(&self.context.catalog, table)?);
        let schema = self.shown_schema(table.schema, alias);
        let columns: Vec<(String, SqlType)> =
            table.columns.iter().map(|c| (c.name.clone(), c.ty.clone())).collect();
        let source = Source::Stored(layout);
        let mut item = self.scan_item(&table.name, shown, schema, columns, source)?;
        self.next_relation += 1;
        let keys = table.key_columns();
        for (at, column) in table.columns.iter().enumerate() {
            let scope = &mut item.relation.scope.columns_mut()[at];
            scope.hidden = column.hidden;
            scope.collation = column.collated();
            scope.nullable = column.nullable;
            item.origins[at] = Some(Origin {
                relation: self.next_relation,
                table_oid: braid_catalog::oid_of(table.id),
                attnum: column.id as i16,
                key: keys.contains(&column.id),
                keys: if table.has_row_id() { 0 } else { keys.len() },
                stored: true,
                whole: true,
            });
        }
        Ok(item)
    }

    /// A partition: the rows of its table that are in it.
    fn window_item(
        &mut self,
        window: &Arc<braid_catalog::Table>,
        shown: &str,
        alias: Option<&ast::TableAlias>,
    ) -> SqlResult<Item> {
        let mut item = self.stored_item(window, shown, alias)?;
        let Some(condition) = braid_sql::partitions::condition(window)? else { return Ok(item) };
        let scope = item.relation.scope.clone();
        item.relation.plan = self.isolated(|b| {
            b.level().slots = slots_of(&item.relation);
            b.level().inputs = b.level().slots.len();
            b.level().scope = scope.clone();
            let bound = braid_scalar::bind_bool(&condition, "WHERE", &scope, b)?;
            b.filtered(item.relation.plan.clone(), &bound, true)
        })?;
        Ok(item)
    }

    pub(in crate::bind) fn scan_item(
        &mut self,
        name: &str,
        shown: &str,
        schema: Option<String>,
        columns: Vec<(String, SqlType)>,
        source: Source,
    ) -> SqlResult<Item> {
        let qualifier = self.fresh("t");
        let is_system = matches!(schema.as_deref(), Some("pg_catalog" | "information_schema"));
        let names = crate::bind::cte::names_apart(columns.iter().map(|(name, _)| name.as_str()));
        let own = names.iter().cloned().zip(columns.iter().map(|(_, ty)| ty.clone())).collect();
        let provider = SqlTable::new(name.to_string(), own, source, self.place.clone())
            .with_facts(&self.context.db);
        let plan = LogicalPlanBuilder::scan(
            datafusion::common::TableReference::bare(qualifier.clone()),
            provider_as_source(Arc::new(provider)),
            None,
        )
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_df)?;
        let mut relation = Relation { plan, scope: Default::default(), columns: Vec::new() };
        for ((name, ty), own) in columns.into_iter().zip(names) {
            relation.columns.push(Expr::Column(Column::new(
                Some(datafusion::common::TableReference::bare(qualifier.clone())),
                own,
            )));
            // Of given rows, what nobody can type.
            let hidden =
                is_system && system::HIDDEN.contains(&name.as_str()) || name.starts_with('\0');
            relation.scope.push(ScopeColumn {
                table: Some(shown.to_string()),
                schema: schema.clone(),
                hidden,
                ..ScopeColumn::new(name, ty)
            });
        }
        Ok(bare(relation))
    }

    fn system_item(
        &mut self,
        schema: Option<&str>,
        name: &str,
        shown: &str,
    ) -> SqlResult<Option<Item>> {
        let schema = match schema {
            Some(s @ ("pg_catalog" | "information_schema")) => s,
            Some(_) => return Ok(None),
            None if system::is_pg_table(name) => "pg_catalog",
            None if self.search_path.iter().any(|s| s == "information_schema") => {
                "information_schema"
            }
            None => return Ok(None),
        };
        let Some(table) = system::table(schema, name) else {
            if schema == "pg_catalog" || schema == "information_schema" {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{schema}.{name}\" does not exist"),
                ));
            }
            return Ok(None);
        };
        let key = format!("{schema}.{name}");
        let rows = match self.catalog_rows.get(&key) {
            Some(rows) => rows.clone(),
            None => {
                let rows = match self.bind_anew() {
                    Some(eval) => Arc::new(system::rows(&table, self.context, &eval)?),
                    None => Arc::new(Vec::new()),
                };
                self.catalog_rows.insert(key, rows.clone());
                rows
            }
        };
        let columns = table.columns();
        let numbered = (1..=table.width() as i16).map(|attnum| Some((table.oid, attnum)));
        let source = Source::Rows(rows);
        let item = self.scan_item(name, shown, Some(schema.to_string()), columns, source)?;
        Ok(Some(self.coming_from(item, numbered)))
    }

    /// A sequence as a table of one row.
    fn sequence_item(&mut self, s: &braid_catalog::Sequence, shown: &str) -> SqlResult<Item> {
        let rows = match self.bind_anew() {
            Some(_) => {
                let (last, called) = self.context.db.sequence_position(s)?;
                vec![vec![Datum::Int8(last), Datum::Int8(0), Datum::Bool(called)]]
            }
            None => Vec::new(),
        };
        let columns = [
            ("last_value", SqlType::Int8),
            ("log_cnt", SqlType::Int8),
            ("is_called", SqlType::Bool),
        ];
        let columns = columns.map(|(name, ty)| (name.to_string(), ty)).to_vec();
        self.scan_item(&s.name, shown, None, columns, Source::Rows(Arc::new(rows)))
    }

    fn view_item(
        &mut self,
        view: &braid_catalog::View,
        shown: &str,
        alias: Option<&ast::TableAlias>,
    ) -> SqlResult<Item> {
        if self.view_depth >= MAX_VIEW_DEPTH {
            return Err(SqlError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                "views are nested too deeply",
            ));
        }
        let query = system::parse_query(&view.definition.query)?;
        // A view sees neither the CTEs nor the outer levels of the query that names it.
        let ctes = std::mem::take(&mut self.ctes);
        let levels = std::mem::take(&mut self.levels);
        let path = std::mem::replace(&mut self.search_path, view.definition.search_path.clone());
        self.name_types();
        self.view_depth += 1;
        self.levels.push(Level::default());
        let bound = self.query(&query).and_then(whole);
        self.levels = levels;
        self.ctes = ctes;
        self.search_path = path;
        self.name_types();
        self.view_depth -= 1;
        let bound = bound?;
        let mut relation =
            Relation { plan: bound.plan, scope: Default::default(), columns: Vec::new() };
        let schema = self.shown_schema(view.schema, alias);
        for (column, (name, _)) in bound.columns.into_iter().zip(&view.columns) {
            relation.scope.push(ScopeColumn {
                table: Some(shown.to_string()),
                schema: schema.clone(),
                collation: column.collation.of_column(),
                ..ScopeColumn::new(name, column.ty)
            });
            relation.columns.push(column.expr);
        }
        let oid = braid_catalog::oid_of(view.id);
        let numbered = (1..=view.columns.len() as i16).map(|attnum| Some((oid, attnum)));
        let mut item = self.coming_from(bare(relation), numbered);
        item.origins.iter_mut().flatten().for_each(|origin| origin.whole = true);
        Ok(item)
    }

    /// Tells clients of which tables the columns of something that is no stored table are.
    pub(in crate::bind) fn coming_from(
        &mut self,
        mut item: Item,
        columns: impl IntoIterator<Item = Option<(u32, i16)>>,
    ) -> Item {
        self.next_relation += 1;
        let relation = self.next_relation;
        let origin = |(table_oid, attnum)| Origin {
            relation,
            table_oid,
            attnum,
            key: false,
            keys: 0,
            stored: false,
            whole: false,
        };
        for (own, column) in item.origins.iter_mut().zip(columns) {
            *own = column.map(origin);
        }
        item
    }

    fn cte_item(
        &mut self,
        at: usize,
        shown: &str,
        alias: Option<&ast::TableAlias>,
    ) -> SqlResult<Item> {
        match self.ctes[at].clone() {
            Cte::Query { name, columns, query, recursive } => {
                // Its query sees the CTEs before it.
                let later = self.ctes.split_off(at);
                let bound = self.isolated(|b| {
                    if recursive {
                        b.recursive_query(&name, &columns, &query)
                    } else {
                        let again = alias.is_some_and(|a| !a.columns.is_empty());
                        b.query(&with_keys(&query, again || !columns.is_empty()))
                    }
                });
                self.ctes.extend(later);
                let bound = bound.and_then(whole)?;
                crate::bind::cte::check_width(&name, &columns, &bound)?;
                let origins: Vec<_> = bound.columns.iter().map(|column| column.origin).collect();
                let item = bare(relation_of(bound, None));
                let mut item = self.coming_from(item, origins);
                let shown_columns = item.relation.scope.columns_mut().iter_mut();
                for (column, name) in shown_columns.filter(|c| !c.hidden).zip(&columns) {
                    column.name = name.clone();
                }
                for column in item.relation.scope.columns_mut() {
                    column.table = Some(shown.to_string());
                }
                finish(item, alias)
            }
            Cte::Shared { name, columns, collations, origins, rows } => {
                let source = Source::Shared(rows);
                let mut item = self.scan_item(&name, shown, None, columns, source)?;
                item.collate(collations);
                finish(self.coming_from(item, origins), alias)
            }
            Cte::Given(given) => {
                let item = self.given_item(given, shown)?;
                finish(item, alias)
            }
            Cte::Work { columns, collations, table, name } => {
                if self.levels.len() > self.work_level {
                    return Err(SqlError::new(
                        SqlState("42P19"),
                        format!(
                            "recursive reference to query \"{name}\" must not appear within a \
                             subquery"
                        ),
                    ));
                }
                let mut item = self.work_item(&table, shown, columns)?;
                item.collate(collations);
                finish(item, alias)
            }
        }
    }

    fn join(&mut self, left: Item, join: &ast::Join) -> SqlResult<Item> {
        use ast::JoinOperator as Op;
        self.check_cancel()?;
        if let Some(relation) = rows_from(&join.relation)? {
            return self.join(left, &ast::Join { relation, ..join.clone() });
        }
        let none = ast::JoinConstraint::None;
        let (kind, constraint) = match &join.join_operator {
            Op::Join(c) | Op::Inner(c) => (JoinType::Inner, c),
            Op::Left(c) | Op::LeftOuter(c) => (JoinType::Left, c),
            Op::Right(c) | Op::RightOuter(c) => (JoinType::Right, c),
            Op::FullOuter(c) => (JoinType::Full, c),
            Op::CrossJoin(_) => (JoinType::Inner, &none),
            other => return Err(SqlError::unsupported(format!("{other:?} joins"))),
        };
        if let (
            JoinType::Left,
            ast::TableFactor::Derived { lateral: true, subquery, alias, .. },
            ast::JoinConstraint::On(on),
        ) = (kind, &join.relation, constraint)
        {
            let source = LateralSource::Query(subquery);
            match self.lateral_item(source, alias.as_ref(), &left, (kind, Some(on)))? {
                Lateral::Joined(item) => return Ok(item),
                Lateral::Plain(right) => return self.constrained(left, right, kind, constraint),
            }
        }
        let (right, includes_left) = self.table_item(&join.relation, Some(&left))?;
        match (includes_left, kind, constraint) {
            (false, ..) => self.constrained(left, right, kind, constraint),
            (true, JoinType::Left, ast::JoinConstraint::On(on)) => {
                self.outer_function(&join.relation, &left, on)
            }
            (true, ..) => self.lateral_join(right, kind, constraint),
        }
    }

    /// Two relations joined.
    fn constrained(
        &mut self,
        left: Item,
        right: Item,
        kind: JoinType,
        constraint: &ast::JoinConstraint,
    ) -> SqlResult<Item> {
        self.check_aliases(&left, &right)?;
        let width = left.relation.columns.len();
        match constraint {
            ast::JoinConstraint::None if kind == JoinType::Inner => self.cross(left, right),
            ast::JoinConstraint::None => {
                Err(SqlError::syntax("an outer join needs a join condition"))
            }
            ast::JoinConstraint::On(condition) => {
                let both = combine(
                    left.relation.plan.clone(),
                    copy_of(&left),
                    copy_of(&right),
                    matches!(kind, JoinType::Right | JoinType::Full),
                    matches!(kind, JoinType::Left | JoinType::Full),
                );
                let (left, right) = (left.relation.plan, right.relation.plan);
                let plan = self.over(&both, |b| {
                    let bound = b.condition(condition, "JOIN/ON")?;
                    let builder = LogicalPlanBuilder::from(left);
                    if kind == JoinType::Inner && has_subquery(&bound) {
                        let crossed = builder.cross_join(right).and_then(LogicalPlanBuilder::build);
                        return b.filtered(crossed.map_err(from_df)?, &bound, true);
                    }
                    let on = b.filters(&bound, true)?;
                    builder
                        .join_on(right, kind, on)
                        .and_then(LogicalPlanBuilder::build)
                        .map_err(from_df)
                })?;
                Ok(Item { relation: Relation { plan, ..both.relation }, origins: both.origins })
            }
            ast::JoinConstraint::Using(names) => {
                let mut names: Vec<String> =
                    names.iter().map(|n| object_name_parts(n).pop().unwrap_or_default()).collect();
                let alias = take_join_alias(&mut names);
                let mut item = self.using_join(left, right, kind, &names, width)?;
                if let Some(alias) = alias {
                    name_merged(&mut item, &alias, names.len())?;
                }
                Ok(item)
            }
            ast::JoinConstraint::Natural => {
                let names: Vec<String> = left
                    .relation
                    .scope
                    .columns()
                    .iter()
                    .filter(|c| !c.hidden)
                    .filter(|c| {
                        right.relation.scope.columns().iter().any(|r| !r.hidden && r.name == c.name)
                    })
                    .map(|c| c.name.clone())
                    .collect();
                if names.is_empty() && kind == JoinType::Inner {
                    return self.cross(left, right);
                }
                self.using_join(left, right, kind, &names, width)
            }
        }
    }

    /// `FROM t JOIN f(t.x) ON ...`: the rows are there already, the condition filters them.
    fn lateral_join(
        &mut self,
        item: Item,
        kind: JoinType,
        constraint: &ast::JoinConstraint,
    ) -> SqlResult<Item> {
        match constraint {
            ast::JoinConstraint::None => Ok(item),
            ast::JoinConstraint::On(e) if kind == JoinType::Inner && is_true(e) => Ok(item),
            ast::JoinConstraint::On(e) if kind == JoinType::Inner => {
                let plan = item.relation.plan.clone();
                let plan = self.over(&item, |b| {
                    let bound = b.condition(e, "JOIN/ON")?;
                    b.filtered(plan, &bound, true)
                })?;
                Ok(Item { relation: Relation { plan, ..item.relation }, origins: item.origins })
            }
            _ => Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                "invalid reference to a FROM-clause entry of the other side",
            )
            .with_detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")),
        }
    }

    /// Runs `f` in a level whose inputs are the item's columns.
    pub(in crate::bind) fn over<T>(
        &mut self,
        item: &Item,
        f: impl FnOnce(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<T> {
        self.isolated(|b| {
            b.level().slots = slots_of(&item.relation);
            b.level().inputs = b.level().slots.len();
            b.level().scope = item.relation.scope.clone();
            b.level().origins = item.origins.clone();
            b.without_aggregates(OWN_LEVEL, f)
        })
    }
}

fn relation_of(bound: Bounded, table: Option<String>) -> Relation {
    let mut relation =
        Relation { plan: bound.plan, scope: Default::default(), columns: Vec::new() };
    for column in bound.columns {
        relation.scope.push(ScopeColumn {
            table: table.clone(),
            hidden: column.name.starts_with(KEY_COLUMN) || column.name.starts_with(BESIDE),
            nullable: column.nullable,
            collation: column.collation.of_column(),
            ..ScopeColumn::new(column.name, column.ty)
        });
        relation.columns.push(column.expr);
    }
    relation
}

fn slots_of(relation: &Relation) -> Vec<Slot> {
    relation
        .scope
        .columns()
        .iter()
        .zip(&relation.columns)
        .map(|(column, expr)| Slot { kind: SlotKind::Plan(expr.clone()), ty: column.ty.clone() })
        .collect()
}

/// The rows of a function as a table of FROM, beside `left` that they hold already.
fn rows_item(
    name: &str,
    rows: FunctionRows,
    ordinality: bool,
    alias: Option<&ast::TableAlias>,
    left: Option<&Item>,
) -> SqlResult<(Item, bool)> {
    let table = alias.map_or_else(|| name.to_string(), |a| ident_name(&a.name));
    let single = rows.columns.len() == 1 + usize::from(ordinality);
    let (beside, last) = (table.starts_with(BESIDE), rows.columns.len().saturating_sub(1));
    let mut relation = Relation { plan: rows.plan, scope: Default::default(), columns: vec![] };
    for (at, (column, ty, expr)) in rows.columns.into_iter().enumerate() {
        // One column takes the alias as its name: generate_series(1, 3) AS n.
        let named = alias.is_some() && !beside;
        let name =
            if single && at == 0 && named && column != "value" { table.clone() } else { column };
        let collation = match ty.is_collatable() {
            true => rows.collation.clone(),
            false => Collated::Default,
        };
        relation.scope.push(ScopeColumn {
            table: Some(table.clone()),
            hidden: beside && at == last,
            scalar: single,
            collation,
            ..ScopeColumn::new(name, ty)
        });
        relation.columns.push(expr);
    }
    if let Some(alias) = alias {
        rename_columns(&mut relation, alias)?;
    }
    let own = bare(relation);
    match left {
        None => Ok((own, false)),
        Some(left) => {
            let plan = own.relation.plan.clone();
            Ok((combine(plan, copy_of(left), own, false, false), true))
        }
    }
}

pub(in crate::bind) fn empty_item() -> SqlResult<Item> {
    let plan = LogicalPlanBuilder::empty(true).build().map_err(from_df)?;
    Ok(bare(Relation { plan, scope: Default::default(), columns: Vec::new() }))
}

pub(in crate::bind) fn copy_of(item: &Item) -> Item {
    Item {
        relation: Relation {
            plan: item.relation.plan.clone(),
            scope: item.relation.scope.clone(),
            columns: item.relation.columns.clone(),
        },
        origins: item.origins.clone(),
    }
}

/// Columns of the left, then of the right.
pub(in crate::bind) fn combine(
    plan: LogicalPlan,
    left: Item,
    right: Item,
    left_nullable: bool,
    right_nullable: bool,
) -> Item {
    let mut scope = left.relation.scope;
    let width = scope.len();
    for column in right.relation.scope.columns() {
        scope.push(column.clone());
    }
    for (at, column) in scope.columns_mut().iter_mut().enumerate() {
        if if at < width { left_nullable } else { right_nullable } {
            column.padding = match (column.nullable, column.padding) {
                (false, _) | (_, Padding::Telling) => Padding::Telling,
                _ => Padding::Mixed,
            };
            column.nullable = true;
        }
    }
    let mut columns = left.relation.columns;
    columns.extend(right.relation.columns);
    let mut origins = left.origins;
    origins.extend(right.origins);
    Item { relation: Relation { plan, scope, columns }, origins }
}

fn finish(mut item: Item, alias: Option<&ast::TableAlias>) -> SqlResult<Item> {
    if let Some(alias) = alias {
        rename(&mut item.relation, alias)?;
    }
    Ok(item)
}

fn rename(relation: &mut Relation, alias: &ast::TableAlias) -> SqlResult<()> {
    let name = ident_name(&alias.name);
    // The columns that a USING has merged are one column of what is named here.
    let is_merged = |c: &ScopeColumn| c.table.is_none() && !c.hidden;
    let columns = relation.scope.columns().iter();
    let merged: Vec<String> = columns.filter(|c| is_merged(c)).map(|c| c.name.clone()).collect();
    for column in relation.scope.columns_mut() {
        if column.hidden && merged.contains(&column.name) {
            column.name = MERGED.to_string();
        }
        column.table = Some(name.clone());
        column.schema = None;
    }
    rename_columns(relation, alias)
}

pub(in crate::bind) fn rename_columns(
    relation: &mut Relation,
    alias: &ast::TableAlias,
) -> SqlResult<()> {
    let visible = relation.scope.columns().iter().filter(|c| !c.hidden).count();
    if alias.columns.len() > visible {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "table \"{}\" has {visible} columns available but {} columns specified",
                ident_name(&alias.name),
                alias.columns.len()
            ),
        ));
    }
    let shown = relation.scope.columns_mut().iter_mut().filter(|c| !c.hidden);
    for (column, new) in shown.zip(&alias.columns) {
        column.name = ident_name(&new.name);
    }
    Ok(())
}
