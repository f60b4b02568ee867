//! The rules of the books over random histories, against a model of what should happen.

#![allow(clippy::unwrap_used)]

mod stage;

use stage::*;
use std::collections::BTreeMap;

use proptest::prelude::*;
use wakati_ledger::{Finish, Ledger, Limit, NewAttempt, Opened};
use wakati_protocol::ids::JobId;
use wakati_protocol::money::{NanoUsd, Price, Prices};

#[derive(Debug, Clone)]
enum Step {
    Credit(i64),
    Open(u32, bool),
    /// Some open job goes on at another node, after this many more positions, at these prices.
    Attempt(usize, u8, u32, i64),
    Checkpoint(usize, u32),
    /// Some open job begins anew at another node, at these prices.
    Relock(usize, u8, i64),
    Settle(usize, u32, bool),
    SettleAgain(usize),
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (1..50_000_i64).prop_map(Step::Credit),
        4 => (1..200_u32, any::<bool>()).prop_map(|(limit, exact)| Step::Open(limit, exact)),
        3 => (0..9_usize, 0..3_u8, 0..40_u32, 0..300_000_000_i64)
            .prop_map(|(job, n, more, price)| Step::Attempt(job, n, more, price)),
        3 => (0..9_usize, 0..3_u8, 0..300_000_000_i64).prop_map(|(job, n, price)| Step::Relock(job, n, price)),
        3 => (0..9_usize, 0..60_u32).prop_map(|(job, more)| Step::Checkpoint(job, more)),
        3 => (0..9_usize, 0..60_u32, any::<bool>()).prop_map(|(job, more, stop)| Step::Settle(job, more, stop)),
        1 => (0..9_usize).prop_map(Step::SettleAgain),
        1 => Just(Step::Crash),
    ]
}

/// What the test knows of an open job.
#[derive(Debug, Clone)]
struct Model {
    limit: u32,
    hold: i64,
    locked: Prices,
    emitted: u32,
    durable: u32,
    attempts: u32,
}

/// The charge by the definition: floor of the locked prices, nothing for nothing.
fn charge(locked: Prices, delivered: u32, empty_answer: bool) -> i64 {
    let exact = 40 * locked.input.0 + i64::from(delivered) * locked.output.0;
    if delivered == 0 && !empty_answer { 0 } else { exact / 1_000_000 }
}

fn pick(open: &BTreeMap<u8, Model>, at: usize) -> Option<u8> {
    open.keys().nth(at % open.len().max(1)).copied()
}

