//! Rows out: COPY TO STDOUT, COPY TO 'file'.

use std::sync::Arc;

use braid_env::fs::{DiskFs, FileSystem};
use braid_types::{SqlError, SqlResult, SqlState};

use super::encode::Encoder;
use super::load::encoding_of;
use crate::dml::WithPlan;
use crate::dml::source::Source;
use crate::general_query::{ColumnInfo, RowStream};
use crate::object_names::with_names;
use crate::runtime::copies::{Copied, CopyProgress};
use crate::runtime::measure::Measure;
use crate::session::{Context, VecRows, begun};
use braid_parser::{Copy, CopyFormat, Name, parse_query};
use braid_rows::Row;
use braid_types::quote_ident;
use sqlparser::ast;

/// A file is written in pieces of this size.
const WRITE_BYTES: usize = 64 << 10;

/// COPY TO STDOUT: pull the data.
pub struct CopyOut {
    columns: Vec<ColumnInfo>,
    format: CopyFormat,
    encoder: Encoder,
    stream: Box<dyn RowStream>,
    /// Rows that were pulled and not given yet.
    batch: std::vec::IntoIter<Row>,
    rows: u64,
    begun: bool,
    ended: bool,
    measure: Option<Box<Measure>>,
    progress: Arc<CopyProgress>,
    wrote: bool,
}

/// Whether a COPY is of a statement that writes.
pub(crate) fn writes(c: &Copy) -> bool {
    c.to && c.query.as_ref().is_some_and(|query| crate::dml::with::writes(query))
}

/// The rows that a statement which writes returns, once it has been run to its end.
fn returned(ctx: &Context, query: &ast::Query) -> SqlResult<(Vec<ColumnInfo>, Vec<Row>)> {
    let plan = WithPlan::new(ctx, query, &mut ctx.no_params())?;
    let columns = plan.columns().ok_or_else(|| {
        let text = "COPY query must have a RETURNING clause";
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
    })?;
    Ok((columns, plan.run(ctx)?.returning.unwrap_or_default()))
}

/// The query behind a COPY TO or EXPORT: of a table, or as it is given.
///
/// # Errors
/// Those of planning; 0A000 for statements that write; 42809 for what has no rows of its own.
pub(crate) fn planned(
    ctx: &Context,
    table: Option<&Name>,
    columns: &[String],
    query: Option<&ast::Query>,
) -> SqlResult<Source> {
    if let Some(q) = query {
        let text = "EXPORT of statements that write is not supported";
        let hint = "Run the statement by itself: it returns the same rows.";
        crate::dml::with::refuse(q, text, Some(hint))?;
        return Source::plan_query(ctx, q);
    }
    let Some(name) = table else {
        return Err(SqlError::syntax("COPY TO needs a table or a query"));
    };
    let table = ctx.seen(name)?;
    if table.materialized().is_some() {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot copy from materialized view \"{}\"", table.name),
        )
        .with_hint("Try the COPY (SELECT ...) TO variant."));
    }
    let names: Vec<String> = if columns.is_empty() {
        table.visible_columns().map(|x| quote_ident(&x.name)).collect()
    } else {
        columns.iter().map(|n| quote_ident(n)).collect()
    };
    let from: Vec<_> = name.iter().map(|n| quote_ident(n)).collect();
    let text = format!("SELECT {} FROM {}", names.join(", "), from.join("."));
    Source::plan_query(ctx, &*parse_query(&text)?)
}

impl CopyOut {
    pub(crate) fn start(ctx: &Context, c: &Copy) -> SqlResult<CopyOut> {
        let wrote = writes(c);
        let (columns, stream): (_, Box<dyn RowStream>) = match &c.query {
            Some(query) if wrote => {
                let (columns, rows) = returned(ctx, query)?;
                (columns, Box::new(VecRows::new(rows)))
            }
            query => {
                let source = planned(ctx, c.table.as_ref(), &c.columns, query.as_deref())?;
                (source.columns().to_vec(), begun(ctx, source.stream(ctx)?)?)
            }
        };
        let named = columns.iter().map(|c| (c.name.clone(), c.ty.clone())).collect();
        let (named, stream) = match c.options.format {
            CopyFormat::Binary => (named, stream),
            _ => with_names(ctx, named, stream),
        };
        let encoder = Encoder::new(&c.options, named, ctx.eval.style)?
            .in_encoding(encoding_of(ctx, &c.options));
        let who = (ctx.session.pid(), &*ctx.session.database);
        let table = c.table.as_ref().map(|name| ctx.seen(name)).transpose()?;
        let file = c.file.as_ref().map(|_| 0);
        let copies = ctx.db.sessions().copies();
        let progress = copies.begin(who, table.map(|t| t.id), false, file);
        Ok(CopyOut {
            columns,
            format: c.options.format,
            encoder,
            stream,
            batch: Vec::new().into_iter(),
            rows: 0,
            begun: false,
            ended: false,
            measure: None,
            progress,
            wrote,
        })
    }

    /// What it does is counted.
    pub(crate) fn measured(mut self, measure: Box<Measure>) -> CopyOut {
        self.measure = Some(measure);
        self
    }

    /// Whether its rows are those of a statement that has written.
    pub(crate) fn wrote(&self) -> bool {
        self.wrote
    }

    /// Columns given.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// Format given.
    pub fn format(&self) -> CopyFormat {
        self.format
    }

    /// Rows given so far; the command tag is `COPY n`.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Replaces `out` by the next row, or by what stands before the first or after the last one;
    /// `false` at the end. As in PostgreSQL, the head of the binary format comes with the first
    /// row and its mark of the end alone.
    pub fn next_row(&mut self, out: &mut Vec<u8>) -> SqlResult<bool> {
        out.clear();
        if self.ended {
            return Ok(false);
        }
        if !self.begun {
            self.begun = true;
            self.encoder.start_encoded(out)?;
            if !out.is_empty() && self.format != CopyFormat::Binary {
                return Ok(true);
            }
        }
        loop {
            if let Some(row) = self.batch.next() {
                self.rows += 1;
                self.encoder.row_encoded(&row, out)?;
                self.progress.add(Copied::Rows, 1);
                self.progress.add(Copied::Bytes, out.len() as u64);
                return Ok(true);
            }
            let Some(rows) = self.stream.next_batch()? else { break };
            self.batch = rows.into_iter();
        }
        self.ended = true;
        if let Some(measure) = self.measure.take() {
            measure.end(self.rows);
        }
        self.encoder.end(out);
        Ok(!out.is_empty())
    }

    /// Writes all of it to a file of the node's folder for imports; the command tag.
    pub(crate) fn write_file(mut self, ctx: &Context, c: &Copy) -> SqlResult<String> {
        let path = c.file.as_deref().unwrap_or_default();
        let target = ctx.db.import_folder()?.written_file(path)?;
        let failed = |e: std::io::Error| {
            SqlError::new(SqlState::IO_ERROR, format!("could not write to file \"{path}\": {e}"))
        };
        let file = DiskFs.create(&target).map_err(failed)?;
        let (mut offset, mut row, mut data) = (0, Vec::new(), Vec::new());
        loop {
            let more = self.next_row(&mut row)?;
            data.extend_from_slice(&row);
            if data.len() >= WRITE_BYTES || !more {
                ctx.check_cancel()?;
                file.write_at(&data, offset).map_err(failed)?;
                offset += data.len() as u64;
                data.clear();
            }
            if !more {
                break;
            }
        }
        file.sync_data().map_err(failed)?;
        Ok(format!("COPY {}", self.rows))
    }
}
