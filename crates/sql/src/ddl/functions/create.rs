//! CREATE FUNCTION.

use std::sync::Arc;

use braid_catalog::{Function, Mode, Parameter, Remarks, Stability, same_types};
use braid_parser::{
    CreateFunction, FunctionBody, FunctionClause, FunctionParam, FunctionReturns, ParamMode,
};
use braid_scalar::{Scope, SessionFunctions, bind_to, is_aggregate, is_set_returning};
use braid_types::{SqlError, SqlResult, SqlState, SqlType, quote_ident};
use sqlparser::ast::DataType;

use crate::ddl::{Change, named_relations, temporary};
use crate::dml::source::Source;

/// 42P13.
pub(super) fn bad_definition(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState("42P13"), text)
}

pub(crate) fn create(c: &mut Change, f: &CreateFunction) -> SqlResult<String> {
    let (body, returned) = check_language(f)?;
    let (schema, name) = temporary::target_schema(c, &f.name)?;
    refuse_name(&name)?;
    let mut params = parameters(c, &f.params)?;
    let (returns, set) = result(c, f, &mut params)?;
    check_names(&params)?;
    let mut new = Function {
        id: 0,
        schema,
        name,
        params,
        returns,
        set,
        stability: Stability::Volatile,
        strict: false,
        remarks: Remarks { rows: if set { "1000" } else { "0" }.into(), ..Remarks::default() },
        body,
        returned,
    };
    for clause in &f.clauses {
        apply(&mut new, clause)?;
    }
    new.id = match same(c, &new) {
        Some(old) => {
            check_replaces(f, &new, &old)?;
            old.id
        }
        None => c.new_id()?,
    };
    c.catalog.put_function(new.clone());
    c.sync();
    if c.ctx.session.setting("check_function_bodies").as_deref() != Some("off") {
        check_body(c, &new)?;
    }
    Ok("CREATE FUNCTION".into())
}

