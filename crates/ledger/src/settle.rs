//! The end of a job: its hold captured, its owners paid, its receipts written, all in one transaction.

use sqlx::{Row, SqliteConnection};
use wakati_protocol::ids::{JobId, NodeId, Position};
use wakati_protocol::money::{NanoUsd, Price, Prices};
use wakati_protocol::receipt::Receipt;
use wakati_protocol::units::UnixMillis;

use crate::error::LedgerError;
use crate::money::{Account, post};
use crate::open::{Durable, Ledger};
use crate::receipts::write_receipt;
use crate::split::{Split, Tried, split};

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The answer is complete.
    Stop,
    /// The limit or the context is full.
    Length,
    /// The consumer left.
    Cancelled,
    /// No node could finish it.
    Failed,
    /// The job itself was at fault.
    Refused,
    /// The broker ended in mid-job; settled at the next start.
    Interrupted,
}

impl Finish {
    /// The word in the database and in the books.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Interrupted => "interrupted",
        }
    }
}

/// How far a job came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub finish: Finish,
    /// Positions that the consumer has; `None` takes the last that are on the disk.
    pub delivered: Option<Position>,
}

/// What a settled job came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    pub charge: NanoUsd,
    pub prompt_tokens: u32,
    pub completion_tokens: u32,
    /// Signed receipts, to be sent to their nodes; empty when the job was settled before.
    pub receipts: Vec<(NodeId, Receipt)>,
}

/// What came of jobs that an earlier run left open.
#[derive(Debug, Default)]
pub struct Recovered {
    pub settled: usize,
    /// Jobs that could not be settled, and why.
    pub left: Vec<(JobId, LedgerError)>,
}

struct OpenJob {
    account: String,
    model: Vec<u8>,
    prompt_tokens: u32,
    limit: u32,
    locked: Prices,
    delivered: u32,
    hold: NanoUsd,
}

struct AttemptRow {
    attempt: u32,
    node: NodeId,
    owner: String,
    tried: Tried,
}

impl Ledger {
    /// Settles a job once; a second call returns what the first one did. `sign` is the broker's signature.
    ///
    /// # Errors
    /// When there is no such job, more would be billed than was held, or the database fails.
    pub async fn settle(
        &self,
        job: JobId,
        ending: Ending,
        at: UnixMillis,
        sign: &(dyn Fn(&[u8]) -> Vec<u8> + Sync),
    ) -> Result<Settlement, LedgerError> {
        let mut write = self.write(Durable::Power).await?;
        if let Some(settled) = settled_before(write.on(), job).await? {
            return Ok(settled);
        }
        let open = read_job(write.on(), job).await?;
        let delivered = ending.delivered.unwrap_or(open.delivered);
        if delivered > open.limit {
            let limit = open.limit;
            return Err(LedgerError::Wrong(format!(
                "job {job} delivered {delivered} of at most {limit} tokens"
            )));
        }
        let rows = read_attempts(write.on(), job, delivered).await?;
        let tried: Vec<Tried> = rows.iter().map(|row| row.tried).collect();
        let empty_answer = delivered == 0 && ending.finish == Finish::Stop && rows.len() == 1;
        let split = split(open.locked, open.prompt_tokens, &tried, empty_answer);
        if split.charge > open.hold {
            let (charge, hold) = (split.charge, open.hold);
            return Err(LedgerError::Wrong(format!(
                "job {job} would cost {charge}, over its hold of {hold}"
            )));
        }
        move_money(write.on(), job, at, &open, &rows, &split).await?;
        close_job(write.on(), job, at, ending.finish, delivered, &split).await?;
        let mut receipts = Vec::new();
        for (row, pay) in rows.iter().zip(&split.pays) {
            sqlx::query("UPDATE attempts SET positions = ?, pay = ? WHERE job = ? AND attempt = ?")
                .bind(row.tried.positions)
                .bind(pay.0)
                .bind(job.to_vec())
                .bind(row.attempt)
                .execute(write.on())
                .await?;
            if row.tried.positions > 0 || *pay > NanoUsd::ZERO {
                let unsigned = row.receipt(job, &open.model, *pay, at);
                receipts.push((row.node, write_receipt(write.on(), unsigned, sign).await?));
            }
        }
        write.commit().await?;
        let (charge, prompt_tokens) = (split.charge, open.prompt_tokens);
        Ok(Settlement { charge, prompt_tokens, completion_tokens: delivered, receipts })
    }

    /// Settles every job that an earlier run left open, at its last position on the disk. One that cannot be settled
    /// stays open and keeps its hold; the others do not wait for it.
    ///
    /// # Errors
    /// When the open jobs cannot be read.
    pub async fn recover(
        &self,
        at: UnixMillis,
        sign: &(dyn Fn(&[u8]) -> Vec<u8> + Sync),
    ) -> Result<Recovered, LedgerError> {
        let mut recovered = Recovered::default();
        for job in self.open_jobs().await? {
            let ending = Ending { finish: Finish::Interrupted, delivered: None };
            match self.settle(job, ending, at, sign).await {
                Ok(_) => recovered.settled += 1,
                Err(error) => recovered.left.push((job, error)),
            }
        }
        Ok(recovered)
    }

    /// The jobs that are not settled.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open_jobs(&self) -> Result<Vec<JobId>, LedgerError> {
        let open: Vec<Vec<u8>> =
            sqlx::query_scalar("SELECT id FROM jobs WHERE state = 'open'").fetch_all(self.readers()).await?;
        open.iter().map(|id| job_id(id)).collect()
    }
}

