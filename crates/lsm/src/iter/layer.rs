//! The kinds of layers a scan merges, as one type: no allocation and no virtual call per layer.

use super::run_cursor::RunCursor;
use super::source::{ReadWork, Source};
use super::stretch::Stretch;
use crate::error::Result;
use crate::key::Kind;
use crate::memtable::MemtableCursor;
use crate::range_tombstone::Cover;
use crate::structure::BarrierCursor;
use crate::versions::SstMeta;

/// A cursor over one layer.
pub(crate) enum LayerCursor {
    Memtable(MemtableCursor),
    Run(RunCursor),
    Barrier(BarrierCursor),
}

/// Calls the same method of whichever cursor it is.
macro_rules! each {
    ($self:expr, $cursor:ident => $call:expr) => {
        match $self {
            LayerCursor::Memtable($cursor) => $call,
            LayerCursor::Run($cursor) => $call,
            LayerCursor::Barrier($cursor) => $call,
        }
    };
}

impl LayerCursor {
    /// The sst the cursor is in, if it is a run's and the sst reaches over `at`.
    pub(crate) fn sst_at(&self, at: &[u8]) -> Option<&SstMeta> {
        match self {
            LayerCursor::Run(cursor) => cursor.sst_at(at),
            LayerCursor::Memtable(_) | LayerCursor::Barrier(_) => None,
        }
    }
}

impl Source for LayerCursor {
    fn seek(&mut self, to: &[u8]) -> Result<()> {
        each!(self, cursor => cursor.seek(to))
    }

    fn aim(&mut self, to: &[u8]) -> Result<()> {
        each!(self, cursor => cursor.aim(to))
    }

    fn settle_at(&mut self, to: &[u8]) -> Result<()> {
        each!(self, cursor => cursor.settle_at(to))
    }

    fn advance(&mut self) -> Result<()> {
        each!(self, cursor => cursor.advance())
    }

    fn fill(&mut self, stretch: &mut Stretch<'_>) -> Result<()> {
        each!(self, cursor => cursor.fill(stretch))
    }

    #[inline]
    fn key(&self) -> Option<&[u8]> {
        each!(self, cursor => cursor.key())
    }

    fn ts(&self) -> u64 {
        each!(self, cursor => cursor.ts())
    }

    fn kind(&self) -> Kind {
        each!(self, cursor => cursor.kind())
    }

    fn value(&self) -> &[u8] {
        each!(self, cursor => cursor.value())
    }

    fn work(&self) -> ReadWork {
        each!(self, cursor => cursor.work())
    }

    fn cover(&mut self, at: &[u8]) -> Result<Cover> {
        each!(self, cursor => cursor.cover(at))
    }

    fn pass(&mut self, at: &mut Vec<u8>, stop: &[u8]) -> Result<u64> {
        each!(self, cursor => cursor.pass(at, stop))
    }

    fn skip_hidden(&mut self, cover: &Cover) -> Result<()> {
        each!(self, cursor => cursor.skip_hidden(cover))
    }
}
