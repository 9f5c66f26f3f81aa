//! What a cascading delete costs: the interleaved hierarchy against the same tables with plain
//! foreign keys, in one run.
//!
//! The three cases are those of CockroachDB's 2018 benchmark of interleaved deletes: a child, two
//! siblings, child and grandchild; 1,000 parents with one row each below. `grow` adds the question
//! that matters more: does the time depend on the number of children?

use std::fmt;
use std::io::Write;
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use postgres::Client;

use crate::WorkloadResult;

/// One measured case.
#[derive(Clone, Debug)]
pub struct Case {
    /// What was deleted.
    pub name: String,
    /// Seconds for the interleaved tables.
    pub fast_seconds: f64,
    /// Seconds for the twin with plain foreign keys.
    pub slow_seconds: f64,
    /// Seconds for committing one row into a table of its own at the same moments: what any
    /// durable statement costs on this device.
    pub insert_seconds: Option<f64>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<34} {:>12.3} ms {:>14.3} ms {:>10.1}x",
            self.name,
            self.fast_seconds * 1e3,
            self.slow_seconds * 1e3,
            self.slow_seconds / self.fast_seconds.max(1e-9)
        )?;
        match self.insert_seconds {
            Some(seconds) => write!(f, " {:>12.3} ms", seconds * 1e3),
            None => Ok(()),
        }
    }
}

/// Heading for lines of [`Case`].
pub fn heading() -> String {
    format!(
        "{:<34} {:>15} {:>17} {:>11} {:>15}",
        "case", "range delete", "row by row", "ratio", "one insert"
    )
}

const PARENTS: u32 = 1_000;

/// The three cases, `rounds` times each; reports the medians.
pub fn cases(client: &mut Client, rounds: usize) -> WorkloadResult<Vec<Case>> {
    let shapes: [(&str, &[(&str, &str)]); 3] = [
        ("child", &[("c", "p")]),
        ("two siblings", &[("c", "p"), ("d", "p")]),
        ("child and grandchild", &[("c", "p"), ("g", "c")]),
    ];
    let mut out = Vec::new();
    for (name, shape) in shapes {
        let mut fast = Vec::new();
        let mut slow = Vec::new();
        for _ in 0..rounds.max(1) {
            fast.push(one_case(client, shape, true)?);
            slow.push(one_case(client, shape, false)?);
        }
        out.push(Case {
            name: format!("{PARENTS} parents, {name}"),
            fast_seconds: median(fast),
            slow_seconds: median(slow),
            insert_seconds: None,
        });
    }
    Ok(out)
}

fn one_case(client: &mut Client, shape: &[(&str, &str)], nested: bool) -> WorkloadResult<f64> {
    client.batch_execute("DROP SCHEMA IF EXISTS interleave_bench CASCADE")?;
    client.batch_execute("CREATE SCHEMA interleave_bench")?;
    let qualified = |t: &str| format!("interleave_bench.{t}");
    client.batch_execute(&format!("CREATE TABLE {} (p bigint PRIMARY KEY)", qualified("p")))?;
    let mut keys: std::collections::HashMap<&str, Vec<&str>> =
        std::collections::HashMap::from([("p", vec!["p"])]);
    for &(table, parent) in shape {
        let parent_key = keys[parent].clone();
        let mut key = parent_key.clone();
        key.push(table);
        let columns: Vec<String> = key.iter().map(|k| format!("{k} bigint")).collect();
        let link = if nested {
            format!(") INTERLEAVE IN PARENT {} ON DELETE CASCADE", qualified(parent))
        } else {
            let refs = parent_key.join(", ");
            format!(", FOREIGN KEY ({refs}) REFERENCES {} ON DELETE CASCADE)", qualified(parent))
        };
        client.batch_execute(&format!(
            "CREATE TABLE {} ({}, PRIMARY KEY ({}){link}",
            qualified(table),
            columns.join(", "),
            key.join(", ")
        ))?;
        keys.insert(table, key);
    }
    for table in ["p"].into_iter().chain(shape.iter().map(|(t, _)| *t)) {
        let width = keys[table].len();
        let lines = (1..=PARENTS).map(|i| vec![i.to_string(); width].join("\t") + "\n");
        copy(client, &qualified(table), lines)?;
    }
    let (seconds, rows) = timed(client, &format!("DELETE FROM {}", qualified("p")))?;
    assert_eq!(rows, u64::from(PARENTS), "every parent is deleted and counted");
    client.batch_execute("DROP SCHEMA interleave_bench CASCADE")?;
    Ok(seconds)
}

