//! The hierarchy of a dump: which tables are to lie in which, once all of it is there.
//!
//! ```text
//!   interleave = 'auto'                     every table that is ready: no key changes
//!   interleave = 'orders in customers, ..'  these, in this order; keys change where they must
//! ```
//! What can be done, and by which statement, is what SHOW INTERLEAVE PROPOSALS says inside of the
//! transaction. Tables move before anybody has seen them.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::Table;
use braid_kv::TxnOptions;
use braid_types::{SqlError, SqlResult, SqlState, quote_ident};
use serde::{Deserialize, Serialize};

use super::super::values::IMPORT;
use super::findings::Findings;
use super::load::{query, run_statement};
use crate::database::Database;
use crate::session::Session;

/// Families of one table with so many rows, on average, are left alone by `auto`.
const LARGE_FAMILY: f64 = 100_000.0;

/// Which tables are to lie in others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// None.
    Flat,
    /// All that can without another key.
    Auto,
    /// These: child and parent.
    Listed(Vec<(String, String)>),
}

impl Wish {
    /// Reads `auto`, `none`, or a list of `child in parent`.
    pub(super) fn read(text: &str) -> SqlResult<Wish> {
        match text.trim().to_lowercase().as_str() {
            "auto" => return Ok(Wish::Auto),
            "none" => return Ok(Wish::Flat),
            _ => {}
        }
        let pair = |part: &str| -> Option<(String, String)> {
            let words: Vec<&str> = part.split_whitespace().collect();
            let [child, word, parent] = words[..] else { return None };
            word.eq_ignore_ascii_case("in").then(|| (name(child), name(parent)))
        };
        let pairs: Option<Vec<(String, String)>> = text.split(',').map(pair).collect();
        pairs.map(Wish::Listed).ok_or_else(|| {
            IMPORT.bad(
                "interleave",
                "is auto, none, or a list: 'orders in customers, lines in orders'",
            )
        })
    }
}

/// A table's name as SHOW INTERLEAVE PROPOSALS writes it.
fn name(given: &str) -> String {
    let parts: Vec<String> = given
        .split('.')
        .map(|part| match part.strip_prefix('"').and_then(|p| p.strip_suffix('"')) {
            Some(quoted) => quote_ident(&quoted.replace("\"\"", "\"")),
            None => quote_ident(&part.to_lowercase()),
        })
        .collect();
    let name = parts.join(".");
    name.strip_prefix("public.").map_or(name.clone(), str::to_string)
}

/// Names of tables, as SHOW INTERLEAVE PROPOSALS writes them.
pub(super) type Tables = BTreeSet<String>;

/// The tables that were there before the dump: `auto` leaves them where they are.
pub(super) fn tables_of(db: &Arc<Database>, database: &str) -> SqlResult<Tables> {
    let (_, catalog) = db.begin(TxnOptions::default())?;
    let own = catalog.database(database).map(|d| d.id);
    let named = |t: &Arc<Table>| {
        let schema = catalog.schema_by_id(t.schema).filter(|s| Some(s.database) == own)?;
        Some(match schema.name.as_str() {
            "public" => quote_ident(&t.name),
            other => format!("{}.{}", quote_ident(other), quote_ident(&t.name)),
        })
    };
    Ok(catalog.tables().filter_map(named).collect())
}

/// A line of SHOW INTERLEAVE PROPOSALS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Proposed {
    child: String,
    parent: String,
    verdict: String,
    statement: String,
    changes: String,
    remarks: String,
}

/// How many rows of a table lie in one of its parent.
struct Families {
    rows: f64,
    parent_rows: f64,
    most: f64,
}

fn proposals(session: &mut Session) -> SqlResult<Vec<Proposed>> {
    let rows = query(session, "SHOW INTERLEAVE PROPOSALS")?;
    let proposed = |row: Vec<Option<String>>| {
        let text = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        Proposed {
            child: text(0),
            parent: text(1),
            verdict: text(2),
            statement: text(3),
            changes: text(10),
            remarks: text(11),
        }
    };
    Ok(rows.into_iter().map(proposed).collect())
}

impl Proposed {
    /// The child's columns that hold the parent's key: what stands in the last brackets.
    fn columns(&self) -> Option<&str> {
        let (_, rest) = self.statement.rsplit_once(" (")?;
        rest.strip_suffix(')')
    }

    /// Counts rows: ANALYZE has not seen them.
    fn families(&self, session: &mut Session) -> SqlResult<Option<Families>> {
        let Some(columns) = self.columns() else { return Ok(None) };
        let (child, parent) = (&self.child, &self.parent);
        let sql = format!(
            "SELECT coalesce(sum(n), 0)::float8, coalesce(max(n), 0)::float8, \
             (SELECT count(*) FROM {parent})::float8 \
             FROM (SELECT count(*) AS n FROM {child} GROUP BY {columns}) x"
        );
        let counted = query(session, &sql)?;
        let number = |at: usize| {
            let text = counted.first().and_then(|row| row.get(at).cloned().flatten());
            text.and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0)
        };
        Ok(Some(Families { rows: number(0), most: number(1), parent_rows: number(2) }))
    }
}

