//! Edge values of every type, as SQL.

use braid_env::random::Random;

/// A type that expressions are made of: short name, column of the corpus table, literals.
pub(super) struct Values {
    pub(super) name: &'static str,
    pub(super) literals: &'static [&'static str],
}

/// Every type with its edges. The literal is put into quotes and cast.
pub(super) const TYPES: &[Values] = &[
    Values { name: "bool", literals: &["true", "false", "t", "off"] },
    Values { name: "int2", literals: &["0", "1", "-1", "7", "32767", "-32768", "100"] },
    Values {
        name: "int4",
        literals: &["0", "1", "-1", "2", "3", "10", "42", "2147483647", "-2147483648", "-7", "100"],
    },
    Values {
        name: "int8",
        literals: &[
            "0",
            "1",
            "-1",
            "5",
            "9223372036854775807",
            "-9223372036854775808",
            "4294967296",
            "-97",
        ],
    },
    Values { name: "oid", literals: &["0", "1", "23", "4294967295"] },
    Values {
        name: "float4",
        literals: &[
            "0",
            "-0",
            "1",
            "-1.5",
            "0.1",
            "3.4028235e38",
            "1e-45",
            "NaN",
            "Infinity",
            "-Infinity",
            "16777217",
            "1e6",
            "123456.7",
        ],
    },
    Values {
        name: "float8",
        literals: &[
            "0",
            "-0",
            "1",
            "-1",
            "0.1",
            "2.5",
            "-2.5",
            "3.5",
            "1.7976931348623157e308",
            "5e-324",
            "NaN",
            "Infinity",
            "-Infinity",
            "1e15",
            "1e16",
            "1e-5",
            "123456789.123",
            "-0.75",
            "700",
        ],
    },
    Values {
        name: "numeric",
        literals: &[
            "0",
            "0.00",
            "1",
            "-1",
            "1.5",
            "-2.50",
            "3.14159265358979323846",
            "1e20",
            "1e-20",
            "NaN",
            "Infinity",
            "-Infinity",
            "99999999999999999999.999",
            "0.000001",
            "12345.6789",
            "-0.5",
            "2.5",
            "10",
            "100.000",
            "7",
        ],
    },
    Values {
        name: "text",
        literals: &[
            "",
            "a",
            "abc",
            "ABC def",
            " x ",
            "é",
            "e\u{301}",
            "日本語",
            "😀b",
            "%a_",
            "a\\b",
            "it''s",
            "123",
            "-4.5",
            "true",
            "2024-02-29",
            "[1, 2]",
            "{1,2}",
            "{\"a\": 1}",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "a,b,,c",
            "ab\tc",
            "NULL",
            "x1y22z",
        ],
    },
    Values { name: "varchar", literals: &["", "abc", "é😀", " pad ", "12"] },
    Values { name: "bpchar", literals: &["", "abc", "ab  ", "é "] },
    Values { name: "name", literals: &["", "abc", "Weird Name"] },
    Values { name: "bytea", literals: &["", "\\x00ff", "abc", "\\xdeadbeef", "\\xe4b8ad"] },
    Values {
        name: "date",
        literals: &[
            "2024-02-29",
            "1999-12-31",
            "2000-01-01",
            "0001-01-01",
            "0044-03-15 BC",
            "4714-11-24 BC",
            "5874897-12-31",
            "infinity",
            "-infinity",
            "2023-01-31",
            "1970-01-01",
        ],
    },
    Values {
        name: "time",
        literals: &["00:00:00", "23:59:59.999999", "24:00:00", "12:34:56.7", "01:02:03"],
    },
    Values {
        name: "timestamp",
        literals: &[
            "2024-02-29 12:34:56.789",
            "1999-12-31 23:59:59.999999",
            "2000-01-01 00:00:00",
            "0044-03-15 06:00:00 BC",
            "294276-12-31 23:59:59",
            "4714-11-24 00:00:00 BC",
            "infinity",
            "-infinity",
            "2023-01-31 01:00:00",
            "1969-12-31 23:59:59.5",
        ],
    },
    Values {
        name: "timestamptz",
        literals: &[
            "2024-02-29 12:34:56.789+02",
            "1999-12-31 23:59:59.999999+00",
            "2000-01-01 00:00:00-08",
            "infinity",
            "-infinity",
            "2024-03-10 02:30:00 America/New_York",
            "0001-01-01 00:00:00+00",
        ],
    },
    Values {
        name: "interval",
        literals: &[
            "0",
            "1 day",
            "-1 day",
            "1 mon",
            "1 year 2 mons 3 days 04:05:06.789",
            "-1 year",
            "1 mon -1 day",
            "36:00:00",
            "-00:00:01",
            "40 days",
            "178000000 years",
            "0.5 seconds",
            "13 mons 45 days 30:00:00",
        ],
    },
    Values {
        name: "uuid",
        literals: &[
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ],
    },
    Values {
        name: "inet",
        literals: &[
            "0.0.0.0/0",
            "10.1.2.3/8",
            "192.168.1.5",
            "255.255.255.255",
            "::",
            "fe80::1/10",
        ],
    },
    Values {
        name: "cidr",
        literals: &["0.0.0.0/0", "10.1.0.0/16", "192.168.1.5", "2001:db8::/32"],
    },
    Values {
        name: "macaddr",
        literals: &["00:00:00:00:00:00", "08:00:2b:01:02:03", "ff:ff:ff:ff:ff:ff"],
    },
    Values {
        name: "macaddr8",
        literals: &[
            "00:00:00:00:00:00:00:00",
            "08:00:2b:ff:fe:01:02:03",
            "ff:ff:ff:00:ff:ff:ff:ff",
        ],
    },
    Values { name: "bit", literals: &["0", "1"] },
    Values { name: "varbit", literals: &["", "1", "101", "0000000000000000000000000000000000001"] },
    Values { name: "int4range", literals: &["empty", "(,)", "[1,5)", "(3,9]"] },
    Values { name: "int8range", literals: &["empty", "(,5)", "[1,5)", "[-3,)"] },
    Values { name: "numrange", literals: &["empty", "(,)", "[1.5,2.50]", "(0,9)"] },
    Values {
        name: "tsrange",
        literals: &["empty", "[2020-01-01,2020-02-01)", "(,2020-01-15 12:00]"],
    },
    Values { name: "tstzrange", literals: &["empty", "[2020-01-01 00:00+00,2020-02-01 00:00+00)"] },
    Values { name: "daterange", literals: &["empty", "[2020-01-01,2020-02-01]", "(,infinity)"] },
    Values { name: "int4multirange", literals: &["{}", "{(,)}", "{[1,5)}", "{[1,3),[7,9]}"] },
    Values { name: "int8multirange", literals: &["{}", "{(,5)}", "{[1,5),[8,)}", "{[-3,2]}"] },
    Values { name: "nummultirange", literals: &["{}", "{(,)}", "{[1.5,2.50]}", "{(0,1),(1,9)}"] },
    Values {
        name: "tsmultirange",
        literals: &["{}", "{[2020-01-01,2020-02-01)}", "{(,2020-01-15 12:00],[2021-01-01,)}"],
    },
    Values {
        name: "tstzmultirange",
        literals: &["{}", "{[2020-01-01 00:00+00,2020-02-01 00:00+00)}"],
    },
    Values {
        name: "datemultirange",
        literals: &["{}", "{[2020-01-01,2020-02-01]}", "{(,2019-01-01),[2020-01-01,infinity)}"],
    },
    Values { name: "money", literals: &["0", "0.01", "-1.50", "1234.56", "92233720368547758.07"] },
    Values { name: "tid", literals: &["(0,0)", "(1,2)", "(4294967295,65535)"] },
    Values { name: "xid8", literals: &["0", "7", "18446744073709551615"] },
    Values { name: "pg_lsn", literals: &["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"] },
    Values { name: "refcursor", literals: &["", "c", "a b"] },
    Values { name: "jsonpath", literals: &["$", "strict $.a[*] ? (@ > 1)", "$.**.size()"] },
    Values { name: "point", literals: &["(0,0)", "(1,2)", "(-1.5,0.25)", "(NaN,Infinity)"] },
    Values { name: "lseg", literals: &["[(0,0),(2,2)]", "[(0,2),(2,0)]", "[(1,1),(1,1)]"] },
    Values { name: "line", literals: &["{1,-1,0}", "{0,-1,2}", "{-1,0,1.5}"] },
    Values { name: "box", literals: &["(2,2),(0,0)", "(1,1),(1,1)", "(3.5,4),(-1,1)"] },
    Values { name: "path", literals: &["[(0,0),(2,2),(4,0)]", "((0,0),(2,0),(1,2))", "[(1,1)]"] },
    Values {
        name: "polygon",
        literals: &["((0,0),(4,0),(4,4),(0,4))", "((1,1),(2,1),(1.5,2))", "((9,9))"],
    },
    Values { name: "circle", literals: &["<(0,0),2>", "<(1,1),0>", "<(5,-1),1.5>"] },
    Values {
        name: "timetz",
        literals: &["00:00:00+00", "04:05:06.789-08", "12:00:00+05:30", "24:00:00+15:59"],
    },
    Values {
        name: "jsonb",
        literals: &[
            "null",
            "true",
            "1",
            "-1.50",
            "\"x\"",
            "[]",
            "{}",
            "[1, \"a\", null, [2]]",
            "{\"a\": 1, \"b\": {\"c\": [1, 2]}}",
            "{\"b\": 1, \"a\": 2, \"aa\": 3}",
            "1e3",
            "{\"a\": null, \"k\": \"v\"}",
            "\"é\\n\\u0041\"",
            "[3, {\"a\": [false]}]",
        ],
    },
    Values {
        name: "json",
        literals: &[
            "null",
            " [1,  2] ",
            "{\"b\":1,\"a\":2,\"b\":3}",
            "\"x\"",
            "1.50",
            "[]",
            "{\"a\" : {\"c\" : [1,2]}}",
            "[null, \"\\u00e9\"]",
        ],
    },
    Values { name: "_int4", literals: &["{}", "{1,2,3}", "{NULL}", "{3,NULL,-1}", "{2147483647}"] },
    Values { name: "_int8", literals: &["{}", "{1,2}", "{NULL,9223372036854775807}"] },
    Values {
        name: "_text",
        literals: &["{}", "{a,b}", "{NULL,x}", "{\"a b\",\"\"}", "{a}", "{b,c,1}", "{é,😀}"],
    },
    Values { name: "_numeric", literals: &["{}", "{1.0,2.50}", "{NaN,NULL}"] },
    Values { name: "_float8", literals: &["{}", "{1.5,NaN}", "{0,-0}"] },
    Values { name: "_bool", literals: &["{t,f,NULL}", "{}"] },
    Values { name: "_date", literals: &["{2024-02-29,infinity}", "{}"] },
];

