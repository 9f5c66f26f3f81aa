//! Walks the rows of an sst that a read sees, in either direction.
//!
//! Forward, visibility is decided for 64 rows at once ([`RowBlock::visible`]): the cursor holds
//! the bits of the rows that are left of the current 64, and a step is "clear the lowest bit".
//! [`SstCursor::fill`] hands out whole stretches of rows below a limit without coming back to the
//! merge for each of them.

use super::block_walker::{Ahead, BlockWalker, EntryRef, is_above};
use super::reader::SstReader;
use super::row_block::RowBlock;
use super::row_key::RowKey;
use crate::error::Result;
use crate::iter::{ReadWork, Stretch};
use crate::key::Kind;
use crate::range_tombstone::Cover;

/// So many rows of a stretch are compared with its end one by one. Where two runs take turns, a
/// stretch is a row or two; a longer one is worth a search for the row that it ends at.
const SHORT_STRETCH: usize = 3;

/// Fewer rows of a block are handed out one by one.
pub(crate) const LEAST_PART: usize = 8;

/// What a cursor looks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) read_ts: u64,
    /// Bit c set: rows of class c.
    pub(crate) classes: u32,
    pub(crate) backward: bool,
    /// Whether blocks that are read stay in the cache.
    pub(crate) fill_cache: bool,
    /// How many rows will be taken after a seek; more do no harm.
    pub(crate) rows: usize,
    /// Whether many rows of a block may be handed out as a part of it.
    pub(crate) blocks: bool,
}

/// Where a stretch ends in a block.
struct EndRow {
    /// The first row behind the stretch; before it is exact, one that is not.
    row: usize,
    is_exact: bool,
}

impl EndRow {
    fn of(block: &RowBlock, until: &[u8]) -> EndRow {
        EndRow { row: block.lower_bound(until), is_exact: true }
    }

    /// Looks at keys, which are on their way from memory when the rows in front were read.
    #[inline]
    fn make_exact(&mut self, block: &RowBlock, until: &[u8]) {
        if !self.is_exact {
            *self = EndRow::of(block, until);
        }
    }
}

/// The newest visible entry per key of one sst. Every call is given the sst; see [`BlockWalker`].
pub(crate) struct SstCursor {
    walker: BlockWalker,
    wanted: Wanted,
    block: Option<RowBlock>,
    row: usize,
    word: Word,
    /// Backward: first row of the current key's group in `block`; `None` if the group began in an
    /// earlier block.
    group_start: Option<usize>,
    key: RowKey,
}

/// Forward: the rows of 64 that a read sees and a cursor has not passed yet.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    /// Rows from the current one on that are left.
    left: u64,
    /// The word's number in its block.
    number: usize,
    /// Rows that the read does not want or cannot see; counted as passed when the cursor leaves
    /// the word.
    unseen: u64,
    /// Whether the last row before the next word can be seen.
    carry: bool,
}

impl Word {
    /// Chooses the visible rows of word `number` from `first` on.
    fn enter(&mut self, block: &RowBlock, wanted: &Wanted, number: usize, first: usize) {
        let from = u64::MAX << (first % 64);
        let rows = (block.len() - number * 64).min(64) - first % 64;
        self.number = number;
        self.left = block.visible(number, wanted.read_ts, wanted.classes, &mut self.carry) & from;
        self.unseen = rows as u64 - u64::from(self.left.count_ones());
    }

    /// The first row that is left, if one is.
    #[inline]
    fn row(&self) -> Option<usize> {
        (self.left != 0).then(|| self.number * 64 + self.left.trailing_zeros() as usize)
    }

    /// Passes those of the rows that are left and in front of row `end`; returns how many.
    fn pass_all_of(&mut self, rows: u64, end: usize) -> u32 {
        let passed = self.left & rows & in_front(end, self.number);
        self.left ^= passed;
        passed.count_ones()
    }

    /// Takes the rows that are left and in front of row `end`, if they are no more than `most`.
    fn take(&mut self, end: usize, most: usize) -> u64 {
        let taken = self.left & in_front(end, self.number);
        if taken.count_ones() as usize > most {
            return 0;
        }
        self.left ^= taken;
        taken
    }

    /// Passes the first row that is left.
    #[inline]
    fn pass(&mut self) {
        self.left &= self.left.wrapping_sub(1);
    }
}

/// Bits of those of the rows of a word that are in front of row `end` of the block.
fn in_front(end: usize, word: usize) -> u64 {
    match end.saturating_sub(word * 64) {
        n @ 0..64 => (1 << n) - 1,
        _ => u64::MAX,
    }
}

