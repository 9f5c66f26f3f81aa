//! Stored expressions as PostgreSQL's `pg_get_expr` prints them: every operation in parentheses,
//! every literal with the type that it has become, every conversion spelled out.
//!
//! ```text
//!   a > 1 AND d = 'x'             ((a > 1) AND ((d)::text = 'x'::text))      d varchar
//!   a IN (1, 2)                   (a = ANY (ARRAY[1, 2]))
//!   b LIKE 'x%'                   (b ~~ 'x%'::text)
//!   e BETWEEN 0 AND 1             ((e >= (0)::numeric) AND (e <= (1)::numeric))   e numeric
//! ```
//! Tools compare these texts with those that they have sent, after PostgreSQL's rules. The tree is
//! the parsed one, since binding folds constants and forgets how things were said. Each node is
//! read once: what binds to tell its type is one operation over columns that stand for its parts.

use std::rc::Rc;

use braid_types::{IntervalFields, SqlType, Style, TypeCategory, quote_ident};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, Subscript, TrimWhereField,
    UnaryOperator, Value,
};

use super::inner_queries::Within;
use super::interval_literal::typmod_of;
use super::literals::{SPECIAL, cast_name, number, quoted, typed_literal};
use super::operator_names::{comparison, operator_name};
use super::printed::{Kind, Level, Piece, Printed};
use crate::bind::rotated;
use crate::registry::ArgType;
use crate::type_name::name_with_precision;
use crate::{
    Bound, Node, ParamTypes, Refinement, Scope, bind, common_type, ident_name, resolve, sql_type_of,
};

/// An expression over these columns that is understood.
pub struct Deparsed(Rc<Printed>, SqlType);

impl Deparsed {
    pub(super) fn of(part: Part) -> Deparsed {
        Deparsed(part.printed, part.ty)
    }

    /// Its type.
    pub fn ty(&self) -> &SqlType {
        &self.1
    }

    /// Its text: for people it has no more parentheses than they need.
    pub fn text(&self, for_people: bool) -> String {
        self.0.text(for_people)
    }

    /// The same within a query, whose expressions are further to the right.
    pub fn text_in_query(&self, for_people: bool) -> String {
        self.0.text_at(for_people, 8)
    }

    /// The same where it becomes of another type without being asked.
    pub fn text_below_cast(&self, for_people: bool) -> String {
        let shown = self.text_in_query(for_people);
        match for_people && !self.0.is_simple(Kind::Converted { by_function: true }, true) {
            true => format!("({shown})"),
            false => shown,
        }
    }

    /// The same as a key in a list of keys; a column needs no parentheses there.
    pub fn text_as_key(&self, for_people: bool, is_column: bool) -> String {
        let shown = self.text_in_query(for_people);
        match !is_column && self.0.is_enclosed_as_key(for_people) {
            true => format!("({shown})"),
            false => shown,
        }
    }

    /// Whether it looks like a call, which stands without parentheses in an index.
    pub fn is_call(&self) -> bool {
        self.0.is_call()
    }
}

/// Reads an expression over these columns; `None` for what this does not know, which is then best
/// shown as it was written.
pub fn deparse(expr: &Expr, scope: &Scope) -> Option<Deparsed> {
    Deparser { scope, names: Names::Bare, query: None }.known(expr).map(Deparsed::of)
}

/// The same of a condition of a domain over this type, whose value is called VALUE.
pub fn deparse_of_domain(expr: &Expr, base: &SqlType) -> Option<Deparsed> {
    let scope = Scope::table("", None, [("value".to_string(), base.clone(), true)]);
    Deparser { scope: &scope, names: Names::Value, query: None }.known(expr).map(Deparsed::of)
}

/// What columns are called.
#[derive(Clone, Copy, PartialEq)]
enum Names {
    /// By their names.
    Bare,
    /// With their relations: it stands in a query.
    Qualified,
    /// There is one, VALUE.
    Value,
}

pub(super) struct Deparser<'a> {
    scope: &'a Scope,
    names: Names,
    /// The query that it stands in.
    pub(super) query: Option<Within<'a>>,
}

/// An expression with its type.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) printed: Rc<Printed>,
    pub(super) ty: SqlType,
}

/// What an expression says.
#[derive(Clone)]
pub(super) enum Read {
    /// A text in quotes, which has no type yet.
    Literal(String),
    /// The same of NULL.
    Null,
    Known(Part),
}

impl Read {
    /// `None`: it has none yet.
    pub(super) fn ty(&self) -> Option<&SqlType> {
        match self {
            Read::Known(part) => Some(&part.ty),
            _ => None,
        }
    }

