//! How long a function and how wide a struct may be.
//!
//! Above the aim nothing new is allowed: what is there today stands in [`LONG`] and [`WIDE`] by
//! file and name, and an entry that is no longer needed is a finding too, so the lists only shrink.
//! Above the limit nothing is allowed at all.

use std::collections::BTreeSet;
use std::path::Path;

const FUNCTION_LINES_AIM: usize = 70;
const FUNCTION_LINES_MAX: usize = 100;
const FIELDS_AIM: usize = 15;
const FIELDS_MAX: usize = 40;

/// Functions of more lines than the aim.
const LONG: &[(&str, &str)] = &[
    ("crates/lsm/examples/out_of_order.rs", "run"),
    ("crates/lsm/src/open.rs", "open"),
    ("crates/lsm/src/sstable/row_block.rs", "parse"),
    ("crates/lsm/src/wal/reader.rs", "read_segment"),
    ("crates/query/src/bind/from/using.rs", "using_join"),
    ("crates/query/src/bind/select.rs", "finish_select"),
    ("crates/query/src/bind/set_op.rs", "recursive_union"),
    ("crates/query/src/bind/set_op.rs", "set_operation"),
    ("crates/query/src/system/info_schema/relations.rs", "table"),
    ("crates/query/src/system/pg_tables.rs", "server"),
    ("crates/scalar/src/bind.rs", "bind_anywhere"),
    ("crates/scalar/src/bind_compare.rs", "bind_any_all"),
    ("crates/scalar/src/bound.rs", "eval"),
    ("crates/scalar/src/display.rs", "to_sql"),
    ("crates/scalar/src/functions/date_format.rs", "show"),
    ("crates/scalar/src/functions/date_format.rs", "show_name"),
    ("crates/scalar/src/functions/date_parse.rs", "assemble"),
    ("crates/scalar/src/functions/date_parse.rs", "field"),
    ("crates/scalar/src/functions/json.rs", "fill"),
    ("crates/scalar/src/functions/math.rs", "integers"),
    ("crates/scalar/src/functions/number_format.rs", "read"),
    ("crates/scalar/src/functions/system.rs", "catalog"),
    ("crates/scalar/src/functions/system.rs", "session"),
    ("crates/scalar/src/functions/text.rs", "changing"),
    ("crates/scalar/src/functions/text.rs", "format_text"),
    ("crates/scalar/src/operators.rs", "datetime_ops"),
    ("crates/sql/src/ddl/index/declare.rs", "interleave"),
    ("crates/sql/src/dml/insert.rs", "run"),
    ("crates/types/src/cast.rs", "convert"),
];
/// Structs of more fields than the aim.
const WIDE: &[(&str, &str)] = &[
    ("crates/lsm/src/metrics.rs", "Metrics"),
    ("crates/lsm/src/options.rs", "Options"),
    ("crates/lsm/src/sstable/properties.rs", "Properties"),
    ("crates/lsm/src/sstable/row_block.rs", "Columns"),
    ("crates/lsm/src/store.rs", "Store"),
    ("crates/lsm/src/wal/writer.rs", "Queue"),
    ("crates/lsm/src/wal/writer.rs", "Wal"),
    ("crates/query/src/bind/mod.rs", "Binder"),
    ("crates/scalar/src/functions/date_parse.rs", "Fields"),
];

/// What was measured of one item.
struct Measure {
    line: usize,
    name: String,
    size: usize,
}

pub(super) fn check(root: &Path, tracked: &[String], findings: &mut Vec<String>) {
    let mut long = Budget::new("lines", FUNCTION_LINES_AIM, FUNCTION_LINES_MAX, LONG);
    let mut wide = Budget::new("fields", FIELDS_AIM, FIELDS_MAX, WIDE);
    for file in tracked {
        let test = file.contains("/tests/") || file.ends_with("/tests.rs");
        if !file.ends_with(".rs") || test {
            continue;
        }
        let Some(text) = super::read(root, file) else { continue };
        long.check(file, &functions(&text), findings);
        wide.check(file, &structs(&text), findings);
    }
    long.check_list(findings);
    wide.check_list(findings);
}

type List = &'static [(&'static str, &'static str)];

