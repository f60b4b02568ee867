//! Attempts: every try at a job, paid or not.

use sqlx::Row;
use wakati_protocol::ids::{Attempt, BrokerId, JobId, ModelDigest, Position};
use wakati_protocol::money::{Price, Prices};
use wakati_protocol::units::UnixMillis;

use crate::{Store, StoreError, count};

/// One attempt as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    pub job: JobId,
    pub attempt: Attempt,
    pub broker: BrokerId,
    pub model: ModelDigest,
    /// Prompt tokens plus what earlier attempts had emitted.
    pub input_tokens: u32,
    pub first_position: Position,
    /// Positions sent so far.
    pub sent: u32,
    /// What was offered when the job came.
    pub prices: Prices,
    pub began: UnixMillis,
    pub finished: Finished,
}

/// How an attempt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    Open,
    /// The node ended while it ran, so `sent` may be too low.
    Interrupted,
    /// It ended and `sent` is final.
    Ended,
}

const INTERRUPTED: &str = "interrupted";

impl Store {
    /// Records that an attempt has begun. Recording it twice changes nothing.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn attempt_began(&self, row: &AttemptRow) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO attempts (job, attempt, broker, model, input_tokens, first_position, input_price, \
             output_price, began) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(row.job.to_vec())
        .bind(row.attempt)
        .bind(row.broker.to_vec())
        .bind(row.model.to_vec())
        .bind(row.input_tokens)
        .bind(row.first_position)
        .bind(row.prices.input.0)
        .bind(row.prices.output.0)
        .bind(row.began.0)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Records how an attempt ended. `finish` is one word.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn attempt_ended(
        &self,
        job: JobId,
        attempt: Attempt,
        sent: u32,
        finish: &str,
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE attempts SET sent = ?, finish = ?, ended = ? WHERE job = ? AND attempt = ?")
            .bind(sent)
            .bind(finish)
            .bind(at.0)
            .bind(job.to_vec())
            .bind(attempt)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// The record of one attempt.
    ///
    /// # Errors
    /// When the database fails or holds something unreadable.
    pub async fn attempt(&self, job: JobId, attempt: Attempt) -> Result<Option<AttemptRow>, StoreError> {
        let row = sqlx::query("SELECT * FROM attempts WHERE job = ? AND attempt = ?")
            .bind(job.to_vec())
            .bind(attempt)
            .fetch_optional(&self.pool)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let finish: Option<String> = row.try_get("finish")?;
        Ok(Some(AttemptRow {
            job,
            attempt,
            broker: BrokerId::from_slice(row.try_get("broker")?)
                .map_err(|_| StoreError::Unreadable("a broker's id"))?,
            model: ModelDigest::from_slice(row.try_get("model")?)
                .map_err(|_| StoreError::Unreadable("a model's digest"))?,
            input_tokens: count(row.try_get("input_tokens")?),
            first_position: count(row.try_get("first_position")?),
            sent: count(row.try_get("sent")?),
            prices: Prices {
                input: Price(row.try_get("input_price")?),
                output: Price(row.try_get("output_price")?),
            },
            began: UnixMillis(row.try_get("began")?),
            finished: match finish.as_deref() {
                None => Finished::Open,
                Some(INTERRUPTED) => Finished::Interrupted,
                Some(_) => Finished::Ended,
            },
        }))
    }

    /// How many attempts began in this range of time.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn attempts_between(&self, from: UnixMillis, to: UnixMillis) -> Result<u32, StoreError> {
        let found: i64 = sqlx::query_scalar("SELECT count(*) FROM attempts WHERE began >= ? AND began < ?")
            .bind(from.0)
            .bind(to.0)
            .fetch_one(&self.pool)
            .await?;
        Ok(count(found))
    }

    /// Marks what was open when the node ended without a word: the program was killed or the power cut.
    /// Everything open is closed at the last moment at which the node is known to have lived.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn close_what_was_open(&self) -> Result<(), StoreError> {
        let alive = self.last_alive().await?.unwrap_or_default().0;
        let mut write = self.pool.begin().await?;
        sqlx::query("UPDATE attempts SET finish = ?, ended = max(began, ?) WHERE ended IS NULL")
            .bind(INTERRUPTED)
            .bind(alive)
            .execute(&mut *write)
            .await?;
        sqlx::query("UPDATE spans SET ended = max(began, ?) WHERE ended IS NULL")
            .bind(alive)
            .execute(&mut *write)
            .await?;
        sqlx::query("UPDATE sessions SET ended = max(began, ?), cause = ? WHERE ended IS NULL")
            .bind(alive)
            .bind(INTERRUPTED)
            .execute(&mut *write)
            .await?;
        write.commit().await?;
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(job: u8) -> AttemptRow {
        AttemptRow {
            job: JobId([job; 16]),
            attempt: 1,
            broker: BrokerId([8; 32]),
            model: ModelDigest([9; 32]),
            input_tokens: 12,
            first_position: 0,
            sent: 0,
            prices: Prices { input: Price(50_000_000), output: Price(100_000_000) },
            began: UnixMillis(1_000),
            finished: Finished::Open,
        }
    }

    #[tokio::test]
    async fn what_a_killed_node_left_open_is_closed_when_it_was_last_alive() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("a.sqlite"), "x").await.unwrap().store;
        store.attempt_began(&row(1)).await.unwrap();
        store.attempt_began(&row(2)).await.unwrap();
        store.attempt_ended(JobId([2; 16]), 1, 40, "stop", UnixMillis(2_000)).await.unwrap();
        store.still_alive(UnixMillis(5_000)).await.unwrap();
        store.close_what_was_open().await.unwrap();
        let killed = store.attempt(JobId([1; 16]), 1).await.unwrap().unwrap();
        assert_eq!(killed.finished, Finished::Interrupted);
        let ended = store.attempt(JobId([2; 16]), 1).await.unwrap().unwrap();
        assert_eq!((ended.finished, ended.sent), (Finished::Ended, 40));
        let at: i64 = sqlx::query_scalar("SELECT ended FROM attempts WHERE finish = 'interrupted'")
            .fetch_one(&store.pool)
            .await
            .unwrap();
        assert_eq!(at, 5_000);
    }
}
