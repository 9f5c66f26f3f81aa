//! What somebody keeps on disk for a while: pieces, put behind each other and read in any order.

use std::sync::Arc;

use bytes::Bytes;

use super::folder::BulkFolder;
use super::frame::{FRAME_HEAD, FrameFile};
use crate::error::KvResult;

/// A file of pieces, which are checked when they are read. It goes from the disk with this value,
/// or when the store is opened next.
pub struct ScratchFile(FrameFile);

impl ScratchFile {
    pub(crate) fn create(folder: &BulkFolder) -> KvResult<ScratchFile> {
        let path = folder.new_path(None, "kept")?;
        Ok(ScratchFile(FrameFile::create(folder.fs(), &Arc::default(), path)?))
    }

    /// Puts a piece behind the others; where it lies, for [`ScratchFile::read`].
    ///
    /// # Errors
    /// The disk is full, or fails; the pieces before it are as they were.
    pub fn append(&mut self, piece: &[u8]) -> KvResult<u64> {
        let mut frame = vec![0; FRAME_HEAD];
        frame.extend_from_slice(piece);
        self.0.append(&mut frame)
    }

    /// A piece. Reads the disk.
    ///
    /// # Errors
    /// The disk fails, or the piece is damaged: that names the file.
    pub fn read(&self, at: u64) -> KvResult<Bytes> {
        self.0.payload(at)
    }
}
