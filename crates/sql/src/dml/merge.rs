//! MERGE: each of its clauses is an UPDATE, a DELETE or an INSERT over the join with the source,
//! and all of them are one statement ([`super::as_one`]).
//!
//! ```text
//!   MERGE INTO t USING s ON j
//!     WHEN MATCHED AND a THEN DELETE        DELETE FROM t USING s WHERE j AND a
//!     WHEN MATCHED THEN UPDATE SET x = y    UPDATE t SET x = y FROM s WHERE j AND NOT a
//!     WHEN NOT MATCHED THEN INSERT ..       INSERT .. SELECT .. FROM s WHERE NOT EXISTS (.. j)
//! ```
//! A clause takes the rows that those before it have left, which a CASE says, so that conditions
//! are computed in their order. A row that two source rows want to change is an error.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::Relation;
use braid_parser::{MERGE_DEFAULTS, MERGE_NOTHING, parse_query};
use braid_scalar::{ParamTypes, object_name_parts};
use braid_types::{SqlError, SqlResult, SqlState, quote_ident};
use sqlparser::ast::{self, MergeAction, MergeClauseKind};

use super::as_one::AsOne;
use super::source::Source;
use super::target::{Target, Verb, is_default};
use super::with::{Part, With, part};
use super::{Written, writer::WriteWork};
use crate::explain::{Actual, Explained, PlanLine, Timed};
use crate::session::Context;

/// A planned MERGE.
pub struct MergePlan {
    table: String,
    /// Those that change rows; those that insert come last.
    clauses: Vec<Part>,
}

/// The texts that every clause is made of.
struct Texts {
    table: String,
    /// The table with its alias, where a query reads it.
    target: String,
    /// What INSERT names.
    name: String,
    source: String,
    on: String,
}

impl MergePlan {
    /// The tables that it writes to.
    pub(crate) fn written_tables(&self) -> Vec<u32> {
        self.clauses.iter().flat_map(Part::written_tables).collect()
    }

    /// Plans it.
    pub(crate) fn new(
        ctx: &Context,
        merge: &ast::Merge,
        params: &mut ParamTypes,
    ) -> SqlResult<MergePlan> {
        refuse(merge, params)?;
        let ast::TableFactor::Table { name, .. } = &merge.table else {
            return Err(SqlError::syntax("a table name is expected here"));
        };
        refuse_views(ctx, name)?;
        let target = Target::factor(ctx, &merge.table, Verb::Update)?;
        let texts = Texts {
            table: merge.table.to_string(),
            target: target.in_from(ctx, merge.table.to_string()),
            name: name.to_string(),
            source: merge.source.to_string(),
            on: merge.on.to_string(),
        };
        // Names are judged with both sides in reach, whatever the clauses look at.
        let joined =
            format!("SELECT 1 FROM {} JOIN {} ON {}", texts.source, texts.target, texts.on);
        Source::plan(ctx, &*parse_query(&joined)?, params).map_err(|e| twice_named(e, &target))?;
        let (mut changing, mut inserting) = (Vec::new(), Vec::new());
        let (mut matched, mut unmatched) = (Vec::new(), Vec::new());
        for clause in &merge.clauses {
            let is_matched = clause.clause_kind == MergeClauseKind::Matched;
            let before = if is_matched { &mut matched } else { &mut unmatched };
            if before.iter().any(Option::is_none) {
                return Err(SqlError::syntax(
                    "unreachable WHEN clause specified after unconditional WHEN clause",
                ));
            }
            let condition = clause.predicate.as_ref().map(ToString::to_string);
            let mine = taken(before, condition.as_deref());
            before.push(condition);
            let Some(text) = texts.clause(&target, &clause.action, &mine)? else { continue };
            let planned = part(ctx, &*parse_query(&text)?, params);
            match is_matched {
                true => changing.push(planned?),
                false => inserting.push(planned.map_err(|e| out_of_reach(e, &target))?),
            }
        }
        changing.extend(inserting);
        Ok(MergePlan { table: target.table.name.clone(), clauses: changing })
    }

    /// Whether it updates rows.
    pub(super) fn updates(&self) -> bool {
        self.clauses.iter().any(|clause| matches!(clause, Part::Update(_)))
    }

