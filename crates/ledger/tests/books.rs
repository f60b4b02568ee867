//! The books, row by row.

#![allow(clippy::unwrap_used)]

mod stage;

use stage::*;

use wakati_ledger::{
    Admission, BadAck, Finish, JobOpening, Ledger, LedgerError, Limit, NewAttempt, OpenError, Opened, Refusal,
};
use wakati_protocol::ids::JobId;
use wakati_protocol::money::{NanoUsd, Prices};
use wakati_protocol::receipt::{sign, verify};

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
