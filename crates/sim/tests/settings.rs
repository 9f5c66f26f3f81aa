//! Cluster settings among simulated nodes: words are lost, late and doubled, links are cut, also in
//! one direction, nodes crash with torn disks.
//!
//! One register stands for the store: whoever reaches a majority reads and writes it in one step.
//! What is asked: no node ever goes by an older version than it has gone by, also behind a crash;
//! what it goes by is what was set in that version; while nothing is cut, all that live go by a
//! change within a second, and within two once cuts are healed.
//!
//! `BRAID_SEEDS=10000 cargo test --workspace --test settings` is the long form.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use braid_cluster::{News, Word};
use braid_env::fs::{CrashPolicy, FileSystem, MemFs};
use braid_env::random::Random;
use braid_range::NodeId;
use braid_settings::{DiskCopy, Live, Picture, Stored};

/// Milliseconds of a step of time.
const STEP: u64 = 10;
/// A node says what it knows at least so often.
const SAYS_EVERY: u64 = 500;
/// From a change to its last node, with nothing cut; and behind a cut.
const QUIET_MS: u64 = 1_000;
const HEALED_MS: u64 = 2_000;
/// With words lost each way nothing is sure within a second: such runs ask for this.
const LOSSY_MS: u64 = 5_000;

struct Node {
    disk: MemFs,
    /// `None`: it has crashed.
    process: Option<(Live, News)>,
    /// The newest version that it has ever gone by.
    seen: u64,
    says_at: u64,
    back_at: u64,
}

fn digest(_: &str, _: braid_settings::Match) -> u64 {
    0
}

fn open(disk: &MemFs) -> (Live, News) {
    let fs: Arc<dyn FileSystem> = Arc::new(disk.clone());
    fs.create_dir_all(Path::new("/n")).expect("a folder");
    let live = Live::open(Some(DiskCopy::new(fs, "/n")), digest).expect("a disk");
    let news = News::default();
    news.goes_by(live.version());
    (live, news)
}

struct World {
    random: Random,
    now: u64,
    nodes: Vec<Node>,
    /// The store.
    stored: Picture,
    /// What each version has set.
    history: BTreeMap<u64, String>,
    /// On their way: when they come, to whom, from whom.
    words: Vec<(u64, usize, usize, Word)>,
    /// Links that are cut, by direction.
    cut: BTreeMap<(usize, usize), u64>,
    loss_percent: u64,
    last_change: u64,
    last_healed: u64,
}

impl World {
    fn new(seed: u64, count: usize) -> World {
        let mut random = Random::seeded(seed);
        let loss_percent = [0, 0, 10, 30][random.below(4) as usize];
        let node = |_| {
            let disk = MemFs::new();
            let process = Some(open(&disk));
            Node { disk, process, seen: 0, says_at: 0, back_at: 0 }
        };
        World {
            random,
            now: 0,
            nodes: (0..count).map(node).collect(),
            stored: Picture::default(),
            history: BTreeMap::from([(0, String::new())]),
            words: Vec::new(),
            cut: BTreeMap::new(),
            loss_percent,
            last_change: 0,
            last_healed: 0,
        }
    }

    fn hears(&self, from: usize, to: usize) -> bool {
        from == to || !self.cut.contains_key(&(from, to))
    }

    /// Whether a node reaches a majority, there and back.
    fn has_majority(&self, node: usize) -> bool {
        let reached = (0..self.nodes.len()).filter(|other| {
            let lives = self.nodes[*other].process.is_some();
            lives && self.hears(node, *other) && self.hears(*other, node)
        });
        reached.count() > self.nodes.len() / 2
    }

    fn say(&mut self, from: usize) {
        let Some((_, news)) = &self.nodes[from].process else { return };
        let word = news.word();
        self.nodes[from].says_at = self.now + SAYS_EVERY;
        for to in 0..self.nodes.len() {
            let copies = 1 + usize::from(self.random.below(10) == 0);
            for _ in 0..copies {
                let lost = self.random.below(100) < self.loss_percent;
                if to != from && !lost && self.hears(from, to) {
                    let late = if self.random.below(20) == 0 { 400 } else { 20 };
                    let at = self.now + 1 + self.random.below(late);
                    self.words.push((at, to, from, word));
                }
            }
        }
    }

    /// Takes what the store holds, as a node's thread does.
    fn read(&mut self, node: usize) {
        if !self.has_majority(node) {
            return;
        }
        // A read may be answered late: it is older then than what others have read since.
        let picture = self.stored.clone();
        self.take(node, picture);
    }

    fn take(&mut self, node: usize, picture: Picture) {
        let version = picture.version;
        let one = &mut self.nodes[node];
        let Some((live, news)) = &one.process else { return };
        live.take(picture).expect("a disk");
        let is_new = news.goes_by(version);
        assert!(live.version() >= one.seen, "node {node} goes back to {}", live.version());
        one.seen = live.version();
        assert_eq!(live.value("sql.defaults.search_path"), self.history[&one.seen], "node {node}");
        if is_new {
            self.say(node);
        }
    }

