//! Terminals that run the transactions for some time, without waiting in between, and what came of
//! it: new orders a minute (*tpmC*), and times of each kind.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_env::random::Random;
use postgres::error::SqlState;
use postgres::{Client, Error, NoTls};

use super::transactions::{Input, Kind, Terminal};
use crate::WorkloadResult;

/// What to run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The server.
    pub url: String,
    /// Warehouses that were loaded.
    pub warehouses: u32,
    /// Items that were loaded; the specification has 100,000.
    pub items: u32,
    /// Customers of each district; the specification has 3,000.
    pub customers: u32,
    /// Connections; each belongs to one warehouse.
    pub terminals: u32,
    /// Seconds that count.
    pub seconds: u64,
    /// Seconds before that.
    pub warm_up: u64,
    /// Seed.
    pub seed: u64,
}

/// What a terminal has done.
#[derive(Clone, Debug, Default)]
struct Done {
    /// Nanoseconds of each transaction that committed, or was rolled back as it should.
    nanos: BTreeMap<Kind, Vec<u64>>,
    /// New orders that committed.
    orders: u64,
    /// Tries that met a conflict.
    conflicts: BTreeMap<Kind, u64>,
    /// Transactions of which nobody knows what became of them.
    lost: u64,
}

impl Done {
    fn add(&mut self, other: Done) {
        for (kind, nanos) in other.nanos {
            self.nanos.entry(kind).or_default().extend(nanos);
        }
        for (kind, count) in other.conflicts {
            *self.conflicts.entry(kind).or_default() += count;
        }
        self.orders += other.orders;
        self.lost += other.lost;
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    done: Done,
    seconds: f64,
}

impl RunReport {
    /// New orders a minute.
    pub fn per_minute(&self) -> f64 {
        self.done.orders as f64 * 60.0 / self.seconds
    }

