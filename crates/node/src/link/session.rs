//! A link that stands: frames in, words out, beats, and noticing that it is dead.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::tungstenite::Message;
use wakati_protocol::link::{Beat, to_broker, to_node};

use super::dial::{self, Session, Socket};
use super::{Joined, LinkEvent, LinkSpec, WORDS};

/// A broker's wish for beats is kept within these.
const BEATS: std::ops::RangeInclusive<u64> = 100..=60_000;
/// How long the other side may take to hang up after a polite end.
const HANG_UP: Duration = Duration::from_secs(1);

/// Runs one session and says why it ended.
pub(super) async fn run(session: Session, spec: &LinkSpec, events: &mpsc::Sender<LinkEvent>) -> String {
    let Session { socket, broker, welcome } = session;
    let every = Duration::from_millis(u64::from(welcome.beat_ms).clamp(*BEATS.start(), *BEATS.end()));
    let (words, spoken) = mpsc::channel(WORDS);
    if events.send(LinkEvent::Joined(Joined { broker, welcome, words })).await.is_err() {
        return "the node ended".into();
    }
    let (to, from) = socket.split();
    // Reading never waits for writing: with both sides' buffers full, each would wait for the other.
    tokio::select! {
        cause = read(from, events, every) => cause,
        cause = speak(to, spoken, spec.beat.clone(), every) => cause,
    }
}

/// Reads until the link is dead: closed, broken, or silent for two beats. The broker answers every beat.
async fn read(mut from: SplitStream<Socket>, events: &mpsc::Sender<LinkEvent>, every: Duration) -> String {
    // Half a beat more for the answer to travel.
    let silence = every * 2 + every / 2;
    loop {
        let message = match tokio::time::timeout(silence, from.next()).await {
            Err(_) => return "the broker was silent for two beats".into(),
            Ok(None) => return "the broker hung up".into(),
            Ok(Some(Err(error))) => return dial::in_words(&error),
            Ok(Some(Ok(message))) => message,
        };
        let body = match dial::body(&message) {
            Ok(Some(to_node::Body::Beat(_))) | Ok(None) => continue,
            Ok(Some(to_node::Body::Bye(_))) => return "the broker said goodbye".into(),
            Ok(Some(body)) => body,
            Err(error) => return format!("a frame could not be read: {error}"),
        };
        if events.send(LinkEvent::Frame(body)).await.is_err() {
            return "the node ended".into();
        }
    }
}

/// Sends words and beats until the node has no more to say, or the socket does not take them.
async fn speak(
    mut to: SplitSink<Socket, Message>,
    mut words: mpsc::Receiver<to_broker::Body>,
    beat: watch::Receiver<Beat>,
    every: Duration,
) -> String {
    let mut ticks = tokio::time::interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut number = 0;
    loop {
        let sent = tokio::select! {
            word = words.recv() => match word {
                Some(word) => send(&mut to, word, &mut words).await,
                None => break,
            },
            _ = ticks.tick() => {
                number += 1;
                let beat = Beat { number, ..beat.borrow().clone() };
                to.send(dial::message(to_broker::Body::Beat(beat))).await
            }
        };
        if let Err(error) = sent {
            return dial::in_words(&error);
        }
    }
    // The reader ends when the broker hangs up in turn.
    let _ = to.close().await;
    tokio::time::sleep(HANG_UP).await;
    "the node hung up".into()
}

/// Sends a word and what waits behind it, with one flush.
async fn send(
    to: &mut SplitSink<Socket, Message>,
    word: to_broker::Body,
    words: &mut mpsc::Receiver<to_broker::Body>,
) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    to.feed(dial::message(word)).await?;
    while let Ok(word) = words.try_recv() {
        to.feed(dial::message(word)).await?;
    }
    to.flush().await
}
