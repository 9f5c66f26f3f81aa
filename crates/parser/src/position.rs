//! From lines and columns, which the parser's tokens have, to positions, which clients show.

use braid_types::{Mark, Place, SqlError, SqlState};

use crate::Start;

/// The position from 1, in characters of the script, of a place that lies within a text; `None` if
/// it does not, or something else stands there.
pub(crate) fn of(text: &str, start: Start, place: &Place, message: &str) -> Option<usize> {
    let lines_before = usize::try_from(place.line.checked_sub(start.line)?).ok()?;
    let first = if lines_before == 0 { start.column } else { 1 };
    let in_line = usize::try_from(place.column.checked_sub(first)?).ok()?;
    let before: usize = text.split('\n').take(lines_before).map(|l| l.chars().count() + 1).sum();
    let at = before + in_line;
    let at = match &place.mark {
        Mark::Named => {
            let word = word(text.chars().skip(at));
            let named = message.to_lowercase().contains(&word.to_lowercase());
            (!word.is_empty() && named).then_some(at)
        }
        Mark::Word(wanted) => stands(text.chars().skip(at), wanted).then_some(at),
        Mark::Behind(words) => {
            let before: Vec<char> = text.chars().take(at).collect();
            in_front(&before, words)
        }
    };
    at.map(|at| start.chars + at + 1)
}

/// The position of a name that the error says is unknown, if it stands in the text only once.
pub(crate) fn of_only(text: &str, start: Start, error: &SqlError) -> Option<usize> {
    let unknown =
        [SqlState::UNDEFINED_COLUMN, SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_FUNCTION];
    if !unknown.contains(&error.state()) {
        return None;
    }
    let message = error.message();
    let name = match message.split('"').nth(1) {
        Some(quoted) => quoted,
        None => message.split(['(', ' ']).nth(1)?,
    };
    let chars: Vec<char> = text.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let inside = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric() || "_$\"'".contains(*c));
    let mut found = (0..chars.len()).filter(|at| {
        let end = at + name.len();
        let same = |(a, b): (&char, &char)| a.to_lowercase().eq(b.to_lowercase());
        end <= chars.len()
            && chars[*at..end].iter().zip(&name).all(same)
            && !inside(at.checked_sub(1).and_then(|at| chars.get(at)))
            && !inside(chars.get(end))
    });
    let at = found.next().filter(|_| !name.is_empty())?;
    found.next().is_none().then_some(start.chars + at + 1)
}

/// The first name or literal of a text, without its quotes.
fn word(mut text: impl Iterator<Item = char>) -> String {
    match text.next() {
        Some(quote @ ('"' | '\'')) => text.take_while(|c| *c != quote).collect(),
        Some('*') => "*".to_string(),
        Some(c) if c.is_alphanumeric() || matches!(c, '_' | '$') => {
            let more = text.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
            std::iter::once(c).chain(more).collect()
        }
        _ => String::new(),
    }
}

/// Whether a text begins with a sign or a word, or with a part of it that is one: `12` of `12.5`.
fn stands(mut text: impl Iterator<Item = char> + Clone, wanted: &str) -> bool {
    let word = word(text.clone());
    match word.is_empty() {
        true if wanted.is_empty() => text.next() == Some('\''),
        true => text.take(wanted.chars().count()).eq(wanted.chars()),
        false => wanted.to_lowercase().starts_with(&word.to_lowercase()),
    }
}

/// Where words begin that end a text, but for space and opening brackets between and behind them.
fn in_front(text: &[char], words: &str) -> Option<usize> {
    let mut end = text.len();
    for word in words.rsplit(' ') {
        let between = |c: char| c.is_whitespace() || ("([".contains(c) && word != "(");
        while end > 0 && between(text[end - 1]) {
            end -= 1;
        }
        let ends = |word: &str| {
            let chars: Vec<char> = word.chars().collect();
            let at = end.checked_sub(chars.len())?;
            let same = text[at..end].iter().zip(&chars).all(|(a, b)| a.eq_ignore_ascii_case(b));
            same.then_some(at)
        };
        end = ends(word).or_else(|| (word == "<>").then(|| ends("!=")).flatten())?;
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if word.starts_with(is_name) && end > 0 && is_name(text[end - 1]) {
            return None;
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_script;

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

    /// What stands behind the found place, of a statement with a mark at the place itself.
    fn found(marked: &str, mark: Mark) -> Option<String> {
        let (before, after) = marked.split_once('^').unwrap();
        let script = format!("{before}{after}");
        let place = Place { line: 1, column: before.chars().count() as u64 + 1, mark };
        let error = SqlError::new(SqlState::UNDEFINED_FUNCTION, "..").or_place(Some(place));
        let position = parse_script(&script).unwrap()[0].locate(error).position()?;
        Some(script.chars().skip(position - 1).collect())
    }

    #[test]
    fn signs_and_key_words_stand_in_front_of_a_place() {
        let behind = |marked: &str, words: &str| found(marked, Mark::Behind(words.into()));
        assert_eq!(behind("select a = ((^b))", "=").unwrap(), "= ((b))");
        assert_eq!(behind("select a != ^b", "<>").unwrap(), "!= b");
        assert_eq!(behind("select a - -^b", "- -").unwrap(), "- -b");
        assert_eq!(behind("select a NOT  Like ^b", "not like").unwrap(), "NOT  Like b");
        assert_eq!(behind("select a = any(^b)", "= any").unwrap(), "= any(b)");
        assert_eq!(behind("select unlike, ^b", "like"), None);
        assert_eq!(behind("select a + ^b", "="), None);
    }

    #[test]
    fn words_and_the_beginnings_of_literals_stand_at_a_place() {
        let at = |marked: &str, word: &str| found(marked, Mark::Word(word.into()));
        assert_eq!(at("select ^12.5, 1", "12.5").unwrap(), "12.5, 1");
        assert_eq!(at("select ^'it''s'", "it's").unwrap(), "'it''s'");
        assert_eq!(at("select ^''", "").unwrap(), "''");
        assert_eq!(at("select ^* from t", "*").unwrap(), "* from t");
        assert_eq!(at("select a^::int", "::").unwrap(), "::int");
        assert_eq!(at("select ^a", "b"), None);
    }

    #[test]
    fn an_unknown_name_that_stands_only_once_is_found_in_what_was_rewritten() {
        let position = |script: &str, message: &str| {
            let error = SqlError::new(SqlState::UNDEFINED_COLUMN, message);
            let position = parse_script(script).unwrap()[0].locate(error).position()?;
            Some(script.chars().skip(position - 1).collect::<String>())
        };
        let update = "update t set a = u.no from u";
        assert_eq!(position(update, "column u.no does not exist").unwrap(), "u.no from u");
        assert_eq!(position(update, "column \"no\" does not exist").unwrap(), "no from u");
        assert_eq!(position(update, "column \"u\" does not exist"), None);
        assert_eq!(position("select no", "column \"no\" does not exist"), None);
    }
}
