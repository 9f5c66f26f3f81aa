//! Differences that are allowed in the corpus, each with its reason. The list should shrink.

use super::servers::Answer;

/// Functions that no random call can compare, with the reason. Each is named: a new function is
/// compared unless somebody says why not.
const LEFT_OUT: &[(&str, &[&str])] = &[
    (
        "describes the catalog, whose oids differ: compared by the tests of the catalog",
        &[
            "_pg_char_max_length",
            "_pg_char_octet_length",
            "_pg_datetime_precision",
            "_pg_numeric_precision",
            "_pg_numeric_precision_radix",
            "_pg_numeric_scale",
            "_pg_truetypid",
            "_pg_truetypmod",
            "col_description",
            "format_type",
            "mxid_age",
            "obj_description",
            "pg_collation_is_visible",
            "pg_column_is_updatable",
            "pg_conversion_is_visible",
            "pg_describe_object",
            "pg_function_is_visible",
            "pg_get_constraintdef",
            "pg_get_expr",
            "pg_get_function_arguments",
            "pg_get_function_identity_arguments",
            "pg_get_function_result",
            "pg_get_functiondef",
            "pg_get_indexdef",
            "pg_get_partition_constraintdef",
            "pg_get_partkeydef",
            "pg_get_ruledef",
            "pg_get_serial_sequence",
            "pg_get_statisticsobjdef_columns",
            "pg_get_triggerdef",
            "pg_get_userbyid",
            "pg_get_viewdef",
            "pg_is_other_temp_schema",
            "pg_my_temp_schema",
            "pg_opclass_is_visible",
            "pg_operator_is_visible",
            "pg_partition_root",
            "pg_relation_is_publishable",
            "pg_relation_is_updatable",
            "pg_statistics_obj_is_visible",
            "pg_table_is_visible",
            "pg_tablespace_location",
            "pg_ts_config_is_visible",
            "pg_type_is_visible",
            "row_security_active",
            "satisfies_hash_partition",
            "shobj_description",
            "to_regclass",
            "to_regnamespace",
            "to_regproc",
            "to_regcollation",
            "to_regoper",
            "to_regoperator",
            "to_regprocedure",
            "to_regrole",
            "to_regtype",
        ],
    ),
    (
        "what subscripts on the left side become: compared by `scripts/as-postgres`",
        &["array_with", "jsonb_with"],
    ),
    ("has a grammar of its own: compared by `scripts/as-postgres`", &["normalize", "overlaps"]),
    (
        "over types that users make: compared by `scripts/as-postgres`",
        &["enum_first", "enum_last", "enum_range", "json_populate_record", "jsonb_populate_record"],
    ),
    (
        "describes the storage of each server",
        &[
            "pg_collation_actual_version",
            "pg_column_compression",
            "pg_column_size",
            "pg_database_size",
            "pg_get_replica_identity_index",
            "pg_indexes_size",
            "pg_relation_filenode",
            "pg_relation_size",
            "pg_stat_get_numscans",
            "pg_table_size",
            "pg_total_relation_size",
        ],
    ),
    (
        "describes privileges: there is one role here",
        &[
            "has_any_column_privilege",
            "has_column_privilege",
            "has_database_privilege",
            "has_function_privilege",
            "has_language_privilege",
            "has_parameter_privilege",
            "has_schema_privilege",
            "has_sequence_privilege",
            "has_table_privilege",
            "has_tablespace_privilege",
            "has_type_privilege",
            "pg_has_role",
        ],
    ),
    (
        "describes the session, the connection or the server",
        &[
            "current_catalog",
            "current_database",
            "current_query",
            "current_role",
            "current_schema",
            "current_schemas",
            "current_setting",
            "current_user",
            "getpgusername",
            "inet_client_port",
            "inet_server_addr",
            "inet_server_port",
            "pg_backend_pid",
            "pg_blocking_pids",
            "pg_client_encoding",
            "pg_conf_load_time",
            "pg_current_logfile",
            "pg_current_wal_flush_lsn",
            "pg_current_wal_insert_lsn",
            "pg_current_wal_lsn",
            "pg_current_xact_id",
            "pg_current_xact_id_if_assigned",
            "pg_export_snapshot",
            "pg_get_wal_replay_pause_state",
            "pg_is_in_recovery",
            "pg_is_wal_replay_paused",
            "pg_jit_available",
            "pg_last_wal_receive_lsn",
            "pg_last_wal_replay_lsn",
            "pg_last_xact_replay_timestamp",
            "pg_postmaster_start_time",
            "pg_reload_conf",
            "pg_stat_clear_snapshot",
            "session_user",
            "txid_current",
            "txid_current_if_assigned",
            "user",
            "version",
        ],
    ),
    (
        "the clock",
        &[
            "clock_timestamp",
            "current_date",
            "current_time",
            "current_timestamp",
            "follower_read_timestamp",
            "localtime",
            "localtimestamp",
            "now",
            "statement_timestamp",
            "timeofday",
            "transaction_timestamp",
        ],
    ),
    ("there only with an extension", &["pg_stat_statements_reset"]),
    ("what WHERE CURRENT OF becomes: compared by `scripts/as-postgres`", &["braid_cursor_key"]),
    (
        "GoogleSQL's: `testscripts/googlesql`; forms of PostgreSQL's: `testscripts/postgres`",
        &[
            "array_concat",
            "array_first",
            "array_includes",
            "array_includes_all",
            "array_includes_any",
            "array_is_distinct",
            "array_last",
            "array_length",
            "array_max",
            "array_min",
            "array_offset",
            "array_ordinal",
            "array_reverse",
            "array_safe_offset",
            "array_safe_ordinal",
            "array_slice",
            "bit_reverse",
            "bool",
            "byte_length",
            "code_points_to_bytes",
            "code_points_to_string",
            "cosine_distance",
            "date",
            "date_add",
            "date_diff",
            "date_from_unix_date",
            "date_sub",
            "dot_product",
            "ends_with",
            "euclidean_distance",
            "farm_fingerprint",
            "float64",
            "format_date",
            "format_timestamp",
            "from_base64",
            "from_hex",
            "generate_array",
            "generate_date_array",
            "generate_timestamp_array",
            "ieee_divide",
            "instr",
            "int64",
            "is_inf",
            "is_nan",
            "json_extract",
            "json_extract_scalar",
            "json_query",
            "json_query_array",
            "json_type",
            "json_value",
            "json_value_array",
            "last_day",
            "parse_date",
            "parse_json",
            "parse_numeric",
            "parse_timestamp",
            "pending_commit_timestamp",
            "regexp_contains",
            "regexp_extract",
            "regexp_extract_all",
            "safe_add",
            "safe_convert_bytes_to_string",
            "safe_divide",
            "safe_multiply",
            "safe_negate",
            "safe_subtract",
            "sha1",
            "soundex",
            "split",
            "string",
            "timestamp",
            "timestamp_add",
            "timestamp_diff",
            "timestamp_micros",
            "timestamp_millis",
            "timestamp_seconds",
            "timestamp_sub",
            "timestamp_trunc",
            "to_base64",
            "to_code_points",
            "to_hex",
            "to_json_string",
            "unicode",
            "unix_date",
            "unix_micros",
            "unix_millis",
            "unix_seconds",
        ],
    ),
    ("refused: letters of all alphabets are no ASCII", &["to_ascii"]),
    (
        "random by design",
        &[
            "gen_random_bytes",
            "gen_random_uuid",
            "generate_uuid",
            "random",
            "uuid_generate_v1",
            "uuid_generate_v1mc",
            "uuid_generate_v4",
        ],
    ),
    (
        "changes sequences, settings, locks or sessions: compared by tests of their own",
        &[
            "currval",
            "lastval",
            "nextval",
            "pg_advisory_lock",
            "pg_advisory_lock_shared",
            "pg_advisory_unlock",
            "pg_advisory_unlock_shared",
            "pg_advisory_xact_lock",
            "pg_advisory_xact_lock_shared",
            "pg_cancel_backend",
            "pg_sleep",
            "pg_sleep_for",
            "pg_sleep_until",
            "pg_try_advisory_lock",
            "pg_try_advisory_lock_shared",
            "pg_try_advisory_xact_lock",
            "pg_try_advisory_xact_lock_shared",
            "pg_terminate_backend",
            "set_config",
            "setval",
        ],
    ),
];

