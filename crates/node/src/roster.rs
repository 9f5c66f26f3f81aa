//! The roster: all nodes that a cluster ever had, and what it wants of them.
//!
//! ```text
//!   roster 7                            grows with each change
//!   replicas 3                          of each range, if there are as many nodes
//!   node 1 member 127.0.0.1:26601 0     a founder: its store is known by who has met it
//!   node 3 gone 127.0.0.1:26603 0       never let in again
//!   node 4 member 127.0.0.1:26604 f3.. region=eu   has joined, with this store; it is there
//! ```
//!
//! It is a record among the cluster's own data, changed by transactions: so a number is given once,
//! whichever node is asked. Until the first change it is what the founders were told. Every node
//! keeps the newest that it has seen in its file, and reads the record every second.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;

use braid_range::{Locality, Members, NodeId, Standing};

/// So many replicas a range has, if nobody wants it otherwise and there are as many founders: the
/// first ones have them from the beginning.
pub(crate) const REPLICAS: usize = 3;
/// A number has to fit into eight bits.
const MAX_NUMBER: u64 = 255;
/// At most so many nodes at the same time.
pub(crate) const MAX_MEMBERS: usize = 9;

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RosterEntry {
    /// What the cluster wants of it.
    pub standing: Standing,
    /// Where it listens for the others.
    pub address: SocketAddr,
    /// Its files; 0: that is not in the roster.
    pub store: u128,
    /// Where it is, as it has said.
    pub locality: Locality,
}

/// See the [module's page](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    pub(crate) version: u64,
    pub(crate) replicas: usize,
    pub(crate) nodes: BTreeMap<NodeId, RosterEntry>,
}

fn name(standing: Standing) -> &'static str {
    match standing {
        Standing::Member => "member",
        Standing::Leaving => "leaving",
        Standing::Gone => "gone",
    }
}

/// How a node looks to another one that is asked, for people.
pub(crate) fn state_of(
    entry: &RosterEntry,
    (is_connected, is_short): (bool, bool),
) -> &'static str {
    match entry.standing {
        Standing::Gone => name(Standing::Gone),
        _ if !is_connected => "not connected",
        Standing::Member if is_short => "short of room",
        standing => name(standing),
    }
}

impl Roster {
    /// That of a cluster that begins: a node's number is its place, from 1 on.
    pub(crate) fn of_founders(addresses: &[SocketAddr]) -> Roster {
        let entry = |address: &SocketAddr| RosterEntry {
            standing: Standing::Member,
            address: *address,
            store: 0,
            locality: Locality::default(),
        };
        let nodes = (1..).map(NodeId).zip(addresses.iter().map(entry)).collect();
        Roster { version: 0, replicas: addresses.len().min(REPLICAS), nodes }
    }

    /// The same for who decides where replicas are.
    pub(crate) fn members(&self) -> Members {
        let standings = self.nodes.iter().map(|(node, entry)| (*node, entry.standing));
        let places = self.nodes.iter().filter(|(_, entry)| !entry.locality.is_nowhere());
        Members {
            replicas: self.replicas,
            nodes: standings.collect(),
            localities: places.map(|(node, entry)| (*node, entry.locality.clone())).collect(),
        }
    }

    /// Of some nodes the one that is nearest to another one; the first of those that are equally
    /// far away.
    pub(crate) fn nearest(&self, to: NodeId, nodes: &[NodeId]) -> Option<NodeId> {
        let place = |node: &NodeId| self.nodes.get(node).map(|entry| &entry.locality);
        let closeness = |node: &NodeId| match (place(&to), place(node)) {
            (Some(one), Some(other)) => one.closeness(other),
            _ => 0,
        };
        // Of the largest ones the last is taken.
        nodes.iter().rev().copied().max_by_key(closeness)
    }

    /// All that may be talked to.
    pub(crate) fn present(&self) -> impl Iterator<Item = (NodeId, RosterEntry)> {
        let all = self.nodes.iter().map(|(node, entry)| (*node, entry.clone()));
        all.filter(|(_, entry)| entry.standing != Standing::Gone)
    }

    /// The node with these files.
    pub(crate) fn with_store(&self, store: u128) -> Option<(NodeId, RosterEntry)> {
        let mut all = self.nodes.iter().map(|(node, entry)| (*node, entry.clone()));
        all.find(|(_, entry)| entry.store == store && store != 0)
    }

