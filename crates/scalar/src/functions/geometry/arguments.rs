//! Arguments that are shapes.

use std::f64::consts::PI;
use std::sync::Arc;

use braid_types::geometry::areas::{Corners, enclosed, extent};
use braid_types::geometry::plane::times;
use braid_types::geometry::segments::{Line, Segment};
use braid_types::{Datum, Geometry, Point, SqlResult};

/// The shape that an argument is.
pub(super) fn shape(value: &Datum) -> &Geometry {
    match value {
        Datum::Geometry(shape) => shape,
        _ => unreachable!("strict functions are called with what their signature says"),
    }
}

pub(super) fn made(shape: Geometry) -> SqlResult<Datum> {
    Ok(Datum::Geometry(Arc::new(shape)))
}

pub(super) fn truth(value: bool) -> SqlResult<Datum> {
    Ok(Datum::Bool(value))
}

pub(super) fn point(value: &Datum) -> Point {
    match shape(value) {
        Geometry::Point(p) => *p,
        _ => unreachable!("a point by its signature"),
    }
}

pub(super) fn line(value: &Datum) -> Line {
    match shape(value) {
        Geometry::Line(line) => *line,
        _ => unreachable!("a line by its signature"),
    }
}

pub(super) fn ends(value: &Datum) -> Segment {
    match shape(value) {
        Geometry::Lseg(ends) => *ends,
        _ => unreachable!("a segment by its signature"),
    }
}

/// The corners of a box; of a path or polygon those of the box around it.
pub(super) fn corners(value: &Datum) -> Corners {
    shape(value).bounds()
}

pub(super) fn circle(value: &Datum) -> (Point, f64) {
    match shape(value) {
        Geometry::Circle { center, radius } => (*center, *radius),
        _ => unreachable!("a circle by its signature"),
    }
}

/// Whether a path is closed; a polygon is.
pub(super) fn is_closed(value: &Datum) -> bool {
    !matches!(shape(value), Geometry::Path { closed: false, .. })
}

/// What shapes of a type are greater or less by: area, length, number of points.
pub(super) fn size(value: &Datum) -> SqlResult<f64> {
    match shape(value) {
        Geometry::Box(corners) => {
            let (width, height) = extent(*corners)?;
            times(width, height)
        }
        Geometry::Circle { radius, .. } => times(times(*radius, *radius)?, PI),
        Geometry::Lseg([a, b]) => a.to(*b),
        Geometry::Path { points, .. } => Ok(points.len() as f64),
        Geometry::Polygon(points) => enclosed(points),
        Geometry::Point(_) | Geometry::Line(_) => Ok(0.0),
    }
}
