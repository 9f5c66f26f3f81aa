//! Jobs that run in this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

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
}

impl Job {
    pub(crate) fn id(&self) -> u32 {
        self.record.lock().id
    }

    pub(crate) fn record(&self) -> Record {
        let mut record = self.record.lock().clone();
        record.fraction = self.fraction.load(Ordering::Relaxed) as f64 / 1e6;
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

    /// Begins a step.
    pub(crate) fn step(&self, name: &'static str) {
        let job = {
            let mut record = self.record.lock();
            record.step = name.into();
            record.id
        };
        self.progress(0.0);
        if let Some(listener) = &self.listener {
            listener(&Step { job, name });
        }
    }

    /// Part of the present step that is done.
    pub(crate) fn progress(&self, fraction: f64) {
        self.fraction.store((fraction.clamp(0.0, 1.0) * 1e6) as u64, Ordering::Relaxed);
    }
}

/// All jobs of this process. One for a database.
#[derive(Default)]
pub struct Jobs {
    running: Mutex<BTreeMap<u32, Arc<Job>>>,
    listener: RwLock<Option<Listener>>,
    /// What row deletion policies have done.
    expiry: Expiry,
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
        let listener = self.listener.read().clone();
        let (id, fraction) = (record.id, AtomicU64::new(0));
        let job = Arc::new(Job { record: Mutex::new(record), fraction, cancel, tables, listener });
        self.running.lock().insert(id, job.clone());
        job
    }

    pub(crate) fn end(&self, id: u32) {
        self.running.lock().remove(&id);
    }

    /// A running job as it stands.
    pub fn record(&self, id: u32) -> Option<Record> {
        self.running.lock().get(&id).map(|job| job.record())
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
