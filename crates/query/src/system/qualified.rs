//! Stored queries and expressions as clients are shown them: names that their search path does not
//! find have their schemas, so that what is dumped can be read anywhere; others have none.

use std::collections::HashSet;
use std::ops::ControlFlow;

use braid_catalog::{Catalog, Definition, Relation, Table, id_of_oid, oid_of};
use braid_parser::shown;
use braid_scalar::{SessionFunctions, ident_name, is_only, object_name_parts, overloads};
use braid_sql::session::{SessionState, Shown, deparsed};
use braid_sql::views::Printer;
use braid_types::quote_ident;
use braid_walk::WalkMut;
use sqlparser::ast::{self, VisitorMut};

use super::definition::check_text;
use super::parse_query;

/// Puts schemas in front of names.
struct Qualifier<'a> {
    session: &'a SessionState,
    catalog: &'a Catalog,
    database: u32,
    /// By which the names are meant.
    path: Vec<String>,
    /// Names of WITH: no relations.
    own: HashSet<String>,
}

impl Qualifier<'_> {
    fn relation(&self, name: &mut ast::ObjectName) {
        let parts = object_name_parts(name);
        let session = self.session.search_path();
        let bare = match parts.as_slice() {
            [bare] => bare,
            [schema, bare] => {
                let written = self.catalog.schema(self.database, schema);
                let written = written.and_then(|s| self.catalog.relation(s.id, bare));
                let visible = self.catalog.resolve(self.database, &session, bare);
                let same = written.zip(visible).is_some_and(|(a, b)| a.id() == b.id());
                return if same && !self.own.contains(bare) {
                    drop_schema(name)
                };
            }
            _ => return,
        };
        if self.own.contains(bare) {
            return;
        }
        let found = self.catalog.resolve(self.database, &self.path, bare).map(|r| r.id());
        let visible = self.catalog.resolve(self.database, &session, bare);
        if let Some(id) = found.filter(|id| visible.map(|r| r.id()) != Some(*id))
            && let Some((schema, _)) = self.catalog.qualified_name(id)
        {
            put_schema(name, &schema);
        }
    }

    /// The name of a called function, if users have made one of it.
    fn function(&self, name: &mut ast::ObjectName) {
        let parts = object_name_parts(name);
        let bare = match parts.as_slice() {
            [bare] => bare,
            [schema, bare] => return self.visible_function(name, schema, bare),
            _ => return,
        };
        let named = |path: &[String]| self.catalog.resolve_functions(self.database, path, bare);
        let meant = named(&self.path);
        let Some(first) = meant.first() else { return self.constructor(name, bare) };
        let visible = named(&self.session.search_path());
        if meant.iter().all(|f| visible.iter().any(|v| v.id == f.id)) {
            return;
        }
        if let Some(schema) = self.catalog.schema_by_id(first.schema) {
            put_schema(name, &schema.name);
        }
    }

    /// A function that is called with its schema needs none if all of its name are found without.
    fn visible_function(&self, name: &mut ast::ObjectName, schema: &str, bare: &str) {
        let path = self.session.search_path();
        let visible = self.catalog.resolve_functions(self.database, &path, bare);
        let written = self.catalog.schema(self.database, schema).map_or(0, |s| s.id);
        let mut own = self.catalog.functions_in(written, bare).peekable();
        let is_constructor = || {
            let found = self.catalog.resolve_named(self.database, &path, bare);
            found.is_some_and(|ty| ty.schema == written && ty.multirange().is_some())
        };
        let same = match own.peek() {
            Some(_) => own.all(|f| visible.iter().any(|v| v.id == f.id)),
            None => is_constructor(),
        };
        // A function that is built in would be found first.
        if same && overloads(bare).is_empty() {
            drop_schema(name);
        }
    }

    /// The name of a function that a type of ranges brings.
    fn constructor(&self, name: &mut ast::ObjectName, bare: &str) {
        let resolve = |path: &[String]| self.catalog.resolve_named(self.database, path, bare);
        let visible = resolve(&self.session.search_path()).map(|t| t.id);
        if let Some(found) = resolve(&self.path).filter(|t| visible != Some(t.id))
            && found.multirange().is_some()
            && let Some(schema) = self.catalog.schema_by_id(found.schema)
        {
            put_schema(name, &schema.name);
        }
    }

    fn data_type(&self, ty: &mut ast::DataType) {
        match ty {
            ast::DataType::Array(
                ast::ArrayElemTypeDef::SquareBracket(inner, _)
                | ast::ArrayElemTypeDef::AngleBracket(inner)
                | ast::ArrayElemTypeDef::Parenthesis(inner),
            ) => self.data_type(inner),
            other => {
                let parts = braid_scalar::user_type_name(other).unwrap_or_default();
                let bare = match parts.as_slice() {
                    [bare] => bare,
                    [schema, bare] => {
                        let path = self.session.search_path();
                        let visible = self.catalog.resolve_named(self.database, &path, bare);
                        let written = self.catalog.schema(self.database, schema).map(|s| s.id);
                        if let ast::DataType::Custom(name, _) = other
                            && visible.is_some_and(|ty| Some(ty.schema) == written)
                        {
                            drop_schema(name);
                        }
                        return;
                    }
                    _ => return,
                };
                let resolve = |path: &[String]| {
                    self.catalog.resolve_named(self.database, path, bare).map(|t| (t.id, t.schema))
                };
                let visible = resolve(&self.session.search_path());
                if let Some(found) = resolve(&self.path).filter(|found| visible != Some(*found))
                    && let Some(schema) = self.catalog.schema_by_id(found.1)
                {
                    let mut name = ast::ObjectName::from(vec![ast::Ident::new(bare)]);
                    let modifiers = match &mut *other {
                        ast::DataType::Custom(own, modifiers) => {
                            name = own.clone();
                            std::mem::take(modifiers)
                        }
                        _ => Vec::new(),
                    };
                    put_schema(&mut name, &schema.name);
                    *other = ast::DataType::Custom(name, modifiers);
                }
            }
        }
    }

    /// `nextval('s')`: the sequence's name as it is found now.
    fn sequence(&self, function: &mut ast::Function) {
        let of_sequence = |n: &str| matches!(n, "nextval" | "currval" | "setval");
        let called = object_name_parts(&function.name);
        if !called.last().is_some_and(|n| of_sequence(n)) {
            return;
        }
        let ast::FunctionArguments::List(list) = &mut function.args else { return };
        let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(arg))) =
            list.args.first_mut()
        else {
            return;
        };
        let literal = match arg {
            ast::Expr::Cast { expr, .. } => &mut **expr,
            other => other,
        };
        self.named(literal);
    }

    /// A relation's name in a literal, as it is found now.
    fn named(&self, literal: &mut ast::Expr) {
        let ast::Expr::Value(value) = literal else { return };
        let ast::Value::SingleQuotedString(text) = &mut value.value else { return };
        let mut parts = SessionState::split_name(text);
        let Some(bare) = parts.pop() else { return };
        let path = if parts.is_empty() { &self.path } else { &parts };
        let found = self.catalog.resolve(self.database, path, &bare);
        if let Some(shown) = found.and_then(|r| self.session.relation_name(oid_of(r.id()))) {
            *text = shown;
        }
    }
}

