//! Everything non-deterministic, behind seams that tests can replace.
//!
//! The rest of BraidDB never touches the operating system by itself: it is handed a file system, a
//! clock, a source of randomness and an executor from this crate. A test hands in doubles instead,
//! and the whole engine becomes a function of one seed.
//!
//! ```text
//!   what the code needs     in production      in tests
//!   ------------------------------------------------------------------------------
//!   fs::FileSystem          fs::DiskFs         fs::MemFs (crash model), fs::FaultFs
//!   clock::Clock            clock::WallClock   clock::ManualClock
//!   random::Random          from_entropy()     seeded(n)
//!   tasks::Tasks            tasks::ThreadTasks tasks::SeededTasks (one thread, one seed)
//! ```
//!
//! [`turns`] lets threads of a simulation take turns. [`memory`] keeps account of what clients make
//! the process hold.
//!
//! This crate knows nothing of storage engines, SQL or networks, and it is the only one that may
//! call `std::fs`, `std::thread::spawn`, `Instant::now` and `SystemTime::now`.
// The seam itself has to call what it hides from everybody else.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod clock;
pub mod fs;
pub mod memory;
pub mod random;
pub mod tasks;
pub mod turns;
