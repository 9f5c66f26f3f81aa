//! What sessions have to do with each other beside rows.
//!
//! - [`advisory`]: locks on numbers. [`channels`]: LISTEN, NOTIFY and UNLISTEN.

mod advisory;
mod channels;
