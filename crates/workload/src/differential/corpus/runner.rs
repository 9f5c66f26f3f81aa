//! Runs the corpus on both servers, compares, shrinks and counts.

use std::collections::BTreeMap;
use std::fmt;

use braid_env::random::Random;
use postgres::{Client, NoTls, SimpleQueryMessage};

use super::CorpusResult;
use super::catalog::{Claims, claims};
use super::generate::{Expr, Generator, column_suffix};
use super::known::{self, Found};
use super::recipes::{AGGREGATES, Recipe, SETS, missing};
use super::values::{TYPES, quoted, type_sql};

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

/// What a server said: rows as text, or SQLSTATE and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Rows(Vec<Vec<Option<String>>>),
    Error(String, String),
}

impl Answer {
    fn same(&self, other: &Answer) -> bool {
        match (self, other) {
            (Answer::Rows(a), Answer::Rows(b)) => a == b,
            (Answer::Error(a, _), Answer::Error(b, _)) => {
                a.get(..2) == b.get(..2) && !a.starts_with("XX")
            }
            _ => false,
        }
    }

    fn short(&self) -> String {
        match self {
            Answer::Rows(rows) => {
                let rows: Vec<String> = rows
                    .iter()
                    .take(12)
                    .map(|r| {
                        let cells: Vec<&str> =
                            r.iter().map(|c| c.as_deref().unwrap_or("NULL")).collect();
                        cells.join(" | ")
                    })
                    .collect();
                rows.join("; ").chars().take(300).collect()
            }
            Answer::Error(state, message) => format!("{state} {message}"),
        }
    }

    fn kind(&self) -> String {
        match self {
            Answer::Rows(_) => "value".to_string(),
            Answer::Error(state, _) => state.get(..2).unwrap_or("??").to_string(),
        }
    }
}

/// Rows of the corpus table.
const ROWS: u64 = 9;

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
                _ => quoted(*random.pick(v.literals), v.name),
            })
            .collect();
        out.push(format!("INSERT INTO corpus VALUES ({id}, {})", values.join(", ")));
    }
    out
}

/// A server that is connected to again when a statement broke the connection.
struct Server {
    url: String,
    client: Client,
}

impl Server {
    fn connect(url: &str) -> CorpusResult<Server> {
        let mut client = Client::connect(url, NoTls)?;
        client.batch_execute("SET timezone = 'UTC'")?;
        Ok(Server { url: url.to_string(), client })
    }

    fn answer(&mut self, sql: &str) -> CorpusResult<Answer> {
        match answer(&mut self.client, sql) {
            Ok(found) => Ok(found),
            Err(e) => {
                *self = Server::connect(&self.url).map_err(|_| e.to_string())?;
                Ok(Answer::Error("XX000".to_string(), e.to_string()))
            }
        }
    }
}

fn answer(client: &mut Client, sql: &str) -> CorpusResult<Answer> {
    match client.simple_query(sql) {
        Ok(messages) => Ok(Answer::Rows(
            messages
                .iter()
                .filter_map(|m| match m {
                    SimpleQueryMessage::Row(row) => {
                        Some((0..row.len()).map(|i| row.get(i).map(str::to_string)).collect())
                    }
                    _ => None,
                })
                .collect(),
        )),
        Err(e) => match e.as_db_error() {
            Some(db) => Ok(Answer::Error(db.code().code().to_string(), db.message().to_string())),
            None => Err(format!("the connection broke at: {sql}: {e}").into()),
        },
    }
}

struct Run<'a> {
    braid: Server,
    postgres: Server,
    report: CorpusReport,
    generator: Generator<'a>,
}

/// Where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Own,
    General,
    Where,
    Group,
    Order,
}

const POSITIONS: [Position; 6] = [
    Position::Own,
    Position::General,
    Position::Where,
    Position::Own,
    Position::Group,
    Position::Order,
];

