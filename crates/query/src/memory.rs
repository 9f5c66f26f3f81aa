//! DataFusion's memory, out of the statement's account.
//!
//! Its operators ask before they grow. Those that can spill do so when they are refused, into files
//! below the data directory; the others fail, and the error names them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_catalog::memory_error;
use braid_env::memory::{Account, Exceeded};
use braid_types::{SqlError, SqlResult, SqlState};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};

use crate::error::from_df;

/// Where plans may spill to; `None`: nowhere.
#[derive(Clone, Debug, Default)]
pub struct SpillDirectory(pub Option<PathBuf>);

/// The statement's account as DataFusion sees it.
#[derive(Debug)]
struct StatementPool {
    account: Arc<Account>,
}

impl fmt::Display for StatementPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "statement ({} bytes held)", self.account.used())
    }
}

impl MemoryPool for StatementPool {
    fn name(&self) -> &str {
        "statement"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.account.take_anyway(additional);
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        self.account.give(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.account
            .take(operator(reservation.consumer().name()), additional)
            .map_err(|e| DataFusionError::ResourcesExhausted(marked(&e)))
    }

    fn reserved(&self) -> usize {
        self.account.used()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.account.limit())
    }
}

/// An operator's name without the number of its partition.
fn operator(consumer: &str) -> &str {
    consumer.split(['[', '(', ' ']).next().unwrap_or(consumer)
}

/// Operators look at the kind of the error to decide whether to spill, so it must stay theirs; the
/// mark lets [`exhausted`] find the words again among theirs.
const MARK: &str = "\u{1}";

fn marked(e: &Exceeded) -> String {
    let error = memory_error(e);
    let (detail, hint) = (error.detail().unwrap_or_default(), error.hint().unwrap_or_default());
    format!("{MARK}{}{MARK}{detail}{MARK}{hint}{MARK}", error.message())
}

/// The error of a refused operator.
pub(crate) fn exhausted(message: &str) -> SqlError {
    let parts: Vec<&str> = message.split(MARK).collect();
    match parts.as_slice() {
        [_, message, detail, hint, ..] => {
            SqlError::new(SqlState::OUT_OF_MEMORY, *message).with_detail(*detail).with_hint(*hint)
        }
        _ => SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .with_detail(message)
            .with_hint("Raise statement_mem, or make the statement smaller."),
    }
}

/// What a statement's plans run in.
///
/// # Errors
/// When the runtime cannot be set up.
pub(crate) fn runtime(account: Arc<Account>, spill: &SpillDirectory) -> SqlResult<Arc<RuntimeEnv>> {
    let mode = match &spill.0 {
        Some(path) => DiskManagerMode::Directories(vec![Path::to_path_buf(path)]),
        None => DiskManagerMode::Disabled,
    };
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(StatementPool { account }))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
        .build_arc()
        .map_err(from_df)
}
