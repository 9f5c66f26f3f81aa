//! Groups told in scripts: `testscripts/group/*.txt`.
//!
//! ```text
//!   replicas r1 r2 r3        a new group of these voters
//!   tick r1 25               time passes for one replica
//!   campaign r1              it asks for votes now
//!   patience r1              for how long it hears of nobody before it looks for votes
//!   propose r1 word          to one replica
//!   settle                   messages arrive and disks work until nothing is left to do
//!   deliver r2               only the messages for r2 arrive
//!   disk r1                  what r1 has appended is durable now
//!   slow disk r1             from now on r1's disk works only when told; `fast disk r1` ends it
//!   cut off r1               nothing reaches r1 or comes from it; `heal` ends it
//!   crash r1                 it starts anew with what was durable, and what it has applied
//!   change r1 +r4 ~r2 -r3    r1 proposes: r4 a voter, r2 a learner, r3 gone
//!   join r4                  a replica that has nothing yet
//!   transfer r1 r2           r1 hands leadership to r2
//!   forget r1 i3             r1 drops its log up to there
//!   give r1 r3               r3 gets the state of r1, and begins anew behind it
//!   wake r1 15               it was not ticked, and has heard of its leader so many ticks ago
//!   rest                     who has nothing to do
//!   state                    one line for each replica
//! ```
//! Printed is what is sent, appended, applied and refused.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use braid_consensus::{
    Append, Entry, EntryKind, Group, GroupOptions, GroupStart, LogIndex, Message, ReplicaChange,
    ReplicaId, ReplicaSet,
};
use braid_env::random::Random;

struct Peer {
    group: Group,
    /// What a crash leaves, without what was applied.
    durable: GroupStart,
    on_the_way: VecDeque<Append>,
    slow: bool,
    replicas: ReplicaSet,
    applied: LogIndex,
    words: Vec<String>,
}

#[derive(Default)]
struct Scene {
    peers: BTreeMap<ReplicaId, Peer>,
    messages: Vec<Message>,
    cut_off: BTreeSet<ReplicaId>,
    starts: u64,
    out: Vec<String>,
}

fn replica(word: &str) -> ReplicaId {
    ReplicaId(word.trim_start_matches('r').parse().expect("a replica, like r1"))
}

fn open(id: ReplicaId, start: GroupStart, seed: u64) -> Group {
    Group::open(id, GroupOptions::default(), start, Random::seeded(seed)).expect("it fits")
}

impl Scene {
    fn add(&mut self, id: ReplicaId, replicas: ReplicaSet) {
        self.starts += 1;
        let durable = GroupStart { replicas: replicas.clone(), ..GroupStart::default() };
        let group = open(id, durable.clone(), self.starts);
        let peer = Peer {
            group,
            durable,
            on_the_way: VecDeque::new(),
            slow: false,
            replicas,
            applied: LogIndex(0),
            words: Vec::new(),
        };
        self.peers.insert(id, peer);
    }

    fn peer(&mut self, word: &str) -> &mut Peer {
        self.peers.get_mut(&replica(word)).expect("it was made")
    }

    /// Takes up effects of all replicas; whether there were any.
    fn take_effects(&mut self) -> bool {
        let mut any = false;
        for id in self.peers.keys().copied().collect::<Vec<_>>() {
            let effects = self.peers.get_mut(&id).expect("listed").group.effects();
            self.send(effects.send);
            for append in effects.appends {
                any = true;
                if !append.entries.is_empty() {
                    self.out.push(format!("{id} appends {:?}", append.entries));
                }
                self.peers.get_mut(&id).expect("listed").on_the_way.push_back(append);
            }
            for follower in effects.behind {
                self.out.push(format!("{id} finds {follower} behind its log"));
            }
            for entry in effects.apply {
                any = true;
                self.apply(id, &entry);
            }
            if !self.peers[&id].slow {
                self.disk(id);
            }
        }
        any
    }

    fn apply(&mut self, id: ReplicaId, entry: &Entry) {
        let peer = self.peers.get_mut(&id).expect("listed");
        self.out.push(format!("{id} applies {entry:?}"));
        if entry.kind == EntryKind::Replicas {
            peer.replicas = peer.group.apply_replicas(entry).expect("it was proposed");
            self.out.push(format!("{id} knows {}", peer.replicas));
        } else if !entry.data.is_empty() {
            peer.words.push(String::from_utf8_lossy(&entry.data).into_owned());
        }
        assert!(peer.applied < entry.index, "applied twice");
        peer.applied = entry.index;
        peer.group.applied(entry.index);
    }

    fn disk(&mut self, id: ReplicaId) {
        let peer = self.peers.get_mut(&id).expect("listed");
        let mut sent = Vec::new();
        while let Some(append) = peer.on_the_way.pop_front() {
            if let Some(first) = append.entries.first() {
                peer.durable.entries.retain(|entry| entry.index < first.index);
                peer.durable.entries.extend(append.entries);
            }
            peer.durable.hard_state = append.hard_state.unwrap_or(peer.durable.hard_state);
            peer.group.persisted(append.number);
            sent.extend(append.send);
        }
        self.send(sent);
    }

    fn send(&mut self, messages: Vec<Message>) {
        for message in messages {
            let lost = [message.from(), message.to()].iter().any(|id| self.cut_off.contains(id));
            self.out.push(format!("{message:?}{}", if lost { " (lost)" } else { "" }));
            if !lost {
                // What arrives was encoded.
                let copy = Message::decode(&message.encode()).expect("we encoded it");
                assert!(copy == message);
                self.messages.push(copy);
            }
        }
    }

