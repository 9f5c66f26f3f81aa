//! A plan that was explained, as lines of text.

use braid_kv::{Network, Work};
use braid_parser::ExplainOptions;

use super::lines::{Actual, PlanLine};
use super::summary::Summary;

/// The lines of a plan, and what is known of all of it.
pub(crate) fn lines(
    lines: &[PlanLine],
    summary: &Summary,
    options: &ExplainOptions,
) -> Vec<String> {
    let mut out = Vec::new();
    for line in lines {
        let Some(operator) = &line.operator else {
            out.push(line.text.clone());
            continue;
        };
        let mut text = line.text.clone();
        if let Some(rows) = operator.estimate.filter(|_| options.costs == Some(true)) {
            text.push_str(&format!("  (rows={rows:.0})"));
        }
        let Some(actual) = &operator.actual else {
            out.push(text);
            continue;
        };
        let told = text.contains("requests=");
        text.push_str(&did(actual, options.shows_times(), told));
        out.push(text);
        let indent = "  ".repeat(line.depth() + 1);
        if options.buffers && actual.requests > 0 {
            out.push(format!("{indent}{}", buffers(actual.requests, actual.work)));
        }
        out.extend(network(actual.network).map(|said| format!("{indent}{said}")));
        if let Some(held) = actual.memory_peak.filter(|held| *held > 0) {
            let spilled = match actual.spilled_bytes {
                0 => String::new(),
                bytes => format!(", spilled={}kB", bytes.div_ceil(1024)),
            };
            out.push(format!("{indent}Memory: peak={}kB{spilled}", held.div_ceil(1024)));
        }
    }
    summary.text(options, &mut out);
    out
}

/// What stands behind an operator.
fn did(actual: &Actual, times: bool, requests_told: bool) -> String {
    let mut parts = Vec::new();
    if let Some((first, all)) = actual.nanos.filter(|_| times) {
        parts.push(format!("time={}..{}", milliseconds(first), milliseconds(all)));
    }
    parts.push(format!("rows={} loops={}", actual.rows, actual.loops));
    if actual.requests > 0 && !requests_told {
        parts.push(format!("requests={}", actual.requests));
    }
    format!("  (actual {})", parts.join(" "))
}

pub(super) fn milliseconds(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e6)
}

/// What went to other nodes, if anything.
pub(super) fn network(network: Network) -> Option<String> {
    let Network { calls, bytes, nanos } = network;
    let waited = milliseconds(nanos);
    (calls > 0).then(|| format!("Network: remote calls={calls} bytes={bytes} waited={waited} ms"))
}

/// As PostgreSQL shows blocks, and what it does not know behind that.
pub(super) fn buffers(requests: u64, work: Work) -> String {
    format!(
        "Buffers: shared hit={} read={}, requests={requests} entries={} tombstones={} bytes={}",
        work.blocks - work.blocks_from_disk,
        work.blocks_from_disk,
        work.entries,
        work.tombstones,
        work.bytes
    )
}
