//! Where PostgreSQL's lexer and grammar differ from sqlparser's, settled on tokens.
//!
//! ```text
//!   k>-2                one token `>-`           >  -   operators that end in a sign need one
//!   5*--why             one token `*--`          *      of ~ ! @ # % ^ & | ` ? in them
//!   in ((select 2), 1)  a query, then rubbish    in (coalesce((select 2)), 1)
//!   'a' (new line) 'b'  an alias              'ab'
//!   'a''''b'            printed as 'a''b'     E'a\\'\\'b'
//!   $$a$$               not where a name is   'a'
//!   a *< b              two operators        one
//!   0b11, 1_000         an alias of 0         refused, as PostgreSQL 15 does
//!   x isnull            an alias              x is null
//!   x like any (list)   no operator           x ~~ any (list)
//!   for update limit 1  rubbish after the lock   limit 1 for update
//!   between symmetric   unknown                  between !!
//!   exists (select)     no list              exists (select from (values (1)) "no columns")
//! ```

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError};

use crate::cursor::{closing, token_is};
use crate::script::{word, wrap};

/// Tokens of a text without white space.
///
/// # Errors
/// What the tokenizer reports.
pub(crate) fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    let dialect = PostgreSqlDialect {};
    let plain = crate::rewrites::lexemes::unicode_escapes::plain(sql)?;
    let sql = plain.as_deref().unwrap_or(sql);
    let plain = crate::rewrites::lexemes::escaped_texts::plain_bytes(sql)?;
    let sql = plain.as_deref().unwrap_or(sql);
    let mut text = crate::spellings::plain_backticks(sql).unwrap_or_else(|| sql.to_string());
    // Blanks that were put in: line, column. Tokens behind one stand one column too far right.
    let mut inserted: Vec<(u64, u64)> = Vec::new();
    let mut pipes = 0;
    loop {
        let found = Tokenizer::new(&dialect, &text).tokenize_with_location();
        if let Err(e) = &found
            && e.message.ends_with("operator after '|>'")
            && pipes < MAX_PIPES
        {
            let end = byte_of(&text, e.location);
            text.replace_range(end - PIPE.len()..end, PIPE);
            pipes += 1;
            continue;
        }
        let swallowed = match &found {
            Ok(tokens) => tokens.iter().find_map(comment_inside),
            Err(_) => None,
        };
        match swallowed {
            None => {
                let tokens = finish(found?, &inserted);
                refuse_junk(&tokens)?;
                return join_texts(join_images(tokens)).map(texts_that_print);
            }
            Some(at) => {
                let byte = byte_of(&text, at);
                text.insert(byte, ' ');
                inserted.push((at.line, at.column));
            }
        }
    }
}

/// What stands for `|>`, which the tokenizer of PostgreSQL's dialect takes for the beginning of
/// another operator; as long as that.
pub(crate) const PIPE: &str = "|`";
/// Most pipes of a script.
const MAX_PIPES: usize = 200;

/// Texts as tokens that sqlparser prints as what it has read, since statements are kept as text:
/// views, defaults, conditions, functions. It takes two quotes in a text, and one behind a
/// backslash, for one that is escaped already, so that `'a''''b'` would become `'a''b'`. With an E
/// in front all is escaped. Else an E and dollars are more ways to quote, for whoever asks for a
/// text.
fn texts_that_print(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    for token in &mut tokens {
        let text = match &mut token.token {
            Token::SingleQuotedString(text) if misprinted(text) => std::mem::take(text),
            Token::EscapedStringLiteral(text) if !misprinted(text) => std::mem::take(text),
            Token::DollarQuotedString(text) => std::mem::take(&mut text.value),
            _ => continue,
        };
        token.token = match misprinted(&text) {
            true => Token::EscapedStringLiteral(text),
            false => Token::SingleQuotedString(text),
        };
    }
    tokens
}

/// Whether a text between plain quotes is printed as another one.
fn misprinted(text: &str) -> bool {
    text.contains("''") || text.contains("\\'")
}

