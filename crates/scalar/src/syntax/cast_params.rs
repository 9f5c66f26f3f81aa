//! `$1::int` in a select list tells the parameter's type before WHERE does, as PostgreSQL goes
//! through a SELECT: FROM, select list, WHERE.
//!
//! ```text
//!   SELECT $1::int FROM t WHERE a = $1       an integer, whatever a is
//!   SELECT f($1), $1::int FROM t WHERE ..    what f takes
//! ```

use std::ops::ControlFlow;

use braid_walk::Walk;
use sqlparser::ast::{DataType, Expr, SelectItem, Value, Visitor};

use crate::{ParamTypes, refinement_of, sql_type_of};

/// How the names of items begin that are bound after WHERE. Nobody can type them.
pub const LATE_ITEM: &str = "\0late ";

/// Decides the types of parameters whose first use in a select list is a cast.
pub fn decide_by_casts(items: &[SelectItem], params: &mut ParamTypes) {
    let mut casts = Casts { params, used: Vec::new() };
    let late = |item: &&SelectItem| {
        matches!(item, SelectItem::ExprWithAlias { alias, .. }
            if alias.value.starts_with(LATE_ITEM))
    };
    for item in items.iter().filter(|item| !late(item)) {
        let _ = item.walk(&mut casts);
    }
}

struct Casts<'a> {
    params: &'a mut ParamTypes,
    /// Parameters that were seen.
    used: Vec<usize>,
}

impl Casts<'_> {
    fn of_cast(&mut self, expr: &Expr, ty: &DataType) {
        let Some(index) = parameter(expr).filter(|index| !self.used.contains(index)) else {
            return;
        };
        let named = self.params.named_types();
        let of_domain = refinement_of(ty, named).ok().and_then(|asked| asked.domain_oid());
        match (sql_type_of(ty, named), of_domain) {
            (Ok(ty), Some(domain)) => self.params.decide_domain(index, &ty.base(), domain),
            (Ok(ty), None) => self.params.decide(index, &ty.base()),
            (Err(_), _) => {}
        }
    }
}

/// The number of a parameter, from 0.
pub fn parameter(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Nested(inner) => parameter(inner),
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => {
                let number: usize = name.strip_prefix('$')?.parse().ok()?;
                number.checked_sub(1).filter(|index| *index < usize::from(u16::MAX))
            }
            _ => None,
        },
        _ => None,
    }
}

impl Visitor for Casts<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast { expr, data_type, .. } => self.of_cast(expr, data_type),
            Expr::Value(_) => self.used.extend(parameter(expr)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
