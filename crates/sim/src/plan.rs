//! What a run is going to be like: a function of the seed, printed when something is wrong.

use braid_env::random::Random;

/// A promise of the world that is broken, to see whether a run notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Disks say that they have synced, and have not.
    DisksLie,
    /// Clocks differ by much more than nodes believe.
    ClocksBeyondBound,
    /// Whoever has no answer to a commit tries again under another name.
    NewNames,
    /// A client takes "ask again" for "it has happened".
    AgainIsDone,
    /// The raft log is cut at what the store has, durable or not.
    CutTooEarly,
    /// A node says that a part of a transaction is prepared, and has forgotten it.
    LostIntent,
    /// What is prepared happens before the transaction is decided.
    ResolveBeforeRecord,
    /// The anchor says that a transaction has not happened, whatever is true.
    RecordForgotten,
    /// Readers take for certain what may be older than they are.
    SkippedUncertainty,
    /// What was read may change where it is validated or prepared.
    UnguardedReads,
    /// A node answers for keys that it has given away.
    StaleDescriptor,
    /// Stores drop what is not the newest version, whoever reads.
    CollectEverything,
    /// Nodes take what was read for newer than it is, and do not see what has changed since then.
    FloorsRaised,
    /// Locks that went with their lease are taken for held.
    LocksTakenForHeld,
    /// States of ranges come without range tombstones.
    StatesWithoutTombstones,
    /// States of ranges come without what became of transactions.
    StatesWithoutOutcomes,
    /// States of ranges come without what is prepared.
    StatesWithoutPrepared,
}

/// See the [module's page](self).
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where everything comes from.
    pub seed: u64,
    /// Nodes that a cluster begins with, each with a replica: each range keeps so many.
    pub nodes: u64,
    /// Nodes join, leave, and are lost: so many may join, and one that was not heard of for so many
    /// ticks is dead. `None`: the nodes are the same for ever.
    pub spares: Option<(u64, u64)>,
    /// What clients do.
    pub clients: ClientPlan,
    /// Lists and registers.
    pub keys: u64,
    /// How messages travel.
    pub network: NetworkPlan,
    /// How disks work.
    pub disk: DiskPlan,
    /// When ranges are split.
    pub splits: SplitPlan,
    /// Microseconds between two pieces of trouble.
    pub trouble_every: u64,
    /// Kinds of trouble, by weight: crash, all crash, partition, one direction, clock jump, pause,
    /// a node alone, full disks.
    pub trouble: [u64; 8],
    /// How far clocks are apart.
    pub clocks: ClockPlan,
    /// How long they last, and where they go.
    pub leases: LeasePlan,
    /// How long entries of logs are kept.
    pub log: LogPlan,
    /// For so long versions are kept, in microseconds; `None`: for ever.
    pub gc_window_micros: Option<u64>,
    /// What is broken on purpose.
    pub sabotage: Option<Sabotage>,
}

/// How far clocks are apart.
#[derive(Debug, Clone)]
pub struct ClockPlan {
    /// Two of them differ by at most so much, and nodes know it.
    pub offset_micros: u64,
    /// Those that jump go as far as they may.
    pub far: bool,
}

/// When ranges are split.
#[derive(Debug, Clone)]
pub struct SplitPlan {
    /// Of ten pieces of trouble so many come with one.
    pub of_ten: u64,
    /// The range is split in front of everything as soon as it is served.
    pub at_first: bool,
}

/// What clients do.
#[derive(Debug, Clone)]
pub struct ClientPlan {
    /// How many work at the same time.
    pub count: usize,
    /// Their transactions are those of `kv` over a router, instead of requests to one range.
    pub over_kv: bool,
    /// Their processes are on nodes and go by schema leases, and of a thousand transactions so many
    /// change what the others go by. `None`: there is no schema.
    pub changes: Option<u64>,
    /// On each node one does nothing but look at what others go by, and one nothing but read.
    pub lookers: bool,
    /// What becomes of commits on their way.
    pub late: Option<LatePlan>,
    /// Transactions in all.
    pub transactions: u64,
    /// Of ten pieces of trouble so many come with the death of a client, if they have threads.
    pub deaths: u64,
    /// Microseconds for which a client rests between two of them, at most.
    pub rest_micros: u64,
}

