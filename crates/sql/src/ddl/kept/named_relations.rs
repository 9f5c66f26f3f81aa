//! Relations that expressions name: sequences in calls of `nextval`, and constants of type
//! `regclass`. PostgreSQL keeps their oids in defaults, conditions and queries of views; here it is
//! the name with its schema, so that it is the same relation under every search path, and it
//! follows when the relation or its schema is renamed.
//!
//! ```text
//!   DEFAULT nextval('s')                  nextval('public.s'::regclass)
//!   SELECT .. WHERE o = 't'::regclass     .. o = 'public.t'::regclass
//! ```

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use braid_catalog::{Relation, Sequence, Table};
use braid_parser::Name;
use braid_types::{SqlError, SqlResult, SqlState, quote_ident};
use braid_walk::WalkMut;
use sqlparser::ast::{self, VisitorMut};

use super::names::{Finder, Meant, Names};
use super::texts::{Kept, Rewrite, rewrite};
use crate::ddl::Change;
use crate::ddl::sequence::sequence_of_call;
use crate::session::SessionState;

/// An expression as it is kept: with the schemas of the relations, types and functions of users
/// that it names, so that it means the same under every search path.
pub(in crate::ddl) fn kept(c: &Change, expr: &ast::Expr) -> String {
    let mut expr = expr.clone();
    let of_name = |name: &Name| permanent_name(c, &c.ctx.find_relation(name).ok().flatten()?);
    let _ = expr.walk_mut(&mut Naming { of_name: &of_name, changed: false });
    let (catalog, path) = (&c.ctx.catalog, &c.ctx.search_path);
    let finder = Finder { catalog, database: c.ctx.database, path };
    let mut full = |meant: Meant, parts: &[String]| finder.full_name(meant, parts);
    let _ = expr.walk_mut(&mut Names { of: &mut full, changed: false });
    expr.to_string()
}

/// Writes the names into a view's query; gives the ids of the relations.
///
/// # Errors
/// 42P01 for a relation that does not exist.
pub(in crate::ddl) fn keep_in_query(c: &Change, query: &mut ast::Query) -> SqlResult<Vec<u32>> {
    let found = std::cell::RefCell::new((Vec::new(), None));
    let of_name = |name: &Name| match c.ctx.find_relation(name) {
        Ok(Some(relation)) => {
            found.borrow_mut().0.push(relation.id());
            permanent_name(c, &relation)
        }
        Ok(None) => {
            let shown = name.join(".");
            if braid_scalar::system_oid(&shown).is_none() {
                found.borrow_mut().1.get_or_insert(shown);
            }
            None
        }
        Err(_) => None,
    };
    let _ = query.walk_mut(&mut Naming { of_name: &of_name, changed: false });
    match found.into_inner() {
        (_, Some(missing)) => {
            let text = format!("relation \"{missing}\" does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_TABLE, text))
        }
        (ids, None) => Ok(ids),
    }
}

/// The name with its schema of what others can name, too: nothing temporary.
fn permanent_name(c: &Change, relation: &Relation) -> Option<String> {
    let (schema, name) = c.ctx.catalog.qualified_name(relation.id())?;
    (!schema.starts_with("pg_temp_")).then(|| full_name(&schema, &name))
}

/// A relation's name with its schema.
pub(in crate::ddl) fn full_name(schema: &str, name: &str) -> String {
    format!("{}.{}", quote_ident(schema), quote_ident(name))
}

/// Has the expressions and queries that name these relations name them as they are called from now
/// on. Names mean what they meant before the change.
///
/// # Errors
/// Of locking what they are kept with.
pub(in crate::ddl) fn follow(c: &mut Change, renamed: &BTreeMap<u32, String>) -> SqlResult<()> {
    if renamed.is_empty() {
        return Ok(());
    }
    let ctx = c.ctx.clone();
    let of_name = |name: &Name| renamed.get(&ctx.find_relation(name).ok().flatten()?.id()).cloned();
    let change = |kept: &mut Kept<'_>| {
        let mut naming = Naming { of_name: &of_name, changed: false };
        kept.tree.walk_mut(&mut naming);
        Ok(naming.changed)
    };
    rewrite(c, &Rewrite { may: &may_name, change: &change })
}

