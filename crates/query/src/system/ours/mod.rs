//! Tables of `pg_catalog` that PostgreSQL has not: about hierarchies, about the nodes of a cluster
//! and what holds on them, and about the transactions over them.

pub(super) mod families;
pub(super) mod nodes;
pub(super) mod settings;
pub(super) mod transactions;
