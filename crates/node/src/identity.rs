//! Who a node is: its number, its cluster, its files, and who the others are.
//!
//! ```text
//!   DIR/member     cluster, number and store of this node, what it was told at its first start,
//! the
//!                  newest roster that it has seen, stores of the nodes that it has met
//! ```
//!
//! A replica must not forget what it has promised. So each store has a number of its own, drawn at
//! random when it is made; whoever has met a node remembers the number, durably, and refuses the
//! node if it comes back with another one: its disk was emptied or exchanged. A founder learns the
//! cluster's number from somebody who has it, and is remembered then. The first one draws it. A
//! node
//! that joins later gets its own number, too, by the number of its store: so it gets the same one
//! however often it asks.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::{FileSystem, read_all};
use braid_env::random::Random;
use braid_range::{Locality, NodeId, Standing};
use parking_lot::Mutex;

use crate::frame::{FORMAT_VERSION, Hello, MAGIC, Purpose, Reply, Welcome, WireError};
use crate::roster::{REPLICAS, Roster, RosterEntry, gone};

const FILE: &str = "member";
const FIRST_LINE: &str = "braid member 2";
/// What nodes had whose cluster could not change: its members were the founders, in their order.
const FORMER_LINE: &str = "braid member 1";

#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    /// 0: not known yet.
    cluster: u128,
    /// 0: not known yet.
    node: NodeId,
    store: u128,
    /// The store was opened: it must be there from now on.
    opened: bool,
    address: SocketAddr,
    /// Whom it was told of at its first start: the founders, if it is one of them.
    told: Vec<SocketAddr>,
    /// The cluster has grown from its first founder, which was alone and had rows.
    grown: bool,
    roster: Roster,
    stores: BTreeMap<NodeId, u128>,
}

/// See the [module's page](self).
pub struct Identity {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    state: Mutex<State>,
}

impl Identity {
    /// Reads what an earlier process has left; `None`: this is no member's directory.
    ///
    /// # Errors
    /// The disk's; `InvalidData` if the file is damaged.
    pub fn load(fs: Arc<dyn FileSystem>, dir: &Path) -> io::Result<Option<Identity>> {
        let path = dir.join(FILE);
        if !fs.exists(&path)? {
            return Ok(None);
        }
        let text = String::from_utf8(read_all(&*fs, &path)?).ok();
        let state = text.as_deref().and_then(State::read).ok_or_else(|| {
            let reason = format!("{} is damaged", path.display());
            io::Error::new(io::ErrorKind::InvalidData, reason)
        })?;
        Ok(Some(Identity { fs, dir: dir.to_path_buf(), state: Mutex::new(state) }))
    }

