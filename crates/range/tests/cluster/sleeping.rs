//! Ranges that nobody asks anything: that they cost nothing, and that they wake.

use super::*;

/// Until a range has slept for a while, in ticks: it has nothing to do for 50 of them.
const LONG: u64 = 90;

const ALL: [u64; 3] = [1, 2, 3];

impl Cluster {
    /// Whether the first range's replicas sleep there.
    fn sleep(&mut self, who: &[u64]) -> Vec<bool> {
        who.iter().map(|id| self.process(*id).sleeps(RangeId(1))).collect()
    }

    /// Time passes until the first range sleeps on all of these nodes.
    fn until_asleep(&mut self, who: &[u64]) {
        for _ in 0..4 * LONG {
            if self.sleep(who).iter().all(|sleeps| *sleeps) {
                return;
            }
            self.pass(1, who);
        }
        let states: Vec<String> = who.iter().map(|id| self.describe(*id)).collect();
        panic!("{:?}\n{}", self.sleep(who), states.join("\n"));
    }

    /// Writes at whichever of these nodes serves the first range; after how many ticks one did.
    fn write_somewhere(&mut self, who: &[u64], number: u64, name: &str) -> u64 {
        for ticks in 0..300 {
            for id in who {
                let txn = TxnId { began: self.now(*id), number };
                let answer = self.ask(*id, commit(txn, vec![put(name, "1")]));
                if matches!(answer, Some(Answer::Committed { .. })) {
                    return ticks;
                }
            }
            self.pass(1, who);
        }
        let states: Vec<String> = who.iter().map(|id| self.describe(*id)).collect();
        panic!("nobody serves:\n{}", states.join("\n"));
    }

    /// Splits the first range, which n1 leads, into so many; all of them sleep then.
    fn part_into(&mut self, ranges: u64) {
        for n in (1..ranges).rev() {
            let split = Split { at: key(&format!("k{n:02}")), right: RangeId(100 + n) };
            assert_eq!(self.ask(1, Ask::Split(split)), Some(Answer::Again));
            self.pass(3, &ALL);
        }
        self.pass(2 * LONG, &ALL);
    }

    fn asleep(&mut self, who: &[u64]) -> Vec<usize> {
        who.iter().map(|id| self.process(*id).activity().asleep).collect()
    }

    fn ticks_of_replicas(&mut self) -> u64 {
        ALL.iter().map(|id| self.process(*id).activity().ticks).sum()
    }

    /// The terms of the first range, as its replicas know them.
    fn terms(&mut self) -> Vec<String> {
        let term = |state: String| state.split(" t").nth(1).map(|rest| rest[..2].to_string());
        ALL.iter().map(|id| term(self.describe(*id)).expect("it is described")).collect()
    }
}

#[test]
fn ranges_that_nobody_asks_anything_take_no_ticks_and_no_messages() {
    const RANGES: u64 = 40;
    let mut cluster = Cluster::new();
    cluster.part_into(RANGES);
    let asleep = |cluster: &mut Cluster| cluster.asleep(&ALL);
    assert_eq!(asleep(&mut cluster), [RANGES as usize; 3], "{}", cluster.describe(1));
    let (sent, ticks) = (cluster.sent, cluster.ticks_of_replicas());
    cluster.pass(300, &ALL);
    assert_eq!(cluster.ticks_of_replicas(), ticks);
    // Each node says to two others every three ticks that it is there.
    let beats = 3 * 2 * 100;
    assert_eq!(cluster.sent, (sent.0, sent.1 + beats));
    assert_eq!(asleep(&mut cluster), [RANGES as usize; 3]);
    // One that is asked wakes, and no other.
    let txn = TxnId { began: cluster.now(1), number: 1 };
    let done = cluster.ask_range(101, 1, commit(txn, vec![put("k01", "1")]));
    assert!(matches!(done, Some(Answer::Committed { .. })), "{done:?}");
    cluster.pass(1, &ALL);
    assert_eq!(asleep(&mut cluster), [RANGES as usize - 1; 3]);
    cluster.pass(2 * LONG, &ALL);
    assert_eq!(asleep(&mut cluster), [RANGES as usize; 3]);
}

