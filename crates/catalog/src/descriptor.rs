//! Descriptors: the durable facts about each object, as they are stored (JSON under system keys).
//!
//! Columns are named by ids that are never used again, in keys, values, indexes and constraints,
//! so that renaming and dropping a column changes only its table's descriptor.

use std::sync::Arc;

use braid_types::{Collated, Collation, SqlType};
use serde::{Deserialize, Serialize};

use crate::collations;
use crate::partitions::{OfPartition, Partitioning};

/// A database: a namespace of schemas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Database {
    /// Object id.
    pub id: u32,
    /// Name, unique in the cluster.
    pub name: String,
}

/// A schema: a namespace of relations inside a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Object id.
    pub id: u32,
    /// Database that holds it.
    pub database: u32,
    /// Name, unique in its database.
    pub name: String,
    /// `ON COMMIT` of temporary tables, by table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_commit: Vec<(u32, OnCommit)>,
}

/// What a row written before the column existed holds in it, in PostgreSQL's text form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingValue(pub String);

/// `GENERATED .. AS IDENTITY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// Values given by INSERT are refused.
    Always,
    /// Values given by INSERT win.
    ByDefault,
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Id inside the table, from 1, never used again; also `attnum` for clients.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Type with modifiers.
    pub ty: SqlType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// DEFAULT expression as SQL text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Value of rows written before the column was added; `None` is NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingValue>,
    /// Identity column: values come from `sequence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Sequence owned by the column (serial or identity).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// `GENERATED ALWAYS AS (expr) STORED` as SQL text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
    /// Not seen by `SELECT *` or clients: the row id of a table without a primary key, or an
    /// expression of an index.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// What an index holds instead of a column of the table, as SQL text: computed from the row
    /// whenever it is wanted, and never stored with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// `COMMENT ON COLUMN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// What its declared type asks of values beyond `ty`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refinement: Option<Refined>,
    /// `allow_commit_timestamp`: it can be given the time of the commit, and no time in the future.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commit_time: bool,
    /// What else is said of it.
    #[serde(flatten)]
    pub options: ColumnOptions,
}

/// What is said of a column that changes nothing of how its values are stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnOptions {
    /// `SET STATISTICS`: how much ANALYZE keeps of it, if not as much as the setting says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<u32>,
    /// COLLATE, if it is another than that of the database.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "collations::by_oid")]
    pub collation: Option<Arc<Collation>>,
}

impl Column {
    /// A column of which nothing else is known, and which may be NULL.
    pub fn new(id: u32, name: impl Into<String>, ty: SqlType) -> Column {
        Column {
            id,
            name: name.into(),
            ty,
            nullable: true,
            default: None,
            missing: None,
            identity: None,
            sequence: None,
            generated: None,
            hidden: false,
            expression: None,
            comment: None,
            refinement: None,
            commit_time: false,
            options: ColumnOptions::default(),
        }
    }

    /// The collation of its values.
    pub fn collated(&self) -> Collated {
        Collated::declared(self.options.collation.clone())
    }

    /// Whether it is the key of a table without a primary key.
    pub fn is_row_id(&self) -> bool {
        self.hidden && self.expression.is_none()
    }
}

/// What a declared type asks of values beyond the type that they are kept as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refined {
    /// So many digits of seconds.
    Precision(u8),
    /// Of intervals: the fields that are kept, and perhaps digits, as PostgreSQL's type modifier
    /// has them.
    Fields(i32),
    /// What the domain of this id says.
    Domain(u32),
    /// Of arrays: what it says of each element.
    Elements(u32),
}

impl Refined {
    /// Whether it is by the domain of this id.
    pub fn names(self, id: u32) -> bool {
        matches!(self, Refined::Domain(domain) | Refined::Elements(domain) if domain == id)
    }
}

/// One key column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Column id.
    pub column: u32,
    /// DESC.
    pub desc: bool,
    /// NULLS FIRST (the default of DESC).
    pub nulls_first: bool,
}

impl IndexColumn {
    /// Ascending, NULLS LAST.
    pub fn asc(column: u32) -> IndexColumn {
        IndexColumn { column, desc: false, nulls_first: false }
    }
}

