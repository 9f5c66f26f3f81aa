//! A server on free ports, and a client that speaks byte by byte.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use braid_server::{Server, ServerConfig};

/// A server on a temporary directory and free ports.
pub struct Running {
    server: Option<Server>,
    _directory: tempfile::TempDir,
}

impl Running {
    pub fn new() -> Running {
        Running::with(|config| config.connections_max = 5)
    }

    /// A server with some settings changed.
    pub fn with(change: impl FnOnce(&mut ServerConfig)) -> Running {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut config = ServerConfig::new(directory.path().join("store"));
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.http = None;
        change(&mut config);
        let server = Server::start(config).expect("the server starts");
        Running { server: Some(server), _directory: directory }
    }

    /// Where `/metrics` answers, if it was asked for.
    pub fn http_address(&self) -> SocketAddr {
        let server = self.server.as_ref().expect("running");
        server.http_address().expect("HTTP is on")
    }

    /// What clients make the node hold.
    pub fn memory(&self) -> &braid_env::memory::Pool {
        self.server.as_ref().expect("running").memory()
    }

    pub fn connect(&self) -> Talk {
        let mut talk = self.connect_raw();
        talk.startup(3, 0);
        let (greeting, _) = talk.until_ready();
        assert!(greeting.starts_with("AuthenticationOk ParameterStatus"), "{greeting}");
        talk
    }

    pub fn connect_raw(&self) -> Talk {
        let address = self.server.as_ref().expect("running").address();
        let socket = TcpStream::connect(address).expect("the server listens");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out can be set");
        Talk { socket, pid: 0, secret: 0 }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().expect("the store closes");
        }
    }
}

pub struct Talk {
    pub socket: TcpStream,
    pub pid: i32,
    pub secret: i32,
}

pub fn text(s: &str) -> Vec<u8> {
    [s.as_bytes(), &[0]].concat()
}

impl Talk {
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the server reads");
    }

    pub fn send(&mut self, kind: u8, body: &[u8]) {
        let length = (body.len() as i32 + 4).to_be_bytes();
        self.send_bytes(&[&[kind], &length[..], body].concat());
    }

    pub fn startup(&mut self, major: i32, minor: i32) {
        let mut body = ((major << 16) | minor).to_be_bytes().to_vec();
        for word in ["user", "root", "database", "defaultdb", ""] {
            body.extend(text(word));
        }
        let length = (body.len() as i32 + 4).to_be_bytes();
        self.send_bytes(&[&length[..], &body].concat());
    }

    pub fn query(&mut self, sql: &str) {
        self.send(b'Q', &text(sql));
    }

    pub fn parse(&mut self, name: &str, sql: &str) {
        self.send(b'P', &[text(name), text(sql), vec![0, 0]].concat());
    }

    /// Binds text parameters to the unnamed portal.
    pub fn bind(&mut self, statement: &str, parameters: &[&str]) {
        let mut body = [text(""), text(statement), vec![0, 0]].concat();
        body.extend((parameters.len() as i16).to_be_bytes());
        for p in parameters {
            body.extend((p.len() as i32).to_be_bytes());
            body.extend(p.as_bytes());
        }
        body.extend([0, 0]);
        self.send(b'B', &body);
    }

    pub fn execute(&mut self, max_rows: i32) {
        self.send(b'E', &[text(""), max_rows.to_be_bytes().to_vec()].concat());
    }

    pub fn sync(&mut self) {
        self.send(b'S', &[]);
    }

    /// Reads one message; `None` when the server has closed the connection.
    pub fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.socket.read_exact(&mut head).ok()?;
        let length = i32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        self.socket.read_exact(&mut body).ok()?;
        Some((head[0], body))
    }

    /// Replies up to ReadyForQuery or the end of the connection: names with what matters in them.
    pub fn until_ready(&mut self) -> (String, Option<char>) {
        let mut out: Vec<String> = Vec::new();
        while let Some((kind, body)) = self.message() {
            let strings: Vec<String> =
                body.split(|b| *b == 0).map(|s| String::from_utf8_lossy(s).into_owned()).collect();
            let said = match kind {
                b'Z' => return (out.join(" "), Some(char::from(body[0]))),
                b'R' => "AuthenticationOk".to_string(),
                b'S' => "ParameterStatus".to_string(),
                b'K' => {
                    self.pid = i32::from_be_bytes(body[..4].try_into().unwrap());
                    self.secret = i32::from_be_bytes(body[4..8].try_into().unwrap());
                    continue;
                }
                b'E' => {
                    let field = |code: char| {
                        strings.iter().find_map(|s| s.strip_prefix(code)).unwrap_or_default()
                    };
                    format!("Error({} {})", field('S'), field('C'))
                }
                b'C' => format!("Complete({})", strings[0]),
                b'D' => format!("Row({})", row(&body)),
                b'T' => "Columns".to_string(),
                b'I' => "Empty".to_string(),
                b'1' => "Parsed".to_string(),
                b'2' => "Bound".to_string(),
                b'3' => "Closed".to_string(),
                b'n' => "NoData".to_string(),
                b's' => "Suspended".to_string(),
                b't' => "Parameters".to_string(),
                b'G' => {
                    out.push("CopyIn".to_string());
                    return (out.join(" "), None);
                }
                b'N' => "Notice".to_string(),
                b'H' => "CopyOut".to_string(),
                b'd' => format!("Data({})", String::from_utf8_lossy(&body).escape_debug()),
                b'c' => "CopyDone".to_string(),
                b'v' => "Negotiate".to_string(),
                other => format!("?{}", char::from(other)),
            };
            if said != "ParameterStatus" || out.last().is_none_or(|last| *last != said) {
                out.push(said);
            }
        }
        (out.join(" "), None)
    }

    pub fn answer(&mut self) -> String {
        let (said, status) = self.until_ready();
        format!("{said} {}", status.map_or("closed".to_string(), String::from))
    }
}

fn row(body: &[u8]) -> String {
    let mut out = Vec::new();
    let mut at = 2;
    while at < body.len() {
        let length = i32::from_be_bytes(body[at..at + 4].try_into().unwrap());
        at += 4;
        if length < 0 {
            out.push("NULL".to_string());
        } else {
            let end = at + length as usize;
            out.push(String::from_utf8_lossy(&body[at..end]).into_owned());
            at = end;
        }
    }
    out.join(",")
}
