//! Starting the shell: arguments, and where its statements come from.

use std::io::IsTerminal;

use clap::Args;

use super::{Interaction, Shell};
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
