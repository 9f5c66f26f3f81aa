//! What exists: databases, schemas, tables, indexes, views, sequences, types, interleave
//! declarations.
//!
//! A [`Catalog`] is an immutable picture of all descriptors at one moment. Schema changes build a
//! new picture and write the changed descriptors through the same transaction that asked for
//! them, so a schema change commits, rolls back and is read at old timestamps like any row.
//!
//! ```text
//!   database 1 defaultdb
//!     schema 2 public
//!       table 100 customers            pk (id)                       generation 1
//!         table 101 orders             pk (id, order_id)  in parent 100, cascade
//!           table 103 lines            pk (id, order_id, line)  in parent 101, cascade
//!         index 104 orders_by_day on 101, interleaved in 100
//! ```
//!
//! Invariants (see [`Catalog::check`], run after every schema change):
//! 1. Every id named by a descriptor exists: schema of table, parent of interleave, foreign keys,
//!    types of columns.
//! 2. Names are unique inside their schema over tables, indexes, views and sequences; so are names
//!    of types over types.
//! 3. An interleaved table's primary key starts with its parent's: same count, types, directions.
//! 4. Interleave chains end, are acyclic and at most [`MAX_DEPTH`] levels deep.
//! 5. Ids are never used again, not even after a rollback.
//! 6. Partitions lie in the descriptor of their table; each is in the table, or in a partition that
//!    is divided itself.
//!
//! Not here: how a statement is parsed or run, how rows are encoded, who may do what.

mod access;
mod check;
mod collations;
mod conflict;
mod descriptor;
mod error;
mod extensions;
mod functions;
mod hierarchy;
mod keeper;
mod leases;
mod names;
mod operator_classes;
mod partitions;
mod publish;
mod snapshot;
mod store;
mod user_types;

pub use access::{
    BOOTSTRAP_NAME, BOOTSTRAP_ROLE, DefaultAcl, EVERY_DATABASE, Grant, Membership, Notes,
    PREDEFINED_ROLES, PUBLIC, Privileges, Role, RoleAttributes, Securable, change_acl,
};
pub use collations::UserCollation;
pub use conflict::{After, Lost};
pub use descriptor::{
    Addition, Building, Check, CheckOption, Column, ColumnOptions, Database, Declared, Deferral,
    Definition, ForeignKey, Identity, Index, IndexColumn, IndexConstraint, Interleave,
    InterleaveForm, Materialized, MissingValue, NOTES_GENERATION, OnCommit, RefAction, Refined,
    Reversed, Schema, Sequence, Table, Ttl, Upkeep, View,
};
pub use error::{kv_error, memory_error};
pub use extensions::{EXTENSIONS, Extension, Installed, ShownExtension};
pub use functions::{Function, Mode, Parameter, Remarks, Stability, same_types};
pub use hierarchy::MAX_DEPTH;
pub use keeper::SchemaLease;
pub use leases::recall_leases;
pub use names::{choose_constraint_name, choose_name, constraint_name};
pub use operator_classes::{
    OperatorClass, default_operator_class, operator_class, operator_classes,
};
pub use partitions::{
    KeyPart, Limit, OfPartition, Partition, PartitionBound, PartitionIndex, PartitionKey,
    Partitioning, Strategy,
};
pub use publish::{SeenBy, publish, stage, stage_over, with_own_changes, write_changes};
pub use snapshot::{Catalog, Relation};
pub use store::{
    bootstrap, change_lock_key, load_catalog, read_version, reserve_ids, table_lock_key,
};
pub use user_types::{
    Attribute, Domain, NamedType, RangeOf, TypeKind, UserType, is_type, uses_type,
};

/// The OID under which `pg_catalog` shows an object of this id. User objects start at 16384.
pub fn oid_of(id: u32) -> u32 {
    16_384 + id
}

/// The object id behind an OID of [`oid_of`], if it is one.
pub fn id_of_oid(oid: u32) -> Option<u32> {
    oid.checked_sub(16_384)
}
