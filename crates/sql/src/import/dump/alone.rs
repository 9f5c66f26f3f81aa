//! A table that has its columns from others, as a table of its own.
//!
//! ```text
//!   CREATE TABLE b (x int) INHERITS (a)           the columns and checks of a, and x
//!   CREATE TABLE t OF place (street NOT NULL)     the fields of place
//! ```
//! The rows are all there then; what is not is that one follows the other, and it is told.

use braid_parser::{CreateTable, Kind, Statement};
use braid_types::{SqlResult, quote_ident};
use sqlparser::ast::{ColumnDef, TableConstraint};

use super::load::query;
use crate::session::Session;

/// A text for a table that failed for INHERITS or OF, and what is told of it; `None` for all other
/// statements, and if what it has its columns from is not there.
pub(super) fn alone(
    session: &mut Session,
    statement: &Statement,
) -> SqlResult<Option<(String, String)>> {
    let Kind::CreateTable(made) = &*statement.kind else { return Ok(None) };
    if made.by.is_some() {
        return Ok(None);
    }
    let (sources, told) = match (&made.of, &made.base.inherits) {
        (Some(ty), None) => {
            let ty: Vec<String> = ty.iter().map(|part| quote_ident(part)).collect();
            let ty = ty.join(".");
            let told = format!("has the columns of {ty}, and does not follow it");
            (vec![ty], told)
        }
        (None, Some(parents)) => {
            let parents: Vec<String> = parents.iter().map(ToString::to_string).collect();
            let all = parents.join(", ");
            let told = format!("is a table of its own: queries of {all} do not see its rows");
            (parents, told)
        }
        _ => return Ok(None),
    };
    let mut parts = Parts::default();
    for source in &sources {
        if !parts.take_over(session, source)? {
            return Ok(None);
        }
    }
    Ok(Some((parts.table(made), told)))
}

/// What a table has from others: names and texts.
#[derive(Default)]
struct Parts {
    columns: Vec<(String, String)>,
    checks: Vec<(String, String)>,
}

impl Parts {
    /// Adds the columns and checks of a table or a type; `false` if there is none.
    fn take_over(&mut self, session: &mut Session, source: &str) -> SqlResult<bool> {
        let oid = format!("to_regclass('{}')", source.replace('\'', "''"));
        let there = query(session, &format!("SELECT {oid} IS NOT NULL"))?;
        if there.first().and_then(|row| row[0].as_deref()) != Some("t") {
            return Ok(false);
        }
        let columns = format!(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod),
                CASE WHEN a.attcollation <> t.typcollation
                    THEN (SELECT quote_ident(n.nspname) || '.' || quote_ident(c.collname)
                        FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
                        WHERE c.oid = a.attcollation) END,
                a.attgenerated, pg_get_expr(d.adbin, d.adrelid), a.attnotnull
            FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
                LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        );
        for row in query(session, &columns)? {
            let text = |at: usize| row[at].as_deref().unwrap_or_default();
            let name = text(0).to_string();
            if self.columns.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let mut declared = format!("{} {}", quote_ident(&name), text(1));
            if !text(2).is_empty() {
                declared.push_str(&format!(" COLLATE {}", text(2)));
            }
            match (text(3), text(4)) {
                (_, "") => {}
                ("s", e) => declared.push_str(&format!(" GENERATED ALWAYS AS ({e}) STORED")),
                (_, e) => declared.push_str(&format!(" DEFAULT {e}")),
            }
            if text(5) == "t" {
                declared.push_str(" NOT NULL");
            }
            self.columns.push((name, declared));
        }
        let checks = format!(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
            WHERE conrelid = {oid} AND contype = 'c' AND NOT connoinherit ORDER BY conname"
        );
        for row in query(session, &checks)? {
            let text = |at: usize| row[at].clone().unwrap_or_default();
            let (name, check) = (text(0), text(1));
            if !self.checks.iter().any(|(known, _)| *known == name) {
                let declared = format!("CONSTRAINT {} {check}", quote_ident(&name));
                self.checks.push((name, declared));
            }
        }
        Ok(true)
    }

    /// The table with what it says itself: over what it has from others of the same name.
    fn table(mut self, made: &CreateTable) -> String {
        for own in &made.base.columns {
            let name = &own.name.value;
            match self.columns.iter_mut().find(|(known, _)| known == name) {
                Some((_, text)) if made.of.is_some() => add_options(text, own),
                Some((_, text)) => *text = own.to_string(),
                None => self.columns.push((name.clone(), own.to_string())),
            }
        }
        let of_same_name = |name: &str, own: &TableConstraint| {
            own.to_string().starts_with(&format!("CONSTRAINT {} ", quote_ident(name)))
        };
        self.checks
            .retain(|(name, _)| !made.base.constraints.iter().any(|own| of_same_name(name, own)));
        let taken = self.columns.into_iter().chain(self.checks).map(|(_, text)| text);
        let own = made.base.constraints.iter().map(ToString::to_string);
        let all: Vec<String> = taken.chain(own).collect();
        format!("CREATE TABLE {} ({})", made.base.name, all.join(", "))
    }
}

fn add_options(text: &mut String, own: &ColumnDef) {
    own.options.iter().for_each(|option| text.push_str(&format!(" {option}")));
}
