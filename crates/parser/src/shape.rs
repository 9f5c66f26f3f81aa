//! Statements that differ in their literals only have one shape.
//!
//! ```text
//!   SELECT a FROM t WHERE b = 7 AND c < 'x'      SELECT a FROM t WHERE b = $1 AND c < $2
//!                                                $1 an int4: 7, $2 of any type: 'x'
//! ```
//! A client that writes values into its texts has its statements parsed and planned every time,
//! though they are the same but for the values. The shape is a statement with parameters that gives
//! the same answer. It is found by a look at the text, much cheaper than parsing it.
//!
//! A literal becomes a parameter where nothing but its value matters: next to a comparison or to
//! arithmetic in a condition or in SET, in a row that is compared, in an IN list, as a bound of
//! BETWEEN, as a whole value of VALUES. A number also in an array of a condition, behind `||`, and
//! under a cast. Anywhere else (select lists, GROUP BY, LIMIT, function arguments) it stays. A text
//! with anything unusual in it has no shape.

/// What a literal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralKind {
    /// Fits an int4.
    Int4,
    /// Fits an int8.
    Int8,
    /// Any other number.
    Numeric,
    /// In quotes: its type comes from where it stands.
    Quoted,
}

/// A literal that became a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Its type, as far as it tells one.
    pub kind: LiteralKind,
    /// Its value, without quotes.
    pub text: String,
}

/// See the [module documentation](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The statement with parameters, and behind a zero byte the kinds of the literals: equal for
    /// statements that can share a plan.
    key: String,
    end: usize,
    /// Values of `$1`, `$2`, ...
    pub literals: Vec<Literal>,
}

/// Longest text that is looked at.
const MAX_BYTES: usize = 8 << 10;
/// Most literals.
const MAX_LITERALS: usize = 64;

impl Shape {
    /// The shape of a text that is one SELECT, INSERT, UPDATE or DELETE.
    pub fn of(sql: &str) -> Option<Shape> {
        let sql = sql.trim_end().trim_end_matches(';').trim_end();
        // Characters by their numbers: `U&'..'`.
        if sql.len() > MAX_BYTES || sql.contains("&'") {
            return None;
        }
        Reader::new(sql).read()
    }

    /// As [`Shape::of`], but quoted literals that are the same share a parameter: a plan knows that
    /// they are equal. Texts share such a shape only if the same ones of their literals are equal.
    pub fn sharing(sql: &str) -> Option<Shape> {
        let sql = sql.trim_end().trim_end_matches(';').trim_end();
        let mut shape = Reader { shares: true, ..Reader::new(sql) }.read()?;
        // Also where no two are equal it is another one.
        shape.key.push('=');
        Some(shape)
    }

    /// What statements that can share a plan have in common.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The statement with parameters.
    pub fn text(&self) -> &str {
        &self.key[..self.end]
    }

    /// Whether there may be alternatives that have a condition in common, `b = 'x' AND c = 7 OR
    /// b = 'x' AND d = 8`. It tells more than the two parameters of the shape, of which nobody
    /// knows that they are equal.
    pub fn repeats_itself_in_alternatives(&self) -> bool {
        let texts = || self.literals.iter().filter(|l| l.kind == LiteralKind::Quoted);
        let repeats = texts().enumerate().any(|(n, one)| texts().skip(n + 1).any(|l| l == one));
        let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let mut words = self.text().as_bytes().split(|b| !is_part(*b));
        repeats && words.any(|word| word.eq_ignore_ascii_case(b"or"))
    }
}

/// What stands before a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// `=`, `<` and the like, with a column or an expression on its left.
    Comparison,
    /// `+ - * / %` or `||` behind something.
    Arithmetic,
    /// A sign: what stands before it decides.
    Sign(Sign),
    /// BETWEEN, or the AND that belongs to it.
    Bound,
    /// `(` or `,` of a list of values.
    Item,
    /// A name, a closing bracket, a literal that something is computed with.
    Value,
    /// A literal: what is compared with it is no column's value.
    Literal,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Comparison,
    Bound,
    Item,
}

/// What a part of a statement is, as far as literals go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Condition,
    Values,
    /// An IN list, a row that is compared, or a row of VALUES.
    List,
    /// `ARRAY [ .. ]` in a condition.
    Array,
    Other,
}

