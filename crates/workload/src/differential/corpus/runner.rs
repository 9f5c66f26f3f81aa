//! Runs the corpus on both servers, compares, shrinks and counts.

use std::collections::BTreeMap;
use std::fmt;

use super::CorpusResult;
use super::catalog::claims;
use super::coverage::uncovered;
use super::generate::{Expr, Generator, column_suffix};
use super::known::{self, Found};
use super::servers::{Answer, Server, Servers};
use super::values::{TYPES, quoted, type_sql};
use braid_env::random::Random;

/// What to run against whom.
#[derive(Clone, Debug)]
pub struct CorpusSettings {
    /// BraidDB.
    pub braid_url: String,
    /// PostgreSQL 15, with a database in the C collation.
    pub postgres_url: String,
    /// Seed of the expressions.
    pub seed: u64,
    /// How many.
    pub expressions: u64,
    /// Only calls whose signature holds this text.
    pub only: Option<String>,
}

/// One kind of difference: the smallest part that differs and how.
#[derive(Clone, Debug, Default)]
pub struct KindOfDifference {
    /// How often.
    pub count: u64,
    /// The first ones found.
    pub examples: Vec<String>,
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct CorpusReport {
    /// Signatures covered.
    pub signatures: usize,
    /// Expressions compared.
    pub expressions: u64,
    /// Of these, refused alike.
    pub errors_alike: u64,
    /// Allowed differences by reason.
    pub known: BTreeMap<&'static str, u64>,
    /// Refused here, by message.
    pub refused: BTreeMap<String, u64>,
    /// Differences that nothing allows, by kind.
    pub differences: BTreeMap<String, KindOfDifference>,
}

impl CorpusReport {
    /// Number of differences.
    pub fn total(&self) -> u64 {
        self.differences.values().map(|d| d.count).sum()
    }
}

impl fmt::Display for CorpusReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: Vec<_> = self.differences.iter().collect();
        kinds.sort_by_key(|(_, d)| std::cmp::Reverse(d.count));
        for (kind, found) in kinds {
            writeln!(f, "{:6} {kind}", found.count)?;
            for example in &found.examples {
                writeln!(f, "       {example}")?;
            }
        }
        let mut refused: Vec<_> = self.refused.iter().collect();
        refused.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        for (message, count) in refused.into_iter().take(40) {
            writeln!(f, "{count:6} refused here: {message}")?;
        }
        for (reason, count) in &self.known {
            writeln!(f, "{count:6} allowed: {reason}")?;
        }
        write!(
            f,
            "{} expressions over {} signatures, {} refused alike, {} differences of {} kinds",
            self.expressions,
            self.signatures,
            self.errors_alike,
            self.total(),
            self.differences.len()
        )
    }
}

/// Rows of the corpus table.
pub(super) const ROWS: u64 = 9;

fn table(random: &mut Random) -> Vec<String> {
    let columns: Vec<String> =
        TYPES.iter().map(|v| format!("c{} {}", column_suffix(v.name), type_sql(v.name))).collect();
    let mut out = vec![
        "DROP TABLE IF EXISTS corpus".to_string(),
        format!("CREATE TABLE corpus (id int PRIMARY KEY, {})", columns.join(", ")),
    ];
    for id in 0..ROWS {
        let values: Vec<String> = TYPES
            .iter()
            .map(|v| match id {
                0 => "NULL".to_string(),
                _ => {
                    let literal = *random.pick(v.literals);
                    quoted(literal, v.name)
                }
            })
            .collect();
        out.push(format!("INSERT INTO corpus VALUES ({id}, {})", values.join(", ")));
    }
    out
}

/// A run under way.
pub(super) struct Run<'a> {
    pub(super) servers: Servers,
    pub(super) report: CorpusReport,
    pub(super) generator: Generator<'a>,
}

/// Where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    Own,
    General,
    Where,
    Group,
    Order,
}

/// Where whole tables are needed, one expression at a time.
const WHOLE: [Position; 3] = [Position::Where, Position::Group, Position::Order];

/// Expressions that are worked on together.
const ROUND: usize = 64;

/// A query over one row that is planned by the general planner.
fn general(list: &str, row: u64) -> String {
    format!(
        "SELECT {list} FROM (SELECT DISTINCT id AS one FROM corpus) d JOIN corpus ON one = id \
         WHERE id = {row}"
    )
}