/// Its machine was busy for a moment: all of its ranges at once would keep it, and others.
#[test]
fn a_short_silence_of_a_node_with_many_ranges_wakes_few_of_them() {
    const RANGES: u64 = 99;
    let mut cluster = Cluster::new();
    cluster.part_into(RANGES);
    assert_eq!(cluster.asleep(&ALL), [RANGES as usize; 3]);
    cluster.cut_off = vec![1];
    let mut least = RANGES as usize;
    for _ in 0..40 {
        cluster.pass(1, &ALL);
        let left = cluster.asleep(&[2])[0];
        assert!(least - left <= 32, "{} woke with one tick", least - left);
        least = left;
        if least < RANGES as usize {
            break;
        }
    }
    assert_eq!(least, RANGES as usize - 32);
    cluster.cut_off.clear();
    for _ in 0..2 * LONG {
        cluster.pass(1, &ALL);
        least = least.min(cluster.asleep(&[2])[0]);
    }
    assert!(least >= RANGES as usize - 64, "only {least} slept on");
    assert_eq!(cluster.asleep(&ALL), [RANGES as usize; 3]);
}

#[test]
fn ranges_of_a_node_that_dies_are_led_by_others_one_after_the_other() {
    const RANGES: u64 = 99;
    let mut cluster = Cluster::new();
    cluster.part_into(RANGES);
    cluster.crash(1, CrashPolicy::LoseAll);
    // One that is asked does not wait for its turn.
    cluster.pass(11, &[2, 3]);
    let mut waited = 0;
    let mut number = 0;
    while !ALL[1..].iter().any(|id| {
        number += 1;
        let txn = TxnId { began: cluster.now(*id), number };
        let done = cluster.ask_range(100 + RANGES - 1, *id, commit(txn, vec![put("k98", "1")]));
        matches!(done, Some(Answer::Committed { .. }))
    }) {
        cluster.pass(1, &[2, 3]);
        waited += 1;
    }
    assert!(waited < 80, "waited for {waited} ticks");
    cluster.pass(3 * LONG, &[2, 3]);
    let describe = |cluster: &mut Cluster, id| cluster.describe(id);
    let led: usize =
        [2, 3].map(|id| describe(&mut cluster, id).matches("leads").count()).iter().sum();
    assert_eq!(led, RANGES as usize);
    assert_eq!(cluster.asleep(&[2, 3]), [RANGES as usize; 2]);
    cluster.restart(1);
    cluster.pass(3 * LONG, &ALL);
    assert_eq!(cluster.asleep(&ALL), [RANGES as usize; 3]);
}

#[test]
fn whoever_is_asked_wakes_and_so_does_the_leader_of_who_is() {
    let mut cluster = Cluster::new();
    cluster.write_somewhere(&[1], 1, "a");
    cluster.until_asleep(&ALL);
    // Its lease is over: the first request waits for one round, and for no tick.
    cluster.pass(LONG, &ALL);
    assert_eq!(cluster.write_somewhere(&[1], 2, "b"), 0);
    assert_eq!(cluster.sleep(&ALL), [false; 3]);
    assert_eq!(shown(cluster.ask(1, read("a", "c"))), "a=1 b=1");
    cluster.until_asleep(&ALL);
    let follower = cluster.ask(2, read("a", "c"));
    assert_eq!(follower, Some(Answer::NotHolder { try_node: Some(NodeId(1)) }));
    assert_eq!(cluster.sleep(&ALL), [false; 3], "it has asked its leader, which tells the others");
    let terms = cluster.terms();
    cluster.until_asleep(&ALL);
    assert_eq!(cluster.terms(), terms, "nobody was elected");
}

