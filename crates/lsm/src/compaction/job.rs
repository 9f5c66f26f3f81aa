//! One flush or compaction: inputs, merge, drop rules, new ssts.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::drop_rules::{DropRules, clip};
use super::entry_merge::EntryMerge;
use super::output_cuts::OutputCuts;
use crate::error::{Error, Result};
use crate::inspect::{DropCounts, JobTicket};
use crate::key::KeySpan;
use crate::memtable::{Memtable, Tombstone};
use crate::sstable::{SstWriter, WRITE_SIZE, WriterOptions, sst_path};
use crate::store::Store;
use crate::versions::{LEVELS, SstFacts, SstMeta};

/// What to merge, and where the result goes.
pub(crate) struct Job {
    /// Newest first.
    pub(crate) memtables: Vec<Arc<Memtable>>,
    /// Newest first; each with its ssts in key order.
    pub(crate) runs: Vec<Vec<Arc<SstMeta>>>,
    pub(crate) output_level: usize,
    /// Where outputs end.
    pub(crate) cuts: OutputCuts,
    /// Durable gc threshold.
    pub(crate) gc: u64,
    /// Bounds of all ssts below the output; `None`: unknown, nothing may be elided.
    pub(crate) below: Option<Vec<KeySpan>>,
    /// Ssts that are no inputs, but whose range tombstones up to `gc` drop what they cover.
    pub(crate) lenders: Vec<Arc<SstMeta>>,
}

/// What a job produced. Not live before an edit installs it.
#[derive(Default)]
pub(crate) struct JobOutput {
    pub(crate) ssts: Vec<SstFacts>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) dropped: DropCounts,
    /// Names the job in events.
    pub(crate) ticket: JobTicket,
    /// Ssts that changed their level without being rewritten.
    pub(crate) moved: u64,
}

struct Outputs<'a> {
    store: &'a Store,
    job: &'a Job,
    cuts: OutputCuts,
    tombstones: Vec<Tombstone>,
    arrival: (u64, u64),
    writer: Option<(u64, SstWriter)>,
    /// Where the current output begins; `None`: at the start of the key space.
    low: Option<Vec<u8>>,
    done: JobOutput,
    created: Vec<PathBuf>,
}

impl Job {
    /// Runs the job. If it fails, its files are removed again.
    pub(crate) fn run(&self, store: &Store) -> Result<JobOutput> {
        let tombstones = self.tombstones(store)?;
        let below = self.below.clone().unwrap_or_else(|| vec![KeySpan::all()]);
        let mut rules = DropRules::new(self.gc, &tombstones, below);
        rules.borrow(&self.lent(store)?);
        let mut outputs = Outputs {
            store,
            job: self,
            cuts: self.cuts.clone(),
            tombstones: rules.surviving(&tombstones),
            arrival: self.arrival(),
            writer: None,
            low: None,
            done: JobOutput::default(),
            created: Vec::new(),
        };
        let result = self.merge(store, &mut rules, &mut outputs);
        if let Err(error) = result {
            drop(outputs.writer.take());
            for path in &outputs.created {
                if let Err(error) = store.env.fs.remove(path) {
                    tracing::warn!(path = %path.display(), %error, "cannot remove unfinished sst");
                }
            }
            return Err(error);
        }
        let gone = tombstones.len().saturating_sub(outputs.tombstones.len()) as u64;
        outputs.done.dropped = DropCounts { tombstones: gone, ..rules.dropped };
        outputs.done.bytes_in = self.runs.iter().flatten().map(|sst| sst.size).sum();
        if !outputs.done.ssts.is_empty() {
            // The names must be durable before the manifest refers to them.
            store.env.fs.sync_dir(&store.env.dir).map_err(|error| {
                Error::io(format!("syncing {}", store.env.dir.display()), &error)
            })?;
        }
        Ok(outputs.done)
    }

