//! What IMPORT answers: one row about the job, or the report of a dry run.

use braid_parser::Import;
use braid_types::{Datum, SqlType};

use super::options::is_dry_run;
use super::refused::Refused;
use crate::dml::table_load::Written;
use crate::general_query::ColumnInfo;
use crate::session::{Outcome, Rows, RowsTag, VecRows};

/// What there is to say when an import ends.
pub(super) struct Report {
    pub(super) job: u32,
    pub(super) table: String,
    pub(super) files: usize,
    /// Bytes of the files.
    pub(super) input: u64,
    pub(super) written: Written,
    pub(super) nanos: u64,
    /// Most bytes that the statement held.
    pub(super) memory: u64,
}

/// The columns of an answer.
pub(crate) fn columns(i: &Import) -> Vec<ColumnInfo> {
    let named = |columns: &[(&str, SqlType)]| {
        columns.iter().map(|(n, ty)| ColumnInfo::computed(*n, ty.clone())).collect()
    };
    if is_dry_run(i) {
        return named(&[("property", SqlType::Text), ("value", SqlType::Text)]);
    }
    named(&[
        ("job_id", SqlType::Int8),
        ("status", SqlType::Text),
        ("fraction_completed", SqlType::Float8),
        ("rows", SqlType::Int8),
        ("index_entries", SqlType::Int8),
        ("bytes", SqlType::Int8),
    ])
}

/// The answer of an import that was done.
pub(super) fn of_import(report: &Report) -> Outcome {
    let Written { rows, entries, bytes } = report.written;
    let count = |n: u64| Datum::Int8(i64::try_from(n).unwrap_or(i64::MAX));
    let row = vec![
        Datum::Int8(i64::from(report.job)),
        Datum::text("succeeded"),
        Datum::Float8(1.0),
        count(rows),
        count(entries),
        count(bytes),
    ];
    let tag = RowsTag::Fixed(format!("IMPORT {rows}"));
    Outcome::Rows(Rows::new(Box::new(VecRows::new(vec![row])), tag))
}

/// The answer of a statement that does not wait for its import.
pub(super) fn of_start(job: u32) -> Outcome {
    let nothing = Datum::Null;
    let row = vec![
        Datum::Int8(i64::from(job)),
        Datum::text("running"),
        Datum::Float8(0.0),
        nothing.clone(),
        nothing.clone(),
        nothing,
    ];
    let tag = RowsTag::Fixed("IMPORT 0".into());
    Outcome::Rows(Rows::new(Box::new(VecRows::new(vec![row])), tag))
}

/// The report of a dry run.
pub(super) fn of_dry_run(report: &Report, refused: &Refused) -> Outcome {
    let Written { rows, entries, bytes } = report.written;
    let rate = rows as f64 / (report.nanos.max(1) as f64 / 1e9);
    let mut out: Vec<(String, String)> = vec![
        ("table".into(), report.table.clone()),
        ("files".into(), report.files.to_string()),
        ("bytes of files".into(), report.input.to_string()),
        ("rows".into(), (rows + refused.count() - refused.taken()).to_string()),
        ("rows that fit".into(), (rows - refused.taken()).to_string()),
        ("rows that do not fit".into(), refused.count().to_string()),
        ("rows per second".into(), format!("{rate:.0}")),
        ("index entries".into(), entries.to_string()),
        ("bytes before compression".into(), bytes.to_string()),
        ("peak memory in bytes".into(), report.memory.to_string()),
    ];
    for (place, r) in refused.all() {
        let column = r.column.as_deref().or(r.error.column());
        let place = refused.place(*place, column);
        let (state, message) = (r.error.state().0, r.error.message());
        let detail = r.error.detail().map(|d| format!(" ({d})")).unwrap_or_default();
        out.push((place, format!("{state}: {message}{detail}")));
    }
    let hidden = refused.count() - refused.all().count() as u64;
    if hidden > 0 {
        out.push(("more rows that do not fit".into(), hidden.to_string()));
    }
    let rows = out.into_iter().map(|(p, v)| vec![Datum::text(p), Datum::text(v)]).collect();
    let tag = RowsTag::Fixed("IMPORT 0".into());
    Outcome::Rows(Rows::new(Box::new(VecRows::new(rows)), tag))
}
