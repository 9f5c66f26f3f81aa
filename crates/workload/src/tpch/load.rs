//! Filling the tables by COPY, one statement per table.

use std::fmt::Display;
use std::io::Write;

use braid_env::clock::{Clock, WallClock};
use postgres::Client;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use super::schema::finish;
use crate::WorkloadResult;
use crate::tpcc::LoadReport;

/// Bytes that are sent at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Loads the tables at a scale factor (1: six million order lines, about 1 GB), creates the
/// indexes and analyzes. The same factor gives the same rows.
pub fn load(client: &mut Client, scale: f64) -> WorkloadResult<LoadReport> {
    let clock = WallClock;
    let start = clock.monotonic_nanos();
    let mut report = LoadReport::default();
    let mut rows = |table: &str, rows: &mut dyn Iterator<Item = String>| {
        copy(client, table, rows, &mut report)
    };
    rows("region", &mut lines(RegionGenerator::new(scale, 1, 1)))?;
    rows("nation", &mut lines(NationGenerator::new(scale, 1, 1)))?;
    rows("part", &mut lines(PartGenerator::new(scale, 1, 1)))?;
    rows("supplier", &mut lines(SupplierGenerator::new(scale, 1, 1)))?;
    rows("partsupp", &mut lines(PartSuppGenerator::new(scale, 1, 1)))?;
    rows("customer", &mut lines(CustomerGenerator::new(scale, 1, 1)))?;
    rows("orders", &mut lines(OrderGenerator::new(scale, 1, 1)))?;
    rows("lineitem", &mut lines(LineItemGenerator::new(scale, 1, 1)))?;
    finish(client)?;
    report.seconds = (clock.monotonic_nanos() - start) as f64 / 1e9;
    Ok(report)
}

/// A generator's rows as lines of COPY. It ends each with a separator, COPY does not.
fn lines<R: Display>(generator: impl IntoIterator<Item = R>) -> impl Iterator<Item = String> {
    generator.into_iter().map(|row| {
        let mut line = row.to_string();
        line.truncate(line.trim_end_matches('|').len());
        line.push('\n');
        line
    })
}

fn copy(
    client: &mut Client,
    table: &str,
    lines: &mut dyn Iterator<Item = String>,
    report: &mut LoadReport,
) -> WorkloadResult<()> {
    let mut sink = client.copy_in(&format!("COPY {table} FROM STDIN WITH (DELIMITER '|')"))?;
    let mut chunk = String::new();
    loop {
        chunk.clear();
        while chunk.len() < CHUNK_BYTES
            && let Some(line) = lines.next()
        {
            chunk.push_str(&line);
        }
        // The writer's error type hides the server's; `finish` reports the latter.
        if chunk.is_empty() || sink.write_all(chunk.as_bytes()).is_err() {
            break;
        }
        report.bytes += chunk.len() as u64;
    }
    report.rows += sink.finish()?;
    Ok(())
}
