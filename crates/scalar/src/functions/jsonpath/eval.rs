//! Evaluating a path.
//!
//! What a step gives goes to the next one item by item, depth first, so that the first item is
//! there before the last is looked for.

use std::cmp::Ordering;

use braid_types::{SqlError, SqlResult, SqlState, jsonb, numeric};
use numeric::BigDecimal;
use serde_json::{Map, Value};

use super::path::{Arithmetic, Method, Node, Path, Step};
use crate::CmpOp;
use crate::functions::json::type_name;

/// How much is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Asked {
    All,
    First,
}

/// A part of the document (or of a variable, or of the path), or a value that was made: no object
/// and no array.
#[derive(Clone)]
enum Item<'a> {
    Part(&'a Value),
    Made(Value),
}

impl Item<'_> {
    fn value(&self) -> &Value {
        match self {
            Item::Part(value) => value,
            Item::Made(value) => value,
        }
    }
}

/// A predicate's result; `None` is unknown.
type Truth = Option<bool>;

/// Whether more items are wanted.
type Go = SqlResult<bool>;

struct Run<'a> {
    lax: bool,
    document: &'a Value,
    variables: &'a Map<String, Value>,
}

/// Where in the path it is.
#[derive(Clone)]
struct Place<'a> {
    /// `@`
    current: Item<'a>,
    /// Length of the innermost array that is subscripted.
    length: Option<usize>,
    /// Behind `.**`, what is not there is no error.
    forgiving: bool,
}

fn error(state: &'static str, text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState(state), text)
}

const NO_MEMBER: &str = "2203A";
const NO_ARRAY: &str = "22039";
const NO_OBJECT: &str = "2203C";
const BAD_SUBSCRIPT: &str = "22033";
const NO_NUMBER: &str = "22036";
const NOT_SINGLE: &str = "22038";
const NO_NUMBERS: &str = "2203B";

/// Puts the items of a path into `out`, until an error.
pub(super) fn run(
    path: &Path,
    document: &Value,
    variables: &Map<String, Value>,
    asked: Asked,
    out: &mut Vec<Value>,
) -> SqlResult<()> {
    let run = Run { lax: path.lax, document, variables };
    let place = Place { current: Item::Part(document), length: None, forgiving: false };
    run.each(&path.root, &place, &mut |item| {
        out.push(item.value().clone());
        Ok(asked == Asked::All)
    })
    .map(|_| ())
}

