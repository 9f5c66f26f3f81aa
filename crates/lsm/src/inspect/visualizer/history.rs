//! The edits of a store as the page wants them: numbers, with keys sorted and counted once.
//!
//! A key is as far right as its rank among all bounds that ever were: the key line has no gaps
//! where nothing lies. Keys are front-coded and cut after [`SHOWN`] bytes, so that 10,000 edits
//! take a few megabytes.

use std::collections::BTreeMap;
use std::fmt::Write;

use bytes::Bytes;

use crate::versions::{Edit, SstFacts};

/// So many bytes of a key are shown.
const SHOWN: usize = 48;

/// One edit.
struct Frame {
    manifest: u64,
    edit: Edit,
}

/// All edits, oldest first.
#[derive(Default)]
pub(crate) struct History {
    frames: Vec<Frame>,
}

impl History {
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn add(&mut self, manifest: u64, edit: Edit) {
        // Every open writes a snapshot; if nothing else happened since the last one, it says
        // nothing new.
        if edit.snapshot && self.frames.last().is_some_and(|last| last.edit.snapshot) {
            self.frames.pop();
        }
        self.frames.push(Frame { manifest, edit });
    }

    /// `{"title", "t0", "ts0", "keys": [[shared, rest], ..], "edits": [..]}`; see `edit_json`.
    pub(crate) fn to_json(&self, title: &str) -> String {
        let facts = || self.frames.iter().flat_map(|frame| &frame.edit.added);
        let mut ranks: BTreeMap<Bytes, usize> = BTreeMap::new();
        for facts in facts() {
            ranks.insert(facts.bounds.start.clone(), 0);
            ranks.insert(facts.bounds.end.clone(), 0);
        }
        ranks.values_mut().enumerate().for_each(|(rank, slot)| *slot = rank);
        let t0 = self.frames.iter().filter_map(|frame| frame.edit.time).min().unwrap_or(0);
        let ts0 = facts().map(|facts| facts.min_ts).min().unwrap_or(0);
        let mut out = String::new();
        let _ =
            write!(out, "{{\"title\":{},\"t0\":{t0},\"ts0\":\"{ts0}\",\"keys\":[", quoted(title));
        let mut last = String::new();
        for (i, key) in ranks.keys().enumerate() {
            let text = shown(key);
            let shared = last.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(out, "{comma}[{shared},{}]", quoted(&text[shared..]));
            last = text;
        }
        out.push_str("],\"edits\":[");
        for (i, frame) in self.frames.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            edit_json(&mut out, frame, &ranks, t0, ts0);
        }
        out.push_str("]}");
        out
    }
}

/// `[manifest, is snapshot, microseconds since t0, reason, gc threshold, dropped, added]`, where an
/// added sst is `[number, level, bytes, start, end, rows, deletes, range tombstones, smallest and
/// largest timestamp since ts0, lowest and highest arrival, file it is a part of or 0, timestamp
/// override]`.
fn edit_json(out: &mut String, frame: &Frame, ranks: &BTreeMap<Bytes, usize>, t0: u64, ts0: u64) {
    let edit = &frame.edit;
    let time = edit.time.unwrap_or(t0).saturating_sub(t0);
    let reason = edit.reason.as_deref().unwrap_or(if edit.snapshot { "open" } else { "" });
    let snapshot = u8::from(edit.snapshot);
    let gc = edit.gc_threshold.unwrap_or(0);
    let _ = write!(
        out,
        "[{},{snapshot},{time},{},\"{gc}\",{:?},[",
        frame.manifest,
        quoted(reason),
        edit.dropped
    );
    for (i, facts) in edit.added.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, "{comma}{:?}", sst_numbers(facts, ranks, ts0));
    }
    out.push_str("]]");
}

fn sst_numbers(facts: &SstFacts, ranks: &BTreeMap<Bytes, usize>, ts0: u64) -> [u64; 14] {
    let rank = |key: &Bytes| ranks.get(key).map_or(0, |rank| *rank as u64);
    let part_of = if facts.is_virtual() { facts.backing.file_no } else { 0 };
    [
        facts.file_no,
        facts.level as u64,
        facts.size,
        rank(&facts.bounds.start),
        rank(&facts.bounds.end),
        facts.rows,
        facts.deletes,
        facts.tombstones,
        facts.min_ts.saturating_sub(ts0),
        facts.max_ts.saturating_sub(ts0),
        facts.arrival_low,
        facts.arrival_high,
        part_of,
        facts.backing.ts_override,
    ]
}

fn shown(key: &[u8]) -> String {
    let cut = &key[..key.len().min(SHOWN)];
    let more = if key.len() > SHOWN { ".." } else { "" };
    format!("{}{more}", cut.escape_ascii())
}

/// A JSON string that may stand inside of a script element.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '<' => out.push_str("\\u003c"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeySpan;
    use crate::versions::Backing;

    fn sst(file_no: u64, level: usize, start: &'static str, end: &'static str) -> SstFacts {
        let backing = Backing::own(file_no, 1000, 0);
        SstFacts {
            file_no,
            level,
            size: 1000,
            bounds: KeySpan::new(start, end),
            arrival_low: file_no,
            arrival_high: file_no,
            min_ts: 100 + file_no,
            max_ts: 200,
            max_point_ts: 200,
            rows: 10,
            deletes: 1,
            tombstones: 2,
            backing,
        }
    }

    fn edit(time: u64, reason: &'static str, added: Vec<SstFacts>, dropped: Vec<u64>) -> Edit {
        let reason = Some(reason.into());
        Edit { added, dropped, time: Some(time), reason, ..Edit::default() }
    }

    #[test]
    fn the_page_gets_exactly_these_numbers() {
        let mut history = History::default();
        let open = || Edit { snapshot: true, gc_threshold: Some(7), ..Edit::default() };
        history.add(1, open());
        history.add(2, open());
        history.add(2, edit(1_000, "flush", vec![sst(1, 0, "apple", "apricot")], vec![]));
        let part = Backing { ts_override: 5, ..Backing::own(1, 1000, 0) };
        let mut virtual_sst = sst(3, 6, "apple", "ap\"</script>");
        virtual_sst.backing = part;
        history.add(2, edit(3_500, "level size", vec![virtual_sst], vec![1]));
        let expected = concat!(
            r#"{"title":"a \u003cstore","t0":1000,"ts0":"101","#,
            r#""keys":[[0,"ap\\\"\u003c/script>"],[2,"ple"],[2,"ricot"]],"edits":["#,
            r#"[2,1,0,"open","7",[],[]],"#,
            r#"[2,0,0,"flush","0",[],[[1, 0, 1000, 1, 2, 10, 1, 2, 0, 99, 1, 1, 0, 0]]],"#,
            r#"[2,0,2500,"level size","0",[1],"#,
            r#"[[3, 6, 1000, 1, 0, 10, 1, 2, 2, 99, 3, 3, 1, 5]]]]}"#,
        );
        assert_eq!(history.to_json("a <store"), expected);
    }
}
