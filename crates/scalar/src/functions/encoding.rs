//! `convert_from` and `convert_to`: text in other encodings than UTF-8.
//!
//! Latin 1 is here, since its letters are the first 256 of Unicode. The other encodings that
//! PostgreSQL knows are named, so that they are told from misspelt ones.

use braid_types::{SqlError, SqlResult, SqlState};

/// Names of PostgreSQL's encodings that are not supported, as [`plain`] writes them.
const FOREIGN: &[&str] = &[
    "abc",
    "alt",
    "big5",
    "euccn",
    "eucjis2004",
    "eucjp",
    "euckr",
    "euctw",
    "gb18030",
    "gbk",
    "iso885910",
    "iso885913",
    "iso885914",
    "iso885915",
    "iso885916",
    "iso88592",
    "iso88593",
    "iso88594",
    "iso88595",
    "iso88596",
    "iso88597",
    "iso88598",
    "iso88599",
    "johab",
    "koi8",
    "koi8r",
    "koi8u",
    "latin10",
    "latin2",
    "latin3",
    "latin4",
    "latin5",
    "latin6",
    "latin7",
    "latin8",
    "latin9",
    "mskanji",
    "muleinternal",
    "shiftjis",
    "shiftjis2004",
    "sjis",
    "sqlascii",
    "tcvn",
    "tcvn5712",
    "uhc",
    "vscii",
    "win",
    "win1250",
    "win1251",
    "win1252",
    "win1253",
    "win1254",
    "win1255",
    "win1256",
    "win1257",
    "win1258",
    "win866",
    "win874",
    "win932",
    "win936",
    "win949",
    "win950",
    "windows1250",
    "windows1251",
    "windows1252",
    "windows1253",
    "windows1254",
    "windows1255",
    "windows1256",
    "windows1257",
    "windows1258",
    "windows866",
    "windows874",
    "windows932",
    "windows936",
    "windows949",
    "windows950",
];

enum Encoding {
    Utf8,
    Latin1,
}

/// An encoding's name without case and signs.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn encoding(name: &str, which: &str) -> SqlResult<Encoding> {
    match plain(name).as_str() {
        "utf8" | "unicode" => Ok(Encoding::Utf8),
        "latin1" | "iso88591" => Ok(Encoding::Latin1),
        known if FOREIGN.contains(&known) => {
            Err(SqlError::unsupported(format!("the encoding \"{name}\""))
                .with_hint("Supported are UTF8 and LATIN1."))
        }
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid {which} encoding name \"{name}\""),
        )),
    }
}

/// Bytes in an encoding as text.
pub(super) fn decode(bytes: &[u8], name: &str) -> SqlResult<String> {
    let invalid = || {
        SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\"",
        )
    };
    let text = match encoding(name, "source")? {
        Encoding::Utf8 => std::str::from_utf8(bytes).map_err(|_| invalid())?.to_string(),
        Encoding::Latin1 => bytes.iter().copied().map(char::from).collect(),
    };
    // Text holds no zero byte.
    if text.contains('\0') { Err(invalid()) } else { Ok(text) }
}

/// Text as bytes in an encoding.
pub(super) fn encode(text: &str, name: &str) -> SqlResult<Vec<u8>> {
    match encoding(name, "destination")? {
        Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
        Encoding::Latin1 => text
            .chars()
            .map(|c| {
                u8::try_from(c).map_err(|_| {
                    SqlError::new(
                        SqlState("22P05"),
                        format!("character \"{c}\" has no equivalent in encoding \"LATIN1\""),
                    )
                })
            })
            .collect(),
    }
}
