//! Cursors, bottom up: a [`Source`] walks one layer, [`MergeCursor`] merges layers slab by slab
//! and parks what lies below a range tombstone, [`Scan`] is what callers hold. `divide`: parts
//! of a span for callers that scan side by side. `export`: all versions of a span. `dead_spans`:
//! where scans found nothing, for those that come later.

mod block_part;
mod dead_run;
mod dead_spans;
mod divide;
mod export;
mod layer;
mod merging;
mod row_batch;
mod run_cursor;
mod scan;
mod source;
mod stretch;

pub use block_part::BlockPart;
pub(crate) use dead_spans::DeadSpans;
pub use divide::even_cuts;
pub(crate) use divide::marks_of;
pub use export::{Export, Exported};
pub(crate) use layer::LayerCursor;
pub(crate) use merging::{Layer, MergeCursor};
pub use row_batch::{Piece, RowBatch, SingleRows};
pub(crate) use run_cursor::RunCursor;
pub(crate) use scan::ScanPlan;
pub use scan::{Row, Scan, ScanOptions, ScanStats};
pub(crate) use source::{ReadPoint, ReadWork, Source};
pub(crate) use stretch::Stretch;
