//! Nodes that join, leave, and are lost for ever, while everything else goes on.
//!
//! ```text
//!   spare     joins:  gets its share of the replicas
//!   member    is asked to leave, and may be asked to stay after all
//!             loses its disk, and never comes back
//!   leaving   goes for ever when nobody has a replica of its any more
//! ```
//!
//! A node loses its disk only if all others run, and none of those lost before belongs to any range
//! any more: what a majority has acknowledged must not be gone with it.

use std::collections::{BTreeMap, BTreeSet};

use braid_range::{Members, NodeId, RangeDescriptor, RangeId, Replicas, Standing};

use crate::data::{is_old_row, old_row};
use crate::node::Node;
use crate::world::{Event, World};

/// Who belongs to the cluster, as the world knows.
#[derive(Default)]
pub(crate) struct Register {
    nodes: BTreeMap<NodeId, Standing>,
    /// They do not run any more, and have nothing.
    pub(crate) over: BTreeSet<u64>,
}

impl Register {
    /// The nodes with which a cluster begins.
    pub(crate) fn of_founders(count: u64) -> Register {
        let nodes = (1..=count).map(|node| (NodeId(node), Standing::Member)).collect();
        Register { nodes, over: BTreeSet::new() }
    }

    /// Whether a node has joined, and was not lost.
    pub(crate) fn runs(&self, node: u64) -> bool {
        self.nodes.contains_key(&NodeId(node)) && !self.over.contains(&node)
    }

    fn with(&self, standing: Standing) -> Vec<u64> {
        let nodes =
            self.nodes.iter().filter(|(node, of)| **of == standing && !self.over.contains(&node.0));
        nodes.map(|(node, _)| node.0).collect()
    }
}

impl World {
    /// A node hears who belongs to the cluster.
    pub(crate) fn tell_members(&mut self, node: u64) {
        if self.plan.spares.is_none() {
            return;
        }
        let (replicas, nodes) = (self.plan.nodes as usize, self.register.nodes.clone());
        // A third of the seeds has zones, of which the spare nodes may be new ones.
        let zoned = nodes.keys().filter(|_| self.plan.seed.is_multiple_of(3));
        let zone = |node: &NodeId| {
            let zone = format!("zone={}", if node.0 <= self.plan.nodes { 1 } else { node.0 % 3 });
            zone.parse().ok().map(|zone| (*node, zone))
        };
        let localities = zoned.filter_map(zone).collect();
        if let Some(process) = &mut self.nodes[node as usize - 1].process {
            process.set_members(Members { replicas, nodes, localities });
        }
    }

    /// All hear of it, sooner or later.
    fn spread_members(&mut self) {
        for node in 1..=self.plan.all_nodes() {
            let micros = self.random.below(3_000_000);
            self.after(micros, Event::Members { node });
        }
    }

    /// Something happens to who belongs to the cluster.
    pub(crate) fn change_membership(&mut self) {
        if self.plan.spares.is_none() || !self.random.chance(1, 4) {
            return;
        }
        let members = self.register.with(Standing::Member);
        let leaving = self.register.with(Standing::Leaving);
        let enough = members.len() as u64 > self.plan.nodes;
        match self.random.below(4) {
            0 => self.join(),
            1 if enough => {
                let node = *self.random.pick(&members);
                self.stand("nodes asked to leave", node, Standing::Leaving);
            }
            2 if !leaving.is_empty() => {
                let node = *self.random.pick(&leaving);
                match self.is_empty(node) {
                    true => self.dismiss(node, "nodes dismissed"),
                    false => self.stand("nodes asked to stay", node, Standing::Member),
                }
            }
            3 if enough && self.may_lose() => {
                let node = *self.random.pick(&members);
                self.nodes[node as usize - 1].crash(0);
                self.dismiss(node, "disks lost");
            }
            _ => {}
        }
    }

    fn join(&mut self) {
        let next = self.register.nodes.len() as u64 + 1;
        if next <= self.plan.all_nodes() {
            self.stand("nodes joined", next, Standing::Member);
            self.after(1_000, Event::Start { node: next });
        }
    }

    fn stand(&mut self, what: &'static str, node: u64, standing: Standing) {
        self.note(format!("{what}: n{node}"));
        self.count(what);
        self.register.nodes.insert(NodeId(node), standing);
        self.spread_members();
    }

    /// A node is gone for ever. That is said, or its silence has to do.
    fn dismiss(&mut self, node: u64, what: &'static str) {
        self.nodes[node as usize - 1].crash(0);
        self.register.over.insert(node);
        let said = self.random.chance(1, 2) || what != "disks lost";
        let standing = if said { Standing::Gone } else { self.register.nodes[&NodeId(node)] };
        self.stand(what, node, standing);
    }

