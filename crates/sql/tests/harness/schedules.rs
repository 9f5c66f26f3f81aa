//! Every interleaving of a few short transactions: which statement comes next is a choice, and all
//! sequences of choices are tried one after the other, or a seeded sample of them.
//!
//! A transaction that waits for a lock cannot be chosen, one that failed is rolled back at once:
//! what is enumerated are the interleavings that can happen, each once. A run remembers what every
//! statement answered, and all tables after each commit.

use std::sync::Arc;

use braid_env::random::Random;
use braid_sql::{Database, Session};

use super::actors::Stage;
use super::{database, run, session, try_run};

/// What a transaction was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    Serializable,
    RepeatableRead,
    ReadCommitted,
}

pub const LEVELS: [Level; 3] = [Level::Serializable, Level::RepeatableRead, Level::ReadCommitted];

impl Level {
    pub fn sql(self) -> &'static str {
        match self {
            Level::Serializable => "serializable",
            Level::RepeatableRead => "repeatable read",
            Level::ReadCommitted => "read committed",
        }
    }
}

/// Something that must hold in every committed state.
#[derive(Clone, Copy, Debug)]
pub enum Invariant {
    /// Two queries have the same rows: a table and its index.
    Same(&'static str, &'static str),
    /// Every row of the first query is one of the second: references and keys.
    Within(&'static str, &'static str),
    /// No row of the query comes twice.
    Unique(&'static str),
    /// When the statement fails with that SQLSTATE (a constraint is there), the query has no rows.
    Once(&'static str, &'static str, &'static str),
}

/// Transactions that run beside each other.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub schema: &'static str,
    /// Rows at the start.
    pub fill: &'static str,
    /// Tables whose rows are the state, parents before children.
    pub tables: &'static [&'static str],
    pub transactions: Vec<&'static [&'static str]>,
    pub invariants: Vec<Invariant>,
    /// SQLSTATEs that are an answer, besides serialization failures and deadlocks.
    pub errors: &'static [&'static str],
    /// Changes the schema: every run gets a database of its own.
    pub changes_schema: bool,
    /// Deletes what its view may not show (children that came later).
    pub cascades: bool,
}

/// Rows of every table, as text, sorted.
pub type State = Vec<Vec<Vec<String>>>;

/// What a statement answered: rows and tag, or SQLSTATE.
pub type Reply = Result<(Vec<Vec<String>>, String), String>;

/// How one transaction went.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    pub replies: Vec<Reply>,
    /// How many commits had happened when a statement was sent, and when it answered.
    pub times: Vec<(usize, usize)>,
    /// Its place in the order of commits, from 1.
    pub committed: Option<usize>,
}

/// One interleaving.
#[derive(Debug)]
pub struct Run {
    pub trials: Vec<Trial>,
    /// After 0, 1, 2... commits.
    pub states: Vec<State>,
    /// Who was chosen, and who could have been.
    choices: Vec<(usize, Vec<usize>)>,
}

impl Run {
    pub fn order(&self) -> String {
        self.choices.iter().map(|(who, _)| char::from(b'A' + *who as u8)).collect()
    }
}

/// A database that runs one scenario again and again.
pub struct Theatre<'a> {
    scenario: &'a Scenario,
    db: Arc<Database>,
    stage: Stage,
    observer: Session,
    runs: usize,
}

/// Runs after which a database is replaced, so that it stays small.
const RUNS_OF_A_DATABASE: usize = 400;

