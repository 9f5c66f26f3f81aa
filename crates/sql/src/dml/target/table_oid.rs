//! `tableoid` in RETURNING: the oid of the written table, or of the partition that the row is in.

use std::borrow::Cow;
use std::ops::ControlFlow;

use braid_scalar::{ident_name, output_name};
use braid_types::SqlResult;
use braid_walk::WalkMut;
use sqlparser::ast::{Expr, Ident, SelectItem, VisitorMut};

use super::written::Target;
use crate::partitions::table_oid;

const TABLE_OID: &str = "tableoid";

/// The items with an expression in place of `tableoid`, unless it is a column, or a view is written
/// to, which has none.
pub(in crate::dml) fn with_table_oid<'a>(
    items: &'a [SelectItem],
    target: &Target,
) -> SqlResult<Cow<'a, [SelectItem]>> {
    if target.is_view() || target.table.column_named(TABLE_OID).is_some() {
        return Ok(Cow::Borrowed(items));
    }
    let quoted = |name: &str| Ident::with_quote('"', name);
    let names = |name: &str| Some(vec![quoted(&target.alias), quoted(name)]);
    let oid = table_oid(&target.table, &names)?;
    let mut visitor = Replaced { alias: &target.alias, oid, found: false };
    let mut all = false;
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        let mut new = item.clone();
        visitor.found = false;
        let _ = new.walk_mut(&mut visitor);
        all |= visitor.found;
        out.push(match (item, new) {
            (SelectItem::UnnamedExpr(old), SelectItem::UnnamedExpr(expr)) if visitor.found => {
                SelectItem::ExprWithAlias { expr, alias: quoted(&output_name(old)) }
            }
            (_, new) => new,
        });
    }
    Ok(if all { Cow::Owned(out) } else { Cow::Borrowed(items) })
}

struct Replaced<'a> {
    alias: &'a str,
    oid: Expr,
    found: bool,
}

impl VisitorMut for Replaced<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_oid = match expr {
            Expr::Identifier(name) => ident_name(name) == TABLE_OID,
            Expr::CompoundIdentifier(parts) => {
                let parts: Vec<String> = parts.iter().map(ident_name).collect();
                *parts == [self.alias, TABLE_OID]
            }
            _ => false,
        };
        if is_oid {
            *expr = self.oid.clone();
            self.found = true;
        }
        ControlFlow::Continue(())
    }
}