    /// Runs it.
    pub(crate) fn run(&self, ctx: &Context) -> SqlResult<Written> {
        let around = ctx.with.as_deref().cloned().unwrap_or_default();
        let own = match around.as_one {
            Some(_) => None,
            None => Some(Arc::new(AsOne::begin(ctx, self.updates()))),
        };
        let as_one = around.as_one.clone().or(own.clone());
        let within = With { as_one, once: true, ..around };
        let within = Context { with: Some(Arc::new(within)), ..ctx.clone() };
        let mut all = Written::default();
        for clause in &self.clauses {
            let Written { count, work, .. } = clause.run(&within)?;
            all.count += count;
            all.work = WriteWork {
                probes: all.work.probes + work.probes,
                entries: all.work.entries + work.entries,
            };
        }
        if let Some(own) = own {
            own.finish(ctx)?;
        }
        Ok(all)
    }

    /// EXPLAIN.
    pub(crate) fn explain(&self, ctx: &Context, analyze: bool) -> SqlResult<Explained> {
        let text = format!("Merge on {}", self.table);
        let mut head = PlanLine::operator(text, "ModifyTable", Some(&self.table));
        let mut lines = Vec::new();
        for clause in &self.clauses {
            lines.extend(clause.explain(ctx)?.into_iter().map(PlanLine::indented));
        }
        let mut rows = None;
        if analyze {
            let timed = Timed::begin(ctx);
            let count = self.run(ctx)?.count;
            head.ran(Actual { rows: count, loops: 1, ..timed.end(ctx) });
            rows = Some(count);
        }
        lines.insert(0, head);
        Ok(Explained { lines, rows })
    }
}

/// The rows of a clause: those that no clause before it has taken.
fn taken(before: &[Option<String>], condition: Option<&str>) -> String {
    if before.is_empty() {
        return condition.map(|c| format!(" AND ({c})")).unwrap_or_default();
    }
    let earlier = before.iter().flatten().map(|c| format!(" WHEN {c} THEN false"));
    let earlier: String = earlier.collect();
    match condition {
        Some(c) => format!(" AND CASE{earlier} WHEN {c} THEN true ELSE false END"),
        None => format!(" AND CASE{earlier} ELSE true END"),
    }
}

impl Texts {
    /// The statement that does what a clause says, for the rows that are its; none: nothing.
    fn clause(
        &self,
        target: &Target,
        action: &MergeAction,
        mine: &str,
    ) -> SqlResult<Option<String>> {
        let Texts { table, source, on, .. } = self;
        Ok(match action {
            action if is_nothing(action) => None,
            MergeAction::Update(u) => {
                let set: Vec<String> = u.assignments.iter().map(ToString::to_string).collect();
                let set = set.join(", ");
                Some(format!("UPDATE {table} SET {set} FROM {source} WHERE ({on}){mine}"))
            }
            MergeAction::Delete { .. } => {
                Some(format!("DELETE FROM {table} USING {source} WHERE ({on}){mine}"))
            }
            MergeAction::Insert(i) => Some(self.insert(target, i, mine)?),
        })
    }

    fn insert(
        &self,
        target: &Target,
        insert: &ast::MergeInsertExpr,
        mine: &str,
    ) -> SqlResult<String> {
        let ast::MergeInsertKind::Values(values) = &insert.kind else {
            return Err(SqlError::syntax("MERGE needs VALUES after INSERT"));
        };
        let [row] = values.rows.as_slice() else {
            return Err(SqlError::syntax("MERGE inserts one row of VALUES"));
        };
        let Texts { name, source, target: read, on, .. } = self;
        let from =
            format!("FROM {source} WHERE NOT EXISTS (SELECT 1 FROM {read} WHERE {on}){mine}");
        if insert.columns.iter().any(|name| is_mark(name, MERGE_DEFAULTS)) {
            return Ok(format!("INSERT INTO {name} SELECT {from}"));
        }
        let (marks, given): (Vec<_>, Vec<_>) =
            insert.columns.iter().map(ToString::to_string).partition(|n| n.starts_with("\"\0"));
        let visible = target.table.columns.iter().filter(|c| !c.hidden);
        let listed = !given.is_empty();
        let names: Vec<String> = match listed {
            false => visible.map(|c| quote_ident(&c.name)).collect(),
            true => given,
        };
        if row.content.len() > names.len() {
            return Err(SqlError::syntax("INSERT has more expressions than target columns"));
        }
        if row.content.len() < names.len() && listed {
            return Err(SqlError::syntax("INSERT has more target columns than expressions"));
        }
        let given = names.iter().zip(&row.content).filter(|(_, e)| !is_default(e));
        let (mut columns, values): (Vec<&str>, Vec<String>) =
            given.map(|(name, e)| (name.as_str(), e.to_string())).unzip();
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" specified more than once", twice.trim_matches('"')),
            ));
        }
        if columns.is_empty() {
            return Ok(format!("INSERT INTO {name} SELECT {from}"));
        }
        columns.extend(marks.iter().map(String::as_str));
        let (columns, values) = (columns.join(", "), values.join(", "));
        Ok(format!("INSERT INTO {name} ({columns}) SELECT {values} {from}"))
    }
}

