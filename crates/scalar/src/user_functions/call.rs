//! What a function and a call of one are, and how a call becomes an expression.

use std::sync::Arc;

use braid_types::{CastContext, Collated, Datum, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{Expr, Function, Query, Value};

use super::choice::{Resolved, resolve_call};
use crate::bind::{bind_unsettled, general_query_needed};
use crate::conversion::{coerce, settle};
use crate::{
    BindContext, Bound, ParamTypes, Scope, ScopeColumn, TypeNames, Volatility, ident_name,
    object_name_parts,
};

/// A function of a user, without its body.
#[derive(Clone, Debug)]
pub struct UserFunction {
    /// Object id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it is given.
    pub params: Vec<UserParam>,
    /// The last parameter takes all arguments that are left.
    pub variadic: bool,
    /// The type of its value; of a set, of each row.
    pub returns: SqlType,
    /// Names and types of the columns, if it gives rows.
    pub columns: Vec<(String, SqlType)>,
    /// It gives any number of rows.
    pub set: bool,
    /// NULL for NULL, without being asked.
    pub strict: bool,
    /// What it is declared to be.
    pub volatility: Volatility,
}

/// What a function is given.
#[derive(Clone, Debug)]
pub struct UserParam {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its type.
    pub ty: SqlType,
    /// What it is if it is not given.
    pub default: Option<Expr>,
}

/// The body of a function.
#[derive(Clone, Debug)]
pub struct UserBody {
    /// The query; `None` does nothing.
    pub query: Option<Box<Query>>,
    /// The query's value, if it is an expression and nothing else.
    pub value: Option<Expr>,
}

/// A call of such a function.
#[derive(Debug)]
pub struct UserCall {
    /// The function.
    pub function: Arc<UserFunction>,
    /// Its body.
    pub body: UserBody,
    /// Arguments for all parameters, in their types.
    pub args: Vec<Bound>,
}

impl UserFunction {
    /// The place of a parameter that a name in the body means.
    pub fn param_named(&self, parts: &[String]) -> Option<usize> {
        let name = match parts {
            [name] => name,
            [function, name] if *function == self.name => name,
            _ => return None,
        };
        self.params.iter().position(|p| p.name.as_ref() == Some(name))
    }

    /// The field of an argument that a name in the body means: `argument.field`. A name of a
    /// parameter goes before it.
    ///
    /// # Errors
    /// Those of constants that are computed.
    pub fn field_named(
        &self,
        parts: &[String],
        argument: impl FnOnce(usize) -> Bound,
    ) -> SqlResult<Option<Bound>> {
        let Some((field, of)) = parts.split_last() else { return Ok(None) };
        match self.param_named(of) {
            Some(at) if self.param_named(parts).is_none() => {
                crate::field_named(&argument(at), field)
            }
            _ => Ok(None),
        }
    }

    /// Whether its value is a row, or rows: such a call is a matter of FROM.
    pub fn gives_rows(&self) -> bool {
        self.set || !self.columns.is_empty()
    }

    /// Whether a value of a type is what it gives as a whole: of OUT parameters any row may be.
    pub fn returns_whole(&self, ty: &SqlType) -> bool {
        let is_record = |ty: &SqlType| ty.oid() == SqlType::Record.oid();
        *ty == self.returns || is_record(ty) && is_record(&self.returns)
    }

    /// Whether a value of a type is a row of as many fields as the function has OUT parameters.
    pub fn takes_fields_of(&self, ty: &SqlType) -> bool {
        let declared = self.returns.oid() == SqlType::Record.oid();
        matches!(ty, SqlType::Composite(row) if declared && row.fields.len() == self.columns.len())
    }

    /// The columns by which a body names its arguments, texts with the collation of a call.
    fn scope(&self, collation: &Collated) -> Scope {
        let mut scope = Scope::empty();
        for param in &self.params {
            let name = param.name.clone().unwrap_or_default();
            scope.push(ScopeColumn {
                table: Some(self.name.clone()),
                hidden: param.name.is_none(),
                collation: texts_only(collation, &param.ty),
                ..ScopeColumn::new(name, param.ty.clone())
            });
        }
        scope
    }
}

impl UserCall {
    /// The call as an expression.
    ///
    /// # Errors
    /// Those of binding the body; an error of [`crate::needs_general_query`] if it needs one.
    pub fn value(&self, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
        let function = &self.function;
        if self.body.query.is_none() && function.returns == SqlType::Void {
            return Ok(Bound::constant(Datum::Null, SqlType::Void));
        }
        let Some(value) = self.body.value.as_ref().filter(|_| !function.gives_rows()) else {
            return Err(general_query_needed("a function with a query"));
        };
        let (names, active) = (ctx.params().names(), ctx.params().active().to_vec());
        let all = self.args.iter().fold(Collated::Default, |all, arg| all.with(arg.collation()));
        let value = match active.contains(&function.id) {
            true => super::recursion::deferred(function, value, names, &self.args, &all),
            false => {
                let body = bound_body(function, value, names, active, &all.of_column())?;
                super::inline::inlined(function, body, &self.args)?
            }
        };
        Ok(value.with_collation(texts_only(&all, &function.returns)))
    }
}

/// The body over its arguments.
pub(super) fn bound_body(
    function: &UserFunction,
    value: &Expr,
    names: Option<Arc<dyn TypeNames>>,
    mut active: Vec<u32>,
    collation: &Collated,
) -> SqlResult<Bound> {
    active.push(function.id);
    let params = ParamTypes::default().with_types(names).within(active);
    let mut inner = InBody { params, function, collation };
    let bound = bind_unsettled(value, &function.scope(collation), &mut inner)?;
    as_result(bound, &function.returns, &mut inner)
}

/// What a body gives, in the type of the function's value.
///
/// # Errors
/// 42P13 if it is of another type.
pub fn as_result(value: Bound, ty: &SqlType, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let value = match ty {
        SqlType::Void => return Ok(value),
        _ => settle(value, ty, CastContext::Implicit, ctx)?,
    };
    let given = value.ty().clone();
    coerce(value, ty, CastContext::Assignment, ctx).map_err(|e| match e.state() {
        SqlState::DATATYPE_MISMATCH | SqlState("42846") => wrong_result(ty, &given),
        _ => e,
    })
}

/// 42P13 for a body that gives values of another type.
pub fn wrong_result(declared: &SqlType, given: &SqlType) -> SqlError {
    SqlError::new(
        SqlState("42P13"),
        format!("return type mismatch in function declared to return {}", declared.base_name()),
    )
    .with_detail(format!("Actual return type is {}.", given.base_name()))
}

/// Where a body is bound: `$1` is an argument there, no parameter of the statement.
struct InBody<'a> {
    params: ParamTypes,
    function: &'a UserFunction,
    collation: &'a Collated,
}

