//! Statements that differ in their constants only are one statement to statistics.
//!
//! ```text
//!   SELECT v FROM t WHERE id = 7            SELECT v FROM t WHERE id = $1
//!   select V from t  where ID = -8 -- x     the same id
//!   .. WHERE id IN (1, 2, 3)                .. WHERE id IN ($1 /*, ... */)
//!   INSERT INTO t VALUES (1, 'a'), (2, 'b') INSERT INTO t VALUES ($1, $2) /*, ... */
//! ```
//! The text keeps how the first one was written; the id is made of the tokens alone: without white
//! space and comments, names folded, and a constant like a parameter. Lists of constants are one
//! whatever their length, as in PostgreSQL 18. Statements that are no query keep their constants,
//! as in PostgreSQL 15.
//!
//! Found by a look at the text: it knows quotes and comments, and no grammar. A [shape] is about
//! plans and leaves alone what it is not sure of; here a wrong guess joins two statistics.
//!
//! [shape]: crate::Shape

/// See the [module documentation](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Equal for statements that differ in constants only. Never 0.
    pub id: i64,
    /// The statement with `$n` for its constants.
    pub text: String,
}

impl Fingerprint {
    /// The fingerprint of one statement's text.
    pub fn of(sql: &str) -> Fingerprint {
        let tokens = tokens(sql);
        let is_query = tokens.first().is_some_and(|t| {
            let word = t.text(sql);
            word == "(" || QUERIES.iter().any(|q| word.eq_ignore_ascii_case(q))
        });
        let tokens = if is_query { constants(sql, tokens) } else { tokens };
        let mut out = Writer {
            sql,
            is_query,
            taken: tokens.first().map_or(0, |t| t.start),
            text: String::new(),
            hash: FNV,
            parameter: tokens.iter().map(|t| t.parameter(sql)).max().unwrap_or(0),
        };
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at = match repeated(sql, &tokens, at).filter(|_| is_query) {
                Some(list) => out.list(&tokens, &list),
                None => {
                    out.token(token);
                    at + 1
                }
            };
        }
        let end = tokens.last().map_or(0, |t| t.end);
        out.text.push_str(&sql[out.taken..end.max(out.taken)]);
        let id = if out.hash == 0 { 1 } else { out.hash as i64 };
        Fingerprint { id, text: out.text }
    }
}

/// How statements begin whose constants do not matter.
const QUERIES: [&str; 7] = ["select", "insert", "update", "delete", "with", "values", "table"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Word,
    /// A name in quotes.
    Quoted,
    /// A number, a text, a bit string.
    Constant,
    /// `$1`.
    Parameter,
    Operator,
    /// Brackets, commas, a point.
    Mark,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) class: Class,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token {
    pub(super) fn text<'a>(&self, sql: &'a str) -> &'a str {
        &sql[self.start..self.end]
    }

    pub(super) fn is(&self, sql: &str, text: &str) -> bool {
        self.class != Class::Quoted && self.text(sql).eq_ignore_ascii_case(text)
    }

    /// The number of a parameter; 0 for anything else.
    fn parameter(&self, sql: &str) -> usize {
        match self.class {
            Class::Parameter => self.text(sql)[1..].parse().unwrap_or(0),
            _ => 0,
        }
    }
}

/// All tokens of a text. What is not finished ends with the text.
pub(super) fn tokens(sql: &str) -> Vec<Token> {
    let bytes = sql.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let blank = blank(rest);
        if blank > 0 {
            at += blank;
            continue;
        }
        let (class, length) = match byte {
            b'\'' => (Class::Constant, quoted(rest, b'\'', false)),
            b'"' => (Class::Quoted, quoted(rest, b'"', false)),
            b'$' => dollar(sql, at),
            b'0'..=b'9' => (Class::Constant, number(rest)),
            b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => (Class::Constant, number(rest)),
            byte if is_name(byte) => word(rest),
            byte if is_operator(byte) => (Class::Operator, operator(rest)),
            _ => (Class::Mark, 1),
        };
        out.push(Token { class, start: at, end: at + length });
        at += length;
    }
    out
}

