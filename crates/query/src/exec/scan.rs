//! Tables as DataFusion sees them: stored tables read through the transaction, and virtual tables
//! whose rows are made from the catalog.
//!
//! A scan takes the projection (columns nobody asked for are not decoded), a limit, and conditions
//! that cannot fail, which it checks itself (`scan_filter.rs`). Filters of the forms
//! `column op literal` and `column IN (literals)` on a prefix of the primary key or of an index
//! become spans; they are checked as well, so spans only have to be wide enough, never exact.

use std::fmt;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use async_trait::async_trait;
use braid_kv::KeySpan;
use braid_sql::storage::{IndexScan, Layout, TableLayout, TableScan};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableSource, TableType,
};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::Stream;

use super::columns::ColumnScan;
use super::constant::{self, is_constant};
use super::execution::Place;
use super::materialized::Materialized;
use super::scan_filter::{ScanFilter, is_for_scan};
use crate::arrow_form;
use crate::error::to_df;

/// Rows in one batch.
const BATCH_ROWS: usize = 1024;
/// Points that an IN list may spread into.
const MAX_POINTS: usize = 1000;

/// Where a table's rows come from.
#[derive(Clone)]
pub enum Source {
    /// A stored table.
    Stored(Arc<TableLayout>),
    /// Rows made beforehand.
    Rows(Arc<Vec<Vec<Datum>>>),
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
        SqlTable { name, columns, schema: Arc::new(Schema::new(fields)), source, place }
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
        let stored = matches!(self.source, Source::Stored(_));
        Ok(filters
            .iter()
            .map(|f| {
                if stored && is_for_scan(f, &self.schema) {
                    TableProviderFilterPushDown::Exact
                } else if stored && usable(f) {
                    TableProviderFilterPushDown::Inexact
                } else {
                    TableProviderFilterPushDown::Unsupported
                }
            })
            .collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection: Vec<usize> =
            projection.cloned().unwrap_or_else(|| (0..self.columns.len()).collect());
        let access = match &self.source {
            Source::Stored(_) if filters.iter().any(has_constant) => Access::Late(filters.to_vec()),
            Source::Stored(layout) => choose(layout, filters).map_err(to_df)?,
            Source::Rows(_) | Source::Shared(_) => Access::All,
        };
        // What was taken is checked by nobody else.
        if let Some(lost) = filters.iter().find(|f| !is_for_scan(f, &self.schema) && !usable(f)) {
            return Err(to_df(SqlError::internal(format!("a scan cannot check {lost}"))));
        }
        let filter = ScanFilter::new(filters, &self.schema, session)?;
        let schema = Arc::new(self.schema.project(&projection)?);
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(Arc::new(SqlScan {
            name: self.name.clone(),
            types: projection.iter().map(|at| self.columns[*at].1.clone()).collect(),
            projection,
            schema,
            properties,
            access,
            filter,
            limit,
            source: self.source.clone(),
            place: self.place.clone(),
            asked: Arc::default(),
        }))
    }
}

/// The layout of a stored table.
pub(crate) fn layout_of(source: &Arc<dyn TableSource>) -> Option<Arc<TableLayout>> {
    let provider = source_as_provider(source).ok()?;
    match &provider.downcast_ref::<SqlTable>()?.source {
        Source::Stored(layout) => Some(layout.clone()),
        _ => None,
    }
}

/// How a stored table is read.
#[derive(Clone, Debug)]
enum Access {
    /// All rows.
    All,
    /// Spans of the primary key, and how many leading columns they use.
    Keys(Vec<KeySpan>, usize),
    /// Spans of the index at this position.
    Index(usize, Vec<KeySpan>, usize),
    /// As these filters say once the constants in them have values.
    Late(Vec<Expr>),
}

/// Bounds on one column out of the filters.
#[derive(Clone, Default, Debug)]
struct Limits {
    points: Option<Vec<Datum>>,
    low: Option<(Datum, bool)>,
    high: Option<(Datum, bool)>,
}

fn column_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(c) => Some(&c.name),
        // The optimizer may widen an integer column to compare it with a wider one.
        Expr::Cast(c) => column_name(&c.expr),
        _ => None,
    }
}

