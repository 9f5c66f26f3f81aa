//! The file: its header, and blocks of rows.

use std::io::Read;
use std::sync::Arc;

use braid_types::{Datum, SqlError, SqlResult};

use super::codec::Codec;
use super::decode::{self, Bytes};
use super::schema::{Schema, Schemas};
use crate::batch::{Batch, Misfit, Row};
use crate::folder::SourceFile;
use crate::input::{Input, failed};
use crate::options::Compression;
use crate::reader::{Job, Source, damaged, out_of_memory};
use crate::room::Room;
use crate::target::{Target, Value};

const MAGIC: &[u8] = b"Obj\x01";
const SYNC: usize = 16;
/// Metadata of a file, in bytes.
const HEADER_MAX: usize = 16 << 20;

/// Rows of one file.
pub(crate) struct AvroSource {
    input: Input,
    file: SourceFile,
    target: Arc<Target>,
    schemas: Schemas,
    /// Of a row, with the column that each is for.
    fields: Vec<(Schema, Option<usize>)>,
    codec: Codec,
    sync: [u8; SYNC],
    /// The block that is being read, and where its next row begins.
    block: Vec<u8>,
    at: usize,
    /// Rows of the block that are left.
    left: u64,
    row: u64,
    block_max: usize,
    room: Room,
}

impl AvroSource {
    pub(crate) fn open(job: &Job, file: &SourceFile, room: &Room) -> SqlResult<AvroSource> {
        let how = (Compression::None, job.chunk(), room.another("decompression"));
        let input = Input::open(&*job.fs, file, how, 0)?;
        let mut source = AvroSource {
            input,
            file: file.clone(),
            target: job.target.clone(),
            schemas: Schemas::default(),
            fields: Vec::new(),
            codec: Codec::None,
            sync: [0; SYNC],
            block: Vec::new(),
            at: 0,
            left: 0,
            row: 0,
            block_max: job.options.row_bytes_max,
            room: room.another("a block of a file"),
        };
        source.read_header()?;
        Ok(source)
    }

    fn read_header(&mut self) -> SqlResult<()> {
        let mut magic = [0; MAGIC.len()];
        self.fill(&mut magic)?;
        if magic != MAGIC {
            return Err(self.damaged("it is not an Avro object container file"));
        }
        let (mut schema, mut codec) = (None, String::new());
        let mut bytes = 0;
        loop {
            let count = self.number()?;
            if count < 0 {
                self.number()?;
            }
            if count == 0 {
                break;
            }
            for _ in 0..count.unsigned_abs() {
                let key = self.sized(&mut bytes)?;
                let value = self.sized(&mut bytes)?;
                match key.as_slice() {
                    b"avro.schema" => schema = Some(value),
                    b"avro.codec" => codec = String::from_utf8_lossy(&value).into_owned(),
                    _ => {}
                }
            }
        }
        let mut sync = [0; SYNC];
        self.fill(&mut sync)?;
        self.sync = sync;
        self.codec = Codec::named(&codec).ok_or_else(|| {
            SqlError::unsupported(format!("Avro codec \"{codec}\""))
                .with_detail("in its header")
                .with_hint("Codecs are null, deflate, snappy, zstandard and bzip2.")
        })?;
        let schema = schema.and_then(|s| String::from_utf8(s).ok());
        let schema = schema.ok_or_else(|| self.damaged("it has no schema"))?;
        let (schemas, fields) = Schemas::read(&schema).map_err(|e| self.damaged(e))?;
        let columns = self.target.fields(fields.iter().map(|(name, _)| name.as_str()))?;
        self.schemas = schemas;
        self.fields = fields.into_iter().map(|(_, schema)| schema).zip(columns).collect();
        Ok(())
    }

