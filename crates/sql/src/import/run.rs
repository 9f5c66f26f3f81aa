//! One import: from the statement to rows that wait for the commit.

use std::sync::Arc;

use braid_catalog::Table;
use braid_env::clock::{Clock, WallClock};
use braid_env::fs::DiskFs;
use braid_import::reader::Job as Reading;
use braid_import::{Batch, Misfit, Reader, SourceFile, Target, TargetColumn};
use braid_parser::Import;
use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::answer::{self, Report};
use super::locate;
use super::options::Options;
use super::refused::{Place, Refusal, Refused};
use crate::copy::targets;
use crate::database::Database;
use crate::dml::table_load::{TableLoad, Written, is_of_row};
use crate::dml::writer::TableInfo;
use crate::general_query::Row;
use crate::jobs::registry::Job;
use crate::jobs::{Record, State};
use crate::session::{Context, Outcome};

/// How much of an import reading is; the rest is sorting and writing.
const READING: f64 = 0.9;

/// An import that runs.
pub(super) struct Run {
    pub(super) ctx: Context,
    pub(super) info: Arc<TableInfo>,
    /// Where each field goes.
    targets: Vec<usize>,
    files: Vec<SourceFile>,
    pub(super) reading: Reading,
    options: Options,
    job: Arc<Job>,
    /// Bytes of all files on the disk.
    bytes: u64,
    begun: u64,
}

