//! `to_char` and `to_number` of numbers.
//!
//! ```text
//!   format text ─parse─► items (digits, point, group, sign, literal) + what the whole is like
//!   number ─round─► digits ─► written item by item, the sign where the format puts it
//! ```

use braid_types::numeric::{self, BigDecimal};
use braid_types::{SqlError, SqlResult, SqlState};

/// Where the sign stands.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    /// Before the first digit, blank for positive numbers.
    Plain,
    /// `S` before the number.
    Lead,
    /// `S` behind it.
    Trail,
    /// `MI`: a minus or a blank.
    Minus,
    /// `PR`: angle brackets.
    Brackets,
}

#[derive(Clone, Debug, PartialEq)]
enum Item {
    Nine,
    Zero,
    Point,
    Group,
    Minus,
    Plus,
    SignOf,
    PlusMinus,
    Brackets,
    Currency,
    Ordinal(bool),
    Literal(String),
}

/// A parsed format.
struct Format {
    items: Vec<Item>,
    sign: Sign,
    /// Digits before the point.
    before: usize,
    /// Digits behind it.
    after: usize,
    /// Place of the first `0` among the digits before the point.
    zero_start: Option<usize>,
    /// Digits behind the point up to the last `0`.
    zero_end: usize,
    fill: bool,
    /// Digits that `V` shifts the number by.
    shift: usize,
    scientific: bool,
    roman: Option<bool>,
}

fn bad(message: &str) -> SqlError {
    SqlError::syntax(message)
}

impl Format {
    /// A `9` or a `0`; behind `V` it shifts the number as well.
    fn digit(&mut self, zero: bool, point: bool, multi: bool) {
        self.shift += usize::from(multi);
        if point {
            self.after += 1;
            if zero {
                self.zero_end = self.after;
            }
        } else {
            if zero && self.zero_start.is_none() {
                self.zero_start = Some(self.before);
            }
            self.before += 1;
        }
        self.items.push(if zero { Item::Zero } else { Item::Nine });
    }

    /// Patterns of two letters; the number of bytes taken.
    fn pair(&mut self, upper: &str, rest: &str) -> Option<(usize, Option<Item>)> {
        let item = match upper.get(..2)? {
            "FM" => {
                self.fill = false;
                None
            }
            "MI" => {
                if self.sign == Sign::Plain {
                    self.sign = Sign::Minus;
                }
                Some(Item::Minus)
            }
            "PL" => Some(Item::Plus),
            "SG" => Some(Item::PlusMinus),
            "PR" => {
                self.sign = Sign::Brackets;
                Some(Item::Brackets)
            }
            "RN" => {
                self.roman = Some(rest.starts_with("RN"));
                None
            }
            "TH" => Some(Item::Ordinal(rest.starts_with("TH"))),
            // Known and without effect, as `B` and `C` are.
            "SP" => None,
            _ => return None,
        };
        Some((2, item))
    }
}

/// A literal in double quotes, and how many bytes it takes with them.
fn quoted(rest: &str) -> (usize, Option<Item>) {
    let mut literal = String::new();
    let mut length = 1;
    let mut chars = rest[1..].chars();
    while let Some(c) = chars.next() {
        length += c.len_utf8();
        match c {
            '"' => break,
            '\\' => {
                if let Some(next) = chars.next() {
                    length += next.len_utf8();
                    literal.push(next);
                }
            }
            c => literal.push(c),
        }
    }
    (length, Some(Item::Literal(literal)))
}

