//! `\copy`: COPY with a file of this machine in place of the server's.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::process::{Child, Command, Stdio};

use crate::CliResult;

/// Where the rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    File(String),
    /// The output of a command, or its input.
    Program(String),
    /// This shell's own.
    Standard,
}

/// `\copy` in parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Copying {
    /// For the server.
    pub(super) statement: String,
    pub(super) place: Place,
    /// TO.
    pub(super) out: bool,
}

/// Understands what stands behind `\copy`.
pub(super) fn parse(text: &str) -> Result<Copying, String> {
    let text = text.trim().trim_end_matches(';').trim_end();
    let (at, out) = direction(text).ok_or("\\copy needs FROM or TO, and a file")?;
    let word = if out { 2 } else { 4 };
    let behind = text[at + word..].trim_start();
    let (place, rest) = place(behind)?;
    let middle = if out { "TO STDOUT" } else { "FROM STDIN" };
    let statement = format!("COPY {}{middle} {rest}", &text[..at]).trim_end().to_string();
    Ok(Copying { statement, place, out })
}

/// The word FROM or TO outside of brackets and quotes.
fn direction(text: &str) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"') => {
                at += 1 + bytes[at + 1..].iter().position(|b| *b == quote)?;
            }
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ if depth == 0 && at > 0 && bytes[at - 1].is_ascii_whitespace() => {
                let word: Vec<u8> =
                    bytes[at..].iter().take_while(|b| b.is_ascii_alphabetic()).copied().collect();
                match word.to_ascii_lowercase().as_slice() {
                    b"from" => return Some((at, false)),
                    b"to" => return Some((at, true)),
                    _ => {}
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn place(text: &str) -> Result<(Place, &str), String> {
    let (word, rest) = match text.strip_prefix('\'') {
        Some(inner) => {
            let end = inner.find('\'').ok_or("the name of the file has no end")?;
            (&inner[..end], &inner[end + 1..])
        }
        None => text.split_at(text.find(char::is_whitespace).unwrap_or(text.len())),
    };
    let rest = rest.trim_start();
    let quoted = text.starts_with('\'');
    Ok(match word.to_ascii_lowercase().as_str() {
        "" if !quoted => return Err("\\copy needs a file".into()),
        "stdin" | "stdout" | "pstdin" | "pstdout" if !quoted => (Place::Standard, rest),
        "program" if !quoted => {
            let (Place::File(command), rest) = place(rest)? else {
                return Err("PROGRAM needs a command in quotes".into());
            };
            (Place::Program(command), rest)
        }
        _ => (Place::File(word.to_string()), rest),
    })
}

/// Where rows are read from.
#[expect(clippy::disallowed_methods, reason = "a file of a person, not of a store")]
pub(super) fn reader(place: &Place) -> CliResult<(Box<dyn BufRead>, Option<Child>)> {
    Ok(match place {
        Place::File(name) => {
            let file = File::open(name).map_err(|e| format!("{name}: {e}"))?;
            (Box::new(BufReader::with_capacity(64 << 10, file)), None)
        }
        Place::Program(command) => {
            let mut child = shell(command).stdout(Stdio::piped()).spawn()?;
            let out: Box<dyn Read> = match child.stdout.take() {
                Some(out) => Box::new(out),
                None => Box::new(std::io::empty()),
            };
            (Box::new(BufReader::new(out)), Some(child))
        }
        Place::Standard => (Box::new(BufReader::new(std::io::stdin())), None),
    })
}

/// Where rows are written to.
#[expect(clippy::disallowed_methods, reason = "a file of a person, not of a store")]
pub(super) fn writer(place: &Place) -> CliResult<(Box<dyn Write>, Option<Child>)> {
    Ok(match place {
        Place::File(name) => {
            let file = File::create(name).map_err(|e| format!("{name}: {e}"))?;
            (Box::new(BufWriter::new(file)), None)
        }
        Place::Program(command) => {
            let mut child = shell(command).stdin(Stdio::piped()).spawn()?;
            let input: Box<dyn Write> = match child.stdin.take() {
                Some(input) => Box::new(input),
                None => Box::new(std::io::sink()),
            };
            (input, Some(child))
        }
        Place::Standard => (Box::new(std::io::stdout()), None),
    })
}

/// A command of the system's shell.
pub(super) fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell
}

/// `|command`, or a file.
pub(super) fn target(text: &str) -> Place {
    match text.trim().strip_prefix('|') {
        Some(command) => Place::Program(command.trim().to_string()),
        None => Place::File(text.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_taken_out_of_the_statement() {
        let parsed = |text: &str| parse(text).map(|c| (c.statement, c.place, c.out));
        let file = |name: &str| Place::File(name.into());
        for (text, statement, place, out) in [
            ("t FROM x.csv CSV;", "COPY t FROM STDIN CSV", file("x.csv"), false),
            (
                "t (a, b) from 'a file' with (format csv)",
                "COPY t (a, b) FROM STDIN with (format csv)",
                file("a file"),
                false,
            ),
            (
                "(select 'to x' from t) TO out",
                "COPY (select 'to x' from t) TO STDOUT",
                file("out"),
                true,
            ),
            ("\"from\" to stdout", "COPY \"from\" TO STDOUT", Place::Standard, true),
            (
                "t from program 'zcat x.gz' csv",
                "COPY t FROM STDIN csv",
                Place::Program("zcat x.gz".into()),
                false,
            ),
        ] {
            assert_eq!(parsed(text), Ok((statement.into(), place, out)), "{text}");
        }
        for text in ["t", "t from", "t from 'x", "(select 1", "t from program x"] {
            // A program without quotes is taken as a file's name.
            assert!(parse(text).is_err() || text.ends_with("program x"), "{text}");
        }
    }
}