impl<'a> Run<'a> {
    /// Calls `take` with each item of an expression, while it wants more.
    fn each(&self, node: &'a Node, place: &Place<'a>, take: &mut dyn FnMut(Item<'a>) -> Go) -> Go {
        match node {
            Node::Root => take(Item::Part(self.document)),
            Node::Current => take(place.current.clone()),
            Node::Literal(value) => take(Item::Part(value)),
            Node::Variable(name) => match self.variables.get(name) {
                Some(value) => take(Item::Part(value)),
                None => {
                    let text = format!("could not find jsonpath variable \"{name}\"");
                    Err(error("42704", text))
                }
            },
            Node::Last => {
                let last = place.length.unwrap_or_default() as i64 - 1;
                take(Item::Made(jsonb::number(&last.to_string())))
            }
            Node::Steps(from, steps) => {
                self.each(from, place, &mut |item| self.steps(item, steps, place, take))
            }
            Node::Plus(inner) | Node::Minus(inner) => {
                let minus = matches!(node, Node::Minus(_));
                self.unwrapped(inner, place, &mut |item| {
                    let Some(number) = number_of(item.value()) else {
                        let sign = if minus { '-' } else { '+' };
                        let text = "is not a numeric value";
                        let text = format!("operand of unary jsonpath operator {sign} {text}");
                        return Err(error(NO_NUMBERS, text));
                    };
                    take(made(&if minus { -number } else { number }))
                })
            }
            Node::Arithmetic(op, left, right) => {
                let left = self.single_number(left, place, *op, "left")?;
                let right = self.single_number(right, place, *op, "right")?;
                take(made(&match op {
                    Arithmetic::Add => numeric::add(&left, &right),
                    Arithmetic::Sub => numeric::sub(&left, &right),
                    Arithmetic::Mul => numeric::mul(&left, &right),
                    Arithmetic::Div => numeric::div(&left, &right)?,
                    Arithmetic::Mod => numeric::rem(&left, &right)?,
                }))
            }
            predicate => {
                let truth = self.truth(predicate, place)?;
                take(Item::Made(truth.map_or(Value::Null, Value::Bool)))
            }
        }
    }

    /// As [`Run::each`]; in lax mode arrays give their elements.
    fn unwrapped(
        &self,
        node: &'a Node,
        place: &Place<'a>,
        take: &mut dyn FnMut(Item<'a>) -> Go,
    ) -> Go {
        self.each(node, place, &mut |item| match item {
            Item::Part(Value::Array(elements)) if self.lax => each_of(elements, take),
            item => take(item),
        })
    }

    fn all_unwrapped(&self, node: &'a Node, place: &Place<'a>) -> SqlResult<Vec<Item<'a>>> {
        let mut out = Vec::new();
        self.unwrapped(node, place, &mut |item| {
            out.push(item);
            Ok(true)
        })?;
        Ok(out)
    }

    fn single_number(
        &self,
        node: &'a Node,
        place: &Place<'a>,
        op: Arithmetic,
        side: &str,
    ) -> SqlResult<BigDecimal> {
        let items = self.all_unwrapped(node, place)?;
        let number = match items.as_slice() {
            [one] => number_of(one.value()),
            _ => None,
        };
        number.ok_or_else(|| {
            let sign = match op {
                Arithmetic::Add => '+',
                Arithmetic::Sub => '-',
                Arithmetic::Mul => '*',
                Arithmetic::Div => '/',
                Arithmetic::Mod => '%',
            };
            let text = "is not a single numeric value";
            error(NOT_SINGLE, format!("{side} operand of jsonpath operator {sign} {text}"))
        })
    }

    /// Goes the steps from an item.
    fn steps(
        &self,
        item: Item<'a>,
        steps: &'a [Step],
        place: &Place<'a>,
        take: &mut dyn FnMut(Item<'a>) -> Go,
    ) -> Go {
        let Some((step, rest)) = steps.split_first() else { return take(item) };
        let forgiving = place.forgiving || matches!(step, Step::Descend(..));
        let place = &Place { forgiving, ..place.clone() };
        self.step(item, step, place, true, &mut |item| self.steps(item, rest, place, take))
    }

    /// What a thing that is not there means.
    fn missing(&self, place: &Place<'a>, state: &'static str, text: impl Into<String>) -> Go {
        if self.lax || place.forgiving { Ok(true) } else { Err(error(state, text)) }
    }

    /// One step. `unwrap`: in lax mode an array stands for its elements.
    fn step(
        &self,
        item: Item<'a>,
        step: &'a Step,
        place: &Place<'a>,
        unwrap: bool,
        take: &mut dyn FnMut(Item<'a>) -> Go,
    ) -> Go {
        let spread = match step {
            Step::Member(_) | Step::AnyMember | Step::Filter(_) => true,
            Step::Method(method) => !matches!(method, Method::Type | Method::Size),
            Step::Descend(..) | Step::AnyElement | Step::Elements(_) => false,
        };
        if let Item::Part(Value::Array(elements)) = &item
            && spread
            && unwrap
            && self.lax
        {
            let elements: &'a [Value] = elements;
            return each_of(elements, &mut |item| self.step(item, step, place, false, take));
        }
        match step {
            Step::Member(name) => match &item {
                Item::Part(Value::Object(map)) => match map.get(name) {
                    Some(value) => take(Item::Part(value)),
                    None => {
                        let text = format!("JSON object does not contain key \"{name}\"");
                        self.missing(place, NO_MEMBER, text)
                    }
                },
                _ => {
                    let text = "jsonpath member accessor can only be applied to an object";
                    self.missing(place, NO_MEMBER, text)
                }
            },
            Step::AnyMember => match &item {
                Item::Part(Value::Object(map)) => {
                    let map: &'a Map<String, Value> = map;
                    each_of(map.values(), take)
                }
                _ => {
                    let text = "jsonpath wildcard member accessor can only be applied to an object";
                    self.missing(place, NO_OBJECT, text)
                }
            },
            Step::Descend(from, to) => descend(item, 0, (*from, *to), take),
            Step::AnyElement => match item {
                Item::Part(Value::Array(elements)) => each_of(elements, take),
                item if self.lax => take(item),
                _ => {
                    let text = "jsonpath wildcard array accessor can only be applied to an array";
                    self.missing(place, NO_ARRAY, text)
                }
            },
            Step::Elements(wanted) => self.elements(item, wanted, place, take),
            Step::Filter(condition) => {
                let inside = Place { current: item.clone(), ..place.clone() };
                match self.truth(condition, &inside)? {
                    Some(true) => take(item),
                    _ => Ok(true),
                }
            }
            Step::Method(method) => match self.method(*method, &item, place)? {
                Some(value) => take(Item::Made(value)),
                None => Ok(true),
            },
        }
    }

    fn elements(
        &self,
        item: Item<'a>,
        wanted: &'a [(Node, Option<Node>)],
        place: &Place<'a>,
        take: &mut dyn FnMut(Item<'a>) -> Go,
    ) -> Go {
        let array = match &item {
            Item::Part(Value::Array(elements)) => Some(elements.as_slice()),
            _ => None,
        };
        if array.is_none() && !self.lax {
            let text = "jsonpath array accessor can only be applied to an array";
            return self.missing(place, NO_ARRAY, text);
        }
        let length = array.map_or(1, <[Value]>::len);
        let inside = Place { length: Some(length), ..place.clone() };
        for (from, to) in wanted {
            let from = self.subscript(from, &inside)?;
            let to = to.as_ref().map_or(Ok(from), |to| self.subscript(to, &inside))?;
            if from < 0 || from > to || to >= length as i64 {
                self.missing(place, BAD_SUBSCRIPT, "jsonpath array subscript is out of bounds")?;
            }
            for at in from.max(0)..=to.min(length as i64 - 1) {
                let element = match array {
                    Some(elements) => Item::Part(&elements[at as usize]),
                    None => item.clone(),
                };
                if !take(element)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn subscript(&self, node: &'a Node, place: &Place<'a>) -> SqlResult<i64> {
        let mut items = Vec::new();
        self.each(node, place, &mut |item| {
            items.push(item);
            Ok(true)
        })?;
        let number = match items.as_slice() {
            [one] => number_of(one.value()),
            _ => None,
        };
        let text = "jsonpath array subscript is not a single numeric value";
        let number = number.ok_or_else(|| error(BAD_SUBSCRIPT, text))?;
        let whole = numeric::text(&numeric::trunc(&number, 0)).parse::<i32>();
        let text = "jsonpath array subscript is out of integer range";
        whole.map(i64::from).map_err(|_| error(BAD_SUBSCRIPT, text))
    }

    fn method(
        &self,
        method: Method,
        item: &Item<'a>,
        place: &Place<'a>,
    ) -> SqlResult<Option<Value>> {
        let value = item.value();
        let numeric_only = |name: &str| {
            let text = "can only be applied to a numeric value";
            error(NO_NUMBER, format!("jsonpath item method .{name}() {text}"))
        };
        let whole = |name: &str, change: fn(&BigDecimal) -> BigDecimal| {
            let number = number_of(value).ok_or_else(|| numeric_only(name))?;
            Ok(Some(number_value(&change(&number))))
        };
        match method {
            Method::Type => Ok(Some(Value::String(type_name(value).into()))),
            Method::Size => match value {
                Value::Array(elements) => Ok(Some(jsonb::number(&elements.len().to_string()))),
                _ if self.lax => Ok(Some(jsonb::number("1"))),
                _ => {
                    let text = "jsonpath item method .size() can only be applied to an array";
                    self.missing(place, NO_ARRAY, text).map(|_| None)
                }
            },
            Method::Double => double(value).map(Some),
            Method::Ceiling => whole("ceiling", |x| numeric::floor(x, true)),
            Method::Floor => whole("floor", |x| numeric::floor(x, false)),
            Method::Abs => whole("abs", BigDecimal::abs),
        }
    }

    /// What a predicate says. Errors inside of it are unknown.
    fn truth(&self, node: &'a Node, place: &Place<'a>) -> SqlResult<Truth> {
        Ok(match node {
            Node::And(left, right) => match self.truth(left, place)? {
                Some(false) => Some(false),
                left => match (left, self.truth(right, place)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), right) => right,
                    _ => None,
                },
            },
            Node::Or(left, right) => match self.truth(left, place)? {
                Some(true) => Some(true),
                left => match (left, self.truth(right, place)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), right) => right,
                    _ => None,
                },
            },
            Node::Not(inner) => self.truth(inner, place)?.map(|truth| !truth),
            Node::IsUnknown(inner) => Some(self.truth(inner, place)?.is_none()),
            Node::Exists(inner) => {
                let mut found = false;
                let ended = self.each(inner, place, &mut |_| {
                    found = true;
                    Ok(!self.lax)
                });
                known(ended)?.map(|_| found)
            }
            Node::Compare(op, left, right) => {
                let Some(left) = known(self.all_unwrapped(left, place))? else { return Ok(None) };
                let Some(right) = known(self.all_unwrapped(right, place))? else { return Ok(None) };
                let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
                self.any(pairs.map(|(a, b)| compare(*op, a.value(), b.value())))
            }
            Node::StartsWith(whole, initial) => {
                let Some(whole) = known(self.all_unwrapped(whole, place))? else { return Ok(None) };
                let mut initials = Vec::new();
                let ended = self.each(initial, place, &mut |item| {
                    initials.push(item);
                    Ok(true)
                });
                if known(ended)?.is_none() {
                    return Ok(None);
                }
                let initial = initials.first().map(Item::value);
                self.any(whole.iter().map(|whole| match (whole.value(), initial) {
                    (Value::String(whole), Some(Value::String(i))) => Some(whole.starts_with(i)),
                    _ => None,
                }))
            }
            Node::LikeRegex(left, regex) => {
                let Some(left) = known(self.all_unwrapped(left, place))? else { return Ok(None) };
                self.any(left.iter().map(|text| match text.value() {
                    Value::String(text) => Some(regex.is_match(text)),
                    _ => None,
                }))
            }
            _ => return Err(SqlError::internal("a value in place of a predicate")),
        })
    }

    /// Whether one of the items passes: in lax mode the first that does tells; in strict mode one
    /// that is unknown makes all of it unknown.
    fn any(&self, all: impl Iterator<Item = Truth>) -> Truth {
        let (mut found, mut unknown) = (false, false);
        for truth in all {
            match truth {
                Some(true) if self.lax => return Some(true),
                Some(true) => found = true,
                None if !self.lax => return None,
                None => unknown = true,
                Some(false) => {}
            }
        }
        if !found && unknown { None } else { Some(found) }
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

/// Whether an error is about what the document holds: `silent` keeps quiet about it.
pub(super) fn is_of_document(e: &SqlError) -> bool {
    let numbers = ["22012", "22003"];
    let own = [NO_MEMBER, NO_ARRAY, NO_OBJECT, BAD_SUBSCRIPT, NO_NUMBER, NOT_SINGLE, NO_NUMBERS];
    own.contains(&e.state().0) || numbers.contains(&e.state().0)
}

fn each_of<'a>(
    values: impl IntoIterator<Item = &'a Value>,
    take: &mut dyn FnMut(Item<'a>) -> Go,
) -> Go {
    for value in values {
        if !take(Item::Part(value))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The levels `from` to `to` below an item, itself being level 0.
fn descend<'a>(
    item: Item<'a>,
    level: u32,
    (from, to): (Option<u32>, Option<u32>),
    take: &mut dyn FnMut(Item<'a>) -> Go,
) -> Go {
    let is_leaf = !matches!(item.value(), Value::Array(_) | Value::Object(_));
    let within = match (from, to) {
        (None, _) => is_leaf,
        (Some(from), None) => level >= from,
        (Some(from), Some(to)) => level >= from && level <= to,
    };
    if within && !take(item.clone())? {
        return Ok(false);
    }
    if to.is_some_and(|to| level >= to) {
        return Ok(true);
    }
    let mut below = |value: &'a Value| descend(Item::Part(value), level + 1, (from, to), take);
    match item {
        Item::Part(Value::Array(elements)) => {
            for element in elements {
                if !below(element)? {
                    return Ok(false);
                }
            }
        }
        Item::Part(Value::Object(map)) => {
            for value in map.values() {
                if !below(value)? {
                    return Ok(false);
                }
            }
        }
        _ => {}
    }
    Ok(true)
}

fn number_of(value: &Value) -> Option<BigDecimal> {
    match value {
        Value::Number(n) => numeric::parse(&n.to_string()),
        _ => None,
    }
}

fn number_value(number: &BigDecimal) -> Value {
    jsonb::number(&numeric::text(number))
}

fn made<'a>(number: &BigDecimal) -> Item<'a> {
    Item::Made(number_value(number))
}

fn double(value: &Value) -> SqlResult<Value> {
    let of = "jsonpath item method .double()";
    let parsed = match value {
        Value::Number(n) => n.to_string().parse::<f64>().ok(),
        Value::String(text) => text.trim().parse::<f64>().ok(),
        _ => {
            let text = format!("{of} can only be applied to a string or numeric value");
            return Err(error(NO_NUMBER, text));
        }
    };
    match parsed.filter(|n| n.is_finite()) {
        Some(n) => Ok(jsonb::number(&n.to_string())),
        None => {
            let kind = if value.is_string() { "string" } else { "numeric" };
            let text = "is not a valid representation of a double precision number";
            Err(error(NO_NUMBER, format!("{kind} argument of {of} {text}")))
        }
    }
}

fn compare(op: CmpOp, a: &Value, b: &Value) -> Truth {
    let order = match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) | (_, Value::Null) => return Some(op == CmpOp::Ne),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(_), Value::Number(_)) => numeric::compare(&number_of(a)?, &number_of(b)?),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        _ => return None,
    };
    Some(op.holds(order))
}
