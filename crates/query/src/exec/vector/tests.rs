//! Each kernel beside the row form: random values and edges, NULLs, slices, constants, no rows.

use std::sync::Arc;

use braid_scalar::{Bound, EvalContext, ParamTypes, Scope, Volatility, bind};
use braid_types::{Datum, Interval, SqlType, numeric};
use datafusion::arrow::array::Array;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use super::{Program, decimal_carrier};
use crate::arrow_form::{self, Reader};

/// The columns that the expressions below name.
fn columns() -> Vec<(&'static str, SqlType)> {
    use SqlType as T;
    vec![
        ("a2", T::Int2),
        ("b2", T::Int2),
        ("a4", T::Int4),
        ("b4", T::Int4),
        ("a8", T::Int8),
        ("b8", T::Int8),
        ("o", T::Oid),
        ("r", T::Float4),
        ("q", T::Float4),
        ("f", T::Float8),
        ("g", T::Float8),
        ("n", T::Numeric(Some((15, 2)))),
        ("m", T::Numeric(Some((12, 4)))),
        ("w", T::Numeric(Some((38, 3)))),
        ("k", T::Numeric(Some((20, 2)))),
        ("u", T::Numeric(None)),
        ("s", T::Text),
        ("t", T::Text),
        ("v", T::Varchar(Some(8))),
        ("c", T::Char(4)),
        ("p", T::Bool),
        ("z", T::Bool),
        ("d", T::Date),
        ("e", T::Date),
        ("ts", T::Timestamp),
        ("tt", T::Timestamp),
        ("tz", T::TimestampTz),
        ("h", T::Time),
        ("id", T::Uuid),
        ("by", T::Bytea),
        ("iv", T::Interval),
    ]
}

