//! Books with two nodes and a consumer, and jobs for them.

// Each test program uses its own part of the stage.
#![allow(dead_code)]

use std::path::Path;

use ed25519_dalek::SigningKey;
use wakati_ledger::{Ending, Finish, JobOpening, Ledger, Limit, NewAttempt};
use wakati_protocol::ids::{JobId, ModelDigest, NodeId};
use wakati_protocol::money::{Price, Prices};
use wakati_protocol::receipt::sign;
use wakati_protocol::units::UnixMillis;

pub const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
pub const LOCKED: Prices = Prices { input: Price(50_000_000), output: Price(100_000_000) };

pub fn broker() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

pub fn seal(bytes: &[u8]) -> Vec<u8> {
    sign(&broker(), bytes)
}

pub fn node_key(n: u8) -> SigningKey {
    SigningKey::from_bytes(&[n + 1; 32])
}

pub fn node(n: u8) -> NodeId {
    NodeId(node_key(n).verifying_key().to_bytes())
}

pub async fn ledger_with_nodes(file: &Path) -> (Ledger, i64) {
    let ledger = Ledger::open(file).await.unwrap();
    for n in 0..3 {
        let invite = ledger.invite(&format!("owner {n}"), NOW).await.unwrap();
        ledger.admit(&node(n), invite.reveal(), NOW).await.unwrap();
    }
    let key = ledger.create_key("acme", "test", NOW).await.unwrap();
    let consumer = ledger.holder(key.reveal()).await.unwrap().unwrap();
    (ledger, consumer.key)
}

pub fn opening(job: u8, key: i64, limit: Limit) -> JobOpening<'static> {
    JobOpening {
        job: JobId([job; 16]),
        key,
        account: "acme",
        model: ModelDigest([1; 32]),
        model_name: "tiny",
        prompt_tokens: 40,
        limit,
        locked: LOCKED,
        node: node(0),
    }
}

/// An attempt from the start, at the same price for what is read and what is generated.
pub fn begin_anew(attempt: u32, n: u8, price: i64) -> NewAttempt {
    let prices = Prices { input: Price(price), output: Price(price) };
    NewAttempt { attempt, node: node(n), prices, first_position: 0, input_tokens: 40 }
}

pub fn ending(finish: Finish, delivered: u32) -> Ending {
    Ending { finish, delivered: Some(delivered) }
}
