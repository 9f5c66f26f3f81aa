//! Types of users.
//!
//! - [`attributes`]: ALTER TYPE of a composite type.
//! - [`collation`]: CREATE, ALTER and DROP COLLATION.
//! - [`domain`]: CREATE, ALTER and DROP DOMAIN.

pub(crate) mod attributes;
pub(crate) mod collation;
pub(crate) mod domain;