/// Which commits are on their way for long.
#[derive(Debug, Clone)]
pub struct LatePlan {
    /// Of a hundred that go to another node so many are late,
    pub of_hundred: u64,
    /// by so many microseconds at most.
    pub micros: u64,
    /// Of a hundred late ones so many are the last that their process sends: its node crashes, and
    /// starts again soon.
    pub last: u64,
}

/// How messages travel while things break.
#[derive(Debug, Clone)]
pub struct NetworkPlan {
    /// Of a thousand messages so many are lost.
    pub lost: u64,
    /// Of a thousand so many are doubled.
    pub doubled: u64,
    /// Of a thousand so many take a hundred times as long.
    pub slow: u64,
    /// Microseconds that the others take at most.
    pub delay_micros: u64,
}

/// What becomes of leases.
#[derive(Debug, Clone)]
pub struct LeasePlan {
    /// Microseconds for which one lasts.
    pub micros: u64,
    /// Whether nodes give leases to others that have fewer.
    pub spread: bool,
    /// A range that nobody has asked anything for so many ticks sleeps; `None`: never.
    pub quiet_ticks: Option<u64>,
}

/// How long entries of logs are kept.
#[derive(Debug, Clone)]
pub struct LogPlan {
    /// Entries after which logs are cut.
    pub cut_after: u64,
    /// Bytes of entries that stay in memory though nobody near needs them.
    pub kept_bytes: u64,
    /// Bytes of a log that may be cut though somebody needs it: then states are sent.
    pub max_bytes: u64,
}

/// How disks work.
#[derive(Debug, Clone)]
pub struct DiskPlan {
    /// Microseconds that a sync takes at most.
    pub sync_micros: u64,
    /// Percent of unsynced changes that survive a crash.
    pub survives: u8,
    /// Bytes of the stores' memtables: with small ones stores flush all the time.
    pub memtable_size: usize,
    /// Bytes at which ranges are split.
    pub max_range_bytes: u64,
    /// The first node was alone before, and has so many rows; the others begin without replicas.
    pub grown_from: Option<u64>,
}

impl Plan {
    /// The plan of a seed.
    pub fn of_seed(seed: u64) -> Plan {
        let mut random = Random::seeded(seed);
        let calm = random.chance(1, 10);
        let mut some = |most: u64| if calm { 0 } else { random.below(most + 1) };
        let (lost, doubled, slow) = (some(100), some(100), some(20));
        let trouble = [some(10), some(2), some(6), some(6), some(4), some(4), 0, 0];
        let delay_micros = *random.pick(&[500, 5_000, 50_000]);
        let sync_micros = *random.pick(&[100, 2_000, 20_000]);
        let survives = *random.pick(&[0, 50, 100]);
        let memtable_size = *random.pick(&[8 << 10, 64 << 10, 1 << 20]);
        let max_range_bytes = *random.pick(&[1 << 10, 4 << 10, 1 << 28]);
        let mut plan = Plan {
            seed,
            nodes: if random.chance(1, 5) { 5 } else { 3 },
            spares: None,
            clients: ClientPlan {
                count: random.between(2, 8) as usize,
                over_kv: false,
                changes: None,
                lookers: false,
                late: None,
                deaths: 0,
                transactions: random.between(100, 300),
                rest_micros: *random.pick(&[1, 20_000, 500_000]),
            },
            network: NetworkPlan { lost, doubled, slow, delay_micros },
            disk: DiskPlan {
                sync_micros,
                survives,
                memtable_size,
                max_range_bytes,
                grown_from: None,
            },
            trouble_every: *random.pick(&[300_000, 1_000_000, 3_000_000]),
            trouble,
            clocks: ClockPlan {
                offset_micros: *random.pick(&[10_000, 100_000, 250_000]),
                far: false,
            },
            leases: LeasePlan {
                micros: *random.pick(&[1_000_000, 2_000_000, 4_000_000]),
                spread: seed.is_multiple_of(2),
                quiet_ticks: [Some(2), None, Some(5), Some(50)][(seed / 5) as usize % 4],
            },
            keys: random.between(2, 6),
            log: LogPlan {
                cut_after: *random.pick(&[8, 100]),
                kept_bytes: *random.pick(&[0, 1 << 10, 1 << 20]),
                max_bytes: [1 << 10, 8 << 10, 64 << 20][(seed / 3) as usize % 3],
            },
            splits: SplitPlan { of_ten: random.below(4), at_first: false },
            // About as long as clients are kept waiting by what breaks, or longer.
            gc_window_micros: [None, Some(2_000_000), Some(8_000_000)][seed as usize % 3],
            sabotage: None,
        };
        plan.clients.deaths = if calm { 0 } else { random.below(4) };
        plan
    }

