//! CREATE TABLE .. (LIKE t): what another relation has, written out as if it had been declared.

use std::sync::Arc;

use braid_catalog::{Identity, Index, IndexConstraint, Relation, Sequence, Table};
use braid_parser::{CreateTable, Kind, LikeClause, parse_script};
use braid_types::{SqlError, SqlResult, SqlState, SqlType, quote_ident};
use sqlparser::ast;

use crate::ddl::{Change, parts};
use crate::session::{collate_clause, declared_type, index_columns, waiting};

/// A statement without LIKE, and what is said of its columns and constraints.
pub(super) struct Spelled {
    pub(super) create: CreateTable,
    pub(super) comments: Comments,
}

/// Comments that go along.
#[derive(Default)]
pub(super) struct Comments {
    columns: Vec<(String, String)>,
    constraints: Vec<(String, String)>,
}

/// Writes the LIKE clauses of a statement out.
pub(super) fn spell_out(c: &Change, create: &CreateTable) -> SqlResult<Spelled> {
    let mut out = create.clone();
    let mut comments = Comments::default();
    for clause in create.likes.iter().rev() {
        let (items, indexes) = taken_over(c, create, clause, &mut comments)?;
        let text = format!("CREATE TABLE x ({})", items.join(", "));
        let read = match &*statement(&text)? {
            Kind::CreateTable(t) => t.base.clone(),
            _ => return Err(SqlError::internal("a table is none")),
        };
        let at = clause.columns_before;
        out.base.columns.splice(at..at, read.columns);
        out.base.constraints.splice(0..0, read.constraints);
        for text in indexes.iter().rev() {
            match &*statement(text)? {
                Kind::CreateIndex(index) => out.indexes.insert(0, (**index).clone()),
                _ => return Err(SqlError::internal("an index is none")),
            }
        }
    }
    out.likes = Vec::new();
    Ok(Spelled { create: out, comments })
}

/// Comments on what the new table has taken over.
pub(super) fn comment(c: &mut Change, create: &CreateTable, comments: Comments) -> SqlResult<()> {
    let Some(Relation::Table(t)) = c.ctx.find_relation(&parts(&create.base.name))? else {
        return Ok(());
    };
    let mut t = (*t).clone();
    for (column, text) in comments.columns {
        t.columns.iter_mut().filter(|col| col.name == column).for_each(|col| {
            col.comment = Some(text.clone());
        });
    }
    for (constraint, text) in comments.constraints {
        c.catalog.note(t.id, |notes| {
            notes.constraints.insert(constraint, text);
        });
    }
    c.put(t);
    Ok(())
}

fn statement(text: &str) -> SqlResult<Arc<Kind>> {
    let first = parse_script(text)?.into_iter().next();
    Ok(first.ok_or_else(|| SqlError::internal("no statement"))?.kind)
}

/// Columns and constraints, and indexes, as text.
fn taken_over(
    c: &Change,
    create: &CreateTable,
    clause: &LikeClause,
    comments: &mut Comments,
) -> SqlResult<(Vec<String>, Vec<String>)> {
    let table = match source(c, clause)? {
        Source::Table(t) => t,
        Source::Columns(columns) => {
            let column = |(name, ty): (String, SqlType)| {
                let ty = if ty == SqlType::Unknown { SqlType::Text } else { ty };
                let ty = c.catalog.type_name(ty.oid()).unwrap_or_else(|| ty.name());
                format!("{} {ty}", quote_ident(&name))
            };
            return Ok((columns.into_iter().map(column).collect(), Vec::new()));
        }
    };
    let options = clause.options;
    let mut items = Vec::new();
    for col in table.visible_columns() {
        let mut line = format!("{} {}", quote_ident(&col.name), declared_type(&c.catalog, col));
        line.push_str(&collate_clause(&c.catalog, col));
        if !col.nullable {
            line.push_str(" NOT NULL");
        }
        match (&col.generated, col.identity, &col.default) {
            (Some(e), ..) if options.generated => {
                line.push_str(&format!(" GENERATED ALWAYS AS ({e}) STORED"));
            }
            (None, Some(identity), _) if options.identity => {
                let sequence = col.sequence.and_then(|s| c.catalog.sequence(s));
                line.push_str(&identity_text(identity, sequence.map(|s| &**s)));
            }
            (None, None, Some(e)) if options.defaults => line.push_str(&format!(" DEFAULT {e}")),
            _ => {}
        }
        if options.comments {
            comments.columns.extend(col.comment.clone().map(|text| (col.name.clone(), text)));
        }
        items.push(line);
    }
    if options.constraints {
        for k in &table.checks {
            let more = if k.no_inherit { " NO INHERIT" } else { "" };
            items.push(format!("CONSTRAINT {} CHECK ({}){more}", quote_ident(&k.name), k.expr));
            let noted = c.catalog.notes(table.shown_id());
            let text = noted.and_then(|n| n.constraints.get(&k.name)).filter(|_| options.comments);
            comments.constraints.extend(text.map(|text| (k.name.clone(), text.clone())));
        }
    }
    let mut indexes = Vec::new();
    if options.indexes {
        for i in table.shown_indexes() {
            index(&table, i, &create.base.name, &mut items, &mut indexes);
        }
    }
    Ok((items, indexes))
}

