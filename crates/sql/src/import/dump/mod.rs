//! IMPORT PGDUMP: a dump of PostgreSQL, all of it in one transaction.
//!
//! ```text
//!   statement ─ [`kinds`] ─┬─ functions, triggers, ..        ─► ignored, and told
//!                          ├─ takes something away           ─► only WITH allow_destructive
//!                          ├─ of what was left out           ─► [`absent`]: left out, too
//!                          ├─ COPY                           ─► a bulk load
//!                          └─ anything else                  ─► run as if a client had sent it;
//!                                                               if that fails, [`instead`], or
//!                                                               [`alone`]
//!   all of it there ─ [`hierarchy`] ─► tables into their parents, or what could lie in what
//! ```
//! The tables belong to the transaction until it commits, so that the rows of a COPY are loads, and
//! nothing of a dump that fails is ever seen. The answer tells line by line what became of it
//! ([`findings`]). It is a job ([`job`]), which may be asked for without waiting, and goes on from
//! its last [`checkpoint`] when its node has stopped.

mod absent;
mod alone;
mod checkpoint;
mod findings;
mod hierarchy;
mod instead;
mod job;
mod kinds;
mod load;
mod options;

pub(crate) use findings::columns as dump_columns;
pub(crate) use job::import_dump;
