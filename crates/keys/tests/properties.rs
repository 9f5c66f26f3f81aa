//! Order and round trip of the key codec, on random values of every key type.

use std::cmp::Ordering;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use braid_keys::column::{decode_column, encode_column, skip_column};
use braid_keys::{
    Direction, KeyBuilder, MAX_KEY_BYTES, family_end, path, pretty, row_class, row_end,
};
use braid_types::{ArrayValue, CompositeField, CompositeType, Datum, Interval, SqlType};
use proptest::prelude::*;

/// Kinds of values: see [`value`].
const KINDS: usize = 10;

const DIRECTIONS: [Direction; 4] = [
    Direction { desc: false, nulls_first: false },
    Direction { desc: false, nulls_first: true },
    Direction { desc: true, nulls_first: false },
    Direction { desc: true, nulls_first: true },
];

fn encode(v: &Datum, dir: Direction) -> Vec<u8> {
    let mut out = Vec::new();
    encode_column(&mut out, v, dir).unwrap();
    out
}

/// SQL order of two values of one type; this test's own words.
fn sql_order(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Bool(x), Datum::Bool(y)) => x.cmp(y),
        (Datum::Int8(x), Datum::Int8(y)) => x.cmp(y),
        (Datum::Float8(x), Datum::Float8(y)) => match (x.is_nan(), y.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => x.partial_cmp(y).unwrap(),
        },
        (Datum::NumericNan, Datum::NumericNan) => Ordering::Equal,
        (Datum::NumericNan, _) => Ordering::Greater,
        (_, Datum::NumericNan) => Ordering::Less,
        (Datum::NumericInf(x), Datum::NumericInf(y)) => y.cmp(x),
        (Datum::NumericInf(true), _) | (_, Datum::NumericInf(false)) => Ordering::Less,
        (Datum::NumericInf(false), _) | (_, Datum::NumericInf(true)) => Ordering::Greater,
        (Datum::Numeric(x), Datum::Numeric(y)) => x.cmp(y),
        (Datum::Text(x), Datum::Text(y)) => x.as_bytes().cmp(y.as_bytes()),
        (Datum::Bytea(x), Datum::Bytea(y)) => x.cmp(y),
        (Datum::Uuid(x), Datum::Uuid(y)) => x.cmp(y),
        (Datum::Interval(x), Datum::Interval(y)) => {
            let total = |i: &Interval| {
                (i128::from(i.months) * 30 + i128::from(i.days)) * 86_400_000_000
                    + i128::from(i.micros)
            };
            total(x).cmp(&total(y))
        }
        (Datum::Array(x), Datum::Array(y)) => part_by_part(&x.items, &y.items),
        (Datum::Record(x), Datum::Record(y)) => part_by_part(x, y),
        _ => panic!("mixed types"),
    }
}

/// Elements or fields: the first that differ decide, NULL is the last.
fn part_by_part(x: &[Datum], y: &[Datum]) -> Ordering {
    for (p, q) in x.iter().zip(y) {
        let o = match (p.is_null(), q.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => sql_order(p, q),
        };
        if o != Ordering::Equal {
            return o;
        }
    }
    x.len().cmp(&y.len())
}

/// A composite type of a list, a text and an integer.
fn row_type() -> CompositeType {
    let list = SqlType::Array(Box::new(SqlType::Int8));
    let fields = [("a", list), ("b", SqlType::Text), ("c", SqlType::Int8)];
    let field = |(name, ty): (&str, SqlType)| CompositeField::new(name, ty);
    let names = (String::new(), "row".to_string());
    CompositeType::new((16_500, 16_501), names, fields.map(field).to_vec())
}

fn full_order(a: &Datum, b: &Datum, dir: Direction) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if dir.nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if dir.nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ if dir.desc => sql_order(b, a),
        _ => sql_order(a, b),
    }
}

fn ints() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -300i64..300, Just(i64::MIN), Just(i64::MAX), -70_000i64..70_000]
}

fn value(kind: usize) -> BoxedStrategy<Datum> {
    match kind {
        0 => any::<bool>().prop_map(Datum::Bool).boxed(),
        1 => ints().prop_map(Datum::Int8).boxed(),
        2 => prop_oneof![any::<f64>(), Just(f64::NAN), Just(-0.0), Just(0.0), Just(f64::INFINITY)]
            .prop_map(Datum::Float8)
            .boxed(),
        3 => prop_oneof![
            5 => (ints(), -30i64..30).prop_map(|(d, s)| {
                Datum::Numeric(Arc::new(BigDecimal::new(BigInt::from(d), s)))
            }),
            1 => Just(Datum::NumericInf(true)),
            1 => Just(Datum::NumericInf(false)),
            1 => Just(Datum::NumericNan)
        ]
        .boxed(),
        4 => "[\\x00\\x01a-c\u{e9}\u{ff}]{0,6}".prop_map(Datum::text).boxed(),
        5 => prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..6)
            .prop_map(|b| Datum::Bytea(b.into()))
            .boxed(),
        6 => any::<[u8; 16]>().prop_map(Datum::Uuid).boxed(),
        7 => (-50i32..50, -100i32..100, -90_000_000_000i64..90_000_000_000)
            .prop_map(|(months, days, micros)| Datum::Interval(Interval { months, days, micros }))
            .boxed(),
        9 => (nullable(8), nullable(4), nullable(1))
            .prop_map(|(a, b, c)| row_type().value(vec![a, b, c]))
            .boxed(),
        _ => prop::collection::vec(prop_oneof![1 => Just(None), 4 => ints().prop_map(Some)], 0..4)
            .prop_map(|v| {
                let items = v.into_iter().map(|i| i.map_or(Datum::Null, Datum::Int8)).collect();
                Datum::Array(Arc::new(ArrayValue::list(SqlType::Int8, items)))
            })
            .boxed(),
    }
}

