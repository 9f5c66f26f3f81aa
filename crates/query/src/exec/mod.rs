//! What runs inside DataFusion's plans: functions over rows, aggregates, scans, subqueries.

pub mod aggregate;
pub(crate) mod around;
pub(crate) mod awaited;
pub(crate) mod columns;
pub(crate) mod constant;
pub mod execution;
mod folds;
mod kept;
pub(crate) mod key_conditions;
mod key_set;
pub(crate) mod made;
pub mod materialized;
pub(crate) mod partitions;
pub(crate) mod project_set;
pub mod scalar;
mod scan;
mod scan_filter;
mod scan_stream;
pub mod set_returning;
pub mod stoppable;
pub mod subquery;
pub mod table;
pub(crate) mod vector;
pub(crate) mod windows;

pub(crate) use braid_planner::facts;
