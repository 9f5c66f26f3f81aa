//! WITH over statements that write: `WITH x AS (DELETE .. RETURNING ..) INSERT ..`, and WITH in
//! front of INSERT, UPDATE and DELETE.
//!
//! ```text
//!   step   x AS (DELETE .. RETURNING ..)      runs, to its end, in the order of the text
//!   step   y AS (SELECT .. volatile ..)       runs once, if it is named; also one that locks rows
//!   aside  z AS (SELECT ..)                   goes with each query that names it
//!   main   SELECT | INSERT | UPDATE | DELETE | MERGE
//! ```
//! Rows of a step are *given* to the queries of later ones: those are general queries, which find
//! them by name before they look for tables. What the parts see of each other: [`super::as_one`].

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_scalar::{ParamTypes, ident_name, names_itself, object_name_parts, with_in_order};
use braid_types::{Collated, SqlError, SqlResult, SqlState, SqlType};
use braid_walk::Walk;
use sqlparser::ast::{self, SetExpr, Statement, Visitor};

use super::as_one::AsOne;
use super::given::with_values;
use super::source::Source;
use super::{DeletePlan, InsertPlan, MergePlan, UpdatePlan, Written};
use crate::explain::{Actual, Explained, PlanLine, Timed};
use crate::general_query::{ColumnInfo, GivenRows};
use crate::session::Context;
use braid_parser::take_clauses;
use braid_rows::Row;

/// What WITH lets a query name, and what its parts share.
#[derive(Clone, Default)]
pub(crate) struct With {
    /// Rows of earlier steps.
    pub(crate) given: Arc<Vec<GivenRows>>,
    /// Queries that go with those that name them.
    pub(super) aside: Option<ast::With>,
    /// While it runs, and more than one part writes.
    pub(crate) as_one: Option<Arc<AsOne>>,
    /// MERGE: that a row is written twice is an error.
    pub(super) once: bool,
}

/// A planned WITH.
pub struct WithPlan {
    steps: Vec<Step>,
    main: Part,
    late: Late,
}

/// What the main part is planned of once more, if rows of the steps can stand in it as values.
struct Late {
    query: ast::Query,
    params: ParamTypes,
    aside: Option<ast::With>,
}

struct Step {
    name: String,
    /// As later ones see it; none without RETURNING.
    columns: Option<Vec<(String, SqlType)>>,
    collations: Vec<Collated>,
    origins: Vec<Option<(u32, i16)>>,
    part: Part,
}

/// One statement of a WITH.
pub(super) enum Part {
    Query(Source),
    Insert(Box<InsertPlan>),
    Update(Box<UpdatePlan>),
    Delete(Box<DeletePlan>),
    Merge(Box<MergePlan>),
}

impl Part {
    /// The tables that it writes to.
    pub(super) fn written_tables(&self) -> Vec<u32> {
        match self {
            Part::Query(_) => Vec::new(),
            Part::Insert(i) => vec![i.table()],
            Part::Update(u) => vec![u.table()],
            Part::Delete(d) => vec![d.table()],
            Part::Merge(m) => m.written_tables(),
        }
    }
}

/// Whether something in a query writes: itself, or what its WITH names.
pub(crate) fn writes(query: &ast::Query) -> bool {
    let parts = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| &cte.query.body);
    parts.chain([&query.body]).any(|body| is_writing(body))
}

/// Whether a query is run part by part: something in it writes, or what its WITH names locks rows.
pub(crate) fn has_steps(query: &ast::Query) -> bool {
    let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
    writes(query) || ctes.into_iter().any(|cte| !cte.query.locks.is_empty())
}

/// Refuses WITH over what writes where PostgreSQL does, or where it is not built.
///
/// # Errors
/// 0A000 with the given text if the query, or what its WITH names, writes.
pub(crate) fn refuse(query: &ast::Query, text: &str, hint: Option<&str>) -> SqlResult<()> {
    if !writes(query) {
        return Ok(());
    }
    let e = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text);
    Err(match hint {
        Some(hint) => e.with_hint(hint),
        None => e,
    })
}

fn is_writing(body: &SetExpr) -> bool {
    matches!(body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_))
}

impl WithPlan {
    /// The tables that its parts write to.
    pub(crate) fn written_tables(&self) -> Vec<u32> {
        let steps = self.steps.iter().map(|step| &step.part);
        steps.chain([&self.main]).flat_map(Part::written_tables).collect()
    }

