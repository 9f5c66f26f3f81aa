//! `to_char` and `to_number` of numbers.
//!
//! ```text
//!   format text ─parse─► items (digits, point, group, sign, literal) + what the whole is like
//!   number ─round─► digits ─► written item by item, the sign where the format puts it
//! ```

use braid_types::numeric::{self, BigDecimal};
use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::numeric_special as special;

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
    /// A whole number of a type that ends there: name of the type, its greatest value.
    Whole(&'a BigDecimal, &'static str, i64),
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
    if let Some(upper) = f.roman {
        let text = roman(whole_number(value)?);
        let text = if upper { text } else { text.to_lowercase() };
        return Ok(if f.fill { format!("{text:>15}") } else { text });
    }
    if let Value::Whole(n, ty, greatest) = value {
        let most = numeric::from_i128((*greatest).into());
        if f.shift > 0 && numeric::compare(&shifted(n, &f).abs(), &most).is_gt() {
            let message = format!("{ty} out of range");
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
    }
    lay_out(&f, &digits_of(value, &f))
}

/// A number as an integer, for Roman numerals.
fn whole_number(value: &Value<'_>) -> SqlResult<i64> {
    let refused = |what: &str| SqlError::unsupported(format!("cannot convert {what} to integer"));
    let whole = match value {
        Value::Exact(v) | Value::Whole(v, ..) => numeric::to_i128(v).unwrap_or(i128::MAX),
        // A double that is no integer counts as none.
        Value::Float(v, _) if v.is_finite() && v.abs() < 2_147_483_648.0 => {
            v.round_ties_even() as i128
        }
        Value::Float(..) => 0,
        Value::Nan => return Err(refused("NaN")),
        Value::Infinite(_) => return Err(refused("infinity")),
    };
    i32::try_from(whole)
        .map(i64::from)
        .map_err(|_| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))
}

/// The number with what `V` multiplies it by.
fn shifted(n: &BigDecimal, f: &Format) -> BigDecimal {
    match f.shift {
        0 => n.clone(),
        s => numeric::mul(n, &numeric::from_i128(10i128.pow(s.min(30) as u32))),
    }
}

/// What there is to write.
struct Digits {
    negative: bool,
    /// Before the point; the word of a value that is not finite.
    whole: String,
    /// Behind it; nothing is written from the point on when there is none.
    fraction: Option<String>,
    /// Places behind the point that the value can fill.
    places: usize,
}

/// The value rounded to the places of the format.
fn digits_of(value: &Value<'_>, f: &Format) -> Digits {
    let mut places = f.after;
    let text = match value {
        Value::Exact(n) | Value::Whole(n, ..) => {
            numeric::text(&numeric::round(&shifted(n, f), f.after as i64))
        }
        Value::Float(v, digits) => {
            let shifted = v * 10f64.powi(f.shift as i32);
            // A double has no more digits than that to show.
            let whole = |v: f64| match v.is_infinite() {
                true => "Infinity".to_string(),
                false => format!("{v:.0}"),
            };
            places = places.min(digits.saturating_sub(whole(shifted.abs()).len()));
            match shifted {
                v if v.is_infinite() && v < 0.0 => "-Infinity".to_string(),
                v if !v.is_finite() => whole(v),
                v => format!("{v:.places$}"),
            }
        }
        Value::Nan => "NaN".to_string(),
        Value::Infinite(negative) => if *negative { "-Infinity" } else { "Infinity" }.to_string(),
    };
    let magnitude = text.trim_start_matches('-');
    let (whole, fraction) = match magnitude.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction.to_string())),
        None if f.after == 0 && magnitude.starts_with(|c: char| c.is_ascii_digit()) => {
            (magnitude, Some(String::new()))
        }
        None => (magnitude, None),
    };
    Digits { negative: text.starts_with('-'), whole: whole.to_string(), fraction, places }
}

/// Digits on their way into the places of a format.
struct Layout<'a> {
    f: &'a Format,
    negative: bool,
    /// Digits before the point, or hashes when they do not fit.
    shown: String,
    /// Digits behind the point; the text ends where they do.
    fraction: Option<String>,
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

