//! One job from its first node to its consumer's last chunk.
//!
//! ```text
//!           +---- another node: prompt ++ emitted, attempt + 1 <----+
//!           v                                                       |
//! match -> follow --- yielded, lost, silent, failed, refused, busy -+
//!           |                                                       |
//!           | stop, length, stop string, consumer left              | none left to try
//!           v                                                       v
//!        settle -> last chunk -> wait for the node's End         settle -> error frame
//! ```
//!
//! A token is taken if and only if its attempt is current (the hub sees to that) and its position is next.
//! *Delivered* is what the response's body has taken; [`Order::delivered`] is counted there, and only that is billed
//! when the answer stays incomplete: nothing of an answer that would have been sent whole. Until the first token the
//! price is that of the node that serves; after it, it stays, and what a dearer node costs is absorbed within a
//! cap. A job is settled before its last chunk is sent: a consumer that has seen the end has
//! a job in the books, whatever happens next.

mod another;
mod end;
mod follow;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument;
use wakati_ledger::{Finish, Limit, Refusal, Tried};
use wakati_market::{Claim, Conduct, Match};
use wakati_protocol::ids::{Attempt, JobId, NodeId, Position};
use wakati_protocol::job::{Cancel, Job, Sampling};
use wakati_protocol::link::to_node;
use wakati_protocol::money::{NanoUsd, Prices};

use crate::app::Shared;
use crate::checkpoints::Delivered;
use crate::measures;
use crate::models::Model;
use crate::open_jobs::Ticket;
use crate::text::Answer;
use crate::wire::{ApiError, TokenProbability, Usage};

/// How long a node's slot waits for the `End` of an attempt that was cancelled or is complete.
const LAST_WORD: Duration = Duration::from_secs(2);
/// How long a job leaves nodes alone that said they were busy, when there are no others.
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// Failures at the same position, from different nodes, after which the job itself is taken to be the cause.
const POISON: u32 = 2;
/// Different nodes that must refuse a job before its consumer is told that it is at fault.
const REFUSALS: u32 = 2;
/// Answers `Busy` to one job, after which it is told to try again.
const MOST_BUSY: u32 = 16;

