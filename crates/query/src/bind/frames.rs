//! Frames of windows: which rows around its own a call looks at.
//!
//! ```text
//!   ROWS 1 PRECEDING      rows          10   [10   20]   25        of the third
//!   GROUPS 1 PRECEDING    peers        [10    10   20]   25
//!   RANGE 5 PRECEDING     values        10    10  [20]   25        of the fourth: [20   25]
//! ```
//! DataFusion adds an offset of RANGE to the key itself, in the key's carrier. So keys are made
//! wide enough that nothing overflows: integers and times, which count microseconds, become
//! decimals. Then rows without a key are never in the frame of one that has one. What no such
//! number says (months, days where the clock changes) is refused.

use std::sync::Arc;

use braid_scalar::{Bound, coerce};
use braid_types::{
    CastContext, Datum, Interval, MICROS_PER_DAY, SqlError, SqlResult, SqlState, SqlType, TimeZone,
    cast_exists,
};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};
use sqlparser::ast;

use super::Binder;
use crate::arrow_form;

/// A key of ORDER BY: descending, NULLS FIRST.
pub(super) type OrderedBy = (Bound, bool, bool);

/// A frame, and the key in the form that its offsets are added to.
pub(super) struct Frame {
    pub(super) window: WindowFrame,
    pub(super) key: Option<(Bound, DataType)>,
}

/// How the distance of two keys is told.
enum Measure {
    Integers,
    Floats,
    /// Digits behind the point.
    Decimals(u8),
    Times,
}

impl Measure {
    fn of(ty: &SqlType) -> SqlResult<Measure> {
        if let Some(scale) = arrow_form::decimal_scale(ty) {
            return Ok(Measure::Decimals(scale));
        }
        match ty {
            SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => Ok(Measure::Integers),
            SqlType::Float4 | SqlType::Float8 => Ok(Measure::Floats),
            SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz => Ok(Measure::Times),
            SqlType::Numeric(_) | SqlType::Time | SqlType::TimeTz | SqlType::Interval => {
                let text = format!("RANGE with an offset over {}", ty.base_name());
                Err(SqlError::unsupported(text)
                    .with_hint("Cast the key: to numeric(p, s), a timestamp or a float."))
            }
            _ => Err(not_in_range(format!("column type {}", ty.base_name()))),
        }
    }

    /// The type in which the key is, and what carries it.
    fn key(&self, ty: &SqlType) -> (SqlType, DataType) {
        match self {
            Measure::Integers => (SqlType::Int8, arrow_form::decimal(0)),
            Measure::Floats => (SqlType::Float8, DataType::Float64),
            Measure::Decimals(scale) => (ty.clone(), arrow_form::decimal(*scale)),
            Measure::Times => match ty {
                SqlType::Date => (SqlType::Timestamp, arrow_form::decimal(0)),
                ty => (ty.clone(), arrow_form::decimal(0)),
            },
        }
    }

    fn offset_type(&self) -> SqlType {
        match self {
            Measure::Integers => SqlType::Int8,
            Measure::Floats => SqlType::Float8,
            Measure::Decimals(_) => SqlType::Numeric(None),
            Measure::Times => SqlType::Interval,
        }
    }

    /// An offset of nothing.
    fn nothing(&self) -> Datum {
        match self {
            Measure::Integers => Datum::Int8(0),
            Measure::Floats => Datum::Float8(0.0),
            Measure::Decimals(_) => Datum::Numeric(Arc::new(0.into())),
            Measure::Times => Datum::Interval(Interval { months: 0, days: 0, micros: 0 }),
        }
    }

    /// An offset in the carrier of the key.
    fn carried(&self, offset: &Datum) -> SqlResult<ScalarValue> {
        let decimal = |n: i128, scale: u8| match n {
            0.. => Ok(ScalarValue::Decimal128(Some(n), 38, scale as i8)),
            _ => Err(bad_size()),
        };
        match (self, offset) {
            (Measure::Integers, Datum::Int8(n)) => decimal(i128::from(*n), 0),
            (Measure::Floats, Datum::Float8(n)) if n.is_nan() || *n < 0.0 => Err(bad_size()),
            (Measure::Floats, Datum::Float8(n)) if n.is_finite() => {
                Ok(ScalarValue::Float64(Some(*n)))
            }
            (Measure::Decimals(scale), offset @ Datum::Numeric(_)) => {
                match arrow_form::to_decimal(offset, *scale) {
                    Some(n) => decimal(n, *scale),
                    None => Err(SqlError::unsupported(
                        "RANGE with an offset of more digits than its key has",
                    )),
                }
            }
            (Measure::Times, Datum::Interval(i)) if i.months == 0 => {
                let days = i128::from(i.days) * i128::from(MICROS_PER_DAY);
                decimal(days + i128::from(i.micros), 0)
            }
            (Measure::Times, _) => Err(SqlError::unsupported("RANGE with an offset of months")
                .with_hint("Months differ in length: use days.")),
            _ => Err(SqlError::unsupported("RANGE with this offset")),
        }
    }
}

