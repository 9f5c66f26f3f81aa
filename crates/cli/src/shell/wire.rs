//! A connection as a shell wants it: messages one by one, with the tag of each statement and the
//! state of the transaction, which clients for programs do not show.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use postgres::Config;
use postgres::config::Host;
use postgres::fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{DataRowBody, ErrorFields, Message};
use postgres_protocol::message::frontend;

use super::report::Report;
use crate::CliResult;

/// A node that does not answer is given up after this time.
const CONNECT: Duration = Duration::from_secs(10);

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// In no block.
    Idle,
    /// In a block.
    Open,
    /// In a block that has failed.
    Failed,
}

/// What names a running statement to the node that is to cancel it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CancelKey {
    node: SocketAddr,
    pid: i32,
    secret: i32,
}

impl CancelKey {
    /// Asks for it. Whether it was in time nobody says.
    pub(super) fn cancel(&self) -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&self.node, CONNECT)?;
        let mut out = BytesMut::new();
        frontend::cancel_request(self.pid, self.secret, &mut out);
        stream.write_all(&out)
    }
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its values are numbers: they stand at the right.
    pub(super) is_number: bool,
}

/// The values of a row; `None` is NULL.
pub(super) type Values = Vec<Option<String>>;

/// Types whose values stand at the right: int8, int2, int4, oid, float4, float8, money, numeric.
const NUMBERS: [u32; 8] = [20, 21, 23, 26, 700, 701, 790, 1700];

/// What comes of a query.
pub(super) enum Came {
    Columns(Vec<Column>),
    Row(Values),
    /// A statement has ended, with its tag.
    Done(String),
    /// There was no statement.
    Nothing,
    /// COPY wants rows.
    CopyIn,
    /// COPY sends rows: a part of them.
    Copied(Bytes),
    Failed(Report),
}

/// See the [module's page](self).
pub(super) struct Wire {
    stream: TcpStream,
    input: BytesMut,
    node: SocketAddr,
    key: (i32, i32),
    status: Status,
    parameters: BTreeMap<String, String>,
    pub(super) user: String,
    pub(super) database: String,
}

impl Wire {
    /// Connects to the first node of a URL that takes clients.
    pub(super) fn connect(url: &str) -> CliResult<Wire> {
        let config: Config = url.parse().map_err(|e| format!("{url}: {e}"))?;
        let mut last = format!("{url} names no node");
        for (at, host) in config.get_hosts().iter().enumerate() {
            let ports = config.get_ports();
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(26500);
            let Host::Tcp(name) = host else {
                last = "nodes listen on TCP ports, not on sockets in a folder".into();
                continue;
            };
            let addresses = match (name.as_str(), port).to_socket_addrs() {
                Ok(addresses) => addresses,
                Err(e) => {
                    last = format!("{name}: {e}");
                    continue;
                }
            };
            for address in addresses {
                match Wire::open(address, &config) {
                    Ok(wire) => return Ok(wire),
                    Err(e) => last = format!("{address}: {e}"),
                }
            }
        }
        Err(format!("{last}\nIs a node running? Start one with `braid start`.").into())
    }

    fn open(node: SocketAddr, config: &Config) -> CliResult<Wire> {
        let stream = TcpStream::connect_timeout(&node, CONNECT)?;
        stream.set_nodelay(true)?;
        let user = config.get_user().unwrap_or("root").to_string();
        let database = config.get_dbname().unwrap_or("defaultdb").to_string();
        let application = config.get_application_name().unwrap_or("braid sql");
        let mut said = vec![
            ("user", user.as_str()),
            ("database", database.as_str()),
            ("application_name", application),
            ("client_encoding", "UTF8"),
        ];
        said.extend(config.get_options().map(|options| ("options", options)));
        let mut out = BytesMut::new();
        frontend::startup_message(said, &mut out)?;
        let mut wire = Wire {
            stream,
            input: BytesMut::new(),
            node,
            key: (0, 0),
            status: Status::Idle,
            parameters: BTreeMap::new(),
            user: user.clone(),
            database: database.clone(),
        };
        wire.stream.write_all(&out)?;
        loop {
            match wire.message()? {
                Message::AuthenticationOk => {}
                Message::BackendKeyData(key) => wire.key = (key.process_id(), key.secret_key()),
                Message::ReadyForQuery(_) => return Ok(wire),
                Message::ErrorResponse(body) => {
                    return Err(Report::read(body.fields())?.text(None).into());
                }
                _ => return Err("the server asks for a password: this shell has none".into()),
            }
        }
    }

