//! LISTEN, NOTIFY and UNLISTEN of a session: asked in a transaction, done when it has committed.

use std::sync::Arc;

use braid_types::{SqlError, SqlResult, SqlState};

use super::client::Session;
use super::state::SessionState;
use crate::runtime::channels::{Asked, Notification};

impl SessionState {
    /// Where the session is among those who listen.
    fn place(&self) -> (u32, i32) {
        let catalog = self.catalog();
        (catalog.database(&self.database).map_or(0, |d| d.id), self.pid())
    }

    /// Notes what is to be done at the end of the transaction.
    ///
    /// # Errors
    /// 54000 if there is no room for it; 0A000 on a node of a cluster.
    pub(super) fn ask(&self, one: Asked) -> SqlResult<()> {
        if !matches!(one, Asked::Unlisten(_)) {
            let hint = "Sessions of other nodes would not hear it. Keep messages in a table.";
            self.db().only_alone("LISTEN or NOTIFY", hint)?;
        }
        let mut asked = self.asked.lock();
        self.db().channels().check_room(self.place().0, &asked, &one)?;
        asked.push(one);
        Ok(())
    }

    /// So much was asked until now.
    pub(super) fn asked_count(&self) -> usize {
        self.asked.lock().len()
    }

    /// Forgets what was asked since then.
    pub(super) fn forget_asked(&self, count: usize) {
        self.asked.lock().truncate(count);
    }

    /// Does what was asked: the transaction has committed.
    pub(super) fn post_asked(&self) {
        let asked = std::mem::take(&mut *self.asked.lock());
        if asked.len() == 0 {
            return;
        }
        // Who only tells others has nothing to be told.
        if asked.listens() {
            self.listens.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        for pid in self.db().channels().post(self.place(), asked) {
            self.db().wake(pid);
        }
    }

    /// The session's channels.
    pub(super) fn channels(&self) -> Vec<Arc<str>> {
        self.db().channels().of(self.place())
    }

    /// The session has ended.
    pub(super) fn close_channels(&self) {
        if self.listens.load(std::sync::atomic::Ordering::Relaxed) {
            self.db().channels().close(self.place());
        }
    }
}

impl Session {
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
