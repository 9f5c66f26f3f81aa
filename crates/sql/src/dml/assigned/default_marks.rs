//! DEFAULT in the VALUES of an INSERT that the general planner reads.
//!
//! ```text
//!   VALUES (1, DEFAULT), ((SELECT 2), 'b')   ──►   VALUES (1, NULL, '01'), ((SELECT 2), 'b', '00')
//! ```
//! A query knows no DEFAULT: which values of a row are one stands behind its other values.

use braid_types::Datum;
use sqlparser::ast;

use crate::dml::target::is_default;

/// Which columns have a value in some row.
pub(in crate::dml) struct Marks {
    pub(in crate::dml) given: Vec<bool>,
}

/// The query with marks; `None` if it has no DEFAULT.
pub(in crate::dml) fn marked(query: &ast::Query) -> Option<(ast::Query, Marks)> {
    let ast::SetExpr::Values(values) = &*query.body else { return None };
    if !values.rows.iter().flat_map(|row| &row.content).any(is_default) {
        return None;
    }
    let mut given = vec![false; values.rows.first().map_or(0, |row| row.content.len())];
    let mut marked = values.clone();
    for row in &mut marked.rows {
        let mut marks = String::new();
        for (at, e) in row.content.iter_mut().enumerate() {
            let default = is_default(e);
            marks.push(if default { '1' } else { '0' });
            if default {
                *e = ast::Expr::value(ast::Value::Null);
            } else if let Some(given) = given.get_mut(at) {
                *given = true;
            }
        }
        row.content.push(ast::Expr::value(ast::Value::SingleQuotedString(marks)));
    }
    let body = Box::new(ast::SetExpr::Values(marked));
    Some((ast::Query { body, ..query.clone() }, Marks { given }))
}

/// Takes the marks of a row off: the places of its values that are DEFAULT.
pub(in crate::dml) fn taken_off(row: &mut Vec<Datum>) -> Vec<usize> {
    match row.pop() {
        Some(Datum::Text(marks)) => marks.match_indices('1').map(|(at, _)| at).collect(),
        _ => Vec::new(),
    }
}
