//! Runs rounds of statements on three databases and compares.

use std::collections::BTreeMap;
use std::fmt;

use braid_env::random::Random;
use postgres::{Client, NoTls, SimpleQueryMessage};

use super::known::{self, Answers};
use super::schema::Schema;
use super::{fill, hierarchies, queries, writes};
use crate::WorkloadResult;

/// What to run against whom.
#[derive(Clone, Debug)]
pub struct Settings {
    /// BraidDB.
    pub braid_url: String,
    /// PostgreSQL, with a database in the C collation.
    pub postgres_url: String,
    /// First seed; each round takes the next.
    pub seed: u64,
    /// Stop after so many statements.
    pub statements: u64,
    /// Statements of one schema.
    pub round: u64,
    /// All queries have subqueries.
    pub subqueries: bool,
    /// Most rows of a table before its round begins. A statement that takes longer than
    /// [`PATIENCE`] on one side is left out then: a join of such tables may have no end.
    pub rows: u64,
    /// Hierarchies that live: with schema changes, transactions and reads of the past.
    pub hierarchies: bool,
}

/// Longest time of a statement over tables that were filled.
const PATIENCE: &str = "SET statement_timeout = '2s'";
/// What a statement is told that took longer.
const CANCELED: &str = "57014";

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Statements compared (each on three databases).
    pub statements: u64,
    /// Of these, statements that both sides refused alike.
    pub errors_alike: u64,
    /// Allowed differences by reason.
    pub known: BTreeMap<&'static str, u64>,
    /// Statements that took too long there.
    pub slow_there: u64,
    /// Statements that took too long here only.
    pub slow_here: Vec<String>,
    /// Reads of the past that were compared.
    pub past: u64,
    /// Hierarchies that lived, with schema changes.
    pub hierarchies: u64,
    /// Of these, those that ended before their time, and why.
    pub cut_short: Vec<String>,
    /// Statements that are not supported here.
    pub refused: Vec<String>,
    /// Differences that nothing allows.
    pub differences: Vec<String>,
}

impl Answer {
    fn is_canceled(&self) -> bool {
        matches!(self, Answer::Error(state) if state == CANCELED)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} statements, {} refused alike", self.statements, self.errors_alike)?;
        for (reason, count) in &self.known {
            writeln!(f, "{count} allowed differences: {reason}")?;
        }
        if self.slow_there > 0 {
            writeln!(f, "{} statements took too long there", self.slow_there)?;
        }
        for slow in &self.slow_here {
            writeln!(f, "too long here only: {slow}")?;
        }
        if self.hierarchies > 0 {
            let short = self.cut_short.len();
            writeln!(f, "{} hierarchies, {short} of them cut short", self.hierarchies)?;
            writeln!(f, "{} tables compared with what they were", self.past)?;
        }
        for short in &self.cut_short {
            writeln!(f, "cut short: {short}")?;
        }
        for refused in &self.refused {
            writeln!(f, "not supported here: {refused}")?;
        }
        for difference in &self.differences {
            writeln!(f, "{difference}")?;
        }
        write!(f, "{} differences", self.differences.len())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Rows(Vec<Vec<Option<String>>>),
    Count(u64),
    Error(String),
}

/// Runs until the number of statements is reached, or 20 differences are found.
pub fn run(settings: &Settings) -> WorkloadResult<Report> {
    if settings.hierarchies {
        return hierarchies::run(settings);
    }
    let mut braid = Client::connect(&settings.braid_url, NoTls)?;
    let mut postgres = Client::connect(&settings.postgres_url, NoTls)?;
    let mut report = Report::default();
    let mut seed = settings.seed;
    while report.statements < settings.statements && report.differences.len() < 20 {
        round(&mut braid, &mut postgres, seed, settings, &mut report)?;
        seed += 1;
    }
    Ok(report)
}

/// How long a statement of a round may take: for large tables not as long as it likes.
fn patience(settings: &Settings) -> &'static str {
    if settings.rows > 0 { PATIENCE } else { "RESET statement_timeout" }
}

pub(super) fn prepare(client: &mut Client, schema: &str, ddl: &[String]) -> WorkloadResult<()> {
    client.batch_execute("RESET statement_timeout")?;
    client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE"))?;
    client.batch_execute(&format!("CREATE SCHEMA {schema}"))?;
    client.batch_execute(&format!("SET search_path = {schema}"))?;
    ddl.iter().try_for_each(|statement| client.batch_execute(statement))
}