    /// Plans it.
    pub(crate) fn new(
        ctx: &Context,
        query: &ast::Query,
        params: &mut ParamTypes,
    ) -> SqlResult<WithPlan> {
        let mut ctx = ctx.clone();
        let mut with = With::default();
        let mut steps: Vec<Step> = Vec::new();
        let all = query.with.as_ref().map(with_in_order).transpose()?;
        let mut names = Vec::new();
        for cte in all.iter().flat_map(|all| &all.cte_tables) {
            let name = ident_name(&cte.alias.name);
            if names.contains(&name) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_ALIAS,
                    format!("WITH query name \"{name}\" specified more than once"),
                ));
            }
            let recursive = all.as_ref().is_some_and(|all| all.recursive);
            names.push(name.clone());
            let locks = !cte.query.locks.is_empty();
            if !is_writing(&cte.query.body) && !params.calls_volatile(&*cte.query) && !locks {
                let aside = with.aside.get_or_insert_with(|| ast::With {
                    with_token: ast::helpers::attached_token::AttachedToken::empty(),
                    recursive,
                    cte_tables: Vec::new(),
                });
                aside.cte_tables.push(cte.clone());
                ctx.with = Some(Arc::new(with.clone()));
                continue;
            }
            if !is_writing(&cte.query.body) && !names_later(query, cte, &name) {
                continue;
            }
            let part = step(&ctx, cte, &name, recursive, params).map_err(|e| of_moved(e, &name))?;
            let own = part.columns();
            let collations: Vec<Collated> =
                own.iter().flatten().map(|column| column.collation.clone()).collect();
            let origins: Vec<_> = own.iter().flatten().map(ColumnInfo::origin).collect();
            let columns = step_columns(cte, &name, own)?;
            let (called, shown) = (name.clone(), columns.clone());
            let given = GivenRows {
                name: called,
                columns: shown,
                collations: collations.clone(),
                origins: origins.clone(),
                of_table: false,
                rows: None,
            };
            Arc::make_mut(&mut with.given).push(given);
            ctx.with = Some(Arc::new(with.clone()));
            steps.push(Step { name, columns, collations, origins, part });
        }
        let query = ast::Query { with: None, ..query.clone() };
        let main = part(&ctx, &query, params)?;
        let late = Late { query, params: params.clone(), aside: with.aside };
        Ok(WithPlan { steps, main, late })
    }

    /// Columns of its rows.
    pub(crate) fn columns(&self) -> Option<Vec<ColumnInfo>> {
        self.main.columns()
    }

    /// What the main part is called.
    pub(crate) fn verb(&self) -> &'static str {
        self.main.verb()
    }

    /// Runs all steps and then the main part.
    pub(crate) fn run(&self, ctx: &Context) -> SqlResult<Written> {
        self.run_and_show(ctx, |_, _| Ok(()))
    }

    /// As `run`; shows the main part as it was planned in the end.
    fn run_and_show(
        &self,
        ctx: &Context,
        show: impl FnOnce(&Part, &Context) -> SqlResult<()>,
    ) -> SqlResult<Written> {
        let parts = || self.steps.iter().map(|step| &step.part).chain([&self.main]);
        let moves = parts().any(|part| match part {
            Part::Update(_) => true,
            Part::Merge(merge) => merge.updates(),
            _ => false,
        });
        let writing = parts().filter(|part| !matches!(part, Part::Query(_))).count();
        // A query reads what the only part that writes has not written yet, or looks back.
        let alone = writing == 1 && !matches!(self.main, Part::Query(_) | Part::Merge(_));
        let one = (!alone && writing > 0).then(|| Arc::new(AsOne::begin(ctx, moves)));
        let mut given = self.names();
        let within = |given: &Vec<GivenRows>| {
            let given = Arc::new(given.clone());
            let with = With { given, as_one: one.clone(), ..With::default() };
            Context { with: Some(Arc::new(with)), ..ctx.clone() }
        };
        for (at, step) in self.steps.iter().enumerate() {
            let written = step.part.run(&within(&given))?;
            given[at].rows = Some(Arc::new(written.returning.unwrap_or_default()));
        }
        let ctx_of_main = within(&given);
        let main = match &one {
            None => self.late.plan(&ctx_of_main)?,
            Some(_) => None,
        };
        let main = main.as_ref().unwrap_or(&self.main);
        show(main, &ctx_of_main)?;
        let written = main.run(&ctx_of_main)?;
        if let Some(one) = &one {
            one.finish(ctx)?;
        }
        Ok(written)
    }

    /// What the steps give, without rows.
    fn names(&self) -> Vec<GivenRows> {
        let name = |step: &Step| GivenRows {
            name: step.name.clone(),
            columns: step.columns.clone(),
            collations: step.collations.clone(),
            origins: step.origins.clone(),
            of_table: false,
            rows: None,
        };
        self.steps.iter().map(name).collect()
    }

    /// EXPLAIN.
    pub(crate) fn explain(&self, ctx: &Context, analyze: bool) -> SqlResult<Explained> {
        let with = With { given: Arc::new(self.names()), ..With::default() };
        let shown = Context { with: Some(Arc::new(with)), ..ctx.clone() };
        let parts = self.steps.len() + 1;
        let mut head = PlanLine::operator(format!("With: {parts} parts"), "ModifyTable", None);
        let mut main = self.main.explain(&shown)?;
        let mut steps = Vec::new();
        for step in &self.steps {
            steps.push(PlanLine::from(format!("  CTE {}", step.name)));
            let below = step.part.explain(&shown)?.into_iter();
            steps.extend(below.map(|line| line.indented().indented()));
        }
        let mut rows = None;
        if analyze {
            let timed = Timed::begin(ctx);
            let show = |part: &Part, ctx: &Context| {
                main = part.explain(ctx)?;
                Ok(())
            };
            let count = self.run_and_show(ctx, show)?.count;
            let actual = timed.end(ctx);
            head.ran(Actual { rows: count, loops: 1, ..actual });
            rows = Some(count);
        }
        let mut lines = vec![head];
        lines.extend(main.into_iter().map(PlanLine::indented));
        lines.append(&mut steps);
        Ok(Explained { lines, rows })
    }
}

