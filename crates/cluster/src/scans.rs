//! Scans over ranges.
//!
//! ```text
//!   spans    s1 s2 s3 | s4 s5 | s6 ....... | .......      asked together: r1 for s1 s2 s3,
//!   ranges   r1       | r2    | r3         | r4           r2 for s4 s5, r3 for its part of s6
//!
//!   answer   s1 s2 s3   s4 .    s6 .                      what is left of s4, s5 and s6 is told
//! ```
//!
//! Spans that lie in several ranges, as those of the families that a join looks up, and spans over
//! several ranges are read at the same time: one range first, since it may be all that the asker
//! wants, then twice as many with each round, as far as they are expected to be within what the
//! answer may have. Each may give all of that: whoever takes rows in the order of spans would throw
//! away what comes behind one of which only a share was read. What is too much in the end is not
//! taken.
//!
//! Behind the border of a range a span is read on as long as little was found: parts of blocks and
//! many rows are given as they came, and whoever wants more asks for the rest.

use std::sync::Arc;

use braid_kv::{KvResult, ScanMany, ScannedMany, SpanRows, SpanScan, Work};
use braid_lsm::{CommitTs, KeySpan, RowBatch};
use braid_range::{Answer, Ask, NodeId};

use crate::router::{Router, Sent};
use crate::routes::Route;

/// So many ranges are read at the same time.
const MOST_AT_ONCE: usize = 16;
/// Rows of several ranges are put together up to so many bytes.
const LITTLE: usize = 64 << 10;

/// What of a request lies in one range.
struct Group {
    route: Route,
    /// Scans by their numbers, clipped to the range.
    scans: Vec<(usize, SpanScan)>,
}

/// What has been found so far.
struct Found<'a> {
    request: &'a ScanMany,
    parts: Vec<SpanRows>,
    /// Which parts ended within a range.
    cut: Vec<bool>,
    rows: usize,
    bytes: usize,
    work: Work,
}

impl Router {
    pub(crate) fn scan_spans(&self, request: &ScanMany) -> KvResult<ScannedMany> {
        self.reading(request.at, |at| self.scan_at(request, at))
    }

    fn scan_at(&self, request: &ScanMany, at: CommitTs) -> KvResult<ScannedMany> {
        let mut found = Found::nothing(request);
        let (mut next, mut at_once, mut ranges) = (0, 1, 0);
        while found.rows < request.rows && found.bytes < request.bytes {
            next += (next..found.parts.len()).take_while(|n| !found.is_open(*n)).count();
            let (groups, are_all) = self.groups_of(&found, next, at_once)?;
            if groups.len() > 1 || !are_all {
                self.meet(at, || found.left());
            }
            ranges += groups.len();
            if groups.is_empty() || self.scan_groups(at, groups, &mut found)? {
                break;
            }
            at_once = found.how_many_more(ranges).clamp(1, MOST_AT_ONCE.min(2 * at_once));
        }
        let Found { parts, work, .. } = found;
        Ok(ScannedMany { parts, at, undurable: None, work })
    }

    /// Reads in some ranges at the same time; whether that is all that the answer may have.
    fn scan_groups(
        &self,
        at: CommitTs,
        groups: Vec<Group>,
        found: &mut Found<'_>,
    ) -> KvResult<bool> {
        let request = found.request;
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
                    is_full = is_full || found.take(&group.scans, scanned);
                }
                Sent::Answer(other) => return Err(self.not_read(at, other)),
            }
        }
        Ok(is_full)
    }

    /// What is left to be scanned from one scan on, by ranges, of so many at most; and whether that
    /// is all.
    fn groups_of(
        &self,
        found: &Found<'_>,
        from: usize,
        most: usize,
    ) -> KvResult<(Vec<Group>, bool)> {
        let reverse = found.request.reverse;
        let mut groups: Vec<Group> = Vec::new();
        for (n, scan) in found.request.scans.iter().enumerate().skip(from) {
            let mut left = found.parts[n].rest.clone().filter(|_| found.is_open(n));
            let rows = scan.rows - found.parts[n].rows.len();
            while let Some(rest) = left {
                let begins_in = |route: &Route| match reverse {
                    true => route.span.start < rest.end && rest.end <= route.span.end,
                    false => route.span.contains(&rest.start),
                };
                if !groups.last().is_some_and(|group| begins_in(&group.route)) {
                    if groups.len() == most {
                        return Ok((groups, false));
                    }
                    let route = match reverse {
                        true => self.route_before(&rest.end)?,
                        false => self.route(&rest.start)?,
                    };
                    groups.push(Group { route, scans: Vec::new() });
                }
                let group = groups.last_mut().expect("it was made");
                let start = rest.start.clone().max(group.route.span.start.clone());
                let end = rest.end.clone().min(group.route.span.end.clone());
                let span = KeySpan::new(start, end);
                left = rest_of(&rest, &span, None, reverse);
                group.scans.push((n, SpanScan { span, rows, cursor: None, ..scan.clone() }));
            }
        }
        Ok((groups, true))
    }
}

