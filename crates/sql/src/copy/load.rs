//! Rows in: COPY FROM STDIN; files come from [`super::from_file`].

use std::sync::Arc;

use braid_catalog::{After, Table, memory_error};
use braid_env::memory::LARGE_VALUE;
use braid_kv::SavedLoad;
use braid_scalar::{Bound, bind_bool, convert_datum};
use braid_types::encodings::{Encoding, recode_binary};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};

use super::decode::Decoder;
use super::load_thread::{LoadThread, Misfit};
use super::raw_rows::{RawRow, RawRows};
use crate::ddl::tables::apart;
use crate::dml::scope_of;
use crate::dml::table_load::{FEW_BYTES, FEW_ROWS, TableLoad, Written};
use crate::dml::writer::{TableInfo, Writer};
use crate::general_query::ColumnInfo;
use crate::object_names::names_objects;
use crate::runtime::copies::{Copied, CopyProgress};
use crate::runtime::measure::Measure;
use crate::session::Context;
use braid_parser::{Copy, CopyFormat, CopyOptions};

/// How rows are written: few of them row by row, with locks of their own; many as a bulk load.
/// Until it is clear which, they wait, and nothing is locked.
enum Sink {
    Waiting {
        rows: Vec<(u64, Vec<Datum>)>,
        bytes: usize,
    },
    /// With rows that are written together soon.
    Rows {
        writer: Box<Writer>,
        rows: Vec<(u64, Vec<Datum>)>,
        bytes: usize,
    },
    Bulk {
        load: LoadThread,
        rows: Vec<(u64, Vec<Datum>)>,
        bytes: usize,
    },
}

/// Turns raw rows into rows of a table.
pub(super) struct Loader {
    ctx: Context,
    info: Arc<TableInfo>,
    sink: Sink,
    /// Where each field goes.
    targets: Vec<usize>,
    /// Columns that get their defaults.
    others: Vec<usize>,
    binary: bool,
    /// Of its texts, if it is not UTF-8.
    encoding: Option<Encoding>,
    /// What errors call the input.
    input: String,
    count: u64,
    filter: Filter,
    /// Of a job, which may go on in another process.
    job: Option<u32>,
    pub(super) progress: Arc<CopyProgress>,
}

/// So often a COPY begins anew that had to wait for another one.
const TRIES: usize = 100;

/// Which rows of the input are left out.
struct Filter {
    condition: Option<Bound>,
    /// Those whose values do not fit: ON_ERROR ignore.
    ignores: bool,
    verbose: bool,
    limit: u64,
    skipped: u64,
}

impl Filter {
    fn new(ctx: &Context, table: &Table, c: &Copy) -> SqlResult<Filter> {
        let scope = scope_of(table, &table.name, None);
        let mut none = ctx.no_params();
        let bind = |e| bind_bool(e, "WHERE", &scope, &mut none);
        let condition = c.condition.as_ref().map(bind).transpose()?;
        let used = condition.iter().flat_map(Bound::columns);
        if let Some(at) = used.into_iter().find(|at| table.columns[*at].generated.is_some()) {
            let message = "generated columns are not supported in COPY FROM WHERE conditions";
            let detail = format!("Column \"{}\" is a generated column.", table.columns[at].name);
            let state = SqlState::INVALID_COLUMN_REFERENCE;
            return Err(SqlError::new(state, message).with_detail(detail));
        }
        let (ignores, verbose) = (c.options.ignore_errors, c.options.verbose);
        let limit = c.options.reject_limit.unwrap_or(u64::MAX);
        Ok(Filter { condition, ignores, verbose, limit, skipped: 0 })
    }
}

/// The encoding of what a COPY reads or writes; `None` for UTF-8.
pub(super) fn encoding_of(ctx: &Context, options: &CopyOptions) -> Option<Encoding> {
    match options.encoding {
        Some(encoding) => Some(encoding).filter(|encoding| !encoding.is_same()),
        None => ctx.session.client_encoding(),
    }
}

