//! Clients that speak other encodings than UTF-8.

use crate::support::{Running, Talk};

const LATIN: &[u8] = b"\xe9t\xe9";

/// Messages of an answer, up to ReadyForQuery.
fn answer(talk: &mut Talk) -> Vec<(u8, Vec<u8>)> {
    let mut out = Vec::new();
    loop {
        let (kind, body) = talk.message().expect("an answer");
        if kind == b'Z' {
            return out;
        }
        out.push((kind, body));
    }
}

fn ask(talk: &mut Talk, sql: &[u8]) -> Vec<(u8, Vec<u8>)> {
    talk.send(b'Q', &[sql, &[0]].concat());
    answer(talk)
}

fn bodies(all: &[(u8, Vec<u8>)], kind: u8) -> Vec<Vec<u8>> {
    all.iter().filter(|m| m.0 == kind).map(|m| m.1.clone()).collect()
}

/// The only value of the only row.
fn value(all: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let [row] = &bodies(all, b'D')[..] else { panic!("{all:?}") };
    row[6..].to_vec()
}

/// The fields of an error.
fn error(all: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let [error] = &bodies(all, b'E')[..] else { panic!("{all:?}") };
    error.clone()
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn latin(server: &Running) -> Talk {
    let mut talk = server.connect();
    let said = ask(&mut talk, b"set client_encoding to 'latin1'");
    assert_eq!(bodies(&said, b'S'), [b"client_encoding\0LATIN1\0"]);
    talk
}

#[test]
fn queries_rows_and_errors_are_in_the_clients_encoding() {
    let server = Running::new();
    let mut talk = latin(&server);
    ask(&mut talk, b"create table \"\xe9\" (id int primary key, \"\xfc\" text unique)");
    ask(&mut talk, b"insert into \"\xe9\" values (1, '\xe9t\xe9')");
    let said = ask(&mut talk, b"select \"\xfc\" from \"\xe9\" where \"\xfc\" like '\xe9%'");
    assert_eq!(value(&said), LATIN);
    assert!(bodies(&said, b'T')[0].starts_with(b"\0\x01\xfc\0"));
    let mut other = server.connect();
    assert_eq!(value(&ask(&mut other, "select \"ü\" from \"é\"".as_bytes())), "été".as_bytes());
    let said = ask(&mut talk, b"insert into \"\xe9\" values (2, '\xe9t\xe9')");
    assert!(has(&error(&said), b"C23505\0") && has(&error(&said), b"(\xfc)=(\xe9t\xe9)"));
    let said = ask(&mut talk, b"select '\xe9' from nowhere");
    // The place is counted in characters.
    assert!(has(&error(&said), b"P17\0"), "{said:?}");
    // What it does not have.
    let said = ask(&mut talk, b"select chr(12354)");
    let told = "character with byte sequence 0xe3 0x81 0x82 in encoding \"UTF8\" has no \
                equivalent in encoding \"LATIN1\"";
    assert!(has(&error(&said), b"C22P05\0") && has(&error(&said), told.as_bytes()), "{said:?}");
    let said = ask(&mut talk, b"select chr(12354)::int");
    assert!(has(&error(&said), b"C22P05\0"), "{said:?}");
    let said = ask(&mut talk, b"select 1 as a, array[chr(233), 'b']");
    assert!(has(&bodies(&said, b'D')[0], b"{\xe9,b}"));
}

#[test]
fn a_setting_holds_as_long_as_it_is_set() {
    let server = Running::new();
    let mut talk = server.connect();
    let said = ask(&mut talk, b"begin; set local client_encoding to win1251; select chr(1076)");
    assert_eq!(value(&said), b"\xe4");
    let said = ask(&mut talk, b"rollback");
    assert_eq!(bodies(&said, b'S'), [b"client_encoding\0UTF8\0"]);
    assert_eq!(value(&ask(&mut talk, b"select chr(1076)")), "д".as_bytes());
    // Of one message all statements are in the encoding that it came in.
    let said = ask(&mut talk, "set names 'koi8'; select 'д'".as_bytes());
    assert_eq!(value(&said), b"\xc4");
    assert_eq!(value(&ask(&mut talk, b"select '\xc4' = chr(1076)")), b"t");
    ask(&mut talk, b"reset client_encoding");
    let said = ask(&mut talk, b"select '\xe9'");
    assert!(has(&error(&said), b"C22021\0"), "{said:?}");
    // Invalid bytes.
    ask(&mut talk, b"set client_encoding to sjis");
    assert_eq!(value(&ask(&mut talk, b"select '\x83\x5c'")), b"\x83\x5c");
    let said = ask(&mut talk, b"select '\x82'");
    let told = b"invalid byte sequence for encoding \"SJIS\": 0x82 0x27";
    assert!(has(&error(&said), told), "{said:?}");
    assert_eq!(value(&ask(&mut talk, b"select 1")), b"1");
}

#[test]
fn the_startup_message_may_name_it() {
    let server = Running::new();
    for words in [
        &["client_encoding", "ISO-8859-1", ""][..],
        &["options", "-c client_encoding=latin1", ""][..],
    ] {
        let mut talk = server.connect_raw();
        let mut body = 0x0003_0000i32.to_be_bytes().to_vec();
        for word in ["user", "root", "database", "defaultdb"].iter().chain(words) {
            body.extend([word.as_bytes(), &[0]].concat());
        }
        let length = (body.len() as i32 + 4).to_be_bytes();
        talk.send_bytes(&[&length[..], &body].concat());
        let said = answer(&mut talk);
        assert!(bodies(&said, b'S').contains(&b"client_encoding\0LATIN1\0".to_vec()));
        assert_eq!(value(&ask(&mut talk, b"select '\xe9t\xe9'")), LATIN);
        let said = ask(&mut talk, b"set client_encoding to utf8; reset client_encoding");
        assert_eq!(bodies(&said, b'S').last().unwrap(), b"client_encoding\0LATIN1\0");
    }
}

/// Parse, Bind of one parameter, Execute, Sync.
fn extended(talk: &mut Talk, sql: &[u8], value: &[u8], binary: bool) -> Vec<(u8, Vec<u8>)> {
    let format = [0, 1, 0, u8::from(binary)];
    let length = (value.len() as i32).to_be_bytes();
    talk.send(b'P', &[b"\xe9\0", sql, b"\0\0\0"].concat());
    talk.send(b'B', &[b"\0\xe9\0", &format[..], b"\0\x01", &length, value, &format].concat());
    talk.execute(0);
    talk.send(b'C', b"S\xe9\0");
    talk.sync();
    answer(talk)
}

#[test]
fn parameters_and_rows_in_text_and_binary() {
    let server = Running::new();
    let mut talk = latin(&server);
    for binary in [false, true] {
        let said = extended(&mut talk, b"select $1::text || '\xe9'", LATIN, binary);
        assert_eq!(value(&said), b"\xe9t\xe9\xe9");
        let said = extended(&mut talk, b"select $1::varchar(3)", LATIN, binary);
        assert_eq!(value(&said), LATIN);
        let said = extended(&mut talk, b"select $1::bytea", b"\xe9", binary);
        assert_eq!(value(&said), if binary { &b"\xe9"[..] } else { b"\\xc3a9" });
    }
    let said = extended(&mut talk, b"select $1::jsonb", b"\x01{\"\xe9\": 1}", true);
    assert_eq!(value(&said), b"\x01{\"\xe9\": 1}");
    // An array: one dimension, NULLs, the type of texts, three elements from 1.
    let head = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 25, 0, 0, 0, 3, 0, 0, 0, 1];
    let list = [&head[..], b"\0\0\0\x03", LATIN, b"\xff\xff\xff\xff", b"\0\0\0\x01\xfc"].concat();
    let said = extended(&mut talk, b"select $1::text[]", &list, true);
    assert_eq!(value(&said), list);
    let said = extended(&mut talk, b"select row($1::text, 233)", b"\xfc", true);
    let fields = [0, 0, 0, 2, 0, 0, 0, 25, 0, 0, 0, 1, 0xfc, 0, 0, 0, 23, 0, 0, 0, 4, 0, 0, 0, 233];
    assert_eq!(value(&said), fields);
}

