//! Types that users have made.
//!
//! A column's descriptor names such a type by its oid alone. What the type is at the moment, its
//! name and its labels, is put into the columns of a [`Catalog`] when it is read and when a type
//! changes, so that nobody who has a column needs the catalog to understand its values.

use std::collections::HashMap;
use std::sync::Arc;

use braid_types::{
    CompositeField, CompositeType, EnumLabel, EnumType, IntervalFields, RangeKind, RangeName,
    RangeType, SqlType, shown_type_name,
};
use serde::{Deserialize, Serialize};

use crate::descriptor::{Check, Column, Refined, Table, View};
use crate::snapshot::Catalog;
use crate::{id_of_oid, oid_of};

/// Composite types by oid.
type Composites = HashMap<u32, Arc<CompositeType>>;

/// What values need of types, by oid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    enums: HashMap<u32, Arc<EnumType>>,
    ranges: HashMap<u32, Arc<RangeType>>,
    composites: Composites,
}

/// Set in the oid of arrays of a table's rows, above all oids of objects.
const ROW_ARRAYS: u32 = 1 << 30;

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
    /// Another type with conditions.
    Domain(Box<Domain>),
    /// A composite type: its fields in their order.
    Composite(Vec<Attribute>),
    /// Ranges of values of another type.
    Range(Box<RangeOf>),
}

/// A type of ranges, and what comes with it: the type of several such ranges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeOf {
    /// The type of the bounds.
    pub subtype: SqlType,
    /// Name of the type of several ranges, unique among the types of the schema.
    pub multirange: String,
    /// Object id of that type.
    pub multirange_id: u32,
    /// Object id of the type of its arrays.
    pub multirange_array: u32,
}

/// One of the types that a [`UserType`] brings.
#[derive(Clone, Copy, Debug)]
pub struct NamedType<'a> {
    /// The type that brings it.
    pub user: &'a UserType,
    /// Its name, of arrays that of their elements.
    pub name: &'a str,
    /// Whether it is the type of arrays.
    pub is_array: bool,
}

impl UserType {
    /// The type of several ranges that comes with this one: its name and object ids.
    pub fn multirange(&self) -> Option<&RangeOf> {
        match &self.kind {
            TypeKind::Range(of) => Some(of),
            TypeKind::Enum(_) | TypeKind::Domain(_) | TypeKind::Composite(_) => None,
        }
    }

    /// What the type with an oid is, if this one brings it.
    fn named(&self, oid: u32) -> Option<NamedType<'_>> {
        let own = [(self.id, false), (self.array, true)].map(|(id, array)| (id, &self.name, array));
        let many = self.multirange().map(|of| {
            let ids = [(of.multirange_id, false), (of.multirange_array, true)];
            ids.map(|(id, array)| (id, &of.multirange, array))
        });
        let mut all = own.into_iter().chain(many.into_iter().flatten());
        let (_, name, is_array) = all.find(|(id, ..)| oid_of(*id) == oid)?;
        Some(NamedType { user: self, name, is_array })
    }
}