fn statement(expr: &str, position: Position, row: u64) -> String {
    match position {
        Position::Own => {
            format!("SELECT {expr}, pg_typeof({expr})::text FROM corpus WHERE id = {row}")
        }
        Position::General => general(&format!("{expr}, pg_typeof({expr})::text"), row),
        Position::Where => format!("SELECT id FROM corpus WHERE {expr} ORDER BY id"),
        Position::Group => {
            format!("SELECT count(*) FROM corpus GROUP BY {expr} ORDER BY min(id)")
        }
        Position::Order => format!("SELECT id FROM corpus ORDER BY {expr}, id"),
    }
}

/// Runs the corpus.
///
/// # Errors
/// When a connection breaks, or calls of something that is claimed are not made.
pub fn run_corpus(settings: &CorpusSettings) -> CorpusResult<CorpusReport> {
    let mut braid = Server::connect(&settings.braid_url)?;
    let mut postgres = Server::connect(&settings.postgres_url)?;
    // What is built in here.
    for extension in ["pgcrypto", "\"uuid-ossp\""] {
        let sql = format!("CREATE EXTENSION IF NOT EXISTS {extension}");
        postgres.client.batch_execute(&sql).map_err(|e| format!("{sql}: {e}"))?;
    }
    let mut random = Random::seeded(settings.seed);
    for sql in table(&mut random) {
        for server in [&mut braid, &mut postgres] {
            server.client.batch_execute(&sql).map_err(|e| format!("{sql}: {e}"))?;
        }
    }
    let mut found = claims(&mut braid.client)?;
    let without = uncovered(&found);
    if !without.is_empty() {
        return Err(format!("the corpus makes no calls of {}", without.join(", ")).into());
    }
    if let Some(only) = &settings.only {
        found.signatures.retain(|s| s.label().contains(only.as_str()));
    }
    let generator = Generator::new(&found);
    if generator.len() == 0 {
        return Err("the server claims no function".into());
    }
    let report = CorpusReport { signatures: generator.len(), ..CorpusReport::default() };
    let servers = Servers { braid, postgres };
    let mut run = Run { servers, report, generator };
    let mut n = 0;
    while run.report.expressions < settings.expressions {
        run.round(&mut random, n)?;
        n += ROUND;
        if settings.only.is_none() {
            for _ in 0..ROUND / 16 {
                run.call_in_rows(&mut random)?;
            }
        }
    }
    Ok(run.report)
}

