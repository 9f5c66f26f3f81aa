//! EXCLUDE of a window's frame, for which sqlparser has no form.
//!
//! ```text
//!   (PARTITION BY a ROWS 1 PRECEDING EXCLUDE TIES)   (PARTITION BY !! 'ties', a ROWS 1 PRECEDING)
//!   (w ROWS 1 PRECEDING EXCLUDE CURRENT ROW)         (w PARTITION BY !! 'row' ROWS 1 PRECEDING)
//! ```
//! So the mark travels with the window, also in the text of a view; [`take_exclusion`] takes it off
//! the keys. EXCLUDE NO OTHERS says nothing.

use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;
use crate::script::{word, wrap};

/// Rows of a frame that a window function does not look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exclusion {
    /// The row itself.
    CurrentRow,
    /// The row and its peers.
    Group,
    /// Its peers.
    Ties,
}

impl Exclusion {
    const ALL: [Exclusion; 3] = [Exclusion::CurrentRow, Exclusion::Group, Exclusion::Ties];

    fn mark(self) -> &'static str {
        match self {
            Exclusion::CurrentRow => "row",
            Exclusion::Group => "group",
            Exclusion::Ties => "ties",
        }
    }

    pub(super) fn of_mark(mark: &str) -> Option<Exclusion> {
        Exclusion::ALL.into_iter().find(|exclusion| exclusion.mark() == mark)
    }

    /// As it is written behind EXCLUDE.
    pub fn words(self) -> &'static str {
        match self {
            Exclusion::CurrentRow => "CURRENT ROW",
            Exclusion::Group => "GROUP",
            Exclusion::Ties => "TIES",
        }
    }
}

/// Takes the mark off the keys of a window.
pub fn take_exclusion(spec: &mut ast::WindowSpec) -> Option<Exclusion> {
    let ast::Expr::UnaryOp { op: ast::UnaryOperator::PGPrefixFactorial, expr } =
        spec.partition_by.first()?
    else {
        return None;
    };
    let ast::Expr::Value(value) = &**expr else { return None };
    let ast::Value::SingleQuotedString(mark) = &value.value else { return None };
    let found = Exclusion::of_mark(mark)?;
    spec.partition_by.remove(0);
    Some(found)
}

/// Writes the mark of each EXCLUDE that ends a window.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if let Some((excluded, words)) = clause(tokens, at)
            && let Some(place) = place(tokens, at)
        {
            tokens.drain(at..at + words);
            if let Some(excluded) = excluded {
                mark(tokens, place, excluded);
            }
        }
        at += 1;
    }
}

fn is(tokens: &[TokenWithSpan], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|t| token_is(&t.token, text))
}

/// The clause that begins here and ends a window, and its number of words.
fn clause(tokens: &[TokenWithSpan], at: usize) -> Option<(Option<Exclusion>, usize)> {
    let says = |words: &[&str]| {
        let all = words.iter().enumerate().all(|(n, word)| is(tokens, at + n, word));
        let end = tokens.get(at + words.len());
        all && end.is_some_and(|t| t.token == Token::RParen)
    };
    if says(&["exclude", "no", "others"]) {
        return Some((None, 3));
    }
    if says(&["exclude", "current", "row"]) {
        return Some((Some(Exclusion::CurrentRow), 3));
    }
    let others = [Exclusion::Group, Exclusion::Ties];
    let found = others.into_iter().find(|e| says(&["exclude", e.mark()]))?;
    Some((Some(found), 2))
}

/// Where in a window the frame begins and where PARTITION BY, if there is one.
struct Place {
    frame: usize,
    partition: Option<usize>,
    order: Option<usize>,
}

/// The window that a clause at `end` stands in; `None` if it is none, or has no frame.
fn place(tokens: &[TokenWithSpan], end: usize) -> Option<Place> {
    let mut depth = 0usize;
    let (mut frame, mut partition, mut order) = (None, None, None);
    for at in (0..end).rev() {
        match tokens[at].token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => {
                return Some(Place { frame: frame?, partition, order });
            }
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            _ if ["rows", "range", "groups"].iter().any(|unit| is(tokens, at, unit)) => {
                frame = Some(at);
            }
            _ if is(tokens, at, "by") && at > 0 && is(tokens, at - 1, "partition") => {
                partition = Some(at);
            }
            _ if is(tokens, at, "order") && is(tokens, at + 1, "by") => order = Some(at),
            _ => {}
        }
    }
    None
}

fn mark(tokens: &mut Vec<TokenWithSpan>, place: Place, excluded: Exclusion) {
    let text = wrap(Token::SingleQuotedString(excluded.mark().to_string()));
    let mark = [wrap(Token::DoubleExclamationMark), text];
    match place.partition {
        Some(by) => {
            let more = [wrap(Token::Comma)];
            tokens.splice(by + 1..by + 1, mark.into_iter().chain(more));
        }
        None => {
            let before = place.order.unwrap_or(place.frame);
            let words = ["partition", "by"].map(word);
            tokens.splice(before..before, words.into_iter().chain(mark));
        }
    }
}

#[cfg(test)]
mod tests {
    fn shown(sql: &str) -> String {
        crate::parse_query(sql).unwrap().to_string().to_lowercase()
    }

    #[test]
    fn the_mark_is_a_key_of_the_window() {
        for (sql, want) in [
            (
                "select sum(a) over (order by a rows 1 preceding exclude current row) from t",
                "select sum(a) over (partition by !!'row' order by a rows 1 preceding) from t",
            ),
            (
                "select sum(a) over (partition by (b) rows 1 preceding exclude ties) from t",
                "select sum(a) over (partition by !!'ties', (b) rows 1 preceding) from t",
            ),
            (
                "select sum(a) over (w groups 1 preceding exclude group) from t",
                "select sum(a) over (w partition by !!'group' groups 1 preceding) from t",
            ),
            (
                "select sum(a) over (rows 1 preceding exclude no others) from t",
                "select sum(a) over (rows 1 preceding) from t",
            ),
            ("select exclude from t", "select exclude from t"),
        ] {
            assert_eq!(shown(sql), want, "{sql}");
            // The text of a view is read again.
            assert_eq!(shown(want), want);
        }
        assert!(crate::parse_query("select sum(a) over (exclude ties) from t").is_err());
    }
}
