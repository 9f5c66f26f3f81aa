//! The subcommands of `braid debug`, and what each prints.

use std::io::Write;
use std::path::PathBuf;

use braid_env::fs::DiskFs;
use braid_lsm::{check_store, dump, lsm_page};
use clap::{Args, Subcommand};

use super::keys;
use crate::CliResult;

/// Arguments of `braid debug`.
#[derive(Args)]
pub(crate) struct DebugArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Print an sst: properties, blocks, range tombstones, and with --rows every entry.
    Sst {
        /// The file.
        file: PathBuf,
        /// Every entry, too.
        #[arg(long)]
        rows: bool,
    },
    /// Print the batches of a wal segment.
    Wal {
        /// The file.
        file: PathBuf,
    },
    /// Print the edits of a manifest.
    Manifest {
        /// The file.
        file: PathBuf,
    },
    /// Print the rows of a store, keys in readable form, newest versions.
    Keys {
        /// Directory of the store.
        dir: PathBuf,
        /// Stop after so many rows.
        #[arg(long, default_value_t = 1000)]
        limit: usize,
    },
    /// Write a page that replays how the tree of a store grew. The node may be running.
    Lsm {
        /// Directory of the store.
        dir: PathBuf,
        /// The page.
        #[arg(long, value_name = "FILE")]
        html: PathBuf,
    },
    /// Read every byte of a store; report everything that fails its checks.
    Check {
        /// Directory of the store.
        dir: PathBuf,
    },
}

pub(crate) fn run(arguments: DebugArguments) -> CliResult {
    let fs = DiskFs::shared();
    let mut out = std::io::stdout().lock();
    match arguments.what {
        What::Sst { file, rows } => dump::dump_sst(&*fs, &file, rows, &mut out)?,
        What::Wal { file } => dump::dump_wal(&*fs, &file, &mut out)?,
        What::Manifest { file } => dump::dump_manifest(&*fs, &file, &mut out)?,
        What::Keys { dir, limit } => {
            drop(out);
            keys::print(&dir, limit)?;
        }
        What::Lsm { dir, html } => {
            let page = lsm_page(fs.clone(), &dir, &dir.display().to_string())?;
            let file = fs.create(&html)?;
            file.write_at(page.as_bytes(), 0)?;
            file.sync_data()?;
            writeln!(out, "{}: {} bytes", html.display(), page.len())?;
        }
        What::Check { dir } => {
            let report = check_store(fs, &dir)?;
            for problem in &report.problems {
                let file = problem.file.display();
                writeln!(out, "{file}, offset {}: {}", problem.offset, problem.reason)?;
            }
            writeln!(
                out,
                "{} ssts with {} rows and {} range tombstones, {} wal segments with {} batches",
                report.ssts,
                report.rows,
                report.tombstones,
                report.wal_segments,
                report.wal_batches
            )?;
            if !report.problems.is_empty() {
                return Err(format!("{} problems", report.problems.len()).into());
            }
        }
    }
    Ok(())
}
