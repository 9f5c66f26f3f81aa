//! Hierarchies that live: schema changes, writes, transactions with savepoints, reads of now and of
//! the past; the same on interleaved tables, on flat ones, and on PostgreSQL.
//!
//! PostgreSQL has no reads of the past. Its tables are remembered as they are at some moments, and
//! what is read here as of such a moment must be that.

use braid_env::random::Random;
use postgres::{Client, NoTls};

use super::evolution;
use super::queries;
use super::runner::{Answer, Report, Settings, allowed, ask, changes_data, prepare, shorten};
use super::schema::Schema;
use super::writes;
use crate::WorkloadResult;

/// Moments that are remembered at a time.
const MOMENTS: usize = 6;
const TWINS: [&str; 3] = ["nested", "flat", "PostgreSQL"];
/// What a statement is told that this database has not.
const UNSUPPORTED: &str = "0A000";

/// Runs rounds of `settings.round` statements until all were compared, or 20 differences are found.
pub(super) fn run(settings: &Settings) -> WorkloadResult<Report> {
    let mut report = Report::default();
    let mut seed = settings.seed;
    while report.statements < settings.statements && report.differences.len() < 20 {
        let mut round = Round::begin(settings, seed)?;
        let ended = round.run(settings, &mut report)?;
        report.hierarchies += 1;
        if let Some(why) = ended {
            report.cut_short.push(format!("seed {seed}, statement {}: {why}", round.n));
        }
        seed += 1;
    }
    Ok(report)
}

/// All tables at a moment.
struct Moment {
    time: String,
    tables: Vec<(String, Answer)>,
}

/// What a statement says to each, and what it means for the round.
struct Step {
    sql: [String; 3],
    ordered: bool,
    does: Does,
}

enum Does {
    /// Reads or writes rows.
    Rows,
    Change(Schema),
    Begin,
    Commit,
    Rollback,
    Savepoint(String),
    /// Back to the savepoint at this position.
    RollbackTo(usize),
    Release(usize),
}

struct Round {
    seed: u64,
    random: Random,
    clients: [Client; 3],
    schema: Schema,
    /// The tables when the block began.
    before: Option<Schema>,
    savepoints: Vec<(String, Schema)>,
    has_failed: bool,
    moments: Vec<Moment>,
    history: Vec<String>,
    n: u64,
}

impl Round {
    fn begin(settings: &Settings, seed: u64) -> WorkloadResult<Round> {
        let mut random = Random::seeded(seed);
        let schema = Schema::random(&mut random, false);
        let [braid, there] = [&settings.braid_url, &settings.postgres_url];
        let mut clients = [
            Client::connect(braid, NoTls)?,
            Client::connect(braid, NoTls)?,
            Client::connect(there, NoTls)?,
        ];
        for (at, client) in clients.iter_mut().enumerate() {
            prepare(client, if at == 0 { "nested" } else { "flat" }, &schema.ddl(at == 0))?;
        }
        Ok(Round {
            seed,
            random,
            clients,
            schema,
            before: None,
            savepoints: Vec::new(),
            has_failed: false,
            moments: Vec::new(),
            history: Vec::new(),
            n: 0,
        })
    }

