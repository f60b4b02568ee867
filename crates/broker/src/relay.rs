//! One job from its first node to its consumer's last chunk.
//!
//! ```text
//!           +---- another node: prompt ++ emitted, attempt + 1 <----+
//!           v                                                       |
//! match -> follow --- yielded, lost, silent, failed, busy ----------+
//!           |                                                       |
//!           | stop, length, stop string, consumer left              | none left to try
//!           v                                                       v
//!        settle -> last chunk -> wait for the node's End         settle -> error frame
//! ```
//!
//! A token is taken if and only if its attempt is current (the hub sees to that) and its position is next.
//! *Delivered* is what the response's body has taken; [`Order::delivered`] is counted there, and only that is billed
//! when the consumer leaves. A job is settled before its last chunk is sent: a consumer that has seen the end has
//! a job in the books, whatever happens next.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tracing::Instrument;
use wakati_ledger::{Ending, Finish, NewAttempt};
use wakati_market::{Claim, Match};
use wakati_protocol::ids::{Attempt, JobId, NodeId, Position};
use wakati_protocol::job::{Cancel, Credit, End, Finish as NodeFinish, Job, Logprobs, Sampling, Tokens};
use wakati_protocol::link::to_node;

use crate::app::{App, Shared};
use crate::checkpoints::Delivered;
use crate::clock::now;
use crate::hub::News;
use crate::measures::{self, Dropped};
use crate::models::Model;
use crate::text::Answer;
use crate::wire::{ApiError, TokenProbability, Usage};

/// How long a node's slot waits for the `End` of an attempt that was cancelled or is complete.
const LAST_WORD: Duration = Duration::from_secs(2);
/// How long a job leaves nodes alone that said they were busy, when there are no others.
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// `End Failed` at the same position, from different nodes, after which the job itself is taken to be the cause.
const POISON: u32 = 2;

/// A job that is open in the books.
pub struct Order {
    pub job: JobId,
    pub model: Arc<Model>,
    pub prompt: Vec<u32>,
    pub limit: u32,
    pub sampling: Sampling,
    pub stops: Vec<String>,
    /// Positions that the consumer has.
    pub delivered: Delivered,
}

/// What the consumer's side gets.
#[derive(Debug)]
pub enum Chunk {
    Text {
        text: String,
        probabilities: Option<Vec<TokenProbability>>,
        /// When this chunk is taken, all positions before this one are delivered.
        upto: Position,
    },
    /// The answer is complete and in the books.
    End { reason: &'static str, usage: Usage },
    /// The answer stays incomplete.
    Fault(ApiError),
}

/// How following one attempt ended.
enum Outcome {
    /// The answer is complete; for these the node is told to stop where it may not know yet.
    Complete(Finish),
    /// The consumer has left, or leaves its text unread.
    Left,
    /// The broker ends.
    Aborted,
    Refused,
    /// The attempt is over, the job is not. The word is for the metrics.
    Over(&'static str),
    Failed,
    Busy,
}

struct Relay {
    app: Shared,
    order: Order,
    to: mpsc::Sender<Chunk>,
    answer: Answer,
    emitted: Vec<u32>,
    /// Positions whose text has been let go entirely.
    spoken: Position,
    attempt: Attempt,
    /// Nodes that had their try.
    excluded: BTreeSet<NodeId>,
    /// Nodes that had no slot a moment ago; nobody is at fault.
    busy: BTreeSet<NodeId>,
    /// When the job was last left without a node; `None` while tokens come.
    waiting_since: Option<Instant>,
    /// `End Failed` at this position, so many times.
    failed_at: (Position, u32),
}

/// Relays a job in a task of its own.
pub fn relay(app: &Shared, order: Order, first: Match, to: mpsc::Sender<Chunk>) {
    let span = tracing::info_span!("job", job = %order.job, model = order.model.entry.slug);
    app.checkpoints.watch(order.job, &order.delivered);
    measures::job_opened();
    let relay = Relay {
        app: Arc::clone(app),
        answer: Answer::new(order.stops.clone()),
        order,
        to,
        emitted: Vec::new(),
        spoken: 0,
        attempt: 1,
        excluded: BTreeSet::new(),
        busy: BTreeSet::new(),
        waiting_since: None,
        failed_at: (0, 0),
    };
    let crash = app.crash.clone();
    let job = async move {
        tokio::select! {
            biased;
            () = crash.cancelled() => {}
            () = relay.run(first) => {}
        }
    };
    app.tasks.spawn(job.instrument(span));
}

impl Relay {
    async fn run(mut self, first: Match) {
        let mut claim = first.claim;
        let mut migrations = 0;
        let (outcome, last) = loop {
            let node = claim.node;
            let mut news = self.app.hub.start(&node, self.order.job, self.job());
            let outcome = match &mut news {
                Some(news) => self.follow(&node, news).await,
                None => Outcome::Over("lost"),
            };
            measures::attempt_ended(word(&outcome));
            tracing::debug!(%node, attempt = self.attempt, ended = word(&outcome), "attempt ended");
            let moves_on = match outcome {
                Outcome::Over(_) => self.may_migrate(&mut migrations),
                Outcome::Failed => !self.poisoned() && self.may_migrate(&mut migrations),
                Outcome::Busy => true,
                Outcome::Complete(_) | Outcome::Left | Outcome::Aborted | Outcome::Refused => false,
            };
            if !moves_on {
                break (outcome, Some((claim, news)));
            }
            self.cancel(&node);
            self.app.hub.forget(self.order.job);
            self.app.hub.release(claim);
            let set = if matches!(outcome, Outcome::Busy) { &mut self.busy } else { &mut self.excluded };
            set.insert(node);
            match self.another().await {
                Some(next) => claim = next,
                None if self.to.is_closed() => break (Outcome::Left, None),
                None if self.app.abort.is_cancelled() => break (Outcome::Aborted, None),
                None => break (outcome, None),
            }
        };
        self.end(outcome, last).await;
    }

