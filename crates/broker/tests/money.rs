//! What consumers pay, what the platform adds, and what becomes of money and slots when things go wrong.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Broker, INPUT, OUTPUT, events, quick, text_of, within};
use serde_json::{Value, json};
use wakati_broker::operator;
use wakati_broker::settings::Settings;
use wakati_protocol::job::Finish;
use wakati_protocol::link::{ModelOffer, Offer, to_broker};

const PROMPT: i64 = 10;

#[tokio::test]
async fn a_free_node_that_yields_before_its_first_token_leaves_the_next_ones_price() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut free = broker.node_that_offers(1, broker.at(0, 0)).await;
    let mut dear = broker.node_that_offers(2, broker.at(INPUT * 100, OUTPUT * 100)).await;
    let asked = broker.ask(&key, json!({"stream": true, "max_tokens": 50}));
    free.job().await;
    free.yields().await;
    let job = dear.job().await;
    assert_eq!((job.attempt, job.limit), (2, 50));
    dear.tokens(&job, 0, "abc").await;
    dear.end(&job, Finish::Stop, 3).await;
    assert_eq!(text_of(&events(asked.await.unwrap()).await), "abc");
    let books = broker.settled_books().await;
    assert_eq!(books["jobs"][0]["charge"], (PROMPT * INPUT + 3 * OUTPUT) * 100 / 1_000_000);
    assert_eq!((&books["absorption"], &books["consumers"][0]["held"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn an_account_that_cannot_cover_the_next_nodes_price_is_told_so() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("0.000000800").await;
    let mut free = broker.node_that_offers(1, broker.at(0, 0)).await;
    let mut dear = broker.node_that_offers(2, broker.at(INPUT, OUTPUT)).await;
    let asked = broker.ask(&key, json!({"stream": true, "max_tokens": 50}));
    free.job().await;
    free.yields().await;
    let refused = asked.await.unwrap();
    assert_eq!(refused.status(), 402);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["credit"]["needed"], "0.000005500");
    assert_eq!(error["error"]["credit"]["available"], "0.000000800");
    broker.until_free(2).await;
    // A request that names no limit gets what the account covers: 500 for the prompt and three tokens of 100.
    let offer = Offer { models: vec![broker.at(0, 0)] };
    free.say(to_broker::Body::Offer(offer)).await;
    broker.until_free(4).await;
    let asked = broker.ask(&key, json!({}));
    assert_eq!(free.job().await.limit, 1024);
    free.yields().await;
    let job = dear.job().await;
    assert_eq!(job.limit, 3);
    dear.tokens(&job, 0, "abc").await;
    assert_eq!(asked.await.unwrap().status(), 200);
}

#[tokio::test]
async fn what_the_platform_would_add_for_a_dearer_node_has_an_end() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut free = broker.node_that_offers(1, broker.at(0, 0)).await;
    let _dear = broker.node_that_offers(2, broker.at(INPUT, OUTPUT)).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = free.job().await;
    free.tokens(&job, 0, "a").await;
    free.yields().await;
    let events = events(asked.await.unwrap()).await;
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "nodes_failed");
    let books = broker.settled_books().await;
    assert_eq!((&books["absorption"], &books["jobs"][0]["charge"]), (&json!(0), &json!(0)));
    assert_eq!(books["jobs"][0]["attempts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_waits_rather_than_pay_more_than_the_highest_price() {
    let broker = Broker::start(Settings { queue: Duration::ZERO, ..quick() }).await;
    let key = broker.key("1000").await;
    let one_slot = ModelOffer { slots: 1, ..broker.at(INPUT, OUTPUT) };
    let mut cheap = broker.node_that_offers(1, one_slot).await;
    let _absurd = broker.node_that_offers(2, broker.at(INPUT, 20_000_000_001)).await;
    let asked = broker.ask(&key, json!({"max_tokens": 5}));
    let job = cheap.job().await;
    assert_eq!(broker.ask(&key, json!({"max_tokens": 5})).await.unwrap().status(), 429);
    cheap.leave().await;
    assert_eq!(asked.await.unwrap().status(), 502);
    assert_eq!(broker.ask(&key, json!({"max_tokens": 5})).await.unwrap().status(), 503);
    assert_eq!(job.attempt, 1);
}

#[tokio::test]
async fn a_node_with_a_huge_context_gets_no_request_to_itself() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut honest = broker.node_that_offers(1, broker.at(INPUT, OUTPUT)).await;
    let huge = ModelOffer { context: 1 << 24, ..broker.at(INPUT * 100, OUTPUT * 100) };
    let _huge = broker.node_that_offers(2, huge).await;
    let asked = broker.ask(&key, json!({"max_tokens": 4000}));
    let job = honest.job().await;
    assert_eq!(job.limit, 2048 - PROMPT as u32);
    honest.tokens(&job, 0, "ok").await;
    honest.end(&job, Finish::Stop, 2).await;
    assert_eq!(asked.await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_answer_that_was_to_come_whole_and_never_left_is_not_charged() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": false}));
    let job = node.job().await;
    node.tokens(&job, 0, "abc").await;
    node.tokens(&job, 3, "def").await;
    node.leave().await;
    assert_eq!(asked.await.unwrap().status(), 502);
    let books = broker.settled_books().await;
    assert_eq!((&books["jobs"][0]["charge"], &books["jobs"][0]["finish"]), (&json!(0), &json!("failed")));
}

/// Until this is dropped, no job can be settled.
const STUCK: &str =
    "CREATE TRIGGER stuck BEFORE UPDATE OF state ON jobs BEGIN SELECT RAISE(ABORT, 'stuck'); END";

#[tokio::test]
async fn a_settlement_that_fails_is_told_and_made_up_for_without_a_restart() {
    let broker = Broker::start(Settings { settle_again: Duration::from_millis(50), ..quick() }).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let mut database = broker.database().await;
    sqlx::query(STUCK).execute(&mut database).await.unwrap();
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    node.tokens(&job, 0, "abc").await;
    node.end(&job, Finish::Stop, 3).await;
    let events = events(asked.await.unwrap()).await;
    assert_eq!(text_of(&events), "abc");
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "not_settled");
    broker.until_free(2).await;
    assert_eq!(operator::books(&broker.home).await.unwrap().jobs[0].charge, None);
    sqlx::query("DROP TRIGGER stuck").execute(&mut database).await.unwrap();
    let books = broker.settled_books().await;
    assert_eq!(books["jobs"][0]["charge"], (PROMPT * INPUT + 3 * OUTPUT) / 1_000_000);
    assert_eq!(books["consumers"][0]["held"], 0);
    assert_eq!(node.receipt().await.positions, 3);
}