/// Parents with `children` children of eight fields each (the schema of the Spanner article, UUID
/// text keys), deleted one after the other with everything below; reports the median of `rounds`
/// range deletes, and one delete row by row. Loads by COPY; not timed.
pub fn grow(client: &mut Client, children: u64, rounds: usize) -> WorkloadResult<Case> {
    let (fast_seconds, insert_seconds) = grow_one(client, children, rounds.max(1), true)?;
    let (slow_seconds, _) = grow_one(client, children, 1, false)?;
    Ok(Case {
        name: format!("1 parent, {children} children"),
        fast_seconds,
        slow_seconds,
        insert_seconds: Some(insert_seconds),
    })
}

/// The key of a parent in [`grow`].
fn parent_id(round: usize) -> String {
    format!("{round:08x}-16bc-4ae8-9e24-879f04297753")
}

fn grow_one(
    client: &mut Client,
    children: u64,
    rounds: usize,
    nested: bool,
) -> WorkloadResult<(f64, f64)> {
    let (parent, child) =
        if nested { ("table_parent_i", "table_child_i") } else { ("table_parent", "table_child") };
    client
        .batch_execute(&format!("DROP TABLE IF EXISTS {child}; DROP TABLE IF EXISTS {parent}"))?;
    client.batch_execute(&format!(
        "CREATE TABLE {parent} (id text PRIMARY KEY, field1 text, field2 text)"
    ))?;
    let fields: String = (1..=8).map(|i| format!("field{i} text, ")).collect();
    let (constraint, clause) = if nested {
        (String::new(), format!(" INTERLEAVE IN PARENT {parent} ON DELETE CASCADE"))
    } else {
        (format!(", FOREIGN KEY (id) REFERENCES {parent} ON DELETE CASCADE"), String::new())
    };
    client.batch_execute(&format!(
        "CREATE TABLE {child} (id text, id_child bigint, {fields}PRIMARY KEY (id, id_child)\
         {constraint}){clause}"
    ))?;
    let field = "0123456789abcdef";
    let tail = [field; 8].join("\t");
    for round in 0..rounds {
        let id = parent_id(round);
        client.batch_execute(&format!("INSERT INTO {parent} VALUES ('{id}', 'a', 'b')"))?;
        copy(client, child, (0..children).map(|i| format!("{id}\t{i}\t{tail}\n")))?;
    }
    client.batch_execute("CREATE TABLE IF NOT EXISTS interleave_probe (i bigint PRIMARY KEY)")?;
    let (mut times, mut inserts) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        inserts.push(calm(client)?);
        let statement = format!("DELETE FROM {parent} WHERE id = '{}'", parent_id(round));
        let (seconds, rows) = timed(client, &statement)?;
        assert_eq!(rows, 1, "the count is that of the named table");
        times.push(seconds);
    }
    let left = client.query_one(&format!("SELECT count(*) FROM {child}"), &[])?;
    assert_eq!(left.get::<_, i64>(0), 0, "children go with their parent");
    client.batch_execute(&format!(
        "DROP TABLE {child}; DROP TABLE {parent}; DROP TABLE interleave_probe"
    ))?;
    Ok((median(times), median(inserts)))
}

/// Waits until the load before is over: its flushes and compactions, and the pages that the
/// operating system still writes, delay every commit and are not what is measured. It is over when
/// of 15 one-row inserts the third slowest takes at most twice as long as the fourth fastest, or
/// after half a minute. Returns the median insert of the last 15, in seconds.
fn calm(client: &mut Client) -> WorkloadResult<f64> {
    let statement = "INSERT INTO interleave_probe SELECT coalesce(max(i), 0) + 1 \
                     FROM interleave_probe";
    let start = WallClock.monotonic_nanos();
    loop {
        let mut times = Vec::new();
        for _ in 0..15 {
            times.push(timed(client, statement)?.0);
        }
        times.sort_by(f64::total_cmp);
        let waited = Duration::from_nanos(WallClock.monotonic_nanos() - start);
        if times[12] <= 2.0 * times[3] || waited > Duration::from_secs(30) {
            return Ok(times[7]);
        }
        WallClock.sleep(Duration::from_millis(200));
    }
}

pub(crate) fn timed(client: &mut Client, statement: &str) -> WorkloadResult<(f64, u64)> {
    let clock = WallClock;
    let start = clock.monotonic_nanos();
    let rows = client.execute(statement, &[])?;
    Ok(((clock.monotonic_nanos() - start) as f64 / 1e9, rows))
}

pub(crate) fn copy(
    client: &mut Client,
    table: &str,
    lines: impl Iterator<Item = String>,
) -> WorkloadResult<u64> {
    let mut sink = client.copy_in(&format!("COPY {table} FROM STDIN"))?;
    let mut buffer = String::new();
    for line in lines {
        buffer.push_str(&line);
        if buffer.len() > 256 << 10 {
            // The writer's error type hides the server's; `finish` reports the latter.
            if sink.write_all(buffer.as_bytes()).is_err() {
                break;
            }
            buffer.clear();
        }
    }
    let _reported_by_finish = sink.write_all(buffer.as_bytes());
    sink.finish()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