impl<'a> Theatre<'a> {
    pub fn new(scenario: &'a Scenario) -> Theatre<'a> {
        let db = database();
        let mut observer = session(&db);
        run(&mut observer, scenario.schema);
        let stage = Stage::new(&db, scenario.transactions.len(), "");
        Theatre { scenario, db, stage, observer, runs: 0 }
    }

    fn reset(&mut self) {
        let used_up = self.scenario.changes_schema || self.runs.is_multiple_of(RUNS_OF_A_DATABASE);
        if self.runs > 0 && used_up {
            *self = Theatre { runs: self.runs, ..Theatre::new(self.scenario) };
        }
        self.runs += 1;
        clear(&mut self.observer, self.scenario);
        run(&mut self.observer, self.scenario.fill);
    }

    /// One run; `choose` picks among those who can go on.
    fn play(&mut self, levels: &[Level], choose: &mut dyn FnMut(usize, &[usize]) -> usize) -> Run {
        self.reset();
        let count = levels.len();
        let mut run = Run {
            trials: vec![Trial::default(); count],
            states: vec![dump(&mut self.observer, self.scenario)],
            choices: Vec::new(),
        };
        let mut over = vec![false; count];
        loop {
            let enabled: Vec<usize> =
                (0..count).filter(|&who| !over[who] && !self.stage.waits(who)).collect();
            if enabled.is_empty() {
                if self.is_freed(&over) {
                    self.collect(&mut run, &mut over);
                    continue;
                }
                break;
            }
            let who = choose(run.choices.len(), &enabled);
            let step = run.trials[who].times.len();
            run.choices.push((who, enabled));
            run.trials[who].times.push((run.states.len() - 1, usize::MAX));
            self.stage.send(who, &self.text(who, step, levels[who]));
            self.collect(&mut run, &mut over);
        }
        let locks = self.db.coordinator().describe_locks().lines;
        assert!(over.iter().all(|&o| o), "{}: all wait: {run:?}\n{locks}", self.scenario.name);
        assert_eq!(self.db.coordinator().describe_locks().lines, "", "{}", self.scenario.name);
        run
    }

    /// Whether somebody goes on though all wait: circles of waiting that lead over several ranges
    /// are found after some time.
    fn is_freed(&mut self, over: &[bool]) -> bool {
        let waits = |&who: &usize| !over[who];
        (0..over.len()).any(|who| waits(&who))
            && (0..500).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                self.stage.settle();
                (0..over.len()).filter(waits).any(|who| self.stage.answered(who))
            })
    }

    fn text(&self, who: usize, step: usize, level: Level) -> String {
        let statements = self.scenario.transactions[who];
        match statements.get(step) {
            None => "commit".into(),
            Some(first) if step == 0 => {
                format!("begin isolation level {}; {first}", level.sql())
            }
            Some(next) => (*next).into(),
        }
    }

    /// Takes what was answered; who failed is rolled back, which may let others answer.
    fn collect(&mut self, run: &mut Run, over: &mut [bool]) {
        let steps = |who: usize| self.scenario.transactions[who].len();
        let ending = |run: &Run, who: usize| run.trials[who].times.len() > steps(who);
        loop {
            let answered = (0..over.len()).filter(|&who| self.stage.answered(who));
            // Who commits first: others answer because of it.
            let Some(who) = answered.max_by_key(|&who| ending(run, who)) else { return };
            let reply = self.stage.take(who);
            let ends = ending(run, who);
            let committed = ends && reply.as_ref().is_ok_and(|a| a.tag == "COMMIT");
            let failed = reply.is_err();
            let reply = reply.map(|a| (a.rows, a.tag)).map_err(|e| e.state().0.to_string());
            if committed {
                run.states.push(dump(&mut self.observer, self.scenario));
                run.trials[who].committed = Some(run.states.len() - 1);
            }
            let trial = &mut run.trials[who];
            trial.replies.push(reply);
            if let Some(time) = trial.times.last_mut() {
                time.1 = run.states.len() - 1;
            }
            if failed {
                self.stage.send(who, "rollback");
                let _warns_if_nothing_is_open = self.stage.take(who);
            }
            over[who] |= ends || failed;
        }
    }

    /// The SQLSTATE of a statement that is taken back.
    pub fn probe(&mut self, sql: &str) -> Option<String> {
        let reply = ask(&mut self.observer, &format!("begin; {sql}"));
        if reply.is_err() {
            self.observer.fail();
        }
        run(&mut self.observer, "rollback");
        reply.err()
    }

    /// The rows of a query on the state that the last run left, or its SQLSTATE.
    pub fn ask(&mut self, sql: &str) -> Reply {
        ask(&mut self.observer, sql)
    }

    /// Every interleaving.
    pub fn every(&mut self, levels: &[Level], judge: &mut dyn FnMut(&mut Self, &Run)) -> usize {
        let mut path: Vec<usize> = Vec::new();
        let mut count = 0;
        loop {
            let run = self.play(levels, &mut |depth, enabled| match path.get(depth) {
                Some(who) if enabled.contains(who) => *who,
                Some(who) => panic!("{who} can no longer be chosen after {path:?}: {enabled:?}"),
                None => enabled[0],
            });
            count += 1;
            judge(self, &run);
            let Some(depth) = run.choices.iter().rposition(|(who, of)| of.last() != Some(who))
            else {
                return count;
            };
            path = run.choices[..depth].iter().map(|(who, _)| *who).collect();
            let (who, of) = &run.choices[depth];
            path.push(of[of.iter().position(|o| o == who).unwrap() + 1]);
        }
    }

    /// Random interleavings.
    pub fn sample(
        &mut self,
        levels: &[Level],
        random: &mut Random,
        count: usize,
        judge: &mut dyn FnMut(&mut Self, &Run),
    ) {
        for _ in 0..count {
            let run = self.play(levels, &mut |_, enabled| {
                enabled[random.below(enabled.len() as u64) as usize]
            });
            judge(self, &run);
        }
    }
}

fn ask(s: &mut Session, sql: &str) -> Reply {
    match try_run(s, sql, &[]) {
        Ok(a) => Ok((a.rows, a.tag)),
        Err(e) => Err(e.state().0.to_string()),
    }
}

/// Deletes all rows, children first.
pub fn clear(s: &mut Session, scenario: &Scenario) {
    for table in scenario.tables.iter().rev() {
        run(s, &format!("delete from {table}"));
    }
}

/// All rows of all tables; a table that is gone shows why.
pub fn dump(s: &mut Session, scenario: &Scenario) -> State {
    let mut state = State::new();
    for table in scenario.tables {
        let mut rows = match ask(s, &format!("select * from {table}")) {
            Ok((rows, _)) => rows,
            Err(code) => vec![vec![code]],
        };
        rows.sort();
        state.push(rows);
    }
    state
}
