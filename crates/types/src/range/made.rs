//! [`RangeType`]: a type of ranges that a user has made.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::RangeKind;
use crate::SqlType;

/// A type of `CREATE TYPE .. AS RANGE`, with that of several such ranges.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RangeType {
    /// What the ranges are called.
    pub one: RangeName,
    /// What several of them are called.
    pub many: RangeName,
    /// Schema of both.
    pub schema: String,
    /// The type of the bounds.
    pub subtype: SqlType,
}

/// One of the types that come with a type of ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RangeName {
    /// Oid.
    pub oid: u32,
    /// Oid of its arrays.
    pub array_oid: u32,
    /// Name.
    pub name: String,
}

impl RangeType {
    /// Only the oid: what a descriptor says before the catalog is known.
    pub fn unresolved(oid: u32) -> RangeType {
        RangeType {
            one: RangeName { oid, ..RangeName::default() },
            many: RangeName::default(),
            schema: String::new(),
            subtype: SqlType::Unknown,
        }
    }
}

impl SqlType {
    /// The type of a user that this is, and which of its two names, if it is one of ranges.
    pub fn made_range(&self) -> Option<(&Arc<RangeType>, &RangeName)> {
        match self {
            SqlType::Range(RangeKind::Made(ty)) => Some((ty, &ty.one)),
            SqlType::Multirange(RangeKind::Made(ty)) => Some((ty, &ty.many)),
            _ => None,
        }
    }
}

/// A type of ranges in a descriptor: its oid; the catalog has the rest.
pub(super) mod by_oid {
    use super::{Arc, Deserialize, Deserializer, RangeType, Serializer};

    pub(in crate::range) fn serialize<S: Serializer>(
        ty: &Arc<RangeType>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.serialize_u32(ty.one.oid)
    }

    pub(in crate::range) fn deserialize<'a, D: Deserializer<'a>>(
        d: D,
    ) -> Result<Arc<RangeType>, D::Error> {
        u32::deserialize(d).map(|oid| Arc::new(RangeType::unresolved(oid)))
    }
}
