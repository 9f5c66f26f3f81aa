//! Rows out: COPY TO STDOUT, COPY TO 'file'.

use std::path::Path;

use braid_env::fs::{DiskFs, FileSystem};
use braid_types::{SqlError, SqlResult, SqlState};

use super::encode::Encoder;
use crate::dml::source::Source;
use crate::general_query::{ColumnInfo, RowStream};
use crate::parse::{Copy, CopyFormat, parse_query};
use crate::quote::quote_ident;
use crate::session::Context;

/// COPY TO STDOUT: pull the data.
pub struct CopyOut {
    columns: Vec<ColumnInfo>,
    format: CopyFormat,
    encoder: Encoder,
    stream: Box<dyn RowStream>,
    rows: u64,
    begun: bool,
    ended: bool,
}

impl CopyOut {
    pub(crate) fn start(ctx: &Context, c: &Copy) -> SqlResult<CopyOut> {
        let source = match (&c.query, &c.table) {
            (Some(q), _) => Source::plan_query(ctx, q)?,
            (None, Some(name)) => {
                let table = ctx.table(name)?;
                let names: Vec<String> = if c.columns.is_empty() {
                    table.visible_columns().map(|x| quote_ident(&x.name)).collect()
                } else {
                    c.columns.iter().map(|n| quote_ident(n)).collect()
                };
                let from: Vec<_> = name.iter().map(|n| quote_ident(n)).collect();
                let text = format!("SELECT {} FROM {}", names.join(", "), from.join("."));
                Source::plan_query(ctx, &*parse_query(&text)?)?
            }
            (None, None) => return Err(SqlError::syntax("COPY TO needs a table or a query")),
        };
        let columns = source.columns().to_vec();
        let named = columns.iter().map(|c| (c.name.clone(), c.ty.clone())).collect();
        let encoder = Encoder::new(&c.options, named, ctx.eval.style)?;
        let stream = source.stream(ctx)?;
        Ok(CopyOut {
            columns,
            format: c.options.format,
            encoder,
            stream,
            rows: 0,
            begun: false,
            ended: false,
        })
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

    /// The next piece of data; `None` at the end.
    pub fn next_chunk(&mut self) -> SqlResult<Option<Vec<u8>>> {
        if self.ended {
            return Ok(None);
        }
        let mut out = Vec::new();
        if !self.begun {
            self.begun = true;
            self.encoder.start(&mut out);
        }
        match self.stream.next_batch()? {
            Some(rows) => {
                self.rows += rows.len() as u64;
                for row in &rows {
                    self.encoder.row(row, &mut out);
                }
            }
            None => {
                self.ended = true;
                self.encoder.end(&mut out);
            }
        }
        Ok(if out.is_empty() { None } else { Some(out) })
    }

    /// Writes all of it to a file of the server's machine; the command tag.
    pub(crate) fn write_file(mut self, ctx: &Context, c: &Copy) -> SqlResult<String> {
        let path = c.file.as_deref().unwrap_or_default();
        let failed = |e: std::io::Error| {
            SqlError::new(SqlState::IO_ERROR, format!("could not write to file \"{path}\": {e}"))
        };
        let file = DiskFs.create(Path::new(path)).map_err(failed)?;
        let mut offset = 0;
        while let Some(data) = self.next_chunk()? {
            ctx.check_cancel()?;
            file.write_at(&data, offset).map_err(failed)?;
            offset += data.len() as u64;
        }
        file.sync_data().map_err(failed)?;
        Ok(format!("COPY {}", self.rows))
    }
}