/// The binary form of a value with its texts in UTF-8.
fn in_utf8(bytes: &[u8], ty: &SqlType, encoding: Encoding) -> SqlResult<Vec<u8>> {
    let mut out = Vec::new();
    let mut decode = |text: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(encoding.decode(text)?.as_bytes());
        Ok(())
    };
    recode_binary(bytes, ty, &mut decode, &mut out)?;
    Ok(out)
}

/// What errors call a COPY.
const COPY: &str = "COPY";

/// A value as an error shows it: of a long one the beginning.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// So many times a long row is there while it is taken in: as it came, cut out, and its values.
const LONG_COPIES: usize = 3;

/// With so many bytes of rows a COPY of a job is a load.
const FEW_BYTES_OF_JOB: usize = 64 << 10;

/// So much of a value is shown.
const SHOWN_CHARS: usize = 100;

impl Loader {
    pub(super) fn new(
        ctx: &Context,
        table: &Arc<Table>,
        c: &Copy,
        file: Option<u64>,
    ) -> SqlResult<Loader> {
        let targets = targets(table, &c.columns)?;
        let others = others(table, &targets);
        let filter = Filter::new(ctx, table, c)?;
        let (binary, input) = (c.options.format == CopyFormat::Binary, COPY.into());
        let info = Arc::new(TableInfo::new(ctx, table)?);
        let sink = Sink::Waiting { rows: Vec::new(), bytes: 0 };
        let who = (ctx.session.pid(), &*ctx.session.database);
        let progress = ctx.db.sessions().copies().begin(who, Some(table.id), true, file);
        let (ctx, count, job) = (ctx.clone(), 0, None);
        let encoding = encoding_of(&ctx, &c.options);
        Ok(Loader {
            ctx,
            info,
            sink,
            targets,
            others,
            binary,
            encoding,
            input,
            count,
            filter,
            job,
            progress,
        })
    }

    /// The decoder of its input.
    pub(super) fn decoder(&self, options: &CopyOptions) -> SqlResult<Decoder> {
        let columns = &self.info.table().columns;
        let names: Vec<&str> = self.targets.iter().map(|at| columns[*at].name.as_str()).collect();
        let decoder = Decoder::new(options, names.len())?.force(options, &names)?;
        let decoder = decoder.in_encoding(self.encoding);
        match options.header_match {
            true => Ok(decoder.match_header(names.iter().map(|n| n.to_string()).collect())),
            false => Ok(decoder),
        }
    }

