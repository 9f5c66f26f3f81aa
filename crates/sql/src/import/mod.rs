//! IMPORT: files of the node's folder into a table, all of them or nothing.
//!
//! ```text
//!   statement ─ [`options`] ─► what is read and how
//!   files ─ braid_import::Reader (a thread) ─► rows ─ defaults ─► [`crate::dml::table_load`]
//!             │ misfits               [`fill`]     │ refused rows         │ now and then
//!             └───────► [`refused`] ◄──────────────┘                  [`checkpoint`]
//!                           └─► an error with its place, or a file
//!   all rows sorted ─ taken keys? ─ [`locate`] reads again and says where they came from
//!   ssts ─► in at once, with the commit; the job's record says so in the same step
//! ```
//! Readers see the table as it was until the commit; other writers wait. Nothing of a load that
//! fails is ever reachable: its sorted runs are files of their own, which go with it.
//!
//! What all of that holds is an account of its own ([`memory`]), whose limit is the option's.
//!
//! [`online`] is the other way: small transactions, beside other writers, each of which stays.

mod answer;
mod checkpoint;
mod detached;
mod dump;
mod fill;
mod locate;
mod memory;
mod online;
mod options;
mod outcome;
mod refused;
mod run;
mod values;

pub(crate) use answer::columns;
pub(crate) use detached::{go_on, start};
pub(crate) use dump::{dump_columns, import_dump};
pub(crate) use outcome::forget_files;
pub(crate) use values::OptionsOf;
