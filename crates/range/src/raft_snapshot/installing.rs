//! The step from what a replica has to the state that it was given.
//!
//! ```text
//!   r1.ready durable      from here on it happens, whatever crashes
//!   keys in place         one ingest that cuts out what was there
//!   records in place      another one, with the range's state: the store is at the new place
//!   raft log begun anew   promises stay, entries go
//!   r1.ready gone
//! ```
//!
//! A node that finds `r1.ready` when it opens its store does what is missing of that: the state's
//! place in the log tells what is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use braid_consensus::codec::{Reader, put_bytes, put_number};
use braid_consensus::{
    Error, GroupId, HardState, LogBatch, LogIndex, LoggedGroup, RaftLog, Result, Term,
};
use braid_env::fs::FileSystem;
use braid_lsm::{CommitTs, Db, IngestOptions, KeySpan, Options, SstBuilder};

use super::message::Begin;
use super::small::finish_small;
use crate::ids::{RangeId, put_span, take_span};
use crate::local_keys;
use crate::machine::newest;
use crate::replicas::Replicas;
use crate::state::RangeState;

const VERSION: u8 = 1;

/// Where states arrive.
pub(crate) struct Staging {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// Of the store that takes the files in.
    options: Options,
}

/// A state that is there.
pub(super) struct Arrived {
    pub(super) begin: Begin,
    /// Files of the range's records, and of its keys.
    pub(super) local: Vec<String>,
    pub(super) data: Vec<String>,
}

/// What is to be done, as its file says.
struct Plan {
    begin: Begin,
    /// The keys that the replica had, or is to have if there was none.
    cut_out: KeySpan,
    local: Vec<String>,
    data: Vec<String>,
}

pub(super) fn disk(doing: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::Inconsistent(format!("{doing} {}: {error}", path.display()))
}

pub(super) fn damaged(path: &Path) -> Error {
    Error::Inconsistent(format!("{} is damaged", path.display()))
}

impl Staging {
    /// A folder below a node's own.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        node_dir: &Path,
        options: Options,
    ) -> Result<Staging> {
        let dir = node_dir.join("arriving");
        fs.create_dir_all(&dir).map_err(|error| disk("making", &dir, &error))?;
        Ok(Staging { fs, dir, options })
    }

    fn prefix(range: RangeId) -> String {
        format!("{:016x}.", range.0)
    }

    fn ready(&self, range: RangeId) -> PathBuf {
        self.dir.join(format!("{}ready", Staging::prefix(range)))
    }

    /// Begins a file of a range's state.
    pub(super) fn new_file(
        &self,
        range: RangeId,
        number: usize,
    ) -> braid_lsm::Result<(String, SstBuilder)> {
        let name = format!("{}{number}.sst", Staging::prefix(range));
        // Each entry has its own time.
        let (path, no_time) = (self.dir.join(&name), CommitTs(1));
        Ok((name, SstBuilder::create(&self.fs, &path, no_time, &self.options)?))
    }

    /// The file of small states that take their places.
    pub(super) fn small(&self) -> PathBuf {
        self.dir.join("small")
    }

    pub(super) fn has(&self, path: &Path) -> Result<bool> {
        self.fs.exists(path).map_err(|error| disk("looking for", path, &error))
    }

    fn list(&self) -> Result<Vec<String>> {
        self.fs.list(&self.dir).map_err(|error| disk("listing", &self.dir, &error))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.fs.remove(path).map_err(|error| disk("removing", path, &error))
    }

    /// Removes what there is of a range.
    pub(super) fn clear(&self, range: RangeId) -> Result<()> {
        let prefix = Staging::prefix(range);
        let own = self.list()?.into_iter().filter(|name| name.starts_with(&prefix));
        own.map(|name| self.dir.join(name)).try_for_each(|path| self.remove(&path))
    }

    fn sync(&self) -> Result<()> {
        self.fs.sync_dir(&self.dir).map_err(|error| disk("syncing", &self.dir, &error))
    }

    /// From here on it happens.
    fn resolve(&self, plan: &Plan) -> Result<()> {
        // The files that it names are there whenever it is.
        self.sync()?;
        self.write_durably(&self.ready(plan.begin.state.descriptor.id), &plan.encode())
    }

    /// A file that is there as a whole or not at all, whatever crashes.
    pub(super) fn write_durably(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let new = path.with_extension("new");
        let write = || {
            let file = self.fs.create(&new)?;
            file.write_at(bytes, 0)?;
            file.sync_data()?;
            self.fs.rename(&new, path)
        };
        write().map_err(|error| disk("writing", path, &error))?;
        self.sync()
    }

    pub(super) fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let read = || {
            let file = self.fs.open(path)?;
            let mut bytes = vec![0; file.len()? as usize];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        read().map_err(|error| disk("reading", path, &error))
    }

    /// Removes a file for good.
    pub(super) fn remove_durably(&self, path: &Path) -> Result<()> {
        self.remove(path)?;
        self.sync()
    }

    /// It has happened.
    fn conclude(&self, range: RangeId) -> Result<()> {
        self.remove_durably(&self.ready(range))?;
        self.clear(range)
    }

    /// What was resolved and may not have happened.
    fn resolved(&self) -> Result<Vec<Plan>> {
        let mut plans = Vec::new();
        for name in self.list()?.iter().filter(|name| name.ends_with(".ready")) {
            let path = self.dir.join(name);
            plans.push(Plan::decode(&self.read(&path)?).ok_or_else(|| damaged(&path))?);
        }
        Ok(plans)
    }
}

