//! Diesel, sqlx and sea-schema, which SeaORM makes entities with: each answer on a line.
//!
//! usage: orm DSN

mod diesel_use;
mod sqlx_use;

use std::fmt::Debug;

/// One step.
pub fn told<T: Debug, E: Debug>(name: &str, answer: Result<T, E>) {
    match answer {
        Ok(value) => println!("{name} {value:?}"),
        Err(error) => println!("{name} ERROR {error:?}"),
    }
}

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).expect("usage: orm DSN");
    let of_diesel = url.clone();
    tokio::task::spawn_blocking(move || diesel_use::run(&of_diesel)).await.expect("no panic");
    sqlx_use::run(&url).await.expect("a connection");
}
