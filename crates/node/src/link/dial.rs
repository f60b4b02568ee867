//! From an address to a session: connect, `Challenge`, `Hello`, `Welcome`.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use prost::Message as _;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::http::Uri;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use wakati_protocol::frame::MAX_FRAME_BYTES;
use wakati_protocol::ids::BrokerId;
use wakati_protocol::link::{
    Challenge, Hello, Refuse, RefuseReason, ToBroker, ToNode, Welcome, to_broker, to_node,
};
use wakati_protocol::{LINK_VERSION, LINK_VERSION_OLDEST, receipt};

use super::{LinkSpec, Refusal, pin};
use crate::key::node_id;

/// For the connection, and again for the greeting. A home line with a second of round trip passes.
const PATIENCE: Duration = Duration::from_secs(10);
/// A node that crashed may come back before the broker has seen it go.
const RETRY_NEUTRAL: Duration = Duration::from_secs(3);
/// What the operator may mend without the owner: a broker of another version, or one that shows another key.
const RETRY_OPERATOR: Duration = Duration::from_secs(60);
/// However soon the broker would have it, a refused node does not dial in a tight loop.
const RETRY_LEAST: Duration = Duration::from_secs(1);

pub(super) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A link that stands.
pub(super) struct Session {
    pub(super) socket: Socket,
    pub(super) broker: BrokerId,
    pub(super) welcome: Welcome,
}

/// A try that gave no session.
pub(super) enum NoSession {
    /// `retry_after` is `None` when trying again makes no sense before the owner has joined again.
    Refused {
        refusal: Refusal,
        retry_after: Option<Duration>,
    },
    Failed(String),
}

impl<E: std::error::Error> From<E> for NoSession {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

/// An address that the link may not use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    #[error("{0} is not a broker's address; it looks like http://127.0.0.1:8080")]
    NotAnAddress(String),
    /// Plain text would show prompts to everyone on the way.
    #[error(
        "{0} is on another machine, and this version has no encrypted link yet: only a broker on this machine works"
    )]
    NotEncrypted(String),
}

/// The link's address at a broker whose address is `url`. Unencrypted links stay on this machine.
///
/// # Errors
/// When `url` is no such address or leads to another machine.
pub fn link_url(url: &str) -> Result<String, BadUrl> {
    let bad = || BadUrl::NotAnAddress(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| bad())?;
    let host = uri.host().ok_or_else(bad)?;
    let plain = matches!(uri.scheme_str(), Some("http" | "ws"));
    let encrypted = matches!(uri.scheme_str(), Some("https" | "wss"));
    if !(plain || encrypted) || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(bad());
    }
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    if encrypted || !(host == "localhost" || literal.is_ok_and(|ip| ip.is_loopback())) {
        return Err(BadUrl::NotEncrypted(url.to_owned()));
    }
    let authority = uri.authority().ok_or_else(bad)?;
    if authority.as_str().contains('@') {
        return Err(bad());
    }
    Ok(format!("ws://{authority}/node/v1"))
}

/// Dials once.
pub(super) async fn dial(spec: &LinkSpec) -> Result<Session, NoSession> {
    let url = link_url(&spec.url)
        .map_err(|bad| NoSession::Refused { refusal: Refusal::Url(bad), retry_after: None })?;
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES));
    let connect = tokio_tungstenite::connect_async_with_config(url, Some(limits), true);
    let (socket, _) = tokio::time::timeout(PATIENCE, connect).await??;
    tokio::time::timeout(PATIENCE, greet(spec, socket)).await?
}

async fn greet(spec: &LinkSpec, mut socket: Socket) -> Result<Session, NoSession> {
    let to_node::Body::Challenge(challenge) = next(&mut socket).await? else {
        return Err(NoSession::Failed("the broker did not speak first".into()));
    };
    let broker = BrokerId::from_slice(&challenge.broker)?;
    let pinned = pin::pinned(spec).await?;
    if let Some(joined) = pinned.filter(|joined| *joined != broker) {
        let refusal = Refusal::BrokerChanged { joined, found: broker };
        return Err(NoSession::Refused { refusal, retry_after: Some(RETRY_OPERATOR) });
    }
    let hello = hello(spec, &challenge).await?;
    let bytes = ToBroker::from(to_broker::Body::Hello(hello)).encode_to_vec();
    socket.send(Message::binary(bytes)).await?;
    match next(&mut socket).await? {
        to_node::Body::Welcome(welcome) => {
            if pinned.is_none() {
                pin::pin(&spec.store, spec, broker).await?;
            }
            Ok(Session { socket, broker, welcome })
        }
        to_node::Body::Refuse(refuse) => Err(refused(&refuse)),
        to_node::Body::Challenge(_)
        | to_node::Body::Beat(_)
        | to_node::Body::Job(_)
        | to_node::Body::Credit(_)
        | to_node::Body::Cancel(_)
        | to_node::Body::Receipt(_)
        | to_node::Body::Bye(_) => Err(NoSession::Failed("the broker did not answer the greeting".into())),
    }
}

