//! `##`: the point of the second shape that lies next to the first.

use braid_types::geometry::areas::{box_to_point, box_to_segment};
use braid_types::geometry::segments::{
    line_slope, nearest_on_line, segment_to_line, segment_to_point, segment_to_segment, slope,
};
use braid_types::{Datum, Geometry, Point, SqlResult};

use super::arguments::{corners, ends, line, made, point};
use crate::registry::Table;

/// The point at a distance, if that is one.
fn near((distance, point): (f64, Point)) -> SqlResult<Datum> {
    if distance.is_nan() { Ok(Datum::Null) } else { made(Geometry::Point(point)) }
}

/// Adds the functions of this file.
pub(in crate::functions) fn fill(t: &mut Table) {
    t.add(
        "##(point, line) point -- the point of a shape that lies next to another shape",
        |a, _| {
            let from = point(&a[0]);
            match nearest_on_line(line(&a[1]), from)? {
                Some(found) => near((found.to(from)?, found)),
                None => Ok(Datum::Null),
            }
        },
    );
    t.add("##(point, lseg) point", |a, _| near(segment_to_point(ends(&a[1]), point(&a[0]))?));
    t.add("##(point, box) point", |a, _| near(box_to_point(corners(&a[1]), point(&a[0]))?));
    t.add("##(lseg, box) point", |a, _| near(box_to_segment(corners(&a[1]), ends(&a[0]))?));
    t.add("##(lseg, lseg) point", |a, _| {
        let (from, to) = (ends(&a[0]), ends(&a[1]));
        // All points of parallels are as near.
        if slope(from)? == slope(to)? {
            return Ok(Datum::Null);
        }
        near(segment_to_segment(to, from)?)
    });
    t.add("##(line, lseg) point", |a, _| {
        let (line, segment) = (line(&a[0]), ends(&a[1]));
        if slope(segment)? == line_slope(line)? {
            return Ok(Datum::Null);
        }
        near(segment_to_line(segment, line)?)
    });
}
