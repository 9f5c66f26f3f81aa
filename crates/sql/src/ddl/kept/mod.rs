//! What is kept as text and means objects of the catalog by their names: defaults, conditions,
//! generated columns, queries of views, indexes' expressions and predicates.
//!
//! - [`texts`]: all of these texts, to be read or changed.
//! - [`names`]: the names in one of them; types and functions get their schemas.
//! - [`named_relations`]: relations that are values.
//! - [`follow`]: names follow when what they mean is called otherwise.
//! - [`labels`]: values of an enum type follow when they get other labels.
//! - [`users`]: what has to go, or is in the way, when a function or a type goes.

pub(in crate::ddl) mod follow;
pub(in crate::ddl) mod labels;
pub(in crate::ddl) mod named_relations;
mod names;
mod texts;
pub(in crate::ddl) mod users;