async fn hello(spec: &LinkSpec, challenge: &Challenge) -> Result<Hello, NoSession> {
    let node = node_id(&spec.key).to_vec();
    let receipts_to = spec.store.receipts_to(&challenge.broker, &node).await?;
    Ok(Hello {
        oldest_version: LINK_VERSION_OLDEST,
        newest_version: LINK_VERSION,
        node,
        signature: receipt::sign(&spec.key, &receipt::hello_bytes(&challenge.nonce, &challenge.broker)),
        invite: spec.invite.clone(),
        software: concat!("wakati-node ", env!("CARGO_PKG_VERSION")).into(),
        receipts_to,
    })
}

fn refused(refuse: &Refuse) -> NoSession {
    let reason = refuse.reason();
    let unasked = match reason {
        RefuseReason::AlreadyHere | RefuseReason::Full => Some(RETRY_NEUTRAL),
        RefuseReason::Version | RefuseReason::Unknown => Some(RETRY_OPERATOR),
        RefuseReason::Signature | RefuseReason::NotInvited | RefuseReason::BadInvite => None,
    };
    let retry_after = match refuse.retry_after_ms {
        0 => unasked,
        ms => Some(Duration::from_millis(u64::from(ms)).max(RETRY_LEAST)),
    };
    NoSession::Refused { refusal: Refusal::Broker(reason), retry_after }
}

/// The next frame of the greeting.
async fn next(socket: &mut Socket) -> Result<to_node::Body, NoSession> {
    while let Some(message) = socket.next().await {
        if let Some(body) = body(&message?)? {
            return Ok(body);
        }
    }
    Err(NoSession::Failed("the broker hung up during the greeting".into()))
}

/// What a WebSocket message says; nothing for pings and for words of a later version.
pub(super) fn body(message: &Message) -> Result<Option<to_node::Body>, prost::DecodeError> {
    match message {
        Message::Binary(bytes) => Ok(ToNode::decode(bytes.as_ref())?.body),
        Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {
            Ok(None)
        }
    }
}

/// One frame as a WebSocket message.
pub(super) fn message(body: to_broker::Body) -> Message {
    Message::binary(ToBroker::from(body).encode_to_vec())
}

/// Why a socket ended, for the log.
pub(super) fn in_words(error: &tungstenite::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_the_owner_cannot_end_is_tried_again_and_never_at_once() {
        for (reason, retry_after_ms, seconds) in [
            (RefuseReason::AlreadyHere, 0, Some(3)),
            (RefuseReason::Full, 0, Some(3)),
            (RefuseReason::Full, 1, Some(1)),
            (RefuseReason::Full, 90_000, Some(90)),
            (RefuseReason::Version, 0, Some(60)),
            (RefuseReason::Unknown, 0, Some(60)),
            (RefuseReason::BadInvite, 0, None),
            (RefuseReason::NotInvited, 5_000, Some(5)),
        ] {
            let refuse = Refuse { reason: reason.into(), retry_after_ms };
            let NoSession::Refused { retry_after, .. } = refused(&refuse) else { panic!("{reason:?}") };
            assert_eq!(retry_after.map(|wait| wait.as_secs()), seconds, "{reason:?}");
        }
    }

    #[test]
    fn only_a_broker_on_this_machine_is_dialled_without_encryption() {
        for (url, expected) in [
            ("http://127.0.0.1:8080", Some("ws://127.0.0.1:8080/node/v1")),
            ("http://127.0.0.1:8080/", Some("ws://127.0.0.1:8080/node/v1")),
            ("http://localhost:9", Some("ws://localhost:9/node/v1")),
            ("http://[::1]:9", Some("ws://[::1]:9/node/v1")),
            ("http://192.168.0.4:9", None),
            ("http://example.com", None),
            ("http://127.0.0.1.example.com", None),
            ("http://localhost@example.com", None),
            ("http://example.com@127.0.0.1", None),
            ("https://127.0.0.1:8080", None),
            ("http://127.0.0.1:8080/elsewhere", None),
            ("127.0.0.1:8080", None),
            ("", None),
        ] {
            assert_eq!(link_url(url).ok().as_deref(), expected, "{url}");
        }
    }
}
