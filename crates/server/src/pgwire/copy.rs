//! COPY FROM STDIN and COPY TO STDOUT on the wire.

use braid_parser::CopyFormat;
use braid_sql::copy::{CopyIn, CopyOut};
use bytes::BufMut;
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};

use super::connection::Connection;
use super::errors::{Failure, Fatal};
use super::message::Message;
use super::wire::Heard;

/// Takes rows from the client until CopyDone. Returns the command tag.
pub(crate) fn receive(connection: &mut Connection, copy: Box<CopyIn>) -> Result<String, Failure> {
    let (format, columns) = (i8::from(copy.format() == CopyFormat::Binary), copy.columns().len());
    let formats = vec![i16::from(format); columns];
    connection.wire.send(&CopyInResponse::new(format, columns as i16, formats))?;
    connection.wire.flush()?;
    connection.wire.copies(true).map_err(Fatal::Disconnected)?;
    let tag = take_rows(connection, copy);
    connection.wire.copies(false).map_err(Fatal::Disconnected)?;
    tag
}

fn take_rows(connection: &mut Connection, mut copy: Box<CopyIn>) -> Result<String, Failure> {
    loop {
        let frame = match connection.wire.read()? {
            Heard::Message(frame) => frame,
            Heard::Refused(_, e) => return Err(e.into()),
            Heard::Silence => {
                connection.check_interrupt()?;
                continue;
            }
            Heard::End => {
                connection.check_interrupt()?;
                let gone = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                return Err(Fatal::Disconnected(gone).into());
            }
        };
        let frame = match connection.wire.encoding {
            None => frame,
            Some(encoding) => frame.in_utf8(encoding)?,
        };
        match Message::decode(&frame)? {
            // On an error what the client still sends is skipped by the connection's loop.
            Message::CopyData(data) => copy.feed(data)?,
            Message::CopyDone => return Ok(format!("COPY {}", copy.finish()?)),
            Message::CopyFail(message) => return Err(copy.abort(message).into()),
            // Allowed during COPY, without meaning.
            Message::Flush | Message::Sync => {}
            _ => return Err(Fatal::protocol("unexpected message during COPY from stdin").into()),
        }
    }
}

/// Sends rows to the client. Returns the command tag.
pub(crate) fn send(connection: &mut Connection, mut copy: CopyOut) -> Result<String, Failure> {
    let (format, columns) = (i8::from(copy.format() == CopyFormat::Binary), copy.columns().len());
    let formats = vec![i16::from(format); columns];
    connection.wire.send(&CopyOutResponse::new(format, columns as i16, formats))?;
    // One row per message: drivers count on it.
    let mut row = Vec::new();
    while copy.next_row(&mut row)? {
        connection.wire.send_raw(b'd', |out| {
            out.put_slice(&row);
            Ok::<(), Failure>(())
        })?;
    }
    connection.wire.send(&CopyDone::new())?;
    Ok(format!("COPY {}", copy.rows()))
}
