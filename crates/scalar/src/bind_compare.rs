//! Comparisons: which types meet, rows, IN, ANY and ALL.

use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator,
};

use crate::bind::{bind_unsettled, general_query_needed};
use crate::bind_call::bind_named;
use crate::conversion::{coerce, comparison_type, fold, settle};
use crate::syntax::{comparison, operator_name, plain_operator};
use crate::texts::blank_padded::{match_blank_padded, padded_list, without_padding};
use crate::texts::collated::{check_collated, comparable};
use crate::{BindContext, Bound, CmpOp, Node, QuantifiedOp, Scope, object_name_parts, resolve};

/// Compares two bound expressions, converting them as PostgreSQL does. A bare column stays bare
/// whenever possible, so that planners recognise `column = constant`.
///
/// # Errors
/// 42883 when the types do not compare.
pub fn compare_bound(
    op: CmpOp,
    left: Bound,
    right: Bound,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    // ROW(..) beside ROW(..) is compared field by field; a table's row is one value.
    if let (Node::Row(l, None), Node::Row(r, None)) = (left.node(), right.node()) {
        return compare_rows(op, l, r, ctx);
    }
    if is_shape(&left) || is_shape(&right) {
        // What is written so is no comparison by the order of values.
        return bind_named(op.symbol(), vec![left, right], true, ctx);
    }
    let (left, right) = match_sides(op.symbol(), left, right, ctx)?;
    if let Some(element) = left.ty().element()
        && is_without_order(element)
    {
        let what = match op {
            CmpOp::Eq | CmpOp::Ne => "an equality operator",
            _ => "a comparison function",
        };
        let text = format!("could not identify {what} for type {element}");
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, text));
    }
    if left.ty().is_row() {
        let operator = if matches!(op, CmpOp::Eq | CmpOp::Ne) { "equality" } else { "ordering" };
        left.ty().check_comparable(operator)?;
    }
    let (left, right) = comparable(op, left, right)?;
    fold(Bound::new(Node::Compare(op, left, right), SqlType::Bool))
}

/// Whether a value is a shape in the plane: `=` of these is an operator as any other.
pub(crate) fn is_shape(value: &Bound) -> bool {
    matches!(value.ty(), SqlType::Geometry(_))
}

/// Whether values of a type have no order, and none are equal as arrays and indexes mean it.
pub(crate) fn is_without_order(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Json | SqlType::Geometry(_)) || ty.is_unordered_text()
}

/// Converts both sides so that their values compare directly.
pub(crate) fn match_sides(
    symbol: &str,
    left: Bound,
    right: Bound,
    ctx: &mut dyn BindContext,
) -> SqlResult<(Bound, Bound)> {
    let unknown = SqlType::Unknown;
    let (left, right) = (row_beside(left, right.ty(), ctx)?, right);
    let right = row_beside(right, left.ty(), ctx)?;
    let (left, right) = (settle_row(left, ctx)?, settle_row(right, ctx)?);
    let (left, right) = match (*left.ty() == unknown, *right.ty() == unknown) {
        (true, true) => (
            settle(left, &SqlType::Text, CastContext::Implicit, ctx)?,
            settle(right, &SqlType::Text, CastContext::Implicit, ctx)?,
        ),
        (true, false) => {
            let ty = literal_type(right.ty());
            (settle(left, &ty, CastContext::Implicit, ctx)?, right)
        }
        (false, true) => {
            let ty = literal_type(left.ty());
            (left, settle(right, &ty, CastContext::Implicit, ctx)?)
        }
        (false, false) => (left, right),
    };
    if left.ty().is_integer() && right.ty().is_integer() {
        let right = narrow_constant(right, left.ty())?;
        let left = narrow_constant(left, right.ty())?;
        return Ok((left, right));
    }
    let no_operator =
        |l: &SqlType, r: &SqlType| resolve::no_match(symbol, &[l.clone(), r.clone()], true);
    if let (SqlType::Char(a @ 1..), SqlType::Char(b)) = (left.ty(), right.ty())
        && a == b
    {
        return Ok((left, right));
    }
    if matches!(left.ty(), SqlType::Char(_)) || matches!(right.ty(), SqlType::Char(_)) {
        if !left.ty().is_text_like() || !right.ty().is_text_like() {
            return Err(no_operator(left.ty(), right.ty()));
        }
        return match_blank_padded(left, right, ctx);
    }
    let Some(target) = comparison_type(left.ty(), right.ty()) else {
        return Err(no_operator(left.ty(), right.ty()));
    };
    if target.is_row() {
        return Ok((left, right));
    }
    let direct = |e: Bound, ctx: &mut dyn BindContext| {
        if e.ty().same_base(&target) || (e.ty().is_text_like() && target.is_text_like()) {
            return Ok(e);
        }
        coerce(e, &target, CastContext::Assignment, ctx)
    };
    Ok((direct(left, ctx)?, direct(right, ctx)?))
}

