//! Cluster settings: what holds on all nodes, at once and for good.
//!
//! ```text
//!   SET CLUSTER SETTING ─► records, in one transaction that raises their version
//!                               │ the version is told from node to node
//!                               ▼
//!   Picture (version, values, rules) ─► copy on this node's disk ─► Live ─► every statement
//! ```
//!
//! - [`registry`]: all settings, typed, with defaults. A value is checked when it is set.
//! - [`feature`]: classes of statements that a setting switches off.
//! - [`rule`]: statements that are denied one by one: by what they say, who sends them, until when.
//! - [`picture`]: all of it as of one version, and how that is written.
//! - `kept`: the copy on disk. It is written before a picture is used, so that a node that begins
//!   anew never goes by an older one than before.
//! - [`live`]: what a node goes by. Asking it costs one load where nothing is switched off.
//!
//! Lessons of others that are kept here: CockroachDB's settings (typed, checked by SET, defaults
//! not stored, a version that is older is not taken, the disk before the memory, names that are not
//! known are passed over) and its feature flags (SQLSTATE 57000, one question at the top of each
//! feature); TiDB's runaway watches (rules that end by themselves, a dry run, a sample of what was
//! met).
//!
//! What this crate does not know: transactions, sessions, plans, other nodes.

pub mod feature;
mod kept;
pub mod live;
pub mod picture;
pub mod registry;
pub mod rule;

pub use feature::Feature;
pub use kept::DiskCopy;
pub use live::{Asked, Hits, Live, Verdict};
pub use picture::{Picture, Stored};
pub use registry::{Kind, Setting, setting, settings};
pub use rule::{Action, DigestFn, Match, Rule};
