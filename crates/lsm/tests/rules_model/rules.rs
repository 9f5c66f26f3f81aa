//! The rules that make the engine right, each with a switch that breaks it.

/// All rules hold by default.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// C1: a point is not older than what covers it; a range tombstone is newer than its points.
    pub contract_monotone: bool,
    /// C2: nothing is written at or below the GC threshold.
    pub contract_fence: bool,
    /// C2 again: an ingest may be older where it cuts out all that was there, and only there.
    pub old_ingest_needs_excise: bool,
    /// A get stops at a layer only if that layer gave something *visible* at the read timestamp.
    pub stop_only_at_visible: bool,
    /// Tombstones hide only if they are visible at the read timestamp.
    pub hide_only_if_visible: bool,
    /// Equal timestamps: the point wins over the tombstone.
    pub point_wins_tie: bool,
    /// Layers are searched in order of arrival.
    pub search_by_arrival: bool,
    /// Drop rule 1: a version goes only if a newer version at or below the threshold hides it.
    pub shadow_needs_threshold: bool,
    /// Drop rule 2: a covered point goes only if the tombstone is at or below the threshold.
    pub cover_needs_threshold: bool,
    /// Drop rule 2 compares timestamps: newer points under an older tombstone stay.
    pub cover_compares_timestamps: bool,
    /// Drop rule 3: a tombstone goes only if its killer covers all of the fragment.
    pub cover_whole_fragment: bool,
    /// Drop rule 4, deletes: a Delete goes only if nothing below holds the key.
    pub elide_delete_at_bottom_only: bool,
    /// Drop rule 4, tombstones: a tombstone goes only if nothing below overlaps it.
    pub elide_tombstone_at_bottom_only: bool,
    /// Drop rule 4 needs the threshold, too.
    pub elide_needs_threshold: bool,
    /// "Below" of an L0 output includes older L0 files that are not inputs.
    pub below_includes_older_l0: bool,
    /// A base compaction takes all older L0 files that overlap (transitive closure).
    pub l0_closure: bool,
    /// A merge takes all files of the target level that overlap, tombstones included.
    pub overlap_counts_tombstones: bool,
    /// Tombstones are cut at the bounds of output files, and no piece gets lost.
    pub cut_keeps_all_pieces: bool,
    /// A compaction within L0 takes all newer overlapping files up to its newest one.
    pub intra_l0_closure: bool,
    /// A file is dropped unread only if tombstones cover all of it.
    pub file_drop_covers_all: bool,
    /// A file is dropped unread only if all of it is older than those tombstones.
    pub file_drop_compares_timestamps: bool,
    /// A file is dropped unread only by tombstones up to the threshold.
    pub file_drop_needs_threshold: bool,
    /// A file of nothing but tombstones goes only if nothing below overlaps it.
    pub file_elision_at_bottom_only: bool,
    /// C6: a GC threshold drops data only when it is durable.
    pub threshold_durable_first: bool,
    /// C5: an ingest that is read from an earlier time on than the threshold lowers that.
    pub old_ingest_lowers_threshold: bool,
    /// C6: a threshold that was lowered is durable before what it was lowered for.
    pub lowered_threshold_durable_first: bool,
    /// C6: a tombstone drops data of other files only when it is durable.
    pub tombstone_durable_first: bool,
    /// A waiting excise hides what lies below it.
    pub barrier_hides: bool,
    /// An excise changes files only after older memtables in its way were flushed.
    pub excise_waits_for_memtables: bool,
    /// An excise cuts range tombstones as it cuts points.
    pub excise_cuts_tombstones: bool,
    /// Outputs of compactions that began before an excise are thrown away.
    pub excise_cancels_compactions: bool,
    /// An operation that overlaps a memtable seals it and goes on top.
    pub ingest_seals_memtables: bool,
    /// A file goes below L0 only if L0 holds nothing in its span.
    pub ingest_looks_at_l0: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            contract_monotone: true,
            contract_fence: true,
            old_ingest_needs_excise: true,
            stop_only_at_visible: true,
            hide_only_if_visible: true,
            point_wins_tie: true,
            search_by_arrival: true,
            shadow_needs_threshold: true,
            cover_needs_threshold: true,
            cover_compares_timestamps: true,
            cover_whole_fragment: true,
            elide_delete_at_bottom_only: true,
            elide_tombstone_at_bottom_only: true,
            elide_needs_threshold: true,
            below_includes_older_l0: true,
            l0_closure: true,
            overlap_counts_tombstones: true,
            cut_keeps_all_pieces: true,
            intra_l0_closure: true,
            file_drop_covers_all: true,
            file_drop_compares_timestamps: true,
            file_drop_needs_threshold: true,
            file_elision_at_bottom_only: true,
            threshold_durable_first: true,
            old_ingest_lowers_threshold: true,
            lowered_threshold_durable_first: true,
            tombstone_durable_first: true,
            barrier_hides: true,
            excise_waits_for_memtables: true,
            excise_cuts_tombstones: true,
            excise_cancels_compactions: true,
            ingest_seals_memtables: true,
            ingest_looks_at_l0: true,
        }
    }
}

