//! Where a node's keys are kept: in a store of its own, or by the members of a cluster.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use braid_catalog::After;
use braid_env::clock::WallClock;
use braid_env::fs::DiskFs;
use braid_env::memory::{self, Pool};
use braid_kv::{Coordinator, KvError, Store, StoreOptions};
use braid_lsm::{CommitTs, Db};
use braid_node::{Member, MemberChanges, MemberOptions};
use braid_settings::DiskCopy;
use braid_sql::{Database, GeneralQueries};
use braid_types::{SqlError, SqlState};

use crate::config::{ClusterConfig, ServerConfig};
use crate::growing;
use crate::listener::StartError;

/// The folder of a member, in the node's directory.
const CLUSTER: &str = "cluster";
/// A member that ends tries for so long to give its leases away.
const DRAIN: Duration = Duration::from_secs(5);
/// A member without a majority tries again after so long.
const RETRY: Duration = Duration::from_millis(300);
/// This part of the node's memory is kept for what nobody counts: code, threads, plans, the
/// allocator's spare pages.
const UNCOUNTED_PART: usize = 6;
/// This part is nobody's: what grows before it is seen.
const UNSEEN_PART: usize = 64;

/// See the [module's page](self).
pub(crate) enum Place {
    /// In this process, and nowhere else.
    Alone(Arc<Store>),
    /// By several nodes, of which this is one.
    Member(Box<Member>),
}

impl Place {
    /// Opens it: what was asked for, or what the directory was made for. Returns the bytes of the
    /// block cache and the memtables, too.
    pub(crate) fn open(config: &ServerConfig) -> Result<(Place, usize), StartError> {
        let mut options =
            StoreOptions::new(DiskFs::shared(), config.data_dir.clone(), Arc::new(WallClock));
        options.gc_window = config.gc_window;
        options.engine.row_class = braid_keys::row_class;
        options.row_form = Some(braid_rows::ROW_FORM);
        let memory_fixed = share_memory(config, &mut options);
        let place = match cluster_of(config)? {
            None => Place::Alone(open_alone(options)?),
            Some(cluster) => {
                let dir = config.data_dir.join(CLUSTER);
                if !Member::lives_in(&*options.fs, &dir).map_err(StartError::System)? {
                    growing::prepare(&options, &cluster)?;
                }
                let member = MemberOptions {
                    address: cluster.listen,
                    members: cluster.members,
                    max_clock_offset: cluster.max_clock_offset,
                    max_range_bytes: cluster.max_range_bytes,
                    max_log_bytes: cluster.max_log_bytes,
                    changes: MemberChanges {
                        dead_after: cluster.dead_after,
                        locality: cluster.locality.clone(),
                        roster_key: braid_keys::system::cluster_nodes().into(),
                        alone_dir: Some(config.data_dir.clone()),
                    },
                    gc_window: Some(config.gc_window),
                    engine: options.engine,
                    memory: options.memory,
                    row_form: options.row_form,
                    split_points: braid_keys::row_lengths,
                    ..MemberOptions::new(options.fs, dir, options.clock)
                };
                Place::Member(Box::new(Member::start(member).map_err(StartError::Member)?))
            }
        };
        Ok((place, memory_fixed))
    }

    /// Opens the database that is kept there. A member waits until a majority is there.
    pub(crate) fn database(
        &self,
        general: &Arc<dyn GeneralQueries>,
        dir: &Path,
    ) -> Result<Arc<Database>, StartError> {
        if let Place::Alone(store) = self {
            let opened = Database::open(store.coordinator(), general.clone());
            return opened.map_err(StartError::Catalog);
        }
        let settings = || DiskCopy::new(DiskFs::shared(), dir.join(CLUSTER));
        let open = || {
            let opened = Database::open_shared(self.coordinator(), general.clone(), settings())?;
            // Before a session gets the number of one that had some.
            opened.drop_temporary_of_gone(true).map(|()| opened)
        };
        loop {
            match open() {
                Err(e) if is_temporary(&e) => {
                    tracing::info!(error = %e, "waiting for a majority of the members");
                    std::thread::sleep(RETRY);
                }
                opened => return opened.map_err(StartError::Catalog),
            }
        }
    }

    fn coordinator(&self) -> Arc<Coordinator> {
        match self {
            Place::Alone(store) => store.coordinator(),
            Place::Member(member) => member.coordinator().clone(),
        }
    }

    /// What clients make the node hold, and how much that may be.
    pub(crate) fn memory(&self) -> &Arc<Pool> {
        match self {
            Place::Alone(store) => store.memory(),
            Place::Member(member) => member.coordinator().memory(),
        }
    }

