//! A member of a cluster: its threads, its files, and the coordinator of its transactions.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use braid_cluster::{News, Router, RouterOptions};
use braid_consensus::{GroupOptions, RaftLogOptions, ReplicaId};
use braid_env::clock::Clock;
use braid_env::fs::{DirLock, FileSystem};
use braid_env::memory::Pool;
use braid_env::random::Random;
use braid_env::tasks::spawn_thread;
use braid_kv::{Coordinator, CoordinatorOptions, KvError, RowForm};
use braid_lsm::{Db, KeySpan, Options};
use braid_range::{
    FIRST_DATA_KEY, Locality, NodeEnv, NodeId, NodeOptions, RangeDescriptor, RangeId, Replicas,
    Room, RoomFloors, RoomWatch, ShortNodes, SplitPoints,
};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::carrier::{Carrier, Inbox, Questions};
use crate::driver::{Driver, Event, MAX_EVENTS, TICK};
use crate::frame::{Reply, WireError, ask};
use crate::identity::Identity;
use crate::office::Office;
use crate::peers::{Peers, connect, dial};
use crate::roster::{MAX_MEMBERS, Roster};

/// Of a leaseholder that dies others take over after so long, and an election: within 6 s, in the
/// median within 3.
const LEASE: Duration = Duration::from_millis(3000);
/// It is looked so often who leads how many ranges.
const SPREAD_TICKS: u64 = 7;
/// It is said so often which transactions run, and done what those over several ranges have left.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// Locks of a node that has not said so for so long go: others wait for them hardly longer than for
/// a lease.
const COORDINATOR_PATIENCE: Duration = Duration::from_millis(3500);
/// What coordinators of other nodes have left is looked for every so many times.
const RECOVERY: u64 = 5;
/// From one try to join to the next.
const REJOIN: Duration = Duration::from_millis(300);
/// Starts of a store count into the names of its transactions.
const MAX_STARTS: u64 = 1 << 16;

/// Where the roster is kept, unless said otherwise: in front of all data.
const ROSTER_KEY: &[u8] = b"\x01m";

/// What a member stands on.
pub struct MemberOptions {
    /// Its files, below `dir`.
    pub fs: Arc<dyn FileSystem>,
    /// See `fs`.
    pub dir: PathBuf,
    /// Where it listens for the other members: one of these. `None`: as at its first start.
    pub address: Option<SocketAddr>,
    /// All founders in an order that is the same for all of them; or, for a node that is none of
    /// them and joins a running cluster, some of its nodes. Empty: as at the first start.
    pub members: Vec<SocketAddr>,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// No two members' clocks differ by more. Default 250 ms.
    pub max_clock_offset: Duration,
    /// A new member looks for the others for so long. Default 5 minutes.
    pub join_patience: Duration,
    /// Of the store.
    pub engine: Options,
    /// What transactions and statements may hold together.
    pub memory: Arc<Pool>,
    /// As in [`braid_kv::StoreOptions`].
    pub row_form: Option<RowForm>,
    /// Where ranges may be split.
    pub split_points: SplitPoints,
    /// A range with more bytes in files is split. Default 256 MiB.
    pub max_range_bytes: u64,
    /// The log of a range with more bytes is cut though a member that is away needs it: it gets the
    /// state of the range then. Default 64 MiB.
    pub max_log_bytes: u64,
    /// For so long all versions are kept, the same for all members; `None`: for ever.
    pub gc_window: Option<Duration>,
    /// How members come and go.
    pub changes: MemberChanges,
}

/// How members come and go.
pub struct MemberChanges {
    /// A member that was not heard of for so long is dead: others get its replicas. Default 5 min.
    pub dead_after: Duration,
    /// Where this node is; `None`: as it has said before.
    pub locality: Option<Locality>,
    /// The key of the roster's record: nobody else writes it.
    pub roster_key: Bytes,
    /// Where a node that is alone would have its store: the first founder begins with it, if there
    /// is one; others are refused then. `None`, the default: there is no such place.
    pub alone_dir: Option<PathBuf>,
}

