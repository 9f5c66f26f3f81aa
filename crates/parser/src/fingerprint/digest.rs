//! Digests by which statements are denied, also inside of other ones.
//!
//! ```text
//!   SELECT v FROM t WHERE id = 7              one loose digest for all of these:
//!   select "v" from public.t where (id) = 8::int -- x
//!   EXPLAIN ANALYZE select V from U&"\0074" where id = cast('9' as bigint)
//!   WITH x AS (select v from t where id = $1) TABLE x
//! ```
//! A statement has a digest for the whole of it and one for each query in it: from a word that
//! begins a query to the bracket that closes around it, to a UNION and its like, or to the end. So
//! it does not help to put a query into PREPARE, DECLARE CURSOR, COPY, a WITH or a subquery.
//!
//! What does not count: white space, comments, case, quotes and escapes of names that are not
//! needed, the schema `public`, AS, casts, brackets around a condition or a value; and of loose
//! digests constants, how many of them stand in an IN list, and rows of VALUES. It is about words,
//! not about meaning: who writes another condition has another statement.
//!
//! A digest is a sum over powers of a base modulo the Mersenne prime 2^61 - 1 (Karp and Rabin):
//! with the sums of all beginnings that of any part is one multiplication, whatever the depth.

use std::borrow::Cow;
use std::ops::Range;

use super::of_text::{Class, FNV, Token, constants, tokens};

/// See the [module's page](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Without constants: first that of the whole statement.
    pub loose: Vec<u64>,
    /// With them.
    pub exact: Vec<u64>,
}

impl Digests {
    /// Of one statement's text.
    pub fn of(sql: &str) -> Digests {
        let words = Words::of(sql);
        let ranges = words.ranges();
        let powers: Vec<u64> = std::iter::successors(Some(1), |power| Some(times(*power, BASE)))
            .take(words.all.len() + 1)
            .collect();
        let all = |loose: bool| {
            let sums = words.sums(loose);
            let mut out: Vec<u64> = ranges.iter().map(|r| digest(&sums, &powers, r)).collect();
            // The whole stays the first one.
            out[1..].sort_unstable();
            out.dedup();
            out
        };
        Digests { loose: all(true), exact: all(false) }
    }
}

/// How queries begin.
const BEGINNINGS: [&str; 8] =
    ["select", "insert", "update", "delete", "with", "values", "table", "merge"];
/// What stands between queries.
const BETWEEN: [&str; 3] = ["union", "intersect", "except"];
/// Behind these a bracket only says what belongs together.
const BEFORE_GROUPS: [&str; 24] = [
    "where",
    "and",
    "or",
    "not",
    "on",
    "select",
    "when",
    "then",
    "else",
    "having",
    "by",
    "distinct",
    "case",
    "between",
    "limit",
    "offset",
    "union",
    "intersect",
    "except",
    "returning",
    "is",
    "like",
    "ilike",
    "set",
];
/// Types that may stand in front of a text.
const TYPES: [&str; 16] = [
    "bool",
    "boolean",
    "bytea",
    "date",
    "float8",
    "int",
    "int2",
    "int4",
    "int8",
    "interval",
    "numeric",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Word<'a> {
    class: Class,
    text: Cow<'a, str>,
    /// It does not count.
    out: bool,
    /// It does not count to loose digests.
    out_of_loose: bool,
}

impl Word<'_> {
    fn is(&self, text: &str) -> bool {
        self.class != Class::Constant && self.text == text
    }

    fn is_one_of(&self, texts: &[&str]) -> bool {
        self.class == Class::Word && texts.iter().any(|text| self.text == *text)
    }

    fn is_value(&self) -> bool {
        matches!(self.class, Class::Constant | Class::Parameter)
    }
}

/// The words of a statement, with the places of brackets that close.
struct Words<'a> {
    all: Vec<Word<'a>>,
    /// By the place of an opening bracket.
    closes: Vec<usize>,
}

