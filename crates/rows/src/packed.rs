//! Columns of a block's rows in little memory: numbers as their distance from the least one, in as
//! few bytes as the farthest needs; texts that come again and again once.
//!
//! ```text
//!   dates     9131 9133 9130 ..    least 9130, one byte each    01 03 00 ..
//!   flags     N N R A N ..         N R A                        00 00 01 02 00 ..
//! ```
//! To give them back costs a nanosecond a value or less: an addition over values that lie side by
//! side. After *frame of reference* and *dictionary* encoding as column stores have them (Zukowski,
//! Héman, Nes, Boncz: "Super-Scalar RAM-CPU Cache Compression", ICDE 2006).

use std::ops::Range;

use braid_kv::prefetch;
use foldhash::HashMap;

use super::columns::{Column, Values};

/// Which values are wanted.
#[derive(Clone, Copy)]
pub(super) enum Picks<'a> {
    /// Those from one place to another.
    Run(usize, usize),
    /// Those at these places, ascending.
    These(&'a [u16]),
}

impl Picks<'_> {
    /// How many.
    pub(super) fn len(self) -> usize {
        match self {
            Picks::Run(from, to) => to - from,
            Picks::These(places) => places.len(),
        }
    }
}

/// A column of some rows, which does not change any more.
pub(super) struct PackedColumn {
    values: PackedValues,
    nulls: Box<[u16]>,
}

enum PackedValues {
    Numbers {
        least: i64,
        above: Above,
    },
    Decimals(Box<[i128]>),
    Bools(Box<[bool]>),
    F32(Box<[f32]>),
    F64(Box<[f64]>),
    Bytes(Texts),
    /// Which of few each is.
    Few(Box<[u8]>, Texts),
}

/// How far numbers lie above the least one.
enum Above {
    Nothing,
    U8(Box<[u8]>),
    U16(Box<[u16]>),
    U32(Box<[u32]>),
    U64(Box<[u64]>),
}

/// Byte strings: where each begins, and behind the last where it ends.
struct Texts {
    ends: Box<[u32]>,
    bytes: Box<[u8]>,
}

/// More different texts than this are not worth a list.
const FEW_TEXTS: usize = 64;
/// Each has to come so often on average.
const OFTEN: usize = 4;

impl Texts {
    fn get(&self, at: usize) -> &[u8] {
        &self.bytes[self.ends[at] as usize..self.ends[at + 1] as usize]
    }

    fn memory(&self) -> usize {
        size_of_val(&*self.ends) + self.bytes.len()
    }
}

impl Above {
    fn new(least: i64, greatest: i64, numbers: impl Iterator<Item = i64>) -> Above {
        let above = |n: i64| n.wrapping_sub(least) as u64;
        match above(greatest) {
            0 => Above::Nothing,
            1..=0xFF => Above::U8(numbers.map(|n| above(n) as u8).collect()),
            0x100..=0xFFFF => Above::U16(numbers.map(|n| above(n) as u16).collect()),
            0x1_0000..=0xFFFF_FFFF => Above::U32(numbers.map(|n| above(n) as u32).collect()),
            _ => Above::U64(numbers.map(above).collect()),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Above::Nothing => 0,
            Above::U8(all) => size_of_val(&**all),
            Above::U16(all) => size_of_val(&**all),
            Above::U32(all) => size_of_val(&**all),
            Above::U64(all) => size_of_val(&**all),
        }
    }

    /// Adds the picked numbers, as `make` makes them.
    fn give<T>(&self, picks: Picks<'_>, least: i64, out: &mut Vec<T>, make: impl Fn(i64) -> T) {
        let number = |above: u64| make(least.wrapping_add(above as i64));
        match self {
            Above::Nothing => out.extend((0..picks.len()).map(|_| number(0))),
            Above::U8(all) => give(all, picks, out, |n| number(u64::from(n))),
            Above::U16(all) => give(all, picks, out, |n| number(u64::from(n))),
            Above::U32(all) => give(all, picks, out, |n| number(u64::from(n))),
            Above::U64(all) => give(all, picks, out, number),
        }
    }
}

/// Brings values closer, up to 256 bytes: the processor sees for itself that more are read.
fn prefetch_all<T>(values: &[T]) {
    let bytes = size_of_val(values).min(256);
    let first = values.as_ptr().cast::<u8>();
    (0..bytes).step_by(64).for_each(|at| prefetch(first.wrapping_add(at)));
}

/// Adds the picked values, as `make` makes them.
fn give<S: Copy, T>(all: &[S], picks: Picks<'_>, out: &mut Vec<T>, make: impl Fn(S) -> T) {
    match picks {
        Picks::Run(from, to) => out.extend(all[from..to].iter().map(|value| make(*value))),
        Picks::These(places) => {
            out.extend(places.iter().map(|place| make(all[usize::from(*place)])));
        }
    }
}

