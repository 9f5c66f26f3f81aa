//! A full buffer that became finished ssts at once, and how those are read where they must be
//! merged after all.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_lsm::{CommitTs, KeySpan, SstBuilder, SstRowReader};

use super::buffer::Buffer;
use super::desk::Desk;
use super::folder::BulkFolder;
use super::merge::Part;
use crate::error::{KvError, KvResult};

/// Size at which an sst of a buffer ends, in bytes: where two overlap, no more than this is merged.
const PIECE_BYTES: u64 = 16 << 20;
/// Of rows that are only nearly in order, this part at both ends of a buffer becomes an sst of its
/// own: the neighbours overlap there, and the rest is not merged.
const EDGE: usize = 16;

/// A finished sst of a load. Its file goes with it, unless it shall stay.
pub(crate) struct Sst {
    folder: Arc<BulkFolder>,
    stays: Arc<AtomicBool>,
    pub(super) path: PathBuf,
    /// Every key of it lies in here.
    pub(super) span: KeySpan,
    pub(super) bytes: u64,
    /// Its longest row.
    row_max: usize,
    /// A note knows of it: it stays, as long as the job may go on.
    noted: bool,
}

/// Of a long row, there are so many copies while it is written: in its block, the block whole,
/// compressed, and what goes to the disk.
pub(super) const ROW_COPIES: usize = 4;

impl Sst {
    /// Writes a sorted buffer without equal keys.
    pub(super) fn of_buffer(
        folder: &Arc<BulkFolder>,
        (job, stays): (Option<u32>, &Arc<AtomicBool>),
        buffer: &Buffer,
        desk: &mut Desk,
    ) -> KvResult<Vec<Sst>> {
        let mut out = Vec::new();
        let mut open: Option<Open> = None;
        let edge = if buffer.came_in_order() { 0 } else { buffer.len().div_ceil(EDGE) };
        let ends = [edge, buffer.len() - edge];
        for (n, (key, value)) in buffer.rows(0..buffer.len()).enumerate() {
            if n > 0
                && ends.contains(&n)
                && let Some(open) = open.take()
            {
                out.push(open.finish(stays)?);
            }
            let writing = match &mut open {
                Some(open) => open,
                None => open.insert(Open::begin(folder, job, desk)?),
            };
            let builder = writing.builder.as_mut().expect("it was not finished");
            let row = key.len() + value.len();
            desk.need(builder.memory() + row * ROW_COPIES)?;
            builder.put(key, value).map_err(KvError::from)?;
            writing.row_max = writing.row_max.max(row);
            if builder.size() >= PIECE_BYTES || builder.memory() >= desk.share() {
                out.push(open.take().expect("just written to").finish(stays)?);
                desk.settle();
            }
        }
        if let Some(last) = open {
            out.push(last.finish(stays)?);
        }
        Ok(out)
    }

    /// One of an earlier process.
    pub(super) fn again(
        folder: &Arc<BulkFolder>,
        stays: &Arc<AtomicBool>,
        path: PathBuf,
        (span, bytes): (KeySpan, u64),
    ) -> KvResult<Sst> {
        let file = folder.fs.open(&path).and_then(|file| file.len());
        let found = file.map_err(|error| super::io_error(&path, &error))?;
        if found != bytes {
            let reason = format!("it has {found} bytes instead of {bytes}");
            return Err(braid_lsm::Error::Corruption { file: path, offset: found, reason }.into());
        }
        let (folder, stays) = (folder.clone(), stays.clone());
        let row_max = PIECE_BYTES.min(bytes) as usize / ROW_COPIES;
        Ok(Sst { folder, stays, path, span, bytes, row_max, noted: true })
    }

    /// A note will know of it, which is durable.
    pub(super) fn keep(&mut self) {
        self.noted = true;
    }

    /// Its rows lie elsewhere now: its file goes, unless a note knows of it.
    pub(super) fn discard(self) -> KvResult<()> {
        if self.noted || !self.stays.load(Ordering::SeqCst) {
            // Dropping it does, if that is to be.
            return Ok(());
        }
        let removed = self.folder.fs.remove(&self.path);
        removed.map_err(|error| super::io_error(&self.path, &error))
    }

    /// Bytes of memory that reading it takes: a block as it lies there, and as it is read.
    pub(super) fn reading(&self) -> usize {
        SstRowReader::MEMORY + 2 * self.row_max
    }

    /// Its rows in a part; `None` if there are none.
    pub(super) fn reader(&self, part: &Part) -> KvResult<Option<SstRowReader>> {
        let outside = part.from.as_deref().is_some_and(|from| from >= &self.span.end[..])
            || part.to.as_deref().is_some_and(|to| to <= &self.span.start[..]);
        if outside {
            return Ok(None);
        }
        let (from, to) = (part.from.as_deref(), part.to.as_deref());
        let reader = SstRowReader::open(&*self.folder.fs, &self.path, from, to);
        Ok(Some(reader.map_err(KvError::from)?))
    }
}

impl Drop for Sst {
    fn drop(&mut self) {
        if self.stays.load(Ordering::SeqCst) {
            return;
        }
        if let Err(error) = self.folder.fs.remove(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove an sst of a load");
        }
    }
}

/// An sst being written; what is cut off in the middle is removed.
struct Open {
    folder: Arc<BulkFolder>,
    path: PathBuf,
    builder: Option<SstBuilder>,
    row_max: usize,
}

impl Open {
    fn begin(folder: &Arc<BulkFolder>, job: Option<u32>, desk: &Desk) -> KvResult<Open> {
        let path = folder.new_path(job, "sst")?;
        let builder = SstBuilder::create(&folder.fs, &path, CommitTs(1), &folder.options);
        let mut builder = builder.map_err(KvError::from)?;
        builder.write_at_once(desk.write_size());
        Ok(Open { folder: folder.clone(), path, builder: Some(builder), row_max: 0 })
    }

    fn finish(mut self, stays: &Arc<AtomicBool>) -> KvResult<Sst> {
        let builder = self.builder.take().expect("it is finished once");
        let finished = builder.finish();
        let (folder, path) = (self.folder.clone(), self.path.clone());
        let file = match finished {
            Ok(file) => file,
            Err(e) => {
                let _reported_by_e = folder.fs.remove(&path);
                return Err(e.into());
            }
        };
        let (stays, row_max, noted) = (stays.clone(), self.row_max, false);
        Ok(Sst { folder, stays, path, span: file.span, bytes: file.bytes, row_max, noted })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.builder.take().is_some()
            && let Err(error) = self.folder.fs.remove(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove an sst of a load");
        }
    }
}
