//! `wakati-worker`: one model behind a pipe. Token ids in, token ids out.
//!
//! It is the only package that links mistral.rs. It takes jobs as frames on stdin, answers on stdout, logs to
//! stderr, and ends when stdin ends. It opens no network and no file but the model, knows nothing of text,
//! money, nodes or brokers, and may be killed at any instant: it holds nothing that would be missed.

mod engine;
mod jobs;
mod memory;
mod pipe;
mod processor;
mod sampler;
mod sandbox;
mod warmup;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing_subscriber::EnvFilter;
use wakati_protocol::PIPE_VERSION;
use wakati_protocol::pipe::{LOG_VARIABLE, Loading, Ready, WorkerBeat, WorkerHello, from_worker, to_worker};

use engine::{Engine, Wanted};
use jobs::Jobs;

/// How often the node hears that the worker lives.
const BEAT: Duration = Duration::from_secs(1);
/// How often the progress of loading is told.
const PROGRESS: Duration = Duration::from_millis(200);

const VARIANT: &str = if cfg!(feature = "cuda") {
    "cuda"
} else if cfg!(feature = "metal") {
    "metal"
} else {
    "cpu"
};

/// Serves one GGUF model over stdin and stdout, in Wakati's worker frames.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The GGUF file.
    #[arg(long)]
    model: PathBuf,
    /// Tokens of prompt and answer together, at most; the model's own limit when larger.
    #[arg(long, default_value_t = 4096)]
    context: u32,
    /// Jobs at the same time, at most.
    #[arg(long, default_value_t = 1)]
    slots: u32,
    /// Memory that must stay free for others besides what the model needs.
    #[arg(long, default_value_t = 0)]
    reserve_mebibytes: u64,
    /// Use the processor even where there is a GPU.
    #[arg(long)]
    processor: bool,
}

fn main() -> ExitCode {
    // Nothing before this check may need more than the x86-64 baseline; what follows is built for x86-64-v3.
    if !has_avx2() {
        eprintln!("wakati-worker: this processor lacks AVX2, for which the worker is built");
        let told = std::io::stdout().write_all(NO_AVX2);
        return if told.is_ok() { ExitCode::from(2) } else { ExitCode::FAILURE };
    }
    run()
}

/// The frames `Hello { version: 1, variant: "cpu" }` and `Refused { NoAvx2 }`, ready-made.
const NO_AVX2: &[u8] = b"\x09\x0a\x07\x08\x01\x12\x03cpu\x04\x22\x02\x08\x05";

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    // `is_x86_feature_detected!` is a constant in a program built for AVX2, so the processor is asked itself.
    let cpuid = raw_cpuid::CpuId::new();
    let saves = cpuid.get_feature_info().is_some_and(|info| info.has_oxsave() && info.has_fma());
    saves && cpuid.get_extended_feature_info().is_some_and(|info| info.has_avx2() && info.has_bmi2())
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    true
}

#[inline(never)]
fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new("warn"));
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours).init();
    end_on_panic();
    let enforced = sandbox::enter(&arguments.model);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "no runtime");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(serve(arguments, enforced));
    // The engine's threads and a read of stdin may be busy for long, and nothing of theirs is worth waiting for.
    std::process::exit(code)
}

/// A panic anywhere, mistral.rs included, ends the process: the node starts another and loses nothing.
fn end_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::exit(101);
    }));
}

/// Gives the exit code: 0 when stdin ended, 1 when the pipe broke, 2 when the model was refused.
async fn serve(arguments: Arguments, enforced: Vec<String>) -> i32 {
    let (out, writer) = pipe::writer();
    let (commands, reader) = pipe::reader();
    let hello = WorkerHello { version: PIPE_VERSION, variant: VARIANT.to_owned(), enforced };
    if out.send(from_worker::Body::Hello(hello)).await.is_err() {
        return 1;
    }
    let began = Instant::now();
    let mut reader = reader;
    let engine = match while_open(&mut reader, load(&arguments, &out)).await {
        Ok(Ok(engine)) => Arc::new(engine),
        Ok(Err(refused)) => {
            tracing::error!(detail = refused.detail, "the model was refused");
            let told = out.send(from_worker::Body::Refused(refused)).await;
            drop(out);
            return if told.is_ok() && writer.await.is_ok() { 2 } else { 1 };
        }
        Err(code) => return code,
    };
    let speed = match while_open(&mut reader, warmup::speed(&engine)).await {
        Ok(Ok(speed)) => speed,
        Ok(Err(error)) => {
            tracing::error!(%error, "the first tokens failed");
            return 1;
        }
        Err(code) => return code,
    };
    let ready = Ready {
        context: engine.context,
        vocabulary: engine.vocabulary,
        slots: engine.slots,
        load_ms: u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX),
        resident_bytes: memory::resident_bytes(),
        speed_centi_tps: (speed * 100.0) as u32,
    };
    tokio::select! {
        ended = &mut reader => code(ended),
        // The commands end together with the reader, which knows why.
        done = work(engine, ready, commands, out) => if done.is_ok() { code(reader.await) } else { 1 },
        _ = writer => 1,
    }
}