impl Default for MemberChanges {
    fn default() -> MemberChanges {
        MemberChanges {
            dead_after: Duration::from_secs(300),
            locality: None,
            roster_key: Bytes::from_static(ROSTER_KEY),
            alone_dir: None,
        }
    }
}

impl MemberOptions {
    /// Options with defaults for a place and a clock; as at the first start.
    pub fn new(fs: Arc<dyn FileSystem>, dir: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        MemberOptions {
            fs,
            dir: dir.into(),
            address: None,
            members: Vec::new(),
            clock,
            max_clock_offset: Duration::from_millis(250),
            join_patience: Duration::from_secs(300),
            engine: Options::default(),
            memory: Pool::unlimited(),
            row_form: None,
            split_points: braid_range::anywhere,
            max_range_bytes: 256 << 20,
            max_log_bytes: 64 << 20,
            gc_window: None,
            changes: MemberChanges::default(),
        }
    }
}

/// Why a member did not start.
#[derive(Debug)]
pub enum MemberError {
    /// The list of members cannot be one, or this one is not in it.
    Members(String),
    /// The cluster was founded with other members than are named now.
    Changed(String),
    /// Another process has the directory.
    InUse(PathBuf),
    /// It cannot listen there.
    Listen(SocketAddr, io::Error),
    /// No member has let it in for as long as it wanted to wait; the last reasons.
    NotJoined(String),
    /// The store that it had is not there any more.
    StoreGone(PathBuf),
    /// The disk has failed.
    Disk(io::Error),
    /// What was stored cannot be opened.
    Stored(braid_consensus::Error),
    /// The coordinator cannot begin.
    Coordinator(KvError),
}

