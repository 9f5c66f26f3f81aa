//! Disjoint spans in order, in chunks that are copied when somebody else still looks at them.
//!
//! ```text
//!   chunks   [ [a,b) [d,e) .. [k,m) ]   [ [p,q) .. ]   [ .. ]      each behind an Arc
//!                                            |
//!   clone    ---------------- shares --------+-----------          one pointer
//!   insert   copies the chunk that it changes, and the list of chunks, if they are shared
//! ```
//!
//! A clone is what the map was at that moment, for as long as it is held: scans lay it over what
//! they read. An insert touches one chunk and costs the logarithm of the map, not its length; of a
//! map that is shared it copies a few thousand bytes more.

use std::sync::Arc;

use braid_lsm::KeySpan;

/// A chunk is cut in two when it has more spans than this.
const CHUNK: usize = 64;

/// See the module. Spans neither overlap nor touch.
#[derive(Clone, Default)]
pub(crate) struct SpanMap {
    chunks: Arc<Vec<Arc<Vec<KeySpan>>>>,
    len: usize,
}

impl SpanMap {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &KeySpan> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// How many spans lie in each chunk.
    #[cfg(test)]
    pub(crate) fn chunk_lengths(&self) -> Vec<usize> {
        self.chunks.iter().map(|chunk| chunk.len()).collect()
    }

    /// The span that contains `key`, if any.
    pub(crate) fn covering(&self, key: &[u8]) -> Option<&KeySpan> {
        let at = self.chunks.partition_point(|chunk| last_of(chunk).end.as_ref() <= key);
        let chunk = self.chunks.get(at)?;
        let in_chunk = chunk.partition_point(|span| span.end.as_ref() <= key);
        chunk.get(in_chunk).filter(|span| span.start.as_ref() <= key)
    }

    /// The first span that begins above `key`.
    pub(crate) fn first_above(&self, key: &[u8]) -> Option<&KeySpan> {
        let at = self.chunks.partition_point(|chunk| last_of(chunk).start.as_ref() <= key);
        let chunk = self.chunks.get(at)?;
        chunk.get(chunk.partition_point(|span| span.start.as_ref() <= key))
    }

    /// The last span that ends at or below `key`.
    pub(crate) fn last_below(&self, key: &[u8]) -> Option<&KeySpan> {
        let ended = |span: &KeySpan| span.end.as_ref() <= key;
        let at = self.chunks.partition_point(|chunk| ended(&chunk[0])).checked_sub(1)?;
        let chunk = &self.chunks[at];
        chunk.get(chunk.partition_point(ended) - 1)
    }

    /// Adds a span. Returns what stands there now, grown over all that it overlaps or touches, and
    /// those, which are gone.
    pub(crate) fn insert(&mut self, span: &KeySpan) -> (KeySpan, Vec<KeySpan>) {
        let mut grown = span.clone();
        let mut replaced = Vec::new();
        let at = self.chunks.partition_point(|chunk| last_of(chunk).end < span.start);
        let mut place = None;
        while let Some(chunk) = self.chunks.get(at) {
            let low = chunk.partition_point(|other| other.end < span.start);
            let high = chunk.partition_point(|other| other.start <= span.end);
            place.get_or_insert(low);
            if low < high {
                let is_whole = low == 0 && high == chunk.len();
                let to_the_end = high == chunk.len();
                replaced.extend(self.chunk_mut(at).drain(low..high));
                if is_whole {
                    self.list_mut().remove(at);
                    place = None;
                    continue;
                }
                if to_the_end {
                    // The next chunk may begin with more of them.
                    self.take_front(at + 1, span, &mut replaced);
                }
            }
            break;
        }
        if let (Some(first), Some(last)) = (replaced.first(), replaced.last()) {
            grown.start = grown.start.min(first.start.clone());
            grown.end = grown.end.max(last.end.clone());
        }
        self.put(at, place, grown.clone());
        self.len = self.len + 1 - replaced.len();
        (grown, replaced)
    }

    /// Takes back an insert: removes what it left, and puts back what it replaced.
    pub(crate) fn undo(&mut self, grown: &KeySpan, replaced: &[KeySpan]) {
        let at = self.chunks.partition_point(|chunk| last_of(chunk).end <= grown.start);
        let in_chunk = self.chunks[at].partition_point(|span| span.end <= grown.start);
        debug_assert!(self.chunks[at][in_chunk] == *grown, "changes are undone in their order");
        self.chunk_mut(at).remove(in_chunk);
        if self.chunks[at].is_empty() {
            self.list_mut().remove(at);
        }
        self.len -= 1;
        for span in replaced {
            self.insert(span);
        }
    }

    /// Moves spans that `span` overlaps or touches from the front of chunks from `at` on.
    fn take_front(&mut self, at: usize, span: &KeySpan, replaced: &mut Vec<KeySpan>) {
        while let Some(chunk) = self.chunks.get(at) {
            let high = chunk.partition_point(|other| other.start <= span.end);
            let is_whole = high == chunk.len();
            if is_whole {
                replaced.extend(chunk.iter().cloned());
                self.list_mut().remove(at);
                continue;
            }
            if high > 0 {
                replaced.extend(self.chunk_mut(at).drain(..high));
            }
            return;
        }
    }

