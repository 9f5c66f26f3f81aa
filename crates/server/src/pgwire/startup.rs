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

use braid_types::{SqlError, SqlState};

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

/// The settings in the `options` of a startup message: `-c name=value`, `--name=value`, apart by
/// blanks that have no backslash before them.
///
/// # Errors
/// 42601 for another switch.
pub(crate) fn settings_of(options: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut words: Vec<String> = Vec::new();
    let mut inside = false;
    let mut chars = options.chars();
    while let Some(c) = chars.next() {
        if c.is_whitespace() {
            inside = false;
            continue;
        }
        if !std::mem::replace(&mut inside, true) {
            words.push(String::new());
        }
        let c = if c == '\\' { chars.next().unwrap_or(c) } else { c };
        words.last_mut().expect("one was begun").push(c);
    }
    let mut settings = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let given = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") if word == "-c" => words.next(),
            Some(given) => Some(given.to_string()),
            None => None,
        };
        let Some((name, value)) = given.as_deref().and_then(|given| given.split_once('=')) else {
            let text = format!("invalid command-line argument for server process: {word}");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, text)
                .with_hint("Settings are written -c name=value or --name=value."));
        };
        settings.push((name.trim().replace('-', "_"), value.to_string()));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::settings_of;

    #[test]
    fn options_are_settings() {
        let read = |options: &str| {
            let settings = settings_of(options).map_err(|e| e.to_string())?;
            let shown = settings.into_iter().map(|(name, value)| format!("{name}={value}"));
            Ok::<_, String>(shown.collect::<Vec<_>>().join("; "))
        };
        assert_eq!(read("-c work_mem=5MB").unwrap(), "work_mem=5MB");
        assert_eq!(
            read(" -csearch_path=a,b  --statement-timeout=5s -c a.b=x\\ y\\\\z= ").unwrap(),
            "search_path=a,b; statement_timeout=5s; a.b=x y\\z="
        );
        assert_eq!(read("").unwrap(), "");
        for wrong in ["-c", "-d 3", "work_mem=5MB", "-c work_mem", "--x"] {
            assert!(read(wrong).unwrap_err().contains("42601"), "{wrong}");
        }
    }
}
