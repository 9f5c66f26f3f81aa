//! Settings of PostgreSQL that mean nothing here: hints to its planner, its files, its vacuum.
//! Clients, dumps and migrations set them, so they are kept and shown. What is no value of theirs
//! is refused as there; so are settings whose meaning would be missed.

use braid_types::SqlResult;

use super::values::{duration_ms, invalid, memory_bytes, one_of, switch};

/// What a value looks like.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// `on` or `off`.
    Switch,
    /// A number without a unit.
    Number,
    /// A number, or one with a unit of time.
    Time,
    /// A number, or one with a unit of size.
    Size,
    /// One of these.
    Word(&'static [&'static str]),
    /// Anything.
    Text,
}

impl Form {
    /// What `pg_settings` calls it.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Switch => "bool",
            Number => "real",
            Time | Size => "integer",
            Word(_) => "enum",
            Text => "string",
        }
    }
}

use Form::{Number, Size, Switch, Text, Time, Word};

/// Name, default, form.
pub(super) const WITHOUT_MEANING: &[(&str, &str, Form)] = &[
    ("backend_flush_after", "0", Size),
    ("client_connection_check_interval", "0", Time),
    ("commit_delay", "0", Number),
    ("commit_siblings", "5", Number),
    ("constraint_exclusion", "partition", Word(&["partition", "on", "off"])),
    ("cpu_index_tuple_cost", "0.005", Number),
    ("cpu_operator_cost", "0.0025", Number),
    ("cpu_tuple_cost", "0.01", Number),
    ("cursor_tuple_fraction", "0.1", Number),
    ("deadlock_timeout", "1s", Time),
    ("default_text_search_config", "pg_catalog.english", Text),
    ("default_toast_compression", "pglz", Word(&["pglz", "lz4"])),
    ("effective_cache_size", "4GB", Size),
    ("effective_io_concurrency", "1", Number),
    ("enable_async_append", "on", Switch),
    ("enable_bitmapscan", "on", Switch),
    ("enable_gathermerge", "on", Switch),
    ("enable_hashagg", "on", Switch),
    ("enable_hashjoin", "on", Switch),
    ("enable_incremental_sort", "on", Switch),
    ("enable_indexonlyscan", "on", Switch),
    ("enable_indexscan", "on", Switch),
    ("enable_material", "on", Switch),
    ("enable_memoize", "on", Switch),
    ("enable_mergejoin", "on", Switch),
    ("enable_nestloop", "on", Switch),
    ("enable_parallel_append", "on", Switch),
    ("enable_parallel_hash", "on", Switch),
    ("enable_partition_pruning", "on", Switch),
    ("enable_partitionwise_aggregate", "off", Switch),
    ("enable_partitionwise_join", "off", Switch),
    ("enable_seqscan", "on", Switch),
    ("enable_sort", "on", Switch),
    ("enable_tidscan", "on", Switch),
    ("force_parallel_mode", "off", Word(&["off", "on", "regress"])),
    ("from_collapse_limit", "8", Number),
    ("geqo_effort", "5", Number),
    ("geqo_generations", "0", Number),
    ("geqo_pool_size", "0", Number),
    ("geqo_seed", "0", Number),
    ("geqo_selection_bias", "2", Number),
    ("geqo_threshold", "12", Number),
    ("geqo", "on", Switch),
    ("gin_fuzzy_search_limit", "0", Number),
    ("gin_pending_list_limit", "4MB", Size),
    ("hash_mem_multiplier", "2", Number),
    ("jit_above_cost", "100000", Number),
    ("jit_dump_bitcode", "off", Switch),
    ("jit_expressions", "on", Switch),
    ("jit_inline_above_cost", "500000", Number),
    ("jit_optimize_above_cost", "500000", Number),
    ("jit_tuple_deforming", "on", Switch),
    ("jit", "on", Switch),
    ("join_collapse_limit", "8", Number),
    ("lo_compat_privileges", "off", Switch),
    ("logical_decoding_work_mem", "64MB", Size),
    ("maintenance_io_concurrency", "10", Number),
    ("maintenance_work_mem", "64MB", Size),
    ("max_parallel_workers", "8", Number),
    ("max_stack_depth", "2MB", Size),
    ("min_parallel_index_scan_size", "512kB", Size),
    ("parallel_leader_participation", "on", Switch),
    ("parallel_setup_cost", "1000", Number),
    ("parallel_tuple_cost", "0.1", Number),
    ("password_encryption", "scram-sha-256", Word(&["md5", "scram-sha-256"])),
    ("plan_cache_mode", "auto", Word(&["auto", "force_generic_plan", "force_custom_plan"])),
    ("random_page_cost", "4", Number),
    ("recursive_worktable_factor", "10", Number),
    ("seq_page_cost", "1", Number),
    ("stats_fetch_consistency", "cache", Word(&["none", "cache", "snapshot"])),
    ("tcp_keepalives_count", "9", Number),
    ("tcp_keepalives_idle", "7200", Time),
    ("tcp_keepalives_interval", "75", Time),
    ("tcp_user_timeout", "0", Time),
    ("temp_buffers", "8MB", Size),
    ("temp_file_limit", "-1", Size),
    ("temp_tablespaces", "", Text),
    ("timezone_abbreviations", "Default", Text),
    ("track_activities", "on", Switch),
    ("track_counts", "on", Switch),
    ("track_functions", "none", Word(&["none", "pl", "all"])),
    ("track_io_timing", "off", Switch),
    ("track_wal_io_timing", "off", Switch),
    ("vacuum_cost_delay", "0", Number),
    ("vacuum_cost_limit", "200", Number),
    ("vacuum_cost_page_dirty", "20", Number),
    ("vacuum_cost_page_hit", "1", Number),
    ("vacuum_cost_page_miss", "2", Number),
    ("vacuum_failsafe_age", "1600000000", Number),
    ("vacuum_freeze_min_age", "50000000", Number),
    ("vacuum_freeze_table_age", "150000000", Number),
    ("vacuum_multixact_failsafe_age", "1600000000", Number),
    ("vacuum_multixact_freeze_min_age", "5000000", Number),
    ("vacuum_multixact_freeze_table_age", "150000000", Number),
    ("xmlbinary", "base64", Word(&["base64", "hex"])),
];

/// The value as it is kept.
///
/// # Errors
/// 22023.
pub(super) fn check(name: &str, value: &str, form: Form) -> SqlResult<String> {
    let trimmed = value.trim();
    let fits = match form {
        Switch => return switch(name, value).map(str::to_string),
        Word(words) => return one_of(name, value, words),
        Text => return Ok(value.to_string()),
        Number => trimmed.parse::<f64>().is_ok_and(f64::is_finite),
        Time => trimmed.parse::<i64>().is_ok() || duration_ms(value).is_some(),
        Size => trimmed.parse::<i64>().is_ok() || memory_bytes(value).is_some(),
    };
    if fits { Ok(trimmed.to_string()) } else { Err(invalid(name, value)) }
}
