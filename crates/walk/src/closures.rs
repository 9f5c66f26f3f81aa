//! Visitors that are one closure.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, ObjectName, Visitor, VisitorMut};

use crate::reading::Walk;
use crate::writing::WalkMut;

/// Calls a closure for every expression in a tree, parents first, until it breaks.
pub fn expressions<B>(
    tree: &impl Walk,
    each: impl FnMut(&Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Each<F>(F);
    impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for Each<F> {
        type Break = B;
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
            (self.0)(expr)
        }
    }
    tree.walk(&mut Each(each))
}

/// As [`expressions`], of one that changes them; what is in an expression comes before it.
pub fn expressions_mut<B>(
    tree: &mut impl WalkMut,
    each: impl FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Each<F>(F);
    impl<B, F: FnMut(&mut Expr) -> ControlFlow<B>> VisitorMut for Each<F> {
        type Break = B;
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
            (self.0)(expr)
        }
    }
    tree.walk_mut(&mut Each(each))
}

/// Calls a closure for every name of a relation in a tree, until it breaks.
pub fn relations<B>(
    tree: &impl Walk,
    each: impl FnMut(&ObjectName) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Each<F>(F);
    impl<B, F: FnMut(&ObjectName) -> ControlFlow<B>> Visitor for Each<F> {
        type Break = B;
        fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<B> {
            (self.0)(name)
        }
    }
    tree.walk(&mut Each(each))
}
