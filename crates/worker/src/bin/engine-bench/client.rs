//! The node's side of the pipe, as small as it can be: for the bench and for the tests of the built worker.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use bytes::BytesMut;
use wakati_protocol::frame;
use wakati_protocol::job::{End, Job, Logprobs, Sampling};
use wakati_protocol::pipe::{FromWorker, Ready, Refused, ToWorker, WorkerHello, from_worker, to_worker};

/// Longer than anything here takes; what waits longer has hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running worker. Dropped, it is killed.
pub struct Worker {
    pub child: Child,
    /// `None` is a closed pipe, at which the worker ends.
    pub stdin: Option<ChildStdin>,
    pub frames: Receiver<(Instant, from_worker::Body)>,
}

/// What became of one job.
#[derive(Debug, Default)]
pub struct Answer {
    pub ids: Vec<u32>,
    pub logprobs: Vec<Logprobs>,
    /// The position of the first token.
    pub first_position: Option<u32>,
    /// When each frame of tokens came.
    pub came: Vec<Instant>,
    pub end: End,
}

impl Worker {
    /// Starts a worker. Nothing is waited for.
    pub fn start(worker: &Path, model: &Path, context: u32, slots: u32) -> anyhow::Result<Self> {
        Self::start_beside(worker, model, context, slots, 0)
    }

    /// The same, with so much memory to be left free for others.
    pub fn start_beside(
        worker: &Path,
        model: &Path,
        context: u32,
        slots: u32,
        reserve_mebibytes: u64,
    ) -> anyhow::Result<Self> {
        let mut child = Command::new(worker)
            .args([
                "--processor",
                "--context",
                &context.to_string(),
                "--slots",
                &slots.to_string(),
                "--reserve-mebibytes",
                &reserve_mebibytes.to_string(),
                "--model",
            ])
            .arg(model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", worker.display()))?;
        let mut stdout = child.stdout.take().context("stdout is a pipe")?;
        let (send, frames) = channel();
        std::thread::spawn(move || {
            let mut buffer = BytesMut::new();
            let mut chunk = [0; 64 << 10];
            while let Ok(read @ 1..) = stdout.read(&mut chunk) {
                let now = Instant::now();
                buffer.extend_from_slice(&chunk[..read]);
                while let Ok(Some(message)) = frame::take::<FromWorker>(&mut buffer) {
                    let Some(body) = message.body else { continue };
                    if send.send((now, body)).is_err() {
                        return;
                    }
                }
            }
        });
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, frames })
    }

    /// Waits until the model is loaded: its `Hello` and `Ready`, or why it was refused.
    pub fn ready(&mut self) -> anyhow::Result<Result<(WorkerHello, Ready), Refused>> {
        let mut hello = None;
        loop {
            match self.next()?.1 {
                from_worker::Body::Hello(said) => hello = Some(said),
                from_worker::Body::Loading(_) => {}
                from_worker::Body::Ready(ready) => {
                    return Ok(Ok((hello.context("Ready came before Hello")?, ready)));
                }
                from_worker::Body::Refused(refused) => return Ok(Err(refused)),
                other @ (from_worker::Body::Tokens(_)
                | from_worker::Body::End(_)
                | from_worker::Body::Beat(_)) => bail!("{other:?} came before Ready"),
            }
        }
    }

    pub fn send(&mut self, body: to_worker::Body) -> anyhow::Result<()> {
        let mut frame = BytesMut::new();
        frame::put(&ToWorker::from(body), &mut frame);
        let stdin = self.stdin.as_mut().context("stdin is closed")?;
        stdin.write_all(&frame)?;
        Ok(stdin.flush()?)
    }

    /// The next frame and when it came.
    pub fn next(&mut self) -> anyhow::Result<(Instant, from_worker::Body)> {
        self.frames.recv_timeout(PATIENCE).map_err(|_| anyhow!("the worker says nothing more"))
    }

    /// Sends jobs at once and waits for all their ends; answers in the jobs' order.
    pub fn answer(&mut self, jobs: Vec<Job>) -> anyhow::Result<Vec<Answer>> {
        let keys: Vec<_> = jobs.iter().map(|job| job.job.clone()).collect();
        let mut answers: Vec<_> = keys.iter().map(|_| Answer::default()).collect();
        for job in jobs {
            self.send(to_worker::Body::Job(job))?;
        }
        let mut open = keys.len();
        let find = |job: &[u8]| keys.iter().position(|key| key == job).context("a job that was not sent");
        while open > 0 {
            match self.next()? {
                (now, from_worker::Body::Tokens(tokens)) => {
                    let answer = &mut answers[find(&tokens.job)?];
                    let first = *answer.first_position.get_or_insert(tokens.first_position);
                    if first + answer.ids.len() as u32 != tokens.first_position {
                        bail!("a position is missing or came twice");
                    }
                    answer.ids.extend(tokens.ids);
                    answer.logprobs.extend(tokens.logprobs);
                    answer.came.push(now);
                }
                (_, from_worker::Body::End(end)) => {
                    open -= 1;
                    let index = find(&end.job)?;
                    answers[index].end = end;
                }
                _ => {}
            }
        }
        Ok(answers)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A job with room for everything it may produce. `number` makes its id.
pub fn job(number: u8, prompt: Vec<u32>, limit: u32, sampling: Sampling) -> Job {
    Job {
        job: vec![number; 16],
        attempt: 1,
        model: vec![0; 32],
        prompt,
        emitted: Vec::new(),
        limit,
        stop_ids: Vec::new(),
        sampling,
        credit: u32::MAX,
    }
}
