//! Options of identity columns, in the order in which sqlparser takes them: PostgreSQL takes them
//! in any, and pg_dump names the sequence, too.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};

/// Words that begin an option, in sqlparser's order.
const ORDER: [&str; 6] = ["increment", "minvalue", "maxvalue", "start", "cache", "cycle"];

/// Puts the options behind each AS IDENTITY in order.
pub(crate) fn order_options(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 1 < tokens.len() {
        let opens = token_is(&tokens[at].token, "identity")
            && tokens[at + 1].token == Token::LParen
            && at > 0
            && token_is(&tokens[at - 1].token, "as");
        if opens && let Some(close) = closing(tokens, at + 1) {
            let inner = ordered(&tokens[at + 2..close]);
            // Nothing is left of `(SEQUENCE NAME s)`.
            match inner.is_empty() {
                true => drop(tokens.drain(at + 1..=close)),
                false => drop(tokens.splice(at + 2..close, inner)),
            }
        }
        at += 1;
    }
}

fn ordered(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut options: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    let mut negated = None;
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let place = ORDER.iter().position(|word| token_is(&token.token, word));
        if token_is(&token.token, "sequence")
            && tokens.get(at + 1).is_some_and(|t| token_is(&t.token, "name"))
        {
            // The column's sequence has a name of its own making.
            at += 3;
            while tokens.get(at).is_some_and(|t| t.token == Token::Period) {
                at += 2;
            }
            continue;
        }
        if token_is(&token.token, "no") {
            negated = Some(token.clone());
        } else if let Some(place) = place {
            options.push((place, negated.take().into_iter().chain([token.clone()]).collect()));
        } else if let Some((_, option)) = options.last_mut() {
            option.push(token.clone());
        } else {
            options.push((0, vec![token.clone()]));
        }
        at += 1;
    }
    options.sort_by_key(|(place, _)| *place);
    options.into_iter().flat_map(|(_, option)| option).collect()
}