async fn play(steps: Vec<Step>) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("books");
    let (mut ledger, key) = ledger_with_nodes(&file).await;
    let mut available = 0_i64;
    let mut open: BTreeMap<u8, Model> = BTreeMap::new();
    let mut settled: Vec<(u8, NanoUsd)> = Vec::new();
    let mut next = 0_u8;
    for step in steps {
        match step {
            Step::Credit(amount) => {
                ledger.credit("acme", NanoUsd(amount), NOW).await.unwrap();
                available += amount;
            }
            Step::Open(most, exact) => {
                let limit = if exact { Limit::Exactly(most) } else { Limit::UpTo(most) };
                let opened = ledger.open_job(&opening(next, key, limit), NOW).await;
                let needed = 40 * 50 + i64::from(if exact { most } else { 1 }) * 100;
                assert_eq!(opened.is_ok(), available >= needed);
                if let Ok(opened) = opened {
                    available -= opened.hold.0;
                    let (limit, hold) = (opened.limit, opened.hold.0);
                    open.insert(
                        next,
                        Model { limit, hold, locked: LOCKED, emitted: 0, durable: 0, attempts: 1 },
                    );
                }
                next += 1;
            }
            Step::Attempt(at, n, more, price) => {
                let Some((id, job)) = pick(&open, at).and_then(|id| open.get_mut(&id).map(|job| (id, job)))
                else {
                    continue;
                };
                job.emitted = (job.emitted + more).min(job.limit);
                job.attempts += 1;
                let new = NewAttempt {
                    attempt: job.attempts,
                    node: node(n),
                    prices: Prices { input: Price(price), output: Price(price) },
                    first_position: job.emitted,
                    input_tokens: 40 + job.emitted,
                };
                ledger.begin_attempt(JobId([id; 16]), &new).await.unwrap();
            }
            Step::Relock(at, n, price) => {
                let Some((id, job)) = pick(&open, at).and_then(|id| open.get_mut(&id).map(|job| (id, job)))
                else {
                    continue;
                };
                let new = begin_anew(job.attempts + 1, n, price);
                let limit = Limit::Exactly(job.limit);
                let relocked = ledger.relock(JobId([id; 16]), &new, limit, NOW).await;
                let needed = (40 + i64::from(job.limit)) * price / 1_000_000;
                assert_eq!(relocked.is_ok(), job.emitted == 0 && needed <= available + job.hold);
                if let Ok(relocked) = relocked {
                    assert_eq!(relocked, Opened { limit: job.limit, hold: NanoUsd(needed) });
                    available += job.hold - needed;
                    (job.hold, job.locked, job.attempts) = (needed, new.prices, job.attempts + 1);
                }
            }
            Step::Checkpoint(at, more) => {
                let Some((id, job)) = pick(&open, at).and_then(|id| open.get_mut(&id).map(|job| (id, job)))
                else {
                    continue;
                };
                job.emitted = (job.emitted + more).min(job.limit);
                job.durable = job.emitted;
                ledger.checkpoint(&[(JobId([id; 16]), job.durable)]).await.unwrap();
            }
            Step::Settle(at, more, stop) => {
                let Some((id, job)) = pick(&open, at).and_then(|id| open.remove(&id).map(|job| (id, job)))
                else {
                    continue;
                };
                let delivered = (job.emitted + more).min(job.limit);
                let finish = if stop { Finish::Stop } else { Finish::Cancelled };
                let done =
                    ledger.settle(JobId([id; 16]), ending(finish, delivered), NOW, &seal).await.unwrap();
                assert_eq!(done.charge.0, charge(job.locked, delivered, stop && job.attempts == 1));
                assert!(done.charge.0 <= job.hold);
                available += job.hold - done.charge.0;
                settled.push((id, done.charge));
            }
            Step::SettleAgain(at) => {
                if let Some((id, charged)) = settled.get(at % settled.len().max(1)) {
                    let again =
                        ledger.settle(JobId([*id; 16]), ending(Finish::Stop, 1), NOW, &seal).await.unwrap();
                    assert_eq!(again.charge, *charged);
                }
            }
            Step::Crash => {
                drop(ledger);
                ledger = Ledger::open(&file).await.unwrap();
                let recovered = ledger.recover(NOW, &seal).await.unwrap();
                assert_eq!((recovered.settled, recovered.left.len()), (open.len(), 0));
                for (id, job) in std::mem::take(&mut open) {
                    let charged = charge(job.locked, job.durable, false);
                    available += job.hold - charged;
                    settled.push((id, NanoUsd(charged)));
                }
            }
        }
        let funds = ledger.funds("acme").await.unwrap();
        assert_eq!(funds.available, NanoUsd(available));
        assert_eq!(funds.held, NanoUsd(open.values().map(|job| job.hold).sum()));
        assert_eq!(ledger.audit().await.unwrap(), []);
    }
    let books = ledger.books().await.unwrap();
    let charged: NanoUsd = settled.iter().map(|(_, charge)| *charge).sum();
    let earned: NanoUsd = books.owners.iter().map(|owner| owner.earned).sum();
    assert_eq!(charged + books.absorption, earned + books.fee);
    for (n, owner) in books.owners.iter().enumerate() {
        let receipts = ledger.receipts_after(&node(n as u8), 0).await.unwrap();
        assert_eq!(owner.earned.0, receipts.iter().map(|receipt| receipt.pay).sum::<i64>());
    }
    ledger.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_the_books_balance(steps in proptest::collection::vec(step(), 1..40)) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(play(steps));
    }
}