impl Late {
    /// The main part with values in place of the rows that are given; `None` if there are none.
    fn plan(&self, ctx: &Context) -> SqlResult<Option<Part>> {
        let Some(with) = &ctx.with else { return Ok(None) };
        let Some(query) = with_values(&self.query, &with.given) else { return Ok(None) };
        let with = With { aside: self.aside.clone(), ..With::clone(with) };
        let ctx = Context { with: Some(Arc::new(with)), ..ctx.clone() };
        part(&ctx, &query, &mut self.params.clone()).map(Some)
    }
}

impl Part {
    fn columns(&self) -> Option<Vec<ColumnInfo>> {
        match self {
            Part::Query(source) => Some(source.columns().to_vec()),
            Part::Insert(i) => i.columns(),
            Part::Update(u) => u.columns(),
            Part::Delete(d) => d.columns(),
            Part::Merge(_) => None,
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Part::Query(_) => "SELECT",
            Part::Insert(_) => "INSERT",
            Part::Update(_) => "UPDATE",
            Part::Delete(_) => "DELETE",
            Part::Merge(_) => "MERGE",
        }
    }

    pub(super) fn run(&self, ctx: &Context) -> SqlResult<Written> {
        match self {
            Part::Query(source) => {
                let rows: Vec<Row> = source.rows(ctx)?;
                let count = rows.len() as u64;
                Ok(Written { count, returning: Some(rows), ..Written::default() })
            }
            Part::Insert(i) => i.run(ctx),
            Part::Update(u) => u.run(ctx),
            Part::Delete(d) => d.run(ctx),
            Part::Merge(m) => m.run(ctx),
        }
    }

    pub(super) fn explain(&self, ctx: &Context) -> SqlResult<Vec<PlanLine>> {
        Ok(match self {
            Part::Query(source) => source.explained(ctx)?.lines,
            Part::Insert(i) => i.explain(ctx, false)?.lines,
            Part::Update(u) => u.explain(ctx, false)?.lines,
            Part::Delete(d) => d.explain(ctx, false)?.lines,
            Part::Merge(m) => m.explain(ctx, false)?.lines,
        })
    }
}

/// The query of a WITH item that runs by itself.
fn step(
    ctx: &Context,
    cte: &ast::Cte,
    name: &str,
    recursive: bool,
    params: &mut ParamTypes,
) -> SqlResult<Part> {
    if !(recursive && names_itself(&cte.query, name)) {
        return part(ctx, &cte.query, params);
    }
    let quoted = braid_types::quote_ident(name);
    let text = format!("WITH RECURSIVE {cte} SELECT * FROM {quoted}");
    Ok(Part::Query(Source::plan(ctx, &*braid_parser::parse_query(&text)?, params)?))
}

