//! The market of models. It needs no key: it is what a newcomer looks at first.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};
use wakati_protocol::money::{NanoUsd, Price};

use crate::app::{App, Shared};
use crate::models::Model;
use crate::wire::ApiError;

/// All models.
// axum takes async functions only.
#[allow(clippy::unused_async)]
pub async fn list(State(app): State<Shared>) -> Json<Value> {
    let data: Vec<Value> = app.models.all().iter().map(|model| describe(&app, model)).collect();
    Json(json!({"object": "list", "data": data}))
}

/// One model; its id may have slashes.
// axum takes async functions only.
#[allow(clippy::unused_async)]
pub async fn one(State(app): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let model = app.models.get(&id).ok_or_else(|| ApiError::no_model(&id))?;
    Ok(Json(describe(&app, &model)))
}

/// OpenAI's four fields, and under `wakati` what it is and how its market stands. Prices are dollars per million.
fn describe(app: &App, model: &Model) -> Value {
    let entry = &model.entry;
    let standing = app.hub.standing(&entry.digest);
    let dollars = |price: Price| (standing.nodes > 0).then(|| NanoUsd(price.0).to_string());
    json!({
        "id": entry.slug,
        "object": "model",
        "created": model.since,
        "owned_by": "wakati",
        "wakati": {
            "name": entry.name,
            "digest": entry.digest,
            "quantisation": entry.quantisation,
            "context": entry.context,
            "nodes": standing.nodes,
            "slots": standing.slots,
            "free_slots": standing.free,
            "input_price": {"lowest": dollars(standing.lowest.input), "highest": dollars(standing.highest.input)},
            "output_price": {"lowest": dollars(standing.lowest.output), "highest": dollars(standing.highest.output)},
        },
    })
}
