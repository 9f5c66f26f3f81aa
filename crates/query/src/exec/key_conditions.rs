//! From DataFusion's conditions to those that `braid_sql` makes spans of.
//!
//! ```text
//!   filters of the plan        id = #0 AND (a > 1 OR a = 1 AND b > 2)    constants by number
//!   learned by a join above    o.id IN (3, 7, 12), o.id >= 3             while the plan runs
//!                │
//!                ▼
//!   conditions over the table's columns ──► braid_planner::access ──► spans
//! ```
//! What cannot be said this way is left out: spans only have to be wide enough, since everything is
//! checked again above them or by the scan itself.

use std::any::Any;
use std::sync::Arc;

use braid_rows::TableLayout;
use braid_scalar::{Applied, Bound, CmpOp, EvalContext, Node, Volatility};
use braid_types::{Datum, SqlResult, SqlType};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::physical_expr::expressions::{
    BinaryExpr as PhysicalBinary, CastExpr, Column, InListExpr, Literal,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::constant;
use super::execution::Place;
use super::facts::LOOKUPS_MAX;
use crate::arrow_form;

/// Values of a list that are looked at one by one.
const VALUES_MAX: usize = LOOKUPS_MAX;

fn boolean(node: Node) -> Bound {
    Bound::new(node, SqlType::Bool)
}

fn comparison(op: Operator) -> Option<CmpOp> {
    Some(match op {
        Operator::Eq => CmpOp::Eq,
        Operator::Lt => CmpOp::Lt,
        Operator::LtEq => CmpOp::Le,
        Operator::Gt => CmpOp::Gt,
        Operator::GtEq => CmpOp::Ge,
        _ => return None,
    })
}

/// Whether a conversion of a column gives other values another value, in the same order.
fn keeps_order(from: &SqlType, to: &DataType) -> bool {
    match (arrow_form::data_type(from), to) {
        (DataType::Int16 | DataType::Int32 | DataType::Int64, DataType::Decimal128(_, scale)) => {
            *scale >= 0
        }
        (DataType::Int16, DataType::Int32 | DataType::Int64) => true,
        (DataType::Int32, DataType::Int64) => true,
        (DataType::Decimal128(_, from), DataType::Decimal128(_, to)) => from <= *to,
        _ => false,
    }
}

/// The value of a column's type that a literal is; `None` if there is none (too large, NULL).
pub(crate) fn value_of(literal: &ScalarValue, ty: &SqlType) -> Option<Datum> {
    let carrier = arrow_form::data_type(ty);
    let fitted = if literal.data_type() == carrier {
        literal.clone()
    } else {
        literal.cast_to(&carrier).ok()?
    };
    // A cast that lost digits would narrow the span.
    if fitted.is_null() || fitted.cast_to(&literal.data_type()).ok()? != *literal {
        return None;
    }
    Some(arrow_form::from_scalar(&fitted, ty))
}

/// A constant of the execution inside a condition: its value is computed once, at its place.
struct Placed {
    at: usize,
    place: Arc<Place>,
}

impl Applied for Placed {
    fn apply(&self, _: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
        self.place.constant(self.at)
    }

    fn label(&self) -> String {
        constant::name(self.at)
    }

    fn volatility(&self) -> Volatility {
        Volatility::Stable
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The conditions of a plan's filters on one table.
pub(super) struct Filters<'a> {
    /// The ordinal and the type of a column by its name.
    pub(super) column: &'a dyn Fn(&str) -> Option<(usize, SqlType)>,
    pub(super) place: &'a Arc<Place>,
}

impl Filters<'_> {
    /// What a filter says about the table's columns, or less.
    pub(super) fn condition(&self, filter: &Expr) -> Option<Bound> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                match (self.condition(left), self.condition(right)) {
                    (Some(left), Some(right)) => Some(Bound::and(vec![left, right])),
                    (one, other) => one.or(other),
                }
            }
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
                let parts = alternatives(filter).into_iter().map(|part| self.condition(part));
                Some(Bound::or(parts.collect::<Option<Vec<_>>>()?))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let op = comparison(*op)?;
                match self.column(left) {
                    Some(column) => self.compare(column, op, right),
                    None => self.compare(self.column(right)?, op.flipped(), left),
                }
            }
            Expr::InList(InList { expr, list, negated: false }) => {
                let (at, ty) = self.column(expr)?;
                let list = list.iter().map(|e| self.value(e, &ty)).collect::<Option<Vec<_>>>()?;
                Some(boolean(Node::InList(Bound::column(at, ty), list, false)))
            }
            Expr::Between(Between { expr, negated: false, low, high }) => {
                let column = self.column(expr)?;
                let low = self.compare(column.clone(), CmpOp::Ge, low);
                let high = self.compare(column, CmpOp::Le, high);
                match (low, high) {
                    (Some(low), Some(high)) => Some(Bound::and(vec![low, high])),
                    (one, other) => one.or(other),
                }
            }
            _ => None,
        }
    }

    fn compare(&self, (at, ty): (usize, SqlType), op: CmpOp, value: &Expr) -> Option<Bound> {
        let value = self.value(value, &ty)?;
        Some(boolean(Node::Compare(op, Bound::column(at, ty), value)))
    }

    /// A column of the table, perhaps widened by the optimizer to be compared with a wider one.
    fn column(&self, expr: &Expr) -> Option<(usize, SqlType)> {
        let name = match expr {
            Expr::Column(c) => &c.name,
            Expr::Cast(cast) => {
                let column = self.column(&cast.expr)?;
                return keeps_order(&column.1, cast.field.data_type()).then_some(column);
            }
            _ => return None,
        };
        (self.column)(name)
    }

    fn value(&self, expr: &Expr, ty: &SqlType) -> Option<Bound> {
        if let Expr::Literal(value, _) = expr {
            return Some(Bound::constant(value_of(value, ty)?, ty.clone()));
        }
        let at = constant::number(expr)?;
        let ty = self.place.constant_type(at)?;
        let placed = Placed { at, place: self.place.clone() };
        Some(Bound::new(Node::Apply(Arc::new(placed), Vec::new()), ty))
    }
}