/// Types whose values are oids of each server's catalog, or of catalogs only, or no values at all,
/// or which come with an extension (compared by `scripts/as-postgres`).
const LEFT_OUT_TYPES: &[&str] =
    &["char", "citext", "int2vector", "oidvector", "record", "unknown", "void"];

/// Whether calls of this function are not generated.
pub(super) fn left_out(name: &str) -> bool {
    LEFT_OUT.iter().any(|(_, names)| names.contains(&name))
}

/// Whether values of this type are not generated.
pub(super) fn left_out_type(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    // `regclass` and the others that name what catalogs hold.
    // Ranges of types that users make are compared by `scripts/as-postgres`.
    matches!(name, "anyrange" | "anymultirange")
        || LEFT_OUT_TYPES.contains(&name)
        || name.starts_with("reg")
}

/// A difference of one expression, shrunk: its parts alone have none.
pub(super) struct Found<'a> {
    pub(super) label: &'a str,
    /// Whether it is computed for several rows: under a condition, as a key, in a window.
    pub(super) many_rows: bool,
    /// What both sides say to each of its parts alone, and to theirs.
    pub(super) parts: &'a [(Answer, Answer)],
    /// Which of these name no column.
    pub(super) constant: &'a [bool],
    pub(super) ours: &'a Answer,
    pub(super) theirs: &'a Answer,
}

