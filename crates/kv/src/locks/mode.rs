//! The strengths of a lock, as PostgreSQL has them for rows.
//!
//! ```text
//!                      key share   shared   no key exclusive   exclusive
//!   key share              ok        ok            ok            waits
//!   shared                 ok        ok           waits          waits
//!   no key exclusive       ok       waits         waits          waits
//!   exclusive             waits     waits         waits          waits
//! ```
//!
//! The point of the two in the middle: a row that refers to another one only needs that row's key
//! to stay, so inserting a child does not wait for an update of its parent.

/// How strong a lock is, weakest first. Whatever excludes a mode also excludes the stronger ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// The row stays, with its key: what a foreign key asks of the row that it refers to.
    KeyShare,
    /// Others may read and lock shared; nobody may write.
    Shared,
    /// Nobody else may write; others may rely on the key. An update that leaves keys as they are.
    NoKeyExclusive,
    /// Nobody else may lock.
    Exclusive,
}

impl LockMode {
    /// Whether two transactions cannot hold these at the same time.
    pub(crate) fn excludes(self, other: LockMode) -> bool {
        use LockMode::{Exclusive, KeyShare, NoKeyExclusive, Shared};
        match (self.min(other), self.max(other)) {
            (_, Exclusive) => true,
            (Shared | NoKeyExclusive, NoKeyExclusive) => true,
            (KeyShare | Shared, _) | (NoKeyExclusive, _) | (Exclusive, _) => false,
        }
    }

    /// Whether its holder is the only one who can write the row.
    pub(crate) fn owns_writes(self) -> bool {
        self >= LockMode::NoKeyExclusive
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode::{Exclusive, KeyShare, NoKeyExclusive, Shared};

    #[test]
    fn conflicts_are_those_of_postgresql() {
        let modes = [KeyShare, Shared, NoKeyExclusive, Exclusive];
        let table: Vec<String> = modes
            .iter()
            .map(|a| modes.iter().map(|b| if a.excludes(*b) { 'x' } else { '-' }).collect())
            .collect();
        assert_eq!(table, ["---x", "--xx", "-xxx", "xxxx"]);
    }

    #[test]
    fn a_stronger_mode_is_excluded_by_all_that_excludes_a_weaker_one() {
        let modes = [KeyShare, Shared, NoKeyExclusive, Exclusive];
        for pair in modes.windows(2) {
            for other in modes {
                assert!(!pair[0].excludes(other) || pair[1].excludes(other));
            }
        }
    }
}
