//! Bounds of a window's frame that begin with a text in quotes, which sqlparser takes for an
//! interval by itself, or with what is called `unbounded`.
//!
//! ```text
//!   '1 year'::interval PRECEDING     CAST('1 year' AS interval) PRECEDING
//!   BETWEEN '1.5' PRECEDING          BETWEEN ('1.5') PRECEDING
//!   unbounded(1) PRECEDING           "unbounded"(1) PRECEDING
//! ```

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;
use crate::script::{word, wrap};

/// Writes such bounds in a form that is read.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 3;
    while at < tokens.len() {
        let ends = ["preceding", "following"].iter().any(|w| token_is(&tokens[at].token, w));
        let goes_on = matches!(tokens[at].token, Token::LParen | Token::Period);
        if goes_on && token_is(&tokens[at - 1].token, "unbounded") {
            tokens[at - 1].token = Token::make_word("unbounded", Some('"'));
        }
        let text = matches!(tokens[at - 3].token, Token::SingleQuotedString(_));
        let cast = tokens[at - 2].token == Token::DoubleColon;
        if ends && text && cast && matches!(tokens[at - 1].token, Token::Word(_)) {
            tokens.insert(at, wrap(Token::RParen));
            tokens[at - 2] = word("as");
            tokens.splice(at - 3..at - 3, [word("cast"), wrap(Token::LParen)]);
            at += 3;
        } else if ends && is_bare(&tokens[at - 2].token, &tokens[at - 1].token) {
            tokens.insert(at, wrap(Token::RParen));
            tokens.insert(at - 1, wrap(Token::LParen));
            at += 2;
        }
        at += 1;
    }
}

/// Whether a text that begins a bound has no type in front of it.
fn is_bare(before: &Token, text: &Token) -> bool {
    let begins = ["between", "and", "rows", "range", "groups"];
    matches!(text, Token::SingleQuotedString(_)) && begins.iter().any(|w| token_is(before, w))
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_may_be_cast_in_frames() {
        let shown = |sql: &str| crate::parse_query(sql).unwrap().to_string();
        let frame = "range between '1 day'::interval preceding and '2 h'::interval following";
        assert_eq!(
            shown(&format!("select sum(a) over (order by b {frame})")),
            "SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN CAST('1 day' AS INTERVAL) PRECEDING \
             AND CAST('2 h' AS INTERVAL) FOLLOWING)"
        );
        let frame = "range between '1.5' preceding and interval '2 h' following";
        assert_eq!(
            shown(&format!("select sum(a) over (order by b {frame})")),
            "SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN ('1.5') PRECEDING \
             AND INTERVAL '2 h' FOLLOWING)"
        );
        let frame = "rows between unbounded(1) preceding and unbounded.x following";
        assert_eq!(
            shown(&format!("select sum(a) over (order by b {frame})")),
            "SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN \"unbounded\"(1) PRECEDING \
             AND \"unbounded\".x FOLLOWING)"
        );
    }
}