/// The body, and whether it is an expression behind RETURN.
fn check_language(f: &CreateFunction) -> SqlResult<(String, bool)> {
    let returned = matches!(f.body, Some(FunctionBody::Return(_)));
    match f.language.as_deref() {
        None if returned => {}
        None => return Err(bad_definition("no language specified")),
        Some("sql") => {}
        Some(other @ ("plpgsql" | "c" | "internal")) => {
            return Err(SqlError::unsupported(format!("a function in language {other}"))
                .with_hint("Functions in LANGUAGE sql are here; docs/statements.md lists more."));
        }
        Some(other) => {
            let text = format!("language \"{other}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
        }
    }
    match &f.body {
        Some(FunctionBody::Text(text)) => Ok((text.clone(), false)),
        Some(FunctionBody::Return(text)) => Ok((text.clone(), true)),
        None => Err(bad_definition("no function body specified")),
    }
}

/// Names that calls would not find, because they mean something else wherever they stand.
fn refuse_name(name: &str) -> SqlResult<()> {
    let special = ["coalesce", "greatest", "least", "nullif", "row", "array", "grouping"];
    let window = braid_scalar::functions_of(braid_scalar::FunctionKind::Window);
    let taken = is_aggregate(name)
        || is_set_returning(name)
        || special.contains(&name)
        || window.into_iter().any(|f| f.name == name);
    match taken {
        true => Err(SqlError::unsupported(format!("a function named {name}"))
            .with_hint("An aggregate or a set-returning function of this name is built in.")),
        false => Ok(()),
    }
}

/// The type of a parameter or a result, without modifiers: those mean nothing there.
fn type_of(c: &Change, ty: &DataType) -> SqlResult<SqlType> {
    let text = ty.to_string().to_lowercase();
    if text == "void" {
        return Ok(SqlType::Void);
    }
    if text.starts_with("any") || matches!(&*text, "trigger" | "event_trigger" | "cstring") {
        return Err(SqlError::unsupported(format!("a function over the pseudo-type {text}"))
            .with_hint("Make a function for each type that it is called with."));
    }
    let types = c.ctx.no_params();
    if braid_scalar::refinement_of(ty, types.named_types())?.domain.is_some() {
        return Err(SqlError::unsupported(format!("a function over the domain {text}"))
            .with_hint("Use the type that the domain is over."));
    }
    Ok(c.ctx.type_of(ty)?.base())
}

fn parameters(c: &Change, given: &[FunctionParam]) -> SqlResult<Vec<Parameter>> {
    let mut out: Vec<Parameter> = Vec::with_capacity(given.len());
    let (mut variadic, mut defaults) = (false, false);
    for p in given {
        let mode = match p.mode {
            ParamMode::In => Mode::In,
            ParamMode::Out => Mode::Out,
            ParamMode::InOut => Mode::InOut,
            ParamMode::Variadic => Mode::Variadic,
        };
        let ty = type_of(c, &p.ty)?;
        if matches!(ty, SqlType::Void | SqlType::Record) {
            return Err(bad_definition(format!(
                "SQL functions cannot have arguments of type {}",
                ty.base_name()
            )));
        }
        if mode.is_given() && variadic {
            return Err(bad_definition("VARIADIC parameter must be the last input parameter"));
        }
        variadic |= mode == Mode::Variadic;
        if mode == Mode::Variadic && ty.element().is_none() {
            return Err(bad_definition("VARIADIC parameter must be an array"));
        }
        match (&p.default, mode.is_given()) {
            (Some(_), false) => {
                return Err(bad_definition("only input parameters can have default values"));
            }
            (None, true) if defaults => {
                return Err(bad_definition(
                    "input parameters after one with a default value must also have defaults",
                ));
            }
            _ => {}
        }
        defaults |= p.default.is_some();
        if let Some(e) = &p.default {
            bind_to(e, &ty, &Scope::empty(), &mut c.ctx.no_params())?;
        }
        let default = p.default.as_ref().map(|e| named_relations::kept(c, e));
        out.push(Parameter { name: p.name.clone(), mode, ty, default });
    }
    Ok(out)
}

/// The type of the result, and whether it is a set. Columns of TABLE become parameters.
fn result(
    c: &Change,
    f: &CreateFunction,
    params: &mut Vec<Parameter>,
) -> SqlResult<(SqlType, bool)> {
    let outputs: Vec<&Parameter> = params.iter().filter(|p| p.mode.is_result()).collect();
    let by_outputs = match outputs.as_slice() {
        [] => None,
        [one] => Some(one.ty.clone()),
        _ => Some(SqlType::Record),
    };
    match &f.returns {
        None => match by_outputs {
            Some(ty) => Ok((ty, false)),
            None => Err(bad_definition("function result type must be specified")),
        },
        Some(FunctionReturns::Type(ty, set)) => {
            let ty = type_of(c, ty)?;
            match by_outputs {
                Some(wanted) if !wanted.same_base(&ty) => Err(bad_definition(format!(
                    "function result type must be {} because of OUT parameters",
                    wanted.base_name()
                ))),
                None if ty == SqlType::Record => {
                    Err(SqlError::unsupported("a function that returns record")
                        .with_hint("Name its columns: RETURNS TABLE (..), or OUT parameters."))
                }
                _ => Ok((ty, *set)),
            }
        }
        Some(FunctionReturns::Table(_)) if by_outputs.is_some() => {
            Err(bad_definition("OUT and INOUT arguments aren't allowed in TABLE functions"))
        }
        Some(FunctionReturns::Table(columns)) => {
            for (name, ty) in columns {
                let (name, ty) = (Some(name.clone()), type_of(c, ty)?);
                params.push(Parameter { name, mode: Mode::Table, ty, default: None });
            }
            match columns.as_slice() {
                [_] => Ok((params[params.len() - 1].ty.clone(), true)),
                _ => Ok((SqlType::Record, true)),
            }
        }
    }
}

fn check_names(params: &[Parameter]) -> SqlResult<()> {
    for (at, p) in params.iter().enumerate() {
        let Some(name) = &p.name else { continue };
        let clash = |q: &&Parameter| q.name.as_ref() == Some(name);
        if params[..at].iter().any(|q| clash(&q)) {
            let text = format!("parameter name \"{name}\" used more than once");
            return Err(bad_definition(text));
        }
    }
    Ok(())
}

/// One clause of CREATE and ALTER FUNCTION.
pub(super) fn apply(f: &mut Function, clause: &FunctionClause) -> SqlResult<()> {
    let positive = |what: &str, n: f64| match n > 0.0 {
        true => Ok((n as f32).to_string()),
        false => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("{what} must be positive"),
        )),
    };
    match clause {
        FunctionClause::Stability(word) => {
            f.stability = match *word {
                "immutable" => Stability::Immutable,
                "stable" => Stability::Stable,
                _ => Stability::Volatile,
            };
        }
        FunctionClause::Strict(strict) => f.strict = *strict,
        FunctionClause::Leakproof(yes) => f.remarks.leakproof = *yes,
        FunctionClause::Definer(yes) => f.remarks.definer = *yes,
        FunctionClause::Parallel(letter) => f.remarks.parallel = *letter,
        FunctionClause::Cost(n) => f.remarks.cost = positive("COST", *n)?,
        FunctionClause::Rows(_) if !f.set => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "ROWS is not applicable when function does not return a set",
            ));
        }
        FunctionClause::Rows(n) => f.remarks.rows = positive("ROWS", *n)?,
        FunctionClause::Other(what) => {
            return Err(SqlError::unsupported(format!("{what} of a function"))
                .with_hint("It says how PostgreSQL plans or runs a function: leave it out."));
        }
    }
    Ok(())
}

