//! Partitions: named parts of one table, each with a bound on the table's partition key.
//!
//! The partitioned table holds all rows. A partition holds none: its descriptor lies inside of the
//! table's, and under its name the table is seen through a *window* ([`Catalog::partition`]): a
//! descriptor with the table's ids, so that rows and index entries have the same keys, and with the
//! partition's name, defaults and names of indexes.
//!
//! ```text
//!   table events (at date, ..)  RANGE (at)
//!     partition e24             FROM ('2024-01-01') TO ('2025-01-01')
//!     partition e25             FROM ('2025-01-01') TO ('2026-01-01'), itself LIST (kind)
//!       partition e25_clicks    IN ('click')
//!     partition rest            DEFAULT
//! ```
//!
//! What values are within a bound, and where a row belongs, is `sql`'s to say: values are kept as
//! text here.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::descriptor::{Check, Index, Table};
use crate::snapshot::Catalog;

/// How a key divides rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Each partition has its values.
    List,
    /// Each partition has the values from one bound up to another.
    Range,
    /// Each partition has the values whose hash leaves its remainder.
    Hash,
}

impl Strategy {
    /// As SQL and `pg_get_partkeydef` say it.
    pub fn sql(self) -> &'static str {
        match self {
            Strategy::List => "LIST",
            Strategy::Range => "RANGE",
            Strategy::Hash => "HASH",
        }
    }
}

/// One part of a partition key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyPart {
    /// A column, by id.
    Column(u32),
    /// An expression, as SQL text.
    Expression(String),
}

/// What decides to which partition a row belongs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionKey {
    /// How.
    pub strategy: Strategy,
    /// By what.
    pub parts: Vec<KeyPart>,
}

/// One value of a bound of a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// MINVALUE: below all values.
    Min,
    /// A value in its text form.
    Value(String),
    /// MAXVALUE: above all values.
    Max,
}

/// What a partition's rows have in common. Values are in PostgreSQL's text form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionBound {
    /// The key is one of these; `None` is NULL.
    List(Vec<Option<String>>),
    /// The key is in `[from, to)`.
    Range {
        /// The first one.
        from: Vec<Limit>,
        /// The first one that is not in it.
        to: Vec<Limit>,
    },
    /// The key's hash leaves this remainder.
    Hash {
        /// What the hash is divided by.
        modulus: u32,
        /// What is left.
        remainder: u32,
    },
    /// The key is in no other partition.
    Default,
}

/// The name that an index of the table has as a partition's index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionIndex {
    /// Object id.
    pub id: u32,
    /// Name, in the partition's schema.
    pub name: String,
    /// The table's index.
    pub of: u32,
}

/// What makes an index one of a partition alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfPartition {
    /// The partition.
    pub partition: u32,
    /// `WHERE` as it was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<String>,
}

/// A partition of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partition {
    /// Object id.
    pub id: u32,
    /// Schema that holds it.
    pub schema: u32,
    /// Name.
    pub name: String,
    /// What it is a partition of: the table, or a partition of it.
    pub parent: u32,
    /// Which rows of that are in it.
    pub bound: PartitionBound,
    /// How it is divided itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PartitionKey>,
    /// Defaults of rows that are inserted under its name, where they differ from the table's;
    /// `None` is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<(u32, Option<String>)>,
    /// CHECK constraints that only its rows keep to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Its names of the table's indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<PartitionIndex>,
}

impl Partition {
    /// Whether a CHECK constraint is its own, and not the table's.
    pub fn has_check(&self, name: &str) -> bool {
        self.checks.iter().any(|k| k.name == name)
    }
}

/// How a table is divided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partitioning {
    /// By what.
    pub key: PartitionKey,
    /// All partitions, those of partitions included; parents first.
    #[serde(default)]
    pub partitions: Vec<Partition>,
}

impl Partitioning {
    /// A partition by id.
    pub fn partition(&self, id: u32) -> Option<&Partition> {
        self.partitions.iter().find(|p| p.id == id)
    }