impl SstCursor {
    pub(crate) fn new(wanted: Wanted) -> SstCursor {
        SstCursor {
            walker: BlockWalker::new(wanted.fill_cache),
            wanted,
            block: None,
            row: 0,
            word: Word::default(),
            group_start: None,
            key: RowKey::new(),
        }
    }

    /// Makes it a cursor of another sst, before its first seek there.
    pub(crate) fn leave(&mut self) {
        self.block = None;
        self.key.leave_block();
    }

    /// What the cursor did so far.
    pub(crate) fn work(&self) -> ReadWork {
        self.walker.work
    }

    fn entry_wanted(&self, reader: &SstReader) -> bool {
        // Most reads want all classes of now: that spares them two cold columns of the index.
        let all = self.wanted.classes == u32::MAX;
        if all && self.wanted.read_ts >= reader.properties().max_point_ts {
            return true;
        }
        self.walker.entry().is_none_or(|entry| {
            entry.min_ts() <= self.wanted.read_ts && entry.classes() & self.wanted.classes != 0
        })
    }

    fn next_block(&mut self, reader: &SstReader) -> Result<bool> {
        let Wanted { read_ts, classes, .. } = self.wanted;
        self.walker.next_where(reader, |index, i| {
            index.min_ts(i) <= read_ts && index.classes(i) & classes != 0
        })
    }

    fn prev_block(&mut self, reader: &SstReader) -> Result<()> {
        let Wanted { read_ts, classes, .. } = self.wanted;
        self.walker.prev_where(reader, |index, i| {
            index.min_ts(i) <= read_ts && index.classes(i) & classes != 0
        })
    }

    /// Forward: to the first key at or after `to`; backward: to the last key below it.
    pub(crate) fn seek(&mut self, reader: &SstReader, to: &[u8]) -> Result<()> {
        if self.wanted.backward {
            return self.seek_below(reader, to);
        }
        self.aim(reader, to)?;
        self.settle_at(reader, to)
    }

    /// The first half of a forward seek: finds the block and brings it closer. Doing this for all
    /// layers before the second half lets their cache misses overlap.
    pub(crate) fn aim(&mut self, reader: &SstReader, to: &[u8]) -> Result<()> {
        self.walker.seek(reader, to)?;
        if !self.entry_wanted(reader) {
            self.next_block(reader)?;
        }
        self.walker.prefetch(reader);
        Ok(())
    }

    /// The second half of a forward seek.
    pub(crate) fn settle_at(&mut self, reader: &SstReader, to: &[u8]) -> Result<()> {
        self.word = Word::default();
        if !self.enter_block(reader)? {
            return Ok(());
        }
        let block = self.block.as_ref().expect("just entered");
        let row = block.lower_bound(to);
        if row < block.len() {
            block.prefetch_values(row, self.wanted.rows);
            self.word.enter(block, &self.wanted, row / 64, row);
        } else {
            self.word.number = block.len().div_ceil(64);
        }
        self.settle_forward(reader)
    }

    /// Loads the block that the walker stands on; false if there is none.
    fn enter_block(&mut self, reader: &SstReader) -> Result<bool> {
        self.key.leave_block();
        self.block = if self.walker.is_on_entry() { Some(self.walker.load(reader)?) } else { None };
        Ok(self.block.is_some())
    }

    /// To the first row that is left, in this word, block or a later one.
    fn settle_forward(&mut self, reader: &SstReader) -> Result<()> {
        loop {
            if let Some(row) = self.word.row() {
                self.enter_row(row);
                return Ok(());
            }
            let Some(block) = &self.block else { return Ok(()) };
            self.walker.work.rows_passed += std::mem::take(&mut self.word.unseen);
            let next = self.word.number + 1;
            if next * 64 < block.len() {
                self.word.enter(block, &self.wanted, next, 0);
                continue;
            }
            // Of a key that goes on behind a left out block, no version could be seen yet.
            self.word.carry &= !self.next_block(reader)?;
            if !self.enter_first_word(reader)? {
                return Ok(());
            }
        }
    }

    /// Loads the block that the walker stands on and enters its first word; false if there is
    /// none.
    fn enter_first_word(&mut self, reader: &SstReader) -> Result<bool> {
        if !self.enter_block(reader)? {
            return Ok(false);
        }
        let block = self.block.as_ref().expect("just entered");
        self.word.enter(block, &self.wanted, 0, 0);
        Ok(true)
    }

