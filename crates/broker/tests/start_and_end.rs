//! How a broker starts, and what keeps it from it; how it ends, and how fast.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Broker, OUTPUT, events, quick, within};
use serde_json::{Value, json};
use wakati_broker::operator::{self, Home, OperatorError};
use wakati_broker::settings::Settings;
use wakati_broker::{BadKey, ServeError, start};
use wakati_protocol::money::NanoUsd;

#[tokio::test]
async fn one_broker_serves_from_a_folder() {
    let broker = Broker::start(quick()).await;
    let second = start(&broker.home, "127.0.0.1:0".parse().unwrap(), quick()).await;
    let Err(error @ ServeError::AlreadyServing(_)) = second else { panic!("a second broker serves") };
    assert_eq!(
        error.to_string(),
        format!(
            "another broker already serves from {}, so this one did not start; stop the other one, or choose another folder with --data",
            broker.folder.path().display()
        )
    );
}

#[tokio::test]
async fn a_lock_that_cannot_be_had_is_told_from_one_that_another_broker_has() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("broker.lock")).unwrap();
    let started = start(&Home::new(folder.path()), "127.0.0.1:0".parse().unwrap(), quick()).await;
    assert!(matches!(started, Err(ServeError::Folder { .. })));
}

#[tokio::test]
async fn with_a_damaged_key_no_broker_starts_and_the_operator_is_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("broker.key"), "").unwrap();
    let started = start(&Home::new(folder.path()), "127.0.0.1:0".parse().unwrap(), quick()).await;
    let Err(ServeError::Key(error @ BadKey::Damaged(_))) = started else { panic!("started") };
    assert!(error.to_string().contains("restore it from a backup"));
}

#[tokio::test]
async fn whoever_asks_twice_does_not_wait_for_what_runs() {
    let broker = Broker::start(Settings { drain: Duration::from_secs(3600), ..quick() }).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    node.tokens(&job, 0, "abc").await;
    let response = asked.await.unwrap();
    within("the end", broker.running.stop_or_cut_short(std::future::ready(()))).await;
    let events = events(response).await;
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "restarting");
}

#[tokio::test]
async fn more_than_is_available_is_not_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path());
    operator::credit(&home, "acme", NanoUsd::DOLLAR).await.unwrap();
    let refused = operator::credit(&home, "acme", NanoUsd(-1_500_000_000)).await.unwrap_err();
    assert!(matches!(refused, OperatorError::Overdrawn { .. }));
    assert_eq!(
        refused.to_string(),
        "acme has $1.000000000 available, so $1.500000000 were not taken back; take back at most what is available"
    );
    let refused = operator::credit(&home, "acme", NanoUsd(i64::MAX)).await.unwrap_err();
    assert!(matches!(refused, OperatorError::TooMuch { .. }));
    assert_eq!(operator::credit(&home, "acme", NanoUsd::ZERO).await.unwrap(), NanoUsd::DOLLAR);
}
