//! A job in the books, from its hold to the last position that is on the disk.

use sqlx::SqliteConnection;
use wakati_protocol::ids::{Attempt, JobId, ModelDigest, NodeId, Position};
use wakati_protocol::money::{NanoUsd, Prices};
use wakati_protocol::units::UnixMillis;

use crate::error::{LedgerError, OpenError, Refusal};
use crate::money::{Account, Funds, funds_of, post};
use crate::open::{Durable, Ledger};

/// How many tokens a job may generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// As asked: refused when the account cannot cover it.
    Exactly(u32),
    /// As many as the account covers, up to this.
    UpTo(u32),
}

/// A job that wants to start, with its first attempt.
#[derive(Debug, Clone)]
pub struct JobOpening<'a> {
    pub job: JobId,
    /// The key's row, and the account that pays.
    pub key: i64,
    pub account: &'a str,
    pub model: ModelDigest,
    pub model_name: &'a str,
    pub prompt_tokens: u32,
    pub limit: Limit,
    /// What the consumer pays from the first delivered position on, whatever happens later.
    pub locked: Prices,
    /// The first node.
    pub node: NodeId,
}

/// A job that may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Tokens that it may generate, at most.
    pub limit: u32,
    /// The worst case, put aside.
    pub hold: NanoUsd,
}

/// Another node's try at a job.
#[derive(Debug, Clone, Copy)]
pub struct NewAttempt {
    pub attempt: Attempt,
    pub node: NodeId,
    /// What this node asks.
    pub prices: Prices,
    pub first_position: Position,
    /// Tokens that the node has to read: the prompt and what was already emitted.
    pub input_tokens: u32,
}

impl Ledger {
    /// Puts the job's worst case aside and notes the job, in one step.
    ///
    /// # Errors
    /// [`OpenError::Refused`] when the account does not cover it.
    pub async fn open_job(&self, opening: &JobOpening<'_>, at: UnixMillis) -> Result<Opened, OpenError> {
        let mut write = self.write(Durable::Process).await?;
        let funds = funds_of(write.on(), opening.account).await?;
        let opened = cover(opening.locked, opening.prompt_tokens, opening.limit, funds)?;
        let hold = opened.hold;
        insert_job(write.on(), opening, opened, at).await?;
        let postings = [(Account::Available(opening.account), -hold), (Account::Held(opening.account), hold)];
        post(write.on(), "hold", Some(opening.job), at, &postings).await?;
        write.commit().await?;
        Ok(opened)
    }

    /// Notes that another node begins the job anew, locks its prices, and moves what is held to its worst case, in
    /// one step. Only while no attempt has a position: after that the prices stay.
    ///
    /// # Errors
    /// [`OpenError::Refused`] when the account does not cover it; then everything stays as it was.
    pub async fn relock(
        &self,
        job: JobId,
        attempt: &NewAttempt,
        limit: Limit,
        at: UnixMillis,
    ) -> Result<Opened, OpenError> {
        let mut write = self.write(Durable::Process).await?;
        let row: Option<(String, u32, i64)> = sqlx::query_as(
            "SELECT j.account, j.prompt_tokens, h.amount FROM jobs j JOIN holds h ON h.job = j.id
             WHERE j.id = ? AND j.state = 'open' AND j.delivered = 0
               AND NOT EXISTS (SELECT 1 FROM attempts WHERE job = j.id AND first_position > 0)",
        )
        .bind(job.to_vec())
        .fetch_optional(write.on())
        .await?;
        let Some((account, prompt_tokens, before)) = row.filter(|_| attempt.first_position == 0) else {
            return Err(LedgerError::Begun(job).into());
        };
        let (funds, before) = (funds_of(write.on(), &account).await?, NanoUsd(before));
        // What this job holds itself is there for it.
        let funds = Funds { available: funds.available + before, held: funds.held - before };
        let opened = cover(attempt.prices, prompt_tokens, limit, funds)?;
        sqlx::query(
            "UPDATE jobs SET input_price = ?, output_price = ?, token_limit = ? WHERE id = ?;
             UPDATE holds SET amount = ? WHERE job = ?;",
        )
        .bind(attempt.prices.input.0)
        .bind(attempt.prices.output.0)
        .bind(opened.limit)
        .bind(job.to_vec())
        .bind(opened.hold.0)
        .bind(job.to_vec())
        .execute(write.on())
        .await?;
        insert_attempt(write.on(), job, attempt).await?;
        let more = opened.hold - before;
        let postings = [(Account::Available(&account), -more), (Account::Held(&account), more)];
        post(write.on(), "relock", Some(job), at, &postings).await?;
        write.commit().await?;
        Ok(opened)
    }

