//! What completion knows: keywords, commands, and the names of what there is.

use std::sync::Arc;

use parking_lot::Mutex;

use super::meta::COMMANDS;
use super::wire::{Came, Column, Values, Wire};
use crate::CliResult;

const KEYWORDS: &str = "\
    ADD ALL ALTER ANALYZE AND AS ASC BEGIN BETWEEN BY CASCADE CASE CHECK CLUSTER COLUMN \
    COMMIT CONSTRAINT COPY CREATE CROSS DATABASE DEFAULT DELETE DENY DESC DISTINCT DROP \
    ELSE END EXCEPT EXISTS EXPLAIN EXPORT FALSE FOREIGN FROM FULL FUNCTION GRANT GROUP \
    HAVING IMPORT IN INDEX INNER INSERT INTERLEAVE INTERSECT INTO IS JOIN KEY LATERAL LEFT \
    LIKE LIMIT NOT NULL OFFSET ON OR ORDER OUTER OVER PARENT PARTITION PRIMARY QUERY \
    RECURSIVE REFERENCES RELEASE RESET RETURNING RIGHT ROLLBACK SAVEPOINT SCHEMA SELECT \
    SEQUENCE SET SETTING SHOW TABLE THEN TO TRANSACTION TRUE TRUNCATE UNION UNIQUE UPDATE \
    USING VALUES VIEW WHEN WHERE WINDOW WITH";

/// Names of tables, columns, functions, schemas and settings. Those of the system are many, and
/// nobody types them.
const NAMES: &str = "SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN \
    ('pg_catalog', 'information_schema') UNION SELECT column_name FROM information_schema.columns \
    WHERE table_schema NOT IN ('pg_catalog', 'information_schema') UNION SELECT nspname FROM \
    pg_catalog.pg_namespace UNION SELECT name FROM pg_catalog.pg_settings UNION SELECT variable \
    FROM pg_catalog.braid_cluster_settings UNION SELECT proname FROM pg_catalog.pg_proc \
    WHERE proname ~ '^[a-z][a-z_0-9]{3,}$'";

/// What can be completed. Copies are one.
#[derive(Clone, Default)]
pub(super) struct Words(Arc<Mutex<Vec<String>>>);

impl Words {
    /// Asks for names. In a failed block there is no answer, and what was known stays.
    pub(super) fn learn(&self, wire: &mut Wire) {
        let mut words: Vec<String> = KEYWORDS.split_whitespace().map(str::to_string).collect();
        let Ok((_, rows)) = result(wire, NAMES) else { return };
        words.extend(rows.into_iter().flatten().flatten());
        *self.0.lock() = words;
    }

    /// What a word may become that was begun; where it begins in the line is given.
    pub(super) fn completions(&self, line: &str, start: usize) -> Vec<String> {
        let typed = &line[start..];
        if line.trim_start().starts_with('\\') && line[..start].trim().len() <= 1 {
            let names = COMMANDS.iter().flat_map(|(names, _)| names.split_whitespace());
            let commands = names.filter_map(|name| name.strip_prefix('\\'));
            return commands.filter(|name| name.starts_with(typed)).map(str::to_string).collect();
        }
        if typed.is_empty() {
            return Vec::new();
        }
        let lower = typed.to_lowercase();
        let words = self.0.lock();
        let fits = words.iter().filter(|word| word.to_lowercase().starts_with(&lower));
        let is_lower = typed.chars().all(|c| !c.is_uppercase());
        let as_typed =
            |word: &String| match is_lower && KEYWORDS.split_whitespace().any(|k| k == word) {
                true => word.to_lowercase(),
                false => word.clone(),
            };
        fits.map(as_typed).collect()
    }
}

/// Whether names are others behind a statement.
pub(super) fn changes_names(statement: &str) -> bool {
    let first = statement.split_whitespace().next().unwrap_or_default().to_lowercase();
    ["create", "drop", "alter", "import", "set", "rollback"].contains(&first.as_str())
}

/// The rows of a query.
pub(super) fn result(wire: &mut Wire, query: &str) -> CliResult<(Vec<Column>, Vec<Values>)> {
    wire.send(query)?;
    let (mut columns, mut rows, mut failed) = (Vec::new(), Vec::new(), None);
    while let Some(came) = wire.next()? {
        match came {
            Came::Columns(found) => columns = found,
            Came::Row(row) => rows.push(row),
            Came::Failed(report) => failed = Some(report),
            Came::CopyIn => wire.end_copy(Some("it is no query"))?,
            Came::Done(_) | Came::Nothing | Came::Copied(_) => {}
        }
    }
    match failed {
        Some(report) => Err(report.text(Some(query)).into()),
        None => Ok((columns, rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_as_they_were_begun() {
        let words = Words::default();
        *words.0.lock() = ["SELECT", "SET", "selected_rows"].map(str::to_string).to_vec();
        let of = |line: &str, start| words.completions(line, start);
        assert_eq!(of("sel", 0), ["select", "selected_rows"]);
        assert_eq!(of("SEL", 0), ["SELECT", "selected_rows"]);
        assert_eq!(of("select ", 7), [""; 0]);
        assert!(of("\\co", 1).contains(&"copy".to_string()));
        assert_eq!(of("\\d sel", 3), ["select", "selected_rows"]);
    }
}
