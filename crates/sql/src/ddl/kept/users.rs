//! What uses a function or a type by its name: views, and what is kept with tables and domains as
//! an expression. Without CASCADE it is in the way of DROP, with CASCADE it goes along.
//!
//! Views know what they call from when they were made. Expressions of tables are few and are bound
//! again to see it; types are found by their names.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{Function, Table, TypeKind, UserType};
use braid_parser::{parse_expr, parse_query};
use braid_rows::table_scope;
use braid_scalar::{Scope, bind_unsettled};
use braid_types::SqlResult;
use braid_walk::WalkMut;

use super::names::{Finder, Meant, Names};
use super::texts::is_here;
use crate::ddl::{Change, alter_column, drop, user_type};
use crate::session::value_scope;

/// What uses a function or a type.
#[derive(Default)]
pub(in crate::ddl) struct Users {
    /// Views of both kinds, those that use such views included.
    views: BTreeSet<u32>,
    /// Columns by table and number, whose default it is in.
    defaults: Vec<(u32, u32)>,
    /// Generated columns by table and name: they go as a whole.
    generated: Vec<(u32, String)>,
    /// Conditions by table and name.
    checks: Vec<(u32, String)>,
    /// Conditions by domain and name.
    domain_checks: Vec<(u32, String)>,
    /// Domains whose default it is in: they go as a whole, too.
    domains: Vec<u32>,
    /// All of them in words, as details of an error, each with the id of what it is kept with.
    pub(in crate::ddl) lines: Vec<(u32, String)>,
}

/// Lines as PostgreSQL orders them: older objects first.
pub(in crate::ddl) fn in_order(mut lines: Vec<(u32, String)>) -> Vec<String> {
    lines.sort_by_key(|(id, _)| *id);
    lines.into_iter().map(|(_, line)| line).collect()
}

type Uses<'a> = dyn Fn(&str, &dyn Fn() -> Scope, &[String]) -> bool + 'a;

/// What is looked for.
struct Sought<'a> {
    /// In words.
    shown: String,
    /// Whether an expression uses it, with the columns that it sees and the schemas by which its
    /// names are meant.
    uses: &'a Uses<'a>,
}

/// What calls a function.
///
/// # Errors
/// Those of reading views.
pub(in crate::ddl) fn of_function(c: &Change, f: &Function) -> Users {
    let uses = |text: &str, scope: &dyn Fn() -> Scope, _: &[String]| {
        if !text.to_lowercase().contains(&f.name.to_lowercase()) {
            return false;
        }
        let mut params = c.ctx.no_params();
        let Ok(expr) = parse_expr(text) else { return false };
        // What cannot be bound has noted what it called until then.
        let _ = bind_unsettled(&expr, &scope(), &mut params);
        params.called().contains(&f.id)
    };
    let mut out = of_texts(c, &Sought { shown: format!("function {}", f.shown()), uses: &uses });
    let own = BTreeSet::from([f.id]);
    out.views = drop::dependent_views(c, &own);
    out.lines.extend(drop::view_lines_by_id(c, &own));
    out
}

/// What names a type, which is shown so. What has values of it is not among that.
pub(in crate::ddl) fn of_type(c: &Change, ty: &UserType, shown: &str) -> Users {
    let uses = |text: &str, _: &dyn Fn() -> Scope, path: &[String]| {
        may_name(text, ty) && parse_expr(text).is_ok_and(|mut expr| names(c, &mut expr, path, ty))
    };
    let mut out = of_texts(c, &Sought { shown: format!("type {shown}"), uses: &uses });
    for (view, definition) in c.catalog.definitions().filter(|(_, d)| may_name(&d.query, ty)) {
        let query = parse_query(&definition.query);
        if query.is_ok_and(|mut query| names(c, &mut query, &definition.search_path, ty)) {
            out.views.insert(view);
        }
    }
    out
}

/// What names the type of the rows of a relation that goes, with the lines that say so; nothing of
/// what goes, too.
pub(in crate::ddl) fn of_rows(c: &Change, relation: u32, going: &BTreeSet<u32>) -> Users {
    let Some(known) = c.catalog.relation_by_id(relation) else { return Users::default() };
    let (_, name) = c.catalog.qualified_name(relation).unwrap_or_default();
    let shown = drop::called(c, &known);
    let uses = |text: &str, _: &dyn Fn() -> Scope, path: &[String]| {
        let named = |mut expr| names_rows(c, &mut expr, path, relation);
        text.contains(&name) && parse_expr(text).is_ok_and(named)
    };
    let mut out = of_texts(c, &Sought { shown: shown.clone(), uses: &uses });
    out.leave_out(going);
    let mut views = BTreeSet::new();
    for (view, d) in c.catalog.definitions().filter(|(_, d)| d.query.contains(&name)) {
        let reads = going.contains(&view) || d.depends_on.iter().any(|on| going.contains(on));
        let named = |mut query| names_rows(c, &mut query, &d.search_path, relation);
        if !reads && parse_query(&d.query).is_ok_and(named) {
            views.insert(view);
        }
    }
    let (views, lines) = views_over(c, &views, &shown);
    out.views = views;
    out.lines.extend(lines);
    out
}

