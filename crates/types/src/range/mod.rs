//! Ranges: `int4range`, `int8range`, `numrange`, `tsrange`, `tstzrange`, `daterange`.
//!
//! - [`value`]: a range, its order, and what is computed of two of them.
//! - [`text`]: `[1,5)`, read and written. [`wire`]: the binary form.

mod text;
mod value;
mod wire;

pub(crate) use text::{parse, write};
pub use value::{RangeKind, RangeValue};
pub(crate) use wire::{from_wire, to_wire};
