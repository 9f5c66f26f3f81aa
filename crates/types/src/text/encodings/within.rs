//! Texts within the binary forms of values: of arrays, rows, ranges and documents.
//!
//! The binary form of a value has its texts in the client's encoding, wherever they stand in it.
//! So a form in one encoding is read from its front and written anew in the other.

use crate::{SqlResult, SqlType};

/// How text becomes text in the other encoding.
pub type Recode<'a> = dyn FnMut(&[u8], &mut Vec<u8>) -> SqlResult<()> + 'a;

/// What the binary form of a type is made of.
enum Shape<'a> {
    /// Nothing that is text.
    Plain,
    Text,
    /// A byte that says the version, then text.
    Document,
    Array(&'a SqlType),
    Row(Option<&'a [crate::CompositeField]>),
    Range(SqlType),
    Multirange(SqlType),
}

impl Shape<'_> {
    fn of(ty: &SqlType) -> Shape<'_> {
        match ty {
            SqlType::Jsonb | SqlType::Jsonpath => Shape::Document,
            SqlType::Json | SqlType::Enum(_) | SqlType::Unknown => Shape::Text,
            SqlType::CharByte => Shape::Plain,
            SqlType::Array(element) => Shape::Array(element),
            SqlType::Composite(row) => Shape::Row(Some(&row.fields)),
            SqlType::Record => Shape::Row(None),
            SqlType::Range(kind) => Shape::Range(kind.element()),
            SqlType::Multirange(kind) => Shape::Multirange(kind.element()),
            SqlType::Citext | SqlType::Refcursor => Shape::Text,
            ty if ty.is_text_like() => Shape::Text,
            _ => Shape::Plain,
        }
    }
}

/// Whether binary forms of a type can have texts in them.
fn has_texts(ty: &SqlType) -> bool {
    match Shape::of(ty) {
        Shape::Plain => false,
        Shape::Text | Shape::Document | Shape::Row(_) => true,
        Shape::Array(element) => has_texts(element),
        Shape::Range(of) | Shape::Multirange(of) => has_texts(&of),
    }
}

/// Appends the binary form of a value with its texts in another encoding. A form that is no good
/// goes through as it is: whoever reads it tells what is wrong.
///
/// # Errors
/// Those of `recode`.
pub fn recode_binary(
    bytes: &[u8],
    ty: &SqlType,
    recode: &mut Recode<'_>,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    if bytes.is_ascii() || !has_texts(ty) {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    let start = out.len();
    match (Reader { rest: bytes, recode, out: &mut *out }).value(ty) {
        Some(done) => done,
        None => {
            out.truncate(start);
            out.extend_from_slice(bytes);
            Ok(())
        }
    }
}

struct Reader<'a, 'r> {
    rest: &'a [u8],
    recode: &'a mut Recode<'r>,
    out: &'a mut Vec<u8>,
}

/// `None`: the form is no good.
type Read = Option<SqlResult<()>>;

impl Reader<'_, '_> {
    /// All of the rest is a value.
    fn value(&mut self, ty: &SqlType) -> Read {
        let done = match Shape::of(ty) {
            Shape::Plain => {
                self.copy(self.rest.len())?;
                Ok(())
            }
            Shape::Text => (self.recode)(std::mem::take(&mut self.rest), self.out),
            Shape::Document => {
                self.copy(1)?;
                (self.recode)(std::mem::take(&mut self.rest), self.out)
            }
            Shape::Array(element) => self.array(element)?,
            Shape::Row(fields) => self.row(fields)?,
            Shape::Range(of) => self.range(&of)?,
            Shape::Multirange(of) => self.multirange(&of)?,
        };
        (done.is_err() || self.rest.is_empty()).then_some(done)
    }

    fn copy(&mut self, n: usize) -> Option<()> {
        let (head, rest) = self.rest.split_at_checked(n)?;
        self.out.extend_from_slice(head);
        self.rest = rest;
        Some(())
    }

