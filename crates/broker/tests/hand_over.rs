//! Jobs that outlive their node, nodes that lie, and brokers that crash.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Broker, FakeNode, INPUT, OUTPUT, events, quick, text_of, within};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use wakati_broker::operator;
use wakati_broker::settings::Settings;
use wakati_protocol::job::{Finish, Tokens};
use wakati_protocol::link::{Bye, RefuseReason, to_broker, to_node};
use wakati_protocol::receipt::verify;

const PROMPT: i64 = 10;
const TEXT: &str = "The quick brown fox jumps over the lazy dog";

/// How a node goes away in mid-stream.
#[derive(Debug, Clone, Copy)]
enum Way {
    Yields,
    Dies,
    Fails,
    LosesTokens,
}

async fn hand_over(way: Way, at: usize) {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    // The first one is cheaper, so it is matched first.
    let mut first = broker.node(1, OUTPUT).await;
    let mut second = broker.node(2, OUTPUT + 1_000_000).await;
    let asked = broker.ask(&key, json!({"stream": true, "max_tokens": 100, "seed": 3}));
    let job = first.job().await;
    assert_eq!((job.attempt, job.emitted.len()), (1, 0));
    for (position, letter) in TEXT[..at].char_indices() {
        first.tokens(&job, position as u32, &letter.to_string()).await;
    }
    match way {
        Way::Yields => first.yields().await,
        Way::Dies => first.leave().await,
        Way::Fails => first.end(&job, Finish::Failed, at as u32).await,
        Way::LosesTokens => first.end(&job, Finish::Stop, at as u32 + 3).await,
    }
    let again = second.job().await;
    assert_eq!(again.attempt, 2);
    assert_eq!(again.prompt, job.prompt);
    assert_eq!((again.sampling.seed, again.limit), (3, 100));
    let emitted: Vec<u8> = again.emitted.iter().map(|id| *id as u8).collect();
    assert_eq!(emitted, &TEXT.as_bytes()[..at]);
    second.tokens(&again, at as u32, &TEXT[at..]).await;
    second.end(&again, Finish::Stop, TEXT.len() as u32).await;
    let events = events(asked.await.unwrap()).await;
    assert_eq!(text_of(&events), TEXT, "{way:?} at {at}");
    assert_eq!(events.last().unwrap(), "[DONE]");
    let ids: std::collections::BTreeSet<String> = events[..events.len() - 1]
        .iter()
        .map(|event| serde_json::from_str::<Value>(event).unwrap()["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 1);

    let books = broker.settled_books().await;
    let job = &books["jobs"][0];
    let whole = TEXT.len() as i64;
    let rest = whole - at as i64;
    // What begins anew costs what the node asks that serves it.
    let price = if at == 0 { OUTPUT + 1_000_000 } else { OUTPUT };
    assert_eq!(job["charge"], (PROMPT * INPUT + whole * price) / 1_000_000);
    assert_eq!(job["attempts"][0]["positions"], at);
    assert_eq!(job["attempts"][1]["positions"], rest);
    let paid = |attempt: usize| job["attempts"][attempt]["pay"].as_i64().unwrap();
    let first_pay = if at == 0 { 0 } else { (PROMPT * INPUT + at as i64 * OUTPUT) * 7 / 10_000_000 };
    let second_pay = ((PROMPT + at as i64) * INPUT + rest * (OUTPUT + 1_000_000)) * 7 / 10_000_000;
    assert_eq!((paid(0), paid(1)), (first_pay, second_pay));
    let sum = |key: &str| books[key].as_i64().unwrap();
    assert_eq!(job["charge"].as_i64().unwrap() + sum("absorption"), paid(0) + paid(1) + sum("fee"));
}

#[tokio::test]
async fn a_node_that_leaves_at_any_token_leaves_no_seam() {
    for way in [Way::Yields, Way::Dies, Way::Fails, Way::LosesTokens] {
        for at in [0, 1, 17] {
            hand_over(way, at).await;
        }
    }
}

#[tokio::test]
async fn three_nodes_may_leave_even_while_reading() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut nodes = Vec::new();
    for n in 0..4_u8 {
        nodes.push(broker.node(n + 1, OUTPUT + i64::from(n) * 1_000_000).await);
    }
    let asked = broker.ask(&key, json!({"stream": true}));
    let mut rest = nodes.into_iter();
    let mut first = rest.next().unwrap();
    let job = first.job().await;
    first.tokens(&job, 0, "abc").await;
    first.leave().await;
    for _ in 0..2 {
        let mut next = rest.next().unwrap();
        assert_eq!(next.job().await.emitted, [97, 98, 99]);
        next.leave().await;
    }
    let mut last = rest.next().unwrap();
    let job = last.job().await;
    assert_eq!(job.attempt, 4);
    last.tokens(&job, 3, "d").await;
    last.end(&job, Finish::Stop, 4).await;
    assert_eq!(text_of(&events(asked.await.unwrap()).await), "abcd");
    let books = broker.settled_books().await;
    let positions: Vec<i64> = books["jobs"][0]["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["positions"].as_i64().unwrap())
        .collect();
    assert_eq!(positions, [3, 0, 0, 1]);
}

#[tokio::test]
async fn an_answer_that_nobody_can_finish_ends_in_an_error_frame_and_only_what_came_is_charged() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    node.tokens(&job, 0, "abc").await;
    let response = asked.await.unwrap();
    node.leave().await;
    let events = events(response).await;
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(last["error"]["type"], "server_error");
    assert!(events.iter().all(|event| event != "[DONE]" && !event.contains("\"finish_reason\":\"")));
    let books = broker.settled_books().await;
    assert_eq!(books["jobs"][0]["finish"], "failed");
    assert_eq!(books["jobs"][0]["completion_tokens"], 3);
}

#[tokio::test]
async fn a_job_that_fails_two_nodes_is_not_given_to_a_third() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut first = broker.node(1, OUTPUT).await;
    let mut second = broker.node(2, OUTPUT + 1).await;
    let _third = broker.node(3, OUTPUT + 2).await;
    let asked = broker.ask(&key, json!({}));
    for node in [&mut first, &mut second] {
        let job = node.job().await;
        node.end(&job, Finish::Failed, 0).await;
    }
    assert_eq!(asked.await.unwrap().status(), 502);
    let books = broker.settled_books().await;
    assert_eq!(books["jobs"][0]["attempts"].as_array().unwrap().len(), 2);
    assert_eq!(books["jobs"][0]["charge"], 0);
}

