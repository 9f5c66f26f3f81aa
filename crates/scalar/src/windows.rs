//! Window functions: their entries in the registry. The general planner computes them
//! (`query/src/bind/window.rs`); every aggregate is one as well.

use crate::registry::Table;

/// Adds every window function to the registry.
pub(crate) fn fill(t: &mut Table) {
    for signature in [
        "row_number() int8 -- number of the row in its partition",
        "rank() int8 -- number of the first of its peers",
        "dense_rank() int8 -- number of its group of peers",
        "percent_rank() float8 -- share of the rows before its peers",
        "cume_dist() float8 -- share of the rows up to its peers",
        "ntile(int4) int4 -- which of so many parts of the same size it is in",
        "lag(anyelement) anyelement -- the value in the row before, or so many before",
        "lag(anyelement, int4) anyelement",
        "lag(anyelement, int4, anyelement) anyelement",
        "lead(anyelement) anyelement -- the value in the row behind, or so many behind",
        "lead(anyelement, int4) anyelement",
        "lead(anyelement, int4, anyelement) anyelement",
        "first_value(anyelement) anyelement -- the value in the first row of the frame",
        "last_value(anyelement) anyelement -- the value in the last row of the frame",
        "nth_value(anyelement, int4) anyelement -- the value in the n-th row of the frame",
    ] {
        t.window(signature);
    }
}