#[tokio::test]
async fn a_job_that_cannot_be_settled_does_not_keep_the_broker_from_starting() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    node.job().await;
    let mut database = broker.database().await;
    sqlx::query(STUCK).execute(&mut database).await.unwrap();
    let settings = Settings { settle_again: Duration::from_millis(50), ..quick() };
    let broker = broker.crash_and_restart(settings).await;
    asked.abort();
    let mut back = broker.database().await;
    sqlx::query("DROP TRIGGER stuck").execute(&mut back).await.unwrap();
    assert_eq!(broker.settled_books().await["jobs"][0]["finish"], "interrupted");
}

#[tokio::test]
async fn a_client_that_leaves_while_its_job_is_opened_leaves_nothing_behind() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let _node = broker.node(1, OUTPUT).await;
    let mut database = broker.database().await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut database).await.unwrap();
    let asked = broker.ask(&key, json!({"stream": true}));
    broker.until_free(1).await;
    asked.abort();
    assert!(asked.await.is_err_and(|error| error.is_cancelled()));
    broker.get("/v1/models").await;
    sqlx::query("ROLLBACK").execute(&mut database).await.unwrap();
    let back = async {
        broker.until_free(2).await;
        broker.settled_books().await
    };
    let books = tokio::time::timeout(Duration::from_secs(5), back).await.unwrap();
    assert_eq!((&books["jobs"][0]["charge"], &books["consumers"][0]["held"]), (&json!(0), &json!(0)));
    assert_eq!(books["jobs"][0]["finish"], "cancelled");
}

#[tokio::test]
async fn a_client_that_leaves_the_queue_takes_no_slot() {
    let broker = Broker::start(Settings { queue: Duration::from_secs(60), ..quick() }).await;
    let key = broker.key("1").await;
    let one_slot = ModelOffer { slots: 1, ..broker.at(INPUT, OUTPUT) };
    let mut node = broker.node_that_offers(1, one_slot).await;
    let first = broker.ask(&key, json!({}));
    let job = node.job().await;
    let second = broker.ask(&key, json!({}));
    within("the second request to queue", broker.get("/v1/models")).await;
    second.abort();
    node.tokens(&job, 0, "x").await;
    node.end(&job, Finish::Stop, 1).await;
    assert_eq!(first.await.unwrap().status(), 200);
    broker.until_free(1).await;
    broker.settled_books().await;
}
