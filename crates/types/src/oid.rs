//! Object identifiers of built-in types, as every PostgreSQL client knows them.

macro_rules! oids {
    ($($name:ident = $value:literal, $array:ident = $array_value:literal, $doc:literal;)*) => {
        $(
            #[doc = concat!("`", $doc, "`")]
            pub const $name: u32 = $value;
            #[doc = concat!("`", $doc, "[]`")]
            pub const $array: u32 = $array_value;
        )*
    };
}

oids! {
    BOOL = 16, BOOL_ARRAY = 1000, "boolean";
    BYTEA = 17, BYTEA_ARRAY = 1001, "bytea";
    CHAR_BYTE = 18, CHAR_BYTE_ARRAY = 1002, "\"char\"";
    NAME = 19, NAME_ARRAY = 1003, "name";
    INT8 = 20, INT8_ARRAY = 1016, "bigint";
    INT2 = 21, INT2_ARRAY = 1005, "smallint";
    INT4 = 23, INT4_ARRAY = 1007, "integer";
    TEXT = 25, TEXT_ARRAY = 1009, "text";
    OID = 26, OID_ARRAY = 1028, "oid";
    FLOAT4 = 700, FLOAT4_ARRAY = 1021, "real";
    FLOAT8 = 701, FLOAT8_ARRAY = 1022, "double precision";
    BPCHAR = 1042, BPCHAR_ARRAY = 1014, "character";
    VARCHAR = 1043, VARCHAR_ARRAY = 1015, "character varying";
    DATE = 1082, DATE_ARRAY = 1182, "date";
    TIME = 1083, TIME_ARRAY = 1183, "time without time zone";
    TIMESTAMP = 1114, TIMESTAMP_ARRAY = 1115, "timestamp without time zone";
    TIMESTAMPTZ = 1184, TIMESTAMPTZ_ARRAY = 1185, "timestamp with time zone";
    INTERVAL = 1186, INTERVAL_ARRAY = 1187, "interval";
    NUMERIC = 1700, NUMERIC_ARRAY = 1231, "numeric";
    UUID = 2950, UUID_ARRAY = 2951, "uuid";
    JSON = 114, JSON_ARRAY = 199, "json";
    JSONB = 3802, JSONB_ARRAY = 3807, "jsonb";
    REGCLASS = 2205, REGCLASS_ARRAY = 2210, "regclass";
    REGTYPE = 2206, REGTYPE_ARRAY = 2211, "regtype";
    REGPROC = 24, REGPROC_ARRAY = 1008, "regproc";
    REGPROCEDURE = 2202, REGPROCEDURE_ARRAY = 2207, "regprocedure";
    REGNAMESPACE = 4089, REGNAMESPACE_ARRAY = 4090, "regnamespace";
    REGROLE = 4096, REGROLE_ARRAY = 4097, "regrole";
    INT2_VECTOR = 22, INT2_VECTOR_ARRAY = 1006, "int2vector";
    OID_VECTOR = 30, OID_VECTOR_ARRAY = 1013, "oidvector";
    INET = 869, INET_ARRAY = 1041, "inet";
    CIDR = 650, CIDR_ARRAY = 651, "cidr";
    MACADDR = 829, MACADDR_ARRAY = 1040, "macaddr";
    MACADDR8 = 774, MACADDR8_ARRAY = 775, "macaddr8";
    BIT = 1560, BIT_ARRAY = 1561, "bit";
    VARBIT = 1562, VARBIT_ARRAY = 1563, "bit varying";
    MONEY = 790, MONEY_ARRAY = 791, "money";
    TIMETZ = 1266, TIMETZ_ARRAY = 1270, "time with time zone";
    REGOPER = 2203, REGOPER_ARRAY = 2208, "regoper";
    REGOPERATOR = 2204, REGOPERATOR_ARRAY = 2209, "regoperator";
    REGCOLLATION = 4191, REGCOLLATION_ARRAY = 4192, "regcollation";
    INT4RANGE = 3904, INT4RANGE_ARRAY = 3905, "int4range";
    INT8RANGE = 3926, INT8RANGE_ARRAY = 3927, "int8range";
    NUMRANGE = 3906, NUMRANGE_ARRAY = 3907, "numrange";
    TSRANGE = 3908, TSRANGE_ARRAY = 3909, "tsrange";
    TSTZRANGE = 3910, TSTZRANGE_ARRAY = 3911, "tstzrange";
    DATERANGE = 3912, DATERANGE_ARRAY = 3913, "daterange";
    INT4MULTIRANGE = 4451, INT4MULTIRANGE_ARRAY = 6150, "int4multirange";
    INT8MULTIRANGE = 4536, INT8MULTIRANGE_ARRAY = 6157, "int8multirange";
    NUMMULTIRANGE = 4532, NUMMULTIRANGE_ARRAY = 6151, "nummultirange";
    TSMULTIRANGE = 4533, TSMULTIRANGE_ARRAY = 6152, "tsmultirange";
    TSTZMULTIRANGE = 4534, TSTZMULTIRANGE_ARRAY = 6153, "tstzmultirange";
    DATEMULTIRANGE = 4535, DATEMULTIRANGE_ARRAY = 6155, "datemultirange";
    POINT = 600, POINT_ARRAY = 1017, "point";
    LSEG = 601, LSEG_ARRAY = 1018, "lseg";
    PATH = 602, PATH_ARRAY = 1019, "path";
    BOX = 603, BOX_ARRAY = 1020, "box";
    POLYGON = 604, POLYGON_ARRAY = 1027, "polygon";
    LINE = 628, LINE_ARRAY = 629, "line";
    CIRCLE = 718, CIRCLE_ARRAY = 719, "circle";
    TID = 27, TID_ARRAY = 1010, "tid";
    XID8 = 5069, XID8_ARRAY = 271, "xid8";
    PG_LSN = 3220, PG_LSN_ARRAY = 3221, "pg_lsn";
    JSONPATH = 4072, JSONPATH_ARRAY = 4073, "jsonpath";
    CITEXT = 12_950, CITEXT_ARRAY = 12_951, "citext";
    REFCURSOR = 1790, REFCURSOR_ARRAY = 2201, "refcursor";
    RECORD = 2249, RECORD_ARRAY = 2287, "record";
}

