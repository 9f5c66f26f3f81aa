//! Filling the tables by COPY, one transaction per table and district.

use std::io::Write;

use braid_env::clock::{Clock, WallClock};
use postgres::Client;

use super::rows::{CUSTOMERS, DISTRICTS, ITEMS, RowWriter, is_new};
use crate::WorkloadResult;

/// What was loaded, and how fast.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadReport {
    /// Rows over all tables.
    pub rows: u64,
    /// Bytes of COPY text.
    pub bytes: u64,
    /// Wall time.
    pub seconds: f64,
}

impl std::fmt::Display for LoadReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.seconds.max(0.001);
        write!(
            f,
            "{} rows, {:.1} MB in {:.1} s ({:.0} rows/s)",
            self.rows,
            self.bytes as f64 / 1e6,
            seconds,
            self.rows as f64 / seconds
        )
    }
}

/// Loads `warehouses` warehouses and the items. The same seed gives the same rows.
pub fn load(client: &mut Client, warehouses: u32, seed: u64) -> WorkloadResult<LoadReport> {
    let clock = WallClock;
    let start = clock.monotonic_nanos();
    let mut report = LoadReport::default();
    let mut writer = RowWriter::new(seed);
    (1..=ITEMS).for_each(|id| writer.item(id));
    copy(client, "item", &mut writer, &mut report)?;
    (1..=warehouses).for_each(|w| writer.warehouse(w));
    copy(client, "warehouse", &mut writer, &mut report)?;
    for w in 1..=warehouses {
        (1..=DISTRICTS).for_each(|d| writer.district(w, d));
        copy(client, "district", &mut writer, &mut report)?;
        (1..=ITEMS).for_each(|item| writer.stock(w, item));
        copy(client, "stock", &mut writer, &mut report)?;
        for d in 1..=DISTRICTS {
            load_district(client, &mut writer, w, d, &mut report)?;
        }
    }
    report.seconds = (clock.monotonic_nanos() - start) as f64 / 1e9;
    Ok(report)
}

fn load_district(
    client: &mut Client,
    writer: &mut RowWriter,
    w: u32,
    d: u32,
    report: &mut LoadReport,
) -> WorkloadResult<()> {
    (1..=CUSTOMERS).for_each(|c| writer.customer(w, d, c));
    copy(client, "customer", writer, report)?;
    (1..=CUSTOMERS).for_each(|c| writer.history(w, d, c));
    let columns = "history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)";
    copy(client, columns, writer, report)?;
    let customers = writer.shuffled_customers();
    let lines: Vec<u32> = (1..=CUSTOMERS)
        .zip(customers)
        .map(|(order, customer)| writer.order(w, d, order, customer))
        .collect();
    copy(client, "orders", writer, report)?;
    for (order, lines) in (1..=CUSTOMERS).zip(lines) {
        (1..=lines).for_each(|number| writer.order_line(w, d, order, number));
    }
    copy(client, "order_line", writer, report)?;
    (1..=CUSTOMERS).filter(|o| is_new(*o)).for_each(|o| writer.new_order(w, d, o));
    copy(client, "new_order", writer, report)
}

fn copy(
    client: &mut Client,
    target: &str,
    writer: &mut RowWriter,
    report: &mut LoadReport,
) -> WorkloadResult<()> {
    let mut sink = client.copy_in(&format!("COPY {target} FROM STDIN"))?;
    for chunk in writer.out.as_bytes().chunks(256 << 10) {
        // The writer's error type hides the server's; `finish` reports the latter.
        if sink.write_all(chunk).is_err() {
            break;
        }
    }
    report.bytes += writer.out.len() as u64;
    writer.out.clear();
    report.rows += sink.finish()?;
    Ok(())
}
