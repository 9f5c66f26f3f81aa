//! What the threads of one process share: its router, its coordinator, its schema lease.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use braid_catalog::SchemaLease;
use braid_cluster::{Router, RouterOptions};
use braid_env::clock::{Clock, Hlc};
use braid_env::fs::MemFs;
use braid_env::memory::Pool;
use braid_kv::{Coordinator, CoordinatorOptions};
use braid_range::{NodeId, RangeDescriptor, Recalls};

use crate::line::Line;
use crate::plan::Plan;

/// Where a process is.
pub(crate) struct Place {
    /// The node, and who asks for its leases there; `None`: it is on no node.
    pub(crate) home: Option<(NodeId, Recalls)>,
    /// Tells its transactions from those of others.
    pub(crate) coordinator: u64,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hlc: Arc<Hlc>,
    pub(crate) oldest_readable: Arc<AtomicU64>,
}

impl Place {
    /// On no node.
    pub(crate) fn aside(coordinator: u64, clock: Arc<dyn Clock>) -> Place {
        let hlc = Arc::new(Hlc::new(clock.clone()));
        Place { home: None, coordinator, clock, hlc, oldest_readable: Arc::default() }
    }
}

/// See the [module's page](self).
pub(crate) struct Desk {
    pub(crate) router: Arc<Router>,
    pub(crate) coordinator: Arc<Coordinator>,
    pub(crate) lease: SchemaLease,
    /// Its keeper is to end.
    pub(crate) ends: AtomicBool,
    pub(crate) tally: Tally,
}

/// What has happened since somebody has looked.
#[derive(Default)]
pub(crate) struct Tally {
    /// Transactions that had locks under leases, and committed.
    pub(crate) leased: AtomicU64,
    /// Changes of a shape that committed.
    pub(crate) changed: AtomicU64,
    /// For how long a change has waited for leases at most, in microseconds.
    pub(crate) recalled_micros: AtomicU64,
    /// Reads of the past at a replica nearby, of which somebody knows.
    near_reads: AtomicU64,
}

impl Tally {
    pub(crate) fn take(&self) -> (u64, u64, u64) {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        (take(&self.leased), take(&self.changed), take(&self.recalled_micros))
    }
}

impl Desk {
    /// Reads of the past at a replica nearby, since somebody has asked.
    pub(crate) fn near_reads(&self) -> u64 {
        let near = self.router.near_reads();
        near - self.tally.near_reads.swap(near, Ordering::Relaxed)
    }

    pub(crate) fn new(place: Place, plan: &Plan, range: RangeDescriptor) -> Desk {
        let Place { home, coordinator, clock, hlc, oldest_readable } = place;
        let fs = Arc::new(MemFs::new());
        let line = Arc::new(Line::new(plan.all_nodes(), clock.clone()));
        let (home, recalls) = home.map_or_else(Default::default, |(node, r)| (Some(node), r));
        let options = RouterOptions {
            home,
            coordinator,
            hlc,
            wall: clock,
            max_clock_offset_micros: plan.clocks.offset_micros,
            // Nobody gives up: what becomes of a commit is always found out.
            patience: Duration::from_secs(3_600),
            oldest_readable,
            recalls,
            fs: fs.clone(),
            ranges: vec![range],
        };
        let router = Arc::new(Router::new(line.clone(), options));
        line.belongs_to(&router);
        let own = CoordinatorOptions {
            fs,
            dir: Path::new("/").into(),
            engine: braid_lsm::Options::default(),
            memory: Pool::unlimited(),
            row_form: None,
        };
        let coordinator = Coordinator::over(router.clone(), own).expect("its disk is new");
        let (lease, ends, tally) = Default::default();
        Desk { router, coordinator, lease, ends, tally }
    }
}
