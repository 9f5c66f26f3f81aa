//! How many replicas a node has, as nodes say that know more or less of it: one with none is let go.

mod harness;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use braid_cluster::{Reply, Router, Transport};
use braid_consensus::ReplicaId;
use braid_kv::{KvError, KvResult};
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{
    Answer, AnswerTimes, Ask, FIRST_DATA_KEY, NodeId, RangeDescriptor, RangeId, Request, Unfinished,
};

/// What each node that answers says of the ranges, and which of them serves each.
struct Said(BTreeMap<NodeId, Vec<RangeDescriptor>>, BTreeMap<RangeId, NodeId>);

impl Transport for Said {
    fn ask(&self, node: NodeId, request: &Request, _: Duration, _: &AtomicBool) -> Option<Reply> {
        let known = self.0.get(&node)?;
        let answer = match &request.ask {
            Ask::Ranges => Answer::Ranges(known.clone()),
            Ask::Unfinished if !known.iter().any(|range| range.id == request.range) => {
                Answer::NoReplica
            }
            Ask::Unfinished => match self.1.get(&request.range) == Some(&node) {
                true => Answer::Unfinished(Unfinished::default()),
                false => Answer::NotHolder { try_node: None },
            },
            other => panic!("{other:?}"),
        };
        Some(Reply { times: AnswerTimes::of(CommitTs(1)), answer })
    }

    fn nodes(&self) -> Vec<NodeId> {
        (1..=5).map(NodeId).collect()
    }

    fn tell(&self, _: NodeId, _: &Request) {}

    fn pause(&self, _: Duration) {}
}

/// A range from one key to another, with voters on these nodes.
fn range(id: u64, span: (&[u8], &[u8]), generation: u64, nodes: [u64; 3]) -> RangeDescriptor {
    let replicas = (generation * 10..).map(ReplicaId).zip(nodes.map(NodeId)).collect();
    let span = KeySpan::new(span.0.to_vec(), span.1.to_vec());
    RangeDescriptor { generation, ..RangeDescriptor::new(RangeId(id), span, replicas) }
}

type Told<'a> = &'a [(u64, &'a [RangeDescriptor])];

/// A router that hears this; the second number of each range that somebody serves is who does.
fn router(said: Told<'_>, served: &[(u64, u64)]) -> Router {
    let said = said.iter().map(|(node, ranges)| (NodeId(*node), ranges.to_vec()));
    let served = served.iter().map(|(range, node)| (RangeId(*range), NodeId(*node)));
    Router::new(Arc::new(Said(said.collect(), served.collect())), harness::options(Vec::new()))
}

fn counts(said: Told<'_>) -> KvResult<BTreeMap<u64, usize>> {
    let counts = router(said, &[]).replica_counts()?;
    Ok(counts.into_iter().map(|(node, count)| (node.0, count)).collect())
}

fn is_unknown<T: std::fmt::Debug>(result: KvResult<T>) {
    assert!(matches!(&result, Err(KvError::Unavailable(_))), "{result:?}");
}

/// All keys are in two ranges. The second one was on nodes 1, 2 and 3, and is on 2, 4 and 5.
fn before_and_after() -> ([RangeDescriptor; 2], [RangeDescriptor; 2]) {
    let all = KeySpan::all().end;
    let left = range(1, (FIRST_DATA_KEY, b"m"), 1, [1, 2, 3]);
    let before = range(2, (b"m", &all), 1, [1, 2, 3]);
    let moved = range(2, (b"m", &all), 4, [2, 4, 5]);
    ([left.clone(), before], [left, moved])
}

#[test]
fn who_was_away_while_replicas_moved_does_not_count_them() {
    let (old, new) = before_and_after();
    let moved = &new[1..];
    // One that was away, alone: the range may be anywhere.
    is_unknown(counts(&[(1, &old)]));
    // One that knows where it is now, and no majority of those who have it.
    is_unknown(counts(&[(1, &old), (2, &new), (3, &old)]));
    // A majority of both.
    let said = counts(&[(1, &old), (2, &new), (4, moved)]).expect("all is known");
    assert_eq!(said, BTreeMap::from([(1, 1), (2, 2), (3, 1), (4, 1), (5, 1)]));
    // Nobody tells of the keys in front.
    is_unknown(counts(&[(4, moved), (5, moved)]));
}

/// A node that has none is let go, so it is not enough that a majority of those who had the range
/// once say so: they were away while it moved.
#[test]
fn a_node_has_no_replicas_if_who_serves_each_range_says_so() {
    let (old, new) = before_and_after();
    let moved = &new[1..];
    let on = |said: Told<'_>, served: &[(u64, u64)], node: u64| {
        router(said, served).replicas_on(NodeId(node))
    };
    let away: Told<'_> = &[(1, &old), (3, &old)];
    assert_eq!(counts(away).expect("a majority answers").get(&4), None);
    is_unknown(on(away, &[(1, 1)], 4));
    // It is served by one that cannot be asked which replicas there are.
    is_unknown(on(away, &[(1, 1), (2, 4)], 4));
    let all: Told<'_> = &[(1, &old), (2, &new), (3, &old), (4, moved), (5, moved)];
    assert_eq!(on(all, &[(1, 1), (2, 5)], 4).expect("it is known"), 1);
    // One that has nothing, and never had.
    assert_eq!(on(all, &[(1, 1), (2, 5)], 6).expect("it is known"), 0);
    // Somebody knows more than who served a moment ago.
    is_unknown(on(all, &[(1, 1), (2, 1)], 6));
    is_unknown(on(all, &[(1, 1)], 6));
}

/// Also who is about to get a replica, and who is about to lose one, has one.
#[test]
fn replicas_that_do_not_vote_count() {
    let mut all = range(1, (FIRST_DATA_KEY, &KeySpan::all().end), 7, [1, 2, 3]);
    all.learners.push((ReplicaId(90), NodeId(4)));
    all.leaving.push((ReplicaId(9), NodeId(5)));
    let said: Vec<(u64, &[RangeDescriptor])> = vec![(1, std::slice::from_ref(&all)); 1];
    assert!(counts(&said).is_err());
    let two = [(1, std::slice::from_ref(&all)), (2, std::slice::from_ref(&all))];
    let each = BTreeMap::from([(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]);
    assert_eq!(counts(&two).expect("a majority has said so"), each);
}