    fn processes(&self) -> impl Iterator<Item = (&Node, &Replicas)> {
        self.nodes.iter().filter_map(|node| Some((node, node.process.as_ref()?)))
    }

    /// All ranges as whoever knows most of them does.
    pub(crate) fn newest_ranges(&self) -> BTreeMap<RangeId, RangeDescriptor> {
        let mut newest: BTreeMap<RangeId, RangeDescriptor> = BTreeMap::new();
        for (range, _) in self.processes().flat_map(|(_, process)| process.ranges()) {
            match newest.get_mut(&range.id) {
                Some(known) if known.generation >= range.generation => {}
                Some(known) => *known = range,
                None => drop(newest.insert(range.id, range)),
            }
        }
        newest
    }

    /// Whether nobody has a replica of a node, as far as anybody knows, and all say what they know.
    fn is_empty(&self, node: u64) -> bool {
        let (node, mut all) = (NodeId(node), 1..=self.plan.all_nodes());
        let knows = |process: &Replicas| {
            process.ranges().iter().any(|(range, _)| range.replica_on(node).is_some())
        };
        let all_run = all.all(|node| {
            !self.register.runs(node) || self.nodes[node as usize - 1].process.is_some()
        });
        all_run && !self.processes().any(|(_, process)| knows(process))
    }

    /// Whether a disk may be lost: nothing is only on it, and on others that are gone.
    fn may_lose(&self) -> bool {
        let over: Vec<u64> = self.register.over.iter().copied().collect();
        // A cluster that grows from one node has replicas there alone at first.
        let wanted = self.plan.nodes as usize;
        let is_grown = |range: &RangeDescriptor| range.replicas.len() >= wanted;
        // Also if there are none: all must run.
        self.is_empty(0)
            && self.newest_ranges().values().all(is_grown)
            && over.into_iter().all(|node| self.is_empty(node))
    }

    /// Whether all replicas are where they should be, and all of a range have the same.
    pub(crate) fn replicas_are_level(&self) -> bool {
        let newest = self.newest_ranges();
        let mut applied = BTreeMap::new();
        let mut replicas = 0;
        for (node, process) in self.processes() {
            for (range, at) in process.ranges() {
                replicas += 1;
                let is_newest = newest.get(&range.id) == Some(&range);
                let is_member = range.replica_on(node.id).is_some();
                if !is_newest || !is_member || *applied.entry(range.id).or_insert(at) != at {
                    return false;
                }
            }
        }
        let stays = |node: &NodeId| {
            self.register.nodes[node] == Standing::Member && self.register.runs(node.0)
        };
        let is_well = |range: &RangeDescriptor| {
            let voters = &range.replicas;
            let moves = !range.learners.is_empty() || !range.leaving.is_empty();
            voters.len() as u64 == self.plan.nodes
                && !moves
                && voters.iter().all(|(_, node)| stays(node))
        };
        replicas == newest.len() as u64 * self.plan.nodes && newest.values().all(is_well)
    }

    /// What the first node had when it was alone must be there, and nothing else of that time.
    pub(crate) fn look_for_old_rows(&mut self) {
        let Some(count) = self.plan.disk.grown_from else { return };
        let mut found = Vec::new();
        for range in self.newest_ranges().into_values() {
            let Some((_, node)) = range.replicas.first() else { continue };
            let rows = crate::world::rows_of(&self.nodes[node.0 as usize - 1], &range.span);
            found.extend(rows.into_iter().filter(|(key, ..)| is_old_row(key)));
        }
        found.sort();
        let found: Vec<_> = found.into_iter().map(|(key, value, _)| (key, value)).collect();
        if found != (0..count).map(old_row).collect::<Vec<_>>() {
            self.wrong(format!("{} of {count} rows of the first node are there", found.len()));
        }
    }

    /// All replicas of a range must have the same rows.
    pub(crate) fn compare_rows(&mut self) {
        for range in self.newest_ranges().into_values() {
            let rows = |node: &NodeId| {
                crate::world::rows_of(&self.nodes[node.0 as usize - 1], &range.span)
            };
            let nodes: Vec<NodeId> = range.replicas.iter().map(|(_, node)| *node).collect();
            let first = rows(&nodes[0]);
            if let Some(other) = nodes.iter().find(|node| rows(node) != first) {
                let (one, range) = (nodes[0], range.id);
                return self.wrong(format!("{other:?} has other rows of {range:?} than {one:?}"));
            }
        }
    }
}
