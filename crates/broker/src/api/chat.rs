//! `POST /v1/chat/completions`.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use wakati_protocol::ids::JobId;

use super::caller::Caller;
use super::open::{Asked, serve};
use crate::app::Shared;
use crate::checkpoints::Delivered;
use crate::clock::now;
use crate::measures;
use crate::models::Model;
use crate::relay::Chunk;
use crate::text::BadPrompt;
use crate::wire::{ApiError, ChatRequest, Reply, Usage, read_request};

/// Comments on a silent stream, so that nothing on the way takes it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a stream's status waits for the first chunk: an early refusal becomes a status instead of an error frame.
const STATUS_WAIT: Duration = Duration::from_secs(5);
/// One chunk between relay and body: the relay knows by it that the chunk before has been taken.
const CHUNKS: usize = 1;
/// Prompts longer than this are encoded on a thread that may block.
const LONG_PROMPT_BYTES: usize = 32 << 10;

/// Serves one request.
pub async fn complete(
    State(app): State<Shared>,
    Caller(consumer): Caller,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let began = Instant::now();
    if app.draining.is_cancelled() {
        return Err(ApiError::ending());
    }
    let body = read_body(&headers, body)?;
    let request = read_request(&body)?;
    let model = find_model(&app, &request.model).await?;
    let prompt = encode(&model, &request, body.len()).await?;
    let job = JobId(*uuid::Uuid::new_v4().as_bytes());
    let reply = Reply {
        id: format!("chatcmpl-{job}"),
        created: now().0 / 1000,
        model: request.model.clone(),
        fingerprint: format!("fp_{}", &model.entry.digest.to_string()[..12]),
        include_usage: request.include_usage,
    };
    let is_stream = request.stream;
    let delivered = Delivered::default();
    let asked = Asked { job, consumer, model, request, prompt, delivered: Arc::clone(&delivered) };
    let (to, chunks) = mpsc::channel(CHUNKS);
    let (tell, opened) = oneshot::channel();
    // A task of its own: a client that leaves takes this function with it, and a slot or a hold must not stay behind.
    app.tasks.spawn(serve(Arc::clone(&app), asked, tell, to));
    opened.await.map_err(|error| our_fault("a job's task ended", &error))??;
    if is_stream { stream(reply, chunks, delivered, began).await } else { whole(reply, chunks, began).await }
}

/// The model with this name, also one that has been added a moment ago.
async fn find_model(app: &Shared, name: &str) -> Result<Arc<Model>, ApiError> {
    if let Some(model) = app.models.get(name) {
        return Ok(model);
    }
    let looks = Arc::clone(app);
    tokio::task::spawn_blocking(move || looks.models.look_again())
        .await
        .map_err(|error| our_fault("the models could not be looked at", &error))?;
    app.models.get(name).ok_or_else(|| ApiError::no_model(name))
}

pub(super) fn our_fault(what: &'static str, error: &dyn std::fmt::Display) -> ApiError {
    tracing::error!(%error, what, "request failed");
    ApiError::ours()
}

fn read_body(headers: &HeaderMap, body: Result<Bytes, BytesRejection>) -> Result<Bytes, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or("?"));
    let json = kind.is_none_or(|kind| {
        let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        essence == "application/json" || essence.ends_with("+json")
    });
    if !json {
        let message = "Send JSON, with Content-Type: application/json.";
        return Err(ApiError::http(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::http(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large.")
        }
        _ => ApiError::invalid("The body could not be read."),
    })
}

async fn encode(model: &Arc<Model>, request: &ChatRequest, bytes: usize) -> Result<Vec<u32>, ApiError> {
    let encoded = if bytes > LONG_PROMPT_BYTES {
        let (model, messages) = (Arc::clone(model), request.messages.clone());
        tokio::task::spawn_blocking(move || model.text.prompt(&messages))
            .await
            .map_err(|error| our_fault("the tokenizer's thread ended", &error))?
    } else {
        model.text.prompt(&request.messages)
    };
    match encoded {
        Ok(prompt) => Ok(prompt),
        Err(error @ (BadPrompt::Template(_) | BadPrompt::NoMark | BadPrompt::TooMany { .. })) => {
            Err(ApiError::field("messages", format!("{error}")))
        }
        Err(error) => Err(our_fault("a prompt could not be encoded", &error)),
    }
}

