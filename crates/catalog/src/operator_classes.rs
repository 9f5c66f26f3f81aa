//! The operator classes that an index can name: PostgreSQL's, for the types that are here.
//!
//! All indexes of a type lie in one order, whatever class they name; what is declared is kept for
//! those who look at it again, as tools do that compare a schema with what they want.

use std::sync::LazyLock;

use braid_types::{SqlError, SqlResult, SqlState, SqlType};

/// One operator class of an access method.
#[derive(Debug)]
pub struct OperatorClass {
    /// Its row in `pg_opclass`.
    pub oid: u32,
    /// The access method.
    pub method: &'static str,
    /// Its name, one in its method.
    pub name: String,
    /// Oid of the type whose values it takes.
    pub takes: u32,
    /// Whether columns of that type have it if none is named.
    pub is_default: bool,
}

const ANY_ARRAY: u32 = 2277;
const ANY_ENUM: u32 = 3500;
const ANY_RANGE: u32 = 3831;
const ANY_MULTIRANGE: u32 = 4537;

/// Method, oid, name, type and whether it is the type's default.
const CLASSES: &[(&str, u32, &str, u32, bool)] = &[
    ("btree", 1978, "int4_ops", 23, true),
    ("btree", 1979, "int2_ops", 21, true),
    ("btree", 1981, "oid_ops", 26, true),
    ("btree", 3122, "date_ops", 1082, true),
    ("btree", 3123, "float8_ops", 701, true),
    ("btree", 3124, "int8_ops", 20, true),
    ("btree", 3125, "numeric_ops", 1700, true),
    ("btree", 3126, "text_ops", 25, true),
    ("btree", 3127, "timestamptz_ops", 1184, true),
    ("btree", 3128, "timestamp_ops", 1114, true),
    ("btree", 4217, "text_pattern_ops", 25, false),
    ("btree", 4218, "varchar_pattern_ops", 25, false),
    ("btree", 4219, "bpchar_pattern_ops", 1042, false),
    ("btree", 10_000, "array_ops", ANY_ARRAY, true),
    ("btree", 10_002, "bit_ops", 1560, true),
    ("btree", 10_003, "bool_ops", 16, true),
    ("btree", 10_004, "bpchar_ops", 1042, true),
    ("btree", 10_006, "bytea_ops", 17, true),
    ("btree", 10_007, "char_ops", 18, true),
    ("btree", 10_009, "cidr_ops", 869, false),
    ("btree", 10_012, "float4_ops", 700, true),
    ("btree", 10_015, "inet_ops", 869, true),
    ("btree", 10_022, "interval_ops", 1186, true),
    ("btree", 10_024, "macaddr_ops", 829, true),
    ("btree", 10_026, "macaddr8_ops", 774, true),
    ("btree", 10_028, "name_ops", 19, true),
    ("btree", 10_034, "record_ops", 2249, true),
    ("btree", 10_036, "record_image_ops", 2249, false),
    ("btree", 10_038, "time_ops", 1083, true),
    ("btree", 10_041, "timetz_ops", 1266, true),
    ("btree", 10_043, "varbit_ops", 1562, true),
    ("btree", 10_044, "varchar_ops", 25, false),
    ("btree", 10_047, "money_ops", 790, true),
    ("btree", 10_050, "tid_ops", 27, true),
    ("btree", 10_053, "xid8_ops", 5069, true),
    ("btree", 10_065, "uuid_ops", 2950, true),
    ("btree", 10_067, "pg_lsn_ops", 3220, true),
    ("btree", 10_069, "enum_ops", ANY_ENUM, true),
    ("btree", 10_076, "range_ops", ANY_RANGE, true),
    ("btree", 10_080, "multirange_ops", ANY_MULTIRANGE, true),
    ("btree", 10_088, "jsonb_ops", 3802, true),
    ("hash", 10_001, "array_ops", ANY_ARRAY, true),
    ("hash", 10_005, "bpchar_ops", 1042, true),
    ("hash", 10_008, "char_ops", 18, true),
    ("hash", 10_010, "cidr_ops", 869, false),
    ("hash", 10_011, "date_ops", 1082, true),
    ("hash", 10_013, "float4_ops", 700, true),
    ("hash", 10_014, "float8_ops", 701, true),
    ("hash", 10_016, "inet_ops", 869, true),
    ("hash", 10_019, "int2_ops", 21, true),
    ("hash", 10_020, "int4_ops", 23, true),
    ("hash", 10_021, "int8_ops", 20, true),
    ("hash", 10_023, "interval_ops", 1186, true),
    ("hash", 10_025, "macaddr_ops", 829, true),
    ("hash", 10_027, "macaddr8_ops", 774, true),
    ("hash", 10_029, "name_ops", 19, true),
    ("hash", 10_030, "numeric_ops", 1700, true),
    ("hash", 10_031, "oid_ops", 26, true),
    ("hash", 10_035, "record_ops", 2249, true),
    ("hash", 10_037, "text_ops", 25, true),
    ("hash", 10_039, "time_ops", 1083, true),
    ("hash", 10_040, "timestamptz_ops", 1184, true),
    ("hash", 10_042, "timetz_ops", 1266, true),
    ("hash", 10_045, "varchar_ops", 25, false),
    ("hash", 10_046, "timestamp_ops", 1114, true),
    ("hash", 10_048, "bool_ops", 16, true),
    ("hash", 10_049, "bytea_ops", 17, true),
    ("hash", 10_052, "xid8_ops", 5069, true),
    ("hash", 10_055, "tid_ops", 27, true),
    ("hash", 10_056, "text_pattern_ops", 25, false),
    ("hash", 10_057, "varchar_pattern_ops", 25, false),
    ("hash", 10_058, "bpchar_pattern_ops", 1042, false),
    ("hash", 10_066, "uuid_ops", 2950, true),
    ("hash", 10_068, "pg_lsn_ops", 3220, true),
    ("hash", 10_070, "enum_ops", ANY_ENUM, true),
    ("hash", 10_077, "range_ops", ANY_RANGE, true),
    ("hash", 10_081, "multirange_ops", ANY_MULTIRANGE, true),
    ("hash", 10_089, "jsonb_ops", 3802, true),
    ("gist", 10_017, "inet_ops", 869, false),
    ("gist", 10_060, "box_ops", 603, true),
    ("gist", 10_061, "point_ops", 600, true),
    ("gist", 10_062, "poly_ops", 604, true),
    ("gist", 10_063, "circle_ops", 718, true),
    ("gist", 10_078, "range_ops", ANY_RANGE, true),
    ("gist", 10_082, "multirange_ops", ANY_MULTIRANGE, true),
    ("gin", 10_064, "array_ops", ANY_ARRAY, true),
    ("gin", 10_090, "jsonb_ops", 3802, true),
    ("gin", 10_091, "jsonb_path_ops", 3802, false),
    ("spgist", 10_018, "inet_ops", 869, true),
    ("spgist", 10_079, "range_ops", ANY_RANGE, true),
    ("spgist", 10_083, "box_ops", 603, true),
    ("spgist", 10_084, "quad_point_ops", 600, true),
    ("spgist", 10_085, "kd_point_ops", 600, false),
    ("spgist", 10_086, "text_ops", 25, true),
    ("spgist", 10_087, "poly_ops", 604, true),
    // Of extensions, so that their oids are our own.
    ("btree", 9956, "citext_ops", braid_types::oid::CITEXT, true),
    ("gin", 9957, "gin_trgm_ops", 25, false),
    ("gist", 9958, "gist_trgm_ops", 25, false),
];

