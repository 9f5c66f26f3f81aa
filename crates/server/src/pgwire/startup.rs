//! From the first byte to the first ReadyForQuery.
//!
//! ```text
//!   client                          server
//!   SSLRequest / GSSENCRequest  →
//!                               ←   'N'            (no encryption yet)
//!   StartupMessage 3.x          →
//!                               ←   NegotiateProtocolVersion, if newer than 3.0 was asked for
//!                               ←   AuthenticationOk, ParameterStatus ..., BackendKeyData
//!                               ←   ReadyForQuery
//! ```

use std::collections::BTreeMap;

use pgwire::messages::response::{GssEncResponse, SslResponse};
use pgwire::messages::startup::{NegotiateProtocolVersion, SecretKey};
use pgwire::messages::{PgWireFrontendMessage, SslNegotiationMetaMessage};

use super::errors::Fatal;
use super::wire::Wire;

/// How a conversation begins.
pub(crate) enum Opening {
    /// A session is wanted, with these parameters.
    Session(BTreeMap<String, String>),
    /// Somebody asks to cancel the statement of another connection.
    Cancel { pid: i32, secret: i32 },
    /// The client left before saying anything.
    Gone,
}

/// Reads up to the startup message and answers requests for encryption with "no".
pub(crate) fn open(wire: &mut Wire) -> Result<Opening, Fatal> {
    // A client may ask for SSL and for GSS, once each; more is an attempt to keep us busy.
    let mut refusals = 0;
    loop {
        match wire.read()? {
            None => return Ok(Opening::Gone),
            Some(PgWireFrontendMessage::SslNegotiation(request)) => {
                match request {
                    SslNegotiationMetaMessage::PostgresSsl(_) => wire.send(&SslResponse::Refuse)?,
                    SslNegotiationMetaMessage::PostgresGss(_) => {
                        wire.send(&GssEncResponse::Refuse)?;
                    }
                    SslNegotiationMetaMessage::None => {
                        wire.context().awaiting_frontend_ssl = false;
                        continue;
                    }
                }
                wire.flush()?;
                refusals += 1;
                if refusals > 2 {
                    return Err(Fatal::protocol("too many requests for encryption"));
                }
            }
            Some(PgWireFrontendMessage::CancelRequest(cancel)) => {
                let secret = cancel.secret_key.as_i32().unwrap_or_default();
                return Ok(Opening::Cancel { pid: cancel.pid, secret });
            }
            Some(PgWireFrontendMessage::Startup(startup)) => {
                wire.context().awaiting_frontend_startup = false;
                let minor = startup.protocol_number_minor;
                negotiate(wire, minor, &startup.parameters)?;
                return Ok(Opening::Session(startup.parameters));
            }
            Some(_) => return Err(Fatal::protocol("expected a startup message")),
        }
    }
}

fn negotiate(
    wire: &mut Wire,
    minor: u16,
    parameters: &BTreeMap<String, String>,
) -> Result<(), Fatal> {
    let unknown: Vec<String> =
        parameters.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    if minor > 0 || !unknown.is_empty() {
        wire.send(&NegotiateProtocolVersion::new(3 << 16, unknown))?;
    }
    Ok(())
}

/// The secret of a connection, as the message wants it.
pub(crate) fn secret_key(secret: i32) -> SecretKey {
    SecretKey::I32(secret)
}