    /// Where a value of a type is wanted.
    pub(super) fn as_type(&self, want: &SqlType) -> Option<Rc<Printed>> {
        match self {
            // A name of an object has another value later.
            Read::Literal(_) if want.names_objects() => None,
            Read::Literal(text) => Printed::atom(typed_literal(text, want)),
            Read::Null => Printed::atom(format!("NULL::{}", cast_name(want))),
            Read::Known(part) if is_same(&part.ty, want) => Some(part.printed.clone()),
            Read::Known(part) => converted(part, want, cast_name(want)),
        }
    }
}

pub(super) fn known(kind: Kind, pieces: Vec<Piece>, ty: SqlType) -> Option<Part> {
    Some(Part { printed: Printed::new(kind, pieces)?, ty })
}

fn converted(part: &Part, want: &SqlType, name: String) -> Option<Rc<Printed>> {
    let is_padded = matches!(part.ty, SqlType::Char(_));
    let is_text = |ty: &SqlType| ty.category() == TypeCategory::String;
    let is_view = part.ty.element().is_some()
        || !is_padded && (is_text(&part.ty) || is_text(want))
        || want.names_objects();
    let pieces = vec![Piece::Operand(part.printed.clone()), format!("::{name}").into()];
    Printed::new(Kind::Converted { by_function: !is_view }, pieces)
}

pub(super) fn plain(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => plain(inner),
        other => other,
    }
}

/// What an operator makes of a type: texts of all kinds are compared as `text`.
pub(super) fn operand(ty: &SqlType) -> SqlType {
    match ty {
        SqlType::Varchar(_) => SqlType::Text,
        SqlType::Char(_) => SqlType::Char(0),
        SqlType::Numeric(_) => SqlType::Numeric(None),
        other => other.clone(),
    }
}

fn is_same(a: &SqlType, b: &SqlType) -> bool {
    a.base_name() == b.base_name()
}

fn is_integer(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8)
}

/// Parts with what stands between them.
pub(super) fn listed(parts: impl IntoIterator<Item = Rc<Printed>>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for part in parts {
        if !out.is_empty() {
            out.push(", ".into());
        }
        out.push(Piece::Whole(part));
    }
    out
}

/// Something in front of, and behind, what a list has.
fn around(before: impl Into<Piece>, list: Vec<Piece>, behind: &str) -> Vec<Piece> {
    std::iter::once(before.into()).chain(list).chain([behind.into()]).collect()
}

/// The common type of all of these, which texts of no type take.
fn common(parts: &[Read]) -> Option<SqlType> {
    let mut common: Option<SqlType> = None;
    for ty in parts.iter().filter_map(Read::ty) {
        common = match common {
            Some(a) if is_same(&a, ty) => Some(a),
            Some(a) => Some(common_type(&[&a, ty])?),
            None => Some(ty.clone()),
        };
    }
    Some(common.unwrap_or(SqlType::Text))
}

fn array(items: &[Read], of: &SqlType) -> Option<Part> {
    let items: Option<Vec<_>> = items.iter().map(|item| item.as_type(of)).collect();
    known(Kind::Atom, around("ARRAY[", listed(items?), "]"), of.array_of())
}

/// The types that the sides of an operator are taken as, by the rules that are known here.
fn sides(l: Option<&SqlType>, sign: &str, r: Option<&SqlType>) -> Option<(SqlType, SqlType)> {
    let is_comparison = matches!(sign, "=" | "<>" | "<" | "<=" | ">" | ">=");
    let is_of_text =
        matches!(sign, "||" | "~" | "~*" | "!~" | "!~*" | "~~" | "!~~" | "~~*" | "!~~*");
    let (l, r) = match (l, r) {
        (Some(l), Some(r)) => (operand(l), operand(r)),
        (None, None) => (SqlType::Text, SqlType::Text),
        (Some(known), None) | (None, Some(known)) => {
            let known = operand(known);
            let is_text = known.category() == TypeCategory::String;
            // Elsewhere the literal need not be of the type of the other side.
            let is_number = known.category() == TypeCategory::Numeric;
            if !(is_comparison || is_of_text && is_text || is_number) {
                return None;
            }
            (known.clone(), known)
        }
    };
    if is_of_text && [&l, &r].iter().any(|ty| ty.category() != TypeCategory::String) {
        return None;
    }
    if is_same(&l, &r) || is_integer(&l) && is_integer(&r) {
        return Some((l, r));
    }
    let class = l.category();
    if class != r.category() {
        return match (sign, &l, &r) {
            // These have operators of their own.
            ("+" | "-", SqlType::Date, SqlType::Int4)
            | (
                "+" | "-",
                SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz,
                SqlType::Interval,
            ) => Some((l, r)),
            _ => None,
        };
    }
    match class {
        TypeCategory::Numeric => {
            let is_float = |ty: &SqlType| matches!(ty, SqlType::Float4 | SqlType::Float8);
            let common = match is_float(&l) || is_float(&r) {
                true if is_float(&l) && is_float(&r) => return Some((l, r)),
                // Each of them is compared with the other as it is.
                true if is_float(&l) => return Some((l, SqlType::Float8)),
                true => return Some((SqlType::Float8, r)),
                false => SqlType::Numeric(None),
            };
            Some((common.clone(), common))
        }
        TypeCategory::DateTime if is_comparison || sign == "-" => Some((l, r)),
        TypeCategory::String => Some((SqlType::Text, SqlType::Text)),
        _ => None,
    }
}

