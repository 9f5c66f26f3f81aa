//! Cursors, and the rows that they keep.
//!
//! ```text
//!   cursor        DECLARE, FETCH, MOVE, CLOSE: where it stands, and where it may go
//!   position      the rows of tables that a cursor stands on: WHERE CURRENT OF
//!   kept_rows     rows found by their number, in memory and on disk
//! ```

mod cursor;
mod kept_rows;
mod position;

pub(crate) use cursor::{Cursor, Declared};
pub(super) use position::KnownCursors;
pub(crate) use position::{CursorTable, current_row, with_keys};
