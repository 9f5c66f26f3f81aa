//! Own plans that find more rows than they may keep.
//!
//! An own plan is chosen where few rows are expected, and keeps them in memory: it sorts, groups
//! and compares them there. A table that was filled since the statistics were made, or in this very
//! transaction, may have millions. When the statement's account refuses more (53200) before
//! anything was handed out, the query is planned once more, as a general one, whose operators
//! spill.

use std::sync::Arc;

use braid_env::memory::Account;
use braid_rows::Row;
use braid_scalar::ParamTypes;
use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use crate::answer::Answer;
use crate::general_query::RowStream;
use crate::session::{Context, NoRows};

/// The query of a plan, to be planned again.
pub(super) struct Again {
    query: Box<ast::Query>,
    params: Vec<Option<SqlType>>,
}

impl Again {
    pub(super) fn of(query: &ast::Query, params: &ParamTypes) -> Again {
        let params = (0..params.len()).map(|at| params.get(at).cloned()).collect();
        Again { query: Box::new(query.clone()), params }
    }

    /// The rows of an own plan, which pays for what it keeps from `kept`; or those of a general
    /// plan if they are too many.
    pub(super) fn instead_of(
        self: &Arc<Again>,
        ctx: &Arc<Context>,
        own: SqlResult<Box<dyn RowStream>>,
        kept: Arc<Account>,
    ) -> SqlResult<Box<dyn RowStream>> {
        match own {
            Ok(rows) => {
                let again = Some((ctx.clone(), self.clone()));
                Ok(Box::new(First { rows, kept: Some(kept), again }))
            }
            Err(refused) if is_refusal(&refused) => {
                drop(kept);
                self.run(ctx, refused)
            }
            Err(e) => Err(e),
        }
    }

    fn run(&self, ctx: &Context, refused: SqlError) -> SqlResult<Box<dyn RowStream>> {
        let planned = ctx.db.general().plan(&self.query, &ctx.plan_context(), &self.params);
        // Whoever cannot be asked does not know better either.
        let Ok(general) = planned else { return Err(refused) };
        general.execute(&ctx.run_context_of(&*general))
    }
}

fn is_refusal(e: &SqlError) -> bool {
    e.state() == SqlState::OUT_OF_MEMORY
}

/// Rows of which nobody has any yet, and then the others.
struct First {
    rows: Box<dyn RowStream>,
    /// What they have paid from.
    kept: Option<Arc<Account>>,
    again: Option<(Arc<Context>, Arc<Again>)>,
}

impl First {
    fn next<T>(
        &mut self,
        next: impl Fn(&mut dyn RowStream) -> SqlResult<Option<T>>,
    ) -> SqlResult<Option<T>> {
        let found = next(&mut *self.rows);
        match (found, self.again.take()) {
            (Err(refused), Some((ctx, again))) if is_refusal(&refused) => {
                // What was kept is free before the other plan begins.
                self.rows = Box::new(NoRows);
                self.kept = None;
                self.rows = again.run(&ctx, refused)?;
                next(&mut *self.rows)
            }
            (found, _) => found,
        }
    }
}

impl RowStream for First {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        self.next(|rows| rows.next_batch())
    }

    fn next_answer(&mut self) -> SqlResult<Option<Answer>> {
        self.next(|rows| rows.next_answer())
    }
}
