//! From nodes of a bound tree to kernels.

use std::collections::BTreeSet;

use braid_scalar::{Bound, EvalContext, Node};
use braid_types::{Datum, SqlType, numeric};
use datafusion::arrow::datatypes::DataType;

use super::value::{Fit, Frame, Unfit, Vector};
use super::{casts, compare, dates, decimals, lazy, numbers, rows, texts};
use crate::arrow_form;

/// The code of a kernel.
pub(super) type Run = Box<dyn Fn(&Frame, &EvalContext) -> Fit<Vector> + Send + Sync>;

/// A compiled node.
pub(super) struct Compiled {
    run: Run,
    /// The carrier of its values. That of a numeric is decimal where the scale is known, whatever
    /// its type says.
    pub ty: DataType,
    /// Most digits of a decimal.
    pub digits: u16,
    /// It may be unfit, or costs much: it is computed for rows only that are wanted.
    pub risky: bool,
    /// Some part has no kernel.
    pub by_row: bool,
    /// It is the constant NULL.
    pub null: bool,
    /// Ordinals of the columns that it reads.
    pub used: Vec<usize>,
}

impl Compiled {
    /// A node over these parts that always has a value if they have.
    pub fn new(
        ty: DataType,
        parts: &[&Compiled],
        run: impl Fn(&Frame, &EvalContext) -> Fit<Vector> + Send + Sync + 'static,
    ) -> Compiled {
        let used: BTreeSet<usize> = parts.iter().flat_map(|p| p.used.iter().copied()).collect();
        Compiled {
            run: Box::new(run),
            ty,
            digits: 0,
            risky: parts.iter().any(|p| p.risky),
            by_row: parts.iter().any(|p| p.by_row),
            null: false,
            used: used.into_iter().collect(),
        }
    }

    /// The same with this code.
    pub fn code(
        mut self,
        run: impl Fn(&Frame, &EvalContext) -> Fit<Vector> + Send + Sync + 'static,
    ) -> Compiled {
        self.run = Box::new(run);
        self
    }

    /// The same, which may be unfit or costs much.
    pub(super) fn risky(mut self) -> Compiled {
        self.risky = true;
        self
    }

    /// The same with at most so many digits.
    pub fn digits(mut self, digits: u16) -> Compiled {
        self.digits = digits;
        self
    }

    /// Its values.
    pub fn run(&self, frame: &Frame, ctx: &EvalContext) -> Fit<Vector> {
        (self.run)(frame, ctx)
    }

    /// The scale of its decimals.
    pub fn scale(&self) -> Option<u8> {
        match self.ty {
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
                u8::try_from(scale).ok()
            }
            _ => None,
        }
    }
}

/// Compiles over arguments of these types.
pub(super) struct Compiler<'a> {
    args: &'a [SqlType],
}

impl Compiler<'_> {
    /// For expressions whose columns are of these types.
    pub fn new(args: &[SqlType]) -> Compiler<'_> {
        Compiler { args }
    }

    /// The kernel of a node; `None` for an expression that reads what is not there.
    pub(super) fn compile(&self, bound: &Bound) -> Option<Compiled> {
        let found = match bound.node() {
            Node::Const(value) => Some(constant(value, bound.ty())),
            Node::Column(at) => return self.column(*at),
            Node::Param(at) => Some(param(*at, bound.ty())),
            Node::And(parts) => lazy::connective(self, parts, false),
            Node::Or(parts) => lazy::connective(self, parts, true),
            Node::Not(inner) => lazy::not(self, inner),
            Node::IsNull(inner, not) => lazy::is_null(self, inner, *not),
            Node::IsTruth(inner, truth, not) => lazy::is_truth(self, inner, *truth, *not),
            Node::Case(branches, otherwise) => {
                lazy::case(self, bound, branches, otherwise.as_ref())
            }
            Node::Coalesce(parts) => lazy::coalesce(self, bound, parts),
            Node::Extreme(parts, smallest) => compare::extreme(self, bound, parts, *smallest),
            Node::NullIf(value, equality) => lazy::null_if(self, value, equality),
            Node::Compare(op, left, right) => compare::compare(self, *op, left, right),
            Node::IsDistinct(left, right, not) => compare::distinct(self, left, right, *not),
            Node::InList(needle, list, not) => compare::in_list(self, needle, list, *not),
            Node::Cast(inner, _) => casts::cast(self, bound, inner),
            Node::Call(function, args) => {
                let name = function.name;
                decimals::call(self, bound, name, args)
                    .or_else(|| numbers::call(self, bound, name, args))
                    .or_else(|| texts::call(self, bound, name, args))
                    .or_else(|| dates::call(self, bound, name, args))
            }
            _ => None,
        };
        match found {
            Some(kernel) => Some(kernel),
            None => rows::node(self, bound),
        }
    }

    fn column(&self, at: usize) -> Option<Compiled> {
        let ty = self.args.get(at)?;
        let mut column =
            Compiled::new(arrow_form::data_type(ty), &[], move |frame, _| frame.column(at));
        column.used = vec![at];
        Some(match ty {
            SqlType::Numeric(Some((precision, _))) => column.digits(*precision),
            _ => column,
        })
    }
}

/// A constant. A numeric that decimals hold is one, with the digits that it shows.
fn constant(value: &Datum, ty: &SqlType) -> Compiled {
    let mut held = ty.clone();
    let mut digits = 0;
    if let (SqlType::Numeric(_), None) = (ty, arrow_form::decimal_scale(ty)) {
        match value {
            Datum::Numeric(v) => {
                let scale = numeric::parts(v).1;
                let fits = u8::try_from(scale).ok().filter(|s| *s <= 38);
                if let Some(number) = fits.and_then(|scale| numeric::at_scale(v, scale)) {
                    digits = decimals::digits_of(number).max(scale as u16);
                    held = SqlType::Numeric(Some((38, scale as i16)));
                }
            }
            Datum::NumericNan | Datum::Null => held = SqlType::Numeric(Some((38, 0))),
            _ => {}
        }
    } else if let SqlType::Numeric(Some((precision, _))) = ty {
        digits = *precision;
    }
    let array = arrow_form::build(&held, std::iter::once(value));
    let mut kernel = Compiled::new(arrow_form::data_type(&held), &[], move |_, _| {
        Ok(Vector::Same(array.clone()))
    });
    kernel.null = value.is_null();
    kernel.digits(digits)
}

fn param(at: usize, ty: &SqlType) -> Compiled {
    let held = ty.clone();
    Compiled::new(arrow_form::data_type(ty), &[], move |_, ctx| {
        let value = ctx.param(at).map_err(|_| Unfit)?;
        Ok(Vector::Same(arrow_form::build(&held, std::iter::once(&value))))
    })
}
