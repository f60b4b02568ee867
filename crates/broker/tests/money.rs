//! What consumers pay.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Broker, INPUT, OUTPUT, quick};
use serde_json::json;
use wakati_broker::settings::Settings;
use wakati_protocol::job::Finish;
use wakati_protocol::link::ModelOffer;

const PROMPT: u32 = 10;

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
    assert_eq!(job.limit, 2048 - PROMPT);
    honest.tokens(&job, 0, "ok").await;
    honest.end(&job, Finish::Stop, 2).await;
    assert_eq!(asked.await.unwrap().status(), 200);
}
