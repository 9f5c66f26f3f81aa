//! Conversions inside expressions: casts that need the session, common types, unknown literals.

use std::sync::Arc;

use braid_types::{
    ArrayValue, CastContext, CompositeType, DateOrder, Datum, IntervalForm, MICROS_PER_DAY,
    SqlError, SqlResult, SqlState, SqlType, SystemRelation, TimeZone, TypeCategory, cast,
    cast_exists, system_relation, system_relation_named,
};

use sqlparser::ast::Expr;

use crate::bind_compare::is_without_order;
use crate::functions::populate::populate;
use crate::type_name::written_type;
use crate::{BindContext, Bound, EvalContext, Node, beginning};

/// The oid of a relation of the system itself, with or without its schema.
pub fn system_oid(name: &str) -> Option<u32> {
    system_relation_named(name).map(|relation| relation.oid)
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
        (Datum::Json(_) | Datum::Jsonb(_), SqlType::Composite(_)) => populate(value, to, ctx),
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
                (_, None) => {
                    system_relation(*oid).map_or_else(|| oid.to_string(), SystemRelation::shown)
                }
            }))
        }
        (Datum::Text(name), SqlType::Regtype) => match cast(value, from, to, context, ctx.style) {
            Err(e) => match ctx.session.type_oid(name) {
                Some(oid) => Ok(Datum::Oid(oid)),
                None => written_type(name).unwrap_or(Err(e)).map(|ty| Datum::Oid(ty.oid())),
            },
            found => found,
        },
        (Datum::Oid(oid), to) if *from == SqlType::Regtype && to.is_text_like() => {
            match ctx.session.type_name(*oid) {
                Some(name) => Ok(Datum::text(name)),
                None => cast(value, from, to, context, ctx.style),
            }
        }
        (Datum::Text(name), to) if to.names_objects() => named_object(name.trim(), to, ctx),
        (Datum::Oid(oid), to) if from.names_objects() && to.is_text_like() => {
            let asked = [Datum::text(from.name()), Datum::Oid(*oid)];
            match ctx.session.catalog_function("regout", &asked)? {
                Some(name) => Ok(name),
                None if *oid == 0 => Ok(Datum::text("-")),
                None => Ok(Datum::text(oid.to_string())),
            }
        }
        (Datum::Array(array), to) if let Some(own) = names_elements(from, to) => {
            convert_names(array, own, to, context, ctx)
        }
        (Datum::Text(text), SqlType::Array(element)) if element.names_objects() => {
            let of_texts = SqlType::Text.array_of();
            let texts = Datum::parse(text, &of_texts, ctx.style)?;
            convert(&texts, &of_texts, to, context, ctx)
        }
        _ => cast(value, from, to, context, ctx.style),
    }
}

/// An array of names of objects from an array of texts, or the other way, or as text.
fn convert_names(
    array: &ArrayValue,
    own: &SqlType,
    to: &SqlType,
    context: CastContext,
    ctx: &EvalContext,
) -> SqlResult<Datum> {
    let element = to.element().unwrap_or(&SqlType::Text);
    let items = array.items.iter().map(|item| convert(item, own, element, context, ctx));
    let items = items.collect::<SqlResult<Vec<_>>>()?;
    let made = ArrayValue::of(element.clone(), items, &array.dimensions());
    let made = Datum::Array(Arc::new(made));
    match to.element() {
        Some(_) => Ok(made),
        None => cast(&made, &SqlType::Text.array_of(), to, context, ctx.style),
    }
}

/// The type of an array's elements if they are names of objects, or become some.
fn names_elements<'a>(from: &'a SqlType, to: &SqlType) -> Option<&'a SqlType> {
    let own = from.element()?;
    let named = own.names_objects() && to.element().unwrap_or(to).is_text_like();
    let becoming = own.is_text_like() && to.element().is_some_and(SqlType::names_objects);
    (named || becoming).then_some(own)
}

