//! What a declared type asks of a value beyond the type that the value has: `timestamp(3)` and a
//! domain are kept as their base types, and a cast or an assignment to them refines the value.
//!
//! ```text
//!   '2020-01-01 12:34:56.789'::timestamp(0)    cast to timestamp, then rounded
//!   17::even                                   cast to int, then NOT NULL and each CHECK
//! ```
//! Operators and functions see the base type alone, as in PostgreSQL.

use std::any::Any;
use std::sync::Arc;

use braid_types::ordered::timetz;
use braid_types::{
    Datum, Interval, IntervalFields, OrderedKind, RecordValue, SqlError, SqlResult, SqlState,
};

use crate::{Applied, Bound, EvalContext, Node, Volatility};

/// A domain, ready to judge values.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Name, as messages show it.
    pub name: String,
    /// Its schema, and its name there.
    pub place: Option<(String, String)>,
    /// Its oid, and that of arrays of it; of the system's own none.
    pub oids: Option<(u32, u32)>,
    /// NULL is refused.
    pub not_null: bool,
    /// Names and conditions, over a row that is the value alone.
    pub checks: Vec<(String, Bound)>,
}

/// See the [module documentation](self).
#[derive(Clone, Debug, Default)]
pub struct Refinement {
    /// Digits of seconds that are kept; six are all that there are.
    pub precision: Option<u8>,
    /// Of an interval: the fields that are kept.
    pub fields: Option<IntervalFields>,
    /// Of an array: what is asked of its elements.
    pub elements: Option<Arc<Refinement>>,
    /// Of a row: what is asked of its fields, by their places.
    pub members: Vec<(usize, Refinement)>,
    /// What the value must keep to.
    pub domain: Option<Arc<Domain>>,
}

impl Refinement {
    /// Whether every value passes as it is.
    pub fn is_none(&self) -> bool {
        self.precision.is_none_or(|digits| digits >= 6)
            && self.fields.is_none()
            && self.elements.is_none()
            && self.members.is_empty()
            && self.domain.is_none()
    }

    /// The value as the type wants it.
    ///
    /// # Errors
    /// 23502 and 23514 of domains.
    pub fn refine(&self, value: Datum, ctx: &EvalContext) -> SqlResult<Datum> {
        let value = match self.precision {
            Some(digits) => round_seconds(value, digits),
            None => value,
        };
        let value = match (self.fields, value) {
            (Some(fields), Datum::Interval(interval)) => Datum::Interval(fields.cut(interval)),
            (_, value) => self.refine_parts(value, ctx)?,
        };
        if let Some(domain) = &self.domain {
            domain.judge(&value, ctx)?;
        }
        Ok(value)
    }

    /// Elements and fields.
    fn refine_parts(&self, value: Datum, ctx: &EvalContext) -> SqlResult<Datum> {
        match (&value, &self.elements) {
            (Datum::Array(array), Some(each)) => {
                let items = array.items.iter().map(|item| each.refine(item.clone(), ctx));
                let items = items.collect::<SqlResult<_>>()?;
                Ok(Datum::Array(Arc::new(array.like(array.element.clone(), items))))
            }
            (Datum::Record(row), _) if !self.members.is_empty() => {
                let mut fields = row.fields.clone();
                for (at, member) in &self.members {
                    if let Some(field) = fields.get_mut(*at) {
                        *field = member.refine(std::mem::replace(field, Datum::Null), ctx)?;
                    }
                }
                Ok(Datum::Record(Arc::new(RecordValue { names: row.names.clone(), fields })))
            }
            _ => Ok(value),
        }
    }

    /// The oid of the domain that it is of, or of the arrays of one.
    pub fn domain_oid(&self) -> Option<u32> {
        let of_elements = || Some(self.elements.as_ref()?.domain.as_ref()?.oids?.1);
        self.domain.as_ref().map_or_else(of_elements, |domain| domain.oids.map(|oids| oids.0))
    }

    /// What is asked of arrays of such values.
    pub fn of_elements(self) -> Refinement {
        match self.is_none() {
            true => Refinement::default(),
            false => Refinement { elements: Some(Arc::new(self)), ..Refinement::default() },
        }
    }

    /// An expression whose values are refined.
    pub fn over(self, value: Bound) -> Bound {
        if self.is_none() {
            return value;
        }
        let ty = value.ty().clone();
        Bound::new(Node::Apply(Arc::new(self), vec![value]), ty)
    }
}

impl Domain {
    fn placed(&self, error: SqlError) -> SqlError {
        match &self.place {
            Some((schema, name)) => error.with_datatype(schema, name),
            None => error,
        }
    }

    /// # Errors
    /// 23502 for NULL, 23514 for the first condition that is false.
    fn judge(&self, value: &Datum, ctx: &EvalContext) -> SqlResult<()> {
        if self.not_null && value.is_null() {
            let text = format!("domain {} does not allow null values", self.name);
            return Err(self.placed(SqlError::new(SqlState::NOT_NULL_VIOLATION, text)));
        }
        for (name, check) in &self.checks {
            if matches!(check.eval(std::slice::from_ref(value), ctx)?, Datum::Bool(false)) {
                let text =
                    format!("value for domain {} violates check constraint \"{name}\"", self.name);
                let error = SqlError::new(SqlState::CHECK_VIOLATION, text).with_constraint(name);
                return Err(self.placed(error));
            }
        }
        Ok(())
    }
}

/// A time or a span of time with so many digits of seconds, rounded away from zero at the half.
pub(crate) fn round_seconds(value: Datum, digits: u8) -> Datum {
    let unit = 10i64.pow(6 - u32::from(digits.min(6)));
    let round = |micros: i64| match micros {
        i64::MAX | i64::MIN => micros,
        // Beyond the last unit nothing is left to round to.
        m if m >= 0 => m.saturating_add(unit / 2) / unit * unit,
        m => -(m.saturating_neg().saturating_add(unit / 2) / unit * unit),
    };
    match value {
        Datum::Time(t) => Datum::Time(round(t)),
        Datum::Timestamp(t) => Datum::Timestamp(round(t)),
        Datum::TimestampTz(t) => Datum::TimestampTz(round(t)),
        Datum::Ordered(value) if value.kind() == OrderedKind::TimeTz => {
            let (micros, east) = timetz::parts(&value);
            Datum::Ordered(timetz::of(round(micros), east))
        }
        Datum::Interval(i) => Datum::Interval(Interval { micros: round(i.micros), ..i }),
        other => other,
    }
}

impl Applied for Refinement {
    fn apply(&self, args: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
        self.refine(args.first().cloned().unwrap_or(Datum::Null), ctx)
    }

    fn label(&self) -> String {
        match (&self.domain, self.precision) {
            (Some(domain), _) => domain.name.clone(),
            (None, Some(digits)) => format!("round_seconds_{digits}"),
            (None, None) if self.fields.is_some() => "cut_fields".to_string(),
            (None, None) => "parts".to_string(),
        }
    }

    fn volatility(&self) -> Volatility {
        let checks = self.domain.iter().flat_map(|d| &d.checks);
        let own = checks.map(|(_, check)| check.volatility());
        let parts = self.elements.iter().map(|each| each.volatility());
        let members = self.members.iter().map(|(_, member)| member.volatility());
        own.chain(parts).chain(members).max().unwrap_or(Volatility::Immutable)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