struct Known {
    reason: &'static str,
    applies: fn(&Found<'_>) -> bool,
}

/// The value and the name of its type.
fn value(answer: &Answer) -> Option<(Option<&str>, &str)> {
    let Answer::Rows(rows) = answer else { return None };
    match rows.first()?.as_slice() {
        [value, Some(ty)] => Some((value.as_deref(), ty)),
        _ => None,
    }
}

/// The class of an error in values, or of a refusal.
fn runtime(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Error(state, _) if ["22", "0A", "54"].contains(&&state[..2]) => Some(&state[..2]),
        // A tablespace that is computed, like what is wrong with a format.
        Answer::Error(state, _) if state == "42704" => Some("42704"),
        Answer::Error(state, _) if state == "42601" => Some("42601"),
        _ => None,
    }
}

impl Found<'_> {
    /// Whether one of the parts alone fails on both sides as the whole does on one.
    fn part_fails(&self, whole: &Answer) -> bool {
        let class = runtime(whole);
        class.is_some()
            && self.parts.iter().any(|(a, b)| runtime(a) == class && runtime(b) == class)
    }

    /// Whether one of the parts that name no column fails, alone, on both sides as the whole does
    /// on one.
    fn constant_fails(&self, whole: &Answer) -> bool {
        let class = runtime(whole);
        let constants = self.parts.iter().zip(self.constant).filter(|(_, constant)| **constant);
        class.is_some()
            && constants.into_iter().any(|((a, b), _)| runtime(a) == class && runtime(b) == class)
    }

    fn some_part(&self, holds: fn(&str) -> bool) -> bool {
        self.parts.iter().any(|(ours, _)| value(ours).is_some_and(|(v, _)| v.is_some_and(holds)))
    }
}

/// Whether both gave a double and they differ by the last bits only.
fn last_bits(f: &Found<'_>) -> bool {
    let double = |answer| match value(answer) {
        Some((Some(text), "double precision")) => text.parse::<f64>().ok(),
        _ => None,
    };
    match (double(f.ours), double(f.theirs)) {
        (Some(x), Some(y)) => x.to_bits().abs_diff(y.to_bits()) <= 4,
        _ => false,
    }
}

/// Whether both gave the same, if numbers are compared as numbers.
fn equal_numbers(ours: &Answer, theirs: &Answer) -> bool {
    let (Answer::Rows(ours), Answer::Rows(theirs)) = (ours, theirs) else { return false };
    let number = |cell: &Option<String>| cell.as_ref().and_then(|c| c.parse::<f64>().ok());
    let same = |a: &Option<String>, b: &Option<String>| {
        a == b || number(a).is_some_and(|x| number(b) == Some(x))
    };
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(theirs)
            .all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)))
}

/// Whether PostgreSQL read a date, time or interval out of a text that is a number with a fraction,
/// or two numbers with a sign between, among punctuation.
fn lenient_date(f: &Found<'_>) -> bool {
    let to = ["date", "time", "timestamp", "timestamptz", "interval"];
    let from = ["text", "varchar", "bpchar", "name"];
    let cast =
        from.iter().any(|from| to.iter().any(|to| f.label == format!("cast({from} as {to})")));
    let odd = |v: &str| {
        let number = |v: &str| {
            v.starts_with(|c: char| c.is_ascii_digit())
                && v.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-')
        };
        v.split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')
            .any(|piece| number(piece) && piece.contains('.'))
    };
    cast && matches!(f.ours, Answer::Error(state, _) if state.starts_with("22"))
        && matches!(f.theirs, Answer::Rows(_))
        && f.some_part(odd)
}