/// The oid of a schema, role or function that is named, or written as a number.
fn named_object(name: &str, to: &SqlType, ctx: &EvalContext) -> SqlResult<Datum> {
    if name == "-" {
        return Ok(Datum::Oid(0));
    }
    if let Ok(oid) = name.parse() {
        return Ok(Datum::Oid(oid));
    }
    let asked = [Datum::text(to.name()), Datum::text(name)];
    match ctx.session.catalog_function("regin", &asked)? {
        Some(found) => Ok(found),
        None => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("the name \"{name}\" cannot be looked up here"),
        )),
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
    if let (SqlType::Composite(ty), Node::Row(parts, _), SqlType::Record) =
        (to, expr.node(), expr.ty())
    {
        return row_as(ty, parts, context, ctx);
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
    let expr = if to.is_text_like() && expr.ty().is_row() { as_written(expr)? } else { expr };
    match cast_exists(expr.ty(), to) {
        Some(least) if least <= context => fold(Bound::new(Node::Cast(expr, context), to.clone())),
        _ if context == CastContext::Assignment => Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            // Who knows the column's name says it (`named_column`).
            format!(
                "column is of type {} but expression is of type {}",
                to.base_name(),
                expr.ty().base_name()
            ),
        )
        .with_hint("You will need to rewrite or cast the expression.")),
        _ => Err(SqlError::new(
            SqlState::CANNOT_COERCE,
            format!("cannot cast type {} to {}", expr.ty().base_name(), to.base_name()),
        )),
    }
}

/// Functions that write their arguments of any type as text, or as JSON.
const WRITING: &[&str] = &[
    "concat",
    "concat_ws",
    "format",
    "quote_literal",
    "quote_nullable",
    "array_to_string",
    "to_json",
    "to_jsonb",
    "row_to_json",
    "array_to_json",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
    "jsonb_object_agg",
];

/// The arguments of a call of a function. Values do not know whether they are an oid or the name
/// of what has it; types do, so what is written as text becomes text here.
pub fn written_arguments(name: &str, args: Vec<Bound>) -> SqlResult<Vec<Bound>> {
    let text_like = |arg: &Bound| arg.ty().is_text_like() || *arg.ty() == SqlType::Unknown;
    let joined = name == "||" && args.iter().any(text_like);
    match joined || WRITING.contains(&name) {
        true => args.into_iter().map(as_written).collect(),
        false => Ok(args),
    }
}

/// A value with names in the places of the oids of `regclass` and its like.
fn as_written(value: Bound) -> SqlResult<Bound> {
    Ok(written(&value)?.unwrap_or(value))
}

/// The same; `None` for a value that has none.
fn written(value: &Bound) -> SqlResult<Option<Bound>> {
    let cast = |to| {
        let cast = Bound::new(Node::Cast(value.clone(), CastContext::Explicit), to);
        fold(cast).map(Some)
    };
    match (value.node(), value.ty()) {
        (_, ty) if ty.names_objects() => cast(SqlType::Text),
        (_, SqlType::Array(element)) if element.names_objects() => cast(SqlType::Text.array_of()),
        (Node::Row(parts, names), _) => {
            let shown = parts.iter().map(written).collect::<SqlResult<Vec<_>>>()?;
            if shown.iter().all(Option::is_none) {
                return Ok(None);
            }
            let parts = shown.into_iter().zip(parts);
            let parts = parts.map(|(shown, part)| shown.unwrap_or_else(|| part.clone()));
            let row = Node::Row(parts.collect(), names.clone());
            Ok(Some(Bound::new(row, SqlType::Record)))
        }
        // A row of a table that an outer join may leave out.
        (Node::Case(branches, Some(row)), ty) if ty.is_row() => Ok(written(row)?.map(|shown| {
            let ty = shown.ty().clone();
            Bound::new(Node::Case(branches.clone(), Some(shown)), ty)
        })),
        _ => Ok(None),
    }
}

