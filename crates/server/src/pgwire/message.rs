//! What clients send, decoded.
//!
//! ```text
//!   'Q'  length  text NUL                                  a simple query
//!   'B'  length  portal NUL statement NUL formats ...      Bind
//! ```
//!
//! Bodies are read strictly: a text ends at its NUL and must be UTF-8, every count is checked
//! against the bytes that are there, and nothing may follow the last field. Whoever sent
//! `delete from t`, a NUL and a condition must hear of it instead of losing his table. A body that
//! breaks a rule is an error of that message (08P01, or 22021 for bytes that are no UTF-8): its
//! frame is intact, so the conversation goes on.
//!
//! This is written by hand because the decoders of the `pgwire` crate index without looking.

use std::collections::BTreeMap;

use braid_types::encodings::Encoding;
use braid_types::{SqlError, SqlResult, SqlState, checked_text};
use bytes::Bytes;

/// A message as it came: its type and the bytes behind the length.
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) body: Bytes,
}

impl Frame {
    /// The frame with its texts in UTF-8. What a Bind or COPY carries is left as it is: of values
    /// it depends on their types what is text.
    ///
    /// # Errors
    /// 22021 and 22P05 as of [`Encoding::decode`].
    pub(crate) fn in_utf8(self, encoding: Encoding) -> SqlResult<Frame> {
        let (head, texts) = match self.kind {
            b'Q' | b'E' | b'f' => (0, 1),
            b'D' | b'C' => (1, 1),
            b'P' | b'B' => (0, 2),
            _ => return Ok(self),
        };
        if self.body.is_ascii() {
            return Ok(self);
        }
        let mut body = self.body.get(..head).unwrap_or_default().to_vec();
        let mut rest = self.body.get(head..).unwrap_or_default();
        for _ in 0..texts {
            // Without its end it is an error of the protocol, which is told later.
            let Some(end) = rest.iter().position(|byte| *byte == 0) else { break };
            body.extend_from_slice(encoding.decode(&rest[..end])?.as_bytes());
            body.push(0);
            rest = &rest[end + 1..];
        }
        body.extend_from_slice(rest);
        Ok(Frame { kind: self.kind, body: body.into() })
    }
}

