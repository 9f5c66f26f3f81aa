//! Conversions inside expressions: casts that need the session, common types, unknown literals.

use braid_types::{
    CastContext, DateOrder, Datum, SqlError, SqlResult, SqlState, SqlType, TypeCategory, cast,
    cast_exists,
};

use crate::{BindContext, Bound, EvalContext, Node};

/// Oids of the system tables that clients name by them (`'pg_class'::regclass`).
const SYSTEM_OIDS: &[(&str, u32)] = &[
    ("pg_type", 1247),
    ("pg_attribute", 1249),
    ("pg_proc", 1255),
    ("pg_class", 1259),
    ("pg_authid", 1260),
    ("pg_database", 1262),
    ("pg_tablespace", 1213),
    ("pg_am", 2601),
    ("pg_attrdef", 2604),
    ("pg_constraint", 2606),
    ("pg_description", 2609),
    ("pg_index", 2610),
    ("pg_language", 2612),
    ("pg_namespace", 2615),
    ("pg_opclass", 2616),
    ("pg_operator", 2617),
    ("pg_rewrite", 2618),
    ("pg_trigger", 2620),
    ("pg_sequence", 2224),
    ("pg_extension", 3079),
    ("pg_policy", 3256),
    ("pg_statistic_ext", 3381),
    ("pg_collation", 3456),
    ("pg_event_trigger", 3466),
    ("pg_publication", 6104),
];

fn system_oid(name: &str) -> Option<u32> {
    let bare = name.strip_prefix("pg_catalog.").unwrap_or(name);
    SYSTEM_OIDS.iter().find(|(n, _)| *n == bare).map(|(_, oid)| *oid)
}

/// Converts one value; looks names of relations up in the session.
pub fn convert(
    value: &Datum,
    from: &SqlType,
    to: &SqlType,
    context: CastContext,
    ctx: &EvalContext,
) -> SqlResult<Datum> {
    match (value, to) {
        (Datum::Text(name), SqlType::Regclass) => {
            let name = name.trim();
            if name == "-" {
                return Ok(Datum::Oid(0));
            }
            if let Ok(oid) = name.parse() {
                return Ok(Datum::Oid(oid));
            }
            match ctx.session.relation_oid(name)?.or_else(|| system_oid(name)) {
                Some(oid) => Ok(Datum::Oid(oid)),
                None => Err(SqlError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{name}\" does not exist"),
                )),
            }
        }
        (Datum::Oid(oid), to) if *from == SqlType::Regclass && to.is_text_like() => {
            Ok(Datum::text(match (oid, ctx.session.relation_name(*oid)) {
                (_, Some(name)) => name,
                (0, None) => "-".to_string(),
                (_, None) => match SYSTEM_OIDS.iter().find(|(_, o)| o == oid) {
                    Some((name, _)) => name.to_string(),
                    None => oid.to_string(),
                },
            }))
        }
        _ => cast(value, from, to, context, ctx.style),
    }
}

/// Gives an expression of unknown type (literal, NULL, parameter) a type. Others stay.
pub(crate) fn settle(
    expr: Bound,
    to: &SqlType,
    context: CastContext,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    if *expr.ty() != SqlType::Unknown {
        return Ok(expr);
    }
    match expr.node() {
        Node::Param(index) => {
            let index = *index;
            let wanted = to.base();
            ctx.params().decide(index, &wanted);
            let decided = ctx.params().get(index).cloned().unwrap_or(wanted);
            let param = Bound::new(Node::Param(index), decided.clone());
            if decided == *to {
                return Ok(param);
            }
            if decided.same_base(to) {
                return Ok(Bound::new(Node::Cast(param, context), to.clone()));
            }
            coerce(param, to, CastContext::Explicit, ctx)
        }
        Node::Const(Datum::Null) => Ok(Bound::constant(Datum::Null, to.clone())),
        Node::Const(_) => fold_literal(Bound::new(Node::Cast(expr.clone(), context), to.clone())),
        _ => Ok(Bound::new(Node::Cast(expr, context), to.clone())),
    }
}

