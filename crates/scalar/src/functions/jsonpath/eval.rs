//! Evaluating a path.
//!
//! What a step gives goes to the next one item by item, depth first, so that the first item is
//! there before the last is looked for.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_types::jsonpath::{Arithmetic, Method, Node, Path, Step};
use braid_types::{
    CastContext, Datum, SqlError, SqlResult, SqlState, SqlType, Style, cast, jsonb, numeric,
};
use numeric::BigDecimal;
use serde_json::Value;

use super::ids::{Base, Layouts, Origin};
use super::item::{Item, Pair};
use super::moment;
use crate::EvalContext;
use crate::limits::{MAX_BYTES, too_long};

/// What a path is asked over.
pub(super) struct Asked<'a> {
    pub(super) document: &'a Value,
    /// The object of variables; of operators there is none, and each variable is null.
    pub(super) variables: Option<&'a Value>,
    /// Whether the session's time zone may be used.
    pub(super) zoned: bool,
    pub(super) ctx: &'a EvalContext,
}

/// Whether more items are wanted.
pub(super) type Go = SqlResult<bool>;

/// What items are given to.
pub(super) type Take<'t, 'a> = &'t mut dyn FnMut(Item<'a>) -> Go;

/// One evaluation.
pub(super) struct Run<'a> {
    pub(super) lax: bool,
    pub(super) asked: Asked<'a>,
    layouts: RefCell<Layouts>,
    /// The number of the next object that `.keyvalue()` makes.
    next_id: Cell<i64>,
    steps: Cell<u32>,
    /// Bytes of items that are kept.
    held: Cell<usize>,
}

/// Where in the path it is.
#[derive(Clone)]
pub(super) struct Place<'a> {
    /// `@`
    pub(super) current: Item<'a>,
    /// Length of the innermost array that is subscripted.
    length: Option<usize>,
    /// Behind `.**`, what is not there is no error.
    forgiving: bool,
}

pub(super) fn error(state: &'static str, text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState(state), text)
}

const NO_MEMBER: &str = "2203A";
const NO_ARRAY: &str = "22039";
const NO_OBJECT: &str = "2203C";
const BAD_SUBSCRIPT: &str = "22033";
const NO_NUMBER: &str = "22036";
const NOT_SINGLE: &str = "22038";
const NO_NUMBERS: &str = "2203B";
const NO_TIME: &str = "22031";

/// Steps between two looks at whether the statement has to stop.
const LOOK: u32 = 1024;
/// Bytes of items between two looks at whether there is room for them.
const ROOM: usize = 1 << 20;

impl<'a> Run<'a> {
    pub(super) fn new(path: &Path, asked: Asked<'a>) -> Run<'a> {
        let next_id = if asked.variables.is_some() { 2 } else { 1 };
        Run {
            lax: path.lax,
            asked,
            layouts: RefCell::default(),
            next_id: Cell::new(next_id),
            steps: Cell::new(0),
            held: Cell::new(0),
        }
    }

    /// Where a path begins.
    pub(super) fn start(&self) -> Place<'a> {
        Place { current: self.root(), length: None, forgiving: false }
    }

