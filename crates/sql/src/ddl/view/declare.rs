//! CREATE VIEW, and a query as it is kept.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use braid_catalog::{CheckOption, Definition, Relation, View};
use braid_types::{Collated, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use super::stars;
use crate::ddl::{Change, bad_table, composite, exists, named_relations, parts, temporary};
use crate::dml::source::Source;
use crate::general_query::ColumnInfo;
use braid_scalar::ident_name;
use braid_walk::{Visitor, Walk};

pub(crate) fn create_view(c: &mut Change, v: &ast::CreateView) -> SqlResult<String> {
    if v.materialized {
        // What we read ourselves is all that there is of it.
        return Err(SqlError::syntax("syntax error at or near \"MATERIALIZED\""));
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
    let source = Source::plan_query(&c.ctx, &v.query)?;
    let known = |ty| composite::as_known_elsewhere(c, ty);
    let mut columns: Vec<_> =
        source.columns().iter().map(|i| (i.name.clone(), known(&i.ty))).collect();
    if v.columns.len() > columns.len() {
        return Err(SqlError::syntax("CREATE VIEW specifies more column names than columns"));
    }
    for (slot, given) in columns.iter_mut().zip(&v.columns) {
        slot.0 = ident_name(&given.name);
    }
    let collations = collations(source.columns(), &columns)?;
    refuse_twice(&columns)?;
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
        definition: definition(c, &v.query)?,
        columns,
        collations,
        check_option: check_option(&v.options)?,
        comment: None,
    };
    check_checked(c, &view)?;
    if view.definition.depends_on.contains(&view.id) {
        return Err(bad_view("infinite recursion detected in a view"));
    }
    // The tables must not change under the view between planning and commit.
    for id in relations_of(c, &v.query) {
        c.ctx.lock_for_change(id)?;
    }
    c.catalog.put_view(view);
    c.sync();
    Ok(tag)
}

/// 42701 for columns of one name.
fn refuse_twice(columns: &[(String, SqlType)]) -> SqlResult<()> {
    let mut seen = BTreeSet::new();
    match columns.iter().find(|c| !seen.insert(&c.0)) {
        None => Ok(()),
        Some((name, _)) => {
            let text = format!("column \"{name}\" specified more than once");
            Err(SqlError::new(SqlState::DUPLICATE_COLUMN, text))
        }
    }
}

/// Oids of the collations of a view's columns; nothing if all have that of the database.
fn collations(columns: &[ColumnInfo], named: &[(String, SqlType)]) -> SqlResult<Vec<Option<u32>>> {
    let mut out = Vec::with_capacity(columns.len());
    for (info, (name, _)) in columns.iter().zip(named) {
        if matches!(info.collation, Collated::Indeterminate(..)) {
            let text =
                format!("could not determine which collation to use for view column \"{name}\"");
            return Err(SqlError::new(SqlState::INDETERMINATE_COLLATION, text)
                .with_hint("Use the COLLATE clause to set the collation explicitly."));
        }
        out.push(info.collation.known().map(|own| own.oid));
    }
    if out.iter().all(Option::is_none) {
        out.clear();
    }
    Ok(out)
}

/// 0A000 for a CHECK OPTION of a view that nobody can write to.
fn check_checked(c: &Change, view: &View) -> SqlResult<()> {
    if view.check_option.is_some()
        && let Err(reason) = crate::views::simple(&c.catalog, view)?
    {
        let text = "WITH CHECK OPTION is supported only on automatically updatable views";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).with_hint(reason));
    }
    Ok(())
}

/// WITH CHECK OPTION; the other options say who may look behind a view, which nobody is kept from.
fn check_option(options: &ast::CreateTableOptions) -> SqlResult<Option<CheckOption>> {
    let ast::CreateTableOptions::With(options) = options else { return Ok(None) };
    let mut out = None;
    for option in options {
        let (key, value) = match option {
            ast::SqlOption::KeyValue { key, value } => (ident_name(key), Some(value)),
            ast::SqlOption::Ident(key) => (ident_name(key), None),
            other => return Err(SqlError::unsupported(format!("the option {other} of a view"))),
        };
        let value = value.map(ToString::to_string).unwrap_or_default();
        match (key.as_str(), value.trim_matches('\'').to_lowercase().as_str()) {
            ("check_option", "local") => out = Some(CheckOption::Local),
            ("check_option", "cascaded") => out = Some(CheckOption::Cascaded),
            ("check_option", given) => {
                let text = format!("invalid value for enum option \"check_option\": {given}");
                return Err(SqlError::new(SqlState("22023"), text)
                    .with_detail("Valid values are \"local\" and \"cascaded\"."));
            }
            ("security_barrier" | "security_invoker", _) => {}
            (key, _) => {
                let text = format!("unrecognized parameter \"{key}\"");
                return Err(SqlError::new(SqlState("22023"), text));
            }
        }
    }
    Ok(out)
}

