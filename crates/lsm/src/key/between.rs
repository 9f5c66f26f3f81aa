//! Timestamps between two others.

/// Timestamps above `floor` that are not above `upto`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Between {
    pub(crate) floor: u64,
    pub(crate) upto: u64,
}

impl Between {
    /// All above `floor`.
    pub(crate) fn above(floor: u64) -> Between {
        Between { floor, upto: u64::MAX }
    }

    /// Those that are above another floor, too.
    pub(crate) fn over(self, floor: u64) -> Between {
        Between { floor: self.floor.max(floor), ..self }
    }

    /// The larger one of the floor and `ts`, if that is one of them.
    pub(crate) fn raised(self, ts: u64) -> u64 {
        if ts <= self.upto { self.floor.max(ts) } else { self.floor }
    }

    /// Whether some of what lies from `oldest` to `newest` may be one of them.
    pub(crate) fn meets(self, oldest: u64, newest: u64) -> bool {
        oldest <= self.upto && self.floor < newest
    }
}