/// A field of a composite type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// Its number, which is `attnum`; never that of another field that is there.
    pub number: u32,
    /// Name.
    pub name: String,
    /// Type.
    pub ty: SqlType,
    /// What its declared type asks of values beyond `ty`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refinement: Option<Refined>,
    /// `COMMENT ON COLUMN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// A domain. Its values are kept as those of its base type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Domain {
    /// The type of its values.
    pub base: SqlType,
    /// Digits of seconds that are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<u8>,
    /// Of intervals: the fields that are kept, as PostgreSQL's type modifier has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<i32>,
    /// The domain that it is over, or that elements of its base type are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Refined>,
    /// Oid of the collation of its values, if it is another than that of the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<u32>,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// DEFAULT expression as SQL text, for columns without one of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Conditions over `VALUE`.
    pub checks: Vec<Check>,
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

    /// The type of ranges whose lists are named so.
    pub fn multirange_in(&self, schema: u32, name: &str) -> Option<&Arc<UserType>> {
        let named = |t: &UserType| t.multirange().is_some_and(|of| of.multirange == name);
        self.types.values().find(|t| t.schema == schema && named(t))
    }

    /// The type of ranges whose lists are named so, by the schemas of a search path.
    pub fn resolve_multirange(
        &self,
        database: u32,
        search_path: &[String],
        name: &str,
    ) -> Option<&Arc<UserType>> {
        let mut schemas = search_path.iter().filter_map(|s| self.schema(database, s));
        schemas.find_map(|s| self.multirange_in(s.id, name))
    }

    /// What brings the type of a name, by the schemas of a search path.
    pub fn resolve_named(
        &self,
        database: u32,
        search_path: &[String],
        name: &str,
    ) -> Option<&Arc<UserType>> {
        self.resolve_type(database, search_path, name)
            .or_else(|| self.resolve_multirange(database, search_path, name))
    }

    /// What values are of the type that comes with one of ranges.
    pub fn multirange_type(&self, user: &UserType) -> Option<SqlType> {
        match self.sql_type(user)? {
            SqlType::Range(kind) => Some(SqlType::Multirange(kind)),
            _ => None,
        }
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
        match &user.kind {
            TypeKind::Enum(_) => self.known.enums.get(&oid_of(user.id)).cloned().map(SqlType::Enum),
            TypeKind::Composite(_) => {
                self.known.composites.get(&oid_of(user.id)).cloned().map(SqlType::Composite)
            }
            TypeKind::Range(_) => {
                let known = self.known.ranges.get(&oid_of(user.id)).cloned();
                known.map(|ty| SqlType::Range(RangeKind::Made(ty)))
            }
            TypeKind::Domain(domain) => {
                Some(self.as_known(&domain.base).unwrap_or_else(|| domain.base.clone()))
            }
        }
    }

    /// What values are of the type of a user, or of arrays of one, by its oid.
    pub fn sql_type_by_oid(&self, oid: u32) -> Option<SqlType> {
        let Some(NamedType { user, name, is_array }) = self.by_oid(oid) else {
            let (ty, is_array) = self.by_row_oid(oid)?;
            let ty = SqlType::Composite(ty);
            return Some(if is_array { ty.array_of() } else { ty });
        };
        let ty = match user.multirange().is_some_and(|of| of.multirange == name) {
            true => self.multirange_type(user)?,
            false => self.sql_type(user)?,
        };
        Some(if is_array { SqlType::Array(Box::new(ty)) } else { ty })
    }

    /// The name of such a type.
    pub fn type_name(&self, oid: u32) -> Option<String> {
        let (name, is_array) = match self.by_oid(oid) {
            Some(NamedType { user, name, is_array }) => {
                let schema = self.schema_by_id(user.schema).map_or("", |s| &s.name);
                (shown_type_name(schema, name), is_array)
            }
            None => {
                let (ty, is_array) = self.by_row_oid(oid)?;
                (ty.shown_name(), is_array)
            }
        };
        Some(if is_array { format!("{name}[]") } else { name })
    }

    /// Such a type by its oid, or by that of its arrays.
    pub fn user_type_by_oid(&self, oid: u32) -> Option<&UserType> {
        self.by_oid(oid).map(|found| found.user)
    }

    /// What of the types of users has an oid, and how it is called.
    pub fn by_oid(&self, oid: u32) -> Option<NamedType<'_>> {
        self.types.values().find_map(|user| user.named(oid))
    }

    /// The table or view whose rows have the type of this oid, or are in its arrays.
    pub fn relation_of_rows(&self, oid: u32) -> Option<u32> {
        let id = id_of_oid(oid & !ROW_ARRAYS)?;
        (self.table(id).is_some() || self.view(id).is_some()).then_some(id)
    }

    fn by_row_oid(&self, oid: u32) -> Option<(Arc<CompositeType>, bool)> {
        let is_array = oid & ROW_ARRAYS != 0;
        let id = self.relation_of_rows(oid)?;
        let of_table = self.table(id).map(|table| self.row_type(table));
        let ty = of_table.or_else(|| self.view(id).map(|view| self.row_type_of_view(view)))?;
        Some((ty, is_array))
    }

    /// The type of a table's rows. It is named as the table, and its oid is that of the table.
    pub fn row_type(&self, table: &Table) -> Arc<CompositeType> {
        let field = |c: &Column| CompositeField {
            oid: self.declared_oid(&c.ty, c.refinement),
            ..CompositeField::new(&c.name, c.ty.clone())
        };
        let columns = table.columns.iter().filter(|c| !c.hidden);
        self.rows_of((table.id, table.schema, &table.name), columns.map(field).collect())
    }

    /// The type of a view's rows, as that of a table's.
    pub fn row_type_of_view(&self, view: &View) -> Arc<CompositeType> {
        let columns = view.columns.iter().map(|(name, ty)| CompositeField::new(name, ty.clone()));
        self.rows_of((view.id, view.schema, &view.name), columns.collect())
    }

    /// The oid of the type that a column is declared with.
    fn declared_oid(&self, ty: &SqlType, refinement: Option<Refined>) -> u32 {
        match refinement {
            Some(Refined::Domain(domain)) => oid_of(domain),
            Some(Refined::Elements(domain)) => {
                self.types.get(&domain).map_or(ty.oid(), |domain| oid_of(domain.array))
            }
            _ => ty.oid(),
        }
    }

    fn rows_of(
        &self,
        (id, schema, name): (u32, u32, &str),
        columns: Vec<CompositeField>,
    ) -> Arc<CompositeType> {
        let schema = self.schema_by_id(schema).map_or(String::new(), |s| s.name.clone());
        let oid = oid_of(id);
        let names = (schema, name.to_string());
        Arc::new(CompositeType::new((oid, oid | ROW_ARRAYS), names, columns))
    }

    /// The types whose values are, or hold, values of a type: itself, domains over it, composite
    /// types with fields of those, and so on.
    pub fn types_over(&self, id: u32) -> Vec<u32> {
        let mut found = vec![id];
        loop {
            let within = |ty: &SqlType, refined: Option<Refined>| {
                found.iter().any(|id| {
                    refined.is_some_and(|refined| refined.names(*id)) || uses_type(ty, oid_of(*id))
                })
            };
            let holds = |user: &&Arc<UserType>| match &user.kind {
                TypeKind::Domain(domain) => within(&domain.base, domain.over),
                TypeKind::Composite(fields) => fields.iter().any(|f| within(&f.ty, f.refinement)),
                TypeKind::Enum(_) | TypeKind::Range(_) => false,
            };
            let new = self.types.values().filter(holds).map(|user| user.id);
            let new: Vec<u32> = new.filter(|id| !found.contains(id)).collect();
            if new.is_empty() {
                return found;
            }
            found.extend(new);
        }
    }

    /// A domain and those over it whose values are the same.
    pub fn domains_over(&self, id: u32) -> Vec<u32> {
        let mut found = vec![id];
        for at in 0.. {
            let Some(id) = found.get(at).copied() else { break };
            let over = |user: &&Arc<UserType>| match &user.kind {
                TypeKind::Domain(domain) => domain.over == Some(Refined::Domain(id)),
                _ => false,
            };
            found.extend(self.types.values().filter(over).map(|user| user.id));
        }
        found
    }

    /// A domain by id.
    pub fn domain(&self, id: u32) -> Option<&Domain> {
        match &self.user_type(id)?.kind {
            TypeKind::Domain(domain) => Some(domain),
            TypeKind::Enum(_) | TypeKind::Composite(_) | TypeKind::Range(_) => None,
        }
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
        let mut enums = std::mem::take(&mut self.known.enums);
        enums.retain(|oid, _| self.types.values().any(|t| oid_of(t.id) == *oid));
        for user in self.types.values() {
            let TypeKind::Enum(labels) = &user.kind else { continue };
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
        self.known.enums = enums;
        self.know_ranges();
        self.know_composites();
    }

    /// As [`Self::know_types`], of types of ranges.
    fn know_ranges(&mut self) {
        let mut before = std::mem::take(&mut self.known.ranges);
        for user in self.types.values() {
            let Some(of) = user.multirange() else { continue };
            let name = |id: u32, array: u32, name: &str| RangeName {
                oid: oid_of(id),
                array_oid: oid_of(array),
                name: name.to_string(),
            };
            let now = RangeType {
                one: name(user.id, user.array, &user.name),
                many: name(of.multirange_id, of.multirange_array, &of.multirange),
                schema: self.schema_by_id(user.schema).map_or(String::new(), |s| s.name.clone()),
                subtype: of.subtype.clone(),
            };
            let oid = now.one.oid;
            let kept = before.remove(&oid).filter(|known| **known == now);
            self.known.ranges.insert(oid, kept.unwrap_or_else(|| Arc::new(now)));
        }
    }

    /// As [`Self::know_types`], of composite types, whose fields may have any of the others.
    fn know_composites(&mut self) {
        let before = std::mem::take(&mut self.known.composites);
        let ids: Vec<u32> = self.types.keys().copied().collect();
        for id in ids {
            self.know_composite(id, &before, 0);
        }
    }

    fn know_composite(&mut self, id: u32, before: &Composites, depth: usize) {
        let Some(user) = self.types.get(&id).cloned() else { return };
        let TypeKind::Composite(attributes) = &user.kind else { return };
        // A type that contains itself can only come from a damaged descriptor.
        if self.known.composites.contains_key(&oid_of(id)) || depth > self.types.len() {
            return;
        }
        let inner = attributes.iter().flat_map(|a| a.ty.element().into_iter().chain([&a.ty]));
        for ty in inner {
            if let SqlType::Composite(inner) = ty
                && let Some(inner) = id_of_oid(inner.oid)
            {
                self.know_composite(inner, before, depth + 1);
            }
        }
        let field = |a: &Attribute| {
            let ty = self.as_known(&a.ty).unwrap_or_else(|| a.ty.clone());
            let oid = self.declared_oid(&ty, a.refinement);
            CompositeField { oid, ..CompositeField::new(&a.name, ty) }
        };
        let schema = self.schema_by_id(user.schema).map_or(String::new(), |s| s.name.clone());
        let now = CompositeType::new(
            (oid_of(id), oid_of(user.array)),
            (schema, user.name.clone()),
            attributes.iter().map(field).collect(),
        );
        let kept = before.get(&now.oid).filter(|known| ***known == now).cloned();
        self.known.composites.insert(now.oid, kept.unwrap_or_else(|| Arc::new(now)));
    }

    /// Puts the types as they are now into the columns that have them.
    pub(crate) fn settle_columns(&mut self) {
        let Known { enums, ranges, composites } = &self.known;
        if enums.is_empty() && ranges.is_empty() && composites.is_empty() {
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
        self.settle_functions();
    }

    /// A type with what is known now; `None` if it says that already.
    pub fn as_known(&self, ty: &SqlType) -> Option<SqlType> {
        match ty {
            SqlType::Enum(old) => {
                let now = self.known.enums.get(&old.oid).filter(|now| !Arc::ptr_eq(now, old))?;
                Some(SqlType::Enum(now.clone()))
            }
            SqlType::Composite(old) => {
                let now =
                    self.known.composites.get(&old.oid).filter(|now| !Arc::ptr_eq(now, old))?;
                Some(SqlType::Composite(now.clone()))
            }
            SqlType::Range(kind) => self.known_range(kind).map(SqlType::Range),
            SqlType::Multirange(kind) => self.known_range(kind).map(SqlType::Multirange),
            SqlType::Array(element) => self.as_known(element).map(|e| SqlType::Array(Box::new(e))),
            _ => None,
        }
    }

    fn known_range(&self, kind: &RangeKind) -> Option<RangeKind> {
        let RangeKind::Made(old) = kind else { return None };
        let now = self.known.ranges.get(&old.one.oid).filter(|now| !Arc::ptr_eq(now, old))?;
        Some(RangeKind::Made(now.clone()))
    }
}

impl Column {
    /// Whether the column is declared with the type of this id, or with its arrays.
    pub fn names_type(&self, id: u32) -> bool {
        self.refinement.is_some_and(|refined| refined.names(id)) || is_type(&self.ty, oid_of(id))
    }

    /// Whether the column has the type of this id: as its domain, or anywhere in its values.
    pub fn has_type(&self, id: u32) -> bool {
        self.refinement.is_some_and(|refined| refined.names(id)) || uses_type(&self.ty, oid_of(id))
    }

    /// Its type modifier for clients.
    pub fn typmod(&self) -> i32 {
        let value = self.ty.element().unwrap_or(&self.ty);
        match (self.refinement, value) {
            (Some(Refined::Precision(digits)), SqlType::Interval) => {
                IntervalFields::typmod(None, Some(digits))
            }
            (Some(Refined::Fields(typmod)), _) => typmod,
            (Some(Refined::Precision(digits)), _) => i32::from(digits),
            _ => self.ty.typmod(),
        }
    }
}

impl Domain {
    /// The type modifier of its base type for clients.
    pub fn typmod(&self) -> i32 {
        match (self.fields, self.precision, &self.base) {
            (Some(typmod), ..) => typmod,
            (None, Some(digits), SqlType::Interval) => IntervalFields::typmod(None, Some(digits)),
            (None, Some(digits), _) => i32::from(digits),
            (None, None, base) => base.typmod(),
        }
    }
}

/// Whether values of a type hold values of the type with this oid.
pub fn uses_type(ty: &SqlType, oid: u32) -> bool {
    match ty {
        SqlType::Enum(user) => user.oid == oid,
        SqlType::Composite(user) => user.oid == oid || ty.parts().any(|part| uses_type(part, oid)),
        SqlType::Array(element) => uses_type(element, oid),
        SqlType::Range(_) | SqlType::Multirange(_) => is_type(ty, oid),
        _ => false,
    }
}

/// Whether a type is the one with this oid, that of its arrays, or that of several ranges of it.
pub fn is_type(ty: &SqlType, oid: u32) -> bool {
    match ty.element().unwrap_or(ty) {
        SqlType::Enum(user) => user.oid == oid,
        SqlType::Composite(user) => user.oid == oid,
        SqlType::Range(RangeKind::Made(user)) | SqlType::Multirange(RangeKind::Made(user)) => {
            user.one.oid == oid
        }
        _ => false,
    }
}
