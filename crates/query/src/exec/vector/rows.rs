//! One node computed row by row: its operands are columns by then.

use braid_scalar::{Bound, Node};
use braid_types::{Datum, SqlType};

use super::compile::{Compiled, Compiler};
use super::decimals;
use super::value::{Unfit, Vector};
use crate::arrow_form::{self, Reader};
use crate::exec::scalar::{ANY_BATCH, size_of_made};

/// A node without a kernel.
pub(super) fn node(compiler: &Compiler<'_>, bound: &Bound) -> Option<Compiled> {
    let mut operands: Vec<(Compiled, SqlType)> = Vec::new();
    let mut failed = false;
    let shallow = bound.map_children(&mut |child| {
        if matches!(child.node(), Node::Const(_) | Node::Param(_)) {
            return child.clone();
        }
        let compiled = compiler.compile(child).and_then(|kernel| match kernel.ty {
            datafusion::arrow::datatypes::DataType::Decimal256(..) => {
                decimals::carried(kernel, &arrow_form::data_type(&SqlType::Numeric(None)))
            }
            _ => Some(kernel),
        });
        match compiled {
            Some(kernel) => operands.push((kernel, child.ty().clone())),
            None => failed = true,
        }
        Bound::column(operands.len().saturating_sub(1), child.ty().clone())
    });
    if failed {
        return None;
    }
    let ret = bound.ty().clone();
    let parts: Vec<&Compiled> = operands.iter().map(|(kernel, _)| kernel).collect();
    let mut kernel = Compiled::new(arrow_form::data_type(&ret), &parts, |_, _| Err(Unfit));
    kernel.by_row = true;
    Some(kernel.risky().code(move |frame, ctx| {
        let vectors = operands
            .iter()
            .map(|(kernel, _)| kernel.run(frame, ctx))
            .collect::<Result<Vec<Vector>, Unfit>>()?;
        let readers: Vec<Reader<'_>> =
            vectors.iter().map(|v| Reader::new(v.inner().as_ref())).collect();
        let once = vectors.iter().all(|v| matches!(v, Vector::Same(_)));
        let rows = if once { 1 } else { frame.rows() };
        let mut out: Vec<Datum> = Vec::with_capacity(rows);
        let mut row: Vec<Datum> = Vec::with_capacity(operands.len());
        let mut bytes = 0;
        for at in 0..rows {
            row.clear();
            for ((reader, vector), (_, ty)) in readers.iter().zip(&vectors).zip(&operands) {
                let place = if matches!(vector, Vector::Same(_)) { 0 } else { at };
                row.push(reader.get(place, ty));
            }
            // The row form tells who has stopped it.
            ctx.session.check_interrupt().map_err(|_| Unfit)?;
            let value = shallow.eval(&row, ctx).map_err(|_| Unfit)?;
            bytes += size_of_made(&value);
            if bytes > ANY_BATCH {
                // The row form counts what it makes.
                return Err(Unfit);
            }
            out.push(value);
        }
        let array = arrow_form::build(&ret, out.iter());
        Ok(if once { Vector::Same(array) } else { Vector::Each(array) })
    }))
}
