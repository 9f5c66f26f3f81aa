//! Views: queries with names.
//!
//! - [`mod@declare`]: CREATE VIEW, and how a query is kept.
//! - [`materialized`]: views whose rows are kept as well.

mod declare;
pub(crate) mod materialized;

pub(crate) use declare::create_view;
