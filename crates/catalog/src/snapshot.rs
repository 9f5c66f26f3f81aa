//! [`Catalog`]: all descriptors at one moment, with lookups by id and by name.
//!
//! Cloning copies maps of shared descriptors; a schema change clones, edits and writes the
//! difference ([`crate::write_changes`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::access::{DefaultAcl, Notes, Role};
use crate::collations::UserCollation;
use crate::descriptor::{Database, Definition, Index, Schema, Sequence, Table, View};
use crate::functions::Function;
use crate::partitions::Lookout;
use crate::user_types::{Known, UserType};

/// A relation found by name.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table or a materialized view.
    Table(Arc<Table>),
    /// A view.
    View(Arc<View>),
    /// A sequence.
    Sequence(Arc<Sequence>),
    /// An index, with its table; that of a partition, with the partition as it is shown.
    Index(Arc<Table>, u32),
    /// A partition of a table: the window on it.
    Partition(Arc<Table>),
}

impl Relation {
    /// Object id.
    pub fn id(&self) -> u32 {
        match self {
            Relation::Table(t) => t.id,
            Relation::View(v) => v.id,
            Relation::Sequence(s) => s.id,
            Relation::Index(_, id) => *id,
            Relation::Partition(window) => window.shown_id(),
        }
    }

    /// `table`, `materialized view`, `view`, `sequence` or `index`, as messages say it.
    pub fn kind(&self) -> &'static str {
        match self {
            Relation::Table(t) | Relation::Partition(t) => t.kind(),
            Relation::View(_) => "view",
            Relation::Sequence(_) => "sequence",
            Relation::Index(..) => "index",
        }
    }
}

/// All descriptors at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Counts schema changes; equal versions of one store are equal catalogs.
    pub version: u64,
    pub(crate) databases: BTreeMap<u32, Arc<Database>>,
    pub(crate) schemas: BTreeMap<u32, Arc<Schema>>,
    pub(crate) tables: BTreeMap<u32, Arc<Table>>,
    pub(crate) views: BTreeMap<u32, Arc<View>>,
    pub(crate) sequences: BTreeMap<u32, Arc<Sequence>>,
    pub(crate) types: BTreeMap<u32, Arc<UserType>>,
    pub(crate) functions: BTreeMap<u32, Arc<Function>>,
    pub(crate) collations: BTreeMap<u32, Arc<UserCollation>>,
    pub(crate) roles: BTreeMap<u32, Arc<Role>>,
    pub(crate) default_acls: BTreeMap<u32, Arc<DefaultAcl>>,
    /// What is noted about objects, by their ids.
    pub(crate) notes: BTreeMap<u32, Arc<Notes>>,
    /// What values need of types.
    pub(crate) known: Known,
    /// Made anew of all that after each change.
    pub(crate) found: Lookups,
}

/// Lookups over descriptors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookups {
    /// (schema, name) -> relation id, indexes included.
    names: HashMap<(u32, String), u32>,
    /// index id -> table id.
    index_tables: HashMap<u32, u32>,
    /// table id -> tables and indexes directly interleaved in it.
    children: HashMap<u32, Vec<u32>>,
    /// table id -> tables with foreign keys to it.
    referencing: HashMap<u32, Vec<u32>>,
    /// By partition.
    pub(crate) lookouts: BTreeMap<u32, Lookout>,
    /// index id of a partition -> partition id.
    pub(crate) partition_indexes: HashMap<u32, u32>,
}

