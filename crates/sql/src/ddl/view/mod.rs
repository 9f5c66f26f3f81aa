//! Views: queries with names.
//!
//! - [`mod@declare`]: CREATE VIEW, and how a query is kept.
//! - [`stars`]: what a star in a query means.
//! - [`materialized`]: views whose rows are kept as well.
//! - [`uses`]: what a query uses of a table that is changed.

mod declare;
pub(crate) mod materialized;
mod stars;
pub(crate) mod uses;

pub(crate) use declare::create_view;
pub(in crate::ddl) use stars::ident;