/// `ROW(..)` as a value of a composite type: each field becomes one of its field's type.
fn row_as(
    ty: &Arc<CompositeType>,
    parts: &[Bound],
    context: CastContext,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    // NULL is of any type.
    let null = |part: &Bound| part.as_const().is_some_and(Datum::is_null);
    let typed = parts.iter().enumerate().map(|(at, part)| match ty.fields.get(at) {
        Some(field) if null(part) => Bound::constant(Datum::Null, field.ty.clone()),
        _ => part.clone(),
    });
    let parts: Vec<Bound> = typed.collect();
    ty.check_row(&parts.iter().map(Bound::ty).collect::<Vec<_>>(), context)?;
    let fields = parts.iter().zip(&ty.fields);
    let fields = fields.map(|(part, field)| coerce(part.clone(), &field.ty, context, ctx));
    let row = Node::Row(fields.collect::<SqlResult<_>>()?, Some(ty.names().clone()));
    fold(Bound::new(row, SqlType::Composite(ty.clone())))
}

/// A literal is read when its type is known: a malformed one is an error wherever it stands.
fn fold_literal(expr: Bound) -> SqlResult<Bound> {
    if expr.volatility() != crate::Volatility::Immutable && !styleless(&expr) {
        return refuse_malformed(expr);
    }
    let value = expr.eval(&[], &EvalContext::constant())?;
    Ok(same_collation(Bound::constant(value, expr.ty().clone()), &expr))
}

/// A value that stands for an expression.
fn same_collation(value: Bound, expr: &Bound) -> Bound {
    value.with_collation(expr.collation().clone())
}

fn is_of_ranges(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Range(_) | SqlType::Multirange(_))
}

