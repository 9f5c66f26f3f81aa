//! Text in other encodings than UTF-8, and which there are.

use braid_types::encodings::Encoding;
use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::{bytes_of, i64_of, text_of};
use crate::registry::Table;

fn named(name: &str, which: &str) -> SqlResult<Encoding> {
    Encoding::named(name).ok_or_else(|| {
        let text = format!("invalid {which}encoding name \"{name}\"");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
    })
}

/// Between these, PostgreSQL converts without a detour: whoever is not in one line with another is
/// converted to and from UTF8 only.
const RELATED: &[&[&str]] =
    &[&["KOI8R", "ISO_8859_5", "WIN1251", "WIN866"], &["EUC_JP", "SJIS"], &["LATIN2", "WIN1250"]];

/// Bytes in one encoding as bytes in another.
fn convert(bytes: &[u8], source: Encoding, destination: Encoding) -> SqlResult<Vec<u8>> {
    let one_is_utf8 = source.is_same() || destination.is_same();
    let is_in = |line: &&&[&str]| [source, destination].iter().all(|e| line.contains(&e.name()));
    if source != destination && !one_is_utf8 && !RELATED.iter().any(|line| is_in(&line)) {
        let text = format!(
            "default conversion function for encoding \"{}\" to \"{}\" does not exist",
            source.name(),
            destination.name()
        );
        let hint = "Convert to UTF8 first.";
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, text).with_hint(hint));
    }
    if source == destination {
        source.count_chars(bytes)?;
        return Ok(bytes.to_vec());
    }
    let mut out = Vec::new();
    destination.encode(&source.decode(bytes)?, &mut out)?;
    Ok(out)
}

fn to_ascii() -> SqlResult<Datum> {
    let text = "encoding conversion from UTF8 to ASCII not supported";
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
        .with_hint("translate() replaces letters by others."))
}

pub(super) fn functions(t: &mut Table) {
    t.add(
        "convert(bytea, name, name) bytea -- bytes in an encoding as bytes in another",
        |a, _| {
            let (source, destination) = (text_of(&a[1]), text_of(&a[2]));
            let source = named(source, "source ")?;
            let destination = named(destination, "destination ")?;
            Ok(Datum::Bytea(convert(bytes_of(&a[0]), source, destination)?.into()))
        },
    );
    t.add("convert_from(bytea, name) text -- text out of bytes in an encoding", |a, _| {
        Ok(Datum::text(named(text_of(&a[1]), "source ")?.decode(bytes_of(&a[0]))?))
    });
    t.add("convert_to(text, name) bytea -- bytes of the text in an encoding", |a, _| {
        let mut out = Vec::new();
        named(text_of(&a[1]), "destination ")?.encode(text_of(&a[0]), &mut out)?;
        Ok(Datum::Bytea(out.into()))
    });
    t.add("length(bytea, name) int4 -- characters of text in an encoding", |a, _| {
        let chars = named(text_of(&a[1]), "")?.count_chars(bytes_of(&a[0]))?;
        Ok(Datum::Int4(chars as i32))
    });
    t.add("to_ascii(text) text -- refused, as by PostgreSQL for a database in UTF8", |_, _| {
        to_ascii()
    });
    t.add("to_ascii(text, name) text", |_, _| to_ascii());
    t.add("to_ascii(text, int4) text", |_, _| to_ascii());
    t.add("pg_encoding_to_char(int4) name -- name of an encoding", |a, _| {
        let encoding = i32::try_from(i64_of(&a[0])).ok().and_then(Encoding::numbered);
        Ok(Datum::text(encoding.map_or("", Encoding::name)))
    });
    t.add(
        "pg_char_to_encoding(name) int4 -- number of an encoding, -1 if there is none",
        |a, _| Ok(Datum::Int4(Encoding::named(text_of(&a[0])).map_or(-1, Encoding::number))),
    );
    t.add("pg_encoding_max_length(int4) int4 -- the most bytes of a character", |a, _| {
        let encoding = i32::try_from(i64_of(&a[0])).ok().and_then(Encoding::numbered);
        Ok(encoding.map_or(Datum::Null, |encoding| Datum::Int4(encoding.longest())))
    });
    t.add("pg_client_encoding() name -- name of the client's encoding", |_, c| {
        let setting = c.session.setting("client_encoding").unwrap_or_default();
        Ok(Datum::text(Encoding::named(&setting).unwrap_or(Encoding::UTF8).name()))
    })
    .stable();
}
