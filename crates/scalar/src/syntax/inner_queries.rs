//! Expressions of queries as PostgreSQL's `pg_get_viewdef` prints them: columns with their
//! relations, those of queries around them, and queries within.
//!
//! ```text
//!   a IN (SELECT b FROM u)               (t.a IN ( SELECT u.b
//!                                                FROM u))
//!   NOT EXISTS (SELECT 1 FROM t)         (NOT (EXISTS ( SELECT 1
//!                                                FROM t t_1)))
//! ```
//! The text of a query within is made by who prints the whole one.

use std::rc::Rc;

use braid_types::{SqlType, quote_ident};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArguments, Query, UnaryOperator, WindowSpec,
};

use super::deparse::{
    Deparsed, Deparser, Part, Read, binary_types, known, listed, operator_sign, plain,
};
use super::printed::{Kind, Piece, Printed};
use crate::registry::{Code, Columns};
use crate::{Node, Scope, resolve};

/// The relations of one query.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// Their columns.
    pub scope: Scope,
    /// What the relation of each column is shown as.
    pub shown: Vec<String>,
}

/// What prints the queries that expressions have in them.
pub trait InnerQueries {
    /// The text of a query within the one that is printed, and the types of its columns.
    fn inner(&self, query: &Query) -> Option<(String, Vec<SqlType>)>;
}

/// Where an expression of a query stands.
#[derive(Clone, Copy)]
pub struct Within<'a> {
    /// The query's relations.
    pub level: &'a Level,
    /// Those of the queries around it, the nearest first.
    pub around: &'a [Rc<Level>],
    /// What prints queries in it.
    pub queries: &'a dyn InnerQueries,
}

/// Reads an expression of a query, as [`super::deparse()`] does: columns are shown with their
/// relations, and there may be aggregates.
pub fn deparse_query(expr: &Expr, within: Within<'_>) -> Option<Deparsed> {
    let part = Deparser::of_query(within).known(expr)?;
    Some(Deparsed::of(part))
}

/// Values that are the same column of several rows, and the type that they become of.
pub fn deparse_column<'e>(
    values: impl Iterator<Item = &'e Expr>,
    within: Within<'_>,
) -> Option<(Vec<Deparsed>, SqlType)> {
    let (parts, ty) = Deparser::of_query(within).alike(values)?;
    Some((parts.into_iter().map(Deparsed::of).collect(), ty))
}

/// Columns of a function in FROM: one without a name is called as the relation.
pub type RowColumns = Vec<(Option<String>, SqlType)>;

/// A call of a function in FROM, and its columns.
pub fn deparse_rows(
    name: &str,
    args: &[&Expr],
    within: Within<'_>,
) -> Option<(Deparsed, RowColumns)> {
    let deparser = Deparser::of_query(within);
    let args: Vec<Read> = args.iter().map(|arg| deparser.read(arg)).collect::<Option<_>>()?;
    let given = args.iter().map(|arg| arg.ty().cloned().unwrap_or(SqlType::Unknown));
    let choice = resolve(name, &given.collect::<Vec<_>>(), false).ok()?;
    let Code::Rows(_, columns) = choice.function.code else { return None };
    let columns = match (columns, choice.args.as_slice()) {
        (Columns::One, _) => vec![(None, choice.ret.clone())],
        (Columns::Elements, [array]) => vec![(None, array.element()?.clone())],
        (Columns::Elements, _) => return None,
        (Columns::Named(list), _) => {
            let typed =
                |(name, ty): &(&str, &str)| Some((Some(name.to_string()), SqlType::from_name(ty)?));
            list.iter().map(typed).collect::<Option<_>>()?
        }
    };
    if choice.ret.is_row() && columns.len() == 1 {
        return None;
    }
    let args = args.iter().zip(&choice.args).map(|(arg, ty)| arg.as_type(ty));
    let mut pieces = vec![format!("{}(", quote_ident(name)).into()];
    pieces.extend(listed(args.collect::<Option<Vec<_>>>()?));
    pieces.push(")".into());
    Some((Deparsed::of(known(Kind::Atom, pieces, choice.ret)?), columns))
}

/// What a window of a query is made of, in parentheses.
pub fn deparse_window(window: &WindowSpec, within: Within<'_>, for_people: bool) -> Option<String> {
    let pieces = Deparser::of_query(within).window(window)?;
    Some(Printed::new(Kind::Atom, pieces)?.text_at(for_people, 8))
}

