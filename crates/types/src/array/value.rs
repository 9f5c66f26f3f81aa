//! Array values: elements in one list, and the dimensions that lay them out.
//!
//! ```text
//!   {10,20,30}              items 10 20 30        List            subscripts 1 to 3
//!   {{1,2},{3,4},{5,6}}     items 1 2 3 4 5 6     Grid [1:3][1:2]
//!   [0:1]={7,8}             items 7 8             Grid [0:1]
//!   '7 8'::int2vector       items 7 8             Vector          subscripts 0 and 1
//! ```
//! An array without elements has no dimensions and is a list. A grid is never a list in disguise:
//! [`ArrayValue::of`] sees to it, so that equal arrays have equal shapes.

use std::sync::Arc;

use crate::{Datum, SqlError, SqlResult, SqlState, SqlType};

/// Most dimensions that an array has.
const MAX_DIMENSIONS: usize = 6;

/// One dimension: its first subscript, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// The first subscript.
    pub lower: i32,
    /// Number of subscripts.
    pub length: usize,
}

impl Dimension {
    /// The last subscript.
    pub fn upper(&self) -> i32 {
        self.lower.wrapping_add(self.length as i32).wrapping_sub(1)
    }

    /// The place of a subscript; `None` outside.
    pub fn place(&self, subscript: i32) -> Option<usize> {
        let place = usize::try_from(i64::from(subscript) - i64::from(self.lower)).ok()?;
        (place < self.length).then_some(place)
    }
}

/// How the elements of an array lie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// One dimension, from 1; or no elements at all.
    #[default]
    List,
    /// One dimension, from 0: `int2vector` and `oidvector`, which print without braces.
    Vector,
    /// All else.
    Grid(Box<[Dimension]>),
}

/// The elements of an array, the last subscript counting fastest.
#[derive(Clone, Debug)]
pub struct ArrayValue {
    /// Type of the elements.
    pub element: SqlType,
    /// Elements, NULLs included.
    pub items: Vec<Datum>,
    /// How they lie.
    pub shape: Shape,
}

impl ArrayValue {
    /// One dimension, from 1.
    pub fn list(element: SqlType, items: Vec<Datum>) -> ArrayValue {
        ArrayValue { element, items, shape: Shape::List }
    }

    /// One dimension, from 0.
    pub fn vector(element: SqlType, items: Vec<Datum>) -> ArrayValue {
        ArrayValue { element, items, shape: Shape::Vector }
    }

    /// An array of these dimensions, which must have as many places as there are items.
    pub fn of(element: SqlType, items: Vec<Datum>, dimensions: &[Dimension]) -> ArrayValue {
        let plain = matches!(dimensions, [] | [Dimension { lower: 1, .. }]) || items.is_empty();
        let shape = if plain { Shape::List } else { Shape::Grid(dimensions.into()) };
        ArrayValue { element, items, shape }
    }

    /// The same places with other elements.
    pub fn like(&self, element: SqlType, items: Vec<Datum>) -> ArrayValue {
        ArrayValue { element, items, shape: self.shape.clone() }
    }

    /// Its dimensions; none if it is empty.
    pub fn dimensions(&self) -> Vec<Dimension> {
        let length = self.items.len();
        match &self.shape {
            _ if length == 0 => Vec::new(),
            Shape::List => vec![Dimension { lower: 1, length }],
            Shape::Vector => vec![Dimension { lower: 0, length }],
            Shape::Grid(dimensions) => dimensions.to_vec(),
        }
    }

    /// The element at subscripts, one for each dimension; `None` outside.
    pub fn at(&self, subscripts: &[i32]) -> Option<&Datum> {
        let dimensions = self.dimensions();
        if dimensions.len() != subscripts.len() {
            return None;
        }
        let mut place = 0;
        for (dimension, subscript) in dimensions.iter().zip(subscripts) {
            place = place * dimension.length + dimension.place(*subscript)?;
        }
        self.items.get(place)
    }

