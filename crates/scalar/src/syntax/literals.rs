//! Constants as PostgreSQL prints them, with their types where they would be lost; and those that
//! have none.

use braid_types::{Datum, SqlType, Style};
use sqlparser::ast;

/// A literal of a type: its value as that type prints it, and the type where it would be lost.
pub fn typed_literal(literal: &str, ty: &SqlType) -> String {
    let style = Style::utc();
    // Digits that a column leaves out are the literal's all the same.
    let any_numeric = SqlType::Numeric(None);
    let of = if matches!(ty, SqlType::Numeric(_)) { &any_numeric } else { ty };
    match Datum::parse(literal, of, style) {
        Ok(Datum::Bool(value)) => value.to_string(),
        Ok(value @ (Datum::Int4(_) | Datum::Numeric(_))) => {
            let text = value.to_text(style).unwrap_or_default();
            // Without a point it would be read as another type.
            let bare = matches!(value, Datum::Int4(_)) || text.contains('.');
            if text.starts_with('-') || !bare { quoted(&text, ty) } else { text }
        }
        Ok(value) => quoted(&value.to_text(style).unwrap_or_default(), ty),
        Err(_) => quoted(literal, ty),
    }
}

pub(super) fn quoted(literal: &str, ty: &SqlType) -> String {
    // Blanks at the end mean nothing there.
    let literal = if matches!(ty, SqlType::Char(_)) { literal.trim_end() } else { literal };
    format!("'{}'::{}", literal.replace('\'', "''"), cast_name(ty))
}

pub(super) fn cast_name(ty: &SqlType) -> String {
    match ty {
        SqlType::Char(_) => "bpchar".to_string(),
        SqlType::Bit(_) => "\"bit\"".to_string(),
        other => other.base_name(),
    }
}

/// A number as it is written, perhaps with its minus, which is part of it; and its type.
pub(super) fn number(digits: &str, minus: bool) -> Option<(String, SqlType)> {
    let text = format!("{}{digits}", if minus { "-" } else { "" });
    let whole = (text.parse::<i32>().is_ok(), text.parse::<i64>().is_ok());
    let any_numeric = SqlType::Numeric(None);
    Some(match whole {
        (true, _) if !minus => (text, SqlType::Int4),
        (true, _) => (format!("'{text}'::integer"), SqlType::Int4),
        (_, true) => (format!("'{text}'::bigint"), SqlType::Int8),
        _ if digits.contains(['e', 'E']) => return None,
        _ if !minus && digits.contains('.') => (text, any_numeric),
        _ => (format!("'{text}'::numeric"), any_numeric),
    })
}

/// What is called without parentheses.
pub const SPECIAL: [&str; 10] = [
    "current_timestamp",
    "current_date",
    "current_time",
    "localtimestamp",
    "localtime",
    "current_user",
    "session_user",
    "current_role",
    "current_catalog",
    "current_schema",
];

/// The columns of an operand of a set operation that are literals without a type: the other side
/// gives them theirs. Where duplicates are told apart inside the operand, they are text already.
pub fn untyped_items(operand: &ast::SetExpr) -> Vec<usize> {
    let select = match operand {
        ast::SetExpr::Select(select) => select,
        ast::SetExpr::Query(query)
            if query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() =>
        {
            return match &*query.body {
                ast::SetExpr::SetOperation { .. } => Vec::new(),
                body => untyped_items(body),
            };
        }
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for (at, item) in select.projection.iter().enumerate() {
        let mut expr = match item {
            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                expr
            }
            // What follows a star stands at a place that only the tables know.
            _ => break,
        };
        while let ast::Expr::Nested(inner) = expr {
            expr = inner;
        }
        if let ast::Expr::Value(value) = expr
            && matches!(
                value.value,
                ast::Value::Null
                    | ast::Value::SingleQuotedString(_)
                    | ast::Value::EscapedStringLiteral(_)
            )
        {
            found.push(at);
        }
    }
    if select.distinct.is_some() { Vec::new() } else { found }
}
