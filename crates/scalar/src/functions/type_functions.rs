//! The functions that read and write values of types, by PostgreSQL's names and oids: drivers learn
//! from them which types are arrays (`typinput = 'array_in'::regproc`). None can be called.

use std::sync::LazyLock;

use braid_types::SqlType;

/// A type, and its functions: text in, text out, binary in, binary out, each with its oid.
const FUNCTIONS: [(&str, &str); 60] = [
    (
        "regcollation",
        "regcollationin 4193 regcollationout 4194 regcollationrecv 4196 regcollationsend 4197",
    ),
    ("regoper", "regoperin 2214 regoperout 2215 regoperrecv 2448 regopersend 2449"),
    (
        "regoperator",
        "regoperatorin 2216 regoperatorout 2217 regoperatorrecv 2450 regoperatorsend 2451",
    ),
    ("array", "array_in 750 array_out 751 array_recv 2400 array_send 2401"),
    ("bit", "bit_in 1564 bit_out 1565 bit_recv 2456 bit_send 2457"),
    ("bool", "boolin 1242 boolout 1243 boolrecv 2436 boolsend 2437"),
    ("box", "box_in 123 box_out 124 box_recv 2484 box_send 2485"),
    ("bpchar", "bpcharin 1044 bpcharout 1045 bpcharrecv 2430 bpcharsend 2431"),
    ("bytea", "byteain 1244 byteaout 31 bytearecv 2412 byteasend 2413"),
    ("char", "charin 1245 charout 33 charrecv 2434 charsend 2435"),
    ("cidr", "cidr_in 1267 cidr_out 1427 cidr_recv 2498 cidr_send 2499"),
    ("circle", "circle_in 1450 circle_out 1451 circle_recv 2490 circle_send 2491"),
    ("citext", "citextin 9952 citextout 9953 citextrecv 9954 citextsend 9955"),
    ("date", "date_in 1084 date_out 1085 date_recv 2468 date_send 2469"),
    ("enum", "enum_in 3506 enum_out 3507 enum_recv 3532 enum_send 3533"),
    ("float4", "float4in 200 float4out 201 float4recv 2424 float4send 2425"),
    ("float8", "float8in 214 float8out 215 float8recv 2426 float8send 2427"),
    ("inet", "inet_in 910 inet_out 911 inet_recv 2496 inet_send 2497"),
    ("int2", "int2in 38 int2out 39 int2recv 2404 int2send 2405"),
    ("int2vector", "int2vectorin 40 int2vectorout 41 int2vectorrecv 2410 int2vectorsend 2411"),
    ("int4", "int4in 42 int4out 43 int4recv 2406 int4send 2407"),
    ("int8", "int8in 460 int8out 461 int8recv 2408 int8send 2409"),
    ("interval", "interval_in 1160 interval_out 1161 interval_recv 2478 interval_send 2479"),
    ("json", "json_in 321 json_out 322 json_recv 323 json_send 324"),
    ("jsonb", "jsonb_in 3806 jsonb_out 3804 jsonb_recv 3805 jsonb_send 3803"),
    ("jsonpath", "jsonpath_in 4001 jsonpath_out 4003 jsonpath_recv 4002 jsonpath_send 4004"),
    ("line", "line_in 1490 line_out 1491 line_recv 2488 line_send 2489"),
    ("lseg", "lseg_in 119 lseg_out 120 lseg_recv 2480 lseg_send 2481"),
    ("macaddr", "macaddr_in 436 macaddr_out 437 macaddr_recv 2494 macaddr_send 2495"),
    ("macaddr8", "macaddr8_in 4110 macaddr8_out 4111 macaddr8_recv 3446 macaddr8_send 3447"),
    ("money", "cash_in 886 cash_out 887 cash_recv 2492 cash_send 2493"),
    (
        "multirange",
        "multirange_in 4231 multirange_out 4232 multirange_recv 4233 multirange_send 4234",
    ),
    ("name", "namein 34 nameout 35 namerecv 2422 namesend 2423"),
    ("numeric", "numeric_in 1701 numeric_out 1702 numeric_recv 2460 numeric_send 2461"),
    ("oid", "oidin 1798 oidout 1799 oidrecv 2418 oidsend 2419"),
    ("oidvector", "oidvectorin 54 oidvectorout 55 oidvectorrecv 2420 oidvectorsend 2421"),
    ("path", "path_in 121 path_out 122 path_recv 2482 path_send 2483"),
    ("pg_lsn", "pg_lsn_in 3229 pg_lsn_out 3230 pg_lsn_recv 3238 pg_lsn_send 3239"),
    ("point", "point_in 117 point_out 118 point_recv 2428 point_send 2429"),
    ("polygon", "poly_in 347 poly_out 348 poly_recv 2486 poly_send 2487"),
    ("range", "range_in 3834 range_out 3835 range_recv 3836 range_send 3837"),
    ("record", "record_in 2290 record_out 2291 record_recv 2402 record_send 2403"),
    ("regclass", "regclassin 2218 regclassout 2219 regclassrecv 2452 regclasssend 2453"),
    (
        "regnamespace",
        "regnamespacein 4084 regnamespaceout 4085 regnamespacerecv 4087 regnamespacesend 4088",
    ),
    ("regproc", "regprocin 44 regprocout 45 regprocrecv 2444 regprocsend 2445"),
    (
        "regprocedure",
        "regprocedurein 2212 regprocedureout 2213 regprocedurerecv 2446 regproceduresend 2447",
    ),
    ("regrole", "regrolein 4098 regroleout 4092 regrolerecv 4094 regrolesend 4095"),
    ("regtype", "regtypein 2220 regtypeout 2221 regtyperecv 2454 regtypesend 2455"),
    ("text", "textin 46 textout 47 textrecv 2414 textsend 2415"),
    ("tid", "tidin 48 tidout 49 tidrecv 2438 tidsend 2439"),
    ("time", "time_in 1143 time_out 1144 time_recv 2470 time_send 2471"),
    ("timestamp", "timestamp_in 1312 timestamp_out 1313 timestamp_recv 2474 timestamp_send 2475"),
    (
        "timestamptz",
        "timestamptz_in 1150 timestamptz_out 1151 timestamptz_recv 2476 timestamptz_send 2477",
    ),
    ("timetz", "timetz_in 1350 timetz_out 1351 timetz_recv 2472 timetz_send 2473"),
    ("unknown", "unknownin 109 unknownout 110 unknownrecv 2416 unknownsend 2417"),
    ("uuid", "uuid_in 2952 uuid_out 2953 uuid_recv 2961 uuid_send 2962"),
    ("varbit", "varbit_in 1579 varbit_out 1580 varbit_recv 2458 varbit_send 2459"),
    ("varchar", "varcharin 1046 varcharout 1047 varcharrecv 2432 varcharsend 2433"),
    ("void", "void_in 2298 void_out 2299 void_recv 3120 void_send 3121"),
    ("xid8", "xid8in 5070 xid8out 5081 xid8recv 5082 xid8send 5083"),
];

