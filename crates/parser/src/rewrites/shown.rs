//! The text of a query that is kept, in words that PostgreSQL reads: without the marks that stand
//! for what sqlparser has no form for.
//!
//! ```text
//!   x BETWEEN !!a AND b                      x BETWEEN SYMMETRIC a AND b
//!   (PARTITION BY !!'ties', a ROWS ..)       (PARTITION BY a ROWS .. EXCLUDE TIES)
//!   "\0rows from"("\0as"(f(x), 'a int'))     ROWS FROM (f(x) AS (a int))
//!   t (a, "\0search ..") AS (..)             t (a) AS (..) search ..
//!   "\0only".t                               ONLY t
//!   USING (a, "\0join j")                    USING (a) AS j
//! ```

use braid_types::quote_ident;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer, Whitespace};

use super::exclusion::Exclusion;
use super::join_alias::JOIN_ALIAS;
use super::only::ONLY;
use super::rows_from::{ROWS_FROM, WITH_COLUMNS};

/// What begins all marks but one.
const MARK: char = '\0';

/// See the [module documentation](self).
pub fn shown(text: &str) -> String {
    if !text.contains(MARK) && !text.contains("!!") {
        return text.to_string();
    }
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize() else {
        return text.to_string();
    };
    let mut text = Text(tokens);
    let mut at = 0;
    while at < text.0.len() {
        match &text.0[at] {
            Token::DoubleExclamationMark if text.follows(at, &["between"]) => {
                text.0.splice(at..=at, [plain("SYMMETRIC"), space()]);
            }
            Token::DoubleExclamationMark if text.follows(at, &["partition", "by"]) => {
                text.exclusion(at);
            }
            Token::Word(w) if w.value == ROWS_FROM => {
                text.0.splice(at..=at, [plain("ROWS"), space(), plain("FROM"), space()]);
            }
            Token::Word(w) if w.value == WITH_COLUMNS => text.columns(at),
            Token::Word(w) if w.value == ONLY => {
                let end = text.behind(at).unwrap_or(at);
                text.0.splice(at..=end, [plain("ONLY"), space()]);
            }
            Token::Word(w) if w.value.starts_with(JOIN_ALIAS) => {
                let alias = w.value[JOIN_ALIAS.len()..].to_string();
                text.join_alias(at, &alias);
            }
            Token::Word(w) if w.value.starts_with(MARK) => {
                let clause = w.value[MARK.len_utf8()..].to_string();
                text.recursion(at, clause);
            }
            _ => {}
        }
        at += 1;
    }
    text.0.iter().map(ToString::to_string).collect()
}

fn plain(word: &str) -> Token {
    Token::make_word(word, None)
}

fn space() -> Token {
    Token::Whitespace(Whitespace::Space)
}

/// Tokens with the space between them.
struct Text(Vec<Token>);

impl Text {
    /// The last token before a place that is no space.
    fn before(&self, at: usize) -> Option<usize> {
        (0..at).rev().find(|n| !matches!(self.0[*n], Token::Whitespace(_)))
    }

    /// The first token behind a place that is no space.
    fn behind(&self, at: usize) -> Option<usize> {
        (at + 1..self.0.len()).find(|n| !matches!(self.0[*n], Token::Whitespace(_)))
    }

    /// Whether these words stand before a place.
    fn follows(&self, at: usize, words: &[&str]) -> bool {
        let mut at = at;
        words.iter().rev().all(|word| match self.before(at) {
            Some(before) => {
                at = before;
                crate::cursor::token_is(&self.0[before], word)
            }
            None => false,
        })
    }

    /// The parenthesis that closes what stands at a place.
    fn closing(&self, at: usize) -> Option<usize> {
        let mut depth = 0usize;
        (at..self.0.len()).find(|n| match self.0[*n] {
            Token::LParen => {
                depth += 1;
                false
            }
            Token::RParen if depth == 0 => true,
            Token::RParen => {
                depth -= 1;
                false
            }
            _ => false,
        })
    }

    fn is(&self, at: Option<usize>, token: &Token) -> bool {
        at.is_some_and(|at| self.0[at] == *token)
    }