    fn fill(&mut self, buffer: &mut [u8]) -> SqlResult<()> {
        self.input.read_exact(buffer).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => self.damaged("it is cut off"),
            _ => failed(&self.file, &e).with_detail(self.place()),
        })
    }

    /// How far the file was read.
    fn place(&self) -> String {
        format!("near byte {}", self.input.position())
    }

    fn damaged(&self, reason: impl std::fmt::Display) -> SqlError {
        damaged(&self.file, reason).with_detail(self.place())
    }

    fn number(&mut self) -> SqlResult<i64> {
        let mut raw = [0; 10];
        for n in 0..raw.len() {
            let mut byte = [0];
            self.fill(&mut byte)?;
            raw[n] = byte[0];
            if byte[0] & 0x80 == 0 {
                return Bytes(&raw[..=n]).long().map_err(|e| self.damaged(e));
            }
        }
        Err(self.damaged("a number is too long"))
    }

    fn sized(&mut self, bytes: &mut usize) -> SqlResult<Vec<u8>> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        *bytes = bytes.saturating_add(length);
        if *bytes > HEADER_MAX || *bytes as u64 > self.file.size {
            return Err(self.damaged("its header is too long"));
        }
        self.make_room(*bytes)?;
        let mut out = vec![0; length];
        self.fill(&mut out)?;
        Ok(out)
    }

    /// Reads the next block; `false` at the end of the file.
    fn next_block(&mut self) -> SqlResult<bool> {
        let mut first = [0];
        match self.input.read(&mut first) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(e) => return Err(failed(&self.file, &e).with_detail(self.place())),
        }
        let mut raw = vec![first[0]];
        while raw[raw.len() - 1] & 0x80 != 0 && raw.len() < 10 {
            let mut byte = [0];
            self.fill(&mut byte)?;
            raw.push(byte[0]);
        }
        let count = Bytes(&raw).long().map_err(|e| self.damaged(e))?;
        let size = self.number()?;
        let (Ok(count), Ok(size)) = (u64::try_from(count), usize::try_from(size)) else {
            return Err(self.damaged("a block has a negative size"));
        };
        // Blocks that are longer than the file, or than anybody may hold.
        if size as u64 > self.file.size || size > self.block_max {
            return Err(self.damaged(format!("a block of {size} bytes")));
        }
        // The one before is gone.
        self.block = Vec::new();
        self.make_room(size)?;
        let mut packed = vec![0; size];
        self.fill(&mut packed)?;
        let mut sync = [0; SYNC];
        self.fill(&mut sync)?;
        if sync != self.sync {
            return Err(self.damaged("a block does not end where it should"));
        }
        let (mut short, most) = (None, self.block_max);
        let room = &mut self.room;
        let block = self.codec.decompress(packed, most, &mut |bytes| {
            let grown = room.resize(bytes);
            grown.map_err(|e| short.insert(e).to_string())
        });
        if let Some(e) = short {
            return Err(out_of_memory(&e).with_detail(self.place()));
        }
        let block = block.map_err(|e| self.damaged(e))?;
        self.make_room(block.capacity())?;
        (self.block, self.at, self.left) = (block, 0, count);
        Ok(true)
    }

    fn make_room(&mut self, bytes: usize) -> SqlResult<()> {
        let grown = self.room.resize(bytes);
        grown.map_err(|e| out_of_memory(&e).with_detail(self.place()))
    }

    fn take_row(&mut self, out: &mut Batch) -> SqlResult<()> {
        self.row += 1;
        self.left -= 1;
        let number = self.row;
        let mut bytes = Bytes(&self.block[self.at..]);
        let before = bytes.0.len();
        let mut values: Vec<Option<Datum>> = vec![None; self.target.columns.len()];
        let mut bad: Option<(usize, SqlError, String)> = None;
        for (schema, column) in &self.fields {
            let value = decode::value(&mut bytes, schema, &self.schemas);
            let value =
                value.map_err(|e| damaged(&self.file, e).with_detail(format!("row {number}")))?;
            let Some(column) = column else { continue };
            let text = match &value {
                Value::Text(text) => text.chars().take(200).collect(),
                Value::Json(json) => json.to_string().chars().take(200).collect(),
                _ => String::new(),
            };
            match self.target.value(*column, value) {
                Ok(datum) => values[*column] = Some(datum),
                Err(e) => bad = bad.or(Some((*column, e, text))),
            }
        }
        let size = before - bytes.0.len();
        self.at += size;
        let taken = match bad {
            None => out.push(Row { number, values }),
            Some((column, error, text)) => {
                out.refuse(Misfit { number, column: Some(column), error, text })
            }
        };
        taken.map_err(|e| e.with_detail(format!("row {number}")))
    }
}

impl Source for AvroSource {
    fn read(&mut self, out: &mut Batch) -> SqlResult<()> {
        while !out.is_full() {
            if self.left > 0 {
                self.take_row(out)?;
            } else if !self.next_block()? {
                out.last = true;
                break;
            }
        }
        out.read = self.input.position();
        out.end.number = self.row;
        Ok(())
    }
}
