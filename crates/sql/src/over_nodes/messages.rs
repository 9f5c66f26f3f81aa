//! LISTEN and NOTIFY of a cluster: what is said is stored, in the order of commits, until all nodes
//! have heard it.
//!
//! ```text
//!   NOTIFY c, 'x' ── COMMIT ──► 01 'y'      41        locked until the commit: one after the other
//!                               01 'u' 41   c, 'x'    with what else the transaction writes
//!                                  │
//!       "there are 41" ──► nodes where somebody listens read on from 40 ──► inboxes ──► clients
//! ```
//! So it is said if the transaction happens, and not if it does not; everybody hears everything in
//! one order; and a node that heard no word finds it half a second later. PostgreSQL commits
//! transactions that notify one after the other, too.
//!
//! What was said a minute ago is taken away. A node that was cut off for longer ends the sessions
//! that listen there: their clients would never know what they have missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_catalog::kv_error;
use braid_keys::system;
use braid_kv::{KeySpan, KvError, LockMode, ReadMode, ScanOptions, Txn, TxnOptions, Wait};
use braid_types::{SqlError, SqlResult, SqlState};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::presence::{again, begin, newest};
use crate::database::Database;
use crate::runtime::Notification;

/// What was said so long ago is taken away, in microseconds.
const KEPT: i64 = 60_000_000;
/// It is looked so often for what is to be taken away.
const TIDY_EVERY: i64 = 10_000_000;
/// A node goes on reading for so long after nobody listens any more.
const GRACE: i64 = 10_000_000;

/// So many messages are read at once.
const HEARD_AT_ONCE: usize = 1_000;

/// What is stored of a message.
#[derive(Debug, Serialize, Deserialize)]
struct Said {
    database: u32,
    pid: i32,
    channel: String,
    payload: String,
    /// On the clock of the node that has said it, microseconds since 2000.
    at: i64,
}

/// How far this node has heard.
#[derive(Default)]
pub(crate) struct Messages {
    state: Mutex<Following>,
    /// There may be something to take away.
    untidy: AtomicBool,
}

#[derive(Default)]
struct Following {
    /// The last message that was heard; `None`: nobody listens here.
    heard: Option<u64>,
    /// When somebody was seen to listen last.
    listened: i64,
    /// When it was looked for what is to be taken away.
    tidied: i64,
}

fn damaged() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "damaged system record: notification")
}

fn count_of(value: Option<bytes::Bytes>) -> SqlResult<u64> {
    let Some(value) = value else { return Ok(0) };
    value.as_ref().try_into().map(u64::from_be_bytes).map_err(|_| damaged())
}

impl Database {
    /// Says something with a transaction that is about to commit; the number of the last message.
    ///
    /// # Errors
    /// Of waiting for others who say something.
    pub(crate) fn say(
        &self,
        txn: &Arc<Txn>,
        database: u32,
        what: &[Notification],
    ) -> SqlResult<u64> {
        let key = system::messages_said();
        txn.hold(&key, LockMode::Exclusive).map_err(kv_error)?;
        let mut count = count_of(txn.get_as(&key, ReadMode::Latest).map_err(kv_error)?)?;
        for one in what {
            count += 1;
            let said = Said {
                database,
                pid: one.pid,
                channel: one.channel.to_string(),
                payload: one.payload.to_string(),
                at: self.clock_micros(),
            };
            let text = serde_json::to_vec(&said).map_err(|e| SqlError::internal(e.to_string()))?;
            txn.put_over(system::message(count), text).map_err(kv_error)?;
        }
        txn.put_over(key, count.to_be_bytes().to_vec()).map_err(kv_error)?;
        self.over_nodes().messages.untidy.store(true, Ordering::Relaxed);
        Ok(count)
    }

    /// Says something in a transaction of its own.
    ///
    /// # Errors
    /// Of the transaction.
    pub(crate) fn say_alone(&self, database: u32, what: &[Notification]) -> SqlResult<u64> {
        again(|| {
            let txn = begin(self, TxnOptions::default())?;
            let count = self.say(&txn, database, what)?;
            txn.commit().map_err(kv_error)?;
            Ok(count)
        })
    }

    /// It was said: all nodes are told, and this one hears it before this returns.
    pub(crate) fn was_said(&self, count: u64) {
        self.coordinator().has_messages(count);
        if let Err(error) = self.hear() {
            tracing::debug!(%error, "notifications are read later");
        }
    }

    /// Somebody is about to listen: hears everything that is said from now on.
    ///
    /// # Errors
    /// Of reading.
    pub(crate) fn begin_to_hear(&self) -> SqlResult<()> {
        let mut state = self.over_nodes().messages.state.lock();
        state.listened = self.clock_micros();
        if state.heard.is_none() {
            let read = || {
                let txn = begin(self, TxnOptions { read_only: true, ..TxnOptions::default() })?;
                let count = txn.get_as(&system::messages_said(), ReadMode::Latest);
                count_of(count.map_err(kv_error)?)
            };
            state.heard = Some(again(read)?);
        }
        Ok(())
    }

