//! What can go wrong, by what the caller can do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::key::CommitTs;

/// An engine error. Each kind asks for a different reaction of the caller.
#[derive(Debug, Clone)]
pub enum Error {
    /// The device failed. If it failed during a write the store refuses all later writes: what is
    /// on disk is no longer known. Close and open it again.
    Io {
        /// What was being done, with the file's name.
        context: String,
        /// The kind of the operating system's error.
        kind: io::ErrorKind,
        /// The operating system's message.
        message: String,
    },
    /// Bytes on disk are not what was written. Nothing was returned from them.
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// A write broke the order of timestamps (contract C1 or C2). Nothing was written.
    TimestampContract {
        /// The key, or the start of the span, that was to be written.
        key: Vec<u8>,
        /// The timestamp of the write.
        write: CommitTs,
        /// The timestamp that is there already.
        have: CommitTs,
    },
    /// A read asks for a time whose history may have been removed (contract C5).
    BelowGcThreshold {
        /// The time asked for.
        read: CommitTs,
        /// The oldest time that can be read.
        threshold: CommitTs,
    },
    /// Another process (or another handle in this one) has the directory open.
    DirectoryInUse(PathBuf),
    /// The store was written by a newer version of this software.
    FormatTooNew {
        /// The file that says so.
        file: PathBuf,
        /// The version found in it.
        found: u32,
        /// The newest version this software reads.
        supported: u32,
    },
    /// No room: writes that add data are refused; reads and deletes go on.
    DiskFull,
    /// The store was closed.
    Closed,
    /// Files cannot be ingested as they are. Nothing was changed.
    InvalidIngest {
        /// What is wrong, with the file's name.
        reason: String,
    },
    /// A key, value or batch is over its limit. Nothing was written.
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
}

/// A result with an engine error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Wraps an operating system error with what was being done.
    pub(crate) fn io(context: impl Into<String>, error: &io::Error) -> Error {
        if error.kind() == io::ErrorKind::StorageFull {
            return Error::DiskFull;
        }
        Error::Io { context: context.into(), kind: error.kind(), message: error.to_string() }
    }

    pub(crate) fn corruption(
        file: impl Into<PathBuf>,
        offset: u64,
        reason: impl Into<String>,
    ) -> Error {
        Error::Corruption { file: file.into(), offset, reason: reason.into() }
    }

    /// Whether the device is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Error::DiskFull)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { context, message, .. } => write!(f, "{context}: {message}"),
            Error::Corruption { file, offset, reason } => {
                write!(f, "corruption in {} at offset {offset}: {reason}", file.display())
            }
            Error::TimestampContract { key, write, have } => write!(
                f,
                "write at {write} to \"{}\" breaks the timestamp order: {have} is there already",
                key.escape_ascii()
            ),
            Error::BelowGcThreshold { read, threshold } => {
                write!(f, "read at {read} is below the garbage collection threshold {threshold}")
            }
            Error::DirectoryInUse(path) => {
                write!(f, "directory {} is in use by another process", path.display())
            }
            Error::FormatTooNew { file, found, supported } => write!(
                f,
                "{} has format version {found}; this build reads up to version {supported}",
                file.display()
            ),
            Error::DiskFull => write!(f, "the disk is full: writes that add data are refused"),
            Error::InvalidIngest { reason } => write!(f, "cannot ingest: {reason}"),
            Error::Closed => write!(f, "the store is closed"),
            Error::TooLarge { what, size, limit } => {
                write!(f, "{what} of {size} bytes is over the limit of {limit} bytes")
            }
        }
    }
}

impl std::error::Error for Error {}
