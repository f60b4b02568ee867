//! The node link: one WebSocket for each node.
//!
//! ```text
//! Challenge -> Hello -> Welcome -> ( reads | writes | clerk ) -> gone
//!                   \-> Refuse
//! ```
//!
//! A session is one task with three parts that run side by side: one reads frames, one writes them, and the clerk
//! does what needs the books (receipts), so that tokens never wait for the disk. When one part ends, all do.

mod clerk;

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use prost::Message as _;
use tokio::sync::mpsc;
use tokio::time::timeout;
use wakati_ledger::Admission;
use wakati_market::{Offer, Session};
use wakati_protocol::ids::{ModelDigest, NodeId};
use wakati_protocol::job::Finish;
use wakati_protocol::link::{
    Bye, Challenge, Hello, ModelOffer, Refuse, RefuseReason, ToBroker, ToNode, Welcome, to_broker, to_node,
};
use wakati_protocol::money::{Price, Prices};
use wakati_protocol::receipt::{ReceiptAck, hello_bytes, verify};
use wakati_protocol::{LINK_VERSION, LINK_VERSION_OLDEST};

use crate::app::App;
use crate::clock::now;
use crate::hub::{AlreadyHere, News, Seat};
use crate::measures::{self, Dropped};

/// The largest frame that a node may send. The largest honest one, 256 tokens with twenty alternatives each, is about
/// 70 KB.
pub const LARGEST_FRAME: usize = 256 << 10;
/// How long a node may take to answer the challenge.
const HELLO: Duration = Duration::from_secs(10);
/// How long one frame may take to leave.
const WRITE: Duration = Duration::from_secs(10);
/// Frames that make no sense before the link is ended.
const STRIKES: u32 = 20;
/// How long a node that could come in later is asked to wait.
const COME_LATER_MS: u32 = 60_000;
/// Acknowledgements that wait for the books. More are dropped: the receipts come again.
const ACKS: usize = 256;
/// Limits on an offer: models, dollars per million tokens, jobs at once, tokens.
const MOST_MODELS: usize = 16;
const HIGHEST_PRICE: i64 = 1_000_000 * 1_000_000_000;
const MOST_SLOTS: u32 = 1024;
const LONGEST_CONTEXT: u32 = 1 << 24;

type Out = SplitSink<WebSocket, Message>;
type In = SplitStream<WebSocket>;

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    /// By the broker: it ends, or another link of the node has taken over.
    Closed,
    /// By the node, with a word or without one.
    Left,
    /// The connection is gone, or does not take what is written.
    Broken,
    /// Two beats were missed.
    Silent,
    /// The node kept sending what makes no sense.
    Hostile,
}

impl Gone {
    /// For the log.
    fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Left => "left",
            Self::Broken => "broken",
            Self::Silent => "silent",
            Self::Hostile => "hostile",
        }
    }
}

/// Talks to one node until its link ends.
pub async fn serve_node(app: &App, socket: WebSocket) {
    let (mut out, mut inward) = socket.split();
    let hello = match timeout(HELLO, greet(app, &mut out, &mut inward)).await {
        Ok(Some(admitted)) => admitted,
        Ok(None) | Err(_) => return,
    };
    let seated = hello.and_then(|(node, receipts_to)| {
        let seat = app.hub.arrive(node, &app.closing, Instant::now());
        seat.map(|seat| (node, receipts_to, seat)).map_err(|AlreadyHere| RefuseReason::AlreadyHere)
    });
    let (node, receipts_to, seat) = match seated {
        Ok(seated) => seated,
        Err(reason) => {
            tracing::info!(?reason, "node not let in");
            let later = matches!(reason, RefuseReason::Full | RefuseReason::AlreadyHere);
            let retry_after_ms = if later { COME_LATER_MS } else { 0 };
            let refuse = Refuse { reason: reason.into(), retry_after_ms };
            let _ = write(&mut out, to_node::Body::Refuse(refuse).into()).await;
            let _ = timeout(WRITE, out.close()).await;
            return;
        }
    };
    let session = seat.session;
    tracing::info!(%node, "node joined");
    let gone = run(app, node, receipts_to, seat, out, inward).await;
    app.hub.leave(&node, session);
    tracing::info!(%node, why = gone.word(), "node left");
}

/// The challenge and its answer. `None` when the other side does not speak the protocol.
async fn greet(app: &App, out: &mut Out, inward: &mut In) -> Option<Result<(NodeId, u64), RefuseReason>> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).ok()?;
    let broker = app.id().to_vec();
    let challenge = Challenge { nonce: nonce.to_vec(), broker: broker.clone() };
    write(out, to_node::Body::Challenge(challenge).into()).await.ok()?;
    let Message::Binary(bytes) = inward.next().await?.ok()? else { return None };
    let Some(to_broker::Body::Hello(hello)) = ToBroker::decode(bytes).ok()?.body else { return None };
    Some(admit(app, &hello, &hello_bytes(&nonce, &broker)).await)
}

async fn admit(app: &App, hello: &Hello, signed: &[u8]) -> Result<(NodeId, u64), RefuseReason> {
    if hello.oldest_version > LINK_VERSION || hello.newest_version < LINK_VERSION_OLDEST {
        return Err(RefuseReason::Version);
    }
    let node = NodeId::from_slice(&hello.node).map_err(|_| RefuseReason::Signature)?;
    verify(&node.0, signed, &hello.signature).map_err(|_| RefuseReason::Signature)?;
    if app.hub.nodes() >= app.settings.most_nodes {
        return Err(RefuseReason::Full);
    }
    match app.ledger.admit(&node, &hello.invite, now()).await {
        Ok(Admission::Owner(_)) => Ok((node, hello.receipts_to)),
        Ok(Admission::NotInvited) => Err(RefuseReason::NotInvited),
        Ok(Admission::BadInvite) => Err(RefuseReason::BadInvite),
        Err(error) => {
            tracing::error!(%error, "a node could not be looked up, so it was asked to come again later");
            Err(RefuseReason::Full)
        }
    }
}