/// The function that one stands in the place of.
pub(super) fn same(c: &Change, new: &Function) -> Option<Arc<Function>> {
    let mut named = c.catalog.functions_in(new.schema, &new.name);
    named.find(|old| same_types(&old.signature(), &new.signature())).cloned()
}

/// That a function may be replaced: those who call it see no other one.
fn check_replaces(f: &CreateFunction, new: &Function, old: &Function) -> SqlResult<()> {
    if !f.or_replace {
        return Err(exists(&new.name));
    }
    let hint = format!("Use DROP FUNCTION {} first.", old.shown());
    let columns = |f: &Function| -> Vec<(Option<String>, SqlType)> {
        f.outputs().map(|p| (p.name.clone(), p.ty.clone())).collect()
    };
    if old.set != new.set || old.returns != new.returns || columns(old) != columns(new) {
        let mut error = bad_definition("cannot change return type of existing function");
        if old.returns == SqlType::Record && new.returns == SqlType::Record {
            error = error.with_detail("Row type defined by OUT parameters is different.");
        }
        return Err(error.with_hint(hint));
    }
    for (was, is) in old.inputs().zip(new.inputs()) {
        if let Some(name) = was.name.as_ref().filter(|_| was.name != is.name) {
            let text = format!("cannot change name of input parameter \"{name}\"");
            return Err(bad_definition(text).with_hint(hint));
        }
        if was.default.is_some() && is.default.is_none() {
            let text = "cannot remove parameter defaults from existing function";
            return Err(bad_definition(text).with_hint(hint));
        }
    }
    Ok(())
}

/// 42723.
fn exists(name: &str) -> SqlError {
    let text = format!("function \"{name}\" already exists with same argument types");
    SqlError::new(SqlState("42723"), text)
}

/// The name of a type, with its schema if a user has made it: it need not be in the search path.
fn in_full(ty: &SqlType) -> String {
    if let SqlType::Array(element) = ty {
        return format!("{}[]", in_full(element));
    }
    match ty.user_name() {
        None => ty.base_name(),
        Some(("", name)) => quote_ident(name),
        Some((schema, name)) => format!("{}.{}", quote_ident(schema), quote_ident(name)),
    }
}

/// Binds the body by a call of the function, as anybody would.
fn check_body(c: &Change, f: &Function) -> SqlResult<()> {
    let null = |p: &Parameter| format!("NULL::{}", in_full(&p.ty));
    let mut args: Vec<String> = f.inputs().map(null).collect();
    if let Some(last) = f.inputs().last().filter(|p| p.mode == Mode::Variadic)
        && let Some(element) = last.ty.element()
    {
        args.pop();
        args.push(format!("NULL::{}", in_full(element)));
    }
    let (schema, name) = (c.ctx.schema_name(f.schema), &f.name);
    let call = format!("{}.{}({})", quote_ident(&schema), quote_ident(name), args.join(", "));
    let query = match f.set || f.returns == SqlType::Record {
        true => format!("SELECT * FROM {call} AS called"),
        false => format!("SELECT {call}"),
    };
    let query = braid_parser::parse_query(&query)?;
    Source::plan_query(&c.ctx, &query)?;
    Ok(())
}
