//! Parsed type names to types.

use braid_types::{IntervalField, IntervalFields, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{
    ArrayElemTypeDef, BinaryLength, CharacterLength, DataType, ExactNumberInfo, TimezoneInfo,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::{Refinement, TypeNames, object_name_parts};

fn length(given: &Option<CharacterLength>, ty: &str) -> SqlResult<Option<u32>> {
    match given {
        Some(CharacterLength::IntegerLength { length, .. }) => {
            if *length == 0 {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("length for type {ty} must be at least 1"),
                ));
            }
            if *length > 10_485_760 {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("length for type {ty} cannot exceed 10485760"),
                ));
            }
            Ok(Some(*length as u32))
        }
        Some(CharacterLength::Max) | None => Ok(None),
    }
}

fn bit_length(length: Option<u64>, ty: &str) -> SqlResult<Option<u32>> {
    let length = length.map(|length| CharacterLength::IntegerLength { length, unit: None });
    self::length(&length, ty)
}

fn numeric(info: &ExactNumberInfo) -> SqlResult<SqlType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(SqlType::Numeric(None)),
        ExactNumberInfo::Precision(p) => (*p, 0),
        ExactNumberInfo::PrecisionAndScale(p, s) => (*p, *s),
    };
    if !(1..=1000).contains(&precision) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("NUMERIC precision {precision} must be between 1 and 1000"),
        ));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("NUMERIC scale {scale} must be between -1000 and 1000"),
        ));
    }
    Ok(SqlType::Numeric(Some((precision as u16, scale as i16))))
}

/// The digits of seconds that a type name asks for; values keep six.
fn seconds_precision(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::Time(p, _) | DataType::Timestamp(p, _) => *p,
        DataType::Interval { precision, .. } => *precision,
        _ => None,
    }
    .map(|p| p.min(6) as u8)
}

/// The fields that an interval is of.
fn interval_fields(data_type: &DataType) -> Option<IntervalFields> {
    use IntervalField::{Day, Hour, Minute, Month, Second, Year};
    use sqlparser::ast::IntervalFields as Named;
    let DataType::Interval { fields: Some(fields), .. } = data_type else { return None };
    let (first, last) = match fields {
        Named::Year => (Year, Year),
        Named::Month => (Month, Month),
        Named::Day => (Day, Day),
        Named::Hour => (Hour, Hour),
        Named::Minute => (Minute, Minute),
        Named::Second => (Second, Second),
        Named::YearToMonth => (Year, Month),
        Named::DayToHour => (Day, Hour),
        Named::DayToMinute => (Day, Minute),
        Named::DayToSecond => (Day, Second),
        Named::HourToMinute => (Hour, Minute),
        Named::HourToSecond => (Hour, Second),
        Named::MinuteToSecond => (Minute, Second),
    };
    Some(IntervalFields { first, last })
}

/// What a type name asks of values beyond their type: digits of seconds, or what a domain says.
///
/// # Errors
/// Those of a domain's conditions; 0A000 for arrays of such types.
pub fn refinement_of(data_type: &DataType, types: Option<&dyn TypeNames>) -> SqlResult<Refinement> {
    match data_type {
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(inner, _)
            | ArrayElemTypeDef::AngleBracket(inner)
            | ArrayElemTypeDef::Parenthesis(inner),
        ) => match refinement_of(inner, types)? {
            // Arrays of arrays are arrays of more dimensions, which have elements only.
            own if matches!(**inner, DataType::Array(_)) => Ok(own),
            own if !own.is_none() && sql_type_of(inner, types)?.element().is_some() => {
                Err(SqlError::unsupported(format!("an array of {inner}"))
                    .with_hint("Arrays hold values of no domain over arrays."))
            }
            own => Ok(own.of_elements()),
        },
        other => match (types, user_type_name(other)) {
            (Some(types), Some(name)) => Ok(types.domain(&name)?.unwrap_or_default()),
            _ => Ok(Refinement {
                precision: seconds_precision(other),
                fields: interval_fields(other),
                ..Refinement::default()
            }),
        },
    }
}

/// The name of a type whose modifier is a number of digits of seconds.
pub(crate) fn name_with_precision(oid: u32, typmod: i32) -> Option<String> {
    let digits = typmod & 0xffff;
    let (name, rest) = match SqlType::from_oid(oid, -1)? {
        SqlType::Interval => return interval_name(typmod),
        SqlType::Array(element) => {
            let name = name_with_precision(element.oid(), typmod)?;
            return Some(format!("{name}[]"));
        }
        SqlType::Time => ("time", " without time zone"),
        SqlType::TimeTz => ("time", " with time zone"),
        SqlType::Timestamp => ("timestamp", " without time zone"),
        SqlType::TimestampTz => ("timestamp", " with time zone"),
        _ => return None,
    };
    (0..=6).contains(&digits).then(|| format!("{name}({digits}){rest}")).filter(|_| typmod >= 0)
}