    /// Leaves a row out because of a value.
    fn skip(&mut self, line: u64, column: usize, text: &str) -> SqlResult<()> {
        self.filter.skipped += 1;
        self.progress.add(Copied::LeftOut, 1);
        let why = "due to data type incompatibility";
        if self.filter.skipped > self.filter.limit {
            let limit = self.filter.limit;
            let message = format!("skipped more than REJECT_LIMIT ({limit}) rows {why}");
            let e = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message);
            return Err(self.place(e, line, Some((column, Some(text)))));
        }
        if self.filter.verbose {
            let name = &self.info.table().columns[column].name;
            let row = format!("at line {line} for column \"{name}\": \"{text}\"");
            self.ctx.notice(format!("skipping row {why} {row}"));
        }
        Ok(())
    }

    /// Whether a row is to be loaded.
    fn is_wanted(&self, row: &[Datum]) -> SqlResult<bool> {
        let Some(condition) = &self.filter.condition else { return Ok(true) };
        Ok(matches!(condition.eval(row, &self.ctx.eval)?, Datum::Bool(true)))
    }

    /// `COPY t, line 3, column a: "x"` as the context; of an IMPORT, without the value, as the last
    /// line of the detail.
    fn place(&self, e: SqlError, line: u64, of: Option<(usize, Option<&str>)>) -> SqlError {
        let table = self.info.table();
        let mut place = format!("{} {}, line {line}", self.input, table.name);
        if let Some((at, _)) = of {
            place.push_str(&format!(", column {}", table.columns[at].name));
        }
        if self.input == COPY {
            if let Some((_, Some(text))) = of {
                place.push_str(&format!(": \"{}\"", shortened(text)));
            }
            return e.with_context(place);
        }
        let detail = match e.detail() {
            Some(d) => format!("{d}\n{place}"),
            None => place,
        };
        e.with_detail(detail)
    }

    /// Writes rows, which are gone then.
    pub(super) fn write(&mut self, rows: &mut RawRows) -> SqlResult<()> {
        let written = rows.iter().try_for_each(|raw| self.take_in(raw));
        rows.clear();
        written.or_else(|e| {
            // What is wrong with rows before this one is told first.
            self.settle()?;
            Err(e)
        })
    }

    fn take_in(&mut self, raw: RawRow<'_>) -> SqlResult<()> {
        let (line, size) = (raw.line, raw.size());
        let mut held = self.ctx.memory.hold("a long row of COPY");
        if size >= LARGE_VALUE {
            let grown = held.grow(size * LONG_COPIES);
            grown.map_err(|e| self.place(memory_error(&e), line, None))?;
        }
        let info = self.info.clone();
        let table = info.table();
        let fields = raw.fields();
        if fields.len() < self.targets.len() {
            let at = self.targets[fields.len()];
            let e = SqlError::new(
                SqlState::BAD_COPY_FILE_FORMAT,
                format!("missing data for column \"{}\"", table.columns[at].name),
            );
            return Err(self.place(e, line, None));
        }
        if fields.len() > self.targets.len() {
            let e = SqlError::new(
                SqlState::BAD_COPY_FILE_FORMAT,
                "extra data after last expected column",
            );
            return Err(self.place(e, line, None));
        }
        let mut row = vec![Datum::Null; table.columns.len()];
        for (n, field) in fields.enumerate() {
            let at = self.targets[n];
            match self.value(field, &table.columns[at].ty) {
                Ok(value) => row[at] = value,
                Err(e) => {
                    let text = field.map(String::from_utf8_lossy);
                    if self.filter.ignores && e.state().0.starts_with("22") {
                        return self.skip(line, at, &text.unwrap_or_default());
                    }
                    let text = if self.binary { None } else { text };
                    return Err(self.place(e, line, Some((at, text.as_deref()))));
                }
            }
        }
        for at in &self.others {
            row[*at] = info.filler.default(&self.ctx, *at)?;
        }
        if !self.is_wanted(&row).map_err(|e| self.place(e, line, None))? {
            self.progress.add(Copied::LeftOut, 1);
            return Ok(());
        }
        self.put(line, row, size)?;
        self.count += 1;
        self.progress.add(Copied::Rows, 1);
        self.ctx.check_cancel()
    }

    fn put(&mut self, line: u64, row: Vec<Datum>, size: usize) -> SqlResult<()> {
        match &mut self.sink {
            Sink::Waiting { rows, bytes } => {
                rows.push((line, row));
                *bytes += size;
                // What a job has in its transaction's buffer is written with each checkpoint.
                let few = if self.job.is_some() { FEW_BYTES_OF_JOB } else { FEW_BYTES };
                if rows.len() < FEW_ROWS && *bytes < few {
                    return Ok(());
                }
                let bulk = TableLoad::is_possible(&self.ctx, &self.info)?;
                if bulk {
                    self.set_apart()?;
                }
                self.decide(bulk)
            }
            Sink::Rows { rows, bytes, .. } | Sink::Bulk { rows, bytes, .. } => {
                rows.push((line, row));
                *bytes += size;
                if rows.len() < self.ctx.txn.batch_max() && *bytes < FEW_BYTES {
                    return Ok(());
                }
                self.write_rows()
            }
        }
    }

    /// Writes the rows that wait to be written together.
    fn write_rows(&mut self) -> SqlResult<()> {
        if let Sink::Bulk { load, rows, bytes } = &mut self.sink {
            let large = std::mem::take(bytes) >= LARGE_VALUE;
            let mut added = load.add(std::mem::replace(rows, Vec::with_capacity(rows.len())));
            if large {
                added = added.and_then(|()| load.wait());
            }
            return added.map_err(|misfit| self.misplaced(misfit));
        }
        let Sink::Rows { writer, rows, bytes } = &mut self.sink else { return Ok(()) };
        *bytes = 0;
        let written = writer.insert_together(&self.info, std::mem::take(rows));
        written.map_err(|(line, e)| match line {
            Some(line) => self.place(e, line, None),
            None => e,
        })
    }

    /// Writes the rows that wait; what is wrong with any that came is known then.
    fn settle(&mut self) -> SqlResult<()> {
        self.write_rows()?;
        let Sink::Bulk { load, .. } = &mut self.sink else { return Ok(()) };
        load.wait().map_err(|misfit| self.misplaced(misfit))
    }

    fn misplaced(&self, (line, e): Misfit) -> SqlError {
        self.place(e, line, None)
    }

    /// In a cluster the table is set apart for many rows, if it is empty. Who had to wait for
    /// another one who did that goes on with the table as it is then: nothing is written yet.
    fn set_apart(&mut self) -> SqlResult<()> {
        let mut left = TRIES;
        loop {
            left -= 1;
            let known = self.info.table().clone();
            match apart::set_apart(&self.ctx, &known) {
                Ok(apart) => {
                    if let Some(apart) = apart {
                        (self.ctx, self.info) = apart;
                    }
                    return Ok(());
                }
                Err(e) if After::error(&e).is_again() && left > 0 => {
                    self.ctx.txn.rollback();
                    let ctx = self.ctx.begin_anew()?;
                    let now = ctx.catalog.table(known.id).cloned();
                    let now = now.filter(|now| now.columns == known.columns);
                    let Some(now) = now else { return Err(e) };
                    self.info = Arc::new(TableInfo::new(&ctx, &now)?);
                    self.ctx = ctx;
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Begins to write, with the rows that waited.
    fn decide(&mut self, bulk: bool) -> SqlResult<()> {
        let sink = if bulk {
            let memory = self.ctx.session.load_memory();
            let mut load = TableLoad::start(&self.ctx, &self.info, memory)?;
            self.job.iter().for_each(|job| load.for_job(*job));
            let load = LoadThread::new(load, &self.ctx.cancel);
            Sink::Bulk { load, rows: Vec::new(), bytes: 0 }
        } else {
            let mut writer = Box::new(Writer::new(&self.ctx));
            writer.use_info(&self.info)?;
            Sink::Rows { writer, rows: Vec::new(), bytes: 0 }
        };
        if let Sink::Waiting { rows, .. } = std::mem::replace(&mut self.sink, sink) {
            for (line, row) in rows {
                self.put(line, row, 0)?;
            }
        }
        Ok(())
    }

    fn value(&self, field: Option<&[u8]>, ty: &SqlType) -> SqlResult<Datum> {
        let Some(bytes) = field else { return Ok(Datum::Null) };
        let eval = &self.ctx.eval;
        let parsed = if self.binary {
            match self.encoding {
                None => Datum::from_binary(bytes, ty)?,
                Some(encoding) => Datum::from_binary(&in_utf8(bytes, ty, encoding)?, ty)?,
            }
        } else {
            let text = std::str::from_utf8(bytes).map_err(|_| {
                SqlError::new(
                    SqlState::CHARACTER_NOT_IN_REPERTOIRE,
                    "invalid byte sequence for encoding \"UTF8\"",
                )
            })?;
            if names_objects(ty) {
                let (text, how) = (Datum::text(text), CastContext::Assignment);
                return convert_datum(&text, &SqlType::Text, ty, how, eval);
            }
            return Datum::parse(text, ty, eval.style);
        };
        crate::dml::assign(&parsed, ty, ty, eval)
    }

    /// Whether rows go into a load.
    fn is_load(&self) -> bool {
        matches!(self.sink, Sink::Bulk { .. })
    }

    /// What the load has on disk, with all rows that came; `None` if it is none.
    fn save(&mut self) -> SqlResult<Option<(SavedLoad, Written)>> {
        self.write_rows()?;
        let Sink::Bulk { load, .. } = &mut self.sink else { return Ok(None) };
        let load = match load.load() {
            Ok(load) => load,
            Err(misfit) => return Err(self.misplaced(misfit)),
        };
        Ok(Some((load.save()?, load.written())))
    }

    /// Goes on with a load that another process has saved.
    fn restore(&mut self, saved: &SavedCopy) -> SqlResult<()> {
        self.decide(true)?;
        let Sink::Bulk { load, .. } = &mut self.sink else {
            return Err(SqlError::internal("a load that is none"));
        };
        let restored = load.load().map(|load| load.restore(&saved.load, saved.written));
        restored.map_err(|misfit| self.misplaced(misfit))??;
        self.count = saved.count;
        self.progress.add(Copied::Rows, saved.count);
        Ok(())
    }

    pub(super) fn finish(mut self) -> SqlResult<u64> {
        match self.filter.skipped {
            0 => {}
            1 => self.ctx.notice("1 row was skipped due to data type incompatibility"),
            n => self.ctx.notice(format!("{n} rows were skipped due to data type incompatibility")),
        }
        if matches!(self.sink, Sink::Waiting { .. }) {
            self.decide(false)?;
        }
        self.settle()?;
        match self.sink {
            Sink::Rows { mut writer, .. } => writer.finish()?,
            Sink::Bulk { load, .. } => load.finish().map_err(|(_, e)| e)?.finish()?,
            Sink::Waiting { .. } => {}
        }
        Ok(self.count)
    }
}

/// The columns that fields go to, in order: those that are named, or all that take values.
///
/// # Errors
/// 42703, 42701, and 42P10 for generated columns.
pub(crate) fn targets(table: &Table, names: &[String]) -> SqlResult<Vec<usize>> {
    let mut targets: Vec<usize> = Vec::new();
    for n in names {
        let col = table.column_named(n).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{n}\" of relation \"{}\" does not exist", table.name),
            )
        })?;
        let at = table.ordinal(col.id).expect("it is a column of the table");
        if col.generated.is_some() {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("column \"{n}\" is a generated column"),
            )
            .with_detail("Generated columns cannot be used in COPY."));
        }
        if targets.contains(&at) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{n}\" specified more than once"),
            ));
        }
        targets.push(at);
    }
    if names.is_empty() {
        targets = (0..table.columns.len())
            .filter(|i| !table.columns[*i].hidden && table.columns[*i].generated.is_none())
            .collect();
    }
    Ok(targets)
}

