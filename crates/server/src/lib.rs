//! The server: PostgreSQL's wire protocol on one port, health and metrics over HTTP on another.
//!
//! ```text
//!   listener ── accepts
//!      └─ watch       all sockets: who speaks, who has left, whose time is up
//!           └─ workers     threads for those who speak
//!                └─ pgwire::connection   reads messages, keeps portals by name
//!                     └─ braid_sql::Session   knows nothing of bytes on the wire
//!   http     ── /healthz, /metrics
//! ```
//!
//! A connection that is spoken to has a thread, blocking: a point query costs no task switch, a
//! long query holds up nobody else, and the code reads from top to bottom. A silent connection
//! gives its thread back and is watched with all others by one thread (`watch`). Replies are
//! encoded by the `pgwire` crate; decoding and the conversation are ours (see
//! `docs/design/2026-11-21-wire-loop.md`).
//!
//! There are no passwords and no TLS yet, so the listener binds to loopback addresses only.

mod backends;
mod config;
mod growing;
mod http;
mod listener;
mod metrics;
pub mod pgwire;
mod place;
mod watch;
mod workers;

pub use config::{ClusterConfig, ServerConfig};
pub use listener::{Server, StartError};
