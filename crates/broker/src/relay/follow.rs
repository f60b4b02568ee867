//! Following one attempt: its tokens in, the consumer's text out, until it ends one way or another.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use wakati_ledger::Finish;
use wakati_protocol::ids::{NodeId, Position};
use wakati_protocol::job::{Credit, End, Finish as NodeFinish, Logprobs, Tokens};
use wakati_protocol::link::to_node;

use super::{Chunk, Outcome, Relay};
use crate::hub::News;
use crate::measures::{self, Dropped};
use crate::models::Model;
use crate::wire::TokenProbability;

/// Frames at another position than the next one, after which an attempt has failed. An honest node sends none.
const STRIKES: u32 = 8;

impl Relay {
    /// Takes an attempt's tokens until it ends one way or another.
    pub(super) async fn follow(&mut self, node: &NodeId, news: &mut mpsc::Receiver<News>) -> Outcome {
        let window = self.app.settings.credit_window;
        let mut credit = window;
        let mut strikes = 0;
        // Only tokens that are taken move it.
        let mut deadline = Instant::now() + self.app.settings.first_token;
        loop {
            let heard = tokio::select! {
                biased;
                () = self.to.closed() => return Outcome::Left,
                () = self.app.abort.cancelled() => return Outcome::Aborted,
                heard = timeout_at(deadline.min(self.until), news.recv()) => heard,
            };
            match heard {
                Err(_) if Instant::now() >= self.until => return Outcome::TimeUp,
                Err(_) => return Outcome::Silent,
                Ok(None) => return Outcome::Over("lost"),
                Ok(Some(News::Yielding)) => return Outcome::Over("yielded"),
                Ok(Some(News::End(end))) => {
                    // That was the node's last word: nobody waits for another before the slot is free.
                    news.close();
                    return self.ended(&end);
                }
                Ok(Some(News::Tokens(tokens))) => {
                    let count = tokens.ids.len() as u32;
                    if count > credit {
                        measures::dropped(Dropped::Hostile);
                        return Outcome::Failed;
                    }
                    if tokens.first_position as usize != self.emitted.len() {
                        measures::dropped(Dropped::Late);
                        strikes += 1;
                        if strikes >= STRIKES {
                            return Outcome::Failed;
                        }
                        continue;
                    }
                    if !self.plausible(&tokens) {
                        measures::dropped(Dropped::Hostile);
                        return Outcome::Failed;
                    }
                    if let Some(outcome) = self.take(tokens).await {
                        return outcome;
                    }
                    credit -= count;
                    deadline = Instant::now() + self.app.settings.token_gap;
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
        let Tokens { ids, logprobs, .. } = tokens;
        let entry = &self.order.model.entry;
        let told = match self.order.sampling.top_logprobs {
            Some(most) => !logprobs.is_empty() && logprobs.iter().all(|l| l.top.len() <= most as usize),
            None => logprobs.is_empty(),
        };
        self.emitted.len() + ids.len() <= self.order.limit as usize
            && ids.iter().all(|id| *id < entry.vocabulary && !entry.stop_ids.contains(id))
            && told
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
    pub(super) async fn hand_over(&mut self, text: String, probabilities: Vec<TokenProbability>) -> bool {
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
        let began = self.tried.last().map_or(0, |tried| tried.first_position);
        let nothing_yet = self.emitted.len() == began as usize;
        // A node's own words may have something of the prompt in them: they are not logged.
        let (finish, position, detail_bytes) = (end.finish, end.position, end.detail.len());
        match NodeFinish::try_from(end.finish) {
            Ok(NodeFinish::Stop) if fits => Outcome::Complete(Finish::Stop),
            Ok(NodeFinish::Refused) => {
                tracing::info!(position, detail_bytes, "a node refused the job");
                Outcome::Refused
            }
            // A node that has begun had room.
            Ok(NodeFinish::Busy) if nothing_yet => Outcome::Busy,
            // `Length` before the limit too: the limit is always within the context.
            Ok(NodeFinish::Stop | NodeFinish::Busy | NodeFinish::Length | NodeFinish::Cancelled)
            | Ok(NodeFinish::Failed | NodeFinish::Unknown)
            | Err(_) => {
                tracing::info!(finish, position, detail_bytes, "attempt failed");
                Outcome::Failed
            }
        }
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
