//! Window functions: their entries in the registry. The general planner computes them
//! (`query/src/bind/window.rs`); every aggregate is one as well.

use crate::registry::Table;

/// What a window function computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowCode {
    /// The number of the row.
    RowNumber,
    /// The number of the first peer.
    Rank,
    /// The number of the group of peers.
    DenseRank,
    /// The share of the rows before the peers.
    PercentRank,
    /// The share of the rows up to the peers.
    CumeDist,
    /// A part of the partition.
    Ntile,
    /// A row before.
    Lag,
    /// A row behind.
    Lead,
    /// The first row of the frame.
    FirstValue,
    /// The last row of the frame.
    LastValue,
    /// A row of the frame by its number.
    NthValue,
}

impl WindowCode {
    /// Whether it looks at the frame, and not at the partition.
    pub fn is_of_frame(self) -> bool {
        matches!(self, WindowCode::FirstValue | WindowCode::LastValue | WindowCode::NthValue)
    }

    /// The name of the functions that compute it.
    pub fn name(self) -> &'static str {
        match self {
            WindowCode::RowNumber => "row_number",
            WindowCode::Rank => "rank",
            WindowCode::DenseRank => "dense_rank",
            WindowCode::PercentRank => "percent_rank",
            WindowCode::CumeDist => "cume_dist",
            WindowCode::Ntile => "ntile",
            WindowCode::Lag => "lag",
            WindowCode::Lead => "lead",
            WindowCode::FirstValue => "first_value",
            WindowCode::LastValue => "last_value",
            WindowCode::NthValue => "nth_value",
        }
    }

    /// The argument that counts rows or parts.
    pub fn counting_argument(self) -> Option<usize> {
        match self {
            WindowCode::Ntile => Some(0),
            WindowCode::Lag | WindowCode::Lead | WindowCode::NthValue => Some(1),
            _ => None,
        }
    }

    /// The argument that stands for a row that is not there.
    pub fn default_argument(self) -> Option<usize> {
        matches!(self, WindowCode::Lag | WindowCode::Lead).then_some(2)
    }

    /// The SQLSTATE of a count below one, if that is an error.
    pub fn state_below_one(self) -> Option<&'static str> {
        match self {
            WindowCode::Ntile => Some("22014"),
            WindowCode::NthValue => Some("22016"),
            _ => None,
        }
    }
}

/// Adds every window function to the registry.
pub(crate) fn fill(t: &mut Table) {
    use WindowCode::*;
    for (signature, code) in [
        ("row_number() int8 -- number of the row in its partition", RowNumber),
        ("rank() int8 -- number of the first of its peers", Rank),
        ("dense_rank() int8 -- number of its group of peers", DenseRank),
        ("percent_rank() float8 -- share of the rows before its peers", PercentRank),
        ("cume_dist() float8 -- share of the rows up to its peers", CumeDist),
        ("ntile(int4) int4 -- which of so many parts of the same size it is in", Ntile),
        ("lag(anyelement) anyelement -- the value in the row before, or so many before", Lag),
        ("lag(anyelement, int4) anyelement", Lag),
        ("lag(anyelement, int4, anyelement) anyelement", Lag),
        ("lead(anyelement) anyelement -- the value in the row behind, or so many behind", Lead),
        ("lead(anyelement, int4) anyelement", Lead),
        ("lead(anyelement, int4, anyelement) anyelement", Lead),
        (
            "first_value(anyelement) anyelement -- the value in the first row of the frame",
            FirstValue,
        ),
        ("last_value(anyelement) anyelement -- the value in the last row of the frame", LastValue),
        (
            "nth_value(anyelement, int4) anyelement -- the value in the n-th row of the frame",
            NthValue,
        ),
    ] {
        t.window(signature, code);
    }
}
