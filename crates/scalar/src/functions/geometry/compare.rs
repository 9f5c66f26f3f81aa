//! `=` and its like. Boxes and circles compare by their area, segments by their length, paths by
//! the number of their points: none of these is an order that an index could have.

use braid_types::geometry::areas::{same_circles, same_polygons};
use braid_types::geometry::plane::{at_most, less, same};
use braid_types::geometry::segments::same_lines;
use braid_types::{Datum, SqlResult};

use super::arguments::{circle, corners, ends, line, point, shape, size, truth};
use crate::registry::Table;

/// Compares two sizes.
fn sizes(a: &[Datum], holds: fn(f64, f64) -> bool) -> SqlResult<Datum> {
    truth(holds(size(&a[0])?, size(&a[1])?))
}

/// Whether two segments have the same ends, in the same order.
fn same_ends(a: &[Datum]) -> bool {
    let (one, two) = (ends(&a[0]), ends(&a[1]));
    one[0].is(two[0]) && one[1].is(two[1])
}

/// Adds the functions of this file.
pub(in crate::functions) fn fill(t: &mut Table) {
    equal(t);
    ordered(t);
    t.add("~=(point, point) bool -- whether two shapes are the same", |a, _| {
        truth(point(&a[0]).is(point(&a[1])))
    });
    t.add("~=(box, box) bool", |a, _| {
        let ([high, low], [other_high, other_low]) = (corners(&a[0]), corners(&a[1]));
        truth(high.is(other_high) && low.is(other_low))
    });
    t.add("~=(polygon, polygon) bool", |a, _| {
        truth(same_polygons(shape(&a[0]).points(), shape(&a[1]).points()))
    });
    t.add("~=(circle, circle) bool", |a, _| truth(same_circles(circle(&a[0]), circle(&a[1]))));
}

fn equal(t: &mut Table) {
    t.add(
        "=(box, box) bool -- whether shapes are equal: boxes and circles of one area, paths of \
           as many points, the same segment or line",
        |a, _| sizes(a, same),
    );
    t.add("=(circle, circle) bool", |a, _| sizes(a, same));
    t.add("=(path, path) bool", |a, _| sizes(a, |x, y| x == y));
    t.add("=(lseg, lseg) bool", |a, _| truth(same_ends(a)));
    t.add("=(line, line) bool", |a, _| truth(same_lines(line(&a[0]), line(&a[1]))?));
    t.add("<>(point, point) bool -- whether shapes are not equal", |a, _| {
        truth(!point(&a[0]).is(point(&a[1])))
    });
    t.add("<>(circle, circle) bool", |a, _| sizes(a, |x, y| !same(x, y)));
    t.add("<>(lseg, lseg) bool", |a, _| truth(!same_ends(a)));
}

fn ordered(t: &mut Table) {
    t.add("<(box, box) bool -- whether a shape is smaller, shorter or of fewer points", |a, _| {
        sizes(a, less)
    });
    t.add("<(circle, circle) bool", |a, _| sizes(a, less));
    t.add("<(lseg, lseg) bool", |a, _| sizes(a, less));
    t.add("<(path, path) bool", |a, _| sizes(a, |x, y| x < y));
    t.add(
        "<=(box, box) bool -- whether a shape is not greater, longer or of more points",
        |a, _| sizes(a, at_most),
    );
    t.add("<=(circle, circle) bool", |a, _| sizes(a, at_most));
    t.add("<=(lseg, lseg) bool", |a, _| sizes(a, at_most));
    t.add("<=(path, path) bool", |a, _| sizes(a, |x, y| x <= y));
    t.add(">(box, box) bool -- whether a shape is greater, longer or of more points", |a, _| {
        sizes(a, |x, y| less(y, x))
    });
    t.add(">(circle, circle) bool", |a, _| sizes(a, |x, y| less(y, x)));
    t.add(">(lseg, lseg) bool", |a, _| sizes(a, |x, y| less(y, x)));
    t.add(">(path, path) bool", |a, _| sizes(a, |x, y| x > y));
    t.add(
        ">=(box, box) bool -- whether a shape is not smaller, shorter or of fewer points",
        |a, _| sizes(a, |x, y| at_most(y, x)),
    );
    t.add(">=(circle, circle) bool", |a, _| sizes(a, |x, y| at_most(y, x)));
    t.add(">=(lseg, lseg) bool", |a, _| sizes(a, |x, y| at_most(y, x)));
    t.add(">=(path, path) bool", |a, _| sizes(a, |x, y| x >= y));
}
