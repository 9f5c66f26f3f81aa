//! What each isolation level promises, checked on one run of [`super::schedules`].
//!
//! - Every level: only failures that are an answer; the invariants (references, unique keys,
//!   indexes agree with tables) hold.
//! - Only SERIALIZABLE: what was committed, answers and final state, is that of some order of the
//!   committed transactions one after the other.
//! - SERIALIZABLE beside others: a writer is as if it ran alone on the state that its commit met, a
//!   reader as if alone on a state between its begin and its commit.
//! - REPEATABLE READ: the answers are those of running alone on the state at the first statement,
//!   and what is written is what was written there: a row that changed since is a lost update.
//! - READ COMMITTED: a query sees one committed state, that at its start; a single statement that
//!   changes rows does to the latest state what it does alone on a state of its time.
//!
//! "Alone" is the database itself with one session, remembered by statements and state.

use std::collections::{BTreeSet, HashMap};

use braid_sql::Session;

use super::schedules::{Invariant, Level, Reply, Run, Scenario, State, Theatre, clear, dump};
use super::{database, run, session, try_run};

/// Answers and the state left behind.
type Effect = (Vec<Reply>, State);

/// Knows what transactions do when nobody is beside them.
pub struct Judge<'a> {
    scenario: &'a Scenario,
    solo: Session,
    alone: HashMap<(Vec<&'static str>, State), Effect>,
    serial: HashMap<Vec<usize>, (Vec<Vec<Reply>>, State)>,
    /// How often each transaction committed.
    pub commits: Vec<usize>,
}