/// What a relation is called from now on, if it is one of those that were renamed.
type NewName<'a> = &'a dyn Fn(&Name) -> Option<String>;

/// The same of one sequence, if it is called otherwise.
///
/// # Errors
/// As [`follow`].
pub(in crate::ddl) fn follow_one(c: &mut Change, old: &Sequence, new: &Sequence) -> SqlResult<()> {
    if (&new.name, new.schema) == (&old.name, old.schema) {
        return Ok(());
    }
    follow_renamed(c, (new.id, new.schema), &new.name)
}

/// The same of a relation that is called otherwise in a schema.
///
/// # Errors
/// As [`follow`].
pub(in crate::ddl) fn follow_renamed(
    c: &mut Change,
    (id, schema): (u32, u32),
    name: &str,
) -> SqlResult<()> {
    let name = full_name(&c.ctx.schema_name(schema), name);
    follow(c, &BTreeMap::from([(id, name)]))
}

/// The names that the relations of a schema have when that is called otherwise.
pub(in crate::ddl) fn in_renamed(c: &Change, schema: u32, name: &str) -> BTreeMap<u32, String> {
    let catalog = &c.catalog;
    let sequences = catalog.sequences().filter(|s| s.schema == schema).map(|s| (s.id, &s.name));
    let views = catalog.views().filter(|v| v.schema == schema).map(|v| (v.id, &v.name));
    let tables = catalog.tables().filter(|t| t.schema == schema);
    let tables = tables.flat_map(|t| with_indexes(t));
    sequences.chain(views).chain(tables).map(|(id, own)| (id, full_name(name, own))).collect()
}

/// A table and its indexes, which are in its schema.
pub(in crate::ddl) fn with_indexes(t: &Table) -> impl Iterator<Item = (u32, &String)> {
    std::iter::once((t.id, &t.name)).chain(t.all_indexes().map(|i| (i.id, &i.name)))
}

/// Whether an expression or a query may name relations as values.
pub(in crate::ddl) fn may_name(text: &str) -> bool {
    text.contains("val(") || text.to_ascii_lowercase().contains("regclass")
}

/// Writes names of relations into constants of `regclass`, and into calls of `nextval` and its
/// like.
struct Naming<'a> {
    of_name: NewName<'a>,
    changed: bool,
}

impl Naming<'_> {
    /// Writes a name into an argument or a constant.
    fn put(&mut self, place: &mut ast::Expr, name: String) {
        *place = ast::Expr::Cast {
            kind: ast::CastKind::DoubleColon,
            expr: Box::new(ast::Expr::value(ast::Value::SingleQuotedString(name))),
            data_type: ast::DataType::Regclass,
            array: false,
            format: None,
        };
        self.changed = true;
    }
}

/// The name in `'name'::regclass`.
pub(in crate::ddl) fn name_of_constant(expr: &ast::Expr) -> Option<Name> {
    let (literal, ty) = match expr {
        ast::Expr::Cast { expr, data_type, .. } => match &**expr {
            ast::Expr::Value(literal) => (literal, data_type),
            _ => return None,
        },
        ast::Expr::TypedString(typed) => (&typed.value, &typed.data_type),
        _ => return None,
    };
    match (&literal.value, ty) {
        // A number is an oid.
        (ast::Value::SingleQuotedString(name), ast::DataType::Regclass)
            if name.trim().parse::<u32>().is_err() && name.trim() != "-" =>
        {
            Some(SessionState::split_name(name))
        }
        _ => None,
    }
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let Some(name) = name_of_constant(expr).and_then(|name| (self.of_name)(&name)) {
            self.put(expr, name);
        } else if let ast::Expr::Function(call) = expr
            && let Some(name) = sequence_of_call(call)
            && let ast::FunctionArguments::List(list) = &mut call.args
            && let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(arg))) =
                list.args.first_mut()
            // One of `regclass` was a constant already; one of `text` is looked up by each call.
            && matches!(arg, ast::Expr::Value(_))
            && let Some(name) = (self.of_name)(&name)
        {
            self.put(arg, name);
        }
        ControlFlow::Continue(())
    }
}
