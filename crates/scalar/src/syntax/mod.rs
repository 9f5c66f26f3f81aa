//! What the parsed tree says beside what is computed.
//!
//! - [`by_number`]: keys of ORDER BY and the like that are numbers.
//! - [`cast_params`]: parameters whose types casts tell.
//! - [`mod@deparse`]: stored expressions as PostgreSQL prints them.
//! - [`guests`]: what GoogleSQL writes as calls.
//! - [`inner_queries`]: the same of queries, with queries in them.
//! - [`interval_literal`]: INTERVAL with its fields.
//! - [`operator_names`]: signs of operators.
//! - [`literals`]: constants with their types.
//! - [`places`]: where in the script stands what an error is about.
//! - [`printed`]: which parentheses who reads it needs.
//! - [`variadic`]: arguments in an array.
//! - [`windows`]: windows and aggregates in the text of a view.
//! - [`with_items`]: what the items of a WITH name.

mod by_number;
mod cast_params;
mod deparse;
mod guests;
mod inner_queries;
mod interval_literal;
mod literals;
mod operator_names;
mod places;
mod printed;
mod variadic;
mod windows;
mod with_items;

pub use by_number::column_by_number;
pub use cast_params::{LATE_ITEM, decide_by_casts, parameter};
pub use deparse::{Deparsed, deparse, deparse_of_domain};
pub(crate) use guests::{bind_element, bind_guest, safe_cast};
pub use inner_queries::{
    InnerQueries, Level, RowColumns, Within, deparse_column, deparse_query, deparse_rows,
    deparse_window,
};
pub(crate) use interval_literal::{bind_interval, interval_text};
pub use literals::{SPECIAL, typed_literal, untyped_items};
pub use operator_names::comparison;
pub(crate) use operator_names::{operator_name, plain_operator};
pub(crate) use places::at_its_place;
pub use places::{at_beginning, beginning};
pub use printed::{FURTHER_LEFT, further_in};
pub(crate) use variadic::{bind_spread, marked};
pub use windows::direction;
pub use with_items::{names_itself, with_in_order};
