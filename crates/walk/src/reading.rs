//! Walks that look.

use std::ops::ControlFlow;

use sqlparser::ast::{
    DataType, Expr, Fetch, Function, FunctionArguments, GroupByExpr, Insert, JoinOperator,
    LimitClause, ObjectName, OrderBy, OrderByExpr, Query, Select, SelectItem, SetExpr, Statement,
    TableFactor, ValueWithSpan, Visit, Visitor,
};

use crate::{hooks, nodes};

/// What can be walked by visitors that look.
pub trait Walk {
    /// Calls the visitor for everything in it, parents before and after what is in them, until it
    /// breaks.
    fn walk<V: Visitor>(&self, visitor: &mut V) -> ControlFlow<V::Break> {
        let mut stopping = Stopping { visitor, with: None };
        // Whether it broke is kept with what it broke with.
        let _broke = self.walk_as_object(&mut stopping);
        stopping.with.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }

    /// The walk itself.
    fn walk_as_object(&self, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()>;
}

/// A visitor that says only that it breaks, and keeps what it breaks with.
struct Stopping<'a, V: Visitor> {
    visitor: &'a mut V,
    with: Option<V::Break>,
}

impl<V: Visitor> Stopping<'_, V> {
    fn note(&mut self, flow: ControlFlow<V::Break>) -> ControlFlow<()> {
        flow.map_break(|with| self.with = Some(with))
    }
}

/// The one visitor that trees are compiled for.
struct Object<'a>(&'a mut dyn Visitor<Break = ()>);

macro_rules! visitors {
    ($($pre:ident $post:ident $node:ty,)*) => {
        impl<V: Visitor> Visitor for Stopping<'_, V> {
            type Break = ();
            $(
                fn $pre(&mut self, node: &$node) -> ControlFlow<()> {
                    let flow = self.visitor.$pre(node);
                    self.note(flow)
                }
                fn $post(&mut self, node: &$node) -> ControlFlow<()> {
                    let flow = self.visitor.$post(node);
                    self.note(flow)
                }
            )*
        }

        impl Visitor for Object<'_> {
            type Break = ();
            $(
                fn $pre(&mut self, node: &$node) -> ControlFlow<()> {
                    self.0.$pre(node)
                }
                fn $post(&mut self, node: &$node) -> ControlFlow<()> {
                    self.0.$post(node)
                }
            )*
        }
    };
}
hooks!(visitors);

macro_rules! walked {
    ($($node:ty,)*) => {
        $(
            impl Walk for $node {
                fn walk_as_object(
                    &self,
                    visitor: &mut dyn Visitor<Break = ()>,
                ) -> ControlFlow<()> {
                    Visit::visit(self, &mut Object(visitor))
                }
            }
        )*
    };
}
nodes!(walked);

impl<T: Walk> Walk for Box<T> {
    fn walk_as_object(&self, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()> {
        (**self).walk_as_object(visitor)
    }
}

impl<T: Walk> Walk for Option<T> {
    fn walk_as_object(&self, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()> {
        self.iter().try_for_each(|node| node.walk_as_object(visitor))
    }
}

impl<T: Walk> Walk for Vec<T> {
    fn walk_as_object(&self, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()> {
        self.iter().try_for_each(|node| node.walk_as_object(visitor))
    }
}