    /// Transactions of which nobody knows what became of them, as their connections were lost.
    pub fn lost(&self) -> u64 {
        self.done.lost
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = ["number", "median ms", "p95 ms", "p99 ms", "conflicts"];
        write!(f, "{:<14}", "transaction")?;
        heading.iter().try_for_each(|name| write!(f, "{name:>11}"))?;
        writeln!(f)?;
        for kind in Kind::ALL {
            let mut nanos = self.done.nanos.get(&kind).cloned().unwrap_or_default();
            nanos.sort_unstable();
            let at = |part: f64| {
                let n = ((nanos.len() as f64 * part) as usize).min(nanos.len().saturating_sub(1));
                nanos.get(n).map_or(0.0, |nanos| *nanos as f64 / 1e6)
            };
            let conflicts = self.done.conflicts.get(&kind).copied().unwrap_or_default();
            writeln!(
                f,
                "{kind:<14}{:>11}{:>11.2}{:>11.2}{:>11.2}{conflicts:>11}",
                nanos.len(),
                at(0.5),
                at(0.95),
                at(0.99)
            )?;
        }
        write!(f, "tpmC {:.0}", self.per_minute())
    }
}

/// Conflicts of transactions: they are tried again, with the same input.
fn is_conflict(error: &Error) -> bool {
    let known = [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED];
    error.code().is_some_and(|code| known.contains(&code))
}

/// Whether the connection is lost, its node cannot go on, or nobody knows what became of a commit.
fn is_lost(error: &Error) -> bool {
    let gone = ["57P01", "57P02", "57P03", "40003"];
    error.code().is_none_or(|code| code.code().starts_with("08") || gone.contains(&code.code()))
}

/// Connects a terminal, by its number.
pub type Connect = Arc<dyn Fn(u32) -> WorkloadResult<Client> + Send + Sync>;

/// Runs the transactions.
///
/// # Errors
/// Of connecting, and of a statement, but for conflicts.
pub fn run(settings: &RunSettings) -> WorkloadResult<RunReport> {
    let url = settings.url.clone();
    let connect: Connect = Arc::new(move |_| Client::connect(&url, NoTls));
    run_all(settings, &connect, false)
}

/// Runs them where nodes die: a terminal whose connection is lost connects anew, and goes on with
/// its next transaction.
///
/// # Errors
/// As [`run`], of what is left.
pub fn run_where_nodes_die(settings: &RunSettings, connect: &Connect) -> WorkloadResult<RunReport> {
    run_all(settings, connect, true)
}

fn run_all(settings: &RunSettings, connect: &Connect, again: bool) -> WorkloadResult<RunReport> {
    let clock = WallClock;
    let (counts, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut clients = Vec::new();
    for n in 0..settings.terminals {
        clients.push(connect(n)?);
    }
    let mut threads = Vec::new();
    for (n, client) in clients.into_iter().enumerate() {
        let (counts, stop, settings) = (counts.clone(), stop.clone(), settings.clone());
        let connect = again.then(|| connect.clone());
        let work = move || {
            let n = n as u32;
            terminal(Terminal::new(client), (n, connect.as_ref()), &settings, &counts, &stop)
        };
        let named = std::thread::Builder::new().name(format!("terminal-{n}"));
        threads.push(named.spawn(work).expect("the system has a thread for each terminal"));
    }
    std::thread::sleep(Duration::from_secs(settings.warm_up));
    counts.store(true, Ordering::Relaxed);
    let begun = clock.monotonic_nanos();
    let end = begun + settings.seconds * 1_000_000_000;
    // A terminal that ends early has failed: the others need not go on.
    while clock.monotonic_nanos() < end && !threads.iter().any(|t| t.is_finished()) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let seconds = (clock.monotonic_nanos() - begun) as f64 / 1e9;
    stop.store(true, Ordering::Relaxed);
    let mut done = Done::default();
    for thread in threads {
        done.add(thread.join().expect("a terminal reports its errors")?);
    }
    Ok(RunReport { done, seconds })
}

fn terminal(
    mut terminal: Terminal,
    (number, again): (u32, Option<&Connect>),
    settings: &RunSettings,
    counts: &AtomicBool,
    stop: &AtomicBool,
) -> WorkloadResult<Done> {
    let clock = WallClock;
    let mut random = Random::seeded(settings.seed.wrapping_mul(1_000_003) + u64::from(number));
    let home = (number % settings.warehouses + 1) as i32;
    let mut done = Done::default();
    'transactions: while !stop.load(Ordering::Relaxed) {
        let input = Input::random(&mut random, home, settings);
        let (begun, counted) = (clock.monotonic_nanos(), counts.load(Ordering::Relaxed));
        let committed = loop {
            match terminal.run(&input) {
                Ok(committed) => break committed,
                Err(e) if is_conflict(&e) => {
                    *done.conflicts.entry(input.kind).or_default() += u64::from(counted);
                    if stop.load(Ordering::Relaxed) {
                        return Ok(done);
                    }
                }
                Err(e) => match again.filter(|_| is_lost(&e)) {
                    Some(connect) => {
                        done.lost += 1;
                        terminal = Terminal::new(connect(number)?);
                        continue 'transactions;
                    }
                    None => return Err(e),
                },
            }
        };
        if counted && !stop.load(Ordering::Relaxed) {
            let took = clock.monotonic_nanos() - begun;
            done.nanos.entry(input.kind).or_default().push(took);
            done.orders += u64::from(committed && input.kind == Kind::NewOrder);
        }
    }
    Ok(done)
}

/// What must hold at any time, after clause 3.3.2: each names what it counts that should not be.
const CONSISTENT: [(&str, &str); 4] = [
    (
        "warehouses whose payments are not those of their districts",
        "SELECT count(*) FROM warehouse WHERE w_ytd <> \
         (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)",
    ),
    (
        "districts whose next order is not the one after the last",
        "SELECT count(*) FROM district LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last \
         FROM orders GROUP BY o_w_id, o_d_id) o ON o_w_id = d_w_id AND o_d_id = d_id \
         WHERE d_next_o_id - 1 IS DISTINCT FROM last",
    ),
    (
        "districts with gaps between their new orders",
        "SELECT count(*) FROM (SELECT 1 FROM new_order GROUP BY no_w_id, no_d_id \
         HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) g",
    ),
    (
        "districts whose orders do not have as many lines as they say",
        "SELECT count(*) FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS said FROM orders \
         GROUP BY o_w_id, o_d_id) o JOIN (SELECT ol_w_id, ol_d_id, count(*) AS has \
         FROM order_line GROUP BY ol_w_id, ol_d_id) l ON ol_w_id = o_w_id AND ol_d_id = o_d_id \
         WHERE said <> has",
    ),
];

/// What does not fit in the tables.
///
/// # Errors
/// Of the queries.
pub fn inconsistencies(client: &mut Client) -> WorkloadResult<Vec<String>> {
    let mut found = Vec::new();
    for (what, sql) in CONSISTENT {
        let count: i64 = client.query_one(sql, &[])?.get(0);
        if count > 0 {
            found.push(format!("{count} {what}"));
        }
    }
    Ok(found)
}
