//! Results as tables that fit the terminal.

use comfy_table::{ContentArrangement, Table, presets};
use postgres::{SimpleQueryMessage, SimpleQueryRow};

/// Prints what a simple query answered. Returns the number of rows, if it was a query.
pub(super) fn print(messages: &[SimpleQueryMessage], expanded: bool) {
    let mut rows: Vec<&SimpleQueryRow> = Vec::new();
    let mut columns: Option<Vec<String>> = None;
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(description) => {
                columns = Some(description.iter().map(|c| c.name().to_string()).collect());
                rows.clear();
            }
            SimpleQueryMessage::Row(row) => rows.push(row),
            SimpleQueryMessage::CommandComplete(count) => match columns.take() {
                Some(columns) => {
                    print_rows(&columns, &rows, expanded);
                    rows.clear();
                }
                None => println!("OK, {count} rows"),
            },
            _ => {}
        }
    }
}

fn print_rows(columns: &[String], rows: &[&SimpleQueryRow], expanded: bool) {
    if expanded {
        for (i, row) in rows.iter().enumerate() {
            println!("-[ row {} ]-", i + 1);
            let width = columns.iter().map(|c| c.chars().count()).max().unwrap_or(0);
            for (j, name) in columns.iter().enumerate() {
                println!("{name:width$} | {}", row.get(j).unwrap_or("NULL"));
            }
        }
    } else if columns.is_empty() {
        println!("({} rows without columns)", rows.len());
        return;
    } else {
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(columns);
        for row in rows {
            table.add_row((0..columns.len()).map(|j| row.get(j).unwrap_or("NULL")));
        }
        println!("{table}");
    }
    println!("({} row{})", rows.len(), if rows.len() == 1 { "" } else { "s" });
}
