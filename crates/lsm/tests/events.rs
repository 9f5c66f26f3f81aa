//! What the engine reports: events that pair up and add up, and the stories of explain.

#[allow(dead_code)]
mod support;

use std::collections::HashMap;
use std::sync::Arc;

use braid_env::fs::MemFs;
use braid_env::tasks::SeededTasks;
use braid_lsm::{
    Batch, CommitTs, Db, Durability, Event, EventKind, EventListener, JobOutcome, KeySpan, Options,
};
use parking_lot::Mutex;
use support::options;
use support::workload::open_on;

#[derive(Default)]
struct Heard(Mutex<Vec<Event>>);

impl EventListener for Heard {
    fn event(&self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

fn busy_store(heard: &Arc<Heard>) -> Db {
    let tasks = Arc::new(SeededTasks::new(5));
    let listener: Arc<dyn EventListener> = heard.clone();
    let options = Options { listener: Some(listener), ..options::set(3, tasks.clone()) };
    let db = open_on(Arc::new(MemFs::new()), options).unwrap();
    for ts in 1..=600 {
        let mut batch = Batch::at(CommitTs(ts));
        batch.put(format!("{:03}", ts * 7 % 200).as_bytes(), &[1; 60]);
        if ts % 90 == 0 {
            batch.delete_span(b"050", b"150");
            db.set_gc_threshold(CommitTs(ts - 10)).unwrap();
        }
        db.write(batch, Durability::Buffered).unwrap();
        tasks.run_one();
        if ts == 300 {
            // With nothing to flush and nothing due, no job is outdated by it.
            db.flush().unwrap();
            tasks.run_all();
            db.excise(&KeySpan::new("180", "190")).unwrap();
        }
    }
    tasks.run_all();
    db
}

#[test]
fn jobs_end_once_and_edits_add_up_to_the_tree() {
    let heard = Arc::new(Heard::default());
    let db = busy_store(&heard);
    let events = heard.0.lock().clone();
    assert_eq!(db.events(), events);
    let mut running = HashMap::new();
    let mut live: HashMap<u64, u64> = HashMap::new();
    let (mut jobs, mut dropped, mut reasons) = (0, 0, Vec::new());
    for event in &events {
        match &event.kind {
            EventKind::JobBegan { job, inputs, .. } => {
                assert!(running.insert(*job, inputs.len()).is_none());
            }
            EventKind::JobEnded { job, outcome, dropped: counts, .. } => {
                assert!(running.remove(job).is_some(), "job {job} ends without a beginning");
                assert_eq!(*outcome, JobOutcome::Installed);
                jobs += 1;
                dropped += counts.entries();
            }
            EventKind::Edited { reason, gone, added } => {
                gone.iter().for_each(|sst| assert!(live.remove(&sst.number).is_some()));
                added.iter().for_each(|sst| {
                    live.insert(sst.number, sst.bytes);
                });
                reasons.push(reason.clone());
            }
            EventKind::Failed { error } => panic!("{error}"),
        }
    }
    assert!(running.is_empty() && jobs > 10 && dropped > 100, "{jobs} jobs, {dropped} dropped");
    for reason in ["flush", "excise", "L0 to base"] {
        assert!(reasons.iter().any(|had| had == reason), "no {reason} in {reasons:?}");
    }
    let files: usize = db.metrics().levels.iter().map(|level| level.files).sum();
    let bytes: u64 = db.metrics().levels.iter().map(|level| level.bytes).sum();
    assert_eq!((files, bytes), (live.len(), live.values().sum()));
}

#[test]
fn explain_says_where_a_read_stops() {
    let tasks = Arc::new(SeededTasks::new(5));
    let options = Options { automatic_compaction: false, ..options::set(0, tasks) };
    let db = open_on(Arc::new(MemFs::new()), options).unwrap();
    let write = |ts: u64, change: &dyn Fn(&mut Batch)| {
        let mut batch = Batch::at(CommitTs(ts));
        change(&mut batch);
        db.write(batch, Durability::Sync).unwrap();
    };
    write(1, &|batch| (0..50).for_each(|n| batch.put(format!("k{n:02}").as_bytes(), b"old")));
    db.flush().unwrap();
    write(5, &|batch| batch.delete_span(b"k10", b"k20"));
    write(6, &|batch| batch.put(b"k15", b"new"));
    let deleted = db.explain_get(b"k12", CommitTs(9)).unwrap();
    assert!(deleted.contains("mutable memtable"), "{deleted}");
    assert!(deleted.contains("range tombstone @5: stop"), "{deleted}");
    assert!(!deleted.contains("L0"), "the sst is not looked at: {deleted}");
    assert!(deleted.ends_with("absent\n"));
    let before = db.explain_get(b"k12", CommitTs(4)).unwrap();
    assert!(before.contains("L0, sst") && before.contains("@1 is the value"), "{before}");
    assert!(before.ends_with("present\n"));
    let new = db.explain_get(b"k15", CommitTs(9)).unwrap();
    assert!(new.contains("stop, @6 is the value"), "{new}");
    let scan = db.explain_scan(&KeySpan::new("k00", "k30"), CommitTs(9)).unwrap();
    assert!(scan.contains("range tombstones up to @5"), "{scan}");
    assert!(scan.contains("21 rows") && scan.contains("parked"), "{scan}");
}
