//! The asking end of the desk: how the owner's own programs talk to a running node.

use std::io;
use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};
use wakati_protocol::desk::{Answer, Ask};

use super::{Lines, system};

/// The longest answer, in bytes: decades of earnings.
const ANSWER_BYTES: usize = 256 << 20;
/// A node that does not answer a question for this long has stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// A conversation with a running node.
pub struct Visit(Lines);

/// A desk that gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// Nobody is there: no node runs in this home.
    #[error("no node is running there")]
    NotRunning,
    #[error("the node did not answer: {0}")]
    Broken(#[from] LinesCodecError),
    #[error("the node hung up")]
    HungUp,
    #[error("the node said what this program does not understand: {0}")]
    Garbled(#[from] serde_json::Error),
    #[error("the node has not answered for {} s", PATIENCE.as_secs())]
    Silent,
}

impl Visit {
    /// Begins a conversation at the desk of the node in `home`.
    ///
    /// # Errors
    /// When no node runs there.
    pub async fn begin(home: &Path) -> Result<Self, NoAnswer> {
        let nobody = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
        let stream = system::connect(&super::place(home)).await.map_err(|error| {
            if nobody.contains(&error.kind()) { NoAnswer::NotRunning } else { NoAnswer::Broken(error.into()) }
        })?;
        Ok(Self(Framed::new(stream, LinesCodec::new_with_max_length(ANSWER_BYTES))))
    }

    /// Asks, and hears the first answer. After `Ask::Watch` the others come through [`Visit::next`].
    ///
    /// # Errors
    /// When the node hangs up, is silent for a minute, or answers what this program does not know.
    pub async fn ask(&mut self, ask: &Ask) -> Result<Answer, NoAnswer> {
        self.0.send(serde_json::to_string(ask)?).await?;
        tokio::time::timeout(PATIENCE, self.next()).await.map_err(|_| NoAnswer::Silent)?
    }

    /// Hears the next answer, however long that takes.
    ///
    /// # Errors
    /// When the node hangs up, or answers what this program does not know.
    pub async fn next(&mut self) -> Result<Answer, NoAnswer> {
        let line = self.0.next().await.ok_or(NoAnswer::HungUp)??;
        Ok(serde_json::from_str(&line)?)
    }
}

/// Asks the node in `home` one thing.
///
/// # Errors
/// As [`Visit::begin`] and [`Visit::ask`].
pub async fn ask(home: &Path, ask: &Ask) -> Result<Answer, NoAnswer> {
    Visit::begin(home).await?.ask(ask).await
}
