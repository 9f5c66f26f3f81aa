//! A thread that reads a file, some batches ahead of whoever takes them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use braid_env::fs::FileSystem;
use braid_env::memory::Account;
use braid_env::tasks::spawn_thread;
use braid_types::{SqlError, SqlResult, SqlState};

use crate::avro::AvroSource;
use crate::batch::{Batch, Position};
use crate::csv::CsvSource;
use crate::folder::SourceFile;
use crate::input::{CHUNK, Input};
use crate::jsonl::JsonSource;
use crate::lines::{self, Lines};
use crate::options::{Format, ReadOptions};
use crate::parquet::ParquetSource;
use crate::room::{Asker, Message, Room};
use crate::target::Target;

/// Batches that wait to be taken. One more is filled, and one is with whoever takes them.
const AHEAD: usize = 3;
/// A batch is this part of a reader's memory; with a quarter more, five of them leave some for its
/// buffers.
const BATCH_PART: usize = 8;
/// The buffers are these parts of it,
const CHUNK_PART: usize = 16;
const LINES_PART: usize = 8;
/// but not smaller than this, in bytes.
const BUFFER_MIN: usize = 8 << 10;

/// Rows of one open file.
pub(crate) trait Source {
    /// Adds the next rows to a batch, until it is full or the file ends.
    fn read(&mut self, out: &mut Batch) -> SqlResult<()>;
}

/// What is to be read.
#[derive(Clone)]
pub struct Job {
    /// Where the file is.
    pub fs: Arc<dyn FileSystem>,
    /// Which one.
    pub file: SourceFile,
    /// Its place in the list of files.
    pub number: usize,
    /// Where reading begins.
    pub from: Position,
    /// For which columns.
    pub target: Arc<Target>,
    /// How.
    pub options: ReadOptions,
    /// Where memory is asked for.
    pub account: Arc<Account>,
    /// Bytes for rows that are read ahead, and what a reader needs besides: long rows take more.
    pub memory: usize,
}

impl Job {
    /// Memory of one reader where nobody has to be sparing, in bytes.
    pub const MEMORY: usize = 8 << 20;
    /// The least that a reader works with.
    pub const MEMORY_MIN: usize = 128 << 10;

    /// Bytes asked of the disk at once.
    pub(crate) fn chunk(&self) -> usize {
        (self.memory / CHUNK_PART).clamp(BUFFER_MIN, CHUNK)
    }
}

/// See the [module documentation](self).
pub struct Reader {
    batches: Option<Receiver<Message>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Begins to read.
    ///
    /// # Errors
    /// 53200 if not even the batches ahead may be held.
    pub fn start(job: Job) -> SqlResult<Reader> {
        let mut held = job.account.hold("rows that are read ahead");
        held.grow(job.memory).map_err(|e| out_of_memory(&e))?;
        let (sender, batches) = sync_channel(AHEAD);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = spawn_thread("import-reader", move || {
            let _held = held;
            if let Err(e) = read_file(&job, &sender, &stopped) {
                // Whoever is gone does not ask what failed.
                let _gone = sender.send(Message::Batch(Err(e)));
            }
        });
        Ok(Reader { batches: Some(batches), stop, thread: Some(thread) })
    }

    /// The next batch; `None` when the file was read. All before it have been dropped.
    ///
    /// `relieve` is called when the reader is short of memory for a long row: whatever can be given
    /// back should be.
    ///
    /// # Errors
    /// What ends the reading of a file, with its name and the place; those of `relieve`.
    pub fn next_batch(
        &mut self,
        relieve: &mut dyn FnMut() -> SqlResult<()>,
    ) -> SqlResult<Option<Batch>> {
        loop {
            let Some(batches) = &self.batches else { return Ok(None) };
            match batches.recv() {
                Ok(Message::Batch(batch)) => return batch.map(Some),
                Ok(Message::Wait(wait)) => {
                    if wait.relieve {
                        relieve()?;
                    }
                    // It may have been told to stop meanwhile.
                    let _gone = wait.done.send(());
                }
                Err(_) => {
                    self.batches = None;
                    return match self.thread.take().map(JoinHandle::join) {
                        Some(Err(_)) => Err(SqlError::internal("the reader of an import panicked")),
                        _ => Ok(None),
                    };
                }
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A reader that waits to hand over a batch gets an error.
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let _panic_was_printed = thread.join();
        }
    }
}

pub(crate) fn out_of_memory(e: &braid_env::memory::Exceeded) -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, format!("out of memory: {e}"))
}

