//! The tests of `locks.rs` once more, where keys are kept by several ranges that are split all the
//! time: the name of this crate is the switch (`place`).

#[path = "locks.rs"]
mod locks;