fn literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(..) | Expr::Placeholder(_)) || is_constant(expr)
}

/// Whether a filter holds a constant of the execution.
fn has_constant(expr: &Expr) -> bool {
    expr.exists(|e| Ok(is_constant(e))).unwrap_or(true)
}

/// The filters with the values of the execution that runs. A constant that cannot be computed stays
/// as it is, and bounds nothing: the filter above the scan computes it if it comes to that.
fn with_values(filters: &[Expr], place: &Place) -> Result<Vec<Expr>> {
    let literal = |e: Expr| match constant::value(&e, place) {
        Some(value) => Ok(Transformed::yes(Expr::Literal(value, None))),
        None => Ok(Transformed::no(e)),
    };
    filters.iter().map(|f| Ok(f.clone().transform_up(literal)?.data)).collect()
}

fn usable(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => alternatives(expr).is_some(),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            matches!(
                op,
                Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
            ) && ((column_name(left).is_some() && literal(right))
                || (literal(left) && column_name(right).is_some()))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            column_name(expr).is_some() && list.iter().all(literal)
        }
        _ => false,
    }
}

/// The column and its values if an expression is `c = x OR c = y OR c IN (..)`, which is how the
/// optimizer writes short IN lists.
fn alternatives(expr: &Expr) -> Option<(&str, Vec<&Expr>)> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (name, mut values) = alternatives(left)?;
            let (other, more) = alternatives(right)?;
            values.extend(more);
            (name == other).then_some((name, values))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            match (column_name(left), column_name(right)) {
                (Some(name), None) if literal(right) => Some((name, vec![right])),
                (None, Some(name)) if literal(left) => Some((name, vec![left])),
                _ => None,
            }
        }
        Expr::InList(InList { expr, list, negated: false }) if list.iter().all(literal) => {
            Some((column_name(expr)?, list.iter().collect()))
        }
        _ => None,
    }
}

/// The literal as a value of the column's type; `None` if it has none (too large, NULL).
fn value_of(literal: &ScalarValue, ty: &SqlType) -> Option<Datum> {
    let carrier = arrow_form::data_type(ty);
    let fitted = if literal.data_type() == carrier {
        literal.clone()
    } else {
        literal.cast_to(&carrier).ok()?
    };
    // A cast that lost digits would narrow the span.
    if fitted.is_null() || fitted.cast_to(&literal.data_type()).ok()? != *literal {
        return None;
    }
    Some(arrow_form::from_scalar(&fitted, ty))
}

impl Limits {
    fn of(layout: &TableLayout, ordinal: usize, filters: &[Expr]) -> Limits {
        let column = &layout.table.columns[ordinal];
        let mut limits = Limits::default();
        for filter in filters {
            limits.add(&column.name, &column.ty, filter);
        }
        limits
    }

    fn add(&mut self, name: &str, ty: &SqlType, filter: &Expr) {
        if let Some((column, values)) = alternatives(filter) {
            if column == name {
                self.add_points(ty, &values);
            }
            return;
        }
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return };
        let (value, op) = match (column_name(left), &**right, column_name(right), &**left) {
            (Some(c), Expr::Literal(v, _), _, _) if c == name => (v, *op),
            (_, _, Some(c), Expr::Literal(v, _)) if c == name => (v, op.swap().unwrap_or(*op)),
            _ => return,
        };
        let Some(value) = value_of(value, ty) else { return };
        match op {
            Operator::Gt => self.low = Some((value, false)),
            Operator::GtEq => self.low = Some((value, true)),
            Operator::Lt => self.high = Some((value, false)),
            Operator::LtEq => self.high = Some((value, true)),
            _ => {}
        }
    }

    fn add_points(&mut self, ty: &SqlType, values: &[&Expr]) {
        // Of two sets the smaller is kept: the filter above sees to the rest.
        let kept = self.points.as_ref().map_or(MAX_POINTS + 1, Vec::len);
        if values.len() >= kept {
            return;
        }
        let values: Option<Vec<Datum>> = values
            .iter()
            .map(|e| match e {
                Expr::Literal(v, _) => value_of(v, ty),
                _ => None,
            })
            .collect();
        if let Some(mut values) = values {
            values.sort_by(Datum::cmp_sql);
            values.dedup_by(|a, b| a.cmp_sql(b).is_eq());
            self.points = Some(values);
        }
    }
}