/// The columns that no field goes to.
pub(crate) fn others(table: &Table, targets: &[usize]) -> Vec<usize> {
    (0..table.columns.len()).filter(|at| !targets.contains(at)).collect()
}

/// A COPY in the middle, for another process to go on with.
pub(crate) struct SavedCopy {
    /// What its load has on disk.
    pub(crate) load: SavedLoad,
    /// What the load has taken.
    pub(crate) written: Written,
    /// Rows so far.
    pub(crate) count: u64,
    /// Of its data, the line that comes next.
    pub(crate) line: u64,
}

/// COPY FROM STDIN: feed it the client's data.
pub struct CopyIn {
    loader: Loader,
    decoder: Decoder,
    /// What the decoder has read.
    rows: RawRows,
    columns: Vec<ColumnInfo>,
    format: CopyFormat,
    measure: Option<Box<Measure>>,
}

impl CopyIn {
    /// What it does is counted.
    pub(crate) fn measured(mut self, measure: Box<Measure>) -> CopyIn {
        self.measure = Some(measure);
        self
    }

    pub(crate) fn start(ctx: &Context, c: &Copy) -> SqlResult<CopyIn> {
        let table = copied_table(ctx, c)?;
        let loader = Loader::new(ctx, &table, c, None)?;
        let columns: Vec<ColumnInfo> = loader
            .targets
            .iter()
            .map(|at| &table.columns[*at])
            .map(|col| ColumnInfo::computed(&col.name, col.ty.clone()))
            .collect();
        let decoder = loader.decoder(&c.options)?;
        let (format, rows) = (c.options.format, RawRows::default());
        Ok(CopyIn { loader, decoder, rows, columns, format, measure: None })
    }

