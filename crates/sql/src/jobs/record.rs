//! What is stored about a job, under its system key, as JSON.

use std::sync::Arc;

use braid_catalog::{After, kv_error};
use braid_keys::system;
use braid_kv::{Coordinator, Isolation, KeySpan, ReadMode, ScanOptions, Txn, TxnOptions};
use braid_types::{SqlError, SqlResult, SqlState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a mark begins with that names loads.
const KEEPS: &str = "keeps loads";
/// Finished jobs that are remembered.
const REMEMBERED: usize = 100;

/// How far a job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// At work.
    Running,
    /// By PAUSE JOB, until RESUME JOB.
    Paused,
    /// It failed, and what it has published is being taken back.
    Undoing,
    /// Done.
    Succeeded,
    /// Nothing is left of it.
    Failed,
    /// By CANCEL JOB, or the client; nothing is left of it.
    Canceled,
}

const STATES: [(State, &str); 6] = [
    (State::Running, "running"),
    (State::Paused, "paused"),
    (State::Undoing, "undoing"),
    (State::Succeeded, "succeeded"),
    (State::Failed, "failed"),
    (State::Canceled, "canceled"),
];

impl State {
    /// As SHOW JOBS says it.
    pub fn name(self) -> &'static str {
        STATES.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }

    /// Whether nothing will happen to the job any more.
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, State::Running | State::Paused | State::Undoing)
    }
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Object id.
    pub id: u32,
    /// The node that runs it, of those of a cluster; 0 on one that is alone.
    pub node: u64,
    /// What sort of work, e.g. `create index`.
    pub kind: String,
    /// The statement that asked for it.
    pub statement: String,
    /// How far it has come.
    pub state: State,
    /// The step it is at, or was at when it ended.
    pub step: String,
    /// Part of the present step that is done, from 0 to 1.
    pub fraction: f64,
    /// Why it failed.
    pub error: Option<String>,
    /// The index that it builds: its entries and notes are erased when it is undone.
    pub index: Option<u32>,
    /// As whom it runs, if it begins again when the node has stopped in the middle.
    pub run_as: Option<RunAs>,
    /// What it writes and nobody reads yet: erased when it is undone or begins again.
    pub copies: Vec<Copied>,
    /// Of a job whose work stays as it goes: how far it has come, in its own words.
    pub mark: Option<String>,
}

/// A generation of a table or an index that a job fills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// Table or index.
    pub id: u32,
    /// Generation.
    pub generation: u32,
    /// The root table, and its generation, in whose families it lies, if it does.
    pub root: Option<(u32, u32)>,
}

/// What a statement needs to run without the client that asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunAs {
    /// User.
    pub user: String,
    /// Database.
    pub database: String,
    /// Settings that are not as at the start of every session.
    pub settings: Vec<(String, String)>,
}

impl Record {
    /// A job at its beginning.
    pub fn new(id: u32, kind: &str, statement: &str) -> Record {
        Record {
            id,
            node: 0,
            kind: kind.into(),
            statement: statement.into(),
            state: State::Running,
            step: "start".into(),
            fraction: 0.0,
            error: None,
            index: None,
            run_as: None,
            copies: Vec::new(),
            mark: None,
        }
    }

    /// Writes it with the transaction.
    pub(crate) fn put(&self, txn: &Txn) -> SqlResult<()> {
        txn.put(self.key(), self.encode()).map_err(kv_error)
    }

    /// Where it is stored.
    pub(crate) fn key(&self) -> Vec<u8> {
        system::job(self.id)
    }

