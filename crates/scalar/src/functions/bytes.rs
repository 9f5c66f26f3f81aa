//! Functions over bytes: encodings, fingerprints, parts, bytes and bits.

use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use sha2::Digest;

use super::slices::{cut, new_bit, overlaid};
use super::{bytes_of, encoding, i64_of, text_of};
use crate::registry::{Eval, Table};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn encode(bytes: &[u8], format: &str) -> SqlResult<String> {
    let lowered = format.to_ascii_lowercase();
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    match lowered.as_str() {
        "hex" => Ok(hex(bytes)),
        "base64" => {
            let mut out = String::new();
            for chunk in bytes.chunks(3) {
                let word = chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b))
                    << (8 * (3 - chunk.len()));
                for at in 0..4 {
                    if at <= chunk.len() {
                        let index = (word >> (18 - 6 * at)) & 63;
                        out.push(char::from(ALPHABET[index as usize]));
                    } else {
                        out.push('=');
                    }
                }
            }
            let lines: Vec<&str> =
                (0..out.len()).step_by(76).map(|at| &out[at..(at + 76).min(out.len())]).collect();
            Ok(lines.join("\n"))
        }
        "escape" => Ok(bytes
            .iter()
            .map(|b| match b {
                b'\\' => "\\\\".to_string(),
                0 | 128.. => format!("\\{b:03o}"),
                b => char::from(*b).to_string(),
            })
            .collect()),
        other => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unrecognized encoding: \"{other}\""),
        )),
    }
}

fn decode(s: &str, format: &str) -> SqlResult<Vec<u8>> {
    let lowered = format.to_ascii_lowercase();
    let bad = |m: &str| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, m.to_string());
    match lowered.as_str() {
        "hex" => {
            match Datum::parse(&format!("\\x{s}"), &SqlType::Bytea, braid_types::TimeZone::utc())? {
                Datum::Bytea(b) => Ok(b.to_vec()),
                _ => Ok(Vec::new()),
            }
        }
        // `\x` begins the hexadecimal form of `bytea`, but no escape.
        "escape" if s.starts_with("\\x") => Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type bytea",
        )),
        "escape" => match Datum::parse(s, &SqlType::Bytea, braid_types::TimeZone::utc())? {
            Datum::Bytea(b) => Ok(b.to_vec()),
            _ => Ok(Vec::new()),
        },
        "base64" => {
            let symbols = s.bytes().filter(|b| !b.is_ascii_whitespace()).count();
            if symbols % 4 != 0 {
                return Err(bad("invalid base64 end sequence"));
            }
            let mut out = Vec::new();
            let (mut word, mut bits) = (0u32, 0);
            for c in s.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'=') {
                let value = match c {
                    b'A'..=b'Z' => c - b'A',
                    b'a'..=b'z' => c - b'a' + 26,
                    b'0'..=b'9' => c - b'0' + 52,
                    b'+' => 62,
                    b'/' => 63,
                    _ => return Err(bad("invalid symbol found while decoding base64 sequence")),
                };
                word = word << 6 | u32::from(value);
                bits += 6;
                if bits >= 8 {
                    bits -= 8;
                    out.push((word >> bits) as u8);
                }
            }
            Ok(out)
        }
        other => Err(bad(&format!("unrecognized encoding: \"{other}\""))),
    }
}

/// MD5 by its definition (RFC 1321): for fingerprints that clients compare, not for secrets.
pub(super) fn md5(input: &[u8]) -> [u8; 16] {
    let shifts: [u32; 16] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
    let constant = |i: usize| ((i as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32;
    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut message = input.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend((input.len() as u64 * 8).to_le_bytes());
    for block in message.chunks(64) {
        let word =
            |i: usize| u32::from_le_bytes(block[i * 4..i * 4 + 4].try_into().expect("four bytes"));
        let [mut a, mut b, mut c, mut d] = state;
        for i in 0..64 {
            let (mix, at) = match i / 16 {
                0 => ((b & c) | (!b & d), i),
                1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), (7 * i) % 16),
            };
            let sum = a.wrapping_add(mix).wrapping_add(constant(i)).wrapping_add(word(at));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(shifts[i / 16 * 4 + i % 4]));
        }
        for (slot, value) in state.iter_mut().zip([a, b, c, d]) {
            *slot = slot.wrapping_add(value);
        }
    }
    let mut out = [0; 16];
    for (at, word) in state.iter().enumerate() {
        out[at * 4..at * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }
    out
}

fn encodings(t: &mut Table) {
    t.add("encode(bytea, text) text -- bytes as hex, base64 or escape", |a, _| {
        Ok(Datum::text(encode(bytes_of(&a[0]), text_of(&a[1]))?))
    });
    t.add("decode(text, text) bytea -- bytes written as hex, base64 or escape", |a, _| {
        Ok(Datum::Bytea(decode(text_of(&a[0]), text_of(&a[1]))?.into()))
    });
    t.add("md5(text) text -- MD5 as hexadecimal digits", |a, _| {
        Ok(Datum::text(hex(&md5(text_of(&a[0]).as_bytes()))))
    });
    t.add("md5(bytea) text", |a, _| Ok(Datum::text(hex(&md5(bytes_of(&a[0]))))));
}

fn bytea(bytes: impl Into<Vec<u8>>) -> SqlResult<Datum> {
    Ok(Datum::Bytea(bytes.into().into()))
}