/// Hands over all batches of a file, as long as somebody takes them.
fn read_file(job: &Job, sender: &SyncSender<Message>, stop: &AtomicBool) -> SqlResult<()> {
    let source_file = &job.file;
    let asker = Asker(sender.clone());
    let room = Room::new(&job.account, "a long row", Some(asker.clone()));
    let named = |e: SqlError| name_file(e, source_file);
    // A library that panics over a file says no more than that.
    let placed = |e: SqlError, row: u64| match e.detail() {
        None if e.state() == SqlState::BAD_COPY_FILE_FORMAT => {
            e.with_detail(format!("behind row {row}"))
        }
        _ => e,
    };
    let opened = guarded(source_file, || open(job, source_file, &room));
    let mut source = opened.map_err(|e| named(placed(e, 0)))?;
    let mut row = job.from.number;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut batch = Batch::new(job.number, job.memory / BATCH_PART, room.clone());
        let read = guarded(source_file, || source.read(&mut batch));
        let numbers = batch.rows.iter().map(|row| row.number);
        row = numbers.chain(batch.misfits.iter().map(|misfit| misfit.number)).fold(row, u64::max);
        if job.from.offset == 0 {
            // Found by number: those before have been taken.
            batch.rows.retain(|row| row.number > job.from.number);
            batch.misfits.retain(|misfit| misfit.number > job.from.number);
        }
        let failed = read.map_err(|e| named(placed(e, row))).err();
        let last = batch.last;
        // Rows in front of the damage are told about first.
        if failed.is_none() || !batch.rows.is_empty() || !batch.misfits.is_empty() {
            batch.seal();
            // Nothing is read ahead of long rows: who takes them needs memory, too.
            let long = batch.is_long();
            if sender.send(Message::Batch(Ok(batch))).is_err() || long && !asker.wait(false) {
                return Ok(());
            }
        }
        match failed {
            Some(e) => return Err(e),
            None if last => return Ok(()),
            None => {}
        }
    }
}

fn open(job: &Job, file: &SourceFile, room: &Room) -> SqlResult<Box<dyn Source>> {
    let (options, target) = (&job.options, job.target.clone());
    let lines = || {
        let (from, unpacking) = (job.from.offset, room.another("decompression"));
        let how = (options.compression, job.chunk(), unpacking);
        let input = Input::open(&*job.fs, file, how, from).map_err(|e| match e.detail() {
            None => e.with_detail(format!("in front of line {}", job.from.number + 1)),
            Some(_) => e,
        })?;
        let first = (job.memory / LINES_PART).clamp(BUFFER_MIN, lines::BUFFER);
        let sizes = (options.row_bytes_max, first);
        let room = room.another("the longest row of a file");
        SqlResult::Ok(Lines::new(input, file.clone(), job.from, sizes, room))
    };
    Ok(match options.format {
        Format::Csv => Box::new(CsvSource::new(lines()?, options.csv.clone(), target)),
        Format::JsonLines => Box::new(JsonSource::new(lines()?, target)),
        Format::Parquet => Box::new(ParquetSource::open(job, file, room)?),
        Format::Avro => Box::new(AvroSource::open(job, file, room)?),
    })
}

/// Turns a panic of a library over a damaged file into the file's error.
fn guarded<T>(file: &SourceFile, work: impl FnOnce() -> SqlResult<T>) -> SqlResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        Err(damaged(file, text))
    })
}

/// A file that is not what it should be.
pub(crate) fn damaged(file: &SourceFile, reason: impl std::fmt::Display) -> SqlError {
    SqlError::new(
        SqlState::BAD_COPY_FILE_FORMAT,
        format!("file \"{}\" cannot be read: {reason}", file.name),
    )
}

fn name_file(e: SqlError, file: &SourceFile) -> SqlError {
    let name = format!("file \"{}\"", file.name);
    match e.detail() {
        Some(d) if d.contains(&name) => e,
        Some(d) => {
            let detail = format!("{name}, {d}");
            e.with_detail(detail)
        }
        None => e.with_detail(name),
    }
}
