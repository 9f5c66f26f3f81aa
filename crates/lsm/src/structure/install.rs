//! Makes waiting operations part of the version, those that are due together in one edit.
//!
//! ```text
//!   excise [e, k)       every sst over the span loses it: dropped, or cut to virtual ssts
//!   ingest              per file: the deepest level at which nothing at or above it holds a key
//!                       of the file's span. An sst of that level whose bounds, but no key, are
//!                       in the way, is cut in two. Levels where that would disturb a running
//!                       compaction are passed over.
//! ```
//!
//! Both happen in one edit, built under the manifest lock from the version of that moment. It is
//! made only when the wal is durable up to the operation's place: a crash keeps or loses operations
//! in their order among batches. The edit makes the operation durable, whether its record is or
//! not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::queued::Structural;
use crate::compaction::levels_targets;
use crate::error::Result;
use crate::key::KeySpan;
use crate::store::Store;
use crate::versions::{Edit, LEVELS, SstFacts, SstMeta, Version};

impl Store {
    /// Installs waiting operations as long as nothing older in memory precedes them: all that are
    /// due at a moment in one edit, whose sync those who wait for the lock then share.
    pub(crate) fn install_due_operations(&self) -> Result<()> {
        loop {
            let waiting = self.state.load().due_operations();
            let Some(durable) = waiting.iter().map(|op| op.before).max() else { return Ok(()) };
            self.wal.wait(durable, true)?;
            let mut manifest = self.manifest.lock();
            // Somebody else may have been quicker; others may have come.
            let state = self.state.load_full();
            let mut due = state.due_operations();
            let ready = due.iter().take_while(|op| op.before <= durable).count();
            due.truncate(independent(&due[..ready]));
            if due.is_empty() {
                continue;
            }
            let ssts: Vec<_> = due.iter().flat_map(|op| op.run.ssts()).cloned().collect();
            let edit = self.edit_for(&due, &ssts, &state.version)?;
            self.install_locked(&mut manifest, &edit, &ssts, |state| {
                state.structural.retain(|other| !due.iter().any(|op| Arc::ptr_eq(other, op)));
            })?;
        }
    }

    /// The edit of some operations, in their order; `lent` are all their ssts.
    fn edit_for(
        &self,
        due: &[Arc<Structural>],
        lent: &[Arc<SstMeta>],
        version: &Version,
    ) -> Result<Edit> {
        let mut edit = Edit::default();
        // The version as the edit leaves it so far.
        let mut changed: Option<Version> = None;
        for op in due {
            if !edit.installed.is_empty() {
                changed = Some(version.apply(&edit, &self.env, lent).0);
            }
            edit.installed.push(op.ticket);
            self.add_operation(&mut edit, op, (lent, version), changed.take())?;
        }
        let excises = due.iter().any(|op| op.excised.is_some());
        let ingests = !lent.is_empty();
        edit.reason = Some(match (excises, ingests) {
            (true, false) => "excise".into(),
            (true, true) => "excise and ingest".into(),
            (false, _) => "ingest".into(),
        });
        Ok(edit)
    }

    /// Adds one operation to an edit; `changed` is the version as the edit leaves it, if that is
    /// another one.
    fn add_operation(
        &self,
        edit: &mut Edit,
        op: &Structural,
        (lent, version): (&[Arc<SstMeta>], &Version),
        mut changed: Option<Version>,
    ) -> Result<()> {
        if let Some(span) = &op.excised {
            let before = changed.as_ref().unwrap_or(version);
            let over: Vec<_> =
                before.ssts().filter(|sst| sst.bounds().overlaps(span)).cloned().collect();
            for sst in over {
                self.cut(edit, &sst, span)?;
            }
            changed = Some(version.apply(edit, &self.env, lent).0);
        }
        let base = levels_targets(changed.as_ref().unwrap_or(version), &self.options).0;
        for (i, sst) in op.run.ssts().iter().enumerate() {
            let tree = changed.as_ref().unwrap_or(version);
            let level = self.target_level(tree, base, sst)?;
            let in_the_way: &[Arc<SstMeta>] =
                if level > 0 { tree.overlapping(level, sst.bounds()) } else { &[] };
            for other in in_the_way {
                self.cut(edit, other, sst.bounds())?;
            }
            let cuts = !in_the_way.is_empty();
            edit.added.push(SstFacts { level, ..sst.facts().clone() });
            // Later files must see what was cut for this one; otherwise their spans are disjoint.
            if cuts && i + 1 < op.run.ssts().len() {
                changed = Some(version.apply(edit, &self.env, lent).0);
            }
        }
        Ok(())
    }

    /// Cuts a span out of an sst that is live, or was added by this very edit.
    fn cut(&self, edit: &mut Edit, sst: &Arc<SstMeta>, span: &KeySpan) -> Result<()> {
        let number = || self.next_file.fetch_add(1, Ordering::AcqRel);
        let parts = sst.cut_out(span, &self.env, number)?;
        let before = edit.added.len();
        edit.added.retain(|new| new.file_no != sst.file_no);
        if edit.added.len() == before {
            edit.dropped.push(sst.file_no);
        }
        edit.added.extend(parts);
        Ok(())
    }

    /// The deepest level for a file: nothing at or above it may hold anything of the file's span.
    fn target_level(&self, tree: &Version, base: usize, file: &SstMeta) -> Result<usize> {
        let span = file.bounds();
        let holds = |sst: &SstMeta| -> Result<bool> {
            let overlaps = sst.bounds().overlaps(span);
            Ok(overlaps && sst.clip(span, sst.file_no, &self.env)?.is_some())
        };
        for sst in tree.l0().over(span) {
            if holds(sst)? {
                return Ok(0);
            }
        }
        let mut target = 0;
        for level in 1..LEVELS {
            let there = tree.overlapping(level, span);
            for sst in there {
                if holds(sst)? {
                    return Ok(target);
                }
            }
            if level >= base && !self.background.is_disturbed(level, span, there) {
                target = level;
            }
        }
        Ok(target)
    }
}

/// How many operations at the beginning may be in one edit: an excise is alone, and none touches
/// what another one has just brought.
fn independent(due: &[Arc<Structural>]) -> usize {
    if due.first().is_some_and(|op| op.excised.is_some()) {
        return 1;
    }
    let meets = |at: usize| {
        let op = &due[at];
        op.excised.is_some()
            || op.spans().any(|span| {
                due[..at].iter().flat_map(|other| other.spans()).any(|other| span.overlaps(other))
            })
    };
    (1..due.len()).find(|at| meets(*at)).unwrap_or(due.len())
}