impl fmt::Display for MemberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberError::Members(why) => write!(f, "{why}"),
            MemberError::Changed(why) => {
                write!(f, "{why}: where it listens, and with whom it began, cannot be changed")
            }
            MemberError::InUse(dir) => {
                write!(f, "{} is in use by another process", dir.display())
            }
            MemberError::Listen(address, e) => write!(f, "cannot listen on {address}: {e}"),
            MemberError::NotJoined(why) => write!(f, "no member has let this one in: {why}"),
            MemberError::StoreGone(dir) => write!(
                f,
                "the store in {} is gone: what this member has promised is lost, and it must not \
                 come back with another one",
                dir.display()
            ),
            MemberError::Disk(e) => write!(f, "{e}"),
            MemberError::Stored(e) => write!(f, "{e}"),
            MemberError::Coordinator(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for MemberError {}

impl From<io::Error> for MemberError {
    fn from(e: io::Error) -> MemberError {
        MemberError::Disk(e)
    }
}

/// A member that runs. Dropping it stops it.
pub struct Member {
    identity: Arc<Identity>,
    peers: Arc<Peers>,
    events: SyncSender<Event>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    router: Arc<Router>,
    coordinator: Arc<Coordinator>,
    clock: Arc<dyn Clock>,
    store: Db,
    seen: Seen,
    stopping: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
    /// It gives its leases away and takes none.
    draining: Arc<AtomicBool>,
    _lock: Box<dyn DirLock>,
}

/// What can be seen of its replicas.
struct Seen {
    states_installed: Arc<AtomicU64>,
    led: Arc<AtomicU64>,
    asleep: Arc<AtomicU64>,
    short: Arc<ShortNodes>,
}

impl Seen {
    fn of(replicas: &Replicas) -> Seen {
        Seen {
            states_installed: replicas.states_installed(),
            led: replicas.led(),
            asleep: replicas.asleep(),
            short: replicas.short_nodes(),
        }
    }
}

impl Member {
    /// Whether a directory is that of a member of a cluster.
    ///
    /// # Errors
    /// The disk's.
    pub fn lives_in(fs: &dyn FileSystem, dir: &Path) -> io::Result<bool> {
        fs.exists(&dir.join("member"))
    }

    /// Whether a store is that of a member, or was: what it holds counts together with the member's
    /// log and promises only, so a node that is alone must not go on with it.
    ///
    /// # Errors
    /// The store's.
    pub fn has_marked(store: &Db) -> Result<bool, MemberError> {
        braid_range::is_of_cluster(store).map_err(MemberError::Stored)
    }

    /// Starts a member, new or again. A new one waits until another one has let it in; then its
    /// replicas live, whether others do or not. Blocks for as long.
    ///
    /// # Errors
    /// See [`MemberError`].
    pub fn start(options: MemberOptions) -> Result<Member, MemberError> {
        options.fs.create_dir_all(&options.dir)?;
        let lock = lock(&options)?;
        let identity = Arc::new(identify(&options)?);
        let address = identity.address();
        let listener = TcpListener::bind(address).map_err(|e| MemberError::Listen(address, e))?;
        join(&identity, &options)?;
        let mut replicas = open(&identity, &options)?;
        replicas.set_members(identity.roster().members());
        let (failed, stopping): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
        let (events, received) = sync_channel(MAX_EVENTS);
        let (questions, office) = (Arc::new(Questions::default()), Arc::new(OnceLock::new()));
        let (clock, news) = (options.clock.clone(), Arc::new(News::default()));
        let inbox = Arc::new(Inbox {
            events: events.clone(),
            questions: questions.clone(),
            office: office.clone(),
            news: news.clone(),
            clock: clock.clone(),
        });
        let peers = Arc::new(Peers::start(listener, identity.clone(), inbox, news.clone())?);
        let seen = Seen::of(&replicas);
        let carrier = Carrier {
            identity: identity.clone(),
            events: events.clone(),
            questions,
            peers: peers.clone(),
            news,
            short: seen.short.clone(),
            clock: clock.clone(),
        };
        let router = Arc::new(router(carrier, &replicas, &identity, &options));
        let predecessors = predecessors(identity.node(), replicas.starts());
        let (store, watch) = (replicas.store().clone(), watch(&options));
        let driver = Driver::new(replicas, (&peers, &clock, &failed), watch);
        let own = events.clone();
        let drives = spawn_thread("braid-replicas", move || driver.run(&own, &received));
        let [announcer, keeper] = keep_house(&router, &clock, &stopping, predecessors);
        let coordinator = coordinator(&router, &options)?;
        let (draining, connected) = (Arc::new(AtomicBool::new(false)), peers.clone());
        let opened = Office {
            identity: identity.clone(),
            coordinator: coordinator.clone(),
            router: router.clone(),
            clock: options.clock.clone(),
            locality: options.changes.locality,
            key: options.changes.roster_key,
            drain: drains(&events, &draining),
            short: seen.short.clone(),
            connected: Box::new(move || connected.connected()),
        };
        let follows = follow_roster(office, opened, (&events, &peers, &stopping));
        let threads = Mutex::new(vec![drives, announcer, keeper, follows]);
        Ok(Member {
            identity,
            peers,
            events,
            threads,
            router,
            coordinator,
            clock: options.clock,
            store,
            seen,
            stopping,
            failed,
            draining,
            _lock: lock,
        })
    }

    /// Begins transactions.
    pub fn coordinator(&self) -> &Arc<Coordinator> {
        &self.coordinator
    }

    /// Its store, to look at.
    pub fn store(&self) -> &Db {
        &self.store
    }

    /// Its number.
    pub fn node(&self) -> NodeId {
        self.identity.node()
    }

    /// All members, and whether this one can send to them.
    pub fn members(&self) -> Vec<(NodeId, SocketAddr, bool)> {
        let connected = self.peers.connected();
        let own = self.node();
        let members = self.identity.members().into_iter();
        members.map(|(n, at)| (n, at, n == own || connected.contains(&n))).collect()
    }

    /// The disk has failed, or what was stored does not fit together: its replicas do nothing any
    /// more. Its clients may still be served by others.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// What room its disk has: with little of it, it leads nothing, and with none its replicas
    /// stand still until there is some.
    pub fn room(&self) -> Room {
        self.seen.short.own()
    }

    /// Why no client should be sent here now, for people; `None`: it serves them.
    pub fn not_ready(&self) -> Option<&'static str> {
        if self.has_failed() {
            Some("the replicas of this member have stopped: look at its log")
        } else if self.room() != Room::Enough {
            Some("the disk of this node has little room: other nodes serve its ranges")
        } else if self.draining.load(Ordering::SeqCst) {
            Some("this node gives its leases away")
        } else if self.router.is_cut_off() {
            Some("this node is not connected to a majority of the members")
        } else {
            None
        }
    }

    /// Transactions that have begun here and not ended.
    pub fn active_transactions(&self) -> usize {
        self.router.active_transactions()
    }

    /// How often something of the past was read at a replica nearby, instead of where it is served.
    pub fn near_reads(&self) -> u64 {
        self.router.near_reads()
    }

    /// How many ranges are known.
    pub fn range_count(&self) -> usize {
        self.router.range_count()
    }

    /// How many states of ranges it has got, since it was started, instead of entries that were cut
    /// while it was away.
    pub fn states_installed(&self) -> u64 {
        self.seen.states_installed.load(Ordering::Relaxed)
    }

    /// How many ranges it leads, as of a moment ago: it serves them, or is about to.
    pub fn led_ranges(&self) -> u64 {
        self.seen.led.load(Ordering::Relaxed)
    }

    /// Of how many ranges its replicas sleep: nobody asks them anything.
    pub fn sleeping_ranges(&self) -> u64 {
        self.seen.asleep.load(Ordering::Relaxed)
    }

    /// Gives the leases that it has to other members, and ends what its transactions have left; to
    /// be called before [`Member::stop`], so that nobody has to wait for either. Blocks until that
    /// is done, or for so long; whether it is. Without a majority it cannot be.
    pub fn drain(&self, patience: Duration) -> bool {
        // A count of a moment ago is not enough: it may lead more now.
        const STEP: Duration = Duration::from_millis(50);
        self.draining.store(true, Ordering::SeqCst);
        if self.has_failed() || self.events.send(Event::Drain(true)).is_err() {
            return false;
        }
        let until = self.clock.monotonic_nanos() + patience.as_nanos() as u64;
        self.clock.sleep(2 * TICK);
        let is_done = || self.led_ranges() == 0 && self.router.unfinished() == 0;
        // With nobody else there nobody takes any.
        let others =
            || self.members().iter().any(|(node, _, there)| *there && *node != self.node());
        while !is_done() && others() && self.clock.monotonic_nanos() < until {
            self.clock.sleep(STEP);
        }
        is_done()
    }

    /// Stops its threads and closes its store. What was acknowledged is durable already.
    pub fn stop(&self) {
        if self.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        // It may have ended by itself.
        let _told = self.events.send(Event::Stop);
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of this member panicked");
            }
        }
        self.peers.stop();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Finds leaseholders for this node's transactions; it knows the ranges that the node has replicas
