//! The binary form, which is also the stored one.

use super::plane::zero;
use super::{Geometry, GeometryKind, Point};
use crate::{SqlError, SqlResult, SqlState};

impl Geometry {
    /// The bytes that are sent and stored.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.to_wire(&mut out);
        out
    }

    /// Appends the binary form.
    pub(crate) fn to_wire(&self, out: &mut Vec<u8>) {
        let mut put = |numbers: &[f64]| numbers.iter().for_each(|n| out.extend(n.to_be_bytes()));
        match self {
            Geometry::Point(p) => put(&[p.x, p.y]),
            Geometry::Line(line) => put(line),
            Geometry::Lseg([a, b]) | Geometry::Box([a, b]) => put(&[a.x, a.y, b.x, b.y]),
            Geometry::Circle { center, radius } => put(&[center.x, center.y, *radius]),
            Geometry::Path { closed, points } => {
                out.push(u8::from(*closed));
                put_points(points, out);
            }
            Geometry::Polygon(points) => put_points(points, out),
        }
    }

    /// Reads what [`Geometry::bytes`] wrote.
    pub fn from_bytes(kind: GeometryKind, bytes: &[u8]) -> Option<Geometry> {
        Geometry::from_wire(kind, bytes)?.ok()
    }

    /// Reads the binary form; `None` if it is malformed.
    pub(crate) fn from_wire(kind: GeometryKind, bytes: &[u8]) -> Option<SqlResult<Geometry>> {
        let mut reader = Reader(bytes);
        let value = match kind {
            GeometryKind::Point => Geometry::Point(reader.point()?),
            GeometryKind::Lseg => Geometry::Lseg([reader.point()?, reader.point()?]),
            GeometryKind::Box => {
                let high = reader.point()?;
                Geometry::boxed(reader.point()?, high)
            }
            GeometryKind::Line => {
                Geometry::Line([reader.number()?, reader.number()?, reader.number()?])
            }
            GeometryKind::Circle => {
                Geometry::Circle { center: reader.point()?, radius: reader.number()? }
            }
            GeometryKind::Path | GeometryKind::Polygon => {
                let closed = kind == GeometryKind::Path && reader.byte()? != 0;
                let Some(points) = reader.points()? else {
                    let text =
                        format!("invalid number of points in external \"{}\" value", kind.name());
                    return Some(Err(refused(text)));
                };
                match kind {
                    GeometryKind::Path => Geometry::Path { closed, points },
                    _ => Geometry::Polygon(points),
                }
            }
        };
        if !reader.0.is_empty() {
            return None;
        }
        Some(match &value {
            Geometry::Line([a, b, _]) if zero(*a) && zero(*b) => {
                Err(refused("invalid line specification: A and B cannot both be zero"))
            }
            Geometry::Circle { radius, .. } if *radius < 0.0 => {
                Err(refused("invalid radius in external \"circle\" value"))
            }
            _ => Ok(value),
        })
    }
}

fn refused(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, text)
}

fn put_points(points: &[Point], out: &mut Vec<u8>) {
    out.extend((points.len() as i32).to_be_bytes());
    for p in points {
        out.extend(p.x.to_be_bytes());
        out.extend(p.y.to_be_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[b]| b)
    }

    fn number(&mut self) -> Option<f64> {
        self.take().map(f64::from_be_bytes)
    }

    fn point(&mut self) -> Option<Point> {
        Some(Point::at(self.number()?, self.number()?))
    }

    /// Points behind their number; `Some(None)` if there cannot be so many.
    fn points(&mut self) -> Option<Option<Vec<Point>>> {
        let count = i32::from_be_bytes(self.take()?);
        // A value has no more bytes than a signed number of 32 bits can say.
        if count <= 0 || count > (i32::MAX - 64) / 16 {
            return Some(None);
        }
        // No more are made room for than the bytes can be.
        if count as usize > self.0.len() / 16 {
            return None;
        }
        (0..count).map(|_| self.point()).collect::<Option<Vec<_>>>().map(Some)
    }
}