/// Whether a text names the type of a relation's rows.
fn names_rows(c: &Change, tree: &mut impl WalkMut, path: &[String], relation: u32) -> bool {
    let finder = Finder { catalog: &c.catalog, database: c.ctx.database, path };
    let mut found = false;
    let mut look = |meant: Meant, parts: &[String]| {
        found |= meant == Meant::Type && finder.rows_of(parts) == Some(relation);
        None
    };
    let _ = tree.walk_mut(&mut Names { of: &mut look, changed: false });
    found
}

/// The functions that name a type in a default of a parameter.
pub(in crate::ddl) fn functions_naming(c: &Change, ty: &UserType) -> Vec<Arc<Function>> {
    let in_default = |f: &&Arc<Function>| {
        let path = [c.ctx.schema_name(f.schema), "public".to_string()];
        let mut texts = f.params.iter().filter_map(|p| p.default.as_ref());
        texts.any(|text| {
            may_name(text, ty)
                && parse_expr(text).is_ok_and(|mut expr| names(c, &mut expr, &path, ty))
        })
    };
    c.catalog.functions().filter(in_default).cloned().collect()
}

fn may_name(text: &str, ty: &UserType) -> bool {
    let named = |name: &str| text.contains(name);
    named(&ty.name) || ty.multirange().is_some_and(|of| named(&of.multirange))
}

/// Whether a text names a type.
fn names(c: &Change, tree: &mut impl WalkMut, path: &[String], ty: &UserType) -> bool {
    let finder = Finder { catalog: &c.catalog, database: c.ctx.database, path };
    let mut found = false;
    let mut look = |meant: Meant, parts: &[String]| {
        found |= match meant {
            Meant::Type => true,
            Meant::Function => ty.multirange().is_some() && finder.functions(parts).is_empty(),
            Meant::Relation | Meant::Collation => false,
        } && finder.user_type(parts).is_some_and(|user| user.id == ty.id);
        None
    };
    let _ = tree.walk_mut(&mut Names { of: &mut look, changed: false });
    found
}

/// What is kept with tables and domains.
fn of_texts(c: &Change, sought: &Sought<'_>) -> Users {
    let mut out = Users::default();
    for table in c.catalog.tables().filter(|t| is_here(c, t.schema)) {
        of_table(c, table, sought, &mut out);
    }
    for ty in c.catalog.user_types().filter(|t| is_here(c, t.schema)) {
        of_domain(c, ty, sought, &mut out);
    }
    out
}

fn of_table(c: &Change, t: &Table, sought: &Sought<'_>, out: &mut Users) {
    let scope = LazyCell::new(|| table_scope(t));
    let scope = || (*scope).clone();
    let path = [c.ctx.schema_name(t.schema), "public".to_string()];
    let uses = |text: &String| (sought.uses)(text, &scope, &path);
    let mut note = |what: String| {
        out.lines.push((t.id, format!("{what} of table {} depends on {}", t.name, sought.shown)));
    };
    for column in &t.columns {
        let name = &column.name;
        if column.default.as_ref().is_some_and(uses) {
            out.defaults.push((t.id, column.id));
            note(format!("default value for column {name}"));
        }
        if column.generated.as_ref().is_some_and(uses) {
            out.generated.push((t.id, name.clone()));
            note(format!("column {name}"));
        }
    }
    for check in t.kept_checks().filter(|check| uses(&check.expr)) {
        out.checks.push((t.id, check.name.clone()));
        let (name, table, on) = (&check.name, &t.name, &sought.shown);
        out.lines.push((t.id, format!("constraint {name} on table {table} depends on {on}")));
    }
}

