//! Room on the nodes' disks: who is short of it leads nothing, and who has none stands still.
//!
//! ```text
//!   free    enough         short                         out
//!           as ever        gives its leases away,        takes part in nothing, and writes
//!                          still follows                 nothing: as if it were silent
//!   ────────────────────┼────────────────────────────┼──────────────────────────────►
//!                    2 reserves                   half of one
//! ```
//!
//! A replica cannot refuse what is committed, and a log that could not be written is worth nothing
//! any more. So a node stops in front of that, and goes on by itself when there is room again: to
//! the others it was away for a while.
//!
//! 1. Where the other replicas have room a short one does no harm: a majority goes on without it.
//! 2. Where fewer than a majority have room the leaseholder refuses what adds data. What little
//!    else is written (leases, deletes) has what is left, and reads go on.
//! 3. From one state to a better one it takes more room than it had when it got worse: it does not
//!    go to and fro.
//! 4. A short node says so with every tick. It is taken for short until something else is heard of
//!    it for a while, and not that: who is silent since then has no room at all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use braid_env::fs::FileSystem;
use parking_lot::Mutex;

use crate::command::Write;
use crate::ids::{NodeId, RangeDescriptor, RangeId};
use crate::raft_snapshot::Said;
use crate::replicas::Replicas;
use crate::request::{Answer, Ask, Request, RequestNumber};

/// How much room a node's disk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Room {
    /// As much as anybody may want.
    #[default]
    Enough,
    /// Little: the node gives its leases away.
    Short,
    /// So little that the node writes nothing.
    Out,
}

/// Free bytes below which a disk has little room, and none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomFloors {
    /// Below this it is [`Room::Short`].
    pub short: u64,
    /// Below this it is [`Room::Out`]; 0: never.
    pub out: u64,
}

impl RoomFloors {
    /// For a store that holds so much back on its disk ([`braid_lsm::Options::ballast_size`]).
    pub fn of_reserve(bytes: u64) -> RoomFloors {
        RoomFloors { short: 2 * bytes, out: bytes / 2 }
    }
}

/// Looks at the disks of a node.
pub struct RoomWatch {
    fs: Arc<dyn FileSystem>,
    dirs: Vec<PathBuf>,
    floors: RoomFloors,
    seen: Room,
}

impl RoomWatch {
    /// Of the disks on which these directories are.
    pub fn new(fs: Arc<dyn FileSystem>, dirs: Vec<PathBuf>, floors: RoomFloors) -> RoomWatch {
        RoomWatch { fs, dirs, floors, seen: Room::Enough }
    }

    /// What there is now, of the fullest one. A disk that does not say is as it was.
    pub fn look(&mut self) -> Room {
        let free = |dir: &PathBuf| self.fs.space(dir).ok().map(|space| space.free);
        let Some(free) = self.dirs.iter().filter_map(free).min() else { return self.seen };
        let more = |floor: u64| floor + floor / 2;
        let RoomFloors { short, out } = self.floors;
        let (short, out) = match self.seen {
            Room::Enough => (short, out),
            Room::Short => (more(short), out),
            Room::Out => (more(short), more(out)),
        };
        self.seen = match free {
            free if free < out => Room::Out,
            free if free < short => Room::Short,
            _ => Room::Enough,
        };
        self.seen
    }
}

/// Who was heard to be short, and not for so many ticks, is not.
const SHORT_TICKS: u64 = 10;

/// The nodes whose disks have little room, as far as one of them knows.
#[derive(Default)]
pub struct ShortNodes {
    /// In which tick they have said so last.
    nodes: Mutex<BTreeMap<NodeId, u64>>,
    own: Mutex<Room>,
}

impl ShortNodes {
    /// Whether a node has said so last.
    pub fn has(&self, node: NodeId) -> bool {
        self.nodes.lock().contains_key(&node)
    }

    /// What room the node itself has.
    pub fn own(&self) -> Room {
        *self.own.lock()
    }

    /// A node has said that it is short.
    pub(crate) fn hear(&self, node: NodeId, now: u64) {
        self.nodes.lock().insert(node, now);
    }

    /// A node has said something.
    pub(crate) fn hear_else(&self, node: NodeId, now: u64) {
        let mut nodes = self.nodes.lock();
        if nodes.get(&node).is_some_and(|said| said + SHORT_TICKS < now) {
            nodes.remove(&node);
        }
    }

    fn has_room(&self, node: NodeId) {
        self.nodes.lock().remove(&node);
    }
}

/// Whether less than a majority of a range's voters has room, for what adds data.
fn lacks_room(range: &RangeDescriptor, short: &ShortNodes) -> bool {
    let nodes = short.nodes.lock();
    let with_room = range.replicas.iter().filter(|(_, node)| !nodes.contains_key(node)).count();
    !nodes.is_empty() && 2 * with_room <= range.replicas.len()
}

/// Whether writes add data.
pub(crate) fn puts(writes: &[Write]) -> bool {
    writes.iter().any(|write| matches!(write, Write::Put(..)))
}