/// IMPORT INTO.
pub(crate) fn import(ctx: &Context, i: &Import, statement: &str) -> SqlResult<Outcome> {
    let options = Options::read(i)?;
    if ctx.failure.is_some() {
        let state = SqlState::ACTIVE_SQL_TRANSACTION;
        return Err(SqlError::new(state, "IMPORT cannot run inside a transaction block")
            .with_hint("COPY can."));
    }
    let table = ctx.table(&i.table)?;
    let folder = ctx.db.import_folder()?;
    let mut files: Vec<SourceFile> = Vec::new();
    for pattern in &i.files {
        for file in folder.files(pattern)? {
            // Patterns may meet.
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    let id = i.job.map_or_else(|| ctx.db.new_ids(1), Ok)?;
    let record = Record { run_as: Some(ctx.run_as()), ..Record::new(id, "import", statement) };
    let reject = reject_file(folder, &options, &table, id)?;
    let dry_run = options.dry_run;
    if !dry_run {
        record.store(ctx.db.coordinator())?;
    }
    let jobs = ctx.db.jobs();
    let job = jobs.start_pausable(record, vec![table.id], ctx.cancel.clone());
    let run = Run::new(ctx, i, &table, files, options, job.clone());
    let done = run.and_then(|run| run.run(reject.as_deref()));
    jobs.end(id);
    if let Err(e) = &done
        && !dry_run
    {
        note_failure(&ctx.db, job.record(), e);
    }
    done
}

fn reject_file(
    folder: &braid_import::Folder,
    options: &Options,
    table: &Table,
    job: u32,
) -> SqlResult<Option<std::path::PathBuf>> {
    if options.max_bad_rows == 0 || options.dry_run {
        return Ok(None);
    }
    let name = match &options.reject_file {
        Some(name) => name.clone(),
        None => format!("{}-{job}.rejected", table.name.replace(['/', '\0'], "_")),
    };
    folder.new_file(&name).map(Some)
}

impl Run {
    fn new(
        ctx: &Context,
        i: &Import,
        table: &Arc<Table>,
        files: Vec<SourceFile>,
        options: Options,
        job: Arc<Job>,
    ) -> SqlResult<Run> {
        let info = Arc::new(TableInfo::new(ctx, table)?);
        let targets = targets(table, &i.columns)?;
        let column = |at: &usize| {
            let c = &table.columns[*at];
            TargetColumn { name: c.name.clone(), ty: c.ty.clone() }
        };
        let target = Target {
            columns: targets.iter().map(column).collect(),
            style: ctx.eval.style,
            ignore_unknown: options.ignore_unknown,
        };
        let reading = Reading {
            fs: DiskFs::shared(),
            files: files.clone(),
            target: Arc::new(target),
            options: options.read.clone(),
            account: ctx.memory.clone(),
        };
        let bytes = files.iter().map(|f| f.size).sum();
        let (ctx, begun) = (ctx.clone(), WallClock.monotonic_nanos());
        Ok(Run { ctx, info, targets, files, reading, options, job, bytes, begun })
    }

    fn run(&self, reject: Option<&std::path::Path>) -> SqlResult<Outcome> {
        if !TableLoad::is_possible(&self.ctx, &self.info)? {
            let name = &self.info.table().name;
            let what = format!("IMPORT into \"{name}\", whose rows refer to each other,");
            return Err(SqlError::unsupported(what)
                .with_hint("COPY can, or drop the foreign key and add it again afterwards."));
        }
        let names = self.files.iter().map(|f| f.name.clone()).collect();
        let options = &self.options;
        let (counts, most) = (options.read.format.counts(), options.max_bad_rows);
        let mut refused = Refused::new(self.info.table(), names, counts, most, options.dry_run);
        let (load, written) = self.fill(&mut refused)?;
        let report = |written: Written| Report {
            job: self.job.id(),
            table: self.info.table().name.clone(),
            files: self.files.len(),
            input: self.bytes,
            written,
            nanos: WallClock.monotonic_nanos().saturating_sub(self.begun),
        };
        if options.dry_run {
            return Ok(answer::of_dry_run(&report(written), &refused));
        }
        self.job.phase("write");
        self.finish(load, &refused)?;
        if let Some(path) = reject.filter(|_| refused.count() > 0) {
            refused.write(&*self.reading.fs, path)?;
            let message = format!("{} rows are no good", refused.count());
            self.ctx.notice(format!("{message}: they are in \"{}\"", path.display()));
        }
        self.job.progress(1.0);
        Ok(answer::of_import(&report(written)))
    }

    /// Reads everything, until no two rows want one key.
    fn fill(&self, refused: &mut Refused) -> SqlResult<(TableLoad, Written)> {
        loop {
            let mut load = match self.options.dry_run {
                true => TableLoad::trial(&self.ctx, &self.info)?,
                false => TableLoad::start(&self.ctx, &self.info)?,
            };
            self.job.phase("read");
            self.read(&mut load, refused)?;
            let written = load.written();
            if !refused.tolerates() {
                return Ok((load, written));
            }
            self.job.phase("check keys");
            let most = usize::try_from(refused.room()).unwrap_or(usize::MAX);
            let taken = load.taken_keys(most)?;
            if taken.is_empty() {
                return Ok((load, written));
            }
            let before = refused.count();
            locate::refuse(self, &taken, refused)?;
            if self.options.dry_run || refused.count() == before {
                return Ok((load, written));
            }
            // Without these rows, all over again: their entries are everywhere by now.
        }
    }

    /// Puts all rows into a load.
    fn read(&self, load: &mut TableLoad, refused: &mut Refused) -> SqlResult<()> {
        let mut pending: Vec<(Place, Row)> = Vec::new();
        self.each(&mut |place, item| {
            match item {
                Item::Row(_) if refused.holds(&place) => {}
                Item::Row(values) => pending.push((place, self.whole(values)?)),
                Item::Misfit(m) => {
                    // What is wrong with rows before this one is told first.
                    self.put(load, std::mem::take(&mut pending), refused)?;
                    self.refuse_misfit(place, m, refused)?;
                }
            }
            if pending.len() < self.ctx.txn.batch_max() {
                return Ok(());
            }
            self.put(load, std::mem::take(&mut pending), refused)
        })?;
        self.put(load, pending, refused)
    }

    fn put(
        &self,
        load: &mut TableLoad,
        rows: Vec<(Place, Row)>,
        refused: &mut Refused,
    ) -> SqlResult<()> {
        load.add_or_refuse(rows, &mut |place, error| {
            if !is_of_row(&error) {
                return Err(refused.placed(error, place, None));
            }
            refused.add(&self.ctx, place, Refusal { error, column: None, text: None })
        })
    }

    /// Calls `f` with everything that is read, in the order of the files.
    pub(super) fn each(&self, f: &mut dyn FnMut(Place, Item) -> SqlResult<()>) -> SqlResult<()> {
        let mut reader = Reader::start(self.reading.clone())?;
        let mut left = self.options.row_limit.unwrap_or(u64::MAX);
        let mut before: u64 = 0;
        while let Some(batch) = reader.next_batch()? {
            self.job.pass(&|| self.ctx.check_cancel())?;
            let (file, read, last) = (batch.file, batch.read, batch.last);
            for (number, item) in in_order(batch) {
                if left == 0 {
                    return Ok(());
                }
                left -= 1;
                f((file, number), item)?;
            }
            let share = (before + read) as f64 / self.bytes.max(1) as f64;
            self.job.at_least(share * READING);
            if last {
                before += self.files[file].size;
            }
        }
        Ok(())
    }

    fn refuse_misfit(&self, place: Place, m: Misfit, refused: &mut Refused) -> SqlResult<()> {
        let column = m.column.map(|at| self.reading.target.columns[at].name.clone());
        let refusal = Refusal { error: m.error, column, text: Some(m.text) };
        refused.add(&self.ctx, place, refusal)
    }

    /// A row of the table, with defaults for what the file does not give.
    pub(super) fn whole(&self, values: Vec<Option<Datum>>) -> SqlResult<Row> {
        let table = self.info.table();
        let mut given: Vec<Option<Datum>> = vec![None; table.columns.len()];
        for (value, at) in values.into_iter().zip(&self.targets) {
            given[*at] = value;
        }
        let fill = |(at, value): (usize, Option<Datum>)| match value {
            Some(value) => Ok(value),
            None => self.info.filler.default(&self.ctx, at),
        };
        given.into_iter().enumerate().map(fill).collect()
    }

    /// Makes the load part of the commit, and that the job has succeeded.
    fn finish(&self, mut load: TableLoad, refused: &Refused) -> SqlResult<()> {
        let mut record = self.job.record();
        (record.state, record.fraction) = (State::Succeeded, 1.0);
        // Nobody else writes it, and whoever notes a failure must not wait for this transaction.
        load.along(&record.key(), &record.encode())?;
        let mut taken = None;
        let Err(e) = load.finish_or_tell(&mut taken) else { return Ok(()) };
        match taken {
            None => Err(e),
            Some(key) => Err(locate::tell(self, &key, e, refused)),
        }
    }
}

/// What was read.
pub(super) enum Item {
    /// Values of a row, by field.
    Row(Vec<Option<Datum>>),
    /// No row.
    Misfit(Misfit),
}

/// The rows of a batch and what is none, as they stand in the file.
fn in_order(batch: Batch) -> impl Iterator<Item = (u64, Item)> {
    let mut rows = batch.rows.into_iter().peekable();
    let mut misfits = batch.misfits.into_iter().peekable();
    std::iter::from_fn(move || {
        let first = misfits.peek().map_or(u64::MAX, |m| m.number);
        match rows.next_if(|row| row.number < first) {
            Some(row) => Some((row.number, Item::Row(row.values))),
            None => misfits.next().map(|m| (m.number, Item::Misfit(m))),
        }
    })
}

/// Writes down that an import has failed. Nothing has to be taken back. Of one that ends because
/// the node does nothing is written: it begins again.
pub(super) fn note_failure(db: &Database, mut record: Record, e: &SqlError) {
    let canceled = e.state() == SqlState::QUERY_CANCELED;
    if canceled && db.jobs().is_stopping() {
        return;
    }
    record.state = if canceled { State::Canceled } else { State::Failed };
    let detail = e.detail().map_or_else(String::new, |d| format!(": {d}"));
    record.error = Some(format!("{}{detail}", e.message()));
    if let Err(error) = record.store(db.coordinator()) {
        tracing::warn!(%error, job = record.id, "cannot write down that a job has failed");
    }
}
