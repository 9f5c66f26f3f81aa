//! CREATE FUNCTION, ALTER FUNCTION and DROP FUNCTION.
//!
//! ```text
//!   CREATE FUNCTION price (item int, OUT total numeric) LANGUAGE sql STABLE AS $$ SELECT .. $$
//!                         parameters                    clauses, in any order, and the body
//! ```
//! Which languages there are, and what a body says, is not asked here.

use braid_types::{SqlError, SqlResult};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use crate::access::role_name;
use crate::cursor::Cursor;
use crate::{Kind, Name, RoleName};

/// Which way a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamMode {
    /// IN, or nothing.
    In,
    /// OUT.
    Out,
    /// INOUT.
    InOut,
    /// VARIADIC.
    Variadic,
}

/// A parameter as it is declared.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionParam {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Which way it goes.
    pub mode: ParamMode,
    /// Its type.
    pub ty: ast::DataType,
    /// DEFAULT.
    pub default: Option<ast::Expr>,
}

/// What RETURNS says.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionReturns {
    /// A type; the flag is SETOF.
    Type(ast::DataType, bool),
    /// TABLE with these columns.
    Table(Vec<(String, ast::DataType)>),
}

/// The body of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionBody {
    /// AS: a text in the function's language.
    Text(String),
    /// RETURN expression, as SQL text.
    Return(String),
}

/// One clause of CREATE FUNCTION and ALTER FUNCTION.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionClause {
    /// IMMUTABLE, STABLE, VOLATILE.
    Stability(&'static str),
    /// STRICT; false: CALLED ON NULL INPUT.
    Strict(bool),
    /// LEAKPROOF.
    Leakproof(bool),
    /// SECURITY DEFINER.
    Definer(bool),
    /// PARALLEL: `u`, `r` or `s`.
    Parallel(char),
    /// COST.
    Cost(f64),
    /// ROWS.
    Rows(f64),
    /// What is not here: SUPPORT, WINDOW, TRANSFORM.
    Other(&'static str),
}

/// CREATE FUNCTION.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateFunction {
    /// OR REPLACE.
    pub or_replace: bool,
    /// Name.
    pub name: Name,
    /// Parameters.
    pub params: Vec<FunctionParam>,
    /// RETURNS.
    pub returns: Option<FunctionReturns>,
    /// LANGUAGE.
    pub language: Option<String>,
    /// Clauses.
    pub clauses: Vec<FunctionClause>,
    /// The body.
    pub body: Option<FunctionBody>,
}

/// A function that is there already: its name, and the types of its inputs if they are given.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionRef {
    /// Name.
    pub name: Name,
    /// Types of what it is given.
    pub inputs: Option<Vec<ast::DataType>>,
}

/// What ALTER FUNCTION changes.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionChange {
    /// RENAME TO.
    Rename(String),
    /// OWNER TO.
    Owner(RoleName),
    /// SET SCHEMA.
    Schema(String),
    /// IMMUTABLE and others.
    Clauses(Vec<FunctionClause>),
}

/// Reads one of them; `None` if it is another statement.
pub(crate) fn function(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if c.take(&["create", "function"]) {
        return create(c, false).map(|f| Some(Kind::CreateFunction(Box::new(f))));
    }
    if c.take(&["create", "or", "replace", "function"]) {
        return create(c, true).map(|f| Some(Kind::CreateFunction(Box::new(f))));
    }
    if c.take(&["drop", "function"]) || c.take(&["drop", "routine"]) {
        return dropped(c).map(Some);
    }
    if c.take(&["alter", "function"]) || c.take(&["alter", "routine"]) {
        let of = reference(c)?;
        return Ok(Some(Kind::AlterFunction(of, change(c)?)));
    }
    Ok(None)
}

fn dropped(c: &mut Cursor) -> SqlResult<Kind> {
    let if_exists = c.take(&["if", "exists"]);
    let mut all = vec![reference(c)?];
    while c.take_token(&Token::Comma) {
        all.push(reference(c)?);
    }
    let cascade = c.take(&["cascade"]);
    if !cascade {
        c.take(&["restrict"]);
    }
    Ok(Kind::DropFunctions(all, if_exists, cascade))
}

/// `f`, `f()`, `f(int, OUT text)`.
pub(crate) fn reference(c: &mut Cursor) -> SqlResult<FunctionRef> {
    let name = c.any_name()?;
    let inputs = (c.peek() == Some(&Token::LParen)).then(|| params(c)).transpose()?;
    let given = |p: &FunctionParam| p.mode != ParamMode::Out;
    let inputs = inputs.map(|all| all.into_iter().filter(given).map(|p| p.ty).collect());
    Ok(FunctionRef { name, inputs })
}

