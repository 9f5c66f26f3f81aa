//! Which plans run at the same time, when memory gets short.
//!
//! Every running plan needs some memory that it cannot spill. When many run at once on few cores,
//! they get slow together, and the last ones fail for want of it. So once a quarter of the memory
//! for clients is taken, a plan beyond a few for each core waits until a running one has ended.
//!
//! Nobody may wait for somebody who waits here: a transaction that holds locks goes past, and
//! nobody waits for longer than [`PATIENCE`] (who reads slowly may hold a place for hours). Once
//! half of the memory is taken, it is some times that: where all are slow, all would come in after
//! a second and be slow together.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use braid_env::memory::Pool;
use braid_env::tasks::cores;
use braid_types::SqlResult;
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;

use crate::error::from_df;
use crate::exec::stoppable::check;

/// Plans for each core that run however little memory there is.
const FOR_EACH_CORE: usize = 4;
/// Looks at the cancel flag, and at the memory, come in these steps.
const STEP: Duration = Duration::from_millis(20);
/// Steps after which nobody waits any longer: a second.
const PATIENCE: usize = 50;
/// So many times that, while half of the memory is taken.
const LONGER: usize = 4;

/// The gate that plans pass before they run. One for a node.
#[derive(Debug)]
pub(crate) struct Gate {
    running: Mutex<usize>,
    ended: Condvar,
    /// Steps after which nobody waits any longer.
    patience: usize,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { running: Mutex::default(), ended: Condvar::new(), patience: PATIENCE }
    }
}

/// A plan that runs.
#[derive(Debug)]
pub(crate) struct Admitted {
    gate: Arc<Gate>,
    pool: Arc<Pool>,
    /// Where spilled rows were read.
    runtime: Handle,
}

impl Gate {
    /// How many steps a plan waits at most while so much of the memory is taken.
    fn steps(&self, used: usize, room: usize) -> usize {
        match used {
            _ if used > room / 2 => self.patience.saturating_mul(LONGER),
            _ if used > room / 4 => self.patience,
            _ => 0,
        }
    }

    /// Passes; waits, if the caller may wait.
    ///
    /// # Errors
    /// 57014 when the flag was raised meanwhile.
    pub(crate) fn pass(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        may_wait: bool,
        cancel: &AtomicBool,
        runtime: &Handle,
    ) -> SqlResult<Admitted> {
        let mut running = self.running.lock();
        let mut steps = 0;
        while may_wait
            && *running >= FOR_EACH_CORE * cores()
            && steps < self.steps(pool.used(), pool.room())
        {
            self.ended.wait_for(&mut running, STEP);
            check(cancel).map_err(from_df)?;
            steps += 1;
        }
        *running += 1;
        let (gate, pool, runtime) = (self.clone(), pool.clone(), runtime.clone());
        Ok(Admitted { gate, pool, runtime })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        // Planning and running have left this thread much that is free, and the runtime's as well.
        if self.pool.is_strained() {
            let pool = self.pool.clone();
            drop(self.runtime.spawn(async move { pool.relieve() }));
            self.pool.relieve();
        }
        *self.gate.running.lock() -= 1;
        self.gate.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn plans_wait_the_longer_the_less_memory_is_left() {
        let gate = Gate::default();
        let steps: Vec<usize> = [0, 25, 26, 50, 51, 100].map(|used| gate.steps(used, 100)).into();
        assert_eq!(steps, [0, 0, PATIENCE, PATIENCE, LONGER * PATIENCE, LONGER * PATIENCE]);
    }

    #[test]
    fn a_plan_waits_while_memory_is_short_and_enough_run() {
        // However slow the machine: who waits here goes on because of what happens below.
        let gate = Arc::new(Gate { patience: usize::MAX, ..Gate::default() });
        let go = AtomicBool::new(false);
        let pool = Pool::new(100);
        let account = pool.account(usize::MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
        let pass = |may_wait| gate.pass(&pool, may_wait, &go, runtime.handle());
        let few: Vec<Admitted> =
            (0..FOR_EACH_CORE * cores()).map(|_| pass(true).expect("there is room")).collect();
        let one_more = pass(true).expect("memory is free");
        account.take("sort", 30).expect("there is room");
        drop(pass(false).expect("who holds locks does not wait"));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(pass(true)));
            std::thread::sleep(STEP * 3);
            assert!(!waiting.is_finished());
            // The one beyond the few, and one of these.
            drop((one_more, few));
            waiting.join().expect("it goes on");
        });
        let _few: Vec<Admitted> =
            (0..FOR_EACH_CORE * cores()).map(|_| pass(true).expect("few run")).collect();
        go.store(true, Ordering::Relaxed);
        assert_eq!(pass(true).expect_err("it was canceled").state().0, "57014");
        go.store(false, Ordering::Relaxed);
        account.give(20);
        drop(pass(true).expect("memory is free again"));
        account.take("sort", 20).expect("there is room");
        let hasty = Arc::new(Gate { running: Mutex::new(usize::MAX - 1), ..Gate::default() });
        let passed = hasty.pass(&pool, true, &go, runtime.handle());
        drop(passed.expect("nobody waits for ever"));
    }
}
