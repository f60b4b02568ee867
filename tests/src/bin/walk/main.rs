//! What `cargo xtask run` shows: one paid request on a real model, both books, and with `--game` a hand-over.

mod show;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use wakati_tests::ask::{Answer, Next, Question};
use wakati_tests::game::{self, Game};
use wakati_tests::house::{Folder, House};
use wakati_tests::node::Choices;

const PROMPT: &str = "Explain in three sentences why the sky is blue.";
/// Tokens of an answer, at most.
const TOKENS: u32 = 256;
/// For a game to start half way through.
const GAME_PROMPT: &str = "Write a long story about a lighthouse keeper who finds a letter in a bottle.";
const GAME_AT: u32 = 80;
const GAME_TOKENS: u32 = 160;

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    prompt: Option<String>,
    #[arg(long)]
    once: bool,
    #[arg(long)]
    game: bool,
    /// The desktop application instead of the headless node.
    #[arg(long)]
    desktop: bool,
    #[arg(long)]
    folder: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut house = None;
    let shown = tokio::select! {
        shown = walk(&arguments, &mut house) => shown,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        _ = hang_up.recv() => Ok(()),
    };
    if let Some(house) = house {
        println!("\nending: the node hands its jobs back, then the broker stops");
        house.end().await?;
    }
    shown
}

async fn walk(arguments: &Arguments, place: &mut Option<House>) -> anyhow::Result<()> {
    let folder = match &arguments.folder {
        Some(folder) => Folder::Staying(fresh(folder)?),
        None => Folder::Passing(tempfile::Builder::new().prefix("wakati-").tempdir()?),
    };
    let kept = if arguments.folder.is_some() { "" } else { " (gone at the end; --folder DIR keeps them)" };
    println!("books, keys and logs are in {}{kept}", folder.path().display());
    let house = place.insert(House::build_in(folder).await?);
    println!("the broker listens on {}", house.broker.url());
    let games = if arguments.game { vec![game::NAME.to_owned()] } else { vec![] };
    let choices = Choices { games, ..Choices::default() };
    println!("a node loads the model ...");
    if arguments.desktop {
        house.add_desktop(&choices).await?;
    } else {
        house.add_node(&choices).await?;
    }
    if arguments.game {
        println!("a second, dearer node loads it too ...");
        house.add_node(&Choices { prices: ("0.06", "0.12"), ..Choices::default() }).await?;
    }
    let wanted = if arguments.game { GAME_PROMPT } else { PROMPT };
    let question = Question {
        prompt: arguments.prompt.clone().unwrap_or_else(|| wanted.to_owned()),
        seed: 2026,
        tokens: if arguments.game { GAME_TOKENS } else { TOKENS },
        to_the_limit: arguments.game,
    };
    println!("\n> {}\n", question.prompt);
    let mut answer = house.ask(&question).await?;
    if arguments.game {
        with_a_game(house, &mut answer).await?;
    } else {
        stream(&mut answer, u32::MAX).await?;
    }
    show::books(house).await?;
    show::what_next(house);
    if arguments.once {
        return Ok(());
    }
    println!("\nCtrl-C ends everything.");
    std::future::pending().await
}

/// The folder, which must not hold anything yet: the books shall be those of this run.
fn fresh(folder: &PathBuf) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    if std::fs::read_dir(folder)?.next().is_some() {
        bail!("{} is not empty", folder.display());
    }
    std::path::absolute(folder).context("no such folder")
}

/// Prints the answer as it comes, up to this many tokens or its end. True at the end.
async fn stream(answer: &mut Answer, tokens: u32) -> anyhow::Result<bool> {
    while answer.tokens < tokens {
        match answer.next().await? {
            Next::Text(text) => show::piece(&text)?,
            Next::Other => {}
            Next::Done => {
                println!();
                return Ok(true);
            }
            end @ (Next::Error(_) | Next::Cut) => bail!("the answer broke off: {end:?}"),
        }
    }
    Ok(false)
}

/// Starts a game in mid-answer on the node that serves, and shows how the machine was given back.
async fn with_a_game(house: &House, answer: &mut Answer) -> anyhow::Result<()> {
    if stream(answer, GAME_AT).await? {
        bail!("the answer ended before the game could start");
    }
    show::piece("\n\n    --- a game starts on the first node ---\n\n")?;
    let game = Game::start(house.folder())?;
    stream(answer, u32::MAX).await?;
    show::hand_over(&house.nodes[0]).await?;
    drop(game);
    Ok(())
}