/// The name of intervals with a type modifier: `interval day to second(3)`.
fn interval_name(typmod: i32) -> Option<String> {
    let (fields, digits) = IntervalFields::of_typmod(typmod);
    let fields = fields.map(|fields| format!(" {fields}")).unwrap_or_default();
    let digits = digits.map(|digits| format!("({digits})")).unwrap_or_default();
    (typmod >= 0).then(|| format!("interval{fields}{digits}"))
}

/// The type that a parsed type name means: `integer`, `varchar(3)`, `text[]`, also Spanner's names
/// (`STRING(MAX)`, `INT64`, `BYTES(n)`, `ARRAY<...>`), and those of users.
///
/// # Errors
/// 42704 for unknown names, 22023 for bad modifiers, 0A000 for types that are not here.
pub fn sql_type_of(data_type: &DataType, types: Option<&dyn TypeNames>) -> SqlResult<SqlType> {
    Ok(match data_type {
        DataType::Bool | DataType::Boolean => SqlType::Bool,
        DataType::SmallInt(None) | DataType::Int2(None) | DataType::Int16 => SqlType::Int2,
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) | DataType::Int32 => {
            SqlType::Int4
        }
        DataType::BigInt(None) | DataType::Int8(None) | DataType::Int64 => SqlType::Int8,
        DataType::Real | DataType::Float4 | DataType::Float32 => SqlType::Float4,
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 | DataType::Float64 => {
            SqlType::Float8
        }
        DataType::Float(info) => float(info)?,
        DataType::Numeric(info)
        | DataType::Decimal(info)
        | DataType::Dec(info)
        | DataType::BigNumeric(info) => numeric(info)?,
        DataType::Text => SqlType::Text,
        DataType::String(None) => SqlType::Text,
        DataType::String(Some(n)) => {
            SqlType::Varchar(Some(u32::try_from(*n).ok().filter(|n| *n > 0).unwrap_or(10_485_760)))
        }
        DataType::Varchar(l) | DataType::CharacterVarying(l) | DataType::CharVarying(l) => {
            SqlType::Varchar(length(l, "varchar")?)
        }
        DataType::Char(l) | DataType::Character(l) => {
            SqlType::Char(length(l, "char")?.unwrap_or(1))
        }
        DataType::Bytea => SqlType::Bytea,
        DataType::Bytes(_) => SqlType::Bytea,
        DataType::Varbinary(None | Some(BinaryLength::Max)) => SqlType::Bytea,
        DataType::Date => SqlType::Date,
        DataType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => SqlType::Time,
        DataType::Time(..) => SqlType::TimeTz,
        DataType::Bit(n) => SqlType::Bit(bit_length(*n, "bit")?.unwrap_or(1)),
        DataType::BitVarying(n) | DataType::VarBit(n) => SqlType::Varbit(bit_length(*n, "varbit")?),
        DataType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            SqlType::Timestamp
        }
        DataType::Timestamp(..) => SqlType::TimestampTz,
        DataType::Interval { .. } => SqlType::Interval,
        DataType::Uuid => SqlType::Uuid,
        DataType::JSON => SqlType::Json,
        DataType::JSONB => SqlType::Jsonb,
        DataType::Regclass => SqlType::Regclass,
        DataType::GeometricType(kind) => {
            SqlType::from_name(&kind.to_string()).ok_or_else(|| no_type(&kind.to_string()))?
        }
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(inner, _)
            | ArrayElemTypeDef::AngleBracket(inner)
            | ArrayElemTypeDef::Parenthesis(inner),
        ) => sql_type_of(inner, types)?.array_of(),
        DataType::Custom(name, args) => custom(&object_name_parts(name), name, args, types)?,
        other if let Some(refused) = modified_integer(other) => return Err(refused),
        other => word(other)
            .and_then(|name| types?.user_type(&[name]))
            .ok_or_else(|| no_type(&other.to_string().to_lowercase()))?,
    })
}

/// The name that a type of a user would have for this to mean it; `None` for what is built in.
pub fn user_type_name(data_type: &DataType) -> Option<Vec<String>> {
    match data_type {
        DataType::Custom(name, _) => Some(object_name_parts(name)),
        other if sql_type_of(other, None).is_ok() => None,
        other => word(other).map(|name| vec![name]),
    }
}

/// The name of a type that other databases have and PostgreSQL does not, which therefore may be one
/// of a user: `uint64`, `datetime`, `tinyint`.
fn word(data_type: &DataType) -> Option<String> {
    let name = data_type.to_string().to_lowercase();
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then_some(name)
}

/// `float` with as many bits as are asked for.
fn float(info: &ExactNumberInfo) -> SqlResult<SqlType> {
    let bad = |message| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    match info {
        ExactNumberInfo::Precision(0) => bad("precision for type float must be at least 1 bit"),
        ExactNumberInfo::Precision(bits) if *bits > 53 => {
            bad("precision for type float must be less than 54 bits")
        }
        ExactNumberInfo::Precision(bits) if *bits <= 24 => Ok(SqlType::Float4),
        _ => Ok(SqlType::Float8),
    }
}