    /// Puts a span into chunk `at` at `place`; without one: at the end of the chunk before it.
    fn put(&mut self, at: usize, place: Option<usize>, span: KeySpan) {
        let (at, place) = match (place, at.checked_sub(1)) {
            (Some(place), _) => (at, place),
            (None, Some(before)) => (before, self.chunks[before].len()),
            (None, None) => {
                self.list_mut().insert(0, Arc::default());
                (0, 0)
            }
        };
        let chunk = self.chunk_mut(at);
        chunk.insert(place, span);
        if chunk.len() > CHUNK {
            // Spans often come in order: the first part stays nearly full then.
            let cut = if place + 1 == chunk.len() { CHUNK - 1 } else { chunk.len() / 2 };
            let rest = chunk.split_off(cut);
            self.list_mut().insert(at + 1, Arc::new(rest));
        }
    }

    fn list_mut(&mut self) -> &mut Vec<Arc<Vec<KeySpan>>> {
        count_copy(&self.chunks);
        Arc::make_mut(&mut self.chunks)
    }

    fn chunk_mut(&mut self, at: usize) -> &mut Vec<KeySpan> {
        let list = self.list_mut();
        count_copy(&list[at]);
        Arc::make_mut(&mut list[at])
    }
}

fn last_of(chunk: &[KeySpan]) -> &KeySpan {
    chunk.last().expect("a chunk is not empty")
}

#[cfg(test)]
thread_local! {
    /// Elements of lists that were copied because somebody else looked at them.
    static COPIED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Tests count what changes copy.
fn count_copy<T>(_list: &Arc<Vec<T>>) {
    #[cfg(test)]
    if Arc::strong_count(_list) > 1 {
        COPIED.set(COPIED.get() + _list.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::random::Random;

    fn span(start: u64, end: u64) -> KeySpan {
        KeySpan::new(start.to_be_bytes().to_vec(), end.to_be_bytes().to_vec())
    }

    fn listed(map: &SpanMap) -> Vec<KeySpan> {
        assert!(map.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK));
        assert_eq!(map.iter().count(), map.len());
        map.iter().cloned().collect()
    }

    /// The plain way: a set of numbers.
    fn spans_of(numbers: &std::collections::BTreeSet<u64>) -> Vec<KeySpan> {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for number in numbers {
            match spans.last_mut().filter(|last| last.1 == *number) {
                Some(last) => last.1 += 1,
                None => spans.push((*number, number + 1)),
            }
        }
        spans.into_iter().map(|(start, end)| span(start, end)).collect()
    }

    #[test]
    fn any_order_of_inserts_and_undos_is_what_a_set_says() {
        for seed in 0..60 {
            let mut random = Random::seeded(seed);
            let width = [1, 3, 40, 400][seed as usize % 4];
            let mut map = SpanMap::default();
            let mut numbers = std::collections::BTreeSet::new();
            let mut log: Vec<(KeySpan, Vec<KeySpan>, std::collections::BTreeSet<u64>)> = Vec::new();
            let mut kept = Vec::new();
            for _ in 0..600 {
                match random.below(8) {
                    0 if !log.is_empty() => {
                        let back = random.below(log.len().min(30) as u64);
                        for _ in 0..=back {
                            let (grown, replaced, before) = log.pop().unwrap();
                            map.undo(&grown, &replaced);
                            numbers = before;
                        }
                    }
                    1 => kept.push((map.clone(), listed(&map))),
                    _ => {
                        let start = random.below(3_000);
                        let end = start + 1 + random.below(width);
                        let before = numbers.clone();
                        numbers.extend(start..end);
                        let (grown, replaced) = map.insert(&span(start, end));
                        log.push((grown, replaced, before));
                    }
                }
                let expected = spans_of(&numbers);
                assert_eq!(listed(&map), expected, "seed {seed}");
                let key = random.below(3_010);
                let found = map.covering(&key.to_be_bytes());
                assert_eq!(found.is_some(), numbers.contains(&key), "seed {seed}: {key}");
                assert!(found.is_none_or(|found| found.contains(&key.to_be_bytes())));
                let key = key.to_be_bytes();
                let above = expected.iter().find(|span| span.start.as_ref() > key.as_slice());
                assert_eq!(map.first_above(&key), above, "seed {seed}");
                let below = expected.iter().rfind(|span| span.end.as_ref() <= key.as_slice());
                assert_eq!(map.last_below(&key), below, "seed {seed}");
            }
            // Clones are what they were.
            kept.iter().for_each(|(map, before)| assert_eq!(listed(map), *before));
        }
    }

    #[test]
    fn five_thousand_spans_copy_little_even_while_scans_look_on() {
        for looked_at in [false, true] {
            let mut map = SpanMap::default();
            let mut looking = Vec::new();
            COPIED.set(0);
            for number in 0..5_000u64 {
                // In no order: a neighbour in key order comes at another time.
                map.insert(&span(number * 7_919 % 5_000 * 2, number * 7_919 % 5_000 * 2 + 1));
                if looked_at {
                    looking.push(map.clone());
                }
            }
            assert_eq!(map.len(), 5_000);
            // All of the list, each time, would be 12,500,000.
            let most = if looked_at { 5_000 * (CHUNK + 5_000 / (CHUNK / 2)) } else { 0 };
            assert!(COPIED.get() <= most, "{} copied of {most}", COPIED.get());
        }
    }
}
