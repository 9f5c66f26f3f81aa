//! Types that users have made: what a column, a cast or a value needs to know of them.
//!
//! ```text
//!   catalog   UserType { id, schema, name, labels }     the durable facts
//!      |
//!      v      made when a catalog is read
//!   EnumType { oid, name, labels }  <---- SqlType::Enum, Datum::Enum
//! ```
//!
//! A label has a *place*, a number that it keeps for ever: rows and keys hold it, and its order is
//! the order of the values. A label that is added between two others gets a place between theirs,
//! so that nothing that is stored changes, whatever happens to the names.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{SqlError, SqlResult, SqlState, quote_ident};

/// How far the places of labels lie apart that were written one after the other.
pub const LABEL_STEP: i64 = 1 << 20;

/// One value of an enum type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnumLabel {
    /// Object id, for clients.
    pub oid: u32,
    /// What is stored; the order of the values.
    pub place: i64,
    /// As it is written and shown.
    pub label: String,
}

impl EnumLabel {
    /// The place as `pg_enum.enumsortorder` shows it: 1, 2, 3, and 1.5 between.
    pub fn sort_order(&self) -> f32 {
        (self.place as f64 / LABEL_STEP as f64) as f32
    }
}

/// An enum type: its names and its labels, by their places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnumType {
    /// Oid.
    pub oid: u32,
    /// Oid of its arrays.
    pub array_oid: u32,
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// Its values in their order.
    pub labels: Vec<EnumLabel>,
}

impl EnumType {
    /// Only the oid: what a descriptor says before the catalog is known.
    pub fn unresolved(oid: u32) -> EnumType {
        EnumType { oid, ..EnumType::default() }
    }

    /// The name as messages and `format_type` print it.
    pub fn shown_name(&self) -> String {
        shown_type_name(&self.schema, &self.name)
    }

    /// The label at a place.
    pub(crate) fn label_at(&self, place: i64) -> Option<&EnumLabel> {
        let at = self.labels.binary_search_by_key(&place, |l| l.place).ok()?;
        Some(&self.labels[at])
    }

    /// The value at a place, if the type has one there. Of a type whose labels are not known every
    /// place is one: what was stored with a descriptor alone is read that way.
    pub fn value_at(self: &Arc<Self>, place: i64) -> Option<EnumValue> {
        let known = self.labels.is_empty() || self.label_at(place).is_some();
        known.then(|| EnumValue { ty: self.clone(), place })
    }

    /// The place of a label.
    ///
    /// # Errors
    /// 22P02 if there is none of this name.
    pub fn place_of(&self, label: &str) -> SqlResult<i64> {
        let found = self.labels.iter().find(|l| l.label == label);
        found.map(|l| l.place).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input value for enum {}: \"{label}\"", self.shown_name()),
            )
        })
    }
}

/// A value of an enum type.
#[derive(Clone, Debug)]
pub struct EnumValue {
    /// Its type, which knows the label.
    pub ty: Arc<EnumType>,
    /// Its place.
    pub place: i64,
}

impl EnumValue {
    /// The label. A place without one can only come from a damaged row, which readers refuse.
    pub fn label(&self) -> &str {
        self.ty.label_at(self.place).map_or("", |l| &l.label)
    }
}

/// The name of a type of a user as messages show it: types outside of `public` with their schema.
pub fn shown_type_name(schema: &str, name: &str) -> String {
    match schema {
        "" | "public" | "pg_catalog" => quote_ident(name),
        other => format!("{}.{}", quote_ident(other), quote_ident(name)),
    }
}

/// An enum type in a descriptor: its oid; the catalog has the rest.
pub(crate) mod by_oid {
    use super::{Arc, Deserialize, Deserializer, EnumType, Serializer};

    pub(crate) fn serialize<S: Serializer>(ty: &Arc<EnumType>, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u32(ty.oid)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(d: D) -> Result<Arc<EnumType>, D::Error> {
        u32::deserialize(d).map(|oid| Arc::new(EnumType::unresolved(oid)))
    }
}
