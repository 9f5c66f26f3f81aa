//! Scans over ranges.
//!
//! ```text
//!   spans    s1 s2 s3 | s4 s5 | s6 ....... | .......      asked together: r1 for s1 s2 s3,
//!   ranges   r1       | r2    | r3         | r4           r2 for s4 s5, r3 for its part of s6
//!
//!   answer   s1 s2 s3   s4 .    s6 .                      what is left of s4, s5 and s6 is told
//! ```
//!
//! Spans that lie in several ranges, as those of the families that a join looks up, are read at the
//! same time: one range first, since it may be all that the asker wants, then twice as many with
//! each round, as far as they are expected to be within what the answer may have. Each may give all
//! of that: whoever takes rows in the order of spans would throw away what comes behind one of
//! which only a share was read. A span that goes on behind a border is read up to the first border
//! behind which nothing was found: whoever wants more asks for the rest.

use std::sync::Arc;

use braid_kv::{KvResult, ScanMany, ScannedMany, SpanRows, SpanScan, Work};
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{Answer, Ask, NodeId};

use crate::router::{Router, Sent};
use crate::routes::Route;

/// So many ranges are read at the same time.
const MOST_AT_ONCE: usize = 16;

/// What of a request lies in one range.
struct Group {
    route: Route,
    /// Scans by their numbers, clipped to the range.
    scans: Vec<(usize, SpanScan)>,
    /// Whether the last one goes on behind the range.
    leaves: bool,
}

/// What has been found so far.
struct Found {
    parts: Vec<SpanRows>,
    rows: usize,
    bytes: usize,
    work: Work,
}

impl Router {
    pub(crate) fn scan_spans(&self, request: &ScanMany) -> KvResult<ScannedMany> {
        self.reading(request.at, |at| self.scan_at(request, at))
    }

    fn scan_at(&self, request: &ScanMany, at: CommitTs) -> KvResult<ScannedMany> {
        let mut found = Found::nothing(&request.scans);
        let (mut next, mut at_once, mut ranges) = (0, 1, 0);
        while found.rows < request.rows && found.bytes < request.bytes {
            next += found.parts[next..].iter().take_while(|part| !is_open(part)).count();
            let groups = self.groups_of(request, &found.parts, next, at_once)?;
            if groups.len() > 1 || groups.iter().any(|group| group.leaves) {
                self.meet(&found.left(), at);
            }
            ranges += groups.len();
            if groups.is_empty() || self.scan_groups(request, at, groups, &mut found)? {
                break;
            }
            at_once = found.how_many_more(request, ranges).clamp(1, MOST_AT_ONCE.min(2 * at_once));
        }
        let Found { parts, work, .. } = found;
        Ok(ScannedMany { parts, at, undurable: None, work })
    }

    /// Reads in some ranges at the same time; whether an answer ended in front of one of its spans.
    fn scan_groups(
        &self,
        request: &ScanMany,
        at: CommitTs,
        groups: Vec<Group>,
        found: &mut Found,
    ) -> KvResult<bool> {
        let (rows, bytes) = (request.rows - found.rows, request.bytes - found.bytes);
        let bound = self.options.max_clock_offset_micros;
        let ask = |group: &Group| {
            let scans = group.scans.iter().map(|(_, scan)| scan.clone()).collect();
            let asked = ScanMany { scans, rows, bytes, ..request.clone() };
            let range = group.route.range;
            move |node: NodeId| Ask::Scan {
                request: asked.clone(),
                when: self.txns.lock().when(at, (node, range), bound),
            }
        };
        let asks = groups.iter().map(|group| (&group.route, ask(group))).collect();
        let mut is_full = false;
        for (group, sent) in groups.iter().zip(self.send_reads(at, asks)) {
            match sent? {
                Sent::Moved => {}
                Sent::Answer(Answer::Scanned(scanned)) => {
                    is_full |= found.take(&group.scans, scanned, request.reverse);
                }
                Sent::Answer(other) => return Err(self.not_read(at, other)),
            }
        }
        Ok(is_full)
    }