impl<'a> Words<'a> {
    fn of(sql: &'a str) -> Words<'a> {
        let mut all: Vec<Word<'a>> = Vec::new();
        let found = constants(sql, tokens(sql));
        for (at, token) in found.iter().enumerate() {
            let escaped = is_escaped_name(sql, &found, at);
            if escaped {
                all.truncate(all.len() - 2);
            }
            all.push(word(sql, token, escaped));
        }
        while all.last().is_some_and(|word| word.is(";")) {
            all.pop();
        }
        let mut words = Words { closes: vec![usize::MAX; all.len()], all };
        words.match_brackets();
        words.leave_out_casts();
        words.leave_out_noise();
        words.join_lists();
        words
    }

    fn match_brackets(&mut self) {
        let mut open = Vec::new();
        for at in 0..self.all.len() {
            if self.all[at].is("(") {
                open.push(at);
            } else if self.all[at].is(")")
                && let Some(begin) = open.pop()
            {
                self.closes[begin] = at;
            }
        }
    }

    fn is(&self, at: usize, text: &str) -> bool {
        self.all.get(at).is_some_and(|word| word.is(text))
    }

    fn leave_out(&mut self, places: Range<usize>) {
        self.all[places].iter_mut().for_each(|word| word.out = true);
    }

    /// `x::type`, `CAST(x AS type)` of one value or column, `DATE '..'`.
    fn leave_out_casts(&mut self) {
        for at in 0..self.all.len() {
            if self.is(at, "::") {
                let end = self.end_of_type(at + 1);
                self.leave_out(at..end);
            } else if self.is(at, "cast") && self.is(at + 1, "(") {
                let close = self.closes[at + 1];
                let mut end = at + 3;
                while self.is(end, ".") {
                    end += 2;
                }
                if close != usize::MAX && self.is(end, "as") && end < close {
                    self.leave_out(at..at + 2);
                    self.leave_out(end..close + 1);
                }
            } else if self.all[at].is_one_of(&TYPES)
                && self.all.get(at + 1).is_some_and(|next| {
                    next.class == Class::Constant && next.text.ends_with(['\'', '$'])
                })
            {
                self.leave_out(at..at + 1);
            }
        }
    }

    /// Behind a type's name that begins here.
    fn end_of_type(&self, at: usize) -> usize {
        let mut end = at + 1;
        while self.is(end, ".") {
            end += 2;
        }
        let two = [("double", "precision"), ("character", "varying"), ("bit", "varying")];
        if two.iter().any(|(one, other)| self.is(end - 1, one) && self.is(end, other)) {
            end += 1;
        }
        if self.is(end, "(") && self.closes[end] != usize::MAX {
            end = self.closes[end] + 1;
        }
        if (self.is(end, "with") || self.is(end, "without")) && self.is(end + 1, "time") {
            end += 3;
        }
        while self.is(end, "[") {
            end += if self.is(end + 1, "]") { 2 } else { 3 };
        }
        end.min(self.all.len())
    }

    /// AS, `public.`, and brackets that only say what belongs together.
    fn leave_out_noise(&mut self) {
        for at in 0..self.all.len() {
            if self.is(at, "as") || (self.is(at, "public") && self.is(at + 1, ".")) {
                let end = if self.is(at, "as") { at + 1 } else { at + 2 };
                self.leave_out(at..end);
            }
            let close = self.closes[at];
            if close == usize::MAX {
                continue;
            }
            let before = self.all[..at].iter().rev().find(|word| !word.out);
            let groups = before.is_none_or(|word| match word.class {
                Class::Operator => true,
                Class::Mark => matches!(&*word.text, "(" | "," | "["),
                _ => word.is_one_of(&BEFORE_GROUPS),
            });
            // A row has more than one value, and that they are together says something.
            let is_row = self.has_comma(at, close);
            if groups && !is_row {
                self.all[at].out = true;
                self.all[close].out = true;
            }
        }
    }

    /// Whether a comma stands in these brackets, and in none within.
    fn has_comma(&self, open: usize, close: usize) -> bool {
        let mut at = open + 1;
        while at < close {
            if self.is(at, ",") {
                return true;
            }
            at = if self.is(at, "(") && self.closes[at] < close { self.closes[at] } else { at } + 1;
        }
        false
    }

    /// Constants behind IN are one, whatever their number, and so are rows of VALUES.
    fn join_lists(&mut self) {
        for at in 1..self.all.len() {
            let close = self.closes[at];
            if close == usize::MAX {
                continue;
            }
            if self.is(at - 1, "in") {
                self.leave_out_values_behind_the_first(at, close);
            } else if self.is(at - 1, "values") {
                let mut row = close;
                while self.is(row + 1, ",") && self.is(row + 2, "(") {
                    let end = self.closes[row + 2];
                    if end == usize::MAX || !self.is_row_of_values(row + 2, end) {
                        break;
                    }
                    self.all[row + 1..=end].iter_mut().for_each(|word| word.out_of_loose = true);
                    row = end;
                }
            }
        }
    }

    fn leave_out_values_behind_the_first(&mut self, open: usize, close: usize) {
        if !self.is_row_of_values(open, close) {
            return;
        }
        let mut values = 0;
        for at in open + 1..close {
            let word = &mut self.all[at];
            values += usize::from(word.is_value());
            word.out_of_loose = values > 1 || word.is(",");
        }
    }

    fn is_row_of_values(&self, open: usize, close: usize) -> bool {
        let plain =
            |word: &Word<'_>| word.out || word.is_value() || word.is(",") || word.is("default");
        self.all[open + 1..close].iter().all(plain)
    }

    /// The whole, and each query in it.
    fn ranges(&self) -> Vec<Range<usize>> {
        let count = self.all.len();
        let mut out = std::iter::once(0..count).collect::<Vec<_>>();
        // Queries that have begun: those of each bracket that is open.
        let mut open: Vec<Vec<usize>> = vec![Vec::new()];
        for at in 0..count {
            if self.is(at, "(") {
                open.push(Vec::new());
            } else if self.is(at, ")") {
                if open.len() > 1 {
                    let begun = open.pop().unwrap_or_default();
                    out.extend(begun.into_iter().map(|begin| begin..at));
                }
            } else if self.all[at].is_one_of(&BETWEEN) {
                let begun = open.last().into_iter().flatten();
                out.extend(begun.map(|begin| *begin..at));
            } else if self.all[at].is_one_of(&BEGINNINGS)
                && let Some(begun) = open.last_mut()
                && begun.len() < MOST_BEGUN
            {
                begun.push(at);
            }
        }
        out.extend(open.into_iter().flatten().map(|begin| begin..count));
        out.truncate(MOST_RANGES);
        out
    }

    /// Sums of all beginnings, each with how many words count in it.
    fn sums(&self, loose: bool) -> Vec<(u64, usize)> {
        let (mut sum, mut count) = (0, 0);
        let mut out = vec![(sum, count)];
        for word in &self.all {
            if !(word.out || loose && word.out_of_loose) {
                let text = if loose && word.is_value() { "$" } else { &word.text };
                sum = add(times(sum, BASE), 1 + hash(text) % (PRIME - 1));
                count += 1;
            }
            out.push((sum, count));
        }
        out
    }
}

/// Queries of one bracket that have begun.
const MOST_BEGUN: usize = 64;
/// Queries of one statement that are looked at.
const MOST_RANGES: usize = 1024;
const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0bad_5eed_1234_5677;

fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    add((product & u128::from(PRIME)) as u64, (product >> 61) as u64)
}

