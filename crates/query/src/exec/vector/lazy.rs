//! Nodes whose parts are computed only where their values are wanted: AND, OR, CASE, COALESCE,
//! NULLIF; and the tests of truth.

use std::sync::Arc;

use braid_scalar::{Bound, CaseBranch, EvalContext};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar, new_null_array};
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{
    and_kleene, interleave, is_not_null, is_null as nulls_of, not as flipped, or_kleene,
};
use datafusion::arrow::datatypes::DataType;

use super::compile::{Compiled, Compiler};
use super::decimals;
use super::value::{Fit, Frame, Unfit, Vector, scattered};
use crate::arrow_form;

/// AND, or with `decisive` OR: a row for which a part has the decisive value needs no other part.
pub(super) fn connective(
    compiler: &Compiler<'_>,
    parts: &[Bound],
    decisive: bool,
) -> Option<Compiled> {
    let parts = booleans(compiler, parts)?;
    let all: Vec<&Compiled> = parts.iter().collect();
    let kernel = Compiled::new(DataType::Boolean, &all, |_, _| Err(Unfit));
    Some(kernel.code(move |frame, ctx| {
        let mut value: Option<BooleanArray> = None;
        for part in &parts {
            let Some(known) = &value else {
                value = Some(part.run(frame, ctx)?.truths(frame.rows())?);
                continue;
            };
            let open = undecided(known, decisive);
            let left = open.true_count();
            if left == 0 {
                break;
            }
            let next = match part.risky && left < frame.rows() {
                false => part.run(frame, ctx)?.truths(frame.rows())?,
                true => {
                    let rest = frame.filtered(&open, &part.used)?;
                    let values = scattered(&part.run(&rest, ctx)?, &open)?;
                    values.as_boolean_opt().ok_or(Unfit)?.clone()
                }
            };
            value = Some(match decisive {
                false => and_kleene(known, &next)?,
                true => or_kleene(known, &next)?,
            });
        }
        Ok(Vector::Each(Arc::new(value.ok_or(Unfit)?)))
    }))
}

/// Rows whose value is not the decisive one, NULL included.
fn undecided(known: &BooleanArray, decisive: bool) -> BooleanArray {
    let bits = if decisive { !known.values() } else { known.values().clone() };
    let open = match known.nulls() {
        // NULL leaves a row open, whatever bit is below it.
        Some(nulls) => &bits | &!nulls.inner(),
        None => bits,
    };
    BooleanArray::new(open, None)
}

fn booleans(compiler: &Compiler<'_>, parts: &[Bound]) -> Option<Vec<Compiled>> {
    parts
        .iter()
        .map(|part| compiler.compile(part).filter(|kernel| kernel.ty == DataType::Boolean))
        .collect()
}

/// NOT.
pub(super) fn not(compiler: &Compiler<'_>, inner: &Bound) -> Option<Compiled> {
    let inner = compiler.compile(inner).filter(|kernel| kernel.ty == DataType::Boolean)?;
    let kernel = Compiled::new(DataType::Boolean, &[&inner], |_, _| Err(Unfit));
    Some(kernel.code(move |frame, ctx| {
        let value = inner.run(frame, ctx)?;
        let truths = value.inner().as_boolean_opt().ok_or(Unfit)?;
        Ok(value.with(Arc::new(flipped(truths)?)))
    }))
}

/// `IS [NOT] NULL`. Rows have a rule of their own.
pub(super) fn is_null(compiler: &Compiler<'_>, inner: &Bound, negated: bool) -> Option<Compiled> {
    if inner.ty().is_row() {
        return None;
    }
    let inner = compiler.compile(inner)?;
    let kernel = Compiled::new(DataType::Boolean, &[&inner], |_, _| Err(Unfit));
    Some(kernel.code(move |frame, ctx| {
        let value = inner.run(frame, ctx)?;
        let array = value.inner();
        let found = if negated { is_not_null(array)? } else { nulls_of(array)? };
        Ok(value.with(Arc::new(found)))
    }))
}

