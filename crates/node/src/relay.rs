//! The jobs that this node serves at the moment: admission, positions, and giving them back.
//!
//! It holds no prompt and no answer, only how far each attempt has come.

use std::collections::{HashMap, HashSet};

use wakati_protocol::ids::{Attempt, BrokerId, JobId, ModelDigest};
use wakati_protocol::job::{Cancel, End, Finish, Job, Tokens};
use wakati_protocol::link::HandedBack;
use wakati_protocol::money::Prices;
use wakati_protocol::units::UnixMillis;
use wakati_store::{AttemptRow, Finished};

use crate::receipts::Known;

/// One attempt's name.
pub type Name = (JobId, Attempt);

/// What stands on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub broker: BrokerId,
    pub model: ModelDigest,
    pub prices: Prices,
    pub context: u32,
    pub vocabulary: u32,
    pub slots: u32,
}

/// Why a job is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// It says which attempt of which job it is in no form that could be answered, or it is here already.
    Unanswerable,
    /// No free slot, or another model is served by now. Nobody's fault.
    Busy,
    /// The job itself is at fault, in these words.
    Refused(&'static str),
}

/// An attempt that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    pub name: Name,
    /// Positions that this node sent.
    pub sent: u32,
}

#[derive(Debug)]
struct Running {
    row: AttemptRow,
    sent: u32,
}

/// Every attempt that runs.
#[derive(Debug, Default)]
pub struct Relay {
    running: HashMap<Name, Running>,
    /// Attempts that are over for the broker while the worker has not yet let go of them. They still hold a slot.
    draining: HashSet<Name>,
}

impl Relay {
    /// How many jobs run.
    #[must_use]
    pub fn active(&self) -> u32 {
        u32::try_from(self.running.len()).unwrap_or(u32::MAX)
    }

    /// Takes a job if it fits what stands on offer; the row is what the log shall know of it.
    ///
    /// # Errors
    /// When it is not taken.
    pub fn admit(&mut self, job: &Job, standing: &Standing, now: UnixMillis) -> Result<AttemptRow, NotTaken> {
        let id = JobId::from_slice(&job.job).map_err(|_| NotTaken::Unanswerable)?;
        let name = (id, job.attempt);
        if self.running.contains_key(&name) || self.draining.contains(&name) {
            return Err(NotTaken::Unanswerable);
        }
        if job.model != standing.model.0
            || self.running.len() + self.draining.len() >= standing.slots as usize
        {
            return Err(NotTaken::Busy);
        }
        let input = job.prompt.len() + job.emitted.len();
        if job.prompt.is_empty() || input >= standing.context as usize {
            return Err(NotTaken::Refused("the prompt does not fit the context"));
        }
        if job.emitted.len() >= job.limit as usize {
            return Err(NotTaken::Refused("nothing is left to generate"));
        }
        if job.prompt.iter().chain(&job.emitted).any(|token| *token >= standing.vocabulary) {
            return Err(NotTaken::Refused("a token is not in the vocabulary"));
        }
        // Both are below the context, which is a u32.
        let (input_tokens, first_position) = (input as u32, job.emitted.len() as u32);
        let row = AttemptRow {
            job: id,
            attempt: job.attempt,
            broker: standing.broker,
            model: standing.model,
            input_tokens,
            first_position,
            sent: 0,
            prices: standing.prices,
            began: now,
            finished: Finished::Open,
        };
        self.running.insert(name, Running { row: row.clone(), sent: 0 });
        Ok(row)
    }

    /// Counts tokens from the worker; whether the broker should get them.
    pub fn tokens(&mut self, tokens: &Tokens) -> bool {
        let Some(running) = named(&tokens.job, tokens.attempt).and_then(|name| self.running.get_mut(&name))
        else {
            return false;
        };
        if tokens.first_position != running.row.first_position + running.sent {
            tracing::error!(job = %running.row.job, "the worker sent a position out of turn");
            return false;
        }
        running.sent += u32::try_from(tokens.ids.len()).unwrap_or(u32::MAX);
        true
    }

    /// The worker has ended an attempt; what it was, if the broker still waits for it.
    pub fn ended(&mut self, end: &End) -> Option<Over> {
        let name = named(&end.job, end.attempt)?;
        self.draining.remove(&name);
        self.running.remove(&name).map(|running| Over { name, sent: running.sent })
    }

    /// Whether this attempt runs here.
    #[must_use]
    pub fn runs(&self, job: &[u8], attempt: Attempt) -> bool {
        named(job, attempt).is_some_and(|name| self.running.contains_key(&name))
    }

    /// What is known of an attempt that runs, to check a receipt that comes before its end.
    #[must_use]
    pub fn known(&self, job: &[u8], attempt: Attempt) -> Option<Known> {
        let running = self.running.get(&named(job, attempt)?)?;
        Some(Known {
            model: running.row.model.to_vec(),
            first_position: running.row.first_position,
            sent: Some(running.sent),
            input_tokens: running.row.input_tokens,
            prices: running.row.prices,
        })
    }