    /// The part between subscripts, both included; `None` stands for the first or last one. Of a
    /// part outside there are no elements. Subscripts of the part begin with 1.
    pub fn slice(&self, bounds: &[(Option<i32>, Option<i32>)]) -> ArrayValue {
        let dimensions = self.dimensions();
        let none = ArrayValue::list(self.element.clone(), Vec::new());
        if dimensions.len() < bounds.len() {
            return none;
        }
        let mut parts = Vec::with_capacity(dimensions.len());
        for (at, dimension) in dimensions.iter().enumerate() {
            let (low, high) = bounds.get(at).copied().unwrap_or((None, None));
            let low = low.unwrap_or(dimension.lower).max(dimension.lower);
            let high = high.unwrap_or(dimension.upper()).min(dimension.upper());
            if low > high {
                return none;
            }
            let from = (i64::from(low) - i64::from(dimension.lower)) as usize;
            parts.push((from, (i64::from(high) - i64::from(low)) as usize + 1));
        }
        let mut items = Vec::new();
        self.collect(&dimensions, &parts, 0, &mut items);
        let part = |(_, length): &(usize, usize)| Dimension { lower: 1, length: *length };
        let shown: Vec<Dimension> = parts.iter().map(part).collect();
        ArrayValue::of(self.element.clone(), items, &shown)
    }

    fn collect(
        &self,
        dimensions: &[Dimension],
        parts: &[(usize, usize)],
        base: usize,
        out: &mut Vec<Datum>,
    ) {
        let (Some((dimension, inner)), Some(((from, count), rest))) =
            (dimensions.split_first(), parts.split_first())
        else {
            out.extend(self.items.get(base).cloned());
            return;
        };
        debug_assert!(from + count <= dimension.length);
        let stride: usize = inner.iter().map(|d| d.length).product();
        for at in *from..from + count {
            self.collect(inner, rest, base + at * stride, out);
        }
    }

    /// The parts along the first dimension: elements, or arrays of one dimension less.
    pub fn outer(&self) -> Vec<Datum> {
        let dimensions = self.dimensions();
        match dimensions.split_first() {
            Some((_, inner)) if !inner.is_empty() => {
                let size: usize = inner.iter().map(|d| d.length).product();
                let part = |items: &[Datum]| {
                    let part = ArrayValue::of(self.element.clone(), items.to_vec(), inner);
                    Datum::Array(Arc::new(part))
                };
                self.items.chunks(size.max(1)).map(part).collect()
            }
            _ => self.items.clone(),
        }
    }

    /// Puts arrays of the same dimensions into one of one more.
    ///
    /// # Errors
    /// 2202E if their dimensions differ; 54000 if there are too many.
    pub fn stack(element: SqlType, parts: &[Arc<ArrayValue>]) -> SqlResult<ArrayValue> {
        let Some(first) = parts.first() else {
            return Ok(ArrayValue::list(element, Vec::new()));
        };
        let inner = first.dimensions();
        if parts.iter().any(|p| p.dimensions() != inner) {
            return Err(ragged());
        }
        check_dimensions(inner.len() + 1)?;
        if inner.is_empty() {
            return Ok(ArrayValue::list(element, Vec::new()));
        }
        let mut dimensions = vec![Dimension { lower: 1, length: parts.len() }];
        dimensions.extend(inner);
        let items = parts.iter().flat_map(|p| p.items.iter().cloned()).collect();
        Ok(ArrayValue::of(element, items, &dimensions))
    }
}

/// 2202E: parts of an array whose dimensions differ.
pub(crate) fn ragged() -> SqlError {
    SqlError::new(
        SqlState("2202E"),
        "multidimensional arrays must have array expressions with matching dimensions",
    )
}

/// # Errors
/// 54000 for more dimensions than arrays have.
pub fn check_dimensions(count: usize) -> SqlResult<()> {
    if count <= MAX_DIMENSIONS {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!(
            "number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})"
        ),
    ))
}

/// # Errors
/// 54000 for subscripts behind the last one that can be told.
pub fn check_bounds(dimensions: &[Dimension]) -> SqlResult<()> {
    let beyond = |d: &&Dimension| i64::from(d.lower) + d.length as i64 > i64::from(i32::MAX);
    match dimensions.iter().find(beyond) {
        None => Ok(()),
        Some(d) => Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("array lower bound is too large: {}", d.lower),
        )),
    }
}