/// Expressions all of whose nodes have kernels.
const KERNELS: &[&str] = &[
    // Comparisons.
    "a2 = b2",
    "a2 < a8",
    "a4 >= b8",
    "a4 <> 7",
    "a8 <= 5",
    "o = 4",
    "o < a8",
    "f < g",
    "r = q",
    "f >= r",
    "f = 0",
    "r <> 1.5",
    "n = 1.50",
    "n < m",
    "n <= 1.005",
    "m > a4",
    "w >= n",
    "w = w",
    "n = k",
    "u < n",
    "n >= u",
    "u = 300",
    "u <> 1.50",
    "u * 0.2 > n",
    "0.5 * u",
    "u * u",
    "n * u * m",
    "a4 > 0 AND u > 1",
    "extract(year from d) = 2020",
    "s < t",
    "s = 'ab'",
    "v >= s",
    "p = z",
    "p < z",
    "d < e",
    "d = date '2020-02-29'",
    "ts >= tt",
    "ts = d",
    "d < timestamp '2021-01-01 10:00'",
    "tz = tz",
    "h < h",
    "id = id",
    "by >= by",
    "n IS DISTINCT FROM m",
    "f IS NOT DISTINCT FROM g",
    "s IS DISTINCT FROM NULL",
    "a4 BETWEEN b4 AND 100",
    "n NOT BETWEEN 0.5 AND 1.5",
    // Lists.
    "a4 IN (1, 2, 3)",
    "a2 NOT IN (1, 70000)",
    "a8 IN (1, NULL)",
    "s IN ('', 'a', 'ab')",
    "n IN (1.5, 2, 0.001)",
    "f IN (0, 1.5, 'NaN')",
    "d IN ('2020-02-29', '2021-12-31')",
    "s NOT IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'abc')",
    "substring(s, 1, 2) IN ('ab', 'x')",
    "a4 IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100)",
    "v IN ('a', 'xyz')",
    // Logic.
    "p AND z",
    "p OR z",
    "NOT p",
    "p AND a4 > 0 AND f < 1",
    "a4 > 1 OR s = 'a' OR n IS NULL",
    "p IS TRUE",
    "p IS NOT FALSE",
    "p IS UNKNOWN",
    "a4 IS NULL",
    "s IS NOT NULL",
    "b4 <> 0 AND a4 / b4 > 1",
    "b4 = 0 OR a4 % b4 = 1",
    "p OR (z AND 10 / a4 > 2)",
    "a4 <> 0 AND (p OR 100 / a4 > 3) AND b4 <> 0 AND a4 / b4 < 9",
    // Integers and floats.
    "a2 + b2",
    "a2 * b2",
    "a4 + b4",
    "a4 - b4",
    "a4 * b4",
    "a4 / b4",
    "a4 % b4",
    "a8 + b8",
    "a8 - b8",
    "a8 * b8",
    "a8 / b8",
    "a8 % b8",
    "-a4",
    "-a8",
    "abs(a2)",
    "abs(a8)",
    "@ a4",
    "a4 + 1",
    "10 - a4",
    "a4 * 2 + b4",
    "mod(a4, 7)",
    "f + g",
    "f - g",
    "f * g",
    "f / g",
    "-f",
    "abs(f)",
    "r + q",
    "r * q",
    "r / q",
    "r + f",
    "f * 2",
    "-r",
    "f / 3",
    // Numerics.
    "n + m",
    "n - m",
    "n * m",
    "n * (1 - m)",
    "n * (1 - m) * (1 + n)",
    "-n",
    "abs(m)",
    "n + 1",
    "a4 * n",
    "w + w",
    "w * n",
    "k * k * k",
    "n * 0.01",
    "+n",
    "n - a8",
    "(n + m) * 1.5",
    "w - n * m",
    "k * k * k + n",
    "abs(k * k * k)",
    "-(w * n)",
    // Conversions.
    "a2::int4",
    "a2::int8",
    "a4::int8",
    "a4::int2",
    "a8::int4",
    "a8::int2",
    "a4::float8",
    "a8::float8",
    "a8::float4",
    "r::float8",
    "f::int4",
    "f::int8",
    "f::int2",
    "a4::numeric",
    "a8::numeric(20,3)",
    "n::numeric(8,1)",
    "m::numeric(20,6)",
    "n::float8",
    "w::float8",
    "n::int4",
    "w::int8",
    "n::numeric",
    "d::timestamp",
    "ts::date",
    "v::text",
    "a4::numeric(4,1)",
    // Lazy nodes.
    "CASE WHEN a4 > 0 THEN n ELSE 0 END",
    "CASE WHEN p THEN a4 WHEN z THEN b4 END",
    "CASE WHEN b4 <> 0 THEN a4 / b4 ELSE -1 END",
    "CASE a4 WHEN 1 THEN 'a' WHEN 2 THEN s ELSE t END",
    "CASE WHEN s LIKE 'a%' THEN n * (1 - m) ELSE 0 END",
    "coalesce(a4, b4, 0)",
    "coalesce(s, t)",
    "coalesce(n, 1.25)",
    "coalesce(n, m)",
    "nullif(a4, b4)",
    "nullif(s, 'a')",
    "nullif(n, 0)",
    "coalesce(a4, 10 / b4)",
    "CASE WHEN p THEN NULL ELSE n END",
    "greatest(a4, b4) + 1",
    "least(s, t)",
    "greatest(d, e, NULL)",
    "least(n, k, 0.25)",
    "greatest(p, z)",
    "coalesce(NULL, n)",
    "CASE WHEN a4 IS NULL THEN 0.5 WHEN a4 > 3 THEN n END",
    "CASE WHEN p THEN u ELSE n END",
    "coalesce(u, n)",
    // Texts.
    "s LIKE 'a%'",
    "s LIKE '%b'",
    "s LIKE '%a%b%'",
    "s NOT LIKE '_b%'",
    "s LIKE 'ab'",
    "s ILIKE 'A%'",
    "s LIKE '%\\%%'",
    "s LIKE ''",
    "s LIKE '%'",
    "s LIKE 'a\\'",
    "s ~ '^a.*b'",
    "s !~ 'b'",
    "s ~* 'AB'",
    "s !~* 'X'",
    "starts_with(s, 'a')",
    "s ^@ 'ab'",
    "lower(s)",
    "upper(s)",
    "btrim(s)",
    "ltrim(s, 'ab')",
    "rtrim(s)",
    "length(s)",
    "char_length(v)",
    "octet_length(s)",
    "s || t",
    "s || 'x'",
    "substring(s, 2)",
    "substring(s, 2, 2)",
    "substr(s, -1, 3)",
    "substring(s from 1 for 1)",
    "lower(substring(s, 1, 1)) || upper(t)",
    "c LIKE 'a%'",
    "c = 'ab'",
    "n = ANY (ARRAY[1.5, 2])",
    "c::text || s",
    // Dates.
    "d + 1",
    "d - 7",
    "3 + d",
    "d + a4",
    "d - e",
    "d + interval '1 month'",
    "ts - interval '90 days'",
    "ts + interval '1 day 2 hours'",
    "d - interval '1 year'",
    "extract(year from d)",
    "date_trunc('month', ts) = ts",
    "date_trunc('hour', ts)",
    "date_trunc('day', ts - interval '1 year')",
    "date_trunc('quarter', ts)",
    "date_trunc('year', ts)",
    "extract(month from ts)",
    "extract(day from d)",
    "date_part('year', ts)",
    "date_part('month', d)",
];

