//! `braid import`: files into a table of a running node.

mod command;
mod dump;
mod on_node;
mod progress;

pub(crate) use command::{ImportArguments, run};
