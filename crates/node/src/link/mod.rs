//! The link to the broker: one outbound WebSocket, dialled again whenever it is lost.
//!
//! ```text
//! Dialling -> Joined -> Frame* -> Lost -> Dialling (after a random wait)
//!         \-> Refused -> Dialling (after a while), or for good when only the owner can help
//!         \-> Lost
//! ```
//! One task owns the socket. The loop hears [`LinkEvent`]s and speaks through the sender in [`Joined`], which belongs
//! to one session: what was meant for a lost session can never reach the next one.

mod backoff;
mod dial;
mod pin;
mod session;

use std::time::{Duration, Instant};

use ed25519_dalek::SigningKey;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use wakati_protocol::ids::BrokerId;
use wakati_protocol::link::{Beat, RefuseReason, Welcome, to_broker, to_node};
use wakati_store::Store;

pub use dial::{BadUrl, link_url};

/// Events wait here for the loop. When it is full the socket is not read, and the broker's own limits hold.
pub const EVENTS: usize = 256;
/// Words to the broker wait here. A broker that leaves 1024 of them unread is as good as gone: the link is cut.
pub const WORDS: usize = 1024;

/// Whom to dial, and as whom.
pub struct LinkSpec {
    /// As in the settings: `http://127.0.0.1:PORT`.
    pub url: String,
    pub invite: String,
    pub key: SigningKey,
    pub store: Store,
    /// What the next beat says; its number is set by the link.
    pub beat: watch::Receiver<Beat>,
}

/// What happens on the link.
#[derive(Debug)]
pub enum LinkEvent {
    Dialling,
    Joined(Joined),
    Refused(Refusal),
    Frame(to_node::Body),
    /// The session or the try is over. The cause is for the log.
    Lost {
        cause: String,
    },
}

/// A session with the broker.
#[derive(Debug)]
pub struct Joined {
    pub broker: BrokerId,
    pub welcome: Welcome,
    /// Speaks in this session. Dropping it ends the session politely, after everything in it was sent.
    pub words: mpsc::Sender<to_broker::Body>,
}

/// Why there is no session, where dialling again at once would not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the broker refused this node: {0:?}")]
    Broker(RefuseReason),
    /// The broker at this address is not the one that this node joined.
    #[error("the broker's key has changed from {joined} to {found}")]
    BrokerChanged { joined: BrokerId, found: BrokerId },
    #[error(transparent)]
    Url(#[from] BadUrl),
}

/// Dials until it is cancelled. A session that stands when it is cancelled goes on until its `words` are dropped.
pub async fn run(spec: LinkSpec, events: mpsc::Sender<LinkEvent>, stop: CancellationToken) {
    let mut backoff = backoff::Backoff::default();
    while !stop.is_cancelled() && events.send(LinkEvent::Dialling).await.is_ok() {
        let tried = tokio::select! {
            () = stop.cancelled() => return,
            tried = dial::dial(&spec) => tried,
        };
        let wait = match tried {
            Ok(session) => {
                let (welcome, began) = (session.welcome.clone(), Instant::now());
                let cause = session::run(session, &spec, &events).await;
                backoff.session_ended(&welcome, began.elapsed());
                tracing::info!(cause, "link lost");
                if events.send(LinkEvent::Lost { cause }).await.is_err() {
                    return;
                }
                backoff.wait()
            }
            Err(dial::NoSession::Refused { refusal, retry_after }) => {
                tracing::warn!(%refusal, "link refused");
                if events.send(LinkEvent::Refused(refusal)).await.is_err() {
                    return;
                }
                retry_after.unwrap_or(Duration::MAX)
            }
            Err(dial::NoSession::Failed(cause)) => {
                tracing::debug!(cause, "dialling failed");
                if events.send(LinkEvent::Lost { cause }).await.is_err() {
                    return;
                }
                backoff.wait()
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(wait) => {}
        }
    }
}

/// `Duration::MAX` is for ever.
async fn sleep(wait: Duration) {
    if wait == Duration::MAX {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(wait).await;
}
