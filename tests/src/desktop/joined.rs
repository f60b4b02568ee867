//! A broker with the real model, a consumer's key, and an owner's home that is joined to it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// What every end-to-end test needs from outside; `cargo xtask test` provides it.
pub struct Stage {
    programs: PathBuf,
    worker: PathBuf,
    model: PathBuf,
}

impl Stage {
    /// Reads it from the environment.
    ///
    /// # Errors
    /// When something is missing; the message says what.
    pub fn given() -> anyhow::Result<Self> {
        let path = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).with_context(|| format!("{name} is not set: run `cargo xtask test`"))
        };
        Ok(Self {
            programs: path("WAKATI_BIN_DIR")?,
            worker: path("WAKATI_WORKER")?,
            model: path("WAKATI_TEST_MODEL")?,
        })
    }

    /// One of our programs.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// The worker's program.
    #[must_use]
    pub fn worker(&self) -> &Path {
        &self.worker
    }
}

/// A running broker and what its operator handed out.
pub struct Joined {
    url: String,
    key: String,
    model: String,
    home: PathBuf,
    _broker: Child,
}

impl Joined {
    /// Starts a broker in `folder` and joins a home there to it. Nothing serves yet.
    ///
    /// # Errors
    /// When a program fails.
    pub async fn prepare(stage: &Stage, folder: &Path) -> anyhow::Result<Self> {
        let data = folder.join("broker");
        let home = folder.join("home");
        let operator = |arguments: &[&str]| {
            let mut command = Command::new(stage.program("wakati-broker"));
            command.arg("--data").arg(&data).args(arguments);
            command
        };
        said(operator(&["model", "add"]).arg(&stage.model)).await?;
        let (broker, url) = serve(operator(&["serve", "--listen", "127.0.0.1:0"])).await?;
        said(&mut operator(&["credit", "reader", "5"])).await?;
        let key = said(&mut operator(&["key", "create", "--account", "reader"])).await?;
        let invite = said(&mut operator(&["invite", "--owner", "player"])).await?;
        let owner = |arguments: &[&str]| {
            let mut command = Command::new(stage.program("wakati-node"));
            command.arg("--home").arg(&home).args(arguments);
            command
        };
        said(&mut owner(&["join", &url, &invite])).await?;
        said(owner(&["import"]).arg(&stage.model)).await?;
        let models: Value = reqwest::Client::new()
            .get(format!("{url}/v1/models"))
            .bearer_auth(&key)
            .send()
            .await?
            .json()
            .await?;
        let model = models["data"][0]["id"].as_str().context("the broker lists no model")?.to_owned();
        Ok(Self { url, key, model, home, _broker: broker })
    }

    /// The owner's folder.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Adds to the owner's settings, in the file's own format.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn settings(&self, lines: &str) -> anyhow::Result<()> {
        let file = self.home.join("settings.toml");
        let written = std::fs::read_to_string(&file)?;
        Ok(std::fs::write(&file, format!("{written}\n{lines}\n"))?)
    }

    /// One short request that is not streamed: the HTTP status and the body.
    ///
    /// # Errors
    /// When the broker does not answer at all.
    pub async fn request(&self, prompt: &str) -> anyhow::Result<(u16, Value)> {
        let answer = reqwest::Client::new()
            .post(format!("{}/v1/chat/completions", self.url))
            .bearer_auth(&self.key)
            .json(&json!({
                "model": self.model,
                "messages": [{ "role": "user", "content": prompt }],
                "max_tokens": 24,
            }))
            .send()
            .await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }
}

/// Starts the broker and waits for its address.
async fn serve(mut command: Command) -> anyhow::Result<(Child, String)> {
    let mut broker = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().context("no broker")?;
    let output = broker.stdout.take().context("no output")?;
    let line = BufReader::new(output).lines().next_line().await?.context("the broker did not start")?;
    let url = line.strip_prefix("listening on ").context("the broker's first line is its address")?;
    Ok((broker, url.to_owned()))
}

/// Runs a command to its end and returns the last line that it printed.
async fn said(command: &mut Command) -> anyhow::Result<String> {
    let done = command.output().await?;
    let complaint = String::from_utf8_lossy(&done.stderr).into_owned();
    ensure!(done.status.success(), "{command:?} failed: {complaint}");
    Ok(String::from_utf8(done.stdout)?.lines().last().unwrap_or_default().trim().to_owned())
}