/// Spans of a key layout for the filters, and the number of columns they use.
fn spans_of(
    table: &TableLayout,
    layout: &Layout,
    filters: &[Expr],
) -> SqlResult<Option<(Vec<KeySpan>, usize)>> {
    let mut prefixes: Vec<Vec<Datum>> = vec![Vec::new()];
    let mut used = 0;
    for column in layout.columns() {
        let limits = Limits::of(table, column.ordinal, filters);
        if let Some(points) = &limits.points {
            if prefixes.len() * points.len() > MAX_POINTS {
                break;
            }
            prefixes = prefixes
                .iter()
                .flat_map(|p| {
                    points.iter().map(move |v| {
                        let mut longer = p.clone();
                        longer.push(v.clone());
                        longer
                    })
                })
                .collect();
            used += 1;
            continue;
        }
        if limits.low.is_none() && limits.high.is_none() {
            break;
        }
        let bound = |b: &'_ Option<(Datum, bool)>| -> (Option<Datum>, bool) {
            b.as_ref().map_or((None, false), |(v, inclusive)| (Some(v.clone()), *inclusive))
        };
        let ((low, low_in), (high, high_in)) = (bound(&limits.low), bound(&limits.high));
        let edge = |v: &'_ Option<Datum>, inclusive: bool| -> Bound<Datum> {
            match v {
                None => Bound::Unbounded,
                Some(v) if inclusive => Bound::Included(v.clone()),
                Some(v) => Bound::Excluded(v.clone()),
            }
        };
        let (low, high) = (edge(&low, low_in), edge(&high, high_in));
        let spans = prefixes
            .iter()
            .map(|p| layout.range_span(p, low.as_ref(), high.as_ref()))
            .collect::<SqlResult<Vec<_>>>()?;
        return Ok(Some((spans, used + 1)));
    }
    if used == 0 {
        return Ok(None);
    }
    let spans = prefixes.iter().map(|p| layout.prefix_span(p)).collect::<SqlResult<Vec<_>>>()?;
    Ok(Some((spans, used)))
}

/// The access path that uses most key columns; the primary key when equal.
fn choose(layout: &TableLayout, filters: &[Expr]) -> SqlResult<Access> {
    let mut best = Access::All;
    let mut most = 0;
    if let Some((spans, used)) = spans_of(layout, &layout.rows, filters)? {
        most = used;
        best = Access::Keys(spans, used);
    }
    for (at, index) in layout.indexes.iter().enumerate() {
        if let Some((spans, used)) = spans_of(layout, &index.layout, filters)?
            && used > most
        {
            most = used;
            best = Access::Index(at, spans, used);
        }
    }
    Ok(best)
}

/// The scan of one table.
#[derive(Clone, Debug)]
struct SqlScan {
    name: String,
    projection: Vec<usize>,
    types: Vec<SqlType>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    access: Access,
    filter: Option<ScanFilter>,
    limit: Option<usize>,
    source: Source,
    place: Arc<Place>,
    /// Requests to the store so far.
    asked: Arc<AtomicU64>,
}

impl SqlScan {
    /// The columns that the filter is about, with their types.
    fn probe_types(&self) -> Vec<(usize, SqlType)> {
        let (Some(filter), Source::Stored(layout)) = (&self.filter, &self.source) else {
            return Vec::new();
        };
        let columns = &layout.table.columns;
        filter.columns.iter().map(|at| (*at, columns[*at].ty.clone())).collect()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Stored(_) => "stored",
            Source::Rows(_) => "rows",
            Source::Shared(_) => "shared",
        })
    }
}

