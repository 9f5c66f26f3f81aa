//! Which of the shapes a type is of.

use serde::{Deserialize, Serialize};

use crate::SqlType;

/// A type of shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GeometryKind {
    /// `point`.
    Point,
    /// `lseg`: the part of a line between two points.
    Lseg,
    /// `path`: points with segments between them, open or closed.
    Path,
    /// `box`: a rectangle whose sides are parallel to the axes.
    Box,
    /// `polygon`: the area in a closed path.
    Polygon,
    /// `line`: without ends.
    Line,
    /// `circle`.
    Circle,
}

impl GeometryKind {
    /// The name of the type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            GeometryKind::Point => "point",
            GeometryKind::Lseg => "lseg",
            GeometryKind::Path => "path",
            GeometryKind::Box => "box",
            GeometryKind::Polygon => "polygon",
            GeometryKind::Line => "line",
            GeometryKind::Circle => "circle",
        }
    }

    /// Bytes of a value, -1 for any number.
    pub(crate) fn len(self) -> i16 {
        match self {
            GeometryKind::Point => 16,
            GeometryKind::Line | GeometryKind::Circle => 24,
            GeometryKind::Lseg | GeometryKind::Box => 32,
            GeometryKind::Path | GeometryKind::Polygon => -1,
        }
    }

    /// What `value[0]` is of.
    pub fn part(self) -> Option<SqlType> {
        match self {
            GeometryKind::Point | GeometryKind::Line => Some(SqlType::Float8),
            GeometryKind::Lseg | GeometryKind::Box => Some(SqlType::Geometry(GeometryKind::Point)),
            GeometryKind::Path | GeometryKind::Polygon | GeometryKind::Circle => None,
        }
    }
}
