//! Frames of windows: which rows around its own a call looks at.
//!
//! ```text
//!   ROWS 1 PRECEDING      rows          10   [10   20]   25        of the third
//!   GROUPS 1 PRECEDING    peers        [10    10   20]   25
//!   RANGE 5 PRECEDING     values        10    10  [20]   25        of the fourth: [20   25]
//! ```
//! Frames that begin with the partition, or are a few rows, are DataFusion's, which computes them
//! while rows come; all others are ours (`exec/windows/frame.rs`) and need the whole partition.
//! Offsets of ours are arguments of the call.

use braid_parser::Exclusion;
use braid_scalar::{Bound, coerce};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType, cast_exists};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};
use sqlparser::ast;

use super::Binder;
use super::window::IN_DEFINITION;
use crate::arrow_form;
use crate::exec::windows::{Edge, Shape, Unit, negative_offset, null_offset, offset_type};

/// A key of ORDER BY: descending, NULLS FIRST.
pub(super) type OrderedBy = (Bound, bool, bool);

/// The most rows of a frame that moves in DataFusion's operator, which does not count them.
const ROWS_STREAMED: u64 = 10_000;

/// A frame.
pub(super) struct Frame {
    pub(super) shape: Shape,
    /// Of the start and of the end.
    pub(super) offsets: [Option<Offset>; 2],
    /// The key that offsets of RANGE are added to.
    pub(super) key: Option<Bound>,
    /// RANGE without offsets as DataFusion has it for these keys.
    range: WindowFrameUnits,
    ordered: bool,
}

/// An offset of a frame.
pub(super) struct Offset {
    pub(super) value: Bound,
    /// A number of rows or groups, if it is known.
    count: Option<u64>,
}

impl Frame {
    /// As DataFusion's operator is given it, if that computes it well: without what was kept of the
    /// rows before.
    pub(super) fn streamed(&self) -> Option<WindowFrame> {
        let shape = &self.shape;
        let rows = shape.unit == Unit::Rows;
        let begins = shape.start == Edge::Unbounded;
        let offsets = shape.start.has_offset() || shape.end.has_offset();
        let fits = match (begins, rows) {
            _ if shape.exclusion.is_some() => false,
            (true, true) => true,
            (true, false) => !offsets,
            (false, true) => self.is_short() && !self.is_backwards(),
            (false, false) => false,
        };
        if !fits {
            return None;
        }
        if !self.ordered && !rows {
            return Some(WindowFrame::new(None));
        }
        let units = if rows { WindowFrameUnits::Rows } else { self.range };
        Some(WindowFrame::new_bounds(units, self.bound(false)?, self.bound(true)?))
    }

    /// The frame of a call that looks at none.
    pub(super) fn unused(&self) -> WindowFrame {
        let all = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
        match self.ordered {
            false => WindowFrame::new(None),
            true => WindowFrame::new_bounds(self.range, all, WindowFrameBound::CurrentRow),
        }
    }

    fn is_short(&self) -> bool {
        let reach = |end: usize, edge: Edge| match (edge, &self.offsets[end]) {
            (Edge::Current, _) => Some(0),
            (Edge::Before | Edge::Behind, Some(Offset { count, .. })) => *count,
            _ => None,
        };
        let both = [reach(0, self.shape.start), reach(1, self.shape.end)];
        both.into_iter().all(|reach| reach.is_some_and(|rows| rows <= ROWS_STREAMED))
    }

    /// Whether it ends before it begins, which is a frame without rows.
    fn is_backwards(&self) -> bool {
        let [start, end] = self.offsets.each_ref().map(|o| o.as_ref().and_then(|o| o.count));
        match (self.shape.start, self.shape.end) {
            (Edge::Before, Edge::Before) => start < end,
            (Edge::Behind, Edge::Behind) => start > end,
            _ => false,
        }
    }