/// The constraint behind a unique index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexConstraint {
    /// PRIMARY KEY.
    Primary,
    /// UNIQUE.
    Unique,
}

/// An index; the primary one is the table itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// Object id, from the same sequence as table ids.
    pub id: u32,
    /// Changes when all entries are thrown away at once.
    pub generation: u32,
    /// Name, unique in the table's schema.
    pub name: String,
    /// No two rows with equal keys, at any time: their entries would have the same key.
    pub unique: bool,
    /// No two rows with equal keys, but only when it is looked at: a DEFERRABLE constraint. Its
    /// entries are those of an index that is not unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferral: Option<Deferral>,
    /// NULLs count as equal for `unique`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nulls_not_distinct: bool,
    /// Key columns in order.
    pub columns: Vec<IndexColumn>,
    /// INCLUDE / STORING column ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<u32>,
    /// Table (ancestor or the table itself) inside whose rows the entries live; `None` = global.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleave_in: Option<u32>,
    /// `WHERE`: only rows for which this holds have entries. SQL text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<String>,
    /// Set if a constraint owns the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<IndexConstraint>,
    /// It is an index of one partition alone; then its predicate begins with the partition's
    /// condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_partition: Option<OfPartition>,
    /// It has no entries, and is never read: what it was declared as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<Declared>,
    /// It is an ordinary index, declared with another method or with operator classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Declared>,
}

/// What an index was declared as, where that is more than is here: kept for those who declared it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// The access method: `gin`, `gist` or `spgist` if it is never read, else `btree`, `hash` or
    /// `brin`.
    pub method: String,
    /// Operator classes of its columns, where they are named.
    pub classes: Vec<Option<String>>,
}

impl Index {
    /// Whether no two rows may have equal keys, now or in the end.
    pub fn is_unique(&self) -> bool {
        self.unique || self.deferral.is_some()
    }

    /// What it was declared as, if that is not an index with nothing but its columns.
    pub fn declaration(&self) -> Option<&Declared> {
        self.unread.as_ref().or(self.declared.as_ref())
    }

    /// The access method that it was declared with.
    pub fn method(&self) -> &str {
        self.declaration().map_or("btree", |declared| &declared.method)
    }

    /// The operator class that was named for the column of its key at a place.
    pub fn class_at(&self, at: usize) -> Option<&str> {
        self.declaration()?.classes.get(at)?.as_deref()
    }
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Constraint name.
    pub name: String,
    /// Expression as SQL text.
    pub expr: String,
    /// NOT VALID: rows that were there before it may violate it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_valid: bool,
    /// NO INHERIT: kept for those who ask for it, since no table inherits another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_inherit: bool,
}

/// What happens to a referencing row when the referenced one goes or changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefAction {
    /// Error if references remain at the end of the statement.
    #[default]
    NoAction,
    /// Error at once.
    Restrict,
    /// The referencing row goes or changes too.
    Cascade,
    /// The referencing columns become NULL.
    SetNull,
    /// The referencing columns become their defaults.
    SetDefault,
}

impl RefAction {
    /// SQL text.
    pub fn sql(self) -> &'static str {
        match self {
            RefAction::NoAction => "NO ACTION",
            RefAction::Restrict => "RESTRICT",
            RefAction::Cascade => "CASCADE",
            RefAction::SetNull => "SET NULL",
            RefAction::SetDefault => "SET DEFAULT",
        }
    }
}

/// A FOREIGN KEY constraint, kept with the referencing table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Constraint name.
    pub name: String,
    /// Object id (for `pg_constraint`).
    pub id: u32,
    /// Referencing column ids.
    pub columns: Vec<u32>,
    /// Referenced table.
    pub parent: u32,
    /// Referenced column ids, in the order of `columns`.
    pub parent_columns: Vec<u32>,
    /// ON DELETE.
    pub on_delete: RefAction,
    /// Ids of the columns that SET NULL or SET DEFAULT of ON DELETE is about, if not all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_on_delete: Vec<u32>,
    /// ON UPDATE.
    pub on_update: RefAction,
    /// MATCH FULL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub match_full: bool,
    /// DEFERRABLE: its checks may wait for the end of the transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferral: Option<Deferral>,
    /// NOT VALID: rows that were there before it may refer to none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_valid: bool,
}

