//! Memory of what is being written: ssts and runs.

use std::sync::Arc;

use braid_env::memory::{Account, Held};

use crate::error::KvResult;

/// See the [module documentation](self).
pub(super) struct Desk {
    held: Held,
    share: usize,
    /// The account has a limit of its own, which is kept.
    strict: bool,
}

impl Desk {
    /// Ssts have that many bytes at least, or more: less makes more files than anybody wants.
    pub(super) const MIN: usize = 192 << 10;
    /// With this, an sst has as many rows as anybody wants.
    pub(super) const MAX: usize = 12 << 20;

    /// A desk of about so many bytes: where the node is short of memory, of fewer.
    pub(super) fn new(account: &Arc<Account>, share: usize) -> Desk {
        let (mut held, mut share) = (account.hold("files of a load that are written"), share);
        while held.grow(share).is_err() && share > Desk::MIN {
            share = (share / 2).max(Desk::MIN);
        }
        Desk { held, share, strict: account.limit() < usize::MAX }
    }

    /// What a file may take before it ends.
    pub(super) fn share(&self) -> usize {
        self.share
    }

    /// What is written at once.
    pub(super) fn write_size(&self) -> usize {
        self.share / 6
    }

    /// A long row needs so much.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn need(&mut self, bytes: usize) -> KvResult<()> {
        if bytes > self.share && bytes > self.held.bytes() {
            let grown = self.held.resize(bytes);
            if self.strict {
                grown?;
            }
        }
        Ok(())
    }

    /// Gives back what a long row has needed.
    pub(super) fn settle(&mut self) {
        let more = self.held.bytes().saturating_sub(self.share);
        self.held.shrink(more);
    }
}
