//! `wakati-node`: the node without a window, and the owner's command line.

mod cli;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    // Standard output belongs to the answers; SQL and frames are of no interest unless asked for.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,sqlx=warn"));
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // One for the loop and one beside it: a node must not be felt while a game runs.
        .worker_threads(2)
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(cli::run(arguments)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
