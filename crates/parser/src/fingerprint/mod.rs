//! By what statements are known, whatever stands in them.
//!
//! - [`of_text`]: what statistics count them by.
//! - [`digest`]: what they are denied by, also inside of other ones.

mod digest;
mod of_text;

pub use digest::Digests;
pub use of_text::Fingerprint;
