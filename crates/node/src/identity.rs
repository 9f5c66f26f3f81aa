//! Who a node is: its number, its cluster, its files, and who the others are.
//!
//! ```text
//!   DIR/member     cluster, number and store of this node, addresses of all members, stores of
//!                  those that it has met
//! ```
//!
//! A replica must not forget what it has promised. So each store has a number of its own, drawn at
//! random when it is made; whoever has met a node remembers the number, durably, and refuses the
//! node if it comes back with another one: its disk was emptied or exchanged. A new node learns the
//! cluster's number from somebody who has it, and is remembered then. The first member draws it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::{FileSystem, read_all};
use braid_env::random::Random;
use braid_range::NodeId;
use parking_lot::Mutex;

use crate::frame::{FORMAT_VERSION, Hello, MAGIC, Reply, WireError};

/// At most so many members; a number has to fit into eight bits.
pub(crate) const MAX_MEMBERS: usize = 9;
const FILE: &str = "member";
const FIRST_LINE: &str = "braid member 1";

#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    /// 0: not known yet.
    cluster: u128,
    node: NodeId,
    store: u128,
    /// The store was opened: it must be there from now on.
    opened: bool,
    members: Vec<SocketAddr>,
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

    /// A new member: the one with this number, from 1 on, among these. Durable when it returns.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        node: NodeId,
        members: Vec<SocketAddr>,
    ) -> io::Result<Identity> {
        let mut random = Random::from_entropy();
        let mut drawn = || u128::from(random.next_u64()) << 64 | u128::from(random.next_u64() | 1);
        let (store, founded) = (drawn(), drawn());
        let cluster = if node == NodeId(1) { founded } else { 0 };
        let stores = BTreeMap::new();
        let state = State { cluster, node, store, opened: false, members, stores };
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

    /// This node.
    pub fn node(&self) -> NodeId {
        self.state.lock().node
    }

    /// The cluster; `None`: not known yet.
    pub fn cluster(&self) -> Option<u128> {
        Some(self.state.lock().cluster).filter(|cluster| *cluster != 0)
    }

    /// All members, with the addresses where they listen for each other.
    pub fn members(&self) -> Vec<(NodeId, SocketAddr)> {
        let state = self.state.lock();
        let numbers = (1..).map(NodeId);
        numbers.zip(state.members.iter().copied()).collect()
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
        let state = self.state.lock();
        Hello {
            magic: MAGIC,
            version: FORMAT_VERSION,
            cluster: state.cluster,
            node: state.node,
            store: state.store,
            members: state.members.iter().map(SocketAddr::to_string).collect(),
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
        let own = self.hello();
        let theirs = hello.node;
        if hello.members != own.members {
            let (said, known) = (hello.members.join(","), own.members.join(","));
            return Err(format!("{theirs:?} names the members {said}, but here they are {known}"));
        }
        if theirs == own.node || theirs.0 == 0 || theirs.0 > own.members.len() as u64 {
            return Err(format!("{theirs:?} cannot dial {:?}", own.node));
        }
        if own.cluster == 0 {
            return Err(format!("{:?} has not joined the cluster itself yet", own.node));
        }
        if hello.cluster != 0 && hello.cluster != own.cluster {
            return Err(format!(
                "{theirs:?} belongs to cluster {:x}, this one is {:x}",
                hello.cluster, own.cluster
            ));
        }
        self.meet(theirs, hello.store)?;
        Ok(Reply::Welcome { cluster: own.cluster, node: own.node, store: own.store })
    }

    /// Remembers a node's store.
    fn meet(&self, node: NodeId, store: u128) -> Result<(), String> {
        let known = self.state.lock().stores.get(&node).copied();
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
    pub(crate) fn welcomed(
        &self,
        node: NodeId,
        (cluster, theirs, store): (u128, NodeId, u128),
    ) -> Result<(), WireError> {
        let unwanted = |why: String| Err(WireError::Unwanted(why));
        if theirs != node {
            return unwanted(format!("{theirs:?} listens where {node:?} should"));
        }
        let own = self.cluster();
        if own.is_some_and(|own| own != cluster) || cluster == 0 {
            return unwanted(format!("{node:?} belongs to another cluster"));
        }
        self.meet(node, store).map_err(WireError::Unwanted)?;
        Ok(self.change(|state| state.cluster = cluster)?)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        writeln!(f, "cluster {:x}", self.cluster)?;
        writeln!(f, "node {}", self.node.0)?;
        writeln!(f, "store {:x}", self.store)?;
        writeln!(f, "opened {}", u8::from(self.opened))?;
        for address in &self.members {
            writeln!(f, "member {address}")?;
        }
        for (node, store) in &self.stores {
            writeln!(f, "met {} {store:x}", node.0)?;
        }
        writeln!(f, "end")
    }
}

impl State {
    fn read(text: &str) -> Option<State> {
        let mut lines = text.lines();
        if lines.next()? != FIRST_LINE || lines.next_back()? != "end" {
            return None;
        }
        let hex = |text: &str| u128::from_str_radix(text, 16).ok();
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let (cluster, node) = (hex(field("cluster")?)?, NodeId(field("node")?.parse().ok()?));
        let (store, opened) = (hex(field("store")?)?, field("opened")? == "1");
        let (mut members, mut stores) = (Vec::new(), BTreeMap::new());
        for line in lines {
            match line.split_once(' ')? {
                ("member", address) => members.push(address.parse().ok()?),
                ("met", rest) => {
                    let (node, store) = rest.split_once(' ')?;
                    stores.insert(NodeId(node.parse().ok()?), hex(store)?);
                }
                _ => return None,
            }
        }
        let is_member = node.0 >= 1 && node.0 <= members.len() as u64;
        is_member.then_some(State { cluster, node, store, opened, members, stores })
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
        Identity::create(fs, Path::new("/n"), NodeId(node), members()).expect("the disk works")
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
            Reply::Welcome { cluster, node, store } => {
                who.welcomed(at.node(), (cluster, node, store))
            }
            Reply::Refusal { why } => Err(WireError::Refused(why)),
        }
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
        let elsewhere = Hello { members: vec!["127.0.0.1:9".into()], ..second.hello() };
        assert!(refusal(&first, &elsewhere).contains("names the members"));
        let twin = Hello { node: NodeId(1), ..second.hello() };
        assert!(refusal(&first, &twin).contains("cannot dial"));
        let wrong = second.welcomed(NodeId(3), (first.hello().cluster, NodeId(1), 7));
        assert!(matches!(wrong, Err(WireError::Unwanted(_))), "{wrong:?}");
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
