//! One import: from the statement to rows that wait for the commit.

use std::sync::Arc;

use braid_catalog::{Table, kv_error};
use braid_env::clock::{Clock, WallClock};
use braid_env::fs::DiskFs;
use braid_import::reader::Job as Reading;
use braid_import::{Batch, Misfit, Position, Reader, SourceFile, Target, TargetColumn};
use braid_kv::{Spilled, Ways};
use braid_parser::Import;
use braid_rows::Row;
use braid_scalar::convert_datum;
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};

use super::answer::{self, Report};
use super::checkpoint::{Note, surroundings};
use super::fill::fill;
use super::locate;
use super::memory::Memory;
use super::online;
use super::options::Options;
use super::outcome;
use super::refused::{Place, Refusal, Refused};
use crate::copy::{others, targets};
use crate::ddl::tables::apart;
use crate::dml::load_ways::{self, Mode, Sample};
use crate::dml::table_load::{TableLoad, Written};
use crate::dml::writer::TableInfo;
use crate::jobs::registry::Job;
use crate::jobs::{Record, State};
use crate::object_names::names_objects;
use crate::session::{Context, Outcome};

/// How much of an import reading is; the rest is sorting and writing.
pub(super) const READING: f64 = 0.9;

/// An import that runs.
pub(super) struct Run {
    pub(super) ctx: Context,
    pub(super) info: Arc<TableInfo>,
    /// Where each field goes.
    targets: Vec<usize>,
    /// Columns that get their defaults.
    others: Vec<usize>,
    /// Fields are the table's columns, in their order, and none of them is looked up by name:
    /// values that were read are the row.
    is_as_read: bool,
    pub(super) files: Vec<SourceFile>,
    /// How a file is read: the first one.
    pub(super) reading: Reading,
    pub(super) options: Options,
    pub(super) job: Arc<Job>,
    pub(super) memory: Memory,
    /// Bytes of all files on the disk.
    pub(super) bytes: u64,
    /// What checkpoints depend on.
    pub(super) surroundings: u64,
    /// The job may have left a checkpoint.
    again: bool,
    begun: u64,
}

/// IMPORT INTO.
pub(crate) fn import(ctx: &Context, i: &Import, statement: &str) -> SqlResult<Outcome> {
    let options = Options::read(i)?;
    if ctx.block.is_some() {
        let state = SqlState::ACTIVE_SQL_TRANSACTION;
        return Err(SqlError::new(state, "IMPORT cannot run inside a transaction block")
            .with_hint("COPY can."));
    }
    // A transaction of its own: what the job has on the disk goes when it is committed.
    let ctx = &ctx.begin_anew()?;
    let table = ctx.table(&i.table)?;
    let folder = ctx.db.import_folder()?;
    let files = files_of(folder, i)?;
    let id = i.job.map_or_else(|| ctx.db.new_ids(1), Ok)?;
    let (node, run_as) = (ctx.db.own_node(), Some(ctx.run_as()));
    let mut record = Record { node, run_as, ..Record::new(id, "import", statement) };
    if i.job.is_some() {
        let stored = Record::change(ctx.db.coordinator(), id, |_| None)?;
        if let Some(stored) = stored {
            (record.fraction, record.mark) = (stored.fraction, stored.mark);
        }
    }
    let reject = reject_file(folder, &options, &table, id)?;
    let dry_run = options.dry_run;
    if !dry_run {
        record.store(ctx.db.coordinator())?;
    }
    let jobs = ctx.db.jobs();
    let job = jobs.start_pausable(record, vec![table.id], ctx.cancel.clone());
    let run = Run::new(ctx, i, (&table, statement), files, options, job.clone());
    let done = run.and_then(|mut run| {
        let done = run.run(reject.as_deref());
        done.map_err(|e| run.memory.explain(e))
    });
    jobs.end(id);
    match done {
        Err(e) if !dry_run => Err(outcome::note_end(&ctx.db, job.record(), e)),
        done => {
            outcome::forget_files(&ctx.db, id);
            done
        }
    }
}

