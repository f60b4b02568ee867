//! A broker with a paying consumer, and the nodes that a test adds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};
use wakati_protocol::desk::Shape;

use crate::ask::{Answer, Question};
use crate::broker::Broker;
use crate::node::{Choices, Node};
use crate::program;

/// How long a program may take to end when it is asked.
const POLITE: Duration = Duration::from_secs(15);

/// One house at a time in a process: each computes on every core, and deadlines shall mean something.
static TURN: Mutex<()> = Mutex::const_new(());

/// Where a house keeps its files.
pub enum Folder {
    /// A folder that goes with the house.
    Passing(TempDir),
    /// A folder that stays.
    Staying(PathBuf),
}

impl Folder {
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Passing(folder) => folder.path(),
            Self::Staying(folder) => folder,
        }
    }
}

/// Broker, consumer and nodes. Every process ends with it.
pub struct House {
    pub broker: Broker,
    pub nodes: Vec<Node>,
    /// The consumer's API key.
    pub key: String,
    /// The model's name at the API.
    pub model: String,
    file: PathBuf,
    folder: Folder,
    _turn: MutexGuard<'static, ()>,
}

impl House {
    /// A house in a temporary folder.
    ///
    /// # Errors
    /// When the broker does not start.
    pub async fn build() -> anyhow::Result<Self> {
        Self::build_in(Folder::Passing(tempfile::tempdir()?)).await
    }

    /// A house in this folder: a broker that knows the model, a consumer with a dollar and a key.
    ///
    /// # Errors
    /// When the broker does not start.
    pub async fn build_in(folder: Folder) -> anyhow::Result<Self> {
        let turn = TURN.lock().await;
        let file = program::model()?;
        let broker = Broker::start(&folder.path().join("broker"), &file).await?;
        broker.operate(&["credit", "consumer", "1.00"]).await?;
        let key = broker.operate(&["key", "create", "--account", "consumer"]).await?;
        let models = Answer::models(broker.url(), &key).await?;
        let model = models["data"][0]["id"].as_str().context("the broker names no model")?.to_owned();
        Ok(Self { broker, nodes: vec![], key, model, file, folder, _turn: turn })
    }

    /// Adds a headless node of an owner of its own and waits until it serves.
    ///
    /// # Errors
    /// When it does not come to serve.
    pub async fn add_node(&mut self, choices: &Choices) -> anyhow::Result<()> {
        let (home, invite) = self.prepare_node(choices).await?;
        let node = Node::start(&home, self.broker.url(), &invite, &choices.surroundings).await?;
        self.settle_in(node).await
    }

    /// Adds the desktop application, which embeds a node, and waits until it serves.
    ///
    /// # Errors
    /// When it does not come to serve.
    pub async fn add_desktop(&mut self, choices: &Choices) -> anyhow::Result<()> {
        let (home, invite) = self.prepare_node(choices).await?;
        let node = Node::start_desktop(&home, self.broker.url(), &invite).await?;
        self.settle_in(node).await
    }

    async fn prepare_node(&self, choices: &Choices) -> anyhow::Result<(PathBuf, String)> {
        let number = self.nodes.len() + 1;
        let home = self.folder.path().join(format!("node-{number}"));
        Node::prepare(&home, &self.file, choices).await?;
        let invite = self.broker.operate(&["invite", "--owner", &format!("owner-{number}")]).await?;
        Ok((home, invite))
    }

    async fn settle_in(&mut self, node: Node) -> anyhow::Result<()> {
        node.until_shape(Shape::Serving).await?;
        self.nodes.push(node);
        Ok(())
    }

    /// Asks and waits for the response's head.
    ///
    /// # Errors
    /// When the broker does not take the request.
    pub async fn ask(&self, question: &Question) -> anyhow::Result<Answer> {
        Answer::begin(self.broker.url(), &self.key, &self.model, question).await
    }

    /// Ends every program politely, the nodes first. Whatever does not end in time is killed.
    ///
    /// # Errors
    /// With the first program that had to be killed.
    pub async fn end(mut self) -> anyhow::Result<()> {
        let mut ended = Ok(());
        for node in &mut self.nodes {
            ended = ended.and(node.program.stop(POLITE).await.map(drop));
        }
        ended.and(self.broker.program.stop(POLITE).await.map(drop))
    }

    /// The database of each node.
    #[must_use]
    pub fn logs(&self) -> Vec<PathBuf> {
        self.nodes.iter().map(Node::log).collect()
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
