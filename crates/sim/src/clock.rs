//! A node's clock: the world's time, and how far this clock is off.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use braid_env::clock::Clock;

/// The world begins at this time, so that clocks that are slow show no time before 1970.
pub(crate) const BEGIN_MICROS: u64 = 1_000_000_000;

/// See the [module's page](self).
pub(crate) struct NodeClock {
    world: Arc<AtomicU64>,
    off_micros: AtomicI64,
}

impl NodeClock {
    pub(crate) fn new(world: Arc<AtomicU64>) -> NodeClock {
        NodeClock { world, off_micros: AtomicI64::new(0) }
    }

    /// The clock jumps.
    pub(crate) fn set_off(&self, micros: i64) {
        self.off_micros.store(micros, Ordering::Relaxed);
    }
}

impl Clock for NodeClock {
    fn now_micros(&self) -> u64 {
        let off = self.off_micros.load(Ordering::Relaxed);
        self.world.load(Ordering::Relaxed).saturating_add_signed(off)
    }

    fn monotonic_nanos(&self) -> u64 {
        self.world.load(Ordering::Relaxed) * 1_000
    }

    /// Events take no time.
    fn sleep(&self, _duration: Duration) {}
}