fn files_of(folder: &braid_import::Folder, i: &Import) -> SqlResult<Vec<SourceFile>> {
    let mut files: Vec<SourceFile> = Vec::new();
    for pattern in &i.files {
        for file in folder.files(pattern)? {
            // Patterns may meet.
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
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
        (table, statement): (&Arc<Table>, &str),
        files: Vec<SourceFile>,
        options: Options,
        job: Arc<Job>,
    ) -> SqlResult<Run> {
        let info = Arc::new(TableInfo::new(ctx, table)?);
        let memory = memory_of(ctx, &options, &info, files.len())?;
        let targets = targets(table, &i.columns)?;
        let looked_up = table.columns.iter().any(|c| names_objects(&c.ty));
        let is_as_read = !looked_up && targets.iter().copied().eq(0..table.columns.len());
        let column = |at: &usize| {
            let c = &table.columns[*at];
            // Names are looked up where the session is known.
            let ty = if names_objects(&c.ty) { SqlType::Text } else { c.ty.clone() };
            TargetColumn { name: c.name.clone(), ty }
        };
        let target = Target {
            columns: targets.iter().map(column).collect(),
            style: ctx.eval.style,
            ignore_unknown: options.ignore_unknown,
        };
        let first = files.first().cloned();
        let reading = Reading {
            fs: DiskFs::shared(),
            file: first.ok_or_else(|| SqlError::internal("an import without files"))?,
            number: 0,
            from: Position::default(),
            target: Arc::new(target),
            options: options.read.clone(),
            account: memory.account.clone(),
            memory: memory.reader(),
        };
        let bytes = files.iter().map(|f| f.size).sum();
        let surroundings = surroundings(&info, &files, statement)?;
        let ctx = Context { memory: memory.account.clone(), ..ctx.clone() };
        let begun = WallClock.monotonic_nanos();
        let again = i.job.is_some();
        Ok(Run {
            ctx,
            info,
            others: others(table, &targets),
            targets,
            is_as_read,
            files,
            reading,
            options,
            job,
            memory,
            bytes,
            surroundings,
            again,
            begun,
        })
    }

    /// How one of the files is read.
    pub(super) fn reading_of(&self, file: usize, from: Position) -> Reading {
        Reading { file: self.files[file].clone(), number: file, from, ..self.reading.clone() }
    }

    /// Bytes of rows between two checkpoints, if there are any.
    pub(super) fn checkpoint_every(&self) -> Option<u64> {
        (!self.options.dry_run).then_some(self.options.checkpoint_bytes)
    }

    fn run(&mut self, reject: Option<&std::path::Path>) -> SqlResult<Outcome> {
        let names = self.files.iter().map(|f| f.name.clone()).collect();
        let options = self.options.clone();
        let (counts, most) = (options.read.format.counts(), options.max_bad_rows);
        let mut refused = Refused::new(self.info.table(), names, counts, most, options.dry_run);
        if options.online {
            let written = online::load(self, &mut refused)?;
            return self.end(written, &refused, reject);
        }
        if !TableLoad::is_possible(&self.ctx, &self.info)? {
            let name = &self.info.table().name;
            let what = format!("IMPORT into \"{name}\", whose rows depend on each other,");
            return Err(SqlError::unsupported(what).with_hint(
                "WITH online or COPY can, or drop the constraint and add it again afterwards.",
            ));
        }
        if !options.dry_run {
            self.set_apart()?;
        }
        let (load, written) = self.fill(&mut refused)?;
        if options.dry_run {
            return Ok(answer::of_dry_run(&self.report(written), &refused));
        }
        self.job.phase("write");
        let (spilled, ways) = (load.spilled(), load.ways());
        self.finish(load, &refused)?;
        self.tell_ways(spilled, ways);
        self.end(written, &refused, reject)
    }

    /// In a cluster the table is set apart, if it is empty.
    fn set_apart(&mut self) -> SqlResult<()> {
        let table = self.info.table().clone();
        if let Some(apart) = apart::set_apart(&self.ctx, &table)? {
            (self.ctx, self.info) = apart;
        }
        Ok(())
    }

    /// Says what became of it.
    fn end(
        &self,
        written: Written,
        refused: &Refused,
        reject: Option<&std::path::Path>,
    ) -> SqlResult<Outcome> {
        if let Some(path) = reject.filter(|_| refused.count() > 0) {
            refused.write(&*self.reading.fs, path)?;
            let message = format!("{} rows are no good", refused.count());
            self.ctx.notice(format!("{message}: they are in \"{}\"", path.display()));
        }
        self.job.progress(1.0);
        Ok(answer::of_import(&self.report(written)))
    }

    fn report(&self, written: Written) -> Report {
        Report {
            job: self.job.id(),
            table: self.info.table().name.clone(),
            files: self.files.len(),
            input: self.bytes,
            written,
            nanos: WallClock.monotonic_nanos().saturating_sub(self.begun),
            memory: self.memory.peak() as u64,
        }
    }

    /// Reads everything, until no two rows want one key.
    fn fill(&mut self, refused: &mut Refused) -> SqlResult<(TableLoad, Written)> {
        let mut again = self.again;
        loop {
            let (load, note) = self.begin(again, refused)?;
            self.job.phase("read");
            let mut load = match fill(self, load, note, refused) {
                Err(e) if e.state() == SqlState::OUT_OF_MEMORY && self.memory.workers() > 1 => {
                    // Others held what a long row needed: once more, one file after the other.
                    self.work_alone(refused);
                    again = false;
                    continue;
                }
                filled => filled?,
            };
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
            drop(load);
            outcome::forget_files(&self.ctx.db, self.job.id());
            again = false;
        }
    }

    /// From now on one file is read after the other, from the first row on.
    fn work_alone(&mut self, refused: &mut Refused) {
        self.memory = self.memory.alone();
        self.reading.memory = self.memory.reader();
        self.reading.account = self.memory.account.clone();
        self.ctx.memory = self.memory.account.clone();
        refused.clear();
        outcome::forget_files(&self.ctx.db, self.job.id());
    }

    /// An empty load; or what the job had, if that still counts.
    fn begin(&self, again: bool, refused: &mut Refused) -> SqlResult<(TableLoad, Option<Note>)> {
        let memory = self.memory.load();
        let mut load = match self.options.dry_run {
            true => TableLoad::trial(&self.ctx, &self.info, memory)?,
            false => TableLoad::start(&self.ctx, &self.info, memory)?,
        };
        let (id, mode) = (self.job.id(), self.options.mode);
        load.keep_as(mode);
        if !self.options.dry_run {
            load.for_job(id);
        }
        if again {
            let note = Note::read(&self.ctx, id, &self.info, self.surroundings)?;
            match note.map(|note| (self.restore(&mut load, &note), note)) {
                Some((Ok(()), mut note)) => {
                    self.job.at_least(note.fraction);
                    refused.restore(&self.ctx, std::mem::take(&mut note.refused))?;
                    return Ok((load, Some(note)));
                }
                Some((Err(e), _)) => {
                    // Half of it may be in the load: once more, from the first row.
                    tracing::warn!(job = id, error = %e, "a checkpoint is of no use");
                    drop(load);
                    outcome::forget_files(&self.ctx.db, id);
                    return self.begin(false, refused);
                }
                None => outcome::forget_files(&self.ctx.db, id),
            }
        }
        if mode == Mode::TwoPass {
            self.job.phase("sample");
            let (targets, workers) = (TableLoad::targets(&self.info), self.memory.workers());
            let cuts = self.sample()?.cuts(targets, workers);
            if !cuts.is_empty() {
                load.cut_at(cuts);
            }
        }
        Ok((load, None))
    }

    fn restore(&self, load: &mut TableLoad, note: &Note) -> SqlResult<()> {
        let id = self.job.id();
        let swept = self
            .ctx
            .db
            .coordinator()
            .sweep_job_files(|job, name| job != id || note.needs(id, name));
        swept.map_err(kv_error)?;
        for part in &note.parts {
            let lost = || SqlError::internal("a part of a checkpoint is damaged");
            load.restore(&part.saved().ok_or_else(lost)?, part.written())?;
        }
        Ok(())
    }

    /// Keys of some of the rows. What is wrong with others is found later.
    fn sample(&self) -> SqlResult<Sample> {
        let mut sample = Sample::new(self.memory.load());
        let columns = &self.info.table().columns;
        self.each(&mut |_, item| {
            if let Item::Row(values) = item {
                // No defaults: those of sequences would be gone.
                let mut row = vec![Datum::Null; columns.len()];
                for (value, at) in values.into_iter().zip(&self.targets) {
                    // Names are not looked up.
                    let value = value.filter(|_| !names_objects(&columns[*at].ty));
                    row[*at] = value.unwrap_or(Datum::Null);
                }
                sample.add(&self.info, &row);
            }
            Ok(())
        })?;
        Ok(sample)
    }

    /// How rows went to the disk, if they did, and why so where nobody said how.
    fn tell_ways(&self, spilled: Spilled, ways: Vec<(String, Ways)>) {
        let (runs, ssts, parts) = (spilled.runs, spilled.ssts, spilled.parts);
        if runs + ssts + parts > 0 {
            let memory = self.memory.peak().div_ceil(1 << 20);
            let files = format!("{ssts} finished ssts, {runs} sorted runs, {parts} parts");
            let mode = self.options.mode;
            self.ctx.notice(format!(
                "rows went to the disk as {files}; peak memory {memory} MiB; mode {}",
                mode.name()
            ));
            if mode == Mode::Auto {
                ways.iter().for_each(|(t, ways)| self.ctx.notice(load_ways::told(t, *ways)));
            }
        }
    }

    /// Calls `f` with everything that is read, in the order of the files.
    pub(super) fn each(&self, f: &mut dyn FnMut(Place, Item) -> SqlResult<()>) -> SqlResult<()> {
        let mut left = self.options.row_limit.unwrap_or(u64::MAX);
        for file in 0..self.files.len() {
            let mut reader = Reader::start(self.reading_of(file, Position::default()))?;
            while let Some(mut batch) = reader.next_batch(&mut || Ok(()))? {
                self.job.pass(&|| self.ctx.check_cancel())?;
                for (number, item) in in_order(&mut batch) {
                    if left == 0 {
                        return Ok(());
                    }
                    left -= 1;
                    f((file, number), item)?;
                }
            }
        }
        Ok(())
    }

    /// A row of the table, with defaults for what the file does not give.
    pub(super) fn whole(&self, values: Vec<Option<Datum>>) -> Result<Row, Refusal> {
        if self.is_as_read
            && values.len() == self.targets.len()
            && values.iter().all(Option::is_some)
        {
            // Where they lie: the memory of the values becomes that of the row.
            return Ok(values.into_iter().map(|v| v.unwrap_or(Datum::Null)).collect());
        }
        let columns = &self.info.table().columns;
        let refused = |at: usize, error| {
            let column = Some(columns[at].name.clone());
            Refusal { error, column, text: None }
        };
        let default = |at| self.info.filler.default(&self.ctx, at).map_err(|e| refused(at, e));
        let mut row = Row::new();
        // Not by copies of one: a copy of a value is a call.
        row.resize_with(columns.len(), || Datum::Null);
        for (value, at) in values.into_iter().zip(&self.targets) {
            let ty = &columns[*at].ty;
            row[*at] = match value {
                Some(Datum::Null) => Datum::Null,
                Some(name) if names_objects(ty) => {
                    let (how, eval) = (CastContext::Assignment, &self.ctx.eval);
                    let converted = convert_datum(&name, &SqlType::Text, ty, how, eval);
                    converted.map_err(|e| refused(*at, e))?
                }
                Some(value) => value,
                None => default(*at)?,
            };
        }
        for at in &self.others {
            row[*at] = default(*at)?;
        }
        Ok(row)
    }

    /// Makes the load part of the commit, and that the job has succeeded.
    fn finish(&self, mut load: TableLoad, refused: &Refused) -> SqlResult<()> {
        let mut record = self.job.record();
        (record.state, record.fraction) = (State::Succeeded, 1.0);
        // Nobody else writes it, and whoever notes a failure must not wait for this transaction.
        match TableLoad::is_private(&self.ctx, self.info.table())? {
            // It is there before the commit.
            true => self.ctx.txn.put_over(record.key(), record.encode()).map_err(kv_error)?,
            false => load.along(&record.key(), &record.encode())?,
        }
        let mut taken = None;
        let finished = load.finish_or_tell(&mut taken);
        match (finished, taken) {
            (Ok(()), _) => self.ctx.commit_load(),
            (Err(e), None) => Err(e),
            (Err(e), Some(key)) => Err(locate::tell(self, &key, e, refused)),
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

/// The rows of a batch and what is none, as they stand in the file. The batch stays, so that they
/// are counted.
pub(super) fn in_order(batch: &mut Batch) -> impl Iterator<Item = (u64, Item)> + use<> {
    let mut rows = std::mem::take(&mut batch.rows).into_iter().peekable();
    let mut misfits = std::mem::take(&mut batch.misfits).into_iter().peekable();
    std::iter::from_fn(move || {
        let first = misfits.peek().map_or(u64::MAX, |m| m.number);
        match rows.next_if(|row| row.number < first) {
            Some(row) => Some((row.number, Item::Row(row.values))),
            None => misfits.next().map(|m| (m.number, Item::Misfit(m))),
        }
    })
}

/// The memory of an import. Where rows may be left out, the first one wins of those that want one
/// key, and a limit counts in order: then one file is read after the other.
fn memory_of(
    ctx: &Context,
    options: &Options,
    info: &TableInfo,
    files: usize,
) -> SqlResult<Memory> {
    if options.online {
        return Ok(Memory::unsorted(ctx));
    }
    let in_order = options.row_limit.is_some() || options.max_bad_rows > 0 || options.dry_run;
    let wanted = if in_order { 1 } else { ctx.session.maintenance_workers() + 1 };
    Memory::new(ctx, options.memory, TableLoad::targets(info), (files, wanted))
}
