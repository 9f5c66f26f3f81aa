//! Three replicas of one range, driven by hand: what is refused, what waits, what is answered
//! again.

#[path = "cluster/closed.rs"]
mod closed;
#[path = "cluster/collecting.rs"]
mod collecting;
#[path = "cluster/doubts.rs"]
mod doubts;
#[path = "cluster/locks.rs"]
mod locks;
#[path = "cluster/moving.rs"]
mod moving;
#[path = "cluster/replicas.rs"]
mod replicas;
#[path = "cluster/several.rs"]
mod several;
#[path = "cluster/sleeping.rs"]
mod sleeping;
#[path = "cluster/states.rs"]
mod states;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use braid_consensus::{GroupOptions, RaftLogOptions, ReplicaId};
use braid_env::clock::{Clock, ManualClock};
use braid_env::fs::{CrashPolicy, FileSystem, MemFs};
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_kv::{Conflict, Reads, ShownRange};
use braid_lsm::{CommitTs, KeySpan, Options, ScanOptions};
use braid_range::{
    Answer, AnswerTimes, Answered, Ask, CommitAsk, FIRST_DATA_KEY, NodeEnv, NodeId, NodeOptions,
    RangeDescriptor, RangeId, Replicas, Request, Split, TxnId, Write,
};
use bytes::Bytes;

struct Node {
    fs: MemFs,
    clock: Arc<ManualClock>,
    tasks: Arc<SeededTasks>,
    process: Option<Replicas>,
    gc_window_micros: Option<u64>,
    max_log_bytes: u64,
    spread_ticks: Option<u64>,
}

struct Cluster {
    nodes: Vec<Node>,
    messages: VecDeque<(NodeId, Vec<u8>)>,
    answers: Vec<(u64, Answer)>,
    /// What clocks showed when answers were made.
    clocks: BTreeMap<u64, AnswerTimes>,
    cut_off: Vec<u64>,
    /// Nodes that hear nothing of a range's group.
    deaf: Vec<(u64, u8)>,
    /// As soon as a node notes this, these become deaf: what it says then they do not hear.
    deaf_when: Option<(&'static str, Vec<(u64, u8)>)>,
    /// From whom to whom nothing comes through.
    one_way: Vec<(u64, u64)>,
    /// The next so many last words for this node are lost.
    loses_last_words: Option<(u64, usize)>,
    /// Messages that were sent: those of groups, and all.
    sent: (usize, usize),
    /// Of large messages for this node one arrives in a second, and all others are lost.
    slow: Option<u64>,
    /// When the last of them arrived, in ticks.
    large_at: u64,
    ticks: u64,
    asked: u64,
}

fn descriptor() -> RangeDescriptor {
    let replicas = (1..=3).map(|id| (ReplicaId(id), NodeId(id))).collect();
    let span = KeySpan::new(FIRST_DATA_KEY, "\x01z");
    RangeDescriptor::new(RangeId(1), span, replicas)
}

/// Rows lie in each other as folders do.
fn points(key: &[u8]) -> Vec<usize> {
    let inner = key.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    inner.chain([key.len()]).collect()
}

fn start(id: u64, node: &mut Node) {
    node.tasks = Arc::new(SeededTasks::new(id));
    let store = Options {
        memtable_size: 64 << 10,
        max_immutable_memtables: 1,
        block_cache_size: 1 << 20,
        ballast_size: 0,
        tasks: Some(node.tasks.clone()),
        clock: node.clock.clone(),
        ..Options::default()
    };
    let env = NodeEnv {
        fs: Arc::new(node.fs.clone()),
        clock: node.clock.clone(),
        random: Random::seeded(id),
        store_dir: None,
        store,
        log: RaftLogOptions { clock: node.clock.clone(), ..RaftLogOptions::default() },
        row_form: None,
        split_points: points,
    };
    let max_log_bytes = node.max_log_bytes;
    let group = GroupOptions { kept_bytes: 10_000, max_log_bytes, ..GroupOptions::default() };
    let outcome_window_micros = 20_000_000;
    let max_range_bytes = 50_000;
    let own = NodeOptions::new(NodeId(id));
    let gc_window_micros = node.gc_window_micros;
    let spread_ticks = node.spread_ticks;
    let options = NodeOptions {
        outcome_window_micros,
        group,
        max_range_bytes,
        gc_window_micros,
        spread_ticks,
        ..own
    };
    let founders = if id <= 3 { vec![descriptor()] } else { Vec::new() };
    let opened = Replicas::open(env, Path::new("/node"), options, &founders);
    node.process = Some(opened.unwrap_or_else(|error| panic!("n{id}: {error}")));
}

fn new_node(micros: u64, gc_window_micros: Option<u64>) -> Node {
    let clock = Arc::new(ManualClock::at_micros(micros));
    let tasks = Arc::new(SeededTasks::new(0));
    let max_log_bytes = GroupOptions::default().max_log_bytes;
    let (process, spread_ticks) = (None, None);
    let fs = MemFs::new();
    Node { fs, clock, tasks, process, gc_window_micros, max_log_bytes, spread_ticks }
}

impl Cluster {
    /// Three nodes; n1 leads and has the lease.
    fn new() -> Cluster {
        Cluster::keeping(None)
    }

