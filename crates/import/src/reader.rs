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
use crate::input::Input;
use crate::jsonl::JsonSource;
use crate::lines::Lines;
use crate::options::{Format, ReadOptions};
use crate::parquet::ParquetSource;
use crate::target::Target;

/// Batches that wait to be taken.
const AHEAD: usize = 3;
/// Memory of those batches, and of what a reader needs besides its longest row, in bytes.
const READER_BYTES: usize = 8 << 20;

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
}

/// See the [module documentation](self).
pub struct Reader {
    batches: Option<Receiver<SqlResult<Batch>>>,
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
        held.grow(READER_BYTES).map_err(|e| out_of_memory(&e))?;
        let (sender, batches) = sync_channel(AHEAD);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = spawn_thread("import-reader", move || {
            let _held = held;
            if let Err(e) = read_file(&job, &sender, &stopped) {
                // Whoever is gone does not ask what failed.
                let _gone = sender.send(Err(e));
            }
        });
        Ok(Reader { batches: Some(batches), stop, thread: Some(thread) })
    }

    /// The next batch; `None` when the file was read.
    ///
    /// # Errors
    /// What ends the reading of a file, with its name and the place.
    pub fn next_batch(&mut self) -> SqlResult<Option<Batch>> {
        let Some(batches) = &self.batches else { return Ok(None) };
        match batches.recv() {
            Ok(batch) => batch.map(Some),
            Err(_) => {
                self.batches = None;
                match self.thread.take().map(JoinHandle::join) {
                    Some(Err(_)) => Err(SqlError::internal("the reader of an import panicked")),
                    _ => Ok(None),
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
    SqlError::new(SqlState::OUT_OF_MEMORY, format!("out of memory: {}", e.what))
        .with_detail(e.to_string())
}

/// Hands over all batches of a file, as long as somebody takes them.
fn read_file(job: &Job, sender: &SyncSender<SqlResult<Batch>>, stop: &AtomicBool) -> SqlResult<()> {
    let source_file = &job.file;
    let named = |e: SqlError| name_file(e, source_file);
    // A library that panics over a file says no more than that.
    let placed = |e: SqlError, row: u64| match e.detail() {
        None if e.state() == SqlState::BAD_COPY_FILE_FORMAT => {
            e.with_detail(format!("behind row {row}"))
        }
        _ => e,
    };
    let opened = guarded(source_file, || open(job, source_file));
    let mut source = opened.map_err(|e| named(placed(e, 0)))?;
    let mut row = job.from.number;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut batch = Batch { file: job.number, ..Batch::default() };
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
        if (failed.is_none() || !batch.rows.is_empty() || !batch.misfits.is_empty())
            && sender.send(Ok(batch)).is_err()
        {
            return Ok(());
        }
        match failed {
            Some(e) => return Err(e),
            None if last => return Ok(()),
            None => {}
        }
    }
}

fn open(job: &Job, file: &SourceFile) -> SqlResult<Box<dyn Source>> {
    let (options, target) = (&job.options, job.target.clone());
    let lines = || {
        let input = Input::open(&*job.fs, file, options.compression, job.from.offset)?;
        let held = job.account.hold("the longest row of a file");
        SqlResult::Ok(Lines::new(input, file.clone(), job.from, options.row_bytes_max, held))
    };
    Ok(match options.format {
        Format::Csv => Box::new(CsvSource::new(lines()?, options.csv.clone(), target)),
        Format::JsonLines => Box::new(JsonSource::new(lines()?, target)),
        Format::Parquet => Box::new(ParquetSource::open(job, file)?),
        Format::Avro => Box::new(AvroSource::open(job, file)?),
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
