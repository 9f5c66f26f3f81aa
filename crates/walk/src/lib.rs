//! Walks over syntax trees, compiled once for all visitors.
//!
//! sqlparser's `Visit::visit` is generic over its visitor, so that each visitor has the code of the
//! whole tree compiled for itself: some 600 functions. With three dozen visitors that was a quarter
//! of this binary's functions and several minutes of its release build. Here a visitor is handed
//! down as an object, and there are two walks, one of them for visitors that change what they see.
//!
//! ```text
//!   tree.walk(&mut visitor) ─► Stopping { visitor, what it stopped with } ─ as an object ─► walk
//! ```
//! Visitors are sqlparser's [`Visitor`] and [`VisitorMut`] as before. A node that is to be walked
//! from outside of this crate is in the list of `nodes`; whatever is below it need not be.

mod closures;
mod reading;
mod writing;

pub use closures::{expressions, expressions_mut, relations};
pub use reading::Walk;
pub use sqlparser::ast::{Visitor, VisitorMut};
pub use writing::WalkMut;

/// Calls a macro with the kinds of nodes that visitors are told of: both hooks, and the type.
macro_rules! hooks {
    ($make:ident) => {
        $make! {
            pre_visit_query post_visit_query Query,
            pre_visit_select post_visit_select Select,
            pre_visit_relation post_visit_relation ObjectName,
            pre_visit_table_factor post_visit_table_factor TableFactor,
            pre_visit_expr post_visit_expr Expr,
            pre_visit_statement post_visit_statement Statement,
            pre_visit_value post_visit_value ValueWithSpan,
        }
    };
}

/// Calls a macro with the types that can be walked.
macro_rules! nodes {
    ($make:ident) => {
        $make! {
            DataType,
            Expr,
            Fetch,
            Function,
            FunctionArguments,
            GroupByExpr,
            Insert,
            JoinOperator,
            LimitClause,
            OrderBy,
            OrderByExpr,
            Query,
            Select,
            SelectItem,
            SetExpr,
            Statement,
            TableFactor,
        }
    };
}

pub(crate) use {hooks, nodes};
