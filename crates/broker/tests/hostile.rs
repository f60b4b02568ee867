//! Nodes that lie, dawdle, repeat themselves or keep failing.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Broker, FakeNode, INPUT, OUTPUT, STOP_ID, events, quick, text_of, within};
use serde_json::{Value, json};
use wakati_broker::settings::Settings;
use wakati_protocol::job::{Finish, Job, Logprobs, TokenLogprob, Tokens};
use wakati_protocol::link::{to_broker, to_node};

#[tokio::test]
async fn a_node_that_says_busy_after_its_first_token_has_failed() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    node.tokens(&job, 0, "a").await;
    node.end(&job, Finish::Busy, 1).await;
    let events = events(asked.await.unwrap()).await;
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "nodes_failed");
    let books = broker.settled_books().await;
    assert_eq!(books["jobs"][0]["attempts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_node_that_is_always_busy_is_asked_sixteen_times_at_most() {
    let broker = Broker::start(Settings { replacement: Duration::from_secs(60), ..quick() }).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({}));
    for attempt in 1..=16 {
        let job = node.job().await;
        assert_eq!(job.attempt, attempt);
        node.end(&job, Finish::Busy, 0).await;
    }
    assert_eq!(asked.await.unwrap().status(), 429);
}

#[tokio::test]
async fn a_node_that_repeats_itself_is_taken_off_the_job() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut first = broker.node_that_offers(1, broker.at(INPUT, OUTPUT)).await;
    let mut second = broker.node_that_offers(2, broker.at(INPUT, OUTPUT * 11 / 10)).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = first.job().await;
    for _ in 0..9 {
        first.tokens(&job, 0, "a").await;
    }
    let again = second.job().await;
    assert_eq!(again.emitted, [97]);
    second.tokens(&again, 1, "b").await;
    second.end(&again, Finish::Stop, 2).await;
    assert_eq!(text_of(&events(asked.await.unwrap()).await), "ab");
}

/// Sends a frame every 50 ms, made by `frame` from its number, until the broker cancels the attempt. How many it sent.
async fn dribble(node: &mut FakeNode, frame: impl Fn(u32) -> Tokens) -> u32 {
    let mut every = tokio::time::interval(Duration::from_millis(50));
    // A machine that stalls sends late, not many at once.
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut sent = 0;
    within("the node to be told to stop", async {
        loop {
            tokio::select! {
                _ = every.tick() => {
                    node.say(to_broker::Body::Tokens(frame(sent))).await;
                    sent += 1;
                }
                heard = node.hear() => match heard {
                    Some(to_node::Body::Cancel(_)) | None => return sent,
                    Some(_) => {}
                },
            }
        }
    })
    .await
}

fn letter(job: &Job, first_position: u32) -> Tokens {
    let (job, attempt) = (job.job.clone(), job.attempt);
    Tokens { job, attempt, first_position, ids: vec![97], logprobs: Vec::new() }
}

#[tokio::test]
async fn stale_frames_give_a_node_no_more_time() {
    // The eighth stale frame would end the attempt too.
    let settings = Settings { first_token: Duration::from_millis(120), ..quick() };
    let broker = Broker::start(settings).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({}));
    let job = node.job().await;
    let sent = dribble(&mut node, |_| letter(&job, 9)).await;
    assert!(sent < 8, "{sent}");
    assert_eq!(asked.await.unwrap().status(), 502);
}

#[tokio::test]
async fn a_job_has_a_total_time_however_steadily_its_tokens_drip() {
    let broker = Broker::start(Settings { job: Duration::from_millis(400), ..quick() }).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    dribble(&mut node, |position| letter(&job, position)).await;
    let events = events(asked.await.unwrap()).await;
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "nodes_failed");
    assert_eq!(broker.settled_books().await["jobs"][0]["finish"], "failed");
}

#[tokio::test]
async fn a_node_that_keeps_failing_gets_no_more_requests() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut broken = broker.node_that_offers(1, broker.at(INPUT, OUTPUT)).await;
    let mut sound = broker.node_that_offers(2, broker.at(INPUT, OUTPUT * 2)).await;
    for round in 0..4 {
        let asked = broker.ask(&key, json!({}));
        if round < 3 {
            let job = broken.job().await;
            broken.end(&job, Finish::Failed, 0).await;
        }
        let job = sound.job().await;
        assert_eq!(job.attempt, if round < 3 { 2 } else { 1 });
        sound.tokens(&job, 0, "ok").await;
        sound.end(&job, Finish::Stop, 2).await;
        assert_eq!(asked.await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn tokens_that_no_honest_node_sends_end_the_attempt() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let probability = |count| {
        let top = vec![TokenLogprob { token: 98, logprob: -1.0 }; count];
        vec![Logprobs { chosen: -0.5, top }]
    };
    let rows = [
        ("a stop id", json!({}), vec![STOP_ID], Vec::new()),
        (
            "more alternatives than asked",
            json!({"logprobs": true, "top_logprobs": 1}),
            vec![97],
            probability(2),
        ),
    ];
    for (n, (what, fields, ids, logprobs)) in rows.into_iter().enumerate() {
        let mut node = broker.node_that_offers(n as u8 + 1, broker.at(INPUT, OUTPUT)).await;
        let asked = broker.ask(&key, fields);
        let job = node.job().await;
        let (id, attempt) = (job.job.clone(), job.attempt);
        let tokens = Tokens { job: id, attempt, first_position: 0, ids, logprobs };
        node.say(to_broker::Body::Tokens(tokens)).await;
        node.end(&job, Finish::Stop, 1).await;
        assert_eq!(asked.await.unwrap().status(), 502, "{what}");
        // Its slot stays out of the next row.
        node.leave().await;
        within("the node to be gone", async {
            while broker.get("/v1/models/bytes").await["wakati"]["nodes"] != 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}
