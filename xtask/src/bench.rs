//! `cargo xtask bench NAME`: figures against their bars.

use std::process::Command;

use crate::builds::{self, Desktop, Variant};
use crate::model;
use crate::packages::{self, Wanted};
use crate::places::Places;
use crate::shell::{self, say};

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Bench {
    /// How fast a game gets the machine: to "no new job", to worker gone, to memory back.
    Yield,
    /// The worker's tokens per second against a plain mistral.rs loop.
    Engine,
    /// What the broker adds to the first token and to each further one.
    Broker,
    /// Resident memory of the desktop application without a window, and of the node.
    Memory,
}

/// Prepares and runs one bench. It prints a table and fails when a bar is missed.
///
/// # Errors
/// When the preparation fails or a bar is missed.
pub fn run(places: &Places, bench: Bench, json: bool) -> anyhow::Result<()> {
    packages::install(if bench == Bench::Memory { Wanted::Desktop } else { Wanted::Headless })?;
    let model = model::fetch(places)?;
    let mut command = match bench {
        Bench::Yield => {
            let worker = builds::worker(places, Variant::Processor)?;
            builds::programs(places, Desktop::Without)?;
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
            say("building the broker's bench");
            let mut build = builds::cargo_command(places, "build");
            build.args(["--release", "--package", "wakati-broker", "--bin", "wakati-broker"]);
            shell::run(build.args(["--example", "broker-bench"]))?;
            let mut command = Command::new(places.target.join("release/examples/broker-bench"));
            command.arg("--broker").arg(places.target.join("release/wakati-broker"));
            command
        }
        Bench::Memory => {
            builds::page(places)?;
            say("building the node and the desktop application as they are installed");
            let mut build = builds::cargo_command(places, "build");
            shell::run(build.args([
                "--release",
                "--bins",
                "--package",
                "wakati-node",
                "--package",
                "wakati",
            ]))?;
            builds::programs(places, Desktop::Without)?;
            let mut command = Command::new(places.programs().join("bench-memory"));
            command.env("WAKATI_BIN_DIR", places.target.join("release"));
            command
        }
    };
    command.env("WAKATI_TEST_MODEL", model);
    if json {
        command.arg("--json");
    }
    shell::run(&mut command)
}