    /// Notes that another node goes on with the job.
    ///
    /// # Errors
    /// When the job is not open, or the attempt is noted already.
    pub async fn begin_attempt(&self, job: JobId, attempt: &NewAttempt) -> Result<(), LedgerError> {
        let mut write = self.write(Durable::Process).await?;
        let open: Option<i64> = sqlx::query_scalar("SELECT 1 FROM jobs WHERE id = ? AND state = 'open'")
            .bind(job.to_vec())
            .fetch_optional(write.on())
            .await?;
        if open.is_none() {
            return Err(LedgerError::Settled(job));
        }
        insert_attempt(write.on(), job, attempt).await?;
        write.commit().await
    }

    /// Notes for each job that its consumer has all positions before this one. It never goes back.
    ///
    /// # Errors
    /// When the database fails; then none is noted.
    pub async fn checkpoint(&self, reached: &[(JobId, Position)]) -> Result<(), LedgerError> {
        let mut write = self.write(Durable::Process).await?;
        for (job, delivered) in reached {
            sqlx::query("UPDATE jobs SET delivered = ? WHERE id = ? AND state = 'open' AND delivered < ?")
                .bind(delivered)
                .bind(job.to_vec())
                .bind(delivered)
                .execute(write.on())
                .await?;
        }
        write.commit().await
    }
}

/// The limit and the worst case of a job at these prices.
fn cover(prices: Prices, prompt_tokens: u32, limit: Limit, funds: Funds) -> Result<Opened, OpenError> {
    let prompt = u64::from(prompt_tokens);
    let limit = match limit {
        Limit::Exactly(limit) => limit,
        Limit::UpTo(limit) => affordable(prices, prompt, funds.available).clamp(1, limit.max(1)),
    };
    let hold = prices.cost(prompt, limit.into());
    let Funds { available, held } = funds;
    if hold > available {
        return Err(OpenError::Refused(Refusal::Insufficient { available, held, needed: hold }));
    }
    Ok(Opened { limit, hold })
}

/// The most tokens whose cost, rounded down, is within `available`.
fn affordable(prices: Prices, prompt: u64, available: NanoUsd) -> u32 {
    if prices.output.0 == 0 {
        return u32::MAX;
    }
    let room = i128::from(available.0) * 1_000_000 + 999_999 - prices.exact(prompt, 0);
    u32::try_from((room / i128::from(prices.output.0)).max(0)).unwrap_or(u32::MAX)
}

/// The job, its hold and its first attempt.
async fn insert_job(
    on: &mut SqliteConnection,
    opening: &JobOpening<'_>,
    opened: Opened,
    at: UnixMillis,
) -> Result<(), LedgerError> {
    sqlx::query(
        "INSERT INTO jobs (id, key, account, model, model_name, prompt_tokens, token_limit,
                           input_price, output_price, created_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
         INSERT INTO holds (job, amount) VALUES (?, ?);
         INSERT INTO attempts (job, attempt, node, input_price, output_price, first_position, input_tokens)
         VALUES (?, 1, ?, ?, ?, 0, ?);",
    )
    .bind(opening.job.to_vec())
    .bind(opening.key)
    .bind(opening.account)
    .bind(opening.model.to_vec())
    .bind(opening.model_name)
    .bind(opening.prompt_tokens)
    .bind(opened.limit)
    .bind(opening.locked.input.0)
    .bind(opening.locked.output.0)
    .bind(at.0)
    .bind(opening.job.to_vec())
    .bind(opened.hold.0)
    .bind(opening.job.to_vec())
    .bind(opening.node.to_vec())
    .bind(opening.locked.input.0)
    .bind(opening.locked.output.0)
    .bind(opening.prompt_tokens)
    .execute(on)
    .await?;
    Ok(())
}

async fn insert_attempt(on: &mut SqliteConnection, job: JobId, new: &NewAttempt) -> Result<(), LedgerError> {
    sqlx::query(
        "INSERT INTO attempts (job, attempt, node, input_price, output_price, first_position, input_tokens)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(job.to_vec())
    .bind(new.attempt)
    .bind(new.node.to_vec())
    .bind(new.prices.input.0)
    .bind(new.prices.output.0)
    .bind(new.first_position)
    .bind(new.input_tokens)
    .execute(on)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use wakati_protocol::money::Price;

    use super::*;

    #[test]
    fn what_is_affordable_is_covered_and_one_more_is_not() {
        for (input, output, prompt, available) in [
            (50_000_000, 100_000_000, 10, 12_345),
            (3, 7, 1000, 1),
            (0, 1_234_567, 5, 99),
            (9, 999_999_999, 1, 1),
        ] {
            let prices = Prices { input: Price(input), output: Price(output) };
            let most = affordable(prices, prompt, NanoUsd(available));
            assert!(prices.cost(prompt, most.into()) <= NanoUsd(available));
            assert!(prices.cost(prompt, u64::from(most) + 1) > NanoUsd(available));
        }
    }

    #[test]
    fn a_prompt_that_is_too_dear_affords_nothing() {
        let prices = Prices { input: Price(1_000_000_000), output: Price(1) };
        assert_eq!(affordable(prices, 100, NanoUsd(5)), 0);
    }
}