#[test]
fn copy_both_ways() {
    let server = Running::new();
    let mut talk = latin(&server);
    ask(&mut talk, b"create table t (id int primary key, b text)");
    talk.query("copy t from stdin");
    assert_eq!(talk.message().expect("CopyIn").0, b'G');
    talk.send(b'd', b"1\t\xe9t");
    talk.send(b'd', b"\xe9\n2\t\xfc\n");
    talk.send(b'c', b"");
    assert_eq!(bodies(&answer(&mut talk), b'C'), [b"COPY 2\0"]);
    let said = ask(&mut talk, b"copy t to stdout");
    assert_eq!(bodies(&said, b'd'), [&b"1\t\xe9t\xe9\n"[..], b"2\t\xfc\n"]);
    let said = ask(&mut talk, b"copy t to stdout (encoding 'utf8', format csv)");
    assert_eq!(bodies(&said, b'd'), ["1,été\n".as_bytes(), "2,ü\n".as_bytes()]);
    let said = ask(&mut talk, b"copy (select b from t where id = 2) to stdout (format binary)");
    assert!(bodies(&said, b'd')[0].ends_with(b"\0\x01\0\0\0\x01\xfc"));
    let binary = [&bodies(&said, b'd').concat()[..]].concat();
    ask(&mut talk, b"create table s (b text)");
    talk.query("copy s from stdin (format binary)");
    assert_eq!(talk.message().expect("CopyIn").0, b'G');
    talk.send(b'd', &binary);
    talk.send(b'c', b"");
    assert_eq!(bodies(&answer(&mut talk), b'C'), [b"COPY 1\0"]);
    assert_eq!(value(&ask(&mut talk, b"select b = '\xfc' from s")), b"t");
    // A character may be cut anywhere, and its second byte look like another one.
    ask(&mut talk, b"truncate t");
    talk.query("copy t from stdin (encoding 'sjis')");
    assert_eq!(talk.message().expect("CopyIn").0, b'G');
    for piece in [&b"7\t\x83"[..], b"\x5c\x83", b"\x5cn\n8\t\x82\n"] {
        talk.send(b'd', piece);
    }
    talk.send(b'c', b"");
    let said = answer(&mut talk);
    let told = b"invalid byte sequence for encoding \"SJIS\": 0x82 0x0a";
    assert!(has(&error(&said), told) && has(&error(&said), b"line 2"), "{said:?}");
    talk.query("copy t from stdin (encoding 'sjis')");
    assert_eq!(talk.message().expect("CopyIn").0, b'G');
    for piece in [&b"7\t\x83"[..], b"\x5c\x83", b"\x5cn\n"] {
        talk.send(b'd', piece);
    }
    talk.send(b'c', b"");
    assert_eq!(bodies(&answer(&mut talk), b'C'), [b"COPY 1\0"]);
    assert_eq!(value(&ask(&mut talk, b"select b = U&'\\30bd\\30bdn' from t")), b"t");
}

#[test]
fn notices_and_notifications() {
    let server = Running::new();
    let (mut talk, mut other) = (latin(&server), server.connect());
    ask(&mut talk, b"listen \"\xe9\"");
    ask(&mut other, "notify \"é\", 'ü'".as_bytes());
    let (kind, body) = talk.message().expect("a notification");
    assert_eq!((kind, &body[4..]), (b'A', &b"\xe9\0\xfc\0"[..]));
    let said = ask(&mut talk, b"do $$ begin raise notice '\xe9'; end $$");
    assert!(has(&bodies(&said, b'N')[0], b"M\xe9\0"), "{said:?}");
    // A notice is no reason to fail.
    let said = ask(&mut talk, b"do $$ begin raise notice '%', chr(12354); end $$");
    assert!(has(&bodies(&said, b'N')[0], b"M?\0") && bodies(&said, b'E').is_empty(), "{said:?}");
    let said = ask(&mut talk, b"set application_name to '\xe9'");
    // Two bytes here, and none that can be printed everywhere.
    assert_eq!(bodies(&said, b'S'), [b"application_name\0??\0"]);
}