/// Converts an expression to a type in a context.
///
/// # Errors
/// 42846 when there is no such cast, 42804 for assignment.
pub(crate) fn coerce(
    expr: Bound,
    to: &SqlType,
    context: CastContext,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    if *expr.ty() == SqlType::Unknown {
        return settle(expr, to, context, ctx);
    }
    if expr.ty() == to {
        return Ok(expr);
    }
    // Text without limit takes any text as it is, but for the padding of char(n).
    let plain = |t: &SqlType| matches!(t, SqlType::Text | SqlType::Varchar(_) | SqlType::Name);
    if plain(expr.ty()) && matches!(to, SqlType::Text | SqlType::Varchar(None)) {
        return Ok(expr.relabeled(to.clone()));
    }
    if expr.ty().is_oid_like() && to.is_oid_like() {
        return Ok(expr.relabeled(to.clone()));
    }
    if expr.ty().same_base(to) && to.typmod() < 0 {
        return Ok(expr.relabeled(to.clone()));
    }
    match cast_exists(expr.ty(), to) {
        Some(least) if least <= context => fold(Bound::new(Node::Cast(expr, context), to.clone())),
        _ if context == CastContext::Assignment => Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("expression is of type {} but should be {}", expr.ty(), to),
        )
        .with_hint("You will need to rewrite or cast the expression.")),
        _ => Err(SqlError::new(
            SqlState::CANNOT_COERCE,
            format!("cannot cast type {} to {}", expr.ty(), to),
        )),
    }
}

/// A literal is read when its type is known: a malformed one is an error wherever it stands.
fn fold_literal(expr: Bound) -> SqlResult<Bound> {
    if expr.volatility() != crate::Volatility::Immutable && !styleless(&expr) {
        return refuse_malformed(expr);
    }
    let value = expr.eval(&[], &EvalContext::constant())?;
    Ok(Bound::constant(value, expr.ty().clone()))
}

/// A date that no `DateStyle` can read is an error at once.
fn refuse_malformed(cast: Bound) -> SqlResult<Bound> {
    let dated = [SqlType::Date, SqlType::Timestamp, SqlType::TimestampTz, SqlType::Interval];
    if !dated.contains(cast.ty()) {
        return Ok(cast);
    }
    let mut failure = None;
    for order in [DateOrder::Mdy, DateOrder::Dmy, DateOrder::Ymd] {
        let mut ctx = EvalContext::constant();
        ctx.style.order = order;
        match cast.eval(&[], &ctx) {
            Ok(_) => return Ok(cast),
            Err(e) => failure = Some(e),
        }
    }
    failure.map_or(Ok(cast), Err)
}

/// Whether a date or interval literal reads alike under every `DateStyle` and `IntervalStyle`.
fn styleless(cast: &Bound) -> bool {
    let Node::Cast(inner, _) = cast.node() else { return false };
    let Some(Datum::Text(text)) = inner.as_const() else { return false };
    let text = text.trim();
    match cast.ty() {
        SqlType::Interval => !text.starts_with('-'),
        SqlType::Date | SqlType::Timestamp => {
            let iso =
                |b: &[u8]| b.len() > 4 && b[..4].iter().all(u8::is_ascii_digit) && b[4] == b'-';
            iso(text.as_bytes()) || !text.contains(|c: char| c.is_ascii_digit())
        }
        _ => false,
    }
}

/// Evaluates at once what is immutable and has only constant parts. What fails stays as it is: it
/// is an error only if its value is wanted, which CASE and others decide.
pub(crate) fn fold(expr: Bound) -> SqlResult<Bound> {
    let constant_parts = expr.children().iter().all(|c| c.as_const().is_some());
    // A strict function of a NULL is NULL, whatever its other arguments are.
    if let Node::Call(function, args) = expr.node()
        && function.strict
        && args.iter().any(|a| a.as_const().is_some_and(Datum::is_null))
    {
        return Ok(Bound::constant(Datum::Null, expr.ty().clone()));
    }
    if let Node::Compare(_, a, b) = expr.node()
        && [a, b].iter().any(|side| side.as_const().is_some_and(Datum::is_null))
    {
        return Ok(Bound::constant(Datum::Null, SqlType::Bool));
    }
    if !constant_parts
        || expr.as_const().is_some()
        || expr.volatility() != crate::Volatility::Immutable
        || matches!(expr.node(), Node::Column(_) | Node::Param(_))
    {
        return Ok(expr);
    }
    Ok(match expr.eval(&[], &EvalContext::constant()) {
        Ok(value) => Bound::constant(value, expr.ty().clone()),
        Err(_) => expr,
    })
}

