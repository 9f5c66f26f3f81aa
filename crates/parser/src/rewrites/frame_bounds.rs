//! Bounds of a window's frame that begin with a text in quotes, which sqlparser takes for an
//! interval by itself.
//!
//! ```text
//!   '1 year'::interval PRECEDING     CAST('1 year' AS interval) PRECEDING
//! ```

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;
use crate::script::{word, wrap};

/// Writes such bounds in a form that is read.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 3;
    while at < tokens.len() {
        let ends = ["preceding", "following"].iter().any(|w| token_is(&tokens[at].token, w));
        let text = matches!(tokens[at - 3].token, Token::SingleQuotedString(_));
        let cast = tokens[at - 2].token == Token::DoubleColon;
        if ends && text && cast && matches!(tokens[at - 1].token, Token::Word(_)) {
            tokens.insert(at, wrap(Token::RParen));
            tokens[at - 2] = word("as");
            tokens.splice(at - 3..at - 3, [word("cast"), wrap(Token::LParen)]);
            at += 3;
        }
        at += 1;
    }
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
    }
}
