//! braid-query.
