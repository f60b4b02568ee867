//! The books under random work and crashes.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use ed25519_dalek::SigningKey;
use proptest::prelude::*;
use wakati_ledger::{
    Admission, BadAck, Ending, Finish, JobOpening, Ledger, LedgerError, Limit, NewAttempt, OpenError, Opened,
    Refusal,
};
use wakati_protocol::ids::{JobId, ModelDigest, NodeId};
use wakati_protocol::money::{NanoUsd, Price, Prices};
use wakati_protocol::receipt::{sign, verify};
use wakati_protocol::units::UnixMillis;

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const LOCKED: Prices = Prices { input: Price(50_000_000), output: Price(100_000_000) };

fn broker() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn seal(bytes: &[u8]) -> Vec<u8> {
    sign(&broker(), bytes)
}

fn node_key(n: u8) -> SigningKey {
    SigningKey::from_bytes(&[n + 1; 32])
}

fn node(n: u8) -> NodeId {
    NodeId(node_key(n).verifying_key().to_bytes())
}

async fn ledger_with_nodes(file: &Path) -> (Ledger, i64) {
    let ledger = Ledger::open(file).await.unwrap();
    for n in 0..3 {
        let invite = ledger.invite(&format!("owner {n}"), NOW).await.unwrap();
        ledger.admit(&node(n), invite.reveal(), NOW).await.unwrap();
    }
    let key = ledger.create_key("acme", "test", NOW).await.unwrap();
    let consumer = ledger.holder(key.reveal()).await.unwrap().unwrap();
    (ledger, consumer.key)
}

fn opening(job: u8, key: i64, limit: Limit) -> JobOpening<'static> {
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
fn begin_anew(attempt: u32, n: u8, price: i64) -> NewAttempt {
    let prices = Prices { input: Price(price), output: Price(price) };
    NewAttempt { attempt, node: node(n), prices, first_position: 0, input_tokens: 40 }
}

fn ending(finish: Finish, delivered: u32) -> Ending {
    Ending { finish, delivered: Some(delivered) }
}

#[tokio::test]
async fn an_invite_lets_one_node_in_and_the_same_node_again() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&home.path().join("books")).await.unwrap();
    let invite = ledger.invite("ann", NOW).await.unwrap();
    assert_eq!(ledger.admit(&node(1), "", NOW).await.unwrap(), Admission::NotInvited);
    assert_eq!(ledger.admit(&node(1), "wi-guess", NOW).await.unwrap(), Admission::BadInvite);
    let ann = Admission::Owner("ann".to_owned());
    assert_eq!(ledger.admit(&node(1), invite.reveal(), NOW).await.unwrap(), ann);
    assert_eq!(ledger.admit(&node(1), invite.reveal(), NOW).await.unwrap(), ann);
    assert_eq!(ledger.admit(&node(2), invite.reveal(), NOW).await.unwrap(), Admission::BadInvite);
}

#[tokio::test]
async fn a_job_that_the_account_cannot_cover_is_refused_with_the_numbers() {
    let home = tempfile::tempdir().unwrap();
    let (ledger, key) = ledger_with_nodes(&home.path().join("books")).await;
    ledger.credit("acme", NanoUsd(10_000), NOW).await.unwrap();
    // 40 x 50 + 100 x 100 = 12000.
    let refused = ledger.open_job(&opening(1, key, Limit::Exactly(100)), NOW).await;
    let Err(OpenError::Refused(Refusal::Insufficient { available, held, needed })) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((available, held, needed), (NanoUsd(10_000), NanoUsd(0), NanoUsd(12_000)));
    let opened = ledger.open_job(&opening(1, key, Limit::UpTo(100)), NOW).await.unwrap();
    assert_eq!((opened.limit, opened.hold), (80, NanoUsd(10_000)));
}

#[tokio::test]
async fn fifty_jobs_at_once_never_hold_more_than_there_is() {
    let home = tempfile::tempdir().unwrap();
    let (ledger, key) = ledger_with_nodes(&home.path().join("books")).await;
    // Room for ten holds of 12000.
    ledger.credit("acme", NanoUsd(125_000), NOW).await.unwrap();
    let tries = (0..50).map(|job| {
        let ledger = ledger.clone();
        tokio::spawn(
            async move { ledger.open_job(&opening(job, key, Limit::Exactly(100)), NOW).await.is_ok() },
        )
    });
    let mut opened = 0;
    for job in tries.collect::<Vec<_>>() {
        opened += u32::from(job.await.unwrap());
    }
    assert_eq!(opened, 10);
    assert_eq!(ledger.funds("acme").await.unwrap().held, NanoUsd(120_000));
}

