//! Threads that take turns, as in a simulation: one of them runs, until it gives its turn away.
//!
//! Such a thread may not block on what another one of them holds: that one would never run. It
//! gives its turn away instead, again and again. All other threads block as ever; what is here
//! costs them nothing as long as nothing is contended.

use std::cell::RefCell;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

type Pass = Box<dyn Fn()>;

thread_local! {
    static PASS: RefCell<Option<Pass>> = const { RefCell::new(None) };
}

/// From now on this thread takes turns: `pass` gives its turn away, and returns when it is its turn
/// again.
pub fn take_turns(pass: impl Fn() + 'static) {
    PASS.with(|own| *own.borrow_mut() = Some(Box::new(pass)));
}

/// Gives this thread's turn away; `false` if it takes none, or is about to end.
fn pass() -> bool {
    !std::thread::panicking() && PASS.with(|own| own.borrow().as_ref().map(|pass| pass()).is_some())
}

/// Locks what may be held by a thread that waits for others.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        if let Some(guard) = mutex.try_lock() {
            return guard;
        }
        if !pass() {
            return mutex.lock();
        }
    }
}

/// Waits until something is notified, but no longer than that.
pub fn wait_for<T>(condvar: &Condvar, guard: &mut MutexGuard<'_, T>, most: Duration) {
    match PASS.with(|own| own.borrow().is_some()) {
        true => drop(MutexGuard::unlocked(guard, pass)),
        false => drop(condvar.wait_for(guard, most)),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn who_takes_turns_gives_them_away_instead_of_blocking() {
        let (mutex, condvar): (&'static Mutex<u8>, _) = (Box::leak(Box::default()), Condvar::new());
        let (held, passed) = (RefCell::new(Some(mutex.lock())), Rc::new(Cell::new(0)));
        let count = passed.clone();
        take_turns(move || {
            count.set(count.get() + 1);
            if count.get() == 3
                && let Some(mut held) = held.take()
            {
                *held = 7;
            }
        });
        let mut guard = lock(mutex);
        assert_eq!((*guard, passed.get()), (7, 3));
        wait_for(&condvar, &mut guard, Duration::from_secs(3_600));
        assert_eq!(passed.get(), 4);
    }
}
