//! Tables as PostgreSQL lets them be named where sqlparser reads something else.
//!
//! ```text
//!   FROM t *                         FROM t
//!   .. UNION TABLE t                 .. UNION SELECT * FROM t
//!   INSERT INTO s TABLE t            INSERT INTO s SELECT * FROM t
//!   1 + (VALUES (2))                 1 + (SELECT * FROM (VALUES (2)) AS v)
//! ```

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::{word, wrap};

/// Words that a name of a table, or several, follow.
const BEFORE: [&str; 4] = ["from", "join", "update", "using"];

/// Writes such tables in a form that is read.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let (mut at, mut passed, mut lists) = (1, 0, Lists::new());
    while at < tokens.len() {
        (passed..at).for_each(|n| lists.pass(tokens, n));
        passed = at;
        let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
        let named = |n: usize| matches!(tokens.get(n).map(|t| &t.token), Some(Token::Word(_)));
        if let Some(end) = end_of_name(tokens, at)
            && has(tokens, end, &Token::Mul)
            && lists.begins_table(tokens, at)
            // Not in FOR UPDATE RETURNING *.
            && (!is(at - 1, "update") || !is(at, "returning"))
        {
            tokens.remove(end);
        } else if is(at, "table") && named(at + 1) && begins_operand(tokens, at) {
            tokens.splice(at..=at, select_all());
        } else if is(at, "values")
            && is_value(tokens, at)
            && let Some(close) = closing(tokens, at - 1)
        {
            let name = wrap(Token::make_word("values", Some('"')));
            tokens.splice(close..close, [wrap(Token::RParen), word("as"), name]);
            tokens.splice(at..at, select_all().into_iter().chain([wrap(Token::LParen)]));
            at += 4;
        }
        at += 1;
    }
}

fn select_all() -> [TokenWithSpan; 3] {
    [word("select"), wrap(Token::Mul), word("from")]
}

fn has(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|t| t.token == *token)
}

/// What the tokens in front of a place say of it, for each parenthesis that is open there.
struct Lists {
    /// The innermost last; the first one is what is in no parenthesis.
    open: Vec<List>,
}

#[derive(Default)]
struct List {
    /// A comma is followed by a table: FROM was the last word that begins something.
    of_tables: bool,
    /// The arguments of a call that has FROM among them, as in `extract(day FROM a * b)`.
    of_call: bool,
}

impl Lists {
    /// Nothing is in front.
    fn new() -> Lists {
        Lists { open: vec![List::default()] }
    }

    fn innermost(&self) -> &List {
        self.open.last().expect("what is in no parenthesis is never closed")
    }

    /// One token more is in front.
    fn pass(&mut self, tokens: &[TokenWithSpan], at: usize) {
        const CALLS: [&str; 4] = ["extract", "substring", "trim", "overlay"];
        const ENDS: [&str; 10] = [
            "select",
            "where",
            "group",
            "order",
            "having",
            "limit",
            "returning",
            "set",
            "by",
            "window",
        ];
        let token = &tokens[at].token;
        let is = |word: &&str| token_is(token, word);
        match token {
            Token::LParen => {
                let of_call = at > 0 && CALLS.iter().any(|w| token_is(&tokens[at - 1].token, w));
                self.open.push(List { of_call, ..List::default() });
            }
            Token::RParen if self.open.len() > 1 => drop(self.open.pop()),
            _ if is(&"from") => {
                let of_tables = !self.is_before_value(tokens, at);
                self.open.last_mut().expect("as above").of_tables = of_tables;
            }
            _ if ENDS.iter().any(is) => self.open.last_mut().expect("as above").of_tables = false,
            _ => {}
        }
    }

    /// Whether a table is named here: behind FROM and its like, or behind a comma of such a list.
    fn begins_table(&self, tokens: &[TokenWithSpan], at: usize) -> bool {
        if has(tokens, at - 1, &Token::Comma) {
            return self.innermost().of_tables;
        }
        let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
        // ALTER TABLE .. TYPE .. USING a * b.
        if is(at - 1, "using") && is(0, "alter") {
            return false;
        }
        BEFORE.iter().any(|word| is(at - 1, word)) && !self.is_before_value(tokens, at - 1)
    }

    /// Whether a value follows this FROM, as in IS DISTINCT FROM, and in such calls.
    fn is_before_value(&self, tokens: &[TokenWithSpan], from: usize) -> bool {
        let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
        let is_distinct =
            from > 1 && is(from - 1, "distinct") && (is(from - 2, "is") || is(from - 2, "not"));
        is_distinct || self.innermost().of_call
    }
}

/// Where a name with its schemas ends that begins here.
fn end_of_name(tokens: &[TokenWithSpan], mut at: usize) -> Option<usize> {
    loop {
        let Token::Word(_) = &tokens.get(at)?.token else { return None };
        at += 1;
        if !has(tokens, at, &Token::Period) {
            return Some(at);
        }
        at += 1;
    }
}

