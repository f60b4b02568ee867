//! Another node for the rest of a job: chosen, waited for, and noted in the books.

use std::collections::BTreeSet;

use tokio::time::Instant;
use wakati_ledger::{Limit, NewAttempt, OpenError, Refusal, Tried, room};
use wakati_market::{Budget, Claim, Request};
use wakati_protocol::ids::{NodeId, Position};
use wakati_protocol::money::NanoUsd;

use super::{BUSY_PAUSE, Outcome, Relay};
use crate::clock::now;

impl Relay {
    /// A slot for the next attempt, or how the job ends without one: as the last attempt did (`before`), when there
    /// is nobody.
    pub(super) async fn another(&mut self, before: Outcome) -> Result<Claim, Outcome> {
        let served = self.emitted.len() as Position;
        if let Some(last) = self.tried.last_mut() {
            last.positions = served - last.first_position;
        }
        let anew = served == 0;
        let (Limit::Exactly(most) | Limit::UpTo(most)) = self.order.asked;
        let rest = if anew { most } else { self.order.limit - served };
        let input_tokens = self.order.prompt.len() as u32 + served;
        let budget = (!anew).then(|| self.budget(rest));
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        let deadline = self.until.min(since + self.app.settings.replacement);
        let found = loop {
            let out: BTreeSet<NodeId> = self.excluded.union(&self.busy).copied().collect();
            let until =
                if self.busy.is_empty() { deadline } else { deadline.min(Instant::now() + BUSY_PAUSE) };
            let request = Request {
                model: self.order.model.entry.digest,
                prompt_tokens: input_tokens,
                limit: rest,
                ceiling: self.app.settings.ceiling(),
                budget,
                excluded: &out,
            };
            let found = tokio::select! {
                found = self.app.hub.claim_until(&request, until) => found,
                () = self.to.closed() => return Err(Outcome::Left),
                () = self.app.abort.cancelled() => return Err(Outcome::Aborted),
            };
            match found {
                Some(found) => break found,
                None if Instant::now() >= deadline => return Err(before),
                None => self.busy.clear(),
            }
        };
        self.attempt += 1;
        let (node, prices) = (found.claim.node, found.prices);
        let attempt =
            NewAttempt { attempt: self.attempt, node, prices, first_position: served, input_tokens };
        let noted = if anew { self.begin_anew(&attempt).await } else { self.go_on(&attempt).await };
        match noted {
            Ok(()) => {
                self.tried.push(Tried { prices, first_position: served, input_tokens, positions: 0 });
                Ok(found.claim)
            }
            Err(refusal) => {
                self.app.hub.release(found.claim);
                Err(refusal.map_or(before, Outcome::Short))
            }
        }
    }

    /// What the next node's owner may get, so that the platform absorbs no more than its cap.
    fn budget(&self, rest: u32) -> Budget {
        let percent = i128::from(self.app.settings.absorption_percent);
        let cap = i128::from(self.order.hold.0) * percent / 100;
        let cap = NanoUsd(i64::try_from(cap).unwrap_or(i64::MAX));
        let prompt = self.order.prompt.len() as u32;
        let room = |positions| room(self.order.locked, prompt, &self.tried, positions, cap);
        Budget { first_token: room(1), whole: room(rest) }
    }

    /// The consumer has nothing yet, so it pays what this node asks. An error without a refusal is in the log.
    async fn begin_anew(&mut self, attempt: &NewAttempt) -> Result<(), Option<Refusal>> {
        match self.app.ledger.relock(self.order.job, attempt, self.order.asked, now()).await {
            Ok(opened) => {
                self.order.locked = attempt.prices;
                self.order.limit = opened.limit;
                self.order.hold = opened.hold;
                Ok(())
            }
            Err(OpenError::Refused(refusal)) => Err(Some(refusal)),
            Err(OpenError::Failed(error)) => {
                tracing::error!(%error, "a job could not begin anew");
                Err(None)
            }
        }
    }

    /// The price stays; only the attempt is noted. An error is in the log.
    async fn go_on(&self, attempt: &NewAttempt) -> Result<(), Option<Refusal>> {
        self.app.ledger.begin_attempt(self.order.job, attempt).await.map_err(|error| {
            tracing::error!(%error, "an attempt could not be noted");
            None
        })
    }
}
