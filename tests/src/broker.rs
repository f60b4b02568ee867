//! A real broker on loopback, with its files in a folder of the test's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::program::{self, Program};

/// How long a broker may take to listen: it opens its books and loads its catalogue.
const START: Duration = Duration::from_secs(30);

/// A running broker.
pub struct Broker {
    data: PathBuf,
    url: String,
    pub program: Program,
}

impl Broker {
    /// Starts a broker that knows one model.
    ///
    /// # Errors
    /// When the model cannot be imported or the broker does not listen.
    pub async fn start(data: &Path, model: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(data)?;
        program::output(command(data)?.args(["model", "add"]).arg(model)).await?;
        let (program, url) = serve(data, "127.0.0.1:0").await?;
        Ok(Self { data: data.to_path_buf(), url, program })
    }

    /// Starts it again, at the same address and on the same files.
    ///
    /// # Errors
    /// When it does not listen.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        let address = self.url.trim_start_matches("http://").to_owned();
        (self.program, self.url) = serve(&self.data, &address).await?;
        Ok(())
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The database.
    #[must_use]
    pub fn books(&self) -> PathBuf {
        self.data.join("broker.sqlite")
    }

    /// Runs an operator's command and gives its output.
    ///
    /// # Errors
    /// When the command fails.
    pub async fn operate(&self, arguments: &[&str]) -> anyhow::Result<String> {
        program::output(command(&self.data)?.args(arguments)).await
    }

    /// One of its metrics, summed over its labels; 0 when it was never counted.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let text = reqwest::get(format!("{}/metrics", self.url)).await?.text().await?;
        let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        Ok(text.lines().filter(of_name).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }
}

fn command(data: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(program::path("wakati-broker")?);
    command.arg("--data").arg(data);
    Ok(command)
}

async fn serve(data: &Path, address: &str) -> anyhow::Result<(Program, String)> {
    let mut program = Program::start(command(data)?.args(["serve", "--listen", address]), &data.join("log"))?;
    let mut lines = BufReader::new(program.stdout().context("no output")?).lines();
    let said = tokio::time::timeout(START, lines.next_line()).await;
    let said = said.context("the broker did not listen in time")??;
    let url = said.as_deref().and_then(|line| line.strip_prefix("listening on "));
    let url = url.with_context(|| format!("the broker ended:\n{}", program.log_tail()))?.to_owned();
    Ok((program, url))
}
