//! The books as an operator reads them.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::Row;
use wakati_protocol::ids::{JobId, NodeId};
use wakati_protocol::money::NanoUsd;

use crate::error::LedgerError;
use crate::open::Ledger;
use crate::settle::{job_id, node_id};

/// Everything in the books. Amounts are nano-USD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Books {
    pub consumers: Vec<ConsumerRow>,
    pub owners: Vec<OwnerRow>,
    pub fee: NanoUsd,
    pub absorption: NanoUsd,
    pub jobs: Vec<JobRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsumerRow {
    pub account: String,
    pub available: NanoUsd,
    pub held: NanoUsd,
    /// Of all settled jobs.
    pub charged: NanoUsd,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwnerRow {
    pub owner: String,
    pub earned: NanoUsd,
    pub nodes: Vec<NodeRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeRow {
    pub node: NodeId,
    pub earned: NanoUsd,
    pub receipts: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobRow {
    pub job: JobId,
    pub account: String,
    pub model: String,
    pub prompt_tokens: u32,
    /// Of an open job, those on the disk so far.
    pub completion_tokens: u32,
    /// `None` while the job is open.
    pub charge: Option<NanoUsd>,
    pub fee: Option<NanoUsd>,
    pub absorption: Option<NanoUsd>,
    pub attempts: Vec<AttemptRow>,
    /// `open` while it is.
    pub finish: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptRow {
    pub attempt: u32,
    pub node: NodeId,
    pub first_position: u32,
    /// `None` while the job is open.
    pub positions: Option<u32>,
    pub pay: Option<NanoUsd>,
}

impl Ledger {
    /// Reads all of the books at one moment.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn books(&self) -> Result<Books, LedgerError> {
        // One read transaction is one snapshot of the database.
        let mut at_once = self.readers().begin().await?;
        let on = &mut *at_once;
        let sums: Vec<(String, i64)> =
            sqlx::query_as("SELECT kind, balance FROM accounts WHERE kind IN ('fee', 'absorption')")
                .fetch_all(&mut *on)
                .await?;
        let sum = |kind: &str| NanoUsd(sums.iter().filter(|(k, _)| k == kind).map(|(_, b)| *b).sum());
        let consumers = consumers(on).await?;
        let owners = owners(on).await?;
        let jobs = jobs(on).await?;
        Ok(Books { consumers, owners, fee: sum("fee"), absorption: -sum("absorption"), jobs })
    }
}

async fn consumers(on: &mut sqlx::SqliteConnection) -> Result<Vec<ConsumerRow>, LedgerError> {
    let rows = sqlx::query(
        "SELECT a.name, a.balance,
                COALESCE((SELECT h.balance FROM accounts h WHERE h.kind = 'held' AND h.name = a.name), 0),
                COALESCE((SELECT SUM(j.charge) FROM jobs j WHERE j.account = a.name), 0)
         FROM accounts a WHERE a.kind = 'available' ORDER BY a.name",
    )
    .fetch_all(on)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(ConsumerRow {
                account: row.try_get(0)?,
                available: NanoUsd(row.try_get(1)?),
                held: NanoUsd(row.try_get(2)?),
                charged: NanoUsd(row.try_get(3)?),
            })
        })
        .collect()
}

async fn owners(on: &mut sqlx::SqliteConnection) -> Result<Vec<OwnerRow>, LedgerError> {
    let rows = sqlx::query(
        "SELECT o.name, COALESCE((SELECT p.balance FROM accounts p WHERE p.kind = 'payable' AND p.name = o.name), 0),
                n.key, COALESCE((SELECT SUM(t.pay) FROM attempts t WHERE t.node = n.key), 0),
                (SELECT COUNT(*) FROM receipts r WHERE r.node = n.key)
         FROM owners o LEFT JOIN nodes n ON n.owner = o.id ORDER BY o.name, n.registered_at, n.key",
    )
    .fetch_all(on)
    .await?;
    let mut owners: Vec<OwnerRow> = Vec::new();
    for row in &rows {
        let owner: String = row.try_get(0)?;
        if owners.last().is_none_or(|last| last.owner != owner) {
            owners.push(OwnerRow { owner, earned: NanoUsd(row.try_get(1)?), nodes: Vec::new() });
        }
        let key: Option<Vec<u8>> = row.try_get(2)?;
        if let (Some(last), Some(key)) = (owners.last_mut(), key) {
            let receipts: i64 = row.try_get(4)?;
            let (node, earned) = (node_id(&key)?, NanoUsd(row.try_get(3)?));
            last.nodes.push(NodeRow { node, earned, receipts: receipts.unsigned_abs() });
        }
    }
    Ok(owners)
}

async fn jobs(on: &mut sqlx::SqliteConnection) -> Result<Vec<JobRow>, LedgerError> {
    let mut attempts: BTreeMap<Vec<u8>, Vec<AttemptRow>> = BTreeMap::new();
    for row in sqlx::query(
        "SELECT job, attempt, node, first_position, positions, pay FROM attempts ORDER BY job, attempt",
    )
    .fetch_all(&mut *on)
    .await?
    {
        attempts.entry(row.try_get(0)?).or_default().push(AttemptRow {
            attempt: row.try_get(1)?,
            node: node_id(row.try_get(2)?)?,
            first_position: row.try_get(3)?,
            positions: row.try_get(4)?,
            pay: row.try_get::<Option<i64>, _>(5)?.map(NanoUsd),
        });
    }
    let rows = sqlx::query(
        "SELECT id, account, model_name, prompt_tokens, delivered, charge, fee, absorption,
                COALESCE(finish, 'open')
         FROM jobs ORDER BY created_at, id",
    )
    .fetch_all(on)
    .await?;
    rows.iter()
        .map(|row| {
            let id: Vec<u8> = row.try_get(0)?;
            let amount = |column| row.try_get::<Option<i64>, usize>(column).map(|amount| amount.map(NanoUsd));
            Ok(JobRow {
                job: job_id(&id)?,
                account: row.try_get(1)?,
                model: row.try_get(2)?,
                prompt_tokens: row.try_get(3)?,
                completion_tokens: row.try_get(4)?,
                charge: amount(5)?,
                fee: amount(6)?,
                absorption: amount(7)?,
                attempts: attempts.remove(&id).unwrap_or_default(),
                finish: row.try_get(8)?,
            })
        })
        .collect()
}