/// Those of brin: oid of the first, stem of the name, type, and which there are in the order of
/// their oids: by minimum and maximum, by several of these, by a filter, by inclusion.
const BRIN: &[(u32, &str, u32, &str)] = &[
    (10_092, "bytea", 17, "mb"),
    (10_094, "char", 18, "mb"),
    (10_096, "name", 19, "mb"),
    (10_098, "int8", 20, "m+b"),
    (10_101, "int2", 21, "m+b"),
    (10_104, "int4", 23, "m+b"),
    (10_107, "text", 25, "mb"),
    (10_109, "oid", 26, "m+b"),
    (10_112, "tid", 27, "mb+"),
    (10_115, "float4", 700, "m+b"),
    (10_118, "float8", 701, "m+b"),
    (10_121, "macaddr", 829, "m+b"),
    (10_124, "macaddr8", 774, "m+b"),
    (10_127, "inet", 869, "m+bi"),
    (10_131, "bpchar", 1042, "mb"),
    (10_133, "time", 1083, "m+b"),
    (10_136, "date", 1082, "m+b"),
    (10_139, "timestamp", 1114, "m+b"),
    (10_142, "timestamptz", 1184, "m+b"),
    (10_145, "interval", 1186, "m+b"),
    (10_148, "timetz", 1266, "m+b"),
    (10_151, "bit", 1560, "m"),
    (10_152, "varbit", 1562, "m"),
    (10_153, "numeric", 1700, "m+b"),
    (10_156, "uuid", 2950, "m+b"),
    (10_159, "range", ANY_RANGE, "i"),
    (10_160, "pg_lsn", 3220, "m+b"),
    (10_163, "box", 603, "i"),
];

