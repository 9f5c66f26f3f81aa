//! Intervals: their arithmetic and their text.
//!
//! - [`value`]: months, days and microseconds, computed with.
//! - [`reader`], [`iso`]: read from text; [`sum`]: numbers of units added up; [`fields`]: of types
//!   with a range of fields.
//! - [`text`]: written in each of the forms of `IntervalStyle`.

mod fields;
mod iso;
mod reader;
mod sum;
mod text;
mod value;

pub use fields::{IntervalField, IntervalFields};
pub(crate) use reader::parse_interval;
pub(crate) use text::interval_text;
