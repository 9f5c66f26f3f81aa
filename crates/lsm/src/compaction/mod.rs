//! Moving data down: flushes and compactions, what they may drop, and when they run.
//!
//! A *picker* proposes a spec; the *scheduler* runs it as a job; the job merges its inputs through
//! the *drop rules* into new ssts; the edit that installs them is durable in the manifest before
//! any reader sees it.

mod drop_rules;
mod entry_merge;
mod job;
mod picker;
mod scheduler;

pub(crate) use entry_merge::EntryMerge;
pub(crate) use job::JobOutput;
pub(crate) use picker::levels_targets;
pub(crate) use scheduler::Background;
