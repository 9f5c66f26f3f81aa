//! Jobs that run in this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use braid_types::SqlResult;
use parking_lot::{Condvar, Mutex, RwLock};

use super::expiry::Expiry;
use super::record::{Record, State};

/// A step that a job is about to take, told to listeners in the job's own thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The job.
    pub job: u32,
    /// Its name.
    pub name: &'static str,
}

/// Called with every step of every job.
pub(crate) type Listener = Arc<dyn Fn(&Step) + Send + Sync>;

/// A running job.
pub(crate) struct Job {
    record: Mutex<Record>,
    /// In parts of a million.
    fraction: AtomicU64,
    /// Raised to stop it: the flag of the statement that runs it.
    cancel: Arc<AtomicBool>,
    /// Tables that it changes.
    tables: Vec<u32>,
    listener: Option<Listener>,
    /// Of a job that can pause: whether it shall.
    pause: Option<Pause>,
}

/// Whether a job shall pause, and how it learns that it shall go on.
#[derive(Default)]
struct Pause {
    paused: Mutex<bool>,
    changed: Condvar,
}

/// How often a job that pauses looks whether it was canceled.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Job {
    pub(crate) fn id(&self) -> u32 {
        self.record.lock().id
    }

    pub(crate) fn record(&self) -> Record {
        let mut record = self.record.lock().clone();
        record.fraction = self.fraction.load(Ordering::Relaxed) as f64 / 1e6;
        if record.state == State::Running && self.is_paused() {
            record.state = State::Paused;
        }
        record
    }

    pub(crate) fn set_index(&self, index: u32) {
        self.record.lock().index = Some(index);
    }

    pub(crate) fn set_state(&self, state: State, error: Option<String>) {
        let mut record = self.record.lock();
        record.state = state;
        record.error = error.or(record.error.take());
    }

    /// Says how far it has come whose work stays.
    pub(crate) fn set_mark(&self, mark: Option<String>) {
        self.record.lock().mark = mark;
    }

    /// Begins a step.
    pub(crate) fn step(&self, name: &'static str) {
        self.record.lock().step = name.into();
        self.progress(0.0);
        self.tell(name);
    }

    /// Begins a step of a job whose progress is that of all its steps.
    pub(crate) fn phase(&self, name: &'static str) {
        self.record.lock().step = name.into();
        self.tell(name);
    }

    /// Tells listeners of something that is no step.
    pub(crate) fn tell(&self, name: &'static str) {
        if let Some(listener) = &self.listener {
            listener(&Step { job: self.id(), name });
        }
    }

    /// At least so much is done: what is done again does not take it back.
    pub(crate) fn at_least(&self, fraction: f64) {
        self.fraction.fetch_max(parts(fraction), Ordering::Relaxed);
    }

    fn is_paused(&self) -> bool {
        self.pause.as_ref().is_some_and(|pause| *pause.paused.lock())
    }

    /// A place where a job may stay as long as it shall pause.
    ///
    /// # Errors
    /// Those of `check`, which is asked now and then.
    pub(crate) fn pass(&self, check: &dyn Fn() -> SqlResult<()>) -> SqlResult<()> {
        check()?;
        let Some(pause) = &self.pause else { return Ok(()) };
        let mut paused = pause.paused.lock();
        while *paused {
            pause.changed.wait_for(&mut paused, LOOK_EVERY);
            check()?;
        }
        Ok(())
    }

    /// Part of the present step that is done.
    pub(crate) fn progress(&self, fraction: f64) {
        self.fraction.store(parts(fraction), Ordering::Relaxed);
    }
}

/// In parts of a million.
fn parts(fraction: f64) -> u64 {
    (fraction.clamp(0.0, 1.0) * 1e6) as u64
}

/// All jobs of this process. One for a database.
#[derive(Default)]
pub struct Jobs {
    running: Mutex<BTreeMap<u32, Arc<Job>>>,
    listener: RwLock<Option<Listener>>,
    /// What row deletion policies have done.
    expiry: Expiry,
    /// The node stops: what ends now has not failed.
    stopping: AtomicBool,
}

impl Jobs {
    pub(crate) fn expiry(&self) -> &Expiry {
        &self.expiry
    }

    /// Sets who is told about the steps of jobs that start from now on.
    pub fn listen(&self, listener: impl Fn(&Step) + Send + Sync + 'static) {
        *self.listener.write() = Some(Arc::new(listener));
    }

    pub(crate) fn start(
        &self,
        record: Record,
        tables: Vec<u32>,
        cancel: Arc<AtomicBool>,
    ) -> Arc<Job> {
        self.start_with(record, tables, cancel, None)
    }

    /// As [`Jobs::start`], of a job that asks whether it shall [pause](Job::pass).
    pub(crate) fn start_pausable(
        &self,
        record: Record,
        tables: Vec<u32>,
        cancel: Arc<AtomicBool>,
    ) -> Arc<Job> {
        self.start_with(record, tables, cancel, Some(Pause::default()))
    }

    fn start_with(
        &self,
        record: Record,
        tables: Vec<u32>,
        cancel: Arc<AtomicBool>,
        pause: Option<Pause>,
    ) -> Arc<Job> {
        let listener = self.listener.read().clone();
        // One that goes on has come so far already.
        let (id, fraction) = (record.id, AtomicU64::new(parts(record.fraction)));
        let record = Mutex::new(record);
        let job = Arc::new(Job { record, fraction, cancel, tables, listener, pause });
        self.running.lock().insert(id, job.clone());
        job
    }

    /// Lets a job pause or go on; `None` if it is not running, `false` if it cannot pause.
    pub(crate) fn set_paused(&self, id: u32, paused: bool) -> Option<bool> {
        let job = self.running.lock().get(&id).cloned()?;
        let Some(pause) = &job.pause else { return Some(false) };
        *pause.paused.lock() = paused;
        pause.changed.notify_all();
        Some(true)
    }

    /// Whether the node stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Asks all jobs to stop, since the node does: those that can begin again will.
    pub fn stop_all(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for job in self.running.lock().values() {
            job.cancel.store(true, Ordering::SeqCst);
        }
    }

    pub(crate) fn end(&self, id: u32) {
        self.running.lock().remove(&id);
    }

    /// A running job as it stands.
    pub fn record(&self, id: u32) -> Option<Record> {
        self.running.lock().get(&id).map(|job| job.record())
    }

    /// All running jobs as they stand.
    pub fn running(&self) -> Vec<Record> {
        self.running.lock().values().map(|job| job.record()).collect()
    }

    /// The job that is changing a table.
    pub(crate) fn changing(&self, table: u32) -> Option<u32> {
        let running = self.running.lock();
        running.iter().find(|(_, job)| job.tables.contains(&table)).map(|(id, _)| *id)
    }

    /// Asks a job to stop; `false` if it is not running.
    pub fn cancel(&self, id: u32) -> bool {
        match self.running.lock().get(&id) {
            Some(job) => {
                job.cancel.store(true, Ordering::SeqCst);
                true
            }
            None => false,
        }
    }

    /// How many run.
    pub fn count(&self) -> usize {
        self.running.lock().len()
    }
}
