//! What columns are in a Parquet file.
//!
//! | SQL | Parquet |
//! |---|---|
//! | `boolean`, `real`, `double precision`, `bigint` | the same |
//! | `smallint`, `integer` | `INT32`, with its width |
//! | `numeric(p, s)` to 38 digits | `DECIMAL(p, s)` |
//! | `date`, `time`, `timestamp`, `timestamptz` | `DATE`, `TIME`, `TIMESTAMP` in microseconds |
//! | `uuid`, `bytea`, `json`, `jsonb`, enums | `UUID`, `BYTE_ARRAY`, `JSON`, `ENUM` |
//! | arrays | `LIST` of what their elements are |
//! | all else | its text: nothing is lost, and IMPORT reads it |

use std::sync::Arc;

use braid_types::SqlType;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::Result as ParquetResult;
use parquet::schema::types::{Type, TypePtr};

/// What the values of a column are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    /// Up to 18 digits, and where the point is.
    Short(u16, i16),
    /// Up to 38 digits.
    Long(u16, i16),
    Date,
    Time,
    /// In UTC or not.
    Timestamp(bool),
    Uuid,
    Bytes,
    Json,
    Enum,
    Text,
}

/// A column: the form of its values, or of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) form: Form,
    pub(super) list: bool,
}

impl Shape {
    pub(super) fn of(ty: &SqlType) -> Shape {
        match ty {
            SqlType::Array(element) => Shape { form: form_of(element), list: true },
            _ => Shape { form: form_of(ty), list: false },
        }
    }
}

fn form_of(ty: &SqlType) -> Form {
    match ty {
        SqlType::Bool => Form::Bool,
        SqlType::Int2 => Form::Int2,
        SqlType::Int4 => Form::Int4,
        SqlType::Int8 => Form::Int8,
        SqlType::Float4 => Form::Float4,
        SqlType::Float8 => Form::Float8,
        SqlType::Numeric(Some((p, s))) if *s >= 0 && (*s as u16) <= *p => match p {
            1..=18 => Form::Short(*p, *s),
            19..=38 => Form::Long(*p, *s),
            _ => Form::Text,
        },
        SqlType::Date => Form::Date,
        SqlType::Time => Form::Time,
        SqlType::Timestamp => Form::Timestamp(false),
        SqlType::TimestampTz => Form::Timestamp(true),
        SqlType::Uuid => Form::Uuid,
        SqlType::Bytea => Form::Bytes,
        SqlType::Json | SqlType::Jsonb => Form::Json,
        SqlType::Enum(_) => Form::Enum,
        _ => Form::Text,
    }
}

/// The schema of a file.
pub(super) fn schema(columns: &[(String, Shape)]) -> ParquetResult<TypePtr> {
    let fields: ParquetResult<Vec<TypePtr>> = columns.iter().map(field).collect();
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields?).build()?))
}

fn field((name, shape): &(String, Shape)) -> ParquetResult<TypePtr> {
    if !shape.list {
        return value(name, shape.form);
    }
    let items = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![value("element", shape.form)?])
        .build()?;
    let list = Type::group_type_builder(name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(items)])
        .build()?;
    Ok(Arc::new(list))
}

fn value(name: &str, form: Form) -> ParquetResult<TypePtr> {
    let integer = |bit_width| Some(LogicalType::Integer { bit_width, is_signed: true });
    let decimal = |p: u16, s: i16| {
        Some(LogicalType::Decimal { precision: i32::from(p), scale: i32::from(s) })
    };
    let micros = || TimeUnit::MICROS(Default::default());
    let (physical, logical) = match form {
        Form::Bool => (Physical::BOOLEAN, None),
        Form::Int2 => (Physical::INT32, integer(16)),
        Form::Int4 => (Physical::INT32, integer(32)),
        Form::Int8 => (Physical::INT64, integer(64)),
        Form::Float4 => (Physical::FLOAT, None),
        Form::Float8 => (Physical::DOUBLE, None),
        Form::Short(p, s) => (Physical::INT64, decimal(p, s)),
        Form::Long(p, s) => (Physical::FIXED_LEN_BYTE_ARRAY, decimal(p, s)),
        Form::Date => (Physical::INT32, Some(LogicalType::Date)),
        Form::Time => {
            let time = LogicalType::Time { is_adjusted_to_u_t_c: false, unit: micros() };
            (Physical::INT64, Some(time))
        }
        Form::Timestamp(is_adjusted_to_u_t_c) => {
            let at = LogicalType::Timestamp { is_adjusted_to_u_t_c, unit: micros() };
            (Physical::INT64, Some(at))
        }
        Form::Uuid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)),
        Form::Bytes => (Physical::BYTE_ARRAY, None),
        Form::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
        Form::Enum => (Physical::BYTE_ARRAY, Some(LogicalType::Enum)),
        Form::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let mut field = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    if physical == Physical::FIXED_LEN_BYTE_ARRAY {
        field = field.with_length(16);
    }
    if let Form::Short(p, s) | Form::Long(p, s) = form {
        field = field.with_precision(i32::from(p)).with_scale(i32::from(s));
    }
    Ok(Arc::new(field.build()?))
}
