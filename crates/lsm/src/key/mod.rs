//! What the engine stores: keys, commit timestamps, kinds, and spans of keys.

mod between;
mod commit_ts;
mod compare;
mod entry;
mod key_span;

pub(crate) use between::Between;
pub use commit_ts::CommitTs;
pub(crate) use compare::compare;
pub(crate) use entry::Kind;
pub use key_span::KeySpan;