/// The entry of a type.
pub(super) fn of(name: &str) -> Option<&'static Values> {
    TYPES.iter().find(|v| v.name == name)
}

/// Types of which arrays are made.
pub(super) const ELEMENTS: &[&str] = &["int4", "int8", "text", "numeric", "float8", "bool", "date"];

const UNITS: &[&str] = &[
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microseconds",
    "quarter",
    "week",
    "dow",
    "isodow",
    "doy",
    "epoch",
    "decade",
    "century",
    "millennium",
    "julian",
    "isoyear",
    "timezone",
    "timezone_hour",
    "nonsense",
    "YEAR",
    "weeks",
];
const DATE_FORMATS: &[&str] = &[
    "YYYY-MM-DD HH24:MI:SS",
    "Day, DD Month YYYY",
    "FMDay, FMDD FMMonth",
    "HH12:MI AM",
    "Q WW IW",
    "DDD D ID J",
    "YYYYth MMth",
    "MS US FF3",
    "RM rm",
    "CC BC",
    "Y,YYY YYY YY Y",
    "\"text\" YYYY",
    "SSSS SSSSS",
    "TZ OF TZH:TZM",
    "IYYY-IDDD",
    "dy DY Dy mon MON Mon",
    "W",
    "a.m. P.M.",
    "IYY IY I",
    "FF1 FF6",
    "TMMonth",
    "FXYYYY",
    "yyyy-mm-dd",
    "HH:MI:SS.MS",
];
const NUMBER_FORMATS: &[&str] = &[
    "999",
    "000",
    "9,999.99",
    "FM999.00",
    "S999",
    "999S",
    "MI99.9",
    "99PR",
    "L999",
    "9.99EEEE",
    "RN",
    "FMRN",
    "999D99",
    "9G999",
    "99V99",
    "SG99",
    "PL99",
    "TH",
    "99th",
    "FM0999",
    "0.000",
    "999999999999999.99",
    "\"x\"9",
    "FM9.99EEEE",
];
const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "+02",
    "-03:30",
    "EST",
    "nowhere",
    "UTC+3",
    "CET",
    "Asia/Kolkata",
];
const ENCODINGS: &[&str] = &["hex", "base64", "escape", "HEX", "nonsense"];
const NUMBERS: &[&str] = &["12,454.8-", "-34,338,492", "1.5", " 42 ", "$12", "1e3", "", "ABC"];
const DATES: &[&str] = &[
    "2024-02-29",
    "05 Dec 2000",
    "20240131",
    "2024-02-29 12:34:56",
    "12:34 PM",
    "1999-366",
    "2000J",
    "44-03-15 BC",
    "17/5/1997",
    "nonsense",
    "2024-13-45",
];
const DATE_INPUTS: &[&str] = &[
    "YYYY-MM-DD",
    "DD Mon YYYY",
    "YYYYMMDD",
    "YYYY-MM-DD HH24:MI:SS",
    "HH12:MI AM",
    "YYYY-DDD",
    "YY-MM-DD BC",
    "DD/MM/YYYY",
    "IYYY-IW-ID",
    "YYYYMMDDHH24MISS",
];
const REGEXES: &[&str] = &[
    "a",
    "[a-c]+",
    "(b)(c)?",
    "^",
    "$",
    "x*",
    "(?i)AB",
    "\\d+",
    "[[:alpha:]]",
    "a|é",
    "(",
    "\\w+",
    "a{2,}",
    ".",
    "\\s",
];
const FLAGS: &[&str] = &["", "g", "i", "gi", "x", "n", "q", "z"];
const FORMATS: &[&str] = &[
    "%s",
    "%I.%L",
    "%1$s %1$s",
    "%%",
    "%10s|",
    "%-5s|",
    "%s %s",
    "%2$L",
    "plain",
    "%",
    "%d",
    "%*s",
];

