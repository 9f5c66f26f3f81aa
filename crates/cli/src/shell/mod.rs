//! `braid sql`: a SQL shell for people and scripts.
//!
//! - [`runner`]: statements to the server, results to the screen.
//! - [`statements`]: where a statement ends in a stream of lines.
//! - [`table`]: results as tables that fit the terminal.
//! - [`meta`]: `\d` and friends.
//! - [`prompt`]: line editing, history, completion.

mod meta;
mod prompt;
mod runner;
mod statements;
mod table;

pub(crate) use runner::{Interaction, Shell, describe_error};

use std::io::IsTerminal;

use clap::Args;

use crate::CliResult;

/// Where `braid start` listens by default.
pub(crate) const DEFAULT_URL: &str = "postgresql://root@127.0.0.1:26500/defaultdb";

/// Arguments of `braid sql`.
#[derive(Args)]
pub(crate) struct SqlArguments {
    /// Where the node listens.
    #[arg(long, default_value = DEFAULT_URL, env = "BRAID_URL")]
    url: String,
    /// Run these statements and leave. Can be given several times.
    #[arg(short = 'c', long = "command")]
    commands: Vec<String>,
}

pub(crate) fn run(arguments: SqlArguments) -> CliResult {
    Shell::connect(&arguments.url)?.serve(&arguments.commands)
}

impl Shell {
    /// Runs the given statements; without any, those that a person types or that standard input
    /// holds.
    pub(crate) fn serve(&mut self, commands: &[String]) -> CliResult {
        for command in commands {
            self.run_text(command, Interaction::Batch)?;
        }
        if !commands.is_empty() {
            Ok(())
        } else if std::io::stdin().is_terminal() {
            self.interact()
        } else {
            self.run_stream(&mut std::io::stdin().lock())
        }
    }
}