enum Source {
    Table(Arc<Table>),
    /// Names and types: of a view or a composite type.
    Columns(Vec<(String, SqlType)>),
}

fn source(c: &Change, clause: &LikeClause) -> SqlResult<Source> {
    if c.ctx.find_relation(&clause.source)?.is_none()
        && let Some(ty) = c.ctx.user_type(&clause.source)?
        && let braid_catalog::TypeKind::Composite(fields) = &ty.kind
    {
        let fields = fields.iter().map(|f| (f.name.clone(), f.ty.clone()));
        return Ok(Source::Columns(fields.collect()));
    }
    let found = c.ctx.relation(&clause.source)?;
    match found {
        Relation::Table(t) | Relation::Partition(t) => Ok(Source::Table(t)),
        Relation::View(v) => Ok(Source::Columns(v.columns.clone())),
        Relation::Sequence(_) | Relation::Index(..) => {
            let name = clause.source.last().map_or("", String::as_str);
            let kind = if found.kind() == "index" { "indexes" } else { "sequences" };
            let text = format!("relation \"{name}\" is invalid in LIKE clause");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                .with_detail(format!("This operation is not supported for {kind}.")))
        }
    }
}

fn identity_text(identity: Identity, sequence: Option<&Sequence>) -> String {
    let how = match identity {
        Identity::Always => "ALWAYS",
        Identity::ByDefault => "BY DEFAULT",
    };
    let options = sequence.filter(|s| s.reversed.is_none()).map(|s| {
        format!(
            " (START WITH {} INCREMENT BY {} MINVALUE {} MAXVALUE {} CACHE {}{})",
            s.start,
            s.increment,
            s.min,
            s.max,
            s.cache,
            if s.cycle { " CYCLE" } else { "" }
        )
    });
    format!(" GENERATED {how} AS IDENTITY{}", options.unwrap_or_default())
}

/// An index as a constraint or as a statement; its name is chosen anew.
fn index(
    t: &Table,
    i: &Index,
    on: &ast::ObjectName,
    items: &mut Vec<String>,
    indexes: &mut Vec<String>,
) {
    let (key, include) = index_columns(t, i);
    let include = include.map(|list| format!(" INCLUDE ({list})")).unwrap_or_default();
    let nulls = if i.nulls_not_distinct { " NULLS NOT DISTINCT" } else { "" };
    let waits = waiting(i.deferral);
    match i.constraint {
        _ if i.id == t.primary.id => items.push(format!("PRIMARY KEY ({key})")),
        Some(IndexConstraint::Primary) => items.push(format!("PRIMARY KEY ({key})")),
        Some(IndexConstraint::Unique) => {
            items.push(format!("UNIQUE{nulls} ({key}){include}{waits}"));
        }
        None => {
            let unique = if i.is_unique() { "UNIQUE " } else { "" };
            let predicate = i.predicate.as_ref().map(|p| format!(" WHERE ({p})"));
            let method = match i.method() {
                "btree" => String::new(),
                other => format!("USING {other} "),
            };
            indexes.push(format!(
                "CREATE {unique}INDEX ON {on} {method}({key}){include}{nulls}{}",
                predicate.unwrap_or_default()
            ));
        }
    }
}
