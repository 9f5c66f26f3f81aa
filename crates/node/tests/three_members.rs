//! Three members over real sockets, in one process: transactions through all of them while one is
//! away, and strangers who speak to them.

#[path = "three_members/growing.rs"]
mod growing;
#[path = "../../cli/tests/support/ports.rs"]
mod ports;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::{DiskFs, MemFs};
use braid_env::random::Random;
use braid_kv::{Coordinator, Isolation, KvError, TxnOptions};
use braid_lsm::Options;
use braid_node::frame::{Hello, Purpose, WireError, greet};
use braid_node::{Member, MemberError, MemberOptions, Order, order};
use braid_range::NodeId;
use bytes::Bytes;
use ports::free_addresses;

const ACCOUNTS: u64 = 12;
const EACH: u64 = 100;

struct Cluster {
    members: Vec<SocketAddr>,
    disks: Vec<Arc<MemFs>>,
}

impl Cluster {
    fn new() -> Cluster {
        let members = free_addresses(3);
        Cluster { members, disks: (0..3).map(|_| Arc::new(MemFs::new())).collect() }
    }

    fn options(&self, n: usize) -> MemberOptions {
        let engine = Options {
            memtable_size: 1 << 20,
            block_cache_size: 1 << 20,
            ballast_size: 0,
            ..Options::default()
        };
        MemberOptions {
            address: Some(self.members[n]),
            members: self.members[..3].to_vec(),
            engine,
            ..MemberOptions::new(self.disks[n].clone(), "/node", Arc::new(WallClock))
        }
    }

    fn start(&self, n: usize) -> Member {
        Member::start(self.options(n)).expect("it starts")
    }
}

fn account(n: u64) -> Bytes {
    format!("account {n:02}").into()
}

fn number(value: Option<Bytes>) -> u64 {
    let text = value.expect("accounts stay");
    std::str::from_utf8(&text).expect("text").parse().expect("a number")
}

/// Runs a transaction until it has happened.
fn run<T>(at: &Arc<Coordinator>, body: impl Fn(&braid_kv::Txn) -> Result<T, KvError>) -> T {
    for _ in 0..10_000 {
        let options = TxnOptions { isolation: Isolation::Serializable, ..TxnOptions::default() };
        let txn = at.begin(options).expect("it begins");
        let done = body(&txn).and_then(|value| txn.commit().map(|_| value));
        match done {
            Ok(value) => return value,
            Err(KvError::Retry { .. } | KvError::Deadlock { .. } | KvError::Unavailable(_)) => {}
            Err(e) => panic!("{e}"),
        }
    }
    panic!("never came to its end");
}

fn transfer(at: &Arc<Coordinator>, random: &mut Random) {
    let from = random.below(ACCOUNTS);
    let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
    run(at, |txn| {
        let (a, b) = (number(txn.get(&account(from))?), number(txn.get(&account(to))?));
        if a > 0 {
            txn.put(account(from), (a - 1).to_string())?;
            txn.put(account(to), (b + 1).to_string())?;
        }
        Ok(())
    });
}

fn sum(at: &Arc<Coordinator>) -> u64 {
    run(at, |txn| {
        let all = (0..ACCOUNTS).map(|n| Ok(number(txn.get(&account(n))?)));
        all.sum::<Result<u64, KvError>>()
    })
}

#[test]
fn transfers_through_all_members_keep_the_sum_while_one_is_away() {
    let cluster = Cluster::new();
    let start = |n: usize| cluster.start(n);
    let mut members: Vec<Option<Member>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|n| scope.spawn(move || start(n))).collect();
        threads.into_iter().map(|thread| Some(thread.join().expect("it starts"))).collect()
    });
    let at = |member: &Option<Member>| member.as_ref().expect("it runs").coordinator().clone();
    run(&at(&members[0]), |txn| {
        (0..ACCOUNTS).try_for_each(|n| txn.put(account(n), EACH.to_string()))
    });
    for away in [None, Some(0), Some(1), Some(2), None] {
        if let Some(away) = away {
            let gone: Option<Member> = members[away].take();
            gone.expect("it runs").stop();
        }
        std::thread::scope(|scope| {
            for (n, member) in members.iter().enumerate().filter(|(_, m)| m.is_some()) {
                let coordinator = at(member);
                scope.spawn(move || {
                    let mut random = Random::seeded(n as u64);
                    (0..15).for_each(|_| transfer(&coordinator, &mut random));
                });
            }
        });
        if let Some(away) = away {
            members[away] = Some(cluster.start(away));
        }
        for member in &members {
            assert_eq!(sum(&at(member)), ACCOUNTS * EACH, "away: {away:?}");
        }
    }
    assert!(members.iter().flatten().all(|member| !member.has_failed()));
}

