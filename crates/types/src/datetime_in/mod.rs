//! Text to dates, times and timestamps.
//!
//! ```text
//!   text ──► tokens: pieces by their characters ──► reader: what each piece means ──► Fields
//!                                     words: months, zones' neighbours, `infinity`
//! ```
//! - [`abbreviations`]: of time zones.
//! - [`iso`]: what nearly all look like, without all that.

pub(crate) mod abbreviations;
mod iso;
mod reader;
mod tokens;
mod values;
mod words;

pub(crate) use tokens::{Kind, Piece, pieces};
pub(crate) use values::{fraction_micros, parse_date, parse_fields, parse_time, parse_timestamp};