fn lay_out(f: &Format, digits: &Digits) -> SqlResult<String> {
    let Digits { negative, whole, fraction, places } = digits;
    let zero = whole == "0";
    let overflow = whole.len() > f.before && !(zero && f.before == 0 && f.after > 0);
    let shown = if overflow { "#".repeat(f.before) } else { whole.clone() };
    let fraction = match fraction {
        _ if overflow => Some("#".repeat(*places)),
        other => other.clone(),
    };
    let ended = f.items.iter().any(|i| matches!(i, Item::Ordinal(_))) && !negative && f.after == 0;
    if ended && !shown.starts_with('#') && !shown.ends_with(|c: char| c.is_ascii_digit()) {
        let number = if shown.is_empty() { "." } else { &shown };
        return Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("\"{number}\" is not a number"),
        ));
    }
    let lead = f.before.saturating_sub(shown.len());
    let first = match f.zero_start {
        Some(at) => at.min(lead),
        // A zero before the point is left out when there is a fraction.
        None if zero && !overflow && f.after > 0 => f.before,
        None => lead,
    };
    let mut first = first;
    let kept = fraction.as_deref().unwrap_or_default();
    let mut keep = kept.len();
    while !f.fill && keep > f.zero_end && kept.as_bytes().get(keep - 1) == Some(&b'0') {
        keep -= 1;
    }
    if zero && !f.fill && keep == 0 && f.before > 0 {
        // Nothing is left behind the point: the zero before it is shown.
        first = first.min(lead);
    }
    let has = |wanted: &[Item]| f.items.iter().any(|i| wanted.contains(i));
    // A plus alone does not stand for the sign of negative numbers.
    let signed = match has(&[Item::Minus, Item::PlusMinus]) {
        true => true,
        false if has(&[Item::Plus]) => false,
        false => !matches!(f.sign, Sign::Plain | Sign::Lead | Sign::Brackets),
    };
    let (negative, out) = (*negative, String::new());
    Ok(Layout { f, negative, shown, fraction, overflow, lead, first, keep, signed, out }.run())
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
                    let given = self.fraction.as_deref().unwrap_or_default();
                    match given.as_bytes().get(behind) {
                        Some(digit) if behind < self.keep => self.out.push(char::from(*digit)),
                        // Behind the last digit that the value has, the text ends.
                        None if self.f.fill => return self.out,
                        _ => {}
                    }
                    behind += 1;
                }
                Item::Point if self.fraction.is_none() || self.f.after == 0 => {
                    self.put_sign();
                    return self.out;
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

/// What stands for a number that has no digits, with an exponent.
fn unwritable(f: &Format) -> String {
    let mut out = vec!['#'; f.before + f.after + 6];
    out[0] = ' ';
    if let Some(point) = out.get_mut(f.before + 1) {
        *point = '.';
    }
    out.into_iter().collect()
}

fn scientific(value: &Value<'_>, f: &Format) -> String {
    let text = match value {
        Value::Nan | Value::Infinite(_) => return unwritable(f),
        Value::Float(v, _) if !v.is_finite() => return unwritable(f),
        Value::Float(v, _) => format!("{v:.*e}", f.after),
        // An integer is a double to PostgreSQL here, and so rounds halves to even.
        Value::Whole(v, "integer", _) => format!("{:.*e}", f.after, numeric::to_f64(v)),
        Value::Exact(v) | Value::Whole(v, ..) => {
            let (digits, scale) = numeric::normalized(v);
            let places = digits.magnitude().to_string().len() as i64 - 1;
            let exponent = if digits.bits() == 0 { 0 } else { places - scale };
            // Nines that round up are shown as 10.0, as PostgreSQL shows them.
            let mantissa = numeric::round(&BigDecimal::new(digits, places), f.after as i64);
            format!("{}e{exponent}", numeric::text(&mantissa))
        }
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    let blank = if mantissa.starts_with('-') { "" } else { " " };
    format!("{blank}{mantissa}e{sign}{:02}", exponent.abs())
}

fn field_overflow(precision: usize, scale: usize) -> SqlError {
    let limit = match precision - scale {
        0 => "1".to_string(),
        n => format!("10^{n}"),
    };
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").with_detail(
        format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value \
             less than {limit}."
        ),
    )
}

