//! Functions and operators over `inet`, `cidr`, `macaddr` and `macaddr8`.

use std::net::IpAddr;

use braid_types::ordered::inet::{Network, full_text, host_text, network_of};
use braid_types::ordered::macaddr;
use braid_types::{Datum, Ordered, OrderedKind, SqlError, SqlResult, SqlState};

use super::i64_of;
use crate::registry::Table;

/// The network of an inet argument.
fn net(value: &Datum) -> Network {
    network_of(ordered(value))
}

fn ordered(value: &Datum) -> &Ordered {
    match value {
        Datum::Ordered(value) => value,
        _ => unreachable!("strict functions are called with what their signature says"),
    }
}

fn inet(network: Network) -> SqlResult<Datum> {
    Ok(Datum::Ordered(network.value(OrderedKind::Inet)))
}

fn cidr(network: Network) -> SqlResult<Datum> {
    Ok(Datum::Ordered(network.value(OrderedKind::Cidr)))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    parts(t);
    masks(t);
    containment(t);
    arithmetic(t);
    cards(t);
}

fn parts(t: &mut Table) {
    t.add("host(inet) text -- the address of a network value, without its bits", |a, _| {
        Ok(Datum::text(host_text(&net(&a[0]))))
    });
    t.add("text(inet) text -- address and bits", |a, _| Ok(Datum::text(full_text(&net(&a[0])))));
    t.add("abbrev(inet) text -- in its shortest form", |a, _| {
        Ok(Datum::text(a[0].to_text(braid_types::Style::utc()).unwrap_or_default()))
    });
    t.add("abbrev(cidr) text", |a, _| Ok(Datum::text(abbreviated(&net(&a[0])))));
    t.add("family(inet) int4 -- 4 or 6", |a, _| {
        Ok(Datum::Int4(if net(&a[0]).address.is_ipv4() { 4 } else { 6 }))
    });
    t.add("masklen(inet) int4 -- number of bits of the network", |a, _| {
        Ok(Datum::Int4(net(&a[0]).bits.into()))
    });
    t.add("set_masklen(inet, int4) inet -- with another number of bits", |a, _| {
        inet(net(&a[0]).with_bits(mask_length(&a[0], &a[1])?))
    });
    t.add("set_masklen(cidr, int4) cidr", |a, _| {
        cidr(net(&a[0]).with_bits(mask_length(&a[0], &a[1])?).network())
    });
}

/// Octets, or words, of zeros at the end are left out if the bits do not reach them.
fn abbreviated(network: &Network) -> String {
    let IpAddr::V4(_) = network.address else { return abbreviated_words(network) };
    let octets = usize::from(network.bits.div_ceil(8)).max(1);
    let all = host_text(network);
    let shown: Vec<&str> = all.split('.').take(octets).collect();
    format!("{}/{}", shown.join("."), network.bits)
}

/// Of IPv6 the words that the bits reach, at least two. The longest run of zeros among them is left
/// out; the colons that stand for it are PostgreSQL's: `2001:db8/32`, `2001:db8::/48`.
fn abbreviated_words(network: &Network) -> String {
    let bits = network.bits;
    let IpAddr::V6(address) = network.address else { return full_text(network) };
    if bits == 0 {
        return "::/0".to_string();
    }
    let words = &address.segments()[..usize::from(bits.div_ceil(16)).max(2)];
    let zeros = longest_zeros(words);
    let has_ipv4 = zeros.start == 0
        && zeros.len() < words.len()
        && match zeros.len() {
            5 => words[5] == 0xffff,
            6 => true,
            7 => words[7] >> 8 != 0 && words[7] & 0xff != 1,
            _ => false,
        };
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        if zeros.contains(&at) {
            out.push_str(if at == zeros.start { ":" } else { "" });
            out.push_str(if at + 1 == words.len() { ":" } else { "" });
            continue;
        }
        if has_ipv4 && at > 5 {
            let (dot, [high, low]) = (if at == 6 { ":" } else { "." }, word.to_be_bytes());
            out.push_str(&format!("{dot}{high}"));
            // Of the last octet, too, only what the bits reach.
            out.push_str(&if at < 7 || bits > 120 { format!(".{low}") } else { String::new() });
            continue;
        }
        out.push_str(if at > 0 { ":" } else { "" });
        out.push_str(&format!("{word:x}"));
    }
    format!("{out}/{bits}")
}

