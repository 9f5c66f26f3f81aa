//! Options of identity columns, in the order in which sqlparser takes them: PostgreSQL takes them
//! in any. It knows no SEQUENCE NAME, which pg_dump writes: that goes along behind CACHE, whose
//! value is then a placeholder.

use braid_types::{SqlError, SqlResult};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::{word, wrap};

/// Words that begin an option, in sqlparser's order.
const ORDER: [&str; 6] = ["increment", "minvalue", "maxvalue", "start", "cache", "cycle"];

/// What is between the numbers to keep and the sequence's name, in the value of CACHE.
const NAMED: &str = " SEQUENCE NAME ";

/// Puts the options behind each AS IDENTITY in order.
///
/// # Errors
/// 42601 for two names of a sequence.
pub(crate) fn order_options(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let mut at = 0;
    while at + 1 < tokens.len() {
        let opens = token_is(&tokens[at].token, "identity")
            && tokens[at + 1].token == Token::LParen
            && at > 0
            && token_is(&tokens[at - 1].token, "as");
        if opens && let Some(close) = closing(tokens, at + 1) {
            let inner = ordered(&tokens[at + 2..close])?;
            drop(tokens.splice(at + 2..close, inner));
        }
        at += 1;
    }
    Ok(())
}

/// How many numbers CACHE keeps, and the name of the sequence behind it, if there is one.
pub fn named_sequence(cache: &str) -> (&str, Option<&str>) {
    cache.split_once(NAMED).map_or((cache, None), |(cache, name)| (cache, Some(name)))
}

fn ordered(tokens: &[TokenWithSpan]) -> SqlResult<Vec<TokenWithSpan>> {
    let mut options: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    let (mut negated, mut name) = (None, None);
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|t| token_is(&t.token, word));
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let place = ORDER.iter().position(|word| token_is(&token.token, word));
        if is(at, "sequence") && is(at + 1, "name") {
            let mut end = at + 3;
            while tokens.get(end).is_some_and(|t| t.token == Token::Period) {
                end += 2;
            }
            let text = tokens.get(at + 2..end).ok_or_else(|| SqlError::syntax("syntax error"))?;
            let text: String = text.iter().map(|t| t.token.to_string()).collect();
            if name.replace(text).is_some() {
                return Err(SqlError::syntax("conflicting or redundant options"));
            }
            at = end;
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
    if let Some(name) = name {
        let place = ORDER.iter().position(|word| *word == "cache").unwrap_or_default();
        let given = options.iter().position(|(at, _)| *at == place);
        let given = given.map(|at| options.remove(at).1).unwrap_or_default();
        let cache = given.get(1).map_or("1".to_string(), |t| t.token.to_string());
        let value = wrap(Token::Placeholder(format!("{cache}{NAMED}{name}")));
        options.push((place, vec![word("cache"), value]));
    }
    options.sort_by_key(|(place, _)| *place);
    Ok(options.into_iter().flat_map(|(_, option)| option).collect())
}
