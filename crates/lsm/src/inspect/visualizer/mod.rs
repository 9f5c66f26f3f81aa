//! The LSM visualizer: one self-contained page that replays how the tree grew.
//!
//! `braid debug lsm DIR --html out.html` is this. It reads the manifests of a store, old ones too
//! as far as they are kept, and puts every edit on a time line: levels and sublevels to scale over
//! the key line, what an edit took away and what it added, its reason, facts of each sst. An sst
//! of L0 that is wide for its bytes (it overlaps everything and so holds up every compaction) is
//! marked.
//!
//! ```text
//!   manifests -> History (edits, keys sorted once) -> JSON inside of page.html
//! ```
//!
//! Nothing is loaded from a network, by the page or by us. The store may be open meanwhile.

mod history;
mod page;

pub use page::lsm_page;
