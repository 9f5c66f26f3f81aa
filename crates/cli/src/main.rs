//! `braid`: the database, its shell and its tools in one binary.
//!
//! Every subcommand is a module of its own; this file only reads the command line.

mod allocator;
mod debug;
mod demo;
#[cfg(test)]
mod documented;
mod import;
mod logs;
mod node;
mod shell;
mod start;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// PostgreSQL-compatible SQL database that stores child rows inside their parents.
#[derive(Parser)]
#[command(name = "braid", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a node on a directory of this machine.
    Start(start::StartArguments),
    /// Open a SQL shell, or run statements from -c or standard input.
    Sql(shell::SqlArguments),
    /// Start on a temporary store with a small hierarchy in it, and open a shell.
    Demo(demo::DemoArguments),
    /// Load CSV files into a table of a running node.
    Import(import::ImportArguments),
    /// Generate data and measure: tpcc, interleave, bank.
    Workload(workload::WorkloadArguments),
    /// See the nodes of a cluster, or have one give its leases away.
    Node(node::NodeArguments),
    /// Wait until a cluster that was just started serves clients. Nothing else is to be done: its
    /// first members found it themselves.
    Init(node::InitArguments),
    /// Look into the files of a store.
    Debug(debug::DebugArguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Start(a) => start::run(a),
        Command::Sql(a) => shell::run(a),
        Command::Demo(a) => demo::run(a),
        Command::Import(a) => import::run(a),
        Command::Workload(a) => workload::run(a),
        Command::Node(a) => node::run(a),
        Command::Init(a) => node::wait_until_founded(&a),
        Command::Debug(a) => debug::run(a),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("braid: {}", with_causes(e.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// An error with what it says about its causes: some say nothing themselves.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

/// What a subcommand fails with: text for a person.
pub(crate) type CliResult<T = ()> = Result<T, Box<dyn std::error::Error>>;