/// What INITIALLY says of a DEFERRABLE constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deferral {
    /// IMMEDIATE: checked with each statement, unless SET CONSTRAINTS says otherwise.
    Immediate,
    /// DEFERRED: checked at the end of the transaction, unless SET CONSTRAINTS says otherwise.
    Deferred,
}

/// How an interleaving was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InterleaveForm {
    /// `INTERLEAVE IN PARENT p [(cols)] ON DELETE ..`, or without a column list: the parent row
    /// must exist.
    Enforced,
    /// `INTERLEAVE IN PARENT p (cols)` without ON DELETE: layout only, constraints come from
    /// foreign keys (CockroachDB's meaning).
    Columns,
    /// `INTERLEAVE IN p`: layout only.
    Locality,
}

/// A table's place inside its parent's rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interleave {
    /// Parent table.
    pub parent: u32,
    /// How it was declared.
    pub form: InterleaveForm,
    /// ON DELETE; meaningful for [`InterleaveForm::Enforced`] only: NO ACTION, RESTRICT, CASCADE.
    pub on_delete: RefAction,
    /// Own key columns that hold the parent's key, in the parent's order.
    pub columns: Vec<u32>,
}

impl Interleave {
    /// Whether the parent row must exist.
    pub fn enforced(&self) -> bool {
        self.form == InterleaveForm::Enforced
    }
}

/// What a commit does to a temporary table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCommit {
    /// DROP.
    Drop,
    /// DELETE ROWS.
    DeleteRows,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Object id; also in the keys of its rows.
    pub id: u32,
    /// Schema that holds it.
    pub schema: u32,
    /// Name.
    pub name: String,
    /// Changes when all rows are thrown away at once (TRUNCATE): part of the rows' keys.
    pub generation: u32,
    /// Columns in order of creation.
    pub columns: Vec<Column>,
    /// Next column id.
    pub next_column: u32,
    /// Primary index. Its id is its own object id (for clients); rows' keys carry the table's id.
    pub primary: Index,
    /// Secondary indexes, by creation.
    pub indexes: Vec<Index>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// Foreign keys of this table to others.
    pub foreign_keys: Vec<ForeignKey>,
    /// Place inside a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleave: Option<Interleave>,
    /// `COMMENT ON TABLE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Counts the steps of changes that do not keep writers out. Statements lock the table's shape
    /// at the step they were planned with.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub step: u32,
    /// What such a change is adding at the moment: writers keep it, readers do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub building: Option<Building>,
    /// What makes and deletes its rows besides those who write to it.
    #[serde(flatten)]
    pub upkeep: Upkeep,
}

/// What makes and deletes a table's rows besides those who write to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Upkeep {
    /// Which rows are too old to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    /// It is a materialized view: all its rows are those of a query, as of the last REFRESH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialized: Option<Materialized>,
    /// Its rows are divided into partitions.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::partitions::shared")]
    pub partitioning: Option<Arc<Partitioning>>,
    /// DISABLE TRIGGER ALL: foreign keys of its rows and to its rows are not asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unguarded: bool,
    /// It is the table as seen through this partition; never stored.
    #[serde(skip)]
    pub window: Option<u32>,
}

/// What makes a table a materialized view. Its visible columns are those of the query, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Materialized {
    /// Its query.
    #[serde(flatten)]
    pub definition: Definition,
    /// Whether there are rows of the query; otherwise nobody may read.
    pub populated: bool,
}

/// The query of a view, kept as text and bound when used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Query as SQL text.
    pub query: String,
    /// Ids of relations that the query names.
    pub depends_on: Vec<u32>,
    /// Search path at creation, by which the query's names are resolved.
    pub search_path: Vec<String>,
}

/// A row deletion policy: rows go when a column is older than an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ttl {
    /// The column, by id.
    pub column: u32,
    /// The interval as text.
    pub interval: String,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Something that a schema change is adding to a table while others write to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Building {
    /// The job that adds it.
    pub job: u32,
    /// What it is.
    pub addition: Addition,
}

