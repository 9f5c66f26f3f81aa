//! Sequences in defaults. PostgreSQL keeps their oids there; here it is the name with its schema,
//! so that it is the same sequence under every search path, and it follows when the sequence or its
//! schema is renamed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use braid_catalog::{Relation, Sequence, TypeKind, UserType};
use braid_parser::Name;
use braid_types::{SqlResult, quote_ident};
use braid_walk::WalkMut;
use sqlparser::ast::{self, VisitorMut};

use crate::ddl::Change;
use crate::ddl::sequence::sequence_of_call;

/// A default as it is kept.
pub(in crate::ddl) fn kept(c: &Change, default: &ast::Expr) -> String {
    let mut expr = default.clone();
    let of_name = |name: &Name| {
        let Some(Relation::Sequence(s)) = c.ctx.find_relation(name).ok().flatten() else {
            return None;
        };
        let schema = c.ctx.schema_name(s.schema);
        // Nobody else can name a temporary one.
        (!schema.starts_with("pg_temp_")).then(|| full_name(&schema, &s.name))
    };
    let _ = expr.walk_mut(&mut Naming { of_name: &of_name, changed: false });
    expr.to_string()
}

/// A sequence's name with its schema.
pub(in crate::ddl) fn full_name(schema: &str, name: &str) -> String {
    format!("{}.{}", quote_ident(schema), quote_ident(name))
}

/// Has the defaults that name these sequences name them as they are called from now on. Names mean
/// what they meant before the change.
///
/// # Errors
/// Of locking their tables.
pub(in crate::ddl) fn follow(c: &mut Change, renamed: &BTreeMap<u32, String>) -> SqlResult<()> {
    if renamed.is_empty() {
        return Ok(());
    }
    let of_name = |name: &Name| match c.ctx.find_relation(name).ok().flatten()? {
        Relation::Sequence(s) => renamed.get(&s.id).cloned(),
        _ => None,
    };
    let here =
        |schema: u32| c.catalog.schema_by_id(schema).is_some_and(|s| s.database == c.ctx.database);
    let mut tables = Vec::new();
    for table in c.catalog.tables().filter(|t| here(t.schema)) {
        let mut new = (**table).clone();
        let mut changed = false;
        for column in &mut new.columns {
            changed |= rename(&mut column.default, &of_name)?;
        }
        if changed {
            tables.push(new);
        }
    }
    let mut domains = Vec::new();
    for user in c.catalog.user_types().filter(|t| here(t.schema)) {
        let TypeKind::Domain(domain) = &user.kind else { continue };
        let mut domain = domain.clone();
        if rename(&mut domain.default, &of_name)? {
            domains.push(UserType { kind: TypeKind::Domain(domain), ..(**user).clone() });
        }
    }
    for table in tables {
        c.ctx.lock_for_change(table.id)?;
        c.catalog.put_table(table);
    }
    for domain in domains {
        c.catalog.put_type(domain);
    }
    Ok(())
}

/// The same of one sequence, if it is called otherwise.
///
/// # Errors
/// As [`follow`].
pub(in crate::ddl) fn follow_one(c: &mut Change, old: &Sequence, new: &Sequence) -> SqlResult<()> {
    if (&new.name, new.schema) == (&old.name, old.schema) {
        return Ok(());
    }
    let name = full_name(&c.ctx.schema_name(new.schema), &new.name);
    follow(c, &BTreeMap::from([(new.id, name)]))
}

/// The names that the sequences of a schema have when that is called otherwise.
pub(in crate::ddl) fn in_renamed(c: &Change, schema: u32, name: &str) -> BTreeMap<u32, String> {
    let inside = c.catalog.sequences().filter(|s| s.schema == schema);
    inside.map(|s: &std::sync::Arc<Sequence>| (s.id, full_name(name, &s.name))).collect()
}

/// Whether a default names one that is called otherwise; then it is changed.
fn rename(
    default: &mut Option<String>,
    of_name: &dyn Fn(&Name) -> Option<String>,
) -> SqlResult<bool> {
    let Some(text) = default.as_mut().filter(|text| text.contains("val(")) else {
        return Ok(false);
    };
    let mut expr = braid_parser::parse_expr(text)?;
    let mut naming = Naming { of_name, changed: false };
    let _ = expr.walk_mut(&mut naming);
    if naming.changed {
        *text = expr.to_string();
    }
    Ok(naming.changed)
}

/// Writes names of sequences into calls of `nextval` and its like.
struct Naming<'a> {
    of_name: &'a dyn Fn(&Name) -> Option<String>,
    changed: bool,
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Function(call) = expr
            && let Some(name) = sequence_of_call(call).and_then(|name| (self.of_name)(&name))
            && let ast::FunctionArguments::List(list) = &mut call.args
            && let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(arg))) =
                list.args.first_mut()
        {
            *arg = ast::Expr::Cast {
                kind: ast::CastKind::DoubleColon,
                expr: Box::new(ast::Expr::value(ast::Value::SingleQuotedString(name))),
                data_type: ast::DataType::Regclass,
                array: false,
                format: None,
            };
            self.changed = true;
        }
        ControlFlow::Continue(())
    }
}
