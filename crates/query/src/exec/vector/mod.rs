//! Expressions over columns: a bound tree becomes a tree of *kernels*, each of which takes and
//! gives Arrow arrays, and which DataFusion calls as one function.
//!
//! ```text
//!   CASE WHEN d <> 0 THEN n / d END          compile         case
//!                                            ------->       /    \
//!                                                        d <> 0   n / d   only rows that are left
//! ```
//! The row form (`Bound::eval`) says what is right. A kernel gives its values or is *unfit*: an
//! overflow, a division by zero, a number that its carrier cannot hold. Then the whole batch is
//! computed by the row form, which gives the value, or the error of the first row that has one. So
//! no kernel has errors of its own, and it does not matter for the answer what it does with rows
//! that a condition rejects; it matters for the speed, so what can be unfit sees only rows that are
//! still wanted.
//!
//! What has no kernel is computed row by row on its operands' columns (`rows.rs`); EXPLAIN marks
//! such expressions with `by row:`.
//!
//! | file | holds |
//! |---|---|
//! | `value` | columns and constants; how kernels of two operands go over them |
//! | `compile` | from nodes to kernels; nodes whose parts are lazy: `lazy` |
//! | `compare`, `numbers`, `decimals`, `packed`, `casts`, `texts`, `dates` | the families |

mod casts;
mod compare;
mod compile;
mod dates;
mod decimals;
mod lazy;
mod numbers;
mod packed;
mod program;
mod rows;
#[cfg(test)]
mod tests;
mod texts;
mod value;

pub(crate) use compare::float_order;
pub(crate) use program::{Program, decimal_carrier};
