//! Both books, read with plain SQL from both databases, and what must hold between them.
//!
//! The arithmetic is written again here from the rules in ARCHITECTURE.md and uses nothing of the ledger's code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{Connection as _, Row as _, SqliteConnection};

use crate::desktop::until;

/// How long a receipt may take to a node that has just come back.
const RECEIPTS: Duration = Duration::from_secs(60);

/// The owner's share of what a consumer pays, in thousandths.
const OWNERS_SHARE: i128 = 700;

/// A job in the broker's books. Amounts are nano-USD.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: Vec<u8>,
    pub prompt_tokens: i64,
    pub delivered: i64,
    pub input_price: i64,
    pub output_price: i64,
    pub settled: bool,
    pub finish: Option<String>,
    pub charge: i64,
    pub fee: i64,
    pub absorption: i64,
    pub attempts: Vec<Attempt>,
}

/// One node's try, in the broker's books.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub attempt: i64,
    pub node: Vec<u8>,
    pub first_position: i64,
    pub positions: i64,
    pub input_tokens: i64,
    pub input_price: i64,
    pub output_price: i64,
    pub pay: i64,
}

/// A receipt, on either side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub node: Vec<u8>,
    pub sequence: i64,
    pub job: Vec<u8>,
    pub attempt: i64,
    pub first_position: i64,
    pub positions: i64,
    pub input_tokens: i64,
    pub pay: i64,
}

/// What the broker's database holds.
#[derive(Debug, Clone)]
pub struct BrokerBooks {
    pub jobs: Vec<Job>,
    /// Receipts that the broker owes or has delivered, by node and sequence.
    pub receipts: Vec<(Vec<u8>, i64)>,
    /// Of them, those that no node has acknowledged.
    pub unacknowledged: i64,
    /// Balances by kind of account.
    pub balances: BTreeMap<String, i64>,
    /// Events whose postings do not add up to nothing.
    pub uneven_events: i64,
}

/// Sums for people to read: what was paid is what was earned and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    pub charged: i64,
    pub absorbed: i64,
    pub fee: i64,
    pub earned: i64,
}

/// Reads the broker's database.
///
/// # Errors
/// When it cannot be read.
pub async fn read_broker(file: &Path) -> anyhow::Result<BrokerBooks> {
    let mut books = open(file).await?;
    let mut jobs = vec![];
    for row in sqlx::query("SELECT * FROM jobs ORDER BY created_at").fetch_all(&mut books).await? {
        let mut job = job(&row)?;
        let attempts = sqlx::query("SELECT * FROM attempts WHERE job = ? ORDER BY attempt").bind(&job.id);
        job.attempts = attempts.fetch_all(&mut books).await?.iter().map(attempt).collect::<Result<_, _>>()?;
        jobs.push(job);
    }
    let receipts = sqlx::query_as("SELECT node, sequence FROM receipts ORDER BY node, sequence");
    let receipts = receipts.fetch_all(&mut books).await?;
    let unacknowledged = sqlx::query_scalar("SELECT count(*) FROM receipts WHERE acked_at IS NULL");
    let unacknowledged = unacknowledged.fetch_one(&mut books).await?;
    let balances: Vec<(String, i64)> =
        sqlx::query_as("SELECT kind, sum(balance) FROM accounts GROUP BY kind").fetch_all(&mut books).await?;
    let uneven = "SELECT count(*) FROM (SELECT event FROM postings GROUP BY event HAVING sum(amount) <> 0)";
    let uneven_events = sqlx::query_scalar(uneven).fetch_one(&mut books).await?;
    books.close().await?;
    Ok(BrokerBooks {
        jobs,
        receipts,
        unacknowledged,
        balances: balances.into_iter().collect(),
        uneven_events,
    })
}

/// Reads a node's receipts.
///
/// # Errors
/// When its database cannot be read.
pub async fn read_node(file: &Path) -> anyhow::Result<Vec<Receipt>> {
    let mut log = open(file).await?;
    let rows = sqlx::query("SELECT * FROM receipts ORDER BY sequence").fetch_all(&mut log).await?;
    let receipts = rows.iter().map(receipt).collect::<Result<_, sqlx::Error>>()?;
    log.close().await?;
    Ok(receipts)
}

/// Waits until every job is settled and every receipt has arrived, then checks both books against each other and
/// against the rules.
///
/// # Errors
/// With the first rule that does not hold, or when the receipts do not arrive.
pub async fn agree(broker: &Path, nodes: &[PathBuf]) -> anyhow::Result<Sums> {
    let settled = until("every job to be settled and every receipt to arrive", RECEIPTS, async || {
        let books = read_broker(broker).await.ok()?;
        (books.unacknowledged == 0 && books.jobs.iter().all(|job| job.settled)).then_some(books)
    });
    let books = match settled.await {
        Ok(books) => books,
        Err(error) => bail!("{error:#}: {:#?}", read_broker(broker).await),
    };
    let mut received = vec![];
    for node in nodes {
        received.extend(read_node(node).await?);
    }
    check(&books, &received).with_context(|| format!("{books:#?}\n{received:#?}"))
}

