//! Moved and turned shapes: a point moves another shape, or turns and stretches it as the product
//! of complex numbers does.

use braid_types::geometry::plane::{hypotenuse, over, times};
use braid_types::{Datum, Geometry, Point, SqlResult};

use super::arguments::{circle, is_closed, made, point, shape};
use crate::registry::Table;

/// Does the same to all points of a shape.
fn each(shape: &Geometry, f: impl Fn(Point) -> SqlResult<Point>) -> SqlResult<Geometry> {
    Ok(match shape {
        Geometry::Point(p) => Geometry::Point(f(*p)?),
        Geometry::Box([high, low]) => Geometry::boxed(f(*high)?, f(*low)?),
        Geometry::Path { closed, points } => {
            let points = points.iter().map(|p| f(*p)).collect::<SqlResult<_>>()?;
            Geometry::Path { closed: *closed, points }
        }
        Geometry::Circle { center, radius } => {
            Geometry::Circle { center: f(*center)?, radius: *radius }
        }
        other => other.clone(),
    })
}

/// A shape whose points a point has changed.
fn changed(a: &[Datum], how: fn(Point, Point) -> SqlResult<Point>) -> SqlResult<Datum> {
    let by = point(&a[1]);
    made(each(shape(&a[0]), |p| how(p, by))?)
}

/// A circle grows with the length of the point that turns it.
fn grown(
    a: &[Datum],
    turn: fn(Point, Point) -> SqlResult<Point>,
    grow: fn(f64, f64) -> SqlResult<f64>,
) -> SqlResult<Datum> {
    let ((center, radius), by) = (circle(&a[0]), point(&a[1]));
    let center = turn(center, by)?;
    made(Geometry::Circle { center, radius: grow(radius, hypotenuse(by.x, by.y)?)? })
}

/// Two open paths, one behind the other.
fn joined(a: &[Datum]) -> SqlResult<Datum> {
    if is_closed(&a[0]) || is_closed(&a[1]) {
        return Ok(Datum::Null);
    }
    let points = [shape(&a[0]).points(), shape(&a[1]).points()].concat();
    made(Geometry::Path { closed: false, points })
}

/// Adds the functions of this file.
pub(in crate::functions) fn fill(t: &mut Table) {
    for signature in [
        "+(point, point) point",
        "+(box, point) box",
        "+(path, point) path",
        "+(circle, point) circle",
    ] {
        t.add(signature, |a, _| changed(a, Point::moved));
    }
    t.add("+(path, path) path", |a, _| joined(a));
    for signature in [
        "-(point, point) point",
        "-(box, point) box",
        "-(path, point) path",
        "-(circle, point) circle",
    ] {
        t.add(signature, |a, _| changed(a, Point::moved_back));
    }
    for signature in ["*(point, point) point", "*(box, point) box", "*(path, point) path"] {
        t.add(signature, |a, _| changed(a, Point::turned));
    }
    t.add("*(circle, point) circle", |a, _| grown(a, Point::turned, times));
    for signature in ["/(point, point) point", "/(box, point) box", "/(path, point) path"] {
        t.add(signature, |a, _| changed(a, Point::turned_back));
    }
    t.add("/(circle, point) circle", |a, _| grown(a, Point::turned_back, over));
}