/// White space or a comment at the start.
fn blank(rest: &[u8]) -> usize {
    match rest {
        [b' ' | b'\n' | b'\t' | b'\r' | 0x0c, ..] => 1,
        [b'-', b'-', ..] => rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => {
            let (mut depth, mut at) = (0usize, 0);
            while at < rest.len() {
                match &rest[at..] {
                    [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
                    [b'*', b'/', ..] if depth == 1 => return at + 2,
                    [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
            }
            rest.len()
        }
        _ => 0,
    }
}

/// The length of something in quotes; a quote in it is written twice.
fn quoted(rest: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        if byte == b'\\' && escapes {
            at += 2;
        } else if byte != quote {
            at += 1;
        } else if rest.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return at + 1;
        }
    }
    rest.len()
}

/// `$1`, or a text between `$tag$` and `$tag$`.
fn dollar(sql: &str, at: usize) -> (Class, usize) {
    let rest = &sql[at..];
    let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        return (Class::Parameter, digits + 1);
    }
    let tag = rest[1..].bytes().take_while(|b| is_name(*b) || b.is_ascii_digit()).count() + 2;
    match rest.get(..tag).filter(|tag| tag.ends_with('$')) {
        Some(mark) => match rest[tag..].find(mark) {
            Some(length) => (Class::Constant, length + 2 * tag),
            None => (Class::Constant, rest.len()),
        },
        None => (Class::Operator, 1),
    }
}

fn number(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        let signed = matches!(byte, b'+' | b'-')
            && matches!(rest[at - 1], b'e' | b'E')
            && !rest.starts_with(b"0x");
        let range = byte == b'.' && rest.get(at + 1) == Some(&b'.');
        if range || !(byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_' || signed) {
            break;
        }
        at += 1;
    }
    at
}

/// A word, or a text with letters before its quote.
fn word(rest: &[u8]) -> (Class, usize) {
    let part = |b: &&u8| is_name(**b) || b.is_ascii_digit() || **b == b'$';
    let length = rest.iter().take_while(part).count();
    let prefix = match (&rest[..length], rest.get(length), rest.get(length + 1)) {
        (b"e" | b"E" | b"b" | b"B" | b"x" | b"X" | b"n" | b"N", Some(b'\''), _) => length,
        (b"u" | b"U", Some(b'&'), Some(b'\'')) => length + 1,
        _ => return (Class::Word, length),
    };
    let escapes = matches!(rest[0], b'e' | b'E');
    (Class::Constant, prefix + quoted(&rest[prefix..], b'\'', escapes))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_operator(byte: u8) -> bool {
    b"+-*/<>=~!@#%^&|`?:".contains(&byte)
}

/// A run of operator characters up to a comment; a sign at its end is a token of its own.
fn operator(rest: &[u8]) -> usize {
    let mut length = 1;
    while rest.get(length).is_some_and(|b| is_operator(*b)) {
        if rest[length..].starts_with(b"--") || rest[length..].starts_with(b"/*") {
            return length;
        }
        length += 1;
    }
    if length > 1 && matches!(rest[length - 1], b'-' | b'+') { length - 1 } else { length }
}

/// Joins what is one constant: a sign and its number, texts on several lines, and TRUE, FALSE and
/// NULL where they are values.
pub(super) fn constants(sql: &str, tokens: Vec<Token>) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    for mut token in tokens {
        let last = out.last().copied();
        let after =
            |words: &[&str]| last.is_some_and(|last| words.iter().any(|word| last.is(sql, word)));
        let is_text = |t: &Token| t.class == Class::Constant && t.text(sql).ends_with('\'');
        if token.class == Class::Constant
            && last.is_some_and(|t| t.is(sql, "-"))
            && !token.text(sql).ends_with(['\'', '$'])
            && starts_value(sql, out.iter().rev().nth(1))
        {
            token.start = last.map_or(token.start, |sign| sign.start);
            out.pop();
        } else if is_text(&token)
            && let Some(before) = last.filter(is_text)
            && sql[before.end..token.start].contains('\n')
        {
            token.start = before.start;
            out.pop();
        } else if token.class == Class::Word
            && ["true", "false", "null"].iter().any(|word| token.is(sql, word))
            && !after(&["is", "not", "as", "."])
        {
            token.class = Class::Constant;
        }
        out.push(token);
    }
    out
}

