//! braid-env.
