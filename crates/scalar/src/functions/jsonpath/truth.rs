//! What predicates say.

use braid_types::jsonpath::{Comparison, Node};
use braid_types::{SqlError, SqlResult, numeric};
use serde_json::Value;
use std::cmp::Ordering;

use super::eval::{Place, Run, is_of_document};
use super::item::Item;

/// A predicate's result; `None` is unknown.
pub(super) type Truth = Option<bool>;

impl<'a> Run<'a> {
    /// What a predicate says. Errors inside of it are unknown.
    pub(super) fn truth(&self, node: &'a Node, place: &Place<'a>) -> SqlResult<Truth> {
        self.look()?;
        Ok(match node {
            Node::And(nodes) => self.folded(nodes, place, false)?,
            Node::Or(nodes) => self.folded(nodes, place, true)?,
            Node::Not(inner) => self.truth(inner, place)?.map(|truth| !truth),
            Node::IsUnknown(inner) => Some(self.truth(inner, place)?.is_none()),
            Node::Exists(inner) => known(self.exists(inner, place))?,
            Node::Compare(op, left, right) => {
                let Some(left) = known(self.unwrapped(left, place))? else { return Ok(None) };
                let right = known(self.unwrapped(right, place))?;
                let truth = match &right {
                    Some(right) => self.any(
                        left.iter()
                            .flat_map(|a| right.iter().map(move |b| self.compare(*op, a, b))),
                    )?,
                    None => None,
                };
                self.release(&left);
                self.release(&right.unwrap_or_default());
                truth
            }
            Node::StartsWith(whole, initial) => {
                let Some(whole) = known(self.unwrapped(whole, place))? else { return Ok(None) };
                let Some(initials) = known(self.all(initial, place))? else { return Ok(None) };
                let initial = initials.first().and_then(Item::as_text);
                self.release(&initials);
                self.release(&whole);
                self.any(whole.iter().map(|whole| {
                    let both = whole.as_text().zip(initial);
                    Ok(both.map(|(whole, initial)| whole.starts_with(initial)))
                }))?
            }
            Node::LikeRegex(left, _, _, regex) => {
                let Some(left) = known(self.unwrapped(left, place))? else { return Ok(None) };
                self.release(&left);
                self.any(left.iter().map(|text| Ok(text.as_text().map(|t| regex.is_match(t)))))?
            }
            _ => return Err(SqlError::internal("a value in place of a predicate")),
        })
    }

    /// Predicates from left to right; the rest does not matter behind one that says `decides`.
    fn folded(&self, nodes: &'a [Node], place: &Place<'a>, decides: bool) -> SqlResult<Truth> {
        let mut result = Some(!decides);
        for node in nodes {
            match self.truth(node, place)? {
                Some(truth) if truth == decides => return Ok(Some(decides)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    /// Whether an expression has items. In strict mode all of it has to be free of errors.
    pub(super) fn exists(&self, node: &'a Node, place: &Place<'a>) -> SqlResult<bool> {
        if !self.lax {
            let mut found = false;
            self.each(node, place, &mut |_| {
                found = true;
                Ok(true)
            })?;
            return Ok(found);
        }
        match node {
            // What is one item is not looked at.
            Node::Variable(_) | Node::Literal(_) | Node::Last => Ok(true),
            // Nor is what is no number, if there is a number.
            Node::Plus(inner) | Node::Minus(inner) => {
                let items = self.unwrapped(inner, place)?;
                self.release(&items);
                Ok(items.iter().any(|item| item.as_number().is_some()))
            }
            _ => {
                let mut found = false;
                self.each(node, place, &mut |_| {
                    found = true;
                    Ok(false)
                })?;
                Ok(found)
            }
        }
    }

    /// Whether one of the items passes: in lax mode the first that does tells; in strict mode one
    /// that is unknown makes all of it unknown.
    fn any(&self, all: impl Iterator<Item = SqlResult<Truth>>) -> SqlResult<Truth> {
        let (mut found, mut unknown) = (false, false);
        for truth in all {
            self.look()?;
            match truth? {
                Some(true) if self.lax => return Ok(Some(true)),
                Some(true) => found = true,
                None if !self.lax => return Ok(None),
                None => unknown = true,
                Some(false) => {}
            }
        }
        Ok(if !found && unknown { None } else { Some(found) })
    }

    fn compare(&self, op: Comparison, a: &Item<'_>, b: &Item<'_>) -> SqlResult<Truth> {
        if let (Item::Moment(a), Item::Moment(b)) = (a, b) {
            let style = Some(&self.asked.ctx.style).filter(|_| self.asked.zoned);
            return Ok(a.compare(b, style)?.map(|order| op.holds(order)));
        }
        let null = |item: &Item<'_>| matches!(item.scalar(), Some(Value::Null));
        match (null(a), null(b)) {
            (true, true) => return Ok(Some(op.holds(Ordering::Equal))),
            (true, false) | (false, true) => return Ok(Some(op == Comparison::Ne)),
            (false, false) => {}
        }
        let (Some(left), Some(right)) = (a.scalar(), b.scalar()) else { return Ok(None) };
        let order = match (left, right) {
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Number(_), Value::Number(_)) => {
                a.as_number().zip(b.as_number()).map(|(a, b)| numeric::compare(&a, &b))
            }
            (Value::String(a), Value::String(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            _ => None,
        };
        Ok(order.map(|order| op.holds(order)))
    }
}

/// In a predicate an error of the document is unknown; what is wrong with the path stays one.
fn known<T>(result: SqlResult<T>) -> SqlResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if is_of_document(&e) => Ok(None),
        Err(e) => Err(e),
    }
}
