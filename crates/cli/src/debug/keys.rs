//! `braid debug keys`: the rows of a store, keys in readable form.

use std::io::Write;
use std::path::Path;

use braid_env::fs::DiskFs;
use braid_lsm::{Db, KeySpan, Options, ScanOptions};

use crate::CliResult;

/// Prints `limit` rows at the newest timestamp.
pub(super) fn print(dir: &Path, limit: usize) -> CliResult {
    if !dir.is_dir() {
        return Err(format!("{} is not a directory", dir.display()).into());
    }
    let options = Options { row_class: braid_keys::row_class, ..Options::default() };
    let db = Db::open(DiskFs::shared(), dir, options)?;
    let view = db.view(db.last_commit_ts())?;
    let mut scan = view.scan(KeySpan::all(), ScanOptions::default())?;
    let mut out = std::io::stdout().lock();
    for _ in 0..limit {
        let Some(row) = scan.next_row()? else { break };
        writeln!(
            out,
            "{} @{} {} bytes",
            braid_keys::pretty::key(&row.key),
            row.ts.0,
            row.value.len()
        )?;
    }
    drop(scan);
    drop(view);
    Ok(db.close()?)
}