/// The same by the operators that there are.
fn sides_found(l: Option<&SqlType>, sign: &str, r: Option<&SqlType>) -> Option<(SqlType, SqlType)> {
    let given = [l, r].map(|ty| ty.map_or(SqlType::Unknown, operand));
    if given.iter().all(|ty| *ty == SqlType::Unknown) {
        return None;
    }
    let choice = resolve(sign, &given, true).ok()?;
    let [l, r]: [SqlType; 2] = choice.args.try_into().ok()?;
    Some((operand(&l), operand(&r)))
}

/// A constant of a type with a length or digits: in the place of its bare type.
fn sized(constant: &str, ty: &SqlType, name: &str) -> Option<Rc<Printed>> {
    let bare = format!("::{}", cast_name(ty));
    let value = constant.strip_suffix(&bare).unwrap_or(constant);
    Printed::atom(format!("{value}::{name}"))
}

fn is_number(expr: &Expr) -> bool {
    matches!(plain(expr), Expr::Value(v) if matches!(v.value, Value::Number(..)))
}

/// Whether it is called with the digits of its seconds, if with anything.
fn is_time_of_now(name: &str) -> bool {
    ["current_timestamp", "current_time", "localtimestamp", "localtime"].contains(&name)
}

/// Columns that stand for parts, and what is written of them.
fn stand_ins(parts: &[Read]) -> (Scope, Vec<Expr>) {
    let name = |at: usize| format!("p{at}");
    let columns = parts.iter().enumerate().filter_map(|(at, part)| {
        let ty = part.ty()?.clone();
        Some((name(at), ty, true))
    });
    let scope = Scope::table("", None, columns);
    let exprs = parts.iter().enumerate().map(|(at, part)| match part {
        Read::Known(_) => Expr::Identifier(Ident::with_quote('"', name(at))),
        Read::Literal(text) => Expr::Value(Value::SingleQuotedString(text.clone()).into()),
        Read::Null => Expr::Value(Value::Null.into()),
    });
    let exprs = exprs.collect();
    (scope, exprs)
}

pub(super) fn bound(expr: &Expr, scope: &Scope) -> Option<Bound> {
    bind(expr, scope, &mut ParamTypes::default()).ok()
}

/// An operator by its name.
pub(super) fn operator_sign(op: &BinaryOperator) -> Option<&str> {
    comparison(op).map(|c| c.symbol()).or_else(|| operator_name(op))
}

/// The types that the sides of an operator are taken as.
pub(super) fn binary_types(
    l: Option<&SqlType>,
    sign: &str,
    r: Option<&SqlType>,
) -> Option<(SqlType, SqlType)> {
    sides(l, sign, r).or_else(|| sides_found(l, sign, r))
}

fn binary(l: &Read, op: &BinaryOperator, r: &Read) -> Option<Part> {
    let sign = operator_sign(op)?;
    let (left, right) = binary_types(l.ty(), sign, r.ty())?;
    let ty = match comparison(op) {
        Some(_) => SqlType::Bool,
        None => {
            let typed = |read: &Read, ty: &SqlType| match read {
                Read::Known(part) => Read::Known(Part { ty: ty.clone(), ..part.clone() }),
                other => other.clone(),
            };
            let (scope, exprs) = stand_ins(&[typed(l, &left), typed(r, &right)]);
            let [a, b]: [Expr; 2] = exprs.try_into().ok()?;
            let whole = Expr::BinaryOp { left: Box::new(a), op: op.clone(), right: Box::new(b) };
            bound(&whole, &scope)?.ty().clone()
        }
    };
    let level = match sign {
        "+" | "-" => Some(Level::Sum),
        "*" | "/" | "%" => Some(Level::Product),
        _ => None,
    };
    let (left, right) = (l.as_type(&left)?, r.as_type(&right)?);
    let sign = format!(" {sign} ").into();
    known(Kind::Operator(level), vec![Piece::Operand(left), sign, Piece::Operand(right)], ty)
}

fn distinct(l: &Read, r: &Read) -> Option<Part> {
    let (left, right) = binary_types(l.ty(), "=", r.ty())?;
    let (left, right) = (l.as_type(&left)?, r.as_type(&right)?);
    let pieces = vec![Piece::Operand(left), " IS DISTINCT FROM ".into(), Piece::Operand(right)];
    known(Kind::Test, pieces, SqlType::Bool)
}

pub(super) fn not(part: Part) -> Option<Part> {
    known(Kind::Not, vec!["NOT ".into(), Piece::Operand(part.printed)], SqlType::Bool)
}