    fn change(&mut self, node: usize) {
        if self.nodes[node].process.is_none() || !self.has_majority(node) {
            return;
        }
        let version = self.stored.version + 1;
        let value = format!("s{}", self.random.below(1_000));
        let stored = Stored {
            value: value.clone(),
            version,
            before: None,
            at_micros: self.now as i64,
            by: "root".into(),
        };
        self.stored.version = version;
        self.stored.values.insert("sql.defaults.search_path".into(), stored);
        self.history.insert(version, value);
        self.last_change = self.now;
        let picture = self.stored.clone();
        self.take(node, picture);
    }

    fn crash(&mut self, node: usize) {
        let one = &mut self.nodes[node];
        if one.process.take().is_none() {
            return;
        }
        let percent = self.random.below(101) as u8;
        let policies = [CrashPolicy::LoseAll, CrashPolicy::Random(percent), CrashPolicy::LoseNames];
        let policy = policies[self.random.below(3) as usize];
        one.disk = one.disk.crash_clone(&mut self.random, policy);
        one.back_at = self.now + 50 + self.random.below(2_000);
        self.last_healed = self.last_healed.max(one.back_at);
    }

    fn cut_something(&mut self) {
        let count = self.nodes.len() as u64;
        let (one, both) = (self.random.below(count) as usize, self.random.below(2) == 0);
        let until = self.now + 100 + self.random.below(3_000);
        for other in 0..self.nodes.len() {
            if other != one && self.random.below(2) == 0 {
                self.cut.insert((one, other), until);
                if both {
                    self.cut.insert((other, one), until);
                }
            }
        }
    }

    fn step(&mut self, trouble: bool) {
        self.now += STEP;
        let before = self.cut.len();
        let now = self.now;
        self.cut.retain(|_, until| *until > now);
        if self.cut.len() < before {
            self.last_healed = now;
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].process.is_none() && self.nodes[node].back_at <= now {
                let (live, news) = open(&self.nodes[node].disk);
                assert!(live.version() >= self.nodes[node].seen, "node {node} has forgotten");
                self.nodes[node].process = Some((live, news));
                // It serves nobody before it has read.
                self.read(node);
            }
        }
        let (due, later) = self.words.drain(..).partition(|word| word.0 <= now);
        self.words = later;
        let due: Vec<(u64, usize, usize, Word)> = due;
        for (_, to, from, word) in due {
            if let Some((_, news)) = &self.nodes[to].process {
                news.hear(NodeId(from as u64 + 1), word, now * 1_000_000);
            }
        }
        for node in 0..self.nodes.len() {
            let Some((live, news)) = &self.nodes[node].process else { continue };
            if news.word().newest > live.version() {
                self.read(node);
            }
            if self.nodes[node].says_at <= now {
                self.say(node);
            }
        }
        if !trouble {
            return;
        }
        let node = self.random.below(self.nodes.len() as u64) as usize;
        match self.random.below(200) {
            0..4 => self.change(node),
            4 => self.crash(node),
            5 => self.cut_something(),
            _ => {}
        }
    }

    fn all_agree(&self) -> bool {
        let version = self.stored.version;
        let goes_by = |node: &Node| node.process.as_ref().map(|(live, _)| live.version());
        self.nodes.iter().filter_map(goes_by).all(|own| own == version)
    }

    /// Lets time pass until all agree; how long that took since the last thing that was in the way.
    fn settle(&mut self) -> u64 {
        let are_there = self.nodes.iter().all(|node| node.process.is_some());
        if are_there && self.all_agree() {
            return 0;
        }
        while !(self.all_agree() && self.nodes.iter().all(|node| node.process.is_some())) {
            self.step(false);
            assert!(self.now < self.last_change.max(self.last_healed) + 60_000, "never");
        }
        self.now.saturating_sub(self.last_change.max(self.last_healed))
    }
}

fn seeds() -> u64 {
    std::env::var("BRAID_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(200)
}

#[test]
fn nobody_goes_back_and_all_hear_of_it() {
    let (mut changes, mut slowest) = (0, [0; 2]);
    for seed in 0..seeds() {
        let mut world = World::new(seed, [3, 5, 9][seed as usize % 3]);
        for _ in 0..1_500 {
            world.step(true);
        }
        let took = world.settle();
        let lossy = world.loss_percent > 0;
        let most = if lossy { LOSSY_MS } else { HEALED_MS };
        assert!(took <= most, "seed {seed}: {took} ms, {} % lost", world.loss_percent);
        slowest[usize::from(lossy)] = slowest[usize::from(lossy)].max(took);
        changes += world.stored.version;
    }
    assert!(changes > 10 * seeds(), "{changes} changes");
    println!(
        "{changes} changes; behind the last trouble at most {slowest:?} ms (nothing, words lost)"
    );
}

#[test]
fn without_trouble_a_change_is_everywhere_within_a_second() {
    let mut slowest = 0;
    for seed in 0..seeds() {
        let mut world = World::new(seed, 9);
        world.loss_percent = 0;
        for _ in 0..20 {
            (0..world.random.below(40)).for_each(|_| world.step(false));
            let node = world.random.below(9) as usize;
            world.change(node);
            let took = world.settle();
            assert!(took <= QUIET_MS, "seed {seed}: {took} ms");
            slowest = slowest.max(took);
        }
        assert_eq!(world.stored.version, 20);
    }
    println!("at most {slowest} ms of simulated time");
}
