//! PostgreSQL's protocol as a conversation, byte by byte: what clients send, what comes back.
//!
//! Drivers hide most of this; here messages are written by hand, so that also wrong ones can be.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use braid_server::{Server, ServerConfig};

/// A server on a temporary directory and free ports.
struct Running {
    server: Option<Server>,
    _directory: tempfile::TempDir,
}

impl Running {
    fn new() -> Running {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut config = ServerConfig::new(directory.path().join("store"));
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.http = None;
        config.connections_max = 5;
        let server = Server::start(config).expect("the server starts");
        Running { server: Some(server), _directory: directory }
    }

    fn connect(&self) -> Talk {
        let mut talk = self.connect_raw();
        talk.startup(3, 0);
        let (greeting, _) = talk.until_ready();
        assert!(greeting.starts_with("AuthenticationOk ParameterStatus"), "{greeting}");
        talk
    }

    fn connect_raw(&self) -> Talk {
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

struct Talk {
    socket: TcpStream,
    pid: i32,
    secret: i32,
}

fn text(s: &str) -> Vec<u8> {
    [s.as_bytes(), &[0]].concat()
}

impl Talk {
    fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the server reads");
    }

    fn send(&mut self, kind: u8, body: &[u8]) {
        let length = (body.len() as i32 + 4).to_be_bytes();
        self.send_bytes(&[&[kind], &length[..], body].concat());
    }

    fn startup(&mut self, major: i32, minor: i32) {
        let mut body = ((major << 16) | minor).to_be_bytes().to_vec();
        for word in ["user", "root", "database", "defaultdb", ""] {
            body.extend(text(word));
        }
        let length = (body.len() as i32 + 4).to_be_bytes();
        self.send_bytes(&[&length[..], &body].concat());
    }

    fn query(&mut self, sql: &str) {
        self.send(b'Q', &text(sql));
    }

    fn parse(&mut self, name: &str, sql: &str) {
        self.send(b'P', &[text(name), text(sql), vec![0, 0]].concat());
    }

    /// Binds text parameters to the unnamed portal.
    fn bind(&mut self, statement: &str, parameters: &[&str]) {
        let mut body = [text(""), text(statement), vec![0, 0]].concat();
        body.extend((parameters.len() as i16).to_be_bytes());
        for p in parameters {
            body.extend((p.len() as i32).to_be_bytes());
            body.extend(p.as_bytes());
        }
        body.extend([0, 0]);
        self.send(b'B', &body);
    }

    fn execute(&mut self, max_rows: i32) {
        self.send(b'E', &[text(""), max_rows.to_be_bytes().to_vec()].concat());
    }

    fn sync(&mut self) {
        self.send(b'S', &[]);
    }

    /// Reads one message; `None` when the server has closed the connection.
    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.socket.read_exact(&mut head).ok()?;
        let length = i32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        self.socket.read_exact(&mut body).ok()?;
        Some((head[0], body))
    }

