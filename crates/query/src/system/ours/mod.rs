//! Tables of `pg_catalog` that PostgreSQL has not: about hierarchies, and about the nodes of a
//! cluster.

pub(super) mod families;
pub(super) mod nodes;
