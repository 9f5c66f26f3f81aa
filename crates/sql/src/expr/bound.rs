//! The typed expression tree.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use braid_types::{CastContext, Datum, SqlResult, SqlType};

use super::EvalContext;

/// How often an expression's value may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// Same arguments, same value, forever.
    Immutable,
    /// Same value within one statement.
    Stable,
    /// Any call may differ.
    Volatile,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmpOp {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// One WHEN of a CASE.
#[derive(Clone, Debug)]
pub struct CaseBranch {
    /// The condition.
    pub when: Bound,
    /// The value.
    pub then: Bound,
}

/// What an expression does; see [`Bound`].
#[derive(Clone, Debug)]
pub enum Node {
    /// A constant.
    Const(Datum),
    /// The row's column with this ordinal.
    Column(usize),
    /// The parameter with this zero-based index.
    Param(usize),
    /// Conjunction, at least two parts.
    And(Vec<Bound>),
    /// Disjunction, at least two parts.
    Or(Vec<Bound>),
    /// Negation.
    Not(Bound),
    /// Comparison of two values whose types are comparable as they are (equal, or both integers).
    Compare(CmpOp, Bound, Bound),
    /// `IS NULL`, or `IS NOT NULL` when the flag is set.
    IsNull(Bound, bool),
    /// `needle [NOT] IN (list)`; the flag is NOT.
    InList(Bound, Vec<Bound>, bool),
    /// Conversion to this expression's type.
    Cast(Bound, CastContext),
    /// CASE; no ELSE is NULL.
    Case(Vec<CaseBranch>, Option<Bound>),
    /// First value that is not NULL.
    Coalesce(Vec<Bound>),
}

/// A bound expression: a node and its type. Cloning shares the tree.
#[derive(Clone, Debug)]
pub struct Bound {
    ty: SqlType,
    node: Arc<Node>,
}

impl Bound {
    /// Wraps a node; the caller vouches for the type.
    pub fn new(node: Node, ty: SqlType) -> Bound {
        Bound { ty, node: Arc::new(node) }
    }

    /// A constant.
    pub fn constant(value: Datum, ty: SqlType) -> Bound {
        Bound::new(Node::Const(value), ty)
    }

    /// A column of the row.
    pub fn column(ordinal: usize, ty: SqlType) -> Bound {
        Bound::new(Node::Column(ordinal), ty)
    }

    /// Its type.
    pub fn ty(&self) -> &SqlType {
        &self.ty
    }

    /// Its node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The value for one row.
    pub fn eval(&self, row: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
        let _ = (row, ctx);
        Err(braid_types::SqlError::unsupported("evaluation"))
    }

    /// The value as a condition: NULL is false.
    pub fn eval_bool(&self, row: &[Datum], ctx: &EvalContext) -> SqlResult<bool> {
        Ok(matches!(self.eval(row, ctx)?, Datum::Bool(true)))
    }

    /// Whether the value is the same for all rows of one execution: no columns, nothing volatile.
    /// It may hold parameters.
    pub fn is_const(&self) -> bool {
        self.columns().is_empty() && self.volatility() < Volatility::Volatile
    }

    /// Ordinals of the columns used.
    pub fn columns(&self) -> BTreeSet<usize> {
        BTreeSet::new()
    }

    /// The parts of a conjunction, or the expression itself.
    pub fn conjuncts(&self) -> Vec<Bound> {
        match self.node() {
            Node::And(parts) => parts.iter().flat_map(Bound::conjuncts).collect(),
            _ => vec![self.clone()],
        }
    }

    /// The same expression over a row whose columns are elsewhere.
    pub fn remap_columns(&self, map: &dyn Fn(usize) -> usize) -> Bound {
        let _ = map;
        self.clone()
    }

    /// How often the value may change.
    pub fn volatility(&self) -> Volatility {
        Volatility::Immutable
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.node)
    }
}