    /// Lets a node in; its number. Asked again for the same files, it is the same.
    ///
    /// # Errors
    /// Why not, for a person.
    pub(crate) fn admit(&mut self, store: u128, address: SocketAddr) -> Result<NodeId, String> {
        if let Some((node, known)) = self.with_store(store) {
            return match known.standing {
                Standing::Gone => Err(gone(node)),
                _ if known.address != address => {
                    Err(format!("{node:?} has joined as one that listens on {}", known.address))
                }
                _ => Ok(node),
            };
        }
        if let Some((node, _)) = self.present().find(|(_, entry)| entry.address == address) {
            return Err(format!(
                "{node:?} listens on {address}; if its disk is lost, `braid node decommission \
                 {}` comes first",
                node.0
            ));
        }
        if self.present().count() >= MAX_MEMBERS {
            return Err(format!("there are {MAX_MEMBERS} nodes already, more cannot be"));
        }
        let next = self.nodes.keys().next_back().map_or(1, |last| last.0 + 1);
        if next > MAX_NUMBER {
            return Err(format!("the cluster has had {MAX_NUMBER} nodes, more cannot be"));
        }
        let (standing, locality) = (Standing::Member, Locality::default());
        self.version += 1;
        self.nodes.insert(NodeId(next), RosterEntry { standing, address, store, locality });
        Ok(NodeId(next))
    }

    /// Notes where a node is; whether that is new.
    pub(crate) fn locate(&mut self, node: NodeId, at: &Locality) -> bool {
        let Some(entry) = self.nodes.get_mut(&node) else { return false };
        let is_new = entry.locality != *at;
        if is_new {
            entry.locality = at.clone();
            self.version += 1;
        }
        is_new
    }

    /// Changes how many replicas each range is to have; whether that is new.
    ///
    /// # Errors
    /// Why not, for a person.
    pub(crate) fn keep(&mut self, replicas: usize) -> Result<bool, String> {
        let members = self.nodes.values().filter(|entry| entry.standing == Standing::Member);
        match members.count() {
            _ if replicas == 0 => return Err("a range has at least one replica".into()),
            most if replicas > most => {
                return Err(format!("there are {most} nodes: let others join first"));
            }
            _ => {}
        }
        let is_new = self.replicas != replicas;
        if is_new {
            self.replicas = replicas;
            self.version += 1;
        }
        Ok(is_new)
    }

    /// Changes what the cluster wants of a node; whether that is new.
    ///
    /// # Errors
    /// Why not, for a person.
    pub(crate) fn stand(&mut self, node: NodeId, standing: Standing) -> Result<bool, String> {
        let others = |wanted: Standing| {
            let others = self
                .nodes
                .iter()
                .filter(|(other, entry)| **other != node && entry.standing == wanted);
            others.count()
        };
        let (left, replicas) = (others(Standing::Member), self.replicas);
        let Some(entry) = self.nodes.get_mut(&node) else {
            return Err(format!("there is no node {}", node.0));
        };
        if entry.standing == standing {
            return Ok(false);
        }
        match (entry.standing, standing) {
            (Standing::Gone, _) => return Err(gone(node)),
            (Standing::Member, Standing::Leaving) if left < replicas => {
                return Err(format!(
                    "{left} nodes would be left for {replicas} replicas of each range: start a \
                     node that joins first"
                ));
            }
            (Standing::Member, Standing::Gone) => {
                return Err(format!("{node:?} may have replicas that others have not got yet"));
            }
            _ => {}
        }
        entry.standing = standing;
        self.version += 1;
        Ok(true)
    }

    /// Reads what was shown.
    pub(crate) fn read(text: &str) -> Option<Roster> {
        let mut lines = text.lines();
        let version = lines.next()?.strip_prefix("roster ")?.parse().ok()?;
        let replicas = lines.next()?.strip_prefix("replicas ")?.parse().ok()?;
        let mut nodes = BTreeMap::new();
        for line in lines {
            let mut words = line.strip_prefix("node ")?.split(' ');
            let node = NodeId(words.next()?.parse().ok()?);
            let standing = match words.next()? {
                "member" => Standing::Member,
                "leaving" => Standing::Leaving,
                "gone" => Standing::Gone,
                _ => return None,
            };
            let address = words.next()?.parse().ok()?;
            let store = u128::from_str_radix(words.next()?, 16).ok()?;
            let locality = words.next().map_or(Ok(Locality::default()), str::parse).ok()?;
            nodes.insert(node, RosterEntry { standing, address, store, locality });
            if words.next().is_some() {
                return None;
            }
        }
        let numbers: BTreeSet<u64> = nodes.keys().map(|node| node.0).collect();
        let are_numbers = numbers.iter().all(|number| (1..=MAX_NUMBER).contains(number));
        (are_numbers && replicas > 0).then_some(Roster { version, replicas, nodes })
    }
}

/// Why a node that is gone is not let in.
pub(crate) fn gone(node: NodeId) -> String {
    format!(
        "{node:?} was decommissioned and is not let in again: start it with an empty directory, \
         and it joins under another number"
    )
}

