//! Errors in OpenAI's envelope.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use wakati_protocol::money::NanoUsd;

/// An error that a consumer gets: `{"error": {"message", "type", "param", "code"}}`.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<&'static str>,
    message: String,
    /// Seconds.
    retry_after: Option<u32>,
    /// Dollars: available, held, needed.
    credit: Option<[NanoUsd; 3]>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, kind, code: None, param: None, message, retry_after: None, credit: None }
    }

    /// 400: the request is at fault.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// 400 about one field.
    pub fn field(param: &'static str, message: impl Into<String>) -> Self {
        Self { param: Some(param), ..Self::invalid(message) }
    }

    /// 400: the prompt does not fit.
    #[must_use]
    pub fn too_long(prompt_tokens: usize, context: u32) -> Self {
        let message = format!(
            "The prompt has {prompt_tokens} tokens; this model takes {context}, prompt and answer together."
        );
        Self { code: Some("context_length_exceeded"), ..Self::field("messages", message) }
    }

    /// 401.
    #[must_use]
    pub fn unauthorised() -> Self {
        let message = "Give a valid API key in the Authorization header: Bearer wk-...";
        let error = Self::new(StatusCode::UNAUTHORIZED, "invalid_request_error", message);
        Self { code: Some("invalid_api_key"), ..error }
    }

    /// 402: the account cannot cover the worst case.
    #[must_use]
    pub fn insufficient(available: NanoUsd, held: NanoUsd, needed: NanoUsd) -> Self {
        let message = format!(
            "This request may cost ${needed}. The account has ${available} available and ${held} held for running requests."
        );
        let error = Self::new(StatusCode::PAYMENT_REQUIRED, "insufficient_quota", message);
        Self { code: Some("insufficient_quota"), credit: Some([available, held, needed]), ..error }
    }

    /// 404: no such model.
    #[must_use]
    pub fn no_model(name: &str) -> Self {
        let short: String = name.chars().take(200).collect();
        let error = Self::new(
            StatusCode::NOT_FOUND,
            "invalid_request_error",
            format!("The model {short:?} does not exist here; GET /v1/models lists those that do."),
        );
        Self { code: Some("model_not_found"), param: Some("model"), ..error }
    }

    /// 404, 405, 413, 415: HTTP's own.
    pub fn http(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, "invalid_request_error", message)
    }

    /// 429: every slot is taken at the moment.
    #[must_use]
    pub fn busy() -> Self {
        let message = "All nodes that serve this model are busy; try again shortly.";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        Self { code: Some("no_free_slot"), retry_after: Some(1), ..error }
    }

    /// 503: nobody serves this now.
    #[must_use]
    pub fn no_node() -> Self {
        let message = "No node serves this model at the moment.";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        Self { code: Some("no_node"), retry_after: Some(5), ..error }
    }

    /// 503: this broker is ending.
    #[must_use]
    pub fn ending() -> Self {
        let message = "The broker is restarting; try again shortly.";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        Self { code: Some("restarting"), retry_after: Some(2), ..error }
    }

    /// 502: nodes were tried, and none could finish the answer.
    #[must_use]
    pub fn unfinished() -> Self {
        let message = "The answer could not be finished: the nodes that served it failed. Only what you received is charged.";
        let error = Self::new(StatusCode::BAD_GATEWAY, "server_error", message);
        Self { code: Some("nodes_failed"), ..error }
    }

    /// 500: our own fault, before anything was served. What happened is in the log.
    #[must_use]
    pub fn ours() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            "The broker failed; the request was not charged.",
        )
    }

    /// 500: the answer is over, and the books could not be written. They will be.
    #[must_use]
    pub fn unsettled() -> Self {
        let message = "The broker could not write the end of this request into its books yet. Its hold stays until it \
            can, soon; then what you received is charged and nothing else.";
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
        Self { code: Some("not_settled"), ..error }
    }

    /// The envelope, as it is sent in a body or in a stream.
    #[must_use]
    pub fn envelope(&self) -> Value {
        let mut error = json!({
            "message": self.message, "type": self.kind, "param": self.param, "code": self.code,
        });
        if let (Some([available, held, needed]), Some(fields)) = (self.credit, error.as_object_mut()) {
            let dollars = |amount: NanoUsd| amount.to_string();
            let credit =
                json!({"available": dollars(available), "held": dollars(held), "needed": dollars(needed)});
            fields.insert("credit".to_owned(), credit);
        }
        json!({ "error": error })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.envelope())).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
