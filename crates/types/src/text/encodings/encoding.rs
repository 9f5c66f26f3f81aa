//! [`Encoding`]: which there are, and text there and back.

use super::double::Double;
use super::single::Single;
use super::{rules, tables};
use crate::{SqlError, SqlResult, SqlState, checked_text};

/// An encoding of PostgreSQL's, by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(u8);

/// The names in the order of the numbers.
const NAMES: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Further names, as [`plain`] leaves them.
const ALIASES: &[(&str, &str)] = &[
    ("abc", "WIN1258"),
    ("alt", "WIN866"),
    ("iso88591", "LATIN1"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88599", "LATIN5"),
    ("koi8", "KOI8R"),
    ("mskanji", "SJIS"),
    ("shiftjis", "SJIS"),
    ("tcvn", "WIN1258"),
    ("tcvn5712", "WIN1258"),
    ("unicode", "UTF8"),
    ("vscii", "WIN1258"),
    ("win", "WIN1251"),
    ("win932", "SJIS"),
    ("win936", "GBK"),
    ("win949", "UHC"),
    ("win950", "BIG5"),
];

/// What text has to go through.
#[derive(Clone, Copy)]
enum Way {
    /// It is UTF-8 already. PostgreSQL takes SQL_ASCII for what the server has.
    Same,
    Single(&'static Single),
    Double(&'static Double),
    /// Only the name is known.
    None,
}

/// A name without case and signs.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Bytes as errors show them.
fn hex(bytes: &[u8]) -> String {
    let all: Vec<String> = bytes.iter().take(8).map(|byte| format!("0x{byte:02x}")).collect();
    all.join(" ")
}

impl Encoding {
    /// That of databases.
    pub const UTF8: Encoding = Encoding(6);

    /// The encoding of a name, in any spelling that PostgreSQL knows.
    pub fn named(name: &str) -> Option<Encoding> {
        let mut name = plain(name);
        if let Some(number) = name.strip_prefix("windows").filter(|number| !number.is_empty()) {
            name = format!("win{number}");
        }
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, own)| *own);
        let is_it = |own: &&str| alias == Some(own) || alias.is_none() && plain(own) == name;
        NAMES.iter().position(is_it).map(|at| Encoding(at as u8))
    }

    /// The encoding of a number.
    pub fn numbered(number: i32) -> Option<Encoding> {
        let number = u8::try_from(number).ok()?;
        (usize::from(number) < NAMES.len()).then_some(Encoding(number))
    }

    /// Its number.
    pub fn number(self) -> i32 {
        i32::from(self.0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    /// The most bytes that a character takes.
    pub fn longest(self) -> i32 {
        match self.name() {
            "UTF8" | "MULE_INTERNAL" | "GB18030" | "EUC_TW" => 4,
            "EUC_JP" | "EUC_JIS_2004" | "EUC_CN" | "EUC_KR" | "JOHAB" => 3,
            "SJIS" | "SHIFT_JIS_2004" | "BIG5" | "GBK" | "UHC" => 2,
            _ => 1,
        }
    }

    fn way(self) -> Way {
        match self.name() {
            "UTF8" | "SQL_ASCII" => Way::Same,
            "EUC_JP" => Way::Double(&rules::EUC_JP_CODES),
            "EUC_CN" => Way::Double(&rules::EUC_CN_CODES),
            "EUC_KR" => Way::Double(&rules::EUC_KR_CODES),
            "SJIS" => Way::Double(&rules::SJIS_CODES),
            "BIG5" => Way::Double(&rules::BIG5_CODES),
            "GBK" => Way::Double(&rules::GBK_CODES),
            "UHC" => Way::Double(&rules::UHC_CODES),
            "GB18030" => Way::Double(&rules::GB18030_CODES),
            name => BY_NAME
                .iter()
                .find(|(known, _)| *known == name)
                .map_or(Way::None, |(_, single)| Way::Single(single)),
        }
    }

    /// Whether text can be had in it.
    pub fn is_supported(self) -> bool {
        !matches!(self.way(), Way::None)
    }

    /// Whether text in it is that of databases.
    pub fn is_same(self) -> bool {
        matches!(self.way(), Way::Same)
    }

    fn invalid(self, bytes: &[u8]) -> SqlError {
        let text =
            format!("invalid byte sequence for encoding \"{}\": {}", self.name(), hex(bytes));
        SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, text)
    }

    fn untranslatable(bytes: &[u8], from: &str, to: &str) -> SqlError {
        let bytes = hex(bytes);
        let text = format!(
            "character with byte sequence {bytes} in encoding \"{from}\" has no equivalent in \
             encoding \"{to}\""
        );
        SqlError::new(SqlState::UNTRANSLATABLE_CHARACTER, text)
    }

    fn no_conversion(from: &str, to: &str) -> SqlError {
        let text = format!(
            "default conversion function for encoding \"{from}\" to \"{to}\" does not exist"
        );
        SqlError::new(SqlState::UNDEFINED_FUNCTION, text)
    }

    /// The length of the character that these bytes begin with.
    ///
    /// # Errors
    /// 22021 if it is none. Of bytes that end within a character nothing more is known: `None`.
    fn length(self, way: Way, bytes: &[u8]) -> SqlResult<Option<usize>> {
        let double = match way {
            _ if bytes[0] == 0 => return Err(self.invalid(&bytes[..1])),
            Way::Double(double) if bytes[0] >= 0x80 => double,
            _ => return Ok(Some(1)),
        };
        let length = double.length(bytes);
        match bytes.get(..length) {
            None if bytes.len() < 4 => Ok(None),
            Some(whole) if double.is_formed(whole) => Ok(Some(length)),
            _ => Err(self.invalid(&bytes[..length.min(bytes.len())])),
        }
    }

    /// Appends text of bytes in this encoding; how many of them: less than all if the last ones are
    /// not a whole character.
    ///
    /// # Errors
    /// 22021 for bytes that are no text in it; 22P05 if there is no such character; 42883.
    pub(super) fn decode_whole(self, bytes: &[u8], out: &mut String) -> SqlResult<usize> {
        let way = self.way();
        match way {
            Way::Same => {
                out.push_str(checked_text(bytes)?);
                return Ok(bytes.len());
            }
            Way::None => return Err(Encoding::no_conversion(self.name(), "UTF8")),
            Way::Single(_) | Way::Double(_) => {}
        }
        out.reserve(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let ascii = rest.iter().take_while(|byte| (1..0x80).contains(*byte)).count();
            if ascii > 0 {
                out.push_str(std::str::from_utf8(&rest[..ascii]).expect("it is ASCII"));
                at += ascii;
                continue;
            }
            let Some(length) = self.length(way, rest)? else { break };
            let whole = &rest[..length];
            let c = match way {
                Way::Single(single) => single.char_of(whole[0]),
                Way::Double(double) => double.char_of(whole),
                Way::Same | Way::None => None,
            };
            out.push(c.ok_or_else(|| Encoding::untranslatable(whole, self.name(), "UTF8"))?);
            at += length;
        }
        Ok(at)
    }

    /// Text of bytes in this encoding.
    ///
    /// # Errors
    /// 22021 for bytes that are no text in it; 22P05 if there is no such character; 42883 if only
    /// its name is known.
    pub fn decode(self, bytes: &[u8]) -> SqlResult<String> {
        let mut out = String::new();
        match self.decode_whole(bytes, &mut out)? {
            all if all == bytes.len() => Ok(out),
            at => Err(self.invalid(&bytes[at..])),
        }
    }

    /// Appends text as bytes in this encoding.
    ///
    /// # Errors
    /// 22P05 for a character that it does not have; 42883 if only its name is known.
    pub fn encode(self, text: &str, out: &mut Vec<u8>) -> SqlResult<()> {
        let way = self.way();
        if let Way::None = way {
            return Err(Encoding::no_conversion("UTF8", self.name()));
        }
        if text.is_ascii() || matches!(way, Way::Same) {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        for c in text.chars() {
            let done = match way {
                _ if c.is_ascii() => {
                    out.push(c as u8);
                    Some(())
                }
                Way::Single(single) => single.byte_of(c).map(|byte| out.push(byte)),
                Way::Double(double) => double.encode(c, out),
                Way::Same | Way::None => None,
            };
            if done.is_none() {
                let bytes = c.to_string();
                return Err(Encoding::untranslatable(bytes.as_bytes(), "UTF8", self.name()));
            }
        }
        Ok(())
    }

    /// The same, with `?` for characters that it does not have.
    pub fn encode_what_it_has(self, text: &str, out: &mut Vec<u8>) {
        for c in text.chars() {
            if self.encode(c.encode_utf8(&mut [0; 4]), out).is_err() {
                out.push(b'?');
            }
        }
    }

    /// How many characters the bytes are in this encoding.
    ///
    /// # Errors
    /// 22021 for bytes that are no text in it; 0A000 if only its name is known.
    pub fn count_chars(self, bytes: &[u8]) -> SqlResult<usize> {
        let way = self.way();
        match way {
            Way::None => {
                Err(SqlError::unsupported(format!("text in the encoding {}", self.name())))
            }
            Way::Same if self == Encoding::UTF8 => Ok(checked_text(bytes)?.chars().count()),
            _ => {
                let (mut at, mut count) = (0, 0);
                while at < bytes.len() {
                    let rest = &bytes[at..];
                    at += self.length(way, rest)?.ok_or_else(|| self.invalid(rest))?;
                    count += 1;
                }
                Ok(count)
            }
        }
    }
}

/// The encodings with one byte for each character.
static BY_NAME: [(&str, &Single); 27] = {
    use tables::*;
    [
        ("LATIN1", &LATIN1),
        ("LATIN2", &LATIN2),
        ("LATIN3", &LATIN3),
        ("LATIN4", &LATIN4),
        ("LATIN5", &LATIN5),
        ("LATIN6", &LATIN6),
        ("LATIN7", &LATIN7),
        ("LATIN8", &LATIN8),
        ("LATIN9", &LATIN9),
        ("LATIN10", &LATIN10),
        ("WIN1256", &WIN1256),
        ("WIN1258", &WIN1258),
        ("WIN866", &WIN866),
        ("WIN874", &WIN874),
        ("KOI8R", &KOI8R),
        ("WIN1251", &WIN1251),
        ("WIN1252", &WIN1252),
        ("ISO_8859_5", &ISO_8859_5),
        ("ISO_8859_6", &ISO_8859_6),
        ("ISO_8859_7", &ISO_8859_7),
        ("ISO_8859_8", &ISO_8859_8),
        ("WIN1250", &WIN1250),
        ("WIN1253", &WIN1253),
        ("WIN1254", &WIN1254),
        ("WIN1255", &WIN1255),
        ("WIN1257", &WIN1257),
        ("KOI8U", &KOI8U),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a.
    fn mixed(hash: u64, bytes: &[u8]) -> u64 {
        bytes.iter().fold(hash, |h, byte| (h ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    }

    const SEED: u64 = 0xcbf2_9ce4_8422_2325;

    /// How many characters of one to three bytes there are, and their digest with the bytes.
    fn decoded(encoding: Encoding) -> (usize, u64) {
        let ones = (0x80..=0xff).map(|byte: u8| vec![byte]);
        let twos = (0x8000..=0xffff).map(|code: u16| code.to_be_bytes().to_vec());
        let threes = (0x8000..=0xffff).map(|code: u16| {
            let [a, b] = code.to_be_bytes();
            vec![0x8f, a, b]
        });
        let mut all: Vec<Vec<u8>> = ones.chain(twos).chain(threes).collect();
        all.sort();
        let one = |bytes: &Vec<u8>| {
            let text = encoding.decode(bytes).ok()?;
            (text.chars().count() == 1).then(|| (bytes.clone(), text))
        };
        all.iter().filter_map(one).fold((0, SEED), |(n, h), (bytes, text)| {
            (n + 1, mixed(mixed(h, &bytes), text.as_bytes()))
        })
    }

    /// The same of the characters of the first plane as bytes.
    fn encoded(encoding: Encoding) -> (usize, u64) {
        let chars = (0x80..=0xffff).filter_map(char::from_u32).filter(|c| *c != '\u{fffd}');
        let one = |c: char| {
            let (mut bytes, text) = (Vec::new(), c.to_string());
            encoding.encode(&text, &mut bytes).ok()?;
            Some((text, bytes))
        };
        chars.filter_map(one).fold((0, SEED), |(n, h), (text, bytes)| {
            (n + 1, mixed(mixed(h, text.as_bytes()), &bytes))
        })
    }

    /// What PostgreSQL 15 was asked for: all bytes there, and all characters back.
    #[test]
    fn the_encodings_of_east_asia_are_those_of_postgresql() {
        let known = [
            ("EUC_JP", 13197, 0xe2ad_f52d_9ea8_2bc4, 13175, 0xe769_e97f_864a_2ee6),
            ("SJIS", 7787, 0xf901_384e_a99a_143d, 7397, 0xecd3_0608_be86_7139),
            ("EUC_KR", 8227, 0xd3cf_1457_e4da_d391, 8227, 0x75d6_83b6_7a43_5a91),
            ("UHC", 17237, 0xc342_bef0_21ff_a946, 17237, 0x6d58_3f7d_cdb8_476e),
            ("BIG5", 13710, 0xfc9f_5f6b_770e_70a8, 13710, 0x055e_e210_7078_e7c8),
            ("GBK", 21791, 0x79b1_1572_df1f_b77c, 21792, 0x21db_74a1_5dfd_40e8),
            ("GB18030", 23940, 0xc8c6_7437_8e17_a520, 63359, 0xa52e_edfa_e4be_4574),
            ("EUC_CN", 7445, 0x859b_078f_5aa4_3f2c, 7445, 0x03c2_ff55_507d_4bc0),
        ];
        for (name, chars, digest, back, digest_back) in known {
            let encoding = Encoding::named(name).unwrap();
            assert_eq!(decoded(encoding), (chars, digest), "{name} to UTF8");
            assert_eq!(encoded(encoding), (back, digest_back), "{name} of UTF8");
        }
    }

    #[test]
    fn one_byte_is_one_character_and_back() {
        let bytes: Vec<u8> = (0x80..=0xff).collect();
        let mut all = 0;
        for (name, _) in &BY_NAME {
            let encoding = Encoding::named(name).unwrap();
            for byte in &bytes {
                let Ok(text) = encoding.decode(&[*byte]) else { continue };
                let mut back = Vec::new();
                encoding.encode(&text, &mut back).unwrap();
                assert_eq!(back, [*byte], "{name}");
                all += 1;
            }
        }
        // So many of 27 · 128 have a meaning for PostgreSQL.
        assert_eq!(all, SINGLES);
    }

    const SINGLES: usize = 3255;

    #[test]
    fn names_have_many_spellings() {
        for (name, number) in [
            ("latin1", 8),
            ("Iso_8859-1", 8),
            ("iso-8859-15", 16),
            ("windows-1252", 24),
            ("cp1252", -1),
            ("'utf8'", 6),
            ("unicode", 6),
            ("", -1),
            ("win", 23),
            ("koi8", 22),
            ("Shift_JIS", 35),
            ("windows949", 38),
            ("tcvn", 19),
            ("sql-ascii", 0),
            ("mule", -1),
        ] {
            assert_eq!(Encoding::named(name).map_or(-1, Encoding::number), number, "{name}");
        }
    }

    #[test]
    fn what_is_no_text_is_an_error() {
        let decode = |name: &str, bytes: &[u8]| {
            Encoding::named(name).unwrap().decode(bytes).map_err(|e| e.to_string())
        };
        assert_eq!(decode("LATIN1", b"\xe9t\xe9").unwrap(), "été");
        assert_eq!(decode("GB18030", b"\x95\x32\x82\x36a").unwrap(), "\u{20000}a");
        for (name, bytes, told) in [
            ("SJIS", &b"\x82"[..], "invalid byte sequence for encoding \"SJIS\": 0x82"),
            ("SJIS", b"a\x82\x20b", "invalid byte sequence for encoding \"SJIS\": 0x82 0x20"),
            ("WIN1252", b"\x81", "byte sequence 0x81 in encoding \"WIN1252\" has no equivalent"),
            ("LATIN1", b"a\0", "invalid byte sequence for encoding \"LATIN1\": 0x00"),
            ("EUC_TW", b"a", "default conversion function for encoding \"EUC_TW\" to \"UTF8\""),
            ("GB18030", b"\x84\x31\xa4", "encoding \"GB18030\": 0x84 0x31 0xa4"),
        ] {
            let error = decode(name, bytes).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