/// What a [`Building`] will be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addition {
    /// A secondary index.
    Index {
        /// As it will be.
        index: Index,
        /// `true`: writers leave its entries alone, since those of older rows come later at an
        /// older timestamp, and note which of them they would have written or deleted.
        /// `false`: writers keep its entries, as those of any index.
        noting: bool,
        /// Columns that stand for its expressions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        expressions: Vec<Column>,
    },
    /// A CHECK constraint, enforced for new rows.
    Check(Check),
    /// A foreign key, enforced for new rows.
    ForeignKey(ForeignKey),
    /// NOT NULL of a column, enforced for new rows.
    NotNull(u32),
}

/// Generation of an index whose place in key space holds the notes about it while it is built.
pub const NOTES_GENERATION: u32 = 2;

impl Table {
    /// What makes it a materialized view; `None` for a table.
    pub fn materialized(&self) -> Option<&Materialized> {
        self.upkeep.materialized.as_ref()
    }

    /// `table` or `materialized view`, as messages say it.
    pub fn kind(&self) -> &'static str {
        match self.materialized() {
            Some(_) => "materialized view",
            None => "table",
        }
    }

    /// CHECK constraints that writers keep.
    pub fn kept_checks(&self) -> impl Iterator<Item = &Check> {
        let building = match &self.building {
            Some(Building { addition: Addition::Check(check), .. }) => Some(check),
            _ => None,
        };
        self.checks.iter().chain(building)
    }

    /// Foreign keys that writers keep.
    pub fn kept_foreign_keys(&self) -> impl Iterator<Item = &ForeignKey> {
        let building = match &self.building {
            Some(Building { addition: Addition::ForeignKey(fk), .. }) => Some(fk),
            _ => None,
        };
        self.foreign_keys.iter().chain(building)
    }

    /// Whether writers may put NULL into a column.
    pub fn takes_null(&self, column: &Column) -> bool {
        let building = match &self.building {
            Some(Building { addition: Addition::NotNull(id), .. }) => *id == column.id,
            _ => false,
        };
        column.nullable && !building
    }

    /// The index that is being built, and whether writers only note what it would hold.
    pub fn building_index(&self) -> Option<(&Index, bool)> {
        match &self.building {
            Some(Building { addition: Addition::Index { index, noting, .. }, .. }) => {
                Some((index, *noting))
            }
            _ => None,
        }
    }

    /// Whether those who read by an older descriptor of the table read the same as by this one. Its
    /// indexes must still be kept: what is not in them any more would go unnoticed.
    pub(crate) fn reads_like(&self, old: &Table) -> bool {
        let as_read = |t: &Table| {
            let read = |c: Column| {
                let options = ColumnOptions { statistics: None, ..c.options };
                Column { nullable: true, options, ..c }
            };
            let columns = t.columns.iter().filter(|c| c.expression.is_none()).cloned().map(read);
            Table {
                columns: columns.collect(),
                indexes: Vec::new(),
                checks: Vec::new(),
                foreign_keys: Vec::new(),
                comment: None,
                step: 0,
                building: None,
                upkeep: Upkeep { ttl: None, unguarded: false, ..t.upkeep.clone() },
                next_column: 0,
                ..t.clone()
            }
        };
        as_read(self) == as_read(old) && old.indexes.iter().all(|i| self.indexes.contains(i))
    }

    /// Whether a constraint of this name is here, one behind an index included.
    pub fn has_constraint(&self, name: &str) -> bool {
        let index =
            |i: &Index| i.name == name && (i.constraint.is_some() || i.id == self.primary.id);
        self.all_indexes().any(index)
            || self.checks.iter().any(|c| c.name == name)
            || self.foreign_keys.iter().any(|f| f.name == name)
    }

    /// Column by id.
    pub fn column(&self, id: u32) -> Option<&Column> {
        self.columns.iter().find(|c| c.id == id)
    }

    /// Position in `columns` by id.
    pub fn ordinal(&self, id: u32) -> Option<usize> {
        self.columns.iter().position(|c| c.id == id)
    }

    /// Column by name; hidden ones are not found.
    pub fn column_named(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name && !c.hidden)
    }

    /// Columns that users see.
    pub fn visible_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|c| !c.hidden)
    }

    /// Whether the user declared no primary key, so that a hidden row id is the key.
    pub fn has_row_id(&self) -> bool {
        self.columns.iter().any(|c| c.is_row_id())
    }

    /// What a column of a key is called: its name, or the expression that it stands for.
    pub fn key_name(&self, id: u32) -> &str {
        self.column(id).map_or("", |c| c.expression.as_deref().unwrap_or(&c.name))
    }

    /// Adds the columns that stand for an index's expressions, unless they are there.
    pub fn adopt(&mut self, expressions: &[Column]) {
        for c in expressions {
            if self.column(c.id).is_none() {
                self.next_column = self.next_column.max(c.id + 1);
                self.columns.push(c.clone());
            }
        }
    }

    /// Removes columns that stand for expressions of indexes that are gone.
    pub fn forget_expressions(&mut self) {
        let building = self.building_index().map(|(index, _)| index);
        let used: Vec<u32> = self
            .indexes
            .iter()
            .chain(building)
            .flat_map(|i| &i.columns)
            .map(|k| k.column)
            .collect();
        self.columns.retain(|c| c.expression.is_none() || used.contains(&c.id));
    }

    /// Ids of the primary key's columns in order.
    pub fn key_columns(&self) -> Vec<u32> {
        self.primary.columns.iter().map(|c| c.column).collect()
    }

    /// Index by id, the primary one included.
    pub fn index(&self, id: u32) -> Option<&Index> {
        self.all_indexes().find(|i| i.id == id)
    }

    /// The primary index and then the secondary ones.
    pub fn all_indexes(&self) -> impl Iterator<Item = &Index> {
        std::iter::once(&self.primary).chain(self.indexes.iter())
    }
}