    /// Stands on a row: puts its key together.
    #[inline]
    fn enter_row(&mut self, row: usize) {
        let block = self.block.as_ref().expect("callers are in a block");
        self.row = row;
        self.key.read(block, row);
    }

    fn seek_below(&mut self, reader: &SstReader, key: &[u8]) -> Result<()> {
        self.walker.seek(reader, key)?;
        if !self.walker.is_on_entry() {
            self.walker.last(reader)?;
        }
        if !self.entry_wanted(reader) {
            self.prev_block(reader)?;
        }
        if !self.enter_block(reader)? {
            return Ok(());
        }
        let below = self.block.as_ref().expect("just entered").lower_bound(key);
        self.settle_backward(reader, below)
    }

    /// From the rows before `end` in the current block, to the last key with a visible entry.
    fn settle_backward(&mut self, reader: &SstReader, mut end: usize) -> Result<()> {
        loop {
            let Some(block) = self.block.clone() else { return Ok(()) };
            while end > 0 {
                let last = end - 1;
                let mut start = last;
                while start > 0 && block.same_key(start) {
                    start -= 1;
                }
                if block.same_key(start) {
                    self.enter_row(last);
                    return self.resolve_long_group(reader);
                }
                let wanted = self.wanted.classes & (1 << (block.class(start) & 31)) != 0;
                let newest = (start..end).find(|row| block.ts(*row) <= self.wanted.read_ts);
                if let (true, Some(row)) = (wanted, newest) {
                    self.enter_row(row);
                    self.group_start = Some(start);
                    return Ok(());
                }
                self.walker.work.rows_passed += 1;
                end = start;
            }
            self.prev_block(reader)?;
            if !self.enter_block(reader)? {
                return Ok(());
            }
            end = self.block.as_ref().expect("just entered").len();
        }
    }

    /// The versions of `self.key` began in an earlier block: looks it up from its start.
    fn resolve_long_group(&mut self, reader: &SstReader) -> Result<()> {
        let key = self.key.take();
        let found = reader.find(&key, self.wanted.read_ts, &mut self.walker.work)?;
        if let Some((block, row)) = found
            && self.wanted.classes & (1 << (block.class(row) & 31)) != 0
        {
            self.block = Some(block);
            self.row = row;
            self.group_start = None;
            self.key.put_back(key);
            return Ok(());
        }
        self.seek_below(reader, &key)
    }

    /// Goes to the next key in the cursor's direction.
    pub(crate) fn advance(&mut self, reader: &SstReader) -> Result<()> {
        if self.block.is_none() {
            return Ok(());
        }
        if !self.wanted.backward {
            self.word.pass();
            return self.settle_forward(reader);
        }
        match self.group_start {
            Some(start) => self.settle_backward(reader, start),
            None => {
                let key = self.key.take();
                self.seek_below(reader, &key)
            }
        }
    }

    /// Forward: hands out rows from the current one on, while they lie within the stretch. Stands
    /// on the first row that was not handed out.
    pub(crate) fn fill(&mut self, reader: &SstReader, stretch: &mut Stretch<'_>) -> Result<()> {
        // Where rows are hidden, there are many.
        let is_long = stretch.hidden_below() > 0 || self.gives_part(stretch);
        let singly = if is_long { 0 } else { SHORT_STRETCH };
        for _ in 0..singly {
            if !self.key().is_some_and(|key| stretch.takes(key)) {
                return Ok(());
            }
            if self.kind() == Kind::Put {
                stretch.push(self.key.bytes(), self.value(), self.ts());
            } else {
                stretch.pass();
            }
            self.advance(reader)?;
        }
        while self.fill_from_block(reader, stretch) {
            self.settle_forward(reader)?;
            if stretch.is_too_long() {
                break;
            }
        }
        Ok(())
    }

    /// Whether what is left of the block is going to be handed out as a part of it.
    fn gives_part(&self, stretch: &Stretch<'_>) -> bool {
        let Some(block) = self.block.as_ref().filter(|_| self.wanted.blocks) else { return false };
        block.rows_surely_below(stretch.until()) >= self.row + LEAST_PART
    }

