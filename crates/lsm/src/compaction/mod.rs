//! Moving data down: flushes and compactions, what they may drop, and when they run.
//!
//! A *picker* proposes a spec; the *scheduler* claims its inputs and runs it as a job, several at
//! once; the job merges its inputs through the *drop rules* into new ssts, cut where *output cuts*
//! say; the edit that installs them is durable in the manifest before any reader sees it. Writers
//! feel the *throttle* when they are faster than all of this.

mod claims;
mod counters;
mod delete_only;
mod drop_rules;
mod entry_merge;
mod idle;
mod job;
mod output_cuts;
mod picker;
mod read_meter;
mod read_triggered;
mod reserve;
mod scheduler;
mod spec;
mod throttle;
mod unit;

pub(crate) use counters::CompactionCounters;
pub(crate) use entry_merge::EntryMerge;
pub(crate) use idle::LastLook;
pub(crate) use job::JobOutput;
pub(crate) use picker::{debt, levels_targets};
pub(crate) use read_meter::{ReadDebt, ReadMeter};
pub(crate) use scheduler::Background;
pub use spec::CompactionReason;
pub(crate) use spec::widen;
pub(crate) use throttle::{BULK, Throttle};