/// A view: a query with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Object id.
    pub id: u32,
    /// Schema that holds it.
    pub schema: u32,
    /// Name.
    pub name: String,
    /// Its query.
    #[serde(flatten)]
    pub definition: Definition,
    /// Names and types of the columns at creation.
    pub columns: Vec<(String, SqlType)>,
    /// Oids of their collations, where these are others than that of the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collations: Vec<Option<u32>>,
    /// WITH CHECK OPTION.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_option: Option<CheckOption>,
    /// `COMMENT ON VIEW`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Which conditions must hold for rows that are written through a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOption {
    /// LOCAL: its own.
    Local,
    /// CASCADED: its own, and those of all views behind it.
    Cascaded,
}

impl CheckOption {
    /// SQL text.
    pub fn sql(self) -> &'static str {
        match self {
            CheckOption::Local => "LOCAL",
            CheckOption::Cascaded => "CASCADED",
        }
    }
}

/// A sequence; its current value lives in a key of its own, outside transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// Object id.
    pub id: u32,
    /// Schema that holds it.
    pub schema: u32,
    /// Name.
    pub name: String,
    /// Type of its values: int2, int4 or int8.
    pub ty: SqlType,
    /// First value.
    pub start: i64,
    /// Step, not zero.
    pub increment: i64,
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
    /// Starts over at the bound.
    pub cycle: bool,
    /// CACHE.
    pub cache: i64,
    /// Changes at RESTART and TRUNCATE .. RESTART IDENTITY: the value key carries it.
    pub generation: u32,
    /// Table and column that own it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owned_by: Option<(u32, u32)>,
    /// Its values are those of a counter with their bits in reverse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reversed: Option<Reversed>,
}

/// A sequence whose values lie far from each other: `BIT_REVERSED_POSITIVE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reversed {
    /// Values that are left out, both ends included.
    pub skip: Option<(i64, i64)>,
}

impl Reversed {
    /// The value of a positive counter: its 63 lowest bits, the lowest one first. `None` if it is
    /// left out.
    pub fn value(&self, counter: i64) -> Option<i64> {
        let value = ((counter as u64).reverse_bits() >> 1) as i64;
        self.skip.is_none_or(|(least, most)| value < least || value > most).then_some(value)
    }
}
