//! Versions that nobody reads any more: what a threshold of the store asks of everybody.

use super::*;

/// The record of starts has no time of its own, and contract C2 refuses whatever is below a
/// threshold.
#[test]
fn a_store_with_a_threshold_starts_again_and_counts_its_starts() {
    let mut cluster = Cluster::new();
    let mut number = 0;
    let mut write = |cluster: &mut Cluster, id| {
        number += 1;
        let txn = TxnId { began: cluster.now(id), number };
        let done = cluster.ask(id, commit(txn, vec![put("a", "1")]));
        assert!(matches!(done, Some(Answer::Committed { .. })), "{done:?}");
    };
    write(&mut cluster, 1);
    // The second threshold is next to the stamp of the record itself; the third one is the same.
    let first = cluster.now(1);
    for (threshold, starts) in [(first.0, 2), (first.0 + 1, 3), (first.0 + 1, 4)] {
        let store = cluster.process(1).store();
        store.set_gc_threshold(CommitTs(threshold)).expect("it is open");
        let holder = cluster.leaseholder();
        write(&mut cluster, holder);
        cluster.process(1).store().flush().expect("it flushes");
        cluster.work();
        cluster.crash(1, CrashPolicy::LoseAll);
        cluster.restart(1);
        assert_eq!(cluster.process(1).starts(), starts);
        assert_eq!(cluster.process(1).store().gc_threshold(), CommitTs(threshold));
        cluster.pass(150, &[1, 2, 3]);
    }
    let holder = cluster.leaseholder();
    write(&mut cluster, holder);
    assert_eq!(shown(cluster.ask(holder, read("a", "b"))), "a=1");
}