impl<'a> Found<'a> {
    fn nothing(request: &'a ScanMany) -> Found<'a> {
        let untouched = |scan: &SpanScan| SpanRows {
            rows: Arc::default(),
            rest: Some(scan.span.clone()).filter(|span| !span.is_empty()),
            cursor: None,
        };
        let parts: Vec<SpanRows> = request.scans.iter().map(untouched).collect();
        let cut = vec![false; parts.len()];
        Found { request, parts, cut, rows: 0, bytes: 0, work: Work::default() }
    }

    /// Whether more of a span may come.
    fn is_open(&self, n: usize) -> bool {
        let SpanRows { rows, rest, .. } = &self.parts[n];
        let is_little = rows.byte_len() < LITTLE && !rows.has_parts();
        let is_enough = rows.len() >= self.request.scans[n].rows;
        rest.is_some() && !self.cut[n] && is_little && !is_enough
    }

    /// All that is left, and what lies between.
    fn left(&self) -> KeySpan {
        let left = || self.parts.iter().filter_map(|part| part.rest.as_ref());
        let start = left().map(|span| &span.start).min().cloned();
        let end = left().map(|span| &span.end).max().cloned();
        KeySpan::new(start.unwrap_or_default(), end.unwrap_or_default())
    }

    /// How many ranges more fit into the answer, if each gives as much as these have.
    fn how_many_more(&self, ranges: usize) -> usize {
        let fit = |most: usize, found: usize| most.saturating_sub(found) / (found / ranges).max(1);
        fit(self.request.rows, self.rows).min(fit(self.request.bytes, self.bytes))
    }

    /// Takes what a range has said; whether that is all that the answer may have.
    fn take(&mut self, scans: &[(usize, SpanScan)], scanned: ScannedMany) -> bool {
        self.work = self.work.plus(scanned.work);
        for ((n, scan), part) in scans.iter().zip(scanned.parts) {
            let n = *n;
            let follows = |rest: &KeySpan| match self.request.reverse {
                true => rest.end == scan.span.end,
                false => rest.start == scan.span.start,
            };
            // Something in front of it was not read, or not to its end.
            let Some(whole) = self.parts[n].rest.take_if(|rest| !self.cut[n] && follows(rest))
            else {
                continue;
            };
            if !self.has_room(n, &part.rows) {
                self.parts[n].rest = Some(whole);
                return true;
            }
            self.rows += part.rows.len();
            self.bytes += part.rows.byte_len();
            self.cut[n] = part.rest.is_some();
            let ends_here = part.rest.is_some() && part.rows.is_empty();
            self.parts[n].rest = rest_of(&whole, &scan.span, part.rest, self.request.reverse);
            self.put(n, part.rows);
            if ends_here {
                return true;
            }
        }
        false
    }

    /// Whether the answer, and the scan, may have these rows, too. What came with the first round
    /// is within the limits, and what is put behind other rows must be few.
    fn has_room(&self, n: usize, more: &RowBatch) -> bool {
        let (rows, bytes) = (more.len(), more.byte_len());
        let fits = self.rows + rows <= self.request.rows
            && (self.bytes == 0 || self.bytes + bytes <= self.request.bytes);
        let own = &self.parts[n].rows;
        let few = own.is_empty()
            || own.len() + rows <= self.request.scans[n].rows
                && !more.has_parts()
                && own.byte_len() + bytes <= 2 * LITTLE;
        more.is_empty() || fits && few
    }

    /// Puts rows behind those of a scan.
    fn put(&mut self, n: usize, more: Arc<RowBatch>) {
        let own = &mut self.parts[n].rows;
        if own.is_empty() {
            *own = more;
            return;
        }
        if Arc::get_mut(own).is_none() {
            let mut all = RowBatch::copying();
            own.iter().for_each(|(key, value, ts)| all.push(key, value, ts));
            *own = Arc::new(all);
        }
        let all = Arc::get_mut(own).expect("nobody else has it");
        more.iter().for_each(|(key, value, ts)| all.push(key, value, ts));
    }
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
