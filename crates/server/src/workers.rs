//! Threads for connections that are spoken to.
//!
//! A connection that falls silent gives its thread back; the thread waits a while for another one,
//! so that clients that come every second do not cost a new thread each time.
//!
//! ```text
//!   a connection speaks ──┬─ a thread is free, or there are few ─────► runs now
//!                         └─ there are THREADS_AT_ONCE ──► queue ────► runs when one is free
//!                                                           │
//!                                  nothing moved since the last tick: more threads
//! ```
//! A thread costs memory (stack, the allocator's heap, what its statement computes), so a crowd
//! shares few. Those may all wait for locks whose holder stands in the queue: a queue that does
//! not move gets more threads until it does.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Stack of a connection's thread. Statements are read, bound, planned and evaluated recursively,
/// up to the limits of the parser and of plans, which are made for this size in a build without
/// optimisation. Only what is touched takes memory, and it goes with the thread.
const STACK_BYTES: usize = 64 << 20;
/// Threads that may wait for work; more end at once.
const IDLE_MAX: usize = 8;
/// How long they wait.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// So many threads are started without waiting.
const THREADS_AT_ONCE: usize = 32;
/// When the queue does not move, threads grow by this part of what there is.
const GROWTH: usize = 8;

type Job = Box<dyn FnOnce() + Send + 'static>;

/// See the [module documentation](self).
#[derive(Default)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// Somebody waits for a thread.
    crowded: AtomicBool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// Threads that wait and are not yet meant for a job in the queue.
    free: usize,
    /// Threads that have not ended.
    threads: usize,
    /// A job has left the queue since the last tick.
    moved: bool,
}

impl Workers {
    /// Runs a job on a thread of its own: now, or when there is one.
    ///
    /// # Errors
    /// The system has no more threads: the job was dropped.
    pub(crate) fn run(&self, job: Job) -> io::Result<()> {
        {
            let mut state = self.shared.state.lock();
            if state.free > state.queue.len() {
                state.queue.push_back(job);
                self.shared.wake.notify_one();
                return Ok(());
            }
            if state.threads >= THREADS_AT_ONCE {
                state.queue.push_back(job);
                self.shared.crowded.store(true, Ordering::Relaxed);
                return Ok(());
            }
            state.threads += 1;
        }
        self.spawn(Some(job))
    }

    /// Whether somebody waits for a thread: who has nothing to do gives his back at once.
    pub(crate) fn crowded(&self) -> bool {
        self.shared.crowded.load(Ordering::Relaxed)
    }

    /// Called every now and then: a queue that does not move gets more threads.
    pub(crate) fn tick(&self) -> io::Result<()> {
        let more = {
            let mut state = self.shared.state.lock();
            let stuck = !std::mem::take(&mut state.moved) && state.free == 0;
            let more = if stuck { state.queue.len().min(1 + state.threads / GROWTH) } else { 0 };
            state.threads += more;
            more
        };
        // All are tried: a count that was raised is lowered again for a thread that cannot be had.
        (0..more).map(|_| self.spawn(None)).fold(Ok(()), Result::and)
    }

    /// Starts a thread that was counted.
    fn spawn(&self, job: Option<Job>) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let spawned = std::thread::Builder::new()
            .name("braid-client".to_string())
            .stack_size(STACK_BYTES)
            .spawn(move || work(&shared, job));
        if spawned.is_err() {
            self.shared.state.lock().threads -= 1;
        }
        spawned.map(drop)
    }
}

impl Shared {
    /// The next job, or none for so long that the thread may end.
    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        state.free += 1;
        loop {
            if let Some(job) = state.queue.pop_front() {
                state.free -= 1;
                state.moved = true;
                self.crowded.store(state.queue.len() > state.free, Ordering::Relaxed);
                return Some(job);
            }
            let surplus = state.free > IDLE_MAX;
            if surplus || self.wake.wait_for(&mut state, IDLE_TIME).timed_out() {
                // A job may have come in the same moment.
                if state.queue.is_empty() {
                    state.free -= 1;
                    state.threads -= 1;
                    return None;
                }
            }
        }
    }
}

fn work(shared: &Shared, first: Option<Job>) {
    let mut job = first.or_else(|| shared.next());
    while let Some(now) = job {
        now();
        job = shared.next();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_crowd_shares_few_threads_and_never_stands_still() {
        let workers = Workers::default();
        let (done, finished) = mpsc::channel();
        // Every job but the last waits until all have begun: none can end before all have a thread.
        let begun = Arc::new((Mutex::new(0), Condvar::new()));
        for n in 0..100 {
            let (done, begun) = (done.clone(), Arc::clone(&begun));
            let job = move || {
                let mut count = begun.0.lock();
                *count += 1;
                begun.1.notify_all();
                while *count < 100 {
                    begun.1.wait(&mut count);
                }
                drop(count);
                done.send(n).unwrap();
            };
            workers.run(Box::new(job)).unwrap();
        }
        assert_eq!(workers.shared.state.lock().threads, THREADS_AT_ONCE);
        assert!(workers.crowded());
        let mut ticks = 0;
        while *begun.0.lock() < 100 {
            workers.tick().unwrap();
            std::thread::sleep(Duration::from_millis(5));
            ticks += 1;
            assert!(ticks < 2000, "the queue stands still");
        }
        drop(done);
        assert_eq!(finished.iter().count(), 100);
        assert!(!workers.crowded());
    }
}