/// Whether a sign behind this token belongs to the number that follows it.
fn starts_value(sql: &str, before: Option<&Token>) -> bool {
    let Some(token) = before else { return true };
    match token.class {
        Class::Operator => true,
        Class::Mark => matches!(token.text(sql), "(" | "," | "["),
        Class::Word => BEFORE_VALUES.iter().any(|word| token.is(sql, word)),
        Class::Quoted | Class::Constant | Class::Parameter => false,
    }
}

/// Words behind which a value begins.
const BEFORE_VALUES: [&str; 19] = [
    "and",
    "or",
    "not",
    "select",
    "where",
    "when",
    "then",
    "else",
    "case",
    "between",
    "limit",
    "offset",
    "by",
    "returning",
    "having",
    "on",
    "like",
    "distinct",
    "all",
];

/// A list whose items are all constants, or the same rows of constants.
struct List {
    /// Of the token that is shown: the first item, or the first row.
    first: std::ops::Range<usize>,
    /// Behind the last item.
    end: usize,
}

/// The list whose items begin here, if it has more than one.
fn repeated(sql: &str, tokens: &[Token], at: usize) -> Option<List> {
    let before = |n: usize, word: &str| {
        at.checked_sub(n).and_then(|at| tokens.get(at)).is_some_and(|t| t.is(sql, word))
    };
    let is_mark = |at: usize, mark: &str| tokens.get(at).is_some_and(|t| t.is(sql, mark));
    let item = |from: usize| -> Option<usize> {
        let mut at = from;
        if before(1, "values") {
            // A row: everything in its brackets is a constant or a comma.
            is_mark(at, "(").then_some(())?;
            while !is_mark(at, ")") {
                at += 1;
                let token = tokens.get(at)?;
                let plain = is_value(token) || token.is(sql, ",") || token.is(sql, "default");
                (plain || token.is(sql, ")")).then_some(())?;
            }
            Some(at + 1)
        } else {
            is_value(tokens.get(at)?).then_some(at + 1)
        }
    };
    if !(before(1, "values") || (before(1, "(") && before(2, "in"))) {
        return None;
    }
    let same = |a: &[Token], b: &[Token]| {
        let shown = |t: &Token| if is_value(t) { "" } else { t.text(sql) };
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| shown(a) == shown(b))
    };
    let first = at..item(at)?;
    let (mut end, mut items) = (first.end, 1);
    while is_mark(end, ",") {
        let next = item(end + 1)?;
        same(&tokens[first.clone()], &tokens[end + 1..next]).then_some(())?;
        (end, items) = (next, items + 1);
    }
    let closed = before(1, "values") || is_mark(end, ")");
    (items > 1 && closed).then_some(List { first, end })
}

fn is_value(token: &Token) -> bool {
    matches!(token.class, Class::Constant | Class::Parameter)
}

pub(super) const FNV: u64 = 0xcbf2_9ce4_8422_2325;

struct Writer<'a> {
    sql: &'a str,
    is_query: bool,
    /// Up to here the text was taken.
    taken: usize,
    text: String,
    hash: u64,
    /// The highest number of a parameter so far.
    parameter: usize,
}