/// Whether the other side ends the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn strangers_and_damaged_messages_end_their_own_connection_only() {
    let cluster = Cluster::new();
    let start = |n: usize| cluster.start(n);
    let members: Vec<Member> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|n| scope.spawn(move || start(n))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it starts")).collect()
    });
    let dial = || TcpStream::connect(cluster.members[0]).expect("it listens");
    run(members[1].coordinator(), |txn| txn.put("k", "before"));

    let mut http = dial();
    http.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").expect("it is sent");
    assert!(is_closed(&mut http));

    let names = || cluster.members.iter().map(SocketAddr::to_string).collect::<Vec<_>>();
    let hello = |cluster: u128, members: Vec<String>| Hello {
        magic: 0x4252_4149_444E_4F44,
        version: braid_node::frame::FORMAT_VERSION,
        cluster,
        node: NodeId(3),
        store: 77,
        address: names()[2].clone(),
        members,
        purpose: Purpose::Talk,
    };
    let refused = |hello: &Hello| match greet(&mut dial(), hello) {
        Err(WireError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(&hello(5, names())).contains("belongs to cluster"));
    assert!(refused(&hello(0, vec![])).contains("names the members"));

    // One that is let in, and then speaks nonsense; the third member is not started, so it may
    // take its place.
    let mut inside = dial();
    let welcome = greet(&mut inside, &hello(0, names()));
    assert!(welcome.is_ok(), "{welcome:?}");
    let mut large = vec![0xFF; 4];
    large.extend([0; 4]);
    inside.write_all(&large).expect("it is sent");
    assert!(is_closed(&mut inside));
    for payload in [&[9, 1, 2][..], &[2, 1], &[]] {
        let mut inside = dial();
        assert!(greet(&mut inside, &hello(0, names())).is_ok());
        let mut frame = (payload.len() as u32).to_le_bytes().to_vec();
        frame.extend(crc32c::crc32c(payload).to_le_bytes());
        frame.extend(payload);
        inside.write_all(&frame).expect("it is sent");
        assert!(is_closed(&mut inside), "{payload:?}");
    }
    // A message that is a frame and no message of Raft is not looked at.
    let mut inside = dial();
    assert!(greet(&mut inside, &hello(0, names())).is_ok());
    let raft = [1, 3, 1, 1, 0];
    let mut frame = (raft.len() as u32).to_le_bytes().to_vec();
    frame.extend(crc32c::crc32c(&raft).to_le_bytes());
    frame.extend(raft);
    inside.write_all(&frame).expect("it is sent");

    // Now the third one has another store than who was let in under its name.
    let refused =
        Member::start(MemberOptions { join_patience: Duration::ZERO, ..cluster.options(2) });
    match refused.map(|_| ()) {
        // The second member has not met the other one, and may let it in.
        Ok(()) | Err(MemberError::NotJoined(_)) => {}
        Err(e) => panic!("{e}"),
    }
    run(members[1].coordinator(), |txn| txn.put("k", "after"));
    let read = run(members[0].coordinator(), |txn| txn.get("k".as_bytes()));
    assert_eq!(read.as_deref(), Some(b"after".as_slice()));
}

/// Carries an order out until all of it is done.
fn until_done(at: SocketAddr, what: Order) -> String {
    for _ in 0..600 {
        match order(at, what) {
            Ok((true, text)) => return text,
            Ok((false, _)) => {}
            Err(e) => panic!("{e}"),
        }
        WallClock.sleep(Duration::from_millis(100));
    }
    panic!("{what:?} does not come to its end: {}", order(at, Order::Status).expect("status").1);
}

