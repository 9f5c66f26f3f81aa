//! Advisory locks: `pg_advisory_lock` and its many relatives.

use braid_types::Datum;

use super::i64_of;
use crate::context::{Advisory, AdvisoryCall, AdvisoryKey};
use crate::registry::{Eval, Table};

/// The lock that one or two arguments name.
fn key(args: &[Datum]) -> AdvisoryKey {
    match args {
        [Datum::Int4(a), Datum::Int4(b)] => AdvisoryKey::Two(*a, *b),
        _ => AdvisoryKey::One(args.first().map_or(0, i64_of)),
    }
}

macro_rules! locks {
    ($t:ident, $($name:literal, $ret:literal, $call:ident, $shared:literal, $txn:literal,
        $about:literal;)*) => {
        $({
            let eval: Eval = |a, c| {
                let done = c.session.advisory(Advisory {
                    call: AdvisoryCall::$call,
                    key: key(a),
                    shared: $shared,
                    in_transaction: $txn,
                })?;
                Ok(match AdvisoryCall::$call {
                    AdvisoryCall::Lock => Datum::text(""),
                    AdvisoryCall::TryLock | AdvisoryCall::Unlock => Datum::Bool(done),
                })
            };
            $t.add(concat!($name, "(int8) ", $ret, " -- ", $about), eval).volatile();
            $t.add(concat!($name, "(int4, int4) ", $ret), eval).volatile();
        })*
    };
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    locks! { t,
        "pg_advisory_lock", "void", Lock, false, false,
            "waits for a lock on a number, until the session ends or unlocks it";
        "pg_advisory_lock_shared", "void", Lock, true, false, "as `pg_advisory_lock`, shared";
        "pg_advisory_xact_lock", "void", Lock, false, true,
            "as `pg_advisory_lock`, until the transaction ends";
        "pg_advisory_xact_lock_shared", "void", Lock, true, true,
            "as `pg_advisory_xact_lock`, shared";
        "pg_try_advisory_lock", "bool", TryLock, false, false,
            "takes a lock on a number, if it is free";
        "pg_try_advisory_lock_shared", "bool", TryLock, true, false,
            "as `pg_try_advisory_lock`, shared";
        "pg_try_advisory_xact_lock", "bool", TryLock, false, true,
            "as `pg_try_advisory_lock`, until the transaction ends";
        "pg_try_advisory_xact_lock_shared", "bool", TryLock, true, true,
            "as `pg_try_advisory_xact_lock`, shared";
        "pg_advisory_unlock", "bool", Unlock, false, false, "gives a lock on a number back";
        "pg_advisory_unlock_shared", "bool", Unlock, true, false,
            "as `pg_advisory_unlock`, of a shared lock";
    }
    t.add("pg_advisory_unlock_all() void -- gives all locks of the session back", |_, c| {
        c.session.advisory_unlock_all();
        Ok(Datum::text(""))
    })
    .volatile();
}