/// Whole numbers with the least in place of NULLs.
fn numbers<T: Copy>(
    values: &[T],
    nulls: &[u32],
    wide: impl Fn(T) -> Option<i64>,
) -> Option<PackedValues> {
    let mut null = nulls.iter().peekable();
    let mut all = Vec::with_capacity(values.len());
    let mut bounds: Option<(i64, i64)> = None;
    for (row, value) in values.iter().enumerate() {
        if null.next_if(|null| **null as usize == row).is_some() {
            all.push(None);
            continue;
        }
        let value = wide(*value)?;
        let (least, greatest) = bounds.unwrap_or((value, value));
        bounds = Some((least.min(value), greatest.max(value)));
        all.push(Some(value));
    }
    let (least, greatest) = bounds.unwrap_or_default();
    let all = all.into_iter().map(|value| value.unwrap_or(least));
    Some(PackedValues::Numbers { least, above: Above::new(least, greatest, all) })
}

/// The list of different texts, and which of them each is; `None` if they are too many.
fn few(ends: &[i32], bytes: &[u8]) -> Option<PackedValues> {
    let count = ends.len() - 1;
    let most = FEW_TEXTS.min(count / OFTEN);
    let mut known: HashMap<&[u8], u8> = HashMap::default();
    let mut which = Vec::with_capacity(count);
    let (mut list, mut list_ends) = (Vec::new(), vec![0]);
    for ends in ends.windows(2) {
        let text = &bytes[ends[0] as usize..ends[1] as usize];
        let next = known.len();
        let number = *known.entry(text).or_insert(next as u8);
        if usize::from(number) == next {
            if next == most {
                return None;
            }
            list.extend_from_slice(text);
            list_ends.push(list.len() as u32);
        }
        which.push(number);
    }
    let texts = Texts { ends: list_ends.into(), bytes: list.into() };
    Some(PackedValues::Few(which.into(), texts))
}

impl PackedColumn {
    /// Packs a column; `None` for one whose values are no plain bytes.
    pub(super) fn new(column: &Column) -> Option<PackedColumn> {
        let nulls = &column.nulls;
        let values = match &column.values {
            Values::Bool(all) => PackedValues::Bools(all.as_slice().into()),
            Values::I16(all) => numbers(all, nulls, |n| Some(n.into()))?,
            Values::I32(all) => numbers(all, nulls, |n| Some(n.into()))?,
            Values::I64(all) => numbers(all, nulls, Some)?,
            Values::U32(all) => numbers(all, nulls, |n| Some(n.into()))?,
            Values::I128(all) => numbers(all, nulls, |n| n.try_into().ok())
                .unwrap_or_else(|| PackedValues::Decimals(all.as_slice().into())),
            Values::F32(all) => PackedValues::F32(all.as_slice().into()),
            Values::F64(all) => PackedValues::F64(all.as_slice().into()),
            Values::Bytes(ends, bytes) => few(ends, bytes).unwrap_or_else(|| {
                let ends = ends.iter().map(|end| *end as u32).collect();
                PackedValues::Bytes(Texts { ends, bytes: bytes.as_slice().into() })
            }),
            Values::Made(_) => return None,
        };
        let nulls = nulls.iter().map(|row| *row as u16).collect();
        Some(PackedColumn { values, nulls })
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let values = match &self.values {
            PackedValues::Numbers { above, .. } => above.memory(),
            PackedValues::Decimals(all) => size_of_val(&**all),
            PackedValues::Bools(all) => all.len(),
            PackedValues::F32(all) => size_of_val(&**all),
            PackedValues::F64(all) => size_of_val(&**all),
            PackedValues::Bytes(texts) => texts.memory(),
            PackedValues::Few(which, texts) => which.len() + texts.memory(),
        };
        size_of::<PackedColumn>() + size_of_val(&*self.nulls) + values
    }

    /// Brings the first values closer, without waiting for them. The column itself is there.
    pub(super) fn prefetch(&self) {
        match &self.values {
            PackedValues::Numbers { above, .. } => match above {
                Above::Nothing => {}
                Above::U8(all) => prefetch_all(all),
                Above::U16(all) => prefetch_all(all),
                Above::U32(all) => prefetch_all(all),
                Above::U64(all) => prefetch_all(all),
            },
            PackedValues::Decimals(all) => prefetch_all(all),
            PackedValues::Bools(all) => prefetch_all(all),
            PackedValues::F32(all) => prefetch_all(all),
            PackedValues::F64(all) => prefetch_all(all),
            PackedValues::Bytes(texts) => {
                prefetch_all(&texts.ends);
                prefetch_all(&texts.bytes);
            }
            PackedValues::Few(which, texts) => {
                prefetch_all(which);
                prefetch_all(&texts.ends);
                prefetch_all(&texts.bytes);
            }
        }
    }

