//! A small pool of threads that run background jobs in the order they were queued.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use super::{Job, Tasks};

struct Queue {
    jobs: VecDeque<Job>,
    closing: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

/// A pool of named threads. Dropping it runs what is queued, then joins the threads.
pub struct ThreadTasks {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    count: usize,
}

impl ThreadTasks {
    /// Starts `count` threads (at least one) called `name-0`, `name-1`, ...
    pub fn start(name: &str, count: usize) -> ThreadTasks {
        let count = count.max(1);
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue { jobs: VecDeque::new(), closing: false }),
            wake: Condvar::new(),
        });
        let threads = (0..count)
            .map(|i| {
                let shared = shared.clone();
                spawn_thread(&format!("{name}-{i}"), move || work(&shared))
            })
            .collect();
        ThreadTasks { shared, threads: Mutex::new(threads), count }
    }

    /// One thread fewer than the machine has cores, at least one, at most three.
    pub fn default_parallelism() -> usize {
        cores().saturating_sub(1).clamp(1, 3)
    }
}

fn work(shared: &Shared) {
    loop {
        let job = {
            let mut queue = shared.queue.lock();
            loop {
                if let Some(job) = queue.jobs.pop_front() {
                    break job;
                }
                if queue.closing {
                    return;
                }
                shared.wake.wait(&mut queue);
            }
        };
        job();
    }
}

impl Tasks for ThreadTasks {
    fn spawn(&self, job: Job) {
        self.shared.queue.lock().jobs.push_back(job);
        self.shared.wake.notify_one();
    }

    fn help_one(&self) -> bool {
        false
    }

    fn parallelism(&self) -> usize {
        self.count
    }
}

impl Drop for ThreadTasks {
    fn drop(&mut self) {
        self.shared.queue.lock().closing = true;
        self.shared.wake.notify_all();
        let me = std::thread::current().id();
        for thread in self.threads.get_mut().drain(..) {
            // The last owner may be a job on one of these threads; a thread cannot join itself.
            if thread.thread().id() != me && thread.join().is_err() {
                // The panic was already printed by the thread; there is nothing left to clean up.
            }
        }
    }
}

/// Starts a named thread. Panics only if the operating system has no more threads to give.
pub fn spawn_thread<F, T>(name: &str, body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    try_spawn_thread(name, body).expect("the operating system refuses new threads")
}

/// As [`spawn_thread`], for who can do without one.
///
/// # Errors
/// The operating system has no more threads to give.
pub fn try_spawn_thread<F, T>(name: &str, body: F) -> std::io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    std::thread::Builder::new().name(name.to_string()).spawn(body)
}

/// How many cores this process could use when it first asked. The system reads files to say it: too
/// much for whoever asks for each statement.
pub fn cores() -> usize {
    static CORES: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    *CORES
}

/// Runs jobs at the same time, the first on this thread, and waits for all; what they returned, in
/// their order. A panic of one goes on here. Where the operating system has no more threads to
/// give, jobs run one after the other.
pub fn side_by_side<F, T>(name: &str, jobs: Vec<F>) -> Vec<T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let jobs: Vec<Mutex<Option<F>>> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
    let run = |n: usize| {
        let job = jobs[n].lock().take();
        job.map(|job| job())
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = (1..jobs.len())
            .map(|n| {
                let thread = std::thread::Builder::new().name(format!("{name}-{n}"));
                thread.spawn_scoped(scope, move || run(n)).ok()
            })
            .collect();
        let mut out: Vec<Option<T>> = Vec::with_capacity(jobs.len());
        out.extend((!jobs.is_empty()).then(|| run(0)));
        for (n, thread) in started.into_iter().enumerate() {
            out.push(match thread.map(|thread| thread.join()) {
                Some(Ok(done)) => done,
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                None => run(n + 1),
            });
        }
        out.into_iter().flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn jobs_run_side_by_side_and_answer_in_their_order() {
        let barrier = std::sync::Barrier::new(3);
        let jobs = (0..3).map(|n| {
            let barrier = &barrier;
            move || {
                barrier.wait();
                n * 10
            }
        });
        assert_eq!(side_by_side("test", jobs.collect()), [0, 10, 20]);
        assert_eq!(side_by_side("test", vec![|| 7]), [7]);
        assert_eq!(side_by_side("test", Vec::<fn() -> u8>::new()), Vec::<u8>::new());
    }

    #[test]
    #[should_panic(expected = "by the second")]
    fn a_panic_goes_on_where_the_jobs_were_asked_for() {
        let job = |n: u8| move || assert!(n != 1, "by the second");
        side_by_side("test", vec![job(0), job(1), job(2)]);
    }

    #[test]
    fn dropping_the_pool_finishes_queued_jobs() {
        let done = Arc::new(AtomicUsize::new(0));
        let tasks = ThreadTasks::start("test", 2);
        for _ in 0..100 {
            let done = done.clone();
            tasks.spawn(Box::new(move || {
                done.fetch_add(1, Ordering::SeqCst);
            }));
        }
        drop(tasks);
        assert_eq!(done.load(Ordering::SeqCst), 100);
    }
}