/// Expressions of which a part is computed row by row.
const MIXED: &[&str] = &[
    "n / m > 1",
    "p AND md5(s) < 'c'",
    "n + u",
    "round(n, 1)",
    "iv > interval '1 day' OR p",
    "length(reverse(s)) + 1",
    "least(n, m)",
    "s || a4",
    "n::text || s",
    "lower(n::text)",
    "a4::text = s",
    "b4 <> 0 AND n / b4 > 1.5",
    "sqrt(abs(f)) < 3",
    "u IN (1, 2.50)",
    "f::numeric > n",
    "k * k * k / 3",
    "ts + iv",
    "concat(s, t, a4)",
    "extract(epoch from ts)",
    "extract(quarter from d)",
    "left(s, 2) = 'ab'",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// A value of a type: small ones, or with `wild` those at the edges too.
fn value(r: &mut Random, ty: &SqlType, wild: bool) -> Datum {
    if r.below(6) == 0 {
        return Datum::Null;
    }
    let small = r.below(9) as i64 - 3;
    let edge = wild && r.below(3) == 0;
    match ty {
        SqlType::Bool => Datum::Bool(r.below(2) == 0),
        SqlType::Int2 => {
            Datum::Int2(if edge { r.pick(&[i16::MIN, i16::MAX]) } else { small as i16 })
        }
        SqlType::Int4 => {
            Datum::Int4(if edge { r.pick(&[i32::MIN, i32::MAX, 70_000]) } else { small as i32 })
        }
        SqlType::Int8 => {
            Datum::Int8(if edge { r.pick(&[i64::MIN, i64::MAX, 1 << 40]) } else { small })
        }
        SqlType::Oid => Datum::Oid(if edge { u32::MAX } else { small.unsigned_abs() as u32 }),
        SqlType::Float4 => Datum::Float4(match edge {
            true => r.pick(&[f32::NAN, f32::INFINITY, -0.0, f32::MAX, f32::MIN_POSITIVE, 1e-40]),
            false => small as f32 / 2.0,
        }),
        SqlType::Float8 => Datum::Float8(match edge {
            true => r.pick(&[
                f64::NAN,
                f64::NEG_INFINITY,
                -0.0,
                f64::MAX,
                f64::MIN_POSITIVE,
                1e-320,
                2.5,
                1e30,
            ]),
            false => small as f64 / 2.0,
        }),
        SqlType::Numeric(declared) => number(r, *declared, edge),
        SqlType::Char(_) => Datum::text(r.pick(&["ab  ", "    ", "abcd", "a   "])),
        SqlType::Text | SqlType::Varchar(_) => {
            let texts =
                ["", "a", "ab", "abc", "aXb", "b", " a ", "x%y", "äöü", "aé b", "AB", "a\\"];
            Datum::text(r.pick(&texts))
        }
        SqlType::Date => Datum::Date(match edge {
            true => r.pick(&[i32::MAX, i32::MIN, 2_000_000, -800_000, 7364]),
            false => 7_300 + r.below(800) as i32,
        }),
        SqlType::Timestamp | SqlType::TimestampTz => {
            let micros = match edge {
                true => r.pick(&[i64::MAX, i64::MIN, -1, 86_400_000_000 * 7364]),
                false => (7_300 + r.below(800) as i64) * 86_400_000_000 + small * 3_600_000_000,
            };
            if *ty == SqlType::Timestamp {
                Datum::Timestamp(micros)
            } else {
                Datum::TimestampTz(micros)
            }
        }
        SqlType::Time => Datum::Time(r.below(86_400_000_000) as i64),
        SqlType::Uuid => Datum::Uuid([small as u8; 16]),
        SqlType::Bytea => Datum::Bytea(vec![small as u8; r.below(3) as usize].into()),
        SqlType::Interval => Datum::Interval(Interval { months: small as i32, days: 1, micros: 5 }),
        other => panic!("no values of {other}"),
    }
}

fn number(r: &mut Random, declared: Option<(u16, i16)>, edge: bool) -> Datum {
    let (precision, scale) = declared.unwrap_or((38, r.below(4) as i16));
    if edge && r.below(2) == 0 {
        return if declared.is_none() {
            Datum::NumericInf(r.below(2) == 0)
        } else {
            Datum::NumericNan
        };
    }
    let digits = match edge {
        true => (10i128.pow(u32::from(precision)) - 1) * if r.below(2) == 0 { -1 } else { 1 },
        false => r.below(700) as i128 - 250,
    };
    Datum::Numeric(Arc::new(numeric::from_scaled(digits, scale as u8)))
}

fn parsed(sql: &str) -> Bound {
    let expr = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(sql)
        .and_then(|mut p| p.parse_expr())
        .unwrap_or_else(|e| panic!("{sql}: {e}"));
    let columns = columns().into_iter().map(|(name, ty)| (name.to_string(), ty, true));
    let scope = Scope::table("t", None, columns);
    bind(&expr, &scope, &mut ParamTypes::default()).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// The bound expression over the columns that it uses, and their types.
fn moved(bound: &Bound) -> (Bound, Vec<SqlType>) {
    let used: Vec<usize> = bound.columns().into_iter().collect();
    let all = columns();
    let types = used.iter().map(|at| all[*at].1.clone()).collect();
    (bound.remap_columns(&|at| used.binary_search(&at).expect("used")), types)
}

/// Arguments of so many rows: arrays with something before them, some of them one value for all.
fn arguments(
    r: &mut Random,
    types: &[SqlType],
    rows: usize,
    wild: bool,
) -> (Vec<ColumnarValue>, Vec<Vec<Datum>>) {
    let mut args = Vec::new();
    let mut table = vec![Vec::new(); rows];
    for ty in types {
        if types.len() > 1 && r.below(5) == 0 {
            let one = value(r, ty, wild);
            args.push(ColumnarValue::Scalar(arrow_form::scalar(&one, ty)));
            table.iter_mut().for_each(|row| row.push(one.clone()));
            continue;
        }
        let before = r.below(4) as usize;
        let values: Vec<Datum> = (0..before + rows).map(|_| value(r, ty, wild)).collect();
        let array = arrow_form::build(ty, values.iter());
        args.push(ColumnarValue::Array(array.slice(before, rows)));
        table.iter_mut().zip(&values[before..]).for_each(|(row, v)| row.push(v.clone()));
    }
    (args, table)
}

/// Compares both forms; gives whether the kernels had values.
fn compare(
    sql: &str,
    program: &Program,
    bound: &Bound,
    args: &[ColumnarValue],
    rows: &[Vec<Datum>],
) -> bool {
    let ctx = EvalContext::constant();
    let Some(array) = program.eval(args, rows.len(), &ctx) else { return false };
    assert_eq!(array.len(), rows.len(), "{sql}");
    let reader = Reader::new(&array);
    for (at, row) in rows.iter().enumerate() {
        let got = reader.get(at, bound.ty());
        match bound.eval(row, &ctx) {
            Ok(want) => {
                assert_eq!(format!("{got:?}"), format!("{want:?}"), "{sql} of {row:?}");
            }
            Err(e) => panic!("{sql} of {row:?} is {got:?} and should fail: {e}"),
        }
    }
    true
}

/// Runs an expression over many batches; gives in how many the kernels had the values.
fn check(sql: &str) -> (usize, usize, bool) {
    let (bound, types) = moved(&parsed(sql));
    let mut programs = Vec::new();
    let plain = arrow_form::data_type(bound.ty());
    programs.push(Program::compile(&bound, &types, &plain).unwrap_or_else(|| panic!("{sql}")));
    if let Some(carrier) = decimal_carrier(&bound, &types) {
        programs.push(Program::compile(&bound, &types, &carrier).expect("decimals"));
    }
    let seed =
        sql.bytes().fold(99_991u64, |h, b| (h ^ u64::from(b)).wrapping_mul(1_099_511_628_211));
    let mut r = Random(seed | 1);
    let (mut tame, mut wild) = (0, 0);
    for round in 0..60 {
        let rows = [0, 1, 2, 5, 40][round % 5];
        let edges = round >= 30;
        let (args, table) = arguments(&mut r, &types, rows, edges);
        for program in &programs {
            let fit = compare(sql, program, &bound, &args, &table);
            *if edges { &mut wild } else { &mut tame } += usize::from(fit && rows > 0);
        }
    }
    (tame, wild, programs[0].by_row())
}

/// Checks that each expression has values, and whether a part of it is computed row by row.
fn check_all(expressions: &[&str], by_row: bool) {
    let mut wrong = Vec::new();
    for sql in expressions {
        let (tame, _, found) = check(sql);
        if tame == 0 {
            wrong.push(format!("{sql}: the kernels never had a value"));
        }
        if found != by_row {
            wrong.push(format!("{sql}: by row is {found}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn kernels_give_what_the_row_form_gives() {
    check_all(KERNELS, false);
}

#[test]
fn nodes_without_kernel_stand_among_kernels() {
    check_all(MIXED, true);
}

#[test]
fn what_is_volatile_is_computed_once_for_each_row() {
    let bound = parsed("random() < 0.5");
    assert_eq!(bound.volatility(), Volatility::Volatile);
    let carrier = arrow_form::data_type(&SqlType::Bool);
    assert!(Program::compile(&bound, &[], &carrier).is_none());
}

#[test]
fn parameters_are_read_when_a_batch_is_computed() {
    let param = Bound::new(braid_scalar::Node::Param(0), SqlType::Int4);
    let column = Bound::column(0, SqlType::Int4);
    let node = braid_scalar::Node::Compare(braid_scalar::CmpOp::Lt, column, param);
    let bound = Bound::new(node, SqlType::Bool);
    let carrier = arrow_form::data_type(&SqlType::Bool);
    let program = Program::compile(&bound, &[SqlType::Int4], &carrier).expect("kernels");
    let args = [ColumnarValue::Scalar(ScalarValue::Int32(Some(5)))];
    for (limit, want) in [(4, false), (6, true)] {
        let mut ctx = EvalContext::constant();
        ctx.params = Arc::from(vec![Datum::Int4(limit)]);
        let array = program.eval(&args, 1, &ctx).expect("fits");
        assert_eq!(
            format!("{:?}", Reader::new(&array).get(0, &SqlType::Bool)),
            format!("Bool({want})")
        );
    }
    assert!(program.eval(&args, 1, &EvalContext::constant()).is_none());
}
