//! What sqlparser does not know of views.
//!
//! - [`check_option`]: WITH CHECK OPTION.
//! - [`recursive`]: CREATE RECURSIVE VIEW.

pub(crate) mod check_option;
pub(crate) mod recursive;
