//! The functions, by subject. Each file fills the table with its own.
//!
//! `arguments` unpacks what they are called with.

mod advisory;
mod arguments;
mod array;
mod assigned;
pub(crate) mod bit_strings;
mod bytes;
mod calendar;
mod channels;
pub(crate) mod citext;
mod date_format;
mod date_parse;
mod datetime;
mod declared;
mod degrees;
mod encoding;
mod extensions;
mod geometry;
mod googlesql;
mod json;
mod json_text;
mod jsonpath;
mod lsn;
mod math;
pub(crate) mod money;
mod multiranges;
mod names;
mod networks;
mod number_format;
pub(crate) mod numeric_special;
mod operator_functions;
mod partition_hash;
mod periods;
pub(crate) mod pieces;
pub(crate) mod populate;
mod ranges;
mod regex_places;
mod row_images;
mod slices;
mod system;
mod text;
mod total;
pub mod type_functions;
mod unicode;
mod zoned_time;

use super::registry::Table;

pub(crate) use arguments::{
    bool_of, bytes_of, f64_of, i64_of, interval_of, json_of, text_of, words,
};
pub use assigned::NULL_BOUND;
pub use json::to_json;
pub(crate) use json::{path_of, path_step};
pub(crate) use json_text::json_key;
pub(crate) use json_text::json_text;
pub use json_text::plain_text;
pub(crate) use jsonpath::fill_rows as fill_path_rows;
pub(crate) use multiranges::listed;
pub use partition_hash::partition_hash;
pub(crate) use ranges::constructed as ranged;
pub use total::{can_fail, is_short};

/// What adds the functions of each subject to the registry.
pub(crate) const SUBJECTS: &[fn(&mut Table)] = &[
    math::fill,
    degrees::fill,
    text::fill,
    unicode::fill,
    names::fill,
    regex_places::fill,
    bytes::fill,
    extensions::fill,
    datetime::fill,
    zoned_time::fill,
    periods::fill,
    networks::fill,
    bit_strings::fill,
    money::fill,
    citext::fill,
    lsn::fill,
    row_images::fill,
    ranges::fill,
    multiranges::fill,
    geometry::compare::fill,
    geometry::places::fill,
    geometry::nearest::fill,
    geometry::moves::fill,
    geometry::parts::fill,
    json::fill,
    jsonpath::fill,
    json_text::fill,
    populate::fill,
    array::fill,
    declared::fill,
    assigned::fill,
    crate::enums::fill,
    system::fill,
    advisory::fill,
    channels::fill,
    operator_functions::fill,
    partition_hash::fill,
    googlesql::fill,
];
