//! SQL types with their modifiers.

use serde::{Deserialize, Serialize};

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
    /// `char(n)`, n in characters, blank-padded.
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
    /// `regclass`: an oid that prints as a relation name.
    Regclass,
    /// `regtype`: an oid that prints as a type name.
    Regtype,
    /// One-dimensional array of an element type that is not itself an array.
    Array(Box<SqlType>),
    /// A row value (`record`): only as an intermediate result.
    Record,
    /// `void`: functions without a result.
    Void,
    /// A literal or NULL whose type the context decides.
    Unknown,
}
