//! Statements with statements inside: functions, and blocks of statements.
//!
//! - [`function`]: CREATE FUNCTION and what is done to one.
//! - [`block`]: the body of DO.

pub(crate) mod block;
pub(crate) mod function;