fn is_mark(name: &ast::ObjectName, mark: &str) -> bool {
    *object_name_parts(name) == [mark]
}

/// Whether an action is DO NOTHING, as the parser writes it.
fn is_nothing(action: &MergeAction) -> bool {
    let is_mark = |name: &ast::ObjectName| is_mark(name, MERGE_NOTHING);
    match action {
        MergeAction::Update(u) => u
            .assignments
            .iter()
            .any(|a| matches!(&a.target, ast::AssignmentTarget::ColumnName(name) if is_mark(name))),
        MergeAction::Insert(i) => i.columns.iter().any(is_mark),
        MergeAction::Delete { .. } => false,
    }
}

/// What other dialects write, and what PostgreSQL computes once and a clause of ours would again.
fn refuse(merge: &ast::Merge, params: &ParamTypes) -> SqlResult<()> {
    if merge.output.is_some() {
        return Err(SqlError::syntax("MERGE has no RETURNING"));
    }
    if merge.clauses.is_empty() {
        return Err(SqlError::syntax("MERGE needs a WHEN clause"));
    }
    for clause in &merge.clauses {
        let is_known =
            matches!(clause.clause_kind, MergeClauseKind::Matched | MergeClauseKind::NotMatched);
        let filtered = match &clause.action {
            MergeAction::Insert(i) => i.insert_predicate.is_some(),
            MergeAction::Update(u) => u.update_predicate.is_some() || u.delete_predicate.is_some(),
            MergeAction::Delete { .. } => false,
        };
        if !is_known || filtered {
            return Err(SqlError::syntax("MERGE knows WHEN [NOT] MATCHED [AND ..] THEN"));
        }
    }
    if params.calls_volatile(&merge.source) {
        return Err(SqlError::unsupported("a volatile function in the source of MERGE")
            .with_hint("Name the source in a WITH in front of MERGE: it is computed once."));
    }
    let conditions = merge.clauses.iter().filter_map(|clause| clause.predicate.as_ref());
    if conditions.chain([&*merge.on]).any(|condition| params.calls_volatile(condition)) {
        return Err(SqlError::unsupported("a volatile function in a condition of MERGE"));
    }
    Ok(())
}

/// 0A000: MERGE does not go through views, and the rows of a materialized one are nobody's.
fn refuse_views(ctx: &Context, name: &ast::ObjectName) -> SqlResult<()> {
    let (name, what) = match ctx.find_relation(&object_name_parts(name))? {
        Some(Relation::Table(t)) if t.materialized().is_some() => {
            (t.name.clone(), "materialized views")
        }
        Some(Relation::View(v)) => (v.name.clone(), "views"),
        _ => return Ok(()),
    };
    let text = format!("cannot execute MERGE on relation \"{name}\"");
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
        .with_detail(format!("This operation is not supported for {what}.")))
}

/// PostgreSQL's words for a source that is called as the target.
fn twice_named(e: SqlError, target: &Target) -> SqlError {
    if e.state() != SqlState::DUPLICATE_ALIAS || !e.message().contains(&target.alias) {
        return e;
    }
    SqlError::new(e.state(), format!("name \"{}\" specified more than once", target.alias))
        .with_detail("The name is used both as MERGE target table and data source.")
}

/// PostgreSQL's words for the target named where there is no row of it.
fn out_of_reach(e: SqlError, target: &Target) -> SqlError {
    let alias = &target.alias;
    if e.message() != format!("missing FROM-clause entry for table \"{alias}\"") {
        return e;
    }
    let text = format!("invalid reference to FROM-clause entry for table \"{alias}\"");
    SqlError::new(e.state(), text).with_hint(format!(
        "There is an entry for table \"{alias}\", but it cannot be referenced from this part of \
         the query."
    ))
}

/// A row of the target that two rows of the source want to change.
pub(super) fn hit_twice() -> SqlError {
    SqlError::new(SqlState::CARDINALITY_VIOLATION, "MERGE command cannot affect row a second time")
        .with_hint("Ensure that not more than one source row matches any one target row.")
}
