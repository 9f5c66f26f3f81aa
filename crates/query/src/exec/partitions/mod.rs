//! Parts of one operator's rows: who reads them, and in which order they come together.
//!
//! | file | what |
//! |---|---|
//! | `pieces.rs` | what threads that read one table take, one piece after the other |
//! | `in_order.rs` | the parts of a union one after the other, as written |

pub(crate) mod in_order;
pub(crate) mod pieces;
