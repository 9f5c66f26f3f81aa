//! How a table's load keeps its rows until the end, is filled side by side, and goes on later.
//!
//! - *One pass*: full buffers become finished ssts, which are merged in the end where they overlap:
//!   good for rows in key order.
//! - *Two passes*: a sample cuts the key space, and rows go to files of its parts: good for rows in
//!   any order that are many times the memory.
//! - *Auto*: ssts or sorted runs, by the order in which the rows, and each index's entries, come.

use braid_catalog::kv_error;
use braid_kv::{BulkLoad, SavedLoad, SpillAs, Spilled, Ways, even_cuts};
use braid_rows::Row;

use braid_types::SqlResult;

use super::table_load::{TableLoad, Written};
use super::writer::TableInfo;

/// How rows are kept until the end of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Full buffers become ssts.
    OnePass,
    /// A sample comes first.
    TwoPass,
    /// By the order that is seen.
    #[default]
    Auto,
}

impl Mode {
    /// By the name that statements use.
    pub(crate) fn named(name: &str) -> Option<Mode> {
        Some(match name {
            "one_pass" => Mode::OnePass,
            "two_pass" => Mode::TwoPass,
            "auto" => Mode::Auto,
            _ => return None,
        })
    }

    /// The name that statements use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::OnePass => "one_pass",
            Mode::TwoPass => "two_pass",
            Mode::Auto => "auto",
        }
    }
}

/// What full buffers of a target became, and why, in words.
pub(crate) fn told(target: &str, ways: Ways) -> String {
    let Ways { ssts, runs, changes, ordered, among } = ways;
    let kept = match (ssts, runs) {
        (_, 0) => format!("finished ssts, as one_pass does, from {ssts} buffers"),
        (0, _) => format!("sorted runs from {runs} buffers"),
        _ => format!("finished ssts from {ssts} buffers and sorted runs from {runs}"),
    };
    let changed = match changes {
        0 => String::new(),
        1 => ", and changed its mind once".into(),
        n => format!(", and changed its mind {n} times"),
    };
    let ordered = ordered.unwrap_or_default();
    let rest = match ssts + runs {
        1 => String::new(),
        _ => format!(", up to {among} % of a later one lay among those before it"),
    };
    format!(
        "auto made {kept} of {target}{changed}: {ordered} % of the first buffer came in order{rest}"
    )
}

impl TableLoad {
    /// Says how rows are kept, before the first one.
    pub(crate) fn keep_as(&mut self, mode: Mode) {
        let spill = match mode {
            Mode::OnePass => SpillAs::Ssts,
            Mode::Auto => SpillAs::Observed,
            Mode::TwoPass => SpillAs::Runs,
        };
        for (target, occupied) in self.occupied.iter().enumerate() {
            // Where something is stored, every row is looked at in the end.
            self.load.spill_as(target, if *occupied { SpillAs::Runs } else { spill });
            if *occupied {
                self.load.look_at_all(target);
            }
        }
    }

    /// Its files stay until those of the job are swept.
    pub(crate) fn for_job(&mut self, job: u32) {
        self.load.for_job(job);
    }

    /// Rows are put into parts between these keys.
    pub(crate) fn cut_at(&mut self, cuts: Vec<Vec<u8>>) {
        self.load.cut_at(cuts);
    }

    /// As many loads like this one, with its memory: this one is the first.
    pub(crate) fn side_by_side(mut self, count: usize) -> Vec<TableLoad> {
        self.load.share_memory(count);
        let sibling = |_| TableLoad {
            ctx: self.ctx.clone(),
            info: self.info.clone(),
            load: self.load.sibling(),
            private: self.private,
            occupied: self.occupied.clone(),
            found: vec![None; self.found.len()],
            written: Written::default(),
        };
        let mut all: Vec<TableLoad> = (1..count).map(sibling).collect();
        all.insert(0, self);
        all
    }

    /// Takes over what a load beside it has.
    pub(crate) fn absorb(&mut self, other: TableLoad) {
        self.written.add(other.written);
        self.load.absorb(other.load);
    }

    /// Brings everything to the disk, for another process.
    pub(crate) fn save(&mut self) -> SqlResult<SavedLoad> {
        self.load.save().map_err(kv_error)
    }