    /// What is left to be scanned from one scan on, by ranges: of so many at most, and up to the
    /// first scan that leaves its range.
    fn groups_of(
        &self,
        request: &ScanMany,
        parts: &[SpanRows],
        from: usize,
        most: usize,
    ) -> KvResult<Vec<Group>> {
        let mut groups: Vec<Group> = Vec::new();
        for (n, scan) in request.scans.iter().enumerate().skip(from) {
            let Some(rest) = parts[n].rest.as_ref().filter(|_| is_open(&parts[n])) else {
                continue;
            };
            let begins_in = |route: &Route| match request.reverse {
                true => route.span.start < rest.end && rest.end <= route.span.end,
                false => route.span.contains(&rest.start),
            };
            if !groups.last().is_some_and(|group| begins_in(&group.route)) {
                if groups.len() == most || groups.last().is_some_and(|group| group.leaves) {
                    break;
                }
                let route = match request.reverse {
                    true => self.route_before(&rest.end)?,
                    false => self.route(&rest.start)?,
                };
                groups.push(Group { route, scans: Vec::new(), leaves: false });
            }
            let group = groups.last_mut().expect("it was made");
            let start = rest.start.clone().max(group.route.span.start.clone());
            let end = rest.end.clone().min(group.route.span.end.clone());
            let span = KeySpan::new(start, end);
            group.leaves = span != *rest;
            group.scans.push((n, SpanScan { span, cursor: None, ..scan.clone() }));
            if group.leaves {
                break;
            }
        }
        Ok(groups)
    }
}

impl Found {
    fn nothing(scans: &[SpanScan]) -> Found {
        let untouched = |scan: &SpanScan| SpanRows {
            rows: Arc::default(),
            rest: Some(scan.span.clone()).filter(|span| !span.is_empty()),
            cursor: None,
        };
        let parts = scans.iter().map(untouched).collect();
        Found { parts, rows: 0, bytes: 0, work: Work::default() }
    }

    /// All that is left, and what lies between.
    fn left(&self) -> KeySpan {
        let left = || self.parts.iter().filter_map(|part| part.rest.as_ref());
        let start = left().map(|span| &span.start).min().cloned();
        let end = left().map(|span| &span.end).max().cloned();
        KeySpan::new(start.unwrap_or_default(), end.unwrap_or_default())
    }

    /// How many ranges more fit into the answer, if each gives as much as these have.
    fn how_many_more(&self, request: &ScanMany, ranges: usize) -> usize {
        let fit = |most: usize, found: usize| most.saturating_sub(found) / (found / ranges).max(1);
        fit(request.rows, self.rows).min(fit(request.bytes, self.bytes))
    }

    /// Takes what a range has said; whether its answer ended in front of a span.
    fn take(&mut self, scans: &[(usize, SpanScan)], scanned: ScannedMany, reverse: bool) -> bool {
        self.work = self.work.plus(scanned.work);
        let mut is_full = false;
        for ((n, scan), part) in scans.iter().zip(scanned.parts) {
            self.rows += part.rows.len();
            self.bytes += part.rows.byte_len();
            is_full |= part.rest.is_some() && part.rows.is_empty();
            let whole = self.parts[*n].rest.take().expect("it was asked for");
            let rest = rest_of(&whole, &scan.span, part.rest, reverse);
            self.parts[*n] = SpanRows { rest, rows: part.rows, cursor: None };
        }
        is_full
    }
}

/// Whether a part of the answer has no rows yet, and may get some.
fn is_open(part: &SpanRows) -> bool {
    part.rows.is_empty() && part.rest.is_some()
}

/// What is left of a span of which a part was read up to `rest`.
fn rest_of(
    whole: &KeySpan,
    part: &KeySpan,
    rest: Option<KeySpan>,
    reverse: bool,
) -> Option<KeySpan> {
    let left = match (rest, reverse) {
        (Some(rest), false) => KeySpan::new(rest.start, whole.end.clone()),
        (Some(rest), true) => KeySpan::new(whole.start.clone(), rest.end),
        (None, false) => KeySpan::new(part.end.clone(), whole.end.clone()),
        (None, true) => KeySpan::new(whole.start.clone(), part.start.clone()),
    };
    Some(left).filter(|left| !left.is_empty())
}
