//! `braid sql`: a SQL shell for people and scripts.
//!
//! - [`start`]: arguments, and where statements come from.
//! - [`runner`]: statements to the server, results to the screen.
//! - [`wire`]: the connection; [`report`]: its errors, with a caret; [`interrupt`]: Ctrl-C.
//! - [`statements`]: where a statement ends in a stream of lines.
//! - [`output`]: rows as tables, lists, CSV, JSON; [`pager`]: what does not fit the screen.
//! - [`meta`]: commands that begin with a backslash; [`describe`]: `\d` and its family;
//!   [`forms`]: `\h`;
//!   [`copying`]: `\copy`, and files and commands in general.
//! - [`prompt`]: line editing and history; [`words`]: what can be completed;
//!   [`variables`]: `\set`, and `:name`.

mod copying;
mod describe;
mod forms;
mod interrupt;
mod meta;
mod output;
mod pager;
mod prompt;
mod report;
mod runner;
mod start;
mod statements;
mod variables;
mod wire;
mod words;

pub(crate) use runner::{DemoNodes, Shell, Step};
pub(crate) use start::{DEFAULT_URL, SqlArguments, describe_error, run};
