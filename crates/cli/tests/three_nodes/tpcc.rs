//! TPC-C through all nodes, while one after the other is killed: its tables always fit each other.
//!
//! `BRAID_KILLS=30 BRAID_WAREHOUSES=10 cargo test --workspace --test three_nodes tpcc -- --nocapture`
//! runs the long form.

use braid_workload::tpcc::{self, Connect, Layout};

use super::*;

/// From one kill to the next at least, in seconds.
const ROUND: u64 = 8;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What the tables say against each other, as this node tells it.
fn fit(cluster: &Cluster, n: usize) {
    let mut client = cluster.client(n);
    for _ in 0..100 {
        match tpcc::inconsistencies(&mut client) {
            Ok(wrong) => return assert_eq!(wrong, [""; 0], "as node {n} tells it"),
            Err(_) => client = cluster.client(n),
        }
    }
    panic!("nobody says what the tables hold");
}

#[test]
fn tpcc_fits_together_while_nodes_are_killed() {
    let (kills, warehouses) = (number("BRAID_KILLS", 2), number("BRAID_WAREHOUSES", 3));
    let limit = 4 * PATIENCE + kills as u32 * Duration::from_secs(90);
    let cluster = Arc::new(Cluster::start(limit, &[]));
    let mut client = cluster.client(0);
    tpcc::create(&mut client, Layout::Interleaved).expect("creates the tables");
    run(&mut client, &support::small_tpcc(warehouses as u32));
    // Each warehouse with all that lies in it may be led by another node.
    let borders: Vec<String> = (2..=warehouses).map(|w| format!("({w})")).collect();
    run(&mut client, &format!("ALTER TABLE warehouse SPLIT AT VALUES {}", borders.join(", ")));
    let settings = tpcc::RunSettings {
        url: String::new(),
        warehouses: warehouses as u32,
        items: 200,
        customers: 30,
        terminals: 2 * warehouses as u32,
        seconds: 2 * ROUND * kills,
        warm_up: 0,
        seed: 1,
    };
    let nodes = cluster.clone();
    let connect: Connect = Arc::new(move |n| Ok(nodes.client(n as usize % 3)));
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| tpcc::run_where_nodes_die(&settings, &connect));
        for kill in 0..kills {
            WallClock.sleep(Duration::from_secs(ROUND));
            let dies = kill as usize % 3;
            cluster.kill(dies);
            // The other two serve all, and what they hold fits together.
            fit(&cluster, dies + 1);
            cluster.run(dies);
            fit(&cluster, dies);
        }
        running.join().expect("it reports its errors").expect("runs")
    });
    println!("{report}\n{} transactions lost their connections", report.lost());
    assert!(report.per_minute() > 0.0 && report.lost() > 0, "{report}");
    (0..3).for_each(|n| fit(&cluster, n));
}