/// Joins texts in quotes between which there is a new line; two on one line are none of SQL.
fn join_texts(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    let begins = |pair: &[TokenWithSpan]| matches!(pair[1].token, Token::SingleQuotedString(_));
    if !tokens.windows(2).any(|pair| begins(pair) && is_text(&pair[0].token)) {
        return Ok(tokens);
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let (Some(last), Token::SingleQuotedString(more)) = (out.last_mut(), &token.token) else {
            out.push(token);
            continue;
        };
        if !is_text(&last.token) {
            out.push(token);
            continue;
        }
        match &mut last.token {
            Token::SingleQuotedString(text) if last.span.end.line < token.span.start.line => {
                text.push_str(more);
                last.span.end = token.span.end;
            }
            _ => {
                return Err(TokenizerError {
                    message: format!("syntax error at or near \"'{more}'\""),
                    location: token.span.start,
                });
            }
        }
    }
    Ok(out)
}

fn is_text(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::DollarQuotedString(_)
    )
}

/// Refuses words that stand right behind a number: sqlparser takes them for aliases.
fn refuse_junk(tokens: &[TokenWithSpan]) -> Result<(), TokenizerError> {
    let junk = |text: String, at: &TokenWithSpan| TokenizerError {
        message: format!("trailing junk after numeric literal at or near \"{text}\""),
        location: at.span.start,
    };
    if let Some((text, at)) = tokens.iter().find_map(|t| match &t.token {
        Token::Number(digits, _) if digits.contains('_') => Some((digits.clone(), t)),
        _ => None,
    }) {
        return Err(junk(text, at));
    }
    for pair in tokens.windows(2) {
        let (Token::Number(digits, _), Token::Word(word)) = (&pair[0].token, &pair[1].token) else {
            continue;
        };
        if pair[0].span.end == pair[1].span.start && word.quote_style.is_none() {
            return Err(junk(format!("{digits}{}", word.value), &pair[0]));
        }
    }
    Ok(())
}

/// `*<`, `*=` and their like are one operator, of rows.
fn join_images(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let image = |pair: &[TokenWithSpan]| {
        let sign = match pair[1].token {
            Token::Eq => "*=",
            Token::Neq => "*<>",
            Token::Lt => "*<",
            Token::LtEq => "*<=",
            Token::Gt => "*>",
            Token::GtEq => "*>=",
            _ => return None,
        };
        let joined = pair[0].token == Token::Mul && pair[0].span.end == pair[1].span.start;
        joined.then(|| Token::CustomBinaryOperator(sign.to_string()))
    };
    if !tokens.windows(2).any(|pair| image(pair).is_some()) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let pair = out.last().map(|last| [last.clone(), token.clone()]);
        match (pair.as_ref().and_then(|pair| image(pair)), out.last_mut()) {
            (Some(operator), Some(last)) => {
                last.token = operator;
                last.span.end = token.span.end;
            }
            _ => out.push(token),
        }
    }
    out
}

/// Where a comment begins that was taken for a part of an operator.
fn comment_inside(token: &TokenWithSpan) -> Option<Location> {
    let Token::CustomBinaryOperator(sign) = &token.token else { return None };
    let at = [sign.find("--"), sign.find("/*")].into_iter().flatten().min()?;
    let start = token.span.start;
    Some(Location { line: start.line, column: start.column + at as u64 })
}

fn byte_of(text: &str, at: Location) -> usize {
    let line: usize = text.split_inclusive('\n').take(at.line as usize - 1).map(str::len).sum();
    text[line..].char_indices().nth(at.column as usize - 1).map_or(text.len(), |(i, _)| line + i)
}

fn finish(tokens: Vec<TokenWithSpan>, inserted: &[(u64, u64)]) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(tokens.len());
    for mut token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        for place in [&mut token.span.start, &mut token.span.end] {
            let before = inserted.iter().filter(|(l, c)| *l == place.line && *c < place.column);
            place.column -= before.count() as u64;
        }
        match &token.token {
            Token::CustomBinaryOperator(sign) => split_operator(sign, token.span, &mut out),
            _ => out.push(token),
        }
    }
    out
}

