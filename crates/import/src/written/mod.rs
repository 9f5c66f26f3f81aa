//! Files of rows that are written: in parts below the folder for imports, all of them or none.
//!
//! ```text
//!   bytes of rows ─ [`Packed`] ─► export-7-0000.csv.gz.partial ┐ sync, and when all are there:
//!   rows ─ [`RowGroups`] ─► Parquet ─ [`Packed`] ─► ..         ┴─► export-7-0000.csv.gz
//! ```
//! A part has its name only when every part is complete and on the disk. Until then it is called
//! `.partial`, which no pattern of an import means by accident, and goes with [`Parts`].

mod packed;
mod parts;
mod row_groups;
mod schema;

pub use packed::Packed;
pub use parts::{Part, Parts};
pub use row_groups::RowGroups;
