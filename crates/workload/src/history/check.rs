//! The verdict: what a history shows that its isolation level does not allow.
//!
//! Linear in the history: the orders of versions, a graph with a few edges for each operation, and
//! strongly connected parts. Only in a part that is cyclic a shortest cycle is looked for, with a
//! limit on the tries.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use super::graph::{Cycle, Graph, Why};
use super::record::{Anomaly, History, Key, Level, Op, Outcome};
use super::versions::Versions;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many transactions ended how: committed, rolled back, unknown.
    pub outcomes: [usize; 3],
    /// Operations of committed transactions.
    pub operations: usize,
    /// Edges of the graph.
    pub edges: usize,
    /// How often each anomaly was found, with the first few in words.
    pub anomalies: BTreeMap<Anomaly, (usize, Vec<String>)>,
    /// Of these, those that the level does not allow.
    pub forbidden: Vec<Anomaly>,
}

/// Anomalies of a kind that are told in words.
const EXAMPLES: usize = 3;

/// Edges of a cyclic part from which a shortest cycle is looked for.
const TRIES: usize = 100;

impl Report {
    fn add(&mut self, (anomaly, text): (Anomaly, String)) {
        let (count, examples) = self.anomalies.entry(anomaly).or_default();
        *count += 1;
        if examples.len() < EXAMPLES {
            examples.push(text);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [committed, aborted, unknown] = self.outcomes;
        writeln!(
            f,
            "{committed} committed, {aborted} rolled back, {unknown} unknown; \
             {} operations, {} edges",
            self.operations, self.edges
        )?;
        for (anomaly, (count, examples)) in &self.anomalies {
            let verdict =
                if self.forbidden.contains(anomaly) { "FORBIDDEN" } else { "allowed here" };
            writeln!(f, "{anomaly}: {count}, {verdict}")?;
            for text in examples {
                writeln!(f, "  {text}")?;
            }
        }
        match self.forbidden.len() {
            0 => write!(f, "no forbidden anomaly"),
            n => write!(f, "{n} kinds of forbidden anomalies"),
        }
    }
}

/// What the history shows that `level` forbids, and what it allows.
pub fn check(history: &History, level: Level) -> Report {
    let mut report = Report::default();
    for t in &history.transactions {
        let (place, counts) = match t.outcome {
            Outcome::Committed => (0, t.ops.len()),
            Outcome::Aborted => (1, 0),
            Outcome::Unknown => (2, 0),
        };
        report.outcomes[place] += 1;
        report.operations += counts;
    }
    let mut versions = Versions::of(history);
    let (graph, blamed) = edges(history, &mut versions, &mut report);
    report.edges = graph.size();
    std::mem::take(&mut versions.findings).into_iter().for_each(|f| report.add(f));
    cycles(history, &graph, level, blamed, &mut report);
    report.forbidden = report.anomalies.keys().copied().filter(|a| !a.allowed(level)).collect();
    report
}

/// Writers of a list in the order of their versions.
fn orders(transactions: usize, versions: &Versions) -> Graph {
    let mut graph = Graph::new(transactions);
    for (&key, chain) in &versions.chains {
        let mut before: Option<u32> = None;
        for writer in chain.iter().filter_map(|&v| versions.writer(key, v)) {
            if let Some(before) = before {
                graph.add(before, writer, Why::Ww(key));
            }
            before = Some(writer);
        }
    }
    graph
}

/// What one transaction knows of the keys while its operations are gone through.
#[derive(Default)]
struct Progress {
    /// What a list was at the last read, with what the transaction appended since.
    lists: HashMap<Key, Vec<u64>>,
    /// Appended since the beginning or the last erasure.
    own: HashMap<Key, Vec<u64>>,
    registers: HashMap<Key, u64>,
    written: HashSet<Key>,
}

/// Goes through all operations: what a transaction sees of itself, and its edges.
/// Returns the graph, and who is to blame for lost updates already.
fn edges(history: &History, versions: &mut Versions, report: &mut Report) -> (Graph, HashSet<u32>) {
    let mut graph = orders(history.transactions.len(), versions);
    let mut heirs: HashMap<(Key, u64), Vec<u32>> = HashMap::new();
    let mut register_reads: Vec<(Key, u64, u32)> = Vec::new();
    for (number, t) in history.transactions.iter().enumerate() {
        if t.outcome != Outcome::Committed {
            continue;
        }
        let me = number as u32;
        let mut progress = Progress::default();
        for op in &t.ops {
            let mut found = |anomaly, what: String| report.add((anomaly, format!("T{me} {what}")));
            match op {
                Op::Read { key, values, scan } => {
                    progress.read(*key, values, &mut found);
                    if !progress.written.contains(key) {
                        list_edges(&mut graph, versions, me, *key, values, *scan);
                    }
                }
                Op::Get { key, value } => {
                    progress.get(*key, *value, &mut found);
                    versions.register_read(history, *key, *value, me);
                    if !progress.written.contains(key) {
                        register_reads.push((*key, *value, me));
                    }
                }
                Op::Write { key, value } => {
                    let base = progress.registers.insert(*key, *value);
                    if progress.written.insert(*key)
                        && let Some(base) = base
                    {
                        heirs.entry((*key, base)).or_default().push(me);
                    }
                }
                Op::Append { key, value } => progress.append(*key, *value),
                Op::Erase { key, value } => progress.erase(*key, *value),
                Op::Children { key, values } => progress.children(*key, values, &mut found),
                Op::Lookup { key, value, found: is } => {
                    progress.lookup(*key, *value, *is, &mut found);
                }
            }
        }
    }
    let blamed = register_edges(&mut graph, versions, &heirs, &register_reads, report);
    (graph, blamed)
}

impl Progress {
    fn append(&mut self, key: Key, value: u64) {
        self.written.insert(key);
        self.own.entry(key).or_default().push(value);
        if let Some(list) = self.lists.get_mut(&key) {
            list.push(value);
        }
    }

