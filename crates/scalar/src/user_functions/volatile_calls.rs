//! Whether a part of a statement calls a volatile function, before anything of it is bound.

use std::ops::ControlFlow;

use braid_walk::Walk;
use sqlparser::ast::{Expr, ObjectName, TableFactor, Visitor};

use crate::registry::is_volatile;
use crate::{ParamTypes, Volatility, object_name_parts};

impl ParamTypes {
    /// Whether a part of a statement calls a volatile function, in expressions, in FROM, or in what
    /// functions of users are made of: many are volatile only for want of a better word. Of
    /// overloads one is enough.
    pub fn calls_volatile(&self, node: &impl Walk) -> bool {
        node.walk(&mut Calls { known: self, seen: Vec::new() }).is_break()
    }
}

struct Calls<'a> {
    known: &'a ParamTypes,
    /// Functions of users whose bodies were looked at.
    seen: Vec<u32>,
}

impl Calls<'_> {
    fn look_at(&mut self, function: &ObjectName) -> ControlFlow<()> {
        let parts = object_name_parts(function);
        if parts.last().is_some_and(|name| is_volatile(name)) {
            return ControlFlow::Break(());
        }
        let Some(types) = self.known.named_types() else { return ControlFlow::Continue(()) };
        for own in types.functions(&parts).unwrap_or_default() {
            if own.volatility != Volatility::Volatile || self.seen.contains(&own.id) {
                continue;
            }
            self.seen.push(own.id);
            match types.body(own.id) {
                Ok(body) => body.query.walk(self)?,
                Err(_) => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }
}

impl Visitor for Calls<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => self.look_at(&function.name),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                self.look_at(name)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