impl Catalog {
    /// Database by name.
    pub fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.values().find(|d| d.name == name)
    }

    /// Databases by id.
    pub fn databases(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.databases.values()
    }

    /// Schema by database and name.
    pub fn schema(&self, database: u32, name: &str) -> Option<&Arc<Schema>> {
        self.schemas.values().find(|s| s.database == database && s.name == name)
    }

    /// Schema by id.
    pub fn schema_by_id(&self, id: u32) -> Option<&Arc<Schema>> {
        self.schemas.get(&id)
    }

    /// Schemas of a database.
    pub fn schemas(&self, database: u32) -> impl Iterator<Item = &Arc<Schema>> {
        self.schemas.values().filter(move |s| s.database == database)
    }

    /// Table or materialized view by id.
    pub fn table(&self, id: u32) -> Option<&Arc<Table>> {
        self.tables.get(&id)
    }

    /// All tables and materialized views, of all databases.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }

    /// View by id.
    pub fn view(&self, id: u32) -> Option<&Arc<View>> {
        self.views.get(&id)
    }

    /// All views.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.views.values()
    }

    /// Views of both kinds: their ids and their queries.
    pub fn definitions(&self) -> impl Iterator<Item = (u32, &Definition)> {
        let kept = self.tables.values();
        let kept = kept.filter_map(|t| Some((t.id, &t.materialized()?.definition)));
        self.views.values().map(|v| (v.id, &v.definition)).chain(kept)
    }

    /// Sequence by id.
    pub fn sequence(&self, id: u32) -> Option<&Arc<Sequence>> {
        self.sequences.get(&id)
    }

    /// All sequences.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.sequences.values()
    }

    /// Table and index by index id (primary indexes included).
    pub fn index(&self, id: u32) -> Option<(&Arc<Table>, &Index)> {
        let table = self.tables.get(self.found.index_tables.get(&id)?)?;
        table.index(id).map(|i| (table, i))
    }

    /// Relation by schema id and name.
    pub fn relation(&self, schema: u32, name: &str) -> Option<Relation> {
        self.relation_by_id(*self.found.names.get(&(schema, name.to_string()))?)
    }

    /// Whether a name is in use in a schema, also by an index that is still being built.
    pub fn is_taken(&self, schema: u32, name: &str) -> bool {
        self.found.names.contains_key(&(schema, name.to_string()))
    }

    /// Relation by id.
    pub fn relation_by_id(&self, id: u32) -> Option<Relation> {
        if let Some(t) = self.tables.get(&id) {
            return Some(Relation::Table(t.clone()));
        }
        if let Some(v) = self.views.get(&id) {
            return Some(Relation::View(v.clone()));
        }
        if let Some(s) = self.sequences.get(&id) {
            return Some(Relation::Sequence(s.clone()));
        }
        if let Some(window) = self.partition(id) {
            return Some(Relation::Partition(window.clone()));
        }
        let of_table = || self.index(id);
        self.partition_index(id).or_else(of_table).map(|(t, i)| Relation::Index(t.clone(), i.id))
    }

    /// Relation by the schemas of a search path, in order.
    pub fn resolve(&self, database: u32, search_path: &[String], name: &str) -> Option<Relation> {
        search_path
            .iter()
            .filter_map(|s| self.schema(database, s))
            .find_map(|s| self.relation(s.id, name))
    }

    /// `(schema name, name)` of a relation.
    pub fn qualified_name(&self, id: u32) -> Option<(String, String)> {
        let (schema, name) = match self.relation_by_id(id)? {
            Relation::Table(t) | Relation::Partition(t) => (t.schema, t.name.clone()),
            Relation::View(v) => (v.schema, v.name.clone()),
            Relation::Sequence(s) => (s.schema, s.name.clone()),
            Relation::Index(t, id) => {
                let index = t.index(id)?;
                (t.schema_of(index), index.name.clone())
            }
        };
        Some((self.schemas.get(&schema)?.name.clone(), name))
    }

    /// Tables directly interleaved in this one, by id.
    pub fn interleaved_children(&self, table: u32) -> impl Iterator<Item = &Arc<Table>> {
        self.found.children.get(&table).into_iter().flatten().filter_map(|id| self.tables.get(id))
    }

    /// Whether this table, and no other table or index, is directly interleaved in `parent`.
    pub fn is_only_child(&self, parent: u32, table: u32) -> bool {
        self.found.children.get(&parent).is_some_and(|children| **children == [table])
    }

    /// Tables with at least one foreign key to this one (itself included), by id.
    pub fn referencing_tables(&self, table: u32) -> impl Iterator<Item = &Arc<Table>> {
        self.found
            .referencing
            .get(&table)
            .into_iter()
            .flatten()
            .filter_map(|id| self.tables.get(id))
    }

    /// Adds or replaces a database.
    pub fn put_database(&mut self, d: Database) {
        self.databases.insert(d.id, Arc::new(d));
    }

    /// Adds or replaces a schema.
    pub fn put_schema(&mut self, s: Schema) {
        self.schemas.insert(s.id, Arc::new(s));
        self.know_types();
        self.reindex();
    }

    /// Adds or replaces a table.
    pub fn put_table(&mut self, t: Table) {
        assert!(t.window().is_none(), "a window on a partition is no table to be kept");
        self.tables.insert(t.id, Arc::new(t));
        self.reindex();
    }

    /// Adds or replaces a view.
    pub fn put_view(&mut self, v: View) {
        self.views.insert(v.id, Arc::new(v));
        self.reindex();
    }

    /// Adds or replaces a sequence.
    pub fn put_sequence(&mut self, s: Sequence) {
        self.sequences.insert(s.id, Arc::new(s));
        self.reindex();
    }

    /// Removes an object of any kind (not an index: put its table back without it).
    pub fn remove(&mut self, id: u32) {
        self.databases.remove(&id);
        self.schemas.remove(&id);
        self.tables.remove(&id);
        self.views.remove(&id);
        self.sequences.remove(&id);
        self.functions.remove(&id);
        self.collations.remove(&id);
        if self.types.remove(&id).is_some() {
            self.know_types();
        }
        self.reindex();
    }

    /// Rebuilds the lookups. Schema changes are rare, so simple beats fast here.
    pub(crate) fn reindex(&mut self) {
        self.settle_columns();
        self.settle_collations();
        self.found.names.clear();
        self.found.index_tables.clear();
        self.found.children.clear();
        self.found.referencing.clear();
        self.found.lookouts.clear();
        self.found.partition_indexes.clear();
        for t in self.tables.values() {
            for p in t.partitioning().into_iter().flat_map(|p| &p.partitions) {
                self.found.lookouts.insert(p.id, Lookout::on(t));
                self.found.names.insert((p.schema, p.name.clone()), p.id);
                for i in &p.indexes {
                    self.found.partition_indexes.insert(i.id, p.id);
                    self.found.names.insert((p.schema, i.name.clone()), i.id);
                }
            }
            self.found.names.insert((t.schema, t.name.clone()), t.id);
            for i in t.all_indexes() {
                self.found.index_tables.insert(i.id, t.id);
                if let Some(of) = &i.of_partition {
                    self.found.partition_indexes.insert(i.id, of.partition);
                }
                // The index of a hidden row id has no name of its own in SQL.
                if !(i.id == t.primary.id && t.has_row_id()) {
                    self.found.names.insert((t.schema_of(i), i.name.clone()), i.id);
                }
            }
            if let Some(i) = &t.interleave {
                self.found.children.entry(i.parent).or_default().push(t.id);
            }
            if let Some((index, _)) = t.building_index() {
                self.found.names.insert((t.schema, index.name.clone()), index.id);
            }
            for fk in t.kept_foreign_keys() {
                let list = self.found.referencing.entry(fk.parent).or_default();
                if !list.contains(&t.id) {
                    list.push(t.id);
                }
            }
        }
        for v in self.views.values() {
            self.found.names.insert((v.schema, v.name.clone()), v.id);
        }
        for s in self.sequences.values() {
            self.found.names.insert((s.schema, s.name.clone()), s.id);
        }
    }
}
