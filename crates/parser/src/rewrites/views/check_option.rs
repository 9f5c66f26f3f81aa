//! WITH CHECK OPTION of CREATE VIEW, as the option that PostgreSQL keeps it as.
//!
//! ```text
//!   CREATE VIEW v (a) AS SELECT .. WITH LOCAL CHECK OPTION
//!   CREATE VIEW v (a) WITH (check_option = 'local') AS SELECT ..
//! ```

use braid_types::SqlResult;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::{word, wrap};

/// Moves the clause in front of the query.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|t| token_is(&t.token, text));
    let Some(view) = (1..5).find(|at| is(*at, "view")).filter(|_| is(0, "create")) else {
        return Ok(());
    };
    let end = tokens.len();
    if end < 4 || !is(end - 2, "check") || !is(end - 1, "option") {
        return Ok(());
    }
    let (kind, length) = match end - 3 {
        at if is(at, "local") && is(at - 1, "with") => ("local", 4),
        at if is(at, "cascaded") && is(at - 1, "with") => ("cascaded", 4),
        at if is(at, "with") => ("cascaded", 3),
        _ => return Ok(()),
    };
    // Behind the name, the columns and the options that are there already.
    let mut at = view + 1;
    let mut options = None;
    while at < end && !is(at, "as") {
        if tokens[at].token == Token::LParen {
            options = is(at - 1, "with").then_some(at);
            at = closing(tokens, at).unwrap_or(end);
        }
        at += 1;
    }
    tokens.truncate(end - length);
    let value = wrap(Token::SingleQuotedString(kind.into()));
    let option = [word("check_option"), wrap(Token::Eq), value];
    match options {
        Some(open) => {
            let more = option.into_iter().chain([wrap(Token::Comma)]);
            tokens.splice(open + 1..open + 1, more);
        }
        None if at <= tokens.len() => {
            let (open, close) = (wrap(Token::LParen), wrap(Token::RParen));
            let all = [word("with"), open].into_iter().chain(option).chain([close]);
            tokens.splice(at..at, all);
        }
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    #[test]
    fn the_clause_becomes_an_option() {
        for (sql, becomes) in [
            (
                "create view v as select 1 with check option",
                "CREATE VIEW v WITH (check_option = 'cascaded') AS SELECT 1",
            ),
            (
                "create or replace view s.v (a, b) as select 1, 2 with local check option",
                "CREATE OR REPLACE VIEW s.v (a, b) WITH (check_option = 'local') AS SELECT 1, 2",
            ),
            (
                "create view v with (security_barrier = true) as select 1 \
                 with cascaded check option",
                "CREATE VIEW v WITH (check_option = 'cascaded', security_barrier = true) AS \
                 SELECT 1",
            ),
        ] {
            match &*parse_script(sql).unwrap()[0].kind {
                Kind::Sql(s) => assert_eq!(s.to_string(), becomes, "{sql}"),
                other => panic!("{sql}: {other:?}"),
            }
        }
    }
}