impl Region {
    /// Whether a number with which something is computed is no more than its value.
    fn computes(self) -> bool {
        matches!(self, Region::Condition | Region::List | Region::Array)
    }
}

struct Reader<'a> {
    sql: &'a str,
    at: usize,
    /// Up to here the text is in `key`.
    taken: usize,
    key: String,
    literals: Vec<Literal>,
    region: Region,
    outer: Vec<Region>,
    before: Before,
    /// The word before was IN or VALUES.
    opens_list: bool,
    /// The word before was ARRAY.
    opens_array: bool,
    /// A BETWEEN waits for its AND.
    between: bool,
    /// Quoted literals that are the same become one parameter.
    shares: bool,
}

impl<'a> Reader<'a> {
    fn new(sql: &'a str) -> Reader<'a> {
        Reader {
            sql,
            at: 0,
            taken: 0,
            key: String::with_capacity(sql.len() + 16),
            literals: Vec::new(),
            region: Region::Other,
            outer: Vec::new(),
            before: Before::Other,
            opens_list: false,
            opens_array: false,
            between: false,
            shares: false,
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.sql.as_bytes()[self.at..]
    }

    fn read(mut self) -> Option<Shape> {
        let first = self.sql.split_ascii_whitespace().next()?;
        let known = ["select", "insert", "update", "delete"];
        if !known.iter().any(|word| first.eq_ignore_ascii_case(word)) {
            return None;
        }
        while let Some(&byte) = self.rest().first() {
            match byte {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word()?,
                b'"' => self.quoted_name()?,
                b'0'..=b'9' => self.number()?,
                b'\'' => self.quoted()?,
                b'(' => self.opening(),
                b'[' => {
                    let array = self.opens_array && self.region == Region::Condition;
                    self.enter(if array { Region::Array } else { Region::Other });
                }
                b')' | b']' => {
                    self.region = self.outer.pop()?;
                    self.punctuation(Before::Value);
                    self.opens_list = self.region == Region::Values;
                }
                b',' => {
                    let items = matches!(self.region, Region::List | Region::Array);
                    self.punctuation(if items { Before::Item } else { Before::Other });
                    self.opens_list = self.region == Region::Values;
                }
                b'.' => self.punctuation(Before::Other),
                b':' => self.punctuation(Before::Other),
                byte if is_operator(byte) => self.operator()?,
                _ => return None,
            }
        }
        self.key.push_str(&self.sql[self.taken..]);
        let end = self.key.len();
        self.key.push('\0');
        for literal in &self.literals {
            self.key.push(match literal.kind {
                LiteralKind::Int4 => 'i',
                LiteralKind::Int8 => 'l',
                LiteralKind::Numeric => 'n',
                LiteralKind::Quoted => 's',
            });
        }
        Some(Shape { key: self.key, end, literals: self.literals })
    }

    fn punctuation(&mut self, before: Before) {
        self.at += 1;
        self.before = before;
        (self.opens_list, self.opens_array) = (false, false);
    }

    /// A bracket opens a part of the statement.
    fn enter(&mut self, region: Region) {
        self.outer.push(self.region);
        self.region = region;
        let items = matches!(region, Region::List | Region::Array);
        self.punctuation(if items { Before::Item } else { Before::Other });
    }

    /// `(` of a list, of a row that is compared or stands in a list, or of anything.
    fn opening(&mut self) {
        let row = match self.before {
            Before::Comparison => self.region == Region::Condition,
            Before::Item => self.region == Region::List,
            _ => false,
        };
        self.enter(match self.region {
            _ if row || self.opens_list => Region::List,
            Region::List | Region::Array => Region::Other,
            region => region,
        });
    }

    fn word(&mut self) -> Option<()> {
        let rest = self.rest();
        let part = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
        let length = rest.iter().take_while(part).count();
        // Quotes with a letter before them, dollar quotes, letters of other scripts.
        if matches!(rest.get(length), Some(b'\'' | b'$' | 0x80..)) {
            return None;
        }
        let word = &self.sql[self.at..self.at + length];
        self.at += length;
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
        self.opens_list = false;
        self.opens_array = is("array");
        let and = is("and");
        if and && self.between {
            (self.between, self.before) = (false, Before::Bound);
            return Some(());
        }
        self.before = Before::Other;
        if is("where") || is("on") || is("set") {
            self.region = Region::Condition;
        } else if is("values") {
            (self.region, self.opens_list) = (Region::Values, true);
        } else if is("in") {
            self.opens_list = self.region == Region::Condition;
        } else if is("between") {
            (self.between, self.before) = (true, Before::Bound);
        } else if LEAVES.iter().any(|keyword| is(keyword)) {
            self.region = Region::Other;
        } else if !and && !is("or") && !is("not") {
            self.before = Before::Value;
        }
        Some(())
    }

    fn quoted_name(&mut self) -> Option<()> {
        let length = self.rest()[1..].iter().position(|b| *b == b'"')?;
        self.at += length + 2;
        self.before = Before::Value;
        (self.opens_list, self.opens_array) = (false, false);
        Some(())
    }

    fn operator(&mut self) -> Option<()> {
        let length = self.rest().iter().take_while(|b| is_operator(**b)).count();
        let operator = &self.sql[self.at..self.at + length];
        if operator.contains("--") || operator.contains("/*") {
            return None;
        }
        let value = self.before == Before::Value;
        let any = value || self.before == Before::Literal;
        let signed = match self.before {
            Before::Comparison => Some(Sign::Comparison),
            Before::Bound => Some(Sign::Bound),
            Before::Item => Some(Sign::Item),
            _ => None,
        };
        self.before = match (operator, signed) {
            ("=" | "<" | ">" | "<=" | ">=" | "<>" | "!=", _) if value => Before::Comparison,
            ("+" | "-" | "*" | "/" | "%" | "||", _) if any => Before::Arithmetic,
            ("-", Some(sign)) => Before::Sign(sign),
            _ => Before::Other,
        };
        (self.opens_list, self.opens_array) = (false, false);
        self.at += length;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let rest = self.rest();
        let digits = |from: usize| rest[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let mut length = digits(0);
        let whole = rest.get(length) != Some(&b'.');
        if !whole {
            length += 1 + digits(length + 1);
        }
        // Exponents, other bases, a letter too many.
        if rest.get(length).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'.') {
            return None;
        }
        let sign = match self.before {
            Before::Sign(_) => "-",
            _ => "",
        };
        let digits = &self.sql[self.at..self.at + length];
        // The sign is an operator to PostgreSQL: the type is that of the number without it.
        let kind = match digits.parse::<i64>() {
            Ok(v) if whole && i32::try_from(v).is_ok() => LiteralKind::Int4,
            Ok(_) if whole => LiteralKind::Int8,
            _ => LiteralKind::Numeric,
        };
        self.literal(kind, format!("{sign}{digits}"), length);
        Some(())
    }

    fn quoted(&mut self) -> Option<()> {
        let rest = self.rest();
        let mut length = 1;
        loop {
            match rest.get(length)? {
                b'\'' if rest.get(length + 1) == Some(&b'\'') => length += 2,
                b'\'' => break,
                0 | b'\\' => return None,
                _ => length += 1,
            }
        }
        let text = self.sql[self.at + 1..self.at + length].replace("''", "'");
        // Two quoted texts on two lines are one.
        if self.sql[self.at + length + 1..].trim_start().starts_with('\'') {
            return None;
        }
        self.literal(LiteralKind::Quoted, text, length + 1);
        Some(())
    }

    /// A literal ends at `at + length`: a parameter, or a part of the text.
    fn literal(&mut self, kind: LiteralKind, text: String, length: usize) {
        let end = self.at + length;
        let follows = follower(&self.sql[end..]);
        let quoted = kind == LiteralKind::Quoted;
        let signed = matches!(self.before, Before::Sign(_));
        let place = match self.before {
            Before::Comparison | Before::Bound | Before::Sign(Sign::Comparison | Sign::Bound) => {
                self.region == Region::Condition
            }
            Before::Arithmetic => self.region.computes() && !quoted,
            Before::Item | Before::Sign(Sign::Item) => match self.region {
                Region::List => follows != Follower::End,
                // What an array's texts are is found out from all of them together.
                Region::Array => !quoted,
                Region::Condition | Region::Values | Region::Other => false,
            },
            Before::Value | Before::Literal | Before::Other => false,
        };
        let fits = match follows {
            Follower::Separator | Follower::End => true,
            Follower::Arithmetic => !quoted,
            // The cast comes before the sign.
            Follower::Cast => !quoted && !signed,
            Follower::Other => false,
        };
        if place && fits && self.literals.len() < MAX_LITERALS {
            let mut from = &self.sql[self.taken..self.at];
            if signed {
                from = from.trim_end().strip_suffix('-').unwrap_or(from);
            }
            self.key.push_str(from);
            let number = self.number_of(Literal { kind, text });
            // A space, so that no sign and no letter touches it.
            self.key.push_str(&format!(" ${number}"));
            self.taken = end;
        }
        self.at = end;
        let computed = self.before == Before::Arithmetic;
        self.before = if computed { Before::Value } else { Before::Literal };
        self.opens_list = false;
    }

    /// The parameter of a literal.
    fn number_of(&mut self, literal: Literal) -> usize {
        let shares = self.shares && literal.kind == LiteralKind::Quoted;
        let known = self.literals.iter().position(|known| shares && *known == literal);
        known.map_or_else(
            || {
                self.literals.push(literal);
                self.literals.len()
            },
            |at| at + 1,
        )
    }
}

fn is_operator(byte: u8) -> bool {
    b"=<>!+-*/%|&#~@^?".contains(&byte)
}

/// What follows a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follower {
    /// `)`, `]` or `,`.
    Separator,
    /// The end, or a word that ends an operand.
    End,
    Arithmetic,
    /// `::`.
    Cast,
    Other,
}

/// Words behind which a part of a statement begins in which literals are no parameters.
const LEAVES: [&str; 14] = [
    "select",
    "from",
    "group",
    "order",
    "having",
    "limit",
    "offset",
    "returning",
    "union",
    "intersect",
    "except",
    "case",
    "fetch",
    "window",
];
/// Words that can stand behind a whole condition or value.
const ENDS: [&str; 12] = [
    "and",
    "or",
    "where",
    "group",
    "order",
    "limit",
    "offset",
    "returning",
    "union",
    "for",
    "from",
    "join",
];

fn follower(rest: &str) -> Follower {
    let rest = rest.trim_start();
    let Some(&byte) = rest.as_bytes().first() else { return Follower::End };
    match byte {
        b')' | b']' | b',' => Follower::Separator,
        b':' if rest.starts_with("::") => Follower::Cast,
        b'a'..=b'z' | b'A'..=b'Z' => {
            let length =
                rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
            match ENDS.iter().any(|word| rest[..length].eq_ignore_ascii_case(word)) {
                true => Follower::End,
                false => Follower::Other,
            }
        }
        _ => {
            let length = rest.bytes().take_while(|b| is_operator(*b)).count();
            match &rest[..length] {
                "+" | "-" | "*" | "/" | "%" | "||" => Follower::Arithmetic,
                _ => Follower::Other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        match Shape::of(sql) {
            None => "none".to_string(),
            Some(shape) => {
                let kinds = shape.key()[shape.end + 1..].to_string();
                let literals: Vec<&str> = shape.literals.iter().map(|l| l.text.as_str()).collect();
                let text = shape.text().split_whitespace().collect::<Vec<_>>().join(" ");
                format!("{text} [{kinds}] {}", literals.join("|"))
            }
        }
    }

    #[test]
    fn literals_of_conditions_and_values_are_parameters() {
        let cases = [
            ("SELECT v FROM t WHERE id = 7;", "SELECT v FROM t WHERE id = $1 [i] 7"),
            (
                "select a from t where b = -5 and c<>'it''s' or d < 9000000000",
                "select a from t where b = $1 and c<> $2 or d < $3 [isl] -5|it's|9000000000",
            ),
            (
                "INSERT INTO t VALUES (1, 'x', NULL, -2.50), (3, 'y', now(), 4)",
                "INSERT INTO t VALUES ( $1, $2, NULL, $3), ( $4, $5, now(), $6) [isnisi] \
                 1|x|-2.50|3|y|4",
            ),
            (
                "INSERT INTO t VALUES (1 + 2, 'x' || 'y', 3::text, f(4, 5) + 6)",
                "INSERT INTO t VALUES ( $1 + $2, 'x' || 'y', $3::text, f(4, 5) + $4) [iiii] \
                 1|2|3|6",
            ),
            (
                "UPDATE t SET n = n + 1, s = 'a' WHERE id = 3 RETURNING n + 2",
                "UPDATE t SET n = n + $1, s = $2 WHERE id = $3 RETURNING n + 2 [isi] 1|a|3",
            ),
            (
                "select 1, a+1 from t where a between 5 and 5 + 9 and b in (1, 2) limit 10",
                "select 1, a+1 from t where a between $1 and $2 + $3 and b in ( $4, $5) limit 10 \
                 [iiiii] 5|5|9|1|2",
            ),
            ("select a from t where 1 = 0", "select a from t where 1 = 0 [] "),
            (
                "select a from t where (a, b) > (1, 'x') and (a) in ((2, -3), (4, f(5, 6)))",
                "select a from t where (a, b) > ( $1, $2) and (a) in (( $3, $4), ( $5, f(5, 6))) \
                 [isiii] 1|x|2|-3|4",
            ),
            (
                "select a from t where a = any (array[1, 2 + 3, -4]::bigint[]) \
                 and s = 'n' || 5::text",
                "select a from t where a = any (array[ $1, $2 + $3, $4]::bigint[]) \
                 and s = 'n' || $5::text [iiiii] 1|2|3|-4|5",
            ),
        ];
        for (sql, want) in cases {
            assert_eq!(shown(sql), want, "{sql}");
        }
    }

    #[test]
    fn where_more_than_the_value_matters_it_stays() {
        for sql in [
            "select a from t where d > date '2020-01-01'",
            "select a from t where d > '2020-01-01'::date",
            "select a from t where s = 'a' || s",
            "select a from t where s = any (array['a', 'b'])",
            "select a from t where n = -1::text",
            "select array[1, 2] from t where x[1] < y",
            "select a from t where s like 'a%'",
            "select a from t where j ->> 'k' is null",
            "select a from t where round(a, 2) > b",
            "select a from t where case when a = 1 then 2 else 3 end > b",
            "select a from t group by a having count(*) > 3",
            "select a from t order by 1 limit 3 offset 4",
            "select a from t where a = any ('{1,2}')",
            "select a from t where (1, 2) < (a, b)",
            "select x[1] from t where b is null",
        ] {
            assert_eq!(Shape::of(sql).expect("has a shape").literals, [], "{sql}");
        }
    }

    #[test]
    fn equal_texts_share_a_parameter_if_that_is_wanted() {
        let shared = |sql: &str| Shape::sharing(sql).expect("has a shape");
        let sql =
            "select a from t where b = 'x' and c = 'y' or b = 'z' and c = 'y' or d = 7 and e = 7";
        let shape = shared(sql);
        let text = shape.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            text,
            "select a from t where b = $1 and c = $2 or b = $3 and c = $2 or d = $4 and e = $5"
        );
        let literals: Vec<&str> = shape.literals.iter().map(|l| l.text.as_str()).collect();
        assert_eq!(literals, ["x", "y", "z", "7", "7"]);
        // Not for others that are equal, and never for those without any.
        assert_eq!(shape.key(), shared(&sql.replace("'y'", "'w'")).key());
        assert_ne!(shape.key(), shared(&sql.replace("'z'", "'x'")).key());
        let apart = "select a from t where b = 'x' or b = 'y'";
        assert_ne!(shared(apart).key(), Shape::of(apart).expect("has a shape").key());
    }

    #[test]
    fn unusual_texts_have_none() {
        for sql in [
            "show all",
            "select a from t where b = 1; select 2",
            "select a from t where b = $1",
            "select a from t where b = E'x'",
            "select a from t where b = 1e3",
            "select a from t -- where b = 1",
            "select a from t where b = /* 1 */ 2",
            "select $$x$$",
            "select a from t where b = 'x\\'",
            "select a from t where b = 'x",
            "select a from t where b = 1)",
            "select größe from t where b = 1",
            "",
        ] {
            assert_eq!(shown(sql), "none", "{sql}");
        }
    }
}