/// The error of a query that locks rows and was taken out of another one: what it does not know
/// there is a column of the rows around it.
fn of_moved(e: SqlError, name: &str) -> SqlError {
    let unknown = [SqlState::UNDEFINED_COLUMN, SqlState::UNDEFINED_TABLE].contains(&e.state());
    if !unknown || !braid_parser::is_moved(name) {
        return e;
    }
    SqlError::unsupported("FOR UPDATE or FOR SHARE in a subquery that depends on rows around it")
        .with_detail(e.message())
        .with_hint("It runs once, before the statement: make it depend on nothing else.")
}

/// One statement of it.
pub(super) fn part(ctx: &Context, query: &ast::Query, params: &mut ParamTypes) -> SqlResult<Part> {
    if is_writing(&query.body)
        && query.with.as_ref().is_some_and(|with| !with.cte_tables.is_empty())
    {
        return Err(SqlError::unsupported("a WITH inside of a WITH, in front of what writes")
            .with_hint("Name its queries in the outer WITH."));
    }
    Ok(match &*query.body {
        SetExpr::Insert(Statement::Insert(insert)) => {
            let mut insert = insert.clone();
            let clauses = take_clauses(&mut insert)?;
            let plan = InsertPlan::new(ctx, &insert, &clauses, params)?;
            Part::Insert(Box::new(plan))
        }
        SetExpr::Update(Statement::Update(update)) => {
            Part::Update(Box::new(UpdatePlan::new(ctx, update, params)?))
        }
        SetExpr::Delete(Statement::Delete(delete)) => {
            Part::Delete(Box::new(DeletePlan::new(ctx, delete, params)?))
        }
        SetExpr::Merge(Statement::Merge(merge)) => {
            Part::Merge(Box::new(MergePlan::new(ctx, merge, params)?))
        }
        _ => Part::Query(Source::plan(ctx, query, params)?),
    })
}

/// The columns of a step as later ones name them.
fn step_columns(
    cte: &ast::Cte,
    name: &str,
    columns: Option<Vec<ColumnInfo>>,
) -> SqlResult<Option<Vec<(String, SqlType)>>> {
    let Some(columns) = columns else { return Ok(None) };
    let given = &cte.alias.columns;
    if given.len() > columns.len() {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "WITH query \"{name}\" has {} columns available but {} columns specified",
                columns.len(),
                given.len()
            ),
        ));
    }
    let one = |(at, c): (usize, ColumnInfo)| {
        let ty = if c.ty == SqlType::Unknown { SqlType::Text } else { c.ty };
        (given.get(at).map_or(c.name, |given| ident_name(&given.name)), ty)
    };
    Ok(Some(columns.into_iter().enumerate().map(one).collect()))
}

/// Whether anything after an item of a WITH names it.
fn names_later(whole: &ast::Query, cte: &ast::Cte, name: &str) -> bool {
    uses(whole, name) > uses(&*cte.query, name)
}

struct Uses<'a> {
    name: &'a str,
    count: usize,
}

impl Visitor for Uses<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ast::ObjectName) -> ControlFlow<()> {
        self.count += usize::from(*object_name_parts(relation) == [self.name]);
        ControlFlow::Continue(())
    }
}

fn uses(node: &impl Walk, name: &str) -> usize {
    let mut uses = Uses { name, count: 0 };
    let _ = node.walk(&mut uses);
    uses.count
}

impl With {
    /// Whether a query names rows that are given: then it is a general one.
    pub(super) fn gives(&self, query: &ast::Query) -> bool {
        self.given.iter().any(|given| uses(query, &given.name) > 0)
    }

    /// The query, with the WITH that it needs in front.
    pub(super) fn around(&self, query: &ast::Query) -> Option<ast::Query> {
        let aside = self.aside.as_ref()?;
        let named = |cte: &ast::Cte| uses(query, &ident_name(&cte.alias.name)) > 0;
        if !aside.cte_tables.iter().any(named) {
            return None;
        }
        if query.with.is_none() {
            return Some(ast::Query { with: Some(aside.clone()), ..query.clone() });
        }
        let mut outer = braid_parser::parse_query("SELECT 1").ok()?;
        outer.with = Some(aside.clone());
        *outer.body = SetExpr::Query(Box::new(query.clone()));
        Some(*outer)
    }

    /// Whether a bare name means one of its queries.
    pub(crate) fn names(&self, name: &str) -> bool {
        let aside = self.aside.iter().flat_map(|with| &with.cte_tables);
        self.given.iter().any(|given| given.name == name)
            || aside.into_iter().any(|cte| ident_name(&cte.alias.name) == name)
    }
}
