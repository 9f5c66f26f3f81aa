//! Functions in SQL: CREATE, ALTER and DROP FUNCTION.
//!
//! A function is its signature and the text of its body. What names in the body mean is found
//! where it is called ([`braid_scalar::UserCall`]), so nothing depends on what a body names; what
//! depends on a function are views, defaults and conditions that call it
//! ([`crate::ddl::kept::users`]).

mod create;
mod existing;
pub(crate) mod extensions;

pub(crate) use create::create;
pub(in crate::ddl) use existing::find;
pub(crate) use existing::{alter, drop};
