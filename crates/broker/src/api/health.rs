//! For monitors.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::app::Shared;
use crate::measures;

/// The process runs.
// axum takes async functions only.
#[allow(clippy::unused_async)]
pub async fn alive() -> &'static str {
    "ok"
}

/// New requests are welcome: the database answers and the broker is not ending.
pub async fn ready(State(app): State<Shared>) -> Response {
    let draining = app.draining.is_cancelled();
    if draining || !app.ledger.answers().await {
        let why = if draining { "draining" } else { "the database does not answer" };
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    "ready".into_response()
}

/// Prometheus' text format.
// axum takes async functions only.
#[allow(clippy::unused_async)]
pub async fn metrics() -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, measures::recorder().render()).into_response()
}
