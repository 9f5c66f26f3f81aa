//! The tests of `isolation.rs` once more, where keys are kept by three replicas of a range: the name of
//! this crate is the switch (`place`).

#[path = "isolation.rs"]
mod isolation;
