//! Types and functions by their names.
//!
//! - [`in_reach`]: those of a catalog, by a search path.
//! - [`standard_domains`]: the domains of `information_schema`.

mod in_reach;
mod standard_domains;

pub(in crate::session) use in_reach::find_type;
pub use in_reach::types_in_reach;
pub(crate) use in_reach::{judged, value_scope};
