//! The key spans of families that are to go.

use braid_keys::Direction;
use braid_kv::KeySpan;
use braid_types::Datum;
use bytes::Bytes;

use braid_rows::Row;
use braid_rows::TableLayout;

/// Rows of a table, and everything inside of them.
pub(crate) struct Doomed {
    /// Sorted, not overlapping.
    pub(super) spans: Vec<KeySpan>,
    /// Leading key values, all of one length: each row of the table in the spans has one of these.
    pub(super) heads: Vec<Vec<Datum>>,
    /// Rows of the table.
    pub(super) count: u64,
}

impl Doomed {
    /// All that lies in spans of the table's key.
    pub(crate) fn in_spans(spans: Vec<KeySpan>, heads: Vec<Vec<Datum>>, count: u64) -> Doomed {
        Doomed { spans, heads, count }
    }

    /// The families of single rows. Rows whose keys follow each other make one span.
    pub(crate) fn families(layout: &TableLayout, rows: &[(Bytes, Row)]) -> Doomed {
        let key = |row: &Row| -> Vec<Datum> {
            layout.rows.columns().iter().map(|c| row[c.ordinal].clone()).collect()
        };
        let mut sorted: Vec<(&Bytes, Vec<Datum>)> =
            rows.iter().map(|(bytes, row)| (bytes, key(row))).collect();
        sorted.sort_by(|a, b| a.0.cmp(b.0));
        sorted.dedup_by(|a, b| a.0 == b.0);
        let direction = layout.rows.columns().last().map(|c| c.dir);
        let mut spans: Vec<KeySpan> = Vec::with_capacity(sorted.len());
        for (n, (bytes, values)) in sorted.iter().enumerate() {
            let family = TableLayout::family_span(bytes);
            match (n.checked_sub(1).map(|before| &sorted[before].1), spans.last_mut()) {
                (Some(before), Some(last)) if follows(before, values, direction) => {
                    last.end = family.end;
                }
                _ => spans.push(family),
            }
        }
        let count = sorted.len() as u64;
        Doomed { spans, heads: sorted.into_iter().map(|(_, values)| values).collect(), count }
    }
}

/// Whether no key can lie between two keys and what is inside of them: all is equal but the last
/// column, an integer that is one more, or less in a descending key.
fn follows(before: &[Datum], next: &[Datum], direction: Option<Direction>) -> bool {
    let (Some((a, start)), Some((b, other))) = (before.split_last(), next.split_last()) else {
        return false;
    };
    let (Some(a), Some(b), Some(direction)) = (integer(a), integer(b), direction) else {
        return false;
    };
    let step =
        if direction.desc { b.checked_add(1) == Some(a) } else { a.checked_add(1) == Some(b) };
    step && start.iter().zip(other).all(|(x, y)| x.cmp_sql(y).is_eq())
}

fn integer(value: &Datum) -> Option<i64> {
    match value {
        Datum::Int2(n) => Some(i64::from(*n)),
        Datum::Int4(n) => Some(i64::from(*n)),
        Datum::Int8(n) => Some(*n),
        _ => None,
    }
}

/// What is left of sorted spans without these others, which lie inside of them and are sorted.
pub(super) fn without(spans: &[KeySpan], others: &[KeySpan]) -> Vec<KeySpan> {
    let mut out = Vec::with_capacity(spans.len() + others.len());
    let mut others = others.iter().peekable();
    for span in spans {
        let mut start = span.start.clone();
        while let Some(other) = others.next_if(|other| other.start < span.end) {
            if other.start > start {
                out.push(KeySpan::new(start.clone(), other.start.clone()));
            }
            start = start.max(other.end.clone());
        }
        if start < span.end {
            out.push(KeySpan::new(start, span.end.clone()));
        }
    }
    out
}

/// Whether a key lies in one of these sorted spans.
pub(super) fn holds(spans: &[KeySpan], key: &[u8]) -> bool {
    let n = spans.partition_point(|s| s.start.as_ref() as &[u8] <= key);
    n > 0 && spans[n - 1].contains(key)
}

/// Whether a span lies in one of these sorted spans.
pub(super) fn covers(spans: &[KeySpan], span: &KeySpan) -> bool {
    let n = spans.partition_point(|s| s.start <= span.start);
    n > 0 && span.end <= spans[n - 1].end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: &str, end: &str) -> KeySpan {
        KeySpan::new(start.as_bytes().to_vec(), end.as_bytes().to_vec())
    }

    #[test]
    fn spans_are_left_out_of_spans() {
        let all = [span("b", "f"), span("h", "k")];
        assert_eq!(without(&all, &[]), all);
        let parts = without(&all, &[span("b", "c"), span("d", "e"), span("j", "k")]);
        assert_eq!(parts, [span("c", "d"), span("e", "f"), span("h", "j")]);
        assert_eq!(without(&all, &[span("b", "f"), span("h", "k")]), []);
        assert!(holds(&parts, b"c") && holds(&parts, b"hz"));
        assert!(!holds(&parts, b"b") && !holds(&parts, b"d") && !holds(&parts, b"f"));
        assert!(covers(&all, &span("b", "f")) && covers(&all, &span("i", "k")));
        assert!(!covers(&all, &span("a", "c")) && !covers(&all, &span("e", "i")));
    }

    #[test]
    fn integers_follow_each_other_in_the_keys_direction() {
        let key = |n: i32| vec![Datum::Int4(1), Datum::Int4(n)];
        let up = Some(Direction::ASC);
        let down = Some(Direction { desc: true, ..Direction::ASC });
        assert!(follows(&key(2), &key(3), up) && !follows(&key(3), &key(2), up));
        assert!(follows(&key(3), &key(2), down) && !follows(&key(2), &key(3), down));
        assert!(!follows(&key(1), &key(3), up));
        assert!(!follows(&[Datum::Int4(2), Datum::Int4(2)], &key(3), up));
        let last = vec![Datum::Int8(i64::MAX)];
        assert!(!follows(&last, &[Datum::Int8(i64::MIN)], up));
        let text = |s: &str| vec![Datum::Text(s.into())];
        assert!(!follows(&text("a"), &text("b"), up));
    }
}
