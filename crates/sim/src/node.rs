//! A node: its disk, its clock, and the process on it, if it runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use braid_consensus::{GroupOptions, RaftLogOptions, Result};
use braid_env::clock::Hlc;
use braid_env::fs::{CrashPolicy, MemFs};
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_lsm::{Batch, Codec, CommitTs, Db, Durability, Options};
use braid_range::{
    NodeEnv, NodeId, NodeOptions, RangeDescriptor, Replicas, Room, RoomFloors, RoomWatch,
};

use crate::clock::NodeClock;
use crate::data::old_row;
use crate::plan::Plan;

/// Below so much a disk is short of room, and out of it. Writes that are larger than what is left
/// meet a full disk nevertheless.
const FLOORS: RoomFloors = RoomFloors { short: 128 << 10, out: 32 << 10 };

/// See the [module's page](self).
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) clock: Arc<NodeClock>,
    pub(crate) process: Option<Replicas>,
    /// Which life of the process: what was meant for an earlier one does not reach it.
    pub(crate) life: u64,
    /// The process stands still until then.
    pub(crate) paused_until: u64,
    /// What the process has seen of it last.
    pub(crate) room: Room,
    watch: RoomWatch,
    /// Bytes that the disk takes; 0: as many as there are.
    capacity: u64,
    fs: MemFs,
    tasks: Arc<SeededTasks>,
    random: Random,
}

impl Node {
    pub(crate) fn new(id: NodeId, world: Arc<AtomicU64>, mut random: Random) -> Node {
        let fs = MemFs::new();
        Node {
            id,
            clock: Arc::new(NodeClock::new(world)),
            process: None,
            life: 0,
            paused_until: 0,
            room: Room::Enough,
            watch: watch(&fs),
            capacity: 0,
            fs,
            tasks: Arc::new(SeededTasks::new(random.next_u64())),
            random,
        }
    }

    /// The node is alone, long before anything else, and gets some rows; others were there and are
    /// erased. Each as old as its number says.
    pub(crate) fn live_alone(&mut self, rows: u64, micros: u64) {
        let options = Options { ballast_size: 0, clock: self.clock.clone(), ..Options::default() };
        let fs = Arc::new(self.fs.clone());
        let alone = Db::open(fs, Path::new("/node/store"), options).expect("the disk works");
        for number in 0..rows {
            let (key, value) = old_row(number);
            let mut batch = Batch::at(CommitTs(Hlc::from_micros(micros + 2 * number)));
            batch.put(&key, &value);
            batch.put(&old_row(number + rows).0, &value);
            alone.write(batch, Durability::Sync).expect("the disk works");
        }
        let mut batch = Batch::at(CommitTs(Hlc::from_micros(micros + 2 * rows)));
        batch.delete_span(&old_row(rows).0, &old_row(2 * rows).0);
        alone.write(batch, Durability::Sync).expect("the disk works");
        alone.close().expect("the disk works");
    }