fn parse(text: &str) -> SqlResult<Format> {
    let mut f = Format {
        items: Vec::new(),
        sign: Sign::Plain,
        before: 0,
        after: 0,
        zero_start: None,
        zero_end: 0,
        fill: true,
        shift: 0,
        scientific: false,
        roman: None,
    };
    let (mut rest, mut point, mut multi) = (text, false, false);
    while let Some(first) = rest.chars().next() {
        let upper: String = rest.chars().take(4).collect::<String>().to_uppercase();
        if f.scientific && !matches!(first, '"' | ' ') && !upper.starts_with("FM") {
            return Err(bad("\"EEEE\" must be the last pattern used"));
        }
        let pair = if first == '"' { None } else { f.pair(&upper, rest) };
        let (used, item) = match (pair, first.to_ascii_uppercase()) {
            (Some(found), _) => found,
            (_, '"') => quoted(rest),
            _ if upper == "EEEE" => {
                f.scientific = true;
                (4, None)
            }
            (_, digit @ ('9' | '0')) => {
                f.digit(digit == '0', point, multi);
                (1, None)
            }
            (_, '.' | 'D') => {
                if point {
                    return Err(bad("multiple decimal points"));
                }
                if multi {
                    return Err(bad("cannot use \"V\" and decimal point together"));
                }
                point = true;
                (1, Some(Item::Point))
            }
            (_, ',' | 'G') => (1, Some(Item::Group)),
            (_, 'V') => {
                if point {
                    return Err(bad("cannot use \"V\" and decimal point together"));
                }
                multi = true;
                (1, None)
            }
            (_, 'S') => {
                let leads = f.before == 0 && f.after == 0;
                f.sign = if leads { Sign::Lead } else { Sign::Trail };
                (1, Some(Item::SignOf))
            }
            (_, 'L') => (1, Some(Item::Currency)),
            (_, 'B' | 'C') => (1, None),
            // A backslash outside of quotes takes the next double quote.
            (_, '\\') if rest[1..].starts_with('"') => (2, Some(Item::Literal("\"".to_string()))),
            _ => (first.len_utf8(), Some(Item::Literal(first.to_string()))),
        };
        f.items.extend(item);
        rest = rest.get(used..).unwrap_or("");
    }
    let ordinal = f.items.iter().any(|i| matches!(i, Item::Ordinal(_)));
    if ordinal && f.before + f.after == 0 {
        return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "\".\" is not a number"));
    }
    let plain = |i: &Item| matches!(i, Item::Nine | Item::Zero | Item::Point | Item::Literal(_));
    if f.scientific && (!f.fill || f.shift > 0 || f.roman.is_some() || !f.items.iter().all(plain)) {
        return Err(bad("\"EEEE\" is incompatible with other formats"));
    }
    Ok(f)
}

fn roman(number: i64) -> String {
    if !(1..=3999).contains(&number) {
        return "#".repeat(15);
    }
    const STEPS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut left = number;
    let mut out = String::new();
    for (value, letters) in STEPS {
        while left >= value {
            out.push_str(letters);
            left -= value;
        }
    }
    out
}

/// `st`, `nd`, `rd` or `th` behind a number.
pub(super) fn ordinal(digits: &str, upper: bool) -> &'static str {
    let bytes = digits.as_bytes();
    let last = bytes.last().copied().unwrap_or(b'0');
    let teens = bytes.len() > 1 && bytes[bytes.len() - 2] == b'1';
    match (if teens { b'0' } else { last }, upper) {
        (b'1', true) => "ST",
        (b'2', true) => "ND",
        (b'3', true) => "RD",
        (_, true) => "TH",
        (b'1', false) => "st",
        (b'2', false) => "nd",
        (b'3', false) => "rd",
        (_, false) => "th",
    }
}

/// What is written.
pub(super) enum Value<'a> {
    /// An exact number.
    Exact(&'a BigDecimal),
    /// A double with so many significant digits.
    Float(f64, usize),
    /// NaN.
    Nan,
    /// Infinity; true for the negative one.
    Infinite(bool),
}

/// `to_char(number, format)`.
pub(super) fn write(value: &Value<'_>, format: &str) -> SqlResult<String> {
    let f = parse(format)?;
    if f.scientific {
        return Ok(scientific(value, &f));
    }
    let exact;
    let number = match value {
        Value::Exact(v) => Some(*v),
        Value::Float(v, digits) => {
            exact = numeric::from_f64(*v, *digits).unwrap_or_else(|| numeric::from_i128(0));
            Some(&exact)
        }
        _ => None,
    };
    if let Some(upper) = f.roman {
        let whole = number.and_then(numeric::to_i128).unwrap_or(0);
        let whole = i32::try_from(whole).map(i64::from).map_err(|_| {
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range")
        })?;
        let text = roman(whole);
        let text = if upper { text } else { text.to_lowercase() };
        return Ok(if f.fill { format!("{text:>15}") } else { text });
    }
    let (negative, whole, fraction) = match number {
        Some(n) => {
            let shifted = match f.shift {
                0 => n.clone(),
                s => numeric::mul(n, &numeric::from_i128(10i128.pow(s.min(30) as u32))),
            };
            let text = numeric::text(&numeric::round(&shifted, f.after as i64));
            let magnitude = text.trim_start_matches('-');
            let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
            // A double keeps its sign when nothing else is left of it.
            let negative = match value {
                Value::Float(v, _) => v.is_sign_negative(),
                _ => text.starts_with('-'),
            };
            (negative, whole.to_string(), fraction.to_string())
        }
        None => {
            let negative = matches!(value, Value::Infinite(true));
            (negative, "#".repeat(f.before + 1), String::new())
        }
    };
    Ok(lay_out(&f, negative, &whole, &fraction))
}