fn of_domain(c: &Change, ty: &UserType, sought: &Sought<'_>, out: &mut Users) {
    let TypeKind::Domain(domain) = &ty.kind else { return };
    let scope = || value_scope(&domain.base);
    let path = [c.ctx.schema_name(ty.schema), "public".to_string()];
    for check in domain.checks.iter().filter(|check| (sought.uses)(&check.expr, &scope, &path)) {
        out.domain_checks.push((ty.id, check.name.clone()));
        out.lines.push((ty.id, format!("constraint {} depends on {}", check.name, sought.shown)));
    }
    if domain.default.as_ref().is_some_and(|text| (sought.uses)(text, &Scope::empty, &path)) {
        out.domains.push(ty.id);
        out.lines.push((ty.id, format!("type {} depends on {}", ty.name, sought.shown)));
    }
}

/// Takes them away. Views are not among that: there may be more of them.
///
/// # Errors
/// Of locking tables, and of dropping generated columns.
pub(in crate::ddl) fn remove(c: &mut Change, users: &Users) -> SqlResult<()> {
    for (table, column) in &users.defaults {
        let Some(mut t) = locked(c, *table)? else { continue };
        let mut columns = t.columns.iter_mut();
        if let Some(column) = columns.find(|known| known.id == *column) {
            column.default = None;
        }
        c.put(t);
    }
    for (table, name) in &users.checks {
        let Some(mut t) = locked(c, *table)? else { continue };
        t.checks.retain(|check| check.name != *name);
        c.put(t);
    }
    for (table, column) in &users.generated {
        if let Some(t) = c.catalog.table(*table).cloned() {
            alter_column::drop(c, &t, column, false, true)?;
        }
    }
    for (domain, name) in &users.domain_checks {
        let Some(mut new) = c.catalog.user_type(*domain).map(|ty| (**ty).clone()) else {
            continue;
        };
        user_type::lock_users(c, &new)?;
        if let TypeKind::Domain(domain) = &mut new.kind {
            domain.checks.retain(|check| check.name != *name);
        }
        c.catalog.put_type(new);
        c.touch_users(*domain);
    }
    for domain in &users.domains {
        if let Some(ty) = c.catalog.user_type(*domain).cloned() {
            user_type::drop_type(c, &ty, true)?;
        }
    }
    Ok(())
}

fn locked(c: &Change, table: u32) -> SqlResult<Option<Table>> {
    c.ctx.lock_for_change(table)?;
    Ok(c.catalog.table(table).map(|t| (**t).clone()))
}

/// Removes a function; what calls it is refused, or goes along with CASCADE.
///
/// # Errors
/// 2BP01.
pub(in crate::ddl) fn remove_function(
    c: &mut Change,
    f: &Function,
    cascade: bool,
) -> SqlResult<()> {
    let mut found = of_function(c, f);
    let lines = in_order(std::mem::take(&mut found.lines));
    drop::refuse_or_notice(c, cascade, &format!("function {}", f.shown()), &lines)?;
    drop::remove_views(c, found.views.clone())?;
    c.sync();
    remove(c, &found)?;
    c.catalog.remove(f.id);
    c.sync();
    Ok(())
}

/// Removes functions, and with CASCADE what calls them: of those that lie or are of what goes.
///
/// # Errors
/// As [`remove_function`].
pub(in crate::ddl) fn remove_functions(c: &mut Change, ids: &[u32]) -> SqlResult<()> {
    for id in ids {
        if let Some(f) = c.catalog.function(*id).cloned() {
            remove_function(c, &f, true)?;
        }
    }
    Ok(())
}

/// Views that name a type, or have values of it, with those that use them; the latter with the
/// lines that say so.
pub(in crate::ddl) fn views_over(
    c: &Change,
    direct: &BTreeSet<u32>,
    shown: &str,
) -> (BTreeSet<u32>, Vec<(u32, String)>) {
    let mut all = direct.clone();
    let mut lines = Vec::new();
    for id in direct {
        let Some(relation) = c.catalog.relation_by_id(*id) else { continue };
        lines.push((*id, format!("{} depends on {shown}", drop::called(c, &relation))));
        let own = BTreeSet::from([*id]);
        let more = drop::dependent_views(c, &own);
        let told = drop::view_lines_by_id(c, &own).into_iter().map(|(_, line)| (*id, line));
        if !more.is_subset(&all) {
            lines.extend(told);
        }
        all.extend(more);
    }
    (all, lines)
}

impl Users {
    /// Leaves out what is kept with these tables.
    fn leave_out(&mut self, going: &BTreeSet<u32>) {
        self.defaults.retain(|(table, _)| !going.contains(table));
        self.generated.retain(|(table, _)| !going.contains(table));
        self.checks.retain(|(table, _)| !going.contains(table));
        self.lines.retain(|(id, _)| !going.contains(id));
    }

    /// The views that name a type.
    pub(in crate::ddl) fn views(&self) -> &BTreeSet<u32> {
        &self.views
    }
}