impl Writer<'_> {
    fn mix(&mut self, bytes: impl Iterator<Item = u8>) {
        for byte in bytes.chain([0]) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn token(&mut self, token: &Token) {
        let text = token.text(self.sql);
        match token.class {
            Class::Constant if self.is_query => {
                self.parameter += 1;
                self.text.push_str(&self.sql[self.taken..token.start]);
                self.text.push_str(&format!("${}", self.parameter));
                self.taken = token.end;
                self.mix([b'$'].into_iter());
            }
            Class::Parameter => self.mix([b'$'].into_iter()),
            Class::Word => self.mix(text.bytes().map(|b| b.to_ascii_lowercase())),
            Class::Quoted => self.mix(text[1..].bytes().take(text.len().saturating_sub(2))),
            Class::Constant | Class::Operator | Class::Mark => self.mix(text.bytes()),
        }
    }

    /// Writes the first item of a list for all of them. Gives the place of the token behind it.
    fn list(&mut self, tokens: &[Token], list: &List) -> usize {
        for token in &tokens[list.first.clone()] {
            self.token(token);
        }
        let shown = tokens[list.first.end - 1].end;
        self.text.push_str(&self.sql[self.taken..shown.max(self.taken)]);
        self.text.push_str(" /*, ... */");
        self.taken = tokens[list.end - 1].end;
        self.mix(b"...".iter().copied());
        list.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sql: &str) -> String {
        Fingerprint::of(sql).text
    }

    fn id(sql: &str) -> i64 {
        Fingerprint::of(sql).id
    }

    #[test]
    fn constants_of_queries_are_numbered() {
        let cases = [
            ("SELECT v FROM t WHERE id = 7", "SELECT v FROM t WHERE id = $1"),
            ("select -5, a -5, (-1.5e-3)", "select $1, a -$2, ($3)"),
            (
                "select 'it''s', E'a\\'b', $x$ $1 $x$, U&'d', date '2020-01-01'",
                "select $1, $2, $3, $4, date $5",
            ),
            ("select a from t where b = $2 and c > 5", "select a from t where b = $2 and c > $3"),
            (
                "select true, null, a is null, a is not true",
                "select $1, $2, a is null, a is not true",
            ),
            ("select a.b1, \"7 up\", c$2 from t1", "select a.b1, \"7 up\", c$2 from t1"),
            ("select 1 /* 2 /* 3 */ 4 */ + 5 -- 6", "select $1 /* 2 /* 3 */ 4 */ + $2"),
            ("  -- hint\n (select 1)", "(select $1)"),
            (
                "select a from t where b in (1, -2, 'x') and c in (1)",
                "select a from t where b in ($1 /*, ... */) and c in ($2)",
            ),
            (
                "insert into t values (1, 'a'), (2, 'b'), (3, null) returning 4",
                "insert into t values ($1, $2) /*, ... */ returning $3",
            ),
            (
                "insert into t values (1, now()), (2, now())",
                "insert into t values ($1, now()), ($2, now())",
            ),
            ("select a from t where b in (1, c)", "select a from t where b in ($1, c)"),
            ("set x = 'y'", "set x = 'y'"),
            ("create table t (a int default 7)", "create table t (a int default 7)"),
            ("select 'never ends", "select $1"),
            ("", ""),
        ];
        for (sql, want) in cases {
            assert_eq!(text(sql), want, "{sql}");
        }
    }

    #[test]
    fn the_id_is_made_of_tokens() {
        for (one, other) in [
            ("SELECT v FROM t WHERE id = 7", "select V\n from \"t\" where id=-8.5 /* x */"),
            ("select a from t where b = 5", "select a from t where b = $1"),
            ("select a from t where b in (1, 2)", "select a from t where b in ($1, $2, 'x')"),
            ("insert into t values (1, 2), (3, 4)", "insert into t values ($1,$2),($3,$4),($5,$6)"),
            ("select 'a'\n'b'", "select 'c'"),
            ("begin", "BEGIN"),
        ] {
            assert_eq!(id(one), id(other), "{one} | {other}");
        }
        for (one, other) in [
            ("select a from t", "select b from t"),
            ("select a from t", "select a from \"T\""),
            ("select ab from t", "select a b from t"),
            ("select a from t where b > 1", "select a from t where b >= 1"),
            ("select a is null", "select a is not null"),
            ("set x = 'y'", "set x = 'z'"),
        ] {
            assert_ne!(id(one), id(other), "{one} | {other}");
        }
    }

    #[test]
    fn a_shape_has_the_fingerprint_of_its_statement() {
        for sql in [
            "select v from t where id = -7 and b between 1 and -2 or c<>'x'",
            "INSERT INTO t VALUES (1, 'x', NULL, -2.50), (3, 'y', now(), 4)",
            "UPDATE t SET n = n - 1, s = 'a' WHERE id in (3, -4) RETURNING n + 2",
            "select 1, a-1 from t where a = 5 limit 10",
        ] {
            let shape = crate::Shape::of(sql).expect("has a shape");
            assert_eq!(id(shape.text()), id(sql), "{sql}");
        }
    }
}
