//! Statements that are read as others.
//!
//! - [`collations`]: COLLATE behind a cast.
//! - [`current_of`]: WHERE CURRENT OF a cursor.
//! - [`exclusion`]: EXCLUDE of a window's frame.
//! - [`fetch_first`]: FETCH FIRST as LIMIT.
//! - [`frame_bounds`]: casts in a window's frame.
//! - [`grouping`]: grouping sets within grouping sets.
//! - [`join_alias`]: JOIN .. USING (..) AS.
//! - [`lexemes`]: backslashes in texts, characters by their numbers, and names that are too long.
//! - [`locking`]: queries that lock rows, inside of other statements, go into WITH.
//! - [`merge`]: what sqlparser does not know of MERGE.
//! - [`nested_joins`]: joins on the right side of joins.
//! - [`no_inherit`]: NO INHERIT of a CHECK.
//! - [`only`]: FROM ONLY.
//! - [`pieces`]: a script cut where a lexer would cut it.
//! - [`quantified`]: operators before ANY and ALL.
//! - [`recursion`]: SEARCH and CYCLE of WITH RECURSIVE.
//! - [`relations`]: TABLE and VALUES as queries.
//! - [`rows_from`]: ROWS FROM.
//! - [`set_columns`]: the columns of ON DELETE SET NULL.
//! - [`shown`]: the way back, for texts that are kept.
//! - [`subscripts`]: `SET a[1] = ..`.
//! - [`variadic`]: arguments in an array.
//! - [`views`]: WITH CHECK OPTION and RECURSIVE of views.
//! - [`whole_rows`]: `t.*` beside an operator.

pub(crate) mod collations;
pub(crate) mod current_of;
pub(crate) mod exclusion;
pub(crate) mod fetch_first;
pub(crate) mod frame_bounds;
pub(crate) mod grouping;
pub(crate) mod join_alias;
pub(crate) mod lexemes;
pub(crate) mod locking;
pub(crate) mod merge;
pub(crate) mod nested_joins;
pub(crate) mod no_inherit;
pub(crate) mod only;
pub(crate) mod pieces;
pub(crate) mod quantified;
pub(crate) mod recursion;
pub(crate) mod relations;
pub(crate) mod rows_from;
pub(crate) mod set_columns;
pub(crate) mod shown;
pub(crate) mod subscripts;
pub(crate) mod variadic;
pub(crate) mod views;
pub(crate) mod whole_rows;
