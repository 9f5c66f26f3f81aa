//! Any key as text, without the catalog: `/Table/100:1/7/#/101:1/'abc'`.
//!
//! Types are guessed from the encoding: a date prints as its day number. DESC columns have a `-`
//! in front of the slash's value, e.g. `/-7`.

use braid_types::{Datum, SqlType, TimeZone};

use crate::column::{Direction, decode_column, skip_column};
use crate::path::{CHILD_MARKER, DATA_PREFIX, END_MARKER, read_number};
use crate::system::SYSTEM_PREFIX;

/// The key as text; bytes that make no sense are printed in hex after `!`.
pub fn key(bytes: &[u8]) -> String {
    match bytes.first() {
        Some(&DATA_PREFIX) => data_key(bytes, &|_, _| None, &[]),
        Some(&SYSTEM_PREFIX) => system_key(bytes),
        _ => format!("!{}", hex(bytes)),
    }
}

/// The key as text, with names for tables and indexes that have one, by id and generation, and
/// with its columns' types as far as they are known: `/customers/'7a'/#/orders/1`.
pub fn named_key(
    bytes: &[u8],
    name: &dyn Fn(u32, u32) -> Option<String>,
    columns: &[(SqlType, Direction)],
) -> String {
    match bytes.first() {
        Some(&DATA_PREFIX) => data_key(bytes, name, columns),
        _ => key(bytes),
    }
}

/// A span as text, `[start, end)`.
pub fn span(start: &[u8], end: &[u8]) -> String {
    format!("[{}, {})", key(start), key(end))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn system_key(bytes: &[u8]) -> String {
    let kind = match bytes.get(1) {
        None => return "/System".into(),
        Some(b'a') => "Statistics",
        Some(b'b') => "SharedChanges",
        Some(b'c') => "CatalogVersion",
        Some(b'd') => "Descriptor",
        Some(b'e') => "Erasure",
        Some(b'f') => "ErasuresAreNoted",
        Some(b'g') => "Discarded",
        Some(b'h') => "Shape",
        Some(b'i') => "NextId",
        Some(b'j') => "Job",
        Some(b'l') => "TableLock",
        Some(b'n') => "Notes",
        Some(b'p') => "PendingLoad",
        Some(b'r') => "ReclaimPlace",
        Some(b's') => "Sequence",
        Some(b'w') => "SchemaLease",
        Some(b'x') => "ChangeLock",
        Some(b't') => return format!("/System/Setting/{}", String::from_utf8_lossy(&bytes[2..])),
        _ => return format!("/System/!{}", hex(&bytes[1..])),
    };
    let mut out = format!("/System/{kind}");
    let mut rest = &bytes[2..];
    while let Some((n, len)) = read_number(rest) {
        out.push_str(&format!("/{n}"));
        rest = &rest[len..];
    }
    if !rest.is_empty() {
        out.push_str(&format!("/!{}", hex(rest)));
    }
    out
}

fn data_key(
    bytes: &[u8],
    name: &dyn Fn(u32, u32) -> Option<String>,
    columns: &[(SqlType, Direction)],
) -> String {
    let mut columns = columns.iter();
    let mut out = String::new();
    let mut at = 1;
    while let Some((id, n)) = read_number(&bytes[at..]) {
        at += n;
        let generation = read_number(&bytes[at..]);
        let known = generation.and_then(|(generation, _)| {
            name(u32::try_from(id).ok()?, u32::try_from(generation).ok()?)
        });
        let table = if at == 1 + n { "/Table" } else { "" };
        match (known, generation) {
            (Some(known), _) => out.push_str(&format!("/{known}")),
            (None, Some((generation, _))) => out.push_str(&format!("{table}/{id}:{generation}")),
            (None, None) => out.push_str(&format!("{table}/{id}")),
        }
        let Some((_, n)) = generation else { break };
        at += n;
        while at < bytes.len() && bytes[at] < CHILD_MARKER {
            let Ok(len) = skip_column(&bytes[at..]) else {
                break;
            };
            let bytes = &bytes[at..at + len];
            let known = columns.next().and_then(|(ty, dir)| typed_column(bytes, ty, *dir));
            out.push_str(&format!("/{}", known.unwrap_or_else(|| column(bytes))));
            at += len;
        }
        if bytes.get(at) == Some(&CHILD_MARKER) {
            out.push_str("/#");
            at += 1;
        } else {
            break;
        }
    }
    if out.is_empty() {
        out.push_str("/Table");
    }
    match bytes.get(at..) {
        None | Some([]) => {}
        Some([END_MARKER]) => out.push_str("/Max"),
        Some(rest) => out.push_str(&format!("/!{}", hex(rest))),
    }
    out
}

/// A column of which the type is known; as a literal.
fn typed_column(bytes: &[u8], ty: &SqlType, dir: Direction) -> Option<String> {
    let (value, _) = decode_column(bytes, ty, dir).ok()?;
    let text = value.to_text(TimeZone::utc());
    Some(match (&value, text) {
        (_, None) => "NULL".into(),
        (
            Datum::Bool(_)
            | Datum::Int2(_)
            | Datum::Int4(_)
            | Datum::Int8(_)
            | Datum::Float4(_)
            | Datum::Float8(_)
            | Datum::Numeric(_),
            Some(text),
        ) => text,
        (_, Some(text)) => format!("'{}'", text.replace('\'', "''")),
    })
}

fn column(bytes: &[u8]) -> String {
    let desc = bytes[0] >= 0x80;
    let dir = Direction { desc, nulls_first: false };
    let minus = if desc { "-" } else { "" };
    let tag = if desc { !bytes[0] } else { bytes[0] };
    let ty = match tag {
        0x28 | 0x29 => SqlType::Bool,
        0x30..=0x40 => SqlType::Int8,
        0x41 => SqlType::Float8,
        0x48 => SqlType::Bytea,
        0x4A => SqlType::Uuid,
        0x4F..=0x53 => SqlType::Numeric(None),
        0x10 | 0x7F => return format!("{minus}NULL"),
        _ => return format!("{minus}0x{}", hex(bytes)),
    };
    match decode_column(bytes, &ty, dir) {
        Ok((Datum::Bool(v), _)) => format!("{minus}{v}"),
        Ok((Datum::Int8(v), _)) => format!("{minus}{v}"),
        Ok((Datum::Float8(v), _)) => format!("{minus}{v}"),
        Ok((Datum::Numeric(v), _)) => format!("{minus}{}", v.to_plain_string()),
        Ok((Datum::NumericNan, _)) => format!("{minus}NaN"),
        Ok((Datum::NumericInf(_), _)) => format!("{minus}infinite"),
        Ok((Datum::Bytea(b), _)) => match std::str::from_utf8(&b) {
            Ok(s) => format!("{minus}{s:?}"),
            Err(_) => format!("{minus}\\x{}", hex(&b)),
        },
        Ok((Datum::Uuid(u), _)) => format!("{minus}{}", hex(&u)),
        _ => format!("{minus}0x{}", hex(bytes)),
    }
}