#[tokio::test]
async fn a_job_is_settled_once_and_its_receipts_are_kept_until_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let (ledger, key) = ledger_with_nodes(&home.path().join("books")).await;
    ledger.credit("acme", NanoUsd::DOLLAR, NOW).await.unwrap();
    ledger.open_job(&opening(1, key, Limit::Exactly(100)), NOW).await.unwrap();
    let job = JobId([1; 16]);
    let second =
        NewAttempt { attempt: 2, node: node(1), prices: LOCKED, first_position: 60, input_tokens: 100 };
    ledger.begin_attempt(job, &second).await.unwrap();
    let settled = ledger.settle(job, ending(Finish::Length, 100), NOW, &seal).await.unwrap();
    assert_eq!(settled.charge, NanoUsd(12_000));
    let pays: Vec<i64> = settled.receipts.iter().map(|(_, receipt)| receipt.pay).collect();
    assert_eq!(pays, [5_600, 6_300]);
    let again = ledger.settle(job, ending(Finish::Length, 3), NOW, &seal).await.unwrap();
    assert_eq!((again.charge, again.completion_tokens, again.receipts.len()), (NanoUsd(12_000), 100, 0));
    assert_eq!(ledger.audit().await.unwrap(), []);

    let waiting = ledger.unacked(&node(1)).await.unwrap();
    let receipt = &waiting[0];
    let broker = broker().verifying_key().to_bytes();
    verify(&broker, &receipt.signed_bytes(), &receipt.broker_signature).unwrap();
    let foreign = sign(&node_key(2), &receipt.signed_bytes());
    assert!(matches!(ledger.acknowledge(&node(1), 1, &foreign, NOW).await, Err(BadAck::Unknown)));
    let own = sign(&node_key(1), &receipt.signed_bytes());
    assert!(matches!(ledger.acknowledge(&node(1), 2, &own, NOW).await, Err(BadAck::Unknown)));
    ledger.acknowledge(&node(1), 1, &own, NOW).await.unwrap();
    ledger.acknowledge(&node(1), 1, &own, NOW).await.unwrap();
    assert!(ledger.unacked(&node(1)).await.unwrap().is_empty());
    assert_eq!(ledger.receipts_after(&node(1), 0).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_job_that_begins_anew_pays_the_new_price_or_is_refused_and_stays_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let (ledger, key) = ledger_with_nodes(&home.path().join("books")).await;
    ledger.credit("acme", NanoUsd(13_000), NOW).await.unwrap();
    let free = JobOpening { locked: Prices::default(), ..opening(1, key, Limit::UpTo(100)) };
    assert_eq!(ledger.open_job(&free, NOW).await.unwrap(), Opened { limit: 100, hold: NanoUsd(0) });
    let job = JobId([1; 16]);
    // 140 tokens at $0.10 a million are 14000, at $0.05 they are 7000, of which the account has 13000.
    let dear = ledger.relock(job, &begin_anew(2, 1, 100_000_000), Limit::Exactly(100), NOW).await;
    let Err(OpenError::Refused(Refusal::Insufficient { available, needed, .. })) = dear else {
        panic!("{dear:?}")
    };
    assert_eq!((available, needed), (NanoUsd(13_000), NanoUsd(14_000)));
    assert_eq!(ledger.funds("acme").await.unwrap().held, NanoUsd(0));
    let cut = ledger.relock(job, &begin_anew(2, 1, 100_000_000), Limit::UpTo(100), NOW).await.unwrap();
    assert_eq!(cut, Opened { limit: 90, hold: NanoUsd(13_000) });
    let again = ledger.relock(job, &begin_anew(3, 2, 50_000_000), Limit::UpTo(100), NOW).await.unwrap();
    assert_eq!(again, Opened { limit: 100, hold: NanoUsd(7_000) });
    assert_eq!(ledger.funds("acme").await.unwrap().held, NanoUsd(7_000));
    ledger.checkpoint(&[(job, 1)]).await.unwrap();
    let late = ledger.relock(job, &begin_anew(4, 0, 0), Limit::UpTo(100), NOW).await;
    assert!(matches!(late, Err(OpenError::Failed(_))), "{late:?}");
    let settled = ledger.settle(job, ending(Finish::Stop, 60), NOW, &seal).await.unwrap();
    assert_eq!(settled.charge, NanoUsd(5_000));
    assert_eq!(settled.receipts.iter().map(|(_, r)| r.pay).collect::<Vec<_>>(), [3_500]);
    assert_eq!(ledger.audit().await.unwrap(), []);
}

