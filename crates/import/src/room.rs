//! Memory of a reader. What it is refused it asks of whoever takes its rows: that one has taken all
//! of them when it hears of it, and can bring its own to the disk.
//!
//! ```text
//!   reader    batch  batch  wait, I need room ······················· goes on, or fails by 53200
//!   taker             batch  batch  [relieve] ─ done ─┘
//! ```

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use braid_env::memory::{Account, Exceeded, Held};
use braid_types::SqlResult;

use crate::batch::Batch;

/// What a reader says.
pub(crate) enum Message {
    /// Rows; or what ends the reading.
    Batch(SqlResult<Batch>),
    /// It waits until this is answered.
    Wait(Wait),
}

/// See [`Message::Wait`].
pub(crate) struct Wait {
    /// It needs memory.
    pub(crate) relieve: bool,
    /// Where to answer.
    pub(crate) done: SyncSender<()>,
}

/// A way to whoever takes the rows.
#[derive(Clone, Debug)]
pub(crate) struct Asker(pub(crate) SyncSender<Message>);

impl Asker {
    /// Waits until all batches were taken; `relieve`: and until memory was given back. `false` if
    /// nobody is there.
    pub(crate) fn wait(&self, relieve: bool) -> bool {
        let (done, answered) = sync_channel(1);
        self.0.send(Message::Wait(Wait { relieve, done })).is_ok() && answered.recv().is_ok()
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Room {
    account: Arc<Account>,
    what: &'static str,
    held: Held,
    asker: Option<Asker>,
}

impl Room {
    /// Nothing at first; `what` is the name that an error gives.
    pub(crate) fn new(account: &Arc<Account>, what: &'static str, asker: Option<Asker>) -> Room {
        Room { account: account.clone(), what, held: account.hold(what), asker }
    }

    /// Another one, which holds nothing yet.
    pub(crate) fn another(&self, what: &'static str) -> Room {
        Room::new(&self.account, what, self.asker.clone())
    }

    /// Holds exactly so much.
    ///
    /// # Errors
    /// There is no room for it, and nobody can make some.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), Exceeded> {
        match self.held.resize(bytes) {
            Err(_) if self.asker.as_ref().is_some_and(|asker| asker.wait(true)) => {
                self.held.resize(bytes)
            }
            other => other,
        }
    }

    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// From now on it asks nobody: it has been given away itself.
    pub(crate) fn ask_nobody(&mut self) {
        self.asker = None;
    }
}

impl Clone for Room {
    fn clone(&self) -> Room {
        self.another(self.what)
    }
}
