//! The tests of `isolation.rs` once more, where keys are kept by several ranges that are split all the
//! time: the name of this crate is the switch (`place`).

#[path = "isolation.rs"]
mod isolation;
