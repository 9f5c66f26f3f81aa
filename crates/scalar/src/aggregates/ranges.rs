//! Aggregates of ranges: all that any of them has, and what all of them have.

use std::sync::Arc;

use braid_types::{Datum, MultirangeValue, RangeKind, RangeValue, SqlResult, SqlType};

use super::accumulator::{Accumulator, AggregateTypes};
use crate::EvalContext;
use crate::registry::Table;

fn ranges(value: &Datum) -> Vec<RangeValue> {
    match value {
        Datum::Range(range) => vec![(**range).clone()],
        Datum::Multirange(many) => many.ranges().to_vec(),
        _ => Vec::new(),
    }
}

fn kind(types: AggregateTypes<'_>) -> RangeKind {
    match &types.args[0] {
        SqlType::Range(kind) | SqlType::Multirange(kind) => kind.clone(),
        _ => RangeKind::Int4,
    }
}

/// `range_agg`.
#[derive(Debug)]
struct United {
    kind: RangeKind,
    kept: Vec<Datum>,
}

impl Accumulator for United {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        if !args[0].is_null() {
            self.kept.push(args[0].clone());
        }
        Ok(())
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        if self.kept.is_empty() {
            return Ok(Datum::Null);
        }
        let all = self.kept.iter().flat_map(ranges).collect();
        Ok(Datum::Multirange(Arc::new(MultirangeValue::new(&self.kind, all))))
    }

    fn parts(&self) -> Vec<Datum> {
        self.kept.clone()
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        self.kept.extend_from_slice(parts);
        Ok(())
    }

    fn keeps_rows(&self) -> bool {
        true
    }

    fn copies_at_end(&self) -> usize {
        2
    }
}

/// `range_intersect_agg`.
#[derive(Debug)]
struct Common {
    kind: RangeKind,
    kept: Option<Datum>,
}

impl Common {
    fn with(&self, value: &Datum) -> Datum {
        let Some(kept) = &self.kept else { return value.clone() };
        let many = |value: &Datum| MultirangeValue::new(&self.kind, ranges(value));
        let common = many(kept).common(&many(value));
        match value {
            Datum::Range(_) => Datum::Range(Arc::new(common.whole())),
            _ => Datum::Multirange(Arc::new(common)),
        }
    }
}

impl Accumulator for Common {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        if !args[0].is_null() {
            self.kept = Some(self.with(&args[0]));
        }
        Ok(())
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        Ok(self.kept.clone().unwrap_or(Datum::Null))
    }

    fn parts(&self) -> Vec<Datum> {
        self.kept.iter().cloned().collect()
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        parts.iter().try_for_each(|part| self.update(std::slice::from_ref(part)))
    }
}

/// Adds the functions of this file. Signatures are made once for each type of ranges.
pub(super) fn fill(t: &mut Table) {
    let mut types = vec![["anymultirange", "anyrange"].map(str::to_string)];
    for of in RangeKind::ALL {
        let own = [SqlType::Multirange(of.clone()), SqlType::Range(of)];
        types.push(own.map(|ty| ty.internal_name()));
    }
    for names in types {
        let [m, r] = &names;
        let text = |signature: String| -> &'static str { signature.leak() };
        for arg in &names {
            t.aggregate(text(format!("range_agg({arg}) {m} -- what any of the ranges has")), |a| {
                Box::new(United { kind: kind(a), kept: Vec::new() })
            });
            let ret = if arg == r { r } else { m };
            let about = "what all of the ranges have";
            t.aggregate(text(format!("range_intersect_agg({arg}) {ret} -- {about}")), |a| {
                Box::new(Common { kind: kind(a), kept: None })
            });
        }
    }
}
