//! What `braid import` is told, and files that the client sends.
//!
//! ```text
//!   CSV files of the client       ─ COPY FROM STDIN ─►  a transaction for each file
//!   --on-node: files of the node  ─ IMPORT INTO ─►      one job for all; SHOW JOBS tells how far
//!   --on-node: a dump, alone      ─ IMPORT PGDUMP ─►    all of it or nothing
//!   --propose-interleave          what could lie in what: of the database, or of a dump
//! ```
//! On a terminal a line shows the part that is done, the rate, and when it will be done.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use postgres::{Client, NoTls};

use super::progress::Progress;
use super::{dump, on_node};
use crate::CliResult;
use crate::shell::{DEFAULT_URL, describe_error};

/// Arguments of `braid import`.
#[derive(Args)]
pub(crate) struct ImportArguments {
    /// Table to load into, with its schema if it is not `public`; columns in parentheses. Or,
    /// alone and with --on-node, a dump of PostgreSQL in any of its formats.
    #[arg(value_name = "TABLE|DUMP", required_unless_present = "propose_interleave")]
    pub(super) target: Option<String>,
    /// CSV files, `-` for standard input; or, with --on-node, files or patterns below the node's
    /// folder for imports.
    pub(super) files: Vec<PathBuf>,
    /// The files are the node's: CSV, JSON lines, Parquet or Avro, by their suffix.
    #[arg(long)]
    on_node: bool,
    /// With --on-node: csv, jsonl, parquet or avro, if the suffix does not tell.
    #[arg(long, requires = "on_node")]
    pub(super) format: Option<String>,
    /// With --on-node: an option of IMPORT, for instance max_bad_rows=100. May be given several
    /// times.
    #[arg(long = "option", short = 'o', value_name = "NAME=VALUE", requires = "on_node")]
    pub(super) options: Vec<String>,
    /// With --on-node: read and check everything, change nothing, and report.
    #[arg(long, requires = "on_node")]
    pub(super) dry_run: bool,
    /// Tell which tables could lie in which parents, and what that changes: of the database, or,
    /// with a dump, of what is in it. Nothing is changed.
    #[arg(long)]
    pub(super) propose_interleave: bool,
    /// With a dump: `auto`, or a list such as 'orders in customers, lines in orders'.
    #[arg(long, requires = "on_node")]
    pub(super) interleave: Option<String>,
    /// The first line of each CSV file names the columns.
    #[arg(long)]
    pub(super) header: bool,
    /// Column separator.
    #[arg(long, default_value = ",")]
    pub(super) delimiter: char,
    /// Text that stands for NULL.
    #[arg(long, default_value = "")]
    pub(super) null: String,
    /// Where the node listens.
    #[arg(long, default_value = DEFAULT_URL, env = "BRAID_URL")]
    pub(super) url: String,
}

pub(crate) fn run(arguments: ImportArguments) -> CliResult {
    let table = match (&arguments.target, arguments.files.is_empty()) {
        (None, _) => return dump::propose(&arguments),
        (Some(dump), true) if arguments.on_node => return dump::run(&arguments, dump),
        (Some(name), true) => {
            let hint = "a dump must lie on the node: --on-node; for a table, say its files";
            return Err(format!("{name}: {hint}").into());
        }
        (Some(_), false) if arguments.propose_interleave || arguments.interleave.is_some() => {
            return Err("a hierarchy is proposed of a dump, or of the database".into());
        }
        (Some(table), false) if arguments.on_node => return on_node::run(&arguments, table),
        (Some(table), false) => table.clone(),
    };
    let mut client = Client::connect(&arguments.url, NoTls)?;
    let statement = format!(
        "COPY {} FROM STDIN WITH (FORMAT csv, HEADER {}, DELIMITER {}, NULL {})",
        table,
        arguments.header,
        literal(&arguments.delimiter.to_string()),
        literal(&arguments.null),
    );
    for path in &arguments.files {
        let rows = send(&mut client, &statement, path)?;
        println!("{}: {rows} rows", path.display());
    }
    Ok(())
}

/// Sends one file of the client.
fn send(client: &mut Client, statement: &str, path: &Path) -> CliResult<u64> {
    let name = path.display().to_string();
    let (mut file, size): (Box<dyn Read>, u64) = if name == "-" {
        (Box::new(std::io::stdin()), 0)
    } else {
        #[expect(clippy::disallowed_methods, reason = "a file of the user, not of a store")]
        let opened = std::fs::File::open(path);
        let file = opened.map_err(|e| format!("{name}: {e}"))?;
        let size = file.metadata().map_or(0, |m| m.len());
        (Box::new(file), size)
    };
    let failed = |e: postgres::Error| format!("{name}: {}", describe_error(&e));
    let mut sink = client.copy_in(statement).map_err(failed)?;
    let mut buffer = vec![0; 1 << 20];
    let mut progress = Progress::new(&name);
    let mut sent = 0;
    loop {
        let read = file.read(&mut buffer).map_err(|e| format!("{name}: {e}"))?;
        // When the server has given up, `finish` says why.
        if read == 0 || sink.write_all(&buffer[..read]).is_err() {
            break;
        }
        sent += read as u64;
        // Of standard input nobody knows how much is left.
        let part = if size == 0 { 0.0 } else { sent as f64 / size as f64 };
        progress.show(part, Some(sent), "");
    }
    let rows = sink.finish();
    progress.end();
    Ok(rows.map_err(failed)?)
}

/// A text as an SQL literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
