//! What a client has seen of the past: whoever answers, it stays what it was.
//!
//! ```text
//!   12 s   as of 10 s: a b       at a replica that says that it knows all of that time
//!   19 s   as of 10 s: a b       at another one, or the same
//! ```

use braid_env::random::Random;
use braid_kv::{KvResult, TxnOptions};
use braid_lsm::CommitTs;
use braid_workload::history::record::Key;
use bytes::Bytes;

use crate::desk::Desk;
use crate::line::wrong;
use crate::plan::Plan;
use crate::work::rows;

/// How far a client looks back at most, in microseconds: mostly to where times are just closed.
const MOST_MICROS: [u64; 3] = [300_000, 1_200_000, 6_000_000];
/// Looks that a client remembers.
const KEPT: usize = 40;

type Rows = Vec<(Bytes, Bytes)>;

/// What there was of something at a time.
struct Look {
    at: CommitTs,
    key: Key,
    rows: Rows,
}

/// See the [module's page](self).
#[derive(Default)]
pub(crate) struct Past {
    looks: Vec<Look>,
}

impl Past {
    /// Looks at something as of some moments ago, and again at something that was looked at before.
    pub(crate) fn look(&mut self, desk: &Desk, plan: &Plan, random: &mut Random) {
        let n = random.below(plan.keys) as u32;
        let key = *random.pick(&[Key::List(n), Key::Trail(n), Key::Register(n)]);
        let most = *random.pick(&MOST_MICROS);
        let back = CommitTs(braid_env::clock::Hlc::from_micros(random.below(most)));
        // Nobody promises that what is too old can be read, nor that somebody answers.
        let look = || -> KvResult<Look> {
            let now = desk.coordinator.begin(TxnOptions::default())?.read_ts();
            let at = CommitTs(now.0 - back.0);
            Ok(Look { at, key, rows: seen(desk, at, key)? })
        };
        if let Ok(look) = look()
            && self.looks.len() < KEPT
        {
            self.looks.push(look);
        }
        if !self.looks.is_empty() {
            self.look_again(desk, random.below(self.looks.len() as u64) as usize);
        }
    }

    /// Looks at everything again.
    pub(crate) fn look_at_all(&mut self, desk: &Desk) {
        (0..self.looks.len()).rev().for_each(|place| self.look_again(desk, place));
    }

    fn look_again(&mut self, desk: &Desk, place: usize) {
        let Look { at, key, rows: before } = &self.looks[place];
        match seen(desk, *at, *key) {
            Ok(rows) if rows == *before => {}
            Ok(rows) => wrong(format!("{key:?} as of {at:?} was {before:?}, and is {rows:?}")),
            // It was taken away meanwhile.
            Err(_) => drop(self.looks.swap_remove(place)),
        }
    }
}

fn seen(desk: &Desk, at: CommitTs, key: Key) -> KvResult<Rows> {
    let options = TxnOptions { as_of: Some(at), read_only: true, ..TxnOptions::default() };
    let txn = desk.coordinator.begin(options)?;
    rows(&txn, key)
}
