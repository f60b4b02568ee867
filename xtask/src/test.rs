//! `cargo xtask test`: everything that must pass, with one closing line.

use std::process::{Command, ExitCode};

use crate::builds::{self, Desktop, Variant};
use crate::packages::{self, Wanted};
use crate::places::Places;
use crate::shell::{self, say};
use crate::tally::Tally;
use crate::{model, python};

/// The unmodified client that the end-to-end tests drive.
const OPENAI: (&str, &str) = ("openai", "3.57.0");

/// Which tests to run.
#[derive(clap::Args)]
pub struct Options {
    /// Also the tests whose names begin with `long_`.
    #[arg(long)]
    all: bool,
    /// Leave out the desktop application, its page and their tests.
    #[arg(long)]
    headless: bool,
    /// Only tests whose names contain this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// What the end-to-end tests find in their environment.
struct Stage {
    model: std::path::PathBuf,
    worker: std::path::PathBuf,
    python: std::path::PathBuf,
    programs: std::path::PathBuf,
}

impl Stage {
    fn given<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("WAKATI_TEST_MODEL", &self.model)
            .env("WAKATI_WORKER", &self.worker)
            .env("WAKATI_PYTHON", &self.python)
            .env("WAKATI_BIN_DIR", &self.programs)
    }
}

/// Prepares this machine, runs every test and prints `N passed, N failed, N skipped` as the last line.
///
/// # Errors
/// When the preparation fails.
pub fn run(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let desktop = if options.headless { Desktop::Without } else { Desktop::With };
    packages::install(if options.headless { Wanted::Headless } else { Wanted::DesktopTests })?;
    let stage = Stage {
        model: model::fetch(places)?,
        python: python::with(places, OPENAI.0, OPENAI.1)?,
        worker: builds::worker(places, Variant::Processor)?,
        programs: places.programs(),
    };
    builds::programs(places, desktop)?;

    let mut tally = Tally::default();
    say("testing xtask");
    let mut xtask = builds::cargo_command(places, "test");
    cargo_test(xtask.args(["--package", "xtask"]), options, &mut tally)?;
    if desktop == Desktop::With {
        page(places, &mut tally)?;
    }
    say("testing the worker on the real model");
    cargo_test(stage.given(&mut builds::worker_cargo(places, "test")), options, &mut tally)?;
    say("testing the crates, then end to end");
    let mut crates = builds::cargo_command(places, "test");
    cargo_test(stage.given(crates.args(builds::selection(desktop))), options, &mut tally)?;
    println!("{}", tally.line());
    // The line is the last one, so a failure is told by the exit status alone.
    Ok(if tally.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs `cargo test`. Tests that need the model are marked as ignored, so that a bare `cargo test` passes without it.
fn cargo_test(command: &mut Command, options: &Options, tally: &mut Tally) -> anyhow::Result<()> {
    command.args(["--quiet", "--no-fail-fast", "--", "--include-ignored"]);
    if !options.all {
        command.args(["--skip", "long_"]);
    }
    command.args(&options.only);
    let failed_before = tally.failed;
    let succeeded = shell::lines(command, |line| tally.add_libtest(line))?;
    if !succeeded && tally.failed == failed_before {
        // It did not compile, or a test took its whole process down.
        tally.add_step(false);
    }
    Ok(())
}

/// The page: types first, then its unit tests.
fn page(places: &Places, tally: &mut Tally) -> anyhow::Result<()> {
    say("testing the page");
    tally.add_step(shell::run(builds::npm(places).args(["run", "--silent", "check"])).is_ok());
    let report = places.target.join("vitest.json");
    let ran = shell::run(
        builds::npm(places)
            .args(["exec", "--", "vitest", "run", "--reporter=dot", "--reporter=json"])
            .arg(format!("--outputFile={}", report.display())),
    );
    if let Err(error) = tally.add_vitest(&report) {
        say(&format!("{error:#}"));
        tally.add_step(ran.is_ok());
    }
    std::fs::remove_file(&report).ok();
    Ok(())
}