    fn merge(&self, store: &Store, rules: &mut DropRules, outputs: &mut Outputs<'_>) -> Result<()> {
        let mut merge = EntryMerge::open(&store.env, &self.memtables, self.runs.clone())?;
        let mut visited = 0u64;
        while let Some(key) = merge.key() {
            visited += 1;
            if visited.is_multiple_of(1024) && store.closed.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            if rules.keeps(key, merge.ts(), merge.kind()) {
                outputs.add(key, &merge)?;
            }
            merge.advance()?;
        }
        outputs.pass_splits(None)?;
        outputs.finish(None)
    }

    /// Range tombstones of other ssts.
    fn lent(&self, store: &Store) -> Result<Vec<Tombstone>> {
        let mut lent = Vec::new();
        for sst in &self.lenders {
            let inside = sst.tombstones_inside(&store.env)?;
            lent.extend(inside.into_iter().filter(|tombstone| tombstone.ts <= self.gc));
        }
        Ok(lent)
    }

    fn tombstones(&self, store: &Store) -> Result<Vec<Tombstone>> {
        let mut all = Vec::new();
        for memtable in &self.memtables {
            all.extend(memtable.tombstones());
        }
        for sst in self.runs.iter().flatten().filter(|sst| sst.tombstones > 0) {
            all.extend(sst.tombstones_inside(&store.env)?);
        }
        Ok(all)
    }

    fn arrival(&self) -> (u64, u64) {
        let mut arrival = (u64::MAX, 0);
        for memtable in &self.memtables {
            arrival = (arrival.0.min(memtable.arrival), arrival.1.max(memtable.arrival));
        }
        for sst in self.runs.iter().flatten() {
            arrival = (arrival.0.min(sst.arrival_low), arrival.1.max(sst.arrival_high));
        }
        arrival
    }
}

impl Outputs<'_> {
    fn add(&mut self, key: &[u8], merge: &EntryMerge) -> Result<()> {
        self.pass_splits(Some(key))?;
        // A key never straddles two ssts.
        let output = self.writer.as_ref().map(|(_, writer)| (writer.last_key(), writer.size()));
        if output.is_none_or(|(last, _)| last != key) && self.cuts.ends_before(output, key) {
            self.finish(Some(key))?;
        }
        let writer = self.writer()?;
        writer.add(key, merge.ts(), merge.kind(), merge.value())
    }

    /// Ends outputs at the split keys up to `key` (`None`: at all that are left).
    fn pass_splits(&mut self, key: Option<&[u8]>) -> Result<()> {
        while let Some(split) = self.cuts.split_before(key) {
            self.finish(Some(&split))?;
            self.cuts.begin();
        }
        Ok(())
    }

    fn writer(&mut self) -> Result<&mut SstWriter> {
        if self.writer.is_none() {
            let store = self.store;
            let file_no = store.next_file.fetch_add(1, Ordering::AcqRel);
            let path = sst_path(&store.env.dir, file_no);
            let bottom = self.job.output_level == LEVELS - 1;
            let options = WriterOptions {
                block_size: store.options.block_size,
                index_partition_size: store.options.index_partition_size,
                filter_bits_per_key: store.options.filter_bits_per_key,
                codec: if bottom { store.options.bottom_codec } else { store.options.codec },
                row_class: store.options.row_class,
                write_size: WRITE_SIZE,
            };
            self.created.push(path.clone());
            let writer = SstWriter::create(&*store.env.fs, path, file_no, options)?;
            self.writer = Some((file_no, writer));
        }
        Ok(&mut self.writer.as_mut().expect("just set").1)
    }

    /// Ends the current output in front of `next` (`None`: at the end of the key space).
    fn finish(&mut self, next: Option<&[u8]>) -> Result<()> {
        let tombstones = clip(&self.tombstones, self.low.as_deref(), next);
        self.low = next.map(<[u8]>::to_vec);
        if self.writer.is_none() && tombstones.is_empty() {
            return Ok(());
        }
        self.writer()?;
        let (file_no, writer) = self.writer.take().expect("just made sure");
        let (properties, size) = writer.finish(&tombstones, self.arrival)?;
        self.done.bytes_out += size;
        let facts = SstFacts::of(file_no, self.job.output_level, size, &properties);
        self.done.ssts.push(facts);
        Ok(())
    }
}
