//! Errors and notices as message fields.

use std::io;

use braid_types::encodings::Encoding;
use braid_types::{SqlError, SqlState};
use pgwire::messages::response::{ErrorResponse, NoticeResponse};

/// What ends a connection.
#[derive(Debug)]
pub(crate) enum Fatal {
    /// The peer is gone; there is nobody to tell.
    Disconnected(io::Error),
    /// The peer breaks the protocol: it is told, then the connection is closed.
    Told(SqlError),
}

impl Fatal {
    pub(crate) fn protocol(message: impl Into<String>) -> Fatal {
        Fatal::Told(SqlError::new(SqlState::PROTOCOL_VIOLATION, message))
    }

    pub(crate) fn unsupported_protocol(major: u16, minor: u16) -> Fatal {
        let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0");
        Fatal::Told(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    }
}

/// A statement failed, or the connection did.
pub(crate) enum Failure {
    /// The client gets an ErrorResponse and goes on.
    Sql(SqlError),
    /// The connection ends.
    Fatal(Fatal),
}

impl From<SqlError> for Failure {
    fn from(e: SqlError) -> Failure {
        Failure::Sql(e)
    }
}

impl From<Fatal> for Failure {
    fn from(e: Fatal) -> Failure {
        Failure::Fatal(e)
    }
}

/// The error, or what keeps it from being told in the client's encoding.
pub(crate) fn sayable(e: SqlError, encoding: Option<Encoding>) -> SqlError {
    let Some(encoding) = encoding else { return e };
    let refused = |(_, text): &(u8, String)| encoding.encode(text, &mut Vec::new()).err();
    fields("ERROR", &e).iter().find_map(refused).unwrap_or(e)
}

pub(crate) fn error_response(severity: &str, e: &SqlError) -> ErrorResponse {
    ErrorResponse::new(fields(severity, e))
}

pub(crate) fn notice_response(severity: &str, e: &SqlError) -> NoticeResponse {
    NoticeResponse::new(fields(severity, e))
}

/// Field codes are listed in PostgreSQL's manual, "Error and Notice Message Fields".
fn fields(severity: &str, e: &SqlError) -> Vec<(u8, String)> {
    let mut out = vec![
        (b'S', severity.to_string()),
        (b'V', severity.to_string()),
        (b'C', e.state().0.to_string()),
        (b'M', e.message().to_string()),
    ];
    let mut add = |code: u8, value: Option<&str>| {
        if let Some(value) = value {
            out.push((code, value.to_string()));
        }
    };
    add(b'D', e.detail());
    add(b'H', e.hint());
    add(b'P', e.position().map(|p| p.to_string()).as_deref());
    add(b'W', e.context());
    add(b's', e.schema());
    add(b't', e.table());
    add(b'd', e.datatype());
    add(b'c', e.column());
    add(b'n', e.constraint());
    add(b'R', e.routine());
    out
}