/// Gives back the signs that an operator may not end with.
fn split_operator(sign: &str, span: Span, out: &mut Vec<TokenWithSpan>) {
    let special = |c: char| "~!@#%^&|`?".contains(c);
    let mut head = sign;
    while head.len() > 1 && head.ends_with(['+', '-']) && !head.contains(special) {
        head = &head[..head.len() - 1];
    }
    if head.len() == sign.len() {
        out.push(TokenWithSpan::new(Token::CustomBinaryOperator(sign.to_string()), span));
        return;
    }
    let mut column = span.start.column;
    let mut push = |token: Token, width: usize, out: &mut Vec<TokenWithSpan>| {
        let start = Location { line: span.start.line, column };
        column += width as u64;
        let end = Location { line: span.start.line, column };
        out.push(TokenWithSpan::new(token, Span { start, end }));
    };
    let dialect = PostgreSqlDialect {};
    match Tokenizer::new(&dialect, head).tokenize() {
        Ok(parts) if parts.len() == 1 => {
            let only = parts.into_iter().next().unwrap_or(Token::Plus);
            push(only, head.len(), out);
        }
        _ => push(Token::CustomBinaryOperator(head.to_string()), head.len(), out),
    }
    for c in sign[head.len()..].chars() {
        push(if c == '-' { Token::Minus } else { Token::Plus }, 1, out);
    }
}

fn is(tokens: &[TokenWithSpan], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|t| token_is(&t.token, text))
}

fn is_token(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|t| t.token == *token)
}

/// `x IN ((SELECT 2), 1)` and `x IN ((SELECT 2) + 1)` are lists of expressions: sqlparser takes
/// every parenthesis after IN that could open a query for one.
pub(crate) fn mark_scalar_queries(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 3 < tokens.len() {
        let query = is(tokens, at, "in")
            && is_token(tokens, at + 1, &Token::LParen)
            && is_token(tokens, at + 2, &Token::LParen)
            && opens_query(tokens, at + 2);
        if query
            && let Some(end) = closing(tokens, at + 2)
            && !continues_query(tokens, end + 1)
        {
            tokens.insert(end + 1, wrap(Token::RParen));
            tokens.splice(at + 2..at + 2, [word("coalesce"), wrap(Token::LParen)]);
        }
        at += 1;
    }
}

/// `x ISNULL` and `x NOTNULL` as `IS NULL` and `IS NOT NULL`: sqlparser takes the words for
/// aliases.
pub(crate) fn plain_nulls(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at < tokens.len() {
        let not = is(tokens, at, "notnull");
        let plain = matches!(&tokens[at].token, Token::Word(w) if w.quote_style.is_none());
        let named = is_token(tokens, at - 1, &Token::Period)
            || is(tokens, at - 1, "as")
            || is_token(tokens, at + 1, &Token::LParen);
        if plain && !named && (not || is(tokens, at, "isnull")) {
            let words: &[&str] = if not { &["is", "not", "null"] } else { &["is", "null"] };
            let span = tokens[at].span;
            let words = words.iter().map(|w| TokenWithSpan { span, ..word(w) });
            tokens.splice(at..=at, words.collect::<Vec<_>>());
        }
        at += 1;
    }
}

/// `text ARRAY` and `text ARRAY[4]` as `text[]`: the standard's way to write a type of arrays; and
/// GoogleSQL's, `ARRAY<text>`, also before the values of one.
pub(crate) fn plain_arrays(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at < tokens.len() {
        if is(tokens, at, "array")
            && is_token(tokens, at + 1, &Token::Lt)
            && let Some(end) = element_end(tokens, at + 2)
        {
            let ty: Vec<TokenWithSpan> = tokens[at + 2..end].to_vec();
            let brackets = [Token::LBracket, Token::RBracket].map(wrap);
            match closing_bracket(tokens, end + 1) {
                Some(close) => {
                    let cast = [word("as")].into_iter().chain(ty).chain(brackets);
                    tokens.splice(close + 1..close + 1, cast.chain([wrap(Token::RParen)]));
                    tokens.drain(at + 1..=end);
                    tokens.splice(at..at, [word("cast"), wrap(Token::LParen)]);
                    at += 3;
                }
                None => {
                    tokens.splice(at..=end, ty.into_iter().chain(brackets));
                }
            }
        } else if is(tokens, at, "array") && !is_token(tokens, at - 1, &Token::Period) {
            let bound = is_token(tokens, at + 1, &Token::LBracket)
                && matches!(tokens.get(at + 2).map(|t| &t.token), Some(Token::Number(..)))
                && is_token(tokens, at + 3, &Token::RBracket)
                && ends_type(tokens, at - 1);
            let made = is_token(tokens, at + 1, &Token::LBracket)
                || is_token(tokens, at + 1, &Token::LParen);
            let named = matches!(&tokens[at - 1].token, Token::Word(_))
                || is_token(tokens, at - 1, &Token::RParen);
            if is(tokens, at - 1, "as") && !made {
                // A name for a column.
                tokens[at].token = Token::make_word("array", Some('"'));
            } else if bound || (!made && named) {
                let span = tokens[at].span;
                let brackets = [Token::LBracket, Token::RBracket];
                let brackets = brackets.map(|token| TokenWithSpan { token, span });
                let end = if bound { at + 4 } else { at + 1 };
                tokens.splice(at..end, brackets);
                at += 1;
            }
        }
        at += 1;
    }
}