fn add(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

/// The sum of a part: that of the end, less that of what is in front.
fn digest(sums: &[(u64, usize)], powers: &[u64], range: &Range<usize>) -> u64 {
    let ((begin, before), (end, after)) = (sums[range.start], sums[range.end]);
    add(end, PRIME - times(begin, powers[after - before]))
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(FNV, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Whether a name in quotes is the end of `U&"..."`.
fn is_escaped_name(sql: &str, found: &[Token], at: usize) -> bool {
    let [.., before, and] = &found[..at] else { return false };
    found[at].class == Class::Quoted
        && before.is(sql, "u")
        && and.text(sql) == "&"
        && before.end == and.start
        && and.end == found[at].start
}

fn word<'a>(sql: &'a str, token: &Token, escaped: bool) -> Word<'a> {
    let text = token.text(sql);
    let (class, text) = match token.class {
        Class::Word => (Class::Word, Cow::Owned(text.to_ascii_lowercase())),
        Class::Quoted => {
            let inner = text[1..].strip_suffix('"').unwrap_or(&text[1..]).replace("\"\"", "\"");
            let name = if escaped { unescaped(&inner) } else { inner };
            let plain =
                name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit());
            // A name that needs its quotes is no keyword.
            (if plain { Class::Word } else { Class::Quoted }, Cow::Owned(name))
        }
        class => (class, Cow::Borrowed(text)),
    };
    Word { class, text, out: false, out_of_loose: false }
}

