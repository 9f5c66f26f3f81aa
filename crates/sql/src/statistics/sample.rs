//! Drawing rows of a table from all over it.
//!
//! ```text
//!   small      every row is read; of those, so many at random are kept
//!   large      |····|····|····|····|····|····|····|····|    pieces of about as many bytes
//!               x    x     x  xxxx x      x   x    xxxx     a few rows of each are kept
//!                              └─ every so many pieces one is read to its end, and counted
//! ```
//! A table inside of another is found among the rows around it by its row class; its parents' rows
//! are counted along with it. One with fewer rows than are wanted of each piece is read whole,
//! however much lies around it: there is no other way to find them. Rows that lie beside each other
//! in a sample would look as if values came again and again wherever a table is sorted by them, so
//! they come from as many places as the store can name.

use std::sync::Arc;

use braid_catalog::{kv_error, memory_error};
use braid_env::memory::Account;
use braid_env::random::Random;
use braid_kv::{KeySpan, ReadMode, ScanOptions, Txn};
use braid_types::{Datum, SqlResult, SqlState};

use braid_planner::FamilySize;
use braid_planner::estimate::{Sampled, Values};
use braid_rows::TableLayout;

/// Stored bytes up to which a table is read as a whole.
const WHOLE_BYTES: u64 = 32 << 20;
/// A piece has at least so many bytes: about what is read anyway to find its first row.
const PIECE_BYTES: u64 = 4 << 10;
/// Where memory is short, so many rows are enough.
const FEWEST_ROWS: usize = 300;
/// Pieces that are read to their ends, to count.
const COUNTED: usize = 256;
/// Rows that are passed over at most between two of a piece that are kept.
const GAP: usize = 32;

/// What drawing needs to know.
pub(super) struct Source<'a> {
    pub(super) txn: &'a Arc<Txn>,
    pub(super) layout: &'a TableLayout,
    /// Of the table that it lies in.
    pub(super) parent: Option<&'a TableLayout>,
    /// Rows to draw.
    pub(super) target: usize,
    /// Who holds them.
    pub(super) memory: &'a Account,
    /// Fails when the work is to end.
    pub(super) stop: &'a dyn Fn() -> SqlResult<()>,
    pub(super) seed: u64,
    /// Stored bytes up to which every row is read, if not the usual.
    pub(super) whole_bytes: Option<u64>,
}

/// Rows of a table.
pub(super) struct Sample {
    /// By ordinal.
    pub(super) columns: Vec<Values>,
    /// How many rows were kept.
    pub(super) rows: usize,
    /// Rows of the table, as far as is known.
    pub(super) total: f64,
    /// Values of the first key column, if that is better known than by the rows kept.
    pub(super) leading: Option<f64>,
    pub(super) family: Option<FamilySize>,
    /// Stored bytes, everything around counted.
    pub(super) bytes: u64,
}

/// A row that is kept, with its place among all.
type Kept = (u64, Vec<Sampled>);

/// A random choice of `most` of the rows that come by (Vitter's algorithm R).
struct Reservoir {
    most: usize,
    seen: u64,
    rows: Vec<Kept>,
}

impl Reservoir {
    fn new(most: usize) -> Reservoir {
        Reservoir { most, seen: 0, rows: Vec::new() }
    }

    /// The place of the next row among the kept ones, if it is one of them.
    fn next(&mut self, random: &mut Random) -> Option<usize> {
        self.seen += 1;
        if self.rows.len() < self.most {
            return Some(self.rows.len());
        }
        let at = random.below(self.seen) as usize;
        (at < self.most).then_some(at)
    }
}

/// Rows beside each other, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Spans that were read.
    runs: u64,
    rows: u64,
    parents: u64,
    /// How often the first key column had another value than in the row before.
    leading: u64,
    /// How often the row before had another parent.
    families: u64,
    /// Rows of the present family, and of the largest.
    family: u64,
    most: u64,
}

struct Drawing<'a> {
    source: &'a Source<'a>,
    random: Random,
    tally: Tally,
    /// Key columns that are compared with those of the row before.
    compared: usize,
    before: Option<Vec<Datum>>,
    wanted: Vec<bool>,
}

/// Draws rows of a table: fewer than are wanted where there is no memory for so many.
///
/// # Errors
/// 53200 if there is none for a few either.
pub(super) fn draw(source: &Source<'_>) -> SqlResult<Sample> {
    let mut target = source.target;
    loop {
        let before = source.memory.used();
        match draw_rows(&Source { target, ..*source }) {
            Err(e) if e.state() == SqlState::OUT_OF_MEMORY && target > FEWEST_ROWS => {
                source.memory.give(source.memory.used() - before);
                target = (target / 4).max(FEWEST_ROWS);
            }
            drawn => return drawn,
        }
    }
}

