//! The jobs being served: admission, credit, cancelling, and their ends.
//!
//! ```text
//! Job -> admit -> [task: ids from the engine -> Tokens, as far as credit reaches] -> End, slot free
//!          \-> End (Busy, Refused, or Length when nothing is left to produce)
//! ```
//!
//! A slot is free when the engine has let go of its job, and the `End` is sent after that: whoever sees an `End`
//! may send the next job at once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wakati_protocol::job::{Cancel, Credit, End, Finish, Job, Tokens};
use wakati_protocol::pipe::from_worker;

use crate::engine::{self, Engine};
use crate::processor::{JobProcessor, Plan, Yielded};
use crate::sampler::{Choice, Sampler};

/// Tokens in one frame, at most: a frame stays far under the limit even with log-probabilities.
const TOKENS_IN_FRAME: usize = 256;

type Key = (Vec<u8>, u32);

/// All jobs of this worker.
pub struct Jobs {
    engine: Arc<Engine>,
    out: mpsc::Sender<from_worker::Body>,
    running: HashMap<Key, Steering>,
    tasks: JoinSet<End>,
    tokens: Arc<AtomicU64>,
}

/// How a running job is told things.
struct Steering {
    /// Tokens that may be sent, from the job's start on.
    granted: watch::Sender<u64>,
    cancelled: CancellationToken,
}

impl Jobs {
    pub fn new(engine: Arc<Engine>, out: mpsc::Sender<from_worker::Body>) -> Self {
        let tokens = Arc::new(AtomicU64::new(0));
        Self { engine, out, running: HashMap::new(), tasks: JoinSet::new(), tokens }
    }

    /// Jobs being served.
    pub fn active(&self) -> u32 {
        self.running.len() as u32
    }

    /// Tokens chosen since the start.
    pub fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    /// Takes a job, or gives the `End` that says why not.
    pub fn take(&mut self, job: Job) -> Option<End> {
        let key = (job.job.clone(), job.attempt);
        if self.running.contains_key(&key) {
            tracing::warn!("a job that is being served was sent again");
            return None;
        }
        let position = job.emitted.len() as u32;
        let admitted = match admit(&self.engine, &job) {
            Ok(admitted) => admitted,
            Err((finish, detail)) => return Some(end(&key, finish, position, detail)),
        };
        if self.active() >= self.engine.slots {
            return Some(end(&key, Finish::Busy, position, String::new()));
        }
        let (granted, grants) = watch::channel(u64::from(job.credit));
        let cancelled = CancellationToken::new();
        let serving = Serving {
            engine: self.engine.clone(),
            out: self.out.clone(),
            tokens: self.tokens.clone(),
            key: key.clone(),
            position,
            grants,
            cancelled: cancelled.clone(),
        };
        self.tasks.spawn(serving.serve(admitted, job));
        self.running.insert(key, Steering { granted, cancelled });
        None
    }

    /// Lets a job send more. Unknown jobs have ended already.
    pub fn credit(&self, credit: &Credit) {
        if let Some(steering) = self.running.get(&(credit.job.clone(), credit.attempt)) {
            steering.granted.send_modify(|all| *all = all.saturating_add(u64::from(credit.tokens)));
        }
    }

    /// Stops a job. Unknown jobs have ended already.
    pub fn cancel(&self, cancel: &Cancel) {
        if let Some(steering) = self.running.get(&(cancel.job.clone(), cancel.attempt)) {
            steering.cancelled.cancel();
        }
    }

    /// Waits for the next job that ends and frees its slot; never returns while none is running.
    pub async fn ended(&mut self) -> End {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(end)) => {
                    self.running.remove(&(end.job.clone(), end.attempt));
                    return end;
                }
                // The panic hook ends the process; there is no task left that could be cancelled.
                Some(Err(error)) => tracing::error!(%error, "a job's task failed"),
                None => std::future::pending().await,
            }
        }
    }
}

/// A job whose numbers are in order.
struct Admitted {
    sampler: Sampler,
    /// Tokens that this attempt may produce; at least 1.
    most: u32,
}

/// Checks everything about a job that can be wrong before the engine sees it.
fn admit(engine: &Engine, job: &Job) -> Result<Admitted, (Finish, String)> {
    let refuse = |detail: String| (Finish::Refused, detail);
    if job.prompt.is_empty() {
        return Err(refuse("the prompt is empty".to_owned()));
    }
    if job.prompt.len() >= engine.context as usize {
        let (prompt, context) = (job.prompt.len(), engine.context);
        return Err(refuse(format!("the prompt's {prompt} tokens leave no room in a context of {context}")));
    }
    let ids = job.prompt.iter().chain(&job.emitted).chain(&job.stop_ids);
    if ids.max().is_some_and(|id| *id >= engine.vocabulary) {
        return Err(refuse(format!("a token id is not below {}", engine.vocabulary)));
    }
    let sampler = Sampler::new(job.sampling.clone(), engine.vocabulary, &job.emitted)
        .map_err(|error| refuse(error.to_string()))?;
    let emitted = job.emitted.len() as u32;
    let room = engine.context.saturating_sub(job.prompt.len() as u32).saturating_sub(emitted);
    let most = job.limit.saturating_sub(emitted).min(room);
    if most == 0 {
        return Err((Finish::Length, String::new()));
    }
    Ok(Admitted { sampler, most })
}

