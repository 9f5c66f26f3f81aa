//! Merges every version of every key from several layers: key ascending, timestamp descending;
//! where two layers hold the same key and timestamp, the upper one first.

use std::sync::Arc;

use crate::error::Result;
use crate::key::Kind;
use crate::memtable::{Memtable, NodeRef};
use crate::sstable::SstEntries;
use crate::versions::{SstEnv, SstMeta};

/// All entries of one layer.
enum Layer {
    Memtable(MemtableEntries),
    Run(RunEntries),
}

struct MemtableEntries {
    // Borrows from `table`, which is kept alive below.
    at: Option<NodeRef<'static>>,
    #[expect(dead_code, reason = "keeps the nodes alive")]
    table: Arc<Memtable>,
}

struct RunEntries {
    env: Arc<SstEnv>,
    files: std::vec::IntoIter<Arc<SstMeta>>,
    entries: Option<SstEntries>,
}

impl RunEntries {
    fn settle(&mut self) -> Result<()> {
        while self.entries.as_ref().is_none_or(|entries| entries.key().is_none()) {
            let Some(file) = self.files.next() else {
                self.entries = None;
                return Ok(());
            };
            self.entries = Some(file.entries(&self.env)?);
        }
        Ok(())
    }
}

impl Layer {
    fn key(&self) -> Option<&[u8]> {
        match self {
            Layer::Memtable(layer) => layer.at.as_ref().map(|node| node.key()),
            Layer::Run(layer) => layer.entries.as_ref().and_then(|entries| entries.key()),
        }
    }

    fn ts(&self) -> u64 {
        match self {
            Layer::Memtable(layer) => layer.at.as_ref().map_or(0, |node| node.ts()),
            Layer::Run(layer) => layer.entries.as_ref().map_or(0, |entries| entries.ts()),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Layer::Memtable(layer) => {
                layer.at = layer.at.and_then(|node| node.next());
                Ok(())
            }
            Layer::Run(layer) => {
                if let Some(entries) = &mut layer.entries {
                    entries.advance()?;
                }
                layer.settle()
            }
        }
    }
}

/// The merged entries of several layers, newest layer first.
pub(crate) struct EntryMerge {
    layers: Vec<Layer>,
    current: Option<usize>,
    /// The layer with the next entry apart from the current one's: while the current layer stays
    /// in front of it, nobody else needs to be looked at.
    runner_up: Option<usize>,
}

impl EntryMerge {
    /// `memtables` newest first, then `runs` newest first, each with its ssts in key order.
    pub(crate) fn open(
        env: &Arc<SstEnv>,
        memtables: &[Arc<Memtable>],
        runs: Vec<Vec<Arc<SstMeta>>>,
    ) -> Result<EntryMerge> {
        let mut layers = Vec::new();
        for table in memtables {
            // SAFETY: the node lives as long as its memtable, which this layer holds; only the
            // lifetime parameter changes.
            let at = unsafe {
                std::mem::transmute::<Option<NodeRef<'_>>, Option<NodeRef<'static>>>(
                    table.points().first(),
                )
            };
            layers.push(Layer::Memtable(MemtableEntries { at, table: table.clone() }));
        }
        for files in runs {
            let mut run = RunEntries { env: env.clone(), files: files.into_iter(), entries: None };
            run.settle()?;
            layers.push(Layer::Run(run));
        }
        let mut merge = EntryMerge { layers, current: None, runner_up: None };
        merge.choose();
        Ok(merge)
    }

    /// Whether the entry of layer `i` comes before that of layer `other`; none comes last.
    fn is_before(&self, i: usize, other: usize) -> bool {
        let (a, b) = (&self.layers[i], &self.layers[other]);
        match (a.key(), b.key()) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(x), Some(y)) => {
                x.cmp(y).then_with(|| b.ts().cmp(&a.ts())).then(i.cmp(&other)).is_lt()
            }
        }
    }

    fn choose(&mut self) {
        (self.current, self.runner_up) = (None, None);
        for i in 0..self.layers.len() {
            if self.layers[i].key().is_none() {
                continue;
            }
            if self.current.is_none_or(|best| self.is_before(i, best)) {
                self.runner_up = self.current.replace(i);
            } else if self.runner_up.is_none_or(|second| self.is_before(i, second)) {
                self.runner_up = Some(i);
            }
        }
    }

    pub(crate) fn advance(&mut self) -> Result<()> {
        if let Some(i) = self.current {
            self.layers[i].advance()?;
            let stays = match self.runner_up {
                Some(second) => self.is_before(i, second),
                None => self.layers[i].key().is_some(),
            };
            if !stays {
                self.choose();
            }
        }
        Ok(())
    }

    /// Key of the current entry; `None` at the end.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.current.and_then(|i| self.layers[i].key())
    }

    /// Number of the layer that holds the current entry; 0 is the newest.
    pub(crate) fn layer_number(&self) -> usize {
        self.current.unwrap_or(0)
    }

    fn layer(&self) -> &Layer {
        &self.layers[self.current.expect("callers look at the entry only while there is one")]
    }

    pub(crate) fn ts(&self) -> u64 {
        self.layer().ts()
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.layer() {
            Layer::Memtable(layer) => layer.at.as_ref().map_or(Kind::Delete, |node| node.kind()),
            Layer::Run(layer) => layer.entries.as_ref().map_or(Kind::Delete, |at| at.kind()),
        }
    }

    pub(crate) fn value(&self) -> &[u8] {
        match self.layer() {
            Layer::Memtable(layer) => layer.at.as_ref().map_or(&[], |node| node.value()),
            Layer::Run(layer) => layer.entries.as_ref().map_or(&[], |at| at.value()),
        }
    }
}