/// The parts of a chain of ORs, which leans to the left.
fn alternatives(filter: &Expr) -> Vec<&Expr> {
    let mut parts = Vec::new();
    let mut rest = filter;
    while let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) = rest {
        parts.push(&**right);
        rest = left;
    }
    parts.push(rest);
    parts.reverse();
    parts
}

/// What an operator has learned, about the columns of a scan's output.
pub(super) struct Learned<'a> {
    pub(super) layout: &'a TableLayout,
    /// Ordinals of the table's columns in the scan's output.
    pub(super) projection: &'a [usize],
}

impl Learned<'_> {
    /// Adds what an expression says about the table's columns, or less: of lists with more values
    /// than `most` nothing.
    pub(super) fn add(&self, expr: &Arc<dyn PhysicalExpr>, most: usize, out: &mut Vec<Bound>) {
        if let Some(binary) = expr.downcast_ref::<PhysicalBinary>() {
            if *binary.op() == Operator::And {
                self.add(binary.left(), most, out);
                self.add(binary.right(), most, out);
            } else {
                out.extend(self.comparison(binary));
            }
        } else if let Some(list) = expr.downcast_ref::<InListExpr>()
            && !list.negated()
            && list.len() <= most.min(VALUES_MAX)
        {
            out.extend(self.list(list));
        }
    }

    fn comparison(&self, binary: &PhysicalBinary) -> Option<Bound> {
        let (at, ty) = self.column(binary.left())?;
        let value = value_of(binary.right().downcast_ref::<Literal>()?.value(), &ty)?;
        let op = comparison(*binary.op())?;
        let value = Bound::constant(value, ty.clone());
        Some(boolean(Node::Compare(op, Bound::column(at, ty), value)))
    }

    fn list(&self, list: &InListExpr) -> Option<Bound> {
        let literals: Option<Vec<&ScalarValue>> = list
            .list()
            .iter()
            .map(|value| value.downcast_ref::<Literal>().map(Literal::value))
            .collect();
        let literals = literals?;
        if let Some((at, ty)) = self.column(list.expr()) {
            // A value that the column cannot have meets no row.
            let values = literals.iter().filter_map(|value| value_of(value, &ty));
            let values = values.map(|value| Bound::constant(value, ty.clone())).collect();
            return Some(boolean(Node::InList(Bound::column(at, ty), values, false)));
        }
        let row = list.expr().downcast_ref::<ScalarFunctionExpr>()?;
        let columns: Vec<Option<(usize, SqlType)>> =
            row.args().iter().map(|field| self.column(field)).collect();
        let mut either = Vec::with_capacity(literals.len());
        for value in literals {
            either.extend(self.fields(&columns, value)?);
        }
        Some(Bound::or(either))
    }

    /// Equality of columns with the fields of a row. `Some(None)`: no row of the table has them.
    fn fields(
        &self,
        columns: &[Option<(usize, SqlType)>],
        row: &ScalarValue,
    ) -> Option<Option<Bound>> {
        let ScalarValue::Struct(row) = row else { return None };
        let mut parts = Vec::new();
        for (column, field) in columns.iter().zip(row.columns()) {
            let Some((at, ty)) = column else { continue };
            let field = ScalarValue::try_from_array(field, 0).ok()?;
            let Some(value) = value_of(&field, ty) else { return Some(None) };
            let column = Bound::column(*at, ty.clone());
            let value = Bound::constant(value, ty.clone());
            parts.push(boolean(Node::Compare(CmpOp::Eq, column, value)));
        }
        (!parts.is_empty()).then(|| Some(Bound::and(parts)))
    }

    fn column(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<(usize, SqlType)> {
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let column = self.column(cast.expr())?;
            return keeps_order(&column.1, cast.cast_type()).then_some(column);
        }
        let column = expr.downcast_ref::<Column>()?;
        let at = *self.projection.get(column.index())?;
        Some((at, self.layout.table.columns[at].ty.clone()))
    }
}
