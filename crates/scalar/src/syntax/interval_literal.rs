//! `INTERVAL '1:30' HOUR TO MINUTE`: literals of intervals with the fields that they are of.

use std::sync::Arc;

use braid_types::{
    CastContext, Datum, Interval, IntervalField, IntervalFields, IntervalForm, SqlError, SqlResult,
    SqlType, Style,
};
use sqlparser::ast::{self, Expr, Value};

use crate::bind::bind_unsettled;
use crate::bind_call::bind_named;
use crate::conversion::{coerce, settle};
use crate::refinement::round_seconds;
use crate::{Applied, BindContext, Bound, EvalContext, Node, Refinement, Scope, Volatility};

/// Binds a literal.
pub(crate) fn bind_interval(
    interval: &ast::Interval,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let fields = interval_fields(interval)?;
    let quarter = matches!(interval.leading_field, Some(ast::DateTimeField::Quarter));
    let plain = matches!(&*interval.value, Expr::Value(_)) && !quarter;
    if let (Some(unit), None, false) = (&interval.leading_field, &interval.last_field, plain) {
        return of_count(&interval.value, unit, scope, ctx);
    }
    let Expr::Value(value) = &*interval.value else {
        if fields.is_some() {
            return Err(SqlError::unsupported("an interval with fields of what is no literal"));
        }
        let value = bind_unsettled(&interval.value, scope, ctx)?;
        return coerce(value, &SqlType::Interval, CastContext::Explicit, ctx);
    };
    let mut text = match &value.value {
        Value::Number(n, _) => n.to_string(),
        other => other.clone().into_string().unwrap_or_default(),
    };
    let Some(fields) = fields else {
        // A unit that is no field of PostgreSQL's, as in `INTERVAL 2 WEEK`.
        if let Some(unit) = &interval.leading_field {
            text = format!("{text} {unit}");
        }
        let literal = Bound::constant(Datum::text(text), SqlType::Unknown);
        return settle(literal, &SqlType::Interval, CastContext::Explicit, ctx);
    };
    of_fields(text, fields, digits_of(interval))
}

/// The digits of seconds that a literal says.
fn digits_of(interval: &ast::Interval) -> Option<u8> {
    let digits = match &interval.last_field {
        Some(_) => interval.fractional_seconds_precision,
        None => interval.leading_precision,
    };
    digits.and_then(|digits| u8::try_from(digits).ok())
}

/// The modifier of the type of a literal with fields.
pub(super) fn typmod_of(interval: &ast::Interval) -> Option<i32> {
    let fields = interval_fields(interval).ok()??;
    Some(IntervalFields::typmod(Some(fields), digits_of(interval)))
}

/// `INTERVAL n MONTH` of any expression: so many times the unit.
fn of_count(
    count: &Expr,
    unit: &ast::DateTimeField,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let one = match unit {
        ast::DateTimeField::Quarter => "3 months".to_string(),
        unit => format!("1 {unit}"),
    };
    let one = Bound::constant(Datum::text(one), SqlType::Unknown);
    let one = settle(one, &SqlType::Interval, CastContext::Explicit, ctx)?;
    let count = bind_unsettled(count, scope, ctx)?;
    let count = settle(count, &SqlType::Int8, CastContext::Implicit, ctx)?;
    bind_named(
        "*",
        vec![coerce(count, &SqlType::Float8, CastContext::Implicit, ctx)?, one],
        true,
        ctx,
    )
}

/// A text of no type yet as an interval of the fields that the type it is cast to has, which say
/// what a number without a unit means; `None` if it is no text, or the type has no fields.
pub(crate) fn interval_text(value: &Bound, refinement: &Refinement) -> SqlResult<Option<Bound>> {
    match (value.node(), refinement.fields) {
        (Node::Const(Datum::Text(text)), Some(fields)) if *value.ty() == SqlType::Unknown => {
            of_fields(text.to_string(), fields, refinement.precision).map(Some)
        }
        _ => Ok(None),
    }
}

fn of_fields(text: String, fields: IntervalFields, digits: Option<u8>) -> SqlResult<Bound> {
    let literal = Literal { text, fields, digits };
    let [postgres, sql] = [IntervalForm::Postgres, IntervalForm::Sql]
        .map(|interval| literal.read(&Style { interval, ..Style::utc() }));
    let (postgres, sql) = (postgres?, sql?);
    // Equal intervals may differ in their fields.
    if format!("{postgres:?}") == format!("{sql:?}") {
        return Ok(Bound::constant(postgres, SqlType::Interval));
    }
    Ok(Bound::new(Node::Apply(Arc::new(literal), Vec::new()), SqlType::Interval))
}

/// A literal that means different things in different `IntervalStyle`s.
struct Literal {
    text: String,
    fields: IntervalFields,
    /// Digits of seconds.
    digits: Option<u8>,
}

impl Literal {
    fn read(&self, style: &Style) -> SqlResult<Datum> {
        let value = Datum::Interval(Interval::parse_fields(&self.text, style, self.fields)?);
        Ok(match self.digits {
            Some(digits) => round_seconds(value, digits),
            None => value,
        })
    }
}

impl Applied for Literal {
    fn apply(&self, _: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
        self.read(&ctx.style)
    }

    fn label(&self) -> String {
        "interval".to_string()
    }

    fn volatility(&self) -> Volatility {
        Volatility::Stable
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// The fields of `INTERVAL '..' FIRST [TO LAST]`.
fn interval_fields(interval: &ast::Interval) -> SqlResult<Option<IntervalFields>> {
    let field = |field: &ast::DateTimeField| {
        Some(match field {
            ast::DateTimeField::Year | ast::DateTimeField::Years => IntervalField::Year,
            ast::DateTimeField::Month | ast::DateTimeField::Months => IntervalField::Month,
            ast::DateTimeField::Day | ast::DateTimeField::Days => IntervalField::Day,
            ast::DateTimeField::Hour | ast::DateTimeField::Hours => IntervalField::Hour,
            ast::DateTimeField::Minute | ast::DateTimeField::Minutes => IntervalField::Minute,
            ast::DateTimeField::Second | ast::DateTimeField::Seconds => IntervalField::Second,
            _ => return None,
        })
    };
    let first = interval.leading_field.as_ref().and_then(field);
    let Some(last) = &interval.last_field else {
        return Ok(first.map(|first| IntervalFields { first, last: first }));
    };
    let strange = || {
        let last = last.to_string().to_lowercase();
        SqlError::syntax(format!("syntax error at or near \"{last}\""))
    };
    let (Some(first), Some(last)) = (first, field(last)) else { return Err(strange()) };
    let goes_on = match first {
        IntervalField::Year => last == IntervalField::Month,
        IntervalField::Month => false,
        _ => first < last,
    };
    if goes_on { Ok(Some(IntervalFields { first, last })) } else { Err(strange()) }
}