fn longest_zeros(words: &[u16]) -> std::ops::Range<usize> {
    let mut longest = 0..0;
    let mut at = 0;
    while at < words.len() {
        let run = words[at..].iter().take_while(|word| **word == 0).count();
        if run > longest.len() {
            longest = at..at + run;
        }
        at += run.max(1);
    }
    longest
}

fn mask_length(value: &Datum, length: &Datum) -> SqlResult<u8> {
    let width = net(value).width();
    let length = i64_of(length);
    match u8::try_from(length) {
        _ if length == -1 => Ok(width),
        Ok(bits) if bits <= width => Ok(bits),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid mask length: {length}"),
        )),
    }
}

fn masks(t: &mut Table) {
    t.add("network(inet) cidr -- the network without the host", |a, _| cidr(net(&a[0]).network()));
    t.add("netmask(inet) inet -- ones where the network's bits are", |a, _| {
        let network = net(&a[0]);
        let all = Network { bits: 0, ..network }.host_mask();
        inet(network.with_number(all & !network.host_mask()).with_bits(network.width()))
    });
    t.add("hostmask(inet) inet -- ones where the host's bits are", |a, _| {
        let network = net(&a[0]);
        inet(network.with_number(network.host_mask()).with_bits(network.width()))
    });
    t.add("broadcast(inet) inet -- the last address of the network", |a, _| {
        let network = net(&a[0]);
        inet(network.with_number(network.number() | network.host_mask()))
    });
    t.add("inet_same_family(inet, inet) bool -- whether both are IPv4, or both IPv6", |a, _| {
        Ok(Datum::Bool(net(&a[0]).width() == net(&a[1]).width()))
    });
    t.add("inet_merge(inet, inet) cidr -- the smallest network that has both", |a, _| {
        let (x, y) = (net(&a[0]), net(&a[1]));
        if x.width() != y.width() {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "cannot merge addresses from different families",
            ));
        }
        let least = x.bits.min(y.bits);
        let common = (x.number() ^ y.number()) << (128 - u32::from(x.width()));
        let bits = least.min(common.leading_zeros() as u8);
        cidr(x.with_bits(bits).network())
    });
}

fn containment(t: &mut Table) {
    t.add("<<(inet, inet) bool -- whether it lies in the other network", |a, _| {
        let (x, y) = (net(&a[0]), net(&a[1]));
        Ok(Datum::Bool(y.contains(&x) && x.bits > y.bits))
    });
    t.add("<<=(inet, inet) bool -- whether it lies in the other network, or is it", |a, _| {
        Ok(Datum::Bool(net(&a[1]).contains(&net(&a[0]))))
    });
    t.add(">>(inet, inet) bool -- whether the other network lies in it", |a, _| {
        let (x, y) = (net(&a[0]), net(&a[1]));
        Ok(Datum::Bool(x.contains(&y) && y.bits > x.bits))
    });
    t.add(">>=(inet, inet) bool -- whether the other network lies in it, or is it", |a, _| {
        Ok(Datum::Bool(net(&a[0]).contains(&net(&a[1]))))
    });
    t.add("&&(inet, inet) bool -- whether one has the other", |a, _| {
        let (x, y) = (net(&a[0]), net(&a[1]));
        Ok(Datum::Bool(x.contains(&y) || y.contains(&x)))
    });
}

fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

