//! Building the programs, each with the flags it needs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

use crate::packages;
use crate::places::{Places, cargo};
use crate::shell::{self, say};

/// The crates that every machine can build, always selected together: cargo unites the features of the crates that
/// it is asked for, so another selection would build the dependencies again.
pub const HEADLESS: &[&str] = &[
    "wakati-agent",
    "wakati-broker",
    "wakati-catalogue",
    "wakati-engine",
    "wakati-ledger",
    "wakati-market",
    "wakati-node",
    "wakati-protocol",
    "wakati-senses",
    "wakati-store",
    "wakati-tests",
    "wakati-words",
];
/// The desktop application, which needs WebKitGTK on Linux.
pub const DESKTOP: &str = "wakati";

/// Whether the desktop application is part of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Desktop {
    With,
    Without,
}

impl Desktop {
    /// With it wherever it can be built, so that every task asks cargo for the same crates.
    pub fn if_possible() -> Self {
        if packages::has_webkit() { Self::With } else { Self::Without }
    }
}

/// What the worker computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    Processor,
    Cuda,
}

/// `cargo COMMAND` in the checkout, free of what `cargo run` told this task about itself.
pub fn cargo_command(places: &Places, command: &str) -> Command {
    let mut cargo = Command::new(cargo());
    cargo.arg(command).current_dir(&places.root);
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&variable);
        }
    }
    cargo
}

/// The same for the worker: release profile, own target folder, and the SIMD that candle's kernels choose at compile
/// time (x86-64-v3 is AVX2, FMA and F16C).
pub fn worker_cargo(places: &Places, command: &str) -> Command {
    let mut cargo = cargo_command(places, command);
    cargo.args(["--release", "--package", "wakati-worker", "--target-dir"]).arg(places.worker_target());
    if cfg!(target_arch = "x86_64") {
        cargo.env("RUSTFLAGS", "-C target-cpu=x86-64-v3");
    }
    cargo
}

/// `--package` for each crate of the selection.
pub fn selection(desktop: Desktop) -> impl Iterator<Item = &'static str> {
    let desktop = (desktop == Desktop::With).then_some(DESKTOP);
    HEADLESS.iter().copied().chain(desktop).flat_map(|package| ["--package", package])
}

/// Builds the node, the broker and the tests' programs, and the desktop application with its page.
///
/// With all targets, because tests ask for features of the dependencies that programs alone do not: built apart,
/// each would compile most of them for itself.
///
/// # Errors
/// When a build fails.
pub fn programs(places: &Places, desktop: Desktop) -> anyhow::Result<()> {
    if desktop == Desktop::With {
        page(places)?;
    }
    say("building the node and the broker");
    shell::run(cargo_command(places, "build").arg("--all-targets").args(selection(desktop)))
}

/// Builds the programs as they are installed, and the broker's bench.
///
/// # Errors
/// When a build fails.
pub fn released(places: &Places, desktop: Desktop) -> anyhow::Result<PathBuf> {
    if desktop == Desktop::With {
        page(places)?;
    }
    say("building the programs as they are installed");
    shell::run(
        cargo_command(places, "build")
            .args(["--release", "--bins", "--example", "broker-bench"])
            .args(selection(desktop)),
    )?;
    Ok(places.target.join("release"))
}

/// Builds the worker and puts it beside the other programs.
///
/// # Errors
/// When the build fails.
pub fn worker(places: &Places, variant: Variant) -> anyhow::Result<PathBuf> {
    let built = places.worker_target().join("release/wakati-worker");
    if built.exists() {
        say("building the inference worker");
    } else {
        say("building the inference worker, 10 to 20 minutes on 2 cores the first time");
    }
    let mut build = worker_cargo(places, "build");
    if variant == Variant::Cuda {
        build.args(["--features", "cuda"]);
    }
    shell::run(&mut build)?;
    let beside = places.programs().join("wakati-worker");
    fs::create_dir_all(places.programs())?;
    // A worker that is running keeps the old file.
    let _ = fs::remove_file(&beside);
    fs::hard_link(&built, &beside).with_context(|| format!("cannot link {}", beside.display()))?;
    Ok(beside)
}

/// Builds the window's page, which is embedded into its program.
///
/// # Errors
/// When npm is not there or a build fails.
pub fn page(places: &Places) -> anyhow::Result<()> {
    page_packages(places)?;
    say("building the window's page");
    shell::run(npm(places).args(["run", "--silent", "build"]))
}

/// Installs the page's packages when the lock file is newer than what is installed.
///
/// # Errors
/// When npm is not there or fails.
pub fn page_packages(places: &Places) -> anyhow::Result<()> {
    let ui = places.root.join("ui");
    let installed = ui.join("node_modules/.package-lock.json");
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|metadata| metadata.modified());
    if let (Ok(installed), Ok(locked)) = (changed(&installed), changed(&ui.join("package-lock.json")))
        && installed >= locked
    {
        return Ok(());
    }
    say("installing the page's packages");
    shell::run(npm(places).args(["ci", "--no-audit", "--no-fund"]))
}

/// `npm` in the page's folder.
pub fn npm(places: &Places) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(places.root.join("ui"));
    npm
}