#[test]
fn a_range_whose_leader_dies_while_it_sleeps_is_served_by_another_one() {
    let mut cluster = Cluster::new();
    cluster.write_somewhere(&[1], 1, "a");
    cluster.until_asleep(&ALL);
    cluster.crash(1, CrashPolicy::LoseAll);
    // Nobody asks anything: they notice it themselves.
    cluster.pass(9, &[2, 3]);
    assert_eq!(cluster.sleep(&[2, 3]), [true; 2], "others may be late for so long");
    let leads = |cluster: &mut Cluster, id| cluster.describe(id).contains("leads");
    let mut ticks = 9;
    while !leads(&mut cluster, 2) && !leads(&mut cluster, 3) {
        cluster.pass(1, &[2, 3]);
        ticks += 1;
    }
    // It is noticed after 12, and then they vote: nobody has heard of a leader lately. (These two
    // ask for votes at the same moment, and have to try again.)
    assert!(ticks < 33, "{ticks}");
    let waited = cluster.write_somewhere(&[2, 3], 2, "b");
    assert!(waited < 40, "waited {waited} ticks");
    // It sleeps with the two that are left, and the third one gets what it has missed.
    cluster.pass(2 * LONG, &[2, 3]);
    assert_eq!(cluster.sleep(&[2, 3]), [true; 2]);
    cluster.restart(1);
    cluster.until_asleep(&ALL);
    assert_eq!(ALL.map(|id| cluster.rows_in_store(id)), [2; 3]);
}

/// It comes back before anybody has missed it, and knows nothing of having led.
#[test]
fn a_leader_that_begins_anew_is_missed_at_once() {
    let mut cluster = Cluster::new();
    cluster.write_somewhere(&[1], 1, "a");
    cluster.until_asleep(&ALL);
    cluster.pass(LONG, &ALL);
    cluster.crash(1, CrashPolicy::LoseAll);
    cluster.restart(1);
    cluster.pass(4, &ALL);
    assert_eq!(cluster.sleep(&ALL), [false; 3]);
    cluster.pass(20, &ALL);
    let waited = cluster.write_somewhere(&ALL, 2, "b");
    assert!(waited < 20, "waited {waited} ticks");
    cluster.until_asleep(&ALL);
}

#[test]
fn a_leader_that_is_cut_off_in_its_sleep_is_replaced_and_learns_it_when_it_is_back() {
    let mut cluster = Cluster::new();
    cluster.write_somewhere(&[1], 1, "a");
    cluster.until_asleep(&ALL);
    cluster.cut_off = vec![1];
    cluster.pass(LONG, &ALL);
    assert!(!cluster.describe(1).contains("leads"), "{}", cluster.describe(1));
    let nobody = Some(Answer::NotHolder { try_node: None });
    assert_eq!(cluster.ask(1, read("a", "c")), nobody);
    cluster.write_somewhere(&[2, 3], 2, "b");
    cluster.pass(2 * LONG, &ALL);
    assert_eq!(cluster.sleep(&ALL), [false, true, true], "who has no leader looks for one");
    cluster.cut_off.clear();
    cluster.until_asleep(&ALL);
    assert_eq!(ALL.map(|id| cluster.rows_in_store(id)), [2; 3]);
    let holder = cluster.leaseholder();
    assert_eq!(shown(cluster.ask(holder, read("a", "c"))), "a=1 b=1");
}

/// The others hear that the leader's node is there, and it hears nobody.
#[test]
fn a_leader_that_hears_nobody_gives_up_though_the_others_hear_it() {
    let mut cluster = Cluster::new();
    cluster.write_somewhere(&[1], 1, "a");
    cluster.until_asleep(&ALL);
    cluster.one_way = vec![(2, 1), (3, 1)];
    cluster.pass(2 * LONG, &ALL);
    assert!(!cluster.describe(1).contains("leads"), "{}", cluster.describe(1));
    cluster.write_somewhere(&[2, 3], 2, "b");
    cluster.one_way.clear();
    cluster.until_asleep(&ALL);
    assert_eq!(ALL.map(|id| cluster.rows_in_store(id)), [2; 3]);
}