    /// As it is stored.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let value = json!({
            "kind": self.kind, "statement": self.statement, "state": self.state.name(),
            "step": self.step, "fraction": self.fraction, "error": self.error,
            "index": self.index, "run_as": self.run_as, "copies": self.copies,
            "mark": self.mark, "node": self.node,
        });
        value.to_string().into_bytes()
    }

    /// Says which loads it goes on with after its process, of those that wait for their commit.
    pub(crate) fn keep_loads(&mut self, loads: &[u32]) {
        let ids: Vec<String> = loads.iter().map(u32::to_string).collect();
        self.mark = Some(format!("{KEEPS} {}", ids.join(" ")));
    }

    /// The loads that it goes on with.
    pub(crate) fn kept_loads(&self) -> impl Iterator<Item = u32> {
        let told = self.mark.as_deref().filter(|_| !self.state.is_final());
        let ids = told.and_then(|mark| mark.strip_prefix(KEEPS)).unwrap_or_default();
        ids.split_whitespace().filter_map(|id| id.parse().ok())
    }

    fn decode(id: u32, bytes: &[u8]) -> Option<Record> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| value[name].as_str().map(str::to_string);
        let state = text("state")?;
        Some(Record {
            id,
            node: value["node"].as_u64().unwrap_or(0),
            kind: text("kind")?,
            statement: text("statement")?,
            state: STATES.iter().find(|(_, name)| *name == state)?.0,
            step: text("step")?,
            fraction: value["fraction"].as_f64()?,
            error: text("error"),
            index: value["index"].as_u64().and_then(|n| u32::try_from(n).ok()),
            run_as: RunAs::deserialize(&value["run_as"]).ok(),
            copies: Vec::deserialize(&value["copies"]).unwrap_or_default(),
            mark: text("mark"),
        })
    }

    /// Stores it, in a transaction of its own.
    pub(crate) fn store(&self, coordinator: &Arc<Coordinator>) -> SqlResult<()> {
        Record::change(coordinator, self.id, |_| Some(self.clone())).map(|_| ())
    }

    /// Stores what becomes of a job, in a transaction of its own: `change` gets what is stored, and
    /// says what is to be, if anything. Gives what was there before.
    pub(crate) fn change(
        coordinator: &Arc<Coordinator>,
        id: u32,
        change: impl Fn(Option<&Record>) -> Option<Record>,
    ) -> SqlResult<Option<Record>> {
        // It may be that the job was stopped.
        let (isolation, cancel) = (Isolation::RepeatableRead, Some(Arc::default()));
        let options = TxnOptions { isolation, cancel, ..TxnOptions::default() };
        loop {
            let txn = coordinator.begin(options.clone()).map_err(kv_error)?;
            let tried = (|| {
                let stored = Record::all(&txn)?.into_iter().find(|record| record.id == id);
                if let Some(record) = change(stored.as_ref()) {
                    record.put(&txn)?;
                    Record::forget_old(&txn)?;
                    txn.commit().map_err(kv_error)?;
                }
                Ok(stored)
            })();
            match tried {
                Err(e) if After::error(&e).is_again() => {}
                other => return other,
            }
        }
    }

    /// All jobs that the transaction sees, by id.
    pub(crate) fn all(txn: &Arc<Txn>) -> SqlResult<Vec<Record>> {
        let (start, end) = system::jobs();
        let options = ScanOptions { mode: ReadMode::Unrecorded, ..ScanOptions::default() };
        let mut scan = txn.scan(KeySpan::new(start, end), options).map_err(kv_error)?;
        let mut out = Vec::new();
        while let Some((key, value)) = scan.next().map_err(kv_error)? {
            let record = system::job_id(&key).and_then(|id| Record::decode(id, &value));
            out.push(record.ok_or_else(|| {
                let key = braid_keys::pretty::key(&key);
                SqlError::new(SqlState::DATA_CORRUPTED, format!("damaged system record: {key}"))
            })?);
        }
        Ok(out)
    }

    /// Forgets the oldest finished ones.
    pub(crate) fn forget_old(txn: &Arc<Txn>) -> SqlResult<()> {
        let finished: Vec<_> =
            Record::all(txn)?.into_iter().filter(|record| record.state.is_final()).collect();
        let old = finished.len().saturating_sub(REMEMBERED);
        for record in &finished[..old] {
            txn.delete(system::job(record.id)).map_err(kv_error)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_goes_on_keeps_its_loads() {
        let mut record = Record::new(7, "import", "");
        assert_eq!(record.kept_loads().count(), 0);
        record.keep_loads(&[3, 12]);
        let back = Record::decode(7, &record.encode()).unwrap();
        assert_eq!(back.kept_loads().collect::<Vec<_>>(), [3, 12]);
        assert_eq!(Record { state: State::Failed, ..back }.kept_loads().count(), 0);
    }

    #[test]
    fn states_have_names_and_are_read_back() {
        for (state, name) in STATES {
            assert_eq!(state.name(), name);
            let text = format!(
                r#"{{"kind":"k","statement":"s","state":"{name}","step":"x",
                    "fraction":0.5,"index":9}}"#
            );
            let record = Record::decode(7, text.as_bytes()).unwrap();
            assert_eq!((record.id, record.state, record.index), (7, state, Some(9)));
        }
        assert_eq!(Record::decode(7, b"{}"), None);
    }
}