/// The session itself. Returns why it ended.
async fn run(app: &App, node: NodeId, receipts_to: u64, seat: Seat, mut out: Out, mut inward: In) -> Gone {
    let Seat { session, mut outbound, close } = seat;
    let beat_ms = u32::try_from(app.settings.beat.as_millis()).unwrap_or(u32::MAX);
    // A second, and more where many nodes would come back at once: a thousand a second can be let in.
    let reconnect_window_ms = 1000 + u32::try_from(app.hub.nodes()).unwrap_or(u32::MAX / 2);
    let mut name = vec![0; 16];
    let _ = getrandom::fill(&mut name);
    let welcome = Welcome { version: LINK_VERSION, session: name, beat_ms, reconnect_window_ms };
    if write(&mut out, to_node::Body::Welcome(welcome).into()).await.is_err() {
        return Gone::Broken;
    }
    let (ack_in, mut acks) = mpsc::channel(ACKS);
    let writer = async {
        while let Some(frame) = outbound.recv().await {
            if write(&mut out, frame).await.is_err() {
                return Gone::Broken;
            }
        }
        // The hub has let go of this link.
        Gone::Closed
    };
    let reader = read_all(app, node, session, &mut inward, ack_in);
    let clerk = clerk::keep_receipts(app, node, receipts_to, &mut acks);
    let gone = tokio::select! {
        gone = writer => gone,
        gone = reader => gone,
        gone = clerk => gone,
        () = close.cancelled() => Gone::Closed,
    };
    if gone == Gone::Closed {
        let _ = write(&mut out, to_node::Body::Bye(Bye {}).into()).await;
        let _ = timeout(WRITE, out.close()).await;
    }
    gone
}

async fn read_all(
    app: &App,
    node: NodeId,
    session: Session,
    inward: &mut In,
    acks: mpsc::Sender<ReceiptAck>,
) -> Gone {
    // Two missed beats, and a little for the road.
    let silence = app.settings.beat * 2 + app.settings.beat / 5;
    let mut strikes = 0;
    loop {
        let message = match timeout(silence, inward.next()).await {
            Err(_) => return Gone::Silent,
            Ok(None | Some(Err(_))) => return Gone::Broken,
            Ok(Some(Ok(message))) => message,
        };
        let sound = match message {
            Message::Binary(bytes) => match ToBroker::decode(bytes).ok().and_then(|frame| frame.body) {
                Some(to_broker::Body::Bye(_)) => return Gone::Left,
                Some(body) => take(app, node, session, &acks, body),
                None => false,
            },
            Message::Close(_) => return Gone::Left,
            Message::Ping(_) | Message::Pong(_) => true,
            Message::Text(_) => false,
        };
        if !sound {
            measures::dropped(Dropped::Hostile);
            strikes += 1;
            if strikes >= STRIKES {
                tracing::warn!(%node, "the node keeps sending frames that make no sense, so its link is closed");
                return Gone::Hostile;
            }
        }
    }
}

/// Takes one frame. False when it makes no sense.
fn take(
    app: &App,
    node: NodeId,
    session: Session,
    acks: &mpsc::Sender<ReceiptAck>,
    body: to_broker::Body,
) -> bool {
    match body {
        to_broker::Body::Offer(offer) => {
            let offers: Option<Vec<Offer>> = offer.models.iter().map(read_offer).collect();
            let Some(offers) = offers.filter(|offers| offers.len() <= MOST_MODELS) else { return false };
            app.hub.offer(&node, session, &offers);
            true
        }
        to_broker::Body::Beat(beat) => {
            app.hub.beat(&node, session, beat.number, Instant::now());
            true
        }
        to_broker::Body::Tokens(tokens) => {
            let sound = !tokens.ids.is_empty()
                && (tokens.logprobs.is_empty() || tokens.logprobs.len() == tokens.ids.len());
            if sound {
                app.hub.news(session, &tokens.job.clone(), tokens.attempt, News::Tokens(tokens));
            }
            sound
        }
        to_broker::Body::End(end) => {
            let sound = Finish::try_from(end.finish).is_ok_and(|finish| finish != Finish::Unknown);
            if sound {
                app.hub.news(session, &end.job.clone(), end.attempt, News::End(end));
            }
            sound
        }
        to_broker::Body::Yielding(_) => {
            app.hub.yielding(&node, session);
            true
        }
        to_broker::Body::ReceiptAck(ack) => {
            let _ = acks.try_send(ack);
            true
        }
        // A second Hello says nothing that is still asked.
        to_broker::Body::Hello(_) | to_broker::Body::Bye(_) => false,
    }
}

fn read_offer(offer: &ModelOffer) -> Option<Offer> {
    let sane = |price: i64| (0..=HIGHEST_PRICE).contains(&price);
    let sound = sane(offer.input_price)
        && sane(offer.output_price)
        && offer.slots <= MOST_SLOTS
        && (1..=LONGEST_CONTEXT).contains(&offer.context);
    let model = ModelDigest::from_slice(&offer.model).ok()?;
    sound.then_some(Offer {
        model,
        context: offer.context,
        slots: offer.slots,
        prices: Prices { input: Price(offer.input_price), output: Price(offer.output_price) },
    })
}

async fn write(out: &mut Out, frame: ToNode) -> Result<(), ()> {
    let message = Message::Binary(Bytes::from(frame.encode_to_vec()));
    match timeout(WRITE, out.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(()),
    }
}