/// A message of a running session, in the bytes of its frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Message<'a> {
    Query(&'a str),
    Parse(Parse<'a>),
    Bind(Bind<'a>),
    Describe(Target<'a>),
    Execute { portal: &'a str, max_rows: i32 },
    Close(Target<'a>),
    Sync,
    Flush,
    Terminate,
    CopyData(&'a [u8]),
    CopyDone,
    CopyFail(&'a str),
    FunctionCall,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Parse<'a> {
    pub(crate) name: &'a str,
    pub(crate) query: &'a str,
    pub(crate) type_oids: Vec<u32>,
}

/// How a value is written, as it stands in a message: a number of two bytes, big-endian.
pub(crate) type FormatCode = [u8; 2];

#[derive(Debug, PartialEq)]
pub(crate) struct Bind<'a> {
    pub(crate) portal: &'a str,
    pub(crate) statement: &'a str,
    pub(crate) parameter_formats: &'a [FormatCode],
    /// `None` is NULL.
    pub(crate) parameters: Vec<Option<&'a [u8]>>,
    pub(crate) result_formats: &'a [FormatCode],
}

/// What Describe and Close are about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target<'a> {
    Statement(&'a str),
    Portal(&'a str),
}

/// The first message of a connection, which has no type byte.
#[derive(Debug, PartialEq)]
pub(crate) enum First {
    EncryptionRequest,
    Cancel { pid: i32, secret: i32 },
    Startup { minor: u16, parameters: BTreeMap<String, String> },
    UnknownVersion { major: u16, minor: u16 },
}

/// Messages of the extended protocol: after an error in one of them the rest is skipped to Sync.
pub(crate) fn is_extended(kind: u8) -> bool {
    matches!(kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H')
}

/// The longest body a message of this type can have; `None`: there is no such type.
pub(crate) fn length_max(kind: u8) -> Option<usize> {
    /// A statement of this size is refused by the parser anyway, COPY data comes in far smaller
    /// pieces.
    const LARGE: usize = 64 << 20;
    const SMALL: usize = 10_000;
    match kind {
        b'Q' | b'P' | b'B' | b'd' | b'F' => Some(LARGE),
        b'D' | b'E' | b'C' | b'S' | b'H' | b'X' | b'c' | b'f' => Some(SMALL),
        _ => None,
    }
}

impl Message<'_> {
    /// Decodes a frame.
    ///
    /// # Errors
    /// 08P01, 22021; the conversation can go on.
    pub(crate) fn decode(frame: &Frame) -> SqlResult<Message<'_>> {
        let mut body = Body { bytes: &frame.body, at: 0 };
        let message = match frame.kind {
            b'Q' => Message::Query(body.text()?),
            b'P' => Message::Parse(parse(&mut body)?),
            b'B' => Message::Bind(bind(&mut body)?),
            b'D' => Message::Describe(body.target("DESCRIBE")?),
            b'E' => Message::Execute { portal: body.text()?, max_rows: body.i32()? },
            b'C' => Message::Close(body.target("CLOSE")?),
            b'S' => Message::Sync,
            b'H' => Message::Flush,
            // Whatever it carries: the client is leaving.
            b'X' => return Ok(Message::Terminate),
            b'd' => return Ok(Message::CopyData(body.bytes)),
            b'c' => Message::CopyDone,
            b'f' => Message::CopyFail(body.text()?),
            b'F' => return Ok(Message::FunctionCall),
            other => {
                return Err(violation(format!("invalid frontend message type {other}")));
            }
        };
        body.end()?;
        Ok(message)
    }
}

impl First {
    /// Decodes the body of a first message: all behind its length.
    ///
    /// # Errors
    /// 08P01; nothing is known of the client, so the connection ends.
    pub(crate) fn decode(bytes: Bytes) -> SqlResult<First> {
        let mut body = Body { bytes: &bytes, at: 0 };
        let (major, minor) = (body.u16()?, body.u16()?);
        match (major, minor) {
            (1234, 5678) => {
                let (pid, secret) = (body.i32()?, body.i32()?);
                body.end()?;
                Ok(First::Cancel { pid, secret })
            }
            (1234, 5679 | 5680) => {
                body.end()?;
                Ok(First::EncryptionRequest)
            }
            (3, minor) => {
                let mut parameters = BTreeMap::new();
                loop {
                    let name = body.text()?;
                    if name.is_empty() {
                        break;
                    }
                    parameters.insert(name.to_string(), body.text()?.to_string());
                }
                body.end().map_err(|_| {
                    violation(
                        "invalid startup packet layout: expected terminator as last byte".into(),
                    )
                })?;
                Ok(First::Startup { minor, parameters })
            }
            (major, minor) => Ok(First::UnknownVersion { major, minor }),
        }
    }
}

fn violation(message: String) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

fn parse<'a>(body: &mut Body<'a>) -> SqlResult<Parse<'a>> {
    let (name, query) = (body.text()?, body.text()?);
    let count = body.count(4)?;
    let type_oids = (0..count).map(|_| body.i32().map(|v| v as u32)).collect::<SqlResult<_>>()?;
    Ok(Parse { name, query, type_oids })
}

fn bind<'a>(body: &mut Body<'a>) -> SqlResult<Bind<'a>> {
    let (portal, statement) = (body.text()?, body.text()?);
    let parameter_formats = body.formats()?;
    let count = body.count(4)?;
    let parameters = (0..count).map(|_| body.value()).collect::<SqlResult<_>>()?;
    let result_formats = body.formats()?;
    Ok(Bind { portal, statement, parameter_formats, parameters, result_formats })
}

/// A body that is read from its front.
struct Body<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Body<'a> {
    fn take(&mut self, n: usize) -> SqlResult<&'a [u8]> {
        if n > self.bytes.len() - self.at {
            return Err(violation("insufficient data left in message".into()));
        }
        let taken = &self.bytes[self.at..self.at + n];
        self.at += n;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> SqlResult<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("as many were taken"))
    }

    fn u16(&mut self) -> SqlResult<u16> {
        Ok(u16::from_be_bytes(self.fixed()?))
    }

    fn i32(&mut self) -> SqlResult<i32> {
        Ok(i32::from_be_bytes(self.fixed()?))
    }

    /// A number of fields that take at least `size` bytes each: more than can be there is an error
    /// before memory is set aside for them.
    fn count(&mut self, size: usize) -> SqlResult<usize> {
        let count = usize::from(self.u16()?);
        if count * size > self.bytes.len() - self.at {
            return Err(violation("insufficient data left in message".into()));
        }
        Ok(count)
    }

    fn formats(&mut self) -> SqlResult<&'a [FormatCode]> {
        let count = self.count(2)?;
        Ok(self.take(2 * count)?.as_chunks().0)
    }

    fn value(&mut self) -> SqlResult<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            n => match usize::try_from(n) {
                Ok(n) => self.take(n).map(Some),
                Err(_) => Err(violation(format!("invalid length of a parameter: {n}"))),
            },
        }
    }

    fn text(&mut self) -> SqlResult<&'a str> {
        let rest = &self.bytes[self.at..];
        let Some(end) = memchr::memchr(0, rest) else {
            return Err(violation("invalid string in message".into()));
        };
        let text = checked_text(&rest[..end])?;
        self.at += end + 1;
        Ok(text)
    }

    fn target(&mut self, word: &str) -> SqlResult<Target<'a>> {
        let [kind] = self.fixed()?;
        let name = self.text()?;
        match kind {
            b'S' => Ok(Target::Statement(name)),
            b'P' => Ok(Target::Portal(name)),
            other => Err(violation(format!("invalid {word} message subtype {other}"))),
        }
    }

    fn end(&self) -> SqlResult<()> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(violation("invalid message format".into())
            .with_detail("There are bytes behind the last field of the message."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a message says, as text: it lives as long as its frame.
    fn decode(kind: u8, body: &[u8]) -> Result<String, &'static str> {
        let frame = Frame { kind, body: Bytes::copy_from_slice(body) };
        Message::decode(&frame).map(|m| format!("{m:?}")).map_err(|e| e.state().0)
    }

    #[test]
    fn bodies_are_read_to_their_last_byte() {
        assert_eq!(decode(b'Q', b"SELECT 1\0"), Ok("Query(\"SELECT 1\")".into()));
        assert_eq!(decode(b'Q', b"delete from t\0where id=4\0"), Err("08P01"));
        assert_eq!(decode(b'Q', b"SELECT 1"), Err("08P01"));
        assert_eq!(decode(b'Q', b"SELECT '\xff'\0"), Err("22021"));
        assert_eq!(decode(b'S', b"x"), Err("08P01"));
        assert_eq!(decode(b'D', b"Xs\0"), Err("08P01"));
        assert_eq!(decode(b'P', b"\0SELECT 1\0\xff\xff"), Err("08P01"));
        let bind = b"p\0s\0\0\0\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x01\0\x01";
        let frame = Frame { kind: b'B', body: Bytes::from_static(bind) };
        let Ok(Message::Bind(bind)) = Message::decode(&frame) else { panic!("a good Bind") };
        assert_eq!(bind.parameters, [Some(&b"x"[..]), None]);
        assert_eq!(bind.result_formats, [[0, 1]]);
        assert_eq!(decode(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"), Err("08P01"));
    }

    #[test]
    fn no_prefix_of_a_message_panics() {
        let bodies: &[(u8, &[u8])] = &[
            (b'P', b"name\0SELECT $1\0\0\x02\0\0\0\x17\0\0\0\0"),
            (b'B', b"p\0s\0\0\x01\0\x01\0\x01\0\0\0\x01x\0\x01\0\0"),
            (b'E', b"p\0\0\0\0\x07"),
            (b'C', b"Ps\0"),
        ];
        for (kind, body) in bodies {
            assert!(decode(*kind, body).is_ok());
            for cut in 0..body.len() {
                assert_eq!(decode(*kind, &body[..cut]), Err("08P01"), "{kind} at {cut}");
            }
        }
        let startup = b"\0\x03\0\0user\0root\0\0";
        assert!(First::decode(Bytes::from_static(startup)).is_ok());
        for cut in 0..startup.len() {
            assert!(First::decode(Bytes::copy_from_slice(&startup[..cut])).is_err(), "{cut}");
        }
    }
}