    /// Replies up to ReadyForQuery or the end of the connection: names with what matters in them.
    fn until_ready(&mut self) -> (String, Option<char>) {
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
                b'v' => "Negotiate".to_string(),
                other => format!("?{}", char::from(other)),
            };
            if said != "ParameterStatus" || out.last().is_none_or(|last| *last != said) {
                out.push(said);
            }
        }
        (out.join(" "), None)
    }

    fn answer(&mut self) -> String {
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

#[test]
fn startup_refuses_encryption_and_unknown_versions() {
    let server = Running::new();
    let mut talk = server.connect_raw();
    talk.send_bytes(&[0, 0, 0, 8, 4, 210, 22, 47]);
    let mut reply = [0];
    talk.socket.read_exact(&mut reply).expect("an answer to SSLRequest");
    assert_eq!(reply, *b"N");
    talk.startup(3, 0);
    assert_eq!(talk.until_ready().1, Some('I'));

    let mut newer = server.connect_raw();
    newer.startup(3, 2);
    assert!(newer.until_ready().0.starts_with("Negotiate AuthenticationOk"));

    let mut older = server.connect_raw();
    older.startup(2, 0);
    assert_eq!(older.answer(), "Error(FATAL 0A000) closed");

    let mut wrong = server.connect_raw();
    let body = [&196_608i32.to_be_bytes()[..], b"user\0root\0database\0nowhere\0\0"].concat();
    wrong.send_bytes(&[&(body.len() as i32 + 4).to_be_bytes()[..], &body].concat());
    assert_eq!(wrong.answer(), "Error(FATAL 3D000) closed");
}

#[test]
fn hostile_bytes_end_their_connection_only() {
    let server = Running::new();
    let attacks: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\n\r\n",
        &[0, 0, 0, 0],
        &[0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0],
        &[0xff; 64],
    ];
    for attack in attacks {
        let mut talk = server.connect_raw();
        talk.send_bytes(attack);
        let said = talk.answer();
        assert!(said.contains("closed") && said.contains("08P01"), "{attack:?}: {said}");
    }
    let attacks: &[(u8, &[u8])] = &[
        (b'B', &[0, 0, 0xff, 0xff]),
        (b'B', b"\0\0\0\x01\0\x01\0\x01\x7f\xff\xff\xff"),
        (b'P', b"no terminator"),
        (b'?', b""),
        (b'E', b"\0"),
        (b'p', b"secret\0"),
    ];
    for (kind, body) in attacks {
        let mut talk = server.connect();
        talk.send(*kind, body);
        talk.sync();
        let said = talk.answer();
        assert!(said.contains("Error("), "{}: {said}", char::from(*kind));
    }
    let mut talk = server.connect();
    talk.send_bytes(&[b'Q', 0x7f, 0xff, 0xff, 0xff]);
    assert_eq!(talk.answer(), "Error(FATAL 08P01) closed", "a huge length costs no memory");
    let mut talk = server.connect();
    talk.query("SHOW server_version");
    assert!(talk.answer().ends_with("Complete(SHOW) I"), "the server goes on");
}

#[test]
fn too_many_clients_are_turned_away() {
    let server = Running::new();
    let _held: Vec<Talk> = (0..5).map(|_| server.connect()).collect();
    let mut talk = server.connect_raw();
    talk.startup(3, 0);
    assert_eq!(talk.answer(), "Error(FATAL 53300) closed");
}

#[test]
fn simple_queries() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("");
    assert_eq!(talk.answer(), "Empty I");
    talk.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    assert_eq!(talk.answer(), "Complete(CREATE TABLE) I");
    talk.query("INSERT INTO t VALUES (1, 'x'), (2, NULL); SELECT * FROM t ORDER BY a");
    assert_eq!(
        talk.answer(),
        "Complete(INSERT 0 2) Columns Row(1,x) Row(2,NULL) Complete(SELECT 2) I"
    );
    talk.query("INSERT INTO t VALUES (3, 'y'); INSERT INTO t VALUES (1, 'again'); SELECT 1");
    assert_eq!(talk.answer(), "Complete(INSERT 0 1) Error(ERROR 23505) I");
    talk.query("SELECT count(*) FROM t");
    assert_eq!(
        talk.answer(),
        "Columns Row(2) Complete(SELECT 1) I",
        "one message, one transaction"
    );
    talk.query("BEGIN");
    assert_eq!(talk.answer(), "Complete(BEGIN) T");
    talk.query("SELEC");
    assert_eq!(talk.answer(), "Error(ERROR 42601) E");
    talk.query("SELECT 1");
    assert_eq!(talk.answer(), "Error(ERROR 25P02) E");
    talk.query("COMMIT");
    assert_eq!(talk.answer(), "Complete(ROLLBACK) I");
}