/// Takes the schema off a name that has one.
fn drop_schema(name: &mut ast::ObjectName) {
    let at = name.0.len().saturating_sub(2);
    name.0.remove(at);
}

fn put_schema(name: &mut ast::ObjectName, schema: &str) {
    let plain = schema.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let ident = match plain {
        true => ast::Ident::new(schema),
        false => ast::Ident::with_quote('"', schema),
    };
    name.0.insert(usize::from(is_only(name)), ast::ObjectNamePart::Identifier(ident));
}

impl VisitorMut for Qualifier<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.own.extend(tables.map(|cte| ident_name(&cte.alias.name)));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ast::ObjectName) -> ControlFlow<()> {
        self.relation(relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut ast::TableFactor) -> ControlFlow<()> {
        match factor {
            ast::TableFactor::Table { name, args: Some(_), .. }
            | ast::TableFactor::Function { name, .. } => self.function(name),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Cast { expr, data_type: ast::DataType::Regclass, .. } => self.named(expr),
            ast::Expr::Cast { data_type, .. } => self.data_type(data_type),
            ast::Expr::TypedString(typed) => self.data_type(&mut typed.data_type),
            ast::Expr::Function(function) => {
                self.sequence(function);
                self.function(&mut function.name);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A stored expression, as it was written.
pub(super) fn parsed(text: &str) -> Option<ast::Expr> {
    braid_parser::parse_expr(text).ok()
}

/// The query of a view of either kind, with the names that its columns have: as PostgreSQL prints
/// it, else as it was written.
pub(super) fn view_text(
    session: &SessionState,
    catalog: &Catalog,
    view: u32,
    for_people: bool,
) -> Option<String> {
    let shown = |definition: &Definition, names: &[&str]| {
        let name_of = |id: u32| session.relation_name(oid_of(id)).unwrap_or_default();
        let database = catalog.database(&session.database).map_or(0, |d| d.id);
        let printer = Printer { catalog, database, name_of: &name_of, for_people };
        let written = || format!(" {};", query_of(session, catalog, definition, names));
        printer.text(definition, names).unwrap_or_else(written)
    };
    match catalog.relation_by_id(view)? {
        Relation::View(v) => {
            let names: Vec<&str> = v.columns.iter().map(|(name, _)| name.as_str()).collect();
            Some(shown(&v.definition, &names))
        }
        Relation::Table(t) => {
            let names: Vec<&str> = t.visible_columns().map(|c| c.name.as_str()).collect();
            Some(shown(&t.materialized()?.definition, &names))
        }
        _ => None,
    }
}

fn query_of(
    session: &SessionState,
    catalog: &Catalog,
    definition: &Definition,
    names: &[&str],
) -> String {
    let Ok(mut query) = parse_query(&definition.query) else { return shown(&definition.query) };
    let mut qualifier = Qualifier {
        session,
        catalog,
        database: catalog.database(&session.database).map_or(0, |d| d.id),
        path: definition.search_path.clone(),
        own: HashSet::new(),
    };
    let _ = query.walk_mut(&mut qualifier);
    let named =
        name_columns(&mut query.body, names) || has_names(&query, catalog, definition, names);
    if !named {
        let names: Vec<String> =
            names.iter().map(|name| braid_types::quote_ident(name).to_string()).collect();
        let text = format!("SELECT * FROM ({query}) AS q ({})", names.join(", "));
        return shown(&text);
    }
    shown(&query.to_string())
}

/// Gives the items of a SELECT the names of the view's columns; false where it has a star or is
/// none.
fn name_columns(body: &mut ast::SetExpr, names: &[&str]) -> bool {
    let select = match body {
        ast::SetExpr::Select(select) => select,
        // The first part names the columns.
        ast::SetExpr::SetOperation { left, .. } => return name_columns(left, names),
        _ => return false,
    };
    let plain = |item: &ast::SelectItem| {
        matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
    };
    if select.projection.len() != names.len() || !select.projection.iter().all(plain) {
        return false;
    }
    for (item, name) in select.projection.iter_mut().zip(names) {
        let (expr, now) = match item {
            ast::SelectItem::UnnamedExpr(expr) => {
                let now = braid_scalar::output_name(expr);
                (expr.clone(), now)
            }
            ast::SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), ident_name(alias)),
            _ => continue,
        };
        if now != *name {
            let alias = ast::Ident::with_quote('"', *name);
            *item = ast::SelectItem::ExprWithAlias { expr, alias };
        }
    }
    true
}

/// Whether `SELECT *` of one relation has the names of the view's columns.
fn has_names(query: &ast::Query, catalog: &Catalog, definition: &Definition, own: &[&str]) -> bool {
    let ast::SetExpr::Select(select) = &*query.body else { return false };
    let ([ast::SelectItem::Wildcard(_)], [from]) = (&*select.projection, &*select.from) else {
        return false;
    };
    if !from.joins.is_empty() {
        return false;
    }
    let names: Vec<String> = match &from.relation {
        ast::TableFactor::Derived { alias: Some(alias), .. } => {
            alias.columns.iter().map(|c| ident_name(&c.name)).collect()
        }
        ast::TableFactor::Table { name, alias: None, .. } => {
            let bare = object_name_parts(name).pop().unwrap_or_default();
            let relations =
                definition.depends_on.iter().filter_map(|id| catalog.relation_by_id(*id));
            let mut found = relations.filter_map(|relation| match relation {
                Relation::Table(t) | Relation::Partition(t) if t.name == bare => {
                    Some(t.visible_columns().map(|c| c.name.clone()).collect())
                }
                Relation::View(v) if v.name == bare => {
                    Some(v.columns.iter().map(|(name, _)| name.clone()).collect())
                }
                _ => None,
            });
            found.next().unwrap_or_default()
        }
        _ => return false,
    };
    names == own
}

/// An expression that is kept with a table, or with what has this oid.
pub(super) fn expression(
    session: &SessionState,
    catalog: &Catalog,
    text: &str,
    of: Option<u32>,
    how: Shown,
) -> String {
    let table = of.and_then(id_of_oid).and_then(|id| catalog.shown_table(id));
    let deparsed = table.and_then(|t| deparsed(t, text, how));
    deparsed.unwrap_or_else(|| expression_of(session, catalog, text, table.map(|t| &**t)))
}

/// A CHECK constraint of a table.
pub(super) fn check_of(
    session: &SessionState,
    catalog: &Catalog,
    text: &str,
    table: &Table,
    how: Shown,
) -> String {
    let written = || expression_of(session, catalog, text, Some(table));
    match (deparsed(table, text, how), how) {
        (Some(text), _) => format!("CHECK ({text})"),
        (None, Shown::Plain | Shown::Written) => format!("CHECK ({})", written()),
        (None, Shown::Deparsed) => check_text(&written()),
    }
}

/// The same of a table that is known.
pub(super) fn expression_of(
    session: &SessionState,
    catalog: &Catalog,
    text: &str,
    table: Option<&Table>,
) -> String {
    let Some(mut expr) = parsed(text) else { return text.to_string() };
    let own = table.and_then(|t| catalog.schema_by_id(t.schema)).map(|s| s.name.clone());
    let before = expr.clone();
    let mut qualifier = Qualifier {
        session,
        catalog,
        database: catalog.database(&session.database).map_or(0, |d| d.id),
        path: own.into_iter().chain(["public".to_string()]).collect(),
        own: HashSet::new(),
    };
    let _ = expr.walk_mut(&mut qualifier);
    let shown = if expr == before { text.to_string() } else { expr.to_string() };
    // As PostgreSQL writes the one name that every serial column has.
    shown.replace("::REGCLASS", "::regclass")
}

/// The schema whose types are printed without it.
const PUBLIC: &str = "public";

/// A printed expression, in which casts to types of the schema `public` name it if the session's
/// search path does not find them.
pub(super) fn with_types(session: &SessionState, catalog: &Catalog, text: String) -> String {
    if !text.contains("::") || session.search_path().iter().any(|schema| schema == PUBLIC) {
        return text;
    }
    let database = catalog.database(&session.database).map_or(0, |d| d.id);
    let Some(public) = catalog.schema(database, PUBLIC) else { return text };
    let own = catalog.user_types().filter(|user| user.schema == public.id);
    let mut names: HashSet<String> = own.map(|user| quote_ident(&user.name).to_string()).collect();
    if catalog.extension(database, "citext").is_some_and(|e| e.schema == oid_of(public.id)) {
        names.insert("citext".to_string());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['\'', '"', ':']) {
        let end = match &rest[at..at + 1] {
            // What is doubled within quotes is two of them, one behind the other.
            quote @ ("'" | "\"") => rest[at + 1..].find(quote).map_or(rest.len(), |n| at + n + 2),
            _ if rest[at..].starts_with("::") => at + 2,
            _ => at + 1,
        };
        out.push_str(&rest[..end]);
        let is_cast = rest[at..end] == *"::";
        rest = &rest[end..];
        if is_cast && names.contains(first_name(rest)) {
            out.push_str("public.");
        }
    }
    out + rest
}

/// The name that a text begins with, in its quotes if it has some.
fn first_name(text: &str) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let end = match text.strip_prefix('"') {
        Some(quoted) => quoted.find('"').map_or(0, |n| n + 2),
        None => text.find(|c| !is_part(c)).unwrap_or(text.len()),
    };
    // With its schema it is a name already.
    if text[end..].starts_with('.') { "" } else { &text[..end] }
}