    /// A partition by id, to be changed.
    pub fn partition_mut(&mut self, id: u32) -> Option<&mut Partition> {
        self.partitions.iter_mut().find(|p| p.id == id)
    }

    /// Partitions of the table or of a partition.
    pub fn partitions_of(&self, parent: u32) -> impl Iterator<Item = &Partition> {
        self.partitions.iter().filter(move |p| p.parent == parent)
    }

    /// The default partition of the table or of a partition.
    pub fn default_of(&self, parent: u32) -> Option<&Partition> {
        self.partitions_of(parent).find(|p| p.bound == PartitionBound::Default)
    }

    /// How the table or a partition of it is divided; `None` for a partition that is not.
    pub fn key_of(&self, id: u32) -> Option<&PartitionKey> {
        match self.partition(id) {
            Some(p) => p.key.as_ref(),
            None => Some(&self.key),
        }
    }

    /// A partition and all that it is a part of, the table excluded; from the inside.
    pub fn upwards(&self, id: u32) -> Vec<&Partition> {
        let mut out = Vec::new();
        let mut next = self.partition(id);
        while let Some(p) = next {
            out.push(p);
            next = self.partition(p.parent);
        }
        out
    }

    /// A partition with the partitions of it, parents first.
    pub fn downwards(&self, id: u32) -> Vec<&Partition> {
        let mut out: Vec<&Partition> = self.partition(id).into_iter().collect();
        let mut at = 0;
        while at < out.len() {
            let parent = out[at].id;
            out.extend(self.partitions_of(parent));
            at += 1;
        }
        out
    }
}

/// How descriptors keep what their copies share: all windows on a table have its partitions.
pub(crate) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Partitioning;

    pub(crate) fn serialize<S: Serializer>(
        kept: &Option<Arc<Partitioning>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        kept.as_deref().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Arc<Partitioning>>, D::Error> {
        Ok(Option::deserialize(from)?.map(Arc::new))
    }
}

impl Table {
    /// How it is divided; `None` for most tables. The same for a window on a partition of it.
    pub fn partitioning(&self) -> Option<&Partitioning> {
        self.upkeep.partitioning.as_deref()
    }

    /// As [`Table::partitioning`], to be changed.
    pub fn partitioning_mut(&mut self) -> Option<&mut Partitioning> {
        self.upkeep.partitioning.as_mut().map(Arc::make_mut)
    }

    /// The partition that this window is for; `None` for a table.
    pub fn window(&self) -> Option<&Partition> {
        self.partitioning()?.partition(self.upkeep.window?)
    }

    /// Whether its rows are all in partitions of it.
    pub fn is_divided(&self) -> bool {
        self.partitioning().is_some_and(|d| d.key_of(self.shown_id()).is_some())
    }

    /// The id that this is shown under: the partition's for a window on one.
    pub fn shown_id(&self) -> u32 {
        self.upkeep.window.unwrap_or(self.id)
    }

    /// Indexes that clients are shown: not the one of a hidden row id, and none of a partition
    /// alone.
    pub fn shown_indexes(&self) -> impl Iterator<Item = &Index> {
        let hidden = self.has_row_id() || self.primary.id == self.id;
        self.all_indexes()
            .filter(move |i| !(hidden && i.id == self.primary.id) && i.of_partition.is_none())
    }

    /// The schema of an index: the table's, or that of the partition that it is of.
    pub fn schema_of(&self, index: &Index) -> u32 {
        let of = index.of_partition.as_ref();
        let partition = of.and_then(|of| self.partitioning()?.partition(of.partition));
        partition.map_or(self.schema, |p| p.schema)
    }
}

/// A partition of a table that nobody has looked at, or has.
#[derive(Clone, Debug)]
pub(crate) struct Lookout {
    table: Arc<Table>,
    window: OnceLock<Window>,
}

impl Lookout {
    pub(crate) fn on(table: &Arc<Table>) -> Lookout {
        Lookout { table: table.clone(), window: OnceLock::new() }
    }