/// The type that UNION, CASE, COALESCE, ARRAY and VALUES give to their parts together; `None` when
/// the types do not go together.
pub fn common_type(types: &[&SqlType]) -> Option<SqlType> {
    let known: Vec<&SqlType> = types.iter().copied().filter(|t| **t != SqlType::Unknown).collect();
    let Some(first) = known.first() else { return Some(SqlType::Text) };
    if known.iter().all(|t| t == first) {
        return Some((*first).clone());
    }
    let mut best = first.base();
    for ty in &known[1..] {
        if ty.same_base(&best) {
            continue;
        }
        if ty.category() != best.category() {
            return None;
        }
        if !best.is_preferred()
            && cast_exists(&best, ty) == Some(CastContext::Implicit)
            && cast_exists(ty, &best) != Some(CastContext::Implicit)
        {
            best = ty.base();
        } else if cast_exists(ty, &best) != Some(CastContext::Implicit) {
            if cast_exists(&best, ty) != Some(CastContext::Implicit) {
                return None;
            }
            best = ty.base();
        } else if ty.is_preferred() && !best.is_preferred() {
            best = ty.base();
        }
    }
    Some(best)
}

/// Brings expressions to their common type. `what` names the construct in the error.
pub(crate) fn unify(
    parts: Vec<Bound>,
    what: &str,
    ctx: &mut dyn BindContext,
) -> SqlResult<(Vec<Bound>, SqlType)> {
    let types: Vec<&SqlType> = parts.iter().map(Bound::ty).collect();
    let Some(target) = common_type(&types) else {
        let first = types.iter().find(|t| ***t != SqlType::Unknown).expect("a known type");
        let other = types
            .iter()
            .find(|t| ***t != SqlType::Unknown && t.category() != first.category())
            .unwrap_or(&types[types.len() - 1]);
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("{what} types {first} and {other} cannot be matched"),
        ));
    };
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        out.push(coerce(part, &target, CastContext::Implicit, ctx)?);
    }
    Ok((out, target))
}

/// The type both sides of a comparison are brought to; `None` if they do not compare.
pub(crate) fn comparison_type(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    use SqlType as T;
    if *left == T::Json || *right == T::Json {
        return None;
    }
    if left.same_base(right) {
        return Some(left.base());
    }
    let number = |t: &T| t.category() == TypeCategory::Numeric && !t.is_oid_like();
    let float = |t: &T| matches!(t, T::Float4 | T::Float8);
    match (left, right) {
        (l, r) if l.is_oid_like() && r.is_oid_like() => Some(T::Oid),
        (l, r) if (l.is_oid_like() && r.is_integer()) || (l.is_integer() && r.is_oid_like()) => {
            Some(T::Int8)
        }
        (T::Regclass, r) if r.is_text_like() => Some(T::Regclass),
        (l, T::Regclass) if l.is_text_like() => Some(T::Regclass),
        (l, r) if number(l) && number(r) => Some(if float(l) || float(r) {
            T::Float8
        } else if matches!(l, T::Numeric(_)) || matches!(r, T::Numeric(_)) {
            T::Numeric(None)
        } else {
            T::Int8
        }),
        (l, r) if l.is_text_like() && r.is_text_like() => Some(T::Text),
        (T::Date, T::Timestamp) | (T::Timestamp, T::Date) => Some(T::Timestamp),
        (T::Date | T::Timestamp | T::TimestampTz, T::TimestampTz)
        | (T::TimestampTz, T::Date | T::Timestamp) => Some(T::TimestampTz),
        (T::Time, T::Interval) | (T::Interval, T::Time) => Some(T::Interval),
        (T::Array(a), T::Array(b)) => Some(T::Array(Box::new(comparison_type(a, b)?))),
        _ => None,
    }
}
