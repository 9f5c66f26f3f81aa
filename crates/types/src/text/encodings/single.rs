//! One byte for each character.

use std::sync::OnceLock;

/// One of these encodings.
pub(super) struct Single {
    /// The bytes from 0x80 to 0x9f are control characters of the same number, and not in the text.
    with_controls: bool,
    upper: &'static str,
    maps: OnceLock<Maps>,
}

struct Maps {
    /// By byte, from 0x80 on; '\0' is none.
    chars: [char; 128],
    /// In order.
    bytes: Vec<(char, u8)>,
}

impl Single {
    pub(super) const fn new(with_controls: bool, upper: &'static str) -> Single {
        Single { with_controls, upper, maps: OnceLock::new() }
    }

    fn maps(&self) -> &Maps {
        self.maps.get_or_init(|| {
            let controls =
                (0x80..0xa0).map(char::from).take(if self.with_controls { 32 } else { 0 });
            let mut chars = ['\0'; 128];
            for (slot, c) in chars.iter_mut().zip(controls.chain(self.upper.chars())) {
                *slot = if c == '?' { '\0' } else { c };
            }
            let known = (0x80..=0xff).zip(chars).filter(|(_, c)| *c != '\0');
            let mut bytes: Vec<(char, u8)> = known.map(|(byte, c)| (c, byte)).collect();
            bytes.sort_unstable();
            Maps { chars, bytes }
        })
    }

    /// The character of a byte that is not ASCII.
    pub(super) fn char_of(&self, byte: u8) -> Option<char> {
        let c = self.maps().chars[usize::from(byte & 0x7f)];
        (c != '\0').then_some(c)
    }

    /// The byte of a character that is not ASCII.
    pub(super) fn byte_of(&self, c: char) -> Option<u8> {
        let bytes = &self.maps().bytes;
        bytes.binary_search_by_key(&c, |known| known.0).ok().map(|at| bytes[at].1)
    }
}