/// Values for parameters that only make sense as one of a few words.
pub(super) fn special(function: &str, at: usize) -> Option<&'static [&'static str]> {
    Some(match (function, at) {
        ("extract" | "date_part" | "date_trunc", 0) => UNITS,
        ("timezone", 0) | ("date_trunc", 2) => ZONES,
        ("to_char", 1) => {
            return None;
        }
        ("to_date" | "to_timestamp", 0) => DATES,
        ("to_date" | "to_timestamp", 1) => DATE_INPUTS,
        ("to_number", 0) => NUMBERS,
        ("to_number", 1) | ("to_char_number", 1) => NUMBER_FORMATS,
        ("to_char_date", 1) => DATE_FORMATS,
        ("encode" | "decode", 1) => ENCODINGS,
        ("format", 0) => FORMATS,
        (
            "regexp_replace"
            | "regexp_match"
            | "regexp_split_to_array"
            | "regexp_count"
            | "regexp_like"
            | "regexp_substr"
            | "regexp_instr"
            | "~"
            | "~*"
            | "!~"
            | "!~*",
            1,
        ) => REGEXES,
        ("regexp_replace", 3) | ("regexp_match" | "regexp_split_to_array" | "regexp_like", 2) => {
            FLAGS
        }
        ("convert_from" | "convert_to", 1) => &["UTF8", "utf-8", "nonsense"],
        ("normalize", 1) => &["NFC", "NFD"],
        _ => return None,
    })
}