    fn bound(&self, end: bool) -> Option<WindowFrameBound> {
        let (edge, offset) = match end {
            false => (self.shape.start, &self.offsets[0]),
            true => (self.shape.end, &self.offsets[1]),
        };
        let count = || Some(ScalarValue::UInt64(Some(offset.as_ref()?.count?)));
        Some(match (edge, end) {
            (Edge::Current, _) => WindowFrameBound::CurrentRow,
            (Edge::Unbounded, false) => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
            (Edge::Unbounded, true) => WindowFrameBound::Following(ScalarValue::UInt64(None)),
            (Edge::Before, _) => WindowFrameBound::Preceding(count()?),
            (Edge::Behind, _) => WindowFrameBound::Following(count()?),
        })
    }
}

/// The type of keys of a type that offsets are added to.
fn measured(ty: &SqlType) -> SqlType {
    match ty {
        SqlType::Int2 | SqlType::Int4 => SqlType::Int8,
        SqlType::Float4 => SqlType::Float8,
        SqlType::Date => SqlType::Timestamp,
        ty => ty.clone(),
    }
}

/// The type whose order the keys of a type have.
fn ordered_as(ty: &SqlType) -> String {
    match ty {
        SqlType::Array(_) => "anyarray".to_string(),
        SqlType::Range(_) => "anyrange".to_string(),
        SqlType::Multirange(_) => "anymultirange".to_string(),
        SqlType::Enum(_) => "anyenum".to_string(),
        SqlType::Varchar(_) => "text".to_string(),
        ty if ty.is_row() => "record".to_string(),
        ty => ty.base_name(),
    }
}

fn not_in_range(of: String) -> SqlError {
    let text = format!("RANGE with offset PRECEDING/FOLLOWING is not supported for {of}");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
}

/// 42P20.
fn bad_frame(message: &str) -> SqlError {
    SqlError::new(SqlState("42P20"), message)
}

