//! The lease of a range: who may serve it, and until when.
//!
//! ```text
//!   lease 4 of r1    |--------------------|expiry
//!   r1 serves        |--------------|          while its clock is below expiry - offset
//!   lease 5 of r2                         |--- start: r2's clock is above that expiry
//! ```
//!
//! Clocks of two nodes differ by at most the *offset*. When r1 served last, r1's clock was below
//! `expiry - offset`, so r2's was below `expiry`: r2 had not begun. What r2 writes has timestamps
//! above the expiry, so above everything that r1 wrote or served.
//!
//! Leases are entries of the log like everything else. A lease says which one it replaces, by
//! *sequence*: of two that replace the same one only the first counts. Entries name the sequence of
//! the lease under which they were proposed, and come to nothing under another one. So whoever has
//! applied a lease knows the fate of all proposals of the ones before it.

use std::fmt;

use braid_consensus::codec::{Reader, put_number};
use braid_consensus::{ReplicaId, Term};
use braid_env::clock::Hlc;
use braid_lsm::CommitTs;

/// Who may serve a range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Grows by one with each lease that is not a renewal. 0: nobody ever had one.
    pub sequence: u64,
    /// Who has it.
    pub holder: ReplicaId,
    /// The term of the entry that granted it. Its holder proposes only while it leads in it.
    pub term: Term,
    /// No timestamp below this one belongs to it.
    pub start: CommitTs,
    /// No timestamp from this one on belongs to it.
    pub expiry: CommitTs,
}

impl Lease {
    /// Nobody has it.
    pub(crate) const NONE: Lease = Lease {
        sequence: 0,
        holder: ReplicaId(0),
        term: Term(0),
        start: CommitTs::ZERO,
        expiry: CommitTs::ZERO,
    };

    /// Whether the holder may serve the timestamp, which is one of its clock's.
    pub(crate) fn covers(&self, ts: CommitTs, offset_micros: u64) -> bool {
        self.start <= ts && micros(ts) + offset_micros < micros(self.expiry)
    }

    /// Whether it is over on a clock that shows `now`.
    pub(crate) fn is_over(&self, now_micros: u64) -> bool {
        micros(self.expiry) < now_micros
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let fields = [self.sequence, self.holder.0, self.term.0, self.start.0, self.expiry.0];
        fields.iter().for_each(|field| put_number(out, *field));
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Lease> {
        Some(Lease {
            sequence: reader.number()?,
            holder: ReplicaId(reader.number()?),
            term: Term(reader.number()?),
            start: CommitTs(reader.number()?),
            expiry: CommitTs(reader.number()?),
        })
    }
}

/// Microseconds since 1970 of a timestamp.
pub(crate) fn micros(ts: CommitTs) -> u64 {
    Hlc::micros_of(ts.0)
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, expiry) = (micros(self.start), micros(self.expiry));
        write!(f, "lease {} of {} [{start}, {expiry})us", self.sequence, self.holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_clocks_within_the_offset_see_two_leases() {
        let at = |micros| CommitTs(Hlc::from_micros(micros));
        let (start, expiry) = (at(1_000), at(2_000));
        let lease = Lease { sequence: 1, holder: ReplicaId(1), term: Term(1), start, expiry };
        let offset = 100;
        for now in 900..2_200u64 {
            for other in now - offset..=now + offset {
                let overlap = lease.covers(at(now), offset) && lease.is_over(other);
                assert!(!overlap, "served at {now}, replaced at {other}");
            }
        }
        assert!(!lease.covers(at(999), offset) && lease.covers(at(1_000), offset));
    }
}
