//! LISTEN, NOTIFY and UNLISTEN of a session: asked in a transaction, done when it has committed.

use std::sync::Arc;

use braid_kv::Txn;
use braid_types::{SqlError, SqlResult, SqlState};

use crate::runtime::channels::{Asked, AskedList, Notification};
use crate::session::client::Session;
use crate::session::context::Notice;
use crate::session::state::SessionState;

impl SessionState {
    /// Where the session is among those who listen.
    fn place(&self) -> (u32, i32) {
        let catalog = self.catalog();
        (catalog.database(&self.database).map_or(0, |d| d.id), self.pid())
    }

    /// Notes what is to be done at the end of the transaction.
    ///
    /// # Errors
    /// 54000 if there is no room for it.
    pub(in crate::session) fn ask(&self, one: Asked) -> SqlResult<()> {
        let mut asked = self.asked.lock();
        self.db().channels().check_room(self.place().0, &asked, &one)?;
        asked.push(one);
        Ok(())
    }

    /// So much was asked until now.
    pub(in crate::session) fn asked_count(&self) -> usize {
        self.asked.lock().len()
    }

    /// Forgets what was asked since then.
    pub(in crate::session) fn forget_asked(&self, count: usize) {
        self.asked.lock().truncate(count);
    }

    /// Before a transaction commits that has asked for something: in a cluster what is said goes
    /// with it, if it can, and what others say is heard from now on.
    ///
    /// # Errors
    /// Of asking the other nodes.
    pub(in crate::session) fn say_asked(&self, txn: &Arc<Txn>) -> SqlResult<()> {
        if !self.db().is_shared() || self.asked_count() == 0 {
            return Ok(());
        }
        let listens = self.asked.lock().listens();
        if listens {
            self.db().begin_to_hear()?;
        }
        // A transaction that only reads, or is one load, says nothing itself: that comes behind it.
        let what = self.asked.lock().notifications();
        if what.is_empty() || txn.read_only() || txn.is_all_load() {
            return Ok(());
        }
        let count = self.db().say(txn, self.place().0, &what)?;
        self.asked.lock().are_said(count);
        Ok(())
    }

    /// Does what was asked: the transaction has committed.
    pub(in crate::session) fn post_asked(&self) {
        let asked = std::mem::take(&mut *self.asked.lock());
        if asked.len() == 0 {
            return;
        }
        // Who only tells others has nothing to be told.
        if asked.listens() {
            self.listens.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        if self.db().is_shared() {
            if let Err(e) = self.post_over_nodes(asked) {
                self.notices.lock().push(Notice {
                    severity: "WARNING",
                    state: SqlState::WARNING,
                    message: format!("nobody is notified, or listens: {e}"),
                    detail: None,
                    hint: None,
                });
            }
            return;
        }
        for pid in self.db().channels().post(self.place(), asked) {
            self.db().wake(pid);
        }
    }

    /// As [`SessionState::post_asked`], where the messages go over all nodes.
    fn post_over_nodes(&self, mut asked: AskedList) -> SqlResult<()> {
        if asked.listens() {
            self.db().begin_to_hear()?;
        }
        let (what, said) = asked.take_notifications();
        self.db().channels().post(self.place(), asked);
        let count = match said {
            Some(count) => count,
            None if what.is_empty() => return Ok(()),
            None => self.db().say_alone(self.place().0, &what)?,
        };
        self.db().was_said(count);
        Ok(())
    }

    /// The session's channels.
    pub(in crate::session) fn channels(&self) -> Vec<Arc<str>> {
        self.db().channels().of(self.place())
    }

    /// The session has ended.
    pub(in crate::session) fn close_channels(&self) {
        if self.listens.load(std::sync::atomic::Ordering::Relaxed) {
            self.db().channels().close(self.place());
        }
    }
}

impl Session {
    /// Whether others may have something to tell its client at any time.
    pub fn listens(&self) -> bool {
        self.state.listens.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// What the client is to be told now; nothing inside of a block.
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        let listens = self.state.listens.load(std::sync::atomic::Ordering::Relaxed);
        if !listens || self.open.is_some() {
            return Vec::new();
        }
        self.state.db().channels().take(self.state.place())
    }

    pub(crate) fn listen(&mut self, channel: &str) -> SqlResult<()> {
        self.ask_now(Asked::Listen(channel.into()))
    }

    pub(crate) fn unlisten(&mut self, channel: Option<&str>) -> SqlResult<()> {
        self.ask_now(Asked::Unlisten(channel.map(Into::into)))
    }

    pub(crate) fn notify(&mut self, channel: &str, payload: Option<&str>) -> SqlResult<()> {
        let pid = self.state.pid();
        self.ask_now(Asked::notify(pid, channel, payload.unwrap_or_default())?)
    }

    /// Asks, and outside of a block does it.
    fn ask_now(&mut self, one: Asked) -> SqlResult<()> {
        if self.open.as_ref().is_some_and(|open| open.as_of) {
            return Err(SqlError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                "a transaction that reads the past has no channels",
            ));
        }
        self.state.ask(one)?;
        if self.open.is_some() {
            return Ok(());
        }
        let _order = self.db.channels().in_order();
        self.state.post_asked();
        Ok(())
    }
}