    /// The same with transactions of `kv`.
    pub fn over_kv(mut self) -> Plan {
        self.clients.over_kv = true;
        // Most transactions are to have several participants.
        self.splits.of_ten = self.splits.of_ten.max(2);
        self.splits.at_first = self.seed.is_multiple_of(3);
        self
    }

    /// The same with clients on the nodes, which go by a schema that some of them change.
    pub fn over_schemas(mut self) -> Plan {
        self = self.over_kv();
        self.clients.changes = Some([40, 100, 200][(self.seed / 2) as usize % 3]);
        // They live as long as their nodes; and leases last for seconds.
        self.clients.deaths = 0;
        self.clients.rest_micros = [20_000, 300_000][self.seed as usize % 2];
        self.clients.transactions += 200;
        // Some commits are on their way for longer than a lease lives.
        self.network.slow = [10, 60][(self.seed / 3) as usize % 2];
        self.clients.count = self.clients.count.max(self.nodes as usize);
        self.splits.at_first = !self.seed.is_multiple_of(3);
        self
    }

    /// The same with commits that are on their way for longer than anything else, while processes
    /// that have sent them die and begin anew. Little else breaks: whoever serves them is there
    /// when they come.
    pub fn with_late_commits(mut self) -> Plan {
        self = self.over_schemas();
        self.alone_in_one_range();
        self.trouble = [0, 0, 0, 0, 2, 1, 0, 0];
        self.clients.late = Some(LatePlan { of_hundred: 40, micros: 6_000_000, last: 30 });
        self
    }

    /// The same with clocks as far from each other as they may be, and nodes that are alone for
    /// longer than their leases live, with somebody who looks at what he believes to be so.
    pub fn with_lonely_nodes(mut self) -> Plan {
        self = self.over_schemas();
        self.alone_in_one_range();
        (self.trouble, self.trouble_every) = ([0, 0, 0, 0, 2, 0, 1, 0], 2_000_000);
        self.clocks = ClockPlan { offset_micros: 250_000, far: true };
        (self.clients.lookers, self.clients.transactions) = (true, 3_000);
        self.clients.count = 3 * self.nodes as usize + self.clients.count % 3;
        // Whoever looks does so in the moment after somebody has waited for a lease.
        (self.clients.rest_micros, self.network.delay_micros) = (80_000, 500);
        self
    }

    /// One range has everything, and messages come soon: what transactions and changes do takes
    /// little time.
    fn alone_in_one_range(&mut self) {
        self.splits = SplitPlan { of_ten: 0, at_first: false };
        (self.disk.max_range_bytes, self.gc_window_micros) = (1 << 28, None);
        (self.disk.sync_micros, self.keys) = (2_000, 2 + self.seed % 2);
        self.network.delay_micros = self.network.delay_micros.min(5_000);
        (self.network.lost, self.network.slow) = (0, 0);
        (self.clients.changes, self.clients.rest_micros) = (Some(200), 20_000);
        self.leases.spread = false;
    }

