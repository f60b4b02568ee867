//! `wakati-broker`: the broker and its operator's commands.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use wakati_broker::operator::{self, Home};
use wakati_broker::settings::Settings;
use wakati_protocol::money::NanoUsd;

/// Sells the tokens of owners' nodes through an OpenAI-compatible API.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The folder with the books, the key and the catalogue.
    #[arg(long, value_name = "DIR", default_value_os_t = default_folder())]
    data: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve consumers and nodes.
    Serve {
        /// Where to listen; loopback only. Port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
    /// Models that are sold here.
    #[command(subcommand)]
    Model(ModelCommand),
    /// API keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Credit an account, in dollars; it is made when new.
    Credit {
        account: String,
        #[arg(allow_negative_numbers = true)]
        amount: NanoUsd,
    },
    /// Make an invite with which one node can join.
    Invite {
        #[arg(long)]
        owner: String,
    },
    /// Show the books.
    Books {
        /// For machines; amounts are nano-USD.
        #[arg(long)]
        json: bool,
    },
    /// Check every rule of the books.
    Audit,
}

#[derive(Subcommand)]
enum ModelCommand {
    /// Import a GGUF file into the catalogue.
    Add { file: PathBuf },
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Make a key for an account; it is printed once and stored as a hash.
    Create {
        #[arg(long)]
        account: String,
    },
}

fn default_folder() -> PathBuf {
    directories::ProjectDirs::from("", "", "wakati-broker")
        .map_or_else(|| PathBuf::from("wakati-broker"), |dirs| dirs.data_dir().to_owned())
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(code) => code,
        Err(error) => {
            // The sentence has its cause in it.
            eprintln!("wakati-broker: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let home = Home::new(arguments.data);
    match arguments.command {
        Command::Serve { listen } => serve(&home, listen).await?,
        Command::Model(ModelCommand::Add { file }) => {
            let entry = operator::add_model(&home, &file)?;
            println!("{}  {}  {}", entry.slug, entry.quantisation, entry.digest);
        }
        Command::Key(KeyCommand::Create { account }) => {
            println!("{}", operator::create_key(&home, &account).await?)
        }
        Command::Credit { account, amount } => {
            println!("{account} has ${} available", operator::credit(&home, &account, amount).await?);
        }
        Command::Invite { owner } => println!("{}", operator::invite(&home, &owner).await?),
        Command::Books { json } => {
            let books = operator::books(&home).await?;
            if json {
                println!("{}", serde_json::to_string_pretty(&books)?);
            } else {
                print!("{}", operator::books_as_text(&books));
            }
        }
        Command::Audit => {
            let faults = operator::audit(&home).await?;
            for fault in &faults {
                println!("{}: {}", fault.place, fault.rule);
            }
            if !faults.is_empty() {
                return Ok(ExitCode::FAILURE);
            }
            println!("every rule holds");
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve(home: &Home, listen: SocketAddr) -> anyhow::Result<()> {
    let (settings, notices) = Settings::load(&home.settings());
    for notice in notices {
        tracing::warn!(notice, "a setting was not taken");
    }
    // Asked for before the address is known, so that no signal is missed.
    let mut signals = Signals::listen()?;
    let running = wakati_broker::start(home, listen, settings).await?;
    println!("listening on http://{}", running.address);
    std::io::stdout().flush().context("stdout is closed")?;
    signals.next().await;
    // Whoever asks twice does not want to wait.
    running.stop_or_cut_short(signals.next()).await;
    Ok(())
}

/// The signals by which a person or the system ends this program.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The signal by which a person ends this program.
#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self(tokio::signal::windows::ctrl_c()?))
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}