/// Whether a date beside an instant as default is out of the range of instants.
fn date_converted(f: &Found<'_>) -> bool {
    f.label.contains("(date, date)")
        && matches!(f.ours, Answer::Error(state, _) if state == "22008")
}

/// What we refuse on purpose: the SQLSTATE is 0A000 and the message begins so.
const REFUSED: &[(&str, &str)] = &[
    ("look-around in a regular expression", "the engine of expressions has none"),
    ("COLLATE in an argument of ", "letters of all alphabets are known, and classes of characters"),
];

fn refused_by_list(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(state, message)
        if state == "0A000" && REFUSED.iter().any(|(begin, _)| message.starts_with(begin)))
}

const KNOWN: &[Known] = &[
    Known {
        reason: "the last digit of cube roots, powers and angles is that of the C library there",
        applies: |f| {
            let functions = [
                "cbrt", "||/", "^", "power", "pow", "sin", "cos", "tan", "cot", "sind", "cosd",
                "tand", "cotd", "asind", "acosd", "atand", "atan2", "atan2d", "sinh", "cosh",
                "tanh", "asinh", "acosh", "atanh", "exp", "ln", "log", "log10", "atan", "asin",
                "acos", "degrees", "radians",
            ];
            let name = f.label.split('(').next().unwrap_or_default();
            functions.contains(&name) && last_bits(f)
        },
    },
    Known {
        reason: "pattern and escape of substring are looked at in PostgreSQL also where the text \
                 is NULL",
        applies: |f| {
            f.label == "substring(text, text, text)"
                && matches!(value(f.ours), Some((None, _)))
                && matches!(f.theirs, Answer::Error(state, _) if state == "22025")
        },
    },
    Known {
        reason: "fingerprints of texts are GoogleSQL's",
        applies: |f| {
            ["sha256(bytea)", "sha512(bytea)"].contains(&f.label)
                && matches!(f.theirs, Answer::Error(state, message)
                    if state == "42883" && message.contains("(text)"))
        },
    },
    Known {
        reason: "a call with two mistakes is refused for one of them",
        applies: |f| {
            let functions = ["rank(", "dense_rank(", "percent_rank(", "cume_dist(", "nth_value("];
            functions.iter().any(|name| f.label.starts_with(name))
                && f.ours.is_error()
                && f.theirs.is_error()
        },
    },
    Known {
        reason: "a text beside a value is a range of such values here; PostgreSQL asks for its \
                 type",
        applies: |f| {
            let functions = ["range_contains_elem(", "elem_contained_by_range("];
            functions.iter().any(|name| f.label.starts_with(name))
                && matches!(f.ours, Answer::Rows(_))
                && matches!(f.theirs, Answer::Error(state, message)
                    if state == "42804" && message.ends_with("because input has type unknown"))
        },
    },
    Known {
        reason: "coordinates near the end of doubles overflow on the way to the nearest point",
        applies: |f| {
            f.label.starts_with("##(")
                && matches!(f.ours, Answer::Error(state, _) if state == "22003")
                && matches!(f.theirs, Answer::Rows(_))
        },
    },
    Known {
        reason: "unnest of several in FROM takes arrays only; ROWS FROM takes multiranges, too",
        applies: |f| {
            f.label.starts_with("unnest(")
                && matches!(f.ours, Answer::Error(state, message)
                    if state == "42883" && message.contains("multirange"))
        },
    },
    Known {
        reason: "PostgreSQL 15 computes with the largest integer as if infinity were a time",
        applies: |f| {
            f.label.starts_with("age(")
                && matches!(f.ours, Answer::Error(state, _) if state == "22008")
                && matches!(f.theirs, Answer::Rows(_))
                && f.some_part(|v| v.ends_with("infinity"))
        },
    },
    Known {
        reason: "the number of a transaction comes as an oid here: `age` takes one",
        applies: |f| match f.label {
            "age(oid)" => matches!(f.theirs, Answer::Error(state, _) if state == "42883"),
            "cast(xid8 as xid)" => match (value(f.ours), value(f.theirs)) {
                (Some((ours, "oid")), Some((theirs, "xid"))) => ours == theirs,
                _ => false,
            },
            _ => false,
        },
    },
    Known {
        reason: "that values of a type have no order is said here when GREATEST is planned, there \
                 when it is about to run: behind what fails while constants are folded, and not \
                 where nobody asks for it",
        applies: |f| {
            let is_greatest = ["GREATEST", "LEAST"].contains(&f.label);
            let unordered = |message: &str| message.starts_with("could not identify a comparison");
            matches!(f.ours, Answer::Error(state, m) if state == "42883" && unordered(m))
                && !(is_greatest && matches!(f.theirs, Answer::Rows(_)))
        },
    },
    Known {
        reason: "which of several equal values (0 and 0.00) is shown is left open",
        applies: |f| {
            (f.label.starts_with("mode(") || f.label.starts_with("percentile_disc("))
                && equal_numbers(f.ours, f.theirs)
        },
    },
    Known {
        reason: "PostgreSQL 15 gives the smallest integer as the bucket between bounds that lie \
                 further apart than a double reaches",
        applies: |f| {
            f.label.starts_with("width_bucket(")
                && matches!(f.ours, Answer::Error(state, _) if state == "22003")
                && value(f.theirs).is_some_and(|(v, _)| v == Some("-2147483648"))
        },
    },
    Known {
        reason: "PostgreSQL 15 multiplies an integer for the V of a format without looking whether \
                 it still is one",
        applies: |f| {
            f.label == "to_char(int4, text)"
                && matches!(f.ours, Answer::Error(state, _) if state == "22003")
                && matches!(f.theirs, Answer::Rows(_))
        },
    },
    Known {
        reason: "the difference of timestamps overflows silently in PostgreSQL 15",
        applies: |f| {
            f.label.starts_with("-(timestamp")
                && matches!(f.ours, Answer::Error(state, _) if state == "22008")
                && matches!(f.theirs, Answer::Rows(_))
        },
    },
    Known {
        reason: "refused here: one of the features listed beside this",
        applies: |f| refused_by_list(f.ours),
    },
    Known {
        reason: "PostgreSQL computes a constant while it plans, and fails if that fails; here a \
                 constant that fails is an error only where its value is wanted: not in a branch \
                 that is not taken, and not over no rows",
        applies: |f| {
            let lazy = [
                "CASE",
                "CASE x",
                "COALESCE",
                "AND",
                "IN",
                "BETWEEN",
                "row comparison",
                "subscript",
            ];
            let lazy = lazy.contains(&f.label);
            (lazy || f.many_rows) && matches!(f.ours, Answer::Rows(_)) && f.constant_fails(f.theirs)
        },
    },
    Known {
        reason: "the argument of lag, lead, first_value, last_value and nth_value is computed for \
                 every row here, in PostgreSQL for the rows that are looked at",
        applies: |f| {
            let functions = ["lag(", "lead(", "first_value(", "last_value(", "nth_value("];
            functions.iter().any(|name| f.label.starts_with(name))
                && matches!(f.theirs, Answer::Rows(_))
                && (f.part_fails(f.ours) || date_converted(f))
        },
    },
    Known {
        reason: "PostgreSQL takes a field of a date out of its timestamp: a constant date that no \
                 timestamp has fails while it plans",
        applies: |f| {
            f.label == "date_part(text, date)"
                && matches!(f.theirs, Answer::Error(state, _) if state == "22008")
                && matches!(f.ours, Answer::Rows(_))
        },
    },
    Known {
        reason: "PostgreSQL reads dates and intervals out of numbers with a fraction",
        applies: lenient_date,
    },
    Known {
        reason: "a part that is NULL, beside one that fails alone, on both sides: whether what \
                 fails is computed depends on what is folded when",
        applies: |f| {
            let is_null = |answer| matches!(value(answer), Some((None, _)));
            f.parts.iter().any(|(a, b)| is_null(a) && is_null(b))
                && (is_null(f.ours) && f.part_fails(f.theirs)
                    || is_null(f.theirs) && f.part_fails(f.ours))
        },
    },
    Known {
        reason: "two parts that fail in different ways, alone too, on both sides: which is met \
                 first depends on what is folded when",
        applies: |f| {
            runtime(f.ours) != runtime(f.theirs) && f.part_fails(f.ours) && f.part_fails(f.theirs)
        },
    },
];

/// The reasons for which answers may differ, and the features that are refused.
pub fn reasons() -> Vec<&'static str> {
    KNOWN.iter().map(|k| k.reason).chain(REFUSED.iter().map(|(begin, _)| *begin)).collect()
}

/// Why a difference is allowed, if it is.
pub(super) fn reason(found: &Found<'_>) -> Option<&'static str> {
    KNOWN.iter().find(|k| (k.applies)(found)).map(|k| k.reason)
}