struct Budget {
    unit: &'static str,
    aim: usize,
    max: usize,
    known: List,
    /// Entries of the list that were met.
    needed: BTreeSet<(&'static str, &'static str)>,
}

impl Budget {
    fn new(unit: &'static str, aim: usize, max: usize, known: List) -> Budget {
        Budget { unit, aim, max, known, needed: BTreeSet::new() }
    }

    fn check(&mut self, file: &str, measures: &[Measure], findings: &mut Vec<String>) {
        for Measure { line, name, size } in measures.iter().filter(|m| m.size > self.aim) {
            let known = self.known.iter().find(|(f, n)| f == &file && n == name);
            self.needed.extend(known);
            let limit = if *size > self.max { self.max } else { self.aim };
            if known.is_none() || *size > self.max {
                let unit = self.unit;
                findings
                    .push(format!("{file}:{line}: `{name}` has {size} {unit}, at most {limit}"));
            }
        }
    }

    fn check_list(&self, findings: &mut Vec<String>) {
        for (file, name) in self.known.iter().filter(|entry| !self.needed.contains(entry)) {
            let list = "xtask/src/tidy/budgets.rs";
            findings.push(format!("{list}: `{name}` of {file} is within its budget: take it off"));
        }
    }
}

/// All functions. Relies on rustfmt: a function ends at the first closing brace with the
/// signature's indentation.
fn functions(text: &str) -> Vec<Measure> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let close = format!("{}}}", " ".repeat(indent));
        let end = lines[i..].iter().position(|l| {
            *l == close || (l.ends_with(';') && l.len() - l.trim_start().len() == indent)
        });
        if let Some(length) = end {
            out.push(Measure { line: i + 1, name, size: length + 1 });
        }
    }
    out
}

/// All structs with named fields.
fn structs(text: &str) -> Vec<Measure> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(rest) = bare(line).strip_prefix("struct ") else { continue };
        if !line.ends_with('{') {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let close = format!("{}}}", " ".repeat(indent));
        let body = lines[i + 1..].iter().take_while(|l| **l != close);
        let is_field = |l: &&&str| {
            let deep = l.len() - l.trim_start().len() == indent + 4;
            let name: String = bare(l).chars().take_while(|c| !":({ ".contains(*c)).collect();
            deep && bare(l)[name.len()..].starts_with(':') && !name.starts_with('/')
        };
        let name = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        out.push(Measure { line: i + 1, name, size: body.filter(is_field).count() });
    }
    out
}

/// A line without indentation and visibility.
fn bare(line: &str) -> &str {
    let code = line.trim_start();
    ["pub(crate) ", "pub(super) ", "pub "].iter().find_map(|p| code.strip_prefix(p)).unwrap_or(code)
}

fn function_name(line: &str) -> Option<String> {
    let rest = ["const ", "unsafe ", "async "]
        .iter()
        .fold(bare(line), |r, p| r.strip_prefix(p).unwrap_or(r));
    let name = rest.strip_prefix("fn ")?;
    Some(name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_structs_are_measured() {
        let long = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(70));
        let found = functions(&long);
        assert_eq!((found[0].name.as_str(), found[0].size), ("f", 72));
        let wide =
            "pub struct S {\n    /// a: b\n    pub a: u8,\n    b: fn(c: u8),\n}\nstruct T;\n";
        let found = structs(wide);
        assert_eq!((found.len(), found[0].name.as_str(), found[0].size), (1, "S", 2));
    }

    #[test]
    fn what_is_new_is_found_and_what_is_listed_must_be_needed() {
        const KNOWN: &[(&str, &str)] = &[("b.rs", "gone")];
        let mut budget = Budget::new("lines", 70, 100, KNOWN);
        let mut findings = Vec::new();
        let measure = |size| [Measure { line: 2, name: "f".into(), size }];
        budget.check("a.rs", &measure(70), &mut findings);
        assert!(findings.is_empty());
        budget.check("a.rs", &measure(71), &mut findings);
        budget.check("a.rs", &measure(101), &mut findings);
        budget.check_list(&mut findings);
        assert_eq!(findings[0], "a.rs:2: `f` has 71 lines, at most 70");
        assert_eq!(findings[1], "a.rs:2: `f` has 101 lines, at most 100");
        assert!(findings[2].contains("`gone` of b.rs is within its budget"));
    }
}
