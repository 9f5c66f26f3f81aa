//! Functions that users have made, in expressions.
//!
//! ```text
//!   price(o.item, rate => 2)         the call; [`choice`] finds which function is meant
//!   ($1 * $2) over (item, rate)      its body, bound over its arguments
//!   o.item * 2                       [`inline`]: the arguments stand in the body
//! ```
//! A body becomes a part of the expression that calls it before anything is planned, so that both
//! kinds of plans see no call. Where that would change what happens (an argument that may differ
//! each time it is computed, or that costs much, is used twice; NULL must not be looked at) the
//! body stays a computation of its own over arguments that are computed once. A function that
//! calls itself binds its body when it is called ([`recursion`]).
//!
//! Types of ranges bring functions of their own ([`constructors`]).
//!
//! A body that reads tables is no scalar expression: its call is left to the general planner,
//! which binds the query in the place of a subquery.

mod call;
mod choice;
pub(crate) mod constructors;
mod inline;
mod recursion;
mod volatile_calls;

use call::bound_body;
pub use call::{
    UserBody, UserCall, UserFunction, UserParam, argument_number, as_result, no_argument,
    user_call, wrong_result,
};
pub(crate) use choice::{Resolved, resolve_call};
pub use inline::over_arguments;