/// The lower bound of BETWEEN SYMMETRIC without the sign that the parser puts before it, for which
/// sqlparser has no form; `None` for a plain BETWEEN.
pub(crate) fn without_symmetric(low: &Expr) -> Option<Expr> {
    match low {
        Expr::UnaryOp { op: UnaryOperator::PGPrefixFactorial, expr } => Some((**expr).clone()),
        Expr::BinaryOp { left, op, right } => Some(Expr::BinaryOp {
            left: Box::new(without_symmetric(left)?),
            op: op.clone(),
            right: right.clone(),
        }),
        _ => None,
    }
}

/// The type an unknown literal takes beside a value of this type.
fn literal_type(other: &SqlType) -> SqlType {
    match other {
        SqlType::Varchar(_) | SqlType::Name | SqlType::CharByte => SqlType::Text,
        other => other.base(),
    }
}

/// An integer constant in the other side's type if it fits there.
fn narrow_constant(constant: Bound, to: &SqlType) -> SqlResult<Bound> {
    let Some(value) = constant.as_const() else { return Ok(constant) };
    let wide = match value {
        Datum::Int2(v) => i64::from(*v),
        Datum::Int4(v) => i64::from(*v),
        Datum::Int8(v) => *v,
        Datum::Null => return Ok(Bound::constant(Datum::Null, to.clone())),
        _ => return Ok(constant),
    };
    let fitted = match to {
        SqlType::Int2 => i16::try_from(wide).ok().map(Datum::Int2),
        SqlType::Int4 => i32::try_from(wide).ok().map(Datum::Int4),
        SqlType::Int8 => Some(Datum::Int8(wide)),
        _ => None,
    };
    Ok(match fitted {
        Some(value) => Bound::constant(value, to.clone()),
        None => constant,
    })
}

fn compare_rows(
    op: CmpOp,
    left: &[Bound],
    right: &[Bound],
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    if left.len() != right.len() {
        return Err(SqlError::syntax("unequal number of entries in row expressions"));
    }
    if left.is_empty() {
        return Err(SqlError::unsupported("cannot compare rows of zero length"));
    }
    let mut pairs = |op: CmpOp| -> SqlResult<Vec<Bound>> {
        left.iter().zip(right).map(|(l, r)| compare_bound(op, l.clone(), r.clone(), ctx)).collect()
    };
    match op {
        CmpOp::Eq => Ok(Bound::and(pairs(CmpOp::Eq)?)),
        CmpOp::Ne => Ok(Bound::or(pairs(CmpOp::Ne)?)),
        _ => {
            // (a, b) < (c, d)  is  a < c OR (a = c AND b < d).
            let strict = match op {
                CmpOp::Le => CmpOp::Lt,
                CmpOp::Ge => CmpOp::Gt,
                other => other,
            };
            let equal = pairs(CmpOp::Eq)?;
            let less = pairs(strict)?;
            let last = pairs(op)?.pop().expect("rows are not empty");
            let mut result = last;
            for at in (0..left.len() - 1).rev() {
                let tail = Bound::and(vec![equal[at].clone(), result]);
                result = Bound::or(vec![less[at].clone(), tail]);
            }
            Ok(result)
        }
    }
}

/// A side of a comparison. The fields of a row take their types from the fields beside them.
///
/// # Errors
/// As [`bind_unsettled`].
pub(crate) fn bind_side(expr: &Expr, scope: &Scope, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let fields = match expr {
        Expr::Nested(inner) => return bind_side(inner, scope, ctx),
        Expr::Tuple(parts) => Some(parts.iter().collect()),
        Expr::Function(function) => row_fields(function),
        _ => None,
    };
    let Some(fields): Option<Vec<&Expr>> = fields else {
        return bind_unsettled(expr, scope, ctx);
    };
    if let Some(bound) = ctx.intercept(expr, scope)? {
        return Ok(bound);
    }
    let fields = fields.iter().map(|e| bind_side(e, scope, ctx)).collect::<SqlResult<Vec<_>>>()?;
    Ok(Bound::new(Node::Row(fields, None), SqlType::Record))
}

