//! One byte or more for a character: the encodings of East Asia.
//!
//! A *code* is the bytes of a character as one number. The third byte of EUC_JP's longest form
//! needs no place of its own: lead byte 0x8f, then two, is written as those two, the second without
//! its highest bit, which no two bytes look like.

use std::sync::OnceLock;

use super::rules::Rules;

/// How bytes make characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Two bytes of the upper half.
    Euc,
    /// The same, and three bytes after 0x8f.
    EucJp,
    /// Two, or one that is a narrow katakana.
    Sjis,
    /// A byte of the upper half, then any.
    Any,
    /// Two or four.
    Gb18030,
}

/// One of these encodings.
pub(super) struct Double {
    pub(super) form: Form,
    rules: Rules,
    maps: OnceLock<Maps>,
}

struct Maps {
    /// By code; 0 is none.
    chars: Vec<u16>,
    /// By character of the first plane; 0 is none.
    codes: Vec<u16>,
    /// Of GB18030: the characters of the first plane that have four bytes, in order.
    four: Vec<u16>,
}

/// Where the characters beyond the first plane begin among the forms of four bytes.
const FOUR_BEYOND: u32 = 189_000;

fn euc(byte: u8) -> bool {
    (0xa1..=0xfe).contains(&byte)
}

impl Double {
    pub(super) const fn new(form: Form, rules: Rules) -> Double {
        Double { form, rules, maps: OnceLock::new() }
    }

    fn maps(&self) -> &Maps {
        self.maps.get_or_init(|| {
            let mut chars = vec![0; 1 << 16];
            self.rules.fill(self.form, &mut chars);
            let mut codes = vec![0; 1 << 16];
            for code in 1..=u16::MAX {
                let c = chars[usize::from(code)];
                let known = codes[usize::from(c)];
                if c != 0 && (known == 0 || (self.rules.rank)(code) < (self.rules.rank)(known)) {
                    codes[usize::from(c)] = code;
                }
            }
            for (c, code) in self.rules.one_way {
                codes[*c as usize] = *code;
            }
            let four = match self.form {
                Form::Gb18030 => (0x80..=u16::MAX)
                    .filter(|c| !(0xd800..0xe000).contains(c) && codes[usize::from(*c)] == 0)
                    .collect(),
                _ => Vec::new(),
            };
            Maps { chars, codes, four }
        })
    }

    /// How many bytes the character takes that begins with these, the first of which is not ASCII,
    /// as the first of them say it.
    pub(super) fn length(&self, bytes: &[u8]) -> usize {
        match (self.form, bytes) {
            (Form::EucJp, [0x8f, ..]) => 3,
            (Form::Sjis, [0xa1..=0xdf, ..]) => 1,
            (Form::Gb18030, [_, b'0'..=b'9', ..]) => 4,
            _ => 2,
        }
    }

    /// Whether the bytes of one character have the form that they must have.
    pub(super) fn is_formed(&self, bytes: &[u8]) -> bool {
        match (self.form, bytes) {
            (Form::EucJp, [0x8e, second]) => (0xa1..=0xdf).contains(second),
            (Form::EucJp, [0x8f, rest @ ..]) => rest.len() == 2 && rest.iter().copied().all(euc),
            (Form::EucJp | Form::Euc, bytes) => bytes.len() == 2 && bytes.iter().copied().all(euc),
            (Form::Sjis, [_]) => true,
            (Form::Sjis, [first, second]) => {
                matches!(first, 0x81..=0x9f | 0xe0..=0xfc)
                    && matches!(second, 0x40..=0x7e | 0x80..=0xfc)
            }
            (Form::Any, bytes) => bytes.len() == 2 && bytes[1] != 0,
            (Form::Gb18030, [0x81..=0xfe, 0x40..=0x7e | 0x80..=0xfe]) => true,
            (Form::Gb18030, [0x81..=0xfe, b'0'..=b'9', 0x81..=0xfe, b'0'..=b'9']) => true,
            _ => false,
        }
    }

    /// The character of bytes that have the form of one.
    pub(super) fn char_of(&self, bytes: &[u8]) -> Option<char> {
        let code = match *bytes {
            [one] => u16::from(one),
            [first, second] => u16::from_be_bytes([first, second]),
            [_, second, third] => u16::from_be_bytes([second, third & 0x7f]),
            [a, b, c, d] => return self.char_of_four([a, b, c, d]),
            _ => return None,
        };
        match self.maps().chars[usize::from(code)] {
            0 => None,
            c => char::from_u32(u32::from(c)),
        }
    }

    fn char_of_four(&self, [a, b, c, d]: [u8; 4]) -> Option<char> {
        let digits = [(a, 0x81, 0), (b, 0x30, 10), (c, 0x81, 126), (d, 0x30, 10)];
        let place = digits
            .iter()
            .fold(0, |place, (byte, from, base)| place * base + u32::from(byte - from));
        if place >= FOUR_BEYOND {
            return char::from_u32(place - FOUR_BEYOND + 0x10000);
        }
        let c = self.maps().four.get(place as usize)?;
        char::from_u32(u32::from(*c))
    }

    /// Appends the bytes of a character that is not ASCII; `None` if it has none.
    pub(super) fn encode(&self, c: char, out: &mut Vec<u8>) -> Option<()> {
        let maps = self.maps();
        let narrow = u16::try_from(u32::from(c));
        let code = narrow.map_or(0, |c| maps.codes[usize::from(c)]);
        let [first, second] = code.to_be_bytes();
        match code {
            0 if self.form == Form::Gb18030 => {
                let place = match narrow {
                    Ok(c) => maps.four.binary_search(&c).ok()? as u32,
                    Err(_) => u32::from(c) - 0x10000 + FOUR_BEYOND,
                };
                let digit = |of: u32, from: u8| from + of as u8;
                out.extend([
                    digit(place / 12_600, 0x81),
                    digit(place / 1260 % 10, 0x30),
                    digit(place / 10 % 126, 0x81),
                    digit(place % 10, 0x30),
                ]);
            }
            0 => return None,
            1..=0xff => out.push(second),
            _ if self.form == Form::EucJp && second < 0x80 => {
                out.extend([0x8f, first, second | 0x80])
            }
            _ => out.extend([first, second]),
        }
        Some(())
    }
}