/// of. It may lack some that were split off while it was away: their keys are looked for where the
/// cluster began.
fn router(
    carrier: Carrier,
    replicas: &Replicas,
    identity: &Identity,
    options: &MemberOptions,
) -> Router {
    let nodes: Vec<(NodeId, SocketAddr)> = identity.members();
    let guess = RangeDescriptor { generation: 0, ..first_range(&nodes) };
    let own = replicas.ranges().into_iter().map(|(range, _)| range);
    let ranges = std::iter::once(guess).chain(own).collect();
    let home = identity.node();
    let own = RouterOptions {
        home: Some(home),
        coordinator: coordinator_number(home, replicas.starts()),
        hlc: replicas.hlc().clone(),
        wall: options.clock.clone(),
        max_clock_offset_micros: options.max_clock_offset.as_micros() as u64,
        patience: Duration::from_secs(30),
        oldest_readable: replicas.newest_threshold(),
        recalls: replicas.recalls().clone(),
        fs: options.fs.clone(),
        ranges,
    };
    Router::new(Arc::new(carrier), own)
}

/// Tells the transactions of a process from those of others: which start of the node it is.
fn coordinator_number(home: NodeId, starts: u64) -> u64 {
    home.0 << 16 | starts
}

/// The processes before this one that may have left something which is not given up by itself yet.
fn predecessors(home: NodeId, starts: u64) -> Vec<u64> {
    (starts.saturating_sub(3).max(1)..starts).map(|start| coordinator_number(home, start)).collect()
}