/// The same the other way round: nobody hears it.
#[test]
fn a_leader_that_nobody_hears_is_replaced_though_it_hears_the_others() {
    let mut cluster = Cluster::new();
    cluster.write_somewhere(&[1], 1, "a");
    cluster.until_asleep(&ALL);
    cluster.one_way = vec![(1, 2), (1, 3)];
    cluster.pass(2 * LONG, &ALL);
    cluster.write_somewhere(&[2, 3], 2, "b");
    cluster.pass(LONG, &ALL);
    assert!(!cluster.describe(1).contains("leads"), "{}", cluster.describe(1));
    cluster.one_way.clear();
    cluster.until_asleep(&ALL);
    assert_eq!(ALL.map(|id| cluster.rows_in_store(id)), [2; 3]);
}

#[test]
fn who_has_not_heard_the_last_word_asks_and_nobody_is_elected() {
    let mut cluster = Cluster::new();
    cluster.write_somewhere(&[1], 1, "a");
    cluster.loses_last_words = Some((3, 2));
    let terms = cluster.terms();
    cluster.pass(4 * LONG, &ALL);
    assert_eq!(cluster.loses_last_words, Some((3, 0)));
    assert_eq!(cluster.sleep(&ALL), [true; 3]);
    assert_eq!(cluster.terms(), terms);
}

/// It is away, and so is not waited for; what it misses it gets without anybody asking for that.
#[test]
fn a_follower_that_was_away_while_the_others_slept_catches_up() {
    let mut cluster = Cluster::new();
    cluster.write_somewhere(&[1], 1, "a");
    cluster.until_asleep(&ALL);
    cluster.cut_off = vec![3];
    cluster.write_somewhere(&[1], 2, "b");
    cluster.pass(3 * LONG, &ALL);
    assert_eq!(cluster.sleep(&ALL), [true, true, false]);
    cluster.cut_off.clear();
    cluster.pass(30, &ALL);
    assert_eq!(cluster.rows_in_store(3), 2);
    cluster.until_asleep(&ALL);
    // With two that are silent it does not sleep: it could not go on.
    cluster.cut_off = vec![2, 3];
    cluster.pass(3 * LONG, &ALL);
    assert_eq!(cluster.sleep(&ALL), [false; 3]);
    cluster.cut_off.clear();
    cluster.until_asleep(&ALL);
}

/// A transaction that has a lock is spoken for by its coordinator, or not: that is looked at with
/// every tick.
#[test]
fn a_range_with_a_lock_does_not_sleep() {
    use braid_kv::{
        LockItem, LockMany, LockMode, TXN_COUNTER_BITS, Target, TxnId as LockTxn, Wait,
    };
    let mut cluster = Cluster::new();
    let (txn, now) = (LockTxn(1 << TXN_COUNTER_BITS | 1), cluster.now(1));
    let target = Target::Key(key("a"));
    let items = vec![LockItem { target, mode: LockMode::Exclusive, check: true }];
    let request = LockMany { txn, items, read_ts: now, wait: Wait::Block, timeout: None };
    let ask = Ask::Lock(braid_range::LockAsk { request, step: 1, session: None });
    assert!(matches!(cluster.ask(1, ask), Some(Answer::Locked(_))));
    // Its coordinator is not heard of for 10 s: then the lock goes.
    cluster.pass(LONG, &ALL);
    assert_eq!(cluster.sleep(&ALL), [false; 3]);
    cluster.pass(LONG, &ALL);
    assert_eq!(cluster.sleep(&ALL), [true; 3]);
}