    /// Why it ended early, if it did.
    fn run(&mut self, settings: &Settings, report: &mut Report) -> WorkloadResult<Option<String>> {
        let analyzed = self.random.chance(1, 2);
        while self.n < settings.round {
            self.n += 1;
            if analyzed && self.n.is_multiple_of(100) && self.before.is_none() {
                self.clients[0].batch_execute("ANALYZE")?;
            }
            if self.before.is_none() {
                if self.random.chance(1, 25) {
                    self.remember()?;
                }
                if self.random.chance(1, 12) && !self.look_back(report)? {
                    return Ok(Some("a difference".into()));
                }
                if self.n.is_multiple_of(50) && !self.compare_all(report)? {
                    return Ok(Some("a difference".into()));
                }
            }
            let step = self.step(settings);
            if let Some(why) = self.take(step, report)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    fn step(&mut self, settings: &Settings) -> Step {
        if let Some((sql, does)) = self.control() {
            return Step { sql: [sql.clone(), sql.clone(), sql], ordered: false, does };
        }
        let random = &mut self.random;
        // Outside of blocks: one thread drives both twins, and one may hold what the other wants.
        if self.n > 20 && self.before.is_none() && random.chance(1, 6) {
            let change = evolution::random(random, &self.schema, self.n);
            return Step { sql: change.sql, ordered: false, does: Does::Change(change.after) };
        }
        let (sql, ordered) = if self.n < settings.round / 10 || random.chance(1, 2) {
            (writes::of_living(random, &self.schema), false)
        } else {
            let query = queries::random(random, &self.schema, false);
            (query.sql, query.ordered)
        };
        Step { sql: [sql.clone(), sql.clone(), sql], ordered, does: Does::Rows }
    }

    /// What begins and ends blocks and their parts, now and then.
    fn control(&mut self) -> Option<(String, Does)> {
        let random = &mut self.random;
        if self.before.is_none() {
            let level = random.pick(&[
                "",
                " ISOLATION LEVEL REPEATABLE READ",
                " ISOLATION LEVEL READ COMMITTED",
            ]);
            return random.chance(1, 10).then(|| (format!("BEGIN{level}"), Does::Begin));
        }
        let back = |random: &mut Random, savepoints: &[(String, Schema)]| {
            let at = random.below(savepoints.len() as u64) as usize;
            (format!("ROLLBACK TO {}", savepoints[at].0), Does::RollbackTo(at))
        };
        let has_savepoints = !self.savepoints.is_empty();
        if self.has_failed {
            return match random.below(5) {
                0 => None,
                1..=3 if has_savepoints => Some(back(random, &self.savepoints)),
                4 => Some(("COMMIT".into(), Does::Rollback)),
                _ => Some(("ROLLBACK".into(), Does::Rollback)),
            };
        }
        match random.below(30) {
            0..=2 => Some(("COMMIT".into(), Does::Commit)),
            3 | 4 => Some(("ROLLBACK".into(), Does::Rollback)),
            5..=7 => {
                let name = format!("s{}", self.n);
                Some((format!("SAVEPOINT {name}"), Does::Savepoint(name)))
            }
            8 | 9 if has_savepoints => Some(back(random, &self.savepoints)),
            10 if has_savepoints => {
                let at = random.below(self.savepoints.len() as u64) as usize;
                Some((format!("RELEASE {}", self.savepoints[at].0), Does::Release(at)))
            }
            _ => None,
        }
    }

    /// Why the round cannot go on, if so.
    fn take(&mut self, step: Step, report: &mut Report) -> WorkloadResult<Option<String>> {
        let mut answers = Vec::with_capacity(3);
        for (client, sql) in self.clients.iter_mut().zip(&step.sql) {
            answers.push(ask(client, sql, step.ordered)?);
        }
        let theirs = answers.pop().unwrap_or(Answer::Count(0));
        let is_control = !matches!(step.does, Does::Rows);
        // Tags of what is no row do not count rows.
        let same = |ours: &Answer| match (ours, &theirs) {
            (Answer::Count(_), Answer::Count(_)) if is_control => true,
            (ours, theirs) => ours == theirs,
        };
        let refused = |ours: &Answer| matches!(ours, Answer::Error(state) if state == UNSUPPORTED);
        if answers.iter().any(refused) && !refused(&theirs) {
            report.refused.push(step.sql[0].clone());
            return self.back_out();
        }
        for (ours, twin) in answers.iter().zip(TWINS) {
            let sql = &step.sql[usize::from(twin == "flat")];
            if same(ours) {
                continue;
            }
            if !allowed(sql, ours, &theirs, report) {
                let story = self.story(twin, sql, ours, &theirs);
                report.differences.push(story);
                return Ok(Some("a difference".into()));
            }
            if changes_data(sql)
                && matches!(ours, Answer::Error(_)) != matches!(theirs, Answer::Error(_))
            {
                return Ok(Some("an allowed difference of a write".into()));
            }
        }
        report.statements += 1;
        report.errors_alike += u64::from(matches!(theirs, Answer::Error(_)));
        self.happened(step, &theirs);
        Ok(None)
    }

    fn happened(&mut self, step: Step, theirs: &Answer) {
        if matches!(theirs, Answer::Error(_)) {
            self.has_failed = self.before.is_some();
            return;
        }
        if changes_data(&step.sql[0]) {
            self.history.push(step.sql[0].clone());
        }
        match step.does {
            Does::Rows => {}
            Does::Change(after) => self.schema = after,
            Does::Begin => self.before = Some(self.schema.clone()),
            Does::Commit => self.end_block(),
            Does::Rollback => {
                self.schema = self.before.take().unwrap_or_else(|| self.schema.clone());
                self.end_block();
            }
            Does::Savepoint(name) => self.savepoints.push((name, self.schema.clone())),
            Does::RollbackTo(at) => {
                self.savepoints.truncate(at + 1);
                self.schema = self.savepoints[at].1.clone();
                self.has_failed = false;
            }
            Does::Release(at) => self.savepoints.truncate(at),
        }
    }

    fn end_block(&mut self) {
        self.before = None;
        self.savepoints.clear();
        self.has_failed = false;
    }

    /// After something that this database has not: the block is rolled back, or the round is over.
    fn back_out(&mut self) -> WorkloadResult<Option<String>> {
        let Some(before) = self.before.take() else {
            return Ok(Some("refused here".into()));
        };
        for client in &mut self.clients {
            client.batch_execute("ROLLBACK")?;
        }
        self.history.push("ROLLBACK".into());
        self.schema = before;
        self.end_block();
        Ok(None)
    }

    fn remember(&mut self) -> WorkloadResult<()> {
        let now = "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', \
                   'YYYY-MM-DD HH24:MI:SS.US') || '+00'";
        let time: String = self.clients[0].query_one(now, &[])?.get(0);
        let mut tables = Vec::new();
        for table in &self.schema.tables {
            let sql = format!("SELECT * FROM {}", table.name);
            tables.push((table.name.clone(), ask(&mut self.clients[2], &sql, false)?));
        }
        if self.moments.len() == MOMENTS {
            let at = self.random.below(MOMENTS as u64) as usize;
            self.moments.swap_remove(at);
        }
        self.moments.push(Moment { time, tables });
        Ok(())
    }

    /// Reads tables as they were; `false`: they were not so.
    fn look_back(&mut self, report: &mut Report) -> WorkloadResult<bool> {
        if self.moments.is_empty() {
            return Ok(true);
        }
        let at = self.random.below(self.moments.len() as u64) as usize;
        for n in 0..self.moments[at].tables.len() {
            for (client, twin) in self.clients.iter_mut().zip(TWINS).take(2) {
                let Moment { time, tables } = &self.moments[at];
                let sql = format!("SELECT * FROM {} AS OF SYSTEM TIME '{time}'", tables[n].0);
                let ours = ask(client, &sql, false)?;
                if ours != tables[n].1 {
                    let story = self.story(twin, &sql, &ours, &self.moments[at].tables[n].1);
                    report.differences.push(story);
                    return Ok(false);
                }
                report.past += 1;
            }
        }
        Ok(true)
    }

    /// Reads all tables; `false`: they are not the same.
    fn compare_all(&mut self, report: &mut Report) -> WorkloadResult<bool> {
        for table in self.schema.tables.clone() {
            let sql = format!("SELECT * FROM {}", table.name);
            let theirs = ask(&mut self.clients[2], &sql, false)?;
            for (at, twin) in TWINS.iter().enumerate().take(2) {
                let ours = ask(&mut self.clients[at], &sql, false)?;
                if ours != theirs {
                    let story = self.story(twin, &sql, &ours, &theirs);
                    report.differences.push(story);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn story(&self, twin: &str, sql: &str, ours: &Answer, theirs: &Answer) -> String {
        let first = Schema::random(&mut Random::seeded(self.seed), false);
        format!(
            "seed {}, statement {}, {twin}: {sql}\n  here:       {}\n  PostgreSQL: {}\n  schema at \
             first:\n    {}\n  writes before:\n    {}",
            self.seed,
            self.n,
            shorten(ours),
            shorten(theirs),
            first.ddl(twin == "nested").join(";\n    "),
            self.history.join(";\n    ")
        )
    }
}
