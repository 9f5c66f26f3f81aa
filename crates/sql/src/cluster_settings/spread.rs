//! From node to node: hearing of newer settings, and knowing who has heard of them.

use std::time::Duration;

use braid_kv::NodeSettings;
use braid_scalar::SessionFunctions;
use braid_types::{SqlResult, SqlState};

use crate::database::Database;
use crate::session::Session;

/// Who changes a setting waits so long for nodes that are there.
const PRESENT: Duration = Duration::from_secs(2);
/// With FOR ALL NODES so long, and for all that belong to the cluster.
const ALL: Duration = Duration::from_secs(10);
/// A node that has said nothing for so long is not there.
const SILENT: Duration = Duration::from_secs(3);
/// It is looked so often.
const LOOK_EVERY: Duration = Duration::from_millis(5);

impl Database {
    /// Waits up to so long for news of cluster settings that are newer than this node's, and goes
    /// by them. Without news the records are read from time to time nevertheless: `reads` says so.
    /// Called again and again by a thread of its own; does nothing where there are no other nodes.
    ///
    /// # Errors
    /// Of reading; the next call tries again.
    pub fn follow_cluster_settings(&self, patience: Duration, reads: bool) -> SqlResult<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let known = self.cluster_settings().version();
        let newest = self.coordinator().await_settings(known, patience);
        if newest > known || reads {
            self.read_cluster_settings()?;
        }
        Ok(())
    }

    /// The nodes that a change is waited for, with the version that each goes by; `None`: it has
    /// not said it.
    pub(crate) fn nodes_to_wait_for(&self, all: bool) -> Vec<(u64, Option<u64>)> {
        let said = self.coordinator().settings_of_nodes();
        let of = |id: u64| said.iter().find(|one| one.node == id);
        let is_there = |one: Option<&NodeSettings>| one.is_some_and(|one| one.silent < SILENT);
        let nodes = self.coordinator().describe_nodes().into_iter();
        let belong = nodes.filter(|node| node.state != "gone");
        let waited = belong.filter(|node| all || is_there(of(node.id)));
        waited.map(|node| (node.id, of(node.id).map(|one| one.version))).collect()
    }
}

impl Session {
    /// Waits until the other nodes go by a version: those that are there, or `all`. Whoever does
    /// not is named in a warning: the change holds, and reaches it as soon as it can be reached.
    pub(super) fn tell_of_version(&mut self, version: u64, all: bool) -> SqlResult<()> {
        let begun = self.state().db().clock_micros();
        let patience = if all { ALL } else { PRESENT };
        loop {
            let mut late = self.state().db().nodes_to_wait_for(all);
            late.retain(|(_, goes_by)| goes_by.is_none_or(|goes_by| goes_by < version));
            if late.is_empty() {
                return Ok(());
            }
            let waited = self.state().db().clock_micros() - begun;
            if waited > patience.as_micros() as i64 {
                let names: Vec<String> = late.iter().map(|(node, _)| node.to_string()).collect();
                let text =
                    format!("the change holds, but not on these nodes yet: {}", names.join(", "));
                self.warn(SqlState::WARNING, &text);
                return Ok(());
            }
            self.state().sleep(LOOK_EVERY.as_micros() as i64)?;
        }
    }
}
