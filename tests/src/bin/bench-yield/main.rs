//! How fast a game gets the machine: a pretend game starts in mid-job, thirty times, and as often a program that
//! registers with GameMode. The first is seen by looking at the processes, the second is announced.
//!
//! Every time counts from just before the game's process is made. "No new job" is when the broker lists no node for the
//! model, "worker gone" is when the worker's process has ended, "memory back" is when its resident memory has
//! returned to the system. What the node's own stopwatch says, from its first look at the game, is printed beside.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Parser;
use wakati_protocol::desk::Shape;
use wakati_tests::ask::{Answer, Question};
use wakati_tests::bench::{Figure, percentile, report};
use wakati_tests::desktop::bus::Bus;
use wakati_tests::desktop::game_mode::{GameMode, Registered};
use wakati_tests::desktop::until;
use wakati_tests::game::{self, Game};
use wakati_tests::house::House;
use wakati_tests::node::Choices;

/// Milliseconds that the 99th percentile of a game that is looked for must stay under,
const SEEN_P99: f64 = 1200.0;
/// and those of one that is announced.
const ANNOUNCED_P95: f64 = 300.0;
const ANNOUNCED_P99: f64 = 600.0;
/// From the first sign to "no new job", as the node's own stopwatch says.
const STOPPED_P99: f64 = 50.0;
/// How often each figure is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// When to give up on a figure.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Parser)]
struct Arguments {
    /// For machines.
    #[arg(long)]
    json: bool,
    #[arg(long, default_value_t = 30)]
    rounds: u32,
}

/// The times of one round, in milliseconds.
#[derive(Default)]
struct Times {
    no_new_job: Vec<f64>,
    worker_gone: Vec<f64>,
    memory_back: Vec<f64>,
    own_stopped: Vec<f64>,
    own_memory_back: Vec<f64>,
}

/// How the node learns of the game.
#[derive(Clone, Copy)]
enum Way<'a> {
    Seen,
    Announced(&'a GameMode),
}

/// A game of either kind; it ends when dropped.
enum Playing {
    Seen(Game),
    Announced(Registered),
}

impl Playing {
    fn start(way: Way<'_>, folder: &Path) -> anyhow::Result<Self> {
        Ok(match way {
            Way::Seen => Self::Seen(Game::start(folder)?),
            Way::Announced(daemon) => Self::Announced(daemon.game()?),
        })
    }

    fn started(&self) -> Instant {
        match self {
            Self::Seen(game) => game.started,
            Self::Announced(game) => game.started,
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut house = House::build().await?;
    let bus = Bus::start(house.folder()).await?;
    let surroundings = vec![("DBUS_SESSION_BUS_ADDRESS", bus.address().to_owned())];
    let games = vec![game::NAME.into()];
    house.add_node(&Choices { games, surroundings, quiet_seconds: 0, ..Choices::default() }).await?;
    let daemon = GameMode::start(&bus).await?;
    let (mut seen, mut announced) = (Times::default(), Times::default());
    for round in 1..=arguments.rounds {
        for (way, times) in [(Way::Seen, &mut seen), (Way::Announced(&daemon), &mut announced)] {
            one_round(&house, way, times).await.with_context(|| format!("round {round}"))?;
        }
        if !arguments.json {
            eprint!("\rround {round} of {}", arguments.rounds);
        }
    }
    eprintln!();
    let seen = rows("seen", &seen, None, SEEN_P99);
    let announced = rows("announced", &announced, Some(ANNOUNCED_P95), ANNOUNCED_P99);
    Ok(report("yield", &[seen, announced].concat(), arguments.json))
}

fn rows(way: &str, times: &Times, p95: Option<f64>, p99: f64) -> Vec<Figure> {
    let mut figures = vec![];
    for (name, values, p95, p99) in [
        ("game started to no new job", &times.no_new_job, p95, Some(p99)),
        ("game started to worker gone", &times.worker_gone, p95, Some(p99)),
        ("game started to memory back", &times.memory_back, p95, Some(p99)),
        ("first sign to no new job, the node says", &times.own_stopped, None, Some(STOPPED_P99)),
        ("first sign to memory back, the node says", &times.own_memory_back, None, None),
    ] {
        for (what, share, bar) in [("p50", 0.5, None), ("p95", 0.95, p95), ("p99", 0.99, p99)] {
            let name = format!("{way}: {name}, {what}");
            figures.push(Figure { name, value: percentile(values, share), bar, unit: "ms" });
        }
    }
    figures
}

async fn one_round(house: &House, way: Way<'_>, times: &mut Times) -> anyhow::Result<()> {
    let node = &house.nodes[0];
    node.until_shape(Shape::Serving).await?;
    let worker = node.worker().context("no worker")?;
    let before = node.status().await?.last_hand_over.map(|hand_over| hand_over.at);
    let mut answer = house.ask(&Question::drawn(800)).await?;
    answer.until_tokens(8).await?;
    let job = tokio::spawn(async move { answer.to_the_end().await });
    let game = Playing::start(way, house.folder())?;
    let process = format!("/proc/{worker}");
    let (no_new_job, worker_gone, memory_back) = tokio::try_join!(
        since(game.started(), async || offers_nothing(house).await),
        since(game.started(), async || has_ended(Path::new(&process))),
        since(game.started(), async || holds_no_memory(Path::new(&process))),
    )?;
    times.no_new_job.push(no_new_job);
    times.worker_gone.push(worker_gone);
    times.memory_back.push(memory_back);
    let hand_over = until("the node to record its hand-over", PATIENCE, async || {
        node.status().await.ok()?.last_hand_over.filter(|hand_over| Some(hand_over.at) != before)
    })
    .await?;
    ensure!(hand_over.jobs_handed_back == 1, "the game did not start in mid-job");
    times.own_stopped.push(f64::from(hand_over.stopped_ms));
    times.own_memory_back.push(f64::from(hand_over.memory_back_ms));
    drop(game);
    // Without another node its consumer gets an error frame; the next round does not wait for it.
    job.abort();
    Ok(())
}

/// Milliseconds from `start` until the answer is yes.
async fn since(start: Instant, mut ask: impl AsyncFnMut() -> bool) -> anyhow::Result<f64> {
    loop {
        if ask().await {
            return Ok(start.elapsed().as_secs_f64() * 1000.0);
        }
        ensure!(start.elapsed() < PATIENCE, "it did not happen within {PATIENCE:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether the broker would give a new job to nobody.
async fn offers_nothing(house: &House) -> bool {
    Answer::models(house.broker.url(), &house.key)
        .await
        .is_ok_and(|models| models["data"][0]["wakati"]["nodes"] == 0)
}

/// Whether the process is gone, or only its exit status is left.
fn has_ended(process: &Path) -> bool {
    let Ok(status) = std::fs::read_to_string(process.join("status")) else { return true };
    status.lines().any(|line| line.starts_with("State:") && (line.contains('Z') || line.contains('X')))
}

/// Whether no resident memory is left.
fn holds_no_memory(process: &Path) -> bool {
    let Ok(status) = std::fs::read_to_string(process.join("status")) else { return true };
    !status.lines().any(|line| line.starts_with("VmRSS:"))
}