impl DisplayAs for SqlScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        match (&self.source, &self.access) {
            (Source::Rows(rows), _) => {
                write!(f, "CatalogScan: {} ({} rows)", self.name, rows.len())?;
            }
            (Source::Shared(_), _) => write!(f, "CteScan: {}", self.name)?,
            (_, Access::Late(filters)) => {
                let filters: Vec<String> = filters.iter().map(ToString::to_string).collect();
                write!(f, "TableScan: {} where {}", self.name, filters.join(" AND "))?;
            }
            (_, Access::All) => write!(f, "TableScan: {} all rows", self.name)?,
            (_, Access::Keys(spans, used)) => {
                write!(f, "TableScan: {} spans={} key columns={used}", self.name, spans.len())?;
            }
            (Source::Stored(layout), Access::Index(at, spans, used)) => write!(
                f,
                "IndexScan: {} using {} spans={} key columns={used}",
                self.name,
                layout.indexes[*at].index.name,
                spans.len()
            )?,
        }
        write!(f, ", columns=[{}]", columns.join(", "))?;
        if let Some(filter) = &self.filter {
            write!(f, ", filter={filter:?}")?;
        }
        if let Some(limit) = self.limit {
            write!(f, ", limit={limit}")?;
        }
        match self.asked.load(Ordering::Relaxed) {
            0 => {}
            asked => write!(f, ", requests={asked}")?,
        }
        Ok(())
    }
}

impl ExecutionPlan for SqlScan {
    fn name(&self) -> &str {
        "SqlScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(SqlScan { asked: Arc::default(), ..SqlScan::clone(&self) }))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let execution = self.place.execution().map_err(to_df)?;
        let rows = match &self.source {
            Source::Rows(rows) => Rows::Made(rows.clone(), 0),
            Source::Shared(rows) => {
                return Ok(Box::pin(SharedStream {
                    rows: rows.clone(),
                    batches: None,
                    at: 0,
                    projection: self.projection.clone(),
                    schema: self.schema.clone(),
                    left: self.limit.unwrap_or(usize::MAX),
                }));
            }
            Source::Stored(layout) => {
                let txn = execution
                    .txn
                    .clone()
                    .ok_or_else(|| to_df(SqlError::internal("a scan without transaction")))?;
                let mut wanted = vec![false; layout.table.columns.len()];
                for at in &self.projection {
                    wanted[*at] = true;
                }
                let access = match &self.access {
                    Access::Late(filters) => {
                        let filters = with_values(filters, &self.place)?;
                        choose(layout, &filters).map_err(to_df)?
                    }
                    other => other.clone(),
                };
                match access {
                    Access::Keys(spans, _) => {
                        Rows::Table(TableScan::new(txn, layout.clone(), spans, Some(wanted), false))
                    }
                    Access::Index(at, spans, _) => {
                        Rows::Index(IndexScan::new(txn, layout.clone(), at, spans, false))
                    }
                    Access::All | Access::Late(_) => {
                        let spans = vec![layout.rows.whole_span()];
                        Rows::Table(TableScan::new(txn, layout.clone(), spans, Some(wanted), false))
                    }
                }
            }
        };
        Ok(Box::pin(ScanStream {
            rows: rows.expecting(self.limit.filter(|_| self.filter.is_none())).in_columns(
                &self.projection,
                &self.schema,
                self.filter.clone(),
            ),
            filter: self.filter.clone(),
            probe: self.probe_types(),
            projection: self.projection.clone(),
            types: self.types.clone(),
            schema: self.schema.clone(),
            left: self.limit.unwrap_or(usize::MAX),
            cancel: execution.cancel.clone(),
            asked: self.asked.clone(),
        }))
    }
}

/// The batches of a common table expression.
struct SharedStream {
    rows: Arc<Materialized>,
    batches: Option<Arc<Vec<RecordBatch>>>,
    at: usize,
    projection: Vec<usize>,
    schema: SchemaRef,
    left: usize,
}

impl SharedStream {
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let batches = match &self.batches {
            Some(batches) => batches.clone(),
            None => self.batches.insert(self.rows.batches()?).clone(),
        };
        let Some(batch) = batches.get(self.at).filter(|_| self.left > 0) else { return Ok(None) };
        self.at += 1;
        let batch = batch.slice(0, batch.num_rows().min(self.left));
        self.left -= batch.num_rows();
        let columns = self.projection.iter().map(|at| batch.column(*at).clone()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(Some(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?))
    }
}

impl Stream for SharedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.batch().transpose())
    }
}

impl RecordBatchStream for SharedStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

enum Rows {
    Table(TableScan),
    Columns(Box<ColumnScan>),
    Index(IndexScan),
    Made(Arc<Vec<Vec<Datum>>>, usize),
}