impl Families {
    fn average(&self) -> f64 {
        if self.parent_rows > 0.0 { self.rows / self.parent_rows } else { 0.0 }
    }

    fn told(&self) -> String {
        format!(
            "{} rows in {} families, {:.1} on average, {} at most",
            self.rows,
            self.parent_rows,
            self.average(),
            self.most
        )
    }
}

/// Tells which tables could lie in which, with how many rows.
pub(super) fn propose(session: &mut Session, findings: &mut Findings) -> SqlResult<()> {
    for p in proposals(session)? {
        let subject = format!("{} in {}: {}", p.child, p.parent, p.verdict);
        let mut parts = vec![p.statement.clone()];
        parts.extend(p.families(session)?.map(|families| families.told()));
        parts.push(p.changes.clone());
        // They have been counted.
        let remarks = p.remarks.split("; ").filter(|r| !r.starts_with("ANALYZE "));
        parts.extend(remarks.map(str::to_string));
        parts.retain(|part| !part.is_empty());
        findings.tell("proposal", None, &subject, &parts.join("; "))?;
    }
    Ok(())
}

/// A table that may move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Planned {
    /// It is ready, and does if that is good.
    Ready(Proposed),
    /// Somebody wants this child in this parent.
    Wanted(String, String),
}

/// The tables that may move, parents first, so that what lies in a table has its place when the
/// table moves.
pub(super) fn plan(session: &mut Session, wish: &Wish, there: &Tables) -> SqlResult<Vec<Planned>> {
    let wanted =
        |(child, parent): &(String, String)| Planned::Wanted(child.clone(), parent.clone());
    Ok(match wish {
        Wish::Flat => Vec::new(),
        Wish::Auto => {
            let mut ready = proposals(session)?;
            ready.retain(|p| p.verdict == "ready" && !there.contains(&p.child));
            ready.into_iter().map(Planned::Ready).collect()
        }
        Wish::Listed(pairs) => pairs.iter().map(wanted).collect(),
    })
}

/// Moves a table into its parent.
///
/// # Errors
/// 42P16 for a table that cannot lie where it is to lie; those of moving.
pub(super) fn follow(
    session: &mut Session,
    planned: &Planned,
    findings: &mut Findings,
) -> SqlResult<()> {
    let p = match planned {
        Planned::Wanted(child, parent) => {
            let all = proposals(session)?;
            return move_into(session, pick(&all, child, parent)?, findings);
        }
        Planned::Ready(p) => p,
    };
    let subject = format!("{} in {}", p.child, p.parent);
    if p.remarks.contains("there is no foreign key") {
        return findings.tell("left flat", None, &subject, "there is no foreign key");
    }
    match p.families(session)? {
        Some(families) if families.average() >= LARGE_FAMILY => {
            let why = format!("{}: too large to be read whole", families.told());
            findings.tell("left flat", None, &subject, &why)
        }
        _ => move_into(session, p, findings),
    }
}

fn move_into(session: &mut Session, p: &Proposed, findings: &mut Findings) -> SqlResult<()> {
    let families = p.families(session)?;
    run_statement(session, &p.statement)?;
    let subject = format!("{} in {}", p.child, p.parent);
    let mut told = families.map(|families| families.told()).unwrap_or_default();
    if p.statement.contains(" ALTER PRIMARY KEY ") {
        told.push_str("; with a new primary key, the old one is a unique index");
    }
    findings.tell("interleaved", None, &subject, &told)
}

/// The proposal that somebody means.
fn pick<'a>(all: &'a [Proposed], child: &str, parent: &str) -> SqlResult<&'a Proposed> {
    let refused = |why: String| {
        let message = format!("table {child} cannot be interleaved in {parent}: {why}");
        SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
    };
    let mut named = all.iter().filter(|p| p.child == child && p.parent == parent);
    let Some(found) = named.next() else {
        let e =
            refused("no foreign key refers to it, and the primary key does not begin so".into());
        return Err(e.with_hint("WITH dry_run, propose_interleave lists what is possible."));
    };
    let possible = std::iter::once(found).chain(named).find(|p| !p.statement.is_empty());
    possible.ok_or_else(|| match found.verdict.as_str() {
        "done" => refused("it lies there already".into()),
        _ => refused(found.remarks.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read() {
        assert_eq!(Wish::read(" AUTO ").unwrap(), Wish::Auto);
        let listed = Wish::read("Orders IN public.customers, shop.\"Lines\" in orders").unwrap();
        let want = [("orders", "customers"), ("shop.\"Lines\"", "orders")];
        let want = want.map(|(a, b)| (a.to_string(), b.to_string()));
        assert_eq!(listed, Wish::Listed(want.to_vec()));
        for wrong in ["", "orders", "orders in", "a in b c", "a in b,"] {
            assert_eq!(Wish::read(wrong).unwrap_err().state().0, "22023", "{wrong}");
        }
    }
}