/// Whether a request only looks at what the node knows, and writes nothing.
fn only_looks(ask: &Ask) -> bool {
    matches!(ask, Ask::Clock | Ask::Ranges | Ask::ShowRanges | Ask::UnfinishedRanges)
}

impl Replicas {
    /// Whoever drives this has looked at the disk. While it is out of room nothing is to be called
    /// but this and [`Replicas::request_without_room`], and what is durable meanwhile is said
    /// later.
    pub fn note_room(&mut self, room: Room) {
        let before = std::mem::replace(&mut *self.moves.short.own.lock(), room);
        if before == room {
            return;
        }
        let own = self.options.node;
        match room {
            Room::Enough => self.moves.short.has_room(own),
            Room::Short | Room::Out => {
                self.moves.short.hear(own, self.counts.ticks);
                self.say_short();
            }
        }
    }

    /// Who has little room, for others to look at.
    pub fn short_nodes(&self) -> Arc<ShortNodes> {
        self.moves.short.clone()
    }

    /// The node itself has little room.
    pub(crate) fn is_short(&self) -> bool {
        self.moves.short.own() != Room::Enough
    }

    /// A request that comes while there is no room at all; whether it is answered: if nothing has
    /// to be written for that, or if it is about a range, which another node may serve.
    pub fn request_without_room(&mut self, number: RequestNumber, request: Request) -> bool {
        if only_looks(&request.ask) {
            return self.request(number, request).is_ok();
        }
        let is_of_range = request.range != RangeId(0);
        if is_of_range {
            self.answer_at_once(number, Answer::NotHolder { try_node: None });
        }
        is_of_range
    }

    /// A replica hears whether it may take data.
    pub(crate) fn tell_of_room(&mut self, range: RangeId) {
        let short = &self.moves.short;
        if let Some(replica) = self.replicas.get_mut(&range) {
            replica.tenure.lacks_room = lacks_room(&replica.machine.state.descriptor, short);
        }
    }

    /// Says to all nodes with which it shares ranges that this one is short of room.
    pub(crate) fn say_short(&mut self) {
        let descriptors = self.replicas.values().map(|r| &r.machine.state.descriptor);
        let nodes = descriptors.flat_map(|range| range.all_replicas().map(|(_, node)| node));
        let nodes: BTreeSet<NodeId> = nodes.filter(|node| *node != self.options.node).collect();
        nodes.into_iter().for_each(|node| self.say(RangeId(0), node, &Said::Short));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use braid_consensus::ReplicaId;
    use braid_env::fs::MemFs;
    use braid_lsm::KeySpan;

    use super::*;

    #[test]
    fn it_takes_more_room_to_go_on_than_to_stop() {
        let fs = MemFs::new();
        let file = fs.create(Path::new("/f")).unwrap();
        file.write_at(&[1; 1000], 0).unwrap();
        let floors = RoomFloors::of_reserve(100);
        let mut watch = RoomWatch::new(Arc::new(fs.clone()), vec!["/".into()], floors);
        let mut with_free = |free: u64| {
            fs.set_capacity(1000 + free);
            watch.look()
        };
        assert_eq!(with_free(200), Room::Enough);
        assert_eq!(with_free(199), Room::Short);
        assert_eq!(with_free(299), Room::Short);
        assert_eq!(with_free(300), Room::Enough);
        assert_eq!(with_free(49), Room::Out);
        assert_eq!(with_free(74), Room::Out);
        assert_eq!(with_free(75), Room::Short);
        assert_eq!(with_free(0), Room::Out);
        assert_eq!(with_free(300), Room::Enough);
    }

    #[test]
    fn data_is_taken_where_a_majority_has_room() {
        let of = |nodes: &[u64]| {
            let replicas = nodes.iter().map(|n| (ReplicaId(*n), NodeId(*n))).collect();
            RangeDescriptor::new(RangeId(1), KeySpan::new("a", "b"), replicas)
        };
        let short = ShortNodes::default();
        assert!(!lacks_room(&of(&[1, 2, 3]), &short));
        short.hear(NodeId(1), 5);
        assert!(!lacks_room(&of(&[1, 2, 3]), &short));
        assert!(lacks_room(&of(&[1, 2]), &short));
        assert!(lacks_room(&of(&[1]), &short));
        short.hear(NodeId(2), 5);
        assert!(lacks_room(&of(&[1, 2, 3]), &short));
        assert!(!lacks_room(&of(&[1, 2, 3, 4, 5]), &short));
        assert!(!lacks_room(&of(&[3, 4, 5]), &short));
        short.hear_else(NodeId(1), 5 + SHORT_TICKS);
        assert!(lacks_room(&of(&[1, 2, 3]), &short), "it may say so again");
        short.hear_else(NodeId(1), 6 + SHORT_TICKS);
        assert!(!lacks_room(&of(&[1, 2, 3]), &short));
        assert!(short.has(NodeId(2)), "nothing was heard of it");
    }
}