/// SHA-2 (FIPS 180-4).
fn digests(t: &mut Table) {
    t.add("sha224(bytea) bytea -- SHA-224", |a, _| {
        bytea(sha2::Sha224::digest(bytes_of(&a[0])).to_vec())
    });
    t.add("sha256(bytea) bytea -- SHA-256", |a, _| {
        bytea(sha2::Sha256::digest(bytes_of(&a[0])).to_vec())
    });
    t.add("sha384(bytea) bytea -- SHA-384", |a, _| {
        bytea(sha2::Sha384::digest(bytes_of(&a[0])).to_vec())
    });
    t.add("sha512(bytea) bytea -- SHA-512", |a, _| {
        bytea(sha2::Sha512::digest(bytes_of(&a[0])).to_vec())
    });
}

fn position(all: &[u8], part: &[u8]) -> usize {
    match part.is_empty() {
        true => 1,
        false => all.windows(part.len()).position(|w| w == part).map_or(0, |at| at + 1),
    }
}

fn parts(t: &mut Table) {
    t.add("length(bytea) int4", |a, _| Ok(Datum::Int4(bytes_of(&a[0]).len() as i32)));
    t.add("octet_length(bytea) int4", |a, _| Ok(Datum::Int4(bytes_of(&a[0]).len() as i32)));
    t.add("bit_length(bytea) int4", |a, _| Ok(Datum::Int4(bytes_of(&a[0]).len() as i32 * 8)));
    let sub_bytes: Eval = |a, _| bytea(cut(bytes_of(&a[0]), i64_of(&a[1]), a.get(2).map(i64_of))?);
    t.add("substring(bytea, int4) bytea", sub_bytes);
    t.add("substring(bytea, int4, int4) bytea", sub_bytes);
    t.add("substr(bytea, int4) bytea", sub_bytes);
    t.add("substr(bytea, int4, int4) bytea", sub_bytes);
    t.add("position(bytea, bytea) int4", |a, _| {
        Ok(Datum::Int4(position(bytes_of(&a[0]), bytes_of(&a[1])) as i32))
    });
    t.add("overlay(bytea, bytea, int4) bytea", |a, _| {
        let part = bytes_of(&a[1]);
        bytea(overlaid(bytes_of(&a[0]), part, i64_of(&a[2]), part.len() as i64)?)
    });
    t.add("overlay(bytea, bytea, int4, int4) bytea", |a, _| {
        bytea(overlaid(bytes_of(&a[0]), bytes_of(&a[1]), i64_of(&a[2]), i64_of(&a[3]))?)
    });
    t.add("btrim(bytea, bytea) bytea", |a, _| trimmed(a, true, true));
    t.add("ltrim(bytea, bytea) bytea", |a, _| trimmed(a, true, false));
    t.add("rtrim(bytea, bytea) bytea", |a, _| trimmed(a, false, true));
}

/// The first argument without bytes of the second one at its ends.
fn trimmed(a: &[Datum], start: bool, end: bool) -> SqlResult<Datum> {
    let (bytes, set) = (bytes_of(&a[0]), bytes_of(&a[1]));
    let stays = |b: &u8| !set.contains(b);
    let from = if start { bytes.iter().position(stays).unwrap_or(bytes.len()) } else { 0 };
    let kept = &bytes[from..];
    let len = if end { kept.iter().rposition(stays).map_or(0, |at| at + 1) } else { kept.len() };
    bytea(&kept[..len])
}

/// A place in bytes, counted in units of which `len` are there.
fn place(at: i64, len: usize) -> SqlResult<usize> {
    let inside = usize::try_from(at).ok().filter(|at| *at < len);
    inside.ok_or_else(|| {
        SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            format!("index {at} out of valid range, 0..{}", len as i64 - 1),
        )
    })
}

fn bytes_and_bits(t: &mut Table) {
    t.add("get_byte(bytea, int4) int4 -- one byte", |a, _| {
        let bytes = bytes_of(&a[0]);
        Ok(Datum::Int4(bytes[place(i64_of(&a[1]), bytes.len())?].into()))
    });
    t.add("set_byte(bytea, int4, int4) bytea -- with another byte at a place", |a, _| {
        let mut bytes = bytes_of(&a[0]).to_vec();
        let at = place(i64_of(&a[1]), bytes.len())?;
        bytes[at] = i64_of(&a[2]) as u8;
        bytea(bytes)
    });
    t.add("get_bit(bytea, int8) int4 -- one bit; of a byte the lowest comes first", |a, _| {
        let bytes = bytes_of(&a[0]);
        let at = place(i64_of(&a[1]), bytes.len() * 8)?;
        Ok(Datum::Int4((bytes[at / 8] >> (at % 8) & 1).into()))
    });
    t.add("set_bit(bytea, int8, int4) bytea -- with another bit at a place", |a, _| {
        let mut bytes = bytes_of(&a[0]).to_vec();
        let at = place(i64_of(&a[1]), bytes.len() * 8)?;
        match new_bit(&a[2])? {
            false => bytes[at / 8] &= !(1 << (at % 8)),
            true => bytes[at / 8] |= 1 << (at % 8),
        }
        bytea(bytes)
    });
    t.add("bit_count(bytea) int8 -- number of ones", |a, _| {
        Ok(Datum::Int8(bytes_of(&a[0]).iter().map(|b| i64::from(b.count_ones())).sum()))
    });
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    encodings(t);
    encoding::functions(t);
    digests(t);
    parts(t);
    bytes_and_bits(t);
}
