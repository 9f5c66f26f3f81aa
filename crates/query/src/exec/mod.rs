//! What runs inside DataFusion's plans: functions over rows, aggregates, scans, subqueries.

pub mod aggregate;
pub(crate) mod columns;
pub(crate) mod constant;
pub mod execution;
mod folds;
pub mod materialized;
pub mod scalar;
pub mod scan;
mod scan_filter;
pub mod set_returning;
pub mod stoppable;
pub mod subquery;
pub(crate) mod vector;
