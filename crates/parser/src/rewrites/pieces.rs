//! A script cut into pieces as a lexer would cut it, for what is rewritten before there are tokens.
//!
//! ```text
//!   select E'a\'b', $$c'd$$ -- e      s|e|l|e|c|t| |E'a\'b'|,| |$$c'd$$| |-- e
//! ```

/// A text or name in quotes, a comment, or one other character.
pub(crate) struct Piece<'a> {
    /// Where it begins.
    pub(crate) at: usize,
    pub(crate) text: &'a str,
    /// What stands right before it is a word, or a number.
    pub(crate) in_word: bool,
    /// It is a text in which a backslash begins an escape.
    pub(crate) escapes: bool,
}

/// The pieces of a script, in order.
pub(crate) struct Pieces<'a> {
    sql: &'a str,
    at: usize,
    in_word: bool,
    /// A backslash begins an escape in texts without E, too.
    escapes_everywhere: bool,
}

impl<'a> Pieces<'a> {
    pub(crate) fn of(sql: &'a str) -> Pieces<'a> {
        Pieces { sql, at: 0, in_word: false, escapes_everywhere: false }
    }

    /// As they are with `standard_conforming_strings` off.
    pub(crate) fn with_escapes_everywhere(sql: &'a str) -> Pieces<'a> {
        Pieces { escapes_everywhere: true, ..Pieces::of(sql) }
    }

    /// The next piece begins here: what lies before was taken as a whole.
    pub(crate) fn go_on_at(&mut self, at: usize) {
        (self.at, self.in_word) = (at, false);
    }

    /// Whether a backslash escapes in the text that begins here: not in bits, `b'01'`.
    fn escapes_here(&self) -> bool {
        let word = self.sql[..self.at].rsplit(|c| !is_of_word(c)).next().unwrap_or("");
        self.escapes_everywhere && !matches!(word, "b" | "B" | "x" | "X")
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let (rest, in_word) = (&self.sql[self.at..], self.in_word);
        let c = rest.chars().next()?;
        let marked = !in_word && matches!(c, 'e' | 'E') && rest[1..].starts_with('\'');
        let escapes = marked || (c == '\'' && self.escapes_here());
        let length = match c {
            _ if marked => quoted(&rest[1..], '\'', true).map(|n| n + 1),
            '\'' => quoted(rest, c, escapes),
            '"' => quoted(rest, c, false),
            '-' if rest.starts_with("--") => rest.find('\n'),
            '/' if rest.starts_with("/*") => comment(rest),
            '$' if !in_word => dollar_quoted(rest),
            c => Some(c.len_utf8()),
        };
        let text = &rest[..length.unwrap_or(rest.len())];
        let piece = Piece { at: self.at, text, in_word, escapes };
        self.in_word = piece.text.ends_with(is_of_word);
        self.at += piece.text.len();
        Some(piece)
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// The length of a comment, which may hold others.
fn comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    loop {
        let rest = &text[at..];
        let (step, deeper) = match rest {
            _ if rest.starts_with("/*") => (2, 1),
            _ if rest.starts_with("*/") => (2, -1),
            _ => (rest.chars().next()?.len_utf8(), 0),
        };
        depth += deeper;
        at += step;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The length of what stands in quotes: doubled ones do not end it, nor do those behind a
/// backslash where one escapes.
pub(super) fn quoted(text: &str, quote: char, escapes: bool) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if escapes && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at + 1);
        }
    }
    None
}

/// The length of `$tag$ .. $tag$`, or of the sign.
fn dollar_quoted(text: &str) -> Option<usize> {
    let tag = text[1..].find('$').map(|n| &text[..n + 2]);
    let name = |t: &&str| t[1..t.len() - 1].chars().all(|c| c.is_alphanumeric() || c == '_');
    match tag.filter(name) {
        Some(tag) => text[tag.len()..].find(tag).map(|n| n + 2 * tag.len()),
        None => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_comments_are_one_piece() {
        let long = |pieces: Pieces<'_>| -> Vec<String> {
            pieces.map(|piece| piece.text.to_string()).filter(|text| text.len() > 1).collect()
        };
        let sql = "E'a\\'b' 'c\\' \"d''e\" /* f /* g */ */ $$h'$$ a$1 $2 -- 'i\nx'j''k' l'";
        let want =
            ["E'a\\'b'", "'c\\'", "\"d''e\"", "/* f /* g */ */", "$$h'$$", "-- 'i", "'j''k'"];
        assert_eq!(long(Pieces::of(sql)), want);
        let old = "'a\\'b' b'\\' xb'\\''";
        assert_eq!(long(Pieces::with_escapes_everywhere(old)), ["'a\\'b'", "'\\'", "'\\''"]);
        assert_eq!(Pieces::of("'no end").next().unwrap().text, "'no end");
    }
}
