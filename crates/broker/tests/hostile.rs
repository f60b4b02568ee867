//! Nodes that do not keep to the rules.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Broker, OUTPUT, events, quick};
use serde_json::{Value, json};
use wakati_broker::settings::Settings;
use wakati_protocol::job::Finish;

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
