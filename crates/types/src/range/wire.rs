//! Ranges in the wire protocol: flags, then each bound with its length.

use super::{RangeKind, RangeValue};
use crate::{Datum, SqlResult};

const EMPTY: u8 = 0x01;
const WITH_LOWER: u8 = 0x02;
const WITH_UPPER: u8 = 0x04;
const NO_LOWER: u8 = 0x08;
const NO_UPPER: u8 = 0x10;

pub(crate) fn to_wire(range: &RangeValue, out: &mut Vec<u8>) {
    if range.empty {
        out.push(EMPTY);
        return;
    }
    let flag = |on: bool, flag: u8| if on { flag } else { 0 };
    out.push(
        flag(range.with_lower, WITH_LOWER)
            | flag(range.with_upper, WITH_UPPER)
            | flag(range.lower.is_null(), NO_LOWER)
            | flag(range.upper.is_null(), NO_UPPER),
    );
    for bound in [&range.lower, &range.upper].into_iter().filter(|b| !b.is_null()) {
        let mut bytes = Vec::new();
        bound.to_binary(&range.kind.element(), &mut bytes);
        out.extend((bytes.len() as i32).to_be_bytes());
        out.extend(bytes);
    }
}

/// `None`: malformed.
pub(crate) fn from_wire(bytes: &[u8], kind: &RangeKind) -> Option<SqlResult<RangeValue>> {
    let (flags, mut rest) = bytes.split_first()?;
    if flags & EMPTY != 0 {
        return rest.is_empty().then(|| Ok(RangeValue::empty(kind)));
    }
    let mut bound = |none: u8| {
        if flags & none != 0 {
            return Some(Ok(Datum::Null));
        }
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
        let (value, after) = after.split_at_checked(length)?;
        rest = after;
        Some(Datum::from_binary(value, &kind.element()))
    };
    let (lower, upper) = match (bound(NO_LOWER)?, bound(NO_UPPER)?) {
        (Ok(lower), Ok(upper)) => (lower, upper),
        (Err(e), _) | (_, Err(e)) => return Some(Err(e)),
    };
    let with = (flags & WITH_LOWER != 0, flags & WITH_UPPER != 0);
    rest.is_empty().then(|| RangeValue::new(kind, lower, upper, with))
}
