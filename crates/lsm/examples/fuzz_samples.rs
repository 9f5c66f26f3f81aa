//! Writes valid inputs of every decoder as files: the corpus that `scripts/fuzz` starts from.
//!
//! `cargo run -p braid-lsm --features fuzzing --example fuzz_samples DIRECTORY`

use std::path::PathBuf;

use braid_env::fs::{DiskFs, FileSystem};
use braid_lsm::fuzzing::{DECODERS, samples};

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).expect("usage: fuzz_samples DIRECTORY"));
    for (name, _) in DECODERS {
        let directory = directory.join(name);
        DiskFs.create_dir_all(&directory)?;
        for (i, sample) in samples(name).iter().enumerate() {
            DiskFs.create(&directory.join(format!("sample-{i}")))?.write_at(sample, 0)?;
        }
    }
    Ok(())
}