    /// The window on the partition of this id, which the table has.
    fn window(&self, id: u32) -> &Window {
        self.window.get_or_init(|| {
            let partition = self.table.partitioning().and_then(|d| d.partition(id));
            Window::new(&self.table, partition.expect("a partition of the table"))
        })
    }
}

/// A partition as a table. Made when somebody looks: there may be very many of them, and each is
/// about as large as the table's descriptor.
#[derive(Clone, Debug)]
struct Window {
    /// The table as it is seen through the partition: with the table's ids.
    seen: Arc<Table>,
    /// The partition as clients are shown it: with ids of its own.
    shown: Arc<Table>,
}

impl Window {
    fn new(table: &Table, partition: &Partition) -> Window {
        let mut seen = table.clone();
        seen.upkeep.window = Some(partition.id);
        seen.name = partition.name.clone();
        seen.schema = partition.schema;
        seen.comment = None;
        seen.columns.iter_mut().for_each(|c| c.comment = None);
        for (column, default) in &partition.defaults {
            for c in seen.columns.iter_mut().filter(|c| c.id == *column) {
                c.default = default.clone();
                c.sequence = None;
            }
        }
        let inside = table.partitioning().map(|d| d.upwards(partition.id)).unwrap_or_default();
        seen.checks.extend(inside.iter().flat_map(|p| p.checks.iter().cloned()));
        for own in &partition.indexes {
            let primary = std::iter::once(&mut seen.primary);
            for i in primary.chain(&mut seen.indexes).filter(|i| i.id == own.of) {
                i.name = own.name.clone();
            }
        }
        let shown = shown(&seen, partition);
        Window { seen: Arc::new(seen), shown: Arc::new(shown) }
    }
}

fn shown(seen: &Table, partition: &Partition) -> Table {
    let mut shown = seen.clone();
    shown.id = partition.id;
    // Those of the table are the ones that are kept.
    shown.foreign_keys.clear();
    let own_id = |of: u32| partition.indexes.iter().find(|i| i.of == of).map(|i| i.id);
    match own_id(seen.primary.id) {
        Some(id) => shown.primary.id = id,
        // No index is of this id.
        None => shown.primary.id = partition.id,
    }
    shown.indexes.clear();
    for i in &seen.indexes {
        let own = i.of_partition.as_ref().filter(|of| of.partition == partition.id);
        let Some(id) = own_id(i.id).or(own.map(|_| i.id)) else { continue };
        let predicate = match &i.of_partition {
            Some(of) => of.predicate.clone(),
            None => i.predicate.clone(),
        };
        shown.indexes.push(Index { id, predicate, of_partition: None, ..i.clone() });
    }
    shown
}

impl Catalog {
    fn windows(&self) -> impl Iterator<Item = &Window> {
        self.found.lookouts.iter().map(|(id, lookout)| lookout.window(*id))
    }

    fn window(&self, partition: u32) -> Option<&Window> {
        Some(self.found.lookouts.get(&partition)?.window(partition))
    }

    /// The window on a partition: its table as it is seen through it.
    pub fn partition(&self, id: u32) -> Option<&Arc<Table>> {
        self.window(id).map(|w| &w.seen)
    }

    /// Whether there is a partition of this id.
    pub fn has_partition(&self, id: u32) -> bool {
        self.found.lookouts.contains_key(&id)
    }

    /// All partitions.
    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.tables().flat_map(|t| t.partitioning().map_or(&[][..], |d| &d.partitions))
    }

    /// All partitions as clients are shown them: as tables with ids and indexes of their own. Not
    /// to be read or written by.
    pub fn shown_partitions(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.windows().map(|w| &w.shown)
    }

    /// A partition as clients are shown it, by the id of an index of it.
    pub fn partition_index(&self, id: u32) -> Option<(&Arc<Table>, &Index)> {
        let shown = &self.window(*self.found.partition_indexes.get(&id)?)?.shown;
        Some((shown, shown.index(id)?))
    }

    /// A table or a partition as clients are shown it.
    pub fn shown_table(&self, id: u32) -> Option<&Arc<Table>> {
        self.table(id).or_else(|| self.window(id).map(|w| &w.shown))
    }
}