/// The fields of `ROW(..)`.
pub fn row_fields(function: &Function) -> Option<Vec<&Expr>> {
    let [name]: [String; 1] = object_name_parts(&function.name).try_into().ok()?;
    let FunctionArguments::List(list) = &function.args else { return None };
    let field = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref e)) => Some(e),
        _ => None,
    };
    match name.as_str() {
        "row" => list.args.iter().map(field).collect(),
        _ => None,
    }
}

/// `ROW(..)` beside a value of a composite type is one, if it has as many fields.
fn row_beside(side: Bound, other: &SqlType, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    match (side.node(), other) {
        (Node::Row(fields, None), SqlType::Composite(ty)) if fields.len() == ty.fields.len() => {
            coerce(side, other, CastContext::Implicit, ctx)
        }
        _ => Ok(side),
    }
}

/// A row beside something else than a row: nothing says what its literals and parameters are.
fn settle_row(side: Bound, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let Node::Row(fields, None) = side.node() else { return Ok(side) };
    let text = |field: &Bound| match field.node() {
        Node::Row(_, None) => settle_row(field.clone(), ctx),
        _ => settle(field.clone(), &SqlType::Text, CastContext::Implicit, ctx),
    };
    let fields = fields.iter().map(text).collect::<SqlResult<Vec<_>>>()?;
    Ok(Bound::new(Node::Row(fields, None), SqlType::Record))
}

/// `a IS [NOT] DISTINCT FROM b`.
pub(crate) fn distinct_bound(
    a: Bound,
    b: Bound,
    not: bool,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    if let (Node::Row(l, None), Node::Row(r, None)) = (a.node(), b.node())
        && l.len() == r.len()
    {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (l, r) in l.iter().zip(r) {
            let (l, r) = match_sides("=", l.clone(), r.clone(), ctx)?;
            let (l, r) = comparable(CmpOp::Eq, l, r)?;
            left.push(l);
            right.push(r);
        }
        let row = |fields| Bound::new(Node::Row(fields, None), SqlType::Record);
        return Ok(Bound::new(Node::IsDistinct(row(left), row(right), not), SqlType::Bool));
    }
    if is_shape(&a) || is_shape(&b) {
        let nulls =
            [&a, &b].map(|side| Bound::new(Node::IsNull(side.clone(), false), SqlType::Bool));
        let equal = compare_bound(CmpOp::Eq, a, b, ctx)?;
        let both = Bound::and(nulls.to_vec());
        let same = fold(Bound::new(Node::Coalesce(vec![equal, both]), SqlType::Bool))?;
        return Ok(if not { same } else { same.negated() });
    }
    let (a, b) = match_sides("=", a, b, ctx)?;
    let (a, b) = comparable(CmpOp::Eq, a, b)?;
    fold(Bound::new(Node::IsDistinct(a, b, not), SqlType::Bool))
}

/// `expr [NOT] IN (list)`.
pub(crate) fn bind_in_list(
    expr: &Expr,
    list: &[Expr],
    negated: bool,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let needle = bind_side(expr, scope, ctx)?;
    let items = list.iter().map(|e| bind_side(e, scope, ctx)).collect::<SqlResult<Vec<_>>>()?;
    let needle = if *needle.ty() == SqlType::Unknown {
        // x IN (1, 2): the list tells the type of x.
        let types: Vec<&SqlType> = items.iter().map(Bound::ty).collect();
        let ty = crate::common_type(&types).unwrap_or(SqlType::Text);
        settle(needle, &ty, CastContext::Implicit, ctx)?
    } else {
        needle
    };
    let mut comparisons = Vec::with_capacity(items.len());
    for item in items {
        let (l, r) = match (needle.node(), item.node()) {
            _ if is_shape(&needle) => {
                let equal = compare_bound(CmpOp::Eq, needle.clone(), item, ctx)?;
                comparisons.push((None, equal));
                continue;
            }
            (Node::Row(..), Node::Row(..)) => {
                let equal = compare_bound(CmpOp::Eq, needle.clone(), item, ctx)?;
                comparisons.push((None, equal));
                continue;
            }
            _ => match_sides("=", needle.clone(), item, ctx)?,
        };
        let (l, r) = comparable(CmpOp::Eq, l, r)?;
        let same_needle = matches!(
            (l.node(), needle.node()),
            (Node::Column(a), Node::Column(b)) if a == b
        ) || l.as_const().is_some() && l.ty() == needle.ty()
            || l.is_unchanged(&needle);
        let item = if same_needle { Some(r.clone()) } else { None };
        comparisons.push((item, Bound::new(Node::Compare(CmpOp::Eq, l, r), SqlType::Bool)));
    }
    if comparisons.iter().all(|(item, _)| item.is_some()) && comparisons.len() > 1 {
        let items = comparisons.into_iter().filter_map(|(item, _)| item).collect();
        return fold(Bound::new(Node::InList(needle, items, negated), SqlType::Bool));
    }
    let any = Bound::or(comparisons.into_iter().map(|(_, e)| e).collect());
    Ok(if negated { any.negated() } else { any })
}

