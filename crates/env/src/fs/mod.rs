//! Files: the disk, a memory double that knows what a crash does, and a wrapper that fails.
//!
//! ```text
//!   FileSystem  (names: create, open, rename, link, remove, list, lock, sync_dir, space)
//!      +- DiskFs    the real thing
//!      +- MemFs     everything in memory; crash_clone() = what may be on disk after power loss
//!      +- FaultFs   wraps another one; rules say which operation fails, and how
//!   File        (contents: read_at, write_at, sync, allocate, set_len)
//! ```
//!
//! The durability rules that all users follow: bytes are durable after `File::sync_data`; a name
//! (created, renamed, linked or removed) is durable after `sync_dir` of its directory.

mod contract;
mod disk;
mod faulty;
mod memory;

pub use contract::{DirLock, File, FileSystem, Space, read_all};
pub use disk::DiskFs;
pub use faulty::{FaultFs, FaultRule, Outcome};
pub use memory::{CrashPolicy, MemFs};