    /// Ends every attempt. The worker keeps their slots until it lets go of them, or is gone.
    pub fn end_all(&mut self) -> Vec<(Over, HandedBack)> {
        let over = |(name, running): (Name, Running)| {
            let position = running.row.first_position + running.sent;
            let back = HandedBack { job: name.0.to_vec(), attempt: name.1, position };
            (Over { name, sent: running.sent }, back)
        };
        let ended: Vec<_> = self.running.drain().map(over).collect();
        self.draining.extend(ended.iter().map(|(over, _)| over.name));
        ended
    }

    /// The worker is gone and holds nothing.
    pub fn worker_gone(&mut self) {
        self.draining.clear();
    }
}

fn named(job: &[u8], attempt: Attempt) -> Option<Name> {
    JobId::from_slice(job).ok().map(|job| (job, attempt))
}

/// The end of a job that was not taken.
#[must_use]
pub fn not_taken(job: &Job, finish: Finish, detail: &str) -> End {
    End {
        job: job.job.clone(),
        attempt: job.attempt,
        finish: finish.into(),
        position: u32::try_from(job.emitted.len()).unwrap_or(u32::MAX),
        detail: detail.into(),
        ..End::default()
    }
}

/// The word to the worker that stops this attempt.
#[must_use]
pub fn cancel((job, attempt): Name) -> Cancel {
    Cancel { job: job.to_vec(), attempt }
}

/// How the log names an end.
#[must_use]
pub fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Unknown => "unknown",
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Cancelled => "cancelled",
        Finish::Failed => "failed",
        Finish::Refused => "refused",
        Finish::Busy => "busy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakati_protocol::money::Price;

    fn standing() -> Standing {
        Standing {
            broker: BrokerId([8; 32]),
            model: ModelDigest([9; 32]),
            prices: Prices { input: Price(1), output: Price(2) },
            context: 16,
            vocabulary: 100,
            slots: 2,
        }
    }

    fn job(name: u8) -> Job {
        Job {
            job: vec![name; 16],
            attempt: 2,
            model: vec![9; 32],
            prompt: vec![1, 2],
            emitted: vec![7],
            limit: 9,
            ..Job::default()
        }
    }

    fn tokens(name: u8, first_position: u32, count: usize) -> Tokens {
        Tokens { job: vec![name; 16], attempt: 2, first_position, ids: vec![5; count], logprobs: vec![] }
    }

    #[test]
    fn only_jobs_that_fit_the_offer_are_taken() {
        let refused = |change: fn(&mut Job)| {
            let mut job = job(1);
            change(&mut job);
            Relay::default().admit(&job, &standing(), UnixMillis(0)).unwrap_err()
        };
        assert_eq!(refused(|job| job.job = vec![1; 3]), NotTaken::Unanswerable);
        assert_eq!(refused(|job| job.model = vec![1; 32]), NotTaken::Busy);
        assert!(matches!(refused(|job| job.prompt = vec![1; 15]), NotTaken::Refused(_)));
        assert!(matches!(refused(|job| job.prompt = vec![]), NotTaken::Refused(_)));
        assert!(matches!(refused(|job| job.prompt = vec![100]), NotTaken::Refused(_)));
        assert!(matches!(refused(|job| job.limit = 1), NotTaken::Refused(_)));
    }

    #[test]
    fn a_slot_is_held_until_the_worker_lets_go() {
        let mut relay = Relay::default();
        let admit = |relay: &mut Relay, name| relay.admit(&job(name), &standing(), UnixMillis(0)).map(|_| ());
        admit(&mut relay, 1).unwrap();
        admit(&mut relay, 2).unwrap();
        assert_eq!(admit(&mut relay, 1), Err(NotTaken::Unanswerable));
        assert_eq!(admit(&mut relay, 3), Err(NotTaken::Busy));
        relay.end_all();
        assert_eq!((relay.active(), admit(&mut relay, 3)), (0, Err(NotTaken::Busy)));
        let end = End { job: vec![1; 16], attempt: 2, ..End::default() };
        assert_eq!(relay.ended(&end), None);
        admit(&mut relay, 3).unwrap();
        relay.worker_gone();
        admit(&mut relay, 4).unwrap();
    }

    #[test]
    fn handed_back_positions_are_those_after_the_last_token_sent() {
        let mut relay = Relay::default();
        relay.admit(&job(1), &standing(), UnixMillis(0)).unwrap();
        assert!(relay.tokens(&tokens(1, 1, 3)));
        assert!(!relay.tokens(&tokens(1, 1, 1)), "a repeated position");
        assert!(!relay.tokens(&tokens(2, 0, 1)), "a foreign job");
        let [(over, back)] = &relay.end_all()[..] else { panic!("one attempt ran") };
        assert_eq!((over.sent, back.position), (3, 4));
        assert!(!relay.tokens(&tokens(1, 4, 1)), "after the end");
    }
}
