//! [`Geometry`]: one shape.

use std::cmp::Ordering;
use std::sync::Arc;

use super::areas::{Corners, around, box_of};
use super::segments::{Line, Segment};
use super::{GeometryKind, Point};
use crate::Datum;

/// A value of one of these types.
#[derive(Clone, Debug)]
pub enum Geometry {
    /// `point`.
    Point(Point),
    /// `line`.
    Line(Line),
    /// `lseg`.
    Lseg(Segment),
    /// `box`.
    Box(Corners),
    /// `path`.
    Path {
        /// Whether a segment goes back from the last point to the first.
        closed: bool,
        /// One at least.
        points: Vec<Point>,
    },
    /// `polygon`, of one point at least.
    Polygon(Vec<Point>),
    /// `circle`.
    Circle {
        /// In the middle.
        center: Point,
        /// From there to the border.
        radius: f64,
    },
}

impl Geometry {
    /// Which of the types it is of.
    pub fn kind(&self) -> GeometryKind {
        match self {
            Geometry::Point(_) => GeometryKind::Point,
            Geometry::Line(_) => GeometryKind::Line,
            Geometry::Lseg(_) => GeometryKind::Lseg,
            Geometry::Box(_) => GeometryKind::Box,
            Geometry::Path { .. } => GeometryKind::Path,
            Geometry::Polygon(_) => GeometryKind::Polygon,
            Geometry::Circle { .. } => GeometryKind::Circle,
        }
    }

    /// The box with two corners.
    pub fn boxed(a: Point, b: Point) -> Geometry {
        Geometry::Box(box_of(a, b))
    }

    /// The points of a path or polygon; of other shapes none.
    pub fn points(&self) -> &[Point] {
        match self {
            Geometry::Path { points, .. } | Geometry::Polygon(points) => points,
            _ => &[],
        }
    }

    /// The smallest box around a path or polygon, or the box itself.
    pub fn bounds(&self) -> Corners {
        match self {
            Geometry::Box(corners) => *corners,
            other => around(other.points()),
        }
    }

    /// `value[0]`: a number of a point or line, a point of a segment or box.
    pub fn part(&self, places: &[i32]) -> Option<Datum> {
        let [place] = places else { return None };
        let place = usize::try_from(*place).ok()?;
        Some(match self {
            Geometry::Point(p) => Datum::Float8(*[p.x, p.y].get(place)?),
            Geometry::Line(line) => Datum::Float8(*line.get(place)?),
            Geometry::Lseg(points) | Geometry::Box(points) => {
                Datum::Geometry(Arc::new(Geometry::Point(*points.get(place)?)))
            }
            _ => return None,
        })
    }

    /// Bytes behind pointers.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Geometry>() + size_of_val(self.points())
    }

    /// Some order, the same one always: SQL has none.
    pub(crate) fn order(&self, other: &Geometry) -> Ordering {
        self.bytes().cmp(&other.bytes())
    }
}