impl AttemptRow {
    fn receipt(&self, job: JobId, model: &[u8], pay: NanoUsd, at: UnixMillis) -> Receipt {
        Receipt {
            node: self.node.to_vec(),
            job: job.to_vec(),
            attempt: self.attempt,
            model: model.to_vec(),
            first_position: self.tried.first_position,
            positions: self.tried.positions,
            input_tokens: self.tried.input_tokens,
            input_price: self.tried.prices.input.0,
            output_price: self.tried.prices.output.0,
            share: u32::from(wakati_protocol::money::Share::OWNER.0),
            pay: pay.0,
            settled_at: at.0,
            ..Receipt::default()
        }
    }
}

pub(crate) fn job_id(bytes: &[u8]) -> Result<JobId, LedgerError> {
    JobId::from_slice(bytes).map_err(|error| LedgerError::Wrong(error.to_string()))
}

pub(crate) fn node_id(bytes: &[u8]) -> Result<NodeId, LedgerError> {
    NodeId::from_slice(bytes).map_err(|error| LedgerError::Wrong(error.to_string()))
}

async fn settled_before(on: &mut SqliteConnection, job: JobId) -> Result<Option<Settlement>, LedgerError> {
    let row =
        sqlx::query("SELECT charge, prompt_tokens, delivered FROM jobs WHERE id = ? AND state = 'settled'")
            .bind(job.to_vec())
            .fetch_optional(on)
            .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Settlement {
        charge: NanoUsd(row.try_get(0)?),
        prompt_tokens: row.try_get(1)?,
        completion_tokens: row.try_get(2)?,
        receipts: Vec::new(),
    }))
}

async fn read_job(on: &mut SqliteConnection, job: JobId) -> Result<OpenJob, LedgerError> {
    let row = sqlx::query(
        "SELECT j.account, j.model, j.prompt_tokens, j.token_limit, j.input_price, j.output_price, j.delivered,
                h.amount
         FROM jobs j JOIN holds h ON h.job = j.id WHERE j.id = ?",
    )
    .bind(job.to_vec())
    .fetch_optional(on)
    .await?
    .ok_or(LedgerError::NoSuchJob(job))?;
    Ok(OpenJob {
        account: row.try_get(0)?,
        model: row.try_get(1)?,
        prompt_tokens: row.try_get(2)?,
        limit: row.try_get(3)?,
        locked: Prices { input: Price(row.try_get(4)?), output: Price(row.try_get(5)?) },
        delivered: row.try_get(6)?,
        hold: NanoUsd(row.try_get(7)?),
    })
}

/// The attempts, each with the delivered positions from its own first one to that of the next attempt.
async fn read_attempts(
    on: &mut SqliteConnection,
    job: JobId,
    delivered: Position,
) -> Result<Vec<AttemptRow>, LedgerError> {
    let rows = sqlx::query(
        "SELECT a.attempt, a.node, o.name, a.input_price, a.output_price, a.first_position, a.input_tokens,
                LEAD(a.first_position) OVER (ORDER BY a.attempt)
         FROM attempts a JOIN nodes n ON n.key = a.node JOIN owners o ON o.id = n.owner
         WHERE a.job = ? ORDER BY a.attempt",
    )
    .bind(job.to_vec())
    .fetch_all(on)
    .await?;
    rows.iter()
        .map(|row| {
            let first_position: u32 = row.try_get(5)?;
            let next: Option<u32> = row.try_get(7)?;
            let end = next.unwrap_or(u32::MAX).min(delivered);
            Ok(AttemptRow {
                attempt: row.try_get(0)?,
                node: node_id(row.try_get(1)?)?,
                owner: row.try_get(2)?,
                tried: Tried {
                    prices: Prices { input: Price(row.try_get(3)?), output: Price(row.try_get(4)?) },
                    first_position,
                    input_tokens: row.try_get(6)?,
                    positions: end.saturating_sub(first_position),
                },
            })
        })
        .collect()
}

async fn move_money(
    on: &mut SqliteConnection,
    job: JobId,
    at: UnixMillis,
    open: &OpenJob,
    rows: &[AttemptRow],
    split: &Split,
) -> Result<(), LedgerError> {
    let mut postings = vec![
        (Account::Held(&open.account), -open.hold),
        (Account::Available(&open.account), open.hold - split.charge),
        (Account::Fee, split.fee),
        (Account::Absorption, -split.absorption),
    ];
    postings.extend(rows.iter().zip(&split.pays).map(|(row, pay)| (Account::Payable(&row.owner), *pay)));
    post(on, "settle", Some(job), at, &postings).await
}

async fn close_job(
    on: &mut SqliteConnection,
    job: JobId,
    at: UnixMillis,
    finish: Finish,
    delivered: Position,
    split: &Split,
) -> Result<(), LedgerError> {
    sqlx::query(
        "UPDATE jobs SET state = 'settled', settled_at = ?, finish = ?, delivered = ?, charge = ?, fee = ?,
                absorption = ?
         WHERE id = ? AND state = 'open'",
    )
    .bind(at.0)
    .bind(finish.word())
    .bind(delivered)
    .bind(split.charge.0)
    .bind(split.fee.0)
    .bind(split.absorption.0)
    .bind(job.to_vec())
    .execute(&mut *on)
    .await?;
    let state = if split.charge > NanoUsd::ZERO { "captured" } else { "voided" };
    sqlx::query("UPDATE holds SET state = ?, captured = ? WHERE job = ? AND state = 'open'")
        .bind(state)
        .bind(split.charge.0)
        .bind(job.to_vec())
        .execute(on)
        .await?;
    Ok(())
}