fn statement(expr: &str, position: Position, row: u64) -> String {
    match position {
        Position::Own => {
            format!("SELECT {expr}, pg_typeof({expr})::text FROM corpus WHERE id = {row}")
        }
        Position::General => format!(
            "SELECT {expr}, pg_typeof({expr})::text FROM (SELECT DISTINCT id AS one FROM corpus) d \
             JOIN corpus ON one = id WHERE id = {row}"
        ),
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
/// When a connection breaks, or a claimed aggregate or set-returning function has no recipe.
pub fn run_corpus(settings: &CorpusSettings) -> CorpusResult<CorpusReport> {
    let mut braid = Server::connect(&settings.braid_url)?;
    let mut postgres = Server::connect(&settings.postgres_url)?;
    let mut random = Random::seeded(settings.seed);
    for sql in table(&mut random) {
        for server in [&mut braid, &mut postgres] {
            server.client.batch_execute(&sql).map_err(|e| format!("{sql}: {e}"))?;
        }
    }
    let mut found = claims(&mut braid.client)?;
    if let Some(only) = &settings.only {
        found.signatures.retain(|s| s.label().contains(only.as_str()));
    }
    check_recipes(&found)?;
    let generator = Generator::new(&found);
    if generator.len() == 0 {
        return Err("the server claims no function".into());
    }
    let report = CorpusReport { signatures: generator.len(), ..CorpusReport::default() };
    let mut run = Run { braid, postgres, report, generator };
    let mut n = 0;
    while run.report.expressions < settings.expressions {
        if settings.only.is_none() && random.chance(1, 12) {
            run.set_or_aggregate(&mut random)?;
        } else {
            let depth = 1 + random.below(3) as u32;
            let expr = run.generator.nth(&mut random, n, depth);
            run.compare(&mut random, &expr, POSITIONS[n / run.generator.len() % POSITIONS.len()])?;
            n += 1;
        }
    }
    Ok(run.report)
}

fn check_recipes(claims: &Claims) -> CorpusResult<()> {
    let mut without = missing(&claims.aggregates, AGGREGATES);
    without.extend(missing(&claims.set_returning, SETS));
    match without.as_slice() {
        [] => Ok(()),
        names => Err(format!("no recipe in the corpus for {}", names.join(", ")).into()),
    }
}

impl Run<'_> {
    fn compare(&mut self, random: &mut Random, expr: &Expr, at: Position) -> CorpusResult<()> {
        let row = random.below(ROWS);
        let expr = match at {
            Position::Where => self.generator.condition(random, expr),
            _ => expr.clone(),
        };
        let sql = statement(&expr.sql, at, row);
        let (ours, theirs) = (self.braid.answer(&sql)?, self.postgres.answer(&sql)?);
        self.report.expressions += 1;
        if ours.same(&theirs) {
            self.report.errors_alike += u64::from(matches!(theirs, Answer::Error(..)));
            return Ok(());
        }
        // Smaller and simpler first: as a value of one row, for each row.
        let plain = if at == Position::Own { Position::Own } else { Position::General };
        for row in std::iter::once(row).chain(0..ROWS) {
            if let Some((small, at, ours, theirs)) = self.shrink(&expr, plain, row)? {
                self.note(&small, at, row, &ours, &theirs);
                return Ok(());
            }
        }
        self.note(&expr, at, row, &ours, &theirs);
        Ok(())
    }

    /// The smallest part of an expression that differs.
    fn shrink(
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
        let sql = statement(&expr.sql, at, row);
        let (ours, theirs) = (self.braid.answer(&sql)?, self.postgres.answer(&sql)?);
        Ok((!ours.same(&theirs)).then(|| (expr.clone(), at, ours, theirs)))
    }

    fn note(&mut self, expr: &Expr, at: Position, row: u64, ours: &Answer, theirs: &Answer) {
        if let Answer::Error(state, message) = ours
            && state == "0A000"
        {
            *self.report.refused.entry(message.clone()).or_default() += 1;
        }
        let found =
            Found { sql: &expr.sql, label: &expr.label, parts: expr.parts.len(), ours, theirs };
        if let Some(reason) = known::reason(&found) {
            *self.report.known.entry(reason).or_default() += 1;
            return;
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
    }

    /// One call of an aggregate or a set-returning function.
    fn set_or_aggregate(&mut self, random: &mut Random) -> CorpusResult<()> {
        let aggregate = random.chance(1, 2);
        let recipe: &Recipe = random.pick(if aggregate { AGGREGATES } else { SETS });
        if recipe.form == "NULL" {
            return Ok(());
        }
        let args = random.pick(recipe.args);
        let depth = random.below(2) as u32;
        let parts: Vec<Expr> =
            args.iter().map(|ty| self.generator.typed(random, ty, depth)).collect();
        let mut call = match recipe.form {
            "" => {
                let args: Vec<&str> = parts.iter().map(|p| p.sql.as_str()).collect();
                let distinct =
                    if args.len() == 1 && random.chance(1, 6) { "DISTINCT " } else { "" };
                let order = if distinct.is_empty() { " ORDER BY id" } else { "" };
                format!("{}({distinct}{}{order})", recipe.name, args.join(", "))
            }
            form => parts.iter().fold(form.to_string(), |f, p| f.replacen("{}", &p.sql, 1)),
        };
        if aggregate && random.chance(1, 6) {
            call.push_str(" FILTER (WHERE id > 3)");
        }
        let sql = if aggregate {
            format!("SELECT {call}, pg_typeof({call})::text FROM corpus")
        } else {
            format!("SELECT f.* FROM corpus, {call} f WHERE id = {}", random.below(ROWS))
        };
        let (ours, theirs) = (self.braid.answer(&sql)?, self.postgres.answer(&sql)?);
        self.report.expressions += 1;
        if ours.same(&theirs) {
            self.report.errors_alike += u64::from(matches!(theirs, Answer::Error(..)));
            return Ok(());
        }
        for part in &parts {
            for row in 0..ROWS {
                if let Some((small, at, ours, theirs)) =
                    self.shrink(part, Position::General, row)?
                {
                    self.note(&small, at, row, &ours, &theirs);
                    return Ok(());
                }
            }
        }
        let label = format!("{}({})", recipe.name, args.join(", "));
        let expr = Expr { sql, label, parts: Vec::new() };
        self.note(&expr, Position::General, 0, &ours, &theirs);
        Ok(())
    }
}
