//! Archives of pg_dump: its formats custom, directory and tar, of PostgreSQL 9.4 to 17.
//!
//! ```text
//!   custom      one file     head, table of contents, blocks of data at places that it names
//!   directory   toc.dat      head, table of contents; a file for the data of each table
//!   tar         one file     the same files, one behind the other
//! ```
//! - [`toc`]: head and table of contents.
//! - [`place`]: where data lies, and how it is compressed. [`lz4`]: frames of LZ4.
//! - [`script`]: all of it as the text of a plain dump, in the order in which pg_restore writes it.

pub(crate) mod lz4;
pub(crate) mod place;
pub(crate) mod script;
pub(crate) mod toc;
