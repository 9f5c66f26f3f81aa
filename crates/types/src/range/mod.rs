//! Ranges: `int4range`, `int8range`, `numrange`, `tsrange`, `tstzrange`, `daterange`.
//!
//! - [`value`]: a range, its order, and what is computed of two of them.
//! - [`multi`]: several of them, `int4multirange` and the like.
//! - [`text`]: `[1,5)`, read and written. [`wire`]: the binary form.

pub(crate) mod multi;
mod text;
mod value;
mod wire;

pub use multi::MultirangeValue;
pub(crate) use text::{parse, write};
pub use value::{RangeKind, RangeValue};
pub(crate) use wire::{from_wire, to_wire};
