//! Functions and operators over shapes in the plane.
//!
//! - [`arguments`]: what they are called with.
//! - [`compare`]: `=` and its like, by size or by place.
//! - [`places`]: where shapes lie: in, beside, above, across one another.
//! - [`moves`]: moved and turned shapes.
//! - [`nearest`]: which point of a shape lies next to another shape.
//! - [`parts`]: what shapes are made of, and what they are made into.

mod arguments;
pub(super) mod compare;
pub(super) mod moves;
pub(super) mod nearest;
pub(super) mod parts;
pub(super) mod places;
