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
    let mut command = match bench {
        Bench::Yield => {
            let worker = builds::worker(places, Variant::Processor)?;
            builds::programs(places, Desktop::Without)?;
            let mut command = Command::new(places.programs().join("bench-yield"));
            command.env("WAKATI_WORKER", worker).env("WAKATI_BIN_DIR", places.programs());
            command
        }
        Bench::Engine => {
            say("building the worker's bench");
            shell::run(builds::worker_cargo(places, "build").args(["--package", "wakati-engine-bench"]))?;
            Command::new(places.worker_target().join("release/engine-bench"))
        }
        Bench::Broker => {
            say("building the broker's bench");
            let mut build = builds::cargo_command(places, "build");
            shell::run(build.args(["--release", "--package", "wakati-broker", "--example", "broker-bench"]))?;
            Command::new(places.target.join("release/examples/broker-bench"))
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
    command.env("WAKATI_TEST_MODEL", model::fetch(places)?);
    if json {
        command.arg("--json");
    }
    shell::run(&mut command)
}
