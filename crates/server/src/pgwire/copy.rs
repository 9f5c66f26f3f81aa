//! COPY FROM STDIN and COPY TO STDOUT on the wire.

use braid_sql::copy::{CopyIn, CopyOut};
use braid_sql::parse::CopyFormat;
use bytes::Bytes;
use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::copy::{CopyData, CopyDone, CopyInResponse, CopyOutResponse};

use super::connection::Connection;
use super::errors::{Failure, Fatal};

/// Takes rows from the client until CopyDone. Returns the command tag.
pub(crate) fn receive(
    connection: &mut Connection,
    mut copy: Box<CopyIn>,
) -> Result<String, Failure> {
    let (format, columns) = (i8::from(copy.format() == CopyFormat::Binary), copy.columns().len());
    let formats = vec![i16::from(format); columns];
    connection.wire.send(&CopyInResponse::new(format, columns as i16, formats))?;
    connection.wire.flush()?;
    loop {
        match connection.wire.read()? {
            None => {
                let gone = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                return Err(Fatal::Disconnected(gone).into());
            }
            Some(Message::CopyData(data)) => {
                if let Err(e) = copy.feed(&data.data) {
                    // What the client still sends is skipped by the connection's loop.
                    return Err(e.into());
                }
            }
            Some(Message::CopyDone(_)) => return Ok(format!("COPY {}", copy.finish()?)),
            Some(Message::CopyFail(fail)) => return Err(copy.abort(&fail.message).into()),
            // Allowed during COPY, without meaning.
            Some(Message::Flush(_) | Message::Sync(_)) => {}
            Some(_) => {
                return Err(Fatal::protocol("unexpected message during COPY from stdin").into());
            }
        }
    }
}

/// Sends rows to the client. Returns the command tag.
pub(crate) fn send(connection: &mut Connection, mut copy: CopyOut) -> Result<String, Failure> {
    let (format, columns) = (i8::from(copy.format() == CopyFormat::Binary), copy.columns().len());
    let formats = vec![i16::from(format); columns];
    connection.wire.send(&CopyOutResponse::new(format, columns as i16, formats))?;
    while let Some(chunk) = copy.next_chunk()? {
        connection.wire.send(&CopyData::new(Bytes::from(chunk)))?;
    }
    connection.wire.send(&CopyDone::new())?;
    Ok(format!("COPY {}", copy.rows()))
}