    /// Reads what was said since the last time, and puts it into the inboxes of those who listen.
    ///
    /// # Errors
    /// Of reading.
    fn hear(&self) -> SqlResult<()> {
        while self.hear_some()? {}
        Ok(())
    }

    /// Whether there may be more.
    fn hear_some(&self) -> SqlResult<bool> {
        // In one order for all: one reads at a time.
        let mut state = self.over_nodes().messages.state.lock();
        let Some(heard) = state.heard else { return Ok(false) };
        let (count, said) = again(|| self.said_since(heard))?;
        let is_full = said.len() == HEARD_AT_ONCE;
        let mut next = heard + 1;
        for (number, said) in said {
            if number != next {
                self.has_missed();
            }
            next = number + 1;
            let (channel, payload) = (said.channel.into(), said.payload.into());
            self.deliver(said.database, Notification { pid: said.pid, channel, payload });
        }
        if next != count.max(heard) + 1 {
            self.has_missed();
        }
        state.heard = Some(count.max(heard));
        Ok(is_full)
    }

    /// The messages behind this one, as far as they were not taken away, and the number of the last
    /// one.
    fn said_since(&self, heard: u64) -> SqlResult<(u64, Vec<(u64, Said)>)> {
        let txn = begin(self, TxnOptions { read_only: true, ..TxnOptions::default() })?;
        let count = count_of(txn.get(&system::messages_said()).map_err(kv_error)?)?;
        let mut all = Vec::new();
        if count > heard {
            let span = KeySpan::new(system::message(heard + 1), system::message(count + 1));
            let mut scan = txn.scan(span, ScanOptions::default()).map_err(kv_error)?;
            while let Some((key, value)) = scan.next().map_err(kv_error)? {
                let number = system::message_number(&key).ok_or_else(damaged)?;
                all.push((number, serde_json::from_slice(&value).map_err(|_| damaged())?));
                if all.len() == HEARD_AT_ONCE {
                    return Ok((number, all));
                }
            }
        }
        Ok((count, all))
    }

    fn deliver(&self, database: u32, notification: Notification) {
        let (woken, full) = self.channels().tell(database, &notification);
        woken.into_iter().for_each(|pid| self.wake(pid));
        for pid in full {
            tracing::warn!(pid, "a session ends that does not take its notifications");
            self.end_session(pid);
        }
    }

    /// Something was taken away before this node has heard it.
    fn has_missed(&self) {
        for pid in self.channels().listeners() {
            tracing::warn!(
                pid,
                "this node was cut off: a session ends that has missed notifications"
            );
            self.end_session(pid);
        }
    }

    /// Waits up to so long for something that is said on another node, and hears it. Called again
    /// and again by a thread of its own; does nothing where there are no other nodes.
    ///
    /// # Errors
    /// Of the transactions; the next call tries again.
    pub fn follow_messages(&self, patience: Duration) -> SqlResult<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let known = self.over_nodes().messages.state.lock().heard;
        self.coordinator().await_messages(known, patience);
        self.hear()?;
        let now = self.clock_micros();
        let due = {
            let mut state = self.over_nodes().messages.state.lock();
            if !self.channels().listeners().is_empty() {
                state.listened = now;
            } else if now - state.listened > GRACE {
                state.heard = None;
            }
            let due = now - state.tidied > TIDY_EVERY;
            if due {
                state.tidied = now;
            }
            due && (state.heard.is_some() || self.over_nodes().messages.is_untidy())
        };
        if due { self.tidy_messages(now) } else { Ok(()) }
    }

    /// Takes away what was said long ago, unless somebody else does.
    fn tidy_messages(&self, now: i64) -> SqlResult<()> {
        let txn = begin(self, TxnOptions::default())?;
        let (first, end) = (system::message(0), system::message(u64::MAX));
        let mut last = None;
        let all = newest(&txn, (first.clone(), end)).map_err(kv_error)?;
        let none = all.is_empty();
        for (key, value) in all {
            let said: Said = serde_json::from_slice(&value).map_err(|_| damaged())?;
            if now - said.at < KEPT {
                break;
            }
            last = system::message_number(&key);
        }
        let Some(last) = last else {
            txn.rollback();
            self.over_nodes().messages.untidy.store(!none, Ordering::Relaxed);
            return Ok(());
        };
        // Who says something does not wait for this, nor two who take away for each other.
        let free = txn.hold_after(&first, LockMode::Exclusive, Wait::NoWait);
        let done =
            free.and_then(|()| txn.delete_span(&KeySpan::new(first, system::message(last + 1))));
        match done.and_then(|_| txn.commit()) {
            Err(KvError::LockNotAvailable | KvError::Retry { .. }) | Ok(_) => Ok(()),
            Err(e) => Err(kv_error(e)),
        }
    }
}

impl Messages {
    fn is_untidy(&self) -> bool {
        self.untidy.load(Ordering::Relaxed)
    }
}
