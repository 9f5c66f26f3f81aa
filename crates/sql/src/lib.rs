//! braid-sql.
