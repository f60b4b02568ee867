//! The worker process and the task that owns it.
//!
//! ```text
//! spawn -> Hello -> Loading* -> Ready -> (Tokens | End | Beat)* -> Exited
//!               \-> Refused -----------------------------------/
//! ```
//! `Exited` is always the last event, whatever happened.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wakati_protocol::pipe::{
    LOG_VARIABLE, Loading, Ready, Refused, WorkerBeat, WorkerHello, from_worker, to_worker,
};
use wakati_protocol::units::MiB;
use wakati_protocol::{PIPE_VERSION, job};

#[cfg(windows)]
use windows_sys::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW};

use crate::pipe::{self, PipeBroken};

/// Events wait here for the node. When it is full the pipe is not read, and the worker keeps its tokens.
const EVENTS: usize = 256;
/// Words to the worker wait here. A worker that does not take 256 of them is stuck, and its jobs are lost anyway.
const COMMANDS: usize = 256;
/// What the worker inherits from our environment; everything else, secrets first of all, stays here.
const INHERITED: [&str; 11] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "RAYON_NUM_THREADS",
    "RUST_BACKTRACE",
    LOG_VARIABLE,
    "SystemRoot",
    "TMPDIR",
    "TEMP",
];
/// The longest line of the worker's log that is kept; what follows is another line.
const LOG_LINE_BYTES: usize = 4096;
/// A killed process is gone in milliseconds. One that is stuck in a driver goes when the driver lets go of it, and the
/// program's own end does not wait for that.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// What a worker is started for.
#[derive(Debug, Clone)]
pub struct Spec {
    pub program: PathBuf,
    pub weights: PathBuf,
    /// Tokens of prompt and answer together, at most.
    pub context: u32,
    /// Jobs at the same time.
    pub slots: u32,
    pub hardware: Hardware,
}

/// Where the model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hardware {
    /// `reserve` of its memory must stay free for other programs, or the model is refused.
    Gpu {
        reserve: MiB,
    },
    Processor,
}

/// What a worker reports.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerEvent {
    Hello(WorkerHello),
    Loading(Loading),
    Ready(Ready),
    Refused(Refused),
    Tokens(job::Tokens),
    End(job::End),
    Beat(WorkerBeat),
    /// The process is gone and its memory with it. Nothing follows.
    Exited(Exit),
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// We killed it.
    Killed,
    /// It ended by itself with this status, in words.
    Ended(String),
    /// It spoke another version of the pipe than ours, which it said.
    WrongVersion(u32),
    /// It stopped making sense and was killed.
    Garbled(String),
}

/// A worker that did not start.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error("there is no worker program: looked for {looked_for}", looked_for = .0.display())]
    NoProgram(PathBuf),
    #[error("{program} does not start: {cause}", program = .program.display())]
    Failed { program: PathBuf, cause: std::io::Error },
}

/// The worker takes no more words: it is gone or stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the worker does not listen")]
pub struct Stuck;

/// A running worker. Dropping it kills the process.
#[derive(Debug)]
pub struct Worker {
    pid: u32,
    commands: mpsc::Sender<to_worker::Body>,
    kill: CancellationToken,
    owner: JoinHandle<()>,
}

/// Where the worker program is: the setting if there is one, else `WAKATI_WORKER`, else beside this program.
#[must_use]
pub fn find_program(setting: Option<&Path>) -> PathBuf {
    if let Some(program) = setting {
        return program.to_owned();
    }
    if let Some(program) = std::env::var_os("WAKATI_WORKER").filter(|value| !value.is_empty()) {
        return program.into();
    }
    let beside = std::env::current_exe().unwrap_or_default();
    beside.with_file_name(format!("wakati-worker{}", std::env::consts::EXE_SUFFIX))
}