/// Where the type of the elements of `ARRAY<..>` ends, if it is one.
fn element_end(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let Token::Word(_) = tokens.get(at)?.token else { return None };
    let end = match is_token(tokens, at + 1, &Token::LParen) {
        true => closing(tokens, at + 1)? + 1,
        false => at + 1,
    };
    is_token(tokens, end, &Token::Gt).then_some(end)
}

/// Where brackets end that begin here.
fn closing_bracket(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (n, t) in tokens.iter().enumerate().skip(open) {
        match t.token {
            Token::LBracket => depth += 1,
            Token::RBracket => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (n > open).then_some(n);
        }
    }
    None
}

/// Whether a type of which there are arrays ends here, and no operator or clause does.
fn ends_type(tokens: &[TokenWithSpan], at: usize) -> bool {
    const TYPES: [&str; 31] = [
        "text",
        "int",
        "integer",
        "int2",
        "int4",
        "int8",
        "bigint",
        "smallint",
        "boolean",
        "bool",
        "uuid",
        "varying",
        "varchar",
        "char",
        "character",
        "numeric",
        "decimal",
        "real",
        "precision",
        "float",
        "float4",
        "float8",
        "date",
        "timestamp",
        "timestamptz",
        "zone",
        "time",
        "interval",
        "json",
        "jsonb",
        "bytea",
    ];
    if is_token(tokens, at, &Token::RParen) {
        let open = tokens[..at].iter().rposition(|t| t.token == Token::LParen);
        return open.is_some_and(|open| open > 0 && ends_type(tokens, open - 1));
    }
    TYPES.iter().any(|name| is(tokens, at, name))
}

/// `LIKE ANY (list)` as `~~ ANY (list)`, which sqlparser knows; so with ILIKE, NOT, ALL and SOME.
pub(crate) fn plain_likes(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 2 < tokens.len() {
        let ignoring = is(tokens, at, "ilike");
        let lists = ["any", "all", "some"].iter().any(|w| is(tokens, at + 1, w));
        if (ignoring || is(tokens, at, "like")) && lists && is_token(tokens, at + 2, &Token::LParen)
        {
            let not = is(tokens, at - 1, "not");
            tokens[at].token = match (not, ignoring) {
                (false, false) => Token::DoubleTilde,
                (false, true) => Token::DoubleTildeAsterisk,
                (true, false) => Token::ExclamationMarkDoubleTilde,
                (true, true) => Token::ExclamationMarkDoubleTildeAsterisk,
            };
            if not {
                tokens.remove(at - 1);
            }
        }
        at += 1;
    }
}

/// Whether the first word behind these parentheses begins a query.
fn opens_query(tokens: &[TokenWithSpan], mut at: usize) -> bool {
    while is_token(tokens, at, &Token::LParen) {
        at += 1;
    }
    ["select", "with", "values", "table"].iter().any(|w| is(tokens, at, w))
}

/// Whether a query in parentheses goes on here, or ends.
fn continues_query(tokens: &[TokenWithSpan], at: usize) -> bool {
    let words = ["union", "intersect", "except", "order", "limit", "offset", "fetch", "for"];
    is_token(tokens, at, &Token::RParen) || words.iter().any(|w| is(tokens, at, w))
}

/// `TRIM(LEADING FROM x)` and `TRIM(FROM x)` without the word that sqlparser takes for a column.
pub(crate) fn plain_trims(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 3 < tokens.len() {
        if is(tokens, at, "trim") && is_token(tokens, at + 1, &Token::LParen) {
            let side = ["leading", "trailing", "both"].iter().any(|w| is(tokens, at + 2, w));
            let from = at + 2 + usize::from(side);
            if is(tokens, from, "from") {
                tokens.remove(from);
            }
        }
        at += 1;
    }
}

