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
use std::io;
use std::sync::Arc;
use std::time::Duration;

use pgwire::messages::response::SslResponse;
use pgwire::messages::startup::{NegotiateProtocolVersion, SecretKey};

use super::errors::Fatal;
use super::message::First;
use super::wire::{Heard, Wire};
use crate::backends::Registration;

/// A socket that has not yet said who it is. It may fall silent at any point and go on later.
pub(crate) struct Greeting {
    pub(crate) wire: Wire,
    pub(crate) registration: Registration,
    /// A client may ask for TLS and for GSS, once each; more is an attempt to keep us busy.
    refusals: u32,
}

/// How a conversation begins.
pub(crate) enum Opening {
    /// A session is wanted, with these parameters.
    Session(BTreeMap<String, String>),
    /// Somebody asks to cancel the statement of another connection.
    Cancel { pid: i32, secret: i32 },
    /// The client has not said everything yet.
    Silence,
    /// The client left before saying anything.
    Gone,
}

impl Greeting {
    pub(crate) fn new(registration: Registration, eager_wait: Duration) -> io::Result<Greeting> {
        let wire = Wire::new(Arc::clone(&registration.backend), eager_wait)?;
        Ok(Greeting { wire, registration, refusals: 0 })
    }

    /// Reads up to the startup message and answers requests for encryption with "no".
    pub(crate) fn listen(&mut self) -> Result<Opening, Fatal> {
        loop {
            match self.wire.read_first()? {
                Heard::Silence => return Ok(Opening::Silence),
                Heard::End | Heard::Refused(..) => return Ok(Opening::Gone),
                Heard::Message(First::EncryptionRequest) => {
                    // The refusal is the same byte for TLS and for GSS.
                    self.wire.send(&SslResponse::Refuse)?;
                    self.wire.flush()?;
                    self.refusals += 1;
                    if self.refusals > 2 {
                        return Err(Fatal::protocol("too many requests for encryption"));
                    }
                }
                Heard::Message(First::Cancel { pid, secret }) => {
                    return Ok(Opening::Cancel { pid, secret });
                }
                Heard::Message(First::UnknownVersion { major, minor }) => {
                    return Err(Fatal::unsupported_protocol(major, minor));
                }
                Heard::Message(First::Startup { minor, parameters }) => {
                    negotiate(&mut self.wire, minor, &parameters)?;
                    return Ok(Opening::Session(parameters));
                }
            }
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