/// A call of a function by its name.
fn called(name: &str, args: &[Read]) -> Option<Part> {
    let (scope, exprs) = stand_ins(args);
    let args_of = |e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e));
    let list = FunctionArgumentList {
        duplicate_treatment: None,
        args: exprs.into_iter().map(args_of).collect(),
        clauses: Vec::new(),
    };
    let function = Expr::Function(Function {
        name: ObjectName::from(vec![Ident::with_quote('"', name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    });
    let bound = bound(&function, &scope)?;
    let types: Vec<Option<SqlType>> = match bound.node() {
        Node::Call(f, given) if given.len() == args.len() && !f.variadic => {
            let exact = |ty: &ArgType| match ty {
                ArgType::Exact(ty) => Some(ty.clone()),
                _ => None,
            };
            f.args.iter().map(exact).collect()
        }
        // It was computed: what has no type was a text, as nearly always.
        Node::Const(_) => vec![None; args.len()],
        _ => return None,
    };
    let args = args.iter().enumerate().map(|(at, arg)| match (types.get(at)?, arg) {
        (Some(ty), _) => arg.as_type(ty),
        (None, Read::Known(part)) => Some(part.printed.clone()),
        (None, _) => arg.as_type(&SqlType::Text),
    });
    let args: Option<Vec<_>> = args.collect();
    let pieces = around(format!("{}(", quote_ident(name)), listed(args?), ")");
    known(Kind::Atom, pieces, bound.ty().clone())
}

impl<'a> Deparser<'a> {
    pub(super) fn of_query(within: Within<'a>) -> Deparser<'a> {
        Deparser { scope: &within.level.scope, names: Names::Qualified, query: Some(within) }
    }

    /// Values that become of one type, which is the second; those that have one yet keep theirs.
    pub(super) fn alike<'e>(
        &self,
        values: impl Iterator<Item = &'e Expr>,
    ) -> Option<(Vec<Part>, SqlType)> {
        let values = self.read_all(values)?;
        let ty = common(&values)?;
        let part = |value: &Read| match value {
            Read::Known(part) => Some(part.clone()),
            literal => Some(Part { printed: literal.as_type(&ty)?, ty: ty.clone() }),
        };
        Some((values.iter().map(part).collect::<Option<_>>()?, ty))
    }

    /// An expression by itself: a text in quotes is one.
    pub(super) fn known(&self, expr: &Expr) -> Option<Part> {
        Some(match self.read(expr)? {
            Read::Known(part) => part,
            other => Part { printed: other.as_type(&SqlType::Text)?, ty: SqlType::Text },
        })
    }

    fn read_all<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Option<Vec<Read>> {
        exprs.into_iter().map(|e| self.read(e)).collect()
    }

    pub(super) fn read(&self, expr: &Expr) -> Option<Read> {
        let digits = |digits: &str, minus| {
            let (text, ty) = number(digits, minus)?;
            Some(Part { printed: Printed::atom(text)?, ty })
        };
        let part = match expr {
            Expr::Nested(inner) => return self.read(inner),
            Expr::Identifier(name) => self.column(expr, name)?,
            Expr::CompoundIdentifier(names) => self.column(expr, names.last()?)?,
            Expr::Value(v) => match &v.value {
                Value::Number(n, _) => digits(&n.to_string(), false)?,
                Value::Boolean(value) => {
                    Part { printed: Printed::atom(value.to_string())?, ty: SqlType::Bool }
                }
                Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                    return Some(Read::Literal(text.clone()));
                }
                Value::Null => return Some(Read::Null),
                _ => return None,
            },
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match plain(expr) {
                Expr::Value(v) => match &v.value {
                    Value::Number(n, _) => digits(&n.to_string(), true)?,
                    _ => return None,
                },
                other => {
                    let part = self.known(other)?;
                    let pieces = vec!["- ".into(), Piece::Operand(part.printed)];
                    known(Kind::Operator(None), pieces, operand(&part.ty))?
                }
            },
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => not(self.known(expr)?)?,
            Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => {
                self.chain(expr)?
            }
            Expr::BinaryOp { left, op, right } => {
                binary(&self.read(left)?, &super::plain_operator(op).ok()?, &self.read(right)?)?
            }
            Expr::Cast { expr: inner, data_type, format: None, .. } => {
                self.cast(expr, inner, data_type)?
            }
            Expr::TypedString(_) | Expr::Interval(_) => {
                let bound = bound(expr, self.scope)?;
                let Node::Const(value) = bound.node() else { return None };
                let shown = value.to_text(Style::utc())?;
                let fields = match expr {
                    Expr::Interval(literal) => typmod_of(literal),
                    _ => None,
                };
                let text = match fields {
                    Some(typmod) => {
                        format!("'{shown}'::{}", name_with_precision(bound.ty().oid(), typmod)?)
                    }
                    None => quoted(&shown, bound.ty()),
                };
                Part { printed: Printed::atom(text)?, ty: bound.ty().clone() }
            }
            other => {
                let known = self.test(other).or_else(|| self.with_query(other));
                known.or_else(|| self.call(other))?
            }
        };
        Some(Read::Known(part))
    }

    /// Whether it is a text in quotes, or NULL.
    pub(super) fn is_untyped(&self, expr: &Expr) -> bool {
        self.read(expr).is_some_and(|read| read.ty().is_none())
    }

    fn column(&self, expr: &Expr, name: &Ident) -> Option<Part> {
        if let Some(query) = self.query {
            return query.column(expr);
        }
        let bound = bound(expr, self.scope)?;
        let Node::Column(_) = bound.node() else { return None };
        let text = match self.names {
            Names::Value => "VALUE".to_string(),
            Names::Bare | Names::Qualified => quote_ident(&ident_name(name)).to_string(),
        };
        Some(Part { printed: Printed::atom(text)?, ty: bound.ty().clone() })
    }

    fn cast(&self, whole: &Expr, expr: &Expr, data_type: &DataType) -> Option<Part> {
        let refined = crate::refinement_of(data_type, None).ok()?;
        let to = sql_type_of(data_type, None).ok().or_else(|| self.type_of_user(data_type))?;
        if refined.precision.is_some() || refined.fields.is_some() {
            return self.with_digits(whole, expr, (&to, &refined));
        }
        // Its elements are converted.
        if let (Expr::Array(made), SqlType::Array(element)) = (plain(expr), &to)
            && !has_modifier(&to)
        {
            return array(&self.read_all(&made.elem)?, element);
        }
        let read = self.read(expr)?;
        if !has_modifier(&to) {
            return Some(Part { printed: read.as_type(&to)?, ty: to });
        }
        // The length is a conversion of its own, which is not seen of a constant of the type.
        let printed = match read {
            Read::Null => return None,
            Read::Literal(_) if matches!(to, SqlType::Bit(_)) => return None,
            Read::Literal(text) => sized(&typed_literal(&text, &to), &to, &to.name())?,
            Read::Known(part) if is_number(expr) && is_same(&part.ty, &to) => {
                sized(&part.printed.text(false), &to, &to.name())?
            }
            Read::Known(part) => converted(&part, &to, to.name())?,
        };
        Some(Part { printed, ty: to })
    }

    /// A conversion to a time or an interval that keeps some digits or fields.
    fn with_digits(
        &self,
        whole: &Expr,
        expr: &Expr,
        (to, kept): (&SqlType, &Refinement),
    ) -> Option<Part> {
        let typmod = match to {
            SqlType::Interval => IntervalFields::typmod(kept.fields, kept.precision),
            _ => i32::from(kept.precision?),
        };
        let name = name_with_precision(to.oid(), typmod)?;
        let printed = match (self.read(expr)?, to) {
            (Read::Null, _) => return None,
            (Read::Known(part), _) => converted(&part, to, name)?,
            (Read::Literal(_), SqlType::Interval) => {
                let value = bound(whole, self.scope)?;
                let Node::Const(value) = value.node() else { return None };
                Printed::atom(format!("'{}'::{name}", value.to_text(Style::utc())?))?
            }
            (Read::Literal(text), _) => sized(&typed_literal(&text, to), to, &name)?,
        };
        Some(Part { printed, ty: to.clone() })
    }

    /// A type of a user by its name: one that a column has is the one that is meant.
    fn type_of_user(&self, data_type: &DataType) -> Option<SqlType> {
        let name = crate::user_type_name(data_type)?.pop()?;
        let types = self.scope.columns().iter().map(|c| c.ty.element().unwrap_or(&c.ty));
        let of_user = types.filter(|ty| matches!(ty, SqlType::Enum(_)));
        let mut named = of_user.filter(|ty| ty.internal_name() == name);
        named.next().cloned()
    }

    /// `a AND b AND c`, which is one thing with three parts.
    fn chain(&self, expr: &Expr) -> Option<Part> {
        let Expr::BinaryOp { op, .. } = expr else { return None };
        let mut parts = Vec::new();
        let mut rest = expr;
        while let Expr::BinaryOp { left, op: other, right } = plain(rest)
            && other == op
        {
            parts.push(self.known(right)?);
            rest = left;
        }
        parts.push(self.known(rest)?);
        parts.reverse();
        let kind = if *op == BinaryOperator::And { Kind::And } else { Kind::Or };
        connected(kind, parts)
    }

    /// What is true, false or unknown of a value.
    fn test(&self, expr: &Expr) -> Option<Part> {
        let is = |e: &Expr, what: &str| {
            let pieces = vec![Piece::Operand(self.known(e)?.printed), format!(" IS {what}").into()];
            known(Kind::Test, pieces, SqlType::Bool)
        };
        let match_of = |negated: bool, expr: &Expr, pattern: &Expr, ops: [BinaryOperator; 2]| {
            binary(&self.read(expr)?, &ops[usize::from(negated)], &self.read(pattern)?)
        };
        use BinaryOperator::{PGILikeMatch, PGLikeMatch, PGNotILikeMatch, PGNotLikeMatch};
        match expr {
            Expr::IsNull(e) => is(e, "NULL"),
            Expr::IsNotNull(e) => is(e, "NOT NULL"),
            Expr::IsTrue(e) => is(e, "TRUE"),
            Expr::IsNotTrue(e) => is(e, "NOT TRUE"),
            Expr::IsFalse(e) => is(e, "FALSE"),
            Expr::IsNotFalse(e) => is(e, "NOT FALSE"),
            Expr::IsUnknown(e) => is(e, "UNKNOWN"),
            Expr::IsNotUnknown(e) => is(e, "NOT UNKNOWN"),
            Expr::IsDistinctFrom(a, b) => match rotated(a, b, false) {
                Some(whole) => self.known(&whole),
                None => distinct(&self.read(a)?, &self.read(b)?),
            },
            Expr::IsNotDistinctFrom(a, b) => match rotated(a, b, true) {
                Some(whole) => self.known(&whole),
                None => not(distinct(&self.read(a)?, &self.read(b)?)?),
            },
            Expr::Between { expr, negated, low, high } => {
                let (above, below, both) = match negated {
                    false => (BinaryOperator::GtEq, BinaryOperator::LtEq, Kind::And),
                    true => (BinaryOperator::Lt, BinaryOperator::Gt, Kind::Or),
                };
                let value = self.read(expr)?;
                let above = binary(&value, &above, &self.read(low)?)?;
                connected(both, vec![above, binary(&value, &below, &self.read(high)?)?])
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                match_of(*negated, expr, pattern, [PGLikeMatch, PGNotLikeMatch])
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                match_of(*negated, expr, pattern, [PGILikeMatch, PGNotILikeMatch])
            }
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Expr::AnyOp { left, compare_op, right, .. } => {
                self.quantified(left, compare_op, right, "ANY")
            }
            Expr::AllOp { left, compare_op, right } => {
                self.quantified(left, compare_op, right, "ALL")
            }
            _ => None,
        }
    }

    fn in_list(&self, expr: &Expr, list: &[Expr], negated: bool) -> Option<Part> {
        let (op, word) = match negated {
            true => (BinaryOperator::NotEq, "ALL"),
            false => (BinaryOperator::Eq, "ANY"),
        };
        let needle = self.read(expr)?;
        if let [one] = list {
            return binary(&needle, &op, &self.read(one)?);
        }
        // Columns in the list would stand beside it.
        let is_constant = |item: &Expr| {
            matches!(plain(item), Expr::Value(_))
                || bound(item, self.scope).is_some_and(|b| b.columns().is_empty())
        };
        if !list.iter().all(is_constant) {
            return None;
        }
        let items = self.read_all(list)?;
        let all: Vec<Read> = std::iter::once(needle.clone()).chain(items.iter().cloned()).collect();
        let mut common = common(&all)?;
        if matches!(common, SqlType::Numeric(_)) {
            common = SqlType::Numeric(None);
        }
        over_array(&needle, "=", word, negated, &array(&items, &common)?)
    }

    fn quantified(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        word: &str,
    ) -> Option<Part> {
        if let Expr::Subquery(query) = plain(right) {
            return self.with_any(left, op, (word, &**query));
        }
        let op = super::plain_operator(op).ok()?;
        let sign = operator_sign(&op)?;
        let needle = self.read(left)?;
        let array = match self.read(right)? {
            Read::Known(array) => array,
            Read::Null => return None,
            literal => {
                let of = operand(needle.ty()?).array_of();
                Part { printed: literal.as_type(&of)?, ty: of }
            }
        };
        over_array(&needle, sign, word, false, &array)
    }

    fn call(&self, expr: &Expr) -> Option<Part> {
        match expr {
            Expr::Function(function) => self.function(function),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Array(made) => {
                let items = self.read_all(&made.elem)?;
                array(&items, &common(&items)?)
            }
            Expr::Ceil { expr, .. } => called("ceil", &[self.read(expr)?]),
            Expr::Floor { expr, .. } => called("floor", &[self.read(expr)?]),
            Expr::CompoundFieldAccess { root, access_chain } => self.element(root, access_chain),
            other => self.with_syntax(other),
        }
    }

    /// `a[1]` of an array or a document.
    fn element(&self, root: &Expr, access: &[AccessExpr]) -> Option<Part> {
        let [AccessExpr::Subscript(Subscript::Index { index })] = access else { return None };
        let (array, index) = (self.known(plain(root))?, self.read(index)?);
        let (index, ty) = match &array.ty {
            SqlType::Array(of) => (index.as_type(&SqlType::Int4)?, (**of).clone()),
            SqlType::Jsonb => match index.ty() {
                Some(SqlType::Int4) => (index.as_type(&SqlType::Int4)?, SqlType::Jsonb),
                _ => (index.as_type(&SqlType::Text)?, SqlType::Jsonb),
            },
            _ => return None,
        };
        if !matches!(plain(root), Expr::Identifier(_)) {
            return None;
        }
        let pieces = vec![Piece::Whole(array.printed), "[".into(), Piece::Whole(index), "]".into()];
        known(Kind::Atom, pieces, ty)
    }

    /// Calls with words between their arguments.
    fn with_syntax(&self, expr: &Expr) -> Option<Part> {
        match expr {
            Expr::Extract { field, expr, .. } => {
                let from = format!("EXTRACT({} FROM ", crate::bind::field_name(field));
                let of = vec![Piece::Whole(self.known(expr)?.printed)];
                known(Kind::Atom, around(from, of, ")"), SqlType::Numeric(None))
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                let zone = self.read(time_zone)?.as_type(&SqlType::Text)?;
                let of = self.known(timestamp)?;
                let ty = match &of.ty {
                    SqlType::Timestamp => SqlType::TimestampTz,
                    SqlType::TimestampTz => SqlType::Timestamp,
                    _ => return None,
                };
                let (of, zone) = (Piece::Operand(of.printed), Piece::Operand(zone));
                known(Kind::Syntax, vec![of, " AT TIME ZONE ".into(), zone], ty)
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                let side = match trim_where {
                    None | Some(TrimWhereField::Both) => "BOTH",
                    Some(TrimWhereField::Leading) => "LEADING",
                    Some(TrimWhereField::Trailing) => "TRAILING",
                };
                let mut pieces: Vec<Piece> = vec![format!("TRIM({side} ").into()];
                if let Some(what) = trim_what {
                    pieces.push(Piece::Whole(self.read(what)?.as_type(&SqlType::Text)?));
                    pieces.push(" ".into());
                }
                let of = [Piece::Whole(self.known(expr)?.printed), ")".into()];
                pieces.push("FROM ".into());
                pieces.extend(of);
                known(Kind::Atom, pieces, SqlType::Text)
            }
            Expr::Substring {
                special: false,
                expr,
                substring_from: Some(from),
                substring_for,
                ..
            } => {
                let mut pieces = vec!["SUBSTRING(".into(), Piece::Whole(self.known(expr)?.printed)];
                let parts = [(" FROM ", Some(from)), (" FOR ", substring_for.as_ref())];
                for (word, part) in parts {
                    if let Some(part) = part {
                        let part = self.read(part)?.as_type(&SqlType::Int4)?;
                        pieces.extend([word.into(), Piece::Whole(part)]);
                    }
                }
                pieces.push(")".into());
                known(Kind::Atom, pieces, SqlType::Text)
            }
            Expr::Position { expr, r#in } => {
                let needle = self.read(expr)?.as_type(&SqlType::Text)?;
                let of = self.read(r#in)?.as_type(&SqlType::Text)?;
                let mut pieces: Vec<Piece> = vec!["POSITION((".into(), Piece::Whole(needle)];
                pieces.extend([") IN (".into(), Piece::Whole(of), ")".into(), ")".into()]);
                known(Kind::Atom, pieces, SqlType::Int4)
            }
            Expr::Collate { expr, collation } => {
                let part = self.known(expr)?;
                let name = quote_ident(&ident_name(collation.0.last()?.as_ident()?)).to_string();
                let pieces = vec![Piece::Operand(part.printed), format!(" COLLATE {name}").into()];
                known(Kind::Other, pieces, part.ty)
            }
            _ => None,
        }
    }

    fn function(&self, function: &Function) -> Option<Part> {
        let [part] = function.name.0.as_slice() else { return None };
        let name = ident_name(part.as_ident()?);
        let is_without_arguments = match &function.args {
            FunctionArguments::None => true,
            FunctionArguments::List(list) => list.args.is_empty(),
            FunctionArguments::Subquery(_) => false,
        };
        if is_without_arguments && SPECIAL.contains(&name.as_str()) {
            let ty = bound(&Expr::Function(function.clone()), self.scope)?.ty().clone();
            return Some(Part { printed: Printed::atom(name.to_uppercase())?, ty });
        }
        let FunctionArguments::List(list) = &function.args else { return None };
        if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(digits)))] =
            list.args.as_slice()
            && is_time_of_now(&name)
        {
            let ty = bound(&Expr::Function(function.clone()), self.scope)?.ty().clone();
            let text = format!("{}({digits})", name.to_uppercase());
            return Some(Part { printed: Printed::atom(text)?, ty });
        }
        let is_of_rows = crate::is_aggregate(&name) || function.over.is_some();
        if self.names == Names::Qualified && is_of_rows {
            return self.aggregate(&name, function, list);
        }
        let is_plain = list.duplicate_treatment.is_none()
            && list.clauses.is_empty()
            && function.filter.is_none()
            && function.over.is_none()
            && function.within_group.is_empty();
        let args = list.args.iter().map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e),
            _ => None,
        });
        let args: Vec<&Expr> = args.collect::<Option<_>>().filter(|_| is_plain)?;
        let args = self.read_all(args)?;
        if name == "grouping" && self.query.is_some() {
            let keys = args.iter().map(|arg| match arg {
                Read::Known(key) => Some(key.printed.clone()),
                _ => None,
            });
            let pieces = around("GROUPING(", listed(keys.collect::<Option<Vec<_>>>()?), ")");
            return known(Kind::Atom, pieces, SqlType::Int4);
        }
        if matches!(name.as_str(), "coalesce" | "greatest" | "least" | "nullif") {
            let common = common(&args)?;
            let args: Option<Vec<_>> = args.iter().map(|a| a.as_type(&common)).collect();
            let pieces = around(format!("{}(", name.to_uppercase()), listed(args?), ")");
            return known(Kind::Atom, pieces, common);
        }
        called(&name, &args)
    }

    fn case(
        &self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Option<Part> {
        let results = self.read_all(conditions.iter().map(|c| &c.result).chain(otherwise))?;
        let common = common(&results)?;
        let mut pieces: Vec<Piece> = vec!["\nCASE".into()];
        let operand = match operand {
            Some(operand) => Some(self.read(operand)?),
            None => None,
        };
        if let Some(operand) = &operand {
            pieces.extend([" ".into(), Piece::Whole(operand.as_type(operand.ty()?)?)]);
        }
        for (CaseWhen { condition, .. }, result) in conditions.iter().zip(&results) {
            let when = match &operand {
                Some(operand) => {
                    let condition = self.read(condition)?;
                    condition.as_type(&sides(operand.ty(), "=", condition.ty())?.1)?
                }
                None => self.known(condition)?.printed,
            };
            pieces.extend(["\n    WHEN ".into(), Piece::Whole(when), " THEN ".into()]);
            pieces.push(Piece::Whole(result.as_type(&common)?));
        }
        pieces.push("\n    ELSE ".into());
        pieces.push(match otherwise.and_then(|_| results.last()) {
            Some(otherwise) => Piece::Whole(otherwise.as_type(&common)?),
            None => format!("NULL::{}", cast_name(&common)).into(),
        });
        pieces.push("\nEND".into());
        known(Kind::Case, pieces, common)
    }
}