    /// The same, and versions are kept for so long.
    fn keeping(gc_window_micros: Option<u64>) -> Cluster {
        let node = |_| new_node(1_000_000_000, gc_window_micros);
        let mut nodes: Vec<Node> = (1..=3).map(node).collect();
        nodes.iter_mut().enumerate().for_each(|(n, node)| start(n as u64 + 1, node));
        let (messages, answers, clocks) = (VecDeque::new(), Vec::new(), BTreeMap::new());
        let (cut_off, deaf) = (Vec::new(), Vec::new());
        let (deaf_when, slow, large_at, ticks, asked) = (None, None, 0, 0, 0);
        let (one_way, loses_last_words, sent) = (Vec::new(), None, (0, 0));
        let mut cluster = Cluster {
            nodes,
            messages,
            answers,
            clocks,
            cut_off,
            deaf,
            deaf_when,
            one_way,
            loses_last_words,
            sent,
            slow,
            large_at,
            ticks,
            asked,
        };
        cluster.pass(40, &[1]);
        assert!(cluster.describe(1).contains("lease 1 of r1"), "{}", cluster.describe(1));
        cluster
    }

    fn process(&mut self, id: u64) -> &mut Replicas {
        self.nodes[id as usize - 1].process.as_mut().expect("it runs")
    }

    fn describe(&mut self, id: u64) -> String {
        self.process(id).describe()
    }

    /// The node that leads the first range.
    fn leaseholder(&mut self) -> u64 {
        let leads = |id: &u64| self.describe(*id).contains("leads");
        (1..=3).find(leads).expect("somebody leads")
    }

    /// Time passes on all clocks, in ticks of 100 ms; these nodes notice.
    fn pass(&mut self, ticks: u64, who: &[u64]) {
        for _ in 0..ticks {
            self.nodes.iter().for_each(|node| node.clock.advance(Duration::from_millis(100)));
            self.ticks += 1;
            for id in who {
                // It may have lost power since then.
                let Some(process) = self.nodes[*id as usize - 1].process.as_mut() else { continue };
                process.tick().expect("nothing fails");
            }
            self.settle();
        }
    }

    /// Messages arrive and disks work until nothing is left to do.
    fn settle(&mut self) {
        loop {
            let mut any = false;
            for id in 1..=self.nodes.len() as u64 {
                let cut_off = self.cut_off.contains(&id);
                let node = &mut self.nodes[id as usize - 1];
                if let Some(after) = node.fs.take_crash() {
                    // What it would have said then is never said.
                    drop(node.process.take());
                    node.fs = after;
                }
                let Some(process) = self.nodes[id as usize - 1].process.as_mut() else { continue };
                let effects = process.effects();
                any |= effects.sync.is_some();
                if let Some(place) = effects.sync {
                    process.sync_log(place).expect("the disk works");
                    process.log_synced(place).expect("nothing fails");
                }
                for Answered { number, times, answer } in effects.answers {
                    self.answers.push((number, answer));
                    self.clocks.insert(number, times);
                }
                let said = |text: &str| effects.notes.iter().any(|note| note.contains(text));
                if let Some((_, deaf)) = self.deaf_when.take_if(|(text, _)| said(text)) {
                    self.deaf = deaf;
                }
                let of_groups = effects.send.iter().filter(|(_, bytes)| is_of_group(bytes));
                self.sent.0 += of_groups.count();
                self.sent.1 += effects.send.len();
                if !cut_off {
                    self.messages.extend(effects.send);
                }
            }
            while let Some((to, bytes)) = self.messages.pop_front() {
                any = true;
                let deaf = self.deaf.contains(&(to.0, bytes[0])) && is_of_group(&bytes);
                let is_cut = self.cut_off.contains(&to.0)
                    || self.one_way.contains(&(sender(&bytes), to.0))
                    || self.loses_last_word(to, &bytes);
                let is_lost = deaf || is_cut || self.is_too_many(to, &bytes);
                let there = self.nodes[to.0 as usize - 1].process.as_mut();
                if let (Some(process), false) = (there, is_lost) {
                    process.receive(&bytes).expect("nothing fails");
                }
            }
            if !any {
                return;
            }
        }
    }

