//! Shapes in the plane: `point`, `line`, `lseg`, `box`, `path`, `polygon` and `circle`.
//!
//! ```text
//!   '(1,2)'::point                 '[(0,0),(1,1)]'::lseg        '(2,2),(0,0)'::box   high, low
//!   '{1,-1,0}'::line   1x - y = 0  '((0,0),(1,1))'::path        '<(0,0),5>'::circle
//! ```
//!
//! Their numbers are doubles and compare with a tolerance, so that no order and no equality of
//! theirs is one that trees, hashes or GROUP BY could use: what is written `=` is an operator like
//! `<->`. Stored and sent they have the same bytes, those of the wire protocol.
//!
//! - [`plane`]: comparisons with the tolerance, arithmetic that overflows, points.
//! - [`segments`]: lines and segments, where they meet and how far they lie apart.
//! - [`areas`]: boxes, paths and polygons.
//! - [`distance`]: how far any two shapes lie apart.

pub mod areas;
pub(crate) mod cast;
pub mod distance;
mod kind;
pub mod plane;
pub mod segments;
mod text;
mod value;
mod wire;

pub use kind::GeometryKind;
pub use plane::Point;
pub use value::Geometry;
