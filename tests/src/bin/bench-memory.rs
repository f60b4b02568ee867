//! Resident memory of the programs that stay: proportional set size (PSS) once they have settled, release builds.
//!
//! The node and the desktop application are joined to a broker and rest, as they do for most of an owner's day; no
//! window is open and no worker runs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser;
use tokio::process::Command;
use wakati_protocol::desk::Shape;
use wakati_tests::bench::{Figure, report};
use wakati_tests::desktop::Desktop;
use wakati_tests::house::House;
use wakati_tests::node::{self, Choices};
use wakati_tests::program::{self, Program};

/// MiB.
const BAR: f64 = 80.0;
/// A program has settled when its memory has moved by less than 1% over this long.
const SETTLED: Duration = Duration::from_secs(20);
/// Every program is given at least this long.
const LEAST: Duration = Duration::from_secs(60);
/// When to give up.
const MOST: Duration = Duration::from_secs(300);

#[derive(Parser)]
struct Arguments {
    /// For machines.
    #[arg(long)]
    json: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut house = House::build().await?;
    house.add_node(&Choices::default()).await?;
    let node = &house.nodes[0];
    node.owner(&["pause"]).await?;
    node.until_shape(Shape::Resting).await?;
    let node_pss = settled(node.program.id()).await?;

    let folder = tempfile::tempdir()?;
    let desktop = Desktop::start(folder.path()).await?;
    let home = folder.path().join("home");
    node::make_home(&home)?;
    let mut command: Command = desktop.command(&program::path("wakati")?, &home);
    command.arg("--hidden").arg("--home").arg(&home);
    let mut wakati = Program::start(&mut command, &folder.path().join("log"))?;
    let wakati_pss = settled(wakati.id()).await.with_context(|| wakati.log_tail())?;
    wakati.stop(Duration::from_secs(10)).await?;

    let figure = |name: &str, value| Figure { name: name.into(), value, bar: Some(BAR), unit: "MiB" };
    let figures = [figure("wakati-node, resting", node_pss), figure("wakati, no window open", wakati_pss)];
    Ok(report("memory", &figures, arguments.json))
}

/// A process's PSS in MiB once it has settled.
async fn settled(id: u32) -> anyhow::Result<f64> {
    let began = tokio::time::Instant::now();
    let mut since = began;
    let mut reference = pss(id)?;
    while since.elapsed() < SETTLED || began.elapsed() < LEAST {
        if began.elapsed() > MOST {
            bail!("its memory did not settle within {MOST:?}");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = pss(id)?;
        if (now - reference).abs() > reference * 0.01 {
            (reference, since) = (now, tokio::time::Instant::now());
        }
    }
    pss(id)
}

/// A process's PSS in MiB, from `/proc/PID/smaps_rollup` (proc_pid_smaps(5)).
fn pss(id: u32) -> anyhow::Result<f64> {
    let file = format!("/proc/{id}/smaps_rollup");
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).context("no PSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}
