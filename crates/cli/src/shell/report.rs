//! Errors and notices, with a caret where the statement is wrong.

use std::collections::BTreeMap;
use std::io;

use postgres_protocol::message::backend::ErrorFields;

use super::wire::fields;

/// Characters of a line around the place of an error.
const SHOWN: usize = 60;

/// What a server has said of an error, or a notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report(BTreeMap<u8, String>);

impl Report {
    pub(super) fn read(found: ErrorFields<'_>) -> io::Result<Report> {
        fields(found).map(Report)
    }

    fn get(&self, letter: u8) -> Option<&str> {
        self.0.get(&letter).map(String::as_str)
    }

    /// Its SQLSTATE.
    pub(super) fn state(&self) -> &str {
        self.get(b'C').unwrap_or_default()
    }

    /// All that it says; with the statement, where in it.
    pub(super) fn text(&self, statement: Option<&str>) -> String {
        let (severity, message) = (self.get(b'S'), self.get(b'M'));
        let mut out = format!("{}: {}", severity.unwrap_or("ERROR"), message.unwrap_or_default());
        if !matches!(self.state(), "" | "00000") {
            out.push_str(&format!(" (SQLSTATE {})", self.state()));
        }
        let position = self.get(b'P').and_then(|position| position.parse().ok());
        let inner = self.get(b'p').and_then(|position| position.parse().ok());
        let place = match (statement, position, self.get(b'q'), inner) {
            (Some(statement), Some(position), _, _) => caret(statement, position),
            (_, _, Some(query), Some(position)) => caret(query, position),
            _ => None,
        };
        out.extend(place.map(|place| format!("\n{place}")));
        for (letter, name) in [(b'D', "DETAIL"), (b'H', "HINT"), (b'W', "CONTEXT")] {
            out.extend(self.get(letter).map(|text| format!("\n{name}: {text}")));
        }
        out
    }
}

/// The line of a statement with a caret below the character of this number, counted from 1.
fn caret(statement: &str, position: usize) -> Option<String> {
    let at = statement.char_indices().nth(position.checked_sub(1)?).map(|(at, _)| at);
    let at =
        at.or_else(|| (statement.chars().count() + 1 == position).then_some(statement.len()))?;
    let (before, behind) = statement.split_at(at);
    let start = before.rfind('\n').map_or(0, |line| line + 1);
    let end = behind.find('\n').map_or(statement.len(), |line| at + line);
    let number = before.matches('\n').count() + 1;
    let line: Vec<char> = statement[start..end].chars().collect();
    let column = statement[start..at].chars().count();
    // A long line is cut on both sides.
    let from = column.saturating_sub(SHOWN);
    let to = (column + SHOWN).min(line.len());
    let shown: String = line[from..to].iter().map(|c| if *c == '\t' { ' ' } else { *c }).collect();
    let (left, right) =
        (if from > 0 { "..." } else { "" }, if to < line.len() { "..." } else { "" });
    let head = format!("LINE {number}: {left}");
    let indent = head.chars().count() + column - from;
    Some(format!("{head}{shown}{right}\n{:indent$}^", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_below_its_character() {
        let shown = caret("select a,\n\tb from nowhere", 17).expect("a place");
        assert_eq!(shown, "LINE 2:  b from nowhere\n              ^");
        assert_eq!(caret("séléct 1", 8).as_deref(), Some("LINE 1: séléct 1\n               ^"));
        assert_eq!(caret("x", 2).as_deref(), Some("LINE 1: x\n         ^"), "at the end");
        assert_eq!(caret("x", 3), None);
        assert_eq!(caret("x", 0), None);
        let long = format!("select {} nowhere", "a, ".repeat(100));
        let shown = caret(&long, 309).expect("a place");
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].starts_with("LINE 1: ...") && lines[0].chars().count() < 140, "{shown}");
        let at = lines[1].chars().count() - 1;
        assert_eq!(lines[0].chars().nth(at), Some('n'), "{shown}");
    }

    #[test]
    fn a_report_says_all_that_it_knows() {
        let fields =
            [(b'S', "ERROR"), (b'C', "42P01"), (b'M', "no t"), (b'P', "15"), (b'H', "make one")];
        let report = Report(fields.into_iter().map(|(k, v)| (k, v.to_string())).collect());
        let wanted = "ERROR: no t (SQLSTATE 42P01)\nLINE 1: select 1 from t\n\
            \u{20}                     ^\nHINT: make one";
        assert_eq!(report.text(Some("select 1 from t")), wanted);
        assert_eq!(report.text(None), "ERROR: no t (SQLSTATE 42P01)\nHINT: make one");
    }
}