#[tokio::test]
async fn a_job_that_two_nodes_refuse_is_the_consumers_and_one_that_one_refuses_is_not() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut first = broker.node_that_offers(1, broker.at(INPUT, OUTPUT)).await;
    let mut second = broker.node_that_offers(2, broker.at(INPUT, OUTPUT * 2)).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    for node in [&mut first, &mut second] {
        let job = node.job().await;
        node.end(&job, Finish::Refused, 0).await;
    }
    assert_eq!(asked.await.unwrap().status(), 400);
    let asked = broker.ask(&key, json!({}));
    let job = first.job().await;
    first.end(&job, Finish::Refused, 0).await;
    let job = second.job().await;
    second.tokens(&job, 0, "ok").await;
    second.end(&job, Finish::Stop, 2).await;
    assert_eq!(asked.await.unwrap().status(), 200);
    second.leave().await;
    let asked = broker.ask(&key, json!({}));
    let job = first.job().await;
    first.end(&job, Finish::Refused, 0).await;
    assert_eq!(asked.await.unwrap().status(), 502);
}

#[tokio::test]
async fn a_busy_node_is_asked_again() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({}));
    let job = node.job().await;
    node.end(&job, Finish::Busy, 0).await;
    let again = node.job().await;
    assert_eq!(again.attempt, 2);
    node.tokens(&again, 0, "ok").await;
    node.end(&again, Finish::Stop, 2).await;
    assert_eq!(asked.await.unwrap().status(), 200);
}

