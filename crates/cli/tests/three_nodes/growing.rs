//! A node that is alone, with tables, becomes the first of three: its process is killed in the
//! middle of that, the others get what it has, and clients go on.

use std::process::Command;

use braid_env::fs::{DiskFs, FileSystem};

use super::members::until_shown;
use super::*;

/// Tables in families and beside them, with indexes, sequences and what else a database has.
const SCHEMA: &str = "
    CREATE TYPE mood AS ENUM ('low', 'high');
    CREATE TABLE customer (id bigint PRIMARY KEY, name text, feels mood);
    CREATE TABLE orders (id bigint, n bigint, status text, PRIMARY KEY (id, n))
        INTERLEAVE IN PARENT customer ON DELETE CASCADE;
    CREATE TABLE line (id bigint, n bigint, l bigint, price numeric, PRIMARY KEY (id, n, l))
        INTERLEAVE IN PARENT orders ON DELETE CASCADE;
    CREATE INDEX orders_inside ON orders (id, status) INTERLEAVE IN customer;
    CREATE INDEX orders_outside ON orders (status);
    CREATE UNIQUE INDEX customer_name ON customer (name);
    CREATE TABLE note (id bigserial PRIMARY KEY, at bigint REFERENCES customer ON DELETE CASCADE,
        body text, doc jsonb);
    CREATE SEQUENCE ticket START 1000;
    CREATE VIEW rich AS SELECT id, sum(price) AS sum FROM line GROUP BY id;
    CREATE MATERIALIZED VIEW stale AS SELECT count(*) AS n FROM customer;
    CREATE TABLE part (k bigint, v text, PRIMARY KEY (k)) PARTITION BY RANGE (k);
    CREATE TABLE part_low PARTITION OF part FOR VALUES FROM (0) TO (500);
    CREATE TABLE part_high PARTITION OF part DEFAULT;
    CREATE TABLE empty (a int PRIMARY KEY, b text);
    CREATE TABLE without_key (a int, b text);
    CREATE FUNCTION twice(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $1 * 2';
    COMMENT ON TABLE customer IS 'who buys';
    INSERT INTO customer SELECT g, 'c' || g, CASE WHEN g % 3 > 0 THEN 'low'::mood END
        FROM generate_series(1, 600) g;
    INSERT INTO orders SELECT g / 4, g % 4, 's' || g % 7 FROM generate_series(4, 2403) g;
    INSERT INTO line SELECT id, n, l, id * 1.25 + l FROM orders, generate_series(1, 3) l;
    INSERT INTO note (at, body, doc) SELECT g % 600 + 1, repeat('x', 300), '{\"a\": 1}'
        FROM generate_series(1, 1500) g;
    INSERT INTO part SELECT g, 'p' || g FROM generate_series(0, 999) g;
    INSERT INTO without_key SELECT g, NULL FROM generate_series(1, 50) g;
    REFRESH MATERIALIZED VIEW stale;
    DELETE FROM customer WHERE id BETWEEN 100 AND 149;
    UPDATE orders SET status = 'done' WHERE id % 5 = 0;
    TRUNCATE empty;
    SELECT nextval('ticket') FROM generate_series(1, 10);
    CREATE TEMPORARY TABLE gone (a int);
    INSERT INTO gone VALUES (1)";

/// All that can be seen of that: of each table, and through its indexes.
fn content(client: &mut Client) -> Vec<String> {
    let mut out = Vec::new();
    let tables = "customer orders line note rich stale part part_low empty without_key";
    for table in tables.split(' ') {
        let sql = format!(
            "SELECT '{table}', count(*)::text, md5(string_agg(t::text, ',' ORDER BY t::text)) \
             FROM {table} t"
        );
        out.extend(ranges(client, &sql));
    }
    for sql in [
        "SELECT count(*)::text, sum(n)::text FROM orders WHERE status = 'done'",
        "SELECT id::text FROM orders WHERE id = 205 AND status = 'done' ORDER BY n",
        "SELECT id::text FROM customer WHERE name = 'c77'",
        "SELECT twice(21)::text, obj_description('customer'::regclass)",
        "SELECT count(*)::text FROM note JOIN customer c ON c.id = note.at WHERE c.feels = 'low'",
        "SELECT relname::text FROM pg_class WHERE relname = 'gone'",
    ] {
        out.extend(ranges(client, sql));
    }
    out.into_iter().map(|row| row.join("|")).collect()
}

/// `braid start` that does not come far; what it says.
fn refusal(data: &Path, arguments: &[&str]) -> String {
    let output = Command::new(binary())
        .args(["start", "--listen", "127.0.0.1:0", "--http", "off", "--data"])
        .arg(data)
        .args(arguments)
        .output()
        .expect("the binary starts");
    assert!(!output.status.success(), "it starts");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn binary() -> String {
    let built = env!("CARGO_BIN_EXE_braid").to_string();
    std::env::var("BRAID_BINARY").unwrap_or(built)
}

/// Starts a node as the first of a cluster and kills it after a while, again and again: so long
/// after its start, and so long after its directory is a member's.
fn kill_while_it_becomes_the_first(cluster: &Cluster) {
    let (folder, wall) = (cluster.data(0).join("cluster"), WallClock);
    let is_member = || folder.join("member").exists();
    for (millis, behind) in [
        (0, false),
        (100, false),
        (300, false),
        (0, true),
        (10, true),
        (40, true),
        (150, true),
        (600, true),
        (2_500, true),
    ] {
        let log = cluster.folder.path().join("n1.log");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let mut process = Command::new(binary())
            .args(["start", "--listen", "127.0.0.1:0", "--http", "off", "--data"])
            .arg(cluster.data(0))
            .args(cluster.told(0))
            .stdout(Stdio::null())
            .stderr(Stdio::from(log.expect("a log can be opened")))
            .spawn()
            .expect("the binary starts");
        while behind && !is_member() {
            assert!(process.try_wait().expect("it can be asked").is_none(), "it has ended");
            wall.sleep(Duration::from_millis(1));
        }
        wall.sleep(Duration::from_millis(millis));
        process.kill().expect("SIGKILL can be sent");
        process.wait().expect("the process ends");
        let shown = if is_member() { "a member" } else { "alone" };
        let raft = if folder.join("raft").exists() { "with" } else { "without" };
        println!("killed {millis} ms later, {behind}: {shown}, {raft} a raft log");
    }
    assert!(is_member());
}

/// Each node gives numbers that nobody else has, above those of when there was one node.
fn numbers_go_on(cluster: &Cluster) {
    let mut seen = BTreeSet::new();
    for n in 0..3 {
        let mut client = cluster.client(n);
        let ticket = rows(&mut client, "SELECT nextval('ticket')")[0][0];
        assert!(ticket > 1009 && seen.insert(ticket), "{ticket} of {seen:?}");
        run(&mut client, "INSERT INTO note (body) VALUES ('new')");
        run(&mut client, "INSERT INTO without_key VALUES (0, 'new')");
    }
    let mut client = cluster.client(0);
    let notes = rows(&mut client, "SELECT count(*), count(DISTINCT id) FROM note WHERE at IS NULL");
    assert_eq!(notes[0], [3, 3]);
    assert_eq!(rows(&mut client, "SELECT count(*) FROM without_key")[0][0], 53);
    run(&mut client, "DELETE FROM note WHERE at IS NULL; DELETE FROM without_key WHERE a = 0");
}

#[test]
fn a_single_node_with_tables_becomes_the_first_of_three() {
    let cluster = Cluster::new(4 * PATIENCE, &["--max-range-mib", "1"]);
    let alone = Node::start(&cluster.data(0));
    let mut client = alone.client();
    client.batch_execute(SCHEMA).unwrap_or_else(|error| panic!("{error:?}"));
    create_tables(&mut client);
    let before = {
        let mut before = content(&mut client);
        assert_eq!(before.pop().as_deref(), Some("gone"), "of this session");
        before
    };
    drop(client);
    alone.kill();
    kill_while_it_becomes_the_first(&cluster);
    cluster.run(0);
    let mut client = cluster.client(0);
    assert_eq!(content(&mut client), before, "the first one, with nobody else");
    let shown = "SELECT DISTINCT replicas, moves FROM braid_ranges";
    until_shown(&mut client, shown, "1 there is no other node");
    (1..3).for_each(|n| cluster.run(n));
    until_shown(&mut client, shown, "1,2,3 ");
    (0..3).for_each(|n| assert_eq!(content(&mut cluster.client(n)), before, "n{}", n + 1));
    numbers_go_on(&cluster);

    let seen = Seen::default();
    std::thread::scope(|scope| {
        let (cluster, seen) = (&cluster, &seen);
        let _stops = StopsWriters(&seen.stop);
        (0..3).for_each(|n| drop(scope.spawn(move || transfers(cluster, n, seen))));
        seen.wait_for(30);
        // The one that had everything, and then the others.
        for n in [0, 1, 2] {
            cluster.kill(n);
            seen.wait_for(10);
            cluster.run(n);
            seen.wait_for(10);
        }
    });
    cluster.kill(0);
    let acknowledged = seen.acknowledged.lock().clone();
    for n in [1, 2] {
        let mut client = cluster.client(n);
        check(&mut client, &acknowledged);
        assert_eq!(content(&mut client), before, "n{}", n + 1);
    }
    // Families go whole, with what is interleaved.
    run(&mut cluster.client(1), "DELETE FROM customer WHERE id >= 300");
    let left = "SELECT count(*), max(id) FROM orders UNION ALL SELECT count(*), max(id) FROM line";
    for row in rows(&mut cluster.client(2), left) {
        assert!(row[0] > 0 && row[1] == 299, "{row:?}");
    }
}

/// The way back, and other wrong ones: each is refused, says why, and changes nothing.
#[test]
fn a_directory_that_a_cluster_has_is_not_started_alone_and_others_do_not_begin_one() {
    let cluster = Cluster::new(2 * PATIENCE, &[]);
    let told = |n: usize, order: [usize; 3]| {
        let all: Vec<&str> = order.iter().map(|n| cluster.members[*n].as_str()).collect();
        ["--listen-peers".into(), cluster.members[n].clone(), "--join".into(), all.join(",")]
    };
    let refused = |n: usize, arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        refusal(&cluster.data(n), &arguments)
    };
    for n in [0, 1] {
        let alone = Node::start(&cluster.data(n));
        create_tables(&mut alone.client());
        let busy = refused(n, &told(n, if n == 0 { [0, 1, 2] } else { [1, 0, 2] }));
        assert!(busy.contains("in use"), "{busy}");
        alone.kill();
    }
    // Only the first in the list may have rows. It is alone as before.
    for order in [[0, 1, 2], [2, 0, 1]] {
        let second = refused(1, &told(1, order));
        assert!(second.contains("it can be the first founder of a new cluster"), "{second}");
    }
    let joins = ["--listen-peers", &cluster.members[1], "--join", &cluster.members[0]];
    let joins = refused(1, &joins.map(str::to_string));
    assert!(joins.contains("Start a node that joins or founds with it in an empty"), "{joins}");
    let alone = Node::start(&cluster.data(1));
    check(&mut alone.client(), &BTreeSet::new());
    drop(alone);

    cluster.run(0);
    check(&mut cluster.client(0), &BTreeSet::new());
    cluster.kill(0);
    // Without a word it is a member again.
    cluster.run(0);
    assert_eq!(ranges(&mut cluster.client(0), "SHOW RANGES").len(), 1);
    cluster.kill(0);
    let (folder, away) = (cluster.data(0).join("cluster"), cluster.data(0).join("away"));
    DiskFs.rename(&folder, &away).expect("it is renamed");
    for arguments in [vec![], told(0, [0, 1, 2]).to_vec()] {
        let why = refused(0, &arguments);
        assert!(why.contains("holds the store of a node of a cluster"), "{why}");
    }
    assert!(!folder.exists(), "nothing is founded");
    DiskFs.rename(&away, &folder).expect("it is renamed");
    cluster.run(0);
    check(&mut cluster.client(0), &BTreeSet::new());
}

fn until_jobs_succeed(client: &mut Client) {
    for _ in 0..1_200 {
        let shown = format!("{:?}", client.simple_query("SHOW JOBS").expect("it is shown"));
        if shown.contains("succeeded") && !shown.contains("running") {
            return;
        }
        WallClock.sleep(Duration::from_millis(100));
    }
    panic!("the job does not end");
}

/// What begins again when a node starts alone does not on a member: it has to end first.
#[test]
fn a_node_with_a_job_that_goes_on_later_is_not_the_first_of_a_cluster_yet() {
    let cluster = Cluster::new(2 * PATIENCE, &[]);
    let alone = Node::start(&cluster.data(0));
    let folder = cluster.data(0).join("import");
    DiskFs.create_dir_all(&folder).expect("a folder can be made");
    let lines: String = (0..400_000).map(|n| format!("{n},row {n}\n")).collect();
    let file = DiskFs.create(&folder.join("t.csv")).expect("a file can be made");
    file.write_at(lines.as_bytes(), 0).expect("and written");
    let mut client = alone.client();
    run(&mut client, "CREATE TABLE t (id bigint PRIMARY KEY, t text)");
    run(&mut client, "IMPORT INTO t (id, t) CSV DATA ('t.csv') WITH detached");
    alone.kill();
    let told = cluster.told(0);
    let arguments: Vec<&str> = told.iter().map(String::as_str).collect();
    let why = refusal(&cluster.data(0), &arguments);
    assert!(why.contains("1 jobs are not at their end, as "), "{why}");
    assert!(why.contains("(import): start it without --join"), "{why}");
    // Alone it comes to its end.
    let alone = Node::start(&cluster.data(0));
    until_jobs_succeed(&mut alone.client());
    alone.terminate();
    cluster.run(0);
    assert_eq!(rows(&mut cluster.client(0), "SELECT count(*) FROM t")[0][0], 400_000);
}
