//! Starting the shell: arguments, and where its statements come from.

use clap::Args;

use super::interrupt::interrupts;
use super::output::Format;
use super::pager::OutputClosed;
use super::runner::{Interaction, Shell, is_person, standard_input};
use crate::CliResult;

/// Where `braid start` listens by default.
pub(crate) const DEFAULT_URL: &str = "postgresql://root@127.0.0.1:26500/defaultdb";

/// Arguments of `braid sql`.
#[derive(Args)]
pub(crate) struct SqlArguments {
    /// Where the node listens; of a cluster several nodes with commas between them:
    /// postgresql://root@127.0.0.1:26501,127.0.0.1:26502/defaultdb
    #[arg(value_name = "URL")]
    node: Option<String>,
    /// The same.
    #[arg(long, default_value = DEFAULT_URL, env = "BRAID_URL")]
    url: String,
    /// Run these statements and leave. Can be given several times.
    #[arg(short = 'c', long = "command")]
    commands: Vec<String>,
    /// Run the statements of this file and leave.
    #[arg(short = 'f', long = "file", conflicts_with = "commands")]
    file: Option<String>,
    /// A variable, as \set makes it. Can be given several times.
    #[arg(short = 'v', long = "set", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// How rows are shown.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

pub(crate) fn run(arguments: SqlArguments) -> CliResult {
    let mut shell = Shell::connect(arguments.node.as_ref().unwrap_or(&arguments.url))?;
    shell.show_as(arguments.format);
    for variable in &arguments.variables {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        shell.set(name, value)?;
    }
    let served = match &arguments.file {
        Some(file) => shell.run_file(file),
        None => shell.serve(&arguments.commands),
    };
    // Who has read enough of the output, as `| head` does, is no failure.
    match served {
        Err(e) if is_closed_output(e.as_ref()) => Ok(()),
        other => other,
    }
}

fn is_closed_output(e: &(dyn std::error::Error + 'static)) -> bool {
    let inner = e.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    inner.is_some_and(|inner| inner.is::<OutputClosed>())
}

impl Shell {
    /// Runs the given statements; without any, those that a person types or that standard input
    /// holds.
    pub(crate) fn serve(&mut self, commands: &[String]) -> CliResult {
        let person = commands.is_empty() && is_person();
        interrupts().end_when_idle(!person);
        for command in commands {
            self.run_text(command, Interaction::Batch)?;
        }
        match (commands.is_empty(), person) {
            (false, _) => Ok(()),
            (true, true) => self.interact(),
            (true, false) => self.run_stream(&mut standard_input(), Interaction::Batch),
        }
    }

    fn run_file(&mut self, file: &str) -> CliResult {
        interrupts().end_when_idle(true);
        let command = format!("\\i '{}'", file.replace('\'', "''"));
        self.run_text(&command, Interaction::Batch)
    }
}

/// An error of the server with everything it said, from the client for programs.
pub(crate) fn describe_error(e: &postgres::Error) -> String {
    let Some(e) = e.as_db_error() else { return e.to_string() };
    let mut out = format!("{}: {} (SQLSTATE {})", e.severity(), e.message(), e.code().code());
    let further = [("DETAIL", e.detail()), ("HINT", e.hint()), ("CONTEXT", e.where_())];
    for (name, text) in further {
        out.extend(text.map(|text| format!("\n{name}: {text}")));
    }
    out
}
