//! Cutting ssts at a key, without any change of what they hold.
//!
//! Every sst over the key becomes two virtual ssts on one file. No answer changes; it is what an
//! excise of an empty span would do, and lets tests bring virtual ssts about anywhere.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::key::KeySpan;
use crate::store::Store;
use crate::versions::Edit;

impl Store {
    /// Cuts all ssts over `key` in two. Returns how many were cut.
    pub(crate) fn split_at(self: &Arc<Store>, key: &[u8]) -> Result<usize> {
        let here = KeySpan::new(key.to_vec(), key.to_vec());
        loop {
            let version = self.state.load().version.clone();
            let mut edit = Edit { reason: Some("split".into()), ..Edit::default() };
            let over = version.ssts().filter(|sst| {
                let bounds = sst.bounds();
                bounds.start.as_ref() < key && key < bounds.end.as_ref()
            });
            for sst in over {
                let number = || self.next_file.fetch_add(1, Ordering::AcqRel);
                let parts = sst.cut_out(&here, &self.env, number)?;
                edit.dropped.push(sst.file_no);
                edit.added.extend(parts);
            }
            let cut = edit.dropped.len();
            if cut == 0 || self.install(&edit, |_| {})? {
                return Ok(cut);
            }
        }
    }
}
