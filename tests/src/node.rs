//! A real node, joined to a broker, with its files in a folder of the test's.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use tokio::process::Command;
use wakati_protocol::desk::{Earning, LinkState, Shape, Snapshot};

use crate::desktop::until;
use crate::program::{self, Program};

/// How long a node may take from its start, or from the end of a game's quiet time, until it serves.
pub const WARM: Duration = Duration::from_secs(90);

/// What an owner would choose.
#[derive(Debug, Clone)]
pub struct Choices {
    /// Asked for a million prompt tokens and a million generated ones, in dollars.
    pub prices: (&'static str, &'static str),
    /// Names of programs that count as games.
    pub games: Vec<String>,
    pub quiet_seconds: u32,
    pub poll_milliseconds: u32,
    pub slots: u32,
    /// What its senses find in their environment, such as a private bus or display.
    pub surroundings: Vec<(&'static str, String)>,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            prices: ("0.05", "0.10"),
            games: vec![],
            quiet_seconds: 2,
            poll_milliseconds: 250,
            slots: 1,
            surroundings: vec![],
        }
    }
}

/// A node that runs, or has run.
pub struct Node {
    home: PathBuf,
    shell: &'static str,
    pub program: Program,
}

impl Node {
    /// Writes the settings and imports the model; the node is not started.
    ///
    /// # Errors
    /// When the model cannot be imported.
    pub async fn prepare(home: &Path, model: &Path, choices: &Choices) -> anyhow::Result<()> {
        make_home(home)?;
        let games = serde_json::to_string(&choices.games)?;
        let settings = format!(
            "[model]\ncontext = 1024\nslots = {}\n\n[prices]\ninput = \"{}\"\noutput = \"{}\"\n\n\
             [serve]\non_processor = true\non_battery = true\n\n\
             [games]\nprograms = {games}\nquiet_seconds = {}\npoll_milliseconds = {}\n",
            choices.slots,
            choices.prices.0,
            choices.prices.1,
            choices.quiet_seconds,
            choices.poll_milliseconds
        );
        std::fs::write(home.join("settings.toml"), settings)?;
        program::output(command(home)?.arg("import").arg(model)).await?;
        Ok(())
    }

    /// Joins a broker and starts serving headless.
    ///
    /// # Errors
    /// When the node refuses to join or cannot be started.
    pub async fn start(
        home: &Path,
        url: &str,
        invite: &str,
        surroundings: &[(&'static str, String)],
    ) -> anyhow::Result<Self> {
        program::output(command(home)?.args(["join", url, invite])).await?;
        let mut serve = command(home)?;
        serve.arg("serve").envs(surroundings.iter().map(|(name, value)| (name, value)));
        let program = Program::start(&mut serve, &home.join("log"))?;
        Ok(Self { home: home.to_path_buf(), shell: "wakati-node", program })
    }

    /// Joins a broker and starts the desktop application, which embeds the node.
    ///
    /// # Errors
    /// When the node refuses to join or the application cannot be started.
    pub async fn start_desktop(home: &Path, url: &str, invite: &str) -> anyhow::Result<Self> {
        program::output(command(home)?.args(["join", url, invite])).await?;
        let mut shell = Command::new(program::path("wakati")?);
        let program = Program::start(shell.arg("--home").arg(home), &home.join("log"))?;
        Ok(Self { home: home.to_path_buf(), shell: "wakati", program })
    }

    /// Starts it again after it ended.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        self.program = match self.shell {
            "wakati-node" => Program::start(command(&self.home)?.arg("serve"), &self.home.join("log"))?,
            shell => {
                let mut shell = Command::new(program::path(shell)?);
                Program::start(shell.arg("--home").arg(&self.home), &self.home.join("log"))?
            }
        };
        Ok(())
    }

    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The database.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.home.join("node.sqlite")
    }

    /// Runs one of the owner's commands and gives its output.
    ///
    /// # Errors
    /// When the command fails.
    pub async fn owner(&self, arguments: &[&str]) -> anyhow::Result<String> {
        program::output(command(&self.home)?.args(arguments)).await
    }

    /// What the node says about itself.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn status(&self) -> anyhow::Result<Snapshot> {
        self.json(&["status", "--json"]).await
    }

    /// The settled earnings.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn earnings(&self) -> anyhow::Result<Vec<Earning>> {
        self.json(&["earnings", "--json"]).await
    }

    async fn json<T: DeserializeOwned>(&self, arguments: &[&str]) -> anyhow::Result<T> {
        let text = self.owner(arguments).await?;
        serde_json::from_str(&text).with_context(|| format!("{arguments:?} printed something else"))
    }

    /// Waits until the node shows this shape, joined to its broker.
    ///
    /// # Errors
    /// When that takes longer than [`WARM`]; the message holds its log's end.
    pub async fn until_shape(&self, shape: Shape) -> anyhow::Result<Snapshot> {
        let what = format!("the node to be {shape:?}");
        let shown = until(&what, WARM, async || {
            let snapshot = self.status().await.ok()?;
            (snapshot.shape == shape && snapshot.link == LinkState::Joined).then_some(snapshot)
        })
        .await;
        let said = match &shown {
            Ok(_) => String::new(),
            Err(_) => format!("{:?}\n{}", self.status().await, self.program.log_tail()),
        };
        shown.context(said)
    }

    /// The worker's process id, if the node has a worker.
    #[must_use]
    pub fn worker(&self) -> Option<u32> {
        children(self.program.id()).into_iter().find(|id| name(*id).as_deref() == Some("wakati-worker"))
    }
}

/// Makes a folder that a node takes as its home: its owner's alone, whatever the umask.
///
/// # Errors
/// When it cannot be made.
pub fn make_home(home: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(home)
}

fn command(home: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(program::path("wakati-node")?);
    command.arg("--home").arg(home);
    Ok(command)
}

/// The processes that this one started and that are alive, from `/proc`.
fn children(parent: u32) -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return vec![] };
    tasks
        .filter_map(Result::ok)
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|ids| ids.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// A process's name, cut by the kernel to 15 bytes.
fn name(id: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    Some(name.trim().to_owned())
}