impl Within<'_> {
    /// A column by the nearest query that has one of this name.
    pub(super) fn column(&self, expr: &Expr) -> Option<Part> {
        let levels = std::iter::once(self.level).chain(self.around.iter().map(|level| &**level));
        levels.into_iter().find_map(|level| {
            let bound = super::deparse::bound(expr, &level.scope)?;
            let Node::Column(at) = bound.node() else { return None };
            let (column, table) = (level.scope.columns().get(*at)?, level.shown.get(*at)?);
            let text = format!("{}.{}", quote_ident(table), quote_ident(&column.name));
            Some(Part { printed: Printed::atom(text)?, ty: bound.ty().clone() })
        })
    }
}

impl Deparser<'_> {
    /// Expressions with queries in them.
    pub(super) fn with_query(&self, expr: &Expr) -> Option<Part> {
        let queries = self.query?.queries;
        match expr {
            Expr::Subquery(query) => {
                let (text, types) = queries.inner(query)?;
                let [ty] = <[SqlType; 1]>::try_from(types).ok()?;
                enclosed("(", text, ")", ty)
            }
            Expr::Exists { subquery, negated } => {
                let part = enclosed("(EXISTS (", queries.inner(subquery)?.0, "))", SqlType::Bool)?;
                if *negated { super::deparse::not(part) } else { Some(part) }
            }
            Expr::InSubquery { expr, subquery, negated } => {
                let part = self.compared(expr, &BinaryOperator::Eq, " IN (", subquery)?;
                if *negated { super::deparse::not(part) } else { Some(part) }
            }
            Expr::Function(Function { name, args: FunctionArguments::Subquery(query), .. }) => {
                let is_array = crate::object_name_parts(name) == ["array"];
                let (text, types) = queries.inner(query).filter(|_| is_array)?;
                let [ty] = <[SqlType; 1]>::try_from(types).ok()?;
                enclosed("ARRAY(", text, ")", ty.array_of())
            }
            _ => None,
        }
    }

    /// `a > ANY (SELECT ..)`.
    pub(super) fn with_any(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        (word, query): (&str, &Query),
    ) -> Option<Part> {
        let op = super::plain_operator(op).ok()?;
        let sign = operator_sign(&op)?;
        match (sign, word) {
            ("=", "ANY") => self.compared(left, &op, " IN (", query),
            _ => self.compared(left, &op, &format!(" {sign} {word} ("), query),
        }
    }

    /// A value, or a row of them, before the query that it is compared with.
    fn compared(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        word: &str,
        query: &Query,
    ) -> Option<Part> {
        let (text, types) = self.query?.queries.inner(query)?;
        let parts: Vec<&Expr> = match plain(left) {
            Expr::Tuple(parts) => parts.iter().collect(),
            one => vec![one],
        };
        if parts.len() != types.len() {
            return None;
        }
        let sign = operator_sign(op)?;
        let sides = parts.iter().zip(&types).map(|(part, ty)| {
            let value = self.read(part)?;
            let (own, _) = binary_types(value.ty(), sign, Some(ty))?;
            value.as_type(&own)
        });
        let mut list = listed(sides.collect::<Option<Vec<_>>>()?);
        if parts.len() > 1 {
            list.insert(0, "(".into());
            list.push(")".into());
        }
        let mut pieces = vec!["(".into()];
        pieces.extend(list);
        pieces.extend([word.into(), Piece::Lines(text), "))".into()]);
        known(Kind::Query, pieces, SqlType::Bool)
    }

    /// What EXCLUDE says of a frame: it stands before the keys, where it is no key.
    pub(super) fn exclusion(key: &Expr) -> Option<&'static str> {
        let Expr::UnaryOp { op: UnaryOperator::PGPrefixFactorial, expr } = key else { return None };
        let Expr::Value(mark) = &**expr else { return None };
        match mark.value.clone().into_string()?.as_str() {
            "row" => Some(" EXCLUDE CURRENT ROW"),
            "group" => Some(" EXCLUDE GROUP"),
            "ties" => Some(" EXCLUDE TIES"),
            _ => None,
        }
    }
}

fn enclosed(before: &str, text: String, behind: &str, ty: SqlType) -> Option<Part> {
    known(Kind::Query, vec![before.into(), Piece::Lines(text), behind.into()], ty)
}
