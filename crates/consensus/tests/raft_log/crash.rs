//! Power fails at any moment of the raft log's life: what is found again is a prefix of what was
//! written, with at least all that was synced.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use braid_consensus::{
    Append, Entry, EntryKind, GroupId, HardState, LogBatch, LogIndex, LoggedGroup, RaftLog,
    RaftLogOptions, ReplicaId, Term,
};
use braid_env::fs::{CrashPolicy, MemFs};
use braid_env::random::Random;
use bytes::Bytes;

pub(crate) type Groups = BTreeMap<GroupId, LoggedGroup>;

pub(crate) fn options() -> RaftLogOptions {
    RaftLogOptions { segment_size: 3_000, ..RaftLogOptions::default() }
}

pub(crate) fn entry(index: u64, term: u64, len: usize) -> Entry {
    let data = Bytes::from(vec![(index % 251) as u8; len]);
    Entry { index: LogIndex(index), term: Term(term), kind: EntryKind::Command, data }
}

/// What a group may write next, and what the log holds then.
fn step(random: &mut Random, groups: &mut Groups, batch: &mut LogBatch) {
    let id = GroupId(random.between(1, 5));
    let group = groups.entry(id).or_default();
    let last = group.cut.0.0 + group.entries.len() as u64;
    let term = group.hard_state.term.0 + u64::from(random.chance(1, 10));
    match random.below(20) {
        0 if !group.entries.is_empty() => {
            let at = group.entries[random.below(group.entries.len() as u64) as usize].clone();
            group.entries.retain(|entry| entry.index > at.index);
            group.cut = (at.index, at.term);
            batch.cut(id, group.cut);
        }
        1 if random.chance(1, 4) => {
            groups.remove(&id);
            batch.remove(id);
        }
        _ => {
            // Now and then in the place of what another leader had written.
            let back = if random.chance(1, 6) { random.below(3) } else { 0 };
            let first = (last + 1 - back.min(last - group.cut.0.0)).max(group.cut.0.0 + 1);
            let len = if random.chance(1, 30) { 5_000 } else { random.below(120) as usize };
            let entries: Vec<Entry> =
                (0..random.below(4)).map(|n| entry(first + n, term, len)).collect();
            let vote = Some(ReplicaId(random.between(1, 3)));
            let commit = LogIndex(last);
            let hard_state =
                random.chance(1, 2).then_some(HardState { term: Term(term), vote, commit });
            if !entries.is_empty() {
                group.entries.retain(|entry| entry.index.0 < first);
                group.entries.extend(entries.clone());
            }
            group.hard_state = hard_state.unwrap_or(group.hard_state);
            let append = Append { entries, hard_state, must_sync: true, ..Append::default() };
            batch.append(id, &append);
        }
    }
}

/// All that a group has can be read again from the files, from any place on.
fn check_files(log: &RaftLog, groups: &Groups, random: &mut Random) {
    for (id, group) in groups.iter().filter(|(_, group)| !group.entries.is_empty()) {
        let from = random.below(group.entries.len() as u64) as usize;
        let to = random.between(from as u64, group.entries.len() as u64) as usize;
        let (first, last) = (group.entries[from].index, group.cut.0.0 + 1 + to as u64);
        let bytes = if random.chance(1, 2) { u64::MAX } else { random.between(1, 400) };
        let read = log.read(*id, first, LogIndex(last), bytes).expect("it is there");
        let wanted = &group.entries[from..to];
        assert!(wanted.starts_with(&read), "{id}: {read:?} of {wanted:?}");
        let size = |entries: &[Entry]| {
            entries.iter().map(|entry| entry.data.len() as u64 + 32).sum::<u64>()
        };
        assert!(read.len() == wanted.len() || size(&read) >= bytes, "{id}: {read:?}");
        assert!(read.is_empty() == wanted.is_empty());
    }
}

/// Groups of which nothing is known are the same as no groups.
fn known(groups: &Groups) -> Groups {
    let unknown = LoggedGroup::default();
    groups.iter().filter(|(_, g)| **g != unknown).map(|(id, g)| (*id, g.clone())).collect()
}

#[test]
fn what_was_synced_survives_and_the_rest_is_a_prefix() {
    let (first, seeds) = crate::seeds(60);
    let (mut records, mut lost) = (0, 0);
    for seed in first..first + seeds {
        let mut random = Random::seeded(seed);
        let mut fs = MemFs::new();
        // What the log held after each record of all lives.
        let mut states: Vec<Groups> = vec![Groups::new()];
        let mut synced = 0;
        for life in 0..4 {
            let opened = RaftLog::open(Arc::new(fs.clone()), Path::new("/raft"), options());
            let (mut log, found) =
                opened.unwrap_or_else(|e| panic!("seed {seed} life {life}: {e}"));
            let found = known(&found);
            let at = (synced..states.len()).rev().find(|at| known(&states[*at]) == found);
            let at = at.unwrap_or_else(|| panic!("seed {seed} life {life}: no such state"));
            lost += states.len() - 1 - at;
            // Opening makes durable what it finds.
            states.truncate(at + 1);
            synced = at;
            fs.arm_crash(random.below(200), random.clone(), CrashPolicy::Random(60));
            let mut groups = states[at].clone();
            check_files(&log, &groups, &mut random);
            fs = loop {
                let mut batch = LogBatch::default();
                (0..random.between(1, 3)).for_each(|_| step(&mut random, &mut groups, &mut batch));
                log.write(&batch).expect("the disk works");
                states.push(groups.clone());
                records += 1;
                if random.chance(1, 10) {
                    check_files(&log, &groups, &mut random);
                }
                let sync = random.chance(1, 4);
                if sync {
                    log.sync(log.written()).expect("the disk works");
                }
                if random.chance(1, 6) {
                    log.release().expect("the disk works");
                }
                // What was promised while the power failed does not count.
                if let Some(after) = fs.take_crash() {
                    break after;
                }
                if sync {
                    synced = states.len() - 1;
                }
            };
        }
    }
    assert!(lost > 0, "no crash has lost anything: the test tests nothing");
    println!("{seeds} logs from seed {first} on, {records} records, {lost} lost before a sync");
}