/// `left op ANY (array)` and ALL.
pub(crate) fn bind_any_all(
    left: &Expr,
    op: &BinaryOperator,
    right: &Expr,
    all: bool,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let op = &plain_operator(op)?;
    let mut inner = right;
    while let Expr::Nested(deeper) = inner {
        inner = deeper;
    }
    if matches!(inner, Expr::Subquery(_)) {
        return Err(general_query_needed("a subquery"));
    }
    let left = bind_unsettled(left, scope, ctx)?;
    let array = bind_unsettled(right, scope, ctx)?;
    let array = if *array.ty() == SqlType::Unknown {
        let element = match left.ty() {
            SqlType::Unknown => SqlType::Text,
            other => literal_type(other),
        };
        settle(array, &SqlType::Array(Box::new(element)), CastContext::Implicit, ctx)?
    } else {
        array
    };
    let Some(element) = array.ty().element().cloned() else {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            "op ANY/ALL (array) requires array on right side",
        ));
    };
    if left.collation().with(array.collation()).is_deterministic()
        && let (Some(CmpOp::Eq), false, Some(list)) =
            (comparison(op), all, padded_list(&left, &array))
    {
        return Ok(list);
    }
    let compared = comparison(op).filter(|_| !matches!(element, SqlType::Geometry(_)));
    let (quantified, left, array) = match compared {
        Some(cmp) => {
            let left = settle(left, &literal_type(&element), CastContext::Implicit, ctx)?;
            let both_integers = left.ty().is_integer() && element.is_integer();
            let target = comparison_type(left.ty(), &element).ok_or_else(|| {
                resolve::no_match(cmp.symbol(), &[left.ty().clone(), element.clone()], true)
            })?;
            let (left, array) = without_padding(left, array, ctx)?;
            let element = array.ty().element().unwrap_or(&element);
            let keep = |ty: &SqlType| {
                both_integers
                    || ty.same_base(&target)
                    || (ty.is_text_like() && target.is_text_like())
            };
            let left = if keep(left.ty()) {
                left
            } else {
                coerce(left, &target, CastContext::Assignment, ctx)?
            };
            let array = if keep(element) {
                array
            } else {
                let wanted = SqlType::Array(Box::new(target.clone()));
                coerce(array, &wanted, CastContext::Assignment, ctx)?
            };
            let (left, array) = comparable(cmp, left, array)?;
            (QuantifiedOp::Compare(cmp), left, array)
        }
        None => {
            let name = operator_name(op)
                .or_else(|| comparison(op).map(CmpOp::symbol))
                .ok_or_else(|| SqlError::unsupported(format!("operator {op} with ANY or ALL")))?;
            let left = settle(left, &SqlType::Text, CastContext::Implicit, ctx)?;
            let choice = resolve::resolve(name, &[left.ty().clone(), element.clone()], true)?;
            if choice.ret != SqlType::Bool {
                return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    "op ANY/ALL (array) requires operator to yield boolean",
                ));
            }
            let left = coerce(left, &choice.args[0], CastContext::Implicit, ctx)?;
            let wanted = SqlType::Array(Box::new(choice.args[1].clone()));
            let array = coerce(array, &wanted, CastContext::Implicit, ctx)?;
            let both = [left, array];
            check_collated(name, &both)?;
            let [left, array] = both;
            (QuantifiedOp::Function(choice.function), left, array)
        }
    };
    if let (QuantifiedOp::Compare(CmpOp::Eq), false) = (&quantified, all)
        && let Some(list) = as_list(&left, &array)?
    {
        return Ok(list);
    }
    let bound = Bound::new(Node::Quantified(quantified, left, array, all), SqlType::Bool);
    fold(bound)
}

/// `value = ANY (array)` of a constant array, as an IN list: planners know that form.
fn as_list(left: &Bound, array: &Bound) -> SqlResult<Option<Bound>> {
    let (Some(Datum::Array(values)), Some(element)) = (array.as_const(), array.ty().element())
    else {
        return Ok(None);
    };
    if values.items.is_empty() {
        return Ok(None);
    }
    let item = |v: &Datum| narrow_constant(Bound::constant(v.clone(), element.clone()), left.ty());
    let items = values.items.iter().map(item).collect::<SqlResult<Vec<_>>>()?;
    Ok(Some(Bound::new(Node::InList(left.clone(), items, false), SqlType::Bool)))
}