fn change(c: &mut Cursor) -> SqlResult<FunctionChange> {
    if c.take(&["rename", "to"]) {
        return c.own_name().map(FunctionChange::Rename);
    }
    if c.take(&["owner", "to"]) {
        return role_name(c).map(FunctionChange::Owner);
    }
    if c.take(&["set", "schema"]) {
        return c.own_name().map(FunctionChange::Schema);
    }
    let mut clauses = Vec::new();
    while let Some(next) = clause(c)? {
        clauses.push(next);
    }
    c.take(&["restrict"]);
    match clauses.is_empty() {
        true => Err(c.unexpected()),
        false => Ok(FunctionChange::Clauses(clauses)),
    }
}

fn params(c: &mut Cursor) -> SqlResult<Vec<FunctionParam>> {
    c.expect_token(&Token::LParen)?;
    let mut out = Vec::new();
    if c.take_token(&Token::RParen) {
        return Ok(out);
    }
    loop {
        out.push(param(c)?);
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    c.expect_token(&Token::RParen)?;
    Ok(out)
}

/// The mode may stand in front of the name or behind it.
fn mode(c: &mut Cursor) -> Option<ParamMode> {
    let ends = |c: &Cursor, n| matches!(c.peek_at(n), Some(Token::Comma | Token::RParen) | None);
    let words: [(&[&str], ParamMode); 5] = [
        (&["in", "out"], ParamMode::InOut),
        (&["in"], ParamMode::In),
        (&["out"], ParamMode::Out),
        (&["inout"], ParamMode::InOut),
        (&["variadic"], ParamMode::Variadic),
    ];
    let (taken, mode) = words.iter().find(|(w, _)| c.looking_at(w) && !ends(c, w.len()))?;
    c.take(taken);
    Some(*mode)
}

fn param(c: &mut Cursor) -> SqlResult<FunctionParam> {
    let before = mode(c);
    let mut probe = c.clone();
    // `double precision` is a type, `price numeric` a name and a type.
    let unnamed = data_type(&mut probe).ok().filter(|_| ends_param(&probe));
    let (name, behind, ty) = match unnamed {
        Some(ty) => {
            *c = probe;
            (None, None, ty)
        }
        None => {
            let name = c.ident()?;
            let behind = before.is_none().then(|| mode(c)).flatten();
            (Some(name), behind, data_type(c)?)
        }
    };
    let default = match c.take(&["default"]) || c.take_token(&Token::Eq) {
        true => Some(c.expr()?),
        false => None,
    };
    let mode = before.or(behind).unwrap_or(ParamMode::In);
    Ok(FunctionParam { name, mode, ty, default })
}

fn ends_param(c: &Cursor) -> bool {
    c.is_word(0, "default")
        || matches!(c.peek(), Some(Token::Comma | Token::RParen | Token::Eq) | None)
}

fn data_type(c: &mut Cursor) -> SqlResult<ast::DataType> {
    c.with_parser(|p| p.parse_data_type())
}

fn create(c: &mut Cursor, or_replace: bool) -> SqlResult<CreateFunction> {
    let name = c.any_name()?;
    let params = params(c)?;
    let returns = match c.is_word(0, "returns") && !c.is_word(1, "null") {
        true => Some(returns(c)?),
        false => None,
    };
    let (mut language, mut clauses, mut body) = (None, Vec::new(), None);
    while !c.done() {
        if c.take(&["language"]) {
            language = Some(match c.peek() {
                Some(Token::Word(_)) => c.ident()?,
                _ => c.string()?.to_lowercase(),
            });
        } else if body.is_none() && c.take(&["as"]) {
            body = Some(FunctionBody::Text(c.text()?));
            if c.take_token(&Token::Comma) {
                // A file of machine code and a name in it: of another language.
                c.text()?;
            }
        } else if body.is_none() && c.take(&["return"]) {
            body = Some(FunctionBody::Return(c.expr()?.to_string()));
        } else if c.looking_at(&["begin", "atomic"]) {
            return Err(SqlError::unsupported("BEGIN ATOMIC")
                .with_hint("Write the body as a text: AS $$ SELECT .. $$."));
        } else {
            clauses.push(clause(c)?.ok_or_else(|| c.unexpected())?);
        }
    }
    Ok(CreateFunction { or_replace, name, params, returns, language, clauses, body })
}

fn returns(c: &mut Cursor) -> SqlResult<FunctionReturns> {
    c.expect(&["returns"])?;
    if !c.is_word(0, "table") || c.peek_at(1) != Some(&Token::LParen) {
        let set = c.take(&["setof"]);
        return Ok(FunctionReturns::Type(data_type(c)?, set));
    }
    c.next();
    c.next();
    let mut columns = Vec::new();
    loop {
        columns.push((c.ident()?, data_type(c)?));
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    c.expect_token(&Token::RParen)?;
    Ok(FunctionReturns::Table(columns))
}

/// Clauses of fixed words.
const CLAUSES: [(&[&str], FunctionClause); 17] = [
    (&["immutable"], FunctionClause::Stability("immutable")),
    (&["stable"], FunctionClause::Stability("stable")),
    (&["volatile"], FunctionClause::Stability("volatile")),
    (&["strict"], FunctionClause::Strict(true)),
    (&["returns", "null", "on", "null", "input"], FunctionClause::Strict(true)),
    (&["called", "on", "null", "input"], FunctionClause::Strict(false)),
    (&["not", "leakproof"], FunctionClause::Leakproof(false)),
    (&["leakproof"], FunctionClause::Leakproof(true)),
    (&["external", "security", "definer"], FunctionClause::Definer(true)),
    (&["external", "security", "invoker"], FunctionClause::Definer(false)),
    (&["security", "definer"], FunctionClause::Definer(true)),
    (&["security", "invoker"], FunctionClause::Definer(false)),
    (&["parallel", "unsafe"], FunctionClause::Parallel('u')),
    (&["parallel", "restricted"], FunctionClause::Parallel('r')),
    (&["parallel", "safe"], FunctionClause::Parallel('s')),
    (&["window"], FunctionClause::Other("WINDOW")),
    (&["transform"], FunctionClause::Other("TRANSFORM")),
];

fn clause(c: &mut Cursor) -> SqlResult<Option<FunctionClause>> {
    if let Some((_, clause)) = CLAUSES.iter().find(|(words, _)| c.take(words)) {
        return Ok(Some(clause.clone()));
    }
    Ok(Some(if c.take(&["cost"]) {
        FunctionClause::Cost(number(c)?)
    } else if c.take(&["rows"]) {
        FunctionClause::Rows(number(c)?)
    } else if c.is_word(0, "set") || c.is_word(0, "reset") {
        return Err(SqlError::unsupported("SET of a function")
            .with_hint("Settings hold for sessions and transactions, not for functions."));
    } else if c.take(&["support"]) {
        c.any_name()?;
        FunctionClause::Other("SUPPORT")
    } else {
        return Ok(None);
    }))
}

fn number(c: &mut Cursor) -> SqlResult<f64> {
    match c.peek() {
        Some(Token::Number(n, _)) => {
            let value = n.parse().map_err(|_| c.unexpected())?;
            c.next();
            Ok(value)
        }
        _ => Err(c.unexpected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(sql: &str) -> CreateFunction {
        let statements = crate::parse_script(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        match &*statements[0].kind {
            Kind::CreateFunction(f) => (**f).clone(),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn names_and_types_of_parameters_are_told_apart() {
        let f = created(
            "create or replace function s.f(a int, double precision, in b text default 'x', \
             out c timestamp with time zone, variadic d int[], e varchar(3) = 'y', in out g date, \
             h inout int) returns record language sql stable strict parallel safe cost 7 \
             as $x$ select 1 $x$",
        );
        assert!(f.or_replace);
        assert_eq!(f.name, ["s", "f"]);
        let names: Vec<_> = f.params.iter().map(|p| p.name.as_deref().unwrap_or("-")).collect();
        assert_eq!(names, ["a", "-", "b", "c", "d", "e", "g", "h"]);
        let modes: Vec<_> = f.params.iter().map(|p| p.mode).collect();
        use ParamMode::{In, InOut, Out, Variadic};
        assert_eq!(modes, [In, In, In, Out, Variadic, In, InOut, InOut]);
        assert!(f.params[2].default.is_some() && f.params[5].default.is_some());
        assert_eq!(f.body, Some(FunctionBody::Text(" select 1 ".into())));
        assert_eq!(f.clauses.len(), 4);
    }

    #[test]
    fn results_and_bodies_have_several_forms() {
        let f = created("create function f(int) returns table (a int, b text) language sql as ''");
        assert!(matches!(f.returns, Some(FunctionReturns::Table(c)) if c.len() == 2));
        let f = created("create function f() returns setof text language 'SQL' as 'select ''a'''");
        assert!(matches!(f.returns, Some(FunctionReturns::Type(_, true))));
        assert_eq!(f.language.as_deref(), Some("sql"));
        assert_eq!(f.body, Some(FunctionBody::Text("select 'a'".into())));
        let f = created("create function f(a int) returns int return a + 1");
        assert_eq!(f.body, Some(FunctionBody::Return("a + 1".into())));
        let atomic = crate::parse_script("create function f() returns int begin atomic select 1");
        assert_eq!(atomic.unwrap_err().state().0, "0A000");
    }
}
