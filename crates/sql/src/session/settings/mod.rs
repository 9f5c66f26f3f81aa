//! Settings of a session.
//!
//! - [`values`]: which there are, SET, SHOW, RESET, and what clients are told about.
//! - `about`: what they are about.
//! - `without_meaning`: those that PostgreSQL has and that change nothing here.

mod about;
mod values;
mod without_meaning;

pub(crate) use values::SERVER_VERSION;
pub(crate) use values::shown_name;
pub use values::{Settings, ShownSetting, duration_ms, shown_settings};
pub(super) use values::{
    boolean, importance, invalid, least_notice, memory_bytes, no_level, switch,
};
