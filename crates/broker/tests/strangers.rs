//! What those who pay nothing, or lie, can cost: little, and never for long.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{Broker, FakeNode, OUTPUT, quick, within};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;
use wakati_broker::operator;
use wakati_broker::settings::Settings;
use wakati_protocol::link::{Beat, RefuseReason, to_broker, to_node};
use wakati_protocol::receipt::ReceiptAck;

/// Settings in which no link ends for lack of beats while a test waits.
fn patient() -> Settings {
    Settings { beat: Duration::from_secs(60), ..quick() }
}

#[tokio::test]
async fn a_body_of_empty_messages_is_refused_before_it_is_read_as_tokens() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let _node = broker.node(1, OUTPUT).await;
    let mut messages = vec![json!({"role": "user", "content": "<|im_end|>"})];
    messages.resize((4 << 20) / 32, json!({"role": "user", "content": ""}));
    let body = json!({"model": "bytes", "messages": messages}).to_string();
    let began = Instant::now();
    let url = format!("{}/v1/chat/completions", broker.url);
    let request = broker.http.post(url).bearer_auth(key).header("content-type", "application/json");
    let response = within("a refusal", request.body(body).send()).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(response.status(), 400);
    let error: Value = response.json().await.unwrap();
    assert_eq!(error["error"]["param"], "messages");
}

#[tokio::test]
async fn a_stranger_is_sent_away_before_the_body_is_read() {
    let broker = Broker::start(quick()).await;
    let mut socket = tokio::net::TcpStream::connect(broker.running.address).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: broker\r\nContent-Type: application/json\r\n\
        Authorization: Bearer wk-guess\r\nContent-Length: 4000000\r\n\r\n{";
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    within("an answer", socket.read_exact(&mut answer)).await.unwrap();
    assert_eq!(std::str::from_utf8(&answer).unwrap(), "HTTP/1.1 401");
}

#[tokio::test]
async fn a_frame_that_no_honest_node_sends_ends_the_link() {
    let broker = Broker::start(patient()).await;
    let mut node = broker.node(1, OUTPUT).await;
    node.raw(Message::Binary(vec![0; 300 << 10].into())).await;
    node.say(to_broker::Body::Beat(Beat::default())).await;
    assert_eq!(node.hear().await, None);
}

#[tokio::test]
async fn a_node_that_acknowledges_what_it_never_got_is_shown_out() {
    let broker = Broker::start(patient()).await;
    let mut node = broker.node(1, OUTPUT).await;
    for sequence in 1..=25 {
        node.say(to_broker::Body::ReceiptAck(ReceiptAck { sequence, node_signature: vec![0; 64] })).await;
    }
    while node.hear().await.is_some() {}
}

#[tokio::test]
async fn of_two_machines_with_one_key_one_serves_and_the_other_waits() {
    let broker = Broker::start(patient()).await;
    let invite = operator::invite(&broker.home, "ann").await.unwrap();
    let mut links = Vec::new();
    for _ in 0..3 {
        links.push(FakeNode::join(&broker.url, 1, &invite, 0).await);
    }
    let mut late = FakeNode::knock(&broker.url, 1, &invite, 0).await;
    let Some(to_node::Body::Refuse(refuse)) = late.hear().await else { panic!("let in") };
    assert_eq!((refuse.reason(), refuse.retry_after_ms), (RefuseReason::AlreadyHere, 60_000));
    let mut last = links.pop().unwrap();
    last.say(to_broker::Body::Beat(Beat { number: 7, ..Beat::default() })).await;
    assert!(matches!(last.hear().await, Some(to_node::Body::Beat(beat)) if beat.number == 7));
}
