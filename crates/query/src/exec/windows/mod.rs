//! Window functions in memory that is short, and over frames that DataFusion does not have.
//!
//! DataFusion has two operators for windows, and neither counts what it keeps:
//!
//! ```text
//!   BoundedWindowAgg   frames that end near the row: keeps few rows, unless many are peers
//!   WindowAgg          frames that end with the partition: keeps all of its input
//! ```
//! Around the first stands [`bounded`], which counts; [`sliding`] is what its aggregates are over
//! frames that move. The second is replaced by [`whole`], which
//! takes one partition after the other, keeps of its rows in memory what the functions look at, and
//! writes the rows themselves to disk when there is no room for them. There, [`framed`] is what
//! computes all frames but those that begin with the partition, or are a few rows: [`frame`] says
//! which rows they are ([`distance`]: by the distance of keys), [`over_runs`] what their aggregates
//! are ([`sums`], [`tree`]), [`places`] what is told by the place of a row alone.

mod bounded;
mod distance;
mod frame;
mod framed;
mod functions;
mod over_runs;
mod part;
mod places;
mod rule;
mod sliding;
mod sums;
mod tree;
mod whole;

pub(crate) use distance::offset_type;
pub(crate) use frame::{Edge, Shape, Unit, negative_offset, null_offset};
pub(crate) use framed::{Framed, Inner, Layout};
pub(crate) use rule::CountedWindows;
pub(super) use sliding::Sliding;
