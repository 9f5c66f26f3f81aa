//! How the things of a history lie in the key space.
//!
//! ```text
//!   01 n 'l'            a list: its values in order, eight bytes each
//!   01 n 'l' 'c' value  a child for each of its values, inside of its family
//!   01 n 't'            the erasures of the list, in order
//!   01 n 'r'            a register
//!   01 n 'o'            a row of a node that was alone: nobody writes it any more
//!   01 n 's' shape value   who wrote something of n by which shape: one for each write
//!   01 n 'c' shape      how many of those there were when the shape was replaced
//!   01 m 'r'            a register that one life of a client has for itself, m is large
//! ```
//! Ranges are split in front of an n: what has the same number stays together.
//!
//! A list is erased by deleting its family's span and writing it anew, in one commit.

use std::collections::BTreeMap;

use braid_lsm::KeySpan;
use braid_range::{CommitAsk, Write};
use braid_workload::history::Op;
use braid_workload::history::record::Key;
use bytes::Bytes;

fn key_of(key: Key) -> Vec<u8> {
    let (kind, number) = match key {
        Key::List(n) => (b'l', n),
        Key::Trail(n) => (b't', n),
        Key::Register(n) => (b'r', n),
    };
    let mut out = vec![1];
    out.extend_from_slice(&number.to_be_bytes());
    out.push(kind);
    out
}

/// A row of a node that was alone.
pub(crate) fn old_row(number: u64) -> (Vec<u8>, Vec<u8>) {
    // Between and behind what clients write.
    let mut key = vec![1];
    key.extend_from_slice(&(number as u32).to_be_bytes());
    key.push(b'o');
    (key, bytes(&[number; 12]))
}

/// Whether a key is that of a row of a node that was alone.
pub(crate) fn is_old_row(key: &[u8]) -> bool {
    key.len() == 6 && key[5] == b'o'
}

/// A number's things stay together, as a family does.
pub(crate) fn split_points(key: &[u8]) -> Vec<usize> {
    // What belongs to the system stays in one range, as it does in a node.
    let is_system = key.get(1).is_some_and(u8::is_ascii_lowercase);
    [5].into_iter().filter(|length| !is_system && *length <= key.len()).collect()
}

/// Numbers of registers that lives of clients have for themselves.
const OWN_REGISTERS: std::ops::Range<u32> = 1 << 20..1 << 21;
/// Of those numbers these bits are the client's.
const OWN_BITS: u32 = 8;

/// The register that a client has for itself, which others have lived as before.
pub(crate) fn own_register(client: u64, dead: u64) -> Key {
    let number = OWN_REGISTERS.start + ((dead as u32) << OWN_BITS) + client as u32;
    assert!(OWN_REGISTERS.contains(&number), "there are {dead} lives of clients");
    Key::Register(number)
}

/// Where all of those are.
pub(crate) fn own_registers() -> KeySpan {
    KeySpan::new(border(OWN_REGISTERS.start), border(OWN_REGISTERS.end))
}

/// What rows of those say.
pub(crate) fn seen_own(rows: &[Row]) -> Vec<Op> {
    let number = |key: &Bytes| u32::from_be_bytes(key[1..5].try_into().expect("four bytes"));
    let read = |(key, _): &Row| seen(rows, Key::Register(number(key)));
    rows.iter().flat_map(read).collect()
}

/// Whether a commit says that it was written by a shape.
pub(crate) fn goes_by_a_shape(ask: &CommitAsk) -> bool {
    // What belongs to the system has a letter there.
    let is_stamp = |key: &[u8]| key.len() == 22 && key[1] == 0 && key[5] == b's';
    ask.writes.iter().any(|write| is_stamp(&write.span().start))
}

/// Says that somebody has written by a shape of a number.
pub(crate) fn stamp(n: u32, shape: u64, value: u64) -> Vec<u8> {
    let mut key = shaped(n, b's', shape);
    key.extend_from_slice(&value.to_be_bytes());
    key
}

