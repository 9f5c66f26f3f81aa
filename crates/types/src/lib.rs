//! SQL types and values, shared by everything from the key codec to the wire.
//!
//! - [`SqlType`]: a column's or expression's type, with its modifiers.
//! - [`Datum`]: one value.
//! - [`SqlError`]: what a client sees when something is wrong: SQLSTATE, message, detail, hint.
//!
//! This crate knows PostgreSQL's meaning of values (text forms, casts, comparison, arithmetic) and
//! nothing of tables, keys, statements or connections.

mod array;
mod binary;
mod cast;
mod datetime;
mod datetime_in;
mod datetime_text;
mod datum;
mod documents;
mod error;
pub mod geometry;
mod interval;
pub mod numeric;
pub mod numeric_functions;
pub mod oid;
mod order;
pub mod ordered;
mod range;
mod sql_type;
mod style;
mod system_relations;
mod text;
mod text_in;
mod text_out;
mod time_zone;
mod user_type;

pub use array::{ArrayValue, Dimension, Shape, check_bounds, check_dimensions};
pub use binary::{checked_text, push_numeric, small_numeric};
pub use cast::{CastContext, cast, cast_exists};
pub use datetime::{
    MICROS_PER_DAY, MICROS_PER_SECOND, UNIX_EPOCH_MICROS, check_date, check_timestamp,
    civil_from_days, commit_time_is_pending, days_from_civil,
};
pub use datum::{Datum, Interval, RecordValue};
pub use documents::{json, jsonb, jsonpath};
pub use error::{Mark, Place, RetryReason, SqlError, SqlResult, SqlState};
pub use geometry::{Geometry, GeometryKind, Point};
pub use interval::{IntervalField, IntervalFields};
pub use order::GroupKey;
pub use ordered::{Ordered, OrderedKind};
pub use range::{MultirangeValue, RangeKind, RangeName, RangeType, RangeValue};
pub use sql_type::{SqlType, TypeCategory};
pub use style::{DateForm, DateOrder, IntervalForm, Style};
pub use system_relations::{
    PRIVILEGES, SystemRelation, SystemType, system_relation, system_relation_named,
    system_relations, system_type_name, system_type_oid, system_types,
};
pub use text::collation::{
    Collated, Collation, DEFAULT_COLLATION, built_in_collation, built_in_collations, no_collation,
};
pub use text::encodings;
pub use text::quote::{is_reserved, quote_ident};
pub use text::regexp;
pub use text_in::{MAX_IDENTIFIER, clip_name};
pub use time_zone::TimeZone;
pub use user_type::{
    CompositeField, CompositeType, EnumLabel, EnumType, EnumValue, LABEL_STEP, shown_type_name,
};
