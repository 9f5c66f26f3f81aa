//! The text form of arrays: `{1,NULL,"two words"}`, `{{1,2},{3,4}}`, `[0:1]={7,8}`.

use crate::array::{Dimension, check_bounds, check_dimensions};
use crate::text_in::is_blank;
use crate::{ArrayValue, Shape, SqlError, SqlResult, SqlState, Style};

/// The text of an array.
pub(crate) fn write(array: &ArrayValue, style: &Style) -> String {
    let mut out = String::new();
    if array.shape == Shape::Vector {
        for (at, item) in array.items.iter().enumerate() {
            if at > 0 {
                out.push(' ');
            }
            out.push_str(&item.to_text(style).unwrap_or_default());
        }
        return out;
    }
    let dimensions = array.dimensions();
    if dimensions.iter().any(|d| d.lower != 1) {
        for d in &dimensions {
            out.push_str(&format!("[{}:{}]", d.lower, d.upper()));
        }
        out.push('=');
    }
    let mut items = array.items.iter().map(|i| i.to_text(style));
    write_level(&dimensions, &mut items, array.element.delimiter(), &mut out);
    out
}

fn write_level(
    dimensions: &[Dimension],
    items: &mut impl Iterator<Item = Option<String>>,
    delimiter: char,
    out: &mut String,
) {
    out.push('{');
    if let Some((dimension, inner)) = dimensions.split_first() {
        for at in 0..dimension.length {
            if at > 0 {
                out.push(delimiter);
            }
            match inner.is_empty() {
                true => write_item(items.next().flatten(), delimiter, out),
                false => write_level(inner, items, delimiter, out),
            }
        }
    }
    out.push('}');
}

/// Writes one element; `None` is NULL.
fn write_item(item: Option<String>, delimiter: char, out: &mut String) {
    let Some(text) = item else { return out.push_str("NULL") };
    let quote = text.is_empty()
        || text.eq_ignore_ascii_case("null")
        || text.chars().any(|c| {
            matches!(c, '{' | '}' | '"' | '\\' | '\u{b}')
                || c == delimiter
                || c.is_ascii_whitespace()
        });
    if !quote {
        return out.push_str(&text);
    }
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

/// What an array literal says: its elements, `None` for NULL, and its dimensions.
pub(crate) struct Literal {
    pub(crate) items: Vec<Option<String>>,
    pub(crate) dimensions: Vec<Dimension>,
}

/// Splits an array literal into elements, with this sign between them.
///
/// # Errors
/// 22P02; 2202E for bad bounds; 54000 for too many dimensions.
pub(crate) fn split(text: &str, delimiter: char) -> SqlResult<Literal> {
    let trimmed = text.trim_matches(is_blank);
    let (declared, inner) = match trimmed.starts_with('[') {
        true => bounds(text, trimmed)?,
        false => (None, trimmed),
    };
    if !inner.starts_with('{') {
        let detail = match declared {
            Some(_) => "Array contents must start with \"{\".",
            None => "Array value must start with \"{\" or dimension information.",
        };
        return Err(malformed(text, detail));
    }
    let rest = inner.chars().peekable();
    let mut reader = Reader { whole: text, delimiter, rest, items: Vec::new(), lengths: vec![] };
    reader.list(0)?;
    if reader.rest.any(|c| !is_blank(c)) {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let lengths: Vec<usize> = reader.lengths.iter().map(|l| l.unwrap_or(0)).collect();
    let items = reader.items;
    if let Some(declared) = declared {
        if declared.iter().map(|d| d.length).ne(lengths.iter().copied()) {
            return Err(malformed(text, "Specified array dimensions do not match array contents."));
        }
        check_bounds(&declared)?;
        return Ok(Literal { items, dimensions: declared });
    }
    if items.is_empty() {
        return Ok(Literal { items, dimensions: Vec::new() });
    }
    let dimensions = lengths.into_iter().map(|length| Dimension { lower: 1, length }).collect();
    Ok(Literal { items, dimensions })
}

fn malformed(text: &str, detail: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed array literal: \"{text}\""),
    )
    .with_detail(detail)
}

/// `[1:2][0:1]=` and what follows.
fn bounds<'a>(whole: &str, text: &'a str) -> SqlResult<(Option<Vec<Dimension>>, &'a str)> {
    let mut dimensions = Vec::new();
    let mut rest = text;
    while let Some(inner) = rest.strip_prefix('[') {
        let Some((both, after)) = inner.split_once(']') else {
            return Err(malformed(whole, "Missing \"]\" after array dimensions."));
        };
        let (low, high) = match both.split_once(':') {
            Some((low, high)) => (low, high),
            None => ("1", both),
        };
        let number = |s: &str| s.trim().parse::<i32>();
        let (Ok(low), Ok(high)) = (number(low), number(high)) else {
            return Err(malformed(
                whole,
                "\"[\" must introduce explicitly-specified array dimensions.",
            ));
        };
        if high < low {
            return Err(SqlError::new(
                SqlState("2202E"),
                "upper bound cannot be less than lower bound",
            ));
        }
        let length = (i64::from(high) - i64::from(low)) as usize + 1;
        dimensions.push(Dimension { lower: low, length });
        check_dimensions(dimensions.len())?;
        rest = after.trim_start();
    }
    match rest.strip_prefix('=') {
        Some(rest) => Ok((Some(dimensions), rest.trim_start())),
        None => Err(malformed(whole, "Missing \"=\" after array dimensions.")),
    }
}

