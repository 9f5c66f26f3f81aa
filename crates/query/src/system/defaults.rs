//! Defaults of columns as PostgreSQL prints them: a literal has the type that it became.
//!
//! ```text
//!   state varchar(10) DEFAULT 'new'     'new'::character varying
//!   n int DEFAULT '7', m int DEFAULT -1           7, '-1'::integer
//!   at timestamptz DEFAULT current_timestamp      CURRENT_TIMESTAMP
//! ```
//! Tools read these to know a default's value and its type.

use braid_catalog::Column;
use braid_scalar::{SPECIAL, typed_literal};
use braid_types::SqlType;
use sqlparser::ast::{Expr, FunctionArguments, UnaryOperator, Value};

use super::qualified::parsed;

/// A column's default as text; `None` if it has none, which NULL is, too.
pub(super) fn shown_default(column: &Column) -> Option<String> {
    let text = column.default.as_ref().filter(|text| !text.eq_ignore_ascii_case("null"))?;
    Some(shown(text, &column.ty).unwrap_or_else(|| text.clone()))
}

/// A parameter's default as PostgreSQL prints it.
pub(super) fn parameter_default(text: &str, ty: &SqlType) -> String {
    if text.eq_ignore_ascii_case("null") {
        return format!("NULL::{}", ty.base_name());
    }
    shown(text, ty).unwrap_or_else(|| text.to_string())
}

/// `None`: as it is.
fn shown(text: &str, ty: &SqlType) -> Option<String> {
    match parsed(text)? {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(literal) | Value::EscapedStringLiteral(literal) => {
                Some(typed_literal(literal, ty))
            }
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match *expr {
            Expr::Value(value) => match value.value {
                Value::Number(digits, _) => Some(negative(&digits.to_string())),
                _ => None,
            },
            _ => None,
        },
        Expr::Cast { expr, data_type, .. } => match *expr {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(literal) | Value::EscapedStringLiteral(literal) => {
                    let other = braid_scalar::sql_type_of(&data_type, None).ok()?;
                    Some(typed_literal(literal, &other))
                }
                _ => None,
            },
            _ => None,
        },
        Expr::Array(array) => Some(array.to_string().replacen("array[", "ARRAY[", 1)),
        Expr::Function(call) if matches!(call.args, FunctionArguments::None) => {
            let name = call.name.to_string();
            SPECIAL.contains(&name.to_lowercase().as_str()).then(|| name.to_uppercase())
        }
        _ => None,
    }
}

/// A number with a minus is one literal.
fn negative(digits: &str) -> String {
    let text = format!("-{digits}");
    let ty = match (text.parse::<i32>(), text.parse::<i64>()) {
        (Ok(_), _) => "integer",
        (_, Ok(_)) => "bigint",
        _ => "numeric",
    };
    format!("'{text}'::{ty}")
}