    /// `!!'ties'`, the first key of a window.
    fn exclusion(&mut self, at: usize) {
        let Some(value) = self.behind(at) else { return };
        let Token::SingleQuotedString(mark) = &self.0[value] else { return };
        let Some(exclusion) = Exclusion::of_mark(mark) else { return };
        let Some(close) = self.closing(at) else { return };
        let words = [space(), plain("EXCLUDE"), space(), plain(exclusion.words())];
        self.0.splice(close..close, words);
        let next = self.behind(value);
        if self.is(next, &Token::Comma) {
            let end = next.and_then(|comma| self.behind(comma)).unwrap_or(value + 1);
            self.0.drain(at..end);
        } else {
            let by = self.before(at).unwrap_or(at);
            let partition = self.before(by).unwrap_or(by);
            self.0.drain(partition..next.unwrap_or(value + 1));
        }
    }

    /// `"\0as"(call, 'columns')`.
    fn columns(&mut self, at: usize) {
        let Some(open) = self.behind(at) else { return };
        let Some(close) = self.closing(open + 1) else { return };
        let Some(list) = self.before(close) else { return };
        let Token::SingleQuotedString(text) = self.0[list].clone() else { return };
        let Some(comma) = self.before(list) else { return };
        let words = [space(), plain("AS"), space(), Token::LParen, plain(&text), Token::RParen];
        self.0.splice(comma..=close, words);
        self.0.drain(at..=open);
    }

    /// `"\0join j"`, the last name of USING.
    fn join_alias(&mut self, at: usize, alias: &str) {
        let (Some(comma), Some(close)) = (self.before(at), self.closing(at)) else { return };
        let words = [space(), plain("AS"), space(), plain(&quote_ident(alias))];
        self.0.splice(close + 1..close + 1, words);
        self.0.drain(comma..close);
    }

    /// `"\0search .."`, the last name of a list of columns.
    fn recursion(&mut self, at: usize, clause: String) {
        let (before, next) = (self.before(at), self.behind(at));
        let query = next
            .and_then(|close| (close..self.0.len()).find(|n| self.0[*n] == Token::LParen))
            .and_then(|open| self.closing(open + 1));
        let (Some(end), Some(before), Some(next)) = (query, before, next) else { return };
        self.0.splice(end + 1..end + 1, [space(), plain(&clause)]);
        match self.0[before] {
            Token::Comma => self.0.drain(before..next),
            _ => self.0.drain(before..=next),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn marks_are_shown_as_what_they_stand_for() {
        for sql in [
            "SELECT a FROM t WHERE a BETWEEN SYMMETRIC 1 AND 2",
            "SELECT sum(a) OVER (PARTITION BY b ROWS 1 PRECEDING EXCLUDE TIES) FROM t",
            "SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM t",
            "SELECT sum(a) OVER (w ROWS 1 PRECEDING EXCLUDE GROUP) FROM t WINDOW w AS (ORDER BY b)",
            "SELECT * FROM ROWS FROM (f(1), g(x) AS (a int , b text)) WITH ORDINALITY AS t",
            "WITH RECURSIVE t (a) AS (SELECT 1) search depth first by a set o SELECT o FROM t",
            "SELECT j.a FROM t JOIN u USING(a, b) AS j WHERE j.a = 1",
            "SELECT j.a FROM t JOIN u USING(a) AS \"My j\"",
            "SELECT * FROM ONLY s.t AS x JOIN ONLY u USING(a)",
            "WITH RECURSIVE t AS (SELECT 1) cycle a set c using p SELECT 1 FROM t",
        ] {
            let kept = crate::parse_query(sql).unwrap().to_string();
            assert_ne!(kept, sql);
            let loose = |text: &str| text.replace(' ', "");
            assert_eq!(loose(&shown(&kept)), loose(sql), "{kept:?}");
            assert_eq!(crate::parse_query(&shown(&kept)).unwrap().to_string(), kept);
        }
        assert_eq!(shown("SELECT '!!'"), "SELECT '!!'");
    }
}
