//! Statements of the simple protocol that come again with other values: planned once.
//!
//! ```text
//!   first time    SELECT v FROM t WHERE id = 7     parsed, planned, run; its shape is noted
//!   second        SELECT v FROM t WHERE id = 8     its shape is planned, with a parameter
//!   from then on  SELECT v FROM t WHERE id = 9     $1 = 9
//! ```
//! The shape ([`Shape`]) is found without parsing. A shape that cannot be planned, because some
//! literal was more than a value after all, is remembered as such: its statements are parsed. Where
//! alternatives have a text in common, a general plan is made for statements in which the same ones
//! are equal: it can take out what stands in each of them.
//!
//! What a quoted literal is, the column says that it is compared with: such a plan is good for the
//! catalog that it was made with, and another one has it made anew.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::sync::Arc;

use braid_catalog::{Index, IndexColumn, Table};
use braid_parser::{Kind, Literal, LiteralKind, Shape};
use braid_scalar::object_name_parts;
use braid_types::{Datum, SqlResult, SqlState, SqlType};

use super::client::Session;
use super::outcome::Outcome;
use super::prepare::PLAN_CHANGED;
use super::prepared::{Plan, Prepared};
use super::transaction::OpenTxn;

/// Plans kept per session.
const PLANS_MAX: usize = 256;
/// Shapes that have come once.
const SEEN_MAX: usize = 1024;

/// What is known of a shape.
#[derive(Clone)]
enum Known {
    Plan(Arc<Prepared>),
    /// Equal literals share a parameter ([`Shape::sharing`]), if these types of all are equal, too.
    Sharing(Arc<[SqlType]>),
    /// There is no plan with parameters.
    Nothing,
}

/// Shapes that a session has met.
#[derive(Default)]
pub(super) struct Shapes {
    /// By [`Shape::key`].
    plans: HashMap<String, Known>,
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
        // Somebody denies statements with certain constants: those must be seen.
        let asks_for_text = self.db.cluster_settings().asks_for_text();
        if asks_for_text || self.state.has_escaping_texts(text) {
            return Ok(None);
        }
        let Some(first) = Shape::of(text) else { return Ok(None) };
        self.begins(text);
        for is_last in [false, true] {
            let Some((other, plan)) = self.plan_of(&first, text) else { break };
            let shape = other.as_ref().unwrap_or(&first);
            // What is no value of the type is reported for the statement as it was written.
            let Some(params) = self.values(&plan, &shape.literals) else { break };
            match self.execute_inner(&plan, params) {
                Ok(outcome) => return Ok(Some((plan, outcome))),
                Err(e) if e.routine() != Some(PLAN_CHANGED) => {
                    self.fail();
                    return Err(e);
                }
                Err(_) if is_last => {}
                Err(_) => {
                    self.shapes.plans.remove(shape.key());
                    // What cannot be planned now may be when its tables are there again.
                    if matches!(self.plan_shape(&first), Known::Nothing) {
                        self.shapes.plans.remove(first.key());
                        break;
                    }
                }
            }
        }
        Ok(None)
    }

    /// The plan for a text, and the shape that it is for if that is another one.
    fn plan_of(&mut self, shape: &Shape, text: &str) -> Option<(Option<Shape>, Arc<Prepared>)> {
        let known = match self.shapes.plans.get(shape.key()).cloned() {
            Some(known) => known,
            None if self.shapes.comes_again(shape.key()) => self.plan_shape(shape),
            None => return None,
        };
        let types = match known {
            Known::Plan(plan) => return Some((None, plan)),
            Known::Nothing => return None,
            Known::Sharing(types) => types,
        };
        if !equal_ones_agree(&shape.literals, &types) {
            return None;
        }
        let shape = Shape::sharing(text)?;
        let known = self.shapes.plans.get(shape.key()).cloned();
        match known.unwrap_or_else(|| self.plan_shape(&shape)) {
            Known::Plan(plan) => Some((Some(shape), plan)),
            Known::Sharing(_) | Known::Nothing => None,
        }
    }

    fn plan_shape(&mut self, shape: &Shape) -> Known {
        let planned = self.try_plan_shape(shape).unwrap_or(Known::Nothing);
        if self.shapes.plans.len() >= PLANS_MAX {
            self.shapes.plans.clear();
        }
        self.shapes.plans.insert(shape.key().to_string(), planned.clone());
        planned
    }

    fn try_plan_shape(&mut self, shape: &Shape) -> SqlResult<Known> {
        let declared: Vec<Option<SqlType>> = shape.literals.iter().map(type_of).collect();
        let mut statements = braid_parser::parse_script(shape.text())?;
        let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
            return Ok(Known::Nothing);
        };
        // Its notices come each time, and a plan has none.
        let is_cut = statement.notices.iter().any(|n| n.state == SqlState::NAME_TOO_LONG);
        if is_cut || self.is_told_by_literals(&statement.kind) {
            return Ok(Known::Nothing);
        }
        let prepared = self.prepare_shape(statement, &declared)?;
        if prepared.params.len() != declared.len() {
            return Ok(Known::Nothing);
        }
        Ok(match &prepared.plan {
            Plan::Utility => Known::Nothing,
            // What all alternatives have in common is found among equal parameters.
            Plan::General(_) if shape.repeats_itself_in_alternatives() => {
                Known::Sharing(prepared.params.clone().into())
            }
            _ => Known::Plan(prepared),
        })
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
        braid_walk::relations(&**statement, |name| {
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
        let style = self.input_style();
        let value =
            |(literal, ty): (&Literal, &SqlType)| Datum::parse(&literal.text, ty, style).ok();
        literals.iter().zip(&plan.params).map(value).collect()
    }
}

/// Whether equal quoted literals stand where values of one type are wanted.
fn equal_ones_agree(literals: &[Literal], types: &[SqlType]) -> bool {
    let quoted = || literals.iter().zip(types).filter(|(l, _)| l.kind == LiteralKind::Quoted);
    quoted().all(|(one, ty)| quoted().all(|(other, of)| one != other || ty == of))
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