/// Digits on their way into the places of a format.
struct Layout<'a> {
    f: &'a Format,
    negative: bool,
    /// Digits before the point, or hashes when they do not fit.
    shown: String,
    fraction: String,
    overflow: bool,
    /// Places before the first digit.
    lead: usize,
    /// The first place that shows something.
    first: usize,
    /// Digits of the fraction that are shown.
    keep: usize,
    signed: bool,
    out: String,
}

fn lay_out(f: &Format, negative: bool, whole: &str, fraction: &str) -> String {
    let zero = whole == "0";
    let overflow = whole.len() > f.before && !(zero && f.before == 0);
    let shown = if overflow { "#".repeat(f.before) } else { whole.to_string() };
    let fraction = if overflow { "#".repeat(f.after) } else { fraction.to_string() };
    let lead = f.before.saturating_sub(shown.len());
    let first = match f.zero_start {
        Some(at) => at.min(lead),
        // A zero before the point is left out when there is a fraction.
        None if zero && !overflow && f.after > 0 => f.before,
        None => lead,
    };
    let mut first = first;
    let mut keep = fraction.len();
    while !f.fill && keep > f.zero_end && fraction.as_bytes().get(keep - 1) == Some(&b'0') {
        keep -= 1;
    }
    if zero && !f.fill && keep == 0 && f.before > 0 {
        // Nothing is left behind the point: the zero before it is shown.
        first = first.min(lead);
    }
    let placed = f.items.iter().any(|i| matches!(i, Item::Plus | Item::Minus | Item::PlusMinus));
    let signed = placed || !matches!(f.sign, Sign::Plain | Sign::Lead | Sign::Brackets);
    let out = String::new();
    Layout { f, negative, shown, fraction, overflow, lead, first, keep, signed, out }.run()
}

impl Layout<'_> {
    fn put_sign(&mut self) {
        if std::mem::replace(&mut self.signed, true) {
            return;
        }
        match (self.f.sign, self.negative) {
            (Sign::Brackets, true) => self.out.push('<'),
            (Sign::Lead | Sign::Plain, true) => self.out.push('-'),
            (Sign::Lead, false) => self.out.push('+'),
            _ => self.blank(),
        }
    }

    fn blank(&mut self) {
        if self.f.fill {
            self.out.push(' ');
        }
    }

    /// The digit at a place before the point; whether something was shown.
    fn digit(&mut self, place: usize) -> bool {
        if place < self.first {
            self.blank();
            return false;
        }
        self.put_sign();
        let digit = place.checked_sub(self.lead).and_then(|at| self.shown.as_bytes().get(at));
        self.out.push(digit.map_or('0', |d| char::from(*d)));
        true
    }

    fn either(&mut self, shown: bool, sign: char) {
        if shown {
            self.out.push(sign);
        } else {
            self.blank();
        }
    }

    fn run(mut self) -> String {
        let (mut place, mut behind, mut point, mut started) = (0usize, 0usize, false, false);
        for item in &self.f.items {
            match item {
                Item::Nine | Item::Zero if !point => {
                    started |= self.digit(place);
                    place += 1;
                }
                Item::Nine | Item::Zero => {
                    if behind < self.keep {
                        let digit = self.fraction.as_bytes().get(behind);
                        self.out.push(digit.map_or('0', |d| char::from(*d)));
                    }
                    behind += 1;
                }
                Item::Point => {
                    self.put_sign();
                    (started, point) = (true, true);
                    self.out.push('.');
                }
                Item::Group => self.either(started, ','),
                Item::Minus => self.either(self.negative, '-'),
                Item::Plus => self.either(!self.negative, '+'),
                Item::PlusMinus => self.out.push(if self.negative { '-' } else { '+' }),
                Item::SignOf if self.f.sign == Sign::Trail => {
                    self.out.push(if self.negative { '-' } else { '+' });
                }
                Item::SignOf => {}
                Item::Brackets => self.either(self.negative, '>'),
                Item::Currency => self.blank(),
                Item::Ordinal(upper) => {
                    if !self.negative && self.f.after == 0 && !self.overflow {
                        self.out.push_str(ordinal(&self.shown, *upper));
                    }
                }
                Item::Literal(text) => self.out.push_str(text),
            }
        }
        if !self.signed && self.f.before + self.f.after > 0 {
            let rest = std::mem::take(&mut self.out);
            self.put_sign();
            self.out.push_str(&rest);
        }
        self.out
    }
}

