//! Who asks.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use wakati_ledger::Consumer;

use crate::app::Shared;
use crate::wire::ApiError;

/// The holder of the key in a request's header. Extractors of headers come before those of the body, so not a byte of
/// a stranger's body is read.
pub struct Caller(pub Consumer);

impl FromRequestParts<Shared> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, ApiError> {
        let bearer = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let key = bearer
            .and_then(|value| value.split_once(' '))
            .filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        let Some((_, key)) = key else { return Err(ApiError::unauthorised()) };
        match app.ledger.holder(key.trim()).await {
            Ok(Some(consumer)) => Ok(Self(consumer)),
            Ok(None) => Err(ApiError::unauthorised()),
            Err(error) => {
                tracing::error!(%error, "a key could not be looked up, so the request was refused");
                Err(ApiError::ours())
            }
        }
    }
}
