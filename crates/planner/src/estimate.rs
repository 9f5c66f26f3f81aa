//! From a sample of a column's values to what is kept of them.
//!
//! The rules are PostgreSQL's, so that its views mean the same here: which values count as common,
//! where the bounds of the histogram lie, when a number of distinct values is remembered as a part
//! of the rows. Distinct values are estimated by the estimator "Duj1" of Haas and Stokes,
//! "Estimating the number of classes in a finite population" (1998).

use braid_types::{Datum, RangeValue, SqlType};

/// A value of more bytes is counted and not kept.
const LONG: usize = 1024;
/// From this part of the rows on, distinct values are taken to grow with the table.
const GROWING: f64 = 0.1;

/// What a sample holds of one column, in the order of the rows.
#[derive(Clone, Debug, Default)]
pub struct Values {
    kept: Vec<Datum>,
    nulls: usize,
    /// Values that were too long to be kept.
    long: usize,
    /// Bytes of all that are not NULL.
    bytes: usize,
}

/// A value as a sample keeps it.
#[derive(Clone, Debug)]
pub enum Sampled {
    /// As it is.
    Kept(Datum),
    /// So many bytes.
    Long(usize),
}

impl Sampled {
    /// A value that was drawn.
    pub fn new(value: Datum) -> Sampled {
        match stored_width(&value) {
            width if width > LONG => Sampled::Long(width),
            _ => Sampled::Kept(value),
        }
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        match self {
            Sampled::Kept(value) => value.memory(),
            Sampled::Long(_) => size_of::<Datum>(),
        }
    }
}

impl Values {
    /// Adds the value of the next row.
    pub fn push(&mut self, value: Sampled) {
        match value {
            Sampled::Kept(Datum::Null) => self.nulls += 1,
            Sampled::Kept(value) => {
                self.bytes += stored_width(&value);
                self.kept.push(value);
            }
            Sampled::Long(width) => {
                self.long += 1;
                self.bytes += width;
            }
        }
    }

    fn rows(&self) -> usize {
        self.kept.len() + self.nulls + self.long
    }

    /// Bytes of the values of an average row.
    pub fn bytes_per_row(&self) -> f64 {
        self.bytes as f64 / self.rows().max(1) as f64
    }
}

/// What is kept of a column.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Part of the rows in which it is NULL.
    pub null_fraction: f64,
    /// Average bytes of a value that is not NULL.
    pub width: f64,
    /// As PostgreSQL writes it: a number, or if it grows with the table, the negative part of the
    /// rows.
    pub distinct: f64,
    /// The most common values with their parts of all rows, most common first.
    pub common: Vec<(Datum, f64)>,
    /// Bounds between which equally many of the other values lie, ascending.
    pub histogram: Vec<Datum>,
    /// How much the order of the values is the order of the rows: from -1 to 1.
    pub correlation: Option<f64>,
}

/// How large a sample is, of what, and how much is kept of it.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Rows of the table.
    pub rows: f64,
    /// Common values and parts of a histogram that are kept.
    pub target: usize,
}

/// Equal values of a sorted sample.
struct Group {
    first: usize,
    count: usize,
}

/// What a sample says of a column. `distinct` is the number of its values, where it is known better
/// than a sample could say.
pub fn summarize(values: Values, ty: &SqlType, scale: Scale, distinct: Option<f64>) -> Summary {
    let rows = values.rows();
    if rows == 0 {
        return Summary::default();
    }
    let present = rows - values.nulls;
    let mut out = Summary {
        null_fraction: values.nulls as f64 / rows as f64,
        width: values.bytes as f64 / present.max(1) as f64,
        ..Summary::default()
    };
    if present == 0 || !has_order(ty) {
        return out;
    }
    let long = values.long;
    let mut sorted: Vec<(usize, Datum)> = values.kept.into_iter().enumerate().collect();
    // Equal values stay in the order of the rows.
    sorted.sort_by(|(_, a), (_, b)| a.cmp_sql(b));
    let groups = groups(&sorted);
    let several = groups.iter().filter(|g| g.count > 1).count();
    let table = scale.rows * (1.0 - out.null_fraction);
    let of_sample = distinct_values(present, groups.len(), several, long, table);
    let grows = several == 0 && distinct.is_none();
    let known = distinct.unwrap_or(of_sample).clamp(1.0, table.max(1.0));
    out.distinct = match known {
        _ if grows => out.null_fraction - 1.0,
        n if n > GROWING * scale.rows => -(n / scale.rows),
        n => n,
    };
    let complete = groups.len() == several && long == 0 && out.distinct > 0.0;
    let common = common(&groups, complete, rows, &out, scale);
    out.histogram = histogram(&sorted, &groups, &common, scale.target);
    out.correlation = correlation(&sorted);
    let fraction = |count: usize| count as f64 / rows as f64;
    let entry = |at: &usize| (sorted[groups[*at].first].1.clone(), fraction(groups[*at].count));
    out.common = common.iter().map(entry).collect();
    out
}