struct Reader<'a> {
    whole: &'a str,
    delimiter: char,
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    items: Vec<Option<String>>,
    /// Length of each level, when one list of it was read; `Some(0)` is an empty list.
    lengths: Vec<Option<usize>>,
}

impl Reader<'_> {
    fn bad(&self, detail: &str) -> SqlError {
        malformed(self.whole, detail)
    }

    fn blanks(&mut self) {
        while self.rest.peek().is_some_and(|c| is_blank(*c)) {
            self.rest.next();
        }
    }

    /// A list in braces, of a level.
    fn list(&mut self, level: usize) -> SqlResult<()> {
        check_dimensions(level + 1)?;
        self.rest.next();
        if self.lengths.len() == level {
            self.lengths.push(None);
        }
        let mut count = 0;
        let mut nested = None;
        loop {
            self.blanks();
            let inner = match self.rest.peek() {
                None => return Err(self.bad("Unexpected end of input.")),
                Some('}') if count == 0 && level == 0 => {
                    self.rest.next();
                    break;
                }
                Some('}') => return Err(self.bad("Unexpected \"}\" character.")),
                Some(c) if *c == self.delimiter => {
                    return Err(self.bad(&format!("Unexpected \"{}\" character.", self.delimiter)));
                }
                Some('{') => true,
                Some(_) => false,
            };
            if *nested.get_or_insert(inner) != inner {
                let detail = match inner {
                    true => "Unexpected \"{\" character.",
                    false => "Unexpected array element.",
                };
                return Err(self.bad(detail));
            }
            // A level that held elements holds no lists, and the other way round.
            let deeper = self.lengths.len() > level + 1;
            let was_read = self.lengths[level].is_some();
            if was_read && inner != deeper {
                let detail =
                    "Multidimensional arrays must have sub-arrays with matching dimensions.";
                return Err(self.bad(detail));
            }
            let end = if inner { self.nested(level)? } else { self.element()? };
            count += 1;
            if end == '}' {
                break;
            }
        }
        match self.lengths[level] {
            Some(known) if known != count => {
                Err(self
                    .bad("Multidimensional arrays must have sub-arrays with matching dimensions."))
            }
            _ => {
                self.lengths[level] = Some(count);
                Ok(())
            }
        }
    }

    /// A list inside of another, and the delimiter after it.
    fn nested(&mut self, level: usize) -> SqlResult<char> {
        self.list(level + 1)?;
        self.blanks();
        match self.rest.next() {
            Some(c) if c == self.delimiter || c == '}' => Ok(c),
            Some('{') => Err(self.bad("Unexpected \"{\" character.")),
            Some(_) => Err(self.bad("Unexpected array element.")),
            None => Err(self.bad("Unexpected end of input.")),
        }
    }

    /// One element, and the delimiter after it.
    fn element(&mut self) -> SqlResult<char> {
        let mut out = String::new();
        let mut quoted = false;
        let mut keep = 0;
        loop {
            let Some(c) = self.rest.next() else {
                return Err(self.bad("Unexpected end of input."));
            };
            match c {
                '"' if quoted || !out.trim_end_matches(is_blank).is_empty() => {
                    return Err(self.bad("Unexpected array element."));
                }
                '"' => {
                    quoted = true;
                    out.clear();
                    self.quoted(&mut out)?;
                    keep = out.len();
                }
                '\\' => {
                    let next = self.rest.next();
                    out.push(next.ok_or_else(|| self.bad("Unexpected end of input."))?);
                    keep = out.len();
                }
                '{' => return Err(self.bad("Unexpected \"{\" character.")),
                c if c == self.delimiter || c == '}' => {
                    let trimmed = out.trim_end_matches(is_blank).len().max(keep);
                    out.truncate(trimmed);
                    let null = !quoted && keep == 0 && out.eq_ignore_ascii_case("null");
                    self.items.push(if null { None } else { Some(out) });
                    return Ok(c);
                }
                c if quoted && !is_blank(c) => {
                    return Err(self.bad("Unexpected array element."));
                }
                c => out.push(c),
            }
        }
    }

    fn quoted(&mut self, out: &mut String) -> SqlResult<()> {
        loop {
            match self.rest.next() {
                Some('"') => return Ok(()),
                Some('\\') => match self.rest.next() {
                    Some(c) => out.push(c),
                    None => return Err(self.bad("Unexpected end of input.")),
                },
                Some(c) => out.push(c),
                None => return Err(self.bad("Unexpected end of input.")),
            }
        }
    }
}
