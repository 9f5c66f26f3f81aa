//! Compiled expressions as a whole.

use braid_scalar::{Bound, EvalContext, Volatility};
use braid_types::SqlType;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::ColumnarValue;

use super::compile::{Compiled, Compiler};
use super::decimals;
use super::value::{Frame, Vector};
use crate::arrow_form;

/// A compiled expression.
pub(crate) struct Program {
    root: Compiled,
    /// The carrier that is asked for.
    carrier: DataType,
}

impl Program {
    /// Compiles an expression over arguments of these types; its value shall travel as `carrier`.
    /// `None`: it has to be computed row by row as a whole.
    pub(crate) fn compile(bound: &Bound, args: &[SqlType], carrier: &DataType) -> Option<Program> {
        // What is volatile must not be computed twice.
        if bound.volatility() == Volatility::Volatile {
            return None;
        }
        let root = Compiler::new(args).compile(bound)?;
        let root = decimals::carried(root, carrier)?;
        Some(Program { root, carrier: carrier.clone() })
    }

    /// Whether some part has no kernel.
    pub(crate) fn by_row(&self) -> bool {
        self.root.by_row
    }

    /// The values of a batch; `None` when the row form has to say.
    pub(crate) fn eval(
        &self,
        args: &[ColumnarValue],
        rows: usize,
        ctx: &EvalContext,
    ) -> Option<ArrayRef> {
        let columns = args.iter().map(Vector::of).collect::<Option<Vec<_>>>()?;
        let value = self.root.run(&Frame::new(columns, rows), ctx).ok()?;
        let array = value.array(rows).ok()?;
        (*array.data_type() == self.carrier).then_some(array)
    }
}

/// The carrier in which the values of an expression that is a number are exact, and narrower than
/// what their type gives: decimals of a scale that is known beforehand.
pub(crate) fn decimal_carrier(bound: &Bound, args: &[SqlType]) -> Option<DataType> {
    if !matches!(bound.ty(), SqlType::Numeric(_)) || arrow_form::decimal_scale(bound.ty()).is_some()
    {
        return None;
    }
    let root = Compiler::new(args).compile(bound)?;
    matches!(root.ty, DataType::Decimal128(..) | DataType::Decimal256(..)).then_some(root.ty)
}