/// Types whose length is told to what reads them.
const MODIFIED: [&str; 14] = [
    "array",
    "bit",
    "bpchar",
    "interval",
    "multirange",
    "numeric",
    "range",
    "record",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "varbit",
    "varchar",
];

/// What a function of a type does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Reads text.
    TextIn,
    /// Writes text.
    TextOut,
    /// Reads the binary form.
    BinaryIn,
    /// Writes the binary form.
    BinaryOut,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct TypeFunction {
    /// PostgreSQL's oid.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub direction: Direction,
    /// Whether it is told the type's length as well.
    pub modified: bool,
    of: &'static str,
}

impl TypeFunction {
    /// The type that it reads or writes; `None` for a kind of types.
    pub fn ty(&self) -> Option<SqlType> {
        SqlType::from_any_name(self.of)
    }
}

static ALL: LazyLock<Vec<TypeFunction>> = LazyLock::new(|| {
    use Direction::{BinaryIn, BinaryOut, TextIn, TextOut};
    let mut all = Vec::new();
    for (of, listed) in FUNCTIONS {
        let words: Vec<&str> = listed.split(' ').collect();
        for (pair, direction) in words.chunks(2).zip([TextIn, TextOut, BinaryIn, BinaryOut]) {
            let oid = pair[1].parse().expect("an oid");
            let modified = MODIFIED.contains(&of) && matches!(direction, TextIn | BinaryIn);
            all.push(TypeFunction { oid, name: pair[0], direction, modified, of });
        }
    }
    all
});

/// All of them.
pub fn type_functions() -> &'static [TypeFunction] {
    &ALL
}

/// The four of a type; none if it has no binary form of its own.
pub fn functions_of_type(ty: &SqlType) -> &'static [TypeFunction] {
    let name = match ty {
        SqlType::Array(_) => "array".to_string(),
        SqlType::Range(_) => "range".to_string(),
        SqlType::Multirange(_) => "multirange".to_string(),
        SqlType::Enum(_) => "enum".to_string(),
        SqlType::Composite(_) => "record".to_string(),
        SqlType::Refcursor => "text".to_string(),
        other => other.internal_name(),
    };
    match ALL.iter().position(|f| f.of == name) {
        Some(at) => &ALL[at..at + 4],
        None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_functions() {
        for ty in SqlType::all_base() {
            let found = functions_of_type(ty);
            let without = matches!(ty, SqlType::Unknown) && found.is_empty();
            assert!(found.len() == 4 || without, "{ty:?}");
        }
        assert_eq!(functions_of_type(&SqlType::Int4)[2].name, "int4recv");
        assert_eq!(functions_of_type(&SqlType::Int4.array_of())[0].oid, 750);
    }
}
