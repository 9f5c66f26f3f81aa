//! SQL types with their modifiers.

use std::mem::discriminant;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::user_type::{composite_by_oid, enum_by_oid};
use crate::{
    CompositeType, EnumType, GeometryKind, RangeKind, SqlError, SqlResult, SqlState, oid,
    shown_type_name,
};

/// The type of a column, parameter or expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SqlType {
    /// `boolean`.
    Bool,
    /// `smallint`.
    Int2,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
    /// `oid`, also what `regclass`, `regtype` and friends are stored as.
    Oid,
    /// `real`.
    Float4,
    /// `double precision`.
    Float8,
    /// `numeric`, with (precision, scale) if declared.
    Numeric(Option<(u16, i16)>),
    /// `text`.
    Text,
    /// `varchar(n)`, n in characters.
    Varchar(Option<u32>),
    /// `char(n)`, n in characters, blank-padded; 0 is `bpchar` without a length.
    Char(u32),
    /// `name`: identifiers of the system catalog.
    Name,
    /// `"char"`: one byte, system catalog only.
    CharByte,
    /// `bytea`.
    Bytea,
    /// `date`.
    Date,
    /// `time without time zone`.
    Time,
    /// `timestamp without time zone`.
    Timestamp,
    /// `timestamp with time zone`.
    TimestampTz,
    /// `interval`.
    Interval,
    /// `uuid`.
    Uuid,
    /// `jsonb`.
    Jsonb,
    /// `json`: text that is kept as it was written.
    Json,
    /// `regclass`: an oid that prints as a relation name.
    Regclass,
    /// `regtype`: an oid that prints as a type name.
    Regtype,
    /// `regproc`: an oid that prints as a function name.
    Regproc,
    /// `regprocedure`: an oid that prints as a function with its arguments.
    Regprocedure,
    /// `regnamespace`: an oid that prints as a schema name.
    Regnamespace,
    /// `regrole`: an oid that prints as the name of a role.
    Regrole,
    /// `regoper`: an oid that prints as an operator.
    Regoper,
    /// `regoperator`: an oid that prints as an operator with its operands.
    Regoperator,
    /// `regcollation`: an oid that prints as the name of a collation.
    Regcollation,
    /// `inet`: the address of a host, perhaps with its network.
    Inet,
    /// `cidr`: the address of a network.
    Cidr,
    /// `macaddr`: six bytes.
    Macaddr,
    /// `macaddr8`: eight bytes.
    Macaddr8,
    /// `bit(n)`; 0 is `bit` without a length.
    Bit(u32),
    /// `bit varying(n)`.
    Varbit(Option<u32>),
    /// `money`.
    Money,
    /// `time with time zone`.
    TimeTz,
    /// `int4range` and the other types of ranges.
    Range(RangeKind),
    /// `int2vector`: a list of `smallint`, subscripts from 0, of the system catalog only.
    Int2Vector,
    /// `oidvector`: the same, of `oid`.
    OidVector,
    /// A type of `CREATE TYPE .. AS ENUM`.
    Enum(#[serde(with = "enum_by_oid")] Arc<EnumType>),
    /// A type of `CREATE TYPE .. AS (..)`, or that of a table's rows.
    Composite(#[serde(with = "composite_by_oid")] Arc<CompositeType>),
    /// Array, of any dimensions, of an element type that is not itself an array.
    Array(Box<SqlType>),
    /// A row value (`record`): only as an intermediate result.
    Record,
    /// `void`: functions without a result.
    Void,
    /// A literal or NULL whose type the context decides.
    Unknown,
    /// `int4multirange` and the other types of several ranges.
    Multirange(RangeKind),
    /// `point`, `box` and the other types of shapes in the plane.
    Geometry(GeometryKind),
    /// `xid8`: the number of a transaction.
    Xid8,
    /// `tid`: the place of a row, as PostgreSQL has it.
    Tid,
    /// `pg_lsn`: a place in a log of changes, as PostgreSQL has it.
    PgLsn,
    /// `jsonpath`: a path of SQL/JSON, kept as it is printed.
    Jsonpath,
    /// `refcursor`: the name of a cursor.
    Refcursor,
    /// `citext`: a text whose letters may be small or not, of the extension of that name.
    Citext,
}

/// The groups of types that overload resolution prefers among.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeCategory {
    /// Arrays.
    Array,
    /// Boolean.
    Boolean,
    /// Date, time, timestamps.
    DateTime,
    /// Numbers and oids.
    Numeric,
    /// Row values.
    Composite,
    /// Text-like.
    String,
    /// Enum types.
    Enum,
    /// Interval.
    Timespan,
    /// Strings of bits.
    BitString,
    /// Addresses of networks.
    Network,
    /// Ranges.
    Range,
    /// Shapes in the plane.
    Geometric,
    /// Everything else with a meaning of its own: bytea, uuid, jsonb.
    User,
    /// Not decided.
    Unknown,
}

