//! Types that users have made.
//!
//! A column's descriptor names such a type by its oid alone. What the type is at the moment, its
//! name and its labels, is put into the columns of a [`Catalog`] when it is read and when a type
//! changes, so that nobody who has a column needs the catalog to understand its values.

use std::sync::Arc;

use braid_types::{EnumLabel, EnumType, SqlType};
use serde::{Deserialize, Serialize};

use crate::descriptor::{Table, View};
use crate::oid_of;
use crate::snapshot::Catalog;

/// A type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserType {
    /// Object id.
    pub id: u32,
    /// Schema that holds it.
    pub schema: u32,
    /// Name, unique among the types of its schema.
    pub name: String,
    /// Object id of the type of its arrays.
    pub array: u32,
    /// What it is.
    #[serde(rename = "is")]
    pub kind: TypeKind,
    /// `COMMENT ON TYPE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// What a [`UserType`] is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeKind {
    /// An enum type: its labels in their order.
    Enum(Vec<EnumLabel>),
}

impl Catalog {
    /// All types that users have made.
    pub fn user_types(&self) -> impl Iterator<Item = &Arc<UserType>> {
        self.types.values()
    }

    /// Type by id.
    pub fn user_type(&self, id: u32) -> Option<&Arc<UserType>> {
        self.types.get(&id)
    }

    /// Type by schema and name.
    pub fn type_in(&self, schema: u32, name: &str) -> Option<&Arc<UserType>> {
        self.types.values().find(|t| t.schema == schema && t.name == name)
    }

    /// Type by the schemas of a search path, in order.
    pub fn resolve_type(
        &self,
        database: u32,
        search_path: &[String],
        name: &str,
    ) -> Option<&Arc<UserType>> {
        search_path
            .iter()
            .filter_map(|s| self.schema(database, s))
            .find_map(|s| self.type_in(s.id, name))
    }

    /// What values of a type are.
    pub fn sql_type(&self, user: &UserType) -> Option<SqlType> {
        self.enums.get(&oid_of(user.id)).cloned().map(SqlType::Enum)
    }

    /// The type of a user, or of arrays of one, by its oid.
    pub fn sql_type_by_oid(&self, oid: u32) -> Option<SqlType> {
        if let Some(found) = self.enums.get(&oid) {
            return Some(SqlType::Enum(found.clone()));
        }
        let of = self.enums.values().find(|t| t.array_oid == oid)?;
        Some(SqlType::Array(Box::new(SqlType::Enum(of.clone()))))
    }

    /// Adds or replaces a type.
    pub fn put_type(&mut self, user: UserType) {
        self.types.insert(user.id, Arc::new(user));
        self.know_types();
        self.reindex();
    }

    /// Makes of the descriptors what values need of them. Types that did not change stay the same
    /// in memory, too.
    pub(crate) fn know_types(&mut self) {
        let mut enums = std::mem::take(&mut self.enums);
        enums.retain(|oid, _| self.types.values().any(|t| oid_of(t.id) == *oid));
        for user in self.types.values() {
            let TypeKind::Enum(labels) = &user.kind;
            let now = EnumType {
                oid: oid_of(user.id),
                array_oid: oid_of(user.array),
                schema: self.schema_by_id(user.schema).map_or(String::new(), |s| s.name.clone()),
                name: user.name.clone(),
                labels: labels.clone(),
            };
            match enums.get(&now.oid) {
                Some(known) if **known == now => {}
                _ => drop(enums.insert(now.oid, Arc::new(now))),
            }
        }
        self.enums = enums;
    }

    /// Puts the types as they are now into the columns that have them.
    pub(crate) fn settle_columns(&mut self) {
        if self.enums.is_empty() {
            return;
        }
        let mut tables: Vec<Table> = Vec::new();
        for table in self.tables.values() {
            if table.columns.iter().any(|c| self.as_known(&c.ty).is_some()) {
                let mut table = (**table).clone();
                for column in &mut table.columns {
                    column.ty = self.as_known(&column.ty).unwrap_or_else(|| column.ty.clone());
                }
                tables.push(table);
            }
        }
        let mut views: Vec<View> = Vec::new();
        for view in self.views.values() {
            if view.columns.iter().any(|(_, ty)| self.as_known(ty).is_some()) {
                let mut view = (**view).clone();
                for (_, ty) in &mut view.columns {
                    *ty = self.as_known(ty).unwrap_or_else(|| ty.clone());
                }
                views.push(view);
            }
        }
        tables.into_iter().for_each(|t| drop(self.tables.insert(t.id, Arc::new(t))));
        views.into_iter().for_each(|v| drop(self.views.insert(v.id, Arc::new(v))));
    }

    /// A type with what is known now; `None` if it says that already.
    fn as_known(&self, ty: &SqlType) -> Option<SqlType> {
        match ty {
            SqlType::Enum(old) => {
                let now = self.enums.get(&old.oid).filter(|now| !Arc::ptr_eq(now, old))?;
                Some(SqlType::Enum(now.clone()))
            }
            SqlType::Array(element) => self.as_known(element).map(|e| SqlType::Array(Box::new(e))),
            _ => None,
        }
    }
}

/// Whether values of a type hold values of the type with this oid.
pub fn uses_type(ty: &SqlType, oid: u32) -> bool {
    match ty {
        SqlType::Enum(user) => user.oid == oid,
        SqlType::Array(element) => uses_type(element, oid),
        _ => false,
    }
}