/// Who this is: as it was at the first start, or as it is said now.
fn identify(options: &MemberOptions) -> Result<Identity, MemberError> {
    let (fs, dir, named) = (&options.fs, &options.dir, &options.members);
    if let Some(identity) = Identity::load(fs.clone(), dir)? {
        let (known, own) = (identity.told(), identity.address());
        if !named.is_empty() && *named != known {
            let text = known.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",");
            return Err(MemberError::Changed(format!("this member was started with {text}")));
        }
        if options.address.is_some_and(|address| address != own) {
            return Err(MemberError::Changed(format!("this member listens on {own}")));
        }
        return Ok(identity);
    }
    let bad = |why: String| Err(MemberError::Members(why));
    let Some(address) = options.address else {
        return bad("a new member must be told where it listens".into());
    };
    if named.is_empty() {
        return bad("a new member must be told of others".into());
    }
    let grown = holds_store(options)?;
    if grown && named.first() != Some(&address) {
        return bad(format!(
            "{} holds the store of a node that was alone: it can be the first founder of a new \
             cluster, in front of all others in the list, and nothing else. Start a node that \
             joins or founds with it in an empty directory",
            options.changes.alone_dir.as_deref().unwrap_or(dir).display()
        ));
    }
    if !named.contains(&address) {
        tracing::info!(%address, "it is none of the founders: it joins a cluster that runs");
        return Ok(Identity::create(fs.clone(), dir, address, (named.clone(), false))?);
    }
    let distinct = named.iter().collect::<std::collections::BTreeSet<_>>().len();
    if distinct != named.len() || ![3, 5, 7, 9].contains(&named.len()) {
        return bad(format!(
            "a cluster has 3, 5, 7 or {MAX_MEMBERS} members at different addresses, not {}",
            named.len()
        ));
    }
    if grown {
        tracing::info!("the store of a node that was alone becomes the first of a cluster");
    }
    Ok(Identity::create(fs.clone(), dir, address, (named.clone(), grown))?)
}

/// Whether a node that is alone, or was before it became a member, has its store there.
fn holds_store(options: &MemberOptions) -> io::Result<bool> {
    let exists = |dir: &PathBuf| braid_lsm::Db::exists(&*options.fs, dir);
    options.changes.alone_dir.as_ref().map_or(Ok(false), exists)
}

/// Where its store is, if not in its own directory.
fn store_dir(identity: &Identity, options: &MemberOptions) -> Result<Option<PathBuf>, MemberError> {
    if !identity.has_grown() || identity.node() != NodeId(1) {
        return Ok(None);
    }
    // Without it an empty one would be made in its place.
    match (&options.changes.alone_dir, holds_store(options)?) {
        (Some(dir), true) => Ok(Some(dir.clone())),
        (dir, _) => Err(MemberError::StoreGone(dir.clone().unwrap_or(options.dir.clone()))),
    }
}