/// Whether values of a type have an order, by which they can be found equal, too.
fn has_order(ty: &SqlType) -> bool {
    match ty {
        SqlType::Json | SqlType::Record | SqlType::Void | SqlType::Unknown => false,
        SqlType::Geometry(_) => false,
        ty if ty.is_unordered_text() => false,
        // What is kept of a type knows no fields.
        SqlType::Composite(_) => false,
        SqlType::Array(element) => has_order(element),
        _ => true,
    }
}

fn groups(sorted: &[(usize, Datum)]) -> Vec<Group> {
    let mut out: Vec<Group> = Vec::new();
    for (at, (_, value)) in sorted.iter().enumerate() {
        match out.last_mut() {
            Some(g) if sorted[g.first].1.cmp_sql(value).is_eq() => g.count += 1,
            _ => out.push(Group { first: at, count: 1 }),
        }
    }
    out
}

/// Distinct values of a column with `table` values of which `sample` were looked at: `groups`
/// different ones, `several` of them more than once, and `long` that count as different.
fn distinct_values(sample: usize, groups: usize, several: usize, long: usize, table: f64) -> f64 {
    if several == 0 {
        return table;
    }
    if several == groups && long == 0 {
        // Each came again: there will be no others.
        return groups as f64;
    }
    let (n, d) = (sample as f64, (groups + long) as f64);
    let once = d - several as f64;
    let estimate = n * d / ((n - once) + once * n / table.max(1.0));
    (estimate.clamp(d, table.max(d)) + 0.5).floor()
}

/// Positions of the groups that count as common, most common first.
fn common(
    groups: &[Group],
    complete: bool,
    rows: usize,
    column: &Summary,
    scale: Scale,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..groups.len()).filter(|at| groups[*at].count > 1).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(groups[*at].count), *at));
    if complete && order.len() <= scale.target {
        return order;
    }
    order.truncate(scale.target);
    let counts: Vec<f64> = order.iter().map(|at| groups[*at].count as f64).collect();
    order.truncate(significant(&counts, rows as f64, column, scale.rows));
    order
}

/// How many of the most common values of a sample are common in the table, too: so many that the
/// last of them comes more often than others would by chance.
fn significant(counts: &[f64], rows: f64, column: &Summary, table: f64) -> usize {
    if rows >= table || table <= 1.0 {
        return counts.len();
    }
    let distinct = if column.distinct < 0.0 { -column.distinct * table } else { column.distinct };
    let mut keep = counts.len();
    let mut before: f64 = counts.iter().sum::<f64>() - counts.last().copied().unwrap_or(0.0);
    while keep > 0 {
        let others = (1.0 - before / rows - column.null_fraction).clamp(0.0, 1.0);
        let values = distinct - (keep - 1) as f64;
        let each = if values > 1.0 { others / values } else { others };
        // The hypergeometric distribution of how often a value of that count is drawn.
        let of_table = table * counts[keep - 1] / rows;
        let variance =
            rows * of_table * (table - of_table) * (table - rows) / (table * table * (table - 1.0));
        if counts[keep - 1] > each * rows + 2.0 * variance.max(0.0).sqrt() + 0.5 {
            break;
        }
        keep -= 1;
        before -= if keep > 0 { counts[keep - 1] } else { 0.0 };
    }
    keep
}