/// `IS [NOT] TRUE`, `FALSE`, `UNKNOWN`.
pub(super) fn is_truth(
    compiler: &Compiler<'_>,
    inner: &Bound,
    truth: Option<bool>,
    negated: bool,
) -> Option<Compiled> {
    let inner = compiler.compile(inner).filter(|kernel| kernel.ty == DataType::Boolean)?;
    let kernel = Compiled::new(DataType::Boolean, &[&inner], |_, _| Err(Unfit));
    Some(kernel.code(move |frame, ctx| {
        let value = inner.run(frame, ctx)?;
        let truths = value.inner().as_boolean_opt().ok_or(Unfit)?;
        let found: BooleanArray =
            truths.iter().map(|found| Some((found == truth) != negated)).collect();
        Ok(value.with(Arc::new(found)))
    }))
}

/// The parts in one carrier: that which all have, else that of the type.
pub(super) fn alike(bound: &Bound, parts: Vec<Compiled>) -> Option<(Vec<Compiled>, DataType, u16)> {
    let plain = arrow_form::data_type(bound.ty());
    let mut values = parts.iter().filter(|p| !p.null);
    let first = values.next().map_or_else(|| plain.clone(), |p| p.ty.clone());
    let carrier = if values.all(|p| p.ty == first) { first } else { plain };
    let digits = parts.iter().map(|p| p.digits).max().unwrap_or(0);
    let parts =
        parts.into_iter().map(|p| decimals::carried(p, &carrier)).collect::<Option<Vec<_>>>()?;
    Some((parts, carrier, digits))
}

/// Collects values of a result that come from several places.
struct Pieces {
    carrier: DataType,
    /// For each row: which piece, and which row of it. 0 is NULL.
    places: Vec<(usize, usize)>,
    arrays: Vec<ArrayRef>,
}

impl Pieces {
    fn new(rows: usize, carrier: &DataType) -> Pieces {
        let null = new_null_array(carrier, 1);
        Pieces { carrier: carrier.clone(), places: vec![(0, 0); rows], arrays: vec![null] }
    }

    /// Computes a part for the rows of the mask and keeps its values there.
    fn add(
        &mut self,
        part: &Compiled,
        mask: &BooleanArray,
        frame: &Frame,
        ctx: &EvalContext,
    ) -> Fit<()> {
        let wanted = mask.true_count();
        if wanted == 0 {
            return Ok(());
        }
        let narrow = part.risky && wanted < frame.rows();
        let value = match narrow {
            true => part.run(&frame.filtered(mask, &part.used)?, ctx)?,
            false => part.run(frame, ctx)?,
        };
        let piece = self.arrays.len();
        self.arrays.push(value.inner().clone());
        for (next, row) in (0..mask.len()).filter(|row| mask.value(*row)).enumerate() {
            let place = match (&value, narrow) {
                (Vector::Same(_), _) => 0,
                (_, true) => next,
                (_, false) => row,
            };
            self.places[row] = (piece, place);
        }
        Ok(())
    }

    fn finish(self) -> Fit<Vector> {
        if self.arrays.iter().any(|a| *a.data_type() != self.carrier) {
            return Err(Unfit);
        }
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(|a| a.as_ref()).collect();
        Ok(Vector::Each(interleave(&arrays, &self.places)?))
    }
}

/// True where a condition is: NULL is not.
pub(super) fn holds(condition: &BooleanArray) -> BooleanArray {
    match condition.nulls() {
        Some(nulls) => BooleanArray::new(condition.values() & nulls.inner(), None),
        None => condition.clone(),
    }
}

