//! PostgreSQL's protocol 3.0 as a conversation.
//!
//! - [`eager`]: waits for a client that goes on at once.
//! - [`wire`]: framed messages on a socket; replies are gathered and sent at the points where the
//!   client waits.
//! - [`message`]: what clients send, decoded strictly.
//! - [`startup`]: from the first byte to the first ReadyForQuery.
//! - [`connection`]: the loop, with simple queries.
//! - [`extended`]: Parse, Bind, Describe, Execute, Close, Sync.
//! - [`portals`]: FETCH, MOVE and CLOSE of what that has bound.
//! - [`copy`]: COPY FROM STDIN and TO STDOUT.
//! - [`rows`]: values to bytes and back.
//! - [`errors`]: errors and notices as message fields.

pub(crate) mod connection;
pub(crate) mod copy;
mod eager;
pub(crate) mod errors;
pub(crate) mod extended;
pub(crate) mod message;
mod portals;
pub(crate) mod rows;
pub(crate) mod startup;
pub(crate) mod wire;