/// Every rule, on what both databases hold.
fn check(books: &BrokerBooks, received: &[Receipt]) -> anyhow::Result<Sums> {
    for job in &books.jobs {
        check_job(job).with_context(|| format!("job {}", hex::encode(&job.id)))?;
    }
    let mut sent = books.receipts.clone();
    let mut stored: Vec<_> =
        received.iter().map(|receipt| (receipt.node.clone(), receipt.sequence)).collect();
    sent.sort();
    stored.sort();
    ensure!(sent == stored, "the broker has other receipts than the nodes");
    let attempts: BTreeMap<_, _> = books
        .jobs
        .iter()
        .flat_map(|job| job.attempts.iter().map(|attempt| ((job.id.clone(), attempt.attempt), attempt)))
        .collect();
    for receipt in received {
        let attempt =
            attempts.get(&(receipt.job.clone(), receipt.attempt)).context("a receipt for no attempt")?;
        let written =
            (&attempt.node, attempt.first_position, attempt.positions, attempt.input_tokens, attempt.pay);
        let got =
            (&receipt.node, receipt.first_position, receipt.positions, receipt.input_tokens, receipt.pay);
        ensure!(written == got, "a receipt says something else than the books");
    }
    let sums = Sums {
        charged: books.jobs.iter().map(|job| job.charge).sum(),
        absorbed: books.jobs.iter().map(|job| job.absorption).sum(),
        fee: books.jobs.iter().map(|job| job.fee).sum(),
        earned: received.iter().map(|receipt| receipt.pay).sum(),
    };
    let paid: i64 = attempts.values().map(|attempt| attempt.pay).sum();
    ensure!(paid == sums.earned, "the broker pays {paid} and the nodes have receipts for {}", sums.earned);
    ensure!(sums.charged + sums.absorbed == sums.earned + sums.fee, "{sums:?} do not add up");
    let balance = |kind: &str| books.balances.get(kind).copied().unwrap_or(0);
    ensure!(balance("held") == 0, "{} is still held", balance("held"));
    ensure!(balance("payable") == sums.earned, "the owners' accounts hold {}", balance("payable"));
    ensure!(balance("fee") == sums.fee, "the fee account holds {}", balance("fee"));
    ensure!(books.balances.values().sum::<i64>() == 0, "the accounts do not add up to nothing");
    ensure!(books.uneven_events == 0, "{} events do not add up to nothing", books.uneven_events);
    Ok(sums)
}

/// One job: every position in exactly one attempt, and the money from the prices and tokens alone.
fn check_job(job: &Job) -> anyhow::Result<()> {
    let mut next = 0;
    for attempt in &job.attempts {
        ensure!(attempt.first_position == next, "attempt {} does not begin at {next}", attempt.attempt);
        next += attempt.positions;
        let is_whole_job = job.attempts.len() == 1 && job.finish.as_deref() == Some("stop");
        let served = attempt.positions > 0 || is_whole_job;
        let exact = i128::from(attempt.input_price) * i128::from(attempt.input_tokens)
            + i128::from(attempt.output_price) * i128::from(attempt.positions);
        let pay = if served { exact * OWNERS_SHARE / 1_000_000_000 } else { 0 };
        ensure!(
            i128::from(attempt.pay) == pay,
            "attempt {} is paid {}, not {pay}",
            attempt.attempt,
            attempt.pay
        );
    }
    ensure!(next == job.delivered, "{next} positions were served and {} delivered", job.delivered);
    let charged = job.delivered > 0 || job.finish.as_deref() == Some("stop");
    let exact = i128::from(job.input_price) * i128::from(job.prompt_tokens)
        + i128::from(job.output_price) * i128::from(job.delivered);
    let charge = if charged { exact / 1_000_000 } else { 0 };
    ensure!(i128::from(job.charge) == charge, "{} was charged, not {charge}", job.charge);
    let paid: i64 = job.attempts.iter().map(|attempt| attempt.pay).sum();
    ensure!(job.charge + job.absorption == paid + job.fee, "charge and absorption are not pay and fee");
    ensure!(job.fee >= 0 && job.absorption >= 0, "a fee or an absorption below nothing");
    Ok(())
}

async fn open(file: &Path) -> anyhow::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new().filename(file).busy_timeout(Duration::from_secs(5));
    let connection = SqliteConnection::connect_with(&options).await;
    connection.with_context(|| format!("cannot read {}", file.display()))
}

fn job(row: &SqliteRow) -> Result<Job, sqlx::Error> {
    let amount = |name: &str| row.try_get::<Option<i64>, _>(name).map(Option::unwrap_or_default);
    Ok(Job {
        id: row.try_get("id")?,
        prompt_tokens: row.try_get("prompt_tokens")?,
        delivered: row.try_get("delivered")?,
        input_price: row.try_get("input_price")?,
        output_price: row.try_get("output_price")?,
        settled: row.try_get::<String, _>("state")? == "settled",
        finish: row.try_get("finish")?,
        charge: amount("charge")?,
        fee: amount("fee")?,
        absorption: amount("absorption")?,
        attempts: vec![],
    })
}

fn attempt(row: &SqliteRow) -> Result<Attempt, sqlx::Error> {
    let amount = |name: &str| row.try_get::<Option<i64>, _>(name).map(Option::unwrap_or_default);
    Ok(Attempt {
        attempt: row.try_get("attempt")?,
        node: row.try_get("node")?,
        first_position: row.try_get("first_position")?,
        positions: amount("positions")?,
        input_tokens: row.try_get("input_tokens")?,
        input_price: row.try_get("input_price")?,
        output_price: row.try_get("output_price")?,
        pay: amount("pay")?,
    })
}

fn receipt(row: &SqliteRow) -> Result<Receipt, sqlx::Error> {
    Ok(Receipt {
        node: row.try_get("node")?,
        sequence: row.try_get("sequence")?,
        job: row.try_get("job")?,
        attempt: row.try_get("attempt")?,
        first_position: row.try_get("first_position")?,
        positions: row.try_get("positions")?,
        input_tokens: row.try_get("input_tokens")?,
        pay: row.try_get("pay")?,
    })
}
