//! Hashes of values as PostgreSQL's hash partitions compute them: the 64-bit form of Bob Jenkins'
//! lookup3 with a fixed seed, and how those of several columns are put together.
//!
//! Dumps name the partition that a row lies in, so that both must agree to the last bit. The hash
//! functions that users call are the same: `hashtext` and its like, with a seed or without.

use braid_types::Datum;

use super::{i64_of, text_of};
use crate::registry::Table;

/// What PostgreSQL hashes partition keys with.
const SEED: u64 = 0x7A5B_2236_7996_DCFD;
/// What the state begins with, besides the length.
const START: u32 = 0x9e37_79b9u32.wrapping_add(3_923_095);

/// The hash of a partition key; NULLs do not count. `None` if a value is of a type whose hash is
/// not known here.
pub fn partition_hash(values: &[Datum]) -> Option<u64> {
    let mut all = 0u64;
    for value in values.iter().filter(|v| !v.is_null()) {
        let own = hash_of(value, SEED)?;
        all ^=
            own.wrapping_add(0x49a0_f4dd_15e5_a8e3).wrapping_add(all << 54).wrapping_add(all >> 7);
    }
    Some(all)
}

fn hash_of(value: &Datum, seed: u64) -> Option<u64> {
    Some(match value {
        Datum::Bool(v) => of_u32(u32::from(*v), seed),
        Datum::Int2(v) => of_u32(i32::from(*v) as u32, seed),
        Datum::Int4(v) | Datum::Date(v) => of_u32(*v as u32, seed),
        Datum::Oid(v) => of_u32(*v, seed),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => {
            of_i64(*v, seed)
        }
        Datum::Text(v) => of_bytes(v.as_bytes(), seed),
        Datum::Bytea(v) => of_bytes(v, seed),
        Datum::Uuid(v) => of_bytes(v, seed),
        _ => return None,
    })
}

/// Small values of `bigint` have the hash that they have as `integer`.
fn of_i64(v: i64, seed: u64) -> u64 {
    let (low, high) = (v as u32, (v >> 32) as u32);
    of_u32(low ^ if v >= 0 { high } else { !high }, seed)
}

struct State {
    a: u32,
    b: u32,
    c: u32,
}

impl State {
    fn new(len: u32, seed: u64) -> State {
        let start = START.wrapping_add(len);
        let mut state = State { a: start, b: start, c: start };
        if seed != 0 {
            state.a = state.a.wrapping_add((seed >> 32) as u32);
            state.b = state.b.wrapping_add(seed as u32);
            state.mix();
        }
        state
    }

    fn mix(&mut self) {
        let State { a, b, c } = self;
        for (x, y, z, turn) in
            [(0, 1, 2, 4), (1, 2, 0, 6), (2, 0, 1, 8), (0, 1, 2, 16), (1, 2, 0, 19), (2, 0, 1, 4)]
        {
            let mut all = [*a, *b, *c];
            // x -= z; x ^= rot(z); z += y
            all[x] = all[x].wrapping_sub(all[z]) ^ all[z].rotate_left(turn);
            all[z] = all[z].wrapping_add(all[y]);
            [*a, *b, *c] = all;
        }
    }

    fn finish(mut self) -> u64 {
        let State { a, b, c } = &mut self;
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(14));
        *a = (*a ^ *c).wrapping_sub(c.rotate_left(11));
        *b = (*b ^ *a).wrapping_sub(a.rotate_left(25));
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(16));
        *a = (*a ^ *c).wrapping_sub(c.rotate_left(4));
        *b = (*b ^ *a).wrapping_sub(a.rotate_left(14));
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(24));
        (u64::from(*b) << 32) | u64::from(*c)
    }
}

fn of_u32(v: u32, seed: u64) -> u64 {
    let mut state = State::new(4, seed);
    state.a = state.a.wrapping_add(v);
    state.finish()
}