/// One broken rule.
pub struct Mutant {
    /// What is wrong.
    pub name: &'static str,
    /// Breaks it.
    pub break_rule: fn(&mut Rules),
}

macro_rules! mutants {
    ($($field:ident: $name:literal,)*) => {
        &[$(Mutant { name: $name, break_rule: |rules| rules.$field = false }),*]
    };
}

/// All of them; each must be caught.
pub const MUTANTS: &[Mutant] = mutants! {
    contract_monotone: "a write older than what covers it is accepted (C1)",
    contract_fence: "a write at or below the GC threshold is accepted (C2)",
    old_ingest_needs_excise: "an ingest at or below the threshold excises nothing (C2)",
    stop_only_at_visible: "a get stops at a layer whose entry is newer than the read",
    hide_only_if_visible: "a tombstone newer than the read hides",
    point_wins_tie: "the tombstone wins at equal timestamps",
    search_by_arrival: "layers are searched by their newest timestamp",
    shadow_needs_threshold: "shadowed versions above the threshold are dropped",
    cover_needs_threshold: "covered points above the threshold are dropped",
    cover_compares_timestamps: "a tombstone drops newer points, too",
    cover_whole_fragment: "a tombstone is dropped where only a part of it is covered",
    elide_delete_at_bottom_only: "a Delete is dropped above older data",
    elide_tombstone_at_bottom_only: "a tombstone is dropped above older data",
    elide_needs_threshold: "deletes above the threshold are dropped at the bottom",
    below_includes_older_l0: "older L0 files do not count as below",
    l0_closure: "a base compaction leaves older overlapping L0 files behind",
    overlap_counts_tombstones: "file bounds forget tombstones",
    cut_keeps_all_pieces: "the piece of a tombstone behind the last cut is lost",
    intra_l0_closure: "a compaction within L0 jumps over a file",
    file_drop_covers_all: "a file that is covered in part is dropped unread",
    file_drop_compares_timestamps: "a file with newer rows is dropped unread",
    file_drop_needs_threshold: "a tombstone above the threshold drops files unread",
    file_elision_at_bottom_only: "a file of tombstones is dropped above older data",
    threshold_durable_first: "a threshold drops data, then a crash forgets the threshold (C6)",
    old_ingest_lowers_threshold: "an older ingest is read below a threshold that stays (C5)",
    lowered_threshold_durable_first: "a crash brings a threshold back that was lowered (C6)",
    tombstone_durable_first: "a memtable's tombstone drops data, then a crash forgets it (C6)",
    barrier_hides: "reads look below a waiting excise",
    excise_waits_for_memtables: "an excise overtakes the flush of what it cuts",
    excise_cuts_tombstones: "an excise leaves range tombstones behind",
    excise_cancels_compactions: "a compaction puts back what was excised",
    ingest_seals_memtables: "an ingest goes below a memtable that it overlaps",
    ingest_looks_at_l0: "an ingested file goes below older data in L0",
};
