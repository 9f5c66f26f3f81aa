//! The tests of `isolation_suite.rs` once more, where keys are kept by several ranges that are split
//! all the time: the name of this crate is the switch (`harness`).

#[path = "isolation_suite.rs"]
mod isolation_suite;
