//! Running the queries, against one server or two that take turns.

use std::fmt;

use braid_env::clock::{Clock, WallClock};
use postgres::{Client, NoTls, SimpleQueryMessage};

use super::{QUERIES, query};
use crate::WorkloadResult;

/// What to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server that is measured.
    pub url: String,
    /// A server with the same tables, to compare with.
    pub other: Option<String>,
    /// Scale factor of the tables: a query has a parameter that depends on it.
    pub scale: f64,
    /// Which queries; empty: all.
    pub only: Vec<usize>,
    /// Each query is run so often; medians count.
    pub rounds: usize,
    /// A query is given up after so many seconds.
    pub timeout: u32,
}

/// What became of one query on one server.
#[derive(Clone, Debug, PartialEq)]
enum Ran {
    Rows(Vec<Vec<Option<String>>>),
    Failed(String),
}

/// What became of one query.
#[derive(Clone, Debug)]
struct Line {
    number: usize,
    seconds: f64,
    rows: Result<usize, String>,
    /// The other server's seconds, and whether the answers are equal.
    other: Option<(f64, Result<bool, String>)>,
}

/// Times and comparisons of all queries.
#[derive(Clone, Debug)]
pub struct Report {
    lines: Vec<Line>,
}

impl Report {
    /// Queries that failed, or whose answer was not the other server's.
    pub fn wrong(&self) -> usize {
        let wrong = |line: &&Line| {
            line.rows.is_err() || matches!(line.other, Some((_, Ok(false) | Err(_))))
        };
        self.lines.iter().filter(wrong).count()
    }

    /// How many times faster than the other server, geometric mean over queries that both ended.
    fn mean(&self) -> Option<f64> {
        let ratios: Vec<f64> = self
            .lines
            .iter()
            .filter(|line| line.rows.is_ok())
            .filter_map(|line| match line.other {
                Some((seconds, Ok(_))) => Some((seconds / line.seconds).ln()),
                _ => None,
            })
            .collect();
        (!ratios.is_empty()).then(|| (ratios.iter().sum::<f64>() / ratios.len() as f64).exp())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "query      seconds     rows    other s    ratio  answer")?;
        for line in &self.lines {
            let rows = match &line.rows {
                Ok(rows) => rows.to_string(),
                Err(_) => "-".to_string(),
            };
            write!(f, "Q{:<4} {:>12.4} {rows:>8}", line.number, line.seconds)?;
            match &line.other {
                None => {}
                Some((seconds, same)) => {
                    let answer = match same {
                        Ok(true) => "equal".to_string(),
                        Ok(false) => "DIFFERENT".to_string(),
                        Err(e) => format!("other failed: {e}"),
                    };
                    write!(f, " {seconds:>10.4} {:>8.2}  {answer}", seconds / line.seconds)?;
                }
            }
            match &line.rows {
                Ok(_) => writeln!(f)?,
                Err(e) => writeln!(f, "  {e}")?,
            }
        }
        match self.mean() {
            Some(mean) => write!(f, "geometric mean of the ratios {mean:.2}"),
            None => Ok(()),
        }
    }
}

/// Runs the queries.
pub fn run(settings: &Settings) -> WorkloadResult<Report> {
    let mut client = connect(&settings.url, settings.timeout)?;
    let mut other = match &settings.other {
        Some(url) => Some(connect(url, settings.timeout)?),
        None => None,
    };
    let all: Vec<usize> = (1..=QUERIES).collect();
    let numbers = if settings.only.is_empty() { &all } else { &settings.only };
    let mut lines = Vec::new();
    for number in numbers {
        let text = query(*number, settings.scale);
        lines.push(measure(*number, &text, settings.rounds.max(1), &mut client, other.as_mut()));
    }
    Ok(Report { lines })
}

fn connect(url: &str, timeout: u32) -> WorkloadResult<Client> {
    let mut client = Client::connect(url, NoTls)?;
    client.batch_execute(&format!("SET statement_timeout = '{timeout}s'"))?;
    Ok(client)
}

fn measure(
    number: usize,
    text: &str,
    rounds: usize,
    client: &mut Client,
    mut other: Option<&mut Client>,
) -> Line {
    let (mut times, mut other_times) = (Vec::new(), Vec::new());
    let (mut answer, mut other_answer) = (None, None);
    for _ in 0..rounds {
        let (seconds, ran) = timed(client, text);
        let failed = matches!(ran, Ran::Failed(_));
        times.push(seconds);
        answer = Some(ran);
        if let Some(other) = &mut other {
            let (seconds, ran) = timed(other, text);
            other_times.push(seconds);
            other_answer = Some(ran);
        }
        if failed {
            break;
        }
    }
    let rows = match &answer {
        Some(Ran::Rows(rows)) => Ok(rows.len()),
        Some(Ran::Failed(e)) => Err(e.clone()),
        None => Ok(0),
    };
    let compared = other_answer.map(|theirs| {
        let same = match theirs {
            Ran::Failed(e) => Err(e),
            theirs => Ok(Some(theirs) == answer),
        };
        (median(other_times), same)
    });
    Line { number, seconds: median(times), rows, other: compared }
}

fn timed(client: &mut Client, text: &str) -> (f64, Ran) {
    let clock = WallClock;
    let start = clock.monotonic_nanos();
    let result = client.simple_query(text);
    let seconds = (clock.monotonic_nanos() - start) as f64 / 1e9;
    let ran = match result {
        Ok(messages) => Ran::Rows(messages.iter().filter_map(row).collect()),
        Err(e) => Ran::Failed(e.as_db_error().map_or_else(|| e.to_string(), |e| e.to_string())),
    };
    (seconds, ran)
}

fn row(message: &SimpleQueryMessage) -> Option<Vec<Option<String>>> {
    match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).map(str::to_string)).collect())
        }
        _ => None,
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}