/// Conditions that all, or of which some, hold.
fn connected(kind: Kind, parts: Vec<Part>) -> Option<Part> {
    let word = if kind == Kind::And { " AND " } else { " OR " };
    let mut pieces: Vec<Piece> = Vec::new();
    for part in parts {
        if !pieces.is_empty() {
            pieces.push(word.into());
        }
        pieces.push(Piece::Operand(part.printed));
    }
    known(kind, pieces, SqlType::Bool)
}

/// `x = ANY (array)`.
fn over_array(needle: &Read, sign: &str, word: &str, negated: bool, array: &Part) -> Option<Part> {
    let of = array.ty.element()?;
    let sign = if negated { "<>" } else { sign };
    let own = needle.ty().map_or(SqlType::Text, operand);
    let is_text = |ty: &SqlType| ty.category() == TypeCategory::String;
    let is_array_of_char = matches!(of, SqlType::Varchar(_));
    let (left, array) = if is_array_of_char && is_text(&own) {
        let array = Read::Known(array.clone()).as_type(&SqlType::Text.array_of())?;
        (needle.as_type(&SqlType::Text)?, array)
    } else if is_same(&own, of) || is_integer(&own) && is_integer(of) {
        (needle.as_type(&own)?, array.printed.clone())
    } else if sides(Some(&own), sign, Some(of)).is_some_and(|(_, right)| is_same(&right, of)) {
        (needle.as_type(of)?, array.printed.clone())
    } else {
        let (left, right) = sides_found(Some(&own), sign, Some(of))?;
        if !is_same(&right, of) {
            return None;
        }
        (needle.as_type(&left)?, array.printed.clone())
    };
    let sign = format!(" {sign} {word} (").into();
    let pieces = vec![Piece::Operand(left), sign, Piece::Operand(array), ")".into()];
    known(Kind::Other, pieces, SqlType::Bool)
}

/// A conversion to such a type is two in PostgreSQL's tree.
fn has_modifier(ty: &SqlType) -> bool {
    match ty {
        SqlType::Varchar(Some(_)) | SqlType::Numeric(Some(_)) | SqlType::Varbit(Some(_)) => true,
        SqlType::Char(n) | SqlType::Bit(n) => *n > 0,
        SqlType::Array(element) => has_modifier(element),
        _ => false,
    }
}
