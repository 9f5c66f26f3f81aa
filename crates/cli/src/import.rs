//! `braid import`: CSV files into a table of a running node, by COPY.

use std::io::{Read, Write};
use std::path::PathBuf;

use clap::Args;
use postgres::{Client, NoTls};

use crate::CliResult;
use crate::shell::{DEFAULT_URL, describe_error};

/// Arguments of `braid import`.
#[derive(Args)]
pub(crate) struct ImportArguments {
    /// Table to load into, with its schema if it is not `public`.
    table: String,
    /// CSV files; all are loaded in one transaction each.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The first line of each file names the columns.
    #[arg(long)]
    header: bool,
    /// Column separator.
    #[arg(long, default_value = ",")]
    delimiter: char,
    /// Text that stands for NULL.
    #[arg(long, default_value = "")]
    null: String,
    /// Where the node listens.
    #[arg(long, default_value = DEFAULT_URL, env = "BRAID_URL")]
    url: String,
}

pub(crate) fn run(arguments: ImportArguments) -> CliResult {
    let mut client = Client::connect(&arguments.url, NoTls)?;
    let literal = |s: &str| s.replace('\'', "''");
    let statement = format!(
        "COPY {} FROM STDIN WITH (FORMAT csv, HEADER {}, DELIMITER '{}', NULL '{}')",
        arguments.table,
        arguments.header,
        literal(&arguments.delimiter.to_string()),
        literal(&arguments.null),
    );
    for path in &arguments.files {
        let name = path.display();
        #[expect(clippy::disallowed_methods, reason = "a file of the user, not of a store")]
        let opened = std::fs::File::open(path);
        let mut file = opened.map_err(|e| format!("{name}: {e}"))?;
        let failed = |e: postgres::Error| format!("{name}: {}", describe_error(&e));
        let mut sink = client.copy_in(&statement).map_err(failed)?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            let read = file.read(&mut buffer).map_err(|e| format!("{name}: {e}"))?;
            // When the server has given up, `finish` says why.
            if read == 0 || sink.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let rows = sink.finish().map_err(failed)?;
        println!("{name}: {rows} rows");
    }
    Ok(())
}
