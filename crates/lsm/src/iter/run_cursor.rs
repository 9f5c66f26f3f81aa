//! One run: disjoint ssts in key order, opened when the read gets there.
//!
//! A virtual sst is a part of its file: its cursor walks the file, and this one stops it at the
//! sst's bounds.

use std::sync::Arc;

use bytes::Bytes;

use super::{ScanOptions, Source};
use crate::error::Result;
use crate::key::{KeySpan, Kind};
use crate::range_tombstone::Cover;
use crate::sstable::SstCursor;
use crate::versions::{SstEnv, SstMeta};
use crate::view::ReadCounters;

/// A cursor over a run.
pub(crate) struct RunCursor {
    env: Arc<SstEnv>,
    files: Vec<Arc<SstMeta>>,
    span: KeySpan,
    read_ts: u64,
    options: ScanOptions,
    counters: Arc<ReadCounters>,
    /// The file the cursor is in.
    at: usize,
    cursor: Option<SstCursor>,
}

impl RunCursor {
    /// `files`: the ssts of the run that overlap `span`, in key order.
    pub(crate) fn new(
        env: Arc<SstEnv>,
        files: Vec<Arc<SstMeta>>,
        span: KeySpan,
        read_ts: u64,
        options: ScanOptions,
        counters: Arc<ReadCounters>,
    ) -> RunCursor {
        RunCursor { env, files, span, read_ts, options, counters, at: 0, cursor: None }
    }

    fn enter(&mut self, at: usize, to: &[u8]) -> Result<()> {
        let bounds = self.files[at].bounds();
        let to = if self.options.reverse {
            to.min(bounds.end.as_ref())
        } else {
            to.max(bounds.start.as_ref())
        };
        if self.cursor.is_none() || self.at != at {
            let reader = self.files[at].reader(&self.env)?;
            self.at = at;
            self.cursor = Some(SstCursor::new(
                reader,
                self.read_ts,
                self.options.reverse,
                self.options.classes,
                self.options.fill_cache,
                self.counters.clone(),
            ));
        }
        self.cursor.as_mut().expect("just set").seek(to)
    }

    /// Whether the cursor of the current file stands behind the file's part of the run.
    fn has_left_its_file(&self, cursor: &SstCursor) -> bool {
        let file = &self.files[self.at];
        cursor.key().is_none_or(|key| file.is_virtual() && !file.bounds().contains(key))
    }

    /// While the current file has nothing, goes on to its neighbours in the span.
    fn settle(&mut self) -> Result<()> {
        while self.cursor.as_ref().is_some_and(|cursor| self.has_left_its_file(cursor)) {
            let next =
                if self.options.reverse { self.at.checked_sub(1) } else { Some(self.at + 1) };
            let Some(next) = next.filter(|next| *next < self.files.len()) else {
                self.cursor = None;
                return Ok(());
            };
            let bounds = self.files[next].bounds();
            let to = if self.options.reverse {
                bounds.end.clone().min(self.span.end.clone())
            } else {
                bounds.start.clone().max(self.span.start.clone())
            };
            self.enter(next, &to)?;
        }
        Ok(())
    }

    /// Going forward: the file that holds `key` or the first one behind it. Going backward: the
    /// file that holds the keys just below `key`, or the last one before it.
    fn file_for(&self, key: &[u8]) -> Option<usize> {
        if self.options.reverse {
            self.files.partition_point(|file| file.bounds().start.as_ref() < key).checked_sub(1)
        } else {
            let at = self.files.partition_point(|file| file.bounds().end.as_ref() <= key);
            (at < self.files.len()).then_some(at)
        }
    }

    fn current(&self) -> &SstCursor {
        self.cursor.as_ref().expect("callers look at the entry only while there is one")
    }

    /// From file `at` on in the direction of the scan, the next bound of a file with tombstones.
    fn next_tombstones(&self, at: Option<usize>) -> Option<Bytes> {
        let has = |file: &&Arc<SstMeta>| file.tombstones > 0;
        if self.options.reverse {
            let below = &self.files[..at.map_or(0, |at| at + 1)];
            below.iter().rev().find(has).map(|file| file.bounds().end.clone())
        } else {
            let above = &self.files[at.unwrap_or(self.files.len())..];
            above.iter().find(has).map(|file| file.bounds().start.clone())
        }
    }
}

impl Source for RunCursor {
    fn seek(&mut self, to: &[u8]) -> Result<()> {
        match self.file_for(to) {
            Some(at) => {
                self.enter(at, to)?;
                self.settle()
            }
            None => {
                self.cursor = None;
                Ok(())
            }
        }
    }

    fn advance(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.cursor {
            cursor.advance()?;
        }
        self.settle()
    }

    fn key(&self) -> Option<&[u8]> {
        self.cursor.as_ref().and_then(|cursor| cursor.key())
    }

    fn ts(&self) -> u64 {
        self.current().ts()
    }

    fn kind(&self) -> Kind {
        self.current().kind()
    }

    fn value(&self) -> &[u8] {
        self.current().value()
    }

    fn cover(&mut self, at: &[u8]) -> Result<Cover> {
        let none = |until| Cover { ts: 0, until, clean: false };
        let Some(i) = self.file_for(at) else { return Ok(none(None)) };
        let file = &self.files[i];
        let bounds = file.bounds();
        let inside = if self.options.reverse {
            at <= bounds.end.as_ref()
        } else {
            at >= bounds.start.as_ref()
        };
        if !inside || file.tombstones == 0 {
            return Ok(none(self.next_tombstones(Some(i))));
        }
        let skyline_of = file.reader(&self.env)?;
        let mut cover =
            skyline_of.skyline().cover(at, self.read_ts, u64::MAX, self.options.reverse);
        let file_ends = if self.options.reverse { &bounds.start } else { &bounds.end };
        let reaches_further = match &cover.until {
            None => true,
            Some(until) if self.options.reverse => until < file_ends,
            Some(until) => until > file_ends,
        };
        if reaches_further {
            cover.until = Some(file_ends.clone());
        }
        cover.clean = cover.ts > 0 && file.max_point_ts < cover.ts;
        Ok(cover)
    }

    fn skip_hidden(&mut self, cover: &Cover) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        // The cover belongs to one file; the cursor may stand in another one behind it.
        let key = cursor.key().map(<[u8]>::to_vec);
        let (Some(key), Some(until)) = (key, &cover.until) else { return Ok(()) };
        let behind = if self.options.reverse { key < *until } else { key >= *until };
        if behind {
            return Ok(());
        }
        cursor.skip_hidden(cover)?;
        self.settle()
    }
}