fn scientific(value: &Value<'_>, f: &Format) -> String {
    let text = match value {
        Value::Nan | Value::Infinite(_) => {
            let width = f.before + 1 + f.after + usize::from(f.after > 0) + 4;
            return format!(" {}", "#".repeat(width.saturating_sub(1))).replacen(
                "##",
                "#.",
                usize::from(f.after > 0 && f.before == 0),
            );
        }
        Value::Float(v, _) => format!("{v:.*e}", f.after),
        Value::Exact(v) => {
            let (digits, scale) = numeric::normalized(v);
            let text = digits.to_string();
            let magnitude = text.trim_start_matches('-');
            let mut exponent = magnitude.len() as i64 - 1 - scale;
            if magnitude == "0" {
                exponent = 0;
            }
            let one = BigDecimal::new(digits, magnitude.len() as i64 - 1);
            let mut rounded = numeric::round(&one, f.after as i64);
            if numeric::compare(&rounded.abs(), &numeric::from_i128(10)).is_ge() {
                exponent += 1;
                let (d, s) = numeric::parts(&rounded);
                rounded = numeric::round(&BigDecimal::new(d, s + 1), f.after as i64);
            }
            format!("{}e{exponent}", numeric::text(&rounded))
        }
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    let blank = if mantissa.starts_with('-') { "" } else { " " };
    format!("{blank}{mantissa}e{sign}{:02}", exponent.abs())
}

/// `to_number(text, format)`.
pub(super) fn read(text: &str, format: &str) -> SqlResult<Option<BigDecimal>> {
    let f = parse(format)?;
    if f.scientific {
        return Err(SqlError::unsupported("\"EEEE\" for input"));
    }
    if f.roman.is_some() {
        return Err(SqlError::unsupported("\"RN\" for input"));
    }
    let mut rest = text.trim_start();
    let (mut digits, mut fraction, mut negative, mut point) =
        (String::new(), String::new(), false, false);
    if let Some(tail) = rest.strip_prefix('<') {
        negative = f.sign == Sign::Brackets;
        rest = tail;
    }
    let take_sign = |rest: &mut &str, negative: &mut bool| {
        if let Some(tail) = rest.strip_prefix('-') {
            *negative = true;
            *rest = tail;
        } else if let Some(tail) = rest.strip_prefix('+') {
            *rest = tail;
        }
    };
    let mut wanted_fraction = f.after;
    for item in &f.items {
        match item {
            Item::Nine | Item::Zero => {
                rest = rest.trim_start_matches(' ');
                take_sign(&mut rest, &mut negative);
                let Some(c) = rest.chars().next() else { break };
                if c.is_ascii_digit() {
                    if point {
                        if wanted_fraction > 0 {
                            fraction.push(c);
                            wanted_fraction -= 1;
                        }
                    } else {
                        digits.push(c);
                    }
                    rest = &rest[1..];
                } else if c == '.' && !point && f.after > 0 {
                    point = true;
                    rest = &rest[1..];
                } else {
                    // Each place takes one character, whatever it is.
                    rest = &rest[c.len_utf8()..];
                }
            }
            Item::Point => {
                if let Some(tail) = rest.strip_prefix('.') {
                    point = true;
                    rest = tail;
                }
            }
            Item::Group => rest = rest.strip_prefix(',').unwrap_or(rest),
            Item::Minus | Item::Plus | Item::SignOf | Item::PlusMinus => {
                rest = rest.trim_start_matches(' ');
                take_sign(&mut rest, &mut negative);
            }
            Item::Literal(_) | Item::Currency | Item::Ordinal(_) => {
                let skip = match item {
                    Item::Literal(text) => text.chars().count(),
                    Item::Ordinal(_) => 2,
                    _ => 1,
                };
                for _ in 0..skip {
                    match rest.chars().next() {
                        Some(c) if !c.is_ascii_digit() && !matches!(c, '+' | '-' | '.') => {
                            rest = &rest[c.len_utf8()..];
                        }
                        _ => break,
                    }
                }
            }
            Item::Brackets => rest = rest.strip_prefix('>').unwrap_or(rest),
        }
    }
    if rest.trim_start().starts_with('-') && digits.len() + fraction.len() > 0 {
        negative = negative || f.sign != Sign::Plain;
    }
    if digits.is_empty() && fraction.is_empty() {
        return Ok(None);
    }
    let text = format!("{}{digits}.{fraction}", if negative { "-" } else { "" });
    let parsed = numeric::parse(&text).ok_or_else(|| bad("invalid number"))?;
    let value = match f.shift {
        0 => parsed,
        s => numeric::div(&parsed, &numeric::from_i128(10i128.pow(s.min(30) as u32)))?,
    };
    Ok(Some(value))
}
