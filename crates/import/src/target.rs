//! The columns that rows are read for, and how values of files become values of columns.

use std::sync::Arc;

use braid_types::{
    ArrayValue, CastContext, Datum, SqlError, SqlResult, SqlState, SqlType, Style, cast,
    cast_exists,
};

/// A column that rows are read for.
#[derive(Debug, Clone)]
pub struct TargetColumn {
    /// Name.
    pub name: String,
    /// Type, with its modifiers.
    pub ty: SqlType,
}

/// What rows are read for: columns in the order of a CSV file's fields.
#[derive(Debug, Clone)]
pub struct Target {
    /// Columns.
    pub columns: Vec<TargetColumn>,
    /// How dates and times are read.
    pub style: Style,
    /// Fields of the file that no column has are left out instead of refused.
    pub ignore_unknown: bool,
}

/// A value of a file that has types of its own.
#[derive(Debug, Clone)]
pub enum Value {
    /// NULL.
    Null,
    /// A value and the type that it has in the file.
    Typed(Datum, SqlType),
    /// Text, to be read as the column's type says.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// What only JSON columns can hold.
    Json(serde_json::Value),
}

impl Target {
    /// The column of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// Reads the text form of a column's value.
    pub(crate) fn text(&self, column: usize, text: &str) -> SqlResult<Datum> {
        Datum::parse(text, &self.columns[column].ty, self.style)
    }

    /// Makes a value of a file one of a column.
    ///
    /// # Errors
    /// 42804 for a type that the column does not take; those of reading text and of casts.
    pub(crate) fn value(&self, column: usize, value: Value) -> SqlResult<Datum> {
        fit(value, &self.columns[column].ty, self.style)
    }

    /// By field of a file: the column that it is for.
    ///
    /// # Errors
    /// 42703 for a field that no column has, unless those are left out.
    pub(crate) fn fields<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> SqlResult<Vec<Option<usize>>> {
        names.into_iter().map(|name| self.field(name)).collect()
    }

    /// The column that a field is for.
    pub(crate) fn field(&self, name: &str) -> SqlResult<Option<usize>> {
        match self.position(name) {
            None if !self.ignore_unknown => Err(SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("the file's field \"{name}\" is not a column of the target"),
            )
            .with_hint("WITH ignore_unknown_fields leaves such fields out.")),
            found => Ok(found),
        }
    }
}

fn fit(value: Value, ty: &SqlType, style: Style) -> SqlResult<Datum> {
    match (value, ty) {
        (Value::Null, _) => Ok(Datum::Null),
        (Value::Json(json), SqlType::Jsonb | SqlType::Json) => {
            Datum::parse(&json.to_string(), ty, style)
        }
        (Value::Text(text), SqlType::Jsonb | SqlType::Json) => Datum::parse(&text, ty, style),
        (Value::Text(text), _) => Datum::parse(&checked(text)?, ty, style),
        (Value::List(items), SqlType::Array(element)) => {
            let items = items.into_iter().map(|item| fit(item, element, style));
            let items = items.collect::<SqlResult<Vec<Datum>>>()?;
            Ok(Datum::Array(Arc::new(ArrayValue::list((**element).clone(), items))))
        }
        (Value::List(_), _) => Err(mismatch("a list", ty)),
        (Value::Json(_), _) => Err(mismatch("a JSON value", ty)),
        // Text that its writer did not mark as such.
        (Value::Typed(Datum::Bytea(bytes), _), ty) if ty.is_text_like() => {
            let text = std::str::from_utf8(&bytes).map_err(|_| not_utf8())?;
            Datum::parse(&checked(text.into())?, ty, style)
        }
        (Value::Typed(datum, from), _) => {
            if is_assignable(&from, ty) {
                return cast(&datum, &from, ty, CastContext::Assignment, style);
            }
            Err(mismatch(&format!("a value of type {}", from.name()), ty))
        }
    }
}

fn is_assignable(from: &SqlType, to: &SqlType) -> bool {
    matches!(cast_exists(from, to), Some(CastContext::Implicit | CastContext::Assignment))
}

/// Text of a file that may hold what text of ours does not.
fn checked(text: String) -> SqlResult<String> {
    match text.contains('\0') {
        true => Err(not_utf8()),
        false => Ok(text),
    }
}

pub(crate) fn not_utf8() -> SqlError {
    SqlError::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        "invalid byte sequence for encoding \"UTF8\"",
    )
}

fn mismatch(what: &str, ty: &SqlType) -> SqlError {
    SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("{what} of the file does not fit a column of type {}", ty.name()),
    )
}