impl Binder<'_> {
    /// The frame of a call whose window has this order.
    pub(super) fn frame(
        &mut self,
        order: &[OrderedBy],
        frame: Option<&ast::WindowFrame>,
        exclusion: Option<Exclusion>,
    ) -> SqlResult<Frame> {
        // Without offsets, RANGE and GROUPS mean the same; DataFusion's RANGE does not know keys of
        // bytes.
        let range = match order.iter().any(|(b, _, _)| bytes(b.ty())) {
            true => WindowFrameUnits::Groups,
            false => WindowFrameUnits::Range,
        };
        let ordered = !order.is_empty();
        let (unit, start, end) = (Unit::Range, Edge::Unbounded, Edge::Current);
        let mut shape = Shape { unit, start, end, exclusion, key: None };
        let (mut offsets, mut key) = ([None, None], None);
        let Some(frame) = frame else {
            return Ok(Frame { shape, offsets, key, range, ordered });
        };
        let last = frame.end_bound.as_ref().unwrap_or(&ast::WindowFrameBound::CurrentRow);
        check_bounds(&frame.start_bound, last)?;
        (shape.start, shape.end) = (edge(&frame.start_bound), edge(last));
        shape.unit = match frame.units {
            ast::WindowFrameUnits::Rows => Unit::Rows,
            ast::WindowFrameUnits::Range => Unit::Range,
            ast::WindowFrameUnits::Groups if !ordered => {
                return Err(bad_frame("GROUPS mode requires an ORDER BY clause"));
            }
            ast::WindowFrameUnits::Groups => Unit::Groups,
        };
        if shape.has_distance() {
            let [(bound, desc, nulls_first)] = order else {
                return Err(bad_frame(
                    "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                ));
            };
            let ty = measured(bound.ty());
            if offset_type(&ty).is_none() {
                return Err(not_in_range(format!("column type {}", ordered_as(bound.ty()))));
            }
            key = Some(coerce(bound.clone(), &ty, CastContext::Implicit, self)?);
            shape.key = Some((ty, *desc, *nulls_first));
        }
        for (n, bound) in [&frame.start_bound, last].into_iter().enumerate() {
            use ast::WindowFrameBound::{Following, Preceding};
            if let Preceding(Some(expr)) | Following(Some(expr)) = bound {
                let of = (frame.units, n == 1);
                offsets[n] = Some(match &shape.key {
                    None => self.count_offset(expr, of)?,
                    Some((ty, ..)) => {
                        let shown = order.first().map_or(ty, |(bound, ..)| bound.ty());
                        self.value_offset(expr, of, (ty, shown))?
                    }
                });
            }
        }
        Ok(Frame { shape, offsets, key, range, ordered })
    }

    /// An offset that is the same for all rows, and whether it is known now.
    fn bound_offset(
        &mut self,
        expr: &ast::Expr,
        units: ast::WindowFrameUnits,
    ) -> SqlResult<(Bound, bool)> {
        let bound = self.without_windows(IN_DEFINITION, |b| {
            b.without_aggregates(offsets_of(units), |b| b.expr(expr))
        })?;
        let columns = bound.columns();
        let level = self.level();
        let is_outer = |at: &usize| level.outer.iter().any(|(_, _, slot)| slot == at);
        if columns.iter().all(is_outer) {
            return Ok((bound, columns.is_empty()));
        }
        Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("argument of {units} must not contain variables"),
        ))
    }

    fn is_in_body(&mut self) -> bool {
        self.levels.iter().any(|level| level.arguments.is_some())
    }

    /// So many rows or groups.
    fn count_offset(
        &mut self,
        expr: &ast::Expr,
        (units, end): (ast::WindowFrameUnits, bool),
    ) -> SqlResult<Offset> {
        let (bound, known) = self.bound_offset(expr, units)?;
        if cast_exists(bound.ty(), &SqlType::Int8) > Some(CastContext::Assignment)
            || cast_exists(bound.ty(), &SqlType::Int8).is_none()
        {
            let given = bound.ty().base_name();
            let text = format!("argument of {units} must be type bigint, not type {given}");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text));
        }
        let value = coerce(bound, &SqlType::Int8, CastContext::Assignment, self)?;
        let now =
            if known { self.value_now(&value)?.unwrap_or(Datum::Int8(0)) } else { Datum::Int8(0) };
        match now {
            Datum::Int8(n) if n >= 0 => Ok(Offset { value, count: known.then_some(n as u64) }),
            // Of a body that is only checked, arguments are NULL.
            Datum::Null if self.is_in_body() => Ok(Offset { value, count: None }),
            _ if self.assumed.takes_none => Ok(Offset { value, count: None }),
            Datum::Null => Err(null_offset(end)),
            _ => Err(negative_offset(end)),
        }
    }

    /// So much more or less than the key, of a type that is shown as another.
    fn value_offset(
        &mut self,
        expr: &ast::Expr,
        (units, end): (ast::WindowFrameUnits, bool),
        (key, shown): (&SqlType, &SqlType),
    ) -> SqlResult<Offset> {
        let (bound, known) = self.bound_offset(expr, units)?;
        let wanted = offset_type(key).ok_or_else(|| SqlError::internal("no distance"))?;
        let given = bound.ty();
        let fits = *given == SqlType::Unknown
            || given.same_base(&wanted)
            || (wanted != SqlType::Interval
                && cast_exists(given, &wanted) == Some(CastContext::Implicit));
        if !fits {
            let (key, given) = (shown.base_name(), given.base_name());
            return Err(not_in_range(format!("column type {key} and offset type {given}"))
                .with_hint("Cast the offset value to an appropriate type."));
        }
        let value = coerce(bound, &wanted, CastContext::Implicit, self)?;
        let known = known && !self.is_in_body() && !self.assumed.takes_none;
        if known && self.value_now(&value)?.is_some_and(|now| now.is_null()) {
            return Err(null_offset(end));
        }
        Ok(Offset { value, count: None })
    }
}

fn offsets_of(units: ast::WindowFrameUnits) -> &'static str {
    match units {
        ast::WindowFrameUnits::Rows => "window ROWS",
        ast::WindowFrameUnits::Range => "window RANGE",
        ast::WindowFrameUnits::Groups => "window GROUPS",
    }
}

fn edge(bound: &ast::WindowFrameBound) -> Edge {
    match bound {
        ast::WindowFrameBound::CurrentRow => Edge::Current,
        ast::WindowFrameBound::Preceding(None) | ast::WindowFrameBound::Following(None) => {
            Edge::Unbounded
        }
        ast::WindowFrameBound::Preceding(Some(_)) => Edge::Before,
        ast::WindowFrameBound::Following(Some(_)) => Edge::Behind,
    }
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
