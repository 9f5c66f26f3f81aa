//! Functions of `information_schema` over declared types: what a type and its modifier say.
//! Clients that read the catalogs themselves call them.

use braid_types::{Datum, RecordValue, SqlResult, Style};

use super::i64_of;
use crate::registry::Table;

const TEXT: u32 = 25;
const BPCHAR: u32 = 1042;
const VARCHAR: u32 = 1043;
/// Bytes that a character takes at most.
const CHARACTER_BYTES: i64 = 4;
/// What the length of a text without a bound is said to be.
const UNBOUND: i64 = 1 << 30;
/// All that a modifier may be called in the lower half of its bits when no precision was declared.
const NO_PRECISION: i64 = 0xFFFF;

fn char_max_length(ty: u32, modifier: i64) -> Option<i64> {
    match ty {
        _ if modifier == -1 => None,
        BPCHAR | VARCHAR => Some(modifier - 4),
        1560 | 1562 => Some(modifier),
        _ => None,
    }
}

fn char_octet_length(ty: u32, modifier: i64) -> Option<i64> {
    match ty {
        TEXT | BPCHAR | VARCHAR if modifier == -1 => Some(UNBOUND),
        TEXT | BPCHAR | VARCHAR => Some(char_max_length(ty, modifier)? * CHARACTER_BYTES),
        _ => None,
    }
}

fn numeric_precision(ty: u32, modifier: i64) -> Option<i64> {
    Some(match ty {
        21 => 16,
        23 => 32,
        20 => 64,
        1700 if modifier != -1 => ((modifier - 4) >> 16) & 0xFFFF,
        700 => 24,
        701 => 53,
        _ => return None,
    })
}

fn numeric_precision_radix(ty: u32, _: i64) -> Option<i64> {
    match ty {
        20 | 21 | 23 | 700 | 701 => Some(2),
        1700 => Some(10),
        _ => None,
    }
}

fn numeric_scale(ty: u32, modifier: i64) -> Option<i64> {
    match ty {
        20 | 21 | 23 => Some(0),
        1700 if modifier != -1 => Some((modifier - 4) & 0xFFFF),
        _ => None,
    }
}

fn datetime_precision(ty: u32, modifier: i64) -> Option<i64> {
    match ty {
        1082 => Some(0),
        1083 | 1114 | 1184 | 1266 => Some(if modifier < 0 { 6 } else { modifier }),
        1186 if modifier < 0 || modifier & NO_PRECISION == NO_PRECISION => Some(6),
        1186 => Some(modifier & NO_PRECISION),
        _ => None,
    }
}

/// A field of a row by its name.
fn field<'a>(row: &'a RecordValue, name: &str) -> Option<&'a Datum> {
    let at = row.names.as_ref()?.iter().position(|own| **own == *name)?;
    row.fields.get(at)
}

/// What an attribute's type or modifier is; of a domain, that of the type below.
fn below(a: &[Datum], of_domain: &str, own: &str) -> Datum {
    let (Datum::Record(attribute), Datum::Record(ty)) = (&a[0], &a[1]) else { return Datum::Null };
    let kind = field(ty, "typtype").and_then(|kind| kind.to_text(Style::utc()));
    let found = match kind.as_deref() {
        Some("d") => field(ty, of_domain),
        _ => field(attribute, own),
    };
    found.cloned().unwrap_or(Datum::Null)
}

fn said(a: &[Datum], of: fn(u32, i64) -> Option<i64>) -> SqlResult<Datum> {
    let Datum::Oid(ty) = a[0] else { return Ok(Datum::Null) };
    Ok(of(ty, i64_of(&a[1])).map_or(Datum::Null, |n| Datum::Int4(n as i32)))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add(
        "_pg_truetypid(record, record) oid -- the type of a row of `pg_attribute` and one of \
         `pg_type`, or that below a domain",
        |a, _| Ok(below(a, "typbasetype", "atttypid")),
    );
    t.add("_pg_truetypmod(record, record) int4 -- the modifier of the same", |a, _| {
        Ok(below(a, "typtypmod", "atttypmod"))
    });
    t.add("_pg_char_max_length(oid, int4) int4 -- characters of a declared type", |a, _| {
        said(a, char_max_length)
    });
    t.add("_pg_char_octet_length(oid, int4) int4 -- bytes of a declared type", |a, _| {
        said(a, char_octet_length)
    });
    t.add("_pg_numeric_precision(oid, int4) int4 -- digits of a declared type", |a, _| {
        said(a, numeric_precision)
    });
    t.add("_pg_numeric_precision_radix(oid, int4) int4 -- the base of these digits", |a, _| {
        said(a, numeric_precision_radix)
    });
    t.add("_pg_numeric_scale(oid, int4) int4 -- digits behind the point", |a, _| {
        said(a, numeric_scale)
    });
    t.add("_pg_datetime_precision(oid, int4) int4 -- digits of seconds", |a, _| {
        said(a, datetime_precision)
    });
}
