//! A broker with the real model, a consumer's key, and an owner's home that is joined to it. Nothing serves yet.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::broker::Broker;
use crate::node::{Choices, Node};
use crate::program;

/// A running broker and what its operator handed out.
pub struct Joined {
    broker: Broker,
    key: String,
    model: String,
    home: PathBuf,
}

impl Joined {
    /// Starts a broker in `folder` and joins a home there to it.
    ///
    /// # Errors
    /// When a program fails.
    pub async fn prepare(folder: &Path, choices: &Choices) -> anyhow::Result<Self> {
        let model = program::model()?;
        let broker = Broker::start(&folder.join("broker"), &model).await?;
        broker.operate(&["credit", "reader", "5"]).await?;
        let key = broker.operate(&["key", "create", "--account", "reader"]).await?;
        let invite = broker.operate(&["invite", "--owner", "player"]).await?;
        let home = folder.join("home");
        Node::prepare(&home, &model, choices).await?;
        let mut join = Command::new(program::path("wakati-node")?);
        program::output(join.arg("--home").arg(&home).args(["join", broker.url(), &invite])).await?;
        let models: Value = reqwest::Client::new()
            .get(format!("{}/v1/models", broker.url()))
            .bearer_auth(&key)
            .send()
            .await?
            .json()
            .await?;
        let model = models["data"][0]["id"].as_str().context("the broker lists no model")?.to_owned();
        Ok(Self { broker, key, model, home })
    }

    /// The owner's folder.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// One request that is not streamed; returns the HTTP status.
    ///
    /// # Errors
    /// When the broker does not answer at all.
    pub async fn request(&self, prompt: &str, tokens: u32) -> anyhow::Result<u16> {
        let question = json!({
            "model": self.model,
            "messages": [{ "role": "user", "content": prompt }],
            "max_tokens": tokens,
        });
        let answer = reqwest::Client::new()
            .post(format!("{}/v1/chat/completions", self.broker.url()))
            .bearer_auth(&self.key)
            .json(&question)
            .send()
            .await?;
        Ok(answer.status().as_u16())
    }
}