/// Bounds of parts of about as many values each, without the common ones.
fn histogram(
    sorted: &[(usize, Datum)],
    groups: &[Group],
    common: &[usize],
    parts: usize,
) -> Vec<Datum> {
    let bounds = (groups.len() - common.len()).min(parts + 1);
    if bounds < 2 {
        return Vec::new();
    }
    let mut is_common = vec![false; groups.len()];
    common.iter().for_each(|at| is_common[*at] = true);
    let others = groups.iter().zip(&is_common).filter(|(_, common)| !**common);
    let values: Vec<usize> = others.flat_map(|(g, _)| g.first..g.first + g.count).collect();
    let at = |n: usize| values[n * (values.len() - 1) / (bounds - 1)];
    (0..bounds).map(|n| sorted[at(n)].1.clone()).collect()
}

/// Of the places of values among the rows with their places in order.
fn correlation(sorted: &[(usize, Datum)]) -> Option<f64> {
    if sorted.len() < 2 {
        return None;
    }
    let n = sorted.len() as f64;
    let products: f64 =
        sorted.iter().enumerate().map(|(at, (row, _))| at as f64 * *row as f64).sum();
    let sum = (n - 1.0) * n / 2.0;
    let squares = (n - 1.0) * n * (2.0 * n - 1.0) / 6.0;
    Some((n * products - sum * sum) / (n * squares - sum * sum))
}

