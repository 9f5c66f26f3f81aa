//! Subqueries whose plans do not depend on the row around them any more.
//!
//! ```text
//!   pull    takes the conditions that name outer columns out of the plan: they become conditions
//!           of a join with the rows around it. One run for all rows.
//!   keyed   joins the plan with a table of outer values, its rows then tell which value they are
//!           for. One run for each batch of rows; works for nearly every plan.
//! ```

pub(crate) mod keyed;
pub(crate) mod outer;
pub(crate) mod pull;
