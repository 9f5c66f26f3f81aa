//! Locks on numbers, between sessions: who waits, who is refused, and when they are given back.

use std::time::Duration;

use crate::harness::{database, error, rows, run, session};

/// Another session tries to take a lock.
fn free(s: &mut braid_sql::Session, call: &str) -> bool {
    rows(s, &format!("select {call}")) == ["t"]
}

#[test]
fn a_lock_is_held_until_it_is_given_back_as_often_as_it_was_taken() {
    let db = database();
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "select pg_advisory_lock(1)");
    run(&mut a, "select pg_advisory_lock(1)");
    assert!(!free(&mut b, "pg_try_advisory_lock(1)"));
    assert!(!free(&mut b, "pg_try_advisory_lock_shared(1)"));
    assert!(free(&mut b, "pg_try_advisory_lock(1, 0)"), "two numbers are another lock");
    assert!(free(&mut a, "pg_advisory_unlock(1)"));
    assert!(!free(&mut b, "pg_try_advisory_lock(1)"));
    assert!(free(&mut a, "pg_advisory_unlock(1)"));
    assert!(!free(&mut a, "pg_advisory_unlock(1)"));
    assert!(free(&mut b, "pg_try_advisory_lock(1)"));
    drop(b);
    assert!(free(&mut a, "pg_try_advisory_lock(1)"), "a session's locks end with it");
}

#[test]
fn sharers_keep_others_out_together() {
    let db = database();
    let (mut a, mut b) = (session(&db), session(&db));
    assert!(free(&mut a, "pg_try_advisory_lock_shared(1)"));
    assert!(free(&mut b, "pg_try_advisory_lock_shared(1)"));
    assert!(!free(&mut a, "pg_try_advisory_lock(1)"));
    run(&mut b, "select pg_advisory_unlock_all()");
    assert!(free(&mut a, "pg_try_advisory_lock(1)"));
    assert!(!free(&mut b, "pg_try_advisory_lock_shared(1)"));
}

#[test]
fn locks_of_a_transaction_end_with_it() {
    let db = database();
    let (mut a, mut b) = (session(&db), session(&db));
    for end in ["commit", "rollback"] {
        run(&mut a, "begin; select pg_advisory_xact_lock(1)");
        assert!(!free(&mut b, "pg_try_advisory_xact_lock(1)"));
        assert!(!free(&mut a, "pg_advisory_unlock(1)"), "it is not the session's");
        run(&mut a, end);
        run(&mut b, "begin");
        assert!(free(&mut b, "pg_try_advisory_xact_lock(1)"), "after {end}");
        run(&mut b, "rollback");
    }
    // Outside of a block the statement is the transaction.
    run(&mut a, "select pg_advisory_xact_lock(1)");
    a.rests();
    assert!(free(&mut b, "pg_try_advisory_lock(1)"));
}

#[test]
fn who_waits_goes_on_when_the_lock_is_free_or_his_time_is_over() {
    let db = database();
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "select pg_advisory_lock(1)");
    run(&mut b, "set lock_timeout = '60ms'");
    assert_eq!(error(&mut b, "select pg_advisory_lock(1)").state().0, "55P03");
    run(&mut b, "set lock_timeout = 0");
    let waiting = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| rows(&mut b, "select pg_advisory_lock(1)"));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiter.is_finished());
        run(&mut a, "select pg_advisory_unlock(1)");
        waiter.join().expect("it gets the lock")
    });
    assert_eq!(waiting.len(), 1);
    assert!(!free(&mut a, "pg_try_advisory_lock(1)"));
}

#[test]
fn a_circle_is_refused() {
    let db = database();
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "begin; select pg_advisory_xact_lock(1)");
    run(&mut b, "begin; select pg_advisory_xact_lock(2)");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| rows(&mut b, "select pg_advisory_xact_lock(1)"));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(error(&mut a, "select pg_advisory_xact_lock(2)").state().0, "40P01");
        run(&mut a, "rollback");
        assert_eq!(waiter.join().expect("it gets the lock").len(), 1);
    });
}

#[test]
fn sleep_takes_its_time() {
    let db = database();
    let mut s = session(&db);
    let asked = "select pg_sleep(0.03) is not null \
                 and clock_timestamp() - statement_timestamp() >= interval '30 ms'";
    assert_eq!(rows(&mut s, asked), ["t"]);
}
