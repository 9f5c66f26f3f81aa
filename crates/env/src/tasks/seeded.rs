//! A deterministic executor: nothing runs by itself, and the seed chooses what runs next.

use parking_lot::Mutex;

use super::{Job, Tasks};
use crate::random::Random;

struct State {
    jobs: Vec<Job>,
    random: Random,
}

/// Remembers jobs; runs one when told to.
pub struct SeededTasks {
    state: Mutex<State>,
}

impl SeededTasks {
    /// An executor whose choices follow `seed`.
    pub fn new(seed: u64) -> SeededTasks {
        SeededTasks { state: Mutex::new(State { jobs: Vec::new(), random: Random::seeded(seed) }) }
    }

    /// Runs one queued job on this thread; false if there is none.
    pub fn run_one(&self) -> bool {
        let job = {
            let mut state = self.state.lock();
            let State { jobs, random } = &mut *state;
            if jobs.is_empty() {
                return false;
            }
            jobs.swap_remove(random.below(jobs.len() as u64) as usize)
        };
        job();
        true
    }

    /// Runs jobs, and the jobs that they queue, until none is left.
    pub fn run_all(&self) {
        while self.run_one() {}
    }

    /// Number of jobs that wait.
    pub fn queued(&self) -> usize {
        self.state.lock().jobs.len()
    }

    /// Forgets all jobs that wait, as a crash would.
    pub fn clear(&self) {
        self.state.lock().jobs.clear();
    }
}

impl Tasks for SeededTasks {
    fn spawn(&self, job: Job) {
        self.state.lock().jobs.push(job);
    }

    fn help_one(&self) -> bool {
        self.run_one()
    }

    fn parallelism(&self) -> usize {
        1
    }
}
