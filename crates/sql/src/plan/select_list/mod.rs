//! What is shown of the rows that a SELECT finds.
//!
//! ```text
//!   SELECT DISTINCT ON (customer) json_agg(o), rank() OVER (ORDER BY placed) .. ORDER BY ..
//!          distinct_on                    │    windows
//!                                         whole_rows
//! ```
//! - [`output`]: the list and ORDER BY, bound.
//! - [`whole_rows`]: rows of tables as values.
//! - [`windows`]: window functions over all rows.
//! - [`frames`]: the rows around each row that these look at.
//! - [`named_windows`]: those that have a name, of WINDOW.
//! - [`mod@distinct_on`]: the first rows of groups.

mod distinct_on;
mod frames;
mod named_windows;
mod output;
mod whole_rows;
mod windows;

pub(super) use distinct_on::bind as distinct_on;
pub(super) use named_windows::written_out;
pub(super) use output::{shown, sort_key};
pub(super) use windows::{Window, compute as compute_windows};