fn of_bytes(bytes: &[u8], seed: u64) -> u64 {
    let mut state = State::new(bytes.len() as u32, seed);
    let mut parts = bytes.chunks_exact(12);
    let word = |four: &[u8]| {
        four.iter().enumerate().fold(0u32, |all, (n, byte)| all | u32::from(*byte) << (8 * n))
    };
    for part in &mut parts {
        state.a = state.a.wrapping_add(word(&part[..4]));
        state.b = state.b.wrapping_add(word(&part[4..8]));
        state.c = state.c.wrapping_add(word(&part[8..]));
        state.mix();
    }
    let rest = parts.remainder();
    let at = |from: usize| rest.get(from..).map_or(0, |r| word(&r[..r.len().min(4)]));
    state.a = state.a.wrapping_add(at(0));
    state.b = state.b.wrapping_add(at(4));
    // The lowest byte of the last word is the length's.
    state.c = state.c.wrapping_add(at(8) << 8);
    state.finish()
}

/// A hash without a seed has 32 bits.
fn short(value: &Datum) -> Datum {
    hash_of(value, 0).map_or(Datum::Null, |hash| Datum::Int4(hash as u32 as i32))
}

fn seeded(a: &[Datum]) -> Datum {
    let hash = hash_of(&a[0], i64_of(&a[1]) as u64);
    hash.map_or(Datum::Null, |hash| Datum::Int8(hash as i64))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    macro_rules! hash {
        ($name:literal, $extended:literal, $ty:literal, $about:literal) => {
            t.add(concat!($name, "(", $ty, ") int4 -- ", $about), |a, _| Ok(short(&a[0])));
            t.add(
                concat!($extended, "(", $ty, ", int8) int8 -- ", $about, ", with a seed"),
                |a, _| Ok(seeded(a)),
            );
        };
    }
    hash!("hashint2", "hashint2extended", "int2", "the hash of a number");
    hash!("hashint4", "hashint4extended", "int4", "the hash of a number");
    hash!("hashint8", "hashint8extended", "int8", "the hash of a number");
    hash!("hashoid", "hashoidextended", "oid", "the hash of an oid");
    hash!("uuid_hash", "uuid_hash_extended", "uuid", "the hash of a UUID");
    t.add("hashtext(text) int4 -- the hash of a text, of which advisory locks are made", |a, _| {
        Ok(short(&Datum::text(text_of(&a[0]))))
    });
    t.add("hashtextextended(text, int8) int8 -- the hash of a text, with a seed", |a, _| {
        Ok(seeded(a))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What PostgreSQL 15 answers to `hashint4extended(42, 8816678312871386365)` and its like.
    #[test]
    fn hashes_are_those_of_postgresql() {
        let hash = |value: Datum| hash_of(&value, SEED).unwrap() as i64;
        assert_eq!(hash(Datum::Int4(42)), 7_363_975_540_656_877_951);
        assert_eq!(hash(Datum::Int4(-1)), -5_017_072_347_659_237_694);
        assert_eq!(hash(Datum::Int8(42)), 7_363_975_540_656_877_951);
        assert_eq!(hash(Datum::Int8(-5_000_000_000)), -4_482_100_988_868_492_312);
        for (text, expected) in [
            ("", -5_700_645_584_453_517_373),
            ("abc", 3_628_778_498_291_917_250),
            ("hello wor", -929_470_285_757_940_715),
            ("hello world!", -1_886_269_529_411_655_687),
            ("hello world, again and again", 1_449_114_881_260_096_807),
        ] {
            assert_eq!(hash(Datum::text(text)), expected, "{text}");
        }
        let uuid = 0xa0ee_bc99_9c0b_4ef8_bb6d_6bb9_bd38_0a11u128.to_be_bytes();
        assert_eq!(hash(Datum::Uuid(uuid)), 424_513_190_990_560_493);
    }

    #[test]
    fn what_has_no_hash_says_so() {
        assert_eq!(partition_hash(&[Datum::Null]), Some(0));
        assert_eq!(partition_hash(&[Datum::Int4(1), Datum::Float8(1.0)]), None);
    }
}
