//! Relations and their columns, those of the system itself too.
//!
//! - [`classes`]: rows of `pg_class`.
//! - [`attributes`]: rows of `pg_attribute`.
//! - [`of_system`]: what these and others say of `pg_catalog` and `information_schema`.
//! - [`mod@types_of_system`]: rows of `pg_type` that belong to those.

mod attributes;
mod classes;
mod of_system;
mod types_of_system;

pub(super) use attributes::pg_attribute;
pub(super) use classes::pg_class;
pub(super) use of_system::{
    Listed, SystemColumn, acl_of_system, declared, init_privileges, listed, listed_by_oid,
};
pub(super) use types_of_system::types_of_system;