fn round(
    braid: &mut Client,
    postgres: &mut Client,
    seed: u64,
    settings: &Settings,
    report: &mut Report,
) -> WorkloadResult<()> {
    let mut random = Random::seeded(seed);
    let schema = Schema::random(&mut random, settings.rows > 0);
    let flat = schema.ddl(false);
    prepare(postgres, "flat", &flat)?;
    prepare(braid, "flat", &flat)?;
    prepare(braid, "nested", &schema.ddl(true))?;
    let mut history = Vec::new();
    let analyzed = random.chance(1, 2);
    if settings.rows > 0 {
        history = fill::statements(&mut random, &schema, settings.rows);
        fill_all(braid, postgres, &history, &mut random)?;
    }
    for n in 0..settings.round {
        // Half of the rounds plan their queries with statistics.
        if analyzed && n == settings.round / 4 {
            braid.batch_execute("RESET statement_timeout")?;
            braid.batch_execute("ANALYZE")?;
            braid.batch_execute(patience(settings))?;
        }
        let (sql, ordered) = statement(&mut random, &schema, settings, n);
        let theirs = answer(postgres, "flat", &sql, ordered)?;
        if theirs.is_canceled() {
            report.slow_there += 1;
            continue;
        }
        for twin in ["flat", "nested"] {
            let ours = answer(braid, twin, &sql, ordered)?;
            if ours.is_canceled() {
                report.slow_here.push(format!("seed {seed}, statement {n}, {twin}: {sql}"));
                match changes_data(&sql) {
                    true => return Ok(()),
                    false => continue,
                }
            }
            if ours != theirs && !allowed(&sql, &ours, &theirs, report) {
                let story = format!(
                    "seed {seed}, statement {n}, {twin}: {sql}\n  here:       {}\n  \
                     PostgreSQL: {}\n  schema:\n    {}\n  writes before:\n    {}",
                    shorten(&ours),
                    shorten(&theirs),
                    schema.ddl(twin == "nested").join(";\n    "),
                    history.join(";\n    ")
                );
                report.differences.push(story);
                // The twins may have parted: what follows in this round proves nothing.
                return Ok(());
            }
            if ours != theirs && changes_data(&sql) {
                return Ok(());
            }
        }
        report.statements += 1;
        report.errors_alike += u64::from(matches!(theirs, Answer::Error(_)));
        if changes_data(&sql) && !matches!(theirs, Answer::Error(_)) {
            history.push(sql);
        }
    }
    Ok(())
}

/// The next statement of a round, and whether its rows come in one possible order only. Where no
/// rows were there before, there are more writes, and most of them at first.
fn statement(random: &mut Random, schema: &Schema, settings: &Settings, n: u64) -> (String, bool) {
    let writes = match settings.rows {
        0 => n < settings.round / 4 || random.chance(2, 5),
        _ => random.chance(1, 12),
    };
    if writes {
        return (writes::random(random, schema), false);
    }
    let query = queries::random(random, schema, settings.subqueries);
    (query.sql, query.ordered)
}

/// Fills the tables of all three, and says how their queries are planned.
fn fill_all(
    braid: &mut Client,
    postgres: &mut Client,
    statements: &[String],
    random: &mut Random,
) -> WorkloadResult<()> {
    let threads = random.pick(&["0", "64kB", "8MB"]);
    braid.batch_execute(&format!("SET min_parallel_table_scan_size = '{threads}'"))?;
    let fill_one = |client: &mut Client, schema: &str| -> WorkloadResult<()> {
        client.batch_execute("RESET statement_timeout")?;
        client.batch_execute(&format!("SET search_path = {schema}"))?;
        statements.iter().try_for_each(|statement| client.batch_execute(statement))?;
        client.batch_execute(PATIENCE)
    };
    fill_one(postgres, "flat")?;
    fill_one(braid, "flat")?;
    fill_one(braid, "nested")?;
    postgres.batch_execute("ANALYZE")
}

pub(super) fn changes_data(sql: &str) -> bool {
    !sql.starts_with("SELECT") && !sql.starts_with("WITH")
}

pub(super) fn allowed(sql: &str, ours: &Answer, theirs: &Answer, report: &mut Report) -> bool {
    fn state(answer: &Answer) -> Result<(), &str> {
        match answer {
            Answer::Error(state) => Err(state),
            _ => Ok(()),
        }
    }
    let changed_nothing = matches!(ours, Answer::Count(0));
    let (ours, theirs) = (state(ours), state(theirs));
    let answers = Answers { statement: sql, changed_nothing, ours, theirs };
    match known::find(&answers) {
        Some(known) => {
            *report.known.entry(known.reason).or_default() += 1;
            true
        }
        None => false,
    }
}

fn answer(client: &mut Client, schema: &str, sql: &str, ordered: bool) -> WorkloadResult<Answer> {
    client.batch_execute(&format!("SET search_path = {schema}"))?;
    ask(client, sql, ordered)
}

pub(super) fn ask(client: &mut Client, sql: &str, ordered: bool) -> WorkloadResult<Answer> {
    match client.simple_query(sql) {
        Ok(messages) => Ok(rows(&messages, ordered)),
        Err(e) => match e.code() {
            Some(code) => Ok(Answer::Error(code.code().to_string())),
            None => Err(e),
        },
    }
}

fn rows(messages: &[SimpleQueryMessage], ordered: bool) -> Answer {
    let mut rows = Vec::new();
    let mut is_query = false;
    let mut count = 0;
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(_) => is_query = true,
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|i| row.get(i).map(str::to_string)).collect());
            }
            SimpleQueryMessage::CommandComplete(n) => count = *n,
            _ => {}
        }
    }
    if !is_query {
        return Answer::Count(count);
    }
    if !ordered {
        rows.sort();
    }
    Answer::Rows(rows)
}

pub(super) fn shorten(answer: &Answer) -> String {
    let text = format!("{answer:?}");
    match text.char_indices().nth(1500) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}