/// 22013.
fn bad_size() -> SqlError {
    SqlError::new(SqlState("22013"), "invalid preceding or following size in window function")
}

fn not_in_range(of: String) -> SqlError {
    let text = format!("RANGE with offset PRECEDING/FOLLOWING is not supported for {of}");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
}

/// 42P20.
fn bad_frame(message: &str) -> SqlError {
    SqlError::new(SqlState("42P20"), message)
}

/// One bound of a frame.
struct Side<'a> {
    units: ast::WindowFrameUnits,
    /// `starting` or `ending`.
    name: &'static str,
    measure: Option<(&'a Measure, &'a SqlType)>,
}

impl Binder<'_> {
    /// The frame of a call whose window has this order.
    pub(super) fn frame(
        &mut self,
        order: &[OrderedBy],
        frame: Option<&ast::WindowFrame>,
    ) -> SqlResult<Frame> {
        // Without offsets, RANGE and GROUPS mean the same; DataFusion's RANGE does not know keys of
        // bytes.
        let range = match order.iter().any(|(b, _, _)| bytes(b.ty())) {
            true => WindowFrameUnits::Groups,
            false => WindowFrameUnits::Range,
        };
        let Some(frame) = frame else {
            let all = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
            let window = match order.is_empty() {
                true => WindowFrame::new(None),
                false => WindowFrame::new_bounds(range, all, WindowFrameBound::CurrentRow),
            };
            return Ok(Frame { window, key: None });
        };
        let end = frame.end_bound.as_ref().unwrap_or(&ast::WindowFrameBound::CurrentRow);
        check_bounds(&frame.start_bound, end)?;
        let by_values = frame.units == ast::WindowFrameUnits::Range
            && (has_offset(&frame.start_bound) || has_offset(end));
        let (mut key, mut measure) = (None, None);
        if by_values {
            let [(bound, _, _)] = order else {
                return Err(bad_frame(
                    "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                ));
            };
            let found = Measure::of(bound.ty())?;
            let (ty, carrier) = found.key(bound.ty());
            key = Some((coerce(bound.clone(), &ty, CastContext::Implicit, self)?, carrier));
            measure = Some((found, bound.ty().clone()));
        }
        let units = match frame.units {
            ast::WindowFrameUnits::Rows => WindowFrameUnits::Rows,
            ast::WindowFrameUnits::Range if by_values => WindowFrameUnits::Range,
            ast::WindowFrameUnits::Range => range,
            ast::WindowFrameUnits::Groups if order.is_empty() => {
                return Err(bad_frame("GROUPS mode requires an ORDER BY clause"));
            }
            ast::WindowFrameUnits::Groups => WindowFrameUnits::Groups,
        };
        let measure = measure.as_ref().map(|(measure, ty)| (measure, ty));
        let mut side = Side { units: frame.units, name: "starting", measure };
        let start = self.frame_bound(&frame.start_bound, &side)?;
        side.name = "ending";
        let end = self.frame_bound(end, &side)?;
        Ok(Frame { window: WindowFrame::new_bounds(units, start, end), key })
    }

    fn frame_bound(
        &mut self,
        bound: &ast::WindowFrameBound,
        side: &Side<'_>,
    ) -> SqlResult<WindowFrameBound> {
        let (offset, preceding) = match bound {
            ast::WindowFrameBound::CurrentRow => return Ok(WindowFrameBound::CurrentRow),
            ast::WindowFrameBound::Preceding(offset) => (offset, true),
            ast::WindowFrameBound::Following(offset) => (offset, false),
        };
        let value = match (offset, side.measure) {
            (None, _) => ScalarValue::UInt64(None),
            (Some(expr), None) => self.count_offset(expr, side)?,
            (Some(expr), Some((measure, ty))) => self.value_offset(expr, side, measure, ty)?,
        };
        Ok(if preceding {
            WindowFrameBound::Preceding(value)
        } else {
            WindowFrameBound::Following(value)
        })
    }

    /// An offset that is the same for all rows.
    fn bound_offset(&mut self, expr: &ast::Expr, side: &Side<'_>) -> SqlResult<Bound> {
        let bound = self.expr(expr)?;
        if bound.columns().is_empty() {
            return Ok(bound);
        }
        Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("argument of {} must not contain variables", side.units),
        ))
    }

    /// So many rows or groups.
    fn count_offset(&mut self, expr: &ast::Expr, side: &Side<'_>) -> SqlResult<ScalarValue> {
        let bound = self.bound_offset(expr, side)?;
        let bound = coerce(bound, &SqlType::Int8, CastContext::Assignment, self)?;
        match self.value_now(&bound)?.unwrap_or(Datum::Int8(0)) {
            Datum::Int8(n) if n >= 0 => Ok(ScalarValue::UInt64(Some(n as u64))),
            Datum::Null => Err(null_offset(side)),
            _ => Err(SqlError::new(
                SqlState("22013"),
                format!("frame {} offset must not be negative", side.name),
            )),
        }
    }

    /// So much more or less than the key.
    fn value_offset(
        &mut self,
        expr: &ast::Expr,
        side: &Side<'_>,
        measure: &Measure,
        key: &SqlType,
    ) -> SqlResult<ScalarValue> {
        let bound = self.bound_offset(expr, side)?;
        let wanted = measure.offset_type();
        let given = bound.ty();
        let fits = *given == SqlType::Unknown
            || given.same_base(&wanted)
            || (wanted != SqlType::Interval
                && cast_exists(given, &wanted) == Some(CastContext::Implicit));
        if !fits {
            let (key, given) = (key.base_name(), given.base_name());
            return Err(not_in_range(format!("column type {key} and offset type {given}"))
                .with_hint("Cast the offset value to an appropriate type."));
        }
        let bound = coerce(bound, &wanted, CastContext::Implicit, self)?;
        let value = match self.value_now(&bound)? {
            Some(Datum::Null) => return Err(null_offset(side)),
            Some(value) => value,
            // Of an execution to come: whatever stands here is not used.
            None => return measure.carried(&measure.nothing()),
        };
        if let (Datum::Interval(i), SqlType::TimestampTz) = (&value, key)
            && i.days != 0
        {
            self.check_days()?;
        }
        measure.carried(&value)
    }

    /// Days of a time zone whose clock changes differ in length.
    fn check_days(&mut self) -> SqlResult<()> {
        let zone = self.bind_anew().map_or(TimeZone::utc(), |eval| eval.style.zone);
        if zone == TimeZone::utc() || matches!(zone, TimeZone::Fixed(_)) {
            return Ok(());
        }
        Err(SqlError::unsupported(
            "RANGE with an offset of days over timestamptz in this time zone",
        )
        .with_hint("Use hours, or SET timezone = 'UTC'."))
    }
}

