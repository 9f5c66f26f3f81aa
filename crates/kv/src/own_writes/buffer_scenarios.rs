//! A transaction's writes told in scripts: `testscripts/buffer/*.txt`.
//!
//! ```text
//!   put k v | delete k | delete [a,f)     what statements do
//!   fill N                                deletes N spans that do not touch, [000,000x) ..
//!   get k                                 what the transaction reads of its own
//!   savepoint S | rollback S
//!   look back S | look now               reads see what was there at S, and all again
//!   open SCAN [a,f)                       what a scan that is opened now lays over the engine's
//!   scan SCAN                             rows, and still does after later writes
//!   chunks                                how the map of spans is cut
//! ```
//! Printed are the answers, and the buffer: spans, points, log.

use std::collections::BTreeMap;

use braid_lsm::KeySpan;
use bytes::Bytes;

use crate::buffer::{Buffer, Lookup, Past, Slot};
use crate::span_map::SpanMap;

/// What a scan lays over the engine's rows.
struct Overlay {
    points: Vec<(Bytes, Slot)>,
    spans: SpanMap,
}

#[derive(Default)]
struct Scene {
    buffer: Buffer,
    /// What is looked at instead.
    past: Option<Past>,
    savepoints: BTreeMap<String, usize>,
    scans: BTreeMap<String, Overlay>,
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn span(text: &str) -> Option<KeySpan> {
    let (start, end) = text.strip_prefix('[')?.strip_suffix(')')?.split_once(',')?;
    Some(KeySpan::new(bytes(start), bytes(end)))
}

fn overlay(scan: &Overlay) -> String {
    let text = |b: &Bytes| b.escape_ascii().to_string();
    let spans = scan.spans.iter().map(|s| format!("[{}, {})", text(&s.start), text(&s.end)));
    let points = scan.points.iter().map(|(key, slot)| {
        let value = slot.as_ref().map_or("deleted".to_string(), text);
        format!("{}={value}", text(key))
    });
    let all: Vec<String> = spans.chain(points).collect();
    all.join(" ")
}

impl Scene {
    fn line(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["look", "back", name] => {
                self.past = Some(self.buffer.past(self.savepoints[*name]));
            }
            ["look", "now"] => {
                self.past = None;
            }
            ["put", key, value] => self.buffer.set(bytes(key), Some(bytes(value))),
            ["delete", what] => match span(what) {
                Some(span) => {
                    let removed = self.buffer.delete_span(&span);
                    let names: Vec<String> =
                        removed.iter().map(|(k, _)| k.escape_ascii().to_string()).collect();
                    if !names.is_empty() {
                        return Some(format!("removed its own {}", names.join(" ")));
                    }
                }
                None => self.buffer.set(bytes(what), None),
            },
            ["fill", n] => {
                for i in 0..n.parse::<usize>().expect("a number") {
                    let start = format!("{i:03}");
                    self.buffer.delete_span(&KeySpan::new(bytes(&start), bytes(&(start + "x"))));
                }
            }
            ["get", key] => {
                let found = match &self.past {
                    Some(past) => self.buffer.get_at(past, key.as_bytes()),
                    None => self.buffer.get(key.as_bytes()),
                };
                return Some(match found {
                    Lookup::Put(value) => format!("{key}: {}", value.escape_ascii()),
                    Lookup::Deleted => format!("{key}: deleted"),
                    Lookup::Unknown => format!("{key}: ask the engine"),
                });
            }
            ["savepoint", name] => {
                self.savepoints.insert(name.to_string(), self.buffer.position());
            }
            ["rollback", name] => {
                let freed = self.buffer.rollback_to(self.savepoints[*name]);
                return Some(format!("{freed} bytes are free again"));
            }
            ["open", scan, of] => {
                let of = span(of).expect("a span");
                let (points, spans) = match &self.past {
                    Some(past) => (self.buffer.copy_at(past, &of), past.spans.clone()),
                    None => (self.buffer.copy_of(&of), self.buffer.spans().clone()),
                };
                self.scans.insert(scan.to_string(), Overlay { points, spans });
            }
            ["scan", scan] => return Some(format!("{scan}: {}", overlay(&self.scans[*scan]))),
            ["chunks"] => {
                return Some(format!(
                    "{} writes, chunks of {:?}",
                    self.buffer.len(),
                    self.buffer.chunks()
                ));
            }
            other => panic!("unknown command: {other:?}"),
        }
        None
    }
}

#[test]
fn scripts_of_the_write_buffer() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testscripts/buffer");
    braid_script::check(folder, Scene::default, |scene, lines| {
        let mut out: Vec<String> = lines.iter().filter_map(|line| scene.line(line)).collect();
        if scene.buffer.position() < 20 {
            out.push(scene.buffer.describe());
        }
        out.join("\n")
    });
}
