//! The command line. It asks a running node at its desk; earnings and history are also there when none runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;
use wakati_catalogue::{KeepWeights, Options};
use wakati_node::desk::{self, NoAnswer};
use wakati_node::home::{self, Home};
use wakati_node::{EndSignal, RunOptions, settings};
use wakati_protocol::desk::{Answer, Ask, Denied, Earning, LinkState, Snapshot, Span};
use wakati_protocol::money::NanoUsd;
use wakati_protocol::units::UnixMillis;

/// Serves AI while nobody plays, and gives the machine back when somebody does.
#[derive(Debug, Parser)]
#[command(name = "wakati-node", version)]
pub struct Arguments {
    /// The node's folder: settings, key, log and models.
    #[arg(long, env = "WAKATI_HOME", global = true)]
    home: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the node until it is told to stop.
    Serve,
    /// Join a broker with the invite that its operator gave you.
    Join { url: String, invite: String },
    /// Take a model file (GGUF) into the node's folder.
    Import {
        file: PathBuf,
        /// The model's published tokenizer.json, for files that do not name theirs.
        #[arg(long)]
        tokenizer: Option<PathBuf>,
    },
    /// What the node does now and why.
    Status {
        #[arg(long)]
        json: bool,
    },
    /// Stop serving for a while, or until `resume`.
    Pause {
        #[arg(long, conflicts_with = "until_tomorrow")]
        minutes: Option<u32>,
        /// Until six in the morning.
        #[arg(long)]
        until_tomorrow: bool,
    },
    /// End a pause.
    Resume {
        /// Serve even though a game or a film runs, you are here, on battery or outside your hours, until that ends.
        #[arg(long)]
        anyway: bool,
    },
    /// What happened on one day, and why.
    Why {
        /// The day, as 2026-01-31; today if left out.
        #[arg(long)]
        day: Option<String>,
    },
    /// What the node has earned.
    Earnings {
        /// Every settled attempt as CSV.
        #[arg(long, conflicts_with = "json")]
        csv: bool,
        #[arg(long)]
        json: bool,
    },
}

/// Does what was asked.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let path = home::place(arguments.home)?;
    match arguments.command {
        Command::Serve => serve(&path).await,
        Command::Join { url, invite } => join(&path, &url, &invite).await,
        Command::Import { file, tokenizer } => import(&path, &file, tokenizer),
        Command::Status { json } => status(&path, json).await,
        Command::Pause { until_tomorrow: true, .. } => {
            wish(&path, Ask::PauseUntilTomorrow, "Paused until six in the morning.").await
        }
        Command::Pause { minutes, until_tomorrow: false } => {
            wish(&path, Ask::Pause { minutes }, "Paused.").await
        }
        Command::Resume { anyway: false } => wish(&path, Ask::Resume, "Resumed.").await,
        Command::Resume { anyway: true } => {
            wish(&path, Ask::ServeAnyway, "Serving anyway, until it ends.").await
        }
        Command::Why { day } => why(&path, day).await,
        Command::Earnings { csv, json } => earnings(&path, csv, json).await,
    }
}

async fn serve(path: &Path) -> anyhow::Result<()> {
    let mut signal = EndSignal::listen()?;
    let stop = CancellationToken::new();
    let node = wakati_node::run(path, RunOptions::default(), stop.clone());
    tokio::pin!(node);
    tokio::select! {
        ended = &mut node => return ended,
        () = signal.wait() => {}
    }
    stop.cancel();
    tokio::select! {
        ended = node => ended,
        // The owner insists; the log is safe at any moment.
        () = signal.wait() => Ok(()),
    }
}

async fn join(path: &Path, url: &str, invite: &str) -> anyhow::Result<()> {
    wakati_node::link_url(url)?;
    let home = Home::open(path)?;
    settings::change(&home.settings(), &[("broker", "url", url), ("broker", "invite", invite)])?;
    match desk::ask(home.path(), &Ask::Status).await {
        Ok(_) => println!("Joined {url}. Restart the node to use it."),
        Err(_) => println!("Joined {url}. Start the node with {}", start(path)),
    }
    Ok(())
}

fn import(path: &Path, file: &Path, tokenizer: Option<PathBuf>) -> anyhow::Result<()> {
    let home = Home::open(path)?;
    let settings = settings::read_only(&home.settings())?;
    let options = Options { tokenizer, weights: KeepWeights::KeepWeights, ..Options::default() };
    let entry = wakati_catalogue::import(file, &home.models(), options)
        .with_context(|| format!("{} cannot be imported", file.display()))?;
    println!("Imported {} as {} ({}).", entry.name, entry.slug, entry.digest);
    if settings.model.slug.is_none() {
        settings::change(&home.settings(), &[("model", "slug", &entry.slug)])?;
        println!("It is the model that this node serves.");
    }
    Ok(())
}

