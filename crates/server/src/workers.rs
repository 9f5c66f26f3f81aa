//! Threads for connections that are spoken to.
//!
//! A connection that falls silent gives its thread back; the thread waits a while for another one,
//! so that clients that come every second do not cost a new thread each time.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Stack of a connection's thread. Expressions are evaluated recursively, up to the depth limit
/// of the parser. Only what is touched takes memory, and it goes with the thread.
const STACK_BYTES: usize = 8 << 20;
/// Threads that may wait for work; more end at once.
const IDLE_MAX: usize = 8;
/// How long they wait.
const IDLE_TIME: Duration = Duration::from_secs(5);

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
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// Threads that wait and are not yet meant for a job in the queue.
    free: usize,
}

impl Workers {
    /// Runs a job on a thread of its own, now.
    ///
    /// # Errors
    /// The system has no more threads: the job was dropped.
    pub(crate) fn run(&self, job: Job) -> io::Result<()> {
        {
            let mut state = self.shared.state.lock();
            if state.free > 0 {
                state.free -= 1;
                state.queue.push_back(job);
                self.shared.wake.notify_one();
                return Ok(());
            }
        }
        let shared = Arc::clone(&self.shared);
        std::thread::Builder::new()
            .name("braid-client".to_string())
            .stack_size(STACK_BYTES)
            .spawn(move || work(&shared, job))
            .map(drop)
    }
}

fn work(shared: &Shared, first: Job) {
    let mut job = Some(first);
    while let Some(now) = job.take() {
        now();
        let mut state = shared.state.lock();
        if state.free >= IDLE_MAX {
            return;
        }
        state.free += 1;
        loop {
            if let Some(next) = state.queue.pop_front() {
                job = Some(next);
                break;
            }
            let timed_out = shared.wake.wait_for(&mut state, IDLE_TIME).timed_out();
            // A job that came in the same moment was counted on this thread or another free one.
            if timed_out && state.queue.is_empty() {
                state.free -= 1;
                return;
            }
        }
    }
}
