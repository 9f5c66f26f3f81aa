//! What shapes are made of, and what they are made into.

use std::sync::Arc;

use braid_types::geometry::areas::{centre, enclosed, extent, greatest, least, segments_of};
use braid_types::geometry::plane::{plus, times};
use braid_types::geometry::segments::{Line, line_at, slope};
use braid_types::{Datum, Geometry, Point, SqlError, SqlResult, SqlState};

use super::arguments::{circle, corners, ends, is_closed, made, point, shape, size, truth};
use crate::functions::{f64_of, i64_of};
use crate::registry::Table;

/// Adds the functions of this file.
pub(in crate::functions) fn fill(t: &mut Table) {
    constructors(t);
    measures(t);
    middles(t);
    paths(t);
}

fn constructors(t: &mut Table) {
    t.add("point(float8, float8) point -- a point of its two numbers", |a, _| {
        made(Geometry::Point(Point::at(f64_of(&a[0]), f64_of(&a[1]))))
    });
    t.add("lseg(point, point) lseg -- a segment between two points", |a, _| {
        made(Geometry::Lseg([point(&a[0]), point(&a[1])]))
    });
    t.add("line(point, point) line -- the line through two points", |a, _| {
        made(Geometry::Line(through(point(&a[0]), point(&a[1]))?))
    });
    t.add("box(point, point) box -- a box of two opposite corners", |a, _| {
        made(Geometry::boxed(point(&a[0]), point(&a[1])))
    });
    t.add("bound_box(box, box) box -- the smallest box around two boxes", |a, _| {
        let ([ah, al], [bh, bl]) = (corners(&a[0]), corners(&a[1]));
        let high = Point::at(greatest(ah.x, bh.x), greatest(ah.y, bh.y));
        made(Geometry::Box([high, Point::at(least(al.x, bl.x), least(al.y, bl.y))]))
    });
    t.add("circle(point, float8) circle -- a circle of its center and radius", |a, _| {
        // Also a negative one, which no text of a circle may have.
        made(Geometry::Circle { center: point(&a[0]), radius: f64_of(&a[1]) })
    });
    t.add("polygon(int4, circle) polygon -- the polygon of so many points on a circle", |a, _| {
        made(shape(&a[1]).cornered(i64_of(&a[0]) as i32)?)
    });
}

fn through(a: Point, b: Point) -> SqlResult<Line> {
    if a.is(b) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "invalid line specification: must be two distinct points",
        ));
    }
    line_at(a, slope([a, b])?)
}

fn float(value: SqlResult<f64>) -> SqlResult<Datum> {
    value.map(Datum::Float8)
}

/// The length of a path, with the way back if it is closed.
fn length(path: &Datum) -> SqlResult<f64> {
    let sides = segments_of(shape(path).points(), is_closed(path));
    sides.into_iter().try_fold(0.0, |sum, [a, b]| plus(sum, a.to(b)?))
}

fn measures(t: &mut Table) {
    t.add("area(box) float8 -- the area of a shape", |a, _| float(size(&a[0])));
    t.add("area(circle) float8", |a, _| float(size(&a[0])));
    t.add("area(path) float8", |a, _| match is_closed(&a[0]) {
        true => float(enclosed(shape(&a[0]).points())),
        false => Ok(Datum::Null),
    });
    t.add("width(box) float8 -- how far a box reaches from left to right", |a, _| {
        float(extent(corners(&a[0])).map(|(width, _)| width))
    });
    t.add("height(box) float8 -- how far a box reaches from bottom to top", |a, _| {
        float(extent(corners(&a[0])).map(|(_, height)| height))
    });
    t.add("radius(circle) float8 -- how far the border lies from the center", |a, _| {
        Ok(Datum::Float8(circle(&a[0]).1))
    });
    t.add("diameter(circle) float8 -- how far a circle reaches", |a, _| {
        float(times(circle(&a[0]).1, 2.0))
    });
    t.add("length(lseg) float8", |a, _| float(size(&a[0])));
    t.add("length(path) float8", |a, _| float(length(&a[0])));
    t.add("@-@(lseg) float8 -- the length of a segment or path", |a, _| float(size(&a[0])));
    t.add("@-@(path) float8", |a, _| float(length(&a[0])));
    t.add("slope(point, point) float8 -- how steep the line through two points is", |a, _| {
        float(slope([point(&a[0]), point(&a[1])]))
    });
}

fn middle([a, b]: [Point; 2]) -> SqlResult<Datum> {
    made(Geometry::Point(a.middle(b)?))
}

fn middles(t: &mut Table) {
    t.add("center(box) point -- the point in the middle", |a, _| middle(corners(&a[0])));
    t.add("center(circle) point", |a, _| made(Geometry::Point(circle(&a[0]).0)));
    t.add("@@(box) point", |a, _| middle(corners(&a[0])));
    t.add("@@(lseg) point", |a, _| middle(ends(&a[0])));
    t.add("@@(circle) point", |a, _| made(Geometry::Point(circle(&a[0]).0)));
    t.add("@@(polygon) point", |a, _| made(Geometry::Point(centre(shape(&a[0]).points())?)));
    t.add("diagonal(box) lseg -- the segment between two opposite corners", |a, _| {
        made(Geometry::Lseg(corners(&a[0])))
    });
}

fn paths(t: &mut Table) {
    fn count(value: &Datum) -> SqlResult<Datum> {
        Ok(Datum::Int4(shape(value).points().len() as i32))
    }
    fn with_end(value: &Datum, closed: bool) -> SqlResult<Datum> {
        let points = shape(value).points().to_vec();
        Ok(Datum::Geometry(Arc::new(Geometry::Path { closed, points })))
    }
    t.add("npoints(path) int4 -- the number of points", |a, _| count(&a[0]));
    t.add("npoints(polygon) int4", |a, _| count(&a[0]));
    t.add("#(path) int4", |a, _| count(&a[0]));
    t.add("#(polygon) int4", |a, _| count(&a[0]));
    t.add("isopen(path) bool -- whether a path has two ends", |a, _| truth(!is_closed(&a[0])));
    t.add("isclosed(path) bool -- whether a path has no ends", |a, _| truth(is_closed(&a[0])));
    t.add("pclose(path) path -- with a segment from the last point to the first", |a, _| {
        with_end(&a[0], true)
    });
    t.add("popen(path) path -- without a segment from the last point to the first", |a, _| {
        with_end(&a[0], false)
    });
}