    /// The same with nodes that join, leave, and are lost.
    pub fn moving(mut self) -> Plan {
        self.nodes = 3;
        // Some are taken for dead though they are about to come back.
        self.spares = Some((1 + self.seed % 4, [20, 60, 200][(self.seed / 4) as usize % 3]));
        self.trouble_every = self.trouble_every.min(1_000_000);
        self
    }

    /// The same with a first node that was alone before, and had rows.
    pub fn grown(mut self) -> Plan {
        self = self.moving();
        self.disk.grown_from = Some([1, 40, 400][self.seed as usize % 3]);
        self
    }

    /// The same with ranges that sleep most of the time: trouble comes while they do, and then
    /// somebody asks.
    pub fn dozing(mut self) -> Plan {
        self.leases.quiet_ticks = Some(2);
        self.clients.rest_micros = 3_000_000;
        self.clients.transactions = self.clients.transactions.min(120);
        self.splits.at_first = true;
        self.trouble_every = self.trouble_every.max(1_000_000);
        // Steps of thresholds are not to keep them awake.
        self.gc_window_micros = self.gc_window_micros.map(|_| 64_000_000);
        self
    }

    /// The same with disks that become full, of one node or of all, and get room back.
    pub fn filling(mut self) -> Plan {
        self.trouble[7] = 10;
        self.trouble_every = self.trouble_every.min(1_000_000);
        self
    }

    /// All nodes that there may ever be.
    pub fn all_nodes(&self) -> u64 {
        self.nodes + self.spares.map_or(0, |(count, _)| count)
    }

    /// The same with a broken promise. There is trouble enough for it to matter.
    pub fn sabotaged(mut self, sabotage: Sabotage) -> Plan {
        self.sabotage = Some(sabotage);
        self.gc_window_micros = None;
        if sabotage == Sabotage::ClocksBeyondBound {
            // One clock is slow for long, and nothing else is wrong.
            self.trouble = [0, 0, 0, 0, 1, 0, 0, 0];
            (self.trouble_every, self.leases.micros) = (6_000_000, 1_000_000);
            (self.network.lost, self.clients.rest_micros) = (0, 500_000);
            return self;
        }
        if matches!(
            sabotage,
            Sabotage::StatesWithoutTombstones
                | Sabotage::StatesWithoutOutcomes
                | Sabotage::StatesWithoutPrepared
        ) {
            (self.log.max_bytes, self.log.kept_bytes) = (512, 0);
            if sabotage == Sabotage::StatesWithoutPrepared {
                // Clients die with prepared parts, again and again, while nodes are away and the
                // logs that they need are cut.
                self = self.over_kv();
                (self.splits.at_first, self.clients.deaths) = (true, 8);
                (self.clients.count, self.clients.rest_micros) = (8, 1);
                self.log.cut_after = 8;
                self.trouble[0] += 20;
            }
        }
        if matches!(
            sabotage,
            Sabotage::LostIntent
                | Sabotage::ResolveBeforeRecord
                | Sabotage::RecordForgotten
                | Sabotage::SkippedUncertainty
                | Sabotage::UnguardedReads
                | Sabotage::StaleDescriptor
                | Sabotage::FloorsRaised
                | Sabotage::LocksTakenForHeld
        ) {
            self = self.over_kv();
            (self.splits.at_first, self.clients.deaths) = (true, 2);
        }
        self.disk.memtable_size = 1 << 20;
        self.trouble = self.trouble.map(|weight| weight.max(1));
        (self.trouble[6], self.trouble[7]) = (0, 0);
        self.trouble_every = self.trouble_every.min(500_000);
        self.network.lost = self.network.lost.max(20);
        self
    }
}