fn end(key: &Key, finish: Finish, position: u32, detail: String) -> End {
    End { job: key.0.clone(), attempt: key.1, finish: finish.into(), position, detail, ..End::default() }
}

/// One job's task.
struct Serving {
    engine: Arc<Engine>,
    out: mpsc::Sender<from_worker::Body>,
    tokens: Arc<AtomicU64>,
    key: Key,
    /// Of the next token to send.
    position: u32,
    grants: watch::Receiver<u64>,
    cancelled: CancellationToken,
}

/// What the engine has yielded and what became of it.
#[derive(Default)]
struct Progress {
    /// Chosen and not sent yet. At most the job's own limit.
    ready: VecDeque<Choice>,
    sent: u64,
    outcome: Option<(Finish, String)>,
    /// When the first and the last token came.
    times: Option<(Instant, Instant)>,
}

impl Serving {
    async fn serve(mut self, admitted: Admitted, job: Job) -> End {
        let began = Instant::now();
        let Admitted { sampler, most } = admitted;
        let mut stop_ids = job.stop_ids;
        stop_ids.sort_unstable();
        let plan = Plan { sampler, position: self.position, most, stop_ids, end_id: self.engine.end_id };
        let (processor, mut yielded) = JobProcessor::new(plan, self.cancelled.clone());
        let ids = [job.prompt, job.emitted].concat();
        let responses = match self.engine.begin(ids, most, processor).await {
            Ok(responses) => responses,
            Err(error) => return end(&self.key, Finish::Failed, self.position, error.to_string()),
        };
        let failure = tokio::spawn(engine::failure(responses));
        let progress = self.forward(&mut yielded).await;
        // The channel closes when the engine has dropped the processor: only then is the slot free.
        while yielded.recv().await.is_some() {}
        let failure = failure.await.ok().flatten();
        let gave_up = || (Finish::Failed, failure.unwrap_or_else(|| "the engine gave the job up".to_owned()));
        let (finish, detail) = progress.outcome.unwrap_or_else(gave_up);
        let (first, last) = progress.times.unwrap_or((began, began));
        End {
            prefill_ms: millis(first - began),
            decode_ms: millis(last - first),
            ..end(&self.key, finish, self.position, detail)
        }
    }

    /// Sends tokens as they come and as credit allows, until all are sent or the job is cancelled.
    async fn forward(&mut self, yielded: &mut mpsc::Receiver<Yielded>) -> Progress {
        let mut progress = Progress::default();
        let mut incoming = Vec::new();
        let mut open = true;
        loop {
            let granted = *self.grants.borrow_and_update();
            if self.send(&mut progress, granted).await.is_err() {
                return progress;
            }
            if !open && progress.ready.is_empty() {
                return progress;
            }
            tokio::select! {
                biased;
                () = self.cancelled.cancelled() => {
                    progress.outcome = Some((Finish::Cancelled, String::new()));
                    return progress;
                }
                changed = self.grants.changed() => if changed.is_err() { return progress },
                count = yielded.recv_many(&mut incoming, TOKENS_IN_FRAME), if open => open = count > 0,
            }
            self.sort(&mut incoming, &mut progress);
        }
    }

    fn sort(&self, incoming: &mut Vec<Yielded>, progress: &mut Progress) {
        for one in incoming.drain(..) {
            match one {
                Yielded::Token(choice) => {
                    let now = Instant::now();
                    progress.times = Some((progress.times.map_or(now, |(first, _)| first), now));
                    progress.ready.push_back(choice);
                    self.tokens.fetch_add(1, Ordering::Relaxed);
                }
                Yielded::End(finish, detail) => progress.outcome = Some((finish, detail)),
            }
        }
    }

    /// Sends what is ready and granted. Fails when the pipe is closed.
    async fn send(&mut self, progress: &mut Progress, granted: u64) -> Result<(), ()> {
        loop {
            let allowed = usize::try_from(granted.saturating_sub(progress.sent)).unwrap_or(usize::MAX);
            let count = progress.ready.len().min(allowed).min(TOKENS_IN_FRAME);
            if count == 0 {
                return Ok(());
            }
            let (ids, logprobs): (Vec<_>, Vec<_>) =
                progress.ready.drain(..count).map(|choice| (choice.token, choice.logprobs)).unzip();
            let (job, attempt) = self.key.clone();
            let logprobs = logprobs.into_iter().flatten().collect();
            let tokens = Tokens { job, attempt, first_position: self.position, ids, logprobs };
            self.out.send(from_worker::Body::Tokens(tokens)).await.map_err(|_| ())?;
            self.position += count as u32;
            progress.sent += count as u64;
        }
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
