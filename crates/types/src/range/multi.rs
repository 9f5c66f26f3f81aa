//! [`MultirangeValue`]: ranges in their order, with something between each and the next.
//!
//! ```text
//!   {[1,3),[2,5),[5,6),empty,[8,9)}     {[1,6),[8,9)}
//! ```
//! So two that hold the same values look equal.

use std::cmp::Ordering;

use super::{RangeKind, RangeValue, text, wire};
use crate::{Datum, SqlError, SqlResult, SqlState, Style};

/// See the [module documentation](self).
#[derive(Clone, Debug)]
pub struct MultirangeValue {
    /// The type of its ranges.
    pub kind: RangeKind,
    ranges: Vec<RangeValue>,
}

impl MultirangeValue {
    /// The values of some ranges, in any order.
    pub fn new(kind: &RangeKind, mut ranges: Vec<RangeValue>) -> MultirangeValue {
        ranges.retain(|range| !range.empty);
        ranges.sort_by(RangeValue::compare);
        let mut out: Vec<RangeValue> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match out.last_mut() {
                Some(last) if last.overlaps(&range) || last.touches(&range) => {
                    if last.cmp_upper(&range).is_lt() {
                        *last = RangeValue::between(last, &range);
                    }
                }
                _ => out.push(range),
            }
        }
        MultirangeValue { kind: kind.clone(), ranges: out }
    }

    /// In their order.
    pub fn ranges(&self) -> &[RangeValue] {
        &self.ranges
    }

    /// The smallest range that has all of it.
    pub fn whole(&self) -> RangeValue {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => RangeValue::between(first, last),
            _ => RangeValue::empty(&self.kind),
        }
    }

    /// The order: by the first ranges that differ; of equal ones the shorter list first.
    pub fn compare(&self, other: &MultirangeValue) -> Ordering {
        let pairs = self.ranges.iter().zip(&other.ranges);
        let differ = pairs.map(|(a, b)| a.compare(b)).find(|order| order.is_ne());
        differ.unwrap_or_else(|| self.ranges.len().cmp(&other.ranges.len()))
    }

    /// Whether a value lies in it.
    pub fn has(&self, value: &Datum) -> bool {
        self.ranges.iter().any(|range| range.has(value))
    }

    /// Whether all of the other lies in it.
    pub fn contains(&self, other: &MultirangeValue) -> bool {
        let held = |part: &RangeValue| self.ranges.iter().any(|range| range.contains(part));
        other.ranges.iter().all(held)
    }

    /// Whether they have a value in common.
    pub fn overlaps(&self, other: &MultirangeValue) -> bool {
        self.ranges.iter().any(|range| other.ranges.iter().any(|part| range.overlaps(part)))
    }

    /// What either has.
    pub fn united(&self, other: &MultirangeValue) -> MultirangeValue {
        let ranges = self.ranges.iter().chain(&other.ranges).cloned();
        MultirangeValue::new(&self.kind, ranges.collect())
    }

    /// What both have.
    pub fn common(&self, other: &MultirangeValue) -> MultirangeValue {
        let mut out = Vec::new();
        for x in &self.ranges {
            for y in other.ranges.iter().filter(|y| x.overlaps(y)) {
                let from = if x.cmp_lower(y).is_ge() { x } else { y };
                let to = if x.cmp_upper(y).is_le() { x } else { y };
                out.push(RangeValue::between(from, to));
            }
        }
        MultirangeValue::new(&self.kind, out)
    }

    /// What it has and the other has not.
    ///
    /// # Errors
    /// 22003 for a bound that does not fit the type.
    pub fn without(&self, other: &MultirangeValue) -> SqlResult<MultirangeValue> {
        let mut left = self.ranges.clone();
        for taken in &other.ranges {
            let mut rest = Vec::with_capacity(left.len() + 1);
            for range in left {
                if !range.overlaps(taken) {
                    rest.push(range);
                    continue;
                }
                if range.cmp_lower(taken).is_lt() {
                    let (lower, upper) = (range.lower.clone(), taken.lower.clone());
                    let with = (range.with_lower, !taken.with_lower);
                    rest.push(RangeValue::new(&self.kind, lower, upper, with)?);
                }
                if range.cmp_upper(taken).is_gt() {
                    let (lower, upper) = (taken.upper.clone(), range.upper.clone());
                    let with = (!taken.with_upper, range.with_upper);
                    rest.push(RangeValue::new(&self.kind, lower, upper, with)?);
                }
            }
            left = rest;
        }
        Ok(MultirangeValue::new(&self.kind, left))
    }
}

fn malformed(text: &str, detail: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed multirange literal: \"{text}\""),
    )
    .with_detail(detail)
}

/// Reads `{[1,3),[5,7)}`.
pub(crate) fn parse(text: &str, kind: &RangeKind, style: &Style) -> SqlResult<MultirangeValue> {
    let space = |c: char| c.is_ascii_whitespace();
    let mut rest = text.trim_start_matches(space);
    rest = rest.strip_prefix('{').ok_or_else(|| malformed(text, "Missing left brace."))?;
    let mut ranges = Vec::new();
    let mut goes_on = false;
    loop {
        rest = rest.trim_start_matches(space);
        if rest.is_empty() {
            return Err(malformed(text, "Unexpected end of input."));
        }
        if !goes_on && let Some(after) = rest.strip_prefix('}') {
            rest = after;
            break;
        }
        let empty = rest.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("empty"));
        let end = match rest.starts_with(['[', '(']) {
            _ if empty => 5,
            true => range_end(rest).ok_or_else(|| malformed(text, "Unexpected end of input."))?,
            false => return Err(malformed(text, "Expected range start.")),
        };
        ranges.push(text::parse(&rest[..end], kind, style)?);
        rest = rest[end..].trim_start_matches(space);
        goes_on = rest.starts_with(',');
        match rest.chars().next() {
            Some(',') => rest = &rest[1..],
            Some('}') => {}
            None => return Err(malformed(text, "Unexpected end of input.")),
            Some(_) => return Err(malformed(text, "Expected comma or end of multirange.")),
        }
    }
    if !rest.trim_start_matches(space).is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    Ok(MultirangeValue::new(kind, ranges))
}

/// Where a range ends that begins a text.
fn range_end(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' | ')' if !quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Writes it.
pub(crate) fn write(value: &MultirangeValue, style: &Style) -> String {
    let ranges: Vec<String> = value.ranges.iter().map(|range| text::write(range, style)).collect();
    format!("{{{}}}", ranges.join(","))
}

/// The number of ranges, and each with its length.
pub(crate) fn to_wire(value: &MultirangeValue, out: &mut Vec<u8>) {
    out.extend((value.ranges.len() as i32).to_be_bytes());
    for range in &value.ranges {
        let mut bytes = Vec::new();
        wire::to_wire(range, &mut bytes);
        out.extend((bytes.len() as i32).to_be_bytes());
        out.extend(bytes);
    }
}

/// `None`: malformed.
pub(crate) fn from_wire(bytes: &[u8], kind: &RangeKind) -> Option<SqlResult<MultirangeValue>> {
    let (count, mut rest) = bytes.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    let mut ranges = Vec::new();
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
        let (value, after) = after.split_at_checked(length)?;
        rest = after;
        match wire::from_wire(value, kind)? {
            Ok(range) => ranges.push(range),
            Err(e) => return Some(Err(e)),
        }
    }
    rest.is_empty().then(|| Ok(MultirangeValue::new(kind, ranges)))
}