/// `SUBSTRING(x SIMILAR p ESCAPE e)` is a call with three arguments.
pub(crate) fn plain_substrings(tokens: &mut [TokenWithSpan]) {
    for at in 0..tokens.len() {
        if !is(tokens, at, "substring") || !is_token(tokens, at + 1, &Token::LParen) {
            continue;
        }
        let Some(end) = closing(tokens, at + 1) else { continue };
        let mut inside = Vec::new();
        let mut next = at + 2;
        while next < end {
            inside.push(next);
            let group = is_token(tokens, next, &Token::LParen).then(|| closing(tokens, next));
            next = group.flatten().unwrap_or(next) + 1;
        }
        let place = |word: &str| inside.iter().copied().find(|at| is(tokens, *at, word));
        if let (Some(similar), Some(escape)) = (place("similar"), place("escape"))
            && similar < escape
            && !is(tokens, similar + 1, "to")
        {
            tokens[similar].token = Token::Comma;
            tokens[escape].token = Token::Comma;
        }
    }
}

/// `FROM f(x) AS (a int)`: a list of columns without a name, which sqlparser wants: that of the
/// function is put in.
pub(crate) fn named_column_lists(tokens: &mut Vec<TokenWithSpan>) {
    let before_item = ["from", "join", "lateral"];
    let mut at = 0;
    while at + 2 < tokens.len() {
        let begins = before_item.iter().any(|word| is(tokens, at, word))
            || is_token(tokens, at, &Token::Comma);
        let call = is_token(tokens, at + 2, &Token::LParen)
            && matches!(&tokens[at + 1].token, Token::Word(w) if w.quote_style.is_none());
        if begins
            && call
            && let Some(end) = closing(tokens, at + 2)
            && is(tokens, end + 1, "as")
            && is_token(tokens, end + 2, &Token::LParen)
            && [end + 3, end + 4]
                .iter()
                .all(|at| matches!(tokens.get(*at).map(|t| &t.token), Some(Token::Word(_))))
            && !["select", "with", "values", "table"].iter().any(|w| is(tokens, end + 3, w))
            && !["insert", "update", "delete", "merge"].iter().any(|w| is(tokens, end + 3, w))
        {
            let name = tokens[at + 1].token.to_string().to_lowercase();
            tokens.insert(end + 2, wrap(Token::make_word(&name, Some('"'))));
        }
        at += 1;
    }
}

/// `BETWEEN SYMMETRIC a AND b` as `BETWEEN !! a AND b`, which the binder reads: sqlparser has no
/// form for it. ASYMMETRIC says nothing.
pub(crate) fn mark_symmetric(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at < tokens.len() {
        if is(tokens, at - 1, "between") && is(tokens, at, "symmetric") {
            tokens[at].token = Token::DoubleExclamationMark;
        } else if is(tokens, at - 1, "between") && is(tokens, at, "asymmetric") {
            tokens.remove(at);
        }
        at += 1;
    }
}

/// `(row).*` as `(row)."*"`, because sqlparser knows stars behind names only, and `t.* IS NULL` as
/// `t IS NULL`.
pub(crate) fn plain_stars(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |t: &[TokenWithSpan], at: usize| {
        matches!(t.get(at).map(|t| &t.token), Some(Token::Word(_)))
    };
    let mut at = 0;
    while at + 2 < tokens.len() {
        if is_token(tokens, at, &Token::RParen)
            && is_token(tokens, at + 1, &Token::Period)
            && is_token(tokens, at + 2, &Token::Mul)
        {
            tokens[at + 2].token = Token::make_word("*", Some('"'));
        } else if is_word(tokens, at)
            && is_token(tokens, at + 1, &Token::Period)
            && is_token(tokens, at + 2, &Token::Mul)
            && is(tokens, at + 3, "is")
        {
            tokens.drain(at + 1..at + 3);
        }
        at += 1;
    }
}

