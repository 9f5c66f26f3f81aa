//! Values of `regclass` and its like, as text.
//!
//! Such a value is an oid, and stays one from the table to the client: its binary form is the oid,
//! its text the name of the object that has it now. Only the catalog knows that name, so whoever
//! writes text for values asks here first.

use braid_rows::Row;
use braid_scalar::{EvalContext, convert_datum};
use braid_types::{CastContext, Datum, SqlResult, SqlType};

use crate::general_query::RowStream;
use crate::session::Context;

/// Whether values of a type are oids that print as names, or arrays of such.
pub fn names_objects(ty: &SqlType) -> bool {
    ty.element().unwrap_or(ty).names_objects()
}

/// The names behind values, as the session's catalog and search path have them.
pub struct ObjectNames(EvalContext);

impl ObjectNames {
    /// Names as they are in a context.
    pub(crate) fn new(eval: EvalContext) -> ObjectNames {
        ObjectNames(eval)
    }

    /// The text for a value of a type; `None` if the value's own text is it.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub fn of(&self, value: &Datum, ty: &SqlType) -> SqlResult<Option<Datum>> {
        if !names_objects(ty) || value.is_null() {
            return Ok(None);
        }
        let text = if ty.element().is_some() { SqlType::Text.array_of() } else { SqlType::Text };
        convert_datum(value, ty, &text, CastContext::Explicit, &self.0).map(Some)
    }
}

/// A stream with names in the place of such values.
struct Named {
    stream: Box<dyn RowStream>,
    types: Vec<SqlType>,
    names: ObjectNames,
}

impl RowStream for Named {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        let Some(mut rows) = self.stream.next_batch()? else { return Ok(None) };
        for (value, ty) in rows.iter_mut().flat_map(|row| row.iter_mut().zip(&self.types)) {
            if let Some(name) = self.names.of(value, ty)? {
                *value = name;
            }
        }
        Ok(Some(rows))
    }
}

/// Columns and rows for those who write texts for values: names are texts already.
pub(crate) fn with_names(
    ctx: &Context,
    columns: Vec<(String, SqlType)>,
    stream: Box<dyn RowStream>,
) -> (Vec<(String, SqlType)>, Box<dyn RowStream>) {
    if !columns.iter().any(|(_, ty)| names_objects(ty)) {
        return (columns, stream);
    }
    let types: Vec<_> = columns.iter().map(|(_, ty)| ty.clone()).collect();
    let shown = columns.into_iter().map(|(name, ty)| match &ty {
        ty if ty.names_objects() => (name, SqlType::Text),
        SqlType::Array(element) if element.names_objects() => (name, SqlType::Text.array_of()),
        _ => (name, ty),
    });
    let names = ObjectNames::new(ctx.eval.clone());
    (shown.collect(), Box::new(Named { stream, types, names }))
}
