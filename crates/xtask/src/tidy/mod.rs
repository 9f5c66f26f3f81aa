//! What the compiler does not check: budgets, headers, layers, names, links.
//!
//! - [`files`]: size, header, name and width of every source file; logic in cover pages.
//! - [`budgets`]: length of functions, fields of structs.
//! - [`layers`]: arrows between crates point down only.
//! - [`seam`]: nobody above `kv` names what is behind its interface.
//! - [`conflicts`]: the SQLSTATE of a lost conflict is decided in one file.
//! - [`executables`]: every file of tests is part of one.
//! - [`planted`]: bugs that are planted to try the tests can still be planted.
//! - [`promises`]: the tests exist that are named for what is promised.
//! - [`unused`]: public items that no other crate names, dependencies that nobody uses.
//! - [`docs`]: links in Markdown lead somewhere; nothing names this machine; CI's test command.
//! - [`errors`]: the page of errors has all SQLSTATEs that are given, and no others.
//! - [`walks`]: syntax trees are walked by one copy of the code.
//!
//! Each finding says what to do instead. The checks have tests of their own.

mod budgets;
mod checks;
mod conflicts;
mod docs;
mod errors;
mod executables;
mod files;
mod layers;
mod planted;
mod promises;
mod seam;
mod unused;
mod walks;

use checks::read;
pub use checks::run;
