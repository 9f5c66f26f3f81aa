//! Workloads that speak PostgreSQL's protocol, so that they run against BraidDB and PostgreSQL.
//!
//! - [`tpcc`]: the TPC-C schema as a hierarchy or flat, with its generator.
//! - [`tpch`]: the TPC-H queries, alone or beside PostgreSQL.
//! - [`interleave`]: the cost of a cascading delete, fast path against row by row; [`levels`]: of
//!   rows at any level of a deep hierarchy.
//! - [`differential`]: the same answers as PostgreSQL.
//! - [`history`]: random transactions and the question whether an isolation level allows what they
//!   saw.
//! - [`bank`]: transfers between accounts whose sum must never change, for crash tests.
//!
//! Everything is a function of a seed; what is printed is measured in the same run.

pub mod bank;
pub mod differential;
pub mod history;
pub mod interleave;
pub mod levels;
pub mod tpcc;
pub mod tpch;

/// What a workload failed with.
pub(crate) type WorkloadResult<T> = Result<T, postgres::Error>;
