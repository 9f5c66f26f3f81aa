//! Types of users.
//!
//! - [`attributes`]: ALTER TYPE of a composite type.
//! - [`domain`]: CREATE, ALTER and DROP DOMAIN.

pub(crate) mod attributes;
pub(crate) mod domain;
