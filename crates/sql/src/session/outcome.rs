//! What running a statement gives back to the connection.

use std::sync::Arc;

use braid_env::memory::Account;
use braid_rows::Row;
use braid_types::SqlResult;

use super::transaction::Failure;
use crate::answer::Answer;
use crate::copy::{CopyIn, CopyOut};
use crate::general_query::RowStream;
use crate::runtime::measure::{Measure, rows_of_tag};

/// What a statement did.
pub enum Outcome {
    /// Rows follow; columns are those of the prepared statement.
    Rows(Rows),
    /// Done, with the command tag, e.g. `INSERT 0 3`.
    Done(String),
    /// The client shall send COPY data.
    CopyIn(Box<CopyIn>),
    /// COPY data follows.
    CopyOut(Box<CopyOut>),
    /// The statement was empty.
    Empty,
}

/// Rows of a statement and, after the last, its command tag.
pub struct Rows {
    stream: Box<dyn RowStream>,
    tag: RowsTag,
    returned: u64,
    done: bool,
    /// Raised when the stream fails inside of a transaction block.
    failure: Option<Arc<Failure>>,
    /// What the statement holds, until its last row was given.
    memory: Option<Arc<Account>>,
    /// Until the last row was given.
    measure: Option<Box<Measure>>,
}

/// How the command tag of a row-returning statement reads.
#[derive(Clone, Debug)]
pub enum RowsTag {
    /// `SELECT n` with the number of returned rows.
    Counted(&'static str),
    /// A fixed tag, e.g. `INSERT 0 2`, `EXPLAIN`.
    Fixed(String),
}

impl Rows {
    /// Wraps a stream.
    pub fn new(stream: Box<dyn RowStream>, tag: RowsTag) -> Rows {
        Rows { stream, tag, returned: 0, done: false, failure: None, memory: None, measure: None }
    }

    /// Raises the failure when the stream fails.
    pub(crate) fn failing(mut self, failure: Arc<Failure>) -> Rows {
        self.failure = Some(failure);
        self
    }

    /// Keeps the statement's account open while there are rows.
    pub(crate) fn holding(mut self, memory: Arc<Account>) -> Rows {
        self.memory = Some(memory);
        self
    }

    /// What it does is counted.
    pub(crate) fn measured(mut self, measure: Box<Measure>) -> Rows {
        self.measure = Some(measure);
        self
    }

    /// The client asks for the rest later, or never: until then no time passes for the statement.
    pub fn pause(&mut self) {
        if let Some(measure) = &mut self.measure {
            measure.pause();
        }
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// Whatever the statement fails with.
    pub fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        self.pull(|stream| stream.next_batch(), Vec::len)
    }

    /// As [`Rows::next_batch`], in columns where the statement has them so.
    ///
    /// # Errors
    /// Whatever the statement fails with.
    pub fn next_answer(&mut self) -> SqlResult<Option<Answer>> {
        self.pull(|stream| stream.next_answer(), Answer::rows)
    }

    fn pull<T>(
        &mut self,
        next: impl FnOnce(&mut dyn RowStream) -> SqlResult<Option<T>>,
        rows: impl FnOnce(&T) -> usize,
    ) -> SqlResult<Option<T>> {
        if self.done {
            return Ok(None);
        }
        if let Some(measure) = &mut self.measure {
            measure.go_on();
        }
        match next(&mut *self.stream) {
            Ok(Some(batch)) => {
                self.returned += rows(&batch) as u64;
                Ok(Some(batch))
            }
            Ok(None) => {
                self.end_measure();
                self.finish();
                Ok(None)
            }
            Err(e) => {
                if let Some(measure) = self.measure.take() {
                    measure.fail(&e);
                }
                self.finish();
                if let Some(failure) = &self.failure {
                    failure.raise();
                }
                Err(e)
            }
        }
    }

    fn end_measure(&mut self) {
        if let Some(measure) = self.measure.take() {
            measure.end(match &self.tag {
                RowsTag::Counted(_) => self.returned,
                RowsTag::Fixed(tag) => rows_of_tag(tag).max(self.returned),
            });
        }
    }

    /// Lets go of the transaction that the stream holds.
    fn finish(&mut self) {
        self.done = true;
        self.stream = Box::new(NoRows);
        self.memory = None;
    }

    /// Whether its tag is `SELECT` and a number of rows.
    pub fn is_select(&self) -> bool {
        match &self.tag {
            RowsTag::Counted(word) => *word == "SELECT",
            RowsTag::Fixed(tag) => tag.starts_with("SELECT "),
        }
    }

    /// The command tag for the rows returned so far.
    pub fn tag(&self) -> String {
        match &self.tag {
            RowsTag::Counted(word) => format!("{word} {}", self.returned),
            RowsTag::Fixed(tag) => tag.clone(),
        }
    }
}

/// A client may have seen enough.
impl Drop for Rows {
    fn drop(&mut self) {
        self.end_measure();
    }
}

/// An empty stream.
pub struct NoRows;

impl RowStream for NoRows {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        Ok(None)
    }
}

/// Rows that are already here.
pub struct VecRows(Option<Vec<Row>>);

impl VecRows {
    /// A stream of these rows.
    pub fn new(rows: Vec<Row>) -> VecRows {
        VecRows(if rows.is_empty() { None } else { Some(rows) })
    }
}

impl RowStream for VecRows {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        Ok(self.0.take())
    }
}
