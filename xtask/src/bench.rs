//! `cargo xtask bench NAME`: figures against their bars.

use std::path::Path;
use std::process::Command;

use crate::builds::{self, Desktop, Variant};
use crate::model;
use crate::packages::{self, Wanted};
use crate::places::Places;
use crate::shell;

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Bench {
    /// How fast a game gets the machine: to "no new job", to worker gone, to memory back.
    Yield,
    /// The worker's tokens per second against a plain mistral.rs loop.
    Engine,
    /// What the broker adds to the first token and to each further one.
    Broker,
    /// Processor time of the node while it has nothing to do.
    Cost,
    /// Resident memory of the desktop application without a window, and of the node.
    Memory,
}

/// Prepares and runs one bench. It prints a table and fails when a bar is missed.
///
/// # Errors
/// When the preparation fails or a bar is missed.
pub fn run(places: &Places, bench: Bench, json: bool) -> anyhow::Result<()> {
    packages::install(match bench {
        Bench::Memory => Wanted::Desktop,
        // For GameMode's daemon and a private display.
        Bench::Yield | Bench::Cost => Wanted::DesktopTests,
        Bench::Engine | Bench::Broker => Wanted::Headless,
    })?;
    let model = model::fetch(places)?;
    let desktop = Desktop::if_possible();
    let mut command = match bench {
        Bench::Yield => {
            let worker = builds::worker(places, Variant::Processor)?;
            builds::programs(places, desktop)?;
            let mut command = Command::new(places.programs().join("bench-yield"));
            command.env("WAKATI_WORKER", worker).env("WAKATI_BIN_DIR", places.programs());
            command
        }
        Bench::Engine => {
            let worker = builds::worker(places, Variant::Processor)?;
            let mut command = Command::new(places.worker_target().join("release/engine-bench"));
            command.arg("--worker").arg(worker).arg("--model").arg(&model);
            command
        }
        Bench::Broker => {
            let released = builds::released(places, desktop)?;
            let mut command = Command::new(released.join("examples/broker-bench"));
            command.arg("--broker").arg(released.join("wakati-broker"));
            command
        }
        Bench::Memory => {
            let worker = builds::worker(places, Variant::Processor)?;
            of_released(places, desktop, "bench-memory", &worker)?
        }
        Bench::Cost => {
            let worker = builds::worker(places, Variant::Processor)?;
            of_released(places, desktop, "bench-cost", &worker)?
        }
    };
    command.env("WAKATI_TEST_MODEL", model);
    if json {
        command.arg("--json");
    }
    shell::run(&mut command)
}

/// A bench of the programs as they are installed.
fn of_released(places: &Places, desktop: Desktop, name: &str, worker: &Path) -> anyhow::Result<Command> {
    let released = builds::released(places, desktop)?;
    let mut command = Command::new(released.join(name));
    command.env("WAKATI_BIN_DIR", released).env("WAKATI_WORKER", worker);
    Ok(command)
}