impl Rows {
    /// Tells a scan how many rows will be wanted.
    fn expecting(self, rows: Option<usize>) -> Rows {
        match (self, rows) {
            (Rows::Table(scan), Some(rows)) => Rows::Table(scan.expecting(rows)),
            (Rows::Index(scan), Some(rows)) => Rows::Index(scan.expecting(rows)),
            (other, _) => other,
        }
    }

    /// What can be read without a value in between is.
    fn in_columns(
        self,
        projection: &[usize],
        schema: &SchemaRef,
        filter: Option<ScanFilter>,
    ) -> Rows {
        match self {
            Rows::Table(scan) => {
                let scan = ColumnScan::new(scan, projection, schema.clone(), filter);
                Rows::Columns(Box::new(scan))
            }
            other => other,
        }
    }

    /// What its transaction has asked so far.
    fn requests(&self) -> u64 {
        match self {
            Rows::Table(scan) => scan.txn().stats().requests,
            Rows::Columns(scan) => scan.txn().stats().requests,
            Rows::Index(scan) => scan.txn().stats().requests,
            Rows::Made(..) => 0,
        }
    }

    fn next(&mut self) -> SqlResult<Option<Vec<Datum>>> {
        Ok(match self {
            Rows::Table(_) | Rows::Columns(_) => None,
            Rows::Index(scan) => scan.next_row()?.map(|(_, row)| row),
            Rows::Made(rows, at) => {
                let row = rows.get(*at).cloned();
                *at += 1;
                row
            }
        })
    }
}

/// Batches of rows. Reading blocks: the stream is driven by the connection's own thread.
struct ScanStream {
    rows: Rows,
    filter: Option<ScanFilter>,
    /// Columns that the filter is about.
    probe: Vec<(usize, SqlType)>,
    projection: Vec<usize>,
    types: Vec<SqlType>,
    schema: SchemaRef,
    left: usize,
    cancel: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
}

impl ScanStream {
    /// The next batch; what it asked the store is counted.
    fn batch(&mut self) -> SqlResult<Option<RecordBatch>> {
        let before = self.rows.requests();
        let batch = self.read();
        self.asked.fetch_add(self.rows.requests() - before, Ordering::Relaxed);
        batch
    }

    fn read(&mut self) -> SqlResult<Option<RecordBatch>> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(SqlError::new(
                SqlState::QUERY_CANCELED,
                "canceling statement due to user request",
            ));
        }
        if let Rows::Columns(scan) = &mut self.rows {
            let batch = scan.next(self.left, &self.cancel)?;
            self.left -= batch.as_ref().map_or(0, RecordBatch::num_rows);
            return Ok(batch);
        }
        loop {
            let most = BATCH_ROWS.min(self.left);
            let (mut read, mut columns) = (0, vec![Vec::new(); self.projection.len()]);
            let mut probe = vec![Vec::new(); self.probe.len()];
            while read < most {
                let Some(mut row) = self.rows.next()? else { break };
                for (column, (at, _)) in probe.iter_mut().zip(&self.probe) {
                    column.push(row[*at].clone());
                }
                for (column, at) in columns.iter_mut().zip(&self.projection) {
                    column.push(std::mem::replace(&mut row[*at], Datum::Null));
                }
                read += 1;
            }
            let mut batch = built(&columns, self.types.iter(), &self.schema, read)?;
            if let Some(filter) = &self.filter {
                let types = self.probe.iter().map(|(_, ty)| ty);
                batch = filter.filter(&batch, &built(&probe, types, filter.schema(), read)?)?;
            }
            self.left -= batch.num_rows();
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
            if read < most || self.left == 0 {
                return Ok(None);
            }
        }
    }
}

/// The batch of these values.
fn built<'a>(
    columns: &[Vec<Datum>],
    types: impl Iterator<Item = &'a SqlType>,
    schema: &SchemaRef,
    rows: usize,
) -> SqlResult<RecordBatch> {
    let arrays = columns.iter().zip(types);
    let arrays: Vec<ArrayRef> =
        arrays.map(|(values, ty)| arrow_form::build(ty, values.iter())).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
        .map_err(|e| SqlError::internal(e.to_string()))
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.batch().map_err(to_df).transpose())
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
