//! Repository tasks that are not part of the product.
//!
//! - `cargo xtask tidy`: the checks that neither the compiler nor clippy makes ([`tidy`]).
//! - `cargo xtask ci`: everything that must pass before a change is handed in ([`ci`]).

mod ci;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let result = match task.as_deref() {
        Some("tidy") => tidy::run(),
        Some("ci") => ci::run(),
        _ => Err("usage: cargo xtask tidy | ci".to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