    /// Takes up what another process has saved.
    pub(crate) fn restore(&mut self, saved: &SavedLoad, written: Written) -> SqlResult<()> {
        self.load.restore(saved).map_err(kv_error)?;
        self.written.add(written);
        Ok(())
    }

    /// Brings what is in memory to the disk: others need it.
    pub(crate) fn relieve(&mut self) -> SqlResult<()> {
        self.load.relieve().map_err(kv_error)
    }

    /// What lies on disk.
    pub(crate) fn spilled(&self) -> Spilled {
        self.load.spilled()
    }

    /// Of the rows and of each index of which a buffer was full: what such buffers became.
    pub(crate) fn ways(&self) -> Vec<(String, Ways)> {
        let layout = &self.info.layout;
        let indexes = layout.kept_indexes().chain(layout.notes());
        let indexes = indexes.map(|i| format!("entries of \"{}\"", i.index.name));
        let targets = std::iter::once("rows".to_string()).chain(indexes);
        targets.zip(self.load.ways()).filter(|(_, ways)| ways.ssts + ways.runs > 0).collect()
    }
}

impl Written {
    pub(crate) fn add(&mut self, other: Written) {
        self.rows += other.rows;
        self.entries += other.entries;
        self.bytes += other.bytes;
    }
}

/// So many keys are kept of a sample.
const SAMPLED: usize = 1 << 14;
/// Fewer where there is little memory: each takes about so many bytes of it.
const SAMPLED_BYTES: usize = 128;
/// Of the memory, so much is for a sample.
const SAMPLE_PART: usize = 8;
/// Parts are this part of a load's memory: samples are not exact.
const PART_OF_MEMORY: usize = 2;
/// What a row takes in memory besides its bytes.
const ROW_HEAD: u64 = 32;

/// Keys of some rows, to cut the key space by.
pub(crate) struct Sample {
    memory: usize,
    /// So many keys are kept.
    most: usize,
    /// With the bytes of their rows or entries.
    keys: Vec<(Vec<u8>, u64)>,
    seen: u64,
    /// Every row of so many counts, as a power of two.
    power: u32,
}

impl Sample {
    /// Of a load with so much memory.
    pub(crate) fn new(memory: usize) -> Sample {
        let most = (memory / SAMPLE_PART / SAMPLED_BYTES).min(SAMPLED);
        Sample { memory, most, keys: Vec::new(), seen: 0, power: 0 }
    }

    /// Looks at a row. One whose keys cannot be made is no error: not yet.
    pub(crate) fn add(&mut self, info: &TableInfo, row: &Row) {
        self.seen += 1;
        if !self.seen.is_multiple_of(1 << self.power) {
            return;
        }
        let layout = &info.layout;
        let Ok(key) = layout.row_key(row) else { return };
        let size = (key.len() + layout.row_value(row).len()) as u64;
        self.keys.push((key, size + ROW_HEAD));
        for i in layout.kept_indexes().chain(layout.notes()) {
            if let Ok(Some(key)) = i.entry_key(row) {
                let size = (key.len() + layout.entry_value(i, row).len()) as u64;
                self.keys.push((key, size + ROW_HEAD));
            }
        }
        if self.keys.len() > self.most {
            let targets = 1 + layout.kept_indexes().chain(layout.notes()).count();
            let mut n = 0;
            // Whole rows, so that all targets keep their weight.
            self.keys.retain(|_| {
                n += 1;
                ((n - 1) / targets).is_multiple_of(2)
            });
            self.power += 1;
        }
    }

    /// Keys that cut all rows into parts that fit into the memory; none if they do whole. Rows of
    /// so many targets are put by as many loads side by side.
    pub(crate) fn cuts(self, targets: usize, loads: usize) -> Vec<Vec<u8>> {
        let bytes = self.keys.iter().map(|(_, size)| size).sum::<u64>() << self.power;
        let part = (self.memory / PART_OF_MEMORY).max(1) as u64;
        let most = BulkLoad::parts_max(self.memory / loads.max(1), targets);
        let parts = usize::try_from(bytes.div_ceil(part)).unwrap_or(most);
        even_cuts(self.keys, parts.min(most), 1)
    }
}
