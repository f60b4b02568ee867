//! What the machine was doing and why, sessions, hand-overs, and single facts.

use sqlx::Row;
use wakati_protocol::desk::{HandOver, Shape};
use wakati_protocol::ids::{BrokerId, ModelDigest};
use wakati_protocol::units::{MiB, UnixMillis};

use crate::{Store, StoreError, count, signed};

const ALIVE: &str = "alive";

/// A stretch of time in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanRow {
    pub from: UnixMillis,
    /// `None` while it lasts.
    pub to: Option<UnixMillis>,
    pub shape: Shape,
    /// The status as the caller wrote it down: JSON.
    pub status: String,
}

impl Store {
    /// Ends the running span and begins another one. `status` is the caller's JSON.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn enter(&self, shape: Shape, status: &str, now: UnixMillis) -> Result<(), StoreError> {
        let mut write = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        end_span(&mut write, now).await?;
        sqlx::query("INSERT INTO spans (began, shape, status) VALUES (?, ?, ?)")
            .bind(now.0)
            .bind(shape_name(shape))
            .bind(status)
            .execute(&mut *write)
            .await?;
        write.commit().await?;
        Ok(())
    }

    /// Ends the running span: the node is about to end.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn leave(&self, now: UnixMillis) -> Result<(), StoreError> {
        let mut write = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        end_span(&mut write, now).await?;
        write.commit().await?;
        Ok(())
    }

    /// The spans that touch this range of time, oldest first, not cut to it.
    ///
    /// # Errors
    /// When the database fails or holds something unreadable.
    pub async fn spans_between(&self, from: UnixMillis, to: UnixMillis) -> Result<Vec<SpanRow>, StoreError> {
        let rows = sqlx::query(
            "SELECT began, ended, shape, status FROM spans \
             WHERE began < ? AND (ended IS NULL OR ended > ?) ORDER BY began, id",
        )
        .bind(to.0)
        .bind(from.0)
        .fetch_all(&self.pool)
        .await?;
        let read = |row: sqlx::sqlite::SqliteRow| {
            Ok(SpanRow {
                from: UnixMillis(row.try_get("began")?),
                to: row.try_get::<Option<i64>, _>("ended")?.map(UnixMillis),
                shape: shape_named(row.try_get("shape")?)?,
                status: row.try_get("status")?,
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// Milliseconds of this range, up to `now`, in which the node served.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn served_ms(
        &self,
        from: UnixMillis,
        to: UnixMillis,
        now: UnixMillis,
    ) -> Result<u64, StoreError> {
        let end = to.min(now);
        let served: Option<i64> = sqlx::query_scalar(
            "SELECT sum(max(0, min(coalesce(ended, ?1), ?1) - max(began, ?2))) FROM spans WHERE shape = ?3",
        )
        .bind(end.0)
        .bind(from.0)
        .bind(shape_name(Shape::Serving))
        .fetch_one(&self.pool)
        .await?;
        Ok(served.unwrap_or(0).max(0).unsigned_abs())
    }

    /// Begins a session with a broker; the number names it in [`Store::session_ended`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn session_began(
        &self,
        broker: BrokerId,
        session: &[u8],
        now: UnixMillis,
    ) -> Result<i64, StoreError> {
        let done = sqlx::query("INSERT INTO sessions (broker, session, began) VALUES (?, ?, ?)")
            .bind(broker.to_vec())
            .bind(session)
            .bind(now.0)
            .execute(&self.pool)
            .await?;
        Ok(done.last_insert_rowid())
    }

    /// Ends a session.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn session_ended(&self, id: i64, cause: &str, now: UnixMillis) -> Result<(), StoreError> {
        sqlx::query("UPDATE sessions SET ended = max(began, ?), cause = ? WHERE id = ? AND ended IS NULL")
            .bind(now.0)
            .bind(cause)
            .bind(id)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Records that the machine was given back.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn record_hand_over(&self, hand_over: &HandOver) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO hand_overs (at, given_to, stopped_ms, worker_gone_ms, memory_back_ms, vram_left_mib, \
             jobs_handed_back) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(hand_over.at.0)
        .bind(&hand_over.to)
        .bind(hand_over.stopped_ms)
        .bind(hand_over.worker_gone_ms)
        .bind(hand_over.memory_back_ms)
        .bind(hand_over.vram_left.map(|left| signed(left.0)))
        .bind(hand_over.jobs_handed_back)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// The last time that the machine was given back.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn last_hand_over(&self) -> Result<Option<HandOver>, StoreError> {
        let row = sqlx::query("SELECT * FROM hand_overs ORDER BY id DESC LIMIT 1")
            .fetch_optional(&self.pool)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let left: Option<i64> = row.try_get("vram_left_mib")?;
        Ok(Some(HandOver {
            at: UnixMillis(row.try_get("at")?),
            to: row.try_get("given_to")?,
            stopped_ms: count(row.try_get("stopped_ms")?),
            worker_gone_ms: count(row.try_get("worker_gone_ms")?),
            memory_back_ms: count(row.try_get("memory_back_ms")?),
            vram_left: left.map(|left| MiB(left.unsigned_abs())),
            jobs_handed_back: count(row.try_get("jobs_handed_back")?),
        }))
    }

    /// Remembers what people call a model.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn name_model(&self, digest: ModelDigest, name: &str) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO models (digest, name) VALUES (?, ?) ON CONFLICT DO UPDATE SET name = excluded.name",
        )
        .bind(digest.to_vec())
        .bind(name)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Records that the node lives, so that the next start knows when a power cut came.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn still_alive(&self, now: UnixMillis) -> Result<(), StoreError> {
        self.set_meta(ALIVE, &now.0.to_string()).await
    }

    /// When the node was last known to live.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn last_alive(&self) -> Result<Option<UnixMillis>, StoreError> {
        let stored = self.meta(ALIVE).await?;
        Ok(stored.and_then(|text| text.parse().ok()).map(UnixMillis))
    }

    /// Sets a single fact.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_meta(&self, key: &str, value: &str) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        )
        .bind(key)
        .bind(value)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// A single fact.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        let value = sqlx::query_scalar("SELECT value FROM meta WHERE key = ?")
            .bind(key)
            .fetch_optional(&self.pool)
            .await?;
        Ok(value)
    }
}