/// The address that lies so far away.
fn moved(value: &Datum, by: i128) -> SqlResult<Datum> {
    let network = net(value);
    let number = network.number().checked_add_signed(by).ok_or_else(out_of_range)?;
    if network.width() == 32 && number > u128::from(u32::MAX) {
        return Err(out_of_range());
    }
    inet(network.with_number(number))
}

/// Bit by bit, of addresses of one family.
fn bitwise(a: &[Datum], name: &str, op: fn(u128, u128) -> u128) -> SqlResult<Datum> {
    let (x, y) = (net(&a[0]), net(&a[1]));
    if x.width() != y.width() {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("cannot {name} inet values of different sizes"),
        ));
    }
    inet(x.with_number(op(x.number(), y.number())).with_bits(x.bits.max(y.bits)))
}

fn arithmetic(t: &mut Table) {
    t.add("+(inet, int8) inet", |a, _| moved(&a[0], i64_of(&a[1]).into()));
    t.add("+(int8, inet) inet", |a, _| moved(&a[1], i64_of(&a[0]).into()));
    t.add("-(inet, int8) inet", |a, _| moved(&a[0], i64_of(&a[1]).wrapping_neg().into()));
    t.add("-(inet, inet) int8", |a, _| {
        let (x, y) = (net(&a[0]), net(&a[1]));
        if x.width() != y.width() {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "cannot subtract inet values of different sizes",
            ));
        }
        let apart = x.number().wrapping_sub(y.number()) as i128;
        i64::try_from(apart).map(Datum::Int8).map_err(|_| out_of_range())
    });
    t.add("&(inet, inet) inet", |a, _| bitwise(a, "AND", |x, y| x & y));
    t.add("|(inet, inet) inet", |a, _| bitwise(a, "OR", |x, y| x | y));
    t.add("~(inet) inet", |a, _| {
        let network = net(&a[0]);
        let all = Network { bits: 0, ..network }.host_mask();
        inet(network.with_number(!network.number() & all))
    });
}

/// Byte by byte, of two addresses of cards.
fn bytes(a: &[Datum], op: fn(u8, u8) -> u8) -> SqlResult<Datum> {
    let (x, y) = (ordered(&a[0]).bytes(), ordered(a.last().unwrap_or(&a[0])).bytes());
    let made: Vec<u8> = x.iter().zip(y).map(|(x, y)| op(*x, *y)).collect();
    Ok(Datum::Ordered(macaddr::of(&made)))
}

fn cards(t: &mut Table) {
    t.add("trunc(macaddr) macaddr -- the maker's half of a card's address", |a, _| {
        let bytes = ordered(&a[0]).bytes();
        Ok(Datum::Ordered(macaddr::of(&[&bytes[..3], &[0; 3]].concat())))
    });
    t.add("trunc(macaddr8) macaddr8", |a, _| {
        let bytes = ordered(&a[0]).bytes();
        Ok(Datum::Ordered(macaddr::of(&[&bytes[..3], &[0; 5]].concat())))
    });
    t.add("macaddr8_set7bit(macaddr8) macaddr8 -- as part of an IPv6 address", |a, _| {
        let mut bytes = ordered(&a[0]).bytes().to_vec();
        bytes[0] |= 2;
        Ok(Datum::Ordered(macaddr::of(&bytes)))
    });
    t.add("~(macaddr) macaddr", |a, _| bytes(a, |x, _| !x));
    t.add("&(macaddr, macaddr) macaddr", |a, _| bytes(a, |x, y| x & y));
    t.add("|(macaddr, macaddr) macaddr", |a, _| bytes(a, |x, y| x | y));
    t.add("~(macaddr8) macaddr8", |a, _| bytes(a, |x, _| !x));
    t.add("&(macaddr8, macaddr8) macaddr8", |a, _| bytes(a, |x, y| x & y));
    t.add("|(macaddr8, macaddr8) macaddr8", |a, _| bytes(a, |x, y| x | y));
}