fn draw_rows(source: &Source<'_>) -> SqlResult<Sample> {
    let columns = source.layout.table.columns.len();
    let parent = source.parent.map_or(0, |p| p.rows.columns().len());
    let compared = parent.max(1);
    let mut wanted = vec![false; columns];
    source.layout.rows.columns()[..compared].iter().for_each(|c| wanted[c.ordinal] = true);
    let random = Random::seeded(source.seed);
    let (tally, before) = (Tally::default(), None);
    let mut drawing = Drawing { source, random, tally, compared, before, wanted };
    let span = source.layout.rows.whole_span();
    let bytes = source.txn.stored_bytes(&span).map_err(kv_error)?;
    let pieces = match bytes > source.whole_bytes.unwrap_or(WHOLE_BYTES) {
        true => source.txn.divide(&span, source.target, PIECE_BYTES).map_err(kv_error)?,
        false => Vec::new(),
    };
    if pieces.len() > COUNTED && !drawing.is_small(&span)? {
        let (rows, total) = drawing.pieces(&pieces)?;
        return Ok(drawing.finish(rows, total, bytes));
    }
    let mut all = Reservoir::new(source.target);
    drawing.read(&span, &mut all, 0)?;
    Ok(drawing.finish(all.rows, None, bytes))
}

impl Drawing<'_> {
    /// Whether a table has few rows, however much lies inside of them.
    fn is_small(&mut self, span: &KeySpan) -> SqlResult<bool> {
        let source = self.source;
        if !source.layout.jumps() {
            return Ok(false);
        }
        let options = source.layout.scan_options(ReadMode::Unrecorded, false);
        let mut scan = source.txn.scan(span.clone(), options).map_err(kv_error)?;
        for _ in 0..source.target {
            self.check()?;
            if scan.next_row().map_err(kv_error)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a span to its end, counts it, and lets its rows into a reservoir. `base` is the place
    /// of its first row.
    fn read(&mut self, span: &KeySpan, into: &mut Reservoir, base: u64) -> SqlResult<()> {
        let mut scan = self.source.txn.scan(span.clone(), self.options(true)).map_err(kv_error)?;
        let layout = self.source.layout;
        self.check()?;
        self.before = None;
        self.tally.runs += 1;
        let mut place = base;
        while let Some((key, value)) = scan.next_row().map_err(kv_error)? {
            self.check()?;
            let mut row = vec![Datum::Null; layout.table.columns.len()];
            if !layout.rows.decode(key, &mut row, Some(&self.wanted))? {
                self.count_parent(key)?;
                continue;
            }
            self.count(&row);
            if let Some(at) = into.next(&mut self.random) {
                self.keep(key, value, (at, place), &mut into.rows)?;
            }
            place += 1;
        }
        Ok(())
    }

    /// Some rows of each piece, and the number of all rows if they were not counted.
    fn pieces(&mut self, pieces: &[KeySpan]) -> SqlResult<(Vec<Kept>, Option<f64>)> {
        // What was written last is in no file yet, and lies where it lies: the last piece, where
        // new keys come, may be much larger than it seems.
        let (last, body) = pieces.split_last().expect("there are more than one");
        let each = self.source.target.div_ceil(pieces.len());
        let step = body.len().div_ceil(COUNTED).max(1);
        let first = self.random.below(step as u64) as usize;
        let place = |n: usize| (n as u64) << 32;
        let (mut kept, mut counted) = (Vec::new(), 0usize);
        for (n, piece) in body.iter().enumerate().skip(first).step_by(step) {
            let mut some = Reservoir::new(each);
            self.read(piece, &mut some, place(n))?;
            kept.append(&mut some.rows);
            counted += 1;
        }
        let mean = self.tally.rows as f64 / counted.max(1) as f64;
        if mean < each as f64 {
            return Ok((self.all_of(pieces)?, None));
        }
        let gap = (mean / each as f64).clamp(1.0, GAP as f64) as usize;
        for (n, piece) in body.iter().enumerate() {
            if n < first || !(n - first).is_multiple_of(step) {
                self.some(piece, each, gap, place(n), &mut kept)?;
            }
        }
        let before = self.tally.rows;
        let mut end = Reservoir::new(self.source.target);
        self.read(last, &mut end, place(body.len()))?;
        let of_body = mean * body.len() as f64;
        let of_end = (self.tally.rows - before) as f64;
        // As many rows of the end as of the rest, in proportion.
        let share = if of_body > 0.0 { of_end / of_body * kept.len() as f64 } else { f64::MAX };
        let share = (share.ceil() as usize).max(1);
        while end.rows.len() > share {
            let at = self.random.below(end.rows.len() as u64) as usize;
            end.rows.swap_remove(at);
        }
        kept.append(&mut end.rows);
        Ok((kept, Some(of_body + of_end)))
    }

    /// Every row, piece by piece.
    fn all_of(&mut self, pieces: &[KeySpan]) -> SqlResult<Vec<Kept>> {
        self.tally = Tally::default();
        let mut all = Reservoir::new(self.source.target);
        for (n, piece) in pieces.iter().enumerate() {
            self.read(piece, &mut all, (n as u64) << 32)?;
        }
        Ok(all.rows)
    }

    /// Keeps some rows of a piece that is not read to its end.
    fn some(
        &mut self,
        piece: &KeySpan,
        each: usize,
        gap: usize,
        base: u64,
        kept: &mut Vec<Kept>,
    ) -> SqlResult<()> {
        self.check()?;
        let mut skip = self.random.below(gap as u64) as usize;
        let options = ScanOptions { first: skip + 1 + (each - 1) * gap, ..self.options(false) };
        let mut scan = self.source.txn.scan(piece.clone(), options).map_err(kv_error)?;
        let (end, mut place) = (kept.len() + each, base);
        while kept.len() < end {
            let Some((key, value)) = scan.next_row().map_err(kv_error)? else { return Ok(()) };
            self.check()?;
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let at = kept.len();
            self.keep(key, value, (at, place), kept)?;
            place += 1;
            skip = if kept.len() > at { gap - 1 } else { 0 };
        }
        Ok(())
    }

    /// Rows of the table; with those of its parent if they are counted.
    fn options(&self, counts: bool) -> ScanOptions {
        let source = self.source;
        let mut options = source.layout.scan_options(ReadMode::Unrecorded, false);
        if let Some(parent) = source.parent.filter(|_| counts) {
            options.classes |= parent.rows.class_mask();
        }
        options
    }

    /// Before each row: expressions that are computed of it may take long.
    fn check(&self) -> SqlResult<()> {
        (self.source.stop)()
    }

    fn count_parent(&mut self, key: &[u8]) -> SqlResult<()> {
        let Some(parent) = self.source.parent else { return Ok(()) };
        let mut row = vec![Datum::Null; parent.table.columns.len()];
        let nothing = vec![false; row.len()];
        if parent.rows.decode(key, &mut row, Some(&nothing))? {
            self.tally.parents += 1;
        }
        Ok(())
    }

    fn count(&mut self, row: &[Datum]) {
        let columns = &self.source.layout.rows.columns()[..self.compared];
        let tally = &mut self.tally;
        tally.rows += 1;
        let differ =
            |before: &Vec<Datum>, n: usize| before[n].cmp_sql(&row[columns[n].ordinal]).is_ne();
        let other = match &self.before {
            None => true,
            Some(before) => (0..columns.len()).any(|n| differ(before, n)),
        };
        if self.before.as_ref().is_none_or(|before| differ(before, 0)) {
            tally.leading += 1;
        }
        if other {
            tally.families += 1;
            tally.family = 0;
            self.before = Some(columns.iter().map(|c| row[c.ordinal].clone()).collect());
        }
        tally.family += 1;
        tally.most = tally.most.max(tally.family);
    }

    /// Keeps a row at a place of the list, in place of the one that is there.
    fn keep(
        &self,
        key: &[u8],
        value: &[u8],
        (at, place): (usize, u64),
        rows: &mut Vec<Kept>,
    ) -> SqlResult<()> {
        let Some(row) = self.source.layout.decode(key, value, None)? else { return Ok(()) };
        // Of rows of its own, it knows as little as anybody when they are committed.
        let known = |value: Datum| match value.is_pending_commit_time() {
            true => Datum::Null,
            false => value,
        };
        let row: Vec<Sampled> = row.into_iter().map(known).map(Sampled::new).collect();
        let bytes = |row: &[Sampled]| row.iter().map(Sampled::memory).sum::<usize>();
        let memory = self.source.memory;
        memory.take("a sample of rows", bytes(&row)).map_err(|e| memory_error(&e))?;
        match rows.get_mut(at) {
            Some(old) => {
                memory.give(bytes(&old.1));
                *old = (place, row);
            }
            None => rows.push((place, row)),
        }
        Ok(())
    }

    /// `total`: if not every row was counted, how many there are.
    fn finish(self, mut rows: Vec<Kept>, total: Option<f64>, bytes: u64) -> Sample {
        rows.sort_unstable_by_key(|(place, _)| *place);
        let kept = rows.len();
        let mut columns = vec![Values::default(); self.source.layout.table.columns.len()];
        for (_, row) in rows {
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        let Tally { runs, rows, parents, leading, families, most, .. } = self.tally;
        // What a piece begins with may have begun before it.
        let edges = runs.saturating_sub(1);
        let families = families.saturating_sub(edges).max(parents).max(1);
        let family = self
            .source
            .parent
            .map(|_| FamilySize { average: rows as f64 / families as f64, most: most as f64 });
        let changes = leading.saturating_sub(edges) as f64;
        let leading = total
            .filter(|_| rows > edges)
            .map(|total| (changes / (rows - edges) as f64 * total).max(1.0));
        let total = total.unwrap_or(rows as f64);
        Sample { columns, rows: kept, total, leading, family, bytes }
    }
}
