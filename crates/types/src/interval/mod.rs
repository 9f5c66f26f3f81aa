//! Intervals: their arithmetic and their text.
//!
//! - [`value`]: months, days and microseconds, computed with and read from text.
//! - [`text`]: written in each of the forms of `IntervalStyle`.

mod text;
mod value;

pub(crate) use text::interval_text;
pub(crate) use value::parse_interval;