/// Nothing of the answer leaves before all of it is there, so nothing is delivered before.
async fn whole(
    reply: Reply,
    mut chunks: mpsc::Receiver<Chunk>,
    began: Instant,
) -> Result<Response, ApiError> {
    let mut answer = String::new();
    let mut all: Option<Vec<_>> = None;
    while let Some(chunk) = chunks.recv().await {
        match chunk {
            Chunk::Text { text, probabilities, .. } => {
                if answer.is_empty() {
                    measures::first_token(began.elapsed().as_secs_f64());
                }
                answer.push_str(&text);
                if let Some(probabilities) = probabilities {
                    all.get_or_insert_default().extend(probabilities);
                }
            }
            Chunk::End { reason, usage } => {
                return Ok(Json(reply.whole(&answer, all.as_deref(), reason, usage)).into_response());
            }
            Chunk::Fault(error) => return Err(error),
        }
    }
    Err(ApiError::unfinished())
}

async fn stream(
    reply: Reply,
    mut chunks: mpsc::Receiver<Chunk>,
    delivered: Delivered,
    began: Instant,
) -> Result<Response, ApiError> {
    let first = match timeout(STATUS_WAIT, chunks.recv()).await {
        Ok(Some(Chunk::Fault(error))) => return Err(error),
        Ok(None) => return Err(ApiError::unfinished()),
        Ok(first) => first,
        Err(_) => None,
    };
    measures::first_token(began.elapsed().as_secs_f64());
    let events = Events { reply, delivered, chunks, first, ready: Vec::new(), stage: Stage::Role };
    Ok(Sse::new(events.into_stream()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Turns chunks into events, at the pace at which the body asks for them.
struct Events {
    reply: Reply,
    delivered: Delivered,
    chunks: mpsc::Receiver<Chunk>,
    first: Option<Chunk>,
    /// Events of the last chunk that have not been asked for, last one first.
    ready: Vec<String>,
    stage: Stage,
}

#[derive(PartialEq, Eq)]
enum Stage {
    Role,
    Text,
    Done,
}

impl Events {
    fn into_stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        futures_util::stream::unfold(self, |mut events| async move {
            let text = events.next().await?;
            Some((Ok(Event::default().data(text)), events))
        })
    }

    async fn next(&mut self) -> Option<String> {
        if let Some(ready) = self.ready.pop() {
            return Some(ready);
        }
        match self.stage {
            Stage::Role => {
                self.stage = Stage::Text;
                return Some(self.reply.role());
            }
            Stage::Text => {}
            Stage::Done => return None,
        }
        let chunk = match self.first.take() {
            Some(chunk) => chunk,
            None => self.chunks.recv().await.unwrap_or_else(|| Chunk::Fault(ApiError::unfinished())),
        };
        match chunk {
            Chunk::Text { text, probabilities, upto } => {
                self.delivered.store(upto, Ordering::Release);
                Some(self.reply.text(&text, probabilities.as_deref()))
            }
            Chunk::End { reason, usage } => {
                self.stage = Stage::Done;
                self.ready = self.last_words(usage);
                Some(self.reply.finish(reason))
            }
            Chunk::Fault(error) => {
                self.stage = Stage::Done;
                Some(error.envelope().to_string())
            }
        }
    }

    fn last_words(&self, usage: Usage) -> Vec<String> {
        let mut words = vec!["[DONE]".to_owned()];
        if self.reply.include_usage {
            words.push(self.reply.usage(usage));
        }
        words
    }
}
