//! `braid sql`: a SQL shell for people and scripts.
//!
//! - [`start`]: arguments, and where statements come from.
//! - [`runner`]: statements to the server, results to the screen.
//! - [`statements`]: where a statement ends in a stream of lines.
//! - [`table`]: results as tables that fit the terminal.
//! - [`meta`]: `\d` and friends.
//! - [`prompt`]: line editing, history, completion.

mod meta;
mod prompt;
mod runner;
mod start;
mod statements;
mod table;

pub(crate) use runner::{Interaction, Shell, describe_error};
pub(crate) use start::{DEFAULT_URL, SqlArguments, run};
