//! Conversions between these types.

use std::f64::consts::PI;

use super::areas::{around, centre};
use super::plane::{minus, over, plus, times, zero};
use super::{Geometry, GeometryKind, Point};
use crate::{CastContext, SqlError, SqlResult, SqlState, SqlType};

/// Corners of the polygon that a circle becomes.
const CORNERS: i32 = 12;

/// Points of the largest value that PostgreSQL holds, of a gigabyte.
const MOST_POINTS: i32 = (1 << 30) / 16 - 8;

/// The least context of a cast between two of these types.
pub(crate) fn exists(from: &SqlType, to: &SqlType) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit};
    use GeometryKind as K;
    let (SqlType::Geometry(from), SqlType::Geometry(to)) = (from, to) else { return None };
    Some(match (from, to) {
        (K::Point, K::Box) | (K::Path, K::Polygon) | (K::Polygon, K::Path) => Assignment,
        (K::Box, K::Polygon) => Assignment,
        (K::Lseg | K::Box | K::Polygon | K::Circle, K::Point) => Explicit,
        (K::Box, K::Lseg | K::Circle) => Explicit,
        (K::Polygon, K::Box | K::Circle) | (K::Circle, K::Box | K::Polygon) => Explicit,
        _ => return None,
    })
}

/// Converts a value; `None` if there is no such cast.
pub(crate) fn convert(value: &Geometry, to: GeometryKind) -> Option<SqlResult<Geometry>> {
    use Geometry as G;
    use GeometryKind as K;
    Some(match (value, to) {
        (G::Point(p), K::Box) => Ok(G::Box([*p, *p])),
        (G::Path { closed: true, points }, K::Polygon) => Ok(G::Polygon(points.clone())),
        (G::Path { .. }, K::Polygon) => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "open path cannot be converted to polygon",
        )),
        (G::Polygon(points), K::Path) => Ok(G::Path { closed: true, points: points.clone() }),
        (G::Polygon(points), K::Box) => Ok(G::Box(around(points))),
        (G::Polygon(points), K::Point) => centre(points).map(G::Point),
        (G::Polygon(points), K::Circle) => circle_around(points),
        (G::Lseg([a, b]) | G::Box([a, b]), K::Point) => a.middle(*b).map(G::Point),
        (G::Box(corners), K::Lseg) => Ok(G::Lseg(*corners)),
        (G::Box([high, low]), K::Circle) => (|| {
            let center = high.middle(*low)?;
            Ok(G::Circle { center, radius: center.to(*high)? })
        })(),
        (G::Box([high, low]), K::Polygon) => {
            let (left, right) = (Point::at(low.x, high.y), Point::at(high.x, low.y));
            Ok(G::Polygon(vec![*low, left, *high, right]))
        }
        (G::Circle { center, .. }, K::Point) => Ok(G::Point(*center)),
        (G::Circle { center, radius }, K::Box) => (|| {
            let half = over(*radius, 2f64.sqrt())?;
            let by = Point::at(half, half);
            Ok(G::boxed(center.moved(by)?, center.moved_back(by)?))
        })(),
        (G::Circle { center, radius }, K::Polygon) => polygon_in(*center, *radius, CORNERS),
        _ => return None,
    })
}

/// As far from the middle of the points as they are on average.
fn circle_around(points: &[Point]) -> SqlResult<Geometry> {
    let center = centre(points)?;
    let mut sum = 0.0;
    for p in points {
        sum = plus(sum, p.to(center)?)?;
    }
    Ok(Geometry::Circle { center, radius: over(sum, points.len() as f64)? })
}

/// The polygon of so many points on a circle.
///
/// # Errors
/// 0A000 for a circle without an extent, 22023 for fewer than 2 points, 22003.
pub(super) fn polygon_in(center: Point, radius: f64, count: i32) -> SqlResult<Geometry> {
    if zero(radius) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot convert circle with radius zero to polygon",
        ));
    }
    if count < 2 {
        let text = "must request at least 2 points";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text));
    }
    if count > MOST_POINTS {
        let text = "too many points requested";
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, text));
    }
    let step = over(2.0 * PI, f64::from(count))?;
    let mut points = Vec::new();
    for at in 0..count {
        let angle = times(step, f64::from(at))?;
        let right = times(radius, angle.cos())?;
        let up = times(radius, angle.sin())?;
        points.push(Point::at(minus(center.x, right)?, plus(center.y, up)?));
    }
    Ok(Geometry::Polygon(points))
}

impl Geometry {
    /// The polygon of so many points on the circle that this is.
    ///
    /// # Errors
    /// 0A000 for a circle without an extent, 22023 for fewer than 2 points, 22003.
    pub fn cornered(&self, count: i32) -> SqlResult<Geometry> {
        match self {
            Geometry::Circle { center, radius } => polygon_in(*center, *radius, count),
            other => Ok(other.clone()),
        }
    }
}
