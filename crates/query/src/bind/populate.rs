//! Rows out of JSON, in FROM: `jsonb_to_record(doc) AS r(x int)`, `jsonb_populate_recordset(..)`.
//!
//! A document is one column, or with the functions of sets its elements are the rows of one; each
//! is converted to a row, whose fields are columns. Which fields there are, the first argument's
//! type says, or the list behind AS.

use std::sync::Arc;

use braid_scalar::{
    Bound, Refinement, Volatility, coerce, ident_name, no_row_type, populate, refinement_of,
};
use braid_types::{
    CastContext, CompositeField, CompositeType, Datum, SqlError, SqlResult, SqlState, SqlType,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use sqlparser::ast;

use super::Binder;
use super::function_table::{FunctionRows, columns_of};
use crate::error::from_df;
use crate::exec::scalar::{RowFunction, RowUdf};

/// One of the functions.
pub(super) struct Populating {
    name: String,
    kind: SqlType,
    /// Each element of the document is a row.
    set: bool,
    /// The first argument says what the fields are, and what they are where the document is silent.
    typed: bool,
}

/// The function of a name, if it is one of these.
pub(super) fn populating(name: &str) -> Option<Populating> {
    let (kind, rest) = match name.strip_prefix("jsonb_") {
        Some(rest) => (SqlType::Jsonb, rest),
        None => (SqlType::Json, name.strip_prefix("json_")?),
    };
    let (set, typed) = match rest {
        "to_record" => (false, false),
        "to_recordset" => (true, false),
        "populate_record" => (false, true),
        "populate_recordset" => (true, true),
        _ => return None,
    };
    Some(Populating { name: name.to_string(), kind, set, typed })
}

impl Binder<'_> {
    /// A call in FROM; `alias` may list the columns.
    pub(super) fn populated_rows(
        &mut self,
        call: &Populating,
        exprs: &[&ast::Expr],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
        plan: LogicalPlan,
    ) -> SqlResult<FunctionRows> {
        let (base, document) = match (call.typed, exprs) {
            (true, [base, document]) => (Some(self.expr(base)?), *document),
            (false, [document]) => (None, *document),
            _ => {
                let types = exprs.iter().map(|e| Ok(self.expr(e)?.ty().clone()));
                let types = types.collect::<SqlResult<Vec<_>>>()?;
                return braid_scalar::resolve(&call.name, &types, false)
                    .and_then(|_| Err(SqlError::unsupported("a call with flags")));
            }
        };
        let listed = self.listed_columns(alias)?;
        let base_type = match base.as_ref().map(Bound::ty) {
            Some(SqlType::Composite(ty)) => Some(ty.clone()),
            _ => None,
        };
        let row = match (base_type, listed) {
            (Some(ty), None) => {
                let own = SqlType::Composite(ty.clone());
                (ty, self.params.refinement_of_type(&own)?)
            }
            (None, Some(listed)) => listed,
            (Some(_), Some(_)) => {
                return Err(SqlError::syntax(
                    "a column definition list is redundant for a function returning a named \
                     composite type",
                ));
            }
            (None, None) if call.typed => return Err(no_row_type(&call.name)),
            (None, None) => {
                return Err(SqlError::syntax(
                    "a column definition list is required for functions returning \"record\"",
                ));
            }
        };
        self.populated(call, row, base, document, ordinality, plan)
    }

    /// The columns that a list behind AS declares; `None` without types.
    fn listed_columns(
        &mut self,
        alias: Option<&ast::TableAlias>,
    ) -> SqlResult<Option<(Arc<CompositeType>, Refinement)>> {
        let columns = alias.map_or(&[][..], |a| a.columns.as_slice());
        let mut members = Vec::new();
        let mut fields: Vec<CompositeField> = Vec::new();
        for column in columns {
            let Some(data_type) = &column.data_type else { return Ok(None) };
            let ty = braid_scalar::sql_type_of(data_type, self.params.named_types())?;
            let name = ident_name(&column.name);
            if fields.iter().any(|f| *f.name == *name) {
                let text = format!("column name \"{name}\" specified more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, text));
            }
            let member = refinement_of(data_type, self.params.named_types())?;
            if !member.is_none() {
                members.push((fields.len(), member));
            }
            fields.push(CompositeField::new(&name, ty));
        }
        if fields.is_empty() {
            return Ok(None);
        }
        let row = CompositeType::new((0, 0), (String::new(), "record".into()), fields);
        Ok(Some((Arc::new(row), Refinement { members, ..Refinement::default() })))
    }

    fn populated(
        &mut self,
        call: &Populating,
        (row, refinement): (Arc<CompositeType>, Refinement),
        base: Option<Bound>,
        document: &ast::Expr,
        ordinality: bool,
        plan: LogicalPlan,
    ) -> SqlResult<FunctionRows> {
        let before = columns_of(&plan);
        let (plan, mut numbers, document) = if call.set {
            let elements = match call.kind {
                SqlType::Jsonb => "jsonb_array_elements",
                _ => "json_array_elements",
            };
            let mut rows =
                self.function_rows(elements, &[document], ordinality, None, Some(plan))?;
            let numbers = rows.columns.split_off(1);
            let element = rows.columns.remove(0).2;
            (rows.plan, numbers, element)
        } else {
            let document = self.expr(document)?;
            let document = coerce(document, &call.kind, CastContext::Implicit, self)?;
            let document = self.plan_expr(&document)?;
            let first = ordinality.then(|| {
                let one = Bound::constant(Datum::Int8(1), SqlType::Int8);
                self.plan_expr(&one).map(|e| ("ordinality".to_string(), SqlType::Int8, e))
            });
            (plan, first.transpose()?.into_iter().collect(), document)
        };
        let own = SqlType::Composite(row.clone());
        let mut args = vec![(document, call.kind.clone())];
        if let Some(base) = &base {
            args.push((self.plan_expr(base)?, base.ty().clone()));
        }
        let place = Some(self.place.clone());
        let code = Box::new(Populate { ty: own.clone(), row, refinement, set: call.set });
        let label = call.name.clone();
        let value = RowUdf::call_expr(label, code, args, own.clone(), Volatility::Volatile, place);
        let fresh = self.fresh("row");
        let mut results = before;
        results.push(value.alias(fresh.clone()));
        for (_, _, expr) in &mut numbers {
            let name = self.fresh("number");
            results.push(expr.clone().alias(name.clone()));
            *expr = super::column(&name);
        }
        self.risky = true;
        let plan = LogicalPlanBuilder::from(plan)
            .project(results)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let mut columns: Vec<(String, SqlType, Expr)> =
            vec![(call.name.clone(), own, super::column(&fresh))];
        columns.append(&mut numbers);
        self.with_fields(plan, columns)
    }
}

/// A document to a row.
struct Populate {
    ty: SqlType,
    row: Arc<CompositeType>,
    refinement: Refinement,
    set: bool,
}

impl RowFunction for Populate {
    fn call(&self, args: &[Datum], ctx: &braid_scalar::EvalContext) -> SqlResult<Datum> {
        self.refinement.refine(self.row_of(args, ctx)?, ctx)
    }
}

impl Populate {
    fn row_of(&self, args: &[Datum], ctx: &braid_scalar::EvalContext) -> SqlResult<Datum> {
        let kept = match args.get(1) {
            Some(Datum::Record(kept)) => Some(kept),
            _ => None,
        };
        let document = &args[0];
        if self.set && !is_object(document) {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "argument of a function of a set of records must be an array of objects",
            ));
        }
        let Some(kept) = kept else { return populate(document, &self.ty, ctx) };
        if document.is_null() {
            return Ok(args[1].clone());
        }
        let Datum::Record(made) = populate(document, &self.ty, ctx)? else {
            return Ok(Datum::Null);
        };
        let keys = braid_scalar::to_json(document, ctx)?;
        let fields = self.row.fields.iter().enumerate().map(|(at, field)| {
            let given = keys.get(&*field.name).is_some();
            let from = if given { &made } else { kept };
            from.get(at).cloned().unwrap_or(Datum::Null)
        });
        Ok(self.row.value(fields.collect()))
    }
}

fn is_object(document: &Datum) -> bool {
    match document {
        Datum::Jsonb(value) => value.is_object(),
        Datum::Json(text) => braid_types::json::shape(text) == braid_types::json::Shape::Object,
        _ => true,
    }
}
