//! braid-lsm.