impl Run<'_> {
    /// Compares a round of expressions: each alone as a point read, those that have a value
    /// together in one general query, some over the whole table.
    fn round(&mut self, random: &mut Random, n: usize) -> CorpusResult<()> {
        let row = random.below(ROWS);
        let exprs: Vec<Expr> = (n..n + ROUND)
            .map(|at| {
                let depth = 1 + random.below(3) as u32;
                self.generator.nth(random, at, depth)
            })
            .collect();
        let own: Vec<String> =
            exprs.iter().map(|e| statement(&e.sql, Position::Own, row)).collect();
        let answers = self.servers.answers(&own)?;
        let mut values = Vec::new();
        for (expr, (ours, theirs)) in exprs.iter().zip(&answers) {
            self.report.expressions += 1;
            if !ours.same(theirs) {
                self.reduce(expr, Position::Own, row, ours, theirs)?;
            } else if matches!(theirs, Answer::Error(..)) {
                self.report.errors_alike += 1;
            } else {
                values.push(expr);
            }
        }
        self.together(&values, row)?;
        for at in (0..ROUND).step_by(16) {
            self.over_table(random, &exprs[at], WHOLE[(n / ROUND + at) % WHOLE.len()])?;
        }
        Ok(())
    }

    /// Many expressions in one general query, in halves when it fails or differs.
    fn together(&mut self, exprs: &[&Expr], row: u64) -> CorpusResult<()> {
        if exprs.is_empty() {
            return Ok(());
        }
        let list: Vec<String> =
            exprs.iter().map(|e| format!("{0}, pg_typeof({0})::text", e.sql)).collect();
        let (ours, theirs) = self.servers.answer(&general(&list.join(", "), row))?;
        if matches!(theirs, Answer::Rows(_)) && ours.same(&theirs) {
            return Ok(());
        }
        if let [expr] = exprs {
            return match ours.same(&theirs) {
                true => Ok(()),
                false => self.reduce(expr, Position::General, row, &ours, &theirs),
            };
        }
        let (left, right) = exprs.split_at(exprs.len() / 2);
        self.together(left, row)?;
        self.together(right, row)
    }

    /// An expression as condition, group or sort key of all rows.
    fn over_table(&mut self, random: &mut Random, expr: &Expr, at: Position) -> CorpusResult<()> {
        let expr = match at {
            Position::Where => self.generator.condition(random, expr),
            _ => expr.clone(),
        };
        let (ours, theirs) = self.servers.answer(&statement(&expr.sql, at, 0))?;
        if ours.same(&theirs) {
            return Ok(());
        }
        self.reduce(&expr, at, 0, &ours, &theirs)
    }

    /// Notes a difference under the smallest part of the expression that has it.
    fn reduce(
        &mut self,
        expr: &Expr,
        at: Position,
        row: u64,
        ours: &Answer,
        theirs: &Answer,
    ) -> CorpusResult<()> {
        // Smaller and simpler first: as a value of one row, for each row.
        let plain = if at == Position::Own { Position::Own } else { Position::General };
        let rows = if at == plain { row..row + 1 } else { 0..ROWS };
        for row in rows {
            if let Some((small, at, ours, theirs)) = self.shrink(expr, plain, row)? {
                return self.note(&small, at, row, &ours, &theirs);
            }
        }
        self.note(expr, at, row, ours, theirs)
    }

    /// The smallest part of an expression that differs.
    pub(super) fn shrink(
        &mut self,
        expr: &Expr,
        at: Position,
        row: u64,
    ) -> CorpusResult<Option<(Expr, Position, Answer, Answer)>> {
        for part in &expr.parts {
            if let Some(found) = self.shrink(part, at, row)? {
                return Ok(Some(found));
            }
        }
        let (ours, theirs) = self.servers.answer(&statement(&expr.sql, at, row))?;
        Ok((!ours.same(&theirs)).then(|| (expr.clone(), at, ours, theirs)))
    }

    /// Counts a difference, as allowed or under its kind.
    pub(super) fn note(
        &mut self,
        expr: &Expr,
        at: Position,
        row: u64,
        ours: &Answer,
        theirs: &Answer,
    ) -> CorpusResult<()> {
        if let Answer::Error(state, message) = ours
            && state == "0A000"
        {
            *self.report.refused.entry(message.clone()).or_default() += 1;
        }
        // What stands over many rows may have failed at any of them.
        let one =
            at == Position::Own || (at == Position::General && !expr.sql.starts_with("SELECT "));
        let rows = if one { row..row + 1 } else { 0..ROWS };
        let (parts, constant): (Vec<String>, Vec<bool>) = expr
            .parts
            .iter()
            .flat_map(Expr::all)
            .flat_map(|part| rows.clone().map(move |row| (part, row)))
            .map(|(part, row)| (statement(&part.sql, Position::Own, row), part.is_constant()))
            .unzip();
        let parts = self.servers.answers(&parts)?;
        let found = Found {
            label: &expr.label,
            many_rows: !one,
            parts: &parts,
            constant: &constant,
            ours,
            theirs,
        };
        if let Some(reason) = known::reason(&found) {
            *self.report.known.entry(reason).or_default() += 1;
            return Ok(());
        }
        let position = match at {
            Position::Own => "",
            Position::General => " in a general plan",
            Position::Where => " in WHERE",
            Position::Group => " in GROUP BY",
            Position::Order => " in ORDER BY",
        };
        let label = if expr.label.is_empty() { "literal" } else { &expr.label };
        let kind = format!("{label}{position}: {} / {}", ours.kind(), theirs.kind());
        let entry = self.report.differences.entry(kind).or_default();
        entry.count += 1;
        if entry.examples.len() < 3 {
            let sql: String = expr.sql.chars().take(500).collect();
            entry.examples.push(format!(
                "{sql} [row {row}]\n            here {}\n            there {}",
                ours.short(),
                theirs.short()
            ));
        }
        Ok(())
    }
}
