//! Time: wall clocks that can be replaced, and the hybrid logical clock built on them.
//!
//! [`Clock`] gives microseconds since 1970 (for timestamps that people read) and nanoseconds of a
//! monotonic clock (for measuring). [`Hlc`] turns the former into 64-bit timestamps that never
//! repeat and never go backwards, even if the wall clock does.

mod hlc;
mod wall;

pub use hlc::{Hlc, LOGICAL_BITS};
pub use wall::{Clock, ManualClock, WallClock, thread_cpu_nanos};