/// A date that no `DateStyle` can read is an error at once.
fn refuse_malformed(cast: Bound) -> SqlResult<Bound> {
    let dated = [
        SqlType::Date,
        SqlType::Time,
        SqlType::TimeTz,
        SqlType::Timestamp,
        SqlType::TimestampTz,
        SqlType::Interval,
    ];
    let of_values = cast.ty().element().unwrap_or(cast.ty());
    if !dated.contains(of_values) && !is_of_ranges(of_values) {
        return Ok(cast);
    }
    let mut failure = None;
    for order in [DateOrder::Mdy, DateOrder::Dmy, DateOrder::Ymd] {
        let mut ctx = EvalContext::constant();
        ctx.style.order = order;
        match cast.eval(&[], &ctx) {
            Ok(_) => return Ok(cast),
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    failure.map_or(Ok(cast), Err)
}

/// Whether a date or interval literal reads alike under every `DateStyle` and `IntervalStyle`.
fn styleless(cast: &Bound) -> bool {
    let Node::Cast(inner, _) = cast.node() else { return false };
    let Some(Datum::Text(text)) = inner.as_const() else { return false };
    reads_alike(text.trim(), cast.ty()) || alike_everywhere(cast).is_some()
}

/// The value of an expression if it is the same in sessions that have nothing in common.
fn alike_everywhere(expr: &Bound) -> Option<Datum> {
    let read = |order, zone: &str, interval, (days, float_digits): (i64, i8)| {
        let mut ctx = EvalContext::constant();
        (ctx.style.order, ctx.style.interval) = (order, interval);
        ctx.style.zone = TimeZone::parse(zone)?;
        ctx.style.now = days * MICROS_PER_DAY + days;
        (ctx.style.float_digits, ctx.style.bytea_escape) = (float_digits, float_digits <= 0);
        expr.eval(&[], &ctx).ok()
    };
    // Equal intervals may differ in their fields.
    let same =
        |a: &Datum, b: Option<Datum>| b.is_some_and(|b| format!("{a:?}") == format!("{b:?}"));
    let first = read(DateOrder::Mdy, "UTC", IntervalForm::Postgres, (0, 1))?;
    let alike = same(&first, read(DateOrder::Dmy, "Asia/Kolkata", IntervalForm::Sql, (3_001, 0)))
        && same(&first, read(DateOrder::Ymd, "America/New_York", IntervalForm::Iso, (7_003, -15)));
    alike.then_some(first)
}

/// Whether nothing in a constant expression looks at the session but how floats and bytes are
/// written. PostgreSQL computes such an expression when it plans.
fn only_shown(expr: &Bound) -> bool {
    let own = match expr.node() {
        Node::Column(_) | Node::Param(_) | Node::Apply(..) => false,
        Node::Call(function, _) => function.volatility == crate::Volatility::Immutable,
        Node::Cast(inner, _) => {
            let shown = |ty: &SqlType| {
                matches!(
                    ty,
                    SqlType::Float4 | SqlType::Float8 | SqlType::Bytea | SqlType::Geometry(_)
                )
            };
            !expr.ty().names_objects() && shown(inner.ty())
                || !crate::bound::zone_matters(inner.ty(), expr.ty())
        }
        _ => true,
    };
    own && expr.children().into_iter().all(only_shown)
}

/// Words that mean another date or time at each moment.
const NOW_WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

fn depends_on_now(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| NOW_WORDS.iter().any(|now| word.eq_ignore_ascii_case(now)))
}

/// Whether that can be told from the text: of most literals, without reading them several times.
fn reads_alike(text: &str, ty: &SqlType) -> bool {
    let iso = |b: &[u8]| {
        let digits = b.iter().take_while(|c| c.is_ascii_digit()).count();
        (4..=7).contains(&digits) && b.get(digits) == Some(&b'-')
    };
    match ty {
        SqlType::Time => !depends_on_now(text),
        // The style may say for which fields a sign in front is meant.
        SqlType::Interval => !text.starts_with('-'),
        SqlType::Date | SqlType::Timestamp => {
            // `today` is another day tomorrow.
            let lasting = !text.contains(|c: char| c.is_ascii_digit()) && !depends_on_now(text);
            iso(text.as_bytes()) || lasting
        }
        SqlType::TimestampTz => {
            let zoned = |time: &str| time.contains(['+', '-']) || time.ends_with('Z');
            let written = iso(text.as_bytes()) && text.get(10..).is_some_and(zoned);
            written || matches!(text, "infinity" | "-infinity")
        }
        SqlType::Array(element) => {
            let inside = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
            let plain = |piece: &str| piece.trim() == "NULL" || reads_alike(piece.trim(), element);
            inside.is_some_and(|t| {
                !t.contains(['{', '"', '\\']) && (t.is_empty() || t.split(',').all(plain))
            })
        }
        _ => false,
    }
}

/// Evaluates at once what is immutable and has only constant parts. What fails stays as it is: it
/// is an error only if its value is wanted, which CASE and others decide.
pub(crate) fn fold(expr: Bound) -> SqlResult<Bound> {
    let constant_parts = expr.children().iter().all(|c| c.as_const().is_some());
    if let Some(decided) = connective(&expr) {
        return Ok(decided);
    }
    if null_anyway(&expr) {
        return Ok(same_collation(Bound::constant(Datum::Null, expr.ty().clone()), &expr));
    }
    if expr.volatility() == crate::Volatility::Stable
        && only_shown(&expr)
        && let Some(value) = alike_everywhere(&expr)
    {
        return Ok(same_collation(Bound::constant(value, expr.ty().clone()), &expr));
    }
    if !constant_parts
        || expr.as_const().is_some()
        || expr.volatility() != crate::Volatility::Immutable
        || matches!(expr.node(), Node::Column(_) | Node::Param(_))
        || matches!(expr.node(), Node::Call(f, _) if UNFOLDED.contains(&f.name))
    {
        return Ok(expr);
    }
    Ok(match expr.eval(&[], &EvalContext::folding()) {
        Ok(value) => same_collation(Bound::constant(value, expr.ty().clone()), &expr),
        Err(_) => expr,
    })
}

/// Whether a NULL among the parts decides the value, so that the others are not computed. A part
/// that is constant and fails is computed all the same: PostgreSQL folds it first, and fails.
fn null_anyway(expr: &Bound) -> bool {
    let strict = match expr.node() {
        // What a variadic function repeats are elements of one array.
        Node::Call(f, args) if f.strict && f.variadic => f.args.len() - 1..args.len(),
        Node::Call(f, args) if f.strict => args.len()..args.len(),
        Node::Compare(..) => 2..2,
        Node::Cast(..) => 1..1,
        _ => return false,
    };
    let parts = expr.children();
    parts[..strict.start].iter().any(|p| is_null(p)) && !parts.into_iter().any(fails_always)
}

fn is_null(expr: &Bound) -> bool {
    expr.as_const().is_some_and(Datum::is_null)
}

/// The value of an AND or OR that one of its parts decides.
fn connective(expr: &Bound) -> Option<Bound> {
    let (parts, deciding) = match expr.node() {
        Node::And(parts) => (parts, false),
        Node::Or(parts) => (parts, true),
        _ => return None,
    };
    let decides = |p: &Bound| matches!(p.as_const(), Some(Datum::Bool(b)) if *b == deciding);
    if parts.iter().any(decides) && !parts.iter().any(fails_always) {
        return Some(Bound::boolean(deciding));
    }
    None
}

/// Functions that PostgreSQL does not fold, although their value depends on no setting here: what
/// is NULL by them decides nothing before it is computed.
const UNFOLDED: &[&str] = &[
    "array_to_json",
    "array_to_string",
    "concat",
    "concat_ws",
    "convert_from",
    "convert_to",
    "format",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "make_timestamptz",
    "quote_literal",
    "quote_nullable",
    "row_to_json",
    "to_char",
    "to_date",
    "to_json",
    "to_jsonb",
    "to_number",
    "to_timestamp",
];

/// Whether PostgreSQL computes an expression when it plans.
fn folded_there(expr: &Bound) -> bool {
    let own = match expr.node() {
        Node::Const(_) => return true,
        Node::Column(_) | Node::Param(_) | Node::Apply(..) => false,
        // A literal is read when its type is known.
        Node::Cast(inner, _) if *inner.ty() == SqlType::Unknown => true,
        Node::Cast(inner, _) => !reads_settings(inner.ty(), expr.ty()),
        Node::Call(f, args) if f.name == "||" => {
            args.iter().all(|a| !reads_settings(a.ty(), &SqlType::Text))
        }
        Node::Call(f, args) if f.name == "date_trunc" && *args[1].ty() == SqlType::TimestampTz => {
            false
        }
        Node::Call(f, _) => {
            f.volatility == crate::Volatility::Immutable && !UNFOLDED.contains(&f.name)
        }
        _ => true,
    };
    own && expr.children().into_iter().all(folded_there)
}

/// Whether a conversion is no constant in PostgreSQL: dates and times are read and shown by
/// settings, of times only `now` is.
fn reads_settings(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    let shown = |t: &T| {
        matches!(t, T::Date | T::Timestamp | T::TimestampTz | T::Interval | T::Money | T::Range(_))
    };
    let read = |t: &T| shown(t) || matches!(t, T::Time | T::TimeTz);
    let zoned = |t: &T| *t == T::TimestampTz;
    let array = |t: &T| matches!(t, T::Array(_) | T::Composite(_));
    (shown(from) && to.is_text_like())
        || (from.names_objects() != to.names_objects()
            && (from.is_text_like() || to.is_text_like()))
        || (from.is_text_like() && (read(to) || array(to)))
        || (array(from) && to.is_text_like())
        || (zoned(from) != zoned(to) && read(from) && read(to))
}

/// Whether a part that PostgreSQL computes when it plans is among these that has no value.
pub(crate) fn fails_always(expr: &Bound) -> bool {
    if folded_there(expr) {
        return expr.eval(&[], &EvalContext::constant()).is_err();
    }
    expr.children().into_iter().any(fails_always)
}

/// The type that UNION, CASE, COALESCE, ARRAY and VALUES give to their parts together; `None` when
/// the types do not go together.
pub fn common_type(types: &[&SqlType]) -> Option<SqlType> {
    let known: Vec<&SqlType> = types.iter().copied().filter(|t| **t != SqlType::Unknown).collect();
    let Some(first) = known.first() else { return Some(SqlType::Text) };
    if known.iter().all(|t| t == first) {
        // What has no type yet has no modifier either: 'long' beside a varchar(3) stays as it is.
        let bare = known.len() < types.len();
        return Some(if bare { first.base() } else { (*first).clone() });
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
        }
    }
    Some(best)
}