/// 22004.
fn null_offset(side: &Side<'_>) -> SqlError {
    SqlError::new(SqlState("22004"), format!("frame {} offset must not be null", side.name))
}

fn has_offset(bound: &ast::WindowFrameBound) -> bool {
    matches!(
        bound,
        ast::WindowFrameBound::Preceding(Some(_)) | ast::WindowFrameBound::Following(Some(_))
    )
}

/// 42P20 for a frame that ends before it starts.
fn check_bounds(start: &ast::WindowFrameBound, end: &ast::WindowFrameBound) -> SqlResult<()> {
    use ast::WindowFrameBound::{CurrentRow, Following, Preceding};
    let refused = match (start, end) {
        (Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (_, Preceding(None)) => "frame end cannot be UNBOUNDED PRECEDING",
        (CurrentRow, Preceding(_)) => "frame starting from current row cannot have preceding rows",
        (Following(_), Preceding(_) | CurrentRow) => {
            "frame starting from following row cannot have preceding rows"
        }
        _ => return Ok(()),
    };
    Err(bad_frame(refused))
}

/// Whether values of this type are ordered by a key of bytes.
fn bytes(ty: &SqlType) -> bool {
    !arrow_form::is_native(ty) || arrow_form::data_type(ty) == DataType::Binary
}
