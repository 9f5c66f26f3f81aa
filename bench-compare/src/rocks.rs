//! RocksDB behind [`Kv`], tuned as its own guide says for a small server.

use std::path::{Path, PathBuf};

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, IngestExternalFileOptions, Options,
    ReadOptions, SstFileWriter, WriteBatch, WriteOptions, properties,
};

use crate::run::{Kv, Op};
use crate::step::{Report, Step};

pub struct Rocks {
    db: DB,
    options: Options,
    dir: PathBuf,
}

impl Rocks {
    pub fn open(dir: &Path, step: &Step) -> Rocks {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_write_buffer_size(step.number("memtable") as usize);
        options.set_max_write_buffer_number(4);
        options.set_max_background_jobs(step.number("jobs").max(2) as i32);
        options.set_target_file_size_base(step.number_or("file", 8 << 20));
        options.set_max_bytes_for_level_base(step.number_or("base", 64 << 20));
        options.set_level_compaction_dynamic_level_bytes(true);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_max_open_files(-1);
        options.enable_statistics();
        options.set_statistics_level(rocksdb::statistics::StatsLevel::ExceptDetailedTimers);
        let mut table = BlockBasedOptions::default();
        table.set_bloom_filter(10.0, false);
        table.set_format_version(6);
        table.set_cache_index_and_filter_blocks(false);
        table.set_data_block_index_type(rocksdb::DataBlockIndexType::BinaryAndHash);
        table.set_data_block_hash_ratio(0.75);
        table.set_block_cache(&Cache::new_hyper_clock_cache(step.number("cache") as usize, 0));
        options.set_block_based_table_factory(&table);
        let db = DB::open(&options, dir).expect("RocksDB opens");
        Rocks { db, options, dir: dir.to_path_buf() }
    }

    fn property(&self, name: &str) -> f64 {
        self.db.property_int_value(name).ok().flatten().unwrap_or(0) as f64
    }

    fn ticker(&self, name: &str) -> f64 {
        let text = self.options.get_statistics().unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
    }
}

impl Kv for Rocks {
    fn write(&self, ops: &[Op<'_>]) {
        let mut batch = WriteBatch::default();
        for op in ops {
            match op {
                Op::Put(key, value) => batch.put(key, value),
                Op::Delete(key) => batch.delete(key),
                Op::DeleteRange(from, to) => batch.delete_range(from, to),
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(false);
        self.db.write_opt(batch, &options).expect("RocksDB writes");
    }

    fn get(&self, key: &[u8]) -> bool {
        let found = self.db.get_pinned(key).expect("RocksDB reads");
        found.is_some_and(|value| std::hint::black_box(value.len()) > 0)
    }

    fn scan(&self, from: &[u8], rows: usize) -> usize {
        let mut iterator = self.db.raw_iterator();
        iterator.seek(from);
        let (mut seen, mut sum) = (0, 0u64);
        while seen < rows && iterator.valid() {
            let (key, value) = iterator.item().expect("valid");
            sum += u64::from(key[key.len() - 1]) + u64::from(value[0]);
            seen += 1;
            iterator.next();
        }
        std::hint::black_box(sum);
        seen
    }

    fn keys(&self, from: &[u8], to: &[u8]) -> Vec<Vec<u8>> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(to.to_vec());
        let mut iterator = self.db.raw_iterator_opt(options);
        iterator.seek(from);
        let mut keys = Vec::new();
        while let Some(key) = iterator.key() {
            keys.push(key.to_vec());
            iterator.next();
        }
        keys
    }

    fn flush(&self) {
        self.db.flush().expect("RocksDB flushes");
    }

    fn compact_all(&self) {
        self.db.compact_range::<&[u8], &[u8]>(None, None);
    }

    fn is_quiet(&self) -> bool {
        self.property("rocksdb.num-running-flushes") == 0.0
            && self.property("rocksdb.num-running-compactions") == 0.0
            && self.property("rocksdb.compaction-pending") == 0.0
            && self.property("rocksdb.mem-table-flush-pending") == 0.0
    }

    fn build(&self, rows: &[(Vec<u8>, Vec<u8>)], name: &str) {
        let path = self.dir.join(name);
        let mut writer = SstFileWriter::create(&self.options);
        writer.open(&path).expect("the sst opens");
        for (key, value) in rows {
            writer.put(key, value).expect("rows are in order");
        }
        writer.finish().expect("the sst is finished");
    }

    fn ingest(&self, name: &str) {
        let path = self.dir.join(name);
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        self.db.ingest_external_file_opts(&options, vec![&path]).expect("RocksDB ingests");
    }

    fn stats(&self) -> Report {
        let mut report = Report::new();
        let mut amp = 0.0;
        for level in 0..7 {
            let name = properties::num_files_at_level(level);
            let files = self.db.property_value(&name).ok().flatten();
            let files: f64 = files.and_then(|n| n.parse().ok()).unwrap_or(0.0);
            report.insert(format!("l{level}_files"), files);
            amp += if level == 0 { files } else { f64::from(files > 0.0) };
        }
        report.insert("read_amp".into(), amp);
        let written =
            self.ticker("rocksdb.flush.write.bytes") + self.ticker("rocksdb.compact.write.bytes");
        report.insert("bytes_written".into(), written);
        report.insert("user_bytes".into(), self.ticker("rocksdb.bytes.written"));
        report.insert("sst_bytes".into(), self.property("rocksdb.total-sst-files-size"));
        report
    }
}
