//! Window functions in memory that is short.
//!
//! DataFusion has two operators for windows, and neither counts what it keeps:
//!
//! ```text
//!   BoundedWindowAgg   frames that end near the row: keeps few rows, unless many are peers
//!   WindowAgg          frames that end with the partition: keeps all of its input
//! ```
//! Around the first stands [`bounded`], which counts. The second is replaced by [`whole`], which
//! takes one partition after the other, keeps of its rows in memory what the functions look at, and
//! writes the rows themselves to disk when there is no room for them. [`excluding`] is what takes
//! EXCLUDE.

mod bounded;
mod excluding;
mod functions;
mod part;
mod rule;
mod whole;

pub(crate) use excluding::{Excluding, Inner};
pub(crate) use rule::CountedWindows;