    fn job(&self) -> Job {
        Job {
            job: self.order.job.to_vec(),
            attempt: self.attempt,
            model: self.order.model.entry.digest.to_vec(),
            prompt: self.order.prompt.clone(),
            emitted: self.emitted.clone(),
            limit: self.order.limit,
            stop_ids: self.order.model.entry.stop_ids.clone(),
            sampling: self.order.sampling.clone(),
            credit: self.app.settings.credit_window,
        }
    }

    fn may_migrate(&self, migrations: &mut u32) -> bool {
        *migrations += 1;
        *migrations <= self.app.settings.migrations
    }

    /// A job that makes nodes fail is not passed round. Only a node's own word counts here: a lost link says nothing
    /// about the job.
    fn poisoned(&mut self) -> bool {
        let here = self.emitted.len() as Position;
        let times = if self.failed_at.0 == here { self.failed_at.1 + 1 } else { 1 };
        self.failed_at = (here, times);
        times >= POISON
    }

    /// Another node for the rest of the job, waited for if need be, and noted in the books.
    async fn another(&mut self) -> Option<Claim> {
        let deadline = *self.waiting_since.get_or_insert_with(Instant::now) + self.app.settings.replacement;
        let input_tokens = (self.order.prompt.len() + self.emitted.len()) as u32;
        let rest = self.order.limit - self.emitted.len() as u32;
        let digest = self.order.model.entry.digest;
        let found = loop {
            let out: BTreeSet<NodeId> = self.excluded.union(&self.busy).copied().collect();
            let until =
                if self.busy.is_empty() { deadline } else { deadline.min(Instant::now() + BUSY_PAUSE) };
            let found = tokio::select! {
                found = self.app.hub.claim_until(digest, input_tokens, rest, &out, until) => found,
                () = self.to.closed() => return None,
                () = self.app.abort.cancelled() => return None,
            };
            if found.is_some() || Instant::now() >= deadline {
                break found?;
            }
            self.busy.clear();
        };
        self.attempt += 1;
        let attempt = NewAttempt {
            attempt: self.attempt,
            node: found.claim.node,
            prices: found.prices,
            first_position: self.emitted.len() as Position,
            input_tokens,
        };
        match self.app.ledger.begin_attempt(self.order.job, &attempt).await {
            Ok(()) => Some(found.claim),
            Err(error) => {
                tracing::error!(%error, "an attempt could not be noted");
                self.app.hub.release(found.claim);
                None
            }
        }
    }

