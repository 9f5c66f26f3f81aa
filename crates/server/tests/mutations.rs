//! Thousands of damaged messages: each is answered or ends its connection, none makes a thread
//! panic, and the server goes on.
//!
//! `BRAID_MUTATIONS` sets their number, `BRAID_SEED` the seed.

mod support;

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use braid_env::random::Random;
use support::{Running, Talk, text};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as i32 + 4).to_be_bytes()[..], body].concat()
}

/// A conversation that touches every message of the protocol.
fn good() -> Vec<Vec<u8>> {
    vec![
        message(b'Q', &text("SELECT a, b FROM t WHERE a = 1")),
        message(b'Q', &text("BEGIN; SAVEPOINT s; INSERT INTO t VALUES (7, 'x'); ROLLBACK")),
        message(b'P', b"s\0SELECT b FROM t WHERE a = $1 AND b <> $2\0\0\x02\0\0\0\x17\0\0\0\0"),
        message(b'B', b"p\0s\0\0\x02\0\x01\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x01y\0\x01\0\x01"),
        message(b'D', b"Ss\0"),
        message(b'D', b"Pp\0"),
        message(b'E', b"p\0\0\0\0\x02"),
        message(b'H', b""),
        message(b'C', b"Pp\0"),
        message(b'C', b"Ss\0"),
        message(b'S', b""),
        message(b'Q', &text("COPY t FROM STDIN")),
        message(b'd', b"8\tx\n9\t\\\\N\n"),
        message(b'f', b"enough\0"),
        message(b'Q', &text("COPY t TO STDOUT (FORMAT binary)")),
        message(b'F', b"\0\0\0\x01\0\0\0\0\0\0"),
        message(b'X', b""),
    ]
}

/// Damages a message in one of several ways; a length that fits its body is kept in most cases,
/// so that the damage reaches the decoders.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len() as u64) as usize;
    match random.below(7) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.below(256) as u8,
        2 => bytes.truncate(at.max(1)),
        3 => bytes.insert(at, random.below(256) as u8),
        4 => drop(bytes.remove(at)),
        5 => {
            let value = [0, -1, i32::MAX, i32::MIN, 0x7fff][random.below(5) as usize];
            let end = (at + 4).min(bytes.len());
            bytes[at..end].copy_from_slice(&value.to_be_bytes()[..end - at]);
        }
        _ => {
            let tail = bytes[at..].to_vec();
            bytes.extend(tail);
        }
    }
    if bytes.len() >= 5 && random.below(10) < 9 {
        let length = (bytes.len() as i32 - 1).to_be_bytes();
        bytes[1..5].copy_from_slice(&length);
    }
}

/// Sends everything, says that nothing follows, and reads to the end.
fn pour(mut talk: Talk, bytes: &[u8]) {
    // The server may close while we still write: that is an answer, too.
    let _sent = talk.socket.write_all(bytes);
    let _ended = talk.socket.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    if let Err(e) = talk.socket.read_to_end(&mut answer) {
        let kind = e.kind();
        assert_ne!(kind, std::io::ErrorKind::WouldBlock, "no answer and no end: {bytes:?}");
    }
}

#[test]
fn mutated_messages_never_panic() {
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&panics);
    let inherited = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        counted.fetch_add(1, Ordering::Relaxed);
        inherited(info);
    }));
    let server = Running::with(|config| config.connections_max = 50);
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x')");
    talk.answer();
    let seed = number("BRAID_SEED", 1);
    let mut random = Random::seeded(seed);
    let mut left = number("BRAID_MUTATIONS", 5000);
    while left > 0 {
        let mut bytes = Vec::new();
        if random.below(10) == 0 {
            let mut first = b"\0\0\0\x23\0\x03\0\0user\0root\0TimeZone\0UTC\0\0".to_vec();
            mutate(&mut random, &mut first);
            left -= 1;
            pour(server.connect_raw(), &first);
            continue;
        }
        for mut message in good() {
            if left > 0 && random.below(4) == 0 {
                mutate(&mut random, &mut message);
                left -= 1;
            }
            bytes.extend(message);
        }
        pour(server.connect(), &bytes);
        assert_eq!(panics.load(Ordering::Relaxed), 0, "seed {seed}, {left} left");
    }
    // Connections that were cut off are gone by now or very soon.
    std::thread::sleep(Duration::from_millis(100));
    talk.query("SELECT b FROM t WHERE a = 1");
    assert!(talk.answer().contains("Row(x)"), "the server goes on");
}