    /// Adds the picked values to a column of the same form that has `before` rows.
    pub(super) fn give(&self, picks: Picks<'_>, column: &mut Column, before: usize) {
        self.give_nulls(picks, &mut column.nulls, before as u32);
        match (&self.values, &mut column.values) {
            (PackedValues::Numbers { least, above }, values) => {
                give_numbers(above, picks, *least, values);
            }
            (PackedValues::Decimals(all), Values::I128(out)) => give(all, picks, out, |n| n),
            (PackedValues::Bools(all), Values::Bool(out)) => give(all, picks, out, |b| b),
            (PackedValues::F32(all), Values::F32(out)) => give(all, picks, out, |n| n),
            (PackedValues::F64(all), Values::F64(out)) => give(all, picks, out, |n| n),
            (PackedValues::Bytes(texts), Values::Bytes(ends, out)) => match picks {
                Picks::Run(from, to) => {
                    let bytes = texts.ends[from] as usize..texts.ends[to] as usize;
                    let ahead = out.len() as i32 - bytes.start as i32;
                    out.extend_from_slice(&texts.bytes[bytes]);
                    ends.extend(texts.ends[from + 1..=to].iter().map(|end| *end as i32 + ahead));
                }
                Picks::These(places) => {
                    give_texts(places.iter().map(|at| texts.get(usize::from(*at))), ends, out);
                }
            },
            (PackedValues::Few(which, texts), Values::Bytes(ends, out)) => {
                let text = |which: &u8| texts.get(usize::from(*which));
                match picks {
                    Picks::Run(from, to) => {
                        give_texts(which[from..to].iter().map(text), ends, out);
                    }
                    Picks::These(places) => {
                        let which = places.iter().map(|at| &which[usize::from(*at)]);
                        give_texts(which.map(text), ends, out);
                    }
                }
            }
            _ => unreachable!("a packed column is known by its form"),
        }
    }

    fn give_nulls(&self, picks: Picks<'_>, out: &mut Vec<u32>, before: u32) {
        if self.nulls.is_empty() {
            return;
        }
        match picks {
            Picks::Run(from, to) => {
                let inside = |place: usize| self.nulls.partition_point(|n| usize::from(*n) < place);
                let nulls: Range<usize> = inside(from)..inside(to);
                let row = |null: &u16| before + u32::from(*null) - from as u32;
                out.extend(self.nulls[nulls].iter().map(row));
            }
            Picks::These(places) => {
                let is_null = |place: &u16| self.nulls.binary_search(place).is_ok();
                let rows = (before..).zip(places).filter(|(_, place)| is_null(place));
                out.extend(rows.map(|(row, _)| row));
            }
        }
    }
}

fn give_numbers(above: &Above, picks: Picks<'_>, least: i64, values: &mut Values) {
    match values {
        Values::I16(out) => above.give(picks, least, out, |n| n as i16),
        Values::I32(out) => above.give(picks, least, out, |n| n as i32),
        Values::I64(out) => above.give(picks, least, out, |n| n),
        Values::U32(out) => above.give(picks, least, out, |n| n as u32),
        Values::I128(out) => above.give(picks, least, out, i128::from),
        _ => unreachable!("a packed column is known by its form"),
    }
}

