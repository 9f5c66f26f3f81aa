//! What PostgreSQL has in the extensions pgcrypto and uuid-ossp: fingerprints by name, and UUIDs of
//! every kind.

use braid_types::{Datum, SqlError, SqlResult, SqlState};
use sha2::Digest;

use super::bytes::md5;
use super::{bytes_of, i64_of, text_of};
use crate::EvalContext;
use crate::registry::Table;

/// SHA-1 by its definition (FIPS 180): for names that others have made, not for secrets.
pub(super) fn sha1(input: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut message = input.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend((input.len() as u64 * 8).to_be_bytes());
    for block in message.chunks(64) {
        let mut words = [0u32; 80];
        for at in 0..80 {
            words[at] = match at {
                0..16 => (0..4).fold(0, |w, byte| w << 8 | u32::from(block[at * 4 + byte])),
                _ => {
                    (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1)
                }
            };
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.into_iter().enumerate() {
            let (mixed, constant) = match at / 20 {
                0 => (b & c | !b & d, 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e);
            let next = next.wrapping_add(constant).wrapping_add(word);
            (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
        }
        for (kept, new) in state.iter_mut().zip([a, b, c, d, e]) {
            *kept = kept.wrapping_add(new);
        }
    }
    let mut out = [0; 20];
    for (part, word) in out.chunks_mut(4).zip(state) {
        part.copy_from_slice(&word.to_be_bytes());
    }
    out
}

type Digester = fn(&[u8]) -> Vec<u8>;

/// A fingerprint, and how many bytes it takes at a time.
struct Algorithm {
    digest: Digester,
    block: usize,
}

fn algorithm(name: &str) -> SqlResult<Algorithm> {
    let (digest, block): (Digester, usize) = match name.to_lowercase().as_str() {
        "md5" => (|input| md5(input).to_vec(), 64),
        "sha1" => (|input| sha1(input).to_vec(), 64),
        "sha224" => (|input| sha2::Sha224::digest(input).to_vec(), 64),
        "sha256" => (|input| sha2::Sha256::digest(input).to_vec(), 64),
        "sha384" => (|input| sha2::Sha384::digest(input).to_vec(), 128),
        "sha512" => (|input| sha2::Sha512::digest(input).to_vec(), 128),
        _ => {
            let text = format!("Cannot use \"{name}\": No such hash algorithm");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text));
        }
    };
    Ok(Algorithm { digest, block })
}

/// A fingerprint that only those can make who have the key (RFC 2104).
fn hmac(data: &[u8], key: &[u8], name: &str) -> SqlResult<Vec<u8>> {
    let Algorithm { digest, block } = algorithm(name)?;
    let mut key = if key.len() > block { digest(key) } else { key.to_vec() };
    key.resize(block, 0);
    let with = |pad: u8, rest: &[u8]| {
        let padded: Vec<u8> =
            key.iter().map(|byte| byte ^ pad).chain(rest.iter().copied()).collect();
        digest(&padded)
    };
    Ok(with(0x5c, &with(0x36, data)))
}

fn random_bytes(count: usize, c: &EvalContext) -> Vec<u8> {
    let words = std::iter::repeat_with(|| c.session.random_u64().to_le_bytes());
    words.take(count.div_ceil(8)).flatten().take(count).collect()
}

/// A namespace of names, by its number (RFC 4122).
fn namespace(number: u128) -> SqlResult<Datum> {
    const FIRST: u128 = 0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8;
    Ok(Datum::Uuid((FIRST + (number << 96)).to_be_bytes()))
}

fn bytea(bytes: Vec<u8>) -> SqlResult<Datum> {
    Ok(Datum::Bytea(bytes.into()))
}

/// The UUID of some bytes, of a version.
fn versioned(bytes: &[u8], version: u8) -> Datum {
    let mut uuid = [0u8; 16];
    uuid.copy_from_slice(&bytes[..16]);
    uuid[6] = uuid[6] & 0x0f | version << 4;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Datum::Uuid(uuid)
}

/// The UUID of a name in a namespace.
fn named(a: &[Datum], version: u8, digest: Digester) -> Datum {
    let Datum::Uuid(namespace) = &a[0] else { return Datum::Null };
    versioned(&digest(&[&namespace[..], text_of(&a[1]).as_bytes()].concat()), version)
}

/// The UUID of a moment. Where others have the address of a machine it has random bits, marked as
/// no address.
fn of_time(c: &EvalContext) -> Datum {
    /// From the reform of the calendar, with which these UUIDs begin, to 2000: in tenths of a
    /// microsecond.
    const REFORM_TO_2000: i64 = 0x01b2_1dd2_1381_4000 + 946_684_800 * 10_000_000;
    let random = random_bytes(9, c);
    let ticks = c.session.clock_micros() * 10 + i64::from(random[8] % 10) + REFORM_TO_2000;
    let ticks = ticks.to_be_bytes();
    let mut bytes = [0u8; 16];
    bytes[..4].copy_from_slice(&ticks[4..]);
    bytes[4..6].copy_from_slice(&ticks[2..4]);
    bytes[6..8].copy_from_slice(&ticks[..2]);
    bytes[8..].copy_from_slice(&random[..8]);
    bytes[10] |= 1;
    versioned(&bytes, 1)
}

/// Adds the functions of this file.
pub(crate) fn fill(t: &mut Table) {
    const ALL: &str =
        "digest(text, text) bytea -- a fingerprint: md5, sha1, sha224, sha256, sha384, sha512";
    t.add(ALL, |a, _| bytea((algorithm(text_of(&a[1]))?.digest)(text_of(&a[0]).as_bytes())));
    t.add("digest(bytea, text) bytea", |a, _| {
        bytea((algorithm(text_of(&a[1]))?.digest)(bytes_of(&a[0])))
    });
    t.add("hmac(text, text, text) bytea -- a fingerprint with a key, by the same names", |a, _| {
        let (data, key) = (text_of(&a[0]).as_bytes(), text_of(&a[1]).as_bytes());
        bytea(hmac(data, key, text_of(&a[2]))?)
    });
    t.add("hmac(bytea, bytea, text) bytea", |a, _| {
        bytea(hmac(bytes_of(&a[0]), bytes_of(&a[1]), text_of(&a[2]))?)
    });
    t.add("gen_random_bytes(int4) bytea -- so many random bytes", |a, c| {
        let count = i64_of(&a[0]);
        match usize::try_from(count).ok().filter(|count| (1..=1024).contains(count)) {
            Some(count) => Ok(Datum::Bytea(random_bytes(count, c).into())),
            None => Err(SqlError::new(SqlState("39000"), "Length not in range")),
        }
    })
    .volatile();
    t.add("uuid_nil() uuid -- no UUID", |_, _| Ok(Datum::Uuid([0; 16])));
    t.add("uuid_ns_dns() uuid -- the namespace of names of hosts", |_, _| namespace(0));
    t.add("uuid_ns_url() uuid -- the namespace of addresses of pages", |_, _| namespace(1));
    t.add("uuid_ns_oid() uuid -- the namespace of ISO object identifiers", |_, _| namespace(2));
    t.add("uuid_ns_x500() uuid -- the namespace of X.500 names", |_, _| namespace(4));
    t.add("uuid_generate_v3(uuid, text) uuid -- of a name in a namespace, by MD5", |a, _| {
        Ok(named(a, 3, |input| md5(input).to_vec()))
    });
    t.add("uuid_generate_v5(uuid, text) uuid -- of a name in a namespace, by SHA-1", |a, _| {
        Ok(named(a, 5, |input| sha1(input).to_vec()))
    });
    t.add("uuid_generate_v1() uuid -- of now and random bits", |_, c| Ok(of_time(c))).volatile();
    t.add("uuid_generate_v1mc() uuid -- the same", |_, c| Ok(of_time(c))).volatile();
}
