//! Own plans that are made of own plans.
//!
//! ```text
//!   SELECT 'o' AS kind, id FROM orders WHERE customer = $1
//!   UNION ALL SELECT 't', id FROM tags WHERE customer = $1 ORDER BY 1, 2
//!
//!   union all      sort: 2 keys
//!     index lookup on orders         a chain of steps each
//!     index lookup on tags
//! ```
//! - [`whole`]: [`SelectPlan`], a chain of steps or something made of several.
//! - [`made`], [`with`]: queries of WITH and FROM whose rows are made first; [`functions`]: rows
//!   of functions there.
//! - [`views`]: views in FROM that are tables with conditions.
//! - [`outgrown`]: what becomes of a plan that finds too much for its memory.
//! - [`recursion`]: WITH RECURSIVE.
//! - [`sets`]: UNION, INTERSECT and EXCEPT.
//! - [`within`]: what the parts share while they are planned and while they run.
//!
//! All of it is for few rows, which are kept in memory on the statement's account: what reads or
//! gives many is for general plans.

mod functions;
mod made;
mod outgrown;
mod recursion;
mod sets;
mod views;
mod whole;
mod with;
mod within;

pub(crate) use made::MadeRows;
pub(super) use made::{ByKey, Keys, Made};
pub(super) use views::OverTable;
pub use whole::SelectPlan;
pub(super) use whole::plan_any;
pub(super) use with::{is_unseen, made_of};
pub(super) use within::Telling;
pub(crate) use within::Within;
