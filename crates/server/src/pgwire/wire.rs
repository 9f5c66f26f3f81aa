//! Framed messages on a blocking socket.
//!
//! Replies go into a buffer that is sent when the client waits for an answer (Sync, end of a
//! simple query, Flush, an error) or when it has grown large. So a prepared statement costs one
//! system call to read and one to write. Nothing is sent before all that it was made of is durable:
//! the gate.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use braid_env::memory::Held;
use braid_sql::{Cause, memory_error};
use braid_types::SqlError;
use braid_types::encodings::Encoding;
use bytes::{Buf, BufMut, BytesMut};
use pgwire::messages::Message;

use super::eager::Pace;
use super::errors::Fatal;
use super::message::{First, Frame, length_max};
use crate::backends::Backend;

/// Longest first message, as in PostgreSQL.
const FIRST_BYTES_MAX: usize = 10_000;
/// Replies are sent when this much has gathered.
const FLUSH_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 16 << 10;

/// A read waits so long before the connection counts as silent.
const SILENCE: Duration = Duration::from_millis(200);
/// The same of one that others may have something to tell: nobody can while a thread waits for it.
const LISTENING: Duration = Duration::from_millis(2);
/// The same in the middle of COPY, where a statement runs that somebody may want to stop.
const COPYING: Duration = Duration::from_millis(40);
/// A write to a client that does not read waits so long before it looks whether it shall end.
const WRITE_TRY: Duration = Duration::from_millis(50);

/// What reading brought.
pub(crate) enum Heard<T> {
    Message(T),
    /// A message of this type, for which there was no memory. It has been passed over.
    Refused(u8, SqlError),
    /// Nothing yet, or not all of a message. Reading can go on where it was, on any thread.
    Silence,
    /// The client has closed its side.
    End,
}

/// How far the input is filled.
#[derive(PartialEq)]
enum Fill {
    Enough,
    Silence,
    End,
}

/// One client's socket with its two buffers.
pub(crate) struct Wire {
    backend: Arc<Backend>,
    pace: Pace,
    input: BytesMut,
    /// What one read brings, before it goes to the input; empty while the client is silent.
    heard: Vec<u8>,
    output: BytesMut,
    /// Says when what is queued may leave.
    gate: Option<Gate>,
    /// Memory of a large message, from before its body is read until the next message.
    message: Held,
    /// That of the client, if it is not UTF-8.
    pub(crate) encoding: Option<Encoding>,
    /// A message that is being passed over: its type, the bytes to come, the reason.
    refused: Option<(u8, usize, SqlError)>,
    /// See [`Wire::listens`].
    listens: bool,
}

/// Messages up to this size are not counted: every connection may have one.
const SMALL: usize = 64 << 10;

/// Called before anything is sent: returns when all that was read for it is durable.
pub(crate) type Gate = Box<dyn Fn() -> Result<(), Fatal> + Send>;