    /// It is part of a job, which may go on in another process. Said first.
    pub(crate) fn for_job(&mut self, job: u32) {
        self.loader.job = Some(job);
    }

    /// The table that it fills.
    pub(crate) fn table(&self) -> u32 {
        self.loader.info.table().id
    }

    /// Whether its rows go into a load.
    pub(crate) fn is_load(&self) -> bool {
        self.loader.is_load()
    }

    /// Brings what came to the disk; `None` if that is not possible here.
    pub(crate) fn save(&mut self) -> SqlResult<Option<SavedCopy>> {
        let Some(line) = self.decoder.next_line() else { return Ok(None) };
        let (saved, count) = (self.loader.save()?, self.loader.count);
        Ok(saved.map(|(load, written)| SavedCopy { load, written, count, line }))
    }

    /// Goes on where another process has saved the same COPY, which has had no data yet.
    ///
    /// # Errors
    /// Files are gone, or not as they were.
    pub(crate) fn restore(&mut self, saved: &SavedCopy) -> SqlResult<()> {
        self.decoder.go_on_at(saved.line);
        self.loader.restore(saved)
    }

    /// Columns expected.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// Format expected.
    pub fn format(&self) -> CopyFormat {
        self.format
    }

    /// Takes a piece of data; it may end anywhere.
    pub fn feed(&mut self, data: &[u8]) -> SqlResult<()> {
        self.loader.progress.add(Copied::Bytes, data.len() as u64);
        let fed = self.decoder.feed(data, &mut self.rows);
        self.loader.write(&mut self.rows)?;
        if fed.is_err() {
            self.loader.settle()?;
        }
        fed
    }