/// The error of an integer with a number in parentheses.
fn modified_integer(data_type: &DataType) -> Option<SqlError> {
    Some(match data_type {
        DataType::Int2(Some(_)) => no_modifier("int2"),
        DataType::Int4(Some(_)) => no_modifier("int4"),
        DataType::Int8(Some(_)) => no_modifier("int8"),
        DataType::SmallInt(Some(_))
        | DataType::Int(Some(_))
        | DataType::Integer(Some(_))
        | DataType::BigInt(Some(_)) => SqlError::syntax("syntax error at or near \"(\""),
        _ => return None,
    })
}

/// The type that a text spells with a modifier, as a statement would: `varchar(10)`, `time(3) with
/// time zone`; `None` for another text.
pub(crate) fn written_type(text: &str) -> Option<SqlResult<SqlType>> {
    if !text.contains(['(', ' ']) {
        return None;
    }
    let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).ok()?;
    let data_type = parser.parse_data_type().ok()?;
    (parser.peek_token().token == Token::EOF).then(|| sql_type_of(&data_type, None))
}

/// A number in parentheses behind the name of a type that takes none.
fn no_modifier(name: &str) -> SqlError {
    SqlError::syntax(format!("type modifier is not allowed for type \"{name}\""))
}

/// Whether a type takes a number in parentheses.
fn takes_modifier(ty: &SqlType) -> bool {
    matches!(
        ty,
        SqlType::Time
            | SqlType::TimeTz
            | SqlType::Timestamp
            | SqlType::TimestampTz
            | SqlType::Interval
            | SqlType::Varchar(_)
            | SqlType::Char(_)
            | SqlType::Numeric(_)
            | SqlType::Bit(_)
            | SqlType::Varbit(_)
    )
}

/// What is said of types and functions of text search.
pub(crate) const NO_TEXT_SEARCH: &str =
    "Text search is not supported. LIKE and regular expressions look into texts.";

/// What is said of the type and of functions for it.
pub(crate) const NO_XML: &str = "XML is not supported. A column of type text keeps it as it is.";
/// What is said of types and functions of snapshots.
pub(crate) const NO_SNAPSHOTS: &str = "Snapshots are no values here. AS OF SYSTEM TIME and \
                                       pg_export_snapshot() read what was; a column with \
                                       PENDING_COMMIT_TIMESTAMP() tells the order of commits.";
/// What is said of functions for large objects.
pub(crate) const NO_LARGE_OBJECTS: &str =
    "Large objects are not supported. A column of type bytea keeps what they would.";

fn no_type(name: &str) -> SqlError {
    let error =
        SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"));
    match name.trim_end_matches("[]") {
        "tsvector" | "tsquery" | "regconfig" | "regdictionary" => error.with_hint(NO_TEXT_SEARCH),
        "xml" => error.with_hint(NO_XML),
        "pg_snapshot" | "txid_snapshot" => error.with_hint(NO_SNAPSHOTS),
        _ => error,
    }
}

fn custom(
    parts: &[String],
    name: &sqlparser::ast::ObjectName,
    args: &[String],
    types: Option<&dyn TypeNames>,
) -> SqlResult<SqlType> {
    let quoted = name.0.last().and_then(|p| p.as_ident()).is_some_and(|i| i.quote_style.is_some());
    let bare = match parts {
        [name] => name.as_str(),
        [schema, name] if schema == "pg_catalog" => name.as_str(),
        _ => "",
    };
    let number = || args.first().and_then(|a| a.trim().parse::<u32>().ok());
    Ok(match bare {
        // "char" in quotes is the one-byte type; without them the parser has its own variant.
        "char" if quoted => SqlType::CharByte,
        "bpchar" => SqlType::Char(number().unwrap_or(0)),
        "nchar" => match number() {
            Some(0) => {
                let text = "length for type char must be at least 1";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text));
            }
            length => SqlType::Char(length.unwrap_or(1)),
        },
        "varchar" => SqlType::Varchar(number()),
        "numeric" => match args {
            [] => SqlType::Numeric(None),
            _ => {
                let p = number().unwrap_or(0) as u64;
                let s = args.get(1).and_then(|a| a.trim().parse::<i64>().ok()).unwrap_or(0);
                numeric(&ExactNumberInfo::PrecisionAndScale(p, s))?
            }
        },
        "string" => SqlType::Text,
        "bytes" => SqlType::Bytea,
        "int64" => SqlType::Int8,
        "float64" => SqlType::Float8,
        "float32" => SqlType::Float4,
        "varbit" => SqlType::Varbit(bit_length(number().map(u64::from), "varbit")?),
        "bit" => SqlType::Bit(bit_length(number().map(u64::from), "bit")?.unwrap_or(1)),
        "serial" | "serial4" => SqlType::Int4,
        "bigserial" | "serial8" => SqlType::Int8,
        "smallserial" | "serial2" => SqlType::Int2,
        _ => match SqlType::from_name(bare) {
            Some(ty) if !args.is_empty() && !takes_modifier(&ty) => return Err(no_modifier(bare)),
            Some(ty) if !matches!(ty, SqlType::Unknown | SqlType::Void) => ty,
            _ => types
                .and_then(|types| types.user_type(parts))
                .ok_or_else(|| no_type(&parts.join(".")))?,
        },
    })
}
