//! Ranges: `int4range`, `int8range`, `numrange`, `tsrange`, `tstzrange`, `daterange`,
//! and those that users make of other types.
//!
//! - [`value`]: a range, its order, and what is computed of two of them.
//! - [`multi`]: several of them, `int4multirange` and the like.
//! - [`made`]: types of ranges that users have made.
//! - [`text`]: `[1,5)`, read and written. [`wire`]: the binary form.

mod made;
pub(crate) mod multi;
mod text;
mod value;
mod wire;

pub use made::{RangeName, RangeType};
pub use multi::MultirangeValue;
pub(crate) use text::{parse, write};
pub use value::{RangeKind, RangeValue};
pub(crate) use wire::{from_wire, to_wire};
