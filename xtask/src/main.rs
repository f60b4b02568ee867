//! The tasks of this repository: `cargo xtask --help`.
//!
//! xtask prepares (system packages, the model, builds) and starts programs; what is shown, tested and measured lives
//! in the crates and in `tests/`. It is what a newcomer compiles first, so it has few dependencies.

mod bench;
mod bindings;
mod builds;
mod icons;
mod model;
mod packages;
mod places;
mod python;
mod run;
mod shell;
mod tally;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::Parser;
use places::Places;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Runs, tests, measures and keeps Wakati")]
enum Task {
    /// Watch a real model serve a paid request on this machine.
    Run(run::Options),
    /// Prove that everything works.
    Test(test::Options),
    /// Measure against the bars.
    Bench {
        name: bench::Bench,
        /// One JSON object instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Check format, lints, licences, sizes and generated files.
    Tidy,
    /// Draw the rasters of the icons from their masters.
    Icons,
    /// Write the page's types from the protocol.
    Bindings,
}

fn main() -> anyhow::Result<ExitCode> {
    match Task::parse() {
        Task::Icons => icons::run()?,
        Task::Bindings => bindings::run()?,
        Task::Run(options) => run::run(&Places::find()?, options)?,
        Task::Test(options) => return test::run(&Places::find()?, &options),
        Task::Bench { name, json } => bench::run(&Places::find()?, name, json)?,
        Task::Tidy => tidy::run(&Places::find()?)?,
    }
    Ok(ExitCode::SUCCESS)
}
