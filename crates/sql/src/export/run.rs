//! One export: rows into parts.

use std::io::Write;
use std::sync::Arc;

use braid_env::fs::DiskFs;
use braid_env::memory::Account;
use braid_import::written::{Packed, Part, Parts, RowGroups};
use braid_parser::{CopyOptions, Export};
use braid_rows::Row;
use braid_types::{Datum, SqlResult, SqlType, Style};

use super::options::{Format, Options};
use crate::copy::{Encoder, planned};
use crate::general_query::ColumnInfo;
use crate::object_names::with_names;
use crate::session::{Context, Outcome, Rows, RowsTag, VecRows, begun};

/// CSV text that is handed over at once.
const WRITE_BYTES: usize = 64 << 10;

/// The columns of the answer: CockroachDB's.
pub(crate) fn columns() -> Vec<ColumnInfo> {
    [("filename", SqlType::Text), ("rows", SqlType::Int8), ("bytes", SqlType::Int8)]
        .into_iter()
        .map(|(name, ty)| ColumnInfo::computed(name, ty))
        .collect()
}

/// EXPORT INTO: a line for each file.
pub(crate) fn export(ctx: &Context, e: &Export) -> SqlResult<Outcome> {
    let options = Options::read(e)?;
    let source = planned(ctx, e.table.as_ref(), &[], e.query.as_deref())?;
    let columns = source.columns().iter().map(|c| (c.name.clone(), c.ty.clone())).collect();
    let folder = ctx.db.import_folder()?;
    let id = ctx.db.new_ids(1)?;
    let (suffix, compression) = match &options.format {
        Format::Csv(_, compression) => (".csv", *compression),
        // Compressed page by page.
        Format::Parquet(_) => (".parquet", braid_import::Compression::None),
    };
    let (columns, mut stream) = with_names(ctx, columns, begun(ctx, source.stream(ctx)?)?);
    let fs = DiskFs::shared();
    let parts = Parts::start(fs, folder, &e.folder, id, suffix, compression)?;
    let mut writing = Writing {
        options,
        columns,
        memory: ctx.memory.clone(),
        parts,
        open: None,
        rows: 0,
        total: 0,
    };
    // A file without rows tells that there were none, and what columns they would have.
    writing.begin()?;
    while let Some(rows) = stream.next_batch()? {
        ctx.check_cancel()?;
        for row in &rows {
            writing.add(row)?;
        }
    }
    writing.end()?;
    ctx.check_cancel()?;
    let total = writing.total;
    Ok(answer(&writing.parts.publish()?, total))
}

fn answer(parts: &[Part], total: u64) -> Outcome {
    let count = |n: u64| Datum::Int8(i64::try_from(n).unwrap_or(i64::MAX));
    let line = |p: &Part| vec![Datum::text(p.name.as_str()), count(p.rows), count(p.bytes)];
    let rows: Vec<Row> = parts.iter().map(line).collect();
    let tag = RowsTag::Fixed(format!("EXPORT {total}"));
    Outcome::Rows(Rows::new(Box::new(VecRows::new(rows)), tag))
}

/// Parts that are being written.
struct Writing {
    options: Options,
    columns: Vec<(String, SqlType)>,
    memory: Arc<Account>,
    parts: Parts,
    open: Option<Open>,
    /// Of the open part.
    rows: u64,
    total: u64,
}

/// The part that takes rows.
enum Open {
    Csv(Box<CsvPart>),
    Parquet(Box<RowGroups>),
}

struct CsvPart {
    sink: Packed,
    encoder: Encoder,
    text: Vec<u8>,
    /// Bytes handed over, before they are compressed.
    written: usize,
}

impl Writing {
    fn begin(&mut self) -> SqlResult<()> {
        let sink = self.parts.begin()?;
        self.rows = 0;
        self.open = Some(match &self.options.format {
            Format::Csv(csv, _) => {
                Open::Csv(Box::new(CsvPart::new(sink, csv, self.columns.clone())?))
            }
            Format::Parquet(codec) => {
                let name = self.parts.open_name();
                let groups = RowGroups::new(sink, &name, &self.columns, codec, &self.memory)?;
                Open::Parquet(Box::new(groups))
            }
        });
        Ok(())
    }

    fn add(&mut self, row: &Row) -> SqlResult<()> {
        if self.rows >= self.options.chunk_rows || self.bytes() >= self.options.chunk_bytes {
            self.end()?;
            self.begin()?;
        }
        match &mut self.open {
            Some(Open::Csv(csv)) => csv.add(row, &self.parts)?,
            Some(Open::Parquet(groups)) => groups.add(row)?,
            None => {}
        }
        self.rows += 1;
        self.total += 1;
        Ok(())
    }

    fn bytes(&self) -> usize {
        match &self.open {
            Some(Open::Csv(csv)) => csv.written + csv.text.len(),
            Some(Open::Parquet(groups)) => groups.bytes(),
            None => 0,
        }
    }

    fn end(&mut self) -> SqlResult<()> {
        let sink = match self.open.take() {
            Some(Open::Csv(csv)) => csv.finish(&self.parts)?,
            Some(Open::Parquet(groups)) => groups.finish()?,
            None => return Ok(()),
        };
        self.parts.end(sink, self.rows)
    }
}

impl CsvPart {
    fn new(sink: Packed, csv: &CopyOptions, columns: Vec<(String, SqlType)>) -> SqlResult<CsvPart> {
        // Not the session's style: whoever reads the files has another session.
        let encoder = Encoder::new(csv, columns, Style::utc())?;
        let mut text = Vec::with_capacity(WRITE_BYTES);
        encoder.start(&mut text);
        Ok(CsvPart { sink, encoder, text, written: 0 })
    }

    fn add(&mut self, row: &Row, parts: &Parts) -> SqlResult<()> {
        self.encoder.row(row, &mut self.text);
        if self.text.len() >= WRITE_BYTES {
            self.write_out(parts)?;
        }
        Ok(())
    }

    fn write_out(&mut self, parts: &Parts) -> SqlResult<()> {
        self.sink.write_all(&self.text).map_err(|e| parts.failed(&e))?;
        self.written += self.text.len();
        self.text.clear();
        Ok(())
    }

    fn finish(mut self, parts: &Parts) -> SqlResult<Packed> {
        self.encoder.end(&mut self.text);
        self.write_out(parts)?;
        Ok(self.sink)
    }
}
