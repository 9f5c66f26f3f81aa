//! braid-server.