    pub(super) fn status(&self) -> Status {
        self.status
    }

    pub(super) fn cancel_key(&self) -> CancelKey {
        CancelKey { node: self.node, pid: self.key.0, secret: self.key.1 }
    }

    /// Where it is connected.
    pub(super) fn node(&self) -> SocketAddr {
        self.node
    }

    /// What the server says of itself or of the session.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Sends a query. What comes of it is [`Wire::next`].
    pub(super) fn send(&mut self, sql: &str) -> io::Result<()> {
        let mut out = BytesMut::new();
        frontend::query(sql, &mut out)?;
        self.stream.write_all(&out)
    }

    /// The next thing that comes of the query; `None`: that was all. Blocks.
    pub(super) fn next(&mut self) -> io::Result<Option<Came>> {
        loop {
            return Ok(Some(match self.message()? {
                Message::ReadyForQuery(body) => {
                    self.status = match body.status() {
                        b'T' => Status::Open,
                        b'E' => Status::Failed,
                        _ => Status::Idle,
                    };
                    return Ok(None);
                }
                Message::RowDescription(body) => {
                    let column = |field: postgres_protocol::message::backend::Field<'_>| {
                        let is_number = NUMBERS.contains(&field.type_oid());
                        Ok(Column { name: field.name().to_string(), is_number })
                    };
                    Came::Columns(body.fields().map(column).collect()?)
                }
                Message::DataRow(body) => Came::Row(texts(&body)?),
                Message::CommandComplete(body) => Came::Done(body.tag()?.to_string()),
                Message::EmptyQueryResponse => Came::Nothing,
                Message::ErrorResponse(body) => Came::Failed(Report::read(body.fields())?),
                Message::CopyInResponse(_) => Came::CopyIn,
                Message::CopyData(body) => Came::Copied(body.into_bytes()),
                _ => continue,
            }));
        }
    }

    /// Sends rows of a COPY.
    pub(super) fn copy(&mut self, rows: &[u8]) -> io::Result<()> {
        let mut out = BytesMut::with_capacity(rows.len() + 5);
        frontend::CopyData::new(rows)?.write(&mut out);
        self.stream.write_all(&out)
    }

    /// Ends the rows; with a reason it takes all of them back.
    pub(super) fn end_copy(&mut self, failed: Option<&str>) -> io::Result<()> {
        let mut out = BytesMut::new();
        match failed {
            Some(why) => frontend::copy_fail(why, &mut out)?,
            None => frontend::copy_done(&mut out),
        }
        self.stream.write_all(&out)
    }

    /// The next message, but for those that may come at any time.
    fn message(&mut self) -> io::Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.input)? {
                match message {
                    Message::NoticeResponse(body) => {
                        eprintln!("{}", Report::read(body.fields())?.text(None));
                    }
                    Message::ParameterStatus(body) => {
                        let (name, value) = (body.name()?.to_string(), body.value()?.to_string());
                        self.parameters.insert(name, value);
                    }
                    Message::NotificationResponse(body) => println!(
                        "Notification \"{}\" with payload \"{}\" from process {}.",
                        body.channel()?,
                        body.message()?,
                        body.process_id()
                    ),
                    other => return Ok(other),
                }
                continue;
            }
            let mut part = [0; 16 << 10];
            match self.stream.read(&mut part) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.input.extend_from_slice(&part[..read]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let mut out = BytesMut::new();
        frontend::terminate(&mut out);
        // The server may be gone already.
        let _said = self.stream.write_all(&out);
    }
}

fn texts(row: &DataRowBody) -> io::Result<Values> {
    let buffer = row.buffer();
    let text = |range: Option<std::ops::Range<usize>>| {
        Ok(range.map(|range| String::from_utf8_lossy(&buffer[range]).into_owned()))
    };
    row.ranges().map(text).collect()
}

/// The fields of an error or a notice, by their letters.
pub(super) fn fields(fields: ErrorFields<'_>) -> io::Result<BTreeMap<u8, String>> {
    let field = |f: postgres_protocol::message::backend::ErrorField<'_>| {
        Ok((f.type_(), String::from_utf8_lossy(f.value_bytes()).into_owned()))
    };
    fields.map(field).collect()
}