static ALL: LazyLock<Vec<OperatorClass>> = LazyLock::new(|| {
    let plain = CLASSES.iter().map(|&(method, oid, name, takes, is_default)| OperatorClass {
        oid,
        method,
        name: name.to_string(),
        takes,
        is_default,
    });
    let brin = BRIN.iter().flat_map(|&(first, stem, takes, kinds)| {
        let default = if kinds.contains('i') { 'i' } else { 'm' };
        (first..).zip(kinds.chars()).map(move |(oid, kind)| {
            let kind_name = match kind {
                'm' => "minmax",
                '+' => "minmax_multi",
                'b' => "bloom",
                _ => "inclusion",
            };
            OperatorClass {
                oid,
                method: "brin",
                name: format!("{stem}_{kind_name}_ops"),
                takes,
                is_default: kind == default,
            }
        })
    });
    plain.chain(brin).collect()
});

/// All of them.
pub fn operator_classes() -> &'static [OperatorClass] {
    &ALL
}

/// Whether values of a type are those of another as they are.
fn fits(ty: &SqlType, takes: u32) -> bool {
    const TEXT: u32 = 25;
    const BPCHAR: u32 = 1042;
    match (ty, takes) {
        (SqlType::Array(_), ANY_ARRAY)
        | (SqlType::Enum(_), ANY_ENUM)
        | (SqlType::Range(_), ANY_RANGE)
        | (SqlType::Multirange(_), ANY_MULTIRANGE)
        | (SqlType::Text | SqlType::Varchar(_), TEXT | BPCHAR) => true,
        (SqlType::Composite(_), record) => record == SqlType::Record.oid(),
        (SqlType::Cidr, inet) => inet == SqlType::Inet.oid(),
        (SqlType::Bit(_) | SqlType::Varbit(_), bits) if [1560, 1562].contains(&bits) => true,
        (ty, 26) if ty.is_oid_like() => true,
        (ty, takes) => ty.oid() == takes,
    }
}

/// The type whose default is that of a type.
fn takes_by_default(ty: &SqlType, takes: u32) -> bool {
    match ty {
        // These are taken by those of others only if they are named.
        SqlType::Text | SqlType::Varchar(_) => takes == SqlType::Text.oid(),
        SqlType::Bit(_) | SqlType::Varbit(_) => takes == ty.oid(),
        ty => fits(ty, takes),
    }
}

/// The class that a column of a type has in an index of a method, if none is named.
pub fn default_operator_class(method: &str, ty: &SqlType) -> Option<&'static OperatorClass> {
    ALL.iter().find(|c| c.is_default && c.method == method && takes_by_default(ty, c.takes))
}

/// The class that a column of a type has in an index of a method.
///
/// # Errors
/// 42704 for a name that nobody knows, and if none is named and the type has no default; 42804 if
/// the one that is named takes other types.
pub fn operator_class(
    method: &str,
    ty: &SqlType,
    named: Option<&str>,
) -> SqlResult<&'static OperatorClass> {
    let Some(named) = named else {
        return default_operator_class(method, ty).ok_or_else(|| {
            let text = format!(
                "data type {} has no default operator class for access method \"{method}\"",
                ty.base_name()
            );
            SqlError::new(SqlState::UNDEFINED_OBJECT, text).with_hint(
                "You must specify an operator class for the index or define a default operator \
                 class for the data type.",
            )
        });
    };
    let bare = named.trim_start_matches("pg_catalog.").trim_start_matches("public.");
    match ALL.iter().find(|c| c.method == method && c.name == bare) {
        Some(class) if fits(ty, class.takes) => Ok(class),
        Some(_) => {
            let ty = ty.base_name();
            let text = format!("operator class \"{named}\" does not accept data type {ty}");
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text))
        }
        None => {
            let text =
                format!("operator class \"{named}\" does not exist for access method \"{method}\"");
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text))
        }
    }
}
