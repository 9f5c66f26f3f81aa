//! An archive as the text of a plain dump: what pg_restore writes, without its comments.
//!
//! ```text
//!   entries in their order   ─► definitions, owners, COPY with its data
//!   then                     ─► rights
//!   then                     ─► what needs all rows: materialized views, event triggers
//! ```

use std::collections::VecDeque;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::place::Archive;
use super::toc::Entry;
use crate::batch::Position;

/// An entry that was begun.
pub(crate) struct Begun {
    /// Its place in their order.
    pub(crate) order: usize,
    /// What of the text comes before it.
    pub(crate) at: Position,
    /// What it is.
    pub(crate) label: String,
}

/// The entries that were begun, in order.
pub(crate) type Places = Arc<Mutex<Vec<Begun>>>;

/// See the [module documentation](self).
pub(crate) struct Script {
    archive: Archive,
    left: VecDeque<Entry>,
    current: Box<dyn Read + Send>,
    /// The last byte that was given ends a line.
    at_line_start: bool,
    /// What was given.
    given: Position,
    /// The place of the next entry in their order.
    next: usize,
    places: Places,
}

/// When an entry is written.
fn pass(entry: &Entry) -> u8 {
    match entry.kind.as_str() {
        "ACL" | "ACL LANGUAGE" | "DEFAULT ACL" => 1,
        "MATERIALIZED VIEW DATA" | "EVENT TRIGGER" => 2,
        _ => 0,
    }
}

/// Objects whose owner a statement of its own names, with how that names them.
fn owner_target(kind: &str) -> Option<&str> {
    Some(match kind {
        "TABLE" | "VIEW" | "MATERIALIZED VIEW" | "SEQUENCE" | "TYPE" | "DOMAIN" | "SCHEMA"
        | "FOREIGN TABLE" => kind,
        _ => return None,
    })
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Script {
    /// The text from an entry on: its place in their order, and what of the text comes before it.
    pub(crate) fn from_entry(
        archive: Archive,
        (next, given): (usize, Position),
    ) -> (Script, Places, Arc<AtomicU64>) {
        let mut entries: Vec<Entry> = archive.toc.entries.clone();
        entries.sort_by_key(pass);
        entries.drain(..next.min(entries.len()));
        let (places, read) = (Places::default(), archive.read.clone());
        let script = Script {
            archive,
            left: entries.into(),
            current: Box::new(io::empty()),
            at_line_start: true,
            given,
            next,
            places: places.clone(),
        };
        (script, places, read)
    }

    /// The text of an entry.
    fn open(&self, entry: &Entry) -> io::Result<Box<dyn Read + Send>> {
        // Large objects are a table of the system catalogs.
        if entry.kind.starts_with("BLOB") {
            return Ok(Box::new(io::empty()));
        }
        let mut text = entry.definition.clone();
        if let Some(target) = owner_target(&entry.kind)
            && !entry.owner.is_empty()
            && !entry.definition.is_empty()
        {
            let schema = if entry.schema.is_empty() || entry.kind == "SCHEMA" {
                String::new()
            } else {
                format!("{}.", quoted(&entry.schema))
            };
            let (name, owner) = (quoted(&entry.tag), quoted(&entry.owner));
            text.push_str(&format!("\nALTER {target} {schema}{name} OWNER TO {owner};\n"));
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&entry.copy);
        Ok(match self.archive.data(entry)? {
            Some(data) => Box::new(Cursor::new(text.into_bytes()).chain(data)),
            None => Box::new(Cursor::new(text.into_bytes())),
        })
    }
}

impl Read for Script {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let n = self.current.read(buffer)?;
            if n > 0 {
                let breaks = memchr::memchr_iter(b'\n', &buffer[..n]).count();
                self.given.number += breaks as u64;
                self.given.offset += n as u64;
                self.at_line_start = buffer[n - 1] == b'\n';
                return Ok(n);
            }
            if !self.at_line_start {
                (self.at_line_start, buffer[0]) = (true, b'\n');
                self.given.number += 1;
                self.given.offset += 1;
                return Ok(1);
            }
            let Some(entry) = self.left.pop_front() else { return Ok(0) };
            let schema = if entry.schema.is_empty() { "" } else { &format!("{}.", entry.schema) };
            let label = format!("entry {}: {} {schema}{}", entry.id, entry.kind, entry.tag);
            self.places.lock().push(Begun { order: self.next, at: self.given, label });
            self.next += 1;
            self.current = self.open(&entry)?;
        }
    }
}
