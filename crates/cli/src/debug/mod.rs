//! `braid debug`: what is in the files of a store. The node that owns the store must be stopped,
//! except for single files.

mod keys;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::CliResult;

/// Arguments of `braid debug`.
#[derive(Args)]
pub(crate) struct DebugArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Print the rows of a store, keys in readable form, newest versions.
    Keys {
        /// Directory of the store.
        dir: PathBuf,
        /// Stop after so many rows.
        #[arg(long, default_value_t = 1000)]
        limit: usize,
    },
}

pub(crate) fn run(arguments: DebugArguments) -> CliResult {
    match arguments.what {
        What::Keys { dir, limit } => keys::print(&dir, limit),
    }
}
