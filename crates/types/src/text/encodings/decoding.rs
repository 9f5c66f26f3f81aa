//! [`Decoding`]: bytes that come in pieces, which may end within a character.

use super::Encoding;
use crate::SqlResult;

/// Turns pieces of text in an encoding into UTF-8.
pub struct Decoding {
    encoding: Encoding,
    /// The beginning of a character.
    rest: Vec<u8>,
}

impl Decoding {
    /// For text in this encoding.
    pub fn new(encoding: Encoding) -> Decoding {
        Decoding { encoding, rest: Vec::new() }
    }

    /// Appends the text of a piece, with what was left of the one before.
    ///
    /// # Errors
    /// As of [`Encoding::decode`]. What stands before the error has been appended.
    pub fn feed(&mut self, piece: &[u8], text: &mut String) -> SqlResult<()> {
        let joined;
        let bytes = match self.rest.is_empty() {
            true => piece,
            false => {
                self.rest.extend_from_slice(piece);
                joined = std::mem::take(&mut self.rest);
                &joined
            }
        };
        let at = self.encoding.decode_whole(bytes, text)?;
        self.rest = bytes[at..].to_vec();
        Ok(())
    }

    /// There is nothing more.
    ///
    /// # Errors
    /// 22021 if a character has no end.
    pub fn finish(&mut self) -> SqlResult<()> {
        self.encoding.decode(&std::mem::take(&mut self.rest)).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_may_end_anywhere() {
        let text = "a日本\u{20000}é語";
        let encoding = Encoding::named("GB18030").unwrap();
        let mut bytes = Vec::new();
        encoding.encode(text, &mut bytes).unwrap();
        for cut in 0..=bytes.len() {
            let mut decoding = Decoding::new(encoding);
            let mut fed = String::new();
            decoding.feed(&bytes[..cut], &mut fed).unwrap();
            decoding.feed(&bytes[cut..], &mut fed).unwrap();
            decoding.finish().unwrap();
            assert_eq!(fed, text, "{cut}");
        }
        let mut decoding = Decoding::new(encoding);
        decoding.feed(b"a\x95", &mut String::new()).unwrap();
        assert!(decoding.finish().is_err());
    }
}