/// Whether only the listed words are given: any other text is a format of nothing, or the name of
/// no zone, and what a server makes of it is an accident.
pub(super) fn formats(function: &str, at: usize) -> bool {
    let format = ["to_char_number", "to_char_date", "to_number", "to_date", "to_timestamp"];
    (at == 1 && format.contains(&function))
        || matches!((function, at), ("timezone", 0) | ("date_trunc", 2))
}

/// Large counts would take the memory or the time of both servers and tell nothing.
pub(super) fn small(function: &str, at: usize) -> bool {
    matches!(
        (function, at),
        ("repeat" | "lpad" | "rpad", 1)
            | ("array_fill", 1)
            | ("factorial", 0)
            | ("make_interval", _)
    )
}

/// A typed literal, sometimes NULL, sometimes without its type.
pub(super) fn literal(random: &mut Random, ty: &str) -> String {
    let Some(values) = of(ty) else { return format!("NULL::{}", type_sql(ty)) };
    if random.chance(1, 12) {
        return format!("NULL::{}", type_sql(ty));
    }
    let text = random.pick(values.literals);
    quoted(text, ty)
}

/// A literal of this text and type.
pub(super) fn quoted(text: &str, ty: &str) -> String {
    format!("'{}'::{}", text.replace("it''s", "it's").replace('\'', "''"), type_sql(ty))
}

/// A type's name in SQL: `_int4` is `int4[]`.
pub(super) fn type_sql(name: &str) -> String {
    match name.strip_prefix('_') {
        Some(element) => format!("{}[]", type_sql(element)),
        None => name.to_string(),
    }
}