#[tokio::test]
async fn foreign_late_and_repeated_tokens_change_nothing() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let mut stranger = broker.node(2, OUTPUT * 2).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    stranger.tokens(&job, 0, "evil").await;
    node.tokens(&job, 0, "abc").await;
    node.tokens(&job, 0, "abc").await;
    node.tokens(&job, 9, "far").await;
    let mut old = job.clone();
    old.attempt = 7;
    node.tokens(&old, 3, "old").await;
    stranger.end(&job, Finish::Stop, 3).await;
    node.tokens(&job, 3, "def").await;
    node.end(&job, Finish::Stop, 6).await;
    assert_eq!(text_of(&events(asked.await.unwrap()).await), "abcdef");
    assert_eq!(broker.settled_books().await["jobs"][0]["completion_tokens"], 6);
}

#[tokio::test]
async fn a_node_whose_end_is_lost_is_paid_for_all_it_served() {
    let settings = Settings { token_gap: Duration::from_millis(300), ..quick() };
    let broker = Broker::start(settings).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    node.tokens(&job, 0, "abc").await;
    assert_eq!(text_of(&events(asked.await.unwrap()).await), "abc");
    let books = broker.settled_books().await;
    assert_eq!(books["jobs"][0]["attempts"][0]["positions"], 3);
    let pay = (PROMPT * INPUT + 3 * OUTPUT) * 7 / 10_000_000;
    assert_eq!(books["jobs"][0]["attempts"][0]["pay"], pay);
}

