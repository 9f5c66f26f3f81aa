//! Statements of the simple protocol that come again with other values: planned once.
//!
//! ```text
//!   first time    SELECT v FROM t WHERE id = 7     parsed, planned, run; its shape is noted
//!   second        SELECT v FROM t WHERE id = 8     its shape is planned, with a parameter
//!   from then on  SELECT v FROM t WHERE id = 9     $1 = 9
//! ```
//! The shape ([`Shape`]) is found without parsing. A shape that cannot be planned, because some
//! literal was more than a value after all, is remembered as such: its statements are parsed. So is
//! one whose plan would know less than a plan with its values.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::sync::Arc;

use braid_catalog::{Index, IndexColumn, Table};
use braid_parser::{Kind, Literal, LiteralKind, Shape};
use braid_scalar::object_name_parts;
use braid_types::{Datum, SqlResult, SqlType};
use sqlparser::ast;

use super::client::Session;
use super::outcome::Outcome;
use super::prepare::PLAN_CHANGED;
use super::prepared::{Plan, Prepared};
use super::transaction::OpenTxn;

/// Plans kept per session.
const PLANS_MAX: usize = 256;
/// Shapes that have come once.
const SEEN_MAX: usize = 1024;

/// Shapes that a session has met.
#[derive(Default)]
pub(super) struct Shapes {
    /// Plans by [`Shape::key`]; `None`: there is none with parameters.
    plans: HashMap<String, Option<Arc<Prepared>>>,
    seen: HashSet<u64>,
    hasher: RandomState,
}

impl Shapes {
    /// Whether a shape comes for the second time.
    fn comes_again(&mut self, key: &str) -> bool {
        let hash = self.hasher.hash_one(key);
        if self.seen.remove(&hash) {
            return true;
        }
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        self.seen.insert(hash);
        false
    }
}

impl Session {
    /// Runs a text by the plan of its shape. `None`: there is no such plan, and nothing was done.
    ///
    /// # Errors
    /// Of running it.
    pub fn run_shape(&mut self, text: &str) -> SqlResult<Option<(Arc<Prepared>, Outcome)>> {
        if self.open.as_ref().is_some_and(OpenTxn::is_failed) {
            return Ok(None);
        }
        let Some(shape) = Shape::of(text) else { return Ok(None) };
        self.begins(text);
        let plan = match self.shapes.plans.get(shape.key()).cloned() {
            Some(plan) => plan,
            None if self.shapes.comes_again(shape.key()) => self.plan_shape(&shape),
            None => None,
        };
        let Some(plan) = plan else { return Ok(None) };
        // What is no value of the type is reported for the statement as it was written.
        let Some(params) = self.values(&plan, &shape.literals) else { return Ok(None) };
        match self.execute_inner(&plan, params) {
            Ok(outcome) => Ok(Some((plan, outcome))),
            Err(e) if e.routine() == Some(PLAN_CHANGED) => {
                self.shapes.plans.remove(shape.key());
                Ok(None)
            }
            Err(e) => {
                self.fail();
                Err(e)
            }
        }
    }

    fn plan_shape(&mut self, shape: &Shape) -> Option<Arc<Prepared>> {
        let planned = self.try_plan_shape(shape).ok().flatten();
        if self.shapes.plans.len() >= PLANS_MAX {
            self.shapes.plans.clear();
        }
        self.shapes.plans.insert(shape.key().to_string(), planned.clone());
        planned
    }

    fn try_plan_shape(&mut self, shape: &Shape) -> SqlResult<Option<Arc<Prepared>>> {
        let declared: Vec<Option<SqlType>> = shape.literals.iter().map(type_of).collect();
        let mut statements = braid_parser::parse_script(shape.text())?;
        let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
            return Ok(None);
        };
        if self.is_told_by_literals(&statement.kind) {
            return Ok(None);
        }
        let prepared = self.prepare_inner(statement, &declared)?;
        let planned = match &prepared.plan {
            Plan::Utility => false,
            // Much is read: what the values tell is worth planning each time.
            Plan::General(_) => !shape.repeats_itself_in_alternatives(),
            _ => true,
        };
        Ok((planned && prepared.params.len() == declared.len()).then_some(prepared))
    }

    /// Whether literals may tell which index is read: those in expressions of indexes, and those
    /// that imply the predicate of a partial one.
    fn is_told_by_literals(&self, kind: &Kind) -> bool {
        let Kind::Sql(statement) = kind else { return false };
        let catalog = self.state.catalog();
        let with_text = |i: &Index, t: &Table| {
            let computed =
                |k: &IndexColumn| t.column(k.column).is_some_and(|c| c.expression.is_some());
            i.predicate.is_some() || i.columns.iter().any(computed)
        };
        let told = |t: &Table| t.indexes.iter().any(|i| with_text(i, t));
        ast::visit_relations(&**statement, |name| {
            let name = object_name_parts(name).pop();
            let mut named = catalog.tables().filter(|t| Some(&t.name) == name.as_ref());
            match named.any(|t| told(t)) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .is_break()
    }

    fn values(&self, plan: &Prepared, literals: &[Literal]) -> Option<Vec<Datum>> {
        let style = self.state.style();
        let value =
            |(literal, ty): (&Literal, &SqlType)| Datum::parse(&literal.text, ty, style).ok();
        literals.iter().zip(&plan.params).map(value).collect()
    }
}

/// The type that a literal has by itself.
fn type_of(literal: &Literal) -> Option<SqlType> {
    match literal.kind {
        LiteralKind::Int4 => Some(SqlType::Int4),
        LiteralKind::Int8 => Some(SqlType::Int8),
        LiteralKind::Numeric => Some(SqlType::Numeric(None)),
        LiteralKind::Quoted => None,
    }
}
