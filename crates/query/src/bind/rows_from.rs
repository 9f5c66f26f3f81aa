//! ROWS FROM: several functions side by side, the n-th rows of all of them in one row.
//!
//! ```text
//!   ROWS FROM (f(x), g(y)) WITH ORDINALITY AS t (..)
//!
//!   LATERAL (SELECT *, coalesce(f.n, g.n) AS ordinality
//!            FROM (SELECT * .. FROM f(x) WITH ORDINALITY) FULL JOIN (.. g(y) ..) ON f.n = g.n
//!            ORDER BY coalesce(f.n, g.n)) AS t (..)
//! ```
//! The columns that count the rows are hidden: no star shows them.

use braid_parser::{ROWS_FROM, WITH_COLUMNS, column_list};
use braid_scalar::object_name_parts;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{self, Expr, Ident, SetExpr, TableFactor};

use crate::system::parse_query;

/// What begins the names of the columns that count rows, and of the functions. No name that can be
/// typed has that character.
pub(super) const BESIDE: char = '\u{2}';

/// One of the functions.
struct Call<'a> {
    function: &'a ast::Function,
    /// The list of columns behind it.
    columns: Vec<ast::TableAliasColumnDef>,
}

/// What ROWS FROM stands for; `None` for another table.
///
/// # Errors
/// 42601.
pub(super) fn rows_from(factor: &TableFactor) -> SqlResult<Option<TableFactor>> {
    let (args, ordinality, alias) = match factor {
        TableFactor::Table { name, args: Some(args), with_ordinality, alias, .. } if is(name) => {
            (&args.args, *with_ordinality, alias)
        }
        TableFactor::Function { name, args, with_ordinality, alias, .. } if is(name) => {
            (args, *with_ordinality, alias)
        }
        _ => return Ok(None),
    };
    let calls = args.iter().map(call).collect::<SqlResult<Vec<_>>>()?;
    let typed = |alias: &ast::TableAlias| alias.columns.iter().any(|c| c.data_type.is_some());
    match calls.as_slice() {
        [] => return Err(SqlError::syntax("syntax error at or near \")\"")),
        [only] if only.columns.is_empty() => {
            let mut plain = template(ordinality)?;
            fill(&mut plain, only, alias.as_ref());
            return Ok(Some(plain));
        }
        [_] => {}
        _ if alias.as_ref().is_some_and(typed) => {
            return Err(SqlError::syntax(
                "ROWS FROM() with multiple functions cannot have a column definition list",
            )
            .with_hint(
                "Put a separate column definition list for each function inside ROWS FROM().",
            ));
        }
        _ => {}
    }
    let first = object_name_parts(&calls[0].function.name).pop().unwrap_or_default();
    let alias = alias.clone().unwrap_or_else(|| named(&first));
    let subquery = Box::new(side_by_side(&calls, ordinality)?);
    Ok(Some(TableFactor::Derived { lateral: true, subquery, alias: Some(alias), sample: None }))
}

fn is(name: &ast::ObjectName) -> bool {
    *object_name_parts(name) == [ROWS_FROM]
}

fn named(name: &str) -> ast::TableAlias {
    let name = Ident::with_quote('"', name);
    ast::TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

fn call(arg: &ast::FunctionArg) -> SqlResult<Call<'_>> {
    let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(Expr::Function(function))) = arg
    else {
        return Err(SqlError::syntax(format!("syntax error at or near \"{arg}\"")));
    };
    if *object_name_parts(&function.name) != [WITH_COLUMNS] {
        return Ok(Call { function, columns: Vec::new() });
    }
    let ast::FunctionArguments::List(list) = &function.args else {
        return Err(SqlError::internal("a call without arguments"));
    };
    let [inner, ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(Expr::Value(text)))] =
        list.args.as_slice()
    else {
        return Err(SqlError::internal("a list of columns without a call"));
    };
    let text = text.value.clone().into_string().unwrap_or_default();
    Ok(Call { columns: column_list(&text)?, ..call(inner)? })
}

/// A function in FROM.
fn template(ordinality: bool) -> SqlResult<TableFactor> {
    let counted = if ordinality { " WITH ORDINALITY" } else { "" };
    let query = parse_query(&format!("SELECT FROM f(){counted}"))?;
    let SetExpr::Select(select) = *query.body else {
        return Err(SqlError::internal("a SELECT that is none"));
    };
    let mut from = select.from.into_iter().map(|from| from.relation);
    from.next().ok_or_else(|| SqlError::internal("a FROM without tables"))
}

fn fill(factor: &mut TableFactor, call: &Call<'_>, own: Option<&ast::TableAlias>) {
    if let TableFactor::Table { name, args: Some(args), alias, .. } = factor {
        name.clone_from(&call.function.name);
        if let ast::FunctionArguments::List(list) = &call.function.args {
            args.args.clone_from(&list.args);
        }
        *alias = own.cloned();
    }
}

/// The query of all functions.
fn side_by_side(calls: &[Call<'_>], ordinality: bool) -> SqlResult<ast::Query> {
    let number = |n: usize| format!("\"{BESIDE}{n}\".\"{BESIDE}{n}\"");
    let before = |n: usize| match n {
        1 => number(0),
        _ => format!("coalesce({})", (0..n).map(number).collect::<Vec<_>>().join(", ")),
    };
    let one = |n: usize| {
        let own = format!("(SELECT *, \"{BESIDE}\".ordinality AS \"{BESIDE}{n}\" FROM f())");
        let joined = match n {
            0 => String::new(),
            _ => format!(" ON {} = {}", before(n), number(n)),
        };
        format!("{own} AS \"{BESIDE}{n}\"{joined}")
    };
    let from: Vec<String> = (0..calls.len()).map(one).collect();
    let all = before(calls.len());
    let counted = if ordinality { format!(", {all} AS ordinality") } else { String::new() };
    let from = from.join(" FULL JOIN ");
    let mut query = parse_query(&format!("SELECT *{counted} FROM {from} ORDER BY {all}"))?;
    let SetExpr::Select(select) = &mut *query.body else {
        return Err(SqlError::internal("a SELECT that is none"));
    };
    let from = &mut select.from[0];
    let joined = from.joins.iter_mut().map(|join| &mut join.relation);
    for (factor, call) in std::iter::once(&mut from.relation).chain(joined).zip(calls) {
        let TableFactor::Derived { subquery, .. } = factor else { continue };
        let SetExpr::Select(inner) = &mut *subquery.body else { continue };
        let mut own = template(true)?;
        let alias = ast::TableAlias { columns: call.columns.clone(), ..named(&BESIDE.to_string()) };
        fill(&mut own, call, Some(&alias));
        inner.from[0].relation = own;
    }
    Ok(query)
}

/// 42601 for a list of columns with types beside WITH ORDINALITY.
pub(super) fn check_ordinality(ordinality: bool, alias: Option<&ast::TableAlias>) -> SqlResult<()> {
    let own = |alias: &&ast::TableAlias| !alias.name.value.starts_with(BESIDE);
    let columns = alias.filter(own).map_or(&[][..], |alias| alias.columns.as_slice());
    if ordinality && columns.iter().any(|column| column.data_type.is_some()) {
        let text = "WITH ORDINALITY cannot be used with a column definition list";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, text)
            .with_hint("Put the column definition list inside ROWS FROM()."));
    }
    Ok(())
}
