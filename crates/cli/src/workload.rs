//! `braid workload`: generators and measurements against a running node (or PostgreSQL).

use std::path::PathBuf;

use braid_env::clock::{Clock, WallClock};
use clap::{Args, Subcommand};
use postgres::{Client, NoTls};

use braid_workload::levels::{IndexPlace, Shape};
use braid_workload::{differential, history, interleave, levels, tpcc, tpch};

use crate::CliResult;
use crate::shell::DEFAULT_URL;

/// Arguments of `braid workload`.
#[derive(Args)]
pub(crate) struct WorkloadArguments {
    #[command(subcommand)]
    workload: Workload,
    /// Where the database listens.
    #[arg(long, default_value = DEFAULT_URL, env = "BRAID_URL", global = true)]
    url: String,
}

#[derive(Subcommand)]
enum Workload {
    /// TPC-C tables and rows.
    #[command(subcommand)]
    Tpcc(Tpcc),
    /// TPC-H tables, rows and queries.
    #[command(subcommand)]
    Tpch(Tpch),
    /// Cascading deletes: range delete against row by row.
    Interleave {
        /// Rounds of each case; medians are reported.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Children below one parent, for the question whether their number matters.
        #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
        children: Vec<u64>,
        /// Instead: deletes from a hierarchy of so many tables, one in the other.
        #[arg(long, value_parser = clap::value_parser!(u8).range(1..=8))]
        levels: Option<u8>,
        /// With --levels: rows of the first table.
        #[arg(long, default_value_t = 100)]
        parents: u64,
        /// With --levels: rows of each other table for one row above.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
        ratio: u64,
        /// With --levels: rows of one statement.
        #[arg(long, default_value_t = 1)]
        rows_in_single_delete: u64,
    },
    /// Random statements here and on PostgreSQL must give the same answers.
    Differential {
        /// A PostgreSQL database in the C collation that may be overwritten.
        #[arg(long)]
        postgres_url: String,
        /// First seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many statements to compare.
        #[arg(long, default_value_t = 20_000)]
        statements: u64,
        /// Statements of one random schema.
        #[arg(long, default_value_t = 250)]
        round: u64,
        /// All queries have subqueries.
        #[arg(long)]
        subqueries: bool,
        /// Most rows of a table before the statements begin.
        #[arg(long, default_value_t = 0)]
        rows: u64,
        /// Schema changes, transactions with savepoints and reads of the past, too.
        #[arg(long, conflicts_with_all = ["subqueries", "rows"])]
        hierarchies: bool,
    },
    /// Random transactions by several clients; what they saw is checked against their level.
    History {
        /// How many transactions.
        #[arg(long, default_value_t = 10_000)]
        transactions: u64,
        /// serializable, repeatable-read or read-committed.
        #[arg(long, default_value = "serializable")]
        level: history::Level,
        /// Seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Connections.
        #[arg(long, default_value_t = 4)]
        clients: u64,
    },
    /// Random expressions over every function, operator and cast, here and on PostgreSQL 15.
    Corpus {
        /// A PostgreSQL database in the C collation that may be overwritten.
        #[arg(long)]
        postgres_url: String,
        /// Seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many expressions to compare.
        #[arg(long, default_value_t = 200_000)]
        expressions: u64,
        /// Only signatures that hold this text.
        #[arg(long)]
        only: Option<String>,
    },
}