/// Waits until the cluster is known.
fn join(identity: &Identity, options: &MemberOptions) -> Result<(), MemberError> {
    let clock = &options.clock;
    let until = clock.monotonic_nanos() + options.join_patience.as_nanos() as u64;
    let mut reasons = String::new();
    while identity.cluster().is_none() {
        reasons.clear();
        let founders = identity.founders();
        for (place, address) in identity.told().into_iter().enumerate() {
            if address == identity.address() {
                continue;
            }
            let joined = match founders.is_empty() {
                true => ask_in(identity, address),
                false => dial(identity, NodeId(place as u64 + 1), address).map(drop),
            };
            match joined {
                Ok(()) => break,
                Err(e) => reasons.push_str(&format!("{address}: {e}; ")),
            }
        }
        if identity.cluster().is_some() {
            break;
        }
        if clock.monotonic_nanos() > until {
            return Err(MemberError::NotJoined(reasons));
        }
        tracing::info!(%reasons, "waiting for a member that lets this one in");
        clock.sleep(REJOIN);
    }
    Ok(())
}

/// Asks a node of a running cluster for a number.
fn ask_in(identity: &Identity, address: SocketAddr) -> Result<(), WireError> {
    match ask(&mut connect(address)?, &identity.hello())? {
        Reply::Admitted { cluster, node, roster } => {
            let roster = Roster::read(&roster).ok_or(WireError::Malformed)?;
            Ok(identity.admitted((cluster, node), roster)?)
        }
        _ => Err(WireError::Malformed),
    }
}

/// Has the replicas give their leases away, or take some again, and notes it.
fn drains(
    events: &SyncSender<Event>,
    draining: &Arc<AtomicBool>,
) -> Box<dyn Fn(bool) + Send + Sync> {
    let (events, draining) = (events.clone(), draining.clone());
    Box::new(move |drain| {
        draining.store(drain, Ordering::SeqCst);
        // Lost if this node is stopping, as it may be.
        drop(events.send(Event::Drain(drain)));
    })
}

/// Serves those who want something of the roster, and follows it.
fn follow_roster(
    office: Arc<OnceLock<Office>>,
    opened: Office,
    (events, peers, stopping): (&SyncSender<Event>, &Arc<Peers>, &Arc<AtomicBool>),
) -> JoinHandle<()> {
    let (events, peers, stopping) = (events.clone(), peers.clone(), stopping.clone());
    spawn_thread("braid-roster", move || {
        let office = office.get_or_init(|| opened);
        office.follow(&stopping, |roster| {
            peers.follow_roster();
            // Lost if this node is stopping, as it may be.
            drop(events.send(Event::Members(roster.members())));
        });
    })
}

/// Opens what a member keeps.
fn open(identity: &Identity, options: &MemberOptions) -> Result<Replicas, MemberError> {
    let (fs, dir) = (&options.fs, &options.dir);
    let store_dir = store_dir(identity, options)?;
    let has_store = store_dir.is_some() || fs.exists(&dir.join("store"))?;
    if identity.was_opened() && !(has_store && fs.exists(&dir.join("raft"))?) {
        return Err(MemberError::StoreGone(dir.clone()));
    }
    let env = NodeEnv {
        fs: fs.clone(),
        clock: options.clock.clone(),
        random: Random::from_entropy(),
        store_dir,
        store: options.engine.clone(),
        log: RaftLogOptions { clock: options.clock.clone(), ..RaftLogOptions::default() },
        row_form: options.row_form,
        split_points: options.split_points,
    };
    let own = NodeOptions {
        lease_micros: LEASE.as_micros() as u64,
        max_clock_offset_micros: options.max_clock_offset.as_micros() as u64,
        max_range_bytes: options.max_range_bytes,
        group: GroupOptions { max_log_bytes: options.max_log_bytes, ..GroupOptions::default() },
        gc_window_micros: options.gc_window.map(|window| window.as_micros() as u64),
        spread_ticks: Some(SPREAD_TICKS),
        coordinator_patience_micros: COORDINATOR_PATIENCE.as_micros() as u64,
        dead_after_ticks: (options.changes.dead_after.as_nanos() / TICK.as_nanos()) as u64,
        ..NodeOptions::new(identity.node())
    };
    let first = first_range(&identity.first_replicas());
    let replicas = Replicas::open(env, dir, own, &[first]).map_err(MemberError::Stored)?;
    if replicas.starts() >= MAX_STARTS {
        let why = "it was started too often: names of transactions would be used twice";
        return Err(MemberError::Stored(braid_consensus::Error::Inconsistent(why.into())));
    }
    identity.note_opened()?;
    Ok(replicas)
}

