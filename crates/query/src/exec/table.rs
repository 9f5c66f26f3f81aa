//! Tables as DataFusion sees them: stored tables read through the transaction, and virtual tables
//! whose rows are made from the catalog.
//!
//! A scan takes the projection (columns nobody asked for are not decoded), a limit, conditions that
//! cannot fail, which it checks itself (`scan_filter.rs`), and conditions on key columns, which
//! become spans (`key_conditions.rs`); these are checked above it as well.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use braid_planner::access::Access;
use braid_planner::choice;
use braid_rows::TableLayout;
use braid_scalar::Bound;
use braid_sql::Database;
use braid_types::{Datum, SqlError, SqlType};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableSource, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::execution::Place;
use super::facts::Facts;
use super::key_conditions::Filters;
use super::materialized::Materialized;
use super::scan::{Spec, SqlScan};
use super::scan_filter::{ScanFilter, is_for_scan};
use crate::arrow_form;
use crate::error::to_df;
use crate::planning::check_stop;

/// Where a table's rows come from.
#[derive(Clone)]
pub enum Source {
    /// A stored table.
    Stored(Arc<TableLayout>),
    /// Rows made beforehand.
    Rows(Arc<Vec<Vec<Datum>>>),
    /// The same that another part of the statement has given: its plan is for just these.
    Given(Arc<Vec<Vec<Datum>>>),
    /// Rows of a common table expression.
    Shared(Arc<Materialized>),
}

/// A table for DataFusion.
pub(crate) struct SqlTable {
    name: String,
    columns: Vec<(String, SqlType)>,
    schema: SchemaRef,
    source: Source,
    place: Arc<Place>,
    facts: Option<Arc<Facts>>,
}

impl fmt::Debug for SqlTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl SqlTable {
    /// A table with these columns.
    pub fn new(
        name: String,
        columns: Vec<(String, SqlType)>,
        source: Source,
        place: Arc<Place>,
    ) -> SqlTable {
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, ty)| Field::new(name, arrow_form::data_type(ty), true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        SqlTable { name, columns, schema, source, place, facts: None }
    }

    /// Lets planners ask what is known about the rows.
    #[must_use]
    pub(crate) fn with_facts(mut self, db: &Arc<Database>) -> SqlTable {
        if let Source::Stored(layout) = &self.source {
            self.facts = Some(Arc::new(Facts::new(db.clone(), layout.clone())));
        }
        self
    }
}

#[async_trait]
impl TableProvider for SqlTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        check_stop()?;
        let support = |filter: &&Expr| {
            let is_stored = matches!(self.source, Source::Stored(_));
            if is_stored && is_for_scan(filter, &self.schema) {
                TableProviderFilterPushDown::Exact
            } else if self.condition(filter).is_some() {
                TableProviderFilterPushDown::Inexact
            } else {
                TableProviderFilterPushDown::Unsupported
            }
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        check_stop()?;
        let projection: Vec<usize> =
            projection.cloned().unwrap_or_else(|| (0..self.columns.len()).collect());
        if let Source::Stored(layout) = &self.source
            && let Some(at) =
                projection.iter().find(|at| layout.table.columns[**at].expression.is_some())
        {
            let name = &layout.table.columns[*at].name;
            let text = format!("a scan is asked for {name}, an expression of an index");
            return Err(to_df(SqlError::internal(text)));
        }
        let mut conditions = Vec::new();
        for filter in filters {
            let condition = self.condition(filter);
            // What was taken is checked by nobody else.
            if condition.is_none() && !is_for_scan(filter, &self.schema) {
                return Err(to_df(SqlError::internal(format!("a scan cannot check {filter}"))));
            }
            conditions.extend(condition.iter().flat_map(Bound::conjuncts));
        }
        // Of rows that were made they are only asked beforehand.
        let filter = match &self.source {
            Source::Stored(_) => ScanFilter::new(filters, &self.schema, session)?,
            _ => None,
        };
        let mut wanted = vec![false; self.columns.len()];
        let filtered = filter.iter().flat_map(|filter| &filter.columns);
        projection.iter().chain(filtered).for_each(|at| wanted[*at] = true);
        let access = match &self.source {
            Source::Stored(layout) => Some(match &self.facts {
                Some(facts) => choice::for_scan(facts, &conditions, &wanted),
                None => Access::choose_among(layout, &conditions),
            }),
            Source::Rows(_) | Source::Given(_) | Source::Shared(_) => None,
        };
        let threads = match access.as_ref().is_some_and(Access::is_full) {
            true => session.config().target_partitions(),
            false => 1,
        };
        let spec = Spec {
            threads,
            name: self.name.clone(),
            types: projection.iter().map(|at| self.columns[*at].1.clone()).collect(),
            schema: Arc::new(self.schema.project(&projection)?),
            table: self.schema.clone(),
            projection,
            access,
            facts: self.facts.clone(),
            conditions,
            filters: filters.to_vec(),
            limit,
            source: self.source.clone(),
            place: self.place.clone(),
        };
        Ok(Arc::new(SqlScan::new(spec, filter)))
    }
}

