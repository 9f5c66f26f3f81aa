//! Rows that a session keeps, found by their number: in memory, then on disk.
//!
//! ```text
//!   1 .. 90 | 91 .. 204 | 205 .. 300      301 .. 317
//!         pieces of a file                in memory
//! ```
//!
//! The piece that was read last stays in memory, so going onward or back reads each of them once.

use std::sync::Arc;

use braid_catalog::{kv_error, memory_error};
use braid_env::memory::{Account, Held};
use braid_kv::{Coordinator, ScratchFile};
use braid_types::{Datum, SqlResult, SqlType};

use crate::general_query::RowStream;
use braid_rows::row_codec::{decode_part, encode_part};
use braid_rows::{Row, row_memory};

/// Rows go to disk when they take so many bytes of memory, or when there is no more.
const MEMORY_MOST: usize = 8 << 20;
/// It is not worth it for fewer.
const MEMORY_LEAST: usize = 64 << 10;
/// Bytes of a piece, about.
const PIECE_BYTES: usize = 64 << 10;

/// Some rows on disk.
struct Piece {
    /// The number of the first of them, from 0.
    first: usize,
    at: u64,
}

/// See the [module's page](self).
pub(super) struct KeptRows {
    coordinator: Arc<Coordinator>,
    /// Of the columns.
    types: Vec<SqlType>,
    /// Whether rows of these types can be written down.
    may_spill: bool,
    file: Option<ScratchFile>,
    pieces: Vec<Piece>,
    /// The piece that was read last, and its rows.
    open: Option<(usize, Vec<Row>)>,
    /// Rows behind the pieces, and the number of the first of them.
    tail: Vec<Row>,
    first: usize,
    memory: Held,
}

/// Whether bytes and the type tell a value: rows without a type know their fields themselves.
fn is_stored(ty: &SqlType) -> bool {
    match ty {
        SqlType::Array(element) => is_stored(element),
        other => !matches!(other, SqlType::Record | SqlType::Void | SqlType::Unknown),
    }
}

impl KeptRows {
    /// None yet. `what` is the name that an error gives them.
    pub(super) fn new(
        coordinator: &Arc<Coordinator>,
        types: Vec<SqlType>,
        account: &Arc<Account>,
        what: &'static str,
    ) -> KeptRows {
        KeptRows {
            coordinator: coordinator.clone(),
            may_spill: types.iter().all(is_stored),
            types,
            file: None,
            pieces: Vec::new(),
            open: None,
            tail: Vec::new(),
            first: 0,
            memory: account.hold(what),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.first + self.tail.len()
    }

    /// Whether they are in memory, and take no more than so many bytes there.
    pub(super) fn is_small(&self, bytes: usize) -> bool {
        self.file.is_none() && self.memory.bytes() <= bytes
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.file = None;
        self.open = None;
        self.tail = Vec::new();
        self.first = 0;
        self.memory.release();
    }

    /// Keeps one more.
    ///
    /// # Errors
    /// 53200 if there is no memory for it and they cannot be written down, 53100 if the disk is
    /// full.
    pub(super) fn push(&mut self, row: Row) -> SqlResult<()> {
        let bytes = row_memory(&row);
        if self.memory.bytes() + bytes > MEMORY_MOST {
            self.spill()?;
        }
        if let Err(refused) = self.memory.grow(bytes) {
            if self.memory.bytes() < MEMORY_LEAST || !self.spill()? {
                return Err(memory_error(&refused));
            }
            self.memory.grow(bytes).map_err(|e| memory_error(&e))?;
        }
        self.tail.push(row);
        Ok(())
    }

    /// A row by its number, from 0; `None` behind the last.
    ///
    /// # Errors
    /// The disk fails, or what lies there is damaged.
    pub(super) fn get(&mut self, number: usize) -> SqlResult<Option<Row>> {
        if number >= self.first {
            return Ok(self.tail.get(number - self.first).cloned());
        }
        let piece = self.pieces.partition_point(|piece| piece.first <= number) - 1;
        let first = self.pieces[piece].first;
        if self.open.as_ref().is_none_or(|(open, _)| *open != piece) {
            self.open = None;
            self.open = Some((piece, self.read(piece)?));
        }
        Ok(self.open.as_ref().and_then(|(_, rows)| rows.get(number - first).cloned()))
    }

    /// Writes what is in memory down; whether that was possible.
    fn spill(&mut self) -> SqlResult<bool> {
        if !self.may_spill || self.tail.is_empty() {
            return Ok(false);
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.coordinator.scratch_file().map_err(kv_error)?),
        };
        let (mut bytes, mut from) = (Vec::new(), 0);
        for n in 0..self.tail.len() {
            encode(&mut bytes, &self.tail[n]);
            if bytes.len() >= PIECE_BYTES || n + 1 == self.tail.len() {
                let at = file.append(&bytes).map_err(kv_error)?;
                self.pieces.push(Piece { first: self.first + from, at });
                bytes.clear();
                from = n + 1;
            }
        }
        self.first += self.tail.len();
        self.tail = Vec::new();
        // A piece is in memory while it is read, and where they lie.
        let stays = 2 * PIECE_BYTES + self.pieces.capacity() * size_of::<Piece>();
        self.memory.release();
        self.memory.grow(stays).map_err(|e| memory_error(&e))?;
        Ok(true)
    }

    fn read(&self, piece: usize) -> SqlResult<Vec<Row>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let bytes = file.read(self.pieces[piece].at).map_err(kv_error)?;
        let (mut rest, mut rows) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            rows.push(decode(&mut rest, &self.types)?);
        }
        Ok(rows)
    }
}

/// The values one behind the other. A row of no columns is one byte.
fn encode(out: &mut Vec<u8>, row: &[Datum]) {
    row.iter().for_each(|value| encode_part(out, value));
    if row.is_empty() {
        out.push(0);
    }
}

fn decode(rest: &mut &[u8], types: &[SqlType]) -> SqlResult<Row> {
    if types.is_empty() {
        *rest = &rest[1..];
    }
    types.iter().map(|ty| decode_part(rest, ty)).collect()
}

/// Kept rows, given one part after the other.
pub(super) struct KeptStream {
    rows: KeptRows,
    next: usize,
}

impl KeptStream {
    /// All of them.
    pub(super) fn new(rows: KeptRows) -> KeptStream {
        KeptStream { rows, next: 0 }
    }
}

impl RowStream for KeptStream {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        const ROWS: usize = 256;
        let mut batch = Vec::new();
        while batch.len() < ROWS
            && let Some(row) = self.rows.get(self.next)?
        {
            self.next += 1;
            batch.push(row);
        }
        Ok(Some(batch).filter(|batch| !batch.is_empty()))
    }
}