/// (base type, oid, array oid, name as format_type prints, internal name).
const NAMES: &[(SqlType, u32, u32, &str, &str)] = &[
    (SqlType::Bool, oid::BOOL, oid::BOOL_ARRAY, "boolean", "bool"),
    (SqlType::Int2, oid::INT2, oid::INT2_ARRAY, "smallint", "int2"),
    (SqlType::Int4, oid::INT4, oid::INT4_ARRAY, "integer", "int4"),
    (SqlType::Int8, oid::INT8, oid::INT8_ARRAY, "bigint", "int8"),
    (SqlType::Oid, oid::OID, oid::OID_ARRAY, "oid", "oid"),
    (SqlType::Float4, oid::FLOAT4, oid::FLOAT4_ARRAY, "real", "float4"),
    (SqlType::Float8, oid::FLOAT8, oid::FLOAT8_ARRAY, "double precision", "float8"),
    (SqlType::Numeric(None), oid::NUMERIC, oid::NUMERIC_ARRAY, "numeric", "numeric"),
    (SqlType::Text, oid::TEXT, oid::TEXT_ARRAY, "text", "text"),
    (SqlType::Varchar(None), oid::VARCHAR, oid::VARCHAR_ARRAY, "character varying", "varchar"),
    (SqlType::Char(0), oid::BPCHAR, oid::BPCHAR_ARRAY, "character", "bpchar"),
    (SqlType::Name, oid::NAME, oid::NAME_ARRAY, "name", "name"),
    (SqlType::CharByte, oid::CHAR_BYTE, oid::CHAR_BYTE_ARRAY, "\"char\"", "char"),
    (SqlType::Bytea, oid::BYTEA, oid::BYTEA_ARRAY, "bytea", "bytea"),
    (SqlType::Date, oid::DATE, oid::DATE_ARRAY, "date", "date"),
    (SqlType::Time, oid::TIME, oid::TIME_ARRAY, "time without time zone", "time"),
    (
        SqlType::Timestamp,
        oid::TIMESTAMP,
        oid::TIMESTAMP_ARRAY,
        "timestamp without time zone",
        "timestamp",
    ),
    (
        SqlType::TimestampTz,
        oid::TIMESTAMPTZ,
        oid::TIMESTAMPTZ_ARRAY,
        "timestamp with time zone",
        "timestamptz",
    ),
    (SqlType::Interval, oid::INTERVAL, oid::INTERVAL_ARRAY, "interval", "interval"),
    (SqlType::Uuid, oid::UUID, oid::UUID_ARRAY, "uuid", "uuid"),
    (SqlType::Json, oid::JSON, oid::JSON_ARRAY, "json", "json"),
    (SqlType::Jsonb, oid::JSONB, oid::JSONB_ARRAY, "jsonb", "jsonb"),
    (SqlType::Regclass, oid::REGCLASS, oid::REGCLASS_ARRAY, "regclass", "regclass"),
    (SqlType::Regtype, oid::REGTYPE, oid::REGTYPE_ARRAY, "regtype", "regtype"),
    (SqlType::Regproc, oid::REGPROC, oid::REGPROC_ARRAY, "regproc", "regproc"),
    (
        SqlType::Regprocedure,
        oid::REGPROCEDURE,
        oid::REGPROCEDURE_ARRAY,
        "regprocedure",
        "regprocedure",
    ),
    (
        SqlType::Regnamespace,
        oid::REGNAMESPACE,
        oid::REGNAMESPACE_ARRAY,
        "regnamespace",
        "regnamespace",
    ),
    (SqlType::Regrole, oid::REGROLE, oid::REGROLE_ARRAY, "regrole", "regrole"),
    (SqlType::Int2Vector, oid::INT2_VECTOR, oid::INT2_VECTOR_ARRAY, "int2vector", "int2vector"),
    (SqlType::OidVector, oid::OID_VECTOR, oid::OID_VECTOR_ARRAY, "oidvector", "oidvector"),
    (SqlType::Inet, oid::INET, oid::INET_ARRAY, "inet", "inet"),
    (SqlType::Cidr, oid::CIDR, oid::CIDR_ARRAY, "cidr", "cidr"),
    (SqlType::Macaddr, oid::MACADDR, oid::MACADDR_ARRAY, "macaddr", "macaddr"),
    (SqlType::Macaddr8, oid::MACADDR8, oid::MACADDR8_ARRAY, "macaddr8", "macaddr8"),
    (SqlType::Bit(0), oid::BIT, oid::BIT_ARRAY, "bit", "bit"),
    (SqlType::Varbit(None), oid::VARBIT, oid::VARBIT_ARRAY, "bit varying", "varbit"),
    (SqlType::Money, oid::MONEY, oid::MONEY_ARRAY, "money", "money"),
    (SqlType::TimeTz, oid::TIMETZ, oid::TIMETZ_ARRAY, "time with time zone", "timetz"),
    (SqlType::Regoper, oid::REGOPER, oid::REGOPER_ARRAY, "regoper", "regoper"),
    (SqlType::Regoperator, oid::REGOPERATOR, oid::REGOPERATOR_ARRAY, "regoperator", "regoperator"),
    (
        SqlType::Regcollation,
        oid::REGCOLLATION,
        oid::REGCOLLATION_ARRAY,
        "regcollation",
        "regcollation",
    ),
    (
        SqlType::Range(RangeKind::Int4),
        oid::INT4RANGE,
        oid::INT4RANGE_ARRAY,
        "int4range",
        "int4range",
    ),
    (
        SqlType::Range(RangeKind::Int8),
        oid::INT8RANGE,
        oid::INT8RANGE_ARRAY,
        "int8range",
        "int8range",
    ),
    (SqlType::Range(RangeKind::Num), oid::NUMRANGE, oid::NUMRANGE_ARRAY, "numrange", "numrange"),
    (SqlType::Range(RangeKind::Ts), oid::TSRANGE, oid::TSRANGE_ARRAY, "tsrange", "tsrange"),
    (
        SqlType::Range(RangeKind::Tstz),
        oid::TSTZRANGE,
        oid::TSTZRANGE_ARRAY,
        "tstzrange",
        "tstzrange",
    ),
    (
        SqlType::Range(RangeKind::Date),
        oid::DATERANGE,
        oid::DATERANGE_ARRAY,
        "daterange",
        "daterange",
    ),
    (
        SqlType::Multirange(RangeKind::Int4),
        oid::INT4MULTIRANGE,
        oid::INT4MULTIRANGE_ARRAY,
        "int4multirange",
        "int4multirange",
    ),
    (
        SqlType::Multirange(RangeKind::Int8),
        oid::INT8MULTIRANGE,
        oid::INT8MULTIRANGE_ARRAY,
        "int8multirange",
        "int8multirange",
    ),
    (
        SqlType::Multirange(RangeKind::Num),
        oid::NUMMULTIRANGE,
        oid::NUMMULTIRANGE_ARRAY,
        "nummultirange",
        "nummultirange",
    ),
    (
        SqlType::Multirange(RangeKind::Ts),
        oid::TSMULTIRANGE,
        oid::TSMULTIRANGE_ARRAY,
        "tsmultirange",
        "tsmultirange",
    ),
    (
        SqlType::Multirange(RangeKind::Tstz),
        oid::TSTZMULTIRANGE,
        oid::TSTZMULTIRANGE_ARRAY,
        "tstzmultirange",
        "tstzmultirange",
    ),
    (
        SqlType::Multirange(RangeKind::Date),
        oid::DATEMULTIRANGE,
        oid::DATEMULTIRANGE_ARRAY,
        "datemultirange",
        "datemultirange",
    ),
    (SqlType::Geometry(GeometryKind::Point), oid::POINT, oid::POINT_ARRAY, "point", "point"),
    (SqlType::Geometry(GeometryKind::Lseg), oid::LSEG, oid::LSEG_ARRAY, "lseg", "lseg"),
    (SqlType::Geometry(GeometryKind::Path), oid::PATH, oid::PATH_ARRAY, "path", "path"),
    (SqlType::Geometry(GeometryKind::Box), oid::BOX, oid::BOX_ARRAY, "box", "box"),
    (
        SqlType::Geometry(GeometryKind::Polygon),
        oid::POLYGON,
        oid::POLYGON_ARRAY,
        "polygon",
        "polygon",
    ),
    (SqlType::Geometry(GeometryKind::Line), oid::LINE, oid::LINE_ARRAY, "line", "line"),
    (SqlType::Geometry(GeometryKind::Circle), oid::CIRCLE, oid::CIRCLE_ARRAY, "circle", "circle"),
    (SqlType::Xid8, oid::XID8, oid::XID8_ARRAY, "xid8", "xid8"),
    (SqlType::Tid, oid::TID, oid::TID_ARRAY, "tid", "tid"),
    (SqlType::PgLsn, oid::PG_LSN, oid::PG_LSN_ARRAY, "pg_lsn", "pg_lsn"),
    (SqlType::Jsonpath, oid::JSONPATH, oid::JSONPATH_ARRAY, "jsonpath", "jsonpath"),
    (SqlType::Citext, oid::CITEXT, oid::CITEXT_ARRAY, "citext", "citext"),
    (SqlType::Refcursor, oid::REFCURSOR, oid::REFCURSOR_ARRAY, "refcursor", "refcursor"),
    (SqlType::Record, oid::RECORD, oid::RECORD_ARRAY, "record", "record"),
    (SqlType::Void, oid::VOID, 0, "void", "void"),
    (SqlType::Unknown, oid::UNKNOWN, 0, "unknown", "unknown"),
];

