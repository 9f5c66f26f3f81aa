//! From lines and columns, which the parser's tokens have, to positions, which clients show.

use crate::Start;

/// The position from 1, in characters of the script, of a line and a column of it that lie within
/// a text; `None` if they do not, or the word there does not stand in the message.
pub(crate) fn of(
    text: &str,
    start: Start,
    (line, column): (u64, u64),
    message: &str,
) -> Option<usize> {
    let lines_before = usize::try_from(line.checked_sub(start.line)?).ok()?;
    let first = if lines_before == 0 { start.column } else { 1 };
    let in_line = usize::try_from(column.checked_sub(first)?).ok()?;
    let before: usize = text.split('\n').take(lines_before).map(|l| l.chars().count() + 1).sum();
    let at = before + in_line;
    let word = word(text.chars().skip(at));
    let is_named = !word.is_empty() && message.to_lowercase().contains(&word.to_lowercase());
    is_named.then_some(start.chars + at + 1)
}

/// The first name or literal of a text, without its quotes.
fn word(mut text: impl Iterator<Item = char>) -> String {
    match text.next() {
        Some(quote @ ('"' | '\'')) => text.take_while(|c| *c != quote).collect(),
        Some(c) if c.is_alphanumeric() || c == '_' => {
            let more = text.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
            std::iter::once(c).chain(more).collect()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::parse_script;
    use braid_types::{SqlError, SqlState};

    #[test]
    fn positions_count_characters_of_the_script() {
        let script = "select 'ä', 2;\n  select é,\n nosuch from t; select 1";
        let statements = parse_script(script).unwrap();
        let error = |line, column, message: &str| {
            let error = SqlError::new(SqlState::UNDEFINED_COLUMN, message).or_at(line, column);
            statements[1].locate(error).position()
        };
        let at = |what: &str| {
            script.chars().count() - script.split_once(what).unwrap().1.chars().count()
        };
        assert_eq!(error(3, 2, "column \"nosuch\" .."), Some(at("nosuch") - 5));
        assert_eq!(error(2, 10, "column \"É\" .."), Some(at("é")));
        // Another text's line, a word that it is not about, nothing there.
        assert_eq!(error(1, 1, "column \"select\" .."), None);
        assert_eq!(error(3, 2, "column \"other\" .."), None);
        assert_eq!(error(9, 2, "column \"nosuch\" .."), None);
        assert_eq!(error(3, 900, "column \"nosuch\" .."), None);
    }
}
