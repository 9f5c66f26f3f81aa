//! `/healthz` for supervisors and `/metrics` for Prometheus.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
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
/// a member's replicas cannot go on. Asked whether it is `ready`, 503 also while clients should be
/// sent to other nodes.
async fn healthz(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    if query.is_some_and(|query| asks_for_ready(&query))
        && let Some(why) = not_ready(&shared)
    {
        return (StatusCode::SERVICE_UNAVAILABLE, why);
    }
    if shared.place.engine().metrics().disk_full {
        return (StatusCode::SERVICE_UNAVAILABLE, "disk full: writes are refused\n".into());
    }
    if shared.place.member().is_some_and(|member| member.room() == braid_node::Room::Out) {
        let text = "disk full: the replicas of this member stand still until there is room\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text.into());
    }
    if shared.place.member().is_some_and(braid_node::Member::has_failed) {
        let text = "the replicas of this member have stopped: look at its log\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text.into());
    }
    (StatusCode::OK, "ok\n".into())
}

/// `ready`, `ready=1` or `ready=true`, alone or among others.
fn asks_for_ready(query: &str) -> bool {
    query.split('&').any(|part| matches!(part, "ready" | "ready=1" | "ready=true"))
}

/// Why clients should be sent to other nodes, a line.
fn not_ready(shared: &Shared) -> Option<String> {
    if shared.stopping.load(Ordering::Relaxed) {
        return Some("this node is stopping\n".into());
    }
    let why = shared.place.member().and_then(braid_node::Member::not_ready);
    why.map(|why| format!("{why}\n"))
}

async fn metrics_page(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::render(&shared))
}
