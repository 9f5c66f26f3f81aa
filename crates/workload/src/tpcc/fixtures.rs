//! The tables as CSV files, and a script that imports them.
//!
//! The generator writes COPY text whose values are letters, digits and dates: with a comma for each
//! tab, and nothing for `\N`, that is CSV.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::{DiskFs, File, FileSystem};
use braid_env::random::Random;

use super::load::LoadReport;
use super::rows::{CUSTOMERS, DISTRICTS, ITEMS, RowWriter, is_new};
use super::schema::{Layout, TABLES, statements};

/// Text that is kept before it is written.
const CHUNK: usize = 1 << 20;

const HISTORY: &str = " (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)";

/// Which files, and where.
#[derive(Clone, Debug)]
pub struct Fixtures {
    /// Folder that they go to; made if it is not there. Below the node's folder for imports.
    pub folder: PathBuf,
    /// What the script calls that folder: its path below the node's folder for imports.
    pub name: String,
    /// Number of warehouses.
    pub warehouses: u32,
    /// How child rows are stored.
    pub layout: Layout,
    /// Rows of `stock` in random order: the worst that an import can meet.
    pub shuffle_stock: bool,
    /// Seed of the generator.
    pub seed: u64,
}

/// Writes one file of rows.
struct Output {
    file: Arc<dyn File>,
    at: u64,
    rows: u64,
}

impl Output {
    fn create(folder: &Path, table: &str) -> io::Result<Output> {
        let file = DiskFs.create(&folder.join(format!("{table}.csv")))?;
        Ok(Output { file, at: 0, rows: 0 })
    }

    /// Takes what the generator has written, if it is enough or the last.
    fn take(&mut self, writer: &mut RowWriter, last: bool) -> io::Result<()> {
        if writer.out.len() < CHUNK && !last {
            return Ok(());
        }
        let text = writer.out.replace("\\N", "").replace('\t', ",");
        self.rows += text.bytes().filter(|b| *b == b'\n').count() as u64;
        self.file.write_at(text.as_bytes(), self.at)?;
        self.at += text.len() as u64;
        writer.out.clear();
        Ok(())
    }
}

/// Writes the files and `load.sql`. The same seed gives the same rows.
pub fn write(f: &Fixtures) -> io::Result<LoadReport> {
    let clock = WallClock;
    let start = clock.monotonic_nanos();
    DiskFs.create_dir_all(&f.folder)?;
    let mut report = LoadReport::default();
    let mut table = |name: &str, fill: &mut Fill<'_>| -> io::Result<()> {
        let mut output = Output::create(&f.folder, name)?;
        // Each table has a generator of its own, so that no other can change its rows.
        let seed = name.bytes().fold(f.seed, |seed, b| seed.wrapping_mul(31) ^ u64::from(b));
        let mut writer = RowWriter::new(seed);
        fill(&mut writer, &mut output)?;
        output.take(&mut writer, true)?;
        report.rows += output.rows;
        report.bytes += output.at;
        Ok(())
    };
    let warehouses = 1..=f.warehouses;
    let districts = || warehouses.clone().flat_map(|w| (1..=DISTRICTS).map(move |d| (w, d)));
    table("item", &mut |to, out| {
        (1..=ITEMS).try_for_each(|id| {
            to.item(id);
            out.take(to, false)
        })
    })?;
    table("warehouse", &mut |to, _| {
        warehouses.clone().for_each(|w| to.warehouse(w));
        Ok(())
    })?;
    table("district", &mut |to, _| {
        districts().for_each(|(w, d)| to.district(w, d));
        Ok(())
    })?;
    table("stock", &mut |to, out| stock(f, to, out))?;
    let customers = || districts().flat_map(|(w, d)| (1..=CUSTOMERS).map(move |c| (w, d, c)));
    table("customer", &mut |to, out| {
        customers().try_for_each(|(w, d, c)| {
            to.customer(w, d, c);
            out.take(to, false)
        })
    })?;
    table("history", &mut |to, out| {
        customers().try_for_each(|(w, d, c)| {
            to.history(w, d, c);
            out.take(to, false)
        })
    })?;
    let mut lines: Vec<u8> = Vec::new();
    table("orders", &mut |to, out| orders(districts(), &mut lines, to, out))?;
    let mut lines = lines.into_iter();
    table("order_line", &mut |to, out| {
        customers().try_for_each(|(w, d, order)| {
            let count = u32::from(lines.next().unwrap_or(0));
            (1..=count).for_each(|number| to.order_line(w, d, order, number));
            out.take(to, false)
        })
    })?;
    table("new_order", &mut |to, out| {
        customers().filter(|(_, _, order)| is_new(*order)).try_for_each(|(w, d, order)| {
            to.new_order(w, d, order);
            out.take(to, false)
        })
    })?;
    let script = script(f);
    DiskFs.create(&f.folder.join("load.sql"))?.write_at(script.as_bytes(), 0)?;
    report.seconds = (clock.monotonic_nanos() - start) as f64 / 1e9;
    Ok(report)
}

/// Writes the rows of one table.
type Fill<'a> = dyn FnMut(&mut RowWriter, &mut Output) -> io::Result<()> + 'a;

/// All orders of these districts; how many lines each has goes into `lines`.
fn orders(
    mut districts: impl Iterator<Item = (u32, u32)>,
    lines: &mut Vec<u8>,
    to: &mut RowWriter,
    out: &mut Output,
) -> io::Result<()> {
    districts.try_for_each(|(w, d)| {
        let customers = to.shuffled_customers();
        for (order, customer) in (1..=CUSTOMERS).zip(customers) {
            lines.push(to.order(w, d, order, customer) as u8);
        }
        out.take(to, false)
    })
}

fn stock(f: &Fixtures, to: &mut RowWriter, out: &mut Output) -> io::Result<()> {
    let all = |w: u32| (1..=ITEMS).map(move |item| (w, item));
    if !f.shuffle_stock {
        return (1..=f.warehouses).flat_map(all).try_for_each(|(w, item)| {
            to.stock(w, item);
            out.take(to, false)
        });
    }
    let mut keys: Vec<(u32, u32)> = (1..=f.warehouses).flat_map(all).collect();
    Random::seeded(f.seed).shuffle(&mut keys);
    keys.into_iter().try_for_each(|(w, item)| {
        to.stock(w, item);
        out.take(to, false)
    })
}

/// Tables and imports, parents first.
fn script(f: &Fixtures) -> String {
    let mut out = String::new();
    for statement in statements(f.layout) {
        out.push_str(&format!("{statement};\n"));
    }
    let name = f.name.replace('\'', "''");
    for table in TABLES {
        let columns = if table == "history" { HISTORY } else { "" };
        let file =
            if name.is_empty() { format!("{table}.csv") } else { format!("{name}/{table}.csv") };
        out.push_str(&format!("IMPORT INTO {table}{columns} CSV DATA ('{file}');\n"));
    }
    out
}