/// `\0074` and `\+000074` as what they stand for.
fn unescaped(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let (from, digits) = if behind.starts_with('+') { (1, 6) } else { (0, 4) };
        let number = behind.get(from..from + digits);
        match number.and_then(|n| u32::from_str_radix(n, 16).ok()).and_then(char::from_u32) {
            Some(c) => {
                out.push(c);
                rest = &behind[from + digits..];
            }
            None => {
                out.push('\\');
                rest = behind.strip_prefix('\\').unwrap_or(behind);
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loose(sql: &str) -> u64 {
        Digests::of(sql).loose[0]
    }

    fn is_in(denied: &str, sent: &str) -> bool {
        Digests::of(sent).loose.contains(&loose(denied))
    }

    /// Thirty ways around a rule that end at it.
    const WAYS: &[&str] = &[
        "select v from t where id = 8",
        "SELECT V FROM T WHERE ID = 8",
        "select v\n\tfrom t\r\n where id=8;",
        "/* hint */ select v from t -- end\n where id = 8",
        "select /* a /* nested */ one */ v from t where id = 8 ;;",
        "select v from t where id = -8",
        "select v from t where id = 8.5e3",
        "select v from t where id = '8'",
        "select v from t where id = E'\\x38'",
        "select v from t where id = $$8$$",
        "select v from t where id = $1",
        "select v from t where id = null",
        "select v from t where id = 8::int",
        "select v from t where id::bigint = 8::numeric(10, 2)",
        "select v from t where id = cast(8 as double precision)",
        "select v from t where id = cast('8' as character varying(7))",
        "select v from t where id = int '8'",
        "select \"v\" from \"t\" where \"id\" = 8",
        "select U&\"\\0076\" from u&\"\\+000074\" where id = 8",
        "select v from public.t where id = 8",
        "select v from \"public\".t where id = 8",
        "select v from t where (id) = (8)",
        "select v from t where ((id = 8))",
        "(select v from t where id = 8)",
        "with x as (select v from t where id = 8) select * from x",
        "with x as materialized (select v from t where id = 8) table x",
        "with nothing as (select 1) select v from t where id = 8",
        "select * from (select v from t where id = 8) x",
        "select 1 where exists (select v from t where id = 8) limit 1",
        "select v from t where id = 8 union all select 'x'",
        "prepare p as select v from t where id = 8",
        "declare c no scroll cursor with hold for select v from t where id = 8",
        "explain (analyze, verbose) select v from t where id = 8",
    ];

    #[test]
    fn no_way_around_a_rule() {
        for way in WAYS {
            assert!(is_in("Select v From t Where id = 7", way), "{way}");
        }
        for way in [
            "copy (select v from t where id = 8) to stdout",
            "create table u as select v from t where id = 8",
            "insert into u select v from t where id = 8",
            "create view w (a) as select v from t where id = 8",
        ] {
            assert!(is_in("select v from t where id = 7", way), "{way}");
        }
    }

    #[test]
    fn another_statement_is_another_one() {
        for other in [
            "select v from t where id > 7",
            "select v from t",
            "select v, w from t where id = 7",
            "select v from u where id = 7",
            "select v from s.t where id = 7",
            "select v from \"T\" where id = 7",
            "select v from t where id = 7 and w = 8",
            "select v from t where id = 7 limit 10",
            "select v from t where id = w",
            "select v from t where id = f(7)",
            "update t set v = 1 where id = 7",
        ] {
            assert!(!is_in("select v from t where id = 7", other), "{other}");
        }
        assert!(!is_in(
            "select * from t where (a, b) = (1, 2)",
            "select * from t where a, b = 1, 2"
        ));
    }

    #[test]
    fn lists_and_rows_are_one_whatever_their_length() {
        assert!(is_in(
            "select 1 from t where a in (1)",
            "select 2 from t where a in (1, $2, 'x'::text)"
        ));
        assert!(!is_in("select 1 from t where a in (1)", "select 2 from t where a in (1, b)"));
        assert!(is_in(
            "insert into t values (1, 'a')",
            "insert into t values (1, 'a'), (2, 'b'), (3, default)"
        ));
        assert!(!is_in(
            "insert into t values (1, 'a')",
            "insert into t values (1, 'a'), (2, now())"
        ));
    }

    #[test]
    fn exact_digests_know_constants() {
        let exact = |sql: &str| Digests::of(sql).exact;
        let denied = exact("select v from t where id = 7")[0];
        assert!(exact("explain SELECT v FROM t WHERE id = 7 -- x").contains(&denied));
        assert!(!exact("select v from t where id = 8").contains(&denied));
    }

    #[test]
    fn texts_of_all_kinds_end_soon() {
        for text in
            ["", ";", "(((", ")))", "'", "\"", "U&\"", "$", "select (", "in (1, ", "x::", "cast("]
        {
            assert!(!Digests::of(text).loose.is_empty(), "{text}");
        }
        let deep = format!("{}1{}", "select (".repeat(5_000), ")".repeat(5_000));
        assert_eq!(Digests::of(&deep).loose.len(), Digests::of(&deep).exact.len());
        let many = "select 1 union ".repeat(20_000);
        assert!(Digests::of(&many).loose.len() <= MOST_RANGES);
    }
}
