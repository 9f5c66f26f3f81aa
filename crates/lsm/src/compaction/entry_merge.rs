//! Merges every version of every key from several layers: key ascending, timestamp descending;
//! where two layers hold the same key and timestamp, the upper one first.

use std::cmp::Ordering;
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

/// The first sixteen bytes of a key behind what all keys have in common, as a number.
#[inline]
fn head_of(key: &[u8], skip: usize) -> u128 {
    let rest = key.get(skip..).unwrap_or_default();
    match rest.first_chunk() {
        Some(chunk) => u128::from_be_bytes(*chunk),
        None => {
            let mut padded = [0; 16];
            padded[..rest.len()].copy_from_slice(rest);
            u128::from_be_bytes(padded)
        }
    }
}

/// The merged entries of several layers, newest layer first.
///
/// A tree of losers: each inner node remembers the layer that lost there, so that moving the winner
/// on takes one comparison per step from its leaf to the root, mostly of two numbers.
///
/// ```text
///            winner: 2              layer 2 moves on: it plays 3, then 0, and whoever wins is next
///              [0]
///        [1]         [3]
///       0   1       2   3
/// ```
pub(crate) struct EntryMerge {
    layers: Vec<Layer>,
    /// Per layer: the head of its key.
    heads: Vec<u128>,
    /// Bytes that all keys have in common.
    skip: usize,
    /// Node 0 has the winner, the others the loser of their game.
    tree: Vec<usize>,
}

impl EntryMerge {
    /// `memtables` newest first, then `runs` newest first, each with its ssts in key order.
    pub(crate) fn open(
        env: &Arc<SstEnv>,
        memtables: &[Arc<Memtable>],
        runs: Vec<Vec<Arc<SstMeta>>>,
    ) -> Result<EntryMerge> {
        let skip = common_prefix(memtables, &runs);
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
        let heads = vec![0; layers.len()];
        let tree = vec![0; layers.len()];
        let mut merge = EntryMerge { layers, heads, skip, tree };
        for layer in 0..merge.layers.len() {
            merge.note_head(layer);
        }
        merge.play_all();
        Ok(merge)
    }

    #[inline]
    fn note_head(&mut self, layer: usize) {
        let head = self.layers[layer].key().map_or(u128::MAX, |key| head_of(key, self.skip));
        self.heads[layer] = head;
    }

    /// Whether the entry of layer `a` comes before that of layer `b`; layers at their end come
    /// last.
    #[inline]
    fn is_before(&self, a: usize, b: usize) -> bool {
        match self.heads[a].cmp(&self.heads[b]) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.is_before_in_full(a, b),
        }
    }

    fn is_before_in_full(&self, a: usize, b: usize) -> bool {
        let (first, second) = (&self.layers[a], &self.layers[b]);
        let (Some(key), Some(other)) = (first.key(), second.key()) else {
            return first.key().is_some() || second.key().is_none() && a < b;
        };
        match key.cmp(other) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => (second.ts(), a) < (first.ts(), b),
        }
    }

    /// Plays all games: layers enter at the leaves one by one.
    fn play_all(&mut self) {
        let count = self.layers.len();
        // Games with one player so far.
        let mut waiting: Vec<Option<usize>> = vec![None; count];
        for layer in 0..count {
            let mut player = layer;
            let mut node = (count + layer) / 2;
            while node > 0 {
                let Some(other) = waiting[node].take() else {
                    waiting[node] = Some(player);
                    break;
                };
                let (winner, loser) =
                    if self.is_before(player, other) { (player, other) } else { (other, player) };
                self.tree[node] = loser;
                player = winner;
                node /= 2;
            }
            if node == 0 {
                self.tree[0] = player;
            }
        }
    }

    /// Moves to the next entry.
    pub(crate) fn advance(&mut self) -> Result<()> {
        let Some(&moved) = self.tree.first() else { return Ok(()) };
        self.layers[moved].advance()?;
        self.note_head(moved);
        let mut player = moved;
        let mut node = (self.layers.len() + moved) / 2;
        while node > 0 {
            let other = self.tree[node];
            if self.is_before(other, player) {
                self.tree[node] = player;
                player = other;
            }
            node /= 2;
        }
        self.tree[0] = player;
        Ok(())
    }

    /// Key of the current entry; `None` at the end.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.layers.get(self.layer_number()).and_then(Layer::key)
    }

    /// Number of the layer that holds the current entry; 0 is the newest.
    pub(crate) fn layer_number(&self) -> usize {
        self.tree.first().copied().unwrap_or(0)
    }

    fn layer(&self) -> &Layer {
        &self.layers[self.tree[0]]
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

/// How many bytes all keys of the inputs begin with.
fn common_prefix(memtables: &[Arc<Memtable>], runs: &[Vec<Arc<SstMeta>>]) -> usize {
    let mut ends: Option<(Vec<u8>, Vec<u8>)> = None;
    let mut include = |first: &[u8], last: &[u8]| match &mut ends {
        None => ends = Some((first.to_vec(), last.to_vec())),
        Some((low, high)) => {
            if first < low.as_slice() {
                *low = first.to_vec();
            }
            if last > high.as_slice() {
                *high = last.to_vec();
            }
        }
    };
    for table in memtables {
        if let (Some(first), Some(last)) = (table.points().first(), table.points().last()) {
            include(first.key(), last.key());
        }
    }
    for run in runs {
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            include(&first.bounds().start, &last.bounds().end);
        }
    }
    let Some((low, high)) = ends else { return 0 };
    low.iter().zip(&high).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Kind;
    use braid_env::random::Random;

    #[test]
    fn any_number_of_layers_comes_out_in_order() {
        let env = Arc::new(SstEnv {
            fs: Arc::new(braid_env::fs::MemFs::new()),
            dir: "/".into(),
            cache: Arc::new(crate::cache::BlockCache::new(1)),
            l0_sublevels: true,
        });
        for seed in 0..60 {
            let mut random = Random::seeded(seed);
            let mut expected = Vec::new();
            let count = random.below(9) as usize;
            let tables: Vec<Arc<Memtable>> = (0..count)
                .map(|layer| {
                    let table = Memtable::new(layer as u64, 0, b"", 1 << 16);
                    for idx in 1..=random.below(30) {
                        let len = random.below(20) as usize;
                        let mut key = vec![b'k'; len];
                        key.push(b'a' + random.below(3) as u8);
                        let ts = random.between(1, 5);
                        let entry = (key.clone(), u64::MAX - ts, layer);
                        if !expected.contains(&entry) {
                            let point = (key.as_slice(), Kind::Put, &b""[..]);
                            table.insert_points(std::iter::once(point), ts, idx);
                            expected.push(entry);
                        }
                    }
                    Arc::new(table)
                })
                .collect();
            expected.sort();
            let mut merge = EntryMerge::open(&env, &tables, Vec::new()).unwrap();
            for (key, ts, layer) in expected {
                assert_eq!(merge.key(), Some(key.as_slice()), "seed {seed}");
                assert_eq!((u64::MAX - merge.ts(), merge.layer_number()), (ts, layer));
                merge.advance().unwrap();
            }
            assert_eq!(merge.key(), None, "seed {seed}");
        }
    }
}