/// Takes at most so many characters that no number is made of.
fn skip_other(rest: &mut &str, most: usize) {
    for _ in 0..most {
        match rest.chars().next() {
            Some(c) if !c.is_ascii_digit() && !matches!(c, '+' | '-' | '.' | ',') => {
                *rest = &rest[c.len_utf8()..];
            }
            _ => break,
        }
    }
}

/// `to_number(text, format)`.
pub(super) fn read(text: &str, format: &str) -> SqlResult<Option<Datum>> {
    let f = parse(format)?;
    if f.scientific {
        return Err(SqlError::unsupported("\"EEEE\" for input"));
    }
    if f.roman.is_some() {
        return Err(SqlError::unsupported("\"RN\" for input"));
    }
    let mut rest = text;
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
    let behind = matches!(f.sign, Sign::Lead | Sign::Trail);
    let placed = f.items.iter().any(|i| matches!(i, Item::Minus | Item::Plus | Item::PlusMinus));
    for item in &f.items {
        match item {
            Item::Nine | Item::Zero | Item::Point => {
                rest = rest.trim_start_matches(' ');
                if digits.is_empty() && fraction.is_empty() {
                    take_sign(&mut rest, &mut negative);
                }
                let Some(c) = rest.chars().next() else { break };
                // Each place takes one character, whatever it is.
                rest = &rest[c.len_utf8()..];
                if c.is_ascii_digit() && !point {
                    digits.push(c);
                } else if c.is_ascii_digit() {
                    if fraction.len() < f.after {
                        fraction.push(c);
                    }
                } else if c == '.' && !point && f.after > 0 {
                    point = true;
                } else if (placed || behind) && c == '-' && digits.len() + fraction.len() > 0 {
                    negative = true;
                }
            }
            // What fills blanks does not stand in the text either.
            Item::Group if !f.fill => {}
            Item::Group => rest = rest.strip_prefix(',').unwrap_or(rest),
            Item::Minus | Item::Plus | Item::SignOf | Item::PlusMinus => {
                if *item == Item::SignOf && digits.is_empty() {
                    rest = rest.trim_start_matches(' ');
                }
                if rest.starts_with(['-', '+']) {
                    take_sign(&mut rest, &mut negative);
                } else if *item != Item::SignOf {
                    skip_other(&mut rest, 1);
                }
            }
            // A literal takes as many characters, whatever they are.
            Item::Literal(text) => {
                rest =
                    rest.char_indices().nth(text.chars().count()).map_or("", |(i, _)| &rest[i..]);
            }
            Item::Currency | Item::Ordinal(_) => {
                skip_other(&mut rest, if matches!(item, Item::Ordinal(_)) { 2 } else { 1 });
            }
            Item::Brackets => rest = rest.strip_prefix('>').unwrap_or(rest),
        }
    }
    // Of the signs only S is also looked for behind the number.
    if rest.starts_with('-') && digits.len() + fraction.len() > 0 {
        negative |= behind;
    }
    if digits.is_empty() && fraction.is_empty() {
        return Ok(None);
    }
    let text = format!("{}{digits}.{fraction}", if negative { "-" } else { "" });
    let parsed = numeric::parse(&text).ok_or_else(|| bad("invalid number"))?;
    // The result is of the type numeric(digits of the format, digits read behind the point).
    let whole = digits.trim_start_matches('0');
    if whole.len() > f.before {
        return Err(field_overflow(f.before + fraction.len(), fraction.len()));
    }
    let parsed = Datum::Numeric(numeric::round(&parsed, fraction.len() as i64).into());
    if f.shift == 0 {
        return Ok(Some(parsed));
    }
    let exact = |v: i128| Datum::Numeric(numeric::from_i128(v).into());
    let by = special::power(&[exact(10), exact(-(f.shift as i128))])?;
    special::multiply(&[parsed, by]).map(Some)
}
