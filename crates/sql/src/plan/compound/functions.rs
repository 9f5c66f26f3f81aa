//! Functions in FROM whose rows are made first: elements of an array, and series.
//!
//! ```text
//!   FROM unnest($1::int[]) WITH ORDINALITY u (id, n) JOIN customers c ON c.id = u.id
//!     step 1   rows of unnest           made when they are asked for first
//!     step 2   point read on customers  id = u.id
//! ```
//! Their arguments are values of the statement; what asks for columns of the tables before it is
//! for general plans, and so are all other functions.

use std::sync::Arc;

use braid_rows::Row;
use braid_scalar::{
    Bound, Builtin, Code, Columns, EvalContext, ParamTypes, Rows, Scope, Volatility,
    bind_unsettled, coerce, ident_name, object_name_parts, resolve,
};
use braid_types::{CastContext, Datum, SqlResult, SqlType};
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, TableFactor};

use super::made::{LITTLE, Made, MadeBy};
use crate::general_query::ColumnInfo;
use crate::session::Context;

/// What all that is kept is called when it does not fit.
const KEPT: &str = "rows of a function in FROM";
/// Rows that are expected where nobody knows yet.
const SOME_ROWS: f64 = 20.0;

/// See the [module documentation](self).
pub(super) struct FunctionRows {
    function: &'static Builtin,
    args: Vec<Bound>,
    /// Each row ends with its number.
    numbered: bool,
}

/// A call in FROM.
struct Call<'a> {
    name: String,
    args: Vec<&'a Expr>,
    numbered: bool,
    alias: Option<&'a ast::TableAlias>,
}

impl<'a> Call<'a> {
    fn of(factor: &'a TableFactor) -> Option<Call<'a>> {
        let (name, args, numbered, alias) = match factor {
            TableFactor::Table {
                name,
                alias,
                args: Some(args),
                with_ordinality,
                sample: None,
                ..
            } => (object_name_parts(name), given(&args.args)?, with_ordinality, alias),
            TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
                (object_name_parts(name), given(args)?, with_ordinality, alias)
            }
            TableFactor::UNNEST {
                alias, array_exprs, with_ordinality, with_offset: false, ..
            } => (vec!["unnest".into()], array_exprs.iter().collect(), with_ordinality, alias),
            _ => return None,
        };
        let name = match name.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [name] | ["pg_catalog", name] => name.to_string(),
            _ => return None,
        };
        Some(Call { name, args, numbered: *numbered, alias: alias.as_ref() })
    }

    fn is_known(&self) -> bool {
        match self.name.as_str() {
            "unnest" => self.args.len() == 1,
            "generate_series" => true,
            _ => false,
        }
    }
}

/// Arguments that are nothing but expressions.
fn given(args: &[FunctionArg]) -> Option<Vec<&Expr>> {
    let each = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e),
        _ => None,
    });
    each.collect()
}

impl FunctionRows {
    /// The rows that a table of FROM means, if they are those of such a function, and its alias.
    ///
    /// # Errors
    /// XX000.
    pub(super) fn made(
        ctx: &Context,
        factor: &TableFactor,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<(Arc<Made>, String)>> {
        let Some(call) = Call::of(factor).filter(Call::is_known) else { return Ok(None) };
        let alias = call.alias.map_or_else(|| call.name.clone(), |a| ident_name(&a.name));
        let columns = call.alias.map_or(&[][..], |a| a.columns.as_slice());
        if columns.iter().any(|column| column.data_type.is_some()) {
            return Ok(None);
        }
        let mut tried = params.clone();
        // What is wrong with it, and what it asks of the tables before it, is for general plans.
        let Some((rows, ty)) = FunctionRows::bind(&call, &mut tried).unwrap_or_default() else {
            return Ok(None);
        };
        let Some(expected) = rows.expected(&ctx.eval) else { return Ok(None) };
        let mut shown = vec![ColumnInfo::computed(alias.clone(), ty)];
        if rows.numbered {
            shown.push(ColumnInfo::computed("ordinality", SqlType::Int8));
        }
        let by = MadeBy::Function(rows);
        let made = Made::of(ctx, by, ((call.name, columns), &shown), expected)?;
        if made.is_some() {
            *params = tried;
        }
        Ok(made.map(|made| (made, alias)))
    }

    fn bind(
        call: &Call<'_>,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<(FunctionRows, SqlType)>> {
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(bind_unsettled(arg, &Scope::empty(), params)?);
        }
        let types: Vec<SqlType> = args.iter().map(|arg| arg.ty().clone()).collect();
        let choice = resolve(&call.name, &types, false)?;
        let Code::Rows(_, Columns::One) = choice.function.code else { return Ok(None) };
        for (arg, ty) in args.iter_mut().zip(&choice.args) {
            *arg = coerce(arg.clone(), ty, CastContext::Implicit, params)?;
        }
        let settled =
            |arg: &Bound| arg.volatility() != Volatility::Volatile && arg.collation().is_by_bytes();
        if !args.iter().all(settled) || choice.ret.is_row() {
            return Ok(None);
        }
        let rows = FunctionRows { function: choice.function, args, numbered: call.numbered };
        Ok(Some((rows, choice.ret)))
    }

    /// How many rows it gives, about; `None` if they are many.
    fn expected(&self, eval: &EvalContext) -> Option<f64> {
        let Ok(rows) = self.begun(eval) else { return Some(SOME_ROWS) };
        let most = LITTLE as usize;
        let count = rows.into_iter().take(most + 1).count();
        (count <= most).then_some(count.max(1) as f64)
    }

    fn begun(&self, eval: &EvalContext) -> SqlResult<Rows> {
        let args = self.args.iter().map(|arg| arg.eval(&[], eval));
        let args = args.collect::<SqlResult<Row>>()?;
        match self.function.code {
            Code::Rows(code, _) if !(self.function.strict && args.iter().any(Datum::is_null)) => {
                code(&args, eval)
            }
            _ => Ok(Vec::new().into_iter().collect()),
        }
    }

    /// All rows.
    ///
    /// # Errors
    /// Of the function and its arguments; 53200 when they do not fit.
    pub(super) fn rows(&self, ctx: &Context) -> SqlResult<Vec<Row>> {
        let mut out = Vec::new();
        for (row, number) in self.begun(&ctx.eval)?.into_iter().zip(1_i64..) {
            ctx.check_cancel()?;
            let mut row = row?;
            if self.numbered {
                row.push(Datum::Int8(number));
            }
            ctx.keep_rows(KEPT, [&row])?;
            out.push(row);
        }
        Ok(out)
    }

    /// Whether nothing of it can fail: elements are there.
    pub(super) fn is_quiet(&self) -> bool {
        let plain = |arg: &Bound| !braid_scalar::can_fail(arg, &|_| true);
        self.args.iter().all(plain) && self.function.name == "unnest"
    }
}