#[test]
fn extended_protocol() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')");
    talk.answer();
    talk.parse("s", "SELECT b FROM t WHERE a >= $1 ORDER BY a");
    talk.send(b'D', b"Ss\0");
    talk.bind("s", &["2"]);
    talk.send(b'D', b"P\0");
    talk.execute(0);
    talk.sync();
    assert_eq!(
        talk.answer(),
        "Parsed Parameters Columns Bound Columns Row(y) Row(z) Complete(SELECT 2) I"
    );
    talk.bind("s", &["1"]);
    talk.execute(2);
    talk.execute(2);
    talk.sync();
    assert_eq!(
        talk.answer(),
        "Bound Row(x) Row(y) Suspended Row(z) Complete(SELECT 1) I",
        "a portal gives its rows in pieces"
    );
    talk.bind("s", &["not a number"]);
    talk.execute(0);
    talk.execute(0);
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 22P02) I", "after an error all is skipped up to Sync");
    talk.bind("nobody", &[]);
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 26000) I");
    talk.execute(0);
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 34000) I");
    talk.parse("s", "SELECT 1");
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 42P05) I");
    talk.send(b'C', b"Ss\0");
    talk.sync();
    assert_eq!(talk.answer(), "Closed I");
}

#[test]
fn statements_up_to_sync_are_one_transaction() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (a int PRIMARY KEY)");
    talk.answer();
    talk.parse("i", "INSERT INTO t VALUES ($1)");
    for value in ["1", "2", "1"] {
        talk.bind("i", &[value]);
        talk.execute(0);
    }
    talk.sync();
    let said = talk.answer();
    assert!(said.contains("Error(ERROR 23505)") && said.ends_with('I'), "{said}");
    talk.query("SELECT count(*) FROM t");
    assert!(talk.answer().contains("Row(0)"), "the first two went with the third");
}

#[test]
fn copy_in_can_fail_on_both_sides() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    talk.answer();
    talk.query("COPY t FROM STDIN");
    assert_eq!(talk.answer(), "CopyIn closed");
    talk.send(b'd', b"1\tx\n2");
    talk.send(b'd', b"\ty\n");
    talk.send(b'c', b"");
    assert_eq!(talk.answer(), "Complete(COPY 2) I");
    talk.query("COPY t FROM STDIN");
    talk.until_ready();
    talk.send(b'd', b"3\tz\n");
    talk.send(b'f', &text("no more"));
    assert_eq!(talk.answer(), "Error(ERROR 57014) I");
    talk.query("COPY t FROM STDIN");
    talk.until_ready();
    talk.send(b'd', b"3\tz\nnot a number\tw\n");
    talk.send(b'd', b"4\tu\n");
    talk.send(b'c', b"");
    assert_eq!(talk.answer(), "Error(ERROR 22P02) I");
    talk.query("SELECT count(*) FROM t");
    assert!(talk.answer().contains("Row(2)"), "nothing of a failed COPY stays");
}

#[test]
fn a_cancel_request_needs_the_secret() {
    let server = Running::new();
    let mut holder = server.connect();
    holder.query("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)");
    holder.answer();
    holder.query("BEGIN; DELETE FROM t WHERE a = 1");
    holder.answer();
    let mut waiter = server.connect();
    waiter.query("DELETE FROM t WHERE a = 1");
    let cancel = |secret: i32| {
        let mut talk = server.connect_raw();
        let mut packet = 16i32.to_be_bytes().to_vec();
        packet.extend(80_877_102i32.to_be_bytes());
        packet.extend(waiter.pid.to_be_bytes());
        packet.extend(secret.to_be_bytes());
        talk.send_bytes(&packet);
        assert_eq!(talk.answer(), " closed", "a cancel request is never answered");
    };
    cancel(waiter.secret ^ 1);
    std::thread::sleep(Duration::from_millis(200));
    waiter.socket.set_nonblocking(true).unwrap();
    assert!(waiter.socket.peek(&mut [0]).is_err(), "a wrong secret changes nothing");
    waiter.socket.set_nonblocking(false).unwrap();
    cancel(waiter.secret);
    assert_eq!(waiter.answer(), "Error(ERROR 57014) I");
    waiter.query("SHOW server_version");
    assert!(waiter.answer().ends_with('I'), "the connection goes on");
}
