//! What consumers and operators' monitors reach over HTTP.

mod caller;
mod chat;
mod health;
mod models;
mod open;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State, WebSocketUpgrade};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get, post};

use crate::app::Shared;
use crate::link::LARGEST_FRAME;
use crate::measures;
use crate::wire::ApiError;

/// All routes.
pub fn routes(app: Shared) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat::complete))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/node/v1", any(node_link))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(DefaultBodyLimit::max(app.settings.body_bytes))
        .layer(middleware::from_fn(stamp))
        .with_state(app)
}

// axum takes async functions only.
#[allow(clippy::unused_async)]
async fn nowhere() -> ApiError {
    ApiError::http(StatusCode::NOT_FOUND, "There is nothing at this address.")
}

// axum takes async functions only.
#[allow(clippy::unused_async)]
async fn not_so() -> ApiError {
    ApiError::http(StatusCode::METHOD_NOT_ALLOWED, "This address does not take that method.")
}

/// Gives every response its id, and counts refusals.
async fn stamp(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if response.status().is_client_error() || response.status().is_server_error() {
        measures::refused(response.status().as_u16());
    }
    let id = uuid::Uuid::new_v4().to_string();
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
    response
}

// axum takes async functions only.
#[allow(clippy::unused_async)]
async fn node_link(
    State(app): State<Shared>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade
        .map_err(|_| ApiError::http(StatusCode::UPGRADE_REQUIRED, "Nodes connect here with a WebSocket."))?;
    if app.draining.is_cancelled() {
        return Err(ApiError::ending());
    }
    let tasks = app.tasks.clone();
    let session = move |socket| async move {
        // The tracker lets the end of the broker wait for this link.
        tasks.track_future(crate::link::serve_node(&app, socket)).await;
    };
    Ok(upgrade.max_message_size(LARGEST_FRAME).max_frame_size(LARGEST_FRAME).on_upgrade(session))
}