/// Serves until the pipe is closed.
async fn work(
    engine: Arc<Engine>,
    ready: Ready,
    mut commands: mpsc::Receiver<to_worker::Body>,
    out: mpsc::Sender<from_worker::Body>,
) -> Result<(), mpsc::error::SendError<from_worker::Body>> {
    out.send(from_worker::Body::Ready(ready)).await?;
    let mut jobs = Jobs::new(engine, out.clone());
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            command = commands.recv() => match command {
                Some(to_worker::Body::Job(job)) => {
                    if let Some(end) = jobs.take(job) {
                        out.send(from_worker::Body::End(end)).await?;
                    }
                }
                Some(to_worker::Body::Credit(credit)) => jobs.credit(&credit),
                Some(to_worker::Body::Cancel(cancel)) => jobs.cancel(&cancel),
                None => return Ok(()),
            },
            end = jobs.ended() => out.send(from_worker::Body::End(end)).await?,
            _ = beat.tick() => out.send(from_worker::Body::Beat(WorkerBeat {
                active_jobs: jobs.active(),
                resident_bytes: memory::resident_bytes(),
                tokens: jobs.tokens(),
            })).await?,
        }
    }
}

/// Does this for as long as the pipe is open; the exit code once it is closed.
/// A node that was killed leaves nobody to end a worker that is busy.
async fn while_open<T>(
    reader: &mut JoinHandle<anyhow::Result<()>>,
    work: impl Future<Output = T>,
) -> Result<T, i32> {
    tokio::select! {
        ended = reader => Err(code(ended)),
        done = work => Ok(done),
    }
}

fn code(reader: Result<anyhow::Result<()>, tokio::task::JoinError>) -> i32 {
    match reader {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            tracing::error!(%error, "stdin is not a pipe of frames");
            1
        }
        Err(_) => 1,
    }
}

/// Loads in a task of its own and tells how much of the file has been read meanwhile.
async fn load(
    arguments: &Arguments,
    out: &mpsc::Sender<from_worker::Body>,
) -> Result<Engine, wakati_protocol::pipe::Refused> {
    let of_bytes = std::fs::metadata(&arguments.model).map_or(0, |file| file.len());
    let before = memory::bytes_read().unwrap_or(0);
    let wanted = Wanted {
        model: arguments.model.clone(),
        context: arguments.context,
        slots: arguments.slots,
        reserve_bytes: arguments.reserve_mebibytes.saturating_mul(1 << 20),
        on_processor: arguments.processor,
    };
    let mut loading: JoinHandle<_> = tokio::spawn(engine::load(wanted));
    let mut tick = tokio::time::interval(PROGRESS);
    loop {
        tokio::select! {
            loaded = &mut loading => return match loaded {
                Ok(loaded) => loaded,
                // The panic hook has ended the process by now.
                Err(_) => std::process::exit(101),
            },
            _ = tick.tick() => {
                let bytes = memory::bytes_read().map_or(0, |all| all.saturating_sub(before).min(of_bytes));
                // A pipe that is closed shows in the reader as well.
                let _ = out.try_send(from_worker::Body::Loading(Loading { bytes, of_bytes }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use wakati_protocol::frame;
    use wakati_protocol::pipe::{FromWorker, Refused, RefusedReason};

    use super::*;

    #[tokio::test]
    async fn a_pipe_that_closes_ends_whatever_the_worker_is_doing() {
        let busy = std::future::pending::<()>;
        assert_eq!(while_open(&mut tokio::spawn(async { Ok(()) }), busy()).await, Err(0));
        let broken = async { anyhow::bail!("no frame") };
        assert_eq!(while_open(&mut tokio::spawn(broken), busy()).await, Err(1));
        let mut open = tokio::spawn(std::future::pending());
        assert_eq!(while_open(&mut open, async { 7 }).await, Ok(7));
        open.abort();
    }

    #[test]
    fn the_ready_made_refusal_is_what_the_protocol_would_write() {
        let mut expected = BytesMut::new();
        let hello = WorkerHello { version: 1, variant: "cpu".to_owned(), enforced: Vec::new() };
        let refused = Refused { reason: RefusedReason::NoAvx2.into(), ..Refused::default() };
        frame::put(&FromWorker::from(from_worker::Body::Hello(hello)), &mut expected);
        frame::put(&FromWorker::from(from_worker::Body::Refused(refused)), &mut expected);
        assert_eq!(NO_AVX2, &expected[..]);
    }
}
