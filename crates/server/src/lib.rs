//! The server: PostgreSQL's wire protocol on one port, health and metrics over HTTP on another.
//!
//! ```text
//!   listener ── accepts, one thread per connection
//!      └─ pgwire::connection   reads messages, keeps statements and portals by name
//!            └─ braid_sql::Session   knows nothing of bytes on the wire
//!   http     ── /healthz, /metrics
//! ```
//!
//! One thread per connection, blocking: a point query costs no task switch, a long query holds
//! up nobody else, and the code reads from top to bottom. Messages are encoded and decoded by the
//! `pgwire` crate; the conversation is ours (see `docs/design/2026-11-21-wire-loop.md`).
//!
//! There are no passwords and no TLS yet, so the listener binds to loopback addresses only.

mod cancel;
mod config;
mod http;
mod listener;
mod metrics;
pub mod pgwire;

pub use config::ServerConfig;
pub use listener::{Server, StartError};