    /// This node's engine, to look at.
    pub(crate) fn engine(&self) -> &Db {
        match self {
            Place::Alone(store) => store.engine(),
            Place::Member(member) => member.store(),
        }
    }

    /// Transactions of this node's clients that have begun and not ended.
    pub(crate) fn active_transactions(&self) -> usize {
        match self {
            Place::Alone(store) => store.active_transactions(),
            Place::Member(member) => member.active_transactions(),
        }
    }

    /// Lets the GC threshold follow the clock. Members' ranges do it themselves.
    pub(crate) fn advance_gc(&self) -> Result<(), KvError> {
        match self {
            Place::Alone(store) => store.advance_gc().map(|_| ()),
            Place::Member(_) => Ok(()),
        }
    }

    /// The oldest time that can be read, where dead entries of indexes are looked for.
    pub(crate) fn oldest_readable(&self) -> Option<CommitTs> {
        match self {
            Place::Alone(store) => Some(store.oldest_readable()),
            Place::Member(_) => None,
        }
    }

    /// The cluster's member that this node is.
    pub(crate) fn member(&self) -> Option<&Member> {
        match self {
            Place::Alone(_) => None,
            Place::Member(member) => Some(member),
        }
    }

    /// A member gives its leases away, so that nobody has to wait for their end when it has ended.
    pub(crate) fn drain(&self) {
        if let Place::Member(member) = self
            && !member.drain(DRAIN)
        {
            tracing::warn!("this node ends with leases: nobody serves their ranges until they end");
        }
    }

    /// Closes it.
    pub(crate) fn close(&self) -> Result<(), KvError> {
        match self {
            Place::Alone(store) => store.engine().close().map_err(KvError::from),
            Place::Member(member) => {
                member.stop();
                Ok(())
            }
        }
    }
}

/// Whether it may be otherwise when more members are there, or when others have done the same.
fn is_temporary(e: &SqlError) -> bool {
    let absent = [SqlState::CANNOT_CONNECT_NOW, SqlState::STATEMENT_COMPLETION_UNKNOWN];
    absent.contains(&e.state()) || After::error(e).is_again()
}

/// How the node takes part in a cluster; `None`: it is alone.
fn cluster_of(config: &ServerConfig) -> Result<Option<ClusterConfig>, StartError> {
    let (fs, dir) = (DiskFs, &config.data_dir);
    let is_member = Member::lives_in(&fs, &dir.join(CLUSTER)).map_err(StartError::System)?;
    let takes_part = is_member || config.cluster.listen.is_some();
    Ok(takes_part.then(|| config.cluster.clone()))
}

/// Opens the store of a node that is alone. One that a cluster has had is not: what it holds is a
/// part of what there is, and what it would write the others never hear of.
pub(crate) fn open_alone(options: StoreOptions) -> Result<Arc<Store>, StartError> {
    let dir = options.dir.clone();
    let store = Store::open(options).map_err(StartError::Store)?;
    match Member::has_marked(store.engine()).map_err(StartError::Member)? {
        true => Err(StartError::OfCluster(dir)),
        false => Ok(store),
    }
}

/// Divides the node's memory: cache and memtables get theirs, a part is kept for what nobody
/// counts, the rest is what clients can make the node hold. Returns all but that rest.
fn share_memory(config: &ServerConfig, options: &mut StoreOptions) -> usize {
    let max = config.memory_max.unwrap_or_else(|| memory::available() / 2);
    let engine = &mut options.engine;
    // Blocks are compressed in files: reading one that is not there takes several times as long.
    engine.block_cache_size = config.cache_bytes.unwrap_or(max / 4);
    let tables = 2 + engine.max_immutable_memtables;
    engine.memtable_size = engine.memtable_size.min(max / 8 / tables).max(1 << 20);
    let fixed = engine.block_cache_size + tables * engine.memtable_size + max / UNCOUNTED_PART;
    // Between two looks at what the process has, others grow.
    let clients = max.saturating_sub(fixed + max / UNSEEN_PART);
    // A cache that was asked for may be larger than all: clients get something nevertheless.
    options.memory = memory::Pool::new(clients.max(max / 4));
    if let Some(trim) = config.trim {
        options.memory.trim_by(trim);
    }
    tracing::info!(
        max,
        cache = engine.block_cache_size,
        memtable = engine.memtable_size,
        clients = options.memory.limit(),
        "memory"
    );
    fixed
}