#[tokio::test]
async fn a_job_that_cannot_be_settled_does_not_hold_up_the_others() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("books");
    let (ledger, key) = ledger_with_nodes(&file).await;
    ledger.credit("acme", NanoUsd::DOLLAR, NOW).await.unwrap();
    for job in [1, 2] {
        ledger.open_job(&opening(job, key, Limit::Exactly(100)), NOW).await.unwrap();
    }
    let raw = sqlx::SqlitePool::connect(&format!("sqlite://{}", file.display())).await.unwrap();
    let stuck = "CREATE TRIGGER stuck BEFORE UPDATE OF state ON jobs WHEN old.id = x'01010101010101010101010101010101'
                 BEGIN SELECT RAISE(ABORT, 'stuck'); END";
    sqlx::query(stuck).execute(&raw).await.unwrap();
    let recovered = ledger.recover(NOW, &seal).await.unwrap();
    assert_eq!(recovered.settled, 1);
    assert_eq!(recovered.left.iter().map(|(job, _)| *job).collect::<Vec<_>>(), [JobId([1; 16])]);
    sqlx::query("DROP TRIGGER stuck").execute(&raw).await.unwrap();
    assert_eq!(ledger.recover(NOW, &seal).await.unwrap().settled, 1);
    assert_eq!(ledger.funds("acme").await.unwrap().held, NanoUsd(0));
}

#[tokio::test]
async fn postings_cannot_be_changed_or_taken_out_and_the_audit_sees_a_forged_balance() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("books");
    let (ledger, _) = ledger_with_nodes(&file).await;
    ledger.credit("acme", NanoUsd(5), NOW).await.unwrap();
    let raw = sqlx::SqlitePool::connect(&format!("sqlite://{}", file.display())).await.unwrap();
    assert!(sqlx::query("UPDATE postings SET amount = 9").execute(&raw).await.is_err());
    assert!(sqlx::query("DELETE FROM postings").execute(&raw).await.is_err());
    assert!(sqlx::query("DELETE FROM events").execute(&raw).await.is_err());
    sqlx::query("UPDATE accounts SET balance = 9 WHERE kind = 'available'").execute(&raw).await.unwrap();
    let faults = ledger.audit().await.unwrap();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].place, "available acme");
}

#[tokio::test]
async fn guessed_invites_and_repeated_acknowledgements_wait_for_no_writer() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("books");
    let (ledger, key) = ledger_with_nodes(&file).await;
    ledger.credit("acme", NanoUsd::DOLLAR, NOW).await.unwrap();
    ledger.open_job(&opening(1, key, Limit::Exactly(100)), NOW).await.unwrap();
    let settled =
        ledger.settle(JobId([1; 16]), ending(Finish::Length, 100), NOW, &seal).await.unwrap().receipts;
    let own = sign(&node_key(0), &settled[0].1.signed_bytes());
    ledger.acknowledge(&node(0), 1, &own, NOW).await.unwrap();
    let raw = sqlx::SqlitePool::connect(&format!("sqlite://{}", file.display())).await.unwrap();
    let writes = raw.begin_with("BEGIN IMMEDIATE").await.unwrap();
    assert_eq!(ledger.admit(&node(9), "wi-guess", NOW).await.unwrap(), Admission::BadInvite);
    ledger.acknowledge(&node(0), 1, &own, NOW).await.unwrap();
    writes.rollback().await.unwrap();
}

#[tokio::test]
async fn a_number_that_does_not_fit_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("books");
    let (ledger, key) = ledger_with_nodes(&file).await;
    ledger.credit("acme", NanoUsd::DOLLAR, NOW).await.unwrap();
    ledger.open_job(&opening(1, key, Limit::Exactly(100)), NOW).await.unwrap();
    let raw = sqlx::SqlitePool::connect(&format!("sqlite://{}", file.display())).await.unwrap();
    // More than 32 bits.
    sqlx::query("UPDATE jobs SET prompt_tokens = 5000000000").execute(&raw).await.unwrap();
    assert!(matches!(ledger.books().await, Err(LedgerError::Database(_))));
    let settled = ledger.settle(JobId([1; 16]), ending(Finish::Stop, 1), NOW, &seal).await;
    assert!(matches!(settled, Err(LedgerError::Database(_))));
}

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
