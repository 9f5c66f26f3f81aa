//! Log lines on standard error, filtered by `BRAID_LOG` (for instance `braid_lsm=debug,info`).

use tracing_subscriber::EnvFilter;

/// Starts logging. `default` counts while `BRAID_LOG` is not set.
pub(crate) fn init(default: &str) {
    let filter = EnvFilter::try_from_env("BRAID_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    // A second subscriber in one process (tests) is not an error worth stopping for.
    let _already_set =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