async fn status(path: &Path, json: bool) -> anyhow::Result<()> {
    let Answer::Snapshot(snapshot) = ask(path, &Ask::Status).await? else { bail!("the node misunderstood") };
    if json {
        println!("{}", serde_json::to_string_pretty(&snapshot)?);
    } else {
        print!("{}", in_lines(&snapshot));
    }
    Ok(())
}

fn in_lines(snapshot: &Snapshot) -> String {
    let mut lines = vec![snapshot.sentence.clone()];
    lines.extend((!snapshot.reason.is_empty()).then(|| snapshot.reason.clone()));
    lines.extend(snapshot.faults.iter().map(|fault| format!("! {fault}")));
    if let Some(figures) = &snapshot.figures {
        lines.push(format!(
            "Today ${}, this month ${}; {} jobs today, served {} min",
            figures.today, figures.month, figures.jobs_today, figures.served_today_minutes
        ));
    }
    if let Some(model) = &snapshot.model {
        lines.push(format!("Model {}: {} slots, context {}", model.name, model.slots, model.context));
    }
    lines.extend(snapshot.machine.sandbox.as_deref().map(kept_from));
    let link = match snapshot.link {
        LinkState::NotJoined => "not joined",
        LinkState::Dialling => "dialling",
        LinkState::Joined => "joined",
        LinkState::Refused => "refused",
    };
    lines.push(format!("Broker: {link}"));
    lines.push(format!("Node {}", snapshot.node));
    lines.join("\n") + "\n"
}

fn kept_from(denied: &[Denied]) -> String {
    let words = denied.iter().map(|denied| match denied {
        Denied::Files => "other files",
        Denied::Writes => "writing",
        Denied::Network => "the network",
        Denied::Exec => "other programs",
    });
    let words: Vec<_> = words.collect();
    if words.is_empty() {
        return "The model's process is kept from nothing: this system does not confine it".into();
    }
    format!("The model's process is kept from {}", words.join(", "))
}

async fn wish(path: &Path, wish: Ask, done: &str) -> anyhow::Result<()> {
    match ask(path, &wish).await? {
        Answer::Done => println!("{done}"),
        Answer::Refused { sentence } | Answer::Garbled { sentence } => bail!(sentence),
        Answer::Snapshot(_) | Answer::Why { .. } | Answer::Earnings { .. } => bail!("the node misunderstood"),
    }
    Ok(())
}

async fn why(path: &Path, day: Option<String>) -> anyhow::Result<()> {
    let spans = match lookup(path, Ask::Why { day }).await? {
        Answer::Why { spans } => spans,
        Answer::Refused { sentence } | Answer::Garbled { sentence } => bail!(sentence),
        Answer::Snapshot(_) | Answer::Done | Answer::Earnings { .. } => bail!("the node misunderstood"),
    };
    if spans.is_empty() {
        println!("Nothing is recorded for that day.");
    }
    spans.iter().for_each(|span| println!("{}", span_line(span)));
    Ok(())
}

fn span_line(span: &Span) -> String {
    let end = span.to.map_or_else(|| "now     ".into(), clock);
    let evidence = if span.evidence.is_empty() { String::new() } else { format!(" ({})", span.evidence) };
    format!("{} - {end}  {}{evidence}", clock(span.from), span.sentence)
}

fn clock(at: UnixMillis) -> String {
    let at = Timestamp::from_millisecond(at.0).unwrap_or_default();
    at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

async fn earnings(path: &Path, csv: bool, json: bool) -> anyhow::Result<()> {
    let Answer::Earnings { rows } = lookup(path, Ask::Earnings).await? else {
        bail!("the node misunderstood")
    };
    if csv {
        print!("{}", wakati_node::csv(&rows));
    } else if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        rows.iter().for_each(|row| println!("{}", earning_line(row)));
        let total: NanoUsd = rows.iter().map(|row| row.pay).sum();
        println!("{} settled attempts, ${total}", rows.len());
    }
    Ok(())
}

fn earning_line(row: &Earning) -> String {
    let at = Timestamp::from_millisecond(row.settled_at.0).unwrap_or_default().to_zoned(TimeZone::system());
    format!(
        "{}  {}  {} prompt, {} generated  ${}",
        at.strftime("%Y-%m-%d %H:%M:%S"),
        row.model,
        row.input_tokens,
        row.positions,
        row.pay
    )
}

/// Asks the running node.
async fn ask(path: &Path, ask: &Ask) -> anyhow::Result<Answer> {
    match desk::ask(path, ask).await {
        Ok(answer) => Ok(answer),
        Err(NoAnswer::NotRunning) => {
            bail!("No node is running in {}; start it with {}", path.display(), start(path))
        }
        Err(error) => Err(error.into()),
    }
}

/// Asks the running node, or the log itself when none runs.
async fn lookup(path: &Path, question: Ask) -> anyhow::Result<Answer> {
    match desk::ask(path, &question).await {
        Ok(answer) => Ok(answer),
        Err(NoAnswer::NotRunning) => wakati_node::look_up(path, question).await,
        Err(error) => Err(error.into()),
    }
}

fn start(path: &Path) -> String {
    format!("wakati-node --home {} serve", path.display())
}
