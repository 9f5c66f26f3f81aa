//! Numbers and byte strings in records and messages: varints, and lengths in front of bytes.
//!
//! Reading never panics and never allocates more than the input holds; `None` means that the input
//! is cut off or malformed.

/// Appends a number, seven bits per byte, low bits first.
pub fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes what was written from the front of its input.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of all of `input`.
    pub fn new(input: &'a [u8]) -> Reader<'a> {
        Reader { rest: input }
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    /// A number written by [`put_number`].
    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Bytes written by [`put_bytes`].
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        if len > self.rest.len() as u64 {
            return None;
        }
        let (bytes, rest) = self.rest.split_at(len as usize);
        self.rest = rest;
        Some(bytes)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bytes_round_trip_and_cuts_are_noticed() {
        let mut out = Vec::new();
        let numbers = [0, 1, 127, 128, 300, u64::MAX - 1, u64::MAX];
        numbers.iter().for_each(|n| put_number(&mut out, *n));
        put_bytes(&mut out, b"abc");
        let mut reader = Reader::new(&out);
        for n in numbers {
            assert_eq!(reader.number(), Some(n));
        }
        assert_eq!(reader.bytes(), Some(&b"abc"[..]));
        assert!(reader.is_empty());
        let last = out.len() - 1;
        let mut cut = Reader::new(&out[..last]);
        numbers.iter().for_each(|n| assert_eq!(cut.number(), Some(*n)));
        assert_eq!(cut.bytes(), None);
        assert_eq!(Reader::new(&[0xFF; 10]).number(), None, "more than 64 bits");
    }
}