#[derive(Subcommand)]
enum Tpcc {
    /// Create the tables and load them.
    Init {
        /// Number of warehouses.
        #[arg(long, default_value_t = 1)]
        warehouses: u32,
        /// Plain foreign keys instead of interleaving.
        #[arg(long)]
        flat: bool,
        /// Seed of the generator.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Run the transactions, and check that the tables fit each other.
    Run {
        /// Number of warehouses that were loaded.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        warehouses: u32,
        /// Connections. Each belongs to one warehouse, and does not wait between transactions.
        #[arg(long, default_value_t = 16)]
        terminals: u32,
        /// Seconds that count.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
        /// Seconds before that.
        #[arg(long, default_value_t = 5)]
        warm_up: u64,
        /// Seed of the inputs.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Write the rows as CSV files, with a script that imports them.
    Fixtures {
        /// Number of warehouses.
        #[arg(long, default_value_t = 1)]
        warehouses: u32,
        /// Folder for the files.
        #[arg(long)]
        dir: PathBuf,
        /// What the script calls that folder: its path below the node's folder for imports; unless
        /// given, the last part of it.
        #[arg(long)]
        name: Option<String>,
        /// Plain foreign keys instead of interleaving.
        #[arg(long)]
        flat: bool,
        /// Rows of the table stock in random order.
        #[arg(long)]
        shuffle_stock: bool,
        /// Seed of the generator.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

#[derive(Subcommand)]
enum Tpch {
    /// Create the tables and load them.
    Init {
        /// Scale factor: 1 is six million order lines, about 1 GB.
        #[arg(long, default_value_t = 0.1)]
        scale: f64,
        /// Tables that stand alone instead of interleaved ones.
        #[arg(long)]
        flat: bool,
    },
    /// Run the 22 queries.
    Run {
        /// Scale factor of the tables.
        #[arg(long, default_value_t = 0.1)]
        scale: f64,
        /// A server with the same tables: answers are compared, times alternate.
        #[arg(long)]
        other_url: Option<String>,
        /// Only these queries.
        #[arg(long, value_delimiter = ',')]
        only: Vec<usize>,
        /// Runs of each query; medians are reported.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Seconds after which a query is given up.
        #[arg(long, default_value_t = 120)]
        timeout: u32,
    },
    /// Print the 22 queries, each ended by a semicolon.
    Queries {
        /// Scale factor of the tables.
        #[arg(long, default_value_t = 0.1)]
        scale: f64,
    },
}

pub(crate) fn run(arguments: WorkloadArguments) -> CliResult {
    if let Workload::Differential {
        postgres_url,
        seed,
        statements,
        round,
        subqueries,
        rows,
        hierarchies,
    } = arguments.workload
    {
        let settings = differential::Settings {
            braid_url: arguments.url,
            postgres_url,
            seed,
            statements,
            round,
            subqueries,
            rows,
            hierarchies,
        };
        return compare_statements(&settings);
    }
    if let Workload::Corpus { postgres_url, seed, expressions, only } = arguments.workload {
        let braid_url = arguments.url;
        return compare_corpus(&differential::CorpusSettings {
            braid_url,
            postgres_url,
            seed,
            expressions,
            only,
        });
    }
    if let Workload::History { transactions, level, seed, clients } = arguments.workload {
        let url = arguments.url;
        return check_history(&history::Settings { url, transactions, level, seed, clients });
    }
    if let Workload::Tpch(command) = arguments.workload {
        return run_tpch(arguments.url, command);
    }
    if let Workload::Tpcc(command @ Tpcc::Fixtures { .. }) = arguments.workload {
        return write_fixtures(command);
    }
    let mut client = Client::connect(&arguments.url, NoTls)?;
    match arguments.workload {
        Workload::Tpcc(command) => run_tpcc(&mut client, arguments.url, command)?,
        Workload::Interleave { rounds, children, levels: None, .. } => {
            report_deletes(&mut client, rounds, &children)?;
        }
        Workload::Interleave {
            levels: Some(depth),
            rounds,
            parents,
            ratio,
            rows_in_single_delete,
            ..
        } => {
            let shapes = shapes(depth.into(), parents, ratio, rows_in_single_delete);
            report_levels(&mut client, rounds, shapes)?;
        }
        Workload::Differential { .. }
        | Workload::Corpus { .. }
        | Workload::History { .. }
        | Workload::Tpch(_) => unreachable!("handled above, it connects by itself"),
    }
    Ok(())
}

fn run_tpcc(client: &mut Client, url: String, command: Tpcc) -> CliResult {
    match command {
        Tpcc::Init { warehouses, flat, seed } => {
            let layout = if flat { tpcc::Layout::Flat } else { tpcc::Layout::Interleaved };
            tpcc::create(client, layout)?;
            println!("{}", tpcc::load(client, warehouses, seed)?);
        }
        Tpcc::Run { warehouses, terminals, seconds, warm_up, seed } => {
            let (items, customers) = (tpcc::ITEMS, tpcc::CUSTOMERS);
            let settings = tpcc::RunSettings {
                url,
                warehouses,
                items,
                customers,
                terminals,
                seconds,
                warm_up,
                seed,
            };
            println!("{}", tpcc::run(&settings)?);
            let wrong = tpcc::inconsistencies(client)?;
            if !wrong.is_empty() {
                return Err(wrong.join("; ").into());
            }
        }
        Tpcc::Fixtures { .. } => unreachable!("handled above, it connects to nothing"),
    }
    Ok(())
}

fn compare_statements(settings: &differential::Settings) -> CliResult {
    let report = differential::run(settings)?;
    println!("{report}");
    match report.differences.len() {
        0 => Ok(()),
        n => Err(format!("{n} differences").into()),
    }
}

fn compare_corpus(settings: &differential::CorpusSettings) -> CliResult {
    let report = differential::run_corpus(settings)?;
    println!("{report}");
    match report.total() {
        0 => Ok(()),
        n => Err(format!("{n} differences").into()),
    }
}

fn write_fixtures(command: Tpcc) -> CliResult {
    let Tpcc::Fixtures { warehouses, dir, name, flat, shuffle_stock, seed } = command else {
        return Ok(());
    };
    let last = || dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let fixtures = tpcc::Fixtures {
        name: name.unwrap_or_else(last),
        folder: dir,
        warehouses,
        layout: if flat { tpcc::Layout::Flat } else { tpcc::Layout::Interleaved },
        shuffle_stock,
        seed,
    };
    println!("{}", tpcc::write_fixtures(&fixtures)?);
    println!("{} loads them", fixtures.folder.join("load.sql").display());
    Ok(())
}

fn report_deletes(client: &mut Client, rounds: usize, children: &[u64]) -> CliResult {
    println!("{}", interleave::heading());
    for case in interleave::cases(client, rounds)? {
        println!("{case}");
    }
    for count in children {
        println!("{}", interleave::grow(client, *count, rounds)?);
    }
    Ok(())
}

fn report_levels(client: &mut Client, rounds: usize, shapes: Vec<Shape>) -> CliResult {
    println!("{}", interleave::heading());
    for shape in shapes {
        println!("{}", levels::run(client, shape, rounds)?);
    }
    Ok(())
}

/// Deletes from each level, with each kind of index.
fn shapes(levels: usize, parents: u64, ratio: u64, rows_at_once: u64) -> Vec<Shape> {
    let mut out = Vec::new();
    for delete_from in 0..levels {
        for index in [IndexPlace::None, IndexPlace::Inside, IndexPlace::Global] {
            out.push(Shape { levels, parents, ratio, delete_from, rows_at_once, index });
        }
    }
    out
}

fn run_tpch(url: String, command: Tpch) -> CliResult {
    match command {
        Tpch::Init { scale, flat } => {
            if scale < 0.01 {
                return Err("below a scale of 0.01 TPC-H's rules give two rows one key".into());
            }
            let mut client = Client::connect(&url, NoTls)?;
            let layout = if flat { tpcc::Layout::Flat } else { tpcc::Layout::Interleaved };
            tpch::create(&mut client, layout)?;
            println!("{}", tpch::load(&mut client, scale)?);
        }
        Tpch::Run { scale, other_url, only, rounds, timeout } => {
            if let Some(number) = only.iter().find(|n| !(1..=tpch::QUERIES).contains(*n)) {
                return Err(format!("there is no query {number}, only 1 to 22").into());
            }
            let settings = tpch::Settings { url, other: other_url, scale, only, rounds, timeout };
            let report = tpch::run(&settings)?;
            println!("{report}");
            if report.wrong() > 0 {
                return Err(format!("{} queries failed or differ", report.wrong()).into());
            }
        }
        Tpch::Queries { scale } => {
            (1..=tpch::QUERIES).for_each(|number| println!("{};\n", tpch::query(number, scale)));
        }
    }
    Ok(())
}

fn check_history(settings: &history::Settings) -> CliResult {
    let clock = WallClock;
    let seconds = |since: u64| (clock.monotonic_nanos() - since) as f64 / 1e9;
    let start = clock.monotonic_nanos();
    let (history, changes) = history::run(settings)?;
    let (took, start) = (seconds(start), clock.monotonic_nanos());
    let report = history::check(&history, settings.level);
    println!("{report}");
    println!(
        "{changes} schema changes; ran {took:.1} s, checked {:.1} s; seed {}",
        seconds(start),
        settings.seed
    );
    match report.forbidden.len() {
        0 => Ok(()),
        n => Err(format!("{n} kinds of anomalies that {} forbids", settings.level.sql()).into()),
    }
}
