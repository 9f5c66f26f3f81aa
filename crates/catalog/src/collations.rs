//! Collations that users have made.
//!
//! A column's descriptor names its collation by the oid alone. What it is at the moment is put into
//! the columns of a [`Catalog`] when it is read and when a collation changes, as types are.

use std::sync::Arc;

use braid_types::{Collation, built_in_collations};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::descriptor::{Column, Table};
use crate::snapshot::Catalog;
use crate::{id_of_oid, oid_of};

/// A collation of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserCollation {
    /// Object id.
    pub id: u32,
    /// Schema that holds it.
    pub schema: u32,
    /// Name, unique among the collations of its schema.
    pub name: String,
    /// The locale whose order it is; `None` orders by bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// `deterministic = false`: texts are equal if the locale sees no difference.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loose: bool,
    /// `COMMENT ON COLLATION`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

impl UserCollation {
    /// As expressions know it.
    pub fn collation(&self) -> Collation {
        Collation {
            oid: oid_of(self.id),
            name: self.name.clone(),
            locale: self.locale.clone(),
            deterministic: !self.loose,
        }
    }
}

impl Catalog {
    /// All collations that users have made.
    pub fn collations(&self) -> impl Iterator<Item = &Arc<UserCollation>> {
        self.collations.values()
    }

    /// Collation of a user by id.
    pub fn user_collation(&self, id: u32) -> Option<&Arc<UserCollation>> {
        self.collations.get(&id)
    }

    /// Collation of a user by schema and name.
    pub fn collation_in(&self, schema: u32, name: &str) -> Option<&Arc<UserCollation>> {
        self.collations.values().find(|c| c.schema == schema && c.name == name)
    }

    /// Collation of a user by the schemas of a search path, in order.
    pub fn resolve_collation(
        &self,
        database: u32,
        search_path: &[String],
        name: &str,
    ) -> Option<&Arc<UserCollation>> {
        let mut schemas = search_path.iter().filter_map(|s| self.schema(database, s));
        schemas.find_map(|s| self.collation_in(s.id, name))
    }

    /// A collation by its oid, built in or of a user.
    pub fn collation_by_oid(&self, oid: u32) -> Option<Arc<Collation>> {
        match id_of_oid(oid) {
            Some(id) => self.user_collation(id).map(|c| Arc::new(c.collation())),
            None => built_in_collations().iter().find(|c| c.oid == oid).cloned(),
        }
    }

    /// Adds or replaces a collation.
    pub fn put_collation(&mut self, collation: UserCollation) {
        self.collations.insert(collation.id, Arc::new(collation));
        self.reindex();
    }

    /// What a column's collation is now; `None` if it says that already.
    fn collation_now(&self, column: &Column) -> Option<Arc<Collation>> {
        let old = column.options.collation.as_ref()?;
        let now = self.user_collation(id_of_oid(old.oid)?)?.collation();
        (**old != now).then(|| Arc::new(now))
    }

    /// Puts the collations as they are now into the columns that have them.
    pub(crate) fn settle_collations(&mut self) {
        if self.collations.is_empty() {
            return;
        }
        let mut changed: Vec<Table> = Vec::new();
        for table in self.tables.values() {
            if table.columns.iter().any(|c| self.collation_now(c).is_some()) {
                let mut table = (**table).clone();
                for column in &mut table.columns {
                    if let Some(now) = self.collation_now(column) {
                        column.options.collation = Some(now);
                    }
                }
                changed.push(table);
            }
        }
        for table in changed {
            self.tables.insert(table.id, Arc::new(table));
        }
    }

    /// What is wrong with collations.
    pub(crate) fn check_collations(&self, bad: &mut Vec<String>) {
        for own in self.collations() {
            if self.schema_by_id(own.schema).is_none() {
                bad.push(format!("collation {} is in missing schema {}", own.name, own.schema));
            }
            if self.collation_in(own.schema, &own.name).is_none_or(|found| found.id != own.id) {
                bad.push(format!("collation {} is there twice", own.name));
            }
        }
        for table in self.tables() {
            for column in &table.columns {
                if let Some(collation) = &column.options.collation
                    && self.collation_by_oid(collation.oid).is_none()
                {
                    let (table, name) = (&table.name, &column.name);
                    bad.push(format!("table {table}: column {name} has a missing collation"));
                }
            }
        }
    }
}

/// Collations of columns are stored as their oids.
pub(crate) mod by_oid {
    use super::built_in_collations;
    use super::{Arc, Collation, Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        collation: &Option<Arc<Collation>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        collation.as_ref().map(|c| c.oid).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Arc<Collation>>, D::Error> {
        let oid = Option::<u32>::deserialize(from)?;
        Ok(oid.map(|oid| match built_in_collations().iter().find(|c| c.oid == oid) {
            Some(known) => known.clone(),
            // The catalog knows the rest of it.
            None => {
                Arc::new(Collation { oid, name: String::new(), locale: None, deterministic: true })
            }
        }))
    }
}