/// Looks how much room there is for what a member keeps.
fn watch(options: &MemberOptions) -> RoomWatch {
    let alone = options.changes.alone_dir.iter().filter(|dir| {
        // Only the first founder may have its store there.
        options.fs.exists(dir).unwrap_or(false)
    });
    let dirs = std::iter::once(&options.dir).chain(alone).cloned().collect();
    let floors = RoomFloors::of_reserve(options.engine.ballast_size);
    RoomWatch::new(options.fs.clone(), dirs, floors)
}

/// The range that a cluster begins with, on these nodes.
fn first_range(nodes: &[(NodeId, SocketAddr)]) -> RangeDescriptor {
    let replicas = nodes.iter().map(|(node, _)| (ReplicaId(node.0), *node));
    let span = KeySpan::new(FIRST_DATA_KEY, KeySpan::all().end);
    RangeDescriptor::new(RangeId(1), span, replicas.collect())
}

/// Ends what transactions have left.
fn housekeep(router: &Router, round: u64) {
    router.finish_decided();
    if round.is_multiple_of(RECOVERY)
        && let Err(e) = router.recover()
    {
        tracing::debug!(error = %e, "what others have left cannot be ended now");
    }
}

/// The directory, for this process alone.
fn lock(options: &MemberOptions) -> Result<Box<dyn DirLock>, MemberError> {
    options.fs.lock(&options.dir.join("lock")).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => MemberError::InUse(options.dir.clone()),
        _ => MemberError::Disk(e),
    })
}

/// What begins transactions on this node.
fn coordinator(
    router: &Arc<Router>,
    options: &MemberOptions,
) -> Result<Arc<Coordinator>, MemberError> {
    let own = CoordinatorOptions {
        fs: options.fs.clone(),
        dir: options.dir.clone(),
        engine: options.engine.clone(),
        memory: options.memory.clone(),
        row_form: options.row_form,
    };
    Coordinator::over(router.clone(), own).map_err(MemberError::Coordinator)
}

/// Threads that do what must be done every second until the member stops.
fn keep_house(
    router: &Arc<Router>,
    clock: &Arc<dyn Clock>,
    stopping: &Arc<AtomicBool>,
    predecessors: Vec<u64>,
) -> [JoinHandle<()>; 2] {
    let (says, timer, ending) = (router.clone(), clock.clone(), stopping.clone());
    // On its own: locks would go while somebody waits for a range that is not served.
    let announcer = spawn_thread("braid-announce", move || {
        // Not all of the others are connected at first.
        for _ in 0..if predecessors.is_empty() { 0 } else { 4 } {
            timer.sleep(HOUSEKEEPING / 4);
            says.tell_of_predecessors(&predecessors);
        }
        every_second(&*timer, &ending, |_| says.announce());
    });
    let (keeps, timer, ending) = (router.clone(), clock.clone(), stopping.clone());
    let keeper = spawn_thread("braid-housekeep", move || {
        every_second(&*timer, &ending, |round| housekeep(&keeps, round));
    });
    [announcer, keeper]
}

/// Does something every second until the member stops.
fn every_second(clock: &dyn Clock, ending: &AtomicBool, mut work: impl FnMut(u64)) {
    const STEP: Duration = Duration::from_millis(250);
    let (mut round, mut waited) = (0u64, Duration::ZERO);
    while !ending.load(Ordering::SeqCst) {
        clock.sleep(STEP);
        waited += STEP;
        if waited >= HOUSEKEEPING {
            (waited, round) = (Duration::ZERO, round + 1);
            work(round);
        }
    }
}
