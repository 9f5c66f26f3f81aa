//! The invariants of a catalog, checked after every schema change and by `braid debug check`.

use std::collections::HashSet;
use std::sync::Arc;

use braid_types::SqlType;

use crate::MAX_DEPTH;
use crate::descriptor::{Index, Refined, Table};
use crate::functions::same_types;
use crate::partitions::KeyPart;
use crate::snapshot::Catalog;
use crate::user_types::TypeKind;

impl Catalog {
    /// Every broken invariant in words; empty if all hold.
    pub fn check(&self) -> Vec<String> {
        let mut bad = Vec::new();
        self.check_names(&mut bad);
        for t in self.tables() {
            self.check_table(t, &mut bad);
            self.check_interleave(t, &mut bad);
        }
        for s in self.sequences() {
            if let Some((table, column)) = s.owned_by
                && self.table(table).and_then(|t| t.column(column)).is_none()
            {
                bad.push(format!("sequence {} is owned by a missing column", s.name));
            }
        }
        for ty in self.user_types() {
            if self.schema_by_id(ty.schema).is_none() {
                bad.push(format!("type {} is in missing schema {}", ty.name, ty.schema));
            }
            if self.type_in(ty.schema, &ty.name).is_none_or(|found| found.id != ty.id) {
                bad.push(format!("type name {} is used twice in schema {}", ty.name, ty.schema));
            }
        }
        self.check_types(&mut bad);
        self.check_functions(&mut bad);
        self.check_collations(&mut bad);
        for (view, definition) in self.definitions() {
            for id in &definition.depends_on {
                if self.relation_by_id(*id).is_none() && self.function(*id).is_none() {
                    let (_, name) = self.qualified_name(view).unwrap_or_default();
                    bad.push(format!("view {name} depends on missing relation {id}"));
                }
            }
        }
        bad
    }

    fn check_functions(&self, bad: &mut Vec<String>) {
        for f in self.functions() {
            if self.schema_by_id(f.schema).is_none() {
                bad.push(format!("function {} is in missing schema {}", f.shown(), f.schema));
            }
            let mut same = self.functions_in(f.schema, &f.name);
            if same.any(|g| g.id != f.id && same_types(&g.signature(), &f.signature())) {
                bad.push(format!("function {} is there twice", f.shown()));
            }
        }
    }

    fn check_names(&self, bad: &mut Vec<String>) {
        let mut seen = HashSet::new();
        let mut add = |schema: u32, name: &str| {
            if self.schema_by_id(schema).is_none() {
                bad.push(format!("relation {name} is in missing schema {schema}"));
            }
            if !seen.insert((schema, name.to_string())) {
                bad.push(format!("relation name {name} is used twice in schema {schema}"));
            }
        };
        for t in self.tables() {
            add(t.schema, &t.name);
            if let Some((index, _)) = t.building_index() {
                add(t.schema, &index.name);
            }
            for i in t.all_indexes() {
                if !(i.id == t.primary.id && t.has_row_id()) {
                    add(t.schema_of(i), &i.name);
                }
            }
        }
        for p in self.partitions() {
            add(p.schema, &p.name);
            p.indexes.iter().for_each(|i| add(p.schema, &i.name));
        }
        for v in self.views() {
            add(v.schema, &v.name);
        }
        for s in self.sequences() {
            add(s.schema, &s.name);
        }
        for s in self.schemas.values() {
            if !self.databases.contains_key(&s.database) {
                bad.push(format!("schema {} is in a missing database", s.name));
            }
        }
    }