impl<'a> Judge<'a> {
    pub fn new(scenario: &'a Scenario) -> Judge<'a> {
        let mut solo = session(&database());
        run(&mut solo, scenario.schema);
        let commits = vec![0; scenario.transactions.len()];
        Judge { scenario, solo, alone: HashMap::new(), serial: HashMap::new(), commits }
    }

    /// Panics when a promise was broken.
    pub fn check(&mut self, theatre: &mut Theatre<'_>, levels: &[Level], run: &Run) {
        if let Err(broken) = self.verdict(theatre, levels, run) {
            panic!(
                "{}: {broken}\nlevels {levels:?}, order {}\n{:#?}\nstates {:?}",
                self.scenario.name,
                run.order(),
                run.trials,
                run.states
            );
        }
    }

    /// What was broken, if anything.
    pub fn verdict(
        &mut self,
        theatre: &mut Theatre<'_>,
        levels: &[Level],
        run: &Run,
    ) -> Result<(), String> {
        self.failures_are_answers(run)?;
        for invariant in &self.scenario.invariants {
            holds(theatre, invariant, self.scenario.changes_schema)?;
        }
        let committed: Vec<usize> =
            (0..levels.len()).filter(|&t| run.trials[t].committed.is_some()).collect();
        committed.iter().for_each(|&t| self.commits[t] += 1);
        if committed.iter().all(|&t| levels[t] == Level::Serializable) {
            self.some_order(run, &committed)?;
        }
        if !self.scenario.changes_schema {
            for t in committed {
                match levels[t] {
                    Level::Serializable => self.serializable(run, t)?,
                    Level::RepeatableRead => self.repeatable_read(run, t)?,
                    Level::ReadCommitted => self.read_committed(run, t)?,
                }
            }
        }
        Ok(())
    }

    fn failures_are_answers(&self, run: &Run) -> Result<(), String> {
        for (t, trial) in run.trials.iter().enumerate() {
            if let Some(Err(code)) = trial.replies.last() {
                let known = ["40001", "40P01"].contains(&code.as_str())
                    || self.scenario.errors.contains(&code.as_str());
                if !known {
                    return Err(format!("transaction {t} failed with {code}"));
                }
            }
        }
        Ok(())
    }

    fn some_order(&mut self, run: &Run, committed: &[usize]) -> Result<(), String> {
        let mut by_commit = committed.to_vec();
        by_commit.sort_by_key(|&t| run.trials[t].committed);
        for order in orders(&by_commit) {
            let (replies, state) = self.one_after_the_other(&order);
            let same = order.iter().zip(replies).all(|(&t, r)| run.trials[t].replies == *r);
            if same && Some(state) == run.states.last() {
                return Ok(());
            }
        }
        Err("no serial order explains it".into())
    }

    fn one_after_the_other(&mut self, order: &[usize]) -> &(Vec<Vec<Reply>>, State) {
        let scenario = self.scenario;
        self.serial.entry(order.to_vec()).or_insert_with(|| {
            let s = &mut session(&database());
            run(s, scenario.schema);
            run(s, scenario.fill);
            let each = order.iter().map(|&t| perform(s, scenario.transactions[t])).collect();
            (each, dump(s, scenario))
        })
    }

    /// What statements do in one transaction that begins in `state`.
    fn alone(&mut self, statements: &[&'static str], state: &State) -> Effect {
        let key = (statements.to_vec(), state.clone());
        if let Some(known) = self.alone.get(&key) {
            return known.clone();
        }
        load(&mut self.solo, self.scenario, state);
        let replies = perform(&mut self.solo, statements);
        let effect = (replies, dump(&mut self.solo, self.scenario));
        self.alone.insert(key, effect.clone());
        effect
    }

    fn serializable(&mut self, run: &Run, t: usize) -> Result<(), String> {
        let statements = self.scenario.transactions[t];
        let (trial, place) = (&run.trials[t], run.trials[t].committed.unwrap());
        let (before, after) = (&run.states[place - 1], &run.states[place]);
        let (replies, left) = self.alone(statements, before);
        if replies == trial.replies && left == *after {
            return Ok(());
        }
        if before == after {
            for state in &run.states[trial.times[0].0..place] {
                let (replies, left) = self.alone(statements, state);
                if replies == trial.replies && left == *state {
                    return Ok(());
                }
            }
        }
        Err(format!("SERIALIZABLE {t} is not as if alone at its commit: {replies:?}"))
    }

    fn repeatable_read(&mut self, run: &Run, t: usize) -> Result<(), String> {
        let statements = self.scenario.transactions[t];
        let (trial, place) = (&run.trials[t], run.trials[t].committed.unwrap());
        let mut why = String::new();
        // A first statement that waits takes its view before or after.
        for state in &run.states[trial.times[0].0..=trial.times[0].1] {
            let (replies, left) = self.alone(statements, state);
            if replies != trial.replies {
                why = format!("REPEATABLE READ {t} saw more than its view: alone {replies:?}");
            } else if self.scenario.cascades
                || moved(state, &left, &run.states[place - 1]).as_ref() == Some(&run.states[place])
            {
                return Ok(());
            } else {
                why = format!("REPEATABLE READ {t} lost an update");
            }
        }
        Err(why)
    }

    fn read_committed(&mut self, run: &Run, t: usize) -> Result<(), String> {
        let statements = self.scenario.transactions[t];
        let trial = &run.trials[t];
        let place = trial.committed.unwrap();
        let writes = |s: &&&str| !s.starts_with("select") || s.contains("for update");
        let count = statements.iter().filter(writes).count();
        for (i, &statement) in statements.iter().enumerate() {
            let (sent, answered) = trial.times[i];
            let window = &run.states[sent..=answered];
            if !writes(&&statement) {
                let fits = window
                    .iter()
                    .any(|state| self.alone(&[statement], state).0[0] == trial.replies[i]);
                if !fits {
                    return Err(format!("READ COMMITTED {t}: {statement} saw no committed state"));
                }
                continue;
            }
            if count > 1 || self.scenario.cascades {
                return Ok(());
            }
            let fits = window.iter().any(|state| {
                let (replies, left) = self.alone(&[statement], state);
                replies[0] == trial.replies[i]
                    && moved(state, &left, &run.states[place - 1]).as_ref()
                        == Some(&run.states[place])
            });
            return if fits {
                Ok(())
            } else {
                Err(format!("READ COMMITTED {t}: {statement} lost an update"))
            };
        }
        Ok(())
    }
}

/// What led from `from` to `to`, done to `on`; None if a row to change is not there any more.
fn moved(from: &State, to: &State, on: &State) -> Option<State> {
    let mut out = State::new();
    for ((from, to), on) in from.iter().zip(to).zip(on) {
        let (from, to): (BTreeSet<_>, BTreeSet<_>) = (from.iter().collect(), to.iter().collect());
        let mut rows: BTreeSet<_> = on.iter().collect();
        for gone in from.difference(&to) {
            if !rows.remove(*gone) {
                return None;
            }
        }
        for come in to.difference(&from) {
            if !rows.insert(*come) {
                return None;
            }
        }
        out.push(rows.into_iter().cloned().collect());
    }
    Some(out)
}

fn perform(s: &mut Session, statements: &[&str]) -> Vec<Reply> {
    let mut replies = Vec::new();
    let begin = format!("begin; {}", statements[0]);
    for sql in [begin.as_str()].iter().chain(&statements[1..]).chain(&["commit"]) {
        let reply = try_run(s, sql, &[]);
        let failed = reply.is_err();
        replies.push(reply.map(|a| (a.rows, a.tag)).map_err(|e| e.state().0.to_string()));
        if failed {
            s.fail();
            run(s, "rollback");
            break;
        }
    }
    replies
}

fn load(s: &mut Session, scenario: &Scenario, state: &State) {
    clear(s, scenario);
    for (table, rows) in scenario.tables.iter().zip(state) {
        for row in rows {
            let literal = |v: &String| match v.as_str() {
                "NULL" => "null".into(),
                v => format!("'{v}'"),
            };
            let values: Vec<String> = row.iter().map(literal).collect();
            run(s, &format!("insert into {table} values ({})", values.join(", ")));
        }
    }
}

fn holds(
    theatre: &mut Theatre<'_>,
    invariant: &Invariant,
    changes_schema: bool,
) -> Result<(), String> {
    // A table or column that is not there has nothing to disagree. (Without the general planner,
    // queries of missing tables are not supported instead of unknown.)
    let missing = ["42P01", "42703", "0A000"];
    let mut ask = |sql: &str| match theatre.ask(sql) {
        Ok((mut rows, _)) => {
            rows.sort();
            Ok(Some(rows))
        }
        Err(code) if changes_schema && missing.contains(&code.as_str()) => Ok(None),
        Err(code) => Err(format!("{sql}: {code}")),
    };
    match invariant {
        Invariant::Same(a, b) => match (ask(a)?, ask(b)?) {
            (Some(left), Some(right)) if left != right => {
                Err(format!("{a}: {left:?}; {b}: {right:?}"))
            }
            _ => Ok(()),
        },
        Invariant::Within(a, b) => {
            let (left, right) = (ask(a)?.unwrap_or_default(), ask(b)?.unwrap_or_default());
            match left.iter().find(|row| !right.contains(row)) {
                Some(row) => Err(format!("{row:?} of {a} is not in {b}: {right:?}")),
                None => Ok(()),
            }
        }
        Invariant::Unique(a) => match ask(a)?.unwrap_or_default().windows(2).find(|w| w[0] == w[1])
        {
            Some(twice) => Err(format!("{a}: {:?} twice", twice[0])),
            None => Ok(()),
        },
        Invariant::Once(statement, code, query) => {
            let broken = ask(query)?.unwrap_or_default();
            if !broken.is_empty() && theatre.probe(statement).as_deref() == Some(*code) {
                return Err(format!("{statement} fails with {code}, but {query}: {broken:?}"));
            }
            Ok(())
        }
    }
}

/// All orders, the given one first.
fn orders(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut out = Vec::new();
    for (i, &first) in of.iter().enumerate() {
        let rest: Vec<usize> = of[..i].iter().chain(&of[i + 1..]).copied().collect();
        for mut order in orders(&rest) {
            order.insert(0, first);
            out.push(order);
        }
    }
    out
}