    fn root(&self) -> Item<'a> {
        Item::Part(self.asked.document, Base { origin: Origin::Document, id: 0, shift: 0 })
    }

    /// Calls `take` with each item of an expression, while it wants more.
    pub(super) fn each(&self, node: &'a Node, place: &Place<'a>, take: Take<'_, 'a>) -> Go {
        match node {
            Node::Root => take(self.root()),
            Node::Current => take(place.current.clone()),
            Node::Literal(value) => {
                take(Item::Part(value, Base { origin: Origin::Nowhere, id: 0, shift: 0 }))
            }
            Node::Variable(name) => take(self.variable(name)?),
            Node::Last => {
                let last = place.length.unwrap_or_default() as i64 - 1;
                take(Item::Made(jsonb::number(&last.to_string())))
            }
            Node::Steps(from, steps) => {
                self.each(from, place, &mut |item| self.steps(item, steps, place, take))
            }
            Node::Plus(inner) => self.signed(inner, false, place, take),
            Node::Minus(inner) => self.signed(inner, true, place, take),
            Node::Arithmetic(first, operations) => {
                let number = self.computed(first, operations, place)?;
                take(Item::number(&number))
            }
            predicate => {
                let truth = self.truth(predicate, place)?;
                take(Item::Made(truth.map_or(Value::Null, Value::Bool)))
            }
        }
    }

    fn variable(&self, name: &str) -> SqlResult<Item<'a>> {
        let Some(variables) = self.asked.variables else { return Ok(Item::Made(Value::Null)) };
        let base = Base { origin: Origin::Variables, id: 1, shift: 0 };
        match variables.get(name) {
            Some(value) => Ok(Item::Part(value, base)),
            None => Err(error("42704", format!("could not find jsonpath variable \"{name}\""))),
        }
    }

    /// Keeps an item.
    fn keep(&self, item: Item<'a>, out: &mut Vec<Item<'a>>) -> SqlResult<()> {
        self.count(size_of::<Item<'_>>())?;
        out.push(item);
        Ok(())
    }

    /// So many bytes more are kept.
    pub(super) fn count(&self, bytes: usize) -> SqlResult<()> {
        let before = self.held.get();
        let held = before.saturating_add(bytes);
        self.held.set(held);
        if before / ROOM == held / ROOM {
            return Ok(());
        }
        match &self.asked.ctx.large {
            Some(large) => large.pass(held),
            None if held > MAX_BYTES => Err(too_long()),
            None => Ok(()),
        }
    }

    /// All items of an expression.
    pub(super) fn all(&self, node: &'a Node, place: &Place<'a>) -> SqlResult<Vec<Item<'a>>> {
        let mut out = Vec::new();
        self.each(node, place, &mut |item| self.keep(item, &mut out).map(|()| true))?;
        Ok(out)
    }

    /// All items; in lax mode arrays give their elements.
    pub(super) fn unwrapped(&self, node: &'a Node, place: &Place<'a>) -> SqlResult<Vec<Item<'a>>> {
        let mut out = Vec::new();
        self.each(node, place, &mut |item| {
            match item.elements() {
                Some(_) if self.lax => {
                    for (_, element) in item.children() {
                        self.keep(element, &mut out)?;
                    }
                }
                _ => self.keep(item, &mut out)?,
            }
            Ok(true)
        })?;
        Ok(out)
    }

    /// Forgets items that were kept.
    pub(super) fn release(&self, items: &[Item<'a>]) {
        self.held.set(self.held.get().saturating_sub(size_of_val(items)));
    }

    /// `+` and `-` in front of something: each of its numbers.
    fn signed(&self, inner: &'a Node, minus: bool, place: &Place<'a>, take: Take<'_, 'a>) -> Go {
        let items = self.unwrapped(inner, place)?;
        self.release(&items);
        for item in items {
            let Some(number) = item.as_number() else {
                let sign = if minus { '-' } else { '+' };
                let text = "is not a numeric value";
                let text = format!("operand of unary jsonpath operator {sign} {text}");
                return Err(error(NO_NUMBERS, text));
            };
            if !take(Item::number(&if minus { -number } else { number }))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn computed(
        &self,
        first: &'a Node,
        operations: &'a [(Arithmetic, Node)],
        place: &Place<'a>,
    ) -> SqlResult<BigDecimal> {
        let mut left = self.unwrapped(first, place)?;
        let mut result = None;
        for (op, right) in operations {
            let right = self.unwrapped(right, place)?;
            self.release(&right);
            let wrong = |side: &str| {
                let sign = op.sign();
                let text = "is not a single numeric value";
                error(NOT_SINGLE, format!("{side} operand of jsonpath operator {sign} {text}"))
            };
            let a = match result.take() {
                Some(before) => before,
                None => {
                    let items = std::mem::take(&mut left);
                    self.release(&items);
                    single_number(&items).ok_or_else(|| wrong("left"))?
                }
            };
            let b = single_number(&right).ok_or_else(|| wrong("right"))?;
            let number = match op {
                Arithmetic::Add => numeric::add(&a, &b),
                Arithmetic::Sub => numeric::sub(&a, &b),
                Arithmetic::Mul => numeric::mul(&a, &b),
                Arithmetic::Div => numeric::div(&a, &b)?,
                Arithmetic::Mod => numeric::rem(&a, &b)?,
            };
            numeric::datum(number.clone())?;
            result = Some(number);
        }
        result.ok_or_else(|| SqlError::internal("an operation without operands"))
    }

    /// Goes the steps from an item.
    fn steps(
        &self,
        item: Item<'a>,
        steps: &'a [Step],
        place: &Place<'a>,
        take: Take<'_, 'a>,
    ) -> Go {
        let Some((step, rest)) = steps.split_first() else { return take(item) };
        self.look()?;
        let forgiving = place.forgiving || matches!(step, Step::Descend(..));
        let place = &Place { forgiving, ..place.clone() };
        self.step(item, step, place, true, &mut |item| self.steps(item, rest, place, take))
    }

    /// Looks now and then whether the statement has to stop.
    pub(super) fn look(&self) -> SqlResult<()> {
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(LOOK) { self.asked.ctx.session.check_interrupt() } else { Ok(()) }
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
        take: Take<'_, 'a>,
    ) -> Go {
        let spread = match step {
            Step::Member(_) | Step::AnyMember | Step::Filter(_) | Step::Datetime(_) => true,
            Step::Method(method) => !matches!(method, Method::Type | Method::Size),
            Step::Descend(..) | Step::AnyElement | Step::Elements(_) => false,
        };
        if spread && unwrap && self.lax && item.elements().is_some() {
            return each_child(&item, &mut |item| self.step(item, step, place, false, take));
        }
        match step {
            Step::Member(name) => match item.member(name) {
                Some(member) => take(member),
                None if item.is_object() => {
                    let text = format!("JSON object does not contain key \"{name}\"");
                    self.missing(place, NO_MEMBER, text)
                }
                None => {
                    let text = "jsonpath member accessor can only be applied to an object";
                    self.missing(place, NO_MEMBER, text)
                }
            },
            Step::AnyMember if item.is_object() => each_child(&item, take),
            Step::AnyMember => {
                let text = "jsonpath wildcard member accessor can only be applied to an object";
                self.missing(place, NO_OBJECT, text)
            }
            Step::Descend(from, to) => self.descend(item, (*from, *to), take),
            Step::AnyElement if item.elements().is_some() => each_child(&item, take),
            Step::AnyElement if self.lax => take(item),
            Step::AnyElement => {
                let text = "jsonpath wildcard array accessor can only be applied to an array";
                self.missing(place, NO_ARRAY, text)
            }
            Step::Elements(wanted) => self.elements(item, wanted, place, take),
            Step::Filter(condition) => {
                let inside = Place { current: item.clone(), ..place.clone() };
                match self.truth(condition, &inside)? {
                    Some(true) => take(item),
                    _ => Ok(true),
                }
            }
            Step::Method(Method::KeyValue) => self.pairs(&item, take),
            Step::Method(method) => match self.method(*method, &item, place)? {
                Some(item) => take(item),
                None => Ok(true),
            },
            Step::Datetime(template) => {
                let text = item.as_text().ok_or_else(|| {
                    let text = "jsonpath item method .datetime() can only be applied to a string";
                    error(NO_TIME, text)
                })?;
                take(Item::Moment(moment::read(text, template.as_deref())?))
            }
        }
    }

    /// The levels `from` to `to` below an item, itself being level 0; none: those of scalars.
    fn descend(
        &self,
        item: Item<'a>,
        levels: (Option<u32>, Option<u32>),
        take: Take<'_, 'a>,
    ) -> Go {
        if levels.0 == Some(0) && !take(item.clone())? {
            return Ok(false);
        }
        self.below(&item, 1, levels, take)
    }

    fn below(
        &self,
        item: &Item<'a>,
        level: u32,
        levels: (Option<u32>, Option<u32>),
        take: Take<'_, 'a>,
    ) -> Go {
        let (from, to) = levels;
        if to.is_some_and(|to| level > to) {
            return Ok(true);
        }
        for (_, child) in item.children() {
            self.look()?;
            let wanted = match (from, to) {
                (None, None) => !child.is_container(),
                (from, _) => from.is_some_and(|from| level >= from),
            };
            if wanted && !take(child.clone())? {
                return Ok(false);
            }
            if child.is_container() && !self.below(&child, level + 1, levels, take)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn elements(
        &self,
        item: Item<'a>,
        wanted: &'a [(Node, Option<Node>)],
        place: &Place<'a>,
        take: Take<'_, 'a>,
    ) -> Go {
        let array = item.elements();
        if array.is_none() && !self.lax {
            let text = "jsonpath array accessor can only be applied to an array";
            return self.missing(place, NO_ARRAY, text);
        }
        let length = array.map_or(1, |(elements, _)| elements.len());
        let inside = Place { length: Some(length), ..place.clone() };
        for (from, to) in wanted {
            let from = self.subscript(from, &inside)?;
            let to = to.as_ref().map_or(Ok(from), |to| self.subscript(to, &inside))?;
            if from < 0 || from > to || to >= length as i64 {
                self.missing(place, BAD_SUBSCRIPT, "jsonpath array subscript is out of bounds")?;
            }
            for at in from.max(0)..=to.min(length as i64 - 1) {
                let element = match array {
                    Some((elements, base)) => Item::Part(&elements[at as usize], base),
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
        let items = self.all(node, place)?;
        self.release(&items);
        let text = "jsonpath array subscript is not a single numeric value";
        let number = single_number(&items).ok_or_else(|| error(BAD_SUBSCRIPT, text))?;
        let whole = numeric::text(&numeric::trunc(&number, 0)).parse::<i32>();
        let text = "jsonpath array subscript is out of integer range";
        whole.map(i64::from).map_err(|_| error(BAD_SUBSCRIPT, text))
    }

    fn method(
        &self,
        method: Method,
        item: &Item<'a>,
        place: &Place<'a>,
    ) -> SqlResult<Option<Item<'a>>> {
        let changed = |change: fn(&BigDecimal) -> BigDecimal| {
            let number = item.as_number().ok_or_else(|| {
                let (name, text) = (method.name(), "can only be applied to a numeric value");
                error(NO_NUMBER, format!("jsonpath item method .{name}() {text}"))
            })?;
            Ok(Some(Item::number(&change(&number))))
        };
        match method {
            Method::Type => Ok(Some(Item::Made(Value::String(item.type_name().into())))),
            Method::Size => match item.elements() {
                Some((elements, _)) => {
                    Ok(Some(Item::Made(jsonb::number(&elements.len().to_string()))))
                }
                None if self.lax => Ok(Some(Item::Made(jsonb::number("1")))),
                None => {
                    let text = "jsonpath item method .size() can only be applied to an array";
                    self.missing(place, NO_ARRAY, text).map(|_| None)
                }
            },
            Method::Double => double(item).map(Some),
            Method::Ceiling => changed(|x| numeric::floor(x, true)),
            Method::Floor => changed(|x| numeric::floor(x, false)),
            Method::Abs => changed(BigDecimal::abs),
            Method::KeyValue => Ok(None),
        }
    }

    /// An object for each member.
    fn pairs(&self, item: &Item<'a>, take: Take<'_, 'a>) -> Go {
        if !item.is_object() {
            let text = "jsonpath item method .keyvalue() can only be applied to an object";
            return Err(error(NO_OBJECT, text));
        }
        let root = match item {
            Item::Part(_, Base { origin: Origin::Variables, .. }) => self.asked.variables,
            _ => None,
        };
        let root = root.unwrap_or(self.asked.document);
        let id = self.layouts.borrow_mut().id(item, root);
        for (key, value) in item.children() {
            self.look()?;
            let own = self.next_id.replace(self.next_id.get() + 1);
            let mut layouts = self.layouts.borrow_mut();
            let value = match (layouts.moved(id, key, value.clone(), root, own), value) {
                (Some(base), Item::Part(part, _)) => Item::Part(part, base),
                (_, other) => other,
            };
            drop(layouts);
            let own = Base { origin: Origin::Nowhere, id: own, shift: 0 };
            if !take(Item::Pair(Rc::new(Pair { id, key: key.to_string(), value, own })))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether an error is about what the document holds: `silent` keeps quiet about it, and in a
/// predicate it is unknown.
pub(super) fn is_of_document(e: &SqlError) -> bool {
    const NUMBERS_AND_TIMES: [&str; 4] = ["22012", "22003", "22007", "22008"];
    let own =
        [NO_MEMBER, NO_ARRAY, NO_OBJECT, BAD_SUBSCRIPT, NO_NUMBER, NOT_SINGLE, NO_NUMBERS, NO_TIME];
    own.contains(&e.state().0) || NUMBERS_AND_TIMES.contains(&e.state().0)
}

fn each_child<'a>(item: &Item<'a>, take: Take<'_, 'a>) -> Go {
    for (_, child) in item.children() {
        if !take(child)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn single_number(items: &[Item<'_>]) -> Option<BigDecimal> {
    match items {
        [one] => one.as_number(),
        _ => None,
    }
}

fn double<'a>(item: &Item<'a>) -> SqlResult<Item<'a>> {
    let of = "jsonpath item method .double()";
    let parsed = |text: &str| match Datum::parse(text, &SqlType::Float8, Style::utc()) {
        Ok(value @ Datum::Float8(n)) if n.is_finite() => Some(value),
        _ => None,
    };
    match item.scalar() {
        // A number stays as it is, if it is one that a double can hold.
        Some(Value::Number(n)) => match parsed(&n.to_string()) {
            Some(_) => Ok(item.clone()),
            None => {
                let text = "is out of range for type double precision";
                Err(error(NO_NUMBER, format!("numeric argument of {of} {text}")))
            }
        },
        Some(Value::String(text)) => {
            let Some(value) = parsed(text) else {
                let text = "is not a valid representation of a double precision number";
                return Err(error(NO_NUMBER, format!("string argument of {of} {text}")));
            };
            let (from, to) = (SqlType::Float8, SqlType::Numeric(None));
            let number = cast(&value, &from, &to, CastContext::Explicit, Style::utc())?;
            Ok(Item::Made(jsonb::number(&number.to_text(Style::utc()).unwrap_or_default())))
        }
        _ => {
            let text = format!("{of} can only be applied to a string or numeric value");
            Err(error(NO_NUMBER, text))
        }
    }
}
