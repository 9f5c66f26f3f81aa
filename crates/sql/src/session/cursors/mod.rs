//! Cursors, and the rows that they keep.
//!
//! ```text
//!   cursor        DECLARE, FETCH, MOVE, CLOSE: where it stands, and where it may go
//!   kept_rows     rows found by their number, in memory and on disk
//! ```

mod cursor;
mod kept_rows;

pub(super) use cursor::ShownCursors;
pub(crate) use cursor::{Cursor, Declared};