#[tokio::test]
async fn a_receipt_comes_again_until_its_node_has_signed_it() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({}));
    let job = node.job().await;
    node.tokens(&job, 0, "abc").await;
    node.end(&job, Finish::Stop, 3).await;
    assert_eq!(asked.await.unwrap().status(), 200);
    let receipt = node.receipt().await;
    assert_eq!((receipt.sequence, receipt.positions, receipt.first_position), (1, 3, 0));
    assert_eq!(node.receipt().await, receipt);
    node.leave().await;
    let mut back = FakeNode::knock(&broker.url, 1, "", 0).await;
    let Some(to_node::Body::Welcome(_)) = back.hear().await else { panic!("not let in again") };
    assert_eq!(back.receipt().await, receipt);
    back.acknowledge(&receipt).await;
    // Acknowledged and known to be stored: nothing comes any more. A goodbye ends the link, so the rest can be read.
    within("the acknowledgement to be noted", async {
        let file = broker.folder.path().join("broker.sqlite");
        let ledger = wakati_ledger::Ledger::open(&file).await.unwrap();
        while !ledger.unacked(&back.id()).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    back.say(to_broker::Body::Bye(Bye {})).await;
    let mut last = FakeNode::knock(&broker.url, 1, "", 1).await;
    assert!(matches!(last.hear().await, Some(to_node::Body::Welcome(_))));
    let books = broker.settled_books().await;
    assert_eq!(books["owners"][0]["nodes"][0]["receipts"], 1);
    assert_eq!(books["owners"][0]["nodes"][0]["earned"], receipt.pay);
}

#[tokio::test]
async fn nodes_are_let_in_by_key_and_invite_only_and_the_newest_link_wins() {
    let broker = Broker::start(quick()).await;
    let refusal = async |seed, invite: &str| {
        let mut node = FakeNode::knock(&broker.url, seed, invite, 0).await;
        match node.hear().await {
            Some(to_node::Body::Refuse(refuse)) => refuse.reason(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refusal(1, "").await, RefuseReason::NotInvited);
    assert_eq!(refusal(1, "wi-guess").await, RefuseReason::BadInvite);
    let invite = operator::invite(&broker.home, "ann").await.unwrap();
    let mut old = FakeNode::join(&broker.url, 1, &invite, 0).await;
    assert_eq!(refusal(2, &invite).await, RefuseReason::BadInvite);
    let _new = FakeNode::join(&broker.url, 1, &invite, 0).await;
    assert!(matches!(old.hear().await, Some(to_node::Body::Bye(_)) | None));
}

#[tokio::test]
async fn a_node_that_sends_garbage_is_shown_out_and_one_that_is_silent_is_dead() {
    let broker = Broker::start(Settings { beat: Duration::from_millis(100), ..quick() }).await;
    let mut noisy = broker.node(1, OUTPUT).await;
    for _ in 0..25 {
        noisy.raw(Message::Binary(vec![0xff; 40].into())).await;
    }
    while noisy.hear().await.is_some() {}
    let mut silent = broker.node(2, OUTPUT).await;
    while silent.hear().await.is_some() {}
    within("the ghost to go", async {
        while broker.get("/v1/models/bytes").await["wakati"]["nodes"] != 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn senseless_offers_are_not_taken() {
    let broker = Broker::start(quick()).await;
    let invite = operator::invite(&broker.home, "ann").await.unwrap();
    let mut node = FakeNode::join(&broker.url, 1, &invite, 0).await;
    node.offer(broker.model, 1, -5).await;
    node.offer(broker.model, 1, i64::MAX).await;
    node.offer(broker.model, u32::MAX, 5).await;
    node.offer(broker.model, 1, OUTPUT).await;
    broker.until_offered(broker.model).await;
    assert_eq!(broker.get("/v1/models/bytes").await["wakati"]["slots"], 1);
    // A token out of the vocabulary is garbage too.
    let key = broker.key("1").await;
    let asked = broker.ask(&key, json!({}));
    let job = node.job().await;
    let (id, attempt) = (job.job.clone(), job.attempt);
    let tokens = Tokens { job: id, attempt, first_position: 0, ids: vec![5000], logprobs: Vec::new() };
    node.say(to_broker::Body::Tokens(tokens)).await;
    assert_eq!(asked.await.unwrap().status(), 502);
}

#[tokio::test]
async fn a_crash_in_mid_job_bills_no_more_than_was_delivered() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    node.tokens(&job, 0, "hello").await;
    let mut response = asked.await.unwrap();
    let mut seen = String::new();
    while !seen.contains("hello") {
        let chunk = within("a chunk", response.chunk()).await.unwrap().unwrap();
        seen.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    within("the positions to be on the disk", async {
        while operator::books(&broker.home).await.unwrap().jobs[0].completion_tokens < 5 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    node.tokens(&job, 5, "never").await;
    let broker = broker.crash_and_restart(quick()).await;
    let books = broker.settled_books().await;
    assert_eq!(books["jobs"][0]["finish"], "interrupted");
    let tokens = books["jobs"][0]["completion_tokens"].as_i64().unwrap();
    assert!((5..=10).contains(&tokens));
    assert_eq!(books["consumers"][0]["held"], 0);
    // The node comes back and gets the receipt that it never saw.
    let mut back = FakeNode::join(&broker.url, 1, "", 0).await;
    assert_eq!(i64::from(back.receipt().await.positions), tokens);
}

#[tokio::test]
async fn a_polite_end_sends_an_error_frame_to_what_does_not_end_in_time() {
    let broker = Broker::start(Settings { drain: Duration::from_millis(200), ..quick() }).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    node.tokens(&job, 0, "abc").await;
    let response = asked.await.unwrap();
    let public = node.id();
    broker.running.stop().await;
    let events = events(response).await;
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "restarting");
    let mut receipt = None;
    while let Some(heard) = node.hear().await {
        if let to_node::Body::Receipt(heard) = heard {
            receipt = Some(heard);
        }
    }
    let receipt = receipt.unwrap();
    assert_eq!((receipt.positions, receipt.node.as_slice()), (3, public.0.as_slice()));
    let broker_key = std::fs::read_to_string(broker.folder.path().join("broker.key")).unwrap();
    let mut seed = [0; 32];
    hex::decode_to_slice(broker_key, &mut seed).unwrap();
    let public = ed25519_dalek::SigningKey::from_bytes(&seed).verifying_key();
    verify(public.as_bytes(), &receipt.signed_bytes(), &receipt.broker_signature).unwrap();
}
