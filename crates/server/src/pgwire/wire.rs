//! Framed messages on a blocking socket.
//!
//! Replies go into a buffer that is sent when the client waits for an answer (Sync, end of a
//! simple query, Flush) or when it has grown large. So a prepared statement costs one system call
//! to read and one to write. Nothing is sent before all that it was made of is durable: the gate.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use bytes::{BufMut, BytesMut};
use pgwire::messages::{DecodeContext, Message, PgWireFrontendMessage, ProtocolVersion};

use super::errors::Fatal;

/// Largest message accepted after startup. COPY data comes in far smaller pieces; a statement of
/// this size is refused by the parser anyway.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Replies are sent when this much has gathered.
const FLUSH_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 16 << 10;

/// Decodes one message. The decoder panics on some malformed bodies; here that is an error like
/// any other.
fn decode(
    frame: &mut BytesMut,
    context: &DecodeContext,
) -> Result<Option<PgWireFrontendMessage>, Fatal> {
    let decoded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        PgWireFrontendMessage::decode(frame, context)
    }));
    match decoded {
        Ok(Ok(message)) => Ok(message),
        Ok(Err(e)) => Err(Fatal::protocol(format!("malformed message: {e}"))),
        Err(_) => Err(Fatal::protocol("malformed message: body too short")),
    }
}

/// One client's socket with its two buffers.
pub(crate) struct Wire {
    socket: TcpStream,
    input: BytesMut,
    output: BytesMut,
    context: DecodeContext,
    /// Says when what is queued may leave.
    gate: Option<Gate>,
}

/// Called before anything is sent: returns when all that was read for it is durable.
pub(crate) type Gate = Box<dyn Fn() -> Result<(), Fatal> + Send>;

impl Wire {
    pub(crate) fn new(socket: TcpStream) -> Wire {
        Wire {
            socket,
            input: BytesMut::with_capacity(READ_BYTES),
            output: BytesMut::with_capacity(FLUSH_BYTES),
            context: DecodeContext::new(ProtocolVersion::PROTOCOL3_0),
            gate: None,
        }
    }

    /// From now on nothing is sent before the gate lets it pass.
    pub(crate) fn set_gate(&mut self, gate: Gate) {
        self.gate = Some(gate);
    }

    /// What kind of message is expected next; startup steps change it.
    pub(crate) fn context(&mut self) -> &mut DecodeContext {
        &mut self.context
    }

    /// The next message. Blocks. `None`: the client has closed the connection.
    pub(crate) fn read(&mut self) -> Result<Option<PgWireFrontendMessage>, Fatal> {
        loop {
            if let Some(length) = self.message_length()? {
                // The decoder gets exactly one message, so a lying length inside of it cannot
                // reach into the next one.
                let mut frame =
                    if length == 0 { self.input.split() } else { self.input.split_to(length) };
                let message = decode(&mut frame, &self.context)?;
                if length == 0 {
                    self.input = frame;
                }
                if message.is_some() {
                    return Ok(message);
                }
                return Err(Fatal::protocol("malformed message"));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Whether a whole message of this type stands in the input already.
    pub(crate) fn next_is(&self, message_type: u8) -> bool {
        self.input.first() == Some(&message_type)
    }

    /// Bytes of the message at the front of the input, once it is there as a whole. Refuses a
    /// length that no honest client sends before memory is set aside for it.
    ///
    /// Zero: the decoder only wants to look, to tell what kind of first message this is.
    fn message_length(&self) -> Result<Option<usize>, Fatal> {
        let (offset, least, most) = if self.context.awaiting_frontend_startup {
            (0, 8, 10_000)
        } else {
            (1, 4, MESSAGE_BYTES_MAX)
        };
        let Some(bytes) = self.input.get(offset..offset + 4) else { return Ok(None) };
        let length = i32::from_be_bytes(bytes.try_into().expect("four bytes were taken"));
        if !(least..=most as i32).contains(&length) {
            return Err(Fatal::protocol(format!("invalid message length {length}, limit {most}")));
        }
        let whole = offset + length as usize;
        if self.input.len() < whole {
            return Ok(None);
        }
        if self.context.awaiting_frontend_startup {
            let half = |at: usize| u16::from_be_bytes([self.input[at], self.input[at + 1]]);
            // 1234 is the "version" of requests for encryption and of cancel requests.
            let (major, minor) = (half(4), half(6));
            if major != 3 && major != 1234 {
                return Err(Fatal::unsupported_protocol(major, minor));
            }
        }
        Ok(Some(if self.context.awaiting_frontend_ssl { 0 } else { whole }))
    }

    fn fill(&mut self) -> Result<bool, Fatal> {
        let filled = self.input.len();
        self.input.reserve(READ_BYTES);
        self.input.resize(filled + READ_BYTES, 0);
        let read = loop {
            match self.socket.read(&mut self.input[filled..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            Ok(n) => {
                self.input.truncate(filled + n);
                Ok(n > 0)
            }
            Err(e) => {
                self.input.truncate(filled);
                Err(Fatal::Disconnected(e))
            }
        }
    }

    /// Queues a reply; sends if much has gathered.
    pub(crate) fn send(&mut self, message: &impl Message) -> Result<(), Fatal> {
        message
            .encode(&mut self.output)
            .map_err(|e| Fatal::protocol(format!("cannot encode a reply: {e}")))?;
        self.flush_if_large()
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

    /// Sends everything queued. Blocks while the client does not read.
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
        let sent = self.socket.write_all(&self.output);
        self.output.clear();
        sent.map_err(Fatal::Disconnected)
    }
}
