//! Views.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use braid_catalog::{Relation, View};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;

use super::{Change, exists, parts, temporary};
use braid_scalar::ident_name;

pub(crate) fn create_view(c: &mut Change, v: &ast::CreateView) -> SqlResult<String> {
    if v.materialized {
        return Err(SqlError::unsupported("a materialized view"));
    }
    let tag = "CREATE VIEW".to_string();
    let (schema, name) = place(c, v)?;
    let old = match c.catalog.relation(schema, &name) {
        None => None,
        Some(Relation::View(old)) if v.or_replace => Some(old),
        Some(_) if v.if_not_exists => return Ok(tag),
        Some(Relation::View(_)) => return Err(exists(&name)),
        Some(_) if v.or_replace => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not a view"),
            ));
        }
        Some(_) => return Err(exists(&name)),
    };
    let text = "views must not contain data-modifying statements in WITH";
    crate::dml::with::refuse(&v.query, text, None)?;
    let source = crate::dml::source::Source::plan_query(&c.ctx, &v.query)?;
    let mut columns: Vec<_> =
        source.columns().iter().map(|i| (i.name.clone(), i.ty.clone())).collect();
    if v.columns.len() > columns.len() {
        return Err(SqlError::syntax("CREATE VIEW specifies more column names than columns"));
    }
    for (slot, given) in columns.iter_mut().zip(&v.columns) {
        slot.0 = ident_name(&given.name);
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = columns.iter().find(|c| !seen.insert(c.0.clone())) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{}\" specified more than once", twice.0),
        ));
    }
    if let Some(old) = &old {
        let keeps = old.columns.len() <= columns.len()
            && old.columns.iter().zip(&columns).all(|(a, b)| a == b);
        if !keeps {
            return Err(bad_view("cannot change names or types of existing columns of a view"));
        }
    }
    let view = View {
        id: match &old {
            Some(o) => o.id,
            None => c.new_id()?,
        },
        schema,
        name,
        query: v.query.to_string(),
        columns,
        depends_on: relations_of(c, &v.query),
        search_path: c.ctx.search_path.to_vec(),
        comment: None,
    };
    if view.depends_on.contains(&view.id) {
        return Err(bad_view("infinite recursion detected in a view"));
    }
    // The tables must not change under the view between planning and commit.
    for id in &view.depends_on {
        c.ctx.lock_for_change(*id)?;
    }
    c.catalog.put_view(view);
    c.sync();
    Ok(tag)
}

/// The schema and the name of the new view: what shows temporary tables is temporary.
fn place(c: &mut Change, v: &ast::CreateView) -> SqlResult<(u32, String)> {
    let name = parts(&v.name);
    let shows_temporary = relations_of(c, &v.query).into_iter().any(|id| {
        let relation = c.catalog.relation_by_id(id);
        relation.is_some_and(|r| temporary::holds_temporary(c, schema_of(&r)))
    });
    match name.as_slice() {
        [bare] if v.temporary || shows_temporary => {
            if !v.temporary {
                c.ctx.notice(format!("view \"{bare}\" will be a temporary view"));
            }
            Ok((temporary::schema(c)?, bare.clone()))
        }
        _ => c.ctx.target_schema(&name),
    }
}

fn bad_view(message: &str) -> SqlError {
    super::bad_table(message)
}

fn schema_of(relation: &Relation) -> u32 {
    match relation {
        Relation::Table(t) | Relation::Index(t, _) => t.schema,
        Relation::View(v) => v.schema,
        Relation::Sequence(s) => s.schema,
    }
}

/// Relations that a query names and that exist.
fn relations_of(c: &Change, query: &ast::Query) -> Vec<u32> {
    let mut found = BTreeSet::new();
    let _ = ast::visit_relations(query, |name| {
        if let Ok(Some(r)) = c.ctx.find_relation(&parts(name)) {
            found.insert(r.id());
        }
        ControlFlow::<()>::Continue(())
    });
    found.into_iter().collect()
}
