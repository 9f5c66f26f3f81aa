//! Types whose values are kept as bytes that sort as the values do.
//!
//! ```text
//!   '10.1.2.3/8'::inet      04 | 0A 00 00 00 | 08 | 0A 01 02 03     family, network, bits, address
//!   '04:05:06+02'::timetz   the moment in UTC | the zone
//!   B'101'                  groups of 64 bits, each with the number of bits that count
//! ```
//!
//! `citext` alone compares by other bytes than it keeps: those of its letters when they are small.
//!
//! Comparing, hashing, storing and putting such a value into a key is then the same for all of
//! them: nothing outside of this folder knows more of a value than its bytes. What a type's text
//! and wire forms are, and what its functions compute, is in the file of the type.
//!
//! - [`cast`]: conversions between them, and from and to others.
//! - [`value`]: the value itself, and what all of these types share.

pub mod bits;
pub(crate) mod cast;
pub mod citext;
pub mod inet;
pub mod lsn;
pub mod macaddr;
pub mod money;
mod tid;
pub mod timetz;
mod value;
mod xid8;

pub use value::{Ordered, OrderedKind};
