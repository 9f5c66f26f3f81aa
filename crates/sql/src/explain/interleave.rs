//! EXPLAIN (INTERLEAVE): the trees in which a statement's tables lie, and what it does to each.
//!
//! ```text
//!   Interleave Tree:
//!     customers        span read on customers
//!       orders         family read of orders (same pass)
//!         lines        -
//!       notes          -
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use braid_catalog::{Catalog, Table};

use super::lines::PlanLine;
use crate::session::Context;

/// The trees, for the lines of a plan; nothing if none of its tables lies in one.
pub(super) fn lines(ctx: &Context, plan: &[PlanLine]) -> Vec<String> {
    let touched = touched(plan);
    let c = &ctx.catalog;
    let own = |t: &Table| c.schema_by_id(t.schema).is_some_and(|s| s.database == ctx.database);
    let mut roots: BTreeMap<String, Arc<Table>> = BTreeMap::new();
    for t in c.tables().filter(|t| own(t) && touched.contains_key(&t.name)) {
        let Some(root) = c.chain(t).first().cloned() else { continue };
        if c.interleaved_children(root.id).next().is_some() {
            roots.insert(root.name.clone(), root);
        }
    }
    let mut out = Vec::new();
    for root in roots.values() {
        let rows = tree(c, root);
        let width = rows.iter().map(|(shown, _)| shown.chars().count()).max().unwrap_or_default();
        for (shown, name) in rows {
            let what = touched.get(&name).map_or("-".to_string(), |what| what.join("; "));
            out.push(format!("  {shown:width$}  {what}"));
        }
    }
    if !out.is_empty() {
        out.insert(0, "Interleave Tree:".into());
    }
    out
}

/// What a plan does to tables, by their names.
fn touched(plan: &[PlanLine]) -> BTreeMap<String, Vec<String>> {
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |name: &str, what: String| {
        let known = out.entry(name.to_string()).or_default();
        if !known.contains(&what) {
            known.push(what);
        }
    };
    for line in plan {
        let text = line.text.trim();
        if let Some(name) = line.operator.as_ref().and_then(|o| o.relation.as_ref()) {
            add(name, text.to_string());
        }
        for (word, what) in [("range delete: ", "range delete"), ("stays: ", "stays")] {
            for name in text.strip_prefix(word).into_iter().flat_map(|names| names.split(", ")) {
                add(name.split(' ').next().unwrap_or_default(), what.to_string());
            }
        }
    }
    out
}

/// A tree's tables, parents first, indented; with their names.
fn tree(c: &Catalog, root: &Arc<Table>) -> Vec<(String, String)> {
    let of = |t: &Arc<Table>| {
        let indent = "  ".repeat(c.depth(t) - 1);
        (format!("{indent}{}", t.name), t.name.clone())
    };
    c.subtree(root).iter().map(of).collect()
}
