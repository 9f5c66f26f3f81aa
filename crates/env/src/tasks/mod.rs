//! Background work: on real threads, or step by step on one thread from a seed.
//!
//! Code that wants something done later gives a closure to a [`Tasks`]. In production
//! [`ThreadTasks`] runs it on a small pool. In tests [`SeededTasks`] only remembers it; the test
//! decides when the next one runs, and the seed decides which, so that every interleaving of
//! foreground and background work can be replayed.

mod seeded;
mod threads;

pub use seeded::SeededTasks;
pub use threads::{ThreadTasks, cores, side_by_side, spawn_thread, try_spawn_thread};

/// A job for later.
pub type Job = Box<dyn FnOnce() + Send + 'static>;

/// An executor of background jobs.
pub trait Tasks: Send + Sync + 'static {
    /// Queues a job. Does not block and does not run it on the calling thread.
    fn spawn(&self, job: Job);

    /// Runs one queued job on the calling thread if this executor has no threads of its own.
    ///
    /// A caller that has to wait for background work calls this first: `true` means that something
    /// was done and the condition should be looked at again; `false` means that threads exist
    /// which will do it (or that nothing is queued), so that waiting is right.
    fn help_one(&self) -> bool;

    /// How many jobs can run at the same time.
    fn parallelism(&self) -> usize;
}
