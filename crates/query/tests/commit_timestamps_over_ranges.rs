//! The tests of `commit_timestamps.rs` once more, where keys are kept by several ranges that are
//! split all the time: the name of this crate is the switch (`harness`).

#[path = "commit_timestamps.rs"]
mod commit_timestamps;
mod harness;