async fn end_span(write: &mut sqlx::SqliteConnection, now: UnixMillis) -> Result<(), StoreError> {
    sqlx::query("UPDATE spans SET ended = max(began, ?) WHERE ended IS NULL")
        .bind(now.0)
        .execute(write)
        .await?;
    Ok(())
}

const SHAPES: [(Shape, &str); 5] = [
    (Shape::Serving, "serving"),
    (Shape::Resting, "resting"),
    (Shape::Off, "off"),
    (Shape::Changing, "changing"),
    (Shape::NeedsYou, "needs_you"),
];

fn shape_name(shape: Shape) -> &'static str {
    SHAPES.iter().find(|(known, _)| *known == shape).map_or("off", |(_, name)| name)
}

fn shape_named(name: &str) -> Result<Shape, StoreError> {
    let found = SHAPES.iter().find(|(_, known)| *known == name);
    found.map(|(shape, _)| *shape).ok_or(StoreError::Unreadable("a shape"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_serving_part_of_a_day_is_counted_as_served() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("a.sqlite"), "x").await.unwrap().store;
        for (at, shape) in [(0, Shape::Serving), (50, Shape::Resting), (70, Shape::Serving)] {
            store.enter(shape, "{}", UnixMillis(at)).await.unwrap();
        }
        let served = async |from, to, now| {
            store.served_ms(UnixMillis(from), UnixMillis(to), UnixMillis(now)).await.unwrap()
        };
        assert_eq!(served(0, 1_000, 100).await, 80);
        assert_eq!(served(20, 1_000, 100).await, 60);
        assert_eq!(served(0, 60, 100).await, 50);
        assert_eq!(served(55, 65, 100).await, 0);
        let spans = store.spans_between(UnixMillis(60), UnixMillis(65)).await.unwrap();
        assert_eq!(spans.len(), 1);
        assert_eq!((spans[0].shape, spans[0].to), (Shape::Resting, Some(UnixMillis(70))));
    }

    #[tokio::test]
    async fn the_last_hand_over_is_read_back_whole() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("a.sqlite"), "x").await.unwrap().store;
        assert_eq!(store.last_hand_over().await.unwrap(), None);
        let hand_over = HandOver {
            at: UnixMillis(5),
            to: "a game".into(),
            stopped_ms: 1,
            worker_gone_ms: 2,
            memory_back_ms: 3,
            vram_left: Some(MiB(0)),
            jobs_handed_back: 2,
        };
        store.record_hand_over(&hand_over).await.unwrap();
        assert_eq!(store.last_hand_over().await.unwrap(), Some(hand_over));
    }
}
