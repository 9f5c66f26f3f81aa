//! A load that a thread of its own fills, while the next rows are read.
//!
//! ```text
//!   connection   bytes ─► raw rows ─► values ─┐
//!   thread                                    └─► keys and values as stored ─► sorted ─► ssts
//! ```
//! Two batches are there at most: one is made here, one is put away there. What is wrong with a row
//! is told with the next batch, or when the load is asked for. Where the system has no more threads
//! to give, one thing is done after the other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::JoinHandle;

use braid_env::tasks::try_spawn_thread;
use braid_kv::Tally;
use braid_rows::Row;
use braid_types::SqlError;

use crate::dml::table_load::TableLoad;

/// Rows with their lines.
pub(super) type Batch = Vec<(u64, Row)>;

/// What is wrong with a row, and its line.
pub(super) type Misfit = (u64, SqlError);

/// See the [module documentation](self). Dropped, it waits for its thread.
pub(super) struct LoadThread {
    /// To the thread; `None` while there is none.
    batches: Option<SyncSender<Batch>>,
    /// Tells after each batch that it is put away.
    done: Option<Receiver<()>>,
    thread: Option<JoinHandle<Option<Ended>>>,
    /// While there is no thread.
    load: Option<Box<TableLoad>>,
    /// A batch is with the thread.
    busy: bool,
    /// What stops the statement.
    cancel: Arc<AtomicBool>,
}

/// What a thread leaves.
type Ended = (Box<TableLoad>, Result<(), Misfit>);

impl LoadThread {
    pub(super) fn new(load: TableLoad, cancel: &Arc<AtomicBool>) -> LoadThread {
        let (load, cancel) = (Some(Box::new(load)), cancel.clone());
        LoadThread { batches: None, done: None, thread: None, load, busy: false, cancel }
    }

    /// Puts rows into the load, soon.
    ///
    /// # Errors
    /// What is wrong with a row of this batch or of an earlier one.
    pub(super) fn add(&mut self, batch: Batch) -> Result<(), Misfit> {
        self.start();
        if let Some(load) = &mut self.load {
            return load.add(batch);
        }
        self.wait()?;
        match self.batches.as_ref().map(|batches| batches.send(batch)) {
            Some(Ok(())) => self.busy = true,
            // It has ended, and says why.
            _ => drop(self.end()?),
        }
        Ok(())
    }

    /// Waits until what was added is in the load.
    ///
    /// # Errors
    /// What is wrong with a row of it.
    pub(super) fn wait(&mut self) -> Result<(), Misfit> {
        if !std::mem::take(&mut self.busy) {
            return Ok(());
        }
        match self.done.as_ref().map(Receiver::recv) {
            Some(Ok(())) => Ok(()),
            _ => self.end().map(drop),
        }
    }

    /// The load, with all that was added.
    ///
    /// # Errors
    /// As [`LoadThread::wait`].
    pub(super) fn load(&mut self) -> Result<&mut TableLoad, Misfit> {
        self.busy = false;
        self.end()
    }

    /// The load, with all that was added, to be finished.
    ///
    /// # Errors
    /// As [`LoadThread::wait`].
    pub(super) fn finish(mut self) -> Result<TableLoad, Misfit> {
        self.load()?;
        Ok(*self.load.take().expect("it has been asked for"))
    }

    fn start(&mut self) {
        let Some(load) = self.load.take() else { return };
        let (give, given) = sync_channel::<Box<TableLoad>>(1);
        let (batches, taken) = sync_channel::<Batch>(1);
        let (told, done) = sync_channel(1);
        let cancel = self.cancel.clone();
        let thread = try_spawn_thread("copy-load", move || {
            let _stops = Tally::stop_by(&cancel);
            let mut load = given.recv().ok()?;
            for batch in taken {
                if let Err(misfit) = load.add(batch) {
                    return Some((load, Err(misfit)));
                }
                // Who does not listen has gone.
                let _ = told.send(());
            }
            Some((load, Ok(())))
        });
        let Ok(thread) = thread else {
            self.load = Some(load);
            return;
        };
        match give.send(load) {
            Ok(()) => {
                (self.batches, self.done) = (Some(batches), Some(done));
                self.thread = Some(thread);
            }
            Err(SendError(load)) => self.load = Some(load),
        }
    }

    /// Ends the thread, if there is one, and takes its load back.
    fn end(&mut self) -> Result<&mut TableLoad, Misfit> {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let (load, done) = ended.expect("it was given the load");
            self.load = Some(load);
            done?;
        }
        Ok(self.load.as_mut().expect("it is with the thread, or here"))
    }
}

impl Drop for LoadThread {
    fn drop(&mut self) {
        self.batches = None;
        // Nobody asks for what is wrong.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