    fn check_table(&self, t: &Arc<Table>, bad: &mut Vec<String>) {
        let name = &t.name;
        let mut ids = HashSet::new();
        for c in &t.columns {
            if !ids.insert(c.id) || c.id >= t.next_column {
                bad.push(format!("table {name}: column id {} is not fresh", c.id));
            }
            if let Some(s) = c.sequence
                && self.sequence(s).is_none()
            {
                bad.push(format!("table {name}: column {} has a missing sequence", c.name));
            }
            if self.is_missing(&c.ty) {
                bad.push(format!("table {name}: column {} has a missing type", c.name));
            }
            if let Some(Refined::Domain(domain) | Refined::Elements(domain)) = c.refinement
                && self.domain(domain).is_none()
            {
                bad.push(format!("table {name}: column {} has a missing domain", c.name));
            }
        }
        let building = t.building_index().map(|(index, _)| index);
        for i in t.all_indexes().chain(building) {
            let columns = i.columns.iter().map(|c| c.column).chain(i.include.iter().copied());
            if columns.into_iter().any(|c| !ids.contains(&c)) {
                bad.push(format!("table {name}: index {} names a missing column", i.name));
            }
            if let Some(anc) = i.interleave_in
                && !self.is_self_or_ancestor(anc, t)
            {
                bad.push(format!("table {name}: index {} lives in a stranger", i.name));
            }
        }
        self.check_partitions(t, &ids, bad);
        for c in &t.primary.columns {
            if t.column(c.column).is_some_and(|c| c.nullable) {
                bad.push(format!("table {name}: primary key column is nullable"));
            }
        }
        for fk in t.kept_foreign_keys() {
            let ok = self.table(fk.parent).is_some_and(|p| {
                fk.columns.len() == fk.parent_columns.len()
                    && fk.columns.iter().all(|c| ids.contains(c))
                    && fk.parent_columns.iter().all(|c| p.column(*c).is_some())
            });
            if !ok {
                bad.push(format!("table {name}: foreign key {} is broken", fk.name));
            }
        }
    }

    fn check_partitions(&self, t: &Table, columns: &HashSet<u32>, bad: &mut Vec<String>) {
        let Some(divided) = t.partitioning() else { return };
        let mut known = HashSet::from([t.id]);
        for p in &divided.partitions {
            if !known.contains(&p.parent) || divided.key_of(p.parent).is_none() {
                bad.push(format!("partition {} is in no partitioned table", p.name));
            }
            if !known.insert(p.id) {
                bad.push(format!("partition {} is in table {} twice", p.name, t.name));
            }
            for i in p.indexes.iter().filter(|i| t.index(i.of).is_none()) {
                bad.push(format!("partition {}: index {} is of a missing index", p.name, i.name));
            }
        }
        let keys = divided.partitions.iter().filter_map(|p| p.key.as_ref()).chain([&divided.key]);
        for part in keys.flat_map(|key| &key.parts) {
            if let KeyPart::Column(id) = part
                && !columns.contains(id)
            {
                bad.push(format!("table {}: partition key names a missing column", t.name));
            }
        }
        let own = |i: &Index| i.of_partition.as_ref().map(|of| of.partition);
        for i in t.indexes.iter().filter(|i| own(i).is_some_and(|p| !known.contains(&p))) {
            bad.push(format!("table {}: index {} is of a missing partition", t.name, i.name));
        }
    }

    /// Whether a type is one of users that is not here.
    fn is_missing(&self, ty: &SqlType) -> bool {
        match ty.element().unwrap_or(ty) {
            SqlType::Enum(ty) => self.sql_type_by_oid(ty.oid).is_none(),
            SqlType::Composite(ty) => self.sql_type_by_oid(ty.oid).is_none(),
            ty if let Some((range, _)) = ty.made_range() => {
                self.sql_type_by_oid(range.one.oid).is_none()
            }
            _ => false,
        }
    }

    fn check_types(&self, bad: &mut Vec<String>) {
        for user in self.user_types() {
            let TypeKind::Composite(attributes) = &user.kind else { continue };
            for a in attributes.iter().filter(|a| self.is_missing(&a.ty)) {
                bad.push(format!("type {}: field {} has a missing type", user.name, a.name));
            }
        }
    }

    fn check_interleave(&self, t: &Arc<Table>, bad: &mut Vec<String>) {
        let Some(i) = &t.interleave else { return };
        let Some(parent) = self.table(i.parent) else {
            bad.push(format!("table {}: interleave parent {} is missing", t.name, i.parent));
            return;
        };
        if self.chain(t).len() > MAX_DEPTH {
            bad.push(format!("table {}: interleave chain is a circle or too deep", t.name));
        }
        let ok = i.columns.len() == parent.primary.columns.len()
            && i.columns.len() <= t.primary.columns.len()
            && i.columns.iter().zip(&t.primary.columns).zip(&parent.primary.columns).all(
                |((own, key), theirs)| {
                    *own == key.column
                        && key.desc == theirs.desc
                        && t.column(key.column).map(|c| &c.ty)
                            == parent.column(theirs.column).map(|c| &c.ty)
                },
            );
        if !ok {
            bad.push(format!(
                "table {}: key does not start with the key of {}",
                t.name, parent.name
            ));
        }
    }
}