    /// Takes an attempt's tokens until it ends one way or another.
    async fn follow(&mut self, node: &NodeId, news: &mut mpsc::Receiver<News>) -> Outcome {
        let window = self.app.settings.credit_window;
        let mut credit = window;
        let mut patience = self.app.settings.first_token;
        loop {
            let heard = tokio::select! {
                biased;
                () = self.to.closed() => return Outcome::Left,
                () = self.app.abort.cancelled() => return Outcome::Aborted,
                heard = timeout(patience, news.recv()) => heard,
            };
            match heard {
                Err(_) => return Outcome::Over("silent"),
                Ok(None) => return Outcome::Over("lost"),
                Ok(Some(News::Yielding)) => return Outcome::Over("yielded"),
                Ok(Some(News::End(end))) => return self.ended(&end),
                Ok(Some(News::Tokens(tokens))) => {
                    let count = tokens.ids.len() as u32;
                    if tokens.first_position as usize != self.emitted.len() {
                        measures::dropped(Dropped::Late);
                        continue;
                    }
                    if count > credit || !self.plausible(&tokens) {
                        measures::dropped(Dropped::Hostile);
                        return Outcome::Failed;
                    }
                    if let Some(outcome) = self.take(tokens).await {
                        return outcome;
                    }
                    credit -= count;
                    patience = self.app.settings.token_gap;
                    if credit <= window / 2 {
                        let (job, attempt) = (self.order.job.to_vec(), self.attempt);
                        let more = Credit { job, attempt, tokens: window - credit };
                        credit = window;
                        self.app.hub.send(node, to_node::Body::Credit(more));
                    }
                }
            }
        }
    }

    fn plausible(&self, tokens: &Tokens) -> bool {
        let wanted = self.order.sampling.top_logprobs.is_some();
        self.emitted.len() + tokens.ids.len() <= self.order.limit as usize
            && tokens.ids.iter().all(|id| *id < self.order.model.entry.vocabulary)
            && wanted != tokens.logprobs.is_empty()
    }

    /// Hands the tokens' text over. `None` when more is to come.
    async fn take(&mut self, tokens: Tokens) -> Option<Outcome> {
        let model = Arc::clone(&self.order.model);
        let mut text = String::new();
        let mut probabilities = Vec::new();
        let mut stopped = false;
        self.waiting_since = None;
        for (at, id) in tokens.ids.iter().enumerate() {
            self.emitted.push(*id);
            probabilities.extend(tokens.logprobs.get(at).map(|p| probability(&model, *id, p)));
            let piece = self.answer.push(*id, &model.text);
            text.push_str(&piece.text);
            // The token that completes a stop string is the last one that counts.
            stopped = piece.stopped;
            if stopped {
                break;
            }
        }
        let full = self.emitted.len() >= self.order.limit as usize;
        if full && !stopped {
            let rest = self.answer.finish(&model.text);
            text.push_str(&rest.text);
            stopped = rest.stopped;
        }
        if stopped || full || self.answer.nothing_held() {
            self.spoken = self.emitted.len() as Position;
        }
        if !self.hand_over(text, probabilities).await {
            return Some(Outcome::Left);
        }
        match (stopped, full) {
            (true, _) => Some(Outcome::Complete(Finish::Stop)),
            (false, true) => Some(Outcome::Complete(Finish::Length)),
            (false, false) => None,
        }
    }

    /// Gives the consumer a chunk. False when the consumer has left or does not read.
    async fn hand_over(&mut self, text: String, probabilities: Vec<TokenProbability>) -> bool {
        let probabilities = self.order.sampling.top_logprobs.map(|_| probabilities);
        if text.is_empty() && probabilities.as_ref().is_none_or(Vec::is_empty) {
            return true;
        }
        let chunk = Chunk::Text { text, probabilities, upto: self.spoken };
        tokio::select! {
            sent = timeout(self.app.settings.stalled_consumer, self.to.send(chunk)) => sent.is_ok_and(|s| s.is_ok()),
            () = self.app.abort.cancelled() => false,
        }
    }

    /// What a node's `End` means. One that does not fit what has arrived is a failure: tokens are missing, or it lies.
    fn ended(&self, end: &End) -> Outcome {
        let fits = end.position as usize == self.emitted.len();
        match NodeFinish::try_from(end.finish) {
            Ok(NodeFinish::Stop) if fits => Outcome::Complete(Finish::Stop),
            Ok(NodeFinish::Refused) => {
                tracing::info!(detail = end.detail, "a node refused the job");
                Outcome::Refused
            }
            Ok(NodeFinish::Busy) => Outcome::Busy,
            // `Length` before the limit too: the limit is always within the context.
            Ok(_) | Err(_) => {
                tracing::info!(
                    finish = end.finish,
                    position = end.position,
                    detail = end.detail,
                    "attempt failed"
                );
                Outcome::Failed
            }
        }
    }

    fn cancel(&self, node: &NodeId) {
        let cancel = Cancel { job: self.order.job.to_vec(), attempt: self.attempt };
        self.app.hub.send(node, to_node::Body::Cancel(cancel));
    }

