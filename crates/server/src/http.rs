//! `/healthz` for supervisors and `/metrics` for Prometheus.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::listener::Shared;
use crate::metrics;

/// Serves until the server stops. Runs its own small runtime: nothing else here is async.
pub(crate) fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.and_then(|runtime| runtime.block_on(run(listener, shared)));
    if let Err(e) = served {
        tracing::error!(error = %e, "the HTTP endpoint has stopped");
    }
}

async fn run(listener: TcpListener, shared: Arc<Shared>) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let stopping = Arc::clone(&shared);
    let app = Router::new()
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics_page))
        .with_state(shared);
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            while !stopping.stopping.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await
}

/// 200 while reads and writes work, 503 while writes are refused because the disk is full, or while
/// a member's replicas cannot go on.
async fn healthz(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    if shared.place.engine().metrics().disk_full {
        return (StatusCode::SERVICE_UNAVAILABLE, "disk full: writes are refused\n");
    }
    if shared.place.member().is_some_and(braid_node::Member::has_failed) {
        let text = "the replicas of this member have stopped: look at its log\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text);
    }
    (StatusCode::OK, "ok\n")
}

async fn metrics_page(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::render(&shared))
}
