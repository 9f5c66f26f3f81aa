//! The lock table told in scripts: `testscripts/locks/*.txt`.
//!
//! ```text
//!   lock T1 a exclusive          key share | shared | no key exclusive | exclusive
//!   lock T2 [a,f) shared         a span
//!   lock T3 a shared nowait      or skip: whoever does not want to wait
//!   give up T2                   its request ends: cancel, or lock_timeout
//!   release T1 a                 one lock, as ROLLBACK TO does
//!   end T1                       all locks
//! ```
//! Printed are what each command comes to, who goes on, and the table.

use std::fmt::Write as _;
use std::sync::Arc;

use super::table::{Asked, Request};
use super::*;
use crate::error::KvError;

#[derive(Default)]
struct Scene {
    table: LockTable,
    waiting: Vec<Arc<Request>>,
    held: Vec<(TxnId, Target)>,
}

fn txn(word: &str) -> TxnId {
    TxnId(word.strip_prefix('T').and_then(|n| n.parse().ok()).expect("a transaction, like T1"))
}

fn target(word: &str) -> Target {
    match word.strip_prefix('[').and_then(|w| w.strip_suffix(')')).and_then(|w| w.split_once(',')) {
        Some((start, end)) => {
            let copy = |s: &str| s.as_bytes().to_vec();
            Target::Span(braid_lsm::KeySpan::new(copy(start), copy(end)))
        }
        None => Target::Key(bytes::Bytes::copy_from_slice(word.as_bytes())),
    }
}

fn mode(words: &str) -> LockMode {
    match words {
        "key share" => LockMode::KeyShare,
        "shared" => LockMode::Shared,
        "no key exclusive" => LockMode::NoKeyExclusive,
        "exclusive" => LockMode::Exclusive,
        other => panic!("no mode: {other}"),
    }
}

impl Scene {
    fn lock(&mut self, rest: &str) -> String {
        let (who, rest) = rest.split_once(' ').expect("who");
        let (what, rest) = rest.split_once(' ').expect("what");
        let (words, wait) = match rest.rsplit_once(' ') {
            Some((words, "nowait")) => (words, Wait::NoWait),
            Some((words, "skip")) => (words, Wait::SkipLocked),
            _ => (rest, Wait::Block),
        };
        let (id, target) = (txn(who), target(what));
        match self.table.ask(id, target.clone(), mode(words), wait) {
            Ok(Asked::Granted) => {
                self.held.push((id, target));
                format!("{who} has it")
            }
            Ok(Asked::Skipped) => format!("{who} skips it"),
            Ok(Asked::Waits(LockWait(request))) => {
                let granted = request.is_granted();
                self.waiting.push(request);
                if granted {
                    return format!("{who} goes before those who wait for it");
                }
                let mut whom = self.table.whom(id);
                whom.sort();
                let names: Vec<String> = whom.iter().map(|t| format!("T{}", t.0)).collect();
                format!("{who} waits for {}", names.join(", "))
            }
            Err(KvError::Deadlock { cycle }) => {
                format!("deadlock: {}", cycle.replace("transaction ", "T"))
            }
            Err(KvError::LockNotAvailable) => format!("{who}: not free"),
            Err(e) => panic!("{e}"),
        }
    }

    fn release(&mut self, who: &str, what: Option<&str>) {
        let id = txn(who);
        let what = what.map(target);
        let leaves = |held: &(TxnId, Target)| {
            held.0 == id && what.as_ref().is_none_or(|what| *what == held.1)
        };
        let gone: Vec<Target> =
            self.held.iter().filter(|h| leaves(h)).map(|h| h.1.clone()).collect();
        assert!(!gone.is_empty() || what.is_none(), "{who} does not hold it");
        self.held.retain(|h| !leaves(h));
        self.table.release(id, gone.iter(), what.is_none());
    }

    fn line(&mut self, line: &str, out: &mut String) {
        let mut say = |text: String| out.push_str(&(text + "\n"));
        match line.split_once(' ').expect("a command and who") {
            ("lock", rest) => say(self.lock(rest)),
            ("give", rest) => {
                let id = txn(rest.strip_prefix("up ").expect("give up T1"));
                let at = self.waiting.iter().position(|r| r.txn == id).expect("it waits");
                self.table.give_up(&self.waiting.remove(at));
            }
            ("release", rest) => {
                let (who, what) = rest.split_once(' ').expect("who and what");
                self.release(who, Some(what));
            }
            ("end", who) => self.release(who, None),
            other => panic!("unknown command: {other:?}"),
        }
        let (granted, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|r| r.is_granted());
        self.waiting = waiting;
        for r in granted {
            say(format!("T{} goes on", r.txn.0));
            self.held.push((r.txn, r.target.clone()));
        }
    }

    /// The table, with the names of the script.
    fn print(&self, out: &mut String) {
        for line in self.table.describe().lines() {
            let (rest, id) = line.rsplit_once(" by ").expect("who");
            let _ = writeln!(out, "  {rest} by T{id}");
        }
        if self.table.describe().is_empty() {
            out.push_str("  no locks\n");
        }
    }
}

#[test]
fn scripts_of_locks() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testscripts/locks");
    braid_script::check(folder, Scene::default, |scene, lines| {
        let mut out = String::new();
        for line in lines {
            scene.line(line, &mut out);
        }
        scene.print(&mut out);
        out
    });
}
