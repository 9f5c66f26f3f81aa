//! Rows in the wire protocol: their number of fields, then of each its type, its length and itself.

use super::CompositeType;
use crate::{Datum, RecordValue, SqlError, SqlResult, SqlState, SqlType};

/// Writes a row; the types of its fields are those of its type, or what its values tell.
pub(crate) fn to_wire(row: &RecordValue, ty: &SqlType, out: &mut Vec<u8>) {
    out.extend((row.len() as i32).to_be_bytes());
    for (at, field) in row.iter().enumerate() {
        let known = match ty {
            SqlType::Composite(ty) => ty.fields.get(at),
            _ => None,
        };
        let ty = known.map_or_else(|| field.implied_type(), |known| known.ty.clone());
        out.extend(known.map_or(ty.oid(), |known| known.oid).to_be_bytes());
        crate::binary::sized(field, &ty, out);
    }
}

/// Reads a value of a type; `None`: malformed.
pub(crate) fn from_wire(bytes: &[u8], ty: &CompositeType) -> Option<SqlResult<Datum>> {
    let mut rest = bytes;
    let int = |rest: &mut &[u8]| -> Option<i32> {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        *rest = tail;
        Some(i32::from_be_bytes(*head))
    };
    let count = int(&mut rest)?;
    let mismatch = |text: String| Some(Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text)));
    if usize::try_from(count).ok() != Some(ty.fields.len()) {
        return mismatch(format!("wrong number of columns: {count}, expected {}", ty.fields.len()));
    }
    let mut fields = Vec::with_capacity(ty.fields.len());
    for (at, field) in ty.fields.iter().enumerate() {
        let sent = int(&mut rest)? as u32;
        if sent != field.oid {
            let name = SqlType::from_oid(sent, -1).map_or("???".into(), |t| t.base_name());
            return mismatch(format!(
                "binary data has type {sent} ({name}) instead of expected {} ({}) in record \
                 column {}",
                field.oid,
                field.ty.base_name(),
                at + 1
            ));
        }
        let length = int(&mut rest)?;
        if length == -1 {
            fields.push(Datum::Null);
            continue;
        }
        let (value, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        rest = after;
        match Datum::from_binary(value, &field.ty) {
            Ok(value) => fields.push(value),
            Err(e) => return Some(Err(e)),
        }
    }
    rest.is_empty().then(|| Ok(ty.value(fields)))
}
