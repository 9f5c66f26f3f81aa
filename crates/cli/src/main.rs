//! `braid`: the database, its shell and its tools in one binary.
//!
//! Every subcommand is a module of its own; this file only reads the command line.

mod debug;
mod demo;
mod import;
mod logs;
mod shell;
mod start;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Makes the allocator take memory page by page, and give it back soon. It would ask for huge pages
/// else, of which every thread's heap touches many and fills few: 200 busy connections took 800 MiB
/// more. And it would keep what is free for a second, in which others take what was given back to
/// the node's pool: 160 MiB more.
extern "C" fn use_little_memory() {
    unsafe extern "C" {
        fn mi_option_set(option: i32, value: std::ffi::c_long);
    }
    /// `mi_option_arena_eager_commit` of mimalloc 3.
    const ARENA_EAGER_COMMIT: i32 = 4;
    /// `mi_option_purge_delay`, in milliseconds.
    const PURGE_DELAY: i32 = 15;
    // SAFETY: mimalloc is linked as the global allocator; the function writes one number.
    unsafe {
        mi_option_set(ARENA_EAGER_COMMIT, 0);
        mi_option_set(PURGE_DELAY, 10);
    }
}

/// The first option counts only before the first allocation, which the runtime makes before `main`.
#[used]
#[cfg(target_os = "linux")]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = use_little_memory;

/// Returns memory that is free to the system, for this thread and for threads that have ended.
pub(crate) fn return_free_memory() {
    unsafe extern "C" {
        fn mi_collect(force: bool);
    }
    // SAFETY: mimalloc is linked as the global allocator; the function takes no pointers and may be
    // called by any thread at any time.
    unsafe { mi_collect(true) }
}

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