fn type_of(kind: usize) -> SqlType {
    [
        SqlType::Bool,
        SqlType::Int8,
        SqlType::Float8,
        SqlType::Numeric(None),
        SqlType::Text,
        SqlType::Bytea,
        SqlType::Uuid,
        SqlType::Interval,
        SqlType::Array(Box::new(SqlType::Int8)),
        SqlType::Composite(Arc::new(row_type())),
    ][kind]
        .clone()
}

fn nullable(kind: usize) -> BoxedStrategy<Datum> {
    prop_oneof![1 => Just(Datum::Null), 8 => value(kind)].boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn order_and_round_trip(
        (kind, a, b) in (0usize..KINDS).prop_flat_map(|k| (Just(k), nullable(k), nullable(k))),
        dir in 0usize..4,
        tail in any::<[u8; 3]>(),
    ) {
        let dir = DIRECTIONS[dir];
        let (x, y) = (encode(&a, dir), encode(&b, dir));
        prop_assert_eq!(x.cmp(&y), full_order(&a, &b, dir), "{:?} {:?} {:?}", a, b, dir);
        prop_assert!(x[0] < 0xFE);
        // Self-delimiting: neither is a proper prefix of the other, and a tail changes nothing.
        prop_assert!(x == y || !y.starts_with(&x));
        let mut long = x.clone();
        long.extend_from_slice(&tail);
        let (back, n) = decode_column(&long, &type_of(kind), dir).unwrap();
        prop_assert_eq!(n, x.len());
        prop_assert_eq!(skip_column(&long).unwrap(), x.len());
        prop_assert_eq!(full_order(&a, &back, dir), Ordering::Equal, "{:?} {:?}", a, back);
        prop_assert_eq!(encode(&back, dir), x);
    }

    #[test]
    fn damaged_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        for kind in 0..KINDS {
            for dir in DIRECTIONS {
                let _ = decode_column(&bytes, &type_of(kind), dir);
            }
        }
        let _ = skip_column(&bytes);
        let mut key = vec![2];
        key.extend_from_slice(&bytes);
        let _ = (path::elements(&key), row_class(&key), pretty::key(&key), pretty::key(&bytes));
    }

    #[test]
    fn families_are_spans(
        (a, b) in (0usize..KINDS).prop_flat_map(|k| (value(k), value(k))),
        child in 1u32..2000, generation in 1u32..300, dir in 0usize..4,
    ) {
        let dir = DIRECTIONS[dir];
        let row = |v: &Datum| {
            let mut k = KeyBuilder::root(500, 3);
            k.column(v, dir).unwrap();
            k.finish().unwrap()
        };
        let (p, q) = (row(&a), row(&b));
        let mut k = KeyBuilder::from_key(&p);
        k.child(child, generation);
        k.column(&b, dir).unwrap();
        let c = k.finish().unwrap();
        prop_assert!(p < row_end(&p) && row_end(&p) <= c && c < family_end(&p));
        if p != q {
            let (lo, hi) = if p < q { (&p, &q) } else { (&q, &p) };
            prop_assert!(family_end(lo) <= *hi, "families must not overlap");
        }
        prop_assert_eq!(row_class(&p), path::class_of(500, 3));
        prop_assert_eq!(row_class(&c), path::class_of(child, generation));
        let e = path::elements(&c).unwrap();
        prop_assert_eq!((e[0].id, e[0].generation, e[0].end), (500, 3, p.len()));
        prop_assert_eq!((e[1].id, e[1].generation, e[1].end), (child, generation, c.len()));
    }
}

#[test]
fn long_keys_are_refused() {
    let mut k = KeyBuilder::root(1, 1);
    k.column(&Datum::text("x".repeat(MAX_KEY_BYTES)), Direction::ASC).unwrap();
    assert_eq!(k.finish().unwrap_err().state().0, "54000");
}

#[test]
fn keys_print() {
    let mut k = KeyBuilder::root(100, 1);
    k.column(&Datum::text("a"), Direction::ASC).unwrap();
    k.column(&Datum::Int4(-5), Direction::DESC).unwrap();
    k.child(300, 2);
    assert_eq!(pretty::key(k.as_bytes()), "/Table/100:1/\"a\"/--5/#/300:2");
    assert_eq!(pretty::key(&braid_keys::system::descriptor(7)), "/System/Descriptor/7");
    assert_eq!(pretty::key(&family_end(&[2, 100, 1])), "/Table/100:1/Max");
    assert_eq!(pretty::key(b"\x01"), "/System");
    let named = |id, generation| ((id, generation) == (300, 2)).then(|| "s.child".to_string());
    assert_eq!(pretty::named_key(k.as_bytes(), &named, &[]), "/Table/100:1/\"a\"/--5/#/s.child");
    let outer = |id, _| (id == 100).then(|| "parent".to_string());
    let columns = [(SqlType::Bytea, Direction::ASC), (SqlType::Int4, Direction::DESC)];
    let typed = pretty::named_key(k.as_bytes(), &outer, &columns);
    assert_eq!(typed, "/parent/'\\x61'/-5/#/300:2");
    let mut text = KeyBuilder::root(7, 1);
    text.column(&Datum::text("it's"), Direction::ASC).expect("fits");
    let columns = [(SqlType::Text, Direction::ASC)];
    assert_eq!(pretty::named_key(text.as_bytes(), &outer, &columns), "/Table/7:1/'it''s'");
    assert_eq!(pretty::named_key(text.as_bytes(), &outer, &[]), "/Table/7:1/\"it's\"");
}
