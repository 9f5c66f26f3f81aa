//! A text of a date or time, cut into pieces by the characters that they are made of.
//!
//! ```text
//!   2024-01-05T10:20:30.5 EST     date 2024-01-05 | word t | time 10:20:30.5 | word est
//!   5 jan, 99 040506-08           number 5 | word jan | number 99 | date 040506-08
//! ```
//!
//! Where pieces end is PostgreSQL's rule (its documentation, appendix B.1): other punctuation only
//! divides.

use super::words;

/// Pieces that a text has at most.
const MOST_PIECES: usize = 25;

/// What a piece looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Digits, with one point in between or in front.
    Number,
    /// Digits or letters with `-`, `/` or `.` between them. It may be a zone's name.
    Date,
    /// Digits and colons.
    Time,
    /// A sign and digits.
    Offset,
    /// Letters, after a sign if there is one.
    Word,
}

/// A piece, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

struct Cutter<'a> {
    rest: &'a str,
    text: String,
}

impl Cutter<'_> {
    fn next(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn is_next(&self, holds: impl Fn(char) -> bool) -> bool {
        self.next().is_some_and(holds)
    }

    /// Takes a character into the piece.
    fn take(&mut self) {
        if let Some(c) = self.next() {
            self.text.push(c);
            self.rest = &self.rest[c.len_utf8()..];
        }
    }

    fn take_while(&mut self, holds: impl Fn(char) -> bool) {
        while self.is_next(&holds) {
            self.take();
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// What begins with a digit.
    fn number(&mut self) -> Kind {
        let digit = |c: char| c.is_ascii_digit();
        self.take_while(digit);
        let Some(divider) = self.next() else { return Kind::Number };
        if divider == ':' {
            self.take_while(|c| c.is_ascii_digit() || c == ':' || c == '.');
            return Kind::Time;
        }
        if !matches!(divider, '-' | '/' | '.') {
            return Kind::Number;
        }
        self.take();
        if !self.is_next(digit) {
            self.take_while(|c| c.is_ascii_alphanumeric() || c == divider);
            return Kind::Date;
        }
        self.take_while(digit);
        // The same divider again: a date of three fields.
        if self.is_next(|c| c == divider) {
            self.take_while(|c| c.is_ascii_digit() || c == divider);
            return Kind::Date;
        }
        if divider == '.' { Kind::Number } else { Kind::Date }
    }

    /// What begins with a letter.
    fn word(&mut self) -> Kind {
        self.take_while(|c| c.is_ascii_alphabetic());
        let goes_on = match self.next() {
            Some('-' | '/' | '.') => true,
            Some(c) if c == '+' || c.is_ascii_digit() => !words::is_known(&self.text),
            _ => false,
        };
        if !goes_on {
            return Kind::Word;
        }
        self.take_while(|c| "+-/_.:".contains(c) || c.is_ascii_alphanumeric());
        Kind::Date
    }

    /// What begins with a sign.
    fn signed(&mut self) -> Option<Kind> {
        self.take();
        self.skip_blanks();
        if self.is_next(|c| c.is_ascii_digit()) {
            self.take_while(|c| c.is_ascii_digit() || ":.-".contains(c));
            return Some(Kind::Offset);
        }
        if !self.is_next(|c| c.is_ascii_alphabetic()) {
            return None;
        }
        self.take_while(|c| c.is_ascii_alphabetic());
        Some(Kind::Word)
    }
}

/// The pieces of a text; nothing if some character cannot stand in one.
pub(crate) fn pieces(text: &str) -> Option<Vec<Piece>> {
    let lowered = text.to_ascii_lowercase();
    let mut cutter = Cutter { rest: &lowered, text: String::new() };
    let mut pieces = Vec::new();
    while let Some(c) = cutter.next() {
        let kind = match c {
            '0'..='9' => cutter.number(),
            '.' => {
                cutter.take();
                cutter.take_while(|c| c.is_ascii_digit());
                Kind::Number
            }
            'a'..='z' => cutter.word(),
            '+' | '-' => cutter.signed()?,
            c if c.is_ascii_whitespace() || c.is_ascii_punctuation() => {
                cutter.rest = &cutter.rest[1..];
                continue;
            }
            _ => return None,
        };
        if pieces.len() == MOST_PIECES {
            return None;
        }
        pieces.push(Piece { kind, text: std::mem::take(&mut cutter.text) });
    }
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let piece = |p: Piece| format!("{:?} {}", p.kind, p.text);
        pieces(text)
            .map_or("-".into(), |all| all.into_iter().map(piece).collect::<Vec<_>>().join(" | "))
    }

    #[test]
    fn texts_are_cut_where_their_characters_change() {
        assert_eq!(
            shown("2024-01-05T10:20:30.5 EST"),
            "Date 2024-01-05 | Word t | Time 10:20:30.5 | Word est"
        );
        assert_eq!(
            shown("5 Jan, 99 040506-08"),
            "Number 5 | Word jan | Number 99 | Date 040506-08"
        );
        assert_eq!(shown("{1/2}2.5+ 08:30"), "Date 1/2 | Number 2.5 | Offset +08:30");
        assert_eq!(
            shown("j2451187 utc+3 -infinity"),
            "Word j | Number 2451187 | Date utc+3 | Word -infinity"
        );
        assert_eq!(
            shown("1.2.3 .5 America/New_York"),
            "Date 1.2.3 | Number .5 | Date america/new_york"
        );
        assert_eq!((shown("1é"), shown("+ ,"), shown("")), ("-".into(), "-".into(), String::new()));
    }
}
