//! From a request that is understood to a job that is open: a node's slot, the money, and the relay.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use wakati_ledger::{Consumer, JobOpening, Limit, OpenError, Refusal};
use wakati_market::{Match, NoMatch, Request};
use wakati_protocol::ids::JobId;

use super::chat::our_fault;
use crate::app::{App, Shared};
use crate::checkpoints::Delivered;
use crate::clock::now;
use crate::models::Model;
use crate::relay::{Chunk, Order, relay};
use crate::wire::{ApiError, ChatRequest, OutputLimit};

/// A request with everything that is needed to serve it.
pub struct Asked {
    pub job: JobId,
    pub consumer: Consumer,
    pub model: Arc<Model>,
    pub request: ChatRequest,
    pub prompt: Vec<u32>,
    pub delivered: Delivered,
}

/// Opens a job, tells whether it is open, and relays it to its end. The consumer has left when nobody reads `to`.
pub async fn serve(
    app: Shared,
    asked: Asked,
    tell: oneshot::Sender<Result<(), ApiError>>,
    to: mpsc::Sender<Chunk>,
) {
    let work = async {
        match open(&app, asked, &to).await {
            Ok((order, first)) => {
                // Nobody is there to hear it when the consumer has left: the relay sees that too.
                let _ = tell.send(Ok(()));
                relay(&app, order, first, to).await;
            }
            Err(error) => {
                let _ = tell.send(Err(error));
            }
        }
    };
    tokio::select! {
        biased;
        () = app.crash.cancelled() => {}
        () = work => {}
    }
}

/// Finds a node and puts the money aside.
async fn open(app: &App, asked: Asked, to: &mpsc::Sender<Chunk>) -> Result<(Order, Match), ApiError> {
    let Asked { job, consumer, model, request, prompt, delivered } = asked;
    let entry = &model.entry;
    if prompt.len() >= entry.context as usize {
        return Err(ApiError::too_long(prompt.len(), entry.context));
    }
    if request.sampling.bias.iter().any(|bias| bias.token >= entry.vocabulary) {
        return Err(ApiError::field("logit_bias", "logit_bias names a token that the model does not have."));
    }
    let prompt_tokens = prompt.len() as u32;
    let limit = match request.limit {
        OutputLimit::Asked(limit) => limit,
        OutputLimit::Open => app.settings.default_output_tokens,
    };
    let nobody = BTreeSet::new();
    let mut wanted = Request {
        model: entry.digest,
        prompt_tokens,
        limit: limit.min(entry.context - prompt_tokens),
        ceiling: app.settings.ceiling(),
        budget: None,
        excluded: &nobody,
    };
    wanted.limit = app.hub.longest_answer(&wanted);
    if wanted.limit == 0 {
        return Err(ApiError::no_node());
    }
    let limit = match request.limit {
        OutputLimit::Asked(_) => Limit::Exactly(wanted.limit),
        OutputLimit::Open => Limit::UpTo(wanted.limit),
    };
    let first = claim(app, &wanted, to).await?;
    let ticket = app.open_jobs.enter(job);
    let opening = JobOpening {
        job,
        key: consumer.key,
        account: &consumer.account,
        model: entry.digest,
        model_name: &entry.slug,
        prompt_tokens,
        limit,
        locked: first.prices,
        node: first.claim.node,
    };
    let opened = match app.ledger.open_job(&opening, now()).await {
        Ok(opened) => opened,
        Err(error) => {
            app.hub.release(first.claim);
            return Err(match error {
                OpenError::Refused(Refusal::Insufficient { available, held, needed }) => {
                    ApiError::insufficient(available, held, needed)
                }
                OpenError::Failed(error) => our_fault("a job could not be opened", &error),
            });
        }
    };
    let mut sampling = request.sampling;
    sampling.seed = request.seed.unwrap_or_else(rand::random);
    let order = Order {
        job,
        model: Arc::clone(&model),
        prompt,
        asked: limit,
        limit: opened.limit,
        locked: first.prices,
        hold: opened.hold,
        sampling,
        stops: request.stops,
        delivered,
        ticket,
    };
    Ok((order, first))
}

/// The node that answers. While all slots are taken the request waits its turn; without any node it does not, and
/// neither does it when its consumer has left.
async fn claim(app: &App, wanted: &Request<'_>, to: &mpsc::Sender<Chunk>) -> Result<Match, ApiError> {
    match app.hub.claim(wanted) {
        Ok(found) => Ok(found),
        Err(NoMatch::NoNode) => Err(ApiError::no_node()),
        Err(NoMatch::Busy) => {
            let until = Instant::now() + app.settings.queue;
            tokio::select! {
                found = app.hub.claim_until(wanted, until) => found.ok_or_else(ApiError::busy),
                () = to.closed() => Err(ApiError::busy()),
                () = app.abort.cancelled() => Err(ApiError::ending()),
            }
        }
    }
}
