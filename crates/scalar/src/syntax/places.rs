//! Where in the script an expression stands that an error is about, as PostgreSQL tells it.
//!
//! ```text
//!   a + 'x'      no such operator: the sign      'x' is no integer: the literal
//!   f(a)         no such function: its name
//!   x LIKE y     the word
//! ```
//! sqlparser keeps where names and literals stand, but not where signs and key words do: those are
//! looked for in front of the expression behind them ([`Mark::Behind`]).

use braid_types::{Mark, Place, SqlError, SqlState};
use sqlparser::ast::{BinaryOperator, CastKind, Expr, Spanned, UnaryOperator, Value};
use sqlparser::tokenizer::Location;

use crate::object_name_parts;

/// The beginning of an expression, if it is known; brackets around it do not count.
pub fn beginning(expr: &Expr) -> Option<Place> {
    match expr {
        Expr::Identifier(ident) => at_word(ident.span.start, &ident.value),
        Expr::CompoundIdentifier(parts) => {
            let first = parts.first()?;
            at_word(first.span.start, &first.value)
        }
        Expr::Value(value) => at_word(value.span.start, &literal(&value.value)?),
        Expr::Function(call) => {
            let name = object_name_parts(&call.name);
            at_word(call.name.span().start, name.first()?)
        }
        Expr::Case { case_token, .. } => at_word(case_token.0.span.start, "case"),
        Expr::UnaryOp { op: UnaryOperator::PGPrefixFactorial, .. } => None,
        Expr::UnaryOp { op, expr } => in_front(&op.to_string().to_lowercase(), expr),
        Expr::Cast { kind: CastKind::DoubleColon, expr, .. } => beginning(expr),
        Expr::Cast { expr, .. } => in_front("cast", expr),
        Expr::BinaryOp { left, .. } => beginning(left),
        Expr::Nested(inner)
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotUnknown(inner)
        | Expr::IsDistinctFrom(inner, _)
        | Expr::IsNotDistinctFrom(inner, _)
        | Expr::Like { expr: inner, .. }
        | Expr::ILike { expr: inner, .. }
        | Expr::SimilarTo { expr: inner, .. }
        | Expr::InList { expr: inner, .. }
        | Expr::InSubquery { expr: inner, .. }
        | Expr::Between { expr: inner, .. }
        | Expr::AnyOp { left: inner, .. }
        | Expr::AllOp { left: inner, .. }
        | Expr::Collate { expr: inner, .. }
        | Expr::AtTimeZone { timestamp: inner, .. }
        | Expr::CompoundFieldAccess { root: inner, .. } => beginning(inner),
        _ => None,
    }
}

pub(super) fn at_word(start: Location, word: &str) -> Option<Place> {
    let mark = Mark::Word(word.to_string());
    (start.line > 0).then_some(Place { line: start.line, column: start.column, mark })
}

/// Words or a sign in front of an expression.
fn in_front(words: &str, expr: &Expr) -> Option<Place> {
    let place = beginning(expr)?;
    let words = match place.mark {
        Mark::Behind(more) => format!("{words} {more}"),
        Mark::Named | Mark::Word(_) => words.to_string(),
    };
    Some(Place { mark: Mark::Behind(words), ..place })
}

/// How a literal begins, without its quotes; `None` if that depends on how it was written.
fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Number(digits, _) => Some(digits.to_string()),
        Value::SingleQuotedString(text) => Some(text.clone()),
        Value::Boolean(value) => Some(value.to_string()),
        Value::Null => Some("null".to_string()),
        Value::Placeholder(name) => Some(name.clone()),
        _ => None,
    }
}

/// An error about an expression as a whole, with its beginning.
pub fn at_beginning(error: SqlError, expr: &Expr) -> SqlError {
    match error.place() {
        None => error.or_place(beginning(expr)),
        Some(_) => error,
    }
}

/// An error in binding an expression, with its place as far as that can be told.
pub(crate) fn at_its_place(error: SqlError, expr: &Expr) -> SqlError {
    if error.place().is_some() || error.position().is_some() {
        return error;
    }
    if let Some(part) = bad_literal(&error, expr) {
        return error.or_place(beginning(part));
    }
    let start = match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Value(_)
        | Expr::TypedString(_) => expr.span().start,
        Expr::Function(call)
            if is_misplaced(&error) || object_name_parts(&call.name) == ["nullif"] =>
        {
            return error.or_place(beginning(expr));
        }
        Expr::Function(_) => expr.span().start,
        Expr::Cast { .. } if is_about_type(&error) => {
            let place = cast_to(&error, expr);
            return error.or_place(place);
        }
        Expr::Cast { expr: inner, .. } if matches!(**inner, Expr::Value(_)) => inner.span().start,
        _ if is_about_operator(&error) => return error.or_place(operator(expr)),
        Expr::CompoundFieldAccess { .. } => return error.or_place(beginning(expr)),
        _ => return error,
    };
    error.or_at(start.line, start.column)
}

/// Whether a call may not stand where it does.
fn is_misplaced(error: &SqlError) -> bool {
    error.state() == SqlState::GROUPING_ERROR || error.state() == SqlState("42P20")
}

/// 42846 and 42704: no such cast, no such type.
fn is_about_type(error: &SqlError) -> bool {
    [SqlState::CANNOT_COERCE, SqlState::UNDEFINED_OBJECT].contains(&error.state())
}