impl SqlType {
    /// Every base type once, in the order of the built-in catalog.
    pub fn all_base() -> impl Iterator<Item = &'static SqlType> {
        NAMES.iter().map(|row| &row.0)
    }

    /// The type without modifiers: `varchar(3)` becomes `varchar`, `char(n)` becomes `bpchar`.
    pub fn base(&self) -> SqlType {
        match self {
            SqlType::Numeric(_) => SqlType::Numeric(None),
            SqlType::Varchar(_) => SqlType::Varchar(None),
            SqlType::Char(_) => SqlType::Char(0),
            SqlType::Bit(_) => SqlType::Bit(0),
            SqlType::Varbit(_) => SqlType::Varbit(None),
            SqlType::Array(element) => SqlType::Array(Box::new(element.base())),
            other => other.clone(),
        }
    }

    /// Whether two types differ at most in their modifiers.
    pub fn same_base(&self, other: &SqlType) -> bool {
        match (self, other) {
            (SqlType::Numeric(_), SqlType::Numeric(_))
            | (SqlType::Varchar(_), SqlType::Varchar(_))
            | (SqlType::Char(_), SqlType::Char(_))
            | (SqlType::Bit(_), SqlType::Bit(_))
            | (SqlType::Varbit(_), SqlType::Varbit(_)) => true,
            (SqlType::Array(a), SqlType::Array(b)) => a.same_base(b),
            (SqlType::Enum(a), SqlType::Enum(b)) => a.oid == b.oid,
            (SqlType::Composite(a), SqlType::Composite(b)) => a.oid == b.oid,
            (SqlType::Range(a), SqlType::Range(b))
            | (SqlType::Multirange(a), SqlType::Multirange(b)) => a.is_same(b),
            (a, b) => a == b,
        }
    }

    fn row(&self) -> &'static (SqlType, u32, u32, &'static str, &'static str) {
        if let SqlType::Array(element) = self {
            return element.row();
        }
        NAMES
            .iter()
            .find(|row| discriminant(&row.0) == discriminant(self) && row.0.same_base(self))
            .expect("every built-in type that is not an array has a row in NAMES")
    }

    /// The type's oid.
    pub fn oid(&self) -> u32 {
        match self {
            SqlType::Array(element) => element.array_oid(),
            SqlType::Enum(ty) => ty.oid,
            SqlType::Composite(ty) => ty.oid,
            ty if let Some((_, of)) = ty.made_range() => of.oid,
            other => other.row().1,
        }
    }

    /// The oid of the array type of this element type, 0 if there is none.
    pub fn array_oid(&self) -> u32 {
        match self {
            SqlType::Array(_) => 0,
            SqlType::Enum(ty) => ty.array_oid,
            SqlType::Composite(ty) => ty.array_oid,
            ty if let Some((_, of)) = ty.made_range() => of.array_oid,
            other => other.row().2,
        }
    }

    /// The type that an oid and a type modifier (-1 for none) mean; `None` for an oid that is not
    /// known here.
    pub fn from_oid(oid: u32, typmod: i32) -> Option<SqlType> {
        if oid == 0 {
            return None;
        }
        let oid = match oid::CITEXT_BEFORE.iter().position(|before| *before == oid) {
            Some(at) => [oid::CITEXT, oid::CITEXT_ARRAY][at],
            None => oid,
        };
        for row in NAMES {
            if row.1 == oid {
                return Some(row.0.clone().with_typmod(typmod));
            }
            if row.2 == oid {
                return Some(SqlType::Array(Box::new(row.0.clone().with_typmod(typmod))));
            }
        }
        None
    }

    fn with_typmod(self, typmod: i32) -> SqlType {
        match self {
            SqlType::Bit(_) if typmod > 0 => return SqlType::Bit(typmod as u32),
            SqlType::Varbit(_) if typmod > 0 => return SqlType::Varbit(Some(typmod as u32)),
            _ if typmod < 4 => return self,
            _ => {}
        }
        let n = typmod - 4;
        match self {
            SqlType::Varchar(_) => SqlType::Varchar(Some(n as u32)),
            SqlType::Char(_) => SqlType::Char(n as u32),
            SqlType::Numeric(_) => {
                let scale = ((n & 0x7ff) ^ 1024) - 1024;
                SqlType::Numeric(Some(((n >> 16) as u16, scale as i16)))
            }
            other => other,
        }
    }

    /// The type modifier as the system catalog and the wire show it: -1 for none.
    pub fn typmod(&self) -> i32 {
        match self {
            SqlType::Varchar(Some(n)) => *n as i32 + 4,
            SqlType::Char(n) if *n > 0 => *n as i32 + 4,
            SqlType::Numeric(Some((p, s))) => ((i32::from(*p) << 16) | (i32::from(*s) & 0x7ff)) + 4,
            SqlType::Bit(n @ 1..) | SqlType::Varbit(Some(n)) => *n as i32,
            SqlType::Array(element) => element.typmod(),
            _ => -1,
        }
    }

    /// Size in bytes as `pg_type.typlen` has it: -1 for variable.
    pub fn type_len(&self) -> i16 {
        match self {
            SqlType::Bool | SqlType::CharByte => 1,
            SqlType::Int2 => 2,
            SqlType::Int4
            | SqlType::Oid
            | SqlType::Float4
            | SqlType::Date
            | SqlType::Regclass
            | SqlType::Regtype
            | SqlType::Regproc
            | SqlType::Regprocedure
            | SqlType::Regnamespace
            | SqlType::Regrole
            | SqlType::Regoper
            | SqlType::Regoperator
            | SqlType::Regcollation
            | SqlType::Enum(_)
            | SqlType::Void => 4,
            SqlType::Macaddr | SqlType::Tid => 6,
            SqlType::TimeTz => 12,
            SqlType::Int8
            | SqlType::Float8
            | SqlType::Time
            | SqlType::Timestamp
            | SqlType::TimestampTz
            | SqlType::Macaddr8
            | SqlType::Money
            | SqlType::Xid8
            | SqlType::PgLsn => 8,
            SqlType::Interval | SqlType::Uuid => 16,
            SqlType::Name => 64,
            SqlType::Geometry(kind) => kind.len(),
            SqlType::Unknown => -2,
            _ => -1,
        }
    }

    /// The name without modifiers as `format_type` prints it: `character varying`, `integer[]`.
    pub fn base_name(&self) -> String {
        match self {
            SqlType::Array(element) => format!("{}[]", element.base_name()),
            ty if let Some((schema, name)) = ty.user_name() => shown_type_name(schema, name),
            other => other.row().3.to_string(),
        }
    }

    /// Schema and name of a type that a user has made; `None` for others, and for arrays.
    pub fn user_name(&self) -> Option<(&str, &str)> {
        match self {
            SqlType::Enum(ty) => Some((&ty.schema, &ty.name)),
            SqlType::Composite(ty) => Some((&ty.schema, &ty.name)),
            ty => ty.made_range().map(|(range, of)| (range.schema.as_str(), of.name.as_str())),
        }
    }

    /// The name as `pg_type.typname` has it: `int4`, `_text`.
    pub fn internal_name(&self) -> String {
        match self {
            SqlType::Array(element) => format!("_{}", element.internal_name()),
            ty if let Some((_, name)) = ty.user_name() => name.to_string(),
            other => other.row().4.to_string(),
        }
    }

    /// The name with modifiers as `format_type` prints it: `character varying(3)`.
    pub fn name(&self) -> String {
        match self {
            SqlType::Array(element) => format!("{}[]", element.name()),
            SqlType::Varchar(Some(n)) => format!("character varying({n})"),
            SqlType::Char(n) if *n > 0 => format!("character({n})"),
            SqlType::Bit(n @ 1..) => format!("bit({n})"),
            SqlType::Varbit(Some(n)) => format!("bit varying({n})"),
            SqlType::Numeric(Some((p, s))) => format!("numeric({p},{s})"),
            ty if let Some((schema, name)) = ty.user_name() => shown_type_name(schema, name),
            other => other.row().3.to_string(),
        }
    }

    /// As [`SqlType::from_name`], and types that a database only has with an extension.
    pub fn from_any_name(name: &str) -> Option<SqlType> {
        SqlType::from_name(name).or_else(|| (name == "citext").then_some(SqlType::Citext))
    }

    /// Looks a plain type name up: both `integer` and `int4`, folded, without modifiers.
    pub fn from_name(name: &str) -> Option<SqlType> {
        let name = name.trim();
        if let Some(element) = name.strip_suffix("[]").or_else(|| name.strip_prefix('_')) {
            return Some(SqlType::Array(Box::new(SqlType::from_name(element)?)));
        }
        let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
        let is_it = |row: &&(SqlType, u32, u32, &str, &str)| row.3 == name || row.4 == name;
        if let Some(row) = NAMES.iter().filter(|row| row.0 != SqlType::Citext).find(is_it) {
            return Some(row.0.clone());
        }
        Some(match name {
            "int" => SqlType::Int4,
            "decimal" | "dec" => SqlType::Numeric(None),
            "float" => SqlType::Float8,
            "string" => SqlType::Text,
            "xid" | "cid" => SqlType::Oid,
            _ => return None,
        })
    }

    /// The category for overload resolution.
    pub fn category(&self) -> TypeCategory {
        match self {
            SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector => TypeCategory::Array,
            SqlType::Bool => TypeCategory::Boolean,
            SqlType::Date
            | SqlType::Time
            | SqlType::TimeTz
            | SqlType::Timestamp
            | SqlType::TimestampTz => TypeCategory::DateTime,
            SqlType::Inet | SqlType::Cidr => TypeCategory::Network,
            SqlType::Range(_) | SqlType::Multirange(_) => TypeCategory::Range,
            SqlType::Geometry(_) => TypeCategory::Geometric,
            SqlType::Bit(_) | SqlType::Varbit(_) => TypeCategory::BitString,
            SqlType::Int2
            | SqlType::Int4
            | SqlType::Int8
            | SqlType::Oid
            | SqlType::Float4
            | SqlType::Float8
            | SqlType::Numeric(_)
            | SqlType::Regclass
            | SqlType::Regtype
            | SqlType::Regproc
            | SqlType::Regprocedure
            | SqlType::Regnamespace
            | SqlType::Regrole
            | SqlType::Regoper
            | SqlType::Regoperator
            | SqlType::Regcollation
            | SqlType::Money => TypeCategory::Numeric,
            SqlType::Record | SqlType::Composite(_) => TypeCategory::Composite,
            SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name => {
                TypeCategory::String
            }
            SqlType::CharByte | SqlType::Citext => TypeCategory::String,
            SqlType::Enum(_) => TypeCategory::Enum,
            SqlType::Interval => TypeCategory::Timespan,
            SqlType::Bytea
            | SqlType::Uuid
            | SqlType::Jsonb
            | SqlType::Json
            | SqlType::Macaddr
            | SqlType::Macaddr8
            | SqlType::Xid8
            | SqlType::Tid
            | SqlType::PgLsn
            | SqlType::Jsonpath
            | SqlType::Refcursor
            | SqlType::Void => TypeCategory::User,
            SqlType::Unknown => TypeCategory::Unknown,
        }
    }

    /// Whether this is the preferred type of its category.
    pub fn is_preferred(&self) -> bool {
        matches!(
            self,
            SqlType::Text
                | SqlType::Float8
                | SqlType::Oid
                | SqlType::Bool
                | SqlType::TimestampTz
                | SqlType::Interval
                | SqlType::Inet
                | SqlType::Varbit(_)
        )
    }

    /// The type of arrays of this type. Arrays of several dimensions have the type of those of one.
    pub fn array_of(&self) -> SqlType {
        match self {
            SqlType::Array(_) => self.clone(),
            element => SqlType::Array(Box::new(element.clone())),
        }
    }

    /// Whether values of this type have an order and an equality.
    pub fn is_comparable(&self) -> bool {
        match self {
            SqlType::Json | SqlType::Void | SqlType::Unknown | SqlType::Record => false,
            ty if ty.is_unordered_text() => false,
            SqlType::Geometry(_) => false,
            SqlType::Array(element) => element.is_comparable(),
            SqlType::Composite(ty) => ty.fields.iter().all(|f| f.ty.is_comparable()),
            _ => true,
        }
    }

    /// Refuses to sort, group or tell apart values of a type that cannot be compared; `operator`
    /// is `equality` or `ordering`.
    ///
    /// # Errors
    /// 42883, for `json` and its arrays among others.
    pub fn check_comparable(&self, operator: &str) -> SqlResult<()> {
        if let SqlType::Composite(ty) = self {
            return ty.fields.iter().try_for_each(|f| f.ty.check_comparable(operator));
        }
        // Rows are compared field by field, literals are text by then.
        let rows = self.element().unwrap_or(self) == &SqlType::Record;
        if self.is_comparable() || rows || *self == SqlType::Unknown {
            return Ok(());
        }
        let error = SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("could not identify an {operator} operator for type {self}"),
        );
        Err(match operator {
            "ordering" => error.with_hint("Use an explicit ordering operator or modify the query."),
            _ => error,
        })
    }

    /// `smallint`, `integer`, `bigint`.
    pub fn is_integer(&self) -> bool {
        matches!(self, SqlType::Int2 | SqlType::Int4 | SqlType::Int8)
    }

    /// `regclass`, `regtype` and their like: oids that print as names.
    pub fn names_objects(&self) -> bool {
        matches!(
            self,
            SqlType::Regclass
                | SqlType::Regtype
                | SqlType::Regproc
                | SqlType::Regprocedure
                | SqlType::Regnamespace
                | SqlType::Regrole
                | SqlType::Regoper
                | SqlType::Regoperator
                | SqlType::Regcollation
        )
    }

    /// Whether values are lists with subscripts from 0.
    pub(crate) fn is_vector(&self) -> bool {
        matches!(self, SqlType::Int2Vector | SqlType::OidVector)
    }

    /// `oid`, and the types whose oids print as names.
    pub fn is_oid_like(&self) -> bool {
        self.names_objects() || *self == SqlType::Oid
    }

    /// Types whose values are [`crate::Datum::Text`].
    pub fn is_text_like(&self) -> bool {
        self.category() == TypeCategory::String && *self != SqlType::Citext
    }

    /// Types whose values are texts, too, but no strings, and have no order.
    pub fn is_unordered_text(&self) -> bool {
        matches!(self, SqlType::Jsonpath | SqlType::Refcursor)
    }

    /// The sign between elements in the text of arrays of this type: of boxes not a comma, of which
    /// each has some.
    pub fn delimiter(&self) -> char {
        if *self == SqlType::Geometry(GeometryKind::Box) { ';' } else { ',' }
    }

    /// The type of `value[0]`: the element of an array, a number of a point, a point of a box.
    pub fn subscripted(&self) -> Option<SqlType> {
        match self {
            SqlType::Geometry(kind) => kind.part(),
            other => other.element().cloned(),
        }
    }

    /// Element type of an array type.
    pub fn element(&self) -> Option<&SqlType> {
        match self {
            SqlType::Array(element) => Some(element),
            SqlType::Int2Vector => Some(&SqlType::Int2),
            SqlType::OidVector => Some(&SqlType::Oid),
            _ => None,
        }
    }
}

impl std::fmt::Display for SqlType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}