    /// Starts the process on what is on the disk.
    pub(crate) fn start(&mut self, plan: &Plan, range: &RangeDescriptor) -> Result<()> {
        self.life += 1;
        self.tasks = Arc::new(SeededTasks::new(self.random.next_u64()));
        let store = Options {
            memtable_size: plan.disk.memtable_size,
            wal_segment_size: 32 << 10,
            target_sst_size: 32 << 10,
            codec: Codec::None,
            bottom_codec: Codec::None,
            block_cache_size: 1 << 20,
            ballast_size: 0,
            read_triggered: false,
            compaction_slots: 1,
            tasks: Some(self.tasks.clone()),
            clock: self.clock.clone(),
            ..Options::default()
        };
        let log = RaftLogOptions {
            segment_size: 16 << 10,
            clock: self.clock.clone(),
            ..RaftLogOptions::default()
        };
        let env = NodeEnv {
            fs: Arc::new(self.fs.clone()),
            clock: self.clock.clone(),
            random: Random::seeded(self.random.next_u64()),
            store_dir: None,
            store,
            log,
            row_form: None,
            split_points: crate::data::split_points,
        };
        let options = NodeOptions {
            group: GroupOptions {
                kept_bytes: plan.log.kept_bytes,
                max_log_bytes: plan.log.max_bytes,
                ..GroupOptions::default()
            },
            lease_micros: plan.leases.micros,
            max_clock_offset_micros: plan.clocks.offset_micros,
            outcome_window_micros: 600_000_000,
            cut_after_entries: plan.log.cut_after,
            spread_ticks: plan.leases.spread.then_some(7),
            quiet_ticks: plan.leases.quiet_ticks,
            max_range_bytes: plan.disk.max_range_bytes,
            gc_window_micros: plan.gc_window_micros,
            dead_after_ticks: plan.spares.map_or(u64::MAX, |(_, dead_after)| dead_after),
            ..NodeOptions::new(self.id)
        };
        (self.watch, self.room) = (watch(&self.fs), Room::Enough);
        let founders = if self.id.0 <= plan.nodes { std::slice::from_ref(range) } else { &[] };
        let opened = Replicas::open(env, Path::new("/node"), options, founders);
        self.process = Some(opened?);
        Ok(())
    }

    /// The power fails. What is on the disk afterwards is what may be.
    pub(crate) fn crash(&mut self, survives: u8) {
        let Some(process) = self.process.take() else { return };
        let policy = match survives {
            0 => CrashPolicy::LoseAll,
            100 => CrashPolicy::KeepAll,
            percent => CrashPolicy::Random(percent),
        };
        let after = self.fs.crash_clone(&mut self.random, policy);
        self.tasks.clear();
        // What the process does while it is taken down goes to a disk that nobody reads again.
        drop(process);
        self.exchange_disk(after);
        self.paused_until = 0;
        self.life += 1;
    }

    /// A power failure that takes place after some more changes of the disk.
    pub(crate) fn arm_crash(&mut self, changes: u64, survives: u8) {
        let random = Random::seeded(self.random.next_u64());
        self.fs.arm_crash(changes, random, CrashPolicy::Random(survives.clamp(10, 90)));
    }

    /// The power will not fail.
    pub(crate) fn disarm(&mut self) {
        self.fs.disarm_crash();
    }

    /// Whether an armed power failure has happened: then the process is gone.
    pub(crate) fn has_crashed(&mut self) -> bool {
        let Some(after) = self.fs.take_crash() else { return false };
        self.tasks.clear();
        drop(self.process.take());
        self.exchange_disk(after);
        self.life += 1;
        true
    }

    fn exchange_disk(&mut self, disk: MemFs) {
        disk.set_capacity(self.capacity);
        self.fs = disk;
    }

    /// From now on the disk takes so many bytes more, and no others.
    pub(crate) fn fill(&mut self, spare: u64) {
        self.capacity = self.fs.used() + spare;
        self.fs.set_capacity(self.capacity);
    }

    /// The disk takes whatever comes.
    pub(crate) fn grow(&mut self) {
        self.capacity = 0;
        self.fs.set_capacity(0);
    }

    /// The process looks at its disk; whether it goes on. As the thread does that drives replicas.
    pub(crate) fn look_at_room(&mut self) -> bool {
        let room = self.watch.look();
        if let Some(process) = self.process.as_mut().filter(|_| room != self.room) {
            process.note_room(room);
        }
        self.room = room;
        room != Room::Out
    }

    /// Flushes and compactions get some time.
    pub(crate) fn background(&mut self) {
        if self.random.chance(1, 2) {
            self.tasks.run_one();
        }
    }
}

fn watch(fs: &MemFs) -> RoomWatch {
    RoomWatch::new(Arc::new(fs.clone()), vec!["/node".into()], FLOORS)
}
