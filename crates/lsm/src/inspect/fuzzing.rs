//! Entry points for fuzzers: one for every decoder of bytes that come from the device.
//!
//! Only built for tests and with the feature `fuzzing`; not part of the engine's interface. The
//! targets of `crates/lsm/fuzz` are one line each on top of [`DECODERS`]; the test below feeds the
//! same decoders with damaged samples in every run of the test suite.

use std::path::Path;

use braid_env::fs::{FileSystem, MemFs};

use crate::batch::Batch;
use crate::key::{CommitTs, Kind};
use crate::memtable::Tombstone;
use crate::sstable::fuzzing::{BlockKind, images};
pub use crate::sstable::fuzzing::{
    filter, footer, index_block, properties, row_block, sst, tombstone_block,
};
use crate::sstable::{Properties, SstWriter, WRITE_SIZE, WriterOptions, sst_path};
use crate::versions::{Edit, SstFacts};
use crate::wal::{Framer, read_segment, seal_chunks, segment_path};

/// A decoder: must return whatever the bytes are.
pub type Decoder = fn(&[u8]);

/// All decoders by name.
pub const DECODERS: [(&str, Decoder); 10] = [
    ("row_block", row_block),
    ("index_block", index_block),
    ("tombstone_block", tombstone_block),
    ("filter", filter),
    ("properties", properties),
    ("footer", footer),
    ("sst", sst),
    ("segment", segment),
    ("edit", edit),
    ("batch", batch),
];

/// A wal segment, or a manifest, which is framed in the same way; then the same with checksums
/// that match, so that damage reaches what lies behind them.
pub fn segment(data: &[u8]) {
    read_records(data);
    let mut sealed = data.to_vec();
    seal_chunks(&mut sealed);
    read_records(&sealed);
}

fn read_records(data: &[u8]) {
    let fs = MemFs::new();
    let path = segment_path(Path::new("/"), 3);
    let written = fs.create(&path).and_then(|file| file.write_at(data, 0));
    if written.is_ok() {
        let read = read_segment(&fs, &path, 3, &mut |_, record| {
            batch(record);
            edit(record);
            Ok(())
        });
        std::hint::black_box(read.is_ok());
    }
}

/// A version edit; what is understood must come back the same.
pub fn edit(data: &[u8]) {
    if let Ok(edit) = Edit::decode(data) {
        assert_eq!(Edit::decode(&edit.encode()), Ok(edit));
    }
}

/// A batch as it is in the wal; what is understood must come back the same.
pub fn batch(data: &[u8]) {
    if let Ok(mut batch) = Batch::decode(data) {
        let again = batch.encoded();
        let mut second = Batch::decode(again).expect("what was encoded can be decoded");
        assert_eq!(again, second.encoded());
    }
}

/// An sst with several blocks, versions, deletes, tombstones and classes.
fn sample_sst() -> Vec<u8> {
    let fs = MemFs::new();
    let path = sst_path(Path::new("/"), 7);
    let options = WriterOptions {
        block_size: 600,
        index_partition_size: 100,
        filter_bits_per_key: 10,
        codec: crate::Codec::None,
        row_class: |key| key.last().map_or(0, |byte| byte % 3),
        write_size: WRITE_SIZE,
    };
    let mut writer = SstWriter::create(&fs, path.clone(), 7, options).expect("memory holds it");
    for i in 0..120u64 {
        let key = format!("customer/{:03}/order/{}", i / 9, i % 9);
        for version in (0..1 + i % 3).rev() {
            let kind = if i % 11 == 5 { Kind::Delete } else { Kind::Put };
            let value = vec![b'v'; if kind == Kind::Put { (i % 40) as usize } else { 0 }];
            writer.add(key.as_bytes(), 100 + i + version, kind, &value).expect("in order");
        }
    }
    let span =
        |a: &'static str, b: &'static str, ts| Tombstone { start: a.into(), end: b.into(), ts };
    let tombstones = [
        span("customer/002", "customer/009", 90),
        span("customer/004", "customer/006", 300),
        span("customer/001", "customer/005", 310),
    ];
    writer.finish(&tombstones, (1, 2)).expect("memory holds it");
    let file = fs.open(&path).expect("it was written");
    let mut bytes = vec![0; file.len().expect("it is there") as usize];
    file.read_exact_at(&mut bytes, 0).expect("it is there");
    bytes
}

fn sample_batch() -> Vec<u8> {
    let mut batch = Batch::at(CommitTs(77));
    for i in 0..20u32 {
        batch.put(format!("k{i}").as_bytes(), &i.to_le_bytes());
    }
    batch.delete(b"k3");
    batch.delete_span(b"k5", b"k8");
    batch.encoded().to_vec()
}

fn sample_edit() -> Vec<u8> {
    let properties = Properties {
        start: "a".into(),
        end: "b".into(),
        max_ts: 9,
        rows: 100,
        ..Properties::default()
    };
    let facts = SstFacts::of(7, 3, 1 << 20, &properties);
    let edit = Edit {
        added: vec![facts],
        dropped: vec![1, 2, 300],
        wal_floor: Some(3),
        gc_threshold: Some(9),
        snapshot: true,
        ..Edit::default()
    };
    edit.encode()
}

/// Valid inputs of a decoder, to mutate.
pub fn samples(decoder: &str) -> Vec<Vec<u8>> {
    let of_kind = |wanted: BlockKind| {
        let all = images(&sample_sst()).into_iter();
        all.filter(|(kind, _)| *kind == wanted).map(|(_, image)| image).collect()
    };
    match decoder {
        "row_block" => of_kind(BlockKind::Rows),
        "index_block" => [of_kind(BlockKind::Index), of_kind(BlockKind::TopIndex)].concat(),
        "tombstone_block" => of_kind(BlockKind::Tombstones),
        "filter" => of_kind(BlockKind::Filter),
        "properties" => of_kind(BlockKind::Properties),
        "footer" => vec![sample_sst().split_off(sample_sst().len() - 64)],
        "sst" => vec![sample_sst()],
        "segment" => {
            let mut out = Vec::new();
            let mut framer = Framer::new(3);
            for synced in [0, 40, 80] {
                framer.frame(&sample_batch(), synced, &mut out);
            }
            framer.seal(80, &mut out);
            vec![out]
        }
        "edit" => vec![sample_edit()],
        "batch" => vec![sample_batch()],
        other => panic!("no decoder is called {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::random::Random;

    /// One to four random changes: flips, overwritten numbers, cuts, doubled parts.
    fn damage(random: &mut Random, sample: &[u8]) -> Vec<u8> {
        let mut bytes = sample.to_vec();
        for _ in 0..1 + random.below(4) {
            if bytes.is_empty() {
                return bytes;
            }
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(6) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.below(256) as u8,
                2 => bytes[at] = [0, 0xff, 0x7f, 0x80][random.below(4) as usize],
                3 => bytes.truncate(at),
                4 => bytes.insert(at, random.below(256) as u8),
                _ => {
                    let end = (at + 1 + random.below(16) as usize).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        bytes
    }

    #[test]
    fn decoders_survive_whatever_lies_on_the_device() {
        let rounds = 3_000;
        for (name, decoder) in DECODERS {
            let samples = samples(name);
            assert!(!samples.is_empty(), "{name}");
            let mut random = Random::seeded(11);
            for sample in &samples {
                decoder(sample);
                for cut in 0..sample.len().min(300) {
                    decoder(&sample[..cut]);
                }
            }
            for round in 0..rounds {
                let sample = &samples[round % samples.len()];
                decoder(&damage(&mut random, sample));
            }
        }
    }
}
