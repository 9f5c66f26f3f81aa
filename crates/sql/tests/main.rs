//! The tests of sessions and statements, in one executable: what is built once need not be linked
//! forty times. `cargo test --workspace --test sql copy::` runs those of a file.

mod harness;

mod advisory_locks;
mod batches;
mod cascades;
mod complaints;
mod concurrency;
mod copy;
mod cursors;
mod declarations;
mod deferrable_keys;
mod dump_checkpoints;
mod export;
mod expressions;
mod families;
mod following;
mod hierarchies;
mod import;
mod import_checkpoints;
mod import_dumps;
mod import_interrupted;
mod import_memory;
mod import_modes;
mod interleave_proposals;
mod key_spans;
mod large_writes;
mod linear;
mod messages;
mod moving_tables;
mod online_changes;
mod reclaim;
mod references;
mod relocation;
mod round_trip;
mod row_deletion;
mod schema_changes;
mod schema_leases;
mod schema_scripts;
mod sequences;
mod statement_registry;
mod statements;
mod statistics;
mod temporary_tables;
mod twins;
mod waiting;
