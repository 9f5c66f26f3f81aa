//! braid-workload.