    fn erase(&mut self, key: Key, value: u64) {
        self.written.insert(key);
        self.own.insert(key, vec![value]);
        self.lists.insert(key, vec![value]);
    }

    fn read(&mut self, key: Key, values: &[u64], found: &mut impl FnMut(Anomaly, String)) {
        let own = self.own.get(&key).map(Vec::as_slice).unwrap_or_default();
        match self.lists.insert(key, values.to_vec()) {
            Some(known) if known != values => {
                let text = format!("saw {key:?} as {values:?}, expected {known:?}");
                let sees_itself = values.ends_with(own);
                let anomaly = if sees_itself { Anomaly::Unrepeatable } else { Anomaly::Internal };
                found(anomaly, text);
            }
            None if !values.ends_with(own) => {
                found(
                    Anomaly::Internal,
                    format!("saw {key:?} as {values:?} after it added {own:?}"),
                );
            }
            _ => {}
        }
    }

    fn get(&mut self, key: Key, value: u64, found: &mut impl FnMut(Anomaly, String)) {
        let Some(known) = self.registers.insert(key, value) else { return };
        if known != value {
            let own = self.written.contains(&key);
            let anomaly = if own { Anomaly::Internal } else { Anomaly::Unrepeatable };
            found(anomaly, format!("read {key:?} as {known}, then as {value}"));
        }
    }

    fn children(&self, key: Key, values: &[u64], found: &mut impl FnMut(Anomaly, String)) {
        let Some(list) = self.lists.get(&key) else { return };
        let (mut left, mut right) = (list.clone(), values.to_vec());
        left.sort_unstable();
        right.sort_unstable();
        if left != right {
            found(Anomaly::Torn, format!("saw {key:?} as {left:?} with children {right:?}"));
        }
    }

