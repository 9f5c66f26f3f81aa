//! The tests of general queries, in one executable: with the engine of queries in it, each that is
//! built costs more than most of them run. `cargo test --workspace --test query answers::` runs
//! those of a file.

mod harness;

mod answers;
mod as_postgres;
mod cascade_paths;
mod catalog;
mod columns;
mod commit_time_keys;
mod commit_timestamps;
mod dialects;
mod dump_moves;
mod error_positions;
mod estimates;
mod explain;
mod explain_forms;
mod exported_views;
mod forms;
mod groups;
mod hierarchy_views;
mod index_rows;
mod join_order;
mod kept_plans;
mod language;
mod large_tables;
mod locking_reads;
mod lookups;
mod materialized_views;
mod merge;
mod numbers;
mod queries;
mod queues;
mod read_parts;
mod reference;
mod row_statistics;
mod row_values;
mod runtime_views;
mod semi;
mod shapes;
mod shared_parts;
mod side_by_side;
mod slow_log;
mod spanner_article;
mod spellings;
mod sql_functions;
mod statement_statistics;
mod subqueries;
mod transaction_statistics;
mod values;
mod whole_families;
mod writing_with;