/// How many have written by a shape that was replaced.
pub(crate) fn stamp_count(n: u32, shape: u64) -> Vec<u8> {
    shaped(n, b'c', shape)
}

/// What was written by shapes of a number, and how many wrote by each that was replaced.
pub(crate) fn stamps(rows: &[Row]) -> (BTreeMap<u64, u64>, BTreeMap<u64, u64>) {
    let (mut written, mut counted) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in rows {
        let shape = numbers(&key[6..14])[0];
        match key[5] {
            b's' => *written.entry(shape).or_default() += 1,
            _ => drop(counted.insert(shape, numbers(value)[0])),
        }
    }
    (written, counted)
}

/// The spans of [`stamp`]s and their counts.
pub(crate) fn stamp_spans(n: u32) -> [KeySpan; 2] {
    [b'c', b's'].map(|kind| KeySpan::prefix(&[&border(n)[..], &[kind]].concat()))
}

fn shaped(n: u32, kind: u8, shape: u64) -> Vec<u8> {
    let mut key = border(n).to_vec();
    key.push(kind);
    key.extend_from_slice(&shape.to_be_bytes());
    key
}

/// Where ranges are split.
pub(crate) fn border(number: u32) -> Bytes {
    key_of(Key::List(number))[..5].to_vec().into()
}

fn child_of(key: Key, value: u64) -> Vec<u8> {
    let mut out = key_of(key);
    out.push(b'c');
    out.extend_from_slice(&value.to_be_bytes());
    out
}

/// The keys of something, with all that is inside.
pub(crate) fn span(key: Key) -> KeySpan {
    KeySpan::prefix(&key_of(key))
}

type Row = (Bytes, Bytes);

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let number = |chunk: &[u8]| u64::from_be_bytes(chunk.try_into().expect("eight bytes"));
    bytes.chunks_exact(8).map(number).collect()
}

pub(crate) fn bytes(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

/// The values of something among rows.
pub(crate) fn values(rows: &[Row], key: Key) -> Vec<u64> {
    let own = key_of(key);
    let row = rows.iter().find(|(key, _)| key.as_ref() == own);
    row.map(|(_, value)| numbers(value)).unwrap_or_default()
}

/// What rows say of something.
pub(crate) fn seen(rows: &[Row], key: Key) -> Vec<Op> {
    let values = values(rows, key);
    match key {
        Key::Register(_) => vec![Op::Get { key, value: values.first().copied().unwrap_or(0) }],
        Key::Trail(_) => vec![Op::Read { key, values, scan: false }],
        Key::List(_) => {
            let own = key_of(key);
            let child = |key: &Bytes| key.len() == 15 && key.starts_with(&own);
            let children = rows.iter().filter(|(key, _)| child(key));
            let mut children: Vec<u64> = children.flat_map(|(key, _)| numbers(&key[7..])).collect();
            // In the order of the list, if they are the same.
            let place = |child: &u64| values.iter().position(|value| value == child);
            children.sort_by_key(|child| (place(child).is_none(), place(child), *child));
            let list = Op::Read { key, values, scan: false };
            vec![list, Op::Children { key, values: children }]
        }
    }
}

fn put(key: Vec<u8>, value: Vec<u8>) -> Write {
    Write::Put(key.into(), value.into())
}

/// Appends to a list of which these are the values.
pub(crate) fn append(key: Key, before: &[u64], value: u64) -> Vec<Write> {
    let mut values = before.to_vec();
    values.push(value);
    let list = put(key_of(key), bytes(&values));
    match key {
        Key::List(_) => vec![list, put(child_of(key, value), Vec::new())],
        _ => vec![list],
    }
}

/// Erases a list; its trail gets the value, with which the list begins anew.
pub(crate) fn erase(key: Key, value: u64) -> Vec<Write> {
    let mut writes = vec![Write::DeleteSpan(span(key))];
    writes.extend(append(key, &[], value));
    writes
}

/// Writes a register.
pub(crate) fn write(key: Key, value: u64) -> Vec<Write> {
    vec![put(key_of(key), bytes(&[value]))]
}
