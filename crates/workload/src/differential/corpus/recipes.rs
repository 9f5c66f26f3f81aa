//! Calls of aggregates, set-returning and window functions: they need something around them.

/// How an aggregate is called: types of its arguments, and what stands around them.
pub(super) struct Recipe {
    pub(super) name: &'static str,
    /// Argument types; each inner list is one choice.
    pub(super) args: &'static [&'static [&'static str]],
    /// `{}` stands for each argument.
    pub(super) form: &'static str,
}

const NUMBERS: &[&[&str]] =
    &[&["int2"], &["int4"], &["int8"], &["numeric"], &["float4"], &["float8"]];
const ORDERED: &[&[&str]] = &[
    &["int4"],
    &["numeric"],
    &["float8"],
    &["text"],
    &["date"],
    &["timestamp"],
    &["interval"],
    &["timestamptz"],
    &["_int4"],
    &["bpchar"],
    &["time"],
];
const ANY: &[&[&str]] = &[
    &["int4"],
    &["text"],
    &["numeric"],
    &["float8"],
    &["jsonb"],
    &["json"],
    &["date"],
    &["bool"],
    &["timestamptz"],
    &["bytea"],
    &["uuid"],
];

const RANGES: &[&[&str]] = &[
    &["int4range"],
    &["int8range"],
    &["numrange"],
    &["tsrange"],
    &["tstzrange"],
    &["daterange"],
    &["int4multirange"],
    &["int8multirange"],
    &["nummultirange"],
    &["tsmultirange"],
    &["tstzmultirange"],
    &["datemultirange"],
];

macro_rules! recipe {
    ($name:literal, $args:expr) => {
        Recipe { name: $name, args: $args, form: "" }
    };
    ($name:literal, $args:expr, $form:literal) => {
        Recipe { name: $name, args: $args, form: $form }
    };
}

/// One for each aggregate; the form is without name and parentheses when it is a plain call over
/// rows in the order of their id.
pub(super) const AGGREGATES: &[Recipe] = &[
    recipe!("count", ANY),
    recipe!("count", &[&[]], "count(*)"),
    recipe!("sum", NUMBERS),
    recipe!("avg", NUMBERS),
    recipe!("min", ORDERED),
    recipe!("max", ORDERED),
    recipe!("bool_and", &[&["bool"]]),
    recipe!("bool_or", &[&["bool"]]),
    recipe!("every", &[&["bool"]]),
    recipe!("array_agg", ANY),
    recipe!("range_agg", RANGES),
    recipe!("range_intersect_agg", RANGES),
    recipe!("string_agg", &[&["text", "text"], &["bytea", "bytea"]]),
    recipe!("jsonb_agg", ANY),
    recipe!("json_agg", ANY),
    recipe!("jsonb_object_agg", &[&["text", "int4"], &["int4", "text"], &["text", "jsonb"]]),
    recipe!("json_object_agg", &[&["text", "int4"], &["int4", "json"], &["date", "numeric"]]),
    recipe!("stddev", NUMBERS),
    recipe!("stddev_samp", NUMBERS),
    recipe!("stddev_pop", NUMBERS),
    recipe!("variance", NUMBERS),
    recipe!("var_samp", NUMBERS),
    recipe!("var_pop", NUMBERS),
    recipe!("bit_and", &[&["int2"], &["int4"], &["int8"]]),
    recipe!("bit_or", &[&["int2"], &["int4"], &["int8"]]),
    recipe!("bit_xor", &[&["int2"], &["int4"], &["int8"]]),
    recipe!("corr", &[&["float8", "float8"]]),
    recipe!("covar_pop", &[&["float8", "float8"]]),
    recipe!("covar_samp", &[&["float8", "float8"]]),
    recipe!("regr_slope", &[&["float8", "float8"]]),
    recipe!("regr_intercept", &[&["float8", "float8"]]),
    recipe!("regr_r2", &[&["float8", "float8"]]),
    recipe!("regr_count", &[&["float8", "float8"], &["int4", "numeric"]]),
    recipe!("regr_avgx", &[&["float8", "float8"]]),
    recipe!("regr_avgy", &[&["float8", "float8"]]),
    recipe!("regr_sxx", &[&["float8", "float8"]]),
    recipe!("regr_syy", &[&["float8", "float8"]]),
    recipe!("regr_sxy", &[&["float8", "float8"]]),
    recipe!("mode", ORDERED, "mode() WITHIN GROUP (ORDER BY {})"),
    recipe!(
        "percentile_cont",
        &[&["float8"], &["interval"], &["int4"], &["numeric"]],
        "percentile_cont(0.3) WITHIN GROUP (ORDER BY {})"
    ),
    recipe!("percentile_disc", ORDERED, "percentile_disc(0.7) WITHIN GROUP (ORDER BY {})"),
    recipe!("rank", NUMBERS, "rank(1) WITHIN GROUP (ORDER BY {})"),
    recipe!("dense_rank", NUMBERS, "dense_rank(1) WITHIN GROUP (ORDER BY {} DESC)"),
    recipe!("percent_rank", NUMBERS, "percent_rank(1) WITHIN GROUP (ORDER BY {} NULLS FIRST)"),
    recipe!("cume_dist", NUMBERS, "cume_dist(1) WITHIN GROUP (ORDER BY {})"),
    // PostgreSQL 15 has no any_value.
    recipe!("any_value", &[&["int4"]], "NULL"),
];

/// One for each set-returning function: what stands in FROM.
pub(super) const SETS: &[Recipe] = &[
    recipe!(
        "generate_series",
        &[&["int4", "int4", "int4"], &["int8", "int8", "int8"], &["int2", "int2", "int4"]],
        "generate_series(({}) % 7, ({}) % 9, nullif(({}) % 5, 0))"
    ),
    recipe!(
        "generate_series",
        &[&["numeric", "numeric"]],
        "generate_series(({}) % 7, ({}) % 9, 0.75)"
    ),
    recipe!("generate_series", &[&["int4", "int8"]], "generate_series(({}) % 7, ({}) % 9)"),
    recipe!(
        "generate_series",
        &[&["timestamp", "timestamp"], &["timestamptz", "timestamptz"], &["date", "timestamp"]],
        "generate_series(greatest({}, '0001-01-01'), least({}, '2500-01-01'), '400 days 3 hours')"
    ),
    recipe!(
        "unnest",
        &[&["_int4"], &["_text"], &["_numeric"], &["_int8"], &["_float8"], &["_bool"], &["_date"]],
        "unnest({})"
    ),
    recipe!("unnest", &[&["_int4", "_text"], &["_bool", "_date"]], "unnest({}, {})"),
    recipe!("regexp_matches", &[&["text"]], "regexp_matches({}, '(.)(b)?', 'g')"),
    recipe!("regexp_matches", &[&["text"]], "regexp_matches({}, '[a-c]+')"),
    recipe!("regexp_split_to_table", &[&["text"]], "regexp_split_to_table({}, '[ ,]')"),
    recipe!("regexp_split_to_table", &[&["text"]], "regexp_split_to_table({}, '')"),
    recipe!("string_to_table", &[&["text", "text"]], "string_to_table({}, {})"),
    recipe!("jsonb_array_elements", &[&["jsonb"]], "jsonb_array_elements({})"),
    recipe!("jsonb_path_query", &[&["jsonb"]], "jsonb_path_query({}, '$.** ? (@ != 1)')"),
    recipe!("jsonb_path_query", &[&["jsonb"]], "jsonb_path_query({}, 'strict $[*].a')"),
    recipe!("jsonb_path_query", &[&["jsonb"]], "jsonb_path_query({}, '$[0 to last].size()')"),
    recipe!("jsonb_path_query_tz", &[&["jsonb"]], "jsonb_path_query_tz({}, '$.**.keyvalue()')"),
    recipe!("jsonb_path_query", &[&["jsonb", "jsonpath"]], "jsonb_path_query({}, {})"),
    recipe!("jsonb_array_elements_text", &[&["jsonb"]], "jsonb_array_elements_text({})"),
    recipe!("jsonb_each", &[&["jsonb"]], "jsonb_each({})"),
    recipe!("jsonb_each_text", &[&["jsonb"]], "jsonb_each_text({})"),
    recipe!("jsonb_object_keys", &[&["jsonb"]], "jsonb_object_keys({})"),
    recipe!("json_array_elements", &[&["json"]], "json_array_elements({})"),
    recipe!("json_array_elements_text", &[&["json"]], "json_array_elements_text({})"),
    recipe!("json_each", &[&["json"]], "json_each({})"),
    recipe!("json_each_text", &[&["json"]], "json_each_text({})"),
    recipe!("json_object_keys", &[&["json"]], "json_object_keys({})"),
    recipe!("generate_subscripts", &[&["_int4"], &["_text"]], "generate_subscripts({}, 1)"),
    recipe!("generate_subscripts", &[&["_int4", "int4"]], "generate_subscripts({}, {})"),
    // Over types that users make, and columns that are listed: compared by `scripts/as-postgres`.
    recipe!("json_populate_recordset", &[&["json"]], "generate_series(1, 1)"),
    recipe!("jsonb_populate_recordset", &[&["jsonb"]], "generate_series(1, 1)"),
    recipe!("json_to_record", &[&["json"]], "generate_series(1, 1)"),
    recipe!("jsonb_to_record", &[&["jsonb"]], "generate_series(1, 1)"),
    recipe!("json_to_recordset", &[&["json"]], "generate_series(1, 1)"),
    recipe!("jsonb_to_recordset", &[&["jsonb"]], "generate_series(1, 1)"),
    // About the catalog: compared by the tests of the catalog.
    recipe!("pg_options_to_table", &[&["_text"]], "generate_series(1, 1)"),
    recipe!("aclexplode", &[&["_text"]], "generate_series(1, 1)"),
    recipe!("_pg_expandarray", &[&["_int4"]], "information_schema._pg_expandarray({})"),
    recipe!("pg_partition_ancestors", &[&["int4"]], "generate_series(1, 1)"),
    recipe!("pg_partition_tree", &[&["int4"]], "generate_series(1, 1)"),
    recipe!("pg_sequence_parameters", &[&["int4"]], "generate_series(1, 1)"),
    recipe!("pg_listening_channels", &[&["int4"]], "generate_series(1, 1)"),
    recipe!("pg_get_keywords", &[&["int4"]], "generate_series(1, 1)"),
];

/// One for each window function; `OVER` and what is in it is added.
pub(super) const WINDOWS: &[Recipe] = &[
    recipe!("row_number", &[&[]], "row_number()"),
    recipe!("rank", &[&[]], "rank()"),
    recipe!("dense_rank", &[&[]], "dense_rank()"),
    recipe!("percent_rank", &[&[]], "percent_rank()"),
    recipe!("cume_dist", &[&[]], "cume_dist()"),
    recipe!("ntile", &[&[]], "ntile(4)"),
    recipe!("ntile", &[&[]], "ntile(0)"),
    recipe!("ntile", &[&[]], "ntile(NULL)"),
    recipe!("lag", ANY, "lag({})"),
    recipe!("lag", ANY, "lag({}, 2)"),
    recipe!("lag", ANY, "lag({}, NULL)"),
    recipe!("lag", ANY, "lag({}, -1)"),
    recipe!("lag", &[&["int4", "int4"], &["text", "text"], &["numeric", "int4"]], "lag({}, 1, {})"),
    recipe!("lead", ANY, "lead({})"),
    recipe!("lead", ANY, "lead({}, 0)"),
    recipe!("lead", ANY, "lead({}, NULL)"),
    recipe!(
        "lead",
        &[&["int4", "int4"], &["int4", "numeric"], &["date", "date"]],
        "lead({}, 3, {})"
    ),
    recipe!("first_value", ANY, "first_value({})"),
    recipe!("last_value", ANY, "last_value({})"),
    recipe!("nth_value", ANY, "nth_value({}, 2)"),
    recipe!("nth_value", ANY, "nth_value({}, NULL)"),
    recipe!("nth_value", ANY, "nth_value({}, 0)"),
];
