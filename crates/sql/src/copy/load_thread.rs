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
    /// While it is with no thread.
    load: Option<Box<TableLoad>>,
    thread: Option<Running>,
    /// What stops the statement.
    cancel: Arc<AtomicBool>,
}

/// A thread that has the load.
struct Running {
    batches: SyncSender<Batch>,
    /// Tells after each batch that it is put away.
    done: Receiver<()>,
    /// It has a batch.
    busy: bool,
    handle: JoinHandle<Option<Ended>>,
}

/// What a thread leaves.
type Ended = (Box<TableLoad>, Result<(), Misfit>);

impl LoadThread {
    pub(super) fn new(load: TableLoad, cancel: &Arc<AtomicBool>) -> LoadThread {
        LoadThread { load: Some(Box::new(load)), thread: None, cancel: cancel.clone() }
    }

    /// Puts rows into the load, soon.
    ///
    /// # Errors
    /// What is wrong with a row of this batch or of an earlier one.
    pub(super) fn add(&mut self, batch: Batch) -> Result<(), Misfit> {
        self.start();
        self.wait()?;
        match (&mut self.load, &mut self.thread) {
            (Some(load), _) => load.add(batch),
            (None, Some(thread)) => {
                thread.busy = thread.batches.send(batch).is_ok();
                // Else it has ended, and says why.
                if thread.busy { Ok(()) } else { self.load().map(drop) }
            }
            (None, None) => unreachable!("it is with the thread, or here"),
        }
    }

    /// Waits until what was added is in the load.
    ///
    /// # Errors
    /// What is wrong with a row of it.
    pub(super) fn wait(&mut self) -> Result<(), Misfit> {
        let Some(thread) = self.thread.as_mut().filter(|thread| thread.busy) else { return Ok(()) };
        thread.busy = false;
        match thread.done.recv() {
            Ok(()) => Ok(()),
            Err(_) => self.load().map(drop),
        }
    }

    /// The load, with all that was added.
    ///
    /// # Errors
    /// As [`LoadThread::wait`].
    pub(super) fn load(&mut self) -> Result<&mut TableLoad, Misfit> {
        if let Some(Running { batches, handle, .. }) = self.thread.take() {
            drop(batches);
            let ended = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let (load, done) = ended.expect("it was given the load");
            self.load = Some(load);
            done?;
        }
        Ok(self.load.as_mut().expect("it is with the thread, or here"))
    }

    /// The load, with all that was added, to be finished.
    ///
    /// # Errors
    /// As [`LoadThread::wait`].
    pub(super) fn finish(mut self) -> Result<TableLoad, Misfit> {
        self.load()?;
        Ok(*self.load.take().expect("it has been asked for"))
    }

    /// Gives the load to a thread, if it is here and the system has a thread to give.
    fn start(&mut self) {
        let Some(load) = self.load.take() else { return };
        let (give, given) = sync_channel::<Box<TableLoad>>(1);
        let (batches, taken) = sync_channel::<Batch>(1);
        let (told, done) = sync_channel(1);
        let cancel = self.cancel.clone();
        let handle = try_spawn_thread("copy-load", move || {
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
        let Ok(handle) = handle else {
            self.load = Some(load);
            return;
        };
        match give.send(load) {
            Ok(()) => self.thread = Some(Running { batches, done, busy: false, handle }),
            Err(SendError(load)) => self.load = Some(load),
        }
    }
}

impl Drop for LoadThread {
    fn drop(&mut self) {
        if let Some(Running { batches, handle, .. }) = self.thread.take() {
            drop(batches);
            // Nobody asks for what is wrong.
            let _ = handle.join();
        }
    }
}
