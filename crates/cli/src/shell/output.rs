//! Results as a person or a program wants them.

use std::io::{self, Write};

use braid_types::json::quoted;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::wire::{Column, Values};

/// Rows that are put into one table: its columns are as wide as these need.
const TABLE_ROWS: usize = 10_000;

/// How rows are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table.
    #[default]
    Table,
    /// A line for each value.
    Expanded,
    /// Values with commas between them, as RFC 4180 has it.
    Csv,
    /// Values with tabs between them.
    Tsv,
    /// An object for each row, one line each.
    Json,
}

impl Format {
    /// By its name, as PostgreSQL's shell names some.
    pub(super) fn named(name: &str) -> Option<Format> {
        Some(match name {
            "table" | "aligned" => Format::Table,
            "expanded" => Format::Expanded,
            "csv" => Format::Csv,
            "tsv" | "unaligned" => Format::Tsv,
            "json" => Format::Json,
            _ => return None,
        })
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Expanded => "expanded",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Json => "json",
        }
    }

    /// Whether a person reads it: with counts of rows and tags of statements.
    pub(super) fn is_for_people(self) -> bool {
        matches!(self, Format::Table | Format::Expanded)
    }
}

/// How rows are shown, and what stands for NULL.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) format: Format,
    pub(super) null: String,
}

/// Takes the rows of one result.
pub(super) struct Shown<'a> {
    look: &'a Look,
    columns: &'a [Column],
    out: &'a mut dyn Write,
    waiting: Vec<Values>,
    count: usize,
}

impl<'a> Shown<'a> {
    /// A result with these columns.
    pub(super) fn begin(
        look: &'a Look,
        columns: &'a [Column],
        out: &'a mut dyn Write,
    ) -> io::Result<Shown<'a>> {
        let names = || columns.iter().map(|column| column.name.as_str());
        match look.format {
            Format::Csv => line(out, names().map(csv), ",")?,
            Format::Tsv => line(out, names().map(tsv), "\t")?,
            Format::Table | Format::Expanded | Format::Json => {}
        }
        Ok(Shown { look, columns, out, waiting: Vec::new(), count: 0 })
    }

    /// The next row.
    pub(super) fn row(&mut self, row: Values) -> io::Result<()> {
        self.count += 1;
        let null = |value: &Option<String>| value.clone().unwrap_or_else(|| self.look.null.clone());
        match self.look.format {
            Format::Csv => {
                let value = |value: &Option<String>| value.as_deref().map(csv).unwrap_or_default();
                line(self.out, row.iter().map(value), ",")
            }
            Format::Tsv => line(self.out, row.iter().map(|value| tsv(&null(value))), "\t"),
            Format::Json => {
                let field = |(column, value): (&Column, &Option<String>)| {
                    format!("{}: {}", quoted(&column.name), json_value(column, value.as_deref()))
                };
                let fields: Vec<String> = self.columns.iter().zip(&row).map(field).collect();
                writeln!(self.out, "{{{}}}", fields.join(", "))
            }
            Format::Expanded => {
                let names = self.columns.iter().map(|column| column.name.chars().count());
                let width = names.max().unwrap_or(0);
                writeln!(self.out, "-[ row {} ]-", self.count)?;
                for (column, value) in self.columns.iter().zip(&row) {
                    writeln!(self.out, "{:width$} | {}", column.name, null(value))?;
                }
                Ok(())
            }
            Format::Table => {
                self.waiting.push(row);
                if self.waiting.len() >= TABLE_ROWS { self.table() } else { Ok(()) }
            }
        }
    }

    /// That was the last one.
    pub(super) fn end(mut self) -> io::Result<()> {
        if self.look.format == Format::Table && (self.count == 0 || !self.waiting.is_empty()) {
            self.table()?;
        }
        if self.look.format.is_for_people() {
            let rows = if self.count == 1 { "row" } else { "rows" };
            writeln!(self.out, "({} {rows})", self.count)?;
        }
        Ok(())
    }

    fn table(&mut self) -> io::Result<()> {
        if self.columns.is_empty() {
            self.waiting.clear();
            return Ok(());
        }
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(self.columns.iter().map(|column| &column.name));
        for row in self.waiting.drain(..) {
            table.add_row(row.into_iter().map(|v| v.unwrap_or_else(|| self.look.null.clone())));
        }
        for (at, _) in self.columns.iter().enumerate().filter(|(_, column)| column.is_number) {
            if let Some(column) = table.column_mut(at) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        writeln!(self.out, "{table}")
    }
}

fn line(
    out: &mut dyn Write,
    values: impl Iterator<Item = String>,
    separator: &str,
) -> io::Result<()> {
    let values: Vec<String> = values.collect();
    writeln!(out, "{}", values.join(separator))
}

/// In quotes, if that is needed: an empty text is not NULL.
fn csv(value: &str) -> String {
    match value.is_empty() || value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_string(),
    }
}

fn tsv(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

/// Numbers as numbers, if JSON has them.
fn json_value(column: &Column, value: Option<&str>) -> String {
    match value {
        None => "null".into(),
        Some(number)
            if column.is_number
                && number.starts_with(|c: char| c.is_ascii_digit() || c == '-')
                && !number.ends_with("Infinity") =>
        {
            number.to_string()
        }
        Some(text) => quoted(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(format: Format, rows: &[[Option<&str>; 2]]) -> String {
        let look = Look { format, null: "NULL".into() };
        let columns = [("n", true), ("a b", false)]
            .map(|(name, is_number)| Column { name: name.into(), is_number });
        let mut out = Vec::new();
        let mut shown = Shown::begin(&look, &columns, &mut out).expect("memory");
        for row in rows {
            shown.row(row.iter().map(|v| v.map(str::to_string)).collect()).expect("memory");
        }
        shown.end().expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn each_format_shows_nulls_quotes_and_lines() {
        let rows = [[Some("7"), Some("x")], [None, Some("a\"b\nc,\td")], [Some("NaN"), Some("")]];
        assert_eq!(shown(Format::Csv, &rows), "n,a b\n7,x\n,\"a\"\"b\nc,\td\"\nNaN,\"\"\n");
        assert_eq!(shown(Format::Tsv, &rows), "n\ta b\n7\tx\nNULL\ta\"b\\nc,\\td\nNaN\t\n");
        assert_eq!(
            shown(Format::Json, &rows),
            "{\"n\": 7, \"a b\": \"x\"}\n{\"n\": null, \"a b\": \"a\\\"b\\nc,\\td\"}\n\
             {\"n\": \"NaN\", \"a b\": \"\"}\n"
        );
        assert_eq!(shown(Format::Expanded, &rows[..1]), "-[ row 1 ]-\nn   | 7\na b | x\n(1 row)\n");
        assert_eq!(
            shown(Format::Table, &rows[..1]),
            "| n | a b |\n|---|-----|\n| 7 | x   |\n(1 row)\n"
        );
        assert!(shown(Format::Table, &[]).ends_with("(0 rows)\n"));
        assert_eq!(shown(Format::Csv, &[]), "n,a b\n");
    }
}