/// A job that is open in the books.
pub struct Order {
    pub job: JobId,
    pub model: Arc<Model>,
    pub prompt: Vec<u32>,
    /// What the consumer asked for, and what it came to at the locked prices.
    pub asked: Limit,
    pub limit: u32,
    /// What the consumer pays.
    pub locked: Prices,
    /// The most that it may come to.
    pub hold: NanoUsd,
    pub sampling: Sampling,
    pub stops: Vec<String>,
    /// Positions that the consumer has.
    pub delivered: Delivered,
    pub ticket: Ticket,
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
    /// The attempt is over, the job is not. The word is for the metrics.
    Over(&'static str),
    /// No token came in time.
    Silent,
    /// By the node's own word, or because it sent garbage.
    Failed,
    Refused,
    Busy,
    /// The job has taken longer than any may.
    TimeUp,
    /// The job would begin anew at a price that the account cannot cover.
    Short(Refusal),
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
    /// All attempts so far. The last one's positions are counted when it is over.
    tried: Vec<Tried>,
    /// When the job ends, complete or not.
    until: Instant,
    /// Nodes that had their try.
    excluded: BTreeSet<NodeId>,
    /// Nodes that had no slot a moment ago; nobody is at fault.
    busy: BTreeSet<NodeId>,
    /// When the job was last left without a node; `None` while tokens come.
    waiting_since: Option<Instant>,
    /// Failures at this position, so many.
    failed_at: (Position, u32),
    refusals: u32,
    /// Answers `Busy`.
    busy_answers: u32,
    /// Attempts that failed, went away or refused.
    migrations: u32,
}

/// Relays a job to its end.
pub async fn relay(app: &Shared, order: Order, first: Match, to: mpsc::Sender<Chunk>) {
    let span = tracing::info_span!("job", job = %order.job, model = order.model.entry.slug);
    app.checkpoints.watch(order.job, &order.delivered);
    measures::job_opened();
    let input_tokens = order.prompt.len() as u32;
    let relay = Relay {
        app: Arc::clone(app),
        answer: Answer::new(order.stops.clone()),
        order,
        to,
        emitted: Vec::new(),
        spoken: 0,
        attempt: 1,
        tried: vec![Tried { prices: first.prices, first_position: 0, input_tokens, positions: 0 }],
        until: Instant::now() + app.settings.job,
        excluded: BTreeSet::new(),
        busy: BTreeSet::new(),
        waiting_since: None,
        failed_at: (0, 0),
        refusals: 0,
        busy_answers: 0,
        migrations: 0,
    };
    relay.run(first.claim).instrument(span).await;
}

impl Relay {
    async fn run(mut self, first: Claim) {
        let mut claim = first;
        let (outcome, last) = loop {
            if self.to.is_closed() {
                break (Outcome::Left, Some((claim, None)));
            }
            let node = claim.node;
            let mut news = self.app.hub.start(&node, self.order.job, self.job());
            let outcome = match &mut news {
                Some(news) => self.follow(&node, news).await,
                None => Outcome::Over("lost"),
            };
            measures::attempt_ended(word(&outcome));
            tracing::debug!(%node, attempt = self.attempt, ended = word(&outcome), "attempt ended");
            self.reflect(node, &outcome);
            if !self.moves_on(&outcome) {
                break (outcome, Some((claim, news)));
            }
            self.cancel(&node);
            self.app.hub.forget(self.order.job);
            self.app.hub.release(claim);
            let set = if matches!(outcome, Outcome::Busy) { &mut self.busy } else { &mut self.excluded };
            set.insert(node);
            match self.another(outcome).await {
                Ok(next) => claim = next,
                Err(outcome) => break (outcome, None),
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

    /// Notes what the attempt says about its node.
    fn reflect(&self, node: NodeId, outcome: &Outcome) {
        let conduct = match outcome {
            Outcome::Complete(_) => Conduct::Served,
            Outcome::Silent | Outcome::Failed | Outcome::Refused => Conduct::WentWrong,
            Outcome::Left | Outcome::Aborted | Outcome::Over(_) => return,
            Outcome::Busy | Outcome::TimeUp | Outcome::Short(_) => return,
        };
        self.app.hub.report(node, conduct);
    }

    /// Whether another node may try.
    fn moves_on(&mut self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Over(_) | Outcome::Silent => self.may_migrate(),
            Outcome::Failed => !self.poisoned() && self.may_migrate(),
            Outcome::Refused => {
                self.refusals += 1;
                self.refusals < REFUSALS && !self.poisoned() && self.may_migrate()
            }
            Outcome::Busy => {
                self.busy_answers += 1;
                self.busy_answers < MOST_BUSY
            }
            Outcome::Complete(_) | Outcome::Left | Outcome::Aborted => false,
            Outcome::TimeUp | Outcome::Short(_) => false,
        }
    }

    fn may_migrate(&mut self) -> bool {
        self.migrations += 1;
        self.migrations <= self.app.settings.migrations
    }

    /// A job that makes nodes fail is not passed round. A lost link says nothing about the job.
    fn poisoned(&mut self) -> bool {
        let here = self.emitted.len() as Position;
        let times = if self.failed_at.0 == here { self.failed_at.1 + 1 } else { 1 };
        self.failed_at = (here, times);
        times >= POISON
    }

    fn cancel(&self, node: &NodeId) {
        let cancel = Cancel { job: self.order.job.to_vec(), attempt: self.attempt };
        self.app.hub.send(node, to_node::Body::Cancel(cancel));
    }

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
        Outcome::Silent => "silent",
        Outcome::Failed => "failed",
        Outcome::Busy => "busy",
        Outcome::TimeUp => "time up",
        Outcome::Short(_) => "short of funds",
    }
}
