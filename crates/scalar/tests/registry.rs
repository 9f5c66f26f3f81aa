//! The registry of functions describes itself, and `docs/functions.md` is what it says.
//!
//! After a change: `WRITE_DOCS=1 cargo test -p braid-scalar --test registry`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use braid_scalar::{Builtin, Code, FunctionKind, functions_of, resolve};
use braid_types::{EnumType, RangeKind, RangeType, SqlType};

const KINDS: [(FunctionKind, &str); 5] = [
    (FunctionKind::Operator, "Operators"),
    (FunctionKind::Function, "Functions"),
    (FunctionKind::Aggregate, "Aggregates"),
    (FunctionKind::SetReturning, "Functions that give rows"),
    (FunctionKind::Window, "Window functions"),
];

fn by_name(kind: FunctionKind) -> BTreeMap<&'static str, Vec<&'static Builtin>> {
    let mut names: BTreeMap<&str, Vec<&Builtin>> = BTreeMap::new();
    for f in functions_of(kind) {
        names.entry(f.name).or_default().push(f);
    }
    names
}

/// The line of documentation of a name.
fn about(overloads: &[&'static Builtin]) -> &'static str {
    overloads.iter().map(|f| f.about).find(|about| !about.is_empty()).unwrap_or_default()
}

fn page() -> String {
    let mut out = String::from(
        "# Functions\n\nEverything that expressions can call, as the registry of `braid-scalar` \
         has it. Comparisons (`=`, `<`, ..) work\non every type with an order; every aggregate can \
         have a window.\n\nThis page is written by a test: \
         `WRITE_DOCS=1 cargo test -p braid-scalar --test registry`.\n",
    );
    for (kind, title) in KINDS {
        let _ = write!(out, "\n## {title}\n\n| call | what it gives |\n|---|---|\n");
        for overloads in by_name(kind).values() {
            let calls: Vec<String> = overloads
                .iter()
                .map(|f| format!("`{}`", f.signature().replace('|', "\\|")))
                .collect();
            let about = about(overloads).replace('|', "\\|");
            let _ = writeln!(out, "| {} | {about} |", calls.join("<br>"));
        }
    }
    out
}

#[test]
fn every_entry_is_documented() {
    let missing: Vec<&str> = KINDS
        .iter()
        .flat_map(|(kind, _)| by_name(*kind))
        .filter(|(_, overloads)| about(overloads).is_empty())
        .map(|(name, _)| name)
        .collect();
    assert!(missing.is_empty(), "a line behind `--` is missing: {missing:?}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the page is a file of the repository")]
fn the_page_of_functions_is_what_the_registry_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/functions.md");
    let wanted = page();
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(&path, &wanted).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "docs/functions.md is stale: run this test with WRITE_DOCS=1");
}

#[test]
fn signatures_are_unique() {
    let mut seen = std::collections::BTreeSet::new();
    for (kind, _) in KINDS {
        for f in functions_of(kind) {
            assert!(seen.insert(f.signature()), "{} is registered twice", f.signature());
        }
    }
}

/// One overload of each aggregate, over nothing: counts are 0, a row alone is the first, the others
/// are NULL, and a state that was taken apart and put together again says the same.
#[test]
fn aggregates_of_nothing_and_their_states() {
    use braid_scalar::{AggregateTypes, ArgType, EvalContext};
    let made = RangeKind::Made(Arc::new(RangeType::unresolved(16_500)));
    for f in functions_of(FunctionKind::Aggregate) {
        let Code::Aggregate(code) = f.code else { panic!("{f:?} is no aggregate") };
        let given: Vec<SqlType> = f
            .args
            .iter()
            .map(|a| match a {
                ArgType::Exact(ty) => ty.clone(),
                ArgType::AnyArray => SqlType::Array(Box::new(SqlType::Int4)),
                ArgType::AnyElement | ArgType::Any => SqlType::Int4,
                ArgType::AnyRange => SqlType::Range(made.clone()),
                ArgType::AnyMultirange => SqlType::Multirange(made.clone()),
                ArgType::AnyEnum => SqlType::Enum(Arc::new(EnumType::unresolved(16_400))),
            })
            .collect();
        let choice = resolve(f.name, &given, false).unwrap_or_else(|e| panic!("{f:?}: {e}"));
        let types = AggregateTypes { args: &choice.args, ret: &choice.ret, sorted: &[] };
        let empty = (code.start)(types);
        let mut merged = (code.start)(types);
        merged.merge(&empty.parts()).unwrap_or_else(|e| panic!("{f:?}: {e}"));
        for state in [&empty, &merged] {
            let value = state.finish(&EvalContext::constant()).expect("a value of nothing");
            let wanted = match f.name {
                "count" | "regr_count" => "Int8(0)",
                "rank" | "dense_rank" => "Int8(1)",
                "percent_rank" => "Float8(0.0)",
                "cume_dist" => "Float8(1.0)",
                _ => "Null",
            };
            assert_eq!(format!("{value:?}"), wanted, "{f:?}");
        }
    }
}