    /// Hands out the rows that are left of this block. Whether the stretch may go on behind it.
    fn fill_from_block(&mut self, reader: &SstReader, stretch: &mut Stretch<'_>) -> bool {
        let Some(block) = &self.block else { return false };
        let (until, hidden_below) = (stretch.until(), stretch.hidden_below());
        // Of many blocks that are gone through, the index tells it without a look at their keys.
        let is_within = self.walker.entry().is_some_and(|entry| entry.separator() < until);
        let mut end = match is_within {
            true => EndRow { row: block.len(), is_exact: true },
            false => EndRow { row: block.rows_surely_below(until), is_exact: false },
        };
        if hidden_below > 0 {
            end = EndRow::of(block, until);
            if end.row < block.len() {
                // Behind hidden rows, those that are wanted.
                block.prefetch_values(end.row, self.wanted.rows);
            }
        } else if self.wanted.rows > 64 {
            let ahead = if self.wanted.blocks { Ahead::Part } else { Ahead::Search };
            self.walker.prefetch_next(reader, ahead);
        }
        let place = self.wanted.blocks.then(|| self.walker.place());
        let mut rows = stretch.rows_of(block, place);
        loop {
            let unseen = block.not_handed_out(self.word.number, hidden_below);
            if self.word.left & unseen != 0 {
                end.make_exact(block, until);
                rows.pass(self.word.pass_all_of(unseen, end.row));
            }
            if self.wanted.blocks {
                rows.pick(self.word.number, self.word.take(end.row, rows.room()));
            }
            while let Some(row) = self.word.row() {
                if row >= end.row {
                    end.make_exact(block, until);
                }
                if row >= end.row || !rows.has_room() {
                    self.row = row;
                    self.key.read(block, row);
                    return false;
                }
                rows.push(row, |keys| self.key.append(block, row, keys));
                self.word.pass();
            }
            let next = self.word.number + 1;
            if next * 64 >= block.len() {
                return true;
            }
            let is_last = (next + 1) * 64 >= block.len();
            if is_last && self.wanted.rows > 64 && !self.wanted.blocks {
                self.walker.prefetch_next(reader, Ahead::Rows);
            }
            self.walker.work.rows_passed += std::mem::take(&mut self.word.unseen);
            self.word.enter(block, &self.wanted, next, 0);
        }
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.block.as_ref().map(|_| self.key.bytes())
    }

    fn current(&self) -> &RowBlock {
        self.block.as_ref().expect("callers look at the entry only while there is one")
    }

    pub(crate) fn ts(&self) -> u64 {
        self.current().ts(self.row)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.current().kind(self.row)
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.current().value(self.row)
    }

    /// Jumps over blocks in which every row is older than the tombstone.
    pub(crate) fn skip_hidden(&mut self, reader: &SstReader, cover: &Cover) -> Result<()> {
        // A block that has something newer says so itself; its index entry is not at hand.
        if self.block.as_ref().is_none_or(|block| block.max_ts() >= cover.ts) {
            return Ok(());
        }
        let until = cover.until.as_deref();
        if reader.properties().max_point_ts < cover.ts {
            return match until {
                Some(until) => self.seek(reader, until),
                None => {
                    self.block = None;
                    Ok(())
                }
            };
        }
        if self.wanted.backward {
            return self.skip_hidden_backward(reader, cover);
        }
        let hidden = |entry: &EntryRef<'_>| {
            entry.max_ts() < cover.ts && until.is_none_or(|until| entry.separator() < until)
        };
        if !self.walker.entry().is_some_and(|entry| hidden(&entry)) {
            return Ok(());
        }
        let ts = cover.ts;
        // The next block with something newer, or the one in which the cover ends.
        self.walker.next_where(reader, |index, i| {
            index.max_ts(i) >= ts || until.is_some_and(|until| index.separator(i) >= until)
        })?;
        self.word = Word::default();
        self.enter_first_word(reader)?;
        self.settle_forward(reader)
    }

    /// Backward: jumps over blocks that are older than the tombstone and lie wholly inside of it.
    fn skip_hidden_backward(&mut self, reader: &SstReader, cover: &Cover) -> Result<()> {
        let until = cover.until.as_deref();
        let hidden = |entry: &EntryRef<'_>| {
            entry.max_ts() < cover.ts && until.is_none_or(|until| entry.is_above(until))
        };
        if !self.walker.entry().is_some_and(|entry| hidden(&entry)) {
            return Ok(());
        }
        self.walker.prev_where(reader, |index, i| {
            index.max_ts(i) >= cover.ts || until.is_some_and(|until| !is_above(index, i, until))
        })?;
        if !self.enter_block(reader)? {
            return Ok(());
        }
        let end = self.block.as_ref().expect("just entered").len();
        self.settle_backward(reader, end)
    }
}
