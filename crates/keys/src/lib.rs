//! braid-keys.
