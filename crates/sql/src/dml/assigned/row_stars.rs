//! Stars in a row that several columns are assigned.
//!
//! ```text
//!   SET (a, b, c) = ROW(w.*, 9)        SET (a, b, c) = ROW(w.x, w.y, 9)
//! ```

use std::borrow::Cow;

use braid_scalar::object_name_parts;
use braid_types::SqlResult;
use sqlparser::ast::{
    self, AssignmentTarget, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, ObjectNamePart,
};

use crate::dml::target::Target;

/// Columns, by their names.
type Names = Vec<String>;

/// A row with columns in the place of its stars. `columns_of` says what a name has; a star over
/// what it does not know stays.
pub(in crate::dml) fn expanded<'a>(
    e: &'a Expr,
    columns_of: &mut dyn FnMut(&[String]) -> SqlResult<Option<Names>>,
) -> SqlResult<Cow<'a, Expr>> {
    let Expr::Function(f) = e else { return Ok(Cow::Borrowed(e)) };
    let FunctionArguments::List(list) = &f.args else { return Ok(Cow::Borrowed(e)) };
    if *object_name_parts(&f.name) != ["row"] || !list.args.iter().any(|arg| star(arg).is_some()) {
        return Ok(Cow::Borrowed(e));
    }
    let mut args = Vec::new();
    for arg in &list.args {
        let columns = match star(arg) {
            Some(of) => columns_of(&object_name_parts(of))?.map(|columns| (of, columns)),
            None => None,
        };
        match columns {
            Some((of, columns)) => args.extend(columns.iter().map(|column| field(of, column))),
            None => args.push(arg.clone()),
        }
    }
    let mut f = f.clone();
    if let FunctionArguments::List(list) = &mut f.args {
        list.args = args;
    }
    Ok(Cow::Owned(Expr::Function(f)))
}

/// Assignments without stars over tables beside the target.
pub(in crate::dml) fn of_others<'a>(
    target: &Target,
    assignments: &'a [ast::Assignment],
    columns_of: impl Fn(&[String]) -> SqlResult<Names>,
) -> SqlResult<Cow<'a, [ast::Assignment]>> {
    let mut out = Cow::Borrowed(assignments);
    for (n, a) in assignments.iter().enumerate() {
        if !matches!(a.target, AssignmentTarget::Tuple(_)) {
            continue;
        }
        let mut known = |of: &[String]| match *of == [&*target.alias] {
            true => Ok(None),
            false => columns_of(of).map(Some),
        };
        if let Cow::Owned(value) = expanded(&a.value, &mut known)? {
            out.to_mut()[n].value = value;
        }
    }
    Ok(out)
}

fn star(arg: &FunctionArg) -> Option<&ObjectName> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(of)) => Some(of),
        _ => None,
    }
}

fn field(of: &ObjectName, column: &str) -> FunctionArg {
    let parts = of.0.iter().filter_map(ObjectNamePart::as_ident).cloned();
    let parts = parts.chain([Ident::with_quote('"', column)]).collect();
    FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::CompoundIdentifier(parts)))
}
