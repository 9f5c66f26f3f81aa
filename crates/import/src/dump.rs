//! Dumps of PostgreSQL: statements, the data of COPY, and what is meant for psql. Archives come as
//! the text of a plain dump.
//!
//! ```text
//!   CREATE TABLE t (..);              statement, line 30
//!   COPY t (a, b) FROM stdin;         statement, line 40
//!   1 <tab> x                         data, line 41     asked for by whoever runs the COPY
//!   \.
//!   \connect other                    command, line 50
//! ```
//! A statement ends at a semicolon outside of quotes, dollar quotes, comments, brackets, and the
//! `BEGIN ATOMIC .. END` of a function.

use braid_env::memory::Account;
use braid_types::{SqlError, SqlResult, SqlState};
use std::sync::Arc;

use braid_env::fs::FileSystem;

use crate::archive::place::Archive;
use crate::archive::script::{Places, Script};
use crate::batch::Position;
use crate::folder::{Folder, SourceFile};
use crate::input::{CHUNK, Input, failed};
use crate::lines::{BUFFER, Lines};
use crate::options::Compression;
use crate::room::Room;
use crate::target::not_utf8;

/// A piece of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A statement without its semicolon, and the line on which it begins.
    Statement(u64, String),
    /// A command for psql.
    Command(u64, String),
}

/// A place between two pieces, or two lines of data, from which reading can go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// What of the text comes before it.
    pub text: Position,
    /// Of an archive: the entry that it lies in, by its place in their order, and what of the text
    /// comes before that.
    pub entry: (usize, Position),
}

/// See the [module documentation](self).
pub struct Dump {
    lines: Lines,
    file: SourceFile,
    /// Of an archive in a folder: the files of data.
    others: Vec<SourceFile>,
    /// What is left of the last line, and its number.
    rest: Option<(u64, String)>,
    statement_max: usize,
    /// Of an archive: the lines at which its entries begin.
    places: Option<Places>,
    /// The last line that was read.
    last: u64,
}

/// Where the reading of a statement is.
#[derive(Debug, Clone, PartialEq, Default)]
enum State {
    #[default]
    Plain,
    /// In quotes; `true`: with backslashes.
    Quoted(char, bool),
    Dollar(String),
    /// In so many comments, one in the other.
    Comment(u32),
}

/// A statement that is being read.
#[derive(Default)]
struct Open {
    text: String,
    line: u64,
    state: State,
    brackets: u32,
    /// The first words, in lower case.
    head: Vec<String>,
    /// In so many BEGIN or CASE of a function's body.
    blocks: u32,
}

/// What archives of the formats custom and tar begin with.
const ARCHIVES: [&[u8]; 2] = [b"PGDMP", b"toc.dat\0"];

impl Dump {
    /// Opens a dump: a plain one, an archive, or the table of contents of a directory; at a place
    /// that [`Dump::place`] has given for the same files.
    pub fn open(
        fs: &Arc<dyn FileSystem>,
        folder: &Folder,
        file: &SourceFile,
        compression: Compression,
        row_bytes_max: usize,
        account: &Arc<Account>,
        from: &Place,
    ) -> SqlResult<Dump> {
        let opened = fs.open(&file.path).map_err(|e| failed(file, &e))?;
        let archive = Archive::open(fs, folder, (&file.name, opened));
        let mut others = Vec::new();
        let (input, places) = match archive.map_err(|e| failed(file, &e))? {
            None => {
                let room = Room::new(account, "decompression", None);
                (Input::open(&**fs, file, (compression, CHUNK, room), from.text.offset)?, None)
            }
            Some(archive) => {
                others = archive.others();
                let (script, places, read) = Script::from_entry(archive, from.entry);
                let inside = from.text.offset.saturating_sub(from.entry.1.offset);
                let mut input = Input::of(Box::new(script), read);
                input.skip(inside).map_err(|e| failed(file, &e))?;
                (input, Some(places))
            }
        };
        let room = Room::new(account, "the longest line of a dump", None);
        let lines = Lines::new(input, file.clone(), from.text, (row_bytes_max, BUFFER), room);
        let (file, rest) = (file.clone(), None);
        let last = from.text.number;
        Ok(Dump { lines, file, others, rest, statement_max: row_bytes_max, places, last })
    }

    /// Where it is; `None` in the middle of a line.
    pub fn place(&self) -> Option<Place> {
        if self.rest.is_some() {
            return None;
        }
        let text = self.lines.taken();
        let entry = self.places.as_ref().map_or((0, Position::default()), |places| {
            let places = places.lock();
            let at = places.partition_point(|begun| begun.at.offset <= text.offset);
            at.checked_sub(1).map_or((0, Position::default()), |n| (places[n].order, places[n].at))
        });
        Some(Place { text, entry })
    }

    /// All files that it is read from.
    pub fn files(&self) -> Vec<SourceFile> {
        std::iter::once(&self.file).chain(&self.others).cloned().collect()
    }

