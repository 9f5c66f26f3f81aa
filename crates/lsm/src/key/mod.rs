//! What the engine stores: keys, commit timestamps, kinds, and spans of keys.

mod commit_ts;
mod compare;
mod entry;
mod key_span;

pub use commit_ts::CommitTs;
pub(crate) use compare::compare;
pub(crate) use entry::Kind;
pub use key_span::KeySpan;