impl fmt::Display for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "roster {}", self.version)?;
        writeln!(f, "replicas {}", self.replicas)?;
        for (node, RosterEntry { standing, address, store, locality }) in &self.nodes {
            write!(f, "node {} {} {address} {store:x}", node.0, name(*standing))?;
            match locality.is_nowhere() {
                true => writeln!(f)?,
                false => writeln!(f, " {locality}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn three() -> Roster {
        Roster::of_founders(&[at(1), at(2), at(3)])
    }

    #[test]
    fn ranges_have_three_replicas_until_somebody_wants_it_otherwise() {
        let mut roster = Roster::of_founders(&[at(1), at(2), at(3), at(4), at(5)]);
        assert_eq!((roster.replicas, Roster::of_founders(&[at(1), at(2)]).replicas), (3, 2));
        assert_eq!((roster.keep(5), roster.keep(5)), (Ok(true), Ok(false)));
        assert_eq!((roster.version, roster.members().replicas), (1, 5));
        assert!(roster.keep(6).unwrap_err().contains("there are 5 nodes"));
        assert!(roster.keep(0).is_err());
        assert!(roster.stand(NodeId(5), Standing::Leaving).unwrap_err().contains("5 replicas"));
        assert_eq!(roster.keep(3), Ok(true));
        assert_eq!(roster.stand(NodeId(5), Standing::Leaving), Ok(true));
        assert!(roster.keep(5).is_err(), "one of them is leaving");
    }

    #[test]
    fn numbers_are_given_once_and_the_same_files_get_the_same() {
        let mut roster = three();
        assert_eq!(roster.admit(7, at(4)), Ok(NodeId(4)));
        assert_eq!(roster.admit(7, at(4)), Ok(NodeId(4)));
        assert_eq!(roster.version, 1);
        assert!(roster.admit(8, at(3)).unwrap_err().contains("decommission 3"));
        assert!(roster.admit(7, at(5)).unwrap_err().contains("listens on 127.0.0.1:4"));
        assert_eq!(roster.stand(NodeId(3), Standing::Leaving), Ok(true));
        assert_eq!(roster.stand(NodeId(3), Standing::Gone), Ok(true));
        // The address is free now, the number is not.
        assert_eq!(roster.admit(8, at(3)), Ok(NodeId(5)));
        for port in 10..14 {
            roster.admit(u128::from(port), at(port)).expect("there is room");
        }
        assert_eq!(roster.present().count(), 8);
        let zone: Locality = "region=eu,zone=a".parse().expect("it is one");
        assert!(roster.locate(NodeId(2), &zone) && !roster.locate(NodeId(2), &zone));
        assert_eq!(roster.members().localities, [(NodeId(2), zone)].into());
        roster.admit(99, at(99)).expect("there is room");
        assert!(roster.admit(100, at(100)).unwrap_err().contains("9 nodes already"));
        assert_eq!(Roster::read(&roster.to_string()), Some(roster));
    }

    #[test]
    fn who_leaves_may_stay_after_all_and_who_is_gone_may_not() {
        let mut roster = three();
        let too_few = roster.stand(NodeId(1), Standing::Leaving).unwrap_err();
        assert!(too_few.contains("2 nodes would be left for 3 replicas"), "{too_few}");
        roster.admit(7, at(4)).expect("there is room");
        assert!(roster.stand(NodeId(1), Standing::Gone).is_err(), "it has replicas");
        assert_eq!(roster.stand(NodeId(1), Standing::Leaving), Ok(true));
        assert_eq!(roster.stand(NodeId(1), Standing::Leaving), Ok(false));
        assert!(roster.stand(NodeId(2), Standing::Leaving).is_err(), "one leaves already");
        assert_eq!(roster.stand(NodeId(1), Standing::Member), Ok(true));
        assert_eq!(roster.stand(NodeId(1), Standing::Leaving), Ok(true));
        assert_eq!(roster.stand(NodeId(1), Standing::Gone), Ok(true));
        let back = roster.stand(NodeId(1), Standing::Member).unwrap_err();
        assert!(back.contains("not let in again"), "{back}");
        assert!(roster.stand(NodeId(9), Standing::Leaving).unwrap_err().contains("no node 9"));
        assert_eq!(roster.version, 5);
    }

    #[test]
    fn the_nearest_node_has_the_most_tiers_in_common_and_nobody_is_nearer_without() {
        let mut roster = three();
        let nodes = [2, 3].map(NodeId);
        let nearest = |roster: &Roster, nodes| roster.nearest(NodeId(1), nodes).map(|node| node.0);
        assert_eq!(nearest(&roster, &nodes), Some(2));
        assert_eq!(nearest(&roster, &[]), None);
        for (node, place) in [(1, "region=eu,zone=a"), (2, "region=us"), (3, "region=eu,zone=b")] {
            let entry = roster.nodes.get_mut(&NodeId(node)).expect("it is there");
            entry.locality = place.parse().expect("it is a place");
        }
        assert_eq!(nearest(&roster, &nodes), Some(3));
        assert_eq!(nearest(&roster, &[2, 4].map(NodeId)), Some(2));
    }

    #[test]
    fn what_is_no_roster_is_not_taken_for_one() {
        let good = three().to_string();
        assert_eq!(Roster::read(&good), Some(three()));
        for (a, b) in [("node 1", "node 0"), ("member", "friend"), ("replicas 3", "replicas 0")] {
            assert_eq!(Roster::read(&good.replacen(a, b, 1)), None, "{b}");
        }
        for len in [0, 5, good.len() - 2] {
            assert_eq!(Roster::read(&good[..len]), None, "{len}");
        }
    }
}