fn give_texts<'a>(
    texts: impl ExactSizeIterator<Item = &'a [u8]>,
    ends: &mut Vec<i32>,
    out: &mut Vec<u8>,
) {
    ends.reserve(texts.len());
    for text in texts {
        out.extend_from_slice(text);
        ends.push(out.len() as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: Values, nulls: &[u32]) -> Column {
        Column { values, nulls: nulls.to_vec() }
    }

    fn texts(all: &[&str]) -> Values {
        let (mut ends, mut bytes) = (vec![0], Vec::new());
        for text in all {
            bytes.extend_from_slice(text.as_bytes());
            ends.push(bytes.len() as i32);
        }
        Values::Bytes(ends, bytes)
    }

    /// Value `row` of a column, to compare.
    fn shown(column: &Column, row: usize) -> String {
        if column.nulls.contains(&(row as u32)) {
            return "NULL".into();
        }
        match &column.values {
            Values::Bool(all) => all[row].to_string(),
            Values::I16(all) => all[row].to_string(),
            Values::I32(all) => all[row].to_string(),
            Values::I64(all) => all[row].to_string(),
            Values::U32(all) => all[row].to_string(),
            Values::F32(all) => all[row].to_string(),
            Values::F64(all) => all[row].to_string(),
            Values::I128(all) => all[row].to_string(),
            Values::Made(all) => format!("{:?}", all[row]),
            Values::Bytes(ends, bytes) => {
                let text = &bytes[ends[row] as usize..ends[row + 1] as usize];
                text.escape_ascii().to_string()
            }
        }
    }

    fn like(column: &Column) -> Column {
        let values = match &column.values {
            Values::Bool(_) => Values::Bool(Vec::new()),
            Values::I16(_) => Values::I16(Vec::new()),
            Values::I32(_) => Values::I32(Vec::new()),
            Values::I64(_) => Values::I64(Vec::new()),
            Values::U32(_) => Values::U32(Vec::new()),
            Values::F32(_) => Values::F32(Vec::new()),
            Values::F64(_) => Values::F64(Vec::new()),
            Values::I128(_) => Values::I128(Vec::new()),
            Values::Made(_) => Values::Made(Vec::new()),
            Values::Bytes(..) => Values::Bytes(vec![0], Vec::new()),
        };
        Column { values, nulls: Vec::new() }
    }

    #[test]
    fn values_come_back_whatever_is_picked() {
        let long = ["a", "", "ccc", "dd", "a"].repeat(8);
        let all: Vec<String> = (0..40).map(|n| format!("text {n}")).collect();
        let different: Vec<&str> = all.iter().map(String::as_str).collect();
        let spread = |step: i64| -> Vec<i64> { (0..40).map(|n| 7 - n * step).collect() };
        let edges = [i64::MIN, i64::MAX, 0, -1].repeat(10);
        let nan = [i128::MAX, -5, 1 << 80, 0].repeat(10);
        let columns = [
            column(Values::Bool((0..40).map(|n| n % 3 == 0).collect()), &[1, 39]),
            column(Values::I16((0..40).map(|n| i16::MIN + n).collect()), &[0]),
            column(Values::I32(vec![-7; 40]), &[]),
            column(Values::I64(spread(1)), &[3, 4, 5]),
            column(Values::I64(spread(300)), &[]),
            column(Values::I64(spread(1 << 30)), &[20]),
            column(Values::I64(edges), &[]),
            column(Values::I64(vec![0; 40]), &(0..40).collect::<Vec<_>>()),
            column(Values::U32((0..40).map(|n| u32::MAX - n * 70_000).collect()), &[7]),
            column(Values::F32((0..40).map(|n| n as f32 / 3.0).collect()), &[2]),
            column(Values::F64((0..40).map(|n| n as f64 / -7.0).collect()), &[]),
            column(Values::I128((0..40).map(|n| n * 1_000_000_007).collect()), &[0, 39]),
            column(Values::I128(nan), &[2]),
            column(texts(&long), &[1]),
            column(texts(&different), &[0, 7]),
        ];
        let picked: Vec<Vec<u16>> = vec![vec![], vec![0], vec![39], vec![1, 2, 7, 20, 39]];
        for (n, column) in columns.iter().enumerate() {
            let packed = PackedColumn::new(column).expect("plain values");
            let mut out = like(column);
            let (mut rows, mut expected) = (0, Vec::new());
            for (from, to) in [(0, 40), (0, 0), (3, 9), (39, 40), (1, 40)] {
                packed.give(Picks::Run(from, to), &mut out, rows);
                expected.extend((from..to).map(|row| shown(column, row)));
                rows += to - from;
            }
            for places in &picked {
                packed.give(Picks::These(places), &mut out, rows);
                expected.extend(places.iter().map(|row| shown(column, usize::from(*row))));
                rows += places.len();
            }
            let given: Vec<String> = (0..rows).map(|row| shown(&out, row)).collect();
            assert_eq!(given, expected, "column {n}");
        }
    }

    #[test]
    fn what_is_near_and_what_comes_often_takes_little() {
        let numbers = |step: i64| column(Values::I64((0..256).map(|n| n * step).collect()), &[]);
        let memory = |column: &Column| {
            PackedColumn::new(column).expect("plain values").memory() - size_of::<PackedColumn>()
        };
        let few = ["MAIL", "SHIP", "AIR", "RAIL"].repeat(64);
        assert_eq!(memory(&numbers(0)), 0);
        assert_eq!(memory(&numbers(1)), 256);
        assert_eq!(memory(&numbers(2)), 512);
        assert_eq!(memory(&numbers(1 << 20)), 1_024);
        assert_eq!(memory(&numbers(1 << 40)), 2_048);
        assert_eq!(memory(&column(texts(&few), &[])), 256 + 5 * 4 + 15);
        assert!(PackedColumn::new(&column(Values::Made(Vec::new()), &[])).is_none());
    }
}
