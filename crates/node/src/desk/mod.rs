//! The desk: the local socket at which the owner's own programs ask the node. One JSON object a line.

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
mod visit;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};
use tokio_util::sync::CancellationToken;
use wakati_protocol::desk::{Answer, Ask};

use crate::handle::Handle;

pub use visit::{NoAnswer, Visit, ask};

/// The longest question.
const LINE_BYTES: usize = 64 << 10;
/// Programs at the desk at the same time; the next one waits until one leaves.
const CLIENTS: usize = 32;
/// An asker that takes no answer for this long has left.
const PATIENCE: Duration = Duration::from_secs(5);

type Lines = Framed<system::Stream, LinesCodec>;

/// Where the node in this home answers: a socket in its folder, on Windows a pipe named after it.
fn place(home: &Path) -> PathBuf {
    // The same folder, however it is written.
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    if cfg!(windows) {
        let digest = Sha256::digest(home.as_os_str().as_encoded_bytes());
        PathBuf::from(format!(r"\\.\pipe\wakati-{}", hex::encode(digest)))
    } else {
        home.join("desk.sock")
    }
}

/// The desk, listening.
pub struct Desk(system::Listener);

impl Desk {
    /// Opens the desk of the node in `home`. The caller holds the home's claim.
    ///
    /// # Errors
    /// When the system does not let us.
    pub fn open(home: &Path) -> io::Result<Self> {
        system::Listener::bind(&place(home)).map(Self)
    }

    /// Answers until it is stopped; everyone at the desk has left when it returns.
    pub async fn serve(self, handle: Handle, stop: CancellationToken) {
        let seats = Arc::new(Semaphore::new(CLIENTS));
        let mut clients = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = clients.join_next() => continue,
                accepted = async {
                    // Closed only when dropped, and it is not.
                    let seat = seats.clone().acquire_owned().await;
                    (self.0.accept().await, seat)
                } => accepted,
            };
            match accepted {
                (Ok(stream), seat) => {
                    let (handle, stop) = (handle.clone(), stop.clone());
                    clients.spawn(async move {
                        let _seat = seat;
                        tokio::select! {
                            () = stop.cancelled() => {}
                            left = attend(stream, &handle) => {
                                if let Err(error) = left {
                                    tracing::debug!(%error, "somebody left the desk in mid-sentence");
                                }
                            }
                        }
                    });
                }
                (Err(error), _) => {
                    tracing::warn!(%error, "the desk cannot take a visitor");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(self.0);
        while clients.join_next().await.is_some() {}
    }
}

/// Answers one asker until it leaves.
async fn attend(stream: system::Stream, handle: &Handle) -> Result<(), LinesCodecError> {
    let mut lines = Framed::new(stream, LinesCodec::new_with_max_length(LINE_BYTES));
    while let Some(line) = lines.next().await {
        let ask = match line {
            Ok(line) => serde_json::from_str::<Ask>(&line).map_err(|error| error.to_string()),
            Err(LinesCodecError::MaxLineLengthExceeded) => {
                Err(format!("a question is at most {LINE_BYTES} bytes"))
            }
            Err(error @ LinesCodecError::Io(_)) => return Err(error),
        };
        match ask {
            Ok(Ask::Watch) => return watch(&mut lines, handle).await,
            Ok(ask) => say(&mut lines, &handle.ask(ask).await).await?,
            Err(sentence) => say(&mut lines, &Answer::Garbled { sentence }).await?,
        }
    }
    Ok(())
}

/// Sends a snapshot now and after every change. What changes faster than it is read is skipped.
async fn watch(lines: &mut Lines, handle: &Handle) -> Result<(), LinesCodecError> {
    let mut snapshots = handle.snapshots();
    loop {
        let snapshot = snapshots.borrow_and_update().clone();
        say(lines, &Answer::Snapshot(Box::new(snapshot))).await?;
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { return Ok(()) },
            said = lines.next() => if said.is_none() { return Ok(()) },
        }
    }
}

async fn say(lines: &mut Lines, answer: &Answer) -> Result<(), LinesCodecError> {
    let text = serde_json::to_string(answer).map_err(io::Error::from)?;
    tokio::time::timeout(PATIENCE, lines.send(text)).await.map_err(io::Error::from)?
}