impl Worker {
    /// Starts a worker. Its events come through the receiver; the last one is `Exited`.
    ///
    /// # Errors
    /// When there is no such program or the system does not start it.
    pub fn spawn(spec: &Spec) -> Result<(Self, mpsc::Receiver<WorkerEvent>), NotStarted> {
        if !spec.program.is_file() {
            return Err(NotStarted::NoProgram(spec.program.clone()));
        }
        let failed = |cause| NotStarted::Failed { program: spec.program.clone(), cause };
        let mut child = command(spec).spawn().map_err(failed)?;
        let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take(), child.id());
        let (Some(stdin), Some(stdout), Some(stderr), Some(pid)) = taken else {
            return Err(failed(std::io::Error::other("its pipes are missing")));
        };
        let (event_in, events) = mpsc::channel(EVENTS);
        let (commands, command_out) = mpsc::channel(COMMANDS);
        let kill = CancellationToken::new();
        let owned =
            Owned { child, pid, stdin, stdout, commands: command_out, events: event_in, kill: kill.clone() };
        // The log ends when the process does, and everything that it started.
        let owner = tokio::spawn(async move {
            tokio::join!(owned.run(), log_lines(stderr, pid));
        });
        tracing::info!(pid, "worker started");
        Ok((Self { pid, commands, kill, owner }, events))
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Says one thing to the worker, without waiting.
    ///
    /// # Errors
    /// When the worker is gone or has not read for a long time.
    pub fn send(&self, body: impl Into<to_worker::Body>) -> Result<(), Stuck> {
        self.commands.try_send(body.into()).map_err(|_| Stuck)
    }

    /// Kills the process at once. `Exited` follows among the events.
    pub fn kill(&self) {
        self.kill.cancel();
    }

    /// Kills the process and waits until it is gone and everything of it is joined; three seconds at most.
    /// Events that nobody has read are lost, so keep reading or drop the receiver.
    pub async fn end(mut self) {
        self.kill.cancel();
        let ended = match tokio::time::timeout(END_PATIENCE, &mut self.owner).await {
            Ok(ended) => ended,
            Err(_) => {
                tracing::warn!(pid = self.pid, "the worker does not go and is left behind");
                self.owner.abort();
                (&mut self.owner).await
            }
        };
        if let Err(error) = ended
            && !error.is_cancelled()
        {
            tracing::error!(%error, "the worker's owner failed");
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill.cancel();
    }
}

/// A process group of its own: Ctrl-C in a terminal reaches the node, which hands its jobs back first.
/// If the node itself is killed, the worker sees the end of its stdin and ends.
fn command(spec: &Spec) -> Command {
    let mut command = Command::new(&spec.program);
    command.arg("--model").arg(&spec.weights);
    command.arg("--context").arg(spec.context.to_string());
    command.arg("--slots").arg(spec.slots.to_string());
    match spec.hardware {
        Hardware::Gpu { reserve } => command.args(["--reserve-mebibytes", &reserve.0.to_string()]),
        Hardware::Processor => command.arg("--processor"),
    };
    command.env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(windows)]
    command.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW);
    command
}

/// Everything of one process, owned by one task.
struct Owned {
    child: Child,
    pid: u32,
    stdin: ChildStdin,
    stdout: ChildStdout,
    commands: mpsc::Receiver<to_worker::Body>,
    events: mpsc::Sender<WorkerEvent>,
    kill: CancellationToken,
}

impl Owned {
    async fn run(self) {
        let Self { mut child, pid, stdin, stdout, commands, events, kill } = self;
        let ended = tokio::select! {
            biased;
            () = kill.cancelled() => Exit::Killed,
            exit = read(stdout, &events) => exit,
            never = speak(stdin, commands) => match never {},
        };
        let killed = kill.is_cancelled();
        if let Err(error) = child.start_kill() {
            tracing::debug!(%error, "the worker was gone before it was killed");
        }
        #[cfg(unix)]
        kill_group(pid);
        let exit = match (child.wait().await, ended) {
            (_, Exit::Killed) => Exit::Killed,
            (_, said @ (Exit::WrongVersion(_) | Exit::Garbled(_))) => said,
            (_, Exit::Ended(_)) if killed => Exit::Killed,
            (Ok(status), Exit::Ended(_)) => Exit::Ended(in_words(status)),
            (Err(error), Exit::Ended(_)) => Exit::Ended(error.to_string()),
        };
        tracing::info!(pid, ?exit, "worker gone");
        // Nobody listens any more when the node itself ends.
        let _ = events.send(WorkerEvent::Exited(exit)).await;
    }
}

