//! Deletes from one level of a deep hierarchy, in the shape of CockroachDB's `interleavebench`.
//!
//! ```text
//!   levels 3, ratio 10      t0 (c0)  100 rows
//!                             t1 (c0, c1)  10 for each
//!                               t2 (c0, c1, c2)  10 for each
//!   delete from 1, 5 rows   DELETE FROM t1 WHERE (c0, c1) IN (..5 of them..)    again and again
//! ```
//! The same tables once with the clause and once with foreign keys; with no index, with one inside
//! of the rows above, or with a global one on the table at the bottom.

use std::fmt;

use postgres::Client;

use crate::WorkloadResult;
use crate::interleave::{copy, median, timed};

/// Where the index of the lowest table lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPlace {
    /// There is none.
    None,
    /// In the root table's rows; without the clause, by itself.
    Inside,
    /// By itself.
    Global,
}

/// What is built and deleted.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Tables, one in the other.
    pub levels: usize,
    /// Rows of the first.
    pub parents: u64,
    /// Rows of each other table for one row above.
    pub ratio: u64,
    /// The table that rows are deleted from, 0 is the first.
    pub delete_from: usize,
    /// Rows of one statement.
    pub rows_at_once: u64,
    /// The index of the last table.
    pub index: IndexPlace,
}

/// One line: medians of one statement, in seconds.
#[derive(Clone, Debug)]
pub struct Line {
    shape: Shape,
    interleaved: f64,
    flat: f64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { levels, delete_from, rows_at_once, index, .. } = self.shape;
        let name =
            format!("{levels} levels, {rows_at_once} of level {delete_from}, {index:?} index");
        write!(
            f,
            "{name:<34} {:>12.3} ms {:>14.3} ms {:>10.1}x",
            self.interleaved * 1e3,
            self.flat * 1e3,
            self.flat / self.interleaved.max(1e-9)
        )
    }
}

/// Measures a shape with the clause and without it.
pub fn run(client: &mut Client, shape: Shape, rounds: usize) -> WorkloadResult<Line> {
    let interleaved = one(client, shape, rounds, true)?;
    let flat = one(client, shape, rounds, false)?;
    Ok(Line { shape, interleaved, flat })
}

fn key(level: usize) -> String {
    (0..=level).map(|n| format!("c{n}")).collect::<Vec<_>>().join(", ")
}

/// Values of the key of the `n`th row of a level.
fn values(shape: Shape, level: usize, mut n: u64) -> Vec<u64> {
    let mut out = Vec::with_capacity(level + 1);
    for _ in 0..level {
        out.push(n % shape.ratio);
        n /= shape.ratio;
    }
    out.push(n);
    out.reverse();
    out
}

fn rows(shape: Shape, level: usize) -> u64 {
    shape.parents * shape.ratio.pow(level as u32)
}

fn create(client: &mut Client, shape: Shape, nested: bool) -> WorkloadResult<()> {
    client.batch_execute("DROP SCHEMA IF EXISTS interleave_bench CASCADE")?;
    client.batch_execute("CREATE SCHEMA interleave_bench")?;
    for level in 0..shape.levels {
        let columns: Vec<String> = (0..=level).map(|n| format!("c{n} bigint")).collect();
        let parent = format!("interleave_bench.t{}", level.saturating_sub(1));
        let (link, clause) = match (level, nested) {
            (0, _) => (String::new(), String::new()),
            (_, true) => {
                (String::new(), format!(" INTERLEAVE IN PARENT {parent} ON DELETE CASCADE"))
            }
            (_, false) => {
                let above = key(level - 1);
                let link = format!(", FOREIGN KEY ({above}) REFERENCES {parent} ON DELETE CASCADE");
                (link, String::new())
            }
        };
        client.batch_execute(&format!(
            "CREATE TABLE interleave_bench.t{level} ({}, v bigint, PRIMARY KEY ({}){link}){clause}",
            columns.join(", "),
            key(level)
        ))?;
        let lines = (0..rows(shape, level)).map(|n| {
            let mut fields: Vec<String> =
                values(shape, level, n).iter().map(u64::to_string).collect();
            fields.push((n % 1_000).to_string());
            fields.join("\t") + "\n"
        });
        copy(client, &format!("interleave_bench.t{level}"), lines)?;
    }
    let inside = if nested { " INTERLEAVE IN interleave_bench.t0" } else { "" };
    let last = format!("interleave_bench.t{}", shape.levels - 1);
    match shape.index {
        IndexPlace::None => Ok(()),
        IndexPlace::Inside => {
            client.batch_execute(&format!("CREATE INDEX ON {last} (c0, v){inside}"))
        }
        IndexPlace::Global => client.batch_execute(&format!("CREATE INDEX ON {last} (v)")),
    }
}

fn one(client: &mut Client, shape: Shape, rounds: usize, nested: bool) -> WorkloadResult<f64> {
    create(client, shape, nested)?;
    let all = rows(shape, shape.delete_from);
    let mut times = Vec::new();
    let mut next = 0;
    for _ in 0..rounds.max(1) {
        let last = (next + shape.rows_at_once).min(all);
        if next == last {
            break;
        }
        let names: Vec<String> = (next..last)
            .map(|n| {
                let values: Vec<String> =
                    values(shape, shape.delete_from, n).iter().map(u64::to_string).collect();
                format!("({})", values.join(", "))
            })
            .collect();
        let (seconds, gone) = timed(
            client,
            &format!(
                "DELETE FROM interleave_bench.t{} WHERE ({}) IN ({})",
                shape.delete_from,
                key(shape.delete_from),
                names.join(", ")
            ),
        )?;
        assert_eq!(gone, last - next, "the count is that of the named table");
        times.push(seconds);
        next = last;
    }
    let below = shape.levels - 1;
    let left = client.query_one(&format!("SELECT count(*) FROM interleave_bench.t{below}"), &[])?;
    let each = shape.ratio.pow((below - shape.delete_from) as u32);
    let want = rows(shape, below) - next * each;
    assert_eq!(left.get::<_, i64>(0) as u64, want, "what lies below goes, and nothing else");
    client.batch_execute("DROP SCHEMA interleave_bench CASCADE")?;
    Ok(median(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_count_through_the_hierarchy() {
        let index = IndexPlace::None;
        let shape =
            Shape { levels: 3, parents: 4, ratio: 10, delete_from: 1, rows_at_once: 5, index };
        assert_eq!(rows(shape, 2), 400);
        assert_eq!(values(shape, 0, 3), [3]);
        assert_eq!(values(shape, 2, 0), [0, 0, 0]);
        assert_eq!(values(shape, 2, 123), [1, 2, 3]);
        assert_eq!(values(shape, 1, 39), [3, 9]);
        assert_eq!(key(2), "c0, c1, c2");
    }
}