/// `SELECT` without a list and FROM, as one row of no columns: sqlparser knows empty lists before
/// FROM only.
pub(crate) fn fill_selections(tokens: &mut Vec<TokenWithSpan>) {
    const CLAUSES: [&str; 12] = [
        "where",
        "group",
        "having",
        "window",
        "order",
        "limit",
        "offset",
        "fetch",
        "for",
        "union",
        "intersect",
        "except",
    ];
    let mut at = 0;
    while at < tokens.len() {
        let ends = match tokens.get(at + 1).map(|t| &t.token) {
            None | Some(Token::RParen | Token::SemiColon) => true,
            Some(next) => CLAUSES.iter().any(|word| token_is(next, word)),
        };
        let begins = at == 0
            || matches!(tokens[at - 1].token, Token::LParen | Token::SemiColon)
            || ["union", "all", "distinct", "intersect", "except", "as"]
                .iter()
                .any(|word| is(tokens, at - 1, word));
        if ends && begins && is(tokens, at, "select") {
            let row = [word("values"), wrap(Token::LParen), wrap(Token::Number("1".into(), false))];
            let mut filled = vec![word("from"), wrap(Token::LParen)];
            filled.extend(row);
            filled.extend([wrap(Token::RParen), wrap(Token::RParen), word("as")]);
            filled.push(wrap(Token::make_word("no columns", Some('"'))));
            tokens.splice(at + 1..at + 1, filled);
        }
        at += 1;
    }
}

/// The length of a locking clause at this place: `FOR UPDATE [OF a, b] [NOWAIT | SKIP LOCKED]`.
fn locking_length(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    if !is(tokens, at, "for") || !(is(tokens, at + 1, "update") || is(tokens, at + 1, "share")) {
        return None;
    }
    let mut end = at + 2;
    if is(tokens, end, "of") {
        end += 1;
        while matches!(tokens.get(end).map(|t| &t.token), Some(Token::Word(_) | Token::Period)) {
            end += 1;
            if is_token(tokens, end, &Token::Comma) {
                end += 1;
            } else if !is_token(tokens, end, &Token::Period) {
                break;
            }
        }
    }
    if is(tokens, end, "nowait") {
        end += 1;
    } else if is(tokens, end, "skip") && is(tokens, end + 1, "locked") {
        end += 2;
    }
    Some(end - at)
}

/// Whether a locking clause stands anywhere.
pub(crate) fn holds_locks(tokens: &[TokenWithSpan]) -> bool {
    (0..tokens.len()).any(|at| locking_length(tokens, at).is_some())
}

/// Takes FOR UPDATE away from a query without FROM, where it locks nothing and the parser takes FOR
/// for an alias.
///
/// # Errors
/// 0A000 behind a set operation, 42P01 for a name behind OF.
pub(crate) fn drop_idle_locks(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let mut at = 0;
    while at < tokens.len() {
        let Some(length) = locking_length(tokens, at) else {
            at += 1;
            continue;
        };
        let Some(select) = select_without_from(&tokens[..at]) else {
            at += 1;
            continue;
        };
        let kind = tokens[at + 1].token.to_string().to_uppercase();
        let operators = ["union", "intersect", "except"];
        let before =
            select - ["all", "distinct"].iter().filter(|w| behind(tokens, select, w)).count();
        if operators.iter().any(|word| behind(tokens, before, word)) {
            return Err(not_with_sets(&format!("FOR {kind}")));
        }
        if is(tokens, at + 2, "of") {
            let name = tokens.get(at + 3).map(|t| t.token.to_string()).unwrap_or_default();
            let text = format!("relation \"{name}\" in FOR {kind} clause not found in FROM clause");
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, text));
        }
        tokens.drain(at..at + length);
    }
    Ok(())
}

/// Whether a word stands before this place.
fn behind(tokens: &[TokenWithSpan], at: usize, word: &str) -> bool {
    at > 0 && is(tokens, at - 1, word)
}

/// 0A000 for rows that are locked of a set operation.
pub(crate) fn not_with_sets(clause: &str) -> SqlError {
    let text = format!("{clause} is not allowed with UNION/INTERSECT/EXCEPT");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
}

/// Where the innermost query that these tokens are in has said SELECT, if it has no FROM.
fn select_without_from(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0usize;
    for (at, t) in tokens.iter().enumerate().rev() {
        match &t.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return None,
            Token::LParen => depth -= 1,
            Token::Word(_) if depth == 0 && is(tokens, at, "from") => return None,
            Token::Word(_) if depth == 0 && is(tokens, at, "select") => return Some(at),
            _ => {}
        }
    }
    None
}

/// `FOR UPDATE OF a, b NOWAIT` as one clause for each name: sqlparser takes one name.
pub(crate) fn split_locks(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        let Some(length) = locking_length(tokens, at) else {
            at += 1;
            continue;
        };
        let clause = &tokens[at..at + length];
        let waits = (0..length).find(|n| is(clause, *n, "nowait") || is(clause, *n, "skip"));
        let (names, wait) = clause.split_at(waits.unwrap_or(length));
        let mut out = Vec::new();
        for token in names {
            match token.token {
                Token::Comma => {
                    out.extend_from_slice(wait);
                    out.extend_from_slice(&clause[..3]);
                }
                _ => out.push(token.clone()),
            }
        }
        out.extend_from_slice(wait);
        let end = at + length;
        let next = at + out.len();
        tokens.splice(at..end, out);
        at = next;
    }
}