impl Wire {
    /// # Errors
    /// The socket cannot be set up.
    pub(crate) fn new(backend: Arc<Backend>, eager_wait: Duration) -> io::Result<Wire> {
        let socket = &backend.socket;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(WRITE_TRY))?;
        let message = backend.memory.hold("message of a client");
        let (input, output) = (BytesMut::new(), BytesMut::new());
        Ok(Wire {
            backend,
            pace: Pace::new(eager_wait),
            input,
            heard: Vec::new(),
            output,
            gate: None,
            message,
            encoding: None,
            refused: None,
            listens: false,
        })
    }

    /// From now on nothing is sent before the gate lets it pass.
    pub(crate) fn set_gate(&mut self, gate: Gate) {
        self.gate = Some(gate);
    }

    /// Others may have something to tell the client at any time, or not any more.
    pub(crate) fn listens(&mut self, listens: bool) -> io::Result<()> {
        if self.listens == listens {
            return Ok(());
        }
        self.listens = listens;
        self.copies(false)
    }

    /// Rows come from the client now, or not any more.
    pub(crate) fn copies(&self, copies: bool) -> io::Result<()> {
        let silence = match (copies, self.listens) {
            (true, _) => COPYING,
            (false, true) => LISTENING,
            (false, false) => SILENCE,
        };
        self.backend.socket.set_read_timeout(Some(silence))
    }

    /// Gives back the memory of empty buffers: the client is silent.
    pub(crate) fn rest(&mut self) {
        for buffer in [&mut self.input, &mut self.output] {
            if buffer.is_empty() {
                *buffer = BytesMut::new();
            }
        }
        self.heard = Vec::new();
    }

    /// Nothing has been received that is not answered, nothing waits to be sent.
    pub(crate) fn nothing_queued(&self) -> bool {
        self.input.is_empty() && self.output.is_empty()
    }

    /// The first message of a connection.
    pub(crate) fn read_first(&mut self) -> Result<Heard<First>, Fatal> {
        match self.fill_to(4)? {
            Fill::Enough => {}
            Fill::Silence => return Ok(Heard::Silence),
            Fill::End => return Ok(Heard::End),
        }
        let length = self.length_at(0);
        if !(8..=FIRST_BYTES_MAX as i32).contains(&length) {
            return Err(Fatal::protocol("invalid length of startup packet"));
        }
        match self.fill_to(length as usize)? {
            Fill::Enough => {}
            Fill::Silence => return Ok(Heard::Silence),
            Fill::End => return Ok(Heard::End),
        }
        let mut message = self.input.split_to(length as usize);
        message.advance(4);
        First::decode(message.freeze()).map(Heard::Message).map_err(Fatal::Told)
    }

    /// The next message.
    ///
    /// # Errors
    /// A type or a length that no honest client sends: what follows cannot be made sense of.
    pub(crate) fn read(&mut self) -> Result<Heard<Frame>, Fatal> {
        Ok(match self.frame_length()? {
            _ if self.refused.is_some() => self.pass_over()?,
            Ok(whole) => {
                let mut message = self.input.split_to(whole);
                let kind = message[0];
                message.advance(5);
                Heard::Message(Frame { kind, body: message.freeze() })
            }
            Err(Fill::End) => Heard::End,
            Err(_) => Heard::Silence,
        })
    }

    /// Reads the next message as a whole into the input; its length with its head.
    fn frame_length(&mut self) -> Result<Result<usize, Fill>, Fatal> {
        if self.refused.is_some() {
            return Ok(Err(Fill::Silence));
        }
        match self.fill_to(1)? {
            Fill::Enough => {}
            less => return Ok(Err(less)),
        }
        let kind = self.input[0];
        let Some(max) = length_max(kind) else {
            return Err(Fatal::protocol(format!("invalid frontend message type {kind}")));
        };
        match self.fill_to(5)? {
            Fill::Enough => {}
            less => return Ok(Err(less)),
        }
        let length = self.length_at(1);
        if !(4..=max as i32).contains(&length) {
            return Err(Fatal::protocol(format!("invalid message length {length}, limit {max}")));
        }
        let whole = 1 + length as usize;
        // Nothing of earlier messages is needed any more.
        if whole <= SMALL {
            self.message.release();
        } else if let Err(e) = self.message.resize(whole) {
            self.refused = Some((kind, whole, memory_error(&e)));
            return Ok(Err(Fill::Silence));
        } else {
            self.message.note_unwritten(whole.saturating_sub(self.input.len()));
            // At once and not by doubling: what is held is what was asked for.
            self.input.reserve(whole.saturating_sub(self.input.len()) + READ_BYTES);
        }
        let filled = self.fill_to(whole)?;
        Ok(if filled == Fill::Enough { Ok(whole) } else { Err(filled) })
    }

    /// Reads a message that there is no memory for, and forgets it.
    fn pass_over(&mut self) -> Result<Heard<Frame>, Fatal> {
        while let Some((kind, left, e)) = self.refused.take() {
            let here = left.min(self.input.len());
            self.input.advance(here);
            if here == left {
                return Ok(Heard::Refused(kind, e));
            }
            self.refused = Some((kind, left - here, e));
            match self.fill()? {
                Fill::Enough => {}
                Fill::Silence => return Ok(Heard::Silence),
                Fill::End => return Ok(Heard::End),
            }
        }
        Ok(Heard::Silence)
    }

    fn length_at(&self, at: usize) -> i32 {
        i32::from_be_bytes(self.input[at..at + 4].try_into().expect("four bytes were taken"))
    }

    /// Whether a message of this type stands next in the input already.
    pub(crate) fn next_is(&self, message_type: u8) -> bool {
        self.input.first() == Some(&message_type)
    }

    /// Reads until the input holds `wanted` bytes.
    fn fill_to(&mut self, wanted: usize) -> Result<Fill, Fatal> {
        while self.input.len() < wanted {
            match self.fill()? {
                Fill::Enough => {}
                less => return Ok(less),
            }
            if self.message.bytes() > 0 {
                self.message.note_unwritten(wanted.saturating_sub(self.input.len()));
            }
        }
        Ok(Fill::Enough)
    }

    /// Reads once.
    fn fill(&mut self) -> Result<Fill, Fatal> {
        let filled = self.input.len();
        if filled == 0 {
            self.pace.wait(&self.backend.socket);
        }
        self.heard.resize(READ_BYTES, 0);
        let read = loop {
            match (&*self.backend.socket).read(&mut self.heard) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        if filled == 0 {
            self.pace.heard();
        }
        match read {
            Ok(0) => Ok(Fill::End),
            Ok(n) => {
                self.input.extend_from_slice(&self.heard[..n]);
                Ok(Fill::Enough)
            }
            Err(e) if is_time_out(&e) => Ok(Fill::Silence),
            Err(e) => Err(Fatal::Disconnected(e)),
        }
    }

    /// Queues a reply; sends if much has gathered.
    pub(crate) fn send(&mut self, message: &impl Message) -> Result<(), Fatal> {
        message
            .encode(&mut self.output)
            .map_err(|e| Fatal::protocol(format!("cannot encode a reply: {e}")))?;
        self.flush_if_large()
    }

    /// Queues a reply whose body is text, but for so many bytes at its head. What the client's
    /// encoding does not have is a question mark: there is nobody who could be told of it.
    pub(crate) fn send_text(&mut self, message: &impl Message, head: usize) -> Result<(), Fatal> {
        let Some(encoding) = self.encoding else { return self.send(message) };
        let mut whole = BytesMut::new();
        message
            .encode(&mut whole)
            .map_err(|e| Fatal::protocol(format!("cannot encode a reply: {e}")))?;
        let (kind, body) = (whole[0], &whole[5..]);
        let mut recoded = body[..head].to_vec();
        encoding.encode_what_it_has(&String::from_utf8_lossy(&body[head..]), &mut recoded);
        self.send_raw(kind, |out| {
            out.put_slice(&recoded);
            Ok(())
        })
    }

    /// Queues one message written by hand: type, then the body that `body` appends.
    pub(crate) fn send_raw<E>(
        &mut self,
        message_type: u8,
        body: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E>
    where
        E: From<Fatal>,
    {
        let start = self.output.len();
        self.output.put_u8(message_type);
        self.output.put_i32(0);
        if let Err(e) = body(&mut self.output) {
            self.output.truncate(start);
            return Err(e);
        }
        let length = (self.output.len() - start - 1) as i32;
        self.output[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        Ok(self.flush_if_large()?)
    }

    fn flush_if_large(&mut self) -> Result<(), Fatal> {
        if self.output.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Sends everything queued. Blocks while the client does not read, but not longer than its
    /// session may last.
    pub(crate) fn flush(&mut self) -> Result<(), Fatal> {
        if self.output.is_empty() {
            return Ok(());
        }
        if let Some(gate) = &self.gate
            && let Err(refused) = gate()
        {
            // What it was made of may be lost.
            self.output.clear();
            self.gate = None;
            return Err(refused);
        }
        let sent = self.write_all();
        self.output.clear();
        sent.map_err(Fatal::Disconnected)
    }

    fn write_all(&self) -> io::Result<()> {
        let mut rest = &self.output[..];
        while !rest.is_empty() {
            match (&*self.backend.socket).write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => rest = &rest[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if is_time_out(&e) => {
                    let cause = self.backend.interrupt.cause();
                    if cause.is_some_and(Cause::ends_session) {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// The kind differs between systems.
fn is_time_out(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