/// Whether VALUES in parentheses stands where sqlparser reads an expression.
fn is_value(tokens: &[TokenWithSpan], at: usize) -> bool {
    const WORDS: [&str; 14] = [
        "any",
        "some",
        "select",
        "then",
        "else",
        "when",
        "and",
        "or",
        "not",
        "where",
        "returning",
        "between",
        "case",
        "having",
    ];
    let rows = has(tokens, at + 1, &Token::LParen) && has(tokens, at - 1, &Token::LParen);
    let Some(mut before) = rows.then(|| at.checked_sub(2)).flatten() else { return false };
    while before > 0 && tokens[before].token == Token::LParen {
        before -= 1;
    }
    let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
    let joined = |n: usize| ["union", "intersect", "except"].iter().any(|w| is(n, w));
    match &tokens[before].token {
        Token::Word(_) if is(before, "all") => before > 0 && !joined(before - 1),
        Token::Word(_) => WORDS.iter().any(|w| token_is(&tokens[before].token, w)),
        Token::Comma
        | Token::Eq
        | Token::Lt
        | Token::Gt
        | Token::LtEq
        | Token::GtEq
        | Token::Neq
        | Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::StringConcat => true,
        _ => false,
    }
}

/// Whether an operand of a set operation begins here, or a query in parentheses.
fn begins_operand(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
    let operator = |n: usize| ["union", "intersect", "except"].iter().any(|w| is(n, w));
    let quantified = ["all", "distinct"].iter().any(|w| is(at - 1, w)) && at > 1;
    let parenthesis = has(tokens, at - 1, &Token::LParen);
    operator(at - 1) || (quantified && operator(at - 2)) || parenthesis || is_main(tokens, at)
}

/// Whether TABLE stands behind the name or the columns of INSERT, or the last query of WITH.
fn is_main(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
    if has(tokens, at - 1, &Token::RParen) {
        return is(0, "with") || is(0, "insert") || is(0, "explain");
    }
    let into = tokens[..at].windows(2).rposition(|w| {
        let inserts =
            ["insert", "replace", "ignore"].iter().any(|word| token_is(&w[0].token, word));
        inserts && token_is(&w[1].token, "into")
    });
    into.is_some_and(|before| end_of_name(tokens, before + 2) == Some(at))
}

#[cfg(test)]
mod tests {
    #[test]
    fn tables_are_read_in_all_forms() {
        let shown = |sql: &str| crate::parse_query(sql).unwrap().to_string();
        assert_eq!(
            shown("select * from s.t * where a * b = 1"),
            "SELECT * FROM s.t WHERE a * b = 1"
        );
        assert_eq!(
            shown("select * from t* x, s.u* as y join v* z on true, w*"),
            "SELECT * FROM t x, s.u AS y JOIN v z ON true, w"
        );
        assert_eq!(shown("update t* as x set a = b * c"), "UPDATE t AS x SET a = b * c");
        assert_eq!(
            shown("select a is distinct from b, c * d, e * f from t* order by a, b * c"),
            "SELECT a IS DISTINCT FROM b, c * d, e * f FROM t ORDER BY a, b * c"
        );
        assert_eq!(
            shown("select 1 union all table t union (table s.u)"),
            "SELECT 1 UNION ALL SELECT * FROM t UNION (SELECT * FROM s.u)"
        );
        assert_eq!(
            shown("select a is distinct from b * c, extract(day from b * c)"),
            "SELECT a IS DISTINCT FROM b * c, EXTRACT(DAY FROM b * c)"
        );
        assert_eq!(
            shown("select 1 + (values (2)), (values (3))"),
            "SELECT 1 + (SELECT * FROM (VALUES (2)) AS \"values\"), \
             (SELECT * FROM (VALUES (3)) AS \"values\")"
        );
        assert_eq!(
            shown("select ((values (2)))"),
            "SELECT ((SELECT * FROM (VALUES (2)) AS \"values\"))"
        );
        assert_eq!(
            shown("select 1 union all (values (2)) union all (select 3)"),
            "SELECT 1 UNION ALL (VALUES (2)) UNION ALL (SELECT 3)"
        );
        assert_eq!(
            shown("select a = any (values (2), (3)), a <> all (values (1))"),
            "SELECT a = ANY(SELECT * FROM (VALUES (2), (3)) AS \"values\"), \
             a <> ALL(SELECT * FROM (VALUES (1)) AS \"values\")"
        );
        let changes = "alter table t alter a type int using a * 2";
        assert!(crate::parse_script(changes).is_ok());
        for (table, select) in [
            ("insert into s.t table u", "insert into s.t select * from u"),
            ("insert into t (a) table u", "insert into t (a) select * from u"),
            ("with w as (select 1) table w", "with w as (select 1) select * from w"),
        ] {
            assert_eq!(shown(table), shown(select));
        }
        assert!(crate::parse_query("insert into t select 1 for update returning *").is_ok());
        assert_eq!(shown("select * from (values (1)) v"), "SELECT * FROM (VALUES (1)) v");
        assert_eq!(shown("select 1 fetch first 2 rows only"), "SELECT 1 LIMIT 2");
    }
}
