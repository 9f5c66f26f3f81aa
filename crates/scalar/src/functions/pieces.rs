//! Texts cut into pieces, one after the other: for arrays, and for rows of which there may be any
//! number.
//!
//! ```text
//!   'a,b,,c'  at ','        a  b  (empty)  c
//!   'abc'     characters    a  b  c
//!   'a1b22c'  at \d+        a  b  c
//! ```

use std::sync::Arc;

use braid_types::{Datum, SqlResult};
use regex::Regex;

use super::text_of;
use crate::pattern;

/// Where a text is cut.
enum Cut {
    /// Nowhere.
    Nowhere,
    /// Behind each character.
    Characters,
    /// At each of these texts, which are in no piece.
    Delimiter(Arc<str>),
    /// At each match. An empty one at the start, at the end or right behind a cut is none.
    Matches(Arc<Regex>),
}

/// See the [module documentation](self).
pub(crate) struct Pieces {
    text: Arc<str>,
    cut: Cut,
    /// Where the next piece begins, if there is one.
    from: Option<usize>,
    /// A piece that is NULL.
    null: Option<Arc<str>>,
}

impl Pieces {
    /// Those between delimiters, as `string_to_array` cuts: (text, delimiter, text that stands for
    /// NULL). None of an empty text; `None` if the text is NULL.
    pub(crate) fn delimited(args: &[Datum]) -> Option<Pieces> {
        let Datum::Text(text) = &args[0] else { return None };
        let cut = match &args[1] {
            Datum::Text(delimiter) if delimiter.is_empty() => Cut::Nowhere,
            Datum::Text(delimiter) => Cut::Delimiter(delimiter.clone()),
            _ => Cut::Characters,
        };
        let null = match args.get(2) {
            Some(Datum::Text(null)) => Some(null.clone()),
            _ => None,
        };
        Some(Pieces { text: text.clone(), cut, from: (!text.is_empty()).then_some(0), null })
    }

    /// Those between the matches of a regular expression: (text, expression, flags).
    ///
    /// # Errors
    /// 2201B for a malformed expression, 22023 for unknown flags.
    pub(crate) fn between_matches(args: &[Datum]) -> SqlResult<Pieces> {
        let regex = pattern::regex(text_of(&args[1]), args.get(2).map_or("", text_of))?;
        let text = match &args[0] {
            Datum::Text(text) => text.clone(),
            other => Arc::from(text_of(other)),
        };
        Ok(Pieces { text, cut: Cut::Matches(regex), from: Some(0), null: None })
    }

    /// The next cut at or behind a position: where the piece before it ends, and where that behind
    /// it begins.
    fn next_cut(&self, from: usize) -> Option<(usize, usize)> {
        match &self.cut {
            Cut::Nowhere => None,
            Cut::Characters => {
                let end = from + next_character(&self.text, from)?;
                (end < self.text.len()).then_some((end, end))
            }
            Cut::Delimiter(delimiter) => {
                let at = from + self.text[from..].find(&**delimiter)?;
                Some((at, at + delimiter.len()))
            }
            Cut::Matches(regex) => {
                let mut look = from;
                loop {
                    let found = regex.find_at(&self.text, look)?;
                    let nothing = found.is_empty();
                    if !nothing || (found.start() != from && found.start() != self.text.len()) {
                        return Some((found.start(), found.end()));
                    }
                    look = found.start() + next_character(&self.text, found.start())?;
                }
            }
        }
    }
}

/// Bytes of the character at a position.
fn next_character(text: &str, at: usize) -> Option<usize> {
    text[at..].chars().next().map(char::len_utf8)
}

impl Iterator for Pieces {
    type Item = Datum;

    fn next(&mut self) -> Option<Datum> {
        let from = self.from?;
        let cut = self.next_cut(from);
        self.from = cut.map(|(_, next)| next);
        let piece = &self.text[from..cut.map_or(self.text.len(), |(end, _)| end)];
        let is_null = self.null.as_deref() == Some(piece);
        Some(if is_null { Datum::Null } else { Datum::text(piece) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: impl Iterator<Item = Datum>) -> String {
        let one = |piece: Datum| match piece {
            Datum::Text(text) => text.to_string(),
            _ => "NULL".to_string(),
        };
        pieces.map(one).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn delimiters_cut_as_those_of_std_do() {
        for text in ["", "a", ",", ",,", "a,b", "a,,b,", ",a", "ä,ö", "äöü", "a, b, c"] {
            for delimiter in [",", ", ", "ö", "zz"] {
                let args = [Datum::text(text), Datum::text(delimiter)];
                let want: Vec<&str> = match text.is_empty() {
                    true => vec![],
                    false => text.split(delimiter).collect(),
                };
                let found = shown(Pieces::delimited(&args).unwrap());
                assert_eq!(found, want.join("|"), "{text} at {delimiter}");
            }
        }
        let null = [Datum::text("aäö"), Datum::Null, Datum::text("ä")];
        assert_eq!(shown(Pieces::delimited(&null).unwrap()), "a|NULL|ö");
        let whole = [Datum::text("a,b"), Datum::text("")];
        assert_eq!(shown(Pieces::delimited(&whole).unwrap()), "a,b");
        assert!(Pieces::delimited(&[Datum::Null, Datum::text(",")]).is_none());
    }

    /// What PostgreSQL 15's regexp_split_to_array answers.
    #[test]
    fn empty_matches_cut_between_characters_only() {
        for (text, expression, want) in [
            ("the quick", r"\s*", "t|h|e|q|u|i|c|k"),
            ("the quick", r"\s+", "the|quick"),
            ("abc", "", "a|b|c"),
            ("äö", "", "ä|ö"),
            ("", "", ""),
            ("", ",", ""),
            (",a,", ",", "|a|"),
            ("123456", "1", "|23456"),
            ("123456", "6", "12345|"),
            ("123456", ".", "||||||"),
            ("aXXb", "X*", "a|b"),
            ("abcabc", "b*", "a|c|a|c"),
        ] {
            let args = [Datum::text(text), Datum::text(expression)];
            let found = shown(Pieces::between_matches(&args).unwrap());
            assert_eq!(found, want, "{text} at {expression}");
        }
    }
}