/// Kills whatever the worker has started. Until the worker has been waited for, its id names its group and no other.
#[cfg(unix)]
fn kill_group(pid: u32) {
    if let Some(group) = rustix::process::Pid::from_raw(pid.cast_signed())
        && let Err(error) = rustix::process::kill_process_group(group, rustix::process::Signal::KILL)
    {
        tracing::debug!(%error, "the worker's group was gone before it was killed");
    }
}

/// Reads frames until the worker ends or stops making sense.
async fn read(stdout: ChildStdout, events: &mpsc::Sender<WorkerEvent>) -> Exit {
    let mut frames = pipe::Reader::new(stdout);
    loop {
        let body = match frames.next().await {
            Ok(Some(message)) => message.body,
            Ok(None) => return Exit::Ended("it closed its stdout".into()),
            Err(PipeBroken::Io(error)) => return Exit::Ended(error.to_string()),
            Err(error @ (PipeBroken::Garbled(_) | PipeBroken::Cut)) => {
                return Exit::Garbled(error.to_string());
            }
        };
        let event = match body {
            Some(from_worker::Body::Hello(hello)) if hello.version != PIPE_VERSION => {
                return Exit::WrongVersion(hello.version);
            }
            Some(from_worker::Body::Hello(hello)) => WorkerEvent::Hello(hello),
            Some(from_worker::Body::Loading(loading)) => WorkerEvent::Loading(loading),
            Some(from_worker::Body::Ready(ready)) => WorkerEvent::Ready(ready),
            Some(from_worker::Body::Refused(refused)) => WorkerEvent::Refused(refused),
            Some(from_worker::Body::Tokens(tokens)) => WorkerEvent::Tokens(tokens),
            Some(from_worker::Body::End(end)) => WorkerEvent::End(end),
            Some(from_worker::Body::Beat(beat)) => WorkerEvent::Beat(beat),
            None => continue,
        };
        if events.send(event).await.is_err() {
            return Exit::Killed;
        }
    }
}

/// Writes what the node says for as long as the worker can be written to. It never decides that the worker has
/// ended: its stdout may still hold what it said last.
async fn speak(mut stdin: ChildStdin, mut commands: mpsc::Receiver<to_worker::Body>) -> Infallible {
    while let Some(body) = commands.recv().await {
        if let Err(error) = pipe::write(&mut stdin, &body.into()).await {
            tracing::debug!(%error, "the worker cannot be written to");
            break;
        }
    }
    std::future::pending().await
}

/// Hands the worker's log on, one line at a time, without trusting it to end its lines.
async fn log_lines(stderr: impl AsyncRead + Unpin, pid: u32) {
    let mut lines = BufReader::with_capacity(LOG_LINE_BYTES, stderr);
    loop {
        let chunk = match lines.fill_buf().await {
            Ok([]) | Err(_) => return,
            Ok(chunk) => chunk,
        };
        let end = chunk.iter().position(|byte| *byte == b'\n').map_or(chunk.len(), |at| at + 1);
        let line = String::from_utf8_lossy(&chunk[..end]);
        tracing::debug!(pid, line = line.trim_end(), "worker log");
        lines.consume(end);
    }
}

fn in_words(status: ExitStatus) -> String {
    status.to_string()
}

#[cfg(test)]
#[cfg(unix)]
#[path = "worker_tests.rs"]
mod tests;
