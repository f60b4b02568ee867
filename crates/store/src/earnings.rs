//! What was earned: sums, by model, the list, and the list as CSV.

use sqlx::Row;
use wakati_protocol::desk::Earning;
use wakati_protocol::ids::{JobId, ModelDigest};
use wakati_protocol::money::{NanoUsd, Price, Prices};
use wakati_protocol::units::UnixMillis;

use crate::{Store, StoreError, count};

/// Earnings of a range of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Earned {
    pub pay: NanoUsd,
    /// Attempts paid.
    pub attempts: u32,
}

/// Earnings of one model in a range of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEarned {
    pub model: String,
    pub earned: Earned,
}

impl Store {
    /// What was settled in this range of time.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn earned(&self, from: UnixMillis, to: UnixMillis) -> Result<Earned, StoreError> {
        let row = sqlx::query(
            "SELECT coalesce(sum(pay), 0) AS pay, count(*) AS attempts FROM receipts \
             WHERE settled_at >= ? AND settled_at < ?",
        )
        .bind(from.0)
        .bind(to.0)
        .fetch_one(&self.pool)
        .await?;
        Ok(Earned { pay: NanoUsd(row.try_get("pay")?), attempts: count(row.try_get("attempts")?) })
    }

    /// What was settled in this range of time, by model, the best first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn earned_by_model(
        &self,
        from: UnixMillis,
        to: UnixMillis,
    ) -> Result<Vec<ModelEarned>, StoreError> {
        let rows = sqlx::query(
            "SELECT coalesce(models.name, lower(hex(model))) AS name, sum(pay) AS total, count(*) AS attempts \
             FROM receipts LEFT JOIN models ON models.digest = model \
             WHERE settled_at >= ? AND settled_at < ? GROUP BY model ORDER BY total DESC, name",
        )
        .bind(from.0)
        .bind(to.0)
        .fetch_all(&self.pool)
        .await?;
        let read = |row: sqlx::sqlite::SqliteRow| {
            let earned =
                Earned { pay: NanoUsd(row.try_get("total")?), attempts: count(row.try_get("attempts")?) };
            Ok(ModelEarned { model: row.try_get("name")?, earned })
        };
        rows.into_iter().map(read).collect()
    }

    /// Every settled attempt, newest first, at most `limit`.
    ///
    /// # Errors
    /// When the database fails or holds something unreadable.
    pub async fn earnings(&self, limit: u32) -> Result<Vec<Earning>, StoreError> {
        let rows = sqlx::query(
            "SELECT receipts.*, coalesce(models.name, lower(hex(model))) AS name \
             FROM receipts LEFT JOIN models ON models.digest = model \
             ORDER BY settled_at DESC, sequence DESC LIMIT ?",
        )
        .bind(limit)
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(earning).collect()
    }
}

fn earning(row: &sqlx::sqlite::SqliteRow) -> Result<Earning, StoreError> {
    let model: &[u8] = row.try_get("model")?;
    ModelDigest::from_slice(model).map_err(|_| StoreError::Unreadable("a model's digest"))?;
    Ok(Earning {
        sequence: row.try_get::<i64, _>("sequence")?.unsigned_abs(),
        settled_at: UnixMillis(row.try_get("settled_at")?),
        job: JobId::from_slice(row.try_get("job")?).map_err(|_| StoreError::Unreadable("a job's id"))?,
        attempt: count(row.try_get("attempt")?),
        model: row.try_get("name")?,
        first_position: count(row.try_get("first_position")?),
        positions: count(row.try_get("positions")?),
        input_tokens: count(row.try_get("input_tokens")?),
        prices: Prices {
            input: Price(row.try_get("input_price")?),
            output: Price(row.try_get("output_price")?),
        },
        pay: NanoUsd(row.try_get("pay")?),
    })
}

/// The list as CSV (RFC 4180, with a header line). Money is in dollars, exact to the last unit.
#[must_use]
pub fn csv(rows: &[Earning]) -> String {
    let mut text = String::from(
        "sequence,settled_at,job,attempt,model,first_position,positions,input_tokens,\
         input_usd_per_million,output_usd_per_million,pay_usd\r\n",
    );
    for row in rows {
        let settled = jiff::Timestamp::from_millisecond(row.settled_at.0).unwrap_or_default();
        text.push_str(&format!(
            "{},{settled},{},{},{},{},{},{},{},{},{}\r\n",
            row.sequence,
            row.job,
            row.attempt,
            quoted(&row.model),
            row.first_position,
            row.positions,
            row.input_tokens,
            NanoUsd(row.prices.input.0),
            NanoUsd(row.prices.output.0),
            row.pay,
        ));
    }
    text
}

/// A name as one CSV field. A leading formula sign is disarmed, since spreadsheets would run it.
fn quoted(name: &str) -> String {
    let disarm = if name.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{disarm}{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipts::tests::{keep, receipt};

    #[tokio::test]
    async fn sums_take_only_what_was_settled_in_the_range() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("a.sqlite"), "x").await.unwrap().store;
        for (sequence, pay) in [(1, 10), (2, 200), (3, 3_000)] {
            keep(&store, &receipt(sequence, pay)).await;
        }
        store.name_model(ModelDigest([9; 32]), "Small \"one\"").await.unwrap();
        let earned = store.earned(UnixMillis(1_000), UnixMillis(3_000)).await.unwrap();
        assert_eq!(earned, Earned { pay: NanoUsd(210), attempts: 2 });
        let models = store.earned_by_model(UnixMillis(0), UnixMillis(9_000)).await.unwrap();
        assert_eq!(models.len(), 1);
        assert_eq!(models[0].earned.pay, NanoUsd(3_210));
        let list = store.earnings(10).await.unwrap();
        assert_eq!(list.iter().map(|row| row.sequence).collect::<Vec<_>>(), [3, 2, 1]);
    }

    #[tokio::test]
    async fn the_csv_is_exact_to_the_last_unit() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("a.sqlite"), "x").await.unwrap().store;
        keep(&store, &receipt(1, 595)).await;
        store.name_model(ModelDigest([9; 32]), "=a \"b\", c").await.unwrap();
        let text = csv(&store.earnings(10).await.unwrap());
        let line = text.lines().nth(1).unwrap();
        let job = "01".repeat(16);
        assert_eq!(
            line,
            format!(
                "1,1970-01-01T00:00:01Z,{job},1,\"'=a \"\"b\"\", c\",0,7,3,0.050000000,0.100000000,0.000000595"
            )
        );
    }
}