impl Plan {
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        self.begin.encode(&mut out);
        put_span(&mut out, &self.cut_out);
        for files in [&self.local, &self.data] {
            put_number(&mut out, files.len() as u64);
            files.iter().for_each(|name| put_bytes(&mut out, name.as_bytes()));
        }
        out
    }

    fn decode(bytes: &[u8]) -> Option<Plan> {
        let reader = &mut Reader::new(bytes);
        if reader.byte()? != VERSION {
            return None;
        }
        let (begin, cut_out) = (Begin::decode(reader)?, take_span(reader)?);
        let mut files = || {
            let mut files = Vec::new();
            for _ in 0..reader.number()? {
                files.push(String::from_utf8(reader.bytes()?.to_vec()).ok()?);
            }
            Some(files)
        };
        let (local, data) = (files()?, files()?);
        reader.is_empty().then_some(Plan { begin, cut_out, local, data })
    }

    /// Puts keys and records in place, unless they are. The store's threshold may be above that of
    /// the range, which could not move without this replica: it is lowered, for the versions that
    /// come. Of the other ranges it keeps more than it must from then on; what they have dropped is
    /// below their own thresholds, where nobody reads.
    fn put_in_place(&self, db: &Db, staging: &Staging) -> Result<()> {
        let range = self.begin.state.descriptor.id;
        if is_in_place(db, &self.begin)? {
            return Ok(());
        }
        db.lower_gc_threshold(self.begin.state.gc)?;
        let ingest = |files: &[String], span: KeySpan| {
            let files: Vec<PathBuf> = files.iter().map(|name| staging.dir.join(name)).collect();
            db.ingest(&files, IngestOptions { excise: Some(span), ts_override: None })
        };
        ingest(&self.data, self.cut_out.clone())?;
        ingest(&self.local, local_keys::records(range))?;
        Ok(())
    }
}

/// Whether the store has a state, or a later one.
pub(super) fn is_in_place(db: &Db, begin: &Begin) -> Result<bool> {
    let stored = db.get(&local_keys::state(begin.state.descriptor.id), newest())?;
    let stored = stored.and_then(|record| RangeState::decode(&record));
    Ok(stored.is_some_and(|stored| stored.applied >= begin.state.applied))
}

/// What a replica that begins with a state has promised: nothing less than before. Its log ends
/// where the state does, so that is all that it knows to be committed: what it had heard of beyond
/// that was not durable here, nor acknowledged.
fn promised(before: HardState, begin: &Begin) -> HardState {
    let (commit, term) = begin.at();
    match before.term < term {
        true => HardState { term, vote: None, commit },
        false => HardState { commit, ..before },
    }
}

/// Whether a log has the entry up to which a state goes: then it is the log of the group up to
/// there, and what it has behind it counts.
fn has(logged: &LoggedGroup, (at, term): (LogIndex, Term)) -> bool {
    if logged.cut.0 >= at {
        return true;
    }
    let here = logged.entries.iter().find(|entry| entry.index == at).map(|entry| entry.term);
    let first = logged.entries.first().map(|entry| entry.index);
    let older = || {
        let inside = first.is_some_and(|first| at < first);
        let run = logged.older.iter().rev().find(|(begins, _)| *begins <= at);
        run.filter(|_| inside).map(|run| run.1)
    };
    here.or_else(older) == Some(term)
}