/// `unknown`: a literal whose type nothing decides.
pub const UNKNOWN: u32 = 705;
/// What citext and its arrays had as oids once: stored arrays name them. Below 10000 drivers expect
/// nothing but types that they know (asyncpg refuses others), and do not ask what they are.
pub(crate) const CITEXT_BEFORE: [u32; 2] = [9950, 9951];
/// `void`.
pub(crate) const VOID: u32 = 2278;

/// Types that no value has, which functions of PostgreSQL take and give: oid, name, and how many
/// bytes a value would have.
pub const PSEUDO_TYPES: [(u32, &str, i16); 20] = [
    (2276, "any", 4),
    (2277, "anyarray", -1),
    (2283, "anyelement", 4),
    (2776, "anynonarray", 4),
    (3500, "anyenum", 4),
    (3831, "anyrange", -1),
    (4537, "anymultirange", -1),
    (5077, "anycompatible", 4),
    (5078, "anycompatiblearray", -1),
    (5079, "anycompatiblenonarray", 4),
    (5080, "anycompatiblerange", -1),
    (4538, "anycompatiblemultirange", -1),
    (2275, "cstring", -2),
    (2279, "trigger", 4),
    (3838, "event_trigger", 4),
    (2280, "language_handler", 4),
    (2281, "internal", 8),
    (3115, "fdw_handler", 4),
    (325, "index_am_handler", 4),
    (269, "table_am_handler", 4),
];

/// The name of a type that no value has.
pub fn pseudo_type_name(oid: u32) -> Option<&'static str> {
    PSEUDO_TYPES.iter().find(|(known, ..)| *known == oid).map(|(_, name, _)| *name)
}

/// Its oid.
pub fn pseudo_type_oid(name: &str) -> Option<u32> {
    PSEUDO_TYPES.iter().find(|(_, known, _)| *known == name).map(|(oid, ..)| *oid)
}