    /// A new node that listens there: one of these founders, or one that joins them. The first
    /// founder may be `grown`: it has the rows of a node that was alone. Durable when it returns.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        address: SocketAddr,
        (told, grown): (Vec<SocketAddr>, bool),
    ) -> io::Result<Identity> {
        let mut random = Random::from_entropy();
        let mut drawn = || u128::from(random.next_u64()) << 64 | u128::from(random.next_u64() | 1);
        let (store, founded) = (drawn(), drawn());
        let place = told.iter().position(|founder| *founder == address);
        let node = NodeId(place.map_or(0, |place| place as u64 + 1));
        let cluster = if node == NodeId(1) { founded } else { 0 };
        let (opened, roster, stores) = (false, Roster::of_founders(&told), BTreeMap::new());
        let state = State { cluster, node, store, opened, address, told, grown, roster, stores };
        fs.create_dir_all(dir)?;
        let own = Identity { fs, dir: dir.to_path_buf(), state: Mutex::new(state.clone()) };
        own.write(&state)?;
        Ok(own)
    }

    fn write(&self, state: &State) -> io::Result<()> {
        let (new, path) = (self.dir.join(format!("{FILE}.new")), self.dir.join(FILE));
        let file = self.fs.create(&new)?;
        file.write_at(state.to_string().as_bytes(), 0)?;
        file.sync_data()?;
        self.fs.rename(&new, &path)?;
        self.fs.sync_dir(&self.dir)
    }

    fn change(&self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        let mut state = self.state.lock();
        let mut next = state.clone();
        change(&mut next);
        if next != *state {
            self.write(&next)?;
            *state = next;
        }
        Ok(())
    }

    /// This node; 0: it has no number yet.
    pub fn node(&self) -> NodeId {
        self.state.lock().node
    }

    /// Where it listens for the others.
    pub fn address(&self) -> SocketAddr {
        self.state.lock().address
    }

    /// Whom it was told of at its first start.
    pub fn told(&self) -> Vec<SocketAddr> {
        self.state.lock().told.clone()
    }

    /// The founders, if it is one of them; else nobody.
    pub(crate) fn founders(&self) -> Vec<SocketAddr> {
        let state = self.state.lock();
        match state.told.contains(&state.address) {
            true => state.told.clone(),
            false => Vec::new(),
        }
    }

    /// The founders that have replicas from the beginning: three, or only the first one if the
    /// cluster has grown from it. Nobody, if this node is no founder.
    pub(crate) fn first_replicas(&self) -> Vec<(NodeId, SocketAddr)> {
        let most = if self.has_grown() { 1 } else { REPLICAS };
        (1..).map(NodeId).zip(self.founders()).take(most).collect()
    }

    /// Whether the cluster has grown from its first founder, which was alone and had rows.
    pub(crate) fn has_grown(&self) -> bool {
        self.state.lock().grown
    }

    /// All nodes, as far as this one has seen.
    pub(crate) fn roster(&self) -> Roster {
        self.state.lock().roster.clone()
    }

    /// Of some nodes the one that is nearest to this one, by their localities; the first of those
    /// that are equally far away.
    pub(crate) fn nearest(&self, nodes: &[NodeId]) -> Option<NodeId> {
        let own = self.node();
        self.state.lock().roster.nearest(own, nodes)
    }

    /// Takes a newer roster up. Durable when it returns.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn take_roster(&self, roster: Roster) -> io::Result<()> {
        self.change(|state| {
            if state.roster.version < roster.version {
                state.roster = roster;
            }
        })
    }

    /// The cluster has let this node in. Durable when it returns.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn admitted(
        &self,
        (cluster, node): (u128, NodeId),
        roster: Roster,
    ) -> io::Result<()> {
        self.change(|state| (state.cluster, state.node, state.roster) = (cluster, node, roster))
    }

    /// The cluster; `None`: not known yet.
    pub fn cluster(&self) -> Option<u128> {
        Some(self.state.lock().cluster).filter(|cluster| *cluster != 0)
    }

    /// All nodes that may be talked to, with the addresses where they listen for each other.
    pub fn members(&self) -> Vec<(NodeId, SocketAddr)> {
        let state = self.state.lock();
        state.roster.present().map(|(node, entry)| (node, entry.address)).collect()
    }

    /// Whether the node has had its store open before.
    pub(crate) fn was_opened(&self) -> bool {
        self.state.lock().opened
    }

    /// Its store is open: it must be there from now on.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn note_opened(&self) -> io::Result<()> {
        self.change(|state| state.opened = true)
    }

    /// What it says when it dials.
    pub fn hello(&self) -> Hello {
        let members = self.founders().iter().map(SocketAddr::to_string).collect();
        let state = self.state.lock();
        Hello {
            magic: MAGIC,
            version: FORMAT_VERSION,
            cluster: state.cluster,
            node: state.node,
            store: state.store,
            address: state.address.to_string(),
            members,
            purpose: if state.node.0 == 0 { Purpose::Join } else { Purpose::Talk },
        }
    }

    /// Judges who dials; the answer, and the error if it is a refusal.
    pub fn judge(&self, hello: &Hello) -> (Reply, Option<WireError>) {
        match self.welcome(hello) {
            Ok(reply) => (reply, None),
            Err(why) => (Reply::Refusal { why: why.clone() }, Some(WireError::Unwanted(why))),
        }
    }

    fn welcome(&self, hello: &Hello) -> Result<Reply, String> {
        let (own, roster) = (self.hello(), self.roster());
        let theirs = hello.node;
        if own.cluster == 0 {
            return Err(format!("{:?} has not joined the cluster itself yet", own.node));
        }
        if hello.cluster == 0 && hello.members != own.members {
            let (said, known) = (hello.members.join(","), own.members.join(","));
            return Err(format!("{theirs:?} names the members {said}, but here they are {known}"));
        }
        let is_late = hello.cluster == 0 && roster.version > 0 && self.is_new(theirs);
        if theirs == own.node || theirs.0 == 0 || is_late {
            return Err(format!("{theirs:?} cannot dial {:?}", own.node));
        }
        if hello.cluster != 0 && hello.cluster != own.cluster {
            return Err(format!(
                "{theirs:?} belongs to cluster {:x}, this one is {:x}",
                hello.cluster, own.cluster
            ));
        }
        match roster.nodes.get(&theirs) {
            Some(entry) if entry.standing == Standing::Gone => return Err(gone(theirs)),
            Some(_) => {}
            None => self.note_stranger(theirs, hello)?,
        }
        self.meet(theirs, hello.store)?;
        let Hello { cluster, node, store, .. } = own;
        Ok(Reply::Welcome(Welcome { cluster, node, store, grown: self.has_grown() }))
    }

    /// Whether nothing was ever heard of a node's files.
    fn is_new(&self, node: NodeId) -> bool {
        let state = self.state.lock();
        !state.stores.contains_key(&node) && node != state.node
    }

    /// A node of this cluster dials that joined while this one was away. What is known here is out
    /// of date: by that one it learns what is true now.
    fn note_stranger(&self, node: NodeId, hello: &Hello) -> Result<(), String> {
        let last = self.roster().nodes.keys().next_back().copied().unwrap_or(NodeId(0));
        let address = hello.address.parse::<SocketAddr>().ok().filter(|at| at.ip().is_loopback());
        let (Some(address), true) = (address, hello.cluster != 0 && node > last) else {
            return Err(format!("there is no {node:?} in this cluster"));
        };
        let entry = RosterEntry {
            standing: Standing::Member,
            address,
            store: hello.store,
            locality: Locality::default(),
        };
        // The version stays: the next roster that is read replaces this one.
        let noted = self.change(|state| {
            state.roster.nodes.insert(node, entry);
        });
        noted.map_err(|e| format!("it cannot be noted who {node:?} is: {e}"))
    }

    /// Remembers a node's store.
    fn meet(&self, node: NodeId, store: u128) -> Result<(), String> {
        let known = {
            let state = self.state.lock();
            let entry = state.roster.nodes.get(&node).map(|entry| entry.store);
            entry.filter(|store| *store != 0).or_else(|| state.stores.get(&node).copied())
        };
        if known.is_some_and(|known| known != store) {
            return Err(format!(
                "{node:?} has come back with another disk: what it has promised is lost"
            ));
        }
        let noted = self.change(|state| {
            state.stores.insert(node, store);
        });
        noted.map_err(|e| format!("it cannot be noted who {node:?} is: {e}"))
    }

    /// Takes the answer of a node that was dialed as `node`.
    ///
    /// # Errors
    /// [`WireError::Unwanted`] if it is not that one.
    pub(crate) fn welcomed(&self, node: NodeId, welcome: Welcome) -> Result<(), WireError> {
        let Welcome { cluster, node: theirs, store, grown } = welcome;
        let unwanted = |why: String| Err(WireError::Unwanted(why));
        if theirs != node {
            return unwanted(format!("{theirs:?} listens where {node:?} should"));
        }
        let own = self.cluster();
        if own.is_some_and(|own| own != cluster) || cluster == 0 {
            return unwanted(format!("{node:?} belongs to another cluster"));
        }
        self.meet(node, store).map_err(WireError::Unwanted)?;
        if own.is_some() {
            return Ok(());
        }
        // In one step: whether it begins with replicas must be known when the cluster is.
        Ok(self.change(|state| (state.cluster, state.grown) = (cluster, grown))?)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        writeln!(f, "cluster {:x}", self.cluster)?;
        writeln!(f, "node {}", self.node.0)?;
        writeln!(f, "store {:x}", self.store)?;
        writeln!(f, "opened {}", u8::from(self.opened))?;
        writeln!(f, "address {}", self.address)?;
        for address in &self.told {
            writeln!(f, "told {address}")?;
        }
        if self.grown {
            writeln!(f, "grown 1")?;
        }
        write!(f, "{}", self.roster)?;
        for (node, store) in &self.stores {
            writeln!(f, "met {} {store:x}", node.0)?;
        }
        writeln!(f, "end")
    }
}

