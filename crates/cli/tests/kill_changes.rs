//! kill -9 in the middle of schema changes in steps, with writers at work.
//!
//! Each round starts the real binary on a real directory. Writers insert, update, delete and erase
//! families, while a client creates indexes and constraints one after the other; then the process
//! is killed at a random moment and started again. What was answered must be there, what was not
//! answered must be there whole or not at all: an index has an entry for each row and for nothing
//! else, and a unique or referencing constraint that is there is kept and enforced. Nothing is left
//! in between: each table can be written, changed again, and no job is unfinished. A table that was
//! on its way into or out of another one goes on by itself, and holds what a twin of it holds that
//! was written by the same transactions. A key column's type is the same in the tables that share
//! it, and what a DO block does is there together.
//!
//! `BRAID_KILLS=100 cargo test --workspace --test kill_changes -- --nocapture` runs the long form.
//! `BRAID_SEED` chooses the moments.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_env::random::Random;
use postgres::{Client, SimpleQueryMessage};
use support::Node;

const ROWS: u64 = 3_000;
const WRITERS: u64 = 3;

/// A change, what it creates, and how it is taken back.
struct Wish {
    name: &'static str,
    change: &'static str,
    back: &'static str,
}

const WISHES: [Wish; 14] = [
    Wish { name: "by_v", change: "CREATE INDEX by_v ON item (v)", back: "DROP INDEX by_v" },
    Wish { name: "by_u", change: "CREATE UNIQUE INDEX by_u ON item (u)", back: "DROP INDEX by_u" },
    Wish {
        name: "part_by_w",
        change: "CREATE INDEX part_by_w ON part (w)",
        back: "DROP INDEX part_by_w",
    },
    Wish {
        name: "part_inside",
        change: "CREATE INDEX part_inside ON part (id, w) INTERLEAVE IN PARENT item",
        back: "DROP INDEX part_inside",
    },
    Wish {
        name: "v_is_small",
        change: "ALTER TABLE item ADD CONSTRAINT v_is_small CHECK (v < 1000)",
        back: "ALTER TABLE item DROP CONSTRAINT v_is_small",
    },
    Wish {
        name: "note_item",
        change: "ALTER TABLE note ADD CONSTRAINT note_item FOREIGN KEY (item) REFERENCES item",
        back: "ALTER TABLE note DROP CONSTRAINT note_item",
    },
    Wish {
        name: "note_in_item",
        change: "ALTER TABLE note SET INTERLEAVE IN item",
        back: "ALTER TABLE note DROP INTERLEAVE",
    },
    Wish {
        name: "item id numeric",
        change: "ALTER TABLE item ALTER id TYPE numeric(20)",
        back: "ALTER TABLE item ALTER id TYPE bigint USING id::bigint",
    },
    Wish {
        name: "item v numeric",
        change: "ALTER TABLE item ALTER v TYPE numeric",
        back: "ALTER TABLE item ALTER v TYPE bigint",
    },
    Wish {
        name: "both_by_u_v",
        change: "DO $$ BEGIN CREATE INDEX both_by_u_v ON item (u, v);
                 ALTER TABLE part ADD CONSTRAINT both_w CHECK (w > -1000); END $$",
        back: "DO $$ BEGIN ALTER TABLE part DROP CONSTRAINT both_w; DROP INDEX both_by_u_v; END $$",
    },
    Wish {
        name: "kind_by_t",
        change: "CREATE INDEX kind_by_t ON kind (t text_pattern_ops) INCLUDE (item)",
        back: "DROP INDEX kind_by_t",
    },
    Wish {
        name: "kind_item",
        change: "ALTER TABLE kind ADD CONSTRAINT kind_item FOREIGN KEY (item, v) REFERENCES
                 pair ON DELETE SET NULL (item)",
        back: "ALTER TABLE kind DROP CONSTRAINT kind_item",
    },
    Wish {
        name: "kind t sv-x-icu",
        change: "ALTER TABLE kind ALTER t TYPE text COLLATE \"sv-x-icu\"",
        back: "ALTER TABLE kind ALTER t TYPE text COLLATE \"C\"",
    },
    Wish {
        name: "kind at is of the commit",
        change: "ALTER TABLE kind ALTER COLUMN at SET OPTIONS (allow_commit_timestamp = true)",
        back: "ALTER TABLE kind ALTER COLUMN at SET OPTIONS (allow_commit_timestamp = null)",
    },
];

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn create(client: &mut Client) {
    client
        .batch_execute(&format!(
            "CREATE TABLE item (id bigint PRIMARY KEY, u bigint, v bigint);
             CREATE TABLE part (id bigint, n bigint, w bigint, PRIMARY KEY (id, n))
                 INTERLEAVE IN PARENT item ON DELETE CASCADE;
             CREATE TABLE note (id bigint PRIMARY KEY, item bigint);
             CREATE TABLE twin (id bigint PRIMARY KEY, item bigint);
             CREATE TABLE pair (id bigint, v bigint, PRIMARY KEY (id, v));
             CREATE TABLE kind (id bigint PRIMARY KEY, item bigint, v bigint NOT NULL,
                 t text COLLATE \"C\", at timestamptz);
             INSERT INTO pair SELECT g, 7 FROM generate_series(1, {ROWS}) g;
             INSERT INTO kind SELECT g, g, 7, (ARRAY['Å', 'Z', 'Ä', 'a'])[g % 4 + 1] || g,
                 '2024-01-01' FROM generate_series(1, {ROWS}) g;
             INSERT INTO item SELECT g, g, g % 50 FROM generate_series(1, {ROWS}) g;
             INSERT INTO part SELECT g, 1, g % 30 FROM generate_series(1, {ROWS}) g;
             INSERT INTO note SELECT g, g FROM generate_series(1, {ROWS}) g;
             INSERT INTO twin SELECT * FROM note"
        ))
        .expect("the tables are created");
}

/// One write; errors that are an answer are none.
fn write(client: &mut Client, random: &mut Random) -> bool {
    let id = 1 + random.below(ROWS);
    let v = random.below(50);
    let sql = match random.below(9) {
        0 => format!("DELETE FROM item WHERE id BETWEEN {id} AND {}", id + random.below(3)),
        1 => format!("DELETE FROM part WHERE id = {id}"),
        2 | 3 => format!("UPDATE item SET v = {v}, u = u WHERE id BETWEEN {id} AND {}", id + 5),
        4 => format!("UPDATE part SET w = {v} WHERE id = {id}"),
        5 => format!(
            "BEGIN; INSERT INTO note VALUES ({id}, {id}) ON CONFLICT (id) DO NOTHING;
             INSERT INTO twin VALUES ({id}, {id}) ON CONFLICT (id) DO NOTHING; COMMIT"
        ),
        7 => format!(
            "BEGIN; DELETE FROM kind WHERE id = {id}; DELETE FROM pair WHERE id = {id};
             INSERT INTO pair VALUES ({id}, 7);
             INSERT INTO kind VALUES ({id}, {id}, 7, 'ä{v}', now()); COMMIT"
        ),
        6 => format!(
            "BEGIN; DELETE FROM note WHERE item = {id}; DELETE FROM twin WHERE item = {id}; COMMIT"
        ),
        _ => format!(
            "BEGIN; DELETE FROM note WHERE item = {id}; DELETE FROM twin WHERE item = {id};
             DELETE FROM item WHERE id = {id};
             INSERT INTO item VALUES ({id}, {id}, {v});
             INSERT INTO part VALUES ({id}, 1, {v}), ({id}, 2, {v}); COMMIT"
        ),
    };
    match client.simple_query(&sql) {
        Ok(_) => true,
        Err(e) if e.code().is_some() => client.batch_execute("ROLLBACK").is_ok(),
        Err(_) => false,
    }
}

/// What of the wishes is there, by the names in the catalog.
fn there(client: &mut Client) -> Vec<bool> {
    let all = "SELECT relname::text FROM pg_class WHERE relkind = 'i'
               UNION ALL SELECT conname::text FROM pg_constraint
               UNION ALL SELECT concat_ws(' ', table_name, column_name, data_type)
                         FROM information_schema.columns WHERE table_schema = 'public'
               UNION ALL SELECT concat_ws(' ', table_name, column_name, collation_name)
                         FROM information_schema.columns WHERE collation_name IS NOT NULL";
    let rows = client.query(all, &[]).expect("the catalog is read");
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let inside = lines(client, "SHOW CREATE TABLE note").join(" ").contains("INTERLEAVE");
    let kind = lines(client, "SHOW CREATE TABLE kind").join(" ");
    let stamps = kind.contains("commit_timestamp");
    let is_there = |name: &str| {
        names.iter().any(|n| n == name)
            || (name == "note_in_item" && inside)
            || (name == "kind at is of the commit" && stamps)
    };
    assert_eq!(is_there("item id numeric"), is_there("part id numeric"), "a shared column");
    assert_eq!(is_there("both_by_u_v"), is_there("both_w"), "a block");
    let only_item = kind.contains("SET NULL (item)");
    assert_eq!(is_there("kind_item"), only_item, "which columns become NULL: {kind}");
    WISHES.iter().map(|w| is_there(w.name)).collect()
}

fn lines(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.simple_query(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let mut out = Vec::new();
    for message in answer {
        if let SimpleQueryMessage::Row(row) = message {
            let cells: Vec<&str> = (0..row.len()).map(|n| row.get(n).unwrap_or("NULL")).collect();
            out.push(cells.join("|"));
        }
    }
    out
}

/// What is wrong with the store, if anything; `told`: what must be there and what must not, as
/// far as that was answered.
fn check(client: &mut Client, told: &[Option<bool>]) -> Vec<bool> {
    // What begins again goes on to its end.
    for _ in 0..600 {
        if !lines(client, "SHOW JOBS").iter().any(|line| line.contains("running")) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let now = there(client);
    for ((wish, told), now) in WISHES.iter().zip(told).zip(&now) {
        assert!(told.is_none_or(|told| told == *now), "{}: {now}, answered {told:?}", wish.name);
    }
    let all = |t: &str| format!("SELECT * FROM {t} ORDER BY id");
    assert_eq!(lines(client, &all("note")), lines(client, &all("twin")), "note and its twin");
    let jobs = lines(client, "SHOW JOBS");
    let open = |line: &&String| line.contains("running") || line.contains("undoing");
    assert_eq!(jobs.iter().find(open), None, "an unfinished job");
    // By each index, and by the rows.
    for (table, key, columns, at) in
        [("item", "v", "id, v", 0), ("item", "u", "id, u", 1), ("part", "w", "id, n, w", 2)]
    {
        if now[at] || (at == 2 && now[3]) {
            let by_index =
                format!("SELECT {columns} FROM {table} WHERE {key} >= -1 ORDER BY {columns}");
            let by_rows =
                format!("SELECT {columns} FROM {table} WHERE {key} + 0 >= -1 ORDER BY {columns}");
            assert_eq!(lines(client, &by_index), lines(client, &by_rows), "{table} by {key}");
        }
    }
    if now[3] {
        for id in 1..ROWS.min(200) {
            let by =
                |w: &str| format!("SELECT id, n, w FROM part WHERE id = {id} AND {w} ORDER BY n");
            assert_eq!(lines(client, &by("w >= -1")), lines(client, &by("w + 0 >= -1")), "{id}");
        }
    }
    if now[5] {
        let orphans = "SELECT count(*) FROM note WHERE item NOT IN (SELECT id FROM item)";
        assert_eq!(lines(client, orphans), ["0"], "orphans");
        let orphan = client.simple_query("INSERT INTO note VALUES (-1, -1)");
        assert!(orphan.is_err(), "the foreign key is not enforced");
    }
    check_kinds(client, &now);
    if now[1] {
        let twice = client.simple_query("INSERT INTO item SELECT -1, u, 0 FROM item LIMIT 1");
        assert!(twice.is_err(), "the unique key is not enforced");
    }
    if now[4] {
        let large = client.simple_query("INSERT INTO item VALUES (-1, -1, 5000)");
        assert!(large.is_err(), "the check is not enforced");
    }
    lines(
        client,
        "INSERT INTO item VALUES (-2, -2, 1); INSERT INTO part VALUES (-2, 1, 1);
                   INSERT INTO note VALUES (-2, -2); DELETE FROM note WHERE id = -2;
                   DELETE FROM item WHERE id = -2",
    );
    now
}

/// What hangs on operator classes, collations, and columns that become NULL or the commit's time.
fn check_kinds(client: &mut Client, now: &[bool]) {
    let by = |w: &str| format!("SELECT id, t FROM kind WHERE {w} ORDER BY id");
    let (by_index, by_rows) = (by("t LIKE 'ä1%'"), by("t || '' LIKE 'ä1%'"));
    assert_eq!(lines(client, &by_index), lines(client, &by_rows), "by the operator class");
    let mut last =
        |by: &str| lines(client, &format!("SELECT t FROM kind ORDER BY {by} DESC, id LIMIT 1"));
    let [by_text, by_bytes] = ["t", "convert_to(t, 'UTF8')"].map(&mut last);
    match now[12] {
        true => assert!(by_text.concat().to_lowercase().starts_with('ä'), "{by_text:?}"),
        false => assert_eq!(by_text, by_bytes),
    }
    if now[11] {
        let orphans = "SELECT count(*) FROM kind k WHERE item IS NOT NULL
                       AND NOT EXISTS (SELECT FROM pair p WHERE p.id = k.item AND p.v = k.v)";
        assert_eq!(lines(client, orphans), ["0"], "orphans of the pairs");
        let text = "BEGIN; DELETE FROM pair WHERE id = 9; SELECT item, v FROM kind WHERE id = 9";
        assert_eq!(lines(client, text), ["NULL|7"], "one of the columns becomes NULL");
        lines(client, "ROLLBACK");
    }
    let stamp = "INSERT INTO kind VALUES (-5, NULL, 7, NULL, PENDING_COMMIT_TIMESTAMP())";
    assert_eq!(client.simple_query(stamp).is_ok(), now[13], "the commit's time");
    lines(client, "DELETE FROM kind WHERE id = -5");
}

/// Changes the schema until the node is gone; what was answered, or open at the end.
fn change(client: &mut Client, random: &mut Random, mut now: Vec<bool>) -> Vec<Option<bool>> {
    loop {
        let at = random.below(WISHES.len() as u64) as usize;
        let sql = if now[at] { WISHES[at].back } else { WISHES[at].change };
        match client.simple_query(sql) {
            Ok(_) => now[at] = !now[at],
            // Refused, for what the rows say, or in the way of something: as it was.
            Err(e) if e.code().is_some() => {}
            Err(_) => {
                let mut told: Vec<Option<bool>> = now.into_iter().map(Some).collect();
                told[at] = None;
                return told;
            }
        }
    }
}

#[test]
fn a_change_is_whole_or_gone_after_kill_9() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("store");
    let (kills, seed) = (env("BRAID_KILLS", 4), env("BRAID_SEED", 1));
    println!("{kills} kills, seed {seed}");
    let mut random = Random::seeded(seed);
    create(&mut Node::start(&data).client());
    let mut told = vec![Some(false); WISHES.len()];
    let mut changed = [0u32; 2];
    for round in 0..kills {
        let node = Node::start(&data);
        let now = check(&mut node.client(), &told);
        let stop = Arc::new(AtomicBool::new(false));
        let spawn = |work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().spawn(work).expect("a thread can be started")
        };
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                let (mut client, mut random) = (node.client(), Random::seeded(random.next_u64()));
                let stop = Arc::clone(&stop);
                spawn(Box::new(move || {
                    while !stop.load(Ordering::Relaxed) && write(&mut client, &mut random) {}
                }))
            })
            .collect();
        let (mut client, mut own) = (node.client(), Random::seeded(random.next_u64()));
        let before = now.clone();
        let changer = std::thread::Builder::new()
            .spawn(move || change(&mut client, &mut own, now))
            .expect("a thread can be started");
        std::thread::sleep(Duration::from_millis(random.between(20, 900)));
        node.kill();
        stop.store(true, Ordering::Relaxed);
        told = changer.join().expect("the client does not panic");
        writers.into_iter().for_each(|w| w.join().expect("a writer does not panic"));
        let open = told.iter().position(Option::is_none);
        changed[0] += told.iter().zip(&before).filter(|(t, b)| **t == Some(!**b)).count() as u32;
        changed[1] += u32::from(open.is_some());
        println!("round {round}: killed in {}", open.map_or("nothing", |n| WISHES[n].name));
    }
    let node = Node::start(&data);
    check(&mut node.client(), &told);
    println!("{} tables' states changed, {} changes interrupted", changed[0], changed[1]);
    assert!(changed[1] > 0, "no change was interrupted");
}