    /// Settles the job, says the last word, and gives the slot back.
    async fn end(mut self, outcome: Outcome, last: Option<(Claim, Option<mpsc::Receiver<News>>)>) {
        // A node that has ended the attempt by itself ignores a cancel.
        if let Some((claim, Some(_))) = &last {
            self.cancel(&claim.node);
        }
        let outcome = if self.say_the_rest(&outcome).await { outcome } else { Outcome::Left };
        self.settle(&outcome).await;
        let Some((claim, news)) = last else { return };
        let still_runs = matches!(outcome, Outcome::Complete(_) | Outcome::Left | Outcome::Aborted);
        if let (Some(mut news), true) = (news, still_runs) {
            let end = async {
                while let Some(heard) = news.recv().await {
                    if matches!(heard, News::End(_) | News::Yielding) {
                        break;
                    }
                }
            };
            // Until then the slot is not free, whatever the consumer has.
            let _ = timeout(LAST_WORD, end).await;
        }
        self.app.hub.forget(self.order.job);
        self.app.hub.release(claim);
    }

    /// Lets go of what was held back and waits until the consumer has it. False when the consumer has not.
    async fn say_the_rest(&mut self, outcome: &Outcome) -> bool {
        if matches!(outcome, Outcome::Left) {
            return false;
        }
        if let Outcome::Complete(_) = outcome {
            let rest = self.answer.finish(&self.order.model.text);
            self.spoken = self.emitted.len() as Position;
            if !self.hand_over(rest.text, Vec::new()).await {
                return false;
            }
        }
        // The channel has one place: room in it means that the body has taken the chunk before.
        let patience =
            if self.app.abort.is_cancelled() { LAST_WORD } else { self.app.settings.stalled_consumer };
        timeout(patience, self.to.reserve()).await.is_ok_and(|room| room.is_ok())
    }

    async fn settle(&self, outcome: &Outcome) {
        let app: &App = &self.app;
        let emitted = self.emitted.len() as Position;
        let (finish, delivered) = match outcome {
            Outcome::Complete(finish) => (*finish, emitted),
            Outcome::Left => (Finish::Cancelled, self.taken()),
            Outcome::Refused => (Finish::Refused, self.taken()),
            Outcome::Aborted | Outcome::Failed | Outcome::Over(_) | Outcome::Busy => {
                (Finish::Failed, self.taken())
            }
        };
        let ending = Ending { finish, delivered: Some(delivered) };
        let settled = app.ledger.settle(self.order.job, ending, now(), &|bytes| app.sign(bytes)).await;
        app.checkpoints.forget(self.order.job);
        let settled = match settled {
            Ok(settled) => settled,
            Err(error) => {
                tracing::error!(%error, "the job could not be settled; the next start settles it");
                let _ = self.to.try_send(Chunk::Fault(ApiError::ours()));
                return;
            }
        };
        let (prompt_tokens, completion_tokens) = (settled.prompt_tokens, settled.completion_tokens);
        measures::job_ended(finish.word(), prompt_tokens, completion_tokens);
        tracing::info!(
            finish = finish.word(),
            prompt_tokens,
            completion_tokens,
            attempts = self.attempt,
            charge = settled.charge.0,
            "job settled"
        );
        for (node, receipt) in settled.receipts {
            app.hub.send_if_room(&node, to_node::Body::Receipt(receipt));
        }
        let word = match outcome {
            Outcome::Complete(_) => {
                let usage = Usage { prompt_tokens, completion_tokens };
                Chunk::End { reason: if finish == Finish::Length { "length" } else { "stop" }, usage }
            }
            Outcome::Refused => Chunk::Fault(ApiError::invalid(
                "The node refused this request: the model cannot serve it as it is.",
            )),
            Outcome::Aborted => Chunk::Fault(ApiError::ending()),
            Outcome::Busy if emitted == 0 => Chunk::Fault(ApiError::busy()),
            Outcome::Left | Outcome::Failed | Outcome::Over(_) | Outcome::Busy => {
                Chunk::Fault(ApiError::unfinished())
            }
        };
        // There is room, unless the consumer has left: see `say_the_rest`.
        let _ = self.to.try_send(word);
    }
}

impl Relay {
    /// Positions that the consumer has, never more than there are.
    fn taken(&self) -> Position {
        self.order.delivered.load(Ordering::Acquire).min(self.emitted.len() as Position)
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Complete(_) => "complete",
        Outcome::Left => "left",
        Outcome::Aborted => "aborted",
        Outcome::Refused => "refused",
        Outcome::Over(word) => word,
        Outcome::Failed => "failed",
        Outcome::Busy => "busy",
    }
}

fn probability(model: &Model, id: u32, logprobs: &Logprobs) -> TokenProbability {
    let text = |id: u32| model.text.decode(&[id]);
    TokenProbability {
        token: text(id),
        logprob: logprobs.chosen,
        top: logprobs.top.iter().map(|t| (text(t.token), t.logprob)).collect(),
    }
}
