//! braid-catalog.
