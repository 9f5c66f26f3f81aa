//! Clients on nodes that go by a schema, under leases on it, while some of them change it.

use super::*;

/// Nobody writes by a shape that was replaced, whatever breaks; what transactions go by is
/// serializable with all else; and when all is healed, changes wait no longer than a lease lives.
#[test]
fn schemas_change_and_nobody_goes_by_an_old_one_whatever_breaks() {
    let mut counts = BTreeMap::<&str, u64>::new();
    let all = seeds(16);
    for seed in all.clone() {
        let plan = Plan::of_seed(seed).over_schemas();
        let verdict = run(&plan);
        assert!(verdict.is_good(), "seed {seed}: {}", show(&plan, &verdict));
        *counts.entry("commits").or_default() += verdict.outcomes[0] as u64;
        verdict.counts.iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
    }
    println!("seeds {all:?}: {counts:?}");
    for what in ["changes", "commits under leases", "crashes", "leases given away", "pauses"] {
        assert_ne!(counts.get(what), None, "no {what}: {counts:?}");
    }
    // Writers go on beside changes: many of them are spared the questions.
    assert!(counts["commits under leases"] * 10 > counts["commits"], "{counts:?}");
}

#[test]
fn a_seed_of_schemas_gives_the_same_trace_again() {
    for seed in seeds(3) {
        let plan = Plan::of_seed(seed).over_schemas();
        let (one, two) = (run(&plan), run(&plan));
        assert_eq!(one.tail, two.tail, "seed {seed}");
        assert_eq!((one.trace, one.events), (two.trace, two.events), "seed {seed}");
    }
}
