//! Constants of an execution inside of DataFusion's plans.
//!
//! In a logical plan a constant is a placeholder: the optimizer may move it anywhere and cannot
//! fold it. The physical plan has a function without arguments in its place, which reads the value
//! of the execution that runs.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use braid_types::SqlType;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::execution::Place;
use crate::arrow_form;
use crate::error::to_df;

/// What the names of placeholders of constants begin with; a number follows.
const PREFIX: &str = "#";

/// The placeholder of a constant.
pub(crate) fn placeholder(at: usize, ty: &SqlType) -> Expr {
    let name = name(at);
    let field = arrow_form::field(&name, ty);
    Expr::Placeholder(Placeholder::new_with_field(name, Some(field)))
}

/// Whether a plan's expression is a constant of its execution.
pub(crate) fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Placeholder(p) => p.id.starts_with(PREFIX),
        Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<Constant>().is_some(),
        _ => false,
    }
}

/// The number of a constant at its place.
pub(crate) fn number(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Placeholder(p) => p.id.strip_prefix(PREFIX)?.parse().ok(),
        Expr::ScalarFunction(call) => {
            call.func.inner().downcast_ref::<Constant>().map(|constant| constant.at)
        }
        _ => None,
    }
}

/// What a constant is called in plans.
pub(crate) fn name(at: usize) -> String {
    format!("{PREFIX}{at}")
}

/// The plan with functions in the place of placeholders.
///
/// # Errors
/// What DataFusion reports when it rebuilds a node.
pub(crate) fn bind_constants(plan: LogicalPlan, place: &Arc<Place>) -> Result<LogicalPlan> {
    let call = |expr: Expr| {
        let Expr::Placeholder(p) = &expr else { return Ok(Transformed::no(expr)) };
        match number(&expr).and_then(|at| Some((at, place.constant_type(at)?))) {
            Some((at, ty)) => {
                let name = p.id.clone();
                let signature = Signature::nullary(Volatility::Volatile);
                let constant = Constant { at, ty, place: place.clone(), name, signature };
                Ok(Transformed::yes(ScalarUDF::new_from_impl(constant).call(Vec::new())))
            }
            None => Ok(Transformed::no(expr)),
        }
    };
    let bound = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(expr.transform_up(call)?.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(bound.data)
}

/// A function without arguments that gives the value of a constant.
struct Constant {
    at: usize,
    ty: SqlType,
    place: Arc<Place>,
    name: String,
    signature: Signature,
}

impl fmt::Debug for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.at)
    }
}

impl PartialEq for Constant {
    fn eq(&self, other: &Constant) -> bool {
        self.at == other.at && Arc::ptr_eq(&self.place, &other.place)
    }
}

impl Eq for Constant {}

impl Hash for Constant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.at.hash(state);
    }
}

impl ScalarUDFImpl for Constant {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(arrow_form::data_type(&self.ty))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = self.place.constant(self.at).map_err(to_df)?;
        Ok(ColumnarValue::Scalar(arrow_form::scalar(&value, &self.ty)))
    }
}
