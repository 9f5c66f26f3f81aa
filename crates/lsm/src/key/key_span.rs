//! A piece of the key space: `[start, end)`.

use std::fmt;

use bytes::Bytes;

use crate::options::MAX_KEY_LEN;

/// Above every key the engine accepts: one byte longer than the longest key, all of them 0xFF.
static ABOVE_ALL_KEYS: [u8; MAX_KEY_LEN + 1] = [0xFF; MAX_KEY_LEN + 1];

/// All keys from `start` (included) to `end` (excluded), in byte order.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeySpan {
    /// The first key of the span.
    pub start: Bytes,
    /// The first key after the span.
    pub end: Bytes,
}

impl KeySpan {
    /// The span `[start, end)`; empty if `start >= end`.
    pub fn new(start: impl Into<Bytes>, end: impl Into<Bytes>) -> KeySpan {
        KeySpan { start: start.into(), end: end.into() }
    }

    /// The span that holds every possible key.
    pub fn all() -> KeySpan {
        KeySpan { start: Bytes::new(), end: Bytes::from_static(&ABOVE_ALL_KEYS) }
    }

    /// The span that holds exactly one key.
    pub fn point(key: &[u8]) -> KeySpan {
        let mut end = Vec::with_capacity(key.len() + 1);
        end.extend_from_slice(key);
        end.push(0);
        KeySpan { start: Bytes::copy_from_slice(key), end: end.into() }
    }

    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeySpan {
        let mut end = prefix.to_vec();
        while let Some(last) = end.pop() {
            if last < 0xFF {
                end.push(last + 1);
                return KeySpan::new(Bytes::copy_from_slice(prefix), end);
            }
        }
        KeySpan { start: Bytes::copy_from_slice(prefix), end: KeySpan::all().end }
    }

    /// Whether no key is in the span.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Whether `key` is in the span.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_ref() <= key && key < self.end.as_ref()
    }

    /// Whether the spans share a key.
    pub fn overlaps(&self, other: &KeySpan) -> bool {
        self.start.as_ref().max(&other.start) < self.end.as_ref().min(&other.end)
    }

    /// Whether every key of `other` is in this span.
    pub fn covers(&self, other: &KeySpan) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }

    /// The keys in both spans.
    pub fn intersect(&self, other: &KeySpan) -> KeySpan {
        KeySpan {
            start: (&self.start).max(&other.start).clone(),
            end: (&self.end).min(&other.end).clone(),
        }
    }
}

impl fmt::Debug for KeySpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.end.as_ref() == ABOVE_ALL_KEYS {
            write!(f, "[\"{}\", end)", self.start.escape_ascii())
        } else {
            write!(f, "[\"{}\", \"{}\")", self.start.escape_ascii(), self.end.escape_ascii())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_span_ends_at_the_next_prefix() {
        assert_eq!(KeySpan::prefix(b"ab"), KeySpan::new("ab", "ac"));
        assert_eq!(KeySpan::prefix(b"a\xff"), KeySpan::new(&b"a\xff"[..], "b"));
        assert!(KeySpan::prefix(b"\xff").contains(b"\xff\xff\xff"));
    }

    #[test]
    fn neighbours_do_not_overlap() {
        assert!(!KeySpan::new("a", "b").overlaps(&KeySpan::new("b", "c")));
        assert!(KeySpan::new("a", "c").overlaps(&KeySpan::new("b", "d")));
        assert!(KeySpan::point(b"a").contains(b"a"));
        assert!(!KeySpan::point(b"a").contains(b"a\0"));
    }
}