    fn int(&mut self) -> Option<i32> {
        let value = i32::from_be_bytes(*self.rest.first_chunk::<4>()?);
        self.copy(4)?;
        Some(value)
    }

    /// A value behind its length; -1 is NULL.
    fn sized(&mut self, read: impl FnOnce(&mut Reader<'_, '_>) -> Read) -> Read {
        let at = self.out.len();
        let length = self.int()?;
        if length == -1 {
            return Some(Ok(()));
        }
        let (value, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        let inner = &mut Reader { rest: value, recode: self.recode, out: self.out };
        if let Err(e) = read(inner)? {
            return Some(Err(e));
        }
        let length = (self.out.len() - at - 4) as i32;
        self.out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        Some(Ok(()))
    }

    /// Values behind their lengths until the end.
    fn all_sized(&mut self, ty: &SqlType) -> Read {
        while !self.rest.is_empty() {
            if let Err(e) = self.sized(|value| value.value(ty))? {
                return Some(Err(e));
            }
        }
        Some(Ok(()))
    }

    fn array(&mut self, element: &SqlType) -> Read {
        let dimensions = usize::try_from(self.int()?).ok()?;
        self.copy(8)?;
        self.copy(dimensions.checked_mul(8)?)?;
        self.all_sized(element)
    }

    fn row(&mut self, fields: Option<&[crate::CompositeField]>) -> Read {
        self.int()?;
        let mut at = 0;
        while !self.rest.is_empty() {
            let oid = self.int()? as u32;
            let known = fields.and_then(|fields| fields.get(at)).map(|field| field.ty.clone());
            let ty = known.or_else(|| SqlType::from_oid(oid, -1)).unwrap_or(SqlType::Bytea);
            if let Err(e) = self.sized(|value| value.value(&ty))? {
                return Some(Err(e));
            }
            at += 1;
        }
        Some(Ok(()))
    }

    fn range(&mut self, of: &SqlType) -> Read {
        self.copy(1)?;
        self.all_sized(of)
    }

    fn multirange(&mut self, of: &SqlType) -> Read {
        self.int()?;
        while !self.rest.is_empty() {
            if let Err(e) = self.sized(|value| value.range(of))? {
                return Some(Err(e));
            }
        }
        Some(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::encodings::Encoding;
    use crate::{ArrayValue, Datum, RecordValue};

    #[test]
    fn texts_are_found_wherever_they_stand() {
        let latin = Encoding::named("LATIN1").unwrap();
        let texts = vec![Datum::text("é"), Datum::Null, Datum::text("plain ü")];
        let array = Datum::Array(ArrayValue::list(SqlType::Text, texts).into());
        let fields = vec![Datum::Int4(233), array.clone(), Datum::text("ö")];
        let row = Datum::Record(RecordValue { names: None, fields }.into());
        let list = SqlType::Text.array_of();
        for (value, ty, saved) in [
            (Datum::text("été"), SqlType::Text, 2),
            (array, list, 2),
            (row, SqlType::Record, 3),
            (Datum::Bytea(b"\xc3\xa9"[..].into()), SqlType::Bytea, 0),
        ] {
            let (mut own, mut theirs, mut back) = (Vec::new(), Vec::new(), Vec::new());
            value.to_binary(&ty, &mut own);
            let mut encode = |text: &[u8], out: &mut Vec<u8>| {
                latin.encode(std::str::from_utf8(text).unwrap(), out)
            };
            recode_binary(&own, &ty, &mut encode, &mut theirs).unwrap();
            assert_eq!(theirs.len() + saved, own.len(), "{ty:?}");
            let mut decode = |text: &[u8], out: &mut Vec<u8>| {
                out.extend(latin.decode(text)?.bytes());
                Ok(())
            };
            recode_binary(&theirs, &ty, &mut decode, &mut back).unwrap();
            assert_eq!(back, own);
            // No prefix panics.
            for cut in 0..theirs.len() {
                let _ = recode_binary(&theirs[..cut], &ty, &mut decode, &mut Vec::new());
            }
        }
    }
}