/// Does what was resolved before a crash.
pub(crate) fn finish_installs(
    staging: &Staging,
    db: &Db,
    log: &mut RaftLog,
    logged: &mut BTreeMap<GroupId, LoggedGroup>,
) -> Result<()> {
    for plan in staging.resolved()? {
        let range = plan.begin.state.descriptor.id;
        plan.put_in_place(db, staging)?;
        begin_logs_anew(log, logged, &[&plan.begin])?;
        staging.conclude(range)?;
    }
    finish_small(staging, db, log, logged)?;
    // What has arrived in part.
    staging.list()?.iter().try_for_each(|name| staging.remove(&staging.dir.join(name)))
}

/// The logs of replicas that begin with a state. Durable.
pub(super) fn begin_logs_anew(
    log: &mut RaftLog,
    logged: &mut BTreeMap<GroupId, LoggedGroup>,
    states: &[&Begin],
) -> Result<()> {
    let mut batch = LogBatch::default();
    for begin in states {
        let group = begin.state.descriptor.id.group();
        let before = logged.entry(group).or_default();
        if has(before, begin.at()) {
            continue;
        }
        let hard_state = promised(before.hard_state, begin);
        batch.begin_anew(group, hard_state, begin.at());
        *before = LoggedGroup { hard_state, cut: begin.at(), ..LoggedGroup::default() };
    }
    if batch.is_empty() {
        return Ok(());
    }
    let place = log.write(&batch)?;
    log.sync(place)
}

impl Replicas {
    /// A replica begins anew with a state that is there, or begins. Blocks on the device.
    pub(super) fn install(&mut self, arrived: Arrived) -> Result<()> {
        let Arrived { begin, local, data } = arrived;
        let descriptor = begin.state.descriptor.clone();
        let range = descriptor.id;
        // What the store had before must not be lost behind what is put in place now.
        self.store_position().wait_durable()?;
        let own = self.replicas.get(&range);
        let cut_out = own.map_or(&descriptor.span, |r| &r.machine.state.descriptor.span).clone();
        let plan = Plan { begin, cut_out, local, data };
        self.traffic.staging.resolve(&plan)?;
        plan.put_in_place(&self.db, &self.traffic.staging)?;
        let before = match self.replicas.remove(&range) {
            Some(mut old) => {
                // It has not acknowledged entries that it has behind the state: they are others.
                let hard_state = old.group.hard_state();
                let answers = old.dismiss_all();
                self.answer(answers);
                LoggedGroup { hard_state, ..LoggedGroup::default() }
            }
            None => self.absent.unborn.remove(&range.group()).unwrap_or_default(),
        };
        let mut logged = BTreeMap::from([(range.group(), before)]);
        begin_logs_anew(&mut self.log, &mut logged, &[&plan.begin])?;
        self.traffic.staging.conclude(range)?;
        self.begin_with(plan.begin, logged.remove(&range.group()).unwrap_or_default())
    }

    /// A replica goes on from a state that is in place.
    pub(super) fn begin_with(&mut self, begin: Begin, logged: LoggedGroup) -> Result<()> {
        let descriptor = begin.state.descriptor.clone();
        let range = descriptor.id;
        self.forget_unsynced(range);
        self.clocks.hlc.update(begin.state.stamp.max(begin.state.foreign).0);
        let (at, state) = (begin.state.applied, begin.state);
        self.add_replica(state, logged)?;
        self.traffic.installed.fetch_add(1, Ordering::Relaxed);
        self.effects.notes.push(format!("{range:?} goes on with a state as of {at}"));
        let leader = descriptor.replicas.iter().map(|(replica, _)| *replica);
        let replica = &self.replicas[&range];
        let messages = leader
            .filter(|other| *other != replica.group.id())
            .map(|other| replica.group.say_has(other, at))
            .collect();
        self.send(range, messages);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{NodeId, RangeDescriptor};
    use braid_consensus::ReplicaId;

    /// A replica had heard that an entry behind the state was committed, and had that entry: not
    /// durable, so it goes with the rest of the log.
    #[test]
    fn promises_stay_and_what_is_known_to_be_committed_ends_with_the_state() {
        let replicas = vec![(ReplicaId(1), NodeId(1))];
        let span = KeySpan::new("a", "b");
        let mut state = RangeState::new(RangeDescriptor::new(RangeId(3), span, replicas));
        state.applied = LogIndex(20);
        let begin = Begin { number: 1, term: Term(5), state, at_term: Term(4) };
        let before = HardState { term: Term(5), vote: Some(ReplicaId(2)), commit: LogIndex(21) };
        let commit = LogIndex(20);
        assert_eq!(promised(before, &begin), HardState { commit, ..before });
        let older = HardState { term: Term(3), ..before };
        assert_eq!(promised(older, &begin), HardState { term: Term(4), vote: None, commit });
    }
}