    /// Bytes of all its files.
    pub fn size(&self) -> u64 {
        self.file.size + self.others.iter().map(|file| file.size).sum::<u64>()
    }

    /// What an archive has at a line: its entry, and the line there.
    pub fn entry(&self, line: u64) -> Option<String> {
        let places = self.places.as_ref()?.lock();
        let at = places.partition_point(|begun| begun.at.number < line).checked_sub(1)?;
        let begun = &places[at];
        Some(format!("{}, its line {}", begun.label, line - begun.at.number))
    }

    /// Bytes read of the file so far.
    pub fn position(&self) -> u64 {
        self.lines.position()
    }

    /// The next line of the data of a COPY; `None` at its end.
    ///
    /// # Errors
    /// 22P04 if the file ends first.
    pub fn data(&mut self) -> SqlResult<Option<(u64, &[u8])>> {
        let Some(record) = self.lines.next(None)? else {
            return Err(self.at(self.last, "the dump ends in the data of a COPY"));
        };
        let line = record.line;
        self.last = line;
        let bytes = self.lines.bytes(&record);
        Ok((bytes != b"\\.").then_some((line, bytes)))
    }

    /// Only plain dumps are decompressed.
    fn is_packed_archive(&self) -> SqlError {
        SqlError::unsupported("an archive of pg_dump that is compressed as a whole")
            .with_detail(format!("file \"{}\", line 1", self.file.name))
            .with_hint("Decompress it first: what is in an archive may be compressed.")
    }

    /// The next statement or command; `None` at the end.
    ///
    /// # Errors
    /// 22P04 for a statement that is cut off, 22021 for one that is not UTF-8, 0A000 for an archive
    /// within a compressed file, those of reading.
    pub fn next_piece(&mut self) -> SqlResult<Option<Piece>> {
        let mut open = Open::default();
        loop {
            let (line, text) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.lines.next(None)? {
                    Some(record) => {
                        let bytes = self.lines.bytes(&record).to_vec();
                        let line = record.line;
                        self.last = line;
                        if line == 1 && ARCHIVES.iter().any(|begin| bytes.starts_with(begin)) {
                            return Err(self.is_packed_archive());
                        }
                        let text = String::from_utf8(bytes).map_err(|_| {
                            let place = format!("file \"{}\", line {line}", self.file.name);
                            not_utf8().with_detail(place)
                        })?;
                        (line, text)
                    }
                    None if open.is_blank() => return Ok(None),
                    None => return Err(self.at(open.line, "the dump ends in a statement")),
                },
            };
            if open.is_blank() && text.starts_with('\\') {
                return Ok(Some(Piece::Command(line, text)));
            }
            if let Some(end) = open.take(line, &text) {
                let rest = &text[end..];
                if !rest.trim().is_empty() {
                    self.rest = Some((line, rest.to_string()));
                }
                let statement = std::mem::take(&mut open.text).trim().to_string();
                if !statement.is_empty() {
                    return Ok(Some(Piece::Statement(open.line, statement)));
                }
                open = Open::default();
            }
            if open.text.len() > self.statement_max {
                let e = self.at(open.line, "a statement is too long");
                return Err(e.with_hint("WITH max_row_size = '..' allows longer ones."));
            }
        }
    }

    fn at(&self, line: u64, message: &str) -> SqlError {
        let place = match line {
            0 => format!("file \"{}\"", self.file.name),
            line => format!("file \"{}\", line {line}", self.file.name),
        };
        SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message).with_detail(place)
    }
}

impl Open {
    /// Whether nothing of a statement was read yet.
    fn is_blank(&self) -> bool {
        self.text.trim().is_empty() && self.state == State::Plain
    }

    /// Takes a line; where in it the statement ends, behind its semicolon.
    fn take(&mut self, line: u64, text: &str) -> Option<usize> {
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let c = rest.chars().next()?;
            if self.text.trim().is_empty() && !c.is_whitespace() {
                self.line = line;
            }
            match self.state.clone() {
                State::Plain => {
                    if rest.starts_with("--") {
                        break;
                    }
                    if c == ';' && self.brackets == 0 && self.blocks == 0 {
                        return Some(at + 1);
                    }
                    at += self.plain(c, rest);
                    continue;
                }
                State::Comment(depth) => {
                    let (taken, depth) = match rest {
                        r if r.starts_with("/*") => (2, depth + 1),
                        r if r.starts_with("*/") => (2, depth - 1),
                        _ => (c.len_utf8(), depth),
                    };
                    self.state = if depth == 0 { State::Plain } else { State::Comment(depth) };
                    at += taken;
                    continue;
                }
                State::Dollar(tag) if rest.starts_with(&tag) => {
                    self.text.push_str(&tag);
                    self.state = State::Plain;
                    at += tag.len();
                    continue;
                }
                State::Quoted(_, true) if c == '\\' => {
                    // What is escaped, a quote too, is no end.
                    let taken: String = rest.chars().take(2).collect();
                    self.text.push_str(&taken);
                    at += taken.len();
                    continue;
                }
                // A doubled quote ends and begins: the same as staying inside.
                State::Quoted(quote, _) if c == quote => self.state = State::Plain,
                State::Quoted(..) | State::Dollar(_) => {}
            }
            self.text.push(c);
            at += c.len_utf8();
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        None
    }

