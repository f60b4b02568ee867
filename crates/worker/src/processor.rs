//! One job inside the engine: mistral.rs calls it with the logits of each position, it chooses.
//!
//! It owns the job's position and end, and never reads the engine's context: after a prefix-cache hit that is
//! only a suffix. It never returns an error: one would take the tokens of other jobs in the batch along.
//! Instead it forces the model's end token, which makes the engine let go of the job.

use std::sync::{Mutex, PoisonError};

use mistralrs::{CustomLogitsProcessor, Device, Result, Tensor};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wakati_protocol::job::Finish;

use crate::sampler::{Choice, Sampler};

/// What a job yields. The channel closes when the engine has let go of it.
#[derive(Debug)]
pub enum Yielded {
    Token(Choice),
    /// The answer ended by itself, with the detail of a failure.
    End(Finish, String),
}

/// How one job chooses and ends.
pub struct Plan {
    pub sampler: Sampler,
    /// Of the first token to choose.
    pub position: u32,
    /// Tokens to choose, at most; at least 1.
    pub most: u32,
    /// Ascending.
    pub stop_ids: Vec<u32>,
    /// The token at which the engine ends a sequence by itself.
    pub end_id: u32,
}

/// The processor of one job.
pub struct JobProcessor {
    cancelled: CancellationToken,
    state: Mutex<State>,
}

struct State {
    plan: Plan,
    left: u32,
    ended: bool,
    out: mpsc::Sender<Yielded>,
}

impl JobProcessor {
    /// The processor and the channel in which its tokens arrive.
    pub fn new(plan: Plan, cancelled: CancellationToken) -> (Self, mpsc::Receiver<Yielded>) {
        // Room for every token and the end: the engine must never wait for a reader, it would stall all jobs.
        let (out, yielded) = mpsc::channel(plan.most as usize + 1);
        let left = plan.most;
        let state = Mutex::new(State { plan, left, ended: false, out });
        (Self { cancelled, state }, yielded)
    }
}

impl CustomLogitsProcessor for JobProcessor {
    fn apply(&self, logits: &Tensor, _context: &[u32]) -> Result<Tensor> {
        // A panic elsewhere has ended the process before the lock could be poisoned.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let width = logits.elem_count();
        if self.cancelled.is_cancelled() {
            state.ended = true;
        }
        if state.ended {
            return one_hot(vec![0.0; width], state.plan.end_id);
        }
        match logits.to_vec1::<f32>() {
            Ok(mut values) => {
                let token = state.step(&mut values);
                values.fill(0.0);
                one_hot(values, token)
            }
            Err(_) => {
                state.end(Finish::Failed, "the engine's numbers could not be read");
                one_hot(vec![0.0; width], state.plan.end_id)
            }
        }
    }
}

impl State {
    /// Chooses and hands out one token; gives what the engine shall append.
    fn step(&mut self, logits: &mut [f32]) -> u32 {
        let choice = match self.plan.sampler.choose(logits, self.plan.position) {
            Ok(choice) => choice,
            Err(error) => return self.end(Finish::Failed, &error.to_string()),
        };
        let token = choice.token;
        if token == self.plan.end_id || self.plan.stop_ids.binary_search(&token).is_ok() {
            return self.end(Finish::Stop, "");
        }
        self.give(Yielded::Token(choice));
        self.plan.position += 1;
        self.left -= 1;
        if self.left == 0 {
            self.end(Finish::Length, "");
        }
        token
    }

    fn end(&mut self, finish: Finish, detail: &str) -> u32 {
        self.ended = true;
        self.give(Yielded::End(finish, detail.to_owned()));
        self.plan.end_id
    }

    fn give(&self, yielded: Yielded) {
        // There is room by construction; a reader that is gone needs nothing any more.
        let _ = self.out.try_send(yielded);
    }
}

fn one_hot(mut zeros: Vec<f32>, token: u32) -> Result<Tensor> {
    if let Some(value) = zeros.get_mut(token as usize) {
        *value = 1.0;
    }
    let width = zeros.len();
    Tensor::from_vec(zeros, width, &Device::Cpu)
}

#[cfg(test)]
mod tests {
    use wakati_protocol::job::Sampling;

    use super::*;

    const END: u32 = 9;

    fn job(most: u32, stop_ids: Vec<u32>) -> (JobProcessor, mpsc::Receiver<Yielded>, CancellationToken) {
        let cancelled = CancellationToken::new();
        let sampler = Sampler::new(Sampling::default(), 10, &[]).unwrap();
        let plan = Plan { sampler, position: 5, most, stop_ids, end_id: END };
        let (processor, yielded) = JobProcessor::new(plan, cancelled.clone());
        (processor, yielded, cancelled)
    }

    /// Gives the engine's view of one step whose best token is `best`: the token that it will append.
    fn step(processor: &JobProcessor, best: u32) -> u32 {
        let mut logits = vec![0.0_f32; 10];
        logits[best as usize] = 5.0;
        let out = processor.apply(&Tensor::from_vec(logits, 10, &Device::Cpu).unwrap(), &[]).unwrap();
        let values = out.to_vec1::<f32>().unwrap();
        assert_eq!(values.iter().sum::<f32>(), 1.0);
        values.iter().position(|value| *value == 1.0).unwrap() as u32
    }

    fn tokens(yielded: &mut mpsc::Receiver<Yielded>) -> Vec<String> {
        let mut all = Vec::new();
        while let Ok(one) = yielded.try_recv() {
            all.push(match one {
                Yielded::Token(choice) => choice.token.to_string(),
                Yielded::End(finish, _) => format!("{finish:?}"),
            });
        }
        all
    }

    #[test]
    fn a_stop_id_ends_the_job_and_is_not_handed_out() {
        let (processor, mut yielded, _) = job(8, vec![3, 4]);
        assert_eq!(step(&processor, 1), 1);
        assert_eq!(step(&processor, 4), END);
        assert_eq!(tokens(&mut yielded), ["1", "Stop"]);
    }

    #[test]
    fn the_models_own_end_is_a_stop_whatever_the_job_says() {
        let (processor, mut yielded, _) = job(8, vec![]);
        assert_eq!(step(&processor, END), END);
        assert_eq!(tokens(&mut yielded), ["Stop"]);
    }

    #[test]
    fn the_last_allowed_token_is_handed_out_before_the_end() {
        let (processor, mut yielded, _) = job(2, vec![]);
        step(&processor, 1);
        step(&processor, 2);
        assert_eq!(step(&processor, 3), END, "the engine must be told to stop");
        assert_eq!(tokens(&mut yielded), ["1", "2", "Length"]);
    }

    #[test]
    fn a_cancelled_job_chooses_nothing_more() {
        let (processor, mut yielded, cancelled) = job(8, vec![]);
        step(&processor, 1);
        cancelled.cancel();
        assert_eq!(step(&processor, 2), END);
        assert_eq!(tokens(&mut yielded), ["1"]);
        drop(processor);
        assert!(yielded.is_closed());
    }

    #[test]
    fn numbers_that_are_none_end_the_job_without_an_error() {
        let (processor, mut yielded, _) = job(8, vec![]);
        let logits = Tensor::from_vec(vec![f32::NAN; 10], 10, &Device::Cpu).unwrap();
        assert!(processor.apply(&logits, &[]).is_ok());
        assert_eq!(tokens(&mut yielded), ["Failed"]);
    }
}