/// A collation, if values of a type have one.
fn texts_only(collation: &Collated, ty: &SqlType) -> Collated {
    if ty.is_collatable() { collation.clone() } else { Collated::Default }
}

impl InBody<'_> {
    fn argument(&self, at: usize) -> Bound {
        let ty = &self.function.params[at].ty;
        Bound::column(at, ty.clone()).with_collation(texts_only(self.collation, ty))
    }
}

impl BindContext for InBody<'_> {
    fn params(&mut self) -> &mut ParamTypes {
        &mut self.params
    }

    fn intercept(&mut self, expr: &Expr, _: &Scope) -> SqlResult<Option<Bound>> {
        match expr {
            Expr::CompoundIdentifier(parts) => {
                let parts: Vec<String> = parts.iter().map(ident_name).collect();
                self.function.field_named(&parts, |at| self.argument(at))
            }
            // All fields of an argument are the argument.
            Expr::QualifiedWildcard(name, _) => {
                let at = self.function.param_named(&object_name_parts(name));
                Ok(at.map(|at| self.argument(at)).filter(|row| row.ty().is_row()))
            }
            _ => match argument_number(expr)? {
                Some(at) if at < self.function.params.len() => Ok(Some(self.argument(at))),
                Some(at) => Err(no_argument(at)),
                None => Ok(None),
            },
        }
    }
}

/// The place of the argument that `$1` and others mean; `None` for other expressions.
///
/// # Errors
/// 42601 for what is no number.
pub fn argument_number(expr: &Expr) -> SqlResult<Option<usize>> {
    let Expr::Value(value) = expr else { return Ok(None) };
    let Value::Placeholder(name) = &value.value else { return Ok(None) };
    let number = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok()).filter(|n| *n > 0);
    match number {
        Some(number) => Ok(Some(number - 1)),
        None => Err(SqlError::syntax(format!("syntax error at or near \"{name}\""))),
    }
}

/// 42P02.
pub fn no_argument(at: usize) -> SqlError {
    let text = format!("there is no parameter ${}", at + 1);
    SqlError::new(SqlState::UNDEFINED_PARAMETER, text)
}

/// The function of a user that a call means, with its arguments bound; `None` if it is none.
///
/// # Errors
/// Those of finding it and of binding the arguments.
pub fn user_call(
    function: &Function,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Option<Result<UserCall, Bound>>> {
    Ok(match resolve_call(function, scope, ctx)? {
        Resolved::Nothing => None,
        Resolved::User(call) => Some(Ok(*call)),
        Resolved::Builtin(name, args) => {
            Some(Err(crate::bind_call::bind_special(&name, args, ctx)?))
        }
    })
}
