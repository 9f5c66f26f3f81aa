//! A plan that was explained, as JSON in PostgreSQL's shape, as YAML and as XML.

use braid_parser::{ExplainFormat, ExplainOptions};
use serde_json::{Map, Value, json};

use super::lines::{Operator, PlanLine};
use super::summary::{Summary, time};

/// The one text of FORMAT JSON, YAML or XML.
pub(crate) fn text(lines: &[PlanLine], summary: &Summary, options: &ExplainOptions) -> String {
    let mut members = Map::new();
    members.insert("Plan".into(), plan(lines, options));
    summary.members(options, &mut members);
    let all = Value::Array(vec![Value::Object(members)]);
    match options.format {
        ExplainFormat::Yaml => yaml(&all, 0).trim_start_matches('\n').to_string(),
        ExplainFormat::Xml => document(&all),
        _ => serde_json::to_string_pretty(&all).unwrap_or_default(),
    }
}

/// The operators as a tree. What is said before the first of them is about a result above it.
fn plan(lines: &[PlanLine], options: &ExplainOptions) -> Value {
    let tops = lines.iter().filter(|l| l.operator.is_some() && l.depth() == 0).count();
    let is_tree = tops == 1 && lines.first().is_some_and(|l| l.operator.is_some());
    let mut at = 0;
    if is_tree {
        return node(lines, &mut at, options);
    }
    let result = PlanLine::operator("", "Result", None);
    let below: Vec<PlanLine> = lines.iter().cloned().map(PlanLine::indented).collect();
    let all: Vec<PlanLine> = std::iter::once(result).chain(below).collect();
    node(&all, &mut at, options)
}

/// The operator that stands here, with what stands below it; `at` goes behind that.
fn node(lines: &[PlanLine], at: &mut usize, options: &ExplainOptions) -> Value {
    let line = &lines[*at];
    let depth = line.depth();
    let mut members = Map::new();
    if let Some(operator) = &line.operator {
        describe(operator, line.text.trim_start(), options, &mut members);
    }
    let (mut notes, mut plans) = (Vec::new(), Vec::new());
    *at += 1;
    while let Some(below) = lines.get(*at).filter(|below| below.depth() > depth) {
        if below.operator.is_some() {
            plans.push(node(lines, at, options));
            continue;
        }
        *at += 1;
        let text = below.text.trim_start();
        // How often is asked and the like stands beside the plan.
        if text.starts_with("rows: ") {
            continue;
        }
        match text.split_once(": ").map(|(name, value)| (property(name), value)) {
            Some((name, value)) if !members.contains_key(&name) => {
                drop(members.insert(name, json!(value)));
            }
            _ => notes.push(json!(text)),
        }
    }
    if !notes.is_empty() {
        members.insert("Notes".into(), Value::Array(notes));
    }
    if !plans.is_empty() {
        members.insert("Plans".into(), Value::Array(plans));
    }
    Value::Object(members)
}

/// The name of a property of which a line tells.
fn property(name: &str) -> String {
    let known = [("key", "Index Cond"), ("filter", "Filter"), ("filter after join", "Join Filter")];
    if let Some((_, shown)) = known.iter().find(|(own, _)| *own == name) {
        return (*shown).to_string();
    }
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|c| c.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    };
    name.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn describe(o: &Operator, text: &str, options: &ExplainOptions, out: &mut Map<String, Value>) {
    let mut put = |name: &str, value: Value| drop(out.insert(name.to_string(), value));
    put("Node Type", json!(o.kind));
    if let Some(relation) = &o.relation {
        put("Relation Name", json!(relation));
    }
    if let Some(index) = &o.index {
        put("Index Name", json!(index));
    }
    if !text.is_empty() {
        put("Operation", json!(text));
    }
    if let Some(rows) = o.estimate.filter(|_| options.costs != Some(false)) {
        put("Plan Rows", json!(rows.round() as u64));
    }
    let Some(actual) = &o.actual else { return };
    if let Some((first, all)) = actual.nanos.filter(|_| options.shows_times()) {
        put("Actual Startup Time", time(first));
        put("Actual Total Time", time(all));
    }
    put("Actual Rows", json!(actual.rows));
    put("Actual Loops", json!(actual.loops));
    if actual.requests > 0 {
        put("Requests", json!(actual.requests));
        put("rows_scanned", json!(actual.work.entries));
        put("deleted_rows_scanned", json!(actual.work.tombstones));
        put("bytes_returned", json!(actual.work.bytes));
        put("remote_server_calls", json!(actual.network.calls));
        if actual.network.calls > 0 {
            put("network_bytes", json!(actual.network.bytes));
            put("network_time", time(actual.network.nanos));
        }
        if options.buffers {
            let found = actual.work.blocks - actual.work.blocks_from_disk;
            put("Shared Hit Blocks", json!(found));
            put("Shared Read Blocks", json!(actual.work.blocks_from_disk));
        }
    }
    if let Some(bytes) = actual.memory_peak.filter(|bytes| *bytes > 0) {
        put("Peak Memory Usage", json!(bytes.div_ceil(1024)));
        put("Spilled", json!(actual.spilled_bytes.div_ceil(1024)));
    }
}

/// A value as it stands behind a name or a dash of YAML.
fn yaml(value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) => {
            let line = |(name, value): (&String, &Value)| match value {
                Value::Array(items) if items.is_empty() => format!("\n{indent}{name}: []"),
                Value::Object(_) | Value::Array(_) => {
                    format!("\n{indent}{name}: {}", yaml(value, depth + 1))
                }
                _ => format!("\n{indent}{name}:{}", yaml(value, depth + 1)),
            };
            members.iter().map(line).collect()
        }
        Value::Array(items) => {
            let item = |item: &Value| {
                let shown = yaml(item, depth + 1);
                format!("\n{indent}- {}", shown.trim_start())
            };
            items.iter().map(item).collect()
        }
        // JSON's texts are YAML's, in quotes.
        other => format!(" {other}"),
    }
}

/// The XML document, whose queries are what JSON has in its outermost list.
fn document(all: &Value) -> String {
    let mut out = String::from("<explain xmlns=\"http://www.postgresql.org/2009/explain\">");
    for query in all.as_array().into_iter().flatten() {
        element(&mut out, "Query", query, 1);
    }
    out + "\n</explain>"
}

/// One element: members are elements in it, and so is what a list has.
fn element(out: &mut String, name: &str, value: &Value, depth: usize) {
    let tag: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
        .collect();
    let indent = "  ".repeat(depth);
    out.push_str(&format!("\n{indent}<{tag}>"));
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| element(out, name, value, depth + 1));
            out.push_str(&format!("\n{indent}"));
        }
        Value::Array(items) => {
            let one = if name == "Plans" { "Plan" } else { "Item" };
            items.iter().for_each(|item| element(out, one, item, depth + 1));
            out.push_str(&format!("\n{indent}"));
        }
        Value::String(text) => {
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            out.push_str(&text);
        }
        other => out.push_str(&other.to_string()),
    }
    out.push_str(&format!("</{tag}>"));
}
