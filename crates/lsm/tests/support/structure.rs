//! Structural operations of the random histories: ingest, excise, both at once, checkpoint.

use std::path::PathBuf;

use braid_lsm::{CommitTs, Error, IngestOptions, KeySpan, SstBuilder, check_store};

use super::options;
use super::oracle::{Call, Key, Net, Oracle, Written};
use super::workload::{Subject, collect, open_at};

/// Cuts the net effect of a batch at random keys: what one file of an ingest holds.
fn parts(net: &Net, cuts: &[Key]) -> Vec<Net> {
    let mut bounds: Vec<Key> = cuts.to_vec();
    bounds.push(Vec::new());
    bounds.push(vec![0xFF; 60]);
    bounds.sort();
    bounds.dedup();
    let mut parts = Vec::new();
    for pair in bounds.windows(2) {
        let (low, high) = (&pair[0], &pair[1]);
        let points = net.0.range(low.clone()..high.clone());
        let points = points.map(|(key, value)| (key.clone(), value.clone())).collect();
        let spans: Vec<(Key, Key)> = net
            .1
            .iter()
            .map(|(start, end)| (start.max(low).clone(), end.min(high).clone()))
            .filter(|(start, end)| start < end)
            .collect();
        let part: Net = (points, spans);
        if !part.0.is_empty() || !part.1.is_empty() {
            parts.push(part);
        }
    }
    parts
}

impl Subject {
    /// Writes the files of an ingest; `ts` is what stands in them.
    fn build(&mut self, net: &Net, ts: u64) -> Result<Vec<PathBuf>, Error> {
        let cuts: Vec<Key> = (0..self.random.below(3)).map(|_| self.key()).collect();
        let mut paths = Vec::new();
        for (points, spans) in parts(net, &cuts) {
            self.files += 1;
            let path = PathBuf::from(format!("/ingest/{}.sst", self.files));
            let options = options::set(self.set, self.tasks.clone());
            let mut builder = SstBuilder::create(&self.seen, &path, CommitTs(ts), &options)?;
            for (start, end) in &spans {
                builder.delete_span(start, end)?;
            }
            for (key, value) in &points {
                match value {
                    Some(value) => builder.put(key, value)?,
                    None => builder.delete(key)?,
                }
            }
            paths.push(builder.finish()?.path);
        }
        Ok(paths)
    }

    /// Ingests what a batch would have written, in one or several files.
    pub fn ingest(
        &mut self,
        mut written: Written,
        excise: Option<(Key, Key)>,
    ) -> Result<(), Error> {
        let net = Oracle::net(&written.calls);
        let overrides = self.random.chance(1, 2) && written.ts > 0;
        let ts = if overrides { 1 + self.random.below(50) } else { written.ts };
        if (net.0.is_empty() && net.1.is_empty()) || ts == 0 {
            return Ok(());
        }
        let paths = self.build(&net, ts)?;
        let mut allowed = self.oracle.clone();
        // Where everything is cut out it may be older than the threshold.
        let inside = excise.as_ref().is_some_and(|(start, end)| {
            net.0.keys().all(|key| start <= key && key < end)
                && net.1.iter().all(|(from, to)| start <= from && to <= end)
        });
        let gc = if inside { 0 } else { self.gc };
        if let Some((start, end)) = &excise {
            written.calls.insert(0, Call::Excise(start.clone(), end.clone()));
            allowed.cut(start, end);
        }
        let allowed = allowed.allows(&written, gc);
        let options = IngestOptions {
            ts_override: overrides.then_some(CommitTs(written.ts)),
            excise: excise.map(|(start, end)| KeySpan::new(start, end)),
        };
        match self.db.ingest(&paths, options) {
            Ok(()) => {
                assert!(allowed, "{}: ingested {written:?}", self.context);
                self.oracle.write(written);
                self.synced = self.oracle.batches();
            }
            Err(error @ Error::TimestampContract { .. }) => {
                assert!(!allowed, "{}: refused {written:?}: {error}", self.context);
            }
            Err(error) => return Err(error),
        }
        for path in paths {
            self.seen.remove(&path).unwrap();
        }
        Ok(())
    }

    pub fn excise(&mut self) -> Result<(), Error> {
        let (start, end) = self.span();
        self.db.excise(&KeySpan::new(start.clone(), end.clone()))?;
        self.oracle.write(Written { ts: self.clock, calls: vec![Call::Excise(start, end)] });
        self.synced = self.oracle.batches();
        Ok(())
    }

    /// A copy holds what the store held, and lives on when the store changes.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        self.files += 1;
        let dir = PathBuf::from(format!("/checkpoint-{}", self.files));
        self.db.checkpoint(&dir)?;
        self.synced = self.oracle.batches();
        let report = check_store(self.seen.clone(), &dir)?;
        assert!(report.problems.is_empty(), "{}: {:?}", self.context, report.problems);
        let copy = open_at(self.seen.clone(), &dir, options::set(self.set, self.tasks.clone()))?;
        let view = copy.view(CommitTs(u64::MAX - 1))?;
        let rows = collect(&mut view.scan(KeySpan::all(), Default::default())?)?;
        let expected = self.oracle.scan(b"", &[0xFF; 40], u64::MAX - 1, self.oracle.batches());
        assert_eq!(rows, expected, "{}: the checkpoint", self.context);
        drop(view);
        copy.close()?;
        drop(copy);
        for name in self.seen.list(&dir).unwrap() {
            self.seen.remove(&dir.join(name)).unwrap();
        }
        Ok(())
    }

    /// One random structural operation.
    pub fn restructure(&mut self, what: u64) -> Result<(), Error> {
        match what {
            0..=2 => {
                let written = self.random_batch();
                self.ingest(written, None)
            }
            3 => self.excise(),
            4 => {
                let written = self.random_batch();
                let span = self.span();
                self.ingest(written, Some(span))
            }
            5 => self.checkpoint(),
            _ => {
                let key = self.key();
                self.db.split_at(&key).map(|_| ())
            }
        }
    }
}