/// CASE.
pub(super) fn case(
    compiler: &Compiler<'_>,
    bound: &Bound,
    branches: &[CaseBranch],
    otherwise: Option<&Bound>,
) -> Option<Compiled> {
    let mut conditions = Vec::new();
    let mut values = Vec::new();
    for branch in branches {
        conditions
            .push(compiler.compile(&branch.when).filter(|kernel| kernel.ty == DataType::Boolean)?);
        values.push(compiler.compile(&branch.then)?);
    }
    let has_else = otherwise.is_some();
    if let Some(value) = otherwise {
        values.push(compiler.compile(value)?);
    }
    let (values, carrier, digits) = alike(bound, values)?;
    let parts: Vec<&Compiled> = conditions.iter().chain(&values).collect();
    let kernel = Compiled::new(carrier.clone(), &parts, |_, _| Err(Unfit)).digits(digits);
    Some(kernel.code(move |frame, ctx| {
        let rows = frame.rows();
        if let ([condition], [then, other]) = (conditions.as_slice(), values.as_slice())
            && !then.risky
            && !other.risky
        {
            let truths = holds(&condition.run(frame, ctx)?.truths(rows)?);
            let (then, other) = (then.run(frame, ctx)?, other.run(frame, ctx)?);
            return Ok(Vector::Each(chosen(&truths, &then, &other)?));
        }
        let mut pieces = Pieces::new(rows, &carrier);
        let mut open = BooleanArray::from(vec![true; rows]);
        for (condition, value) in conditions.iter().zip(&values) {
            let left = open.true_count();
            if left == 0 {
                break;
            }
            let truths = match condition.risky && left < rows {
                false => holds(&condition.run(frame, ctx)?.truths(rows)?),
                true => {
                    let rest = frame.filtered(&open, &condition.used)?;
                    let values = scattered(&condition.run(&rest, ctx)?, &open)?;
                    holds(values.as_boolean_opt().ok_or(Unfit)?)
                }
            };
            let taken = BooleanArray::new(truths.values() & open.values(), None);
            pieces.add(value, &taken, frame, ctx)?;
            open = BooleanArray::new(open.values() & &!truths.values(), None);
        }
        if has_else && let Some(value) = values.last() {
            pieces.add(value, &open, frame, ctx)?;
        }
        pieces.finish()
    }))
}

/// The first value where the mask is true, else the second.
pub(super) fn chosen(mask: &BooleanArray, then: &Vector, other: &Vector) -> Fit<ArrayRef> {
    let scalar = |a: &ArrayRef| Scalar::new(a.clone());
    Ok(match (then, other) {
        (Vector::Each(a), Vector::Each(b)) => zip(mask, a, b)?,
        (Vector::Each(a), Vector::Same(b)) => zip(mask, a, &scalar(b))?,
        (Vector::Same(a), Vector::Each(b)) => zip(mask, &scalar(a), b)?,
        (Vector::Same(a), Vector::Same(b)) => zip(mask, &scalar(a), &scalar(b))?,
    })
}

/// COALESCE.
pub(super) fn coalesce(
    compiler: &Compiler<'_>,
    bound: &Bound,
    parts: &[Bound],
) -> Option<Compiled> {
    let parts = parts.iter().map(|p| compiler.compile(p)).collect::<Option<Vec<_>>>()?;
    let (parts, carrier, digits) = alike(bound, parts)?;
    let all: Vec<&Compiled> = parts.iter().collect();
    let kernel = Compiled::new(carrier.clone(), &all, |_, _| Err(Unfit)).digits(digits);
    Some(kernel.code(move |frame, ctx| {
        let rows = frame.rows();
        let mut value: Option<ArrayRef> = None;
        for part in &parts {
            let Some(known) = &value else {
                value = Some(part.run(frame, ctx)?.array(rows)?);
                continue;
            };
            if known.null_count() == 0 {
                break;
            }
            let open = nulls_of(known)?;
            let next = match part.risky && open.true_count() < rows {
                false => part.run(frame, ctx)?,
                true => {
                    let rest = frame.filtered(&open, &part.used)?;
                    Vector::Each(scattered(&part.run(&rest, ctx)?, &open)?)
                }
            };
            value = Some(chosen(&open, &next, &Vector::Each(known.clone()))?);
        }
        Ok(Vector::Each(value.ok_or(Unfit)?))
    }))
}

/// NULLIF: its equality reads the value too.
pub(super) fn null_if(
    compiler: &Compiler<'_>,
    value: &Bound,
    equality: &Bound,
) -> Option<Compiled> {
    let value = compiler.compile(value)?;
    let equality = compiler.compile(equality).filter(|kernel| kernel.ty == DataType::Boolean)?;
    let ty = value.ty.clone();
    let digits = value.digits;
    let kernel = Compiled::new(ty.clone(), &[&value, &equality], |_, _| Err(Unfit)).digits(digits);
    Some(kernel.code(move |frame, ctx| {
        let rows = frame.rows();
        let equal = holds(&equality.run(frame, ctx)?.truths(rows)?);
        let null = Vector::Same(new_null_array(&ty, 1));
        let value = value.run(frame, ctx)?;
        Ok(Vector::Each(chosen(&equal, &null, &value)?))
    }))
}
