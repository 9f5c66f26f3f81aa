//! braid-kv.
