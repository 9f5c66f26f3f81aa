//! `braid debug`: what is in the files of a store. The node that owns the store must be stopped for
//! `keys` and `check`; single files can be looked at any time.

mod command;
mod keys;

pub(crate) use command::{DebugArguments, run};
