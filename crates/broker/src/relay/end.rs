//! The end of a job: the rest of its text, the books, the last word, and the slot.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::timeout;
use wakati_ledger::{Ending, Finish, Refusal};
use wakati_market::Claim;
use wakati_protocol::ids::Position;
use wakati_protocol::link::to_node;

use super::{Chunk, LAST_WORD, Outcome, REFUSALS, Relay};
use crate::app::App;
use crate::clock::now;
use crate::hub::News;
use crate::measures;
use crate::wire::{ApiError, Usage};

impl Relay {
    /// Settles the job, says the last word, and gives the slot back.
    pub(super) async fn end(mut self, outcome: Outcome, last: Option<(Claim, Option<mpsc::Receiver<News>>)>) {
        // A node that has ended the attempt by itself ignores a cancel.
        if let Some((claim, Some(_))) = &last {
            self.cancel(&claim.node);
        }
        let outcome = if self.say_the_rest(&outcome).await { outcome } else { Outcome::Left };
        let job = self.order.job;
        let app = Arc::clone(&self.app);
        self.settle(&outcome).await;
        let Some((claim, news)) = last else { return };
        let still_runs =
            matches!(outcome, Outcome::Complete(_) | Outcome::Left | Outcome::Aborted | Outcome::TimeUp);
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
        app.hub.forget(job);
        app.hub.release(claim);
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

    /// Writes the end into the books and tells the consumer.
    async fn settle(self, outcome: &Outcome) {
        let app: &App = &self.app;
        let emitted = self.emitted.len() as Position;
        let (finish, delivered) = match outcome {
            Outcome::Complete(finish) => (*finish, emitted),
            Outcome::Left => (Finish::Cancelled, self.taken()),
            Outcome::Refused if self.refusals >= REFUSALS => (Finish::Refused, self.taken()),
            Outcome::Aborted | Outcome::Over(_) | Outcome::Silent | Outcome::Failed => {
                (Finish::Failed, self.taken())
            }
            Outcome::Refused | Outcome::Busy | Outcome::TimeUp | Outcome::Short(_) => {
                (Finish::Failed, self.taken())
            }
        };
        let ending = Ending { finish, delivered: Some(delivered) };
        let settled = app.ledger.settle(self.order.job, ending, now(), &|bytes| app.sign(bytes)).await;
        app.checkpoints.forget(self.order.job);
        let settled = match settled {
            Ok(settled) => settled,
            Err(error) => {
                tracing::error!(%error, "the job could not be settled; the keeper of open jobs tries again");
                // The consumer is told of a failure, so it is charged as for one.
                let ending = Ending { finish: Finish::Failed, delivered: Some(self.taken()) };
                let _ = self.to.try_send(Chunk::Fault(ApiError::unsettled()));
                self.order.ticket.leave_unsettled(ending);
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
            Outcome::Refused if self.refusals >= REFUSALS => Chunk::Fault(ApiError::invalid(
                "The nodes refused this request: the model cannot serve it as it is.",
            )),
            Outcome::Aborted => Chunk::Fault(ApiError::ending()),
            Outcome::Busy if emitted == 0 => Chunk::Fault(ApiError::busy()),
            Outcome::Short(Refusal::Insufficient { available, held, needed }) => {
                Chunk::Fault(ApiError::insufficient(*available, *held, *needed))
            }
            Outcome::Left | Outcome::Over(_) | Outcome::Silent | Outcome::Failed => {
                Chunk::Fault(ApiError::unfinished())
            }
            Outcome::Refused | Outcome::Busy | Outcome::TimeUp => Chunk::Fault(ApiError::unfinished()),
        };
        // There is room, unless the consumer has left: see `say_the_rest`.
        let _ = self.to.try_send(word);
    }
}
