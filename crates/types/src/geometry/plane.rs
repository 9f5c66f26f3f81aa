//! Points, and numbers as shapes compare and compute them.

use crate::{SqlError, SqlResult, SqlState, numeric};

/// What is no further apart than this is the same.
const TOLERANCE: f64 = 1.0e-6;

/// A place in the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Up.
    pub y: f64,
}

/// Whether a number is no other than 0.
pub fn zero(a: f64) -> bool {
    a.abs() <= TOLERANCE
}

/// Whether two numbers are the same.
pub fn same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= TOLERANCE
}

/// Whether the first number is clearly less.
pub fn less(a: f64, b: f64) -> bool {
    a + TOLERANCE < b
}

/// Whether the first number is not clearly greater.
pub fn at_most(a: f64, b: f64) -> bool {
    a <= b + TOLERANCE
}

/// Whether a distance is less than another; what is no number is the greatest.
pub(super) fn nearer(a: f64, b: f64) -> bool {
    !a.is_nan() && (b.is_nan() || a < b)
}

fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

fn underflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

fn bounded(value: f64, infinite: bool) -> SqlResult<f64> {
    if value.is_infinite() && !infinite { Err(overflow()) } else { Ok(value) }
}

/// The sum.
///
/// # Errors
/// 22003 where finite numbers have an infinite sum.
pub fn plus(a: f64, b: f64) -> SqlResult<f64> {
    bounded(a + b, a.is_infinite() || b.is_infinite())
}

/// The difference.
///
/// # Errors
/// As [`plus`].
pub fn minus(a: f64, b: f64) -> SqlResult<f64> {
    bounded(a - b, a.is_infinite() || b.is_infinite())
}

/// The product.
///
/// # Errors
/// As [`plus`]; 22003, too, for a product that is 0 and should not be.
pub fn times(a: f64, b: f64) -> SqlResult<f64> {
    let product = bounded(a * b, a.is_infinite() || b.is_infinite())?;
    if product == 0.0 && a != 0.0 && b != 0.0 { Err(underflow()) } else { Ok(product) }
}

/// The quotient.
///
/// # Errors
/// As [`times`]; 22012.
pub fn over(a: f64, b: f64) -> SqlResult<f64> {
    if b == 0.0 && !a.is_nan() {
        return Err(numeric::division_by_zero());
    }
    let quotient = bounded(a / b, a.is_infinite())?;
    if quotient == 0.0 && a != 0.0 && !b.is_infinite() { Err(underflow()) } else { Ok(quotient) }
}

/// The length of the longest side of a triangle with a right angle, to PostgreSQL's last digit.
///
/// # Errors
/// 22003.
pub fn hypotenuse(x: f64, y: f64) -> SqlResult<f64> {
    if x.is_infinite() || y.is_infinite() {
        return Ok(f64::INFINITY);
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN);
    }
    let (x, y) = (x.abs(), y.abs());
    let (long, short) = if x < y { (y, x) } else { (x, y) };
    if short == 0.0 {
        return Ok(long);
    }
    let ratio = short / long;
    let length = long * (1.0 + ratio * ratio).sqrt();
    match length {
        l if l.is_infinite() => Err(overflow()),
        0.0 => Err(underflow()),
        l => Ok(l),
    }
}

/// The middle of two numbers.
fn middle(a: f64, b: f64) -> SqlResult<f64> {
    over(plus(a, b)?, 2.0)
}

impl Point {
    /// The point at two numbers.
    pub fn at(x: f64, y: f64) -> Point {
        Point { x, y }
    }

    /// Whether both points are the same; what is not a number is only itself.
    pub fn is(self, other: Point) -> bool {
        let numbers = [self.x, self.y, other.x, other.y];
        let equal = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        match numbers.iter().any(|n| n.is_nan()) {
            true => equal(self.x, other.x) && equal(self.y, other.y),
            false => same(self.x, other.x) && same(self.y, other.y),
        }
    }

    /// How far two points lie apart.
    ///
    /// # Errors
    /// 22003.
    pub fn to(self, other: Point) -> SqlResult<f64> {
        hypotenuse(minus(self.x, other.x)?, minus(self.y, other.y)?)
    }

    /// The point in the middle.
    ///
    /// # Errors
    /// 22003.
    pub fn middle(self, other: Point) -> SqlResult<Point> {
        Ok(Point { x: middle(self.x, other.x)?, y: middle(self.y, other.y)? })
    }

    /// Moved.
    ///
    /// # Errors
    /// 22003.
    pub fn moved(self, by: Point) -> SqlResult<Point> {
        Ok(Point { x: plus(self.x, by.x)?, y: plus(self.y, by.y)? })
    }

    /// Moved back.
    ///
    /// # Errors
    /// 22003.
    pub fn moved_back(self, by: Point) -> SqlResult<Point> {
        Ok(Point { x: minus(self.x, by.x)?, y: minus(self.y, by.y)? })
    }

    /// Turned and stretched: the product of two complex numbers.
    ///
    /// # Errors
    /// 22003.
    pub fn turned(self, by: Point) -> SqlResult<Point> {
        Ok(Point {
            x: minus(times(self.x, by.x)?, times(self.y, by.y)?)?,
            y: plus(times(self.x, by.y)?, times(self.y, by.x)?)?,
        })
    }

    /// Turned back and shrunk: the quotient of two complex numbers.
    ///
    /// # Errors
    /// 22003; 22012.
    pub fn turned_back(self, by: Point) -> SqlResult<Point> {
        let square = plus(times(by.x, by.x)?, times(by.y, by.y)?)?;
        let x = plus(times(self.x, by.x)?, times(self.y, by.y)?)?;
        let y = minus(times(self.y, by.x)?, times(self.x, by.y)?)?;
        Ok(Point { x: over(x, square)?, y: over(y, square)? })
    }
}
