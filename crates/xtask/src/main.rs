//! Repository tasks that are not part of the product.
//!
//! - `cargo xtask tidy`: the checks that neither the compiler nor clippy makes ([`tidy`]).

mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let result = match task.as_deref() {
        Some("tidy") => tidy::run(),
        _ => Err("usage: cargo xtask tidy".to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