/// The first part whose type is of another kind than the first that is known.
fn stranger(types: &[&SqlType]) -> Option<usize> {
    let known = |t: &SqlType| *t != SqlType::Unknown;
    let first = types.iter().find(|t| known(t))?;
    types.iter().position(|t| known(t) && t.category() != first.category())
}

/// An error of [`unify`] with the place of the part that does not go with the others.
pub(crate) fn at_stranger(error: SqlError, types: &[SqlType], parts: &[&Expr]) -> SqlError {
    if error.place().is_some() || !error.message().ends_with(" cannot be matched") {
        return error;
    }
    let types: Vec<&SqlType> = types.iter().collect();
    let part = stranger(&types).and_then(|at| parts.get(at));
    error.or_place(part.and_then(|part| beginning(part)))
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
        let known = |t: &&&SqlType| ***t != SqlType::Unknown;
        let Some(other) = stranger(&types).map(|at| types[at]) else {
            // Of one category, and no cast between them.
            let other = types.iter().filter(known).find(|t| !t.same_base(first)).unwrap_or(first);
            return Err(SqlError::new(
                SqlState::CANNOT_COERCE,
                format!("{what} could not convert type {other} to {first}"),
            ));
        };
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
    if is_without_order(left) || is_without_order(right) {
        return None;
    }
    if left.same_base(right) {
        return Some(left.base());
    }
    let number =
        |t: &T| t.category() == TypeCategory::Numeric && !t.is_oid_like() && *t != T::Money;
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
        // A text is no `citext` by itself, so that it is told apart by its letters.
        (T::Citext, other) | (other, T::Citext) if other.is_text_like() => Some(T::Text),
        (T::Date, T::Timestamp) | (T::Timestamp, T::Date) => Some(T::Timestamp),
        (T::Date | T::Timestamp | T::TimestampTz, T::TimestampTz)
        | (T::TimestampTz, T::Date | T::Timestamp) => Some(T::TimestampTz),
        (T::Time, T::Interval) | (T::Interval, T::Time) => Some(T::Interval),
        (T::Time, T::TimeTz) | (T::TimeTz, T::Time) => Some(T::TimeTz),
        (T::Inet, T::Cidr) | (T::Cidr, T::Inet) => Some(T::Inet),
        (T::Bit(_), T::Varbit(_)) | (T::Varbit(_), T::Bit(_)) => Some(T::Varbit(None)),
        (T::Macaddr, T::Macaddr8) | (T::Macaddr8, T::Macaddr) => Some(T::Macaddr8),
        // Rows compare field by field.
        (T::Record, T::Composite(_)) | (T::Composite(_), T::Record) => Some(T::Record),
        (T::Composite(a), T::Composite(b)) if a.is_like(b) => Some(T::Record),
        // Arrays compare with arrays of the same elements only.
        (T::Array(a), T::Array(b)) if a.is_oid_like() && b.is_oid_like() => {
            Some(T::Array(Box::new(T::Oid)))
        }
        _ => None,
    }
}
