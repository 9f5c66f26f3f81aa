//! Which ssts are live: versions, the edits between them, and the manifest that keeps them.

mod edit;
pub(crate) mod l0;
mod manifest;
mod run;
mod sst_meta;
mod version;

pub(crate) use edit::{Edit, decode_sst, encode_sst};
pub(crate) use manifest::{
    Manifest, ManifestWitness, Recovered, load_manifest, manifest_edits, manifest_numbers,
    manifest_path,
};
pub(crate) use run::{Run, RunFile};
pub(crate) use sst_meta::{Backing, SstEnv, SstFacts, SstMeta};
pub(crate) use version::{LEVELS, Version};
