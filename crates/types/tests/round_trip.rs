//! Text and binary forms: every value comes back from both, and known values print as in
//! PostgreSQL 15.

use std::sync::Arc;

use braid_types::{
    CastContext, CompositeField, CompositeType, Datum, RangeKind, RangeName, RangeType, SqlType,
    TimeZone, cast,
};

fn ty(name: &str) -> SqlType {
    SqlType::from_name(name).unwrap_or_else(|| panic!("type {name}"))
}

/// Type, text in, text out.
const VALUES: &[(&str, &str, &str)] = &[
    ("bool", "yes", "t"),
    ("int2", "-32768", "-32768"),
    ("int4", " 42 ", "42"),
    ("int8", "9223372036854775807", "9223372036854775807"),
    ("oid", "4294967295", "4294967295"),
    ("float4", "0.1", "0.1"),
    ("float4", "1e6", "1e+06"),
    ("float8", "1e15", "1e+15"),
    ("float8", "123456789012345", "123456789012345"),
    ("float8", "1e-5", "1e-05"),
    ("float8", "-0", "-0"),
    ("float8", "nan", "NaN"),
    ("float8", "-infinity", "-Infinity"),
    ("numeric", "1e5", "100000"),
    ("numeric", "-0.00100", "-0.00100"),
    ("numeric", "12345678901234567890.123456789", "12345678901234567890.123456789"),
    ("numeric", "0.0000", "0.0000"),
    ("numeric", "10000", "10000"),
    ("numeric", "NaN", "NaN"),
    ("text", "grün", "grün"),
    ("bytea", "\\x00ff", "\\x00ff"),
    ("bytea", "a\\000\\\\", "\\x61005c"),
    ("date", "1999-12-31", "1999-12-31"),
    ("date", "0001-01-01 BC", "0001-01-01 BC"),
    ("date", "infinity", "infinity"),
    ("time", "24:00:00", "24:00:00"),
    ("time", "01:02:03.456789", "01:02:03.456789"),
    ("timestamp", "2024-02-29T12:34:56.5", "2024-02-29 12:34:56.5"),
    ("timestamp", "1582-10-15 00:00", "1582-10-15 00:00:00"),
    ("timestamptz", "2024-06-01 12:00:00+05:30", "2024-06-01 06:30:00+00"),
    ("interval", "1 year -2 days", "1 year -2 days"),
    ("interval", "-1:30", "-01:30:00"),
    ("interval", "1.5 days", "1 day 12:00:00"),
    ("interval", "0", "00:00:00"),
    ("uuid", "{A0EEBC99-9C0B4EF8BB6D6BB9BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("jsonb", "{\"bb\":1.0,\"a\":[true,null]}", "{\"a\": [true, null], \"bb\": 1.0}"),
    ("int4[]", "{1,NULL,-3}", "{1,NULL,-3}"),
    ("text[]", "{\"a,b\",\"\\\"\", c }", "{\"a,b\",\"\\\"\",c}"),
    ("text[]", "{}", "{}"),
    ("point", " ( 1 , -2.5 ) ", "(1,-2.5)"),
    ("point", "NaN,Infinity", "(NaN,Infinity)"),
    ("lseg", "1,2,3,4", "[(1,2),(3,4)]"),
    ("box", "((1,4),(3,2))", "(3,4),(1,2)"),
    ("line", "(0,1),(5,1)", "{0,-1,1}"),
    ("path", "[1,2,3,4]", "[(1,2),(3,4)]"),
    ("path", "1,2", "((1,2))"),
    ("polygon", "1,2,3,4,5,6", "((1,2),(3,4),(5,6))"),
    ("circle", "1,2,3", "<(1,2),3>"),
    ("point[]", "{\"(1,2)\",NULL}", "{\"(1,2)\",NULL}"),
    ("box[]", "{(3,4),(1,2);\"(5,6),(7,8)\"}", "{(3,4),(1,2);(7,8),(5,6)}"),
    ("tid", "(4294967295,65535)", "(4294967295,65535)"),
    ("xid8", "18446744073709551615", "18446744073709551615"),
    ("pg_lsn", "16/b374D848", "16/B374D848"),
    ("jsonpath", "lax $.a[1, 2 to last] ? (@ > 1)", "$.\"a\"[1,2 to last]?(@ > 1)"),
    ("refcursor", "a cursor", "a cursor"),
    ("tid[]", "{\"(1,2)\"}", "{\"(1,2)\"}"),
];

#[test]
fn text_and_binary_forms_come_back() {
    let zone = TimeZone::utc();
    for (name, input, want) in VALUES {
        let ty = ty(name);
        let value =
            Datum::parse(input, &ty, zone).unwrap_or_else(|e| panic!("{name} {input}: {e}"));
        assert_eq!(value.to_text(zone).as_deref(), Some(*want), "{name} {input}");
        let again = Datum::parse(want, &ty, zone).unwrap_or_else(|e| panic!("{name} {want}: {e}"));
        assert!(again.cmp_sql(&value).is_eq(), "{name} {want}");
        let mut bytes = Vec::new();
        value.to_binary(&ty, &mut bytes);
        let back = Datum::from_binary(&bytes, &ty).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(back.to_text(zone).as_deref(), Some(*want), "{name} {input} in binary");
        for end in 0..bytes.len().min(8) {
            // A cut value is an error or another value, never a panic.
            let _ = Datum::from_binary(&bytes[..end], &ty);
        }
    }
}

fn composite(oid: u32, name: &str, fields: &[(&str, SqlType)]) -> SqlType {
    let field = |(name, ty): &(&str, SqlType)| CompositeField::new(name, ty.clone());
    let names = ("public".to_string(), name.to_string());
    let fields = fields.iter().map(field).collect();
    SqlType::Composite(Arc::new(CompositeType::new((oid, oid + 1), names, fields)))
}

/// What PostgreSQL 15 writes with `record_send` for `(7,"a b",)` of the same types.
#[test]
fn rows_of_composite_types_come_back() {
    let zone = TimeZone::utc();
    let inner =
        composite(16_400, "inner", &[("a", SqlType::Int4), ("b", SqlType::Varchar(Some(5)))]);
    let fields = [
        ("n", SqlType::Int4),
        ("i", inner.clone()),
        ("is", inner.array_of()),
        ("t", SqlType::Text),
    ];
    let outer = composite(16_410, "outer", &fields);
    for text in [
        r#"(7,"(1,""a b"")","{""(1,x)"",NULL,""(,)""}","")"#,
        "(,,,)",
        r#"(-1,"(,)",{},"tab	\\ ""q"" (x)")"#,
    ] {
        let value = Datum::parse(text, &outer, zone).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(value.to_text(zone).as_deref(), Some(text));
        let mut bytes = Vec::new();
        value.to_binary(&outer, &mut bytes);
        let back = Datum::from_binary(&bytes, &outer).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(back.to_text(zone).as_deref(), Some(text));
        assert!(back.cmp_sql(&value).is_eq());
        for end in 0..bytes.len() {
            assert!(Datum::from_binary(&bytes[..end], &outer).is_err(), "{text} cut at {end}");
        }
    }
    let mut bytes = Vec::new();
    Datum::parse("(1,ab)", &inner, zone).expect("a row").to_binary(&inner, &mut bytes);
    let wanted: Vec<u8> =
        [&[0, 0, 0, 2, 0, 0, 0, 23, 0, 0, 0, 4, 0, 0, 0, 1][..], &[0, 0, 4, 19, 0, 0, 0, 2], b"ab"]
            .concat();
    assert_eq!(bytes, wanted);
    let error = Datum::from_binary(&bytes, &outer).expect_err("two fields");
    assert_eq!(error.message(), "wrong number of columns: 2, expected 4");
    let error = Datum::parse("(1,abcdef)", &inner, zone).expect_err("too long");
    assert_eq!(error.state().0, "22001");
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.bytes().filter_map(|b| char::from(b).to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// What PostgreSQL 15 writes with the `_send` functions of the types.
#[test]
fn shapes_have_the_binary_form_of_postgres() {
    const ONE: &str = "3ff0000000000000";
    const TWO: &str = "4000000000000000";
    const THREE: &str = "4008000000000000";
    const FOUR: &str = "4010000000000000";
    let of = |parts: &[&str]| parts.concat();
    for (name, text, hex) in [
        ("point", "(1,-2.5)", of(&[ONE, "c004000000000000"])),
        ("lseg", "[(1,2),(3,4)]", of(&[ONE, TWO, THREE, FOUR])),
        ("box", "(1,2),(3,4)", of(&[THREE, FOUR, ONE, TWO])),
        ("line", "{1,2,3}", of(&[ONE, TWO, THREE])),
        ("circle", "<(1,2),3>", of(&[ONE, TWO, THREE])),
        ("path", "[(1,2),(3,4)]", of(&["00", "00000002", ONE, TWO, THREE, FOUR])),
        ("path", "((1,2))", of(&["01", "00000001", ONE, TWO])),
        ("polygon", "((1,2),(3,4))", of(&["00000002", ONE, TWO, THREE, FOUR])),
        ("tid", "(1,2)", "000000010002".to_string()),
        ("xid8", "258", "0000000000000102".to_string()),
        ("pg_lsn", "1/2", "0000000100000002".to_string()),
    ] {
        let ty = ty(name);
        let value = Datum::parse(text, &ty, TimeZone::utc()).unwrap_or_else(|e| panic!("{e}"));
        let mut bytes = Vec::new();
        value.to_binary(&ty, &mut bytes);
        assert_eq!(bytes, bytes_of(&hex), "{name} {text}");
        for end in 0..bytes.len() {
            let error = Datum::from_binary(&bytes[..end], &ty).expect_err("cut");
            assert_eq!(error.state().0, "22P03", "{name} cut at {end}");
        }
        bytes.push(0);
        assert!(Datum::from_binary(&bytes, &ty).is_err(), "{name} with a byte behind it");
    }
    let refused = |name: &str, hex: String| {
        let error = Datum::from_binary(&bytes_of(&hex), &ty(name)).expect_err("refused");
        assert_eq!(error.state().0, "22P03");
        error.message().to_string()
    };
    let zero = "0000000000000000";
    let line = "invalid line specification: A and B cannot both be zero";
    assert_eq!(refused("line", of(&[zero, zero, ONE])), line);
    let radius = "invalid radius in external \"circle\" value";
    assert_eq!(refused("circle", of(&[ONE, TWO, "c004000000000000"])), radius);
    let points = "invalid number of points in external \"polygon\" value";
    assert_eq!(refused("polygon", "00000000".to_string()), points);
    assert_eq!(refused("polygon", "7fffffff".to_string()), points);
    // The corners of a box come in any order.
    let corners = Datum::from_binary(&bytes_of(&of(&[ONE, FOUR, THREE, TWO])), &ty("box"));
    let corners = corners.map(|b| b.to_text(TimeZone::utc())).expect("a box");
    assert_eq!(corners.as_deref(), Some("(3,4),(1,2)"));
}

#[test]
fn single_bytes_of_any_number() {
    let ty = ty("char");
    for byte in 0..=255u8 {
        let value = Datum::from_binary(&[byte], &ty).unwrap_or_else(|e| panic!("{byte}: {e}"));
        let mut bytes = Vec::new();
        value.to_binary(&ty, &mut bytes);
        assert_eq!(bytes, [byte]);
        let shown = value.to_text(TimeZone::utc()).unwrap_or_default();
        let again = Datum::parse(&shown, &ty, TimeZone::utc()).expect("its own text");
        assert!(again.cmp_sql(&value).is_eq(), "{byte}");
        let cast_to = |to: &SqlType| cast(&value, &ty, to, CastContext::Explicit, TimeZone::utc());
        let number = cast_to(&SqlType::Int4).expect("a number");
        assert!(number.cmp_sql(&Datum::Int4((byte as i8).into())).is_eq(), "{byte}");
    }
    assert!(Datum::from_binary(b"ab", &ty).is_err());
    assert!(Datum::from_binary(b"", &ty).is_err());
}

fn made_range(oid: u32, subtype: SqlType) -> RangeKind {
    let name = |oid, name: &str| RangeName { oid, array_oid: oid + 1, name: name.to_string() };
    let (one, many) = (name(oid, "made"), name(oid + 2, "made_multirange"));
    RangeKind::Made(Arc::new(RangeType { one, many, schema: "public".into(), subtype }))
}

/// What PostgreSQL 15 writes with `range_send` of `[1.5,2]` over `float8`.
#[test]
fn ranges_of_types_of_users_come_back() {
    let zone = TimeZone::utc();
    let floats = made_range(16_400, SqlType::Float8);
    let cases = [
        (SqlType::Range(floats.clone()), &["[1.5,2]", "(,2)", "(1,)", "empty", "(,)"][..]),
        (SqlType::Multirange(floats.clone()), &["{[1,2],(3,4)}", "{}", "{(,)}"]),
        (SqlType::Range(floats.clone()).array_of(), &["{\"[1,2)\",NULL}"]),
        // Without a canonical function bounds stay as they are.
        (SqlType::Range(made_range(16_410, SqlType::Int4)), &["[1,5]", "(1,2)", "(1,5]"]),
        (SqlType::Range(made_range(16_420, SqlType::Text)), &["[a,\"b,c\"]", "[\"\",z)"]),
    ];
    for (ty, texts) in &cases {
        for text in *texts {
            let value = Datum::parse(text, ty, zone).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(value.to_text(zone).as_deref(), Some(*text));
            let mut bytes = Vec::new();
            value.to_binary(ty, &mut bytes);
            let back = Datum::from_binary(&bytes, ty).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(back.to_text(zone).as_deref(), Some(*text), "{ty} in binary");
            assert!(back.cmp_sql(&value).is_eq() && back.implied_type() == *ty, "{text}");
            for end in 0..bytes.len() {
                assert!(Datum::from_binary(&bytes[..end], ty).is_err(), "{text} cut at {end}");
            }
        }
    }
    let mut bytes = Vec::new();
    let value = Datum::parse("[1.5,2]", &cases[0].0, zone).expect("a range");
    value.to_binary(&cases[0].0, &mut bytes);
    let wanted: Vec<u8> =
        [&[6, 0, 0, 0, 8, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0][..], &[0, 0, 0, 8, 0x40], &[0; 7]].concat();
    assert_eq!(bytes, wanted);
    assert!(cases[0].0.same_base(&SqlType::Range(made_range(16_400, SqlType::Unknown))));
    assert!(!cases[0].0.same_base(&cases[3].0));
    assert_eq!((cases[0].0.oid(), cases[1].0.oid(), cases[2].0.oid()), (16_400, 16_402, 16_401));
}

/// A descriptor names such a type by its oid alone, and the built-in ones as ever.
#[test]
fn types_of_ranges_in_descriptors() {
    use braid_types::jsonb::serde_json;
    let made = SqlType::Multirange(made_range(16_400, SqlType::Float8));
    let kept = serde_json::to_string(&made).expect("a descriptor");
    assert_eq!(kept, r#"{"Multirange":{"Made":16400}}"#);
    let read: SqlType = serde_json::from_str(&kept).expect("a descriptor");
    assert!(read.same_base(&made));
    let built_in = serde_json::to_string(&SqlType::Range(RangeKind::Int4)).expect("a descriptor");
    assert_eq!(built_in, r#"{"Range":"Int4"}"#);
}

#[test]
fn zones_shift_and_show() {
    let berlin = TimeZone::parse("europe/berlin").expect("zone");
    let value = Datum::parse("2024-07-01 12:00", &SqlType::TimestampTz, berlin).expect("value");
    assert_eq!(value.to_text(TimeZone::utc()).as_deref(), Some("2024-07-01 10:00:00+00"));
    assert_eq!(value.to_text(berlin).as_deref(), Some("2024-07-01 12:00:00+02"));
    // Skipped by the clock's jump: read with the offset before it.
    let gap = Datum::parse("2024-03-31 02:30", &SqlType::TimestampTz, berlin).expect("value");
    assert_eq!(gap.to_text(TimeZone::utc()).as_deref(), Some("2024-03-31 01:30:00+00"));
}

#[test]
fn modifiers() {
    let zone = TimeZone::utc();
    let text = Datum::text("abcdef");
    let three = SqlType::Varchar(Some(3));
    let cut = cast(&text, &SqlType::Text, &three, CastContext::Explicit, zone).expect("cut");
    assert_eq!(cut.to_string(), "abc");
    let error =
        cast(&text, &SqlType::Text, &three, CastContext::Assignment, zone).expect_err("too long");
    assert_eq!(error.state().0, "22001");
    assert_eq!(error.message(), "value too long for type character varying(3)");
    let money = SqlType::Numeric(Some((5, 2)));
    let fits = Datum::parse("123.456", &money, zone).expect("fits");
    assert_eq!(fits.to_string(), "123.46");
    let error = Datum::parse("1000", &money, zone).expect_err("overflow");
    assert_eq!(error.message(), "numeric field overflow");
    assert_eq!(
        error.detail(),
        Some("A field with precision 5, scale 2 must round to an absolute value less than 10^3.")
    );
    assert_eq!(SqlType::from_oid(money.oid(), money.typmod()), Some(money));
    assert_eq!(SqlType::from_oid(1043, 7), Some(three));
}

#[test]
fn order_is_that_of_an_index() {
    let zone = TimeZone::utc();
    for (name, sorted) in [
        ("float8", &["-Infinity", "-1", "0", "1e300", "Infinity", "NaN"][..]),
        ("numeric", &["-1.5", "-1", "0.00", "0.001", "1", "10", "NaN"]),
        ("text", &["", "B", "a", "aa", "b", "é"]),
        ("interval", &["-1 day", "0", "29 days", "1 mon", "31 days"]),
        ("jsonb", &["null", "\"a\"", "1", "true", "[1]", "{\"a\": 1}"]),
        ("int4[]", &["{}", "{1}", "{1,2}", "{2}"]),
    ] {
        let values: Vec<Datum> =
            sorted.iter().map(|s| Datum::parse(s, &ty(name), zone).expect("value")).collect();
        for pair in values.windows(2) {
            assert!(pair[0].cmp_sql(&pair[1]).is_lt(), "{name}: {} < {}", pair[0], pair[1]);
        }
    }
}