    fn lookup(&self, key: Key, value: u64, is: bool, found: &mut impl FnMut(Anomaly, String)) {
        let Some(list) = self.lists.get(&key) else { return };
        if list.contains(&value) != is {
            let text = format!("saw {key:?} as {list:?}, by index {value} is there: {is}");
            found(Anomaly::Torn, text);
        }
    }
}

/// A read of a list comes after the writer of its last value and before the next one.
fn list_edges(g: &mut Graph, versions: &Versions, me: u32, key: Key, values: &[u64], scan: bool) {
    let Some(chain) = versions.chains.get(&key) else { return };
    let next = match values.last() {
        None => 0,
        Some(last) => {
            let Some(writer) = versions.writer(key, *last) else { return };
            g.add(writer, me, Why::Wr(key));
            match versions.places.get(&(key, *last)) {
                Some(place) => place + 1,
                None => return,
            }
        }
    };
    let mut later = chain[next.min(chain.len())..].iter().filter_map(|&v| versions.writer(key, v));
    if let Some(writer) = later.find(|&w| w != me) {
        g.add(me, writer, Why::Rw { key, scan });
    }
}

fn register_edges(
    graph: &mut Graph,
    versions: &Versions,
    heirs: &HashMap<(Key, u64), Vec<u32>>,
    reads: &[(Key, u64, u32)],
    report: &mut Report,
) -> HashSet<u32> {
    let mut blamed = HashSet::new();
    for (&(key, base), of) in heirs {
        if of.len() > 1 {
            blamed.extend(of);
            let text = format!("{of:?} all read {base} in {key:?} and overwrote it");
            report.add((Anomaly::LostUpdate, text));
        }
    }
    for &(key, value, me) in reads {
        if let Some(writer) = versions.writer(key, value) {
            graph.add(writer, me, Why::Wr(key));
        }
        for &heir in heirs.get(&(key, value)).into_iter().flatten() {
            graph.add(me, heir, Why::Rw { key, scan: false });
            if let Some(writer) = versions.writer(key, value) {
                graph.add(writer, heir, Why::Ww(key));
            }
        }
    }
    blamed
}

/// Looks for cycles, the worst first; a part is blamed for one thing only.
fn cycles(
    history: &History,
    graph: &Graph,
    level: Level,
    mut blamed: HashSet<u32>,
    report: &mut Report,
) {
    let ww = |why: Why| matches!(why, Why::Ww(_));
    let wr = |why: Why| matches!(why, Why::Wr(_));
    for part in graph.only(ww).parts() {
        let cycle = graph.only(ww).cycle(&part, TRIES, |_| true);
        blame(report, &mut blamed, &part, Anomaly::G0, cycle);
    }
    let writes = graph.only(|why| ww(why) || wr(why));
    for part in fresh(writes.parts(), &blamed) {
        let cycle = writes.cycle(&part, TRIES, wr);
        blame(report, &mut blamed, &part, Anomaly::G1c, cycle);
    }
    if level == Level::ReadCommitted {
        return;
    }
    snapshots(graph, &writes, report, &mut blamed);
    for part in fresh(graph.parts(), &blamed) {
        let cycle = graph.cycle(&part, TRIES, Why::is_rw);
        let scan = |c: &Cycle| c.iter().any(|(_, why)| matches!(why, Why::Rw { scan: true, .. }));
        let anomaly = if cycle.as_ref().is_some_and(scan) { Anomaly::G2 } else { Anomaly::G2Item };
        blame(report, &mut blamed, &part, anomaly, cycle);
    }
    let timed = with_time(history, graph);
    let (timed, whole) = match level {
        Level::Serializable => (timed, 1),
        _ => (timed.without_neighbours(), 2),
    };
    for part in timed.parts() {
        let nodes = |n: u32| n / whole;
        let real = (part.iter().map(|&n| nodes(n)))
            .filter(|&n| (n as usize) < history.transactions.len())
            .collect::<Vec<_>>();
        if !real.iter().any(|n| blamed.contains(n)) {
            let cycle = timed.cycle(&part, TRIES, |why| why != Why::Time);
            let cycle = cycle.map(|c| c.into_iter().map(|(n, why)| (nodes(n), why)).collect());
            blame(report, &mut blamed, &real, Anomaly::Stale, cycle);
        }
    }
}

/// Cycles that a snapshot forbids: no two reads of overwritten values follow each other.
fn snapshots(graph: &Graph, writes: &Graph, report: &mut Report, blamed: &mut HashSet<u32>) {
    for part in graph.without_neighbours().parts() {
        let mut part: Vec<u32> = part.iter().map(|n| n / 2).collect();
        part.sort_unstable();
        part.dedup();
        if part.iter().any(|n| blamed.contains(n)) {
            continue;
        }
        // One such read: the way back has none.
        let inside: HashSet<u32> = part.iter().copied().collect();
        let mut single: Option<Cycle> = None;
        for &from in part.iter().take(TRIES) {
            for &(to, why) in graph.from(from) {
                if !why.is_rw() || !inside.contains(&to) {
                    continue;
                }
                let back = writes.path(to, from, &inside);
                let cycle: Option<Cycle> =
                    back.map(|back| [(from, why)].into_iter().chain(back).collect());
                if cycle.as_ref().is_some_and(|c| single.as_ref().is_none_or(|s| c.len() < s.len()))
                {
                    single = cycle;
                }
            }
        }
        let anomaly = match &single {
            None => Anomaly::GNonadjacent,
            Some(cycle) if cycle.len() == 2 && same_key(cycle) => Anomaly::LostUpdate,
            Some(_) => Anomaly::GSingle,
        };
        let cycle = single.or_else(|| graph.cycle(&part, TRIES, Why::is_rw));
        blame(report, blamed, &part, anomaly, cycle);
    }
}

fn same_key(cycle: &Cycle) -> bool {
    let keys: HashSet<u32> = cycle
        .iter()
        .filter_map(|(_, why)| match why {
            Why::Ww(Key::List(n) | Key::Trail(n) | Key::Register(n))
            | Why::Rw { key: Key::List(n) | Key::Trail(n) | Key::Register(n), .. } => Some(*n),
            _ => None,
        })
        .collect();
    keys.len() == 1 && cycle.iter().any(|(_, why)| matches!(why, Why::Ww(_)))
}

fn fresh(parts: Vec<Vec<u32>>, blamed: &HashSet<u32>) -> Vec<Vec<u32>> {
    parts.into_iter().filter(|part| !part.iter().any(|n| blamed.contains(n))).collect()
}

fn blame(
    report: &mut Report,
    blamed: &mut HashSet<u32>,
    part: &[u32],
    anomaly: Anomaly,
    cycle: Option<Cycle>,
) {
    blamed.extend(part);
    let steps = cycle.into_iter().flatten().map(|(n, why)| format!("T{n} {why:?}"));
    report.add((anomaly, format!("{} > again", steps.collect::<Vec<_>>().join(" > "))));
}

/// The graph with time: a node for each end of a transaction, in order, so that "was over before
/// it began" takes two edges for each transaction.
fn with_time(history: &History, graph: &Graph) -> Graph {
    let count = history.transactions.len();
    let mut ends: Vec<u32> = (0..count as u32)
        .filter(|&n| history.transactions[n as usize].outcome == Outcome::Committed)
        .collect();
    ends.sort_by_key(|&n| history.transactions[n as usize].ended);
    let mut out = Graph::new(count + ends.len());
    for from in 0..count as u32 {
        graph.from(from).iter().for_each(|&(to, why)| out.add(from, to, why));
    }
    for (place, &n) in ends.iter().enumerate() {
        let moment = (count + place) as u32;
        out.add(n, moment, Why::Time);
        if place > 0 {
            out.add(moment - 1, moment, Why::Time);
        }
        let began = history.transactions[n as usize].began;
        let over =
            ends.partition_point(|&other| history.transactions[other as usize].ended < began);
        if over > 0 {
            out.add((count + over - 1) as u32, n, Why::Time);
        }
    }
    out
}
