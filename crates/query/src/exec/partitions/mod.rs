//! Parts of one operator's rows: who reads them, and in which order they come together.
//!
//! | file | what |
//! |---|---|
//! | `pieces.rs` | what threads that read one table take, one piece after the other |
//! | `gather.rs` | rows of all partitions as they come; the thread that asks reads, too |
//! | `in_order.rs` | the parts of a union one after the other, as written |

pub(crate) mod gather;
pub(crate) mod in_order;
pub(crate) mod pieces;
