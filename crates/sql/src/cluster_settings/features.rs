//! Which classes a statement is of: by its type, and by what stands in it.

use std::ops::ControlFlow;

use braid_parser::{AlterOwn, Kind, Statement};
use braid_settings::{Feature, Live};
use braid_types::{SqlError, SqlResult, SqlState};
use braid_walk::{Visitor, Walk};
use sqlparser::ast;

use crate::statement::Entry;
use crate::statement::registry::entry_of;

/// 57000 if a class that it is of is switched off.
pub(super) fn check(live: &Live, statement: &Statement, entry: &Entry) -> SqlResult<()> {
    if let Some(feature) = entry.feature {
        on(live, feature)?;
    }
    if entry.changes_schema() {
        on(live, Feature::SchemaChange)?;
    }
    if statement.as_of.is_some() {
        on(live, Feature::AsOf)?;
    }
    match &*statement.kind {
        Kind::Explain { options, statement } => {
            if options.debug {
                on(live, Feature::ExplainDebug)?;
            }
            if options.analyze {
                check(live, statement, entry_of(statement)?)?;
            }
        }
        Kind::Prepare(_, _, statement) => check(live, statement, entry_of(statement)?)?,
        Kind::AlterTableParts(several) | Kind::CreateSchemaWith(several) => {
            several.parts.iter().try_for_each(|part| check(live, part, entry_of(part)?))?;
        }
        kind => within(kind).try_for_each(|feature| on(live, feature))?,
    }
    Ok(())
}

fn on(live: &Live, feature: Feature) -> SqlResult<()> {
    if !live.is_off(feature) {
        return Ok(());
    }
    let text = format!("feature {} was disabled by the database administrator", feature.class());
    let hint = format!(
        "It is about {}. SHOW CLUSTER SETTING {} says what holds.",
        feature.about(),
        feature.setting()
    );
    Err(SqlError::new(SqlState::OPERATOR_INTERVENTION, text).with_hint(hint))
}

/// Classes that clauses say.
fn within(kind: &Kind) -> impl Iterator<Item = Feature> {
    let mut found = Vec::new();
    match kind {
        Kind::CreateTable(t) => {
            let interleaved =
                t.interleave.is_some() || t.indexes.iter().any(|i| i.interleave.is_some());
            found.extend(interleaved.then_some(Feature::Interleave));
            found.extend((!t.indexes.is_empty()).then_some(Feature::CreateIndex));
            found.extend(t.ttl.is_some().then_some(Feature::RowDeletionPolicy));
            found.extend(t.base.temporary.then_some(Feature::Temporary));
            found.extend(t.base.query.as_deref().is_some_and(recurs).then_some(Feature::Recursion));
        }
        Kind::CreateIndex(i) => found.extend(i.interleave.is_some().then_some(Feature::Interleave)),
        Kind::AlterTableOwn(_, _, change) => match change {
            AlterOwn::SetInterleave(_) | AlterOwn::DropInterleave => {
                found.push(Feature::Interleave)
            }
            AlterOwn::PrimaryKey(_, Some(_)) => found.push(Feature::Interleave),
            AlterOwn::SetTtl(Some(_)) => found.push(Feature::RowDeletionPolicy),
            _ => {}
        },
        Kind::CreateSequence { temporary: true, .. } => found.push(Feature::Temporary),
        Kind::Insert(insert, _) => {
            found
                .extend(insert.source.as_deref().is_some_and(recurs).then_some(Feature::Recursion));
        }
        Kind::Copy(copy) => {
            found.extend(copy.query.as_deref().is_some_and(recurs).then_some(Feature::Recursion));
        }
        Kind::Sql(statement) => found.extend(of_sql(statement)),
        _ => {}
    }
    found.into_iter()
}

fn of_sql(statement: &ast::Statement) -> Option<Feature> {
    match statement {
        ast::Statement::Query(query) => recurs(query).then_some(Feature::Recursion),
        ast::Statement::Update(update) => {
            update.selection.is_none().then_some(Feature::UnfilteredWrite)
        }
        ast::Statement::Delete(delete) => {
            delete.selection.is_none().then_some(Feature::UnfilteredWrite)
        }
        ast::Statement::CreateView(view) => {
            let recurs = recurs(&view.query).then_some(Feature::Recursion);
            view.temporary.then_some(Feature::Temporary).or(recurs)
        }
        _ => None,
    }
}

fn recurs(query: &ast::Query) -> bool {
    query.walk(&mut FindsRecursion).is_break()
}

struct FindsRecursion;

impl Visitor for FindsRecursion {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        match query.with.as_ref().is_some_and(|with| with.recursive) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
