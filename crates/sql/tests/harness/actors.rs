//! Sessions on threads of their own, driven step by step: a statement that has to wait for another
//! session's lock is left waiting while the others go on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use braid_sql::Database;
use braid_types::SqlError;

use super::{Answer, session, try_run};

type Reply = Result<Answer, SqlError>;

struct Actor {
    statements: Sender<String>,
    replies: Receiver<Reply>,
    /// A statement was sent and has not answered.
    busy: bool,
    answered: Option<Reply>,
}

/// Some sessions of one database.
pub struct Stage {
    db: Arc<Database>,
    actors: Vec<Actor>,
}

impl Stage {
    /// `count` sessions, each after the statements of `setup`.
    pub fn new(db: &Arc<Database>, count: usize, setup: &str) -> Stage {
        let actors = (0..count).map(|_| actor(db, setup)).collect();
        Stage { db: db.clone(), actors }
    }

    /// Sends a statement. Returns when no session can go on without another statement.
    pub fn send(&mut self, who: usize, sql: &str) {
        assert!(!self.actors[who].busy, "session {who} still waits; it cannot run {sql}");
        self.actors[who].statements.send(sql.to_string()).unwrap();
        self.actors[who].busy = true;
        self.settle();
    }

    /// Whether a session waits for a lock.
    pub fn waits(&self, who: usize) -> bool {
        self.actors[who].busy && self.actors[who].answered.is_none()
    }

    /// Whether an answer can be taken.
    pub fn answered(&self, who: usize) -> bool {
        self.actors[who].answered.is_some()
    }

    /// The answer of the last statement, which must have come.
    pub fn take(&mut self, who: usize) -> Reply {
        let actor = &mut self.actors[who];
        let reply = actor.answered.take().unwrap_or_else(|| panic!("session {who} has no answer"));
        actor.busy = false;
        reply
    }

    /// Sends a statement that must not wait; its answer.
    pub fn run(&mut self, who: usize, sql: &str) -> Reply {
        self.send(who, sql);
        assert!(!self.waits(who), "{sql} waits:\n{}", self.db.coordinator().describe_locks().lines);
        self.take(who)
    }

    /// Ends a session's block after the answer that it may still owe.
    pub fn finish(&mut self, who: usize) {
        if self.actors[who].busy {
            let _ = self.take(who);
        }
        let _ = self.run(who, "commit");
    }

    /// Waits until no session can go on without another statement.
    pub fn settle(&mut self) {
        for _ in 0..200_000 {
            let waiting = self.db.coordinator().describe_locks().waiting;
            let mut quiet = 0;
            for actor in self.actors.iter_mut().filter(|a| a.busy && a.answered.is_none()) {
                match actor.replies.try_recv() {
                    Ok(reply) => actor.answered = Some(reply),
                    Err(_) => quiet += 1,
                }
            }
            if quiet == 0
                || (quiet == waiting && self.db.coordinator().describe_locks().waiting == waiting)
            {
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        panic!(
            "a session neither answers nor waits:\n{}",
            self.db.coordinator().describe_locks().lines
        );
    }
}

fn actor(db: &Arc<Database>, setup: &str) -> Actor {
    let (statements, inbox) = channel::<String>();
    let (outbox, replies) = channel();
    let (db, setup) = (db.clone(), setup.to_string());
    #[expect(clippy::disallowed_methods, reason = "a test of real threads")]
    std::thread::spawn(move || {
        let s = &mut session(&db);
        try_run(s, &setup, &[]).unwrap();
        for sql in inbox {
            let reply = try_run(s, &sql, &[]);
            if reply.is_err() {
                s.fail();
            }
            if outbox.send(reply).is_err() {
                return;
            }
        }
    });
    Actor { statements, replies, busy: false, answered: None }
}
