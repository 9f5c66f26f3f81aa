//! Aggregates whose state is one value that is made of it and the next; of them here, the sum of
//! `money` and the bits of all strings of bits.

use braid_types::{Datum, SqlResult};

use super::accumulator::Accumulator;
use crate::EvalContext;
use crate::functions::{bit_strings, money};
use crate::registry::Table;

/// How the value so far goes on with the next one.
#[derive(Debug)]
pub(super) enum Next {
    /// Into what both make together.
    Combined(fn(&Datum, &Datum) -> SqlResult<Datum>),
    /// Into another one, or `None`: it stays.
    Better(fn(&Datum, &Datum) -> Option<Datum>),
}

/// The value so far; NULL of no values.
#[derive(Debug)]
struct Running {
    kept: Datum,
    next: Next,
}

impl Accumulator for Running {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        let value = &args[0];
        let next = match (&self.kept, &self.next) {
            _ if value.is_null() => None,
            (Datum::Null, _) => Some(value.clone()),
            (kept, Next::Combined(next)) => Some(next(kept, value)?),
            (kept, Next::Better(next)) => next(kept, value),
        };
        if let Some(next) = next {
            self.kept = next;
        }
        Ok(())
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        Ok(self.kept.clone())
    }

    fn parts(&self) -> Vec<Datum> {
        vec![self.kept.clone()]
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        match parts {
            [] => Ok(()),
            [first, ..] => self.update(std::slice::from_ref(first)),
        }
    }
}

/// Starts at NULL.
pub(super) fn running(next: Next) -> Box<dyn Accumulator> {
    Box::new(Running { kept: Datum::Null, next })
}

/// Adds the aggregates of this file.
pub(super) fn fill(t: &mut Table) {
    t.aggregate("sum(money) money", |_| running(Next::Combined(money::add)));
    t.aggregate("bit_and(bit) bit", |_| running(Next::Combined(bit_strings::and)));
    t.aggregate("bit_or(bit) bit", |_| running(Next::Combined(bit_strings::or)));
    t.aggregate("bit_xor(bit) bit", |_| running(Next::Combined(bit_strings::xor)));
}
