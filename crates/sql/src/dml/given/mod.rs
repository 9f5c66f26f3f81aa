//! Rows of earlier steps of a WITH, in later ones.
//!
//! | file | what |
//! |---|---|
//! | `values.rs` | `id IN (SELECT id FROM next)` as `id IN (7, 9)` |
//! | `joined.rs` | `UPDATE jobs .. FROM next WHERE jobs.id = next.id` as one without the join |

mod joined;
mod values;

pub(super) use values::with_values;
