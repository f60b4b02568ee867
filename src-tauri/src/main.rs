//! `wakati`: the tray application. It embeds the node and starts the window's program when the window is wanted.

use clap::Parser as _;
use tracing_subscriber::EnvFilter;
use wakati_desktop::arguments::Arguments;
use wakati_desktop::autostart;
use wakati_desktop::shell::{self, Running, Start};
use wakati_node::home;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let home = std::path::absolute(home::place(arguments.home)?)?;
    if let Some(switch) = arguments.start_with_computer {
        return autostart::set(switch, &home);
    }
    let start = if arguments.hidden { Start::Hidden } else { Start::Open };
    // Two threads, so that a slow look at the machine does not hold up a hand-over; more would only cost memory.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        if shell::open_running(&home).await? == Running::Yes {
            return Ok(());
        }
        shell::run(&home, start).await
    })
}
