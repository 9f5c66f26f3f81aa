//! Settings of a session.
//!
//! - [`values`]: which there are, SET, SHOW, RESET, and what clients are told about.
//! - `without_meaning`: those that PostgreSQL has and that change nothing here.

mod values;
mod without_meaning;

pub(crate) use values::SERVER_VERSION;
pub use values::{Settings, duration_ms, setting_names};
pub(super) use values::{
    boolean, importance, invalid, least_notice, memory_bytes, no_level, shown_name, switch,
};
