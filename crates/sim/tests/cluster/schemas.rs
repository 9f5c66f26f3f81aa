//! Clients on nodes that go by a schema, under leases on it, while some of them change it.

use super::*;

/// Nobody writes by a shape that was replaced, whatever breaks; what transactions go by is
/// serializable with all else; and when all is healed, changes wait no longer than a lease lives.
#[test]
fn schemas_change_and_nobody_goes_by_an_old_one_whatever_breaks() {
    let counts = counted_over_schemas(16, Plan::over_schemas);
    for what in ["changes", "commits under leases", "crashes", "leases given away", "pauses"] {
        assert_ne!(counts.get(what), None, "no {what}: {counts:?}");
    }
    // Writers go on beside changes: many of them are spared the questions.
    assert!(counts["commits under leases"] * 10 > counts["commits"], "{counts:?}");
}

/// The same with commits that are on their way for seconds, and processes that die meanwhile and
/// begin anew: what they rely on is so when the commits arrive, or they do not happen.
#[test]
fn commits_that_arrive_late_go_by_no_old_schema_whatever_breaks() {
    let counts = counted_over_schemas(12, Plan::with_late_commits);
    for what in ["changes", "commits under leases", "crashes", "late commits"] {
        assert_ne!(counts.get(what), None, "no {what}: {counts:?}");
    }
}

/// The same with nodes that are alone, with their leases and clocks as far behind as they may be:
/// what is looked at there is not older than what others were told before.
#[test]
fn nodes_that_are_alone_show_no_old_schema_whatever_breaks() {
    let counts = counted_over_schemas(8, Plan::with_lonely_nodes);
    for what in ["changes", "clock jumps", "nodes alone"] {
        assert_ne!(counts.get(what), None, "no {what}: {counts:?}");
    }
}

/// Runs a plan of each seed, and adds up what has happened.
fn counted_over_schemas(count: u64, plan: fn(Plan) -> Plan) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::<&str, u64>::new();
    let all = seeds(count);
    for seed in all.clone() {
        let plan = plan(Plan::of_seed(seed));
        let verdict = run(&plan);
        assert!(verdict.is_good(), "seed {seed}: {}", show(&plan, &verdict));
        *counts.entry("commits").or_default() += verdict.outcomes[0] as u64;
        verdict.counts.iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
    }
    println!("seeds {all:?}: {counts:?}");
    counts
}

#[test]
fn a_seed_of_schemas_gives_the_same_trace_again() {
    for seed in seeds(3) {
        for plan in [Plan::over_schemas, Plan::with_late_commits, Plan::with_lonely_nodes] {
            let plan = plan(Plan::of_seed(seed));
            let (one, two) = (run(&plan), run(&plan));
            assert_eq!(one.tail, two.tail, "seed {seed}");
            assert_eq!((one.trace, one.events), (two.trace, two.events), "seed {seed}");
        }
    }
}
