//! What steps go through.

use std::rc::Rc;

use braid_types::jsonb::number;
use braid_types::{jsonb, numeric};
use numeric::BigDecimal;
use serde_json::{Map, Value};

use super::ids::Base;
use super::moment::Moment;
use crate::functions::json::type_name;

/// A part of the document (or of a variable, or of the path), or something that was made.
#[derive(Clone)]
pub(super) enum Item<'a> {
    Part(&'a Value, Base),
    /// A null, a truth value, a number or a string.
    Made(Value),
    /// An object of `.keyvalue()`.
    Pair(Rc<Pair<'a>>),
    /// A date or a time.
    Moment(Moment),
}

/// `{"id": .., "key": .., "value": ..}`
pub(super) struct Pair<'a> {
    pub(super) id: i64,
    pub(super) key: String,
    pub(super) value: Item<'a>,
    /// What it is itself.
    pub(super) own: Base,
}

impl<'a> Pair<'a> {
    /// In their order.
    fn members(&self) -> Vec<(&'static str, Item<'a>)> {
        let id = Item::Made(number(&self.id.to_string()));
        let key = Item::Made(Value::String(self.key.clone()));
        vec![("id", id), ("key", key), ("value", self.value.clone())]
    }
}

impl<'a> Item<'a> {
    /// A number that was made.
    pub(super) fn number(number: &BigDecimal) -> Item<'a> {
        Item::Made(jsonb::number(&numeric::text(number)))
    }

    /// The elements of an array.
    pub(super) fn elements(&self) -> Option<(&'a [Value], Base)> {
        match self {
            Item::Part(Value::Array(elements), base) => Some((elements, *base)),
            _ => None,
        }
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, Item::Part(Value::Object(_), _) | Item::Pair(_))
    }

    /// Whether it has elements or members, or could have.
    pub(super) fn is_container(&self) -> bool {
        self.is_object() || self.elements().is_some()
    }

    /// The member of an object; `None` if it has none of the name, or is none.
    pub(super) fn member(&self, name: &str) -> Option<Item<'a>> {
        match self {
            Item::Part(Value::Object(map), base) => {
                map.get(name).map(|value| Item::Part(value, *base))
            }
            Item::Pair(pair) => {
                pair.members().into_iter().find(|(key, _)| *key == name).map(|(_, item)| item)
            }
            _ => None,
        }
    }

    /// The members of an object with their names, the elements of an array.
    pub(super) fn children(&self) -> Children<'a> {
        match self {
            Item::Part(Value::Object(map), base) => Children::Object(map.iter(), *base),
            Item::Part(Value::Array(elements), base) => Children::Array(elements.iter(), *base),
            Item::Pair(pair) => Children::Pair(pair.members().into_iter()),
            _ => Children::None,
        }
    }

    /// A scalar that JSON knows.
    pub(super) fn scalar(&self) -> Option<&Value> {
        match self {
            Item::Part(value, _) => Some(*value).filter(|v| !v.is_array() && !v.is_object()),
            Item::Made(value) => Some(value),
            Item::Pair(_) | Item::Moment(_) => None,
        }
    }

    /// Its number, if it is one.
    pub(super) fn as_number(&self) -> Option<BigDecimal> {
        match self.scalar()? {
            Value::Number(n) => numeric::parse(&n.to_string()),
            _ => None,
        }
    }

    /// Its text, if it is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        self.scalar()?.as_str()
    }

    /// What `.type()` says.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Item::Part(value, _) => type_name(value),
            Item::Made(value) => type_name(value),
            Item::Pair(_) => "object",
            Item::Moment(moment) => moment.type_name(),
        }
    }

    /// The value that it is for the client.
    pub(super) fn into_value(self) -> Value {
        match self {
            Item::Part(value, _) => value.clone(),
            Item::Made(value) => value,
            Item::Moment(moment) => Value::String(moment.text()),
            Item::Pair(pair) => {
                let named = |(key, item): (&str, Item<'_>)| (key.to_string(), item.into_value());
                Value::Object(pair.members().into_iter().map(named).collect::<Map<_, _>>())
            }
        }
    }
}

/// See [`Item::children`].
pub(super) enum Children<'a> {
    Object(serde_json::map::Iter<'a>, Base),
    Array(std::slice::Iter<'a, Value>, Base),
    Pair(std::vec::IntoIter<(&'static str, Item<'a>)>),
    None,
}

impl<'a> Iterator for Children<'a> {
    type Item = (&'a str, Item<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Children::Object(members, base) => {
                members.next().map(|(key, value)| (key.as_str(), Item::Part(value, *base)))
            }
            Children::Array(elements, base) => {
                elements.next().map(|value| ("", Item::Part(value, *base)))
            }
            Children::Pair(members) => members.next(),
            Children::None => None,
        }
    }
}