    /// Messages arrive; whether there were any.
    fn deliver(&mut self, wanted: impl Fn(ReplicaId) -> bool) -> bool {
        let (now, later) = std::mem::take(&mut self.messages)
            .into_iter()
            .partition::<Vec<_>, _>(|message| wanted(message.to()));
        self.messages = later;
        for message in &now {
            if let Some(peer) = self.peers.get_mut(&message.to()) {
                peer.group.receive(message.clone()).expect("it is for this replica");
            }
        }
        !now.is_empty()
    }

    fn settle(&mut self) {
        while self.take_effects() | self.deliver(|_| true) {}
    }

    fn crash(&mut self, word: &str) {
        let id = replica(word);
        self.starts += 1;
        let peer = self.peers.get_mut(&id).expect("it was made");
        peer.on_the_way.clear();
        peer.durable.applied = peer.applied;
        peer.durable.replicas = peer.replicas.clone();
        peer.group = open(id, peer.durable.clone(), self.starts);
        self.messages.retain(|message| message.to() != id);
    }

    fn give(&mut self, from: &str, to: &str) {
        let (giver, leader) = (&self.peers[&replica(from)], replica(from));
        let (applied, words) = (giver.applied, giver.words.clone());
        let at = (applied, giver.group.term_of(applied).expect("it was applied"));
        self.starts += 1;
        let seed = self.starts;
        let peer = self.peer(to);
        let hard_state = peer.group.hard_state();
        let replicas = peer.replicas.clone();
        let start = GroupStart { hard_state, replicas, applied, cut: at, ..GroupStart::default() };
        peer.group = open(replica(to), start.clone(), seed);
        peer.on_the_way.clear();
        (peer.durable, peer.applied, peer.words) = (start, applied, words);
        let message = peer.group.say_has(leader, applied);
        self.send(vec![message]);
    }

    fn forget(&mut self, word: &str, index: &str) {
        let index = LogIndex(index.trim_start_matches('i').parse().expect("a place, like i3"));
        let peer = self.peer(word);
        peer.durable.cut = peer.group.cut(index);
        let cut = peer.durable.cut.0;
        peer.durable.entries.retain(|entry| entry.index > cut);
    }

    fn command(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let mut refused = None;
        match words.as_slice() {
            ["replicas", ids @ ..] => {
                let set = ReplicaSet::of_voters(ids.iter().map(|id| replica(id)));
                ids.iter().for_each(|id| self.add(replica(id), set.clone()));
            }
            ["join", id] => {
                let voters = self.peers.values().next().expect("a group").replicas.clone();
                self.add(replica(id), voters);
            }
            ["tick", id, count] => {
                for _ in 0..count.parse().expect("a number") {
                    self.peer(id).group.tick();
                    self.take_effects();
                }
            }
            ["patience", id] => {
                let peer = self.peer(id);
                let mut ticks = 1;
                while !peer.group.is_about_to_campaign() {
                    peer.group.tick();
                    ticks += 1;
                }
                let ticks = ticks / 10 * 10;
                self.out.push(format!("{id} waits for {ticks} ticks or a little more"));
                self.command(&format!("tick {id} 1"));
            }
            ["campaign", id] => refused = self.peer(id).group.campaign().err(),
            ["propose", id, word] => {
                refused = self.peer(id).group.propose(word.as_bytes().to_vec()).err();
            }
            ["change", id, changes @ ..] => {
                let changes: Vec<ReplicaChange> = changes.iter().map(|word| change(word)).collect();
                refused = self.peer(id).group.change_replicas(&changes, Vec::new()).err();
            }
            ["transfer", id, to] => self.peer(id).group.transfer_leadership(replica(to)),
            ["settle"] => self.settle(),
            ["deliver", id] => {
                self.deliver(|to| to == replica(id));
            }
            ["disk", id] => self.disk(replica(id)),
            ["slow", "disk", id] => self.peer(id).slow = true,
            ["fast", "disk", id] => self.peer(id).slow = false,
            ["cut", "off", id] => {
                self.cut_off.insert(replica(id));
                self.messages.retain(|m| m.from() != replica(id) && m.to() != replica(id));
            }
            ["heal"] => self.cut_off.clear(),
            ["crash", id] => self.crash(id),
            ["give", from, to] => self.give(from, to),
            ["wake", id, count] => self.peer(id).group.wake(count.parse().expect("a number")),
            ["rest"] => {
                let line = |(id, peer): (&ReplicaId, &Peer)| match peer.group.at_rest() {
                    Some((term, last)) => format!("{id} rests, {term} {last}"),
                    None => format!("{id} does not rest"),
                };
                self.out.extend(self.peers.iter().map(line).collect::<Vec<_>>());
            }
            ["forget", id, index] => self.forget(id, index),
            ["state"] => {
                let lines = self.peers.values().map(|peer| {
                    let words: String = peer.words.iter().map(|word| format!(", {word}")).collect();
                    format!("{}{words}", peer.group.describe())
                });
                self.out.extend(lines);
            }
            _ => panic!("no command: {line}"),
        }
        self.out.extend(refused.map(|error| error.to_string()));
        if words[0] != "settle" {
            self.take_effects();
        }
    }
}

fn change(word: &str) -> ReplicaChange {
    let (sign, id) = word.split_at(1);
    match sign {
        "+" => ReplicaChange::Voter(replica(id)),
        "~" => ReplicaChange::Learner(replica(id)),
        "-" => ReplicaChange::Remove(replica(id)),
        _ => panic!("no change: {word}"),
    }
}

#[test]
fn groups_are_as_the_scripts_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testscripts/group");
    braid_script::check(&folder, Scene::default, |scene: &mut Scene, lines: &[&str]| {
        lines.iter().for_each(|line| scene.command(line));
        std::mem::take(&mut scene.out).join("\n")
    });
}
