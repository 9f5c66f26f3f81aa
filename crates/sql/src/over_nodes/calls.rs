//! What a node's sessions want of those of another node, or of its jobs.
//!
//! ```text
//!   pg_stat_activity      all others: what do your sessions do?
//!   pg_cancel_backend     the node in the session's number: stop its statement
//!   PAUSE JOB 12          the node in the job's record: pause it
//!   pg_stat_statements    all others: what have you counted?
//! ```
//! A node that does not answer within a moment has no sessions to show, and nothing can be asked
//! of it: whoever wants that is told.

use std::sync::Arc;
use std::time::Duration;

use braid_types::{SqlError, SqlResult, SqlState};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::database::Database;
use crate::runtime::sessions::SeenSession;
use crate::runtime::{StatementStatistics, TransactionStatistics};
use crate::session::{Cause, Session, SessionOptions, node_of_session};

/// Who looks waits so long for a node.
const LOOKING: Duration = Duration::from_millis(500);
/// Who looks at what was counted, which may be megabytes.
const COUNTING: Duration = Duration::from_secs(2);
/// Who wants something to happen waits longer.
const WANTING: Duration = Duration::from_secs(10);

/// What becomes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JobWish {
    Pause,
    Resume,
    Cancel,
}

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
enum Call {
    Sessions,
    Signal { pid: i32, ends: bool },
    Job { id: u32, wish: JobWish },
    Statistics,
    ResetStatistics { database: Option<u32>, id: Option<i64> },
}

/// What a node has counted.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NodeStatistics {
    pub(super) statements: Vec<StatementStatistics>,
    /// Of transactions that were blocks.
    pub(super) blocks: Vec<TransactionStatistics>,
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Sessions(Vec<SeenSession>),
    Signal(bool),
    Statistics(NodeStatistics),
    Done,
    Failed { state: String, message: String, hint: Option<String> },
}

impl Answer {
    fn of_error(e: &SqlError) -> Answer {
        let (state, message) = (e.state().0.to_string(), e.message().to_string());
        Answer::Failed { state, message, hint: e.hint().map(str::to_string) }
    }
}

impl Database {
    fn ask_node(&self, node: u64, call: &Call, patience: Duration) -> Option<Answer> {
        let body = serde_json::to_vec(call).ok()?;
        let answer = self.coordinator().call_node(node, body.into(), patience)?;
        serde_json::from_slice(&answer).ok()
    }

    /// Sessions of this node, and of all others that answer.
    pub fn all_sessions(&self) -> Vec<SeenSession> {
        let mut all = self.own_sessions();
        for answer in self.ask_others(&Call::Sessions, LOOKING) {
            if let Answer::Sessions(theirs) = answer {
                all.extend(theirs);
            }
        }
        all
    }

    /// What all other nodes say that answer.
    fn ask_others(&self, call: &Call, patience: Duration) -> Vec<Answer> {
        if !self.is_shared() {
            return Vec::new();
        }
        let own = self.own_node();
        let nodes = self.coordinator().describe_nodes().into_iter();
        let others = nodes.filter(|node| node.id != own && node.state != "gone");
        others.filter_map(|node| self.ask_node(node.id, call, patience)).collect()
    }

    /// What other nodes have counted.
    pub(super) fn statistics_of_others(&self) -> Vec<NodeStatistics> {
        let told = |answer| match answer {
            Answer::Statistics(theirs) => Some(theirs),
            _ => None,
        };
        self.ask_others(&Call::Statistics, COUNTING).into_iter().filter_map(told).collect()
    }

    /// Others forget what they have counted.
    pub(super) fn reset_statistics_of_others(&self, database: Option<u32>, id: Option<i64>) {
        self.ask_others(&Call::ResetStatistics { database, id }, LOOKING);
    }

    fn own_sessions(&self) -> Vec<SeenSession> {
        self.sessions().all().iter().map(|one| one.seen()).collect()
    }

    /// Stops the statement of a session, or ends it, wherever it is; whether there is one.
    pub(crate) fn signal_session(&self, pid: i32, ends: bool) -> bool {
        let node = node_of_session(pid);
        if !self.is_shared() || node == self.own_node() {
            return self.signal_own(pid, ends);
        }
        let answer = self.ask_node(node, &Call::Signal { pid, ends }, WANTING);
        matches!(answer, Some(Answer::Signal(true)))
    }

    fn signal_own(&self, pid: i32, ends: bool) -> bool {
        let cause = if ends { Cause::Terminate } else { Cause::User };
        self.backends().is_some_and(|backends| backends.signal(pid, cause))
    }

    /// Says to another node what is to become of one of its jobs.
    ///
    /// # Errors
    /// What that node says; 57P03 if it says nothing.
    pub(crate) fn wish_of_job(&self, node: u64, id: u32, wish: JobWish) -> SqlResult<()> {
        match self.ask_node(node, &Call::Job { id, wish }, WANTING) {
            Some(Answer::Done) => Ok(()),
            Some(Answer::Failed { state, message, hint }) => {
                let state = SqlState::of_code(&state).unwrap_or(SqlState::INTERNAL_ERROR);
                let e = SqlError::new(state, message);
                Err(match hint {
                    Some(hint) => e.with_hint(hint),
                    None => e,
                })
            }
            _ => Err(SqlError::new(
                SqlState::CANNOT_CONNECT_NOW,
                format!("job {id} is one of node {node}, which does not answer"),
            )
            .with_hint("It goes on with it when it is back, or `braid node decommission` it.")),
        }
    }

    /// Waits up to so long for something that another node asks, and answers it. Called again and
    /// again by a thread of its own; does nothing where there are no other nodes.
    pub fn serve_calls(self: &Arc<Self>, patience: Duration) {
        let Some(call) = self.coordinator().next_call(patience) else { return };
        let Ok(asked) = serde_json::from_slice(&call.body) else { return };
        let answer = match asked {
            Call::Sessions => Answer::Sessions(self.own_sessions()),
            Call::Signal { pid, ends } => Answer::Signal(self.signal_own(pid, ends)),
            Call::Statistics => Answer::Statistics(self.own_statistics()),
            Call::ResetStatistics { database, id } => {
                self.reset_own_statistics(database, id);
                Answer::Done
            }
            Call::Job { id, wish } => match self.change_own_job(id, wish) {
                Ok(()) => Answer::Done,
                Err(e) => Answer::of_error(&e),
            },
        };
        if let Ok(body) = serde_json::to_vec(&answer) {
            self.coordinator().answer_call(&call, Bytes::from(body));
        }
    }

    fn change_own_job(self: &Arc<Self>, id: u32, wish: JobWish) -> SqlResult<()> {
        let catalog = self.current_catalog()?;
        let database = catalog.databases().next().map_or("", |d| d.name.as_str()).into();
        let options = SessionOptions { user: "root".into(), database, ..SessionOptions::default() };
        Session::new(self.clone(), options)?.change_job(id, wish)
    }
}