/// Moves a locking clause that stands before LIMIT, OFFSET or FETCH behind them: PostgreSQL takes
/// either order.
pub(crate) fn move_locks(tokens: &mut [TokenWithSpan]) {
    let mut at = 0;
    while at < tokens.len() {
        let limits = |n: usize| ["limit", "offset", "fetch"].iter().any(|w| is(tokens, n, w));
        let Some(length) = locking_length(tokens, at).filter(|length| limits(at + length)) else {
            at += 1;
            continue;
        };
        let mut depth = 0usize;
        let mut end = at + length;
        while let Some(t) = tokens.get(end) {
            match t.token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => break,
                Token::RParen => depth -= 1,
                Token::SemiColon => break,
                _ if depth == 0 && locking_length(tokens, end).is_some() => break,
                _ => {}
            }
            end += 1;
        }
        tokens[at..end].rotate_left(length);
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        let mut t = tokens(sql).unwrap();
        mark_scalar_queries(&mut t);
        plain_trims(&mut t);
        mark_symmetric(&mut t);
        plain_stars(&mut t);
        plain_nulls(&mut t);
        plain_likes(&mut t);
        move_locks(&mut t);
        split_locks(&mut t);
        fill_selections(&mut t);
        t.iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn operators_do_not_end_in_a_sign() {
        assert_eq!(shown("k>-2"), "k > - 2");
        assert_eq!(shown("5-+3"), "5 - + 3");
        assert_eq!(shown("a<>-1"), "a <> - 1");
        assert_eq!(shown("1*--x\n2"), "1 * 2");
        assert_eq!(shown("1+/*x*/2;3"), "1 + 2 ; 3");
        let t = tokens("1+/*x*/2;3").unwrap();
        assert_eq!(t[2].span.start.column, 8, "inserted blanks do not move positions");
    }

    #[test]
    fn lists_may_be_empty() {
        let row = "from ( values ( 1 ) ) as \"no columns\"";
        assert_eq!(shown("select"), format!("select {row}"));
        assert_eq!(shown("select where a"), format!("select {row} where a"));
        assert_eq!(
            shown("exists (select) union select"),
            format!("exists ( select {row} ) union select {row}")
        );
        assert_eq!(shown("grant select on t to u"), "grant select on t to u");
    }

    #[test]
    fn queries_in_lists_and_locks_before_limits() {
        assert_eq!(shown("x in ((select 2),-1)"), "x in ( coalesce ( ( select 2 ) ) , - 1 )");
        assert_eq!(shown("x in ((select 2))"), "x in ( ( select 2 ) )");
        assert_eq!(shown("r in ((1, 2), (3, 4))"), "r in ( ( 1 , 2 ) , ( 3 , 4 ) )");
        assert_eq!(
            shown("trim(leading from a) || trim(from b)"),
            "trim ( leading a ) || trim ( b )"
        );
        assert_eq!(shown("trim(both 'x' from a)"), "trim ( both 'x' from a )");
        assert_eq!(shown("a between symmetric 2 and 1"), "a between !! 2 and 1");
        assert_eq!(shown("a between asymmetric 2 and 1"), "a between 2 and 1");
        assert_eq!(shown("select 1, (t).*, t.* is null"), "select 1 , ( t ) . \"*\" , t is null");
        assert_eq!(shown("a isnull and b.c notnull"), "a is null and b . c is not null");
        assert_eq!(shown("isnull(a), t.isnull"), "isnull ( a ) , t . isnull");
        assert_eq!(
            shown("a not like all (x) or b ilike any(y)"),
            "a !~~ all ( x ) or b ~~* any ( y )"
        );
        assert_eq!(shown("t for update limit 1"), "t limit 1 for update");
        assert_eq!(
            shown("(t for share of a, b nowait offset 2)"),
            "( t offset 2 for share of a nowait for share of b nowait )"
        );
        assert_eq!(
            shown("t for update of a, b skip locked for share"),
            "t for update of a skip locked for update of b skip locked for share"
        );
    }
}
