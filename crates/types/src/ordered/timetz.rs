//! `time with time zone`: a time of day and how far its zone lies from UTC.
//!
//! Values sort by the moment in UTC, then by the zone, the easternmost first.

use super::{Ordered, OrderedKind};
use crate::datetime::time_text;
use crate::datetime_in::parse_fields;
use crate::time_zone::offset_text;
use crate::{MICROS_PER_DAY, MICROS_PER_SECOND, SqlError, SqlResult, SqlState, Style, TimeZone};

/// Zones lie less than this many seconds from UTC.
const ZONE_END: i32 = 16 * 3600;

/// The value of a time of day (microseconds) in a zone (seconds east of UTC).
pub fn of(micros: i64, east: i32) -> Ordered {
    let utc = micros - i64::from(east) * MICROS_PER_SECOND;
    let mut bytes = ((utc as u64) ^ (1 << 63)).to_be_bytes().to_vec();
    bytes.extend(((east.wrapping_neg() as u32) ^ (1 << 31)).to_be_bytes());
    Ordered::new(OrderedKind::TimeTz, &bytes)
}

/// Time of day (microseconds) and zone (seconds east of UTC) of a value.
pub fn parts(value: &Ordered) -> (i64, i32) {
    read(value.bytes()).expect("a timetz value has the bytes of one")
}

fn read(bytes: &[u8]) -> Option<(i64, i32)> {
    let (moment, zone) = bytes.split_first_chunk::<8>()?;
    let utc = (u64::from_be_bytes(*moment) ^ (1 << 63)) as i64;
    let east = ((u32::from_be_bytes(zone.try_into().ok()?) ^ (1 << 31)) as i32).wrapping_neg();
    if east.abs() >= ZONE_END {
        return None;
    }
    let micros = utc.checked_add(i64::from(east) * MICROS_PER_SECOND)?;
    (0..=MICROS_PER_DAY).contains(&micros).then_some((micros, east))
}

pub(super) fn is_sound(bytes: &[u8]) -> bool {
    read(bytes).is_some()
}

/// The same moment in another zone.
pub fn moved(value: &Ordered, east: i32) -> Ordered {
    let (micros, from) = parts(value);
    let shift = i64::from(east - from) * MICROS_PER_SECOND;
    of((micros + shift).rem_euclid(MICROS_PER_DAY), east)
}

/// The time of day of a moment in a zone.
pub fn at(utc_micros: i64, zone: &TimeZone) -> Ordered {
    of(zone.to_local(utc_micros).rem_euclid(MICROS_PER_DAY), zone.offset_at_utc(utc_micros))
}

pub(super) fn parse(text: &str, style: &Style) -> SqlResult<Ordered> {
    let name = "time with time zone";
    let fields = parse_fields(text, name, style)?;
    let bad = || {
        SqlError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type {name}: \"{text}\""),
        )
    };
    let time = fields.time.ok_or_else(bad)?;
    let zone = fields.zone.unwrap_or(style.zone);
    // A zone with summer time has an offset on a day: the one that is named, or today.
    let day = match fields.date {
        Some((year, month, day)) => crate::days_from_civil(year, month, day) * MICROS_PER_DAY,
        None => zone.to_local(style.now).div_euclid(MICROS_PER_DAY) * MICROS_PER_DAY,
    };
    Ok(of(time, zone.offset_at_local(day + time)))
}

pub(super) fn text(value: &Ordered) -> String {
    let (micros, east) = parts(value);
    format!("{}{}", time_text(micros), offset_text(east))
}

pub(super) fn to_wire(value: &Ordered, out: &mut Vec<u8>) {
    let (micros, east) = parts(value);
    out.extend(micros.to_be_bytes());
    out.extend((-east).to_be_bytes());
}

pub(super) fn from_wire(bytes: &[u8]) -> Option<Ordered> {
    let (micros, west) = bytes.split_first_chunk::<8>()?;
    let micros = i64::from_be_bytes(*micros);
    let west = i32::from_be_bytes(west.try_into().ok()?);
    let sound = (0..=MICROS_PER_DAY).contains(&micros) && west > -ZONE_END && west < ZONE_END;
    sound.then(|| of(micros, -west))
}
