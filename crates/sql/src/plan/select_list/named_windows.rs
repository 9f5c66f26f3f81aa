//! WINDOW: windows that calls name, written out in these.
//!
//! ```text
//!   rank() OVER w, sum(x) OVER (w ROWS 1 PRECEDING) .. WINDOW w AS (PARTITION BY a ORDER BY b)
//!   rank() OVER (PARTITION BY a ORDER BY b), sum(x) OVER (PARTITION BY a ORDER BY b ROWS ..)
//! ```
//! What nobody names is checked by general plans, and so is what one window cannot take from
//! another.

use std::ops::ControlFlow;

use braid_scalar::ident_name;
use sqlparser::ast::{self, Expr, NamedWindowExpr, OrderByKind, SetExpr, WindowSpec, WindowType};

/// A window of WINDOW.
struct Named {
    name: String,
    spec: WindowSpec,
    used: bool,
}

/// A SELECT without WINDOW; `None` if it has none, or one that general plans know.
pub(in crate::plan) fn written_out(q: &ast::Query) -> Option<ast::Query> {
    let SetExpr::Select(select) = &*q.body else { return None };
    if select.named_window.is_empty() {
        return None;
    }
    let mut named: Vec<Named> = Vec::new();
    for ast::NamedWindowDefinition(ident, definition) in &select.named_window {
        let NamedWindowExpr::WindowSpec(spec) = definition else { return None };
        let name = ident_name(ident);
        if spec.window_name.is_some() || named.iter().any(|known| known.name == name) {
            return None;
        }
        named.push(Named { name, spec: spec.clone(), used: false });
    }
    let mut q = q.clone();
    let SetExpr::Select(select) = &mut *q.body else { return None };
    select.named_window.clear();
    let known = write_out(&mut select.projection, &mut named);
    let known = known
        && match q.order_by.as_mut().map(|order| &mut order.kind) {
            Some(OrderByKind::Expressions(keys)) => write_out(keys, &mut named),
            _ => true,
        };
    (known && named.iter().all(|window| window.used)).then_some(q)
}

/// Writes windows out in calls; `false` if one is not as simple as that.
fn write_out(tree: &mut Vec<impl braid_walk::WalkMut>, named: &mut [Named]) -> bool {
    let broken = braid_walk::expressions_mut(tree, |e| match e {
        // They have windows of their own.
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        Expr::Function(call) => match call.over.as_mut().map(|over| put_into(over, named)) {
            Some(None) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    });
    broken.is_continue()
}

/// Puts a window in the place of its name; `None` if it cannot stand there.
fn put_into(over: &mut WindowType, named: &mut [Named]) -> Option<()> {
    let mut find = |name: &ast::Ident| {
        let name = ident_name(name);
        let found = named.iter_mut().find(|known| known.name == name)?;
        found.used = true;
        Some(found.spec.clone())
    };
    match over {
        WindowType::NamedWindow(name) => *over = WindowType::WindowSpec(find(name)?),
        WindowType::WindowSpec(spec) => {
            let Some(name) = spec.window_name.take() else { return Some(()) };
            let base = find(&name)?;
            let copied = spec.partition_by.is_empty()
                && (spec.order_by.is_empty() || base.order_by.is_empty())
                && base.window_frame.is_none();
            if !copied {
                return None;
            }
            spec.partition_by = base.partition_by;
            if spec.order_by.is_empty() {
                spec.order_by = base.order_by;
            }
        }
    }
    Some(())
}