    /// All data was fed: writes, and commits outside of a block. Returns the number of rows; the
    /// command tag is `COPY n`.
    pub fn finish(mut self: Box<Self>) -> SqlResult<u64> {
        self.decoder.finish(&mut self.rows)?;
        self.loader.write(&mut self.rows)?;
        let ctx = self.loader.ctx.clone();
        let count = self.loader.finish()?;
        if ctx.block.is_none() {
            ctx.commit_load()?;
        }
        if let Some(measure) = self.measure.take() {
            measure.end(count);
        }
        Ok(count)
    }

    /// The client gave up: nothing of it stays. Returns the error to report.
    pub fn abort(self: Box<Self>, message: &str) -> SqlError {
        let ctx = self.loader.ctx.clone();
        // A thread that fills a load works for the transaction: it comes to its end first.
        drop(self);
        if ctx.block.is_none() {
            ctx.txn.rollback();
        }
        SqlError::new(SqlState::QUERY_CANCELED, format!("COPY from stdin failed: {message}"))
    }
}

pub(crate) fn copied_table(ctx: &Context, c: &Copy) -> SqlResult<Arc<Table>> {
    match &c.table {
        Some(name) => {
            let table = ctx.seen(name)?;
            if table.materialized().is_some() {
                return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("cannot copy to materialized view \"{}\"", table.name),
                ));
            }
            Ok(table)
        }
        None => Err(SqlError::syntax("COPY FROM needs a table")),
    }
}