impl State {
    fn read(text: &str) -> Option<State> {
        let mut lines = text.lines();
        let first = lines.next()?;
        let former = first == FORMER_LINE;
        if !former && first != FIRST_LINE || lines.next_back()? != "end" {
            return None;
        }
        let hex = |text: &str| u128::from_str_radix(text, 16).ok();
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let (cluster, node) = (hex(field("cluster")?)?, NodeId(field("node")?.parse().ok()?));
        let (store, opened) = (hex(field("store")?)?, field("opened")? == "1");
        let address = if former { None } else { Some(field("address")?.parse().ok()?) };
        let (mut told, mut roster, mut stores) = (Vec::new(), String::new(), BTreeMap::new());
        let mut grown = false;
        for line in lines {
            match line.split_once(' ')? {
                ("told" | "member", address) => told.push(address.parse().ok()?),
                ("grown", "1") => grown = true,
                ("met", rest) => {
                    let (node, store) = rest.split_once(' ')?;
                    stores.insert(NodeId(node.parse().ok()?), hex(store)?);
                }
                _ => roster.extend([line, "\n"]),
            }
        }
        let place = node.0.checked_sub(1).and_then(|place| told.get(place as usize)).copied();
        let (address, roster) = match former {
            true => (place?, Roster::of_founders(&told)),
            false => (address?, Roster::read(&roster)?),
        };
        let has_number = node.0 >= 1 || cluster == 0;
        has_number.then_some(State {
            cluster,
            node,
            store,
            opened,
            address,
            told,
            grown,
            roster,
            stores,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::fs::MemFs;

    fn members() -> Vec<SocketAddr> {
        (1..=3).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect()
    }

    fn member(node: u64) -> Identity {
        let fs = Arc::new(MemFs::new());
        let address = SocketAddr::from(([127, 0, 0, 1], node as u16));
        let told = (members(), false);
        Identity::create(fs, Path::new("/n"), address, told).expect("the disk works")
    }

    fn refusal(at: &Identity, hello: &Hello) -> String {
        match at.judge(hello) {
            (Reply::Refusal { why }, Some(_)) => why,
            other => panic!("{other:?}"),
        }
    }

    /// `who` dials `at`.
    fn dial(who: &Identity, at: &Identity) -> Result<(), WireError> {
        match at.judge(&who.hello()).0 {
            Reply::Welcome(welcome) => who.welcomed(at.node(), welcome),
            Reply::Refusal { why } => Err(WireError::Refused(why)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_member_says_who_is_nearest_to_it() {
        assert_eq!(member(1).nearest(&[3, 2].map(NodeId)), Some(NodeId(3)));
    }

    #[test]
    fn a_new_member_learns_the_cluster_and_keeps_it() {
        let (first, second, third) = (member(1), member(2), member(3));
        assert!(refusal(&second, &third.hello()).contains("has not joined"));
        dial(&second, &first).expect("it is welcome");
        // Whoever has joined lets others in.
        dial(&third, &second).expect("it is welcome");
        assert_eq!(third.cluster(), first.cluster());
        let again = Identity::load(third.fs.clone(), &third.dir).expect("it reads");
        let again = again.expect("it is there");
        assert_eq!(*again.state.lock(), *third.state.lock());
        assert_eq!((again.cluster(), again.was_opened()), (first.cluster(), false));
        again.note_opened().expect("the disk works");
        dial(&again, &first).expect("it is the same one");
    }

    #[test]
    fn who_does_not_belong_is_refused_with_a_reason() {
        let (first, second) = (member(1), member(2));
        dial(&second, &first).expect("it is welcome");
        let emptied = member(2);
        assert!(refusal(&first, &emptied.hello()).contains("another disk"));
        let other_first = member(1);
        let foreign = member(3);
        dial(&foreign, &other_first).expect("of another cluster");
        assert!(refusal(&first, &foreign.hello()).contains("belongs to cluster"));
        // The first one lost its disk, and has founded another cluster.
        let lost = dial(&second, &other_first);
        assert!(
            matches!(&lost, Err(WireError::Refused(why)) if why.contains("cluster")),
            "{lost:?}"
        );
        let said = vec!["127.0.0.1:9".into()];
        let elsewhere = Hello { members: said, cluster: 0, ..second.hello() };
        assert!(refusal(&first, &elsewhere).contains("names the members"));
        let twin = Hello { node: NodeId(1), ..second.hello() };
        assert!(refusal(&first, &twin).contains("cannot dial"));
        let cluster = first.hello().cluster;
        let welcome = Welcome { cluster, node: NodeId(1), store: 7, grown: false };
        let wrong = second.welcomed(NodeId(3), welcome);
        assert!(matches!(wrong, Err(WireError::Unwanted(_))), "{wrong:?}");
    }

    #[test]
    fn whether_only_the_first_has_replicas_is_known_with_the_cluster_and_kept() {
        let create = |node: u16, grown| {
            let at = SocketAddr::from(([127, 0, 0, 1], node));
            let own = Identity::create(Arc::new(MemFs::new()), Path::new("/n"), at, grown);
            own.expect("the disk works")
        };
        let first = create(1, (members(), true));
        let (second, third) = (create(2, (members(), false)), create(3, (members(), false)));
        assert_eq!(first.first_replicas(), vec![(NodeId(1), members()[0])]);
        dial(&second, &first).expect("it is welcome");
        dial(&third, &second).expect("it is welcome");
        for own in [&first, &second, &third] {
            assert_eq!(own.first_replicas().len(), 1);
            let again = Identity::load(own.fs.clone(), &own.dir).expect("it reads");
            assert_eq!(*again.expect("it is there").state.lock(), *own.state.lock());
        }
        // Once it is known it stays.
        let Reply::Welcome(welcome) = first.judge(&second.hello()).0 else { panic!("welcome") };
        second.welcomed(NodeId(1), Welcome { grown: false, ..welcome }).expect("it is the same");
        assert!(second.has_grown());
        // A node that joins later knows no founders.
        assert_eq!(joined(&first).first_replicas(), vec![]);
        assert_eq!(member(1).first_replicas().len(), 3);
        let five: Vec<SocketAddr> = (1..6).map(|n| SocketAddr::from(([127, 0, 0, 1], n))).collect();
        let fifth =
            Identity::create(Arc::new(MemFs::new()), Path::new("/n"), five[4], (five, false));
        let first = fifth.expect("the disk works").first_replicas();
        assert_eq!(first.iter().map(|(node, _)| node.0).collect::<Vec<_>>(), [1, 2, 3]);
    }

    /// Node 4 has joined, with its store, and knows the cluster.
    fn joined(first: &Identity) -> Identity {
        let fs = Arc::new(MemFs::new());
        let address = SocketAddr::from(([127, 0, 0, 1], 4));
        let told = (members(), false);
        let own = Identity::create(fs, Path::new("/n"), address, told).expect("it works");
        assert_eq!((own.node(), own.founders()), (NodeId(0), vec![]));
        assert_eq!(own.hello().purpose, Purpose::Join);
        let mut roster = first.roster();
        let node = roster.admit(own.hello().store, address).expect("there is room");
        let cluster = first.cluster().expect("it has founded one");
        own.admitted((cluster, node), roster).expect("the disk works");
        own
    }

    #[test]
    fn a_node_that_joined_is_known_to_who_missed_it_and_one_that_is_gone_is_not_let_in() {
        let (first, second) = (member(1), member(2));
        dial(&second, &first).expect("it is welcome");
        let fourth = joined(&first);
        assert_eq!((fourth.node(), fourth.hello().purpose), (NodeId(4), Purpose::Talk));
        // The first one has not seen the roster yet.
        assert_eq!(first.members().len(), 3);
        dial(&fourth, &first).expect("it is of this cluster");
        assert_eq!(first.members().last().map(|(node, at)| (node.0, at.port())), Some((4, 4)));
        let other = Hello { store: 5, ..fourth.hello() };
        assert!(refusal(&first, &other).contains("another disk"));
        let unknown = Hello { node: NodeId(9), cluster: 0, members: vec![], ..fourth.hello() };
        assert!(refusal(&first, &unknown).contains("names the members"));
        let again = Identity::load(fourth.fs.clone(), &fourth.dir).expect("it reads");
        assert_eq!(*again.expect("it is there").state.lock(), *fourth.state.lock());
        let mut roster = fourth.roster();
        roster.stand(NodeId(2), Standing::Leaving).expect("three are left");
        roster.stand(NodeId(2), Standing::Gone).expect("it left");
        first.take_roster(roster.clone()).expect("the disk works");
        assert!(refusal(&first, &second.hello()).contains("decommissioned"));
        // An older roster changes nothing.
        first.take_roster(Roster { version: 0, ..roster }).expect("the disk works");
        assert!(refusal(&first, &second.hello()).contains("decommissioned"));
    }

    #[test]
    fn a_file_of_the_former_format_is_read() {
        let second = member(2);
        let text = "braid member 1\ncluster 7\nnode 2\nstore 8\nopened 1\n\
                    member 127.0.0.1:1\nmember 127.0.0.1:2\nmember 127.0.0.1:3\nmet 1 9\nend\n";
        let read = State::read(text).expect("it is one");
        assert_eq!(read.roster, Roster::of_founders(&members()));
        assert_eq!((read.told, read.address), (members(), second.address()));
        assert_eq!((read.node, read.store, read.opened), (NodeId(2), 8, true));
    }

    #[test]
    fn a_damaged_file_is_said_to_be() {
        let own = member(2);
        let path = own.dir.join(FILE);
        let text = read_all(&*own.fs, &path).expect("it reads");
        for len in [0, 10, text.len() - 2] {
            let file = own.fs.create(&path).expect("the disk works");
            file.write_at(&text[..len], 0).expect("the disk works");
            let read = Identity::load(own.fs.clone(), &own.dir).map(|_| ());
            assert_eq!(read.map_err(|e| e.kind()), Err(io::ErrorKind::InvalidData), "{len}");
        }
    }
}