fn refused(at: SocketAddr, what: Order) -> String {
    match order(at, what) {
        Err(WireError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// One of three loses its disk. A new node joins and takes its place; then the first one leaves,
/// and
/// comes back as another node. The sum stays.
#[test]
fn a_lost_member_is_replaced_and_another_one_leaves() {
    let mut cluster = Cluster::new();
    let start = |n: usize| cluster.start(n);
    let mut members: Vec<Member> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|n| scope.spawn(move || start(n))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it starts")).collect()
    });
    let founders = cluster.members.clone();
    run(members[0].coordinator(), |txn| {
        (0..ACCOUNTS).try_for_each(|n| txn.put(account(n), EACH.to_string()))
    });
    let too_few = refused(founders[0], Order::Decommission(NodeId(3)));
    assert!(too_few.contains("2 nodes would be left"), "{too_few}");
    members.pop().expect("there are three").stop();

    let join = |cluster: &mut Cluster, told: Vec<SocketAddr>, at: Option<SocketAddr>| {
        cluster.members.push(at.unwrap_or_else(|| free_addresses(1)[0]));
        cluster.disks.push(Arc::new(MemFs::new()));
        let n = cluster.members.len() - 1;
        Member::start(MemberOptions { members: told, ..cluster.options(n) })
    };
    // Not at the address of the lost one, as long as that one may come back.
    let patience = Duration::ZERO;
    let twin = MemberOptions {
        members: vec![founders[0]],
        fs: Arc::new(MemFs::new()),
        join_patience: patience,
        ..cluster.options(2)
    };
    let twin = Member::start(twin).map(|_| ()).expect_err("n3 listens there").to_string();
    assert!(twin.contains("decommission 3"), "{twin}");
    let fourth = join(&mut cluster, vec![founders[1]], None).expect("it joins");
    assert_eq!(fourth.node(), NodeId(4));
    assert_eq!(sum(fourth.coordinator()), ACCOUNTS * EACH, "without a replica of its own");
    until_done(founders[0], Order::Decommission(NodeId(3)));
    let status = order(founders[1], Order::Status).expect("it answers").1;
    assert!(status.contains(&format!("3 {} gone", founders[2])), "{status}");
    // Its old disk is not let in any more, whoever is asked.
    let old = cluster.start(2);
    let mut random = Random::seeded(1);
    (0..30).for_each(|_| transfer(fourth.coordinator(), &mut random));
    let is_alone =
        || old.members().iter().all(|(node, _, connected)| *node == old.node() || !connected);
    // Those who have not heard of it yet may have talked to it for a moment.
    for _ in 0..100 {
        if is_alone() {
            break;
        }
        WallClock.sleep(Duration::from_millis(100));
    }
    assert!(is_alone(), "{:?}", old.members());
    old.stop();

    // The new one counts: with it and the second there is a majority.
    drop(members.remove(0));
    assert_eq!(sum(fourth.coordinator()), ACCOUNTS * EACH);
    let first = cluster.start(0);
    // Where the lost one was, a fifth one listens; the first one leaves for it.
    let fifth = join(&mut cluster, vec![founders[0]], Some(founders[2])).expect("it joins");
    assert_eq!(fifth.node(), NodeId(5));
    let text = until_done(founders[1], Order::Decommission(NodeId(1)));
    assert!(text.contains("not let in again"), "{text}");
    let gone = refused(founders[1], Order::Recommission(NodeId(1)));
    assert!(gone.contains("not let in again"), "{gone}");
    first.stop();
    for member in [&members[0], &fourth, &fifth] {
        transfer(member.coordinator(), &mut random);
        assert_eq!(sum(member.coordinator()), ACCOUNTS * EACH);
        assert!(!member.has_failed());
    }
}

#[test]
fn what_cannot_be_a_member_is_told_why() {
    let cluster = Cluster::new();
    let wrong = |change: &dyn Fn(&mut MemberOptions)| {
        let mut options = cluster.options(0);
        options.fs = Arc::new(MemFs::new());
        change(&mut options);
        Member::start(options).map(|_| ()).expect_err("it cannot start").to_string()
    };
    assert!(wrong(&|o| o.members.truncate(2)).contains("3, 5, 7 or 9 members"));
    assert!(wrong(&|o| o.members.clear()).contains("must be told of others"));
    // It is none of those that are named: it wants to join them, and nobody is there.
    let joins = wrong(&|o| {
        o.members.remove(0);
        o.join_patience = Duration::ZERO;
    });
    assert!(joins.contains("no member has let this one in"), "{joins}");
    assert!(wrong(&|o| o.address = None).contains("must be told where it listens"));
    let alone = wrong(&|o| {
        o.address = Some(cluster.members[1]);
        o.join_patience = Duration::ZERO;
    });
    assert!(alone.contains("no member has let this one in"), "{alone}");

    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("node");
    let on_disk = || {
        let options = cluster.options(0);
        MemberOptions { fs: DiskFs::shared(), dir: dir.clone(), ..options }
    };
    drop(Member::start(on_disk()).expect("it starts"));
    let mut changed = on_disk();
    changed.members.reverse();
    let changed = Member::start(changed).map(|_| ()).expect_err("others are named");
    assert!(changed.to_string().contains("cannot be changed"), "{changed}");
    // Nothing has to be said again.
    let again = MemberOptions::new(DiskFs::shared(), &dir, Arc::new(WallClock));
    let again = Member::start(again).expect("it starts");
    let twice = Member::start(on_disk()).map(|_| ()).expect_err("it is running");
    assert!(matches!(twice, MemberError::InUse(_)), "{twice}");
    drop(again);
    assert!(Member::lives_in(&*DiskFs::shared(), &dir).expect("it reads"));
    // Its log is moved away.
    DiskFs::shared().rename(&dir.join("raft"), &dir.join("gone")).expect("it is renamed");
    let gone = Member::start(on_disk()).map(|_| ()).expect_err("something is missing");
    assert!(gone.to_string().contains("must not come back"), "{gone}");
}