    /// Takes what comes outside of everything; its length.
    fn plain(&mut self, c: char, rest: &str) -> usize {
        match c {
            // What comes in front of it is no part of a statement, however much that is.
            c if c.is_whitespace() && self.text.is_empty() => return c.len_utf8(),
            '\'' => {
                let mut before = self.text.chars().rev();
                let e = before.next().is_some_and(|b| matches!(b, 'e' | 'E'));
                let alone = before.next().is_none_or(|b| !b.is_alphanumeric() && b != '_');
                self.state = State::Quoted('\'', e && alone);
            }
            '"' => self.state = State::Quoted('"', false),
            '/' if rest.starts_with("/*") => {
                self.state = State::Comment(1);
                return 2;
            }
            '$' => {
                if let Some(tag) = dollar_tag(rest) {
                    self.text.push_str(tag);
                    self.state = State::Dollar(tag.to_string());
                    return tag.len();
                }
            }
            '(' => self.brackets += 1,
            ')' => self.brackets = self.brackets.saturating_sub(1),
            c if c.is_alphabetic() || c == '_' => {
                let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
                let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
                self.word(&rest[..end]);
                self.text.push_str(&rest[..end]);
                return end;
            }
            _ => {}
        }
        self.text.push(c);
        c.len_utf8()
    }

    /// Takes note of a word. Whoever makes a function may have statements inside of the statement.
    fn word(&mut self, word: &str) {
        let lower = word.to_lowercase();
        if self.head.len() < 4 {
            self.head.push(lower);
            return;
        }
        let head: Vec<&str> = self.head.iter().map(String::as_str).collect();
        let makes = |what: &str| ["function", "procedure"].contains(&what);
        let routine = match head[..] {
            ["create", "or", "replace", what] => makes(what),
            ["create", what, ..] => makes(what),
            _ => false,
        };
        match lower.as_str() {
            "begin" if routine && self.brackets == 0 => self.blocks += 1,
            "case" if self.blocks > 0 => self.blocks += 1,
            "end" => self.blocks = self.blocks.saturating_sub(1),
            _ => {}
        }
    }
}

/// `$tag$` in front of a text.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 2;
    let tag = &text[1..end - 1];
    let good = tag.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !tag.starts_with(|c: char| c.is_ascii_digit());
    good.then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Vec<(u64, String)> {
        let mut out = Vec::new();
        let mut open = Open::default();
        for (n, line) in text.lines().enumerate() {
            let mut rest = line;
            while let Some(end) = open.take(n as u64 + 1, rest) {
                out.push((open.line, std::mem::take(&mut open).text.trim().to_string()));
                rest = &rest[end..];
            }
        }
        assert!(open.is_blank(), "{:?}", open.text);
        out
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_everything() {
        let text = "-- a comment; no end\nSELECT 'a;b''c', \"d;e\", E'f\\';g'; SELECT 2;\n\
                    /* x; /* y; */ z; */ CREATE FUNCTION f() AS $_$\nBEGIN; '$$ ;\n$_$;\n\
                    CREATE RULE r AS ON INSERT DO (a; b);\nSELECT $1, 'e';\n\n";
        let found = statements(text);
        let lines: Vec<u64> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 2, 3, 6, 7]);
        assert_eq!(found[0].1, "SELECT 'a;b''c', \"d;e\", E'f\\';g'");
        assert_eq!(found[2].1, "CREATE FUNCTION f() AS $_$\nBEGIN; '$$ ;\n$_$");
        assert_eq!(found[3].1, "CREATE RULE r AS ON INSERT DO (a; b)");
    }

    #[test]
    fn statements_of_a_function_are_part_of_it() {
        let text = "CREATE FUNCTION public.f(a integer) RETURNS integer\n LANGUAGE sql\n\
                    BEGIN ATOMIC\n SELECT CASE WHEN a > 1 THEN 1 ELSE 2 END;\n\
                    \x20SELECT 'end';\nEND;\n\
                    CREATE OR REPLACE PROCEDURE p() BEGIN ATOMIC\nEND;\nBEGIN;\nCOMMIT;\n\
                    SELECT a$b, c$b FROM t;";
        let found = statements(text);
        let lines: Vec<u64> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 7, 9, 10, 11]);
        assert!(found[0].1.ends_with("SELECT 'end';\nEND"), "{}", found[0].1);
    }
}
