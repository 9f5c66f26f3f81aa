//! General SELECTs on DataFusion: everything that our own point, span and family plans leave.
//!
//! ```text
//!   ast::Query --bind--> DataFusion plan --optimize--> operators --drive--> rows
//!               |  names, types, conversions: ours      joins, sorts, groups, windows: theirs
//!               |  scalar functions, aggregates: ours   spilling, memory budget: theirs
//! ```
//! Where to look:
//! - [`engine`]: what `braid_sql` calls. [`bind`]: from the parsed query to a plan.
//! - [`exec`]: our functions, aggregates, scans, subqueries inside their plans.
//! - `decorrelate`: subqueries as joins, and for many outer rows at once.
//! - [`arrow_form`]: how SQL values travel in Arrow columns.
//! - [`system`]: `pg_catalog` and `information_schema`.
//! - [`run`]: sessions, budgets, driving a plan. `planning`: what keeps planning within bounds.
//!   `distinct_groups`: `count(DISTINCT x)` in short memory. `short_memory`: when a hash join or
//!   the first rows of a sort do not fit. `admission`: who runs when memory is short.
//!   `learned_names`: which scan what a join has learned is about.
//!   `once_conditions`: HAVING without columns.
//!
//! DataFusion is named in this crate only.

mod admission;
pub mod arrow_form;
mod bare_groups;
mod bind;
mod decorrelate;
mod distinct_groups;
pub mod engine;
pub mod error;
mod evaluated;
pub mod exec;
mod explain;
mod join_order;
mod learned_names;
pub mod memory;
mod once_conditions;
mod planning;
pub mod run;
mod shared_parts;
mod short_memory;
mod side_by_side;
pub mod system;
mod top_rows;

pub use engine::Engine;
pub use memory::SpillDirectory;
