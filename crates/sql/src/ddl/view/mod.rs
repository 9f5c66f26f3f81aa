//! Views: queries with names.
//!
//! - [`mod@declare`]: CREATE VIEW, and how a query is kept.
//! - [`stars`]: what a star in a query means.
//! - [`materialized`]: views whose rows are kept as well.

mod declare;
pub(crate) mod materialized;
mod stars;

pub(crate) use declare::create_view;
