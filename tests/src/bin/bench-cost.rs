//! What the node costs while it has nothing to do: processor time of its own process, the worker's not counted, while
//! it serves without a job and while a game runs. It looks at a private bus and display, so that every sense works.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;
use wakati_protocol::desk::Shape;
use wakati_tests::bench::{Figure, report};
use wakati_tests::desktop::bus::Bus;
use wakati_tests::desktop::screen::Screen;
use wakati_tests::game::{self, Game};
use wakati_tests::house::House;
use wakati_tests::node::Choices;

/// Percent of one core while it serves,
const SERVING: f64 = 0.5;
/// and while a game runs.
const GAME: f64 = 0.1;
/// What was begun before a measurement has ended by then.
const SETTLE: Duration = Duration::from_secs(5);

#[derive(Parser)]
struct Arguments {
    /// For machines.
    #[arg(long)]
    json: bool,
    /// How long each state is measured.
    #[arg(long, default_value_t = 300)]
    seconds: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let length = Duration::from_secs(arguments.seconds);
    let mut house = House::build().await?;
    let bus = Bus::start(house.folder()).await?;
    let screen = Screen::start(house.folder()).await?;
    let surroundings = vec![
        ("DBUS_SESSION_BUS_ADDRESS", bus.address().to_owned()),
        ("DISPLAY", screen.display().to_owned()),
    ];
    let games = vec![game::NAME.into()];
    house.add_node(&Choices { games, surroundings, ..Choices::default() }).await?;
    let node = &house.nodes[0];
    let serving = share(node.program.id(), length).await?;
    let _game = Game::start(house.folder())?;
    node.until_shape(Shape::Resting).await?;
    let playing = share(node.program.id(), length).await?;
    let figure =
        |name: &str, value, bar| Figure { name: name.into(), value, bar: Some(bar), unit: "% of a core" };
    let figures = [figure("serving, no job", serving, SERVING), figure("a game runs", playing, GAME)];
    Ok(report("cost", &figures, arguments.json))
}

/// Percent of one core that a process uses over this time.
async fn share(id: u32, length: Duration) -> anyhow::Result<f64> {
    tokio::time::sleep(SETTLE).await;
    let (began, before) = (Instant::now(), computed(id)?);
    tokio::time::sleep(length).await;
    let used = computed(id)?.saturating_sub(before);
    Ok(100.0 * used.as_secs_f64() / began.elapsed().as_secs_f64())
}

/// The processor time of all its threads: the first number of each `schedstat`, in nanoseconds
/// (Documentation/scheduler/sched-stats.rst).
fn computed(id: u32) -> anyhow::Result<Duration> {
    let tasks = format!("/proc/{id}/task");
    let mut nanoseconds = 0;
    for task in std::fs::read_dir(&tasks).with_context(|| format!("cannot read {tasks}"))? {
        nanoseconds += of_thread(&task?.path()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// `None` when the thread has just ended.
fn of_thread(task: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}