/// Bytes of a value in a table of PostgreSQL's: what `avg_width` is made of.
fn stored_width(value: &Datum) -> usize {
    let varying = |bytes: usize| if bytes < 127 { bytes + 1 } else { bytes + 4 };
    match value {
        Datum::Null => 0,
        Datum::Bool(_) => 1,
        Datum::Int2(_) => 2,
        Datum::Int4(_) | Datum::Date(_) | Datum::Oid(_) | Datum::Float4(_) => 4,
        Datum::Enum(_) => 4,
        Datum::Int8(_) | Datum::Float8(_) | Datum::Time(_) => 8,
        Datum::Timestamp(_) | Datum::TimestampTz(_) => 8,
        Datum::Uuid(_) | Datum::Interval(_) => 16,
        Datum::Text(text) | Datum::Json(text) => varying(text.len()),
        Datum::Bytea(bytes) => varying(bytes.len()),
        Datum::Range(range) => varying(9 + stored_width(&range.lower) + stored_width(&range.upper)),
        Datum::Multirange(value) => {
            let bounds = |r: &RangeValue| 9 + stored_width(&r.lower) + stored_width(&r.upper);
            varying(9 + value.ranges().iter().map(bounds).sum::<usize>())
        }
        Datum::Geometry(shape) => shape.bytes().len(),
        Datum::Ordered(value) => varying(value.bytes().len()),
        Datum::Numeric(number) => {
            // Digits come by four, from the point to both sides.
            let (digits, scale) = number.as_bigint_and_exponent();
            let behind = scale.max(0) as usize;
            let before = (digits.magnitude().to_string().len()).saturating_sub(behind);
            let zero = digits.magnitude().bits() == 0;
            let groups = if zero { 0 } else { before.div_ceil(4) + behind.div_ceil(4) };
            varying(2 + 2 * groups)
        }
        Datum::NumericNan | Datum::NumericInf(_) => varying(2),
        Datum::Jsonb(_) => varying(value.memory().saturating_sub(size_of::<Datum>())),
        Datum::Array(array) => varying(20 + array.items.iter().map(stored_width).sum::<usize>()),
        Datum::Record(fields) => varying(24 + fields.iter().map(stored_width).sum::<usize>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[i32], rows: f64, target: usize) -> Summary {
        let mut sample = Values::default();
        values.iter().for_each(|v| sample.push(Sampled::Kept(Datum::Int4(*v))));
        summarize(sample, &SqlType::Int4, Scale { rows, target }, None)
    }

    fn ints(values: &[Datum]) -> Vec<i32> {
        let int = |v: &Datum| match v {
            Datum::Int4(v) => *v,
            other => panic!("{other:?}"),
        };
        values.iter().map(int).collect()
    }

    #[test]
    fn distinct_values_by_what_came_again() {
        // 6 of 100 values, 4 different ones, 2 of them once: 6 * 4 / (4 + 2 * 6 / 100).
        assert_eq!(distinct_values(6, 4, 2, 0, 100.0), (24.0f64 / 4.12 + 0.5).floor());
        assert_eq!(distinct_values(6, 6, 0, 0, 100.0), 100.0, "nothing came again");
        assert_eq!(distinct_values(6, 3, 3, 0, 100.0), 3.0, "everything came again");
        assert_eq!(distinct_values(6, 4, 2, 0, 6.0), 4.0, "all were seen");
        assert!(distinct_values(6, 3, 3, 2, 100.0) > 4.0, "long values are taken to differ");
    }

    #[test]
    fn what_grows_with_the_table_is_a_part_of_it() {
        assert_eq!(of(&[1, 2, 3, 4], 4_000.0, 10).distinct, -1.0);
        assert_eq!(of(&[1, 1, 2, 2], 4_000.0, 10).distinct, 2.0);
        assert_eq!(of(&[1, 1, 2, 2], 4.0, 10).distinct, -0.5);
        let mut nulls = Values::default();
        (0..4).for_each(|n| nulls.push(Sampled::Kept(Datum::Int4(n))));
        (0..4).for_each(|_| nulls.push(Sampled::Kept(Datum::Null)));
        let scale = Scale { rows: 800.0, target: 10 };
        let summary = summarize(nulls, &SqlType::Int4, scale, None);
        assert_eq!((summary.distinct, summary.null_fraction), (-0.5, 0.5));
        let known = of(&[1, 2, 3, 4], 4_000.0, 10);
        assert_eq!(ints(&known.histogram), [1, 2, 3, 4]);
        let mut four = Values::default();
        (0..4).for_each(|n| four.push(Sampled::Kept(Datum::Int4(n))));
        let summary = summarize(four, &SqlType::Int4, Scale { rows: 4e3, target: 9 }, Some(250.0));
        assert_eq!(summary.distinct, 250.0, "where it is known better");
    }

    #[test]
    fn values_are_common_if_that_is_no_chance() {
        let mut values = vec![0; 500];
        values.extend(1..=490);
        values.extend([1_000, 1_000]);
        let sampled = of(&values, 1_000_000.0, 100);
        assert_eq!(sampled.common.len(), 1, "twice is chance");
        assert_eq!(sampled.histogram.len(), 101);
        assert!(!ints(&sampled.histogram).contains(&0), "a common value is in no part");
        let whole = of(&values, values.len() as f64, 100);
        assert_eq!(whole.common.len(), 2, "twice of all is twice");
        let few = of(&values, values.len() as f64, 1);
        assert_eq!((few.common.len(), few.histogram.len()), (1, 2));
    }

    #[test]
    fn correlation_is_that_of_the_order_of_rows() {
        assert_eq!(of(&[1, 2, 3, 9], 4.0, 10).correlation, Some(1.0));
        assert_eq!(of(&[9, 5, 3, 1], 4.0, 10).correlation, Some(-1.0));
        assert_eq!(of(&[4], 1.0, 10).correlation, None);
        let mixed = of(&[3, 1, 4, 2], 4.0, 10).correlation.unwrap();
        assert!(mixed.abs() < 0.5, "{mixed}");
    }

    #[test]
    fn nothing_but_nulls_long_values_and_values_without_order() {
        let scale = Scale { rows: 3.0, target: 10 };
        let mut nulls = Values::default();
        (0..3).for_each(|_| nulls.push(Sampled::Kept(Datum::Null)));
        let nulls = summarize(nulls, &SqlType::Text, scale, None);
        assert_eq!((nulls.null_fraction, nulls.distinct, nulls.width), (1.0, 0.0, 0.0));
        let mut long = Values::default();
        (0..3).for_each(|_| long.push(Sampled::new(Datum::text("x".repeat(5_000)))));
        let long = summarize(long, &SqlType::Text, scale, None);
        assert_eq!((long.distinct, long.common.len(), long.width), (-1.0, 0, 5_004.0));
        let mut json = Values::default();
        (0..3).for_each(|_| json.push(Sampled::Kept(Datum::Json("{}".into()))));
        let json = summarize(json, &SqlType::Json, scale, None);
        assert_eq!((json.distinct, json.common.len(), json.correlation), (0.0, 0, None));
        assert_eq!(summarize(Values::default(), &SqlType::Int4, scale, None).distinct, 0.0);
    }
}