/// `cast` or `::` of a cast, or the type behind that if it is what is unknown.
fn cast_to(error: &SqlError, expr: &Expr) -> Option<Place> {
    let Expr::Cast { kind, expr: inner, .. } = expr else { return None };
    let is_known = error.state() == SqlState::CANNOT_COERCE;
    let is_leaf =
        matches!(**inner, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_));
    let Location { line, column } = inner.span().end;
    match kind {
        CastKind::DoubleColon if !is_leaf => None,
        CastKind::DoubleColon if is_known => at_word(inner.span().end, SIGN),
        CastKind::DoubleColon => {
            Some(Place { line, column: column + SIGN.len() as u64, mark: Mark::Named })
        }
        _ if is_known => in_front("cast", inner),
        _ => None,
    }
}

/// Of a cast.
const SIGN: &str = "::";

/// 42883 and 42725 of an operator.
fn is_about_operator(error: &SqlError) -> bool {
    ["operator ", "op ANY/ALL "].iter().any(|begins| error.message().starts_with(begins))
}

/// The sign or key word of an expression that is one operator.
fn operator(expr: &Expr) -> Option<Place> {
    let not = |negated: bool, word: &str| match negated {
        true => format!("not {word}"),
        false => word.to_string(),
    };
    match expr {
        Expr::BinaryOp { op: BinaryOperator::PGCustomBinaryOperator(_), .. } => None,
        Expr::BinaryOp { op, right, .. } => in_front(&op.to_string().to_lowercase(), right),
        Expr::UnaryOp { .. } => beginning(expr),
        Expr::Like { negated, pattern, .. } => in_front(&not(*negated, "like"), pattern),
        Expr::ILike { negated, pattern, .. } => in_front(&not(*negated, "ilike"), pattern),
        Expr::SimilarTo { negated, pattern, .. } => in_front(&not(*negated, "similar to"), pattern),
        Expr::Between { negated, low, .. } => in_front(&not(*negated, "between"), low),
        Expr::InList { negated, list, .. } => in_front(&not(*negated, "in"), list.first()?),
        Expr::IsDistinctFrom(_, right) => in_front("is distinct from", right),
        Expr::IsNotDistinctFrom(_, right) => in_front("is not distinct from", right),
        Expr::AnyOp { compare_op, right, is_some, .. } => {
            let any = if *is_some { "some" } else { "any" };
            in_front(&format!("{compare_op} {any}"), right)
        }
        Expr::AllOp { compare_op, right, .. } => in_front(&format!("{compare_op} all"), right),
        Expr::Case { operand: Some(_), conditions, .. } => {
            in_front("when", &conditions.first()?.condition)
        }
        _ => None,
    }
}

/// The literal that does not fit among the parts of an expression.
fn bad_literal<'a>(error: &SqlError, expr: &'a Expr) -> Option<&'a Expr> {
    let states = [
        SqlState::INVALID_TEXT_REPRESENTATION,
        SqlState::INVALID_DATETIME_FORMAT,
        SqlState::DATETIME_FIELD_OVERFLOW,
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        SqlState::UNDEFINED_OBJECT,
        SqlState::UNDEFINED_TABLE,
    ];
    if !states.contains(&error.state()) {
        return None;
    }
    let said = |part: &&Expr| {
        let text = match part {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => text,
                _ => return false,
            },
            _ => return false,
        };
        error.message().contains(&format!("\"{text}\""))
    };
    parts(expr).into_iter().find(said)
}

/// What is converted to a type within an expression.
fn parts(expr: &Expr) -> Vec<&Expr> {
    use sqlparser::ast::{FunctionArg, FunctionArgExpr, FunctionArguments};
    match expr {
        Expr::Value(_) => vec![expr],
        Expr::Nested(inner) => parts(inner),
        Expr::Cast { expr: inner, .. } => vec![&**inner],
        Expr::BinaryOp { left, right, .. }
        | Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right)
        | Expr::AnyOp { left, right, .. }
        | Expr::AllOp { left, right, .. } => vec![&**left, &**right],
        Expr::InList { expr, list, .. } => std::iter::once(&**expr).chain(list).collect(),
        Expr::Between { expr, low, high, .. } => vec![&**expr, &**low, &**high],
        Expr::Tuple(fields) => fields.iter().collect(),
        Expr::Array(array) => array.elem.iter().collect(),
        Expr::Case { operand, conditions, else_result, .. } => {
            let whens = conditions.iter().flat_map(|when| [&when.condition, &when.result]);
            let ends = operand.iter().chain(else_result).map(|part| &**part);
            whens.chain(ends).collect()
        }
        Expr::Function(call) => {
            let FunctionArguments::List(list) = &call.args else { return Vec::new() };
            let args = list.args.iter().filter_map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e),
                _ => None,
            });
            args.collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    fn place(text: &str) -> Option<(u64, Mark)> {
        let dialect = PostgreSqlDialect {};
        let expr = Parser::new(&dialect).try_with_sql(text).unwrap().parse_expr().unwrap();
        beginning(&expr).map(|place| (place.column, place.mark))
    }

    #[test]
    fn expressions_begin_with_their_leftmost_part() {
        let word = |column, word: &str| Some((column, Mark::Word(word.into())));
        let behind = |column, words: &str| Some((column, Mark::Behind(words.into())));
        assert_eq!(place("t.a + 1"), word(1, "t"));
        assert_eq!(place("((a)) is null"), word(3, "a"));
        assert_eq!(place("'x'::text = b"), word(1, "x"));
        assert_eq!(place("lower(a) || 'x'"), word(1, "lower"));
        assert_eq!(place("- - a"), behind(5, "- -"));
        assert_eq!(place("cast(a as text)"), behind(6, "cast"));
        assert_eq!(place("(select 1)"), None);
    }
}
