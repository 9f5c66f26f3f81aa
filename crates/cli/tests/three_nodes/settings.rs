//! Cluster settings on three nodes: a change reaches all that live, and those that were away when
//! they are back, before they serve anybody.

use super::*;

/// The SQLSTATE of a statement that fails; `None` if it does not.
fn state(client: &mut Client, sql: &str) -> Option<String> {
    let error = client.batch_execute(sql).err()?;
    Some(error.code().unwrap_or_else(|| panic!("{sql}: {error:?}")).code().to_string())
}

fn texts(client: &mut Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let rows = client.simple_query(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let row = |row: &postgres::SimpleQueryRow| {
        (0..row.len()).map(|i| row.get(i).map(str::to_string)).collect()
    };
    rows.iter()
        .filter_map(|message| match message {
            postgres::SimpleQueryMessage::Row(found) => Some(row(found)),
            _ => None,
        })
        .collect()
}

/// How long it took until every client's node refuses, or allows, DO.
fn until(clients: &mut [Client], refused: bool) -> Duration {
    let wall = WallClock;
    let begun = wall.monotonic_nanos();
    let wanted = refused.then(|| "57000".to_string());
    for client in clients {
        while state(client, "do 'begin null; end'") != wanted {
            assert!(wall.monotonic_nanos() - begun < PATIENCE.as_nanos() as u64, "never");
            wall.sleep(Duration::from_millis(1));
        }
    }
    Duration::from_nanos(wall.monotonic_nanos() - begun)
}

#[test]
fn a_setting_reaches_all_nodes_also_those_that_were_away() {
    let cluster = Cluster::start(2 * PATIENCE, &[]);
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();
    let mut longest = Duration::ZERO;
    for round in 0..10 {
        let off = round % 2 == 0;
        let sql = format!("SET CLUSTER SETTING feature.do.enabled = {}", !off);
        run(&mut clients[round % 3], &sql);
        longest = longest.max(until(&mut clients, off));
    }
    println!("after SET has ended, the last node goes by it after {longest:?} at most");
    // Whoever changes one has waited for the others.
    run(&mut clients[0], "SET CLUSTER SETTING feature.do.enabled = false FOR ALL NODES");
    for client in &mut clients {
        assert_eq!(state(client, "do 'begin null; end'").as_deref(), Some("57000"));
        let told = texts(client, "SHOW CLUSTER SETTING feature.do.enabled FOR ALL NODES");
        let told: Vec<_> = told.iter().map(|row| [0, 3, 5].map(|at| row[at].as_deref())).collect();
        let wanted = ["1", "2", "3"].map(|node| [Some(node), Some("false"), Some("0")]);
        assert_eq!(told, wanted);
    }
    // One is away, hears nothing, and goes by what holds when it serves its first client.
    cluster.kill(2);
    run(&mut clients[0], "SET CLUSTER SETTING feature.do.enabled = true");
    run(&mut clients[1], "DENY QUERY 'SELECT 4711' REASON 'while it is away'");
    let shown = |client: &mut Client| texts(client, "SHOW DENIED QUERIES").len();
    assert_eq!((shown(&mut clients[0]), shown(&mut clients[1])), (1, 1));
    cluster.run(2);
    let mut back = cluster.client(2);
    assert_eq!(state(&mut back, "do 'begin null; end'"), None);
    assert_eq!(state(&mut back, "select 4712").as_deref(), Some("57000"));
    run(&mut back, "ALLOW QUERY ALL");
    for client in clients[..2].iter_mut().chain([&mut back]) {
        assert_eq!(state(client, "select 4712"), None);
    }
    assert!(cluster.data(2).join("cluster").join("settings").exists(), "the copy");
    assert_eq!(cluster.metric(2, "braid_cluster_settings_version"), 14);
}
