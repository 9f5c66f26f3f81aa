//! Statements about transactions, sessions and the cluster.
//!
//! - [`transaction`]: BEGIN to ROLLBACK, SET, SHOW.
//! - [`cluster`]: CLUSTER SETTING, DENY QUERY and ALLOW QUERY.

pub(crate) mod cluster;
pub(crate) mod transaction;