impl SqlTable {
    /// About how many bytes its rows have in files.
    pub(crate) fn bytes(&self) -> f64 {
        self.facts.as_ref().map_or(0.0, |facts| facts.bytes())
    }

    /// Whether filters leave all of the table to be read.
    pub(crate) fn is_read_whole(&self, filters: &[Expr]) -> bool {
        let Source::Stored(layout) = &self.source else { return false };
        let conditions = filters.iter().filter_map(|filter| self.condition(filter));
        let conditions: Vec<Bound> = conditions.flat_map(|c| c.conjuncts()).collect();
        Access::choose_among(layout, &conditions).is_full()
    }

    /// What a filter says about the keys to read.
    fn condition(&self, filter: &Expr) -> Option<Bound> {
        let column = |name: &str| match &self.source {
            Source::Stored(layout) => {
                let columns = &layout.table.columns;
                let at = columns.iter().position(|c| c.name == name)?;
                Some((at, columns[at].ty.clone()))
            }
            Source::Rows(_) => {
                let at = self.columns.iter().position(|(own, _)| own == name)?;
                Some((at, self.columns[at].1.clone()))
            }
            Source::Given(_) | Source::Shared(_) => None,
        };
        Filters { column: &column, place: &self.place }.condition(filter)
    }
}

/// What is known about the table behind a scan; `None` if it is not stored.
pub(crate) fn facts_of(source: &Arc<dyn TableSource>) -> Option<Arc<Facts>> {
    let provider = source_as_provider(source).ok()?;
    provider.downcast_ref::<SqlTable>()?.facts.clone()
}

/// How many rows a part of the statement has given that is behind a scan.
pub(crate) fn given_rows(source: &Arc<dyn TableSource>) -> Option<usize> {
    let provider = source_as_provider(source).ok()?;
    match &provider.downcast_ref::<SqlTable>()?.source {
        Source::Given(rows) => Some(rows.len()),
        _ => None,
    }
}

/// Where the execution is that reads the table behind a scan.
pub(crate) fn place_of(source: &Arc<dyn TableSource>) -> Option<Arc<Place>> {
    let provider = source_as_provider(source).ok()?;
    Some(provider.downcast_ref::<SqlTable>()?.place.clone())
}

/// The layout of a stored table.
pub(crate) fn layout_of(source: &Arc<dyn TableSource>) -> Option<Arc<TableLayout>> {
    let provider = source_as_provider(source).ok()?;
    match &provider.downcast_ref::<SqlTable>()?.source {
        Source::Stored(layout) => Some(layout.clone()),
        _ => None,
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Stored(_) => "stored",
            Source::Rows(_) | Source::Given(_) => "rows",
            Source::Shared(_) => "shared",
        })
    }
}
