//! Keys of ORDER BY, GROUP BY and DISTINCT ON that are constants: numbers of result columns.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{Expr, UnaryOperator, Value};

use super::at_beginning;

/// Which of so many result columns a key means by its number, counted from 0; `None` if it is no
/// constant.
///
/// # Errors
/// 42P10 for a number that no column has, 42601 for any other constant.
pub fn column_by_number(expr: &Expr, columns: usize, clause: &str) -> SqlResult<Option<usize>> {
    let Some(constant) = constant(expr) else { return Ok(None) };
    let error = match constant {
        Constant::Number(n) => {
            let at = usize::try_from(n).ok().and_then(|n| n.checked_sub(1));
            if let Some(at) = at.filter(|at| *at < columns) {
                return Ok(Some(at));
            }
            let text = format!("{clause} position {n} is not in select list");
            SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, text)
        }
        Constant::Other => SqlError::syntax(format!("non-integer constant in {clause}")),
    };
    Err(at_beginning(error, expr))
}

enum Constant {
    Number(i32),
    Other,
}

fn constant(expr: &Expr) -> Option<Constant> {
    let number = |text: &str| text.parse().map_or(Constant::Other, Constant::Number);
    match expr {
        Expr::Nested(inner) => constant(inner),
        Expr::Value(value) => match &value.value {
            Value::Placeholder(_) => None,
            Value::Number(n, _) => Some(number(n)),
            _ => Some(Constant::Other),
        },
        // A sign before a number is a part of it.
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(value) => match &value.value {
                Value::Number(n, _) => Some(number(&format!("-{n}"))),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Expr {
        let dialect = sqlparser::dialect::PostgreSqlDialect {};
        let parser = sqlparser::parser::Parser::new(&dialect);
        parser.try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    fn told(text: &str) -> String {
        let expr = parsed(text);
        match column_by_number(&expr, 2, "ORDER BY") {
            Ok(found) => format!("{found:?}"),
            Err(e) => format!("{} {}", e.state().0, e.message()),
        }
    }

    #[test]
    fn constants_are_numbers_of_columns() {
        assert_eq!(
            [told("1"), told("(2)"), told("a"), told("$1")],
            ["Some(0)", "Some(1)", "None", "None"]
        );
        assert_eq!(told("1 + 1"), "None");
        for outside in ["0", "3", "-1"] {
            assert_eq!(
                told(outside),
                format!("42P10 ORDER BY position {outside} is not in select list")
            );
        }
        for other in ["'1'", "null", "true", "1.5", "5000000000"] {
            assert_eq!(told(other), "42601 non-integer constant in ORDER BY");
        }
        assert_eq!(told("'x'::text"), "None");
    }
}
