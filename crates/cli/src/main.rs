//! braid.
fn main() {}
