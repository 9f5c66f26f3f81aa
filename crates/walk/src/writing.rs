//! Walks that change what they come to.

use std::ops::ControlFlow;

use sqlparser::ast::{
    DataType, Expr, Fetch, Function, FunctionArguments, GroupByExpr, Insert, JoinOperator,
    LimitClause, ObjectName, OrderBy, OrderByExpr, Query, Select, SelectItem, SetExpr, Statement,
    TableFactor, ValueWithSpan, VisitMut, VisitorMut,
};

use crate::{hooks, nodes};

/// What can be walked by visitors that change it.
pub trait WalkMut {
    /// Calls the visitor for everything in it, parents before and after what is in them, until it
    /// breaks.
    fn walk_mut<V: VisitorMut>(&mut self, visitor: &mut V) -> ControlFlow<V::Break> {
        let mut stopping = Stopping { visitor, with: None };
        // Whether it broke is kept with what it broke with.
        let _broke = self.walk_mut_as_object(&mut stopping);
        stopping.with.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }

    /// The walk itself.
    fn walk_mut_as_object(&mut self, visitor: &mut dyn VisitorMut<Break = ()>) -> ControlFlow<()>;
}

/// A visitor that says only that it breaks, and keeps what it breaks with.
struct Stopping<'a, V: VisitorMut> {
    visitor: &'a mut V,
    with: Option<V::Break>,
}

impl<V: VisitorMut> Stopping<'_, V> {
    fn note(&mut self, flow: ControlFlow<V::Break>) -> ControlFlow<()> {
        flow.map_break(|with| self.with = Some(with))
    }
}

/// The one visitor that trees are compiled for.
struct Object<'a>(&'a mut dyn VisitorMut<Break = ()>);

macro_rules! visitors {
    ($($pre:ident $post:ident $node:ty,)*) => {
        impl<V: VisitorMut> VisitorMut for Stopping<'_, V> {
            type Break = ();
            $(
                fn $pre(&mut self, node: &mut $node) -> ControlFlow<()> {
                    let flow = self.visitor.$pre(node);
                    self.note(flow)
                }
                fn $post(&mut self, node: &mut $node) -> ControlFlow<()> {
                    let flow = self.visitor.$post(node);
                    self.note(flow)
                }
            )*
        }

        impl VisitorMut for Object<'_> {
            type Break = ();
            $(
                fn $pre(&mut self, node: &mut $node) -> ControlFlow<()> {
                    self.0.$pre(node)
                }
                fn $post(&mut self, node: &mut $node) -> ControlFlow<()> {
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
            impl WalkMut for $node {
                fn walk_mut_as_object(
                    &mut self,
                    visitor: &mut dyn VisitorMut<Break = ()>,
                ) -> ControlFlow<()> {
                    VisitMut::visit(self, &mut Object(visitor))
                }
            }
        )*
    };
}
nodes!(walked);

impl<T: WalkMut> WalkMut for Box<T> {
    fn walk_mut_as_object(&mut self, visitor: &mut dyn VisitorMut<Break = ()>) -> ControlFlow<()> {
        (**self).walk_mut_as_object(visitor)
    }
}

impl<T: WalkMut> WalkMut for Option<T> {
    fn walk_mut_as_object(&mut self, visitor: &mut dyn VisitorMut<Break = ()>) -> ControlFlow<()> {
        self.iter_mut().try_for_each(|node| node.walk_mut_as_object(visitor))
    }
}

impl<T: WalkMut> WalkMut for Vec<T> {
    fn walk_mut_as_object(&mut self, visitor: &mut dyn VisitorMut<Break = ()>) -> ControlFlow<()> {
        self.iter_mut().try_for_each(|node| node.walk_mut_as_object(visitor))
    }
}
