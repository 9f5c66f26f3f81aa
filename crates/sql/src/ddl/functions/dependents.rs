//! What calls a function: views, and what is kept with tables and domains as an expression.
//!
//! Views know what they call from when they were made. Expressions of tables are few and are bound
//! again to see it.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{Function, Table, TypeKind, UserType};
use braid_parser::parse_expr;
use braid_scalar::{Scope, bind_unsettled};
use braid_types::{SqlError, SqlResult};

use crate::ddl::{Change, drop, table_scope};
use crate::session::value_scope;

/// What calls a function.
pub(super) struct Users {
    /// Views of both kinds, those that use such views included.
    views: BTreeSet<u32>,
    /// Columns by table and number, whose default it is in.
    defaults: Vec<(u32, u32)>,
    /// Conditions by table and name.
    checks: Vec<(u32, String)>,
    /// What cannot be taken away by CASCADE.
    fixed: Vec<String>,
    /// All of them in words, as details of an error.
    pub(super) lines: Vec<String>,
}

/// Whether an expression that is kept as text calls a function.
fn calls(c: &Change, text: &str, scope: &Scope, f: &Function) -> bool {
    if !text.to_lowercase().contains(&f.name.to_lowercase()) {
        return false;
    }
    let mut params = c.ctx.no_params();
    let Ok(expr) = parse_expr(text) else { return false };
    // What cannot be bound has noted what it called until then.
    let _ = bind_unsettled(&expr, scope, &mut params);
    params.called().contains(&f.id)
}

/// What calls a function.
pub(super) fn users(c: &Change, f: &Function) -> SqlResult<Users> {
    let own = BTreeSet::from([f.id]);
    let mut out = Users {
        views: drop::dependent_views(c, &own),
        defaults: Vec::new(),
        checks: Vec::new(),
        fixed: Vec::new(),
        lines: Vec::new(),
    };
    let tables: Vec<Arc<Table>> = c.catalog.tables().cloned().collect();
    for t in &tables {
        of_table(c, t, f, &mut out);
    }
    for ty in c.catalog.user_types() {
        of_domain(c, ty, f, &mut out);
    }
    out.lines.extend(drop::view_lines(c, &own));
    Ok(out)
}

fn of_table(c: &Change, t: &Table, f: &Function, out: &mut Users) {
    let scope = table_scope(t);
    for column in &t.columns {
        let name = &column.name;
        if column.default.as_ref().is_some_and(|text| calls(c, text, &Scope::empty(), f)) {
            out.defaults.push((t.id, column.id));
            out.lines.push(format!(
                "default value for column {name} of table {} depends on function {}",
                t.name,
                f.shown()
            ));
        }
        if column.generated.as_ref().is_some_and(|text| calls(c, text, &scope, f)) {
            let line =
                format!("column {name} of table {} depends on function {}", t.name, f.shown());
            out.fixed.push(line.clone());
            out.lines.push(line);
        }
    }
    for check in &t.checks {
        if calls(c, &check.expr, &scope, f) {
            out.checks.push((t.id, check.name.clone()));
            out.lines.push(format!(
                "constraint {} on table {} depends on function {}",
                check.name,
                t.name,
                f.shown()
            ));
        }
    }
}

fn of_domain(c: &Change, ty: &UserType, f: &Function, out: &mut Users) {
    let TypeKind::Domain(domain) = &ty.kind else { return };
    let scope = value_scope(&domain.base);
    let checks = domain.checks.iter().map(|check| check.expr.as_str());
    for text in checks.chain(domain.default.as_deref()) {
        if calls(c, text, &scope, f) {
            let line = format!("type {} depends on function {}", ty.name, f.shown());
            out.fixed.push(line.clone());
            out.lines.push(line);
        }
    }
}

/// Removes a function; what calls it is refused, or goes along with CASCADE.
pub(super) fn remove_with_users(c: &mut Change, f: &Function, cascade: bool) -> SqlResult<()> {
    let found = users(c, f)?;
    drop::refuse_or_notice(c, cascade, &format!("function {}", f.shown()), &found.lines)?;
    if !found.fixed.is_empty() {
        let text = "DROP FUNCTION .. CASCADE with generated columns or domains that call it";
        return Err(SqlError::unsupported(text)
            .with_detail(found.fixed.join("\n"))
            .with_hint("Drop these first."));
    }
    for (table, column) in found.defaults {
        let Some(mut t) = locked(c, table)? else { continue };
        let mut columns = t.columns.iter_mut();
        if let Some(column) = columns.find(|known| known.id == column) {
            column.default = None;
        }
        c.put(t);
    }
    for (table, name) in found.checks {
        let Some(mut t) = locked(c, table)? else { continue };
        t.checks.retain(|check| check.name != name);
        c.put(t);
    }
    drop::remove_views(c, found.views)?;
    c.catalog.remove(f.id);
    c.sync();
    Ok(())
}

fn locked(c: &Change, table: u32) -> SqlResult<Option<Table>> {
    c.ctx.lock_for_change(table)?;
    Ok(c.catalog.table(table).map(|t| (**t).clone()))
}

/// Removes functions, and with CASCADE what calls them: of those that lie or are of what goes.
pub(in crate::ddl) fn remove_all(c: &mut Change, ids: &[u32]) -> SqlResult<()> {
    for id in ids {
        if let Some(f) = c.catalog.function(*id).cloned() {
            remove_with_users(c, &f, true)?;
        }
    }
    Ok(())
}