    /// Whether a leader's last word before it sleeps is lost.
    fn loses_last_word(&mut self, to: NodeId, bytes: &[u8]) -> bool {
        // Kind, length, item.
        let is_last_word = !is_of_group(bytes) && bytes[head(bytes) + 2] == 13;
        match &mut self.loses_last_words {
            Some((of, left)) if *of == to.0 && *left > 0 && is_last_word => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    /// Whether a message is lost since its receiver is slow.
    fn is_too_many(&mut self, to: NodeId, bytes: &[u8]) -> bool {
        let is_large = self.slow == Some(to.0) && bytes.len() > 50_000;
        let is_lost = is_large && self.ticks < self.large_at + 10;
        if is_large && !is_lost {
            self.large_at = self.ticks;
        }
        is_lost
    }

    fn ask(&mut self, id: u64, ask: Ask) -> Option<Answer> {
        self.ask_range(1, id, ask)
    }

    fn ask_range(&mut self, range: u64, id: u64, ask: Ask) -> Option<Answer> {
        self.asked += 1;
        let number = self.asked;
        let request = Request { range: RangeId(range), ask };
        self.process(id).request(number, request).expect("nothing fails");
        self.settle();
        self.answer(number)
    }

    fn answer(&mut self, number: u64) -> Option<Answer> {
        let at = self.answers.iter().position(|(of, _)| *of == number)?;
        Some(self.answers.remove(at).1)
    }

    fn now(&self, id: u64) -> CommitTs {
        CommitTs(self.nodes[id as usize - 1].clock.now_micros() << 12)
    }

    /// Background work of stores is done.
    fn work(&mut self) {
        self.nodes.iter().for_each(|node| while node.tasks.run_one() {});
    }

    fn crash(&mut self, id: u64, policy: CrashPolicy) {
        let node = &mut self.nodes[id as usize - 1];
        let after = node.fs.crash_clone(&mut Random::seeded(id), policy);
        drop(node.process.take());
        node.fs = after;
    }

    fn restart(&mut self, id: u64) {
        start(id, &mut self.nodes[id as usize - 1]);
    }
}

/// The length of a message's head: range, sender, clock.
fn head(bytes: &[u8]) -> usize {
    let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte < 0x80).map(|(at, _)| at);
    ends.nth(2).expect("messages have a head") + 1
}

/// Whether a message is one of its range's group: 0 behind the head.
fn is_of_group(bytes: &[u8]) -> bool {
    bytes[head(bytes)] == 0
}

/// Who has sent a message.
fn sender(bytes: &[u8]) -> u64 {
    let of_range = bytes.iter().position(|byte| *byte < 0x80).expect("messages have a head");
    u64::from(bytes[of_range + 1])
}

fn key(name: &str) -> Bytes {
    Bytes::from(format!("\x01{name}"))
}

fn put(name: &str, value: &'static str) -> Write {
    Write::Put(key(name), Bytes::from_static(value.as_bytes()))
}

fn commit(txn: TxnId, writes: Vec<Write>) -> Ask {
    commit_reading(txn, txn.began, Vec::new(), writes)
}

fn commit_reading(txn: TxnId, read_at: CommitTs, spans: Vec<KeySpan>, writes: Vec<Write>) -> Ask {
    Ask::Commit(CommitAsk {
        txn,
        read_at,
        reads: Reads { points: Vec::new(), spans },
        locks: None,
        not_after: None,
        not_before: CommitTs::ZERO,
        writes,
        anchor: None,
    })
}

fn read(from: &str, to: &str) -> Ask {
    let span = KeySpan::new(key(from), key(to));
    Ask::Read { spans: vec![span], at: None, bytes: 1 << 20 }
}

fn shown(answer: Option<Answer>) -> String {
    let Some(Answer::Rows { rows, .. }) = answer else { return format!("{answer:?}") };
    let text =
        |bytes: &Bytes| String::from_utf8_lossy(bytes).trim_start_matches('\x01').to_string();
    let rows: Vec<String> = rows.iter().map(|(k, v)| format!("{}={}", text(k), text(v))).collect();
    rows.join(" ")
}

#[test]
fn a_commit_is_read_and_a_family_goes_with_one_delete() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    let txn = |number| TxnId { began: now, number };
    let writes = vec![put("a", "1"), put("a/x", "2"), put("b", "3")];
    assert!(matches!(cluster.ask(1, commit(txn(1), writes)), Some(Answer::Committed { .. })));
    assert_eq!(shown(cluster.ask(1, read("a", "c"))), "a=1 a/x=2 b=3");
    let family = Write::DeleteSpan(KeySpan::new(key("a"), key("b")));
    let erased = cluster.ask(1, commit(txn(2), vec![family, put("a", "4")]));
    let Some(Answer::Committed { at, .. }) = erased else { panic!("{erased:?}") };
    assert_eq!(shown(cluster.ask(1, read("a", "c"))), "a=4 b=3");
    let spans = vec![KeySpan::new(key("a"), key("c"))];
    let before = Ask::Read { spans, at: Some(CommitTs(at.0 - 1)), bytes: 1 << 20 };
    assert_eq!(shown(cluster.ask(1, before)), "a=1 a/x=2 b=3");
}

#[test]
fn asked_again_a_commit_happens_once_also_after_crashes_and_elsewhere() {
    let mut cluster = Cluster::new();
    let txn = TxnId { began: cluster.now(1), number: 7 };
    let again = commit(txn, vec![put("a", "1")]);
    let first = cluster.ask(1, again.clone()).expect("answered");
    assert!(matches!(first, Answer::Committed { .. }));
    let other = TxnId { began: cluster.now(1), number: 8 };
    cluster.ask(1, commit(other, vec![put("a", "2")])).expect("answered");
    assert_eq!(cluster.ask(1, again.clone()), Some(first.clone()));
    cluster.crash(1, CrashPolicy::LoseAll);
    cluster.pass(100, &[2, 3]);
    let leader = if cluster.describe(2).contains("leads") { 2 } else { 3 };
    assert_eq!(cluster.ask(leader, again.clone()), Some(first.clone()));
    cluster.restart(1);
    cluster.pass(10, &[1, 2, 3]);
    // What happened is true wherever it is known.
    assert_eq!(cluster.ask(1, again.clone()), Some(first));
    assert_eq!(shown(cluster.ask(leader, read("a", "b"))), "a=2");
    // Beyond the window nobody knows, and nobody tries.
    cluster.pass(250, &[1, 2, 3]);
    let later = TxnId { began: cluster.now(leader), number: 9 };
    cluster.ask(leader, commit(later, vec![put("a", "3")])).expect("answered");
    assert_eq!(cluster.ask(leader, again), Some(Answer::OutcomeUnknown));
}

#[test]
fn what_was_read_must_still_hold() {
    let mut cluster = Cluster::new();
    let read_at = cluster.now(1);
    let change = TxnId { began: read_at, number: 1 };
    cluster.pass(1, &[1]);
    let changed = cluster.ask(1, commit(change, vec![put("a/x", "1")]));
    let Some(Answer::Committed { at, .. }) = changed else { panic!("{changed:?}") };
    let txn = TxnId { began: read_at, number: 2 };
    let reads = vec![KeySpan::new(key("a"), key("b"))];
    let ask = |reads| commit_reading(txn, read_at, reads, vec![put("c", "2")]);
    let conflict = Conflict::ReadSpan(reads[0].clone());
    assert!(at > read_at);
    assert_eq!(cluster.ask(1, ask(reads)), Some(Answer::Conflict(conflict)));
    assert_eq!(shown(cluster.ask(1, read("c", "d"))), "");
    let untouched = vec![KeySpan::new(key("b"), key("c"))];
    assert!(matches!(cluster.ask(1, ask(untouched)), Some(Answer::Committed { .. })));
}

#[test]
fn nobody_serves_beyond_the_lease_and_nobody_before_it_is_over() {
    let mut cluster = Cluster::new();
    let txn = TxnId { began: cluster.now(1), number: 1 };
    cluster.ask(1, commit(txn, vec![put("a", "1")])).expect("answered");
    cluster.pass(1, &[1, 2, 3]);
    // n1 is alone: it serves what it has until its lease is over, and takes no writes.
    cluster.cut_off = vec![1];
    assert_eq!(shown(cluster.ask(1, read("a", "b"))), "a=1");
    let alone = TxnId { began: cluster.now(1), number: 2 };
    assert_eq!(cluster.ask(1, commit(alone, vec![put("a", "2")])), None);
    let (mut served, mut taken_over) = (0, 0);
    for tick in 1..=200 {
        cluster.pass(1, &[2, 3]);
        // The key that is being written waits; others are served.
        if shown(cluster.ask(1, read("b", "c"))).is_empty() {
            served = tick;
        }
        let holder = [2, 3].into_iter().find(|id| {
            let state = cluster.describe(*id);
            state.contains("leads") && state.contains("lease 2")
        });
        if taken_over == 0
            && let Some(holder) = holder
        {
            taken_over = tick;
            let txn = TxnId { began: cluster.now(holder), number: 3 };
            let written = cluster.ask(holder, commit(txn, vec![put("a", "3")]));
            assert!(matches!(written, Some(Answer::Committed { .. })), "{written:?}");
        }
    }
    assert!(served > 0 && served < taken_over, "served until {served}, taken over {taken_over}");
    // Back again, n1 learns that its write came to nothing, and what has happened instead.
    cluster.cut_off.clear();
    cluster.pass(20, &[1, 2, 3]);
    let lost: Vec<&Answer> = cluster.answers.iter().map(|(_, answer)| answer).collect();
    assert!(lost.contains(&&Answer::Again), "{lost:?}");
    let holder = if cluster.describe(2).contains("leads") { 2 } else { 3 };
    assert_eq!(shown(cluster.ask(holder, read("a", "b"))), "a=3");
}

/// Its place in the log was given to something else, and the log may never be that long again.
#[test]
fn a_lease_that_was_asked_for_and_lost_keeps_nobody_from_asking_again() {
    let mut cluster = Cluster::new();
    cluster.pass(45, &[1, 2, 3]);
    cluster.cut_off = vec![1];
    for number in 0..30 {
        let txn = TxnId { began: cluster.now(1), number };
        let writes = vec![put(&format!("a{number}"), "lost")];
        assert_eq!(cluster.ask(1, commit(txn, writes)), None);
    }
    // More than half of the lease is over: it is to be renewed, behind all of that.
    cluster.pass(3, &[1]);
    cluster.pass(200, &[2, 3]);
    let next = if cluster.describe(2).contains("leads") { 2 } else { 3 };
    cluster.cut_off.clear();
    cluster.pass(3, &[1, 2, 3]);
    // Now that one is away, and the first one leads again.
    cluster.cut_off = vec![next];
    cluster.pass(10, &[5 - next]);
    cluster.pass(200, &[1]);
    assert!(cluster.describe(1).contains("leads"), "{}", cluster.describe(1));
    assert_eq!(shown(cluster.ask(1, read("a", "b"))), "", "{}", cluster.describe(1));
}

#[test]
fn a_range_is_split_in_the_middle_of_its_life() {
    let mut cluster = Cluster::new();
    let txn = |cluster: &Cluster, number| TxnId { began: cluster.now(1), number };
    let old = commit(txn(&cluster, 1), vec![put("b", "1"), put("m", "1")]);
    let first = cluster.ask(1, old.clone()).expect("answered");
    assert!(matches!(first, Answer::Committed { .. }));
    let split = Ask::Split(Split { at: key("k"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split.clone()), Some(Answer::Again));
    let told = cluster.ask(1, split);
    let Some(Answer::WrongRange { known }) = told else { panic!("{told:?}") };
    let spans: Vec<_> = known.iter().map(|range| (range.id.0, range.span.clone())).collect();
    let (left, right) = (KeySpan::new("\x01", key("k")), KeySpan::new(key("k"), "\x01z"));
    assert_eq!(spans, [(1, left), (2, right)]);
    // Whoever is asked shows what it has.
    for id in 1..=3 {
        cluster.pass(2, &[1, 2, 3]);
        cluster.asked += 1;
        let number = cluster.asked;
        cluster.process(id).request(number, Request::of_node(Ask::ShowRanges)).expect("it runs");
        cluster.settle();
        let Some(Answer::ShownRanges(shown)) = cluster.answer(number) else { panic!("no ranges") };
        let of = |range: &ShownRange| (range.id, range.span.end.clone(), range.leaseholder);
        let ends = [(1, key("k"), Some(1)), (2, Bytes::from("\x01z"), Some(1))];
        assert_eq!(shown.iter().map(of).collect::<Vec<_>>(), ends);
        assert!(shown.iter().all(|range| range.replicas == [1, 2, 3]));
    }
    // The same process goes on serving both. What has happened is known on both sides, also of keys
    // that are on both sides now, where nobody can write any more.
    assert_eq!(cluster.ask_range(1, 1, old.clone()), Some(first.clone()));
    assert_eq!(cluster.ask_range(2, 1, old.clone()), Some(first.clone()));
    assert_eq!(shown(cluster.ask_range(2, 1, read("k", "z"))), "m=1");
    let across = commit(txn(&cluster, 2), vec![put("a", "2"), put("m", "2")]);
    for range in [1, 2] {
        let refused = cluster.ask_range(range, 1, across.clone());
        assert!(matches!(refused, Some(Answer::WrongRange { .. })), "{refused:?}");
    }
    cluster.pass(3, &[1, 2, 3]);
    let (a, m) = (commit(txn(&cluster, 3), vec![put("a", "3")]), put("m", "4"));
    assert!(matches!(cluster.ask(1, a), Some(Answer::Committed { .. })));
    let m = commit(txn(&cluster, 4), vec![m]);
    assert!(matches!(cluster.ask_range(2, 1, m), Some(Answer::Committed { .. })));
    // All of it stands in logs, whatever the stores had made durable.
    (1..=3).for_each(|id| cluster.crash(id, CrashPolicy::LoseAll));
    (1..=3).for_each(|id| cluster.restart(id));
    cluster.pass(150, &[1, 2, 3]);
    let mut found = Vec::new();
    for (range, from, to) in [(1, "a", "k"), (2, "k", "z")] {
        let rows = (1..=3).map(|id| cluster.ask_range(range, id, read(from, to)));
        let rows: Vec<String> = rows.map(shown).filter(|rows| rows.contains('=')).collect();
        found.extend(rows);
    }
    assert_eq!(found, ["a=3 b=1", "m=4"]);
    let again: Vec<_> = (1..=3).map(|id| cluster.ask_range(2, id, old.clone())).collect();
    assert!(again.contains(&Some(first)), "{again:?}");
}

#[test]
fn a_commit_that_was_proposed_behind_a_split_of_its_keys_comes_to_nothing() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    let txn = |number| TxnId { began: now, number };
    cluster.pass(1, &[1, 2, 3]);
    // n1 hears nobody: the split stays in its log, and two commits come behind it.
    cluster.cut_off = vec![2, 3];
    let split = Ask::Split(Split { at: key("k"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split), None);
    let (left, right) = (commit(txn(1), vec![put("a", "1")]), commit(txn(2), vec![put("m", "2")]));
    assert_eq!((cluster.ask(1, left), cluster.ask(1, right.clone())), (None, None));
    let (of_left, of_right) = (cluster.asked - 1, cluster.asked);
    cluster.cut_off.clear();
    cluster.pass(4, &[1, 2, 3]);
    assert!(matches!(cluster.answer(of_left), Some(Answer::Committed { .. })));
    assert_eq!(cluster.answer(of_right), Some(Answer::Again), "the key is another range's now");
    assert_eq!(shown(cluster.ask_range(2, 1, read("k", "z"))), "");
    // So it is asked for again where the key is, and happens there, once.
    let first = cluster.ask_range(2, 1, right.clone());
    assert!(matches!(first, Some(Answer::Committed { .. })), "{first:?}");
    assert_eq!(cluster.ask_range(2, 1, right), first);
    assert_eq!(shown(cluster.ask_range(2, 1, read("k", "z"))), "m=2");
    assert_eq!(shown(cluster.ask(1, read("a", "k"))), "a=1");
}

/// Families of so many rows of 1,000 bytes, and where the ranges are split then.
fn splits_of(families: &[(&str, u64)]) -> Vec<String> {
    let mut cluster = Cluster::new();
    let mut number = 0;
    for (family, rows) in families {
        for row in 0..*rows {
            number += 1;
            let txn = TxnId { began: cluster.now(1), number };
            let name = key(&format!("{family}/{:03}/{:03}", row / 10, row % 10));
            // Bytes that no codec makes smaller.
            let mut random = Random::seeded(number);
            let value: Vec<u8> = (0..1_000).map(|_| random.below(256) as u8).collect();
            let ask = commit(txn, vec![Write::Put(name.clone(), value.into())]);
            // Whatever range has it now.
            let ranges = cluster.process(1).ranges();
            let range = ranges.into_iter().find(|(range, _)| range.span.contains(&name));
            let range = range.expect("ranges have all keys").0.id.0;
            let done = cluster.ask_range(range, 1, ask);
            assert!(matches!(done, Some(Answer::Committed { .. })), "{done:?}");
            if number % 20 == 0 {
                cluster.nodes.iter_mut().for_each(|node| {
                    node.process.as_mut().expect("it runs").store().flush().expect("it flushes");
                });
                cluster.work();
                cluster.pass(12, &[1, 2, 3]);
            }
        }
    }
    cluster.pass(60, &[1, 2, 3]);
    let starts = |cluster: &mut Cluster, id| {
        let ranges = cluster.process(id).ranges();
        let mut starts: Vec<Bytes> =
            ranges.into_iter().map(|(range, _)| range.span.start).collect();
        starts.sort();
        starts
    };
    let first = starts(&mut cluster, 1);
    assert_eq!((starts(&mut cluster, 2), starts(&mut cluster, 3)), (first.clone(), first.clone()));
    let text = |start: &Bytes| String::from_utf8_lossy(&start[1..]).into_owned();
    first[1..].iter().map(text).collect()
}

#[test]
fn ranges_are_split_between_families_and_inside_of_one_that_is_larger_than_a_range() {
    let small = [("a", 20), ("b", 20), ("c", 20), ("d", 20), ("e", 20), ("f", 20), ("g", 20)];
    let splits = splits_of(&small);
    assert!(splits.len() >= 2, "{splits:?}");
    assert!(splits.iter().all(|at| !at.contains('/')), "only between families: {splits:?}");
    // One of them is three times a range: it is split inside, between its inner families.
    let splits = splits_of(&[("a", 10), ("b", 150), ("c", 10)]);
    assert!(splits.contains(&"b".to_string()), "{splits:?}");
    let inside: Vec<&String> = splits.iter().filter(|at| at.contains('/')).collect();
    assert!(inside.len() >= 2 && inside.iter().all(|at| at.len() == "b/000".len()), "{splits:?}");
}

const LONG: &str =
    "................................................................................";

#[test]
fn a_replica_that_was_away_for_long_gets_its_entries_from_files() {
    let mut cluster = Cluster::new();
    cluster.pass(1, &[1, 2, 3]);
    cluster.cut_off = vec![3];
    for number in 0..400 {
        let txn = TxnId { began: cluster.now(1), number };
        let done = cluster.ask(1, commit(txn, vec![put(&format!("k{number:03}"), LONG)]));
        assert!(matches!(done, Some(Answer::Committed { .. })), "{done:?}");
        if number % 50 == 0 {
            cluster.pass(1, &[1, 2]);
            cluster.work();
        }
    }
    assert!(cluster.describe(1).contains("in files only"), "{}", cluster.describe(1));
    // The other one starts anew and finds the same in its files.
    cluster.crash(2, CrashPolicy::LoseAll);
    cluster.restart(2);
    cluster.cut_off.clear();
    cluster.pass(10, &[1, 2, 3]);
    cluster.work();
    cluster.pass(2, &[1, 2, 3]);
    let applied: Vec<_> = (1..=3).map(|id| cluster.process(id).ranges()[0].1).collect();
    assert!(applied.iter().all(|index| *index == applied[0] && index.0 > 400), "{applied:?}");
    let rows = |cluster: &mut Cluster, id| {
        let view = cluster.process(id).store().view(CommitTs(u64::MAX - 1)).expect("it is open");
        let span = KeySpan::new(key("k"), key("l"));
        let mut scan = view.scan(span, ScanOptions::default()).expect("it reads");
        let mut count = 0;
        while scan.next_row().expect("it reads").is_some() {
            count += 1;
        }
        count
    };
    assert_eq!([1, 2, 3].map(|id| rows(&mut cluster, id)), [400; 3]);
}

#[test]
fn a_store_without_room_holds_up_commits_and_nothing_else() {
    let mut cluster = Cluster::new();
    let big = |number: u64| Write::Put(key(&format!("k{number}")), Bytes::from(vec![7; 30_000]));
    let mut waits = None;
    for number in 0..20 {
        let txn = TxnId { began: cluster.now(1), number };
        if cluster.ask(1, commit(txn, vec![big(number)])).is_none() {
            waits = Some((cluster.asked, number));
            break;
        }
    }
    let (asked, count) = waits.expect("nobody flushes, and memory is full");
    assert!(cluster.describe(1).contains(" 1 to apply"), "{}", cluster.describe(1));
    // The lease goes on being served, longer than it was granted for at first; elections do not
    // begin.
    cluster.pass(30, &[1, 2, 3]);
    assert!(cluster.describe(1).contains("leads t1,"), "{}", cluster.describe(1));
    assert_eq!(shown(cluster.ask(1, read("a", "b"))), "");
    assert_eq!(cluster.answer(asked), None);
    cluster.work();
    cluster.pass(2, &[1, 2, 3]);
    assert!(matches!(cluster.answer(asked), Some(Answer::Committed { .. })));
    let spans = vec![KeySpan::new(key("k"), key("l"))];
    let all = cluster.ask(1, Ask::Read { spans, at: None, bytes: 10 << 20 });
    let Some(Answer::Rows { rows, .. }) = all else { panic!("{all:?}") };
    assert_eq!(rows.len() as u64, count + 1);
}

#[test]
fn what_cannot_be_served_is_refused_by_name() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    let txn = |number| TxnId { began: now, number };
    let follower = cluster.ask(2, read("a", "b"));
    assert_eq!(follower, Some(Answer::NotHolder { try_node: Some(NodeId(1)) }));
    let outside = cluster.ask(1, commit(txn(1), vec![put("zz", "1")]));
    assert_eq!(outside, Some(Answer::WrongRange { known: vec![descriptor()] }));
    let local = Write::Put(Bytes::from_static(b"\0n"), Bytes::new());
    let refused = cluster.ask(1, commit(txn(2), vec![local]));
    assert!(format!("{refused:?}").contains("the node's own"), "{refused:?}");
    let long = Write::Put(Bytes::from(vec![1; 70_000]), Bytes::new());
    let refused = cluster.ask(1, commit(txn(3), vec![long]));
    assert!(format!("{refused:?}").contains("longer than 65536"), "{refused:?}");
    let future = TxnId { began: CommitTs(now.0 + (1 << 40)), number: 4 };
    let refused = cluster.ask(1, commit(future, vec![put("a", "1")]));
    assert!(format!("{refused:?}").contains("clock"), "{refused:?}");
    let number = cluster.asked + 1;
    let elsewhere = Request { range: RangeId(9), ask: read("a", "b") };
    cluster.process(1).request(number, elsewhere).expect("nothing fails");
    cluster.settle();
    assert_eq!(cluster.answer(number), Some(Answer::NoReplica));
    assert_eq!(shown(cluster.ask(1, read("a", "z"))), "", "nothing of it was written");
}

#[test]
fn a_long_answer_comes_in_parts() {
    let mut cluster = Cluster::new();
    let writes = (0..20).map(|n| put(&format!("k{n:02}"), "0123456789")).collect();
    let txn = TxnId { began: cluster.now(1), number: 1 };
    cluster.ask(1, commit(txn, writes)).expect("answered");
    let mut spans = vec![KeySpan::new(key("k"), key("k05")), KeySpan::new(key("k05"), key("l"))];
    let (mut at, mut count, mut parts) = (None, 0, 0);
    while !spans.is_empty() {
        let answer = cluster.ask(1, Ask::Read { spans, at, bytes: 50 });
        let Some(Answer::Rows { at: then, rows, rest }) = answer else { panic!("{answer:?}") };
        assert!(!rows.is_empty() && at.is_none_or(|at| at == then));
        (at, count, spans, parts) = (Some(then), count + rows.len(), rest, parts + 1);
    }
    assert_eq!((count, parts > 5), (20, true));
}