/// The schema and the name of the new view: what shows temporary tables is temporary.
fn place(c: &mut Change, v: &ast::CreateView) -> SqlResult<(u32, String)> {
    let name = parts(&v.name);
    let shows_temporary = shows_temporary(c, &v.query);
    if let Some(bare) = name.last().filter(|_| shows_temporary && !v.temporary) {
        c.ctx.notice(format!("view \"{bare}\" will be a temporary view"));
    }
    match temporary::place(c, &name, v.temporary || shows_temporary)? {
        Some(place) => Ok(place),
        None => c.ctx.target_schema(&name),
    }
}

/// Whether a query names relations that go with their session.
pub(super) fn shows_temporary(c: &Change, query: &ast::Query) -> bool {
    relations_of(c, query).into_iter().any(|id| {
        let relation = c.catalog.relation_by_id(id);
        relation.is_some_and(|r| temporary::holds_temporary(c, schema_of(&r)))
    })
}

/// A query as it is kept with a view.
pub(super) fn definition(c: &Change, query: &ast::Query) -> SqlResult<Definition> {
    let mut params = c.ctx.no_params();
    if c.catalog.functions().next().is_some() {
        Source::plan(&c.ctx, query, &mut params)?;
    }
    let mut shown = stars::written_out(c, query)?;
    let mut depends_on = relations_of(c, query);
    for named in named_relations::keep_in_query(c, &mut shown)? {
        if !depends_on.contains(&named) {
            depends_on.push(named);
        }
    }
    depends_on.extend_from_slice(params.called());
    Ok(Definition { query: shown.to_string(), depends_on, search_path: c.ctx.search_path.to_vec() })
}

fn bad_view(message: &str) -> SqlError {
    bad_table(message)
}

fn schema_of(relation: &Relation) -> u32 {
    match relation {
        Relation::Table(t) | Relation::Partition(t) | Relation::Index(t, _) => t.schema,
        Relation::View(v) => v.schema,
        Relation::Sequence(s) => s.schema,
    }
}

/// Relations that a query names and that exist.
fn relations_of(c: &Change, query: &ast::Query) -> Vec<u32> {
    let mut named = Named { c, found: BTreeSet::new(), withs: Vec::new() };
    let _walked: ControlFlow<()> = query.walk(&mut named);
    named.found.into_iter().collect()
}

/// Finds relations, which names of WITH are none of.
struct Named<'a> {
    c: &'a Change,
    found: BTreeSet<u32>,
    /// Of each query around.
    withs: Vec<NamesOfWith>,
}

/// Names of a WITH.
#[derive(Default)]
struct NamesOfWith {
    /// Those that may be used by now.
    made: Vec<String>,
    /// All of them, with where their queries lie.
    all: Vec<(*const ast::Query, String)>,
}

impl Visitor for Named<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        let mut names = NamesOfWith::default();
        if let Some(with) = &query.with {
            let own = with.cte_tables.iter();
            names.all = own.map(|q| (&raw const *q.query, ident_name(&q.alias.name))).collect();
            if with.recursive {
                names.made = names.all.iter().map(|(_, name)| name.clone()).collect();
            }
        }
        self.withs.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        self.withs.pop();
        if let Some(names) = self.withs.last_mut() {
            let ended = names.all.iter().find(|(own, _)| std::ptr::eq(*own, query));
            names.made.extend(ended.map(|(_, name)| name.clone()));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ast::ObjectName) -> ControlFlow<()> {
        let name = parts(name);
        let of_with = |bare: &String| self.withs.iter().any(|names| names.made.contains(bare));
        if !matches!(name.as_slice(), [bare] if of_with(bare))
            && let Ok(Some(relation)) = self.c.ctx.find_relation(&name)
        {
            self.found.insert(relation.id());
        }
        ControlFlow::Continue(())
    }
}
