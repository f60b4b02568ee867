//! Receipts: the rows that are money.

use prost::Message;
use sqlx::Row;
use wakati_protocol::receipt::Receipt;
use wakati_protocol::units::UnixMillis;

use crate::{Store, StoreError, signed};

/// A receipt that a broker really writes has about 300 bytes; a longer one is not kept as evidence.
const REFUSED_BYTES: usize = 4 << 10;
/// So many refused receipts are kept, the newest.
const REFUSED_KEPT: u32 = 1_000;

/// A receipt that this node agrees with.
#[derive(Debug, Clone, Copy)]
pub struct SignedReceipt<'a> {
    /// The 32 bytes of the broker's key, whose signature has been checked.
    pub broker: &'a [u8],
    pub receipt: &'a Receipt,
    /// The node's 64 bytes over [`Receipt::signed_bytes`].
    pub node_signature: &'a [u8],
}

/// What became of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Stored now.
    New,
    /// The same bytes were stored before.
    Already,
    /// Another receipt has this sequence, or another sequence has this attempt. Kept aside, not counted.
    Conflict,
}

impl Store {
    /// Stores a receipt; when this returns, a power cut does not lose it.
    ///
    /// # Errors
    /// When the database fails. Then nothing was stored.
    pub async fn keep_receipt(
        &self,
        signed_receipt: SignedReceipt<'_>,
        now: UnixMillis,
    ) -> Result<Kept, StoreError> {
        let SignedReceipt { broker, receipt, .. } = signed_receipt;
        let raw = receipt.encode_to_vec();
        // The write lock first: two writers cannot both find the place free.
        let mut write = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let others = sqlx::query(
            "SELECT raw FROM receipts WHERE broker = ?1 AND ((node = ?2 AND sequence = ?3) \
             OR (job = ?4 AND attempt = ?5))",
        )
        .bind(broker)
        .bind(&receipt.node)
        .bind(signed(receipt.sequence))
        .bind(&receipt.job)
        .bind(receipt.attempt)
        .fetch_all(&mut *write)
        .await?;
        let mut kept = Kept::New;
        for other in others {
            let stored: Vec<u8> = other.try_get("raw")?;
            if stored != raw {
                kept = Kept::Conflict;
            } else if kept == Kept::New {
                kept = Kept::Already;
            }
        }
        match kept {
            Kept::New => insert(&mut write, signed_receipt, &raw, now).await?,
            Kept::Already => {}
            Kept::Conflict => {
                set_aside(&mut write, broker, &raw, "it contradicts a stored receipt", now).await?;
            }
        }
        write.commit().await?;
        Ok(kept)
    }

    /// Keeps a receipt that the node does not agree with, as evidence: one of up to 4 KiB, among the newest thousand.
    /// It counts for nothing.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn refuse_receipt(
        &self,
        broker: &[u8],
        receipt: &Receipt,
        cause: &str,
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        let mut write = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        set_aside(&mut write, broker, &receipt.encode_to_vec(), cause, now).await?;
        write.commit().await?;
        Ok(())
    }

    /// The highest sequence up to which this node's receipts from this broker have no gap; 0 when there is none.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn receipts_to(&self, broker: &[u8], node: &[u8]) -> Result<u64, StoreError> {
        // Sequences count from 1, so the n-th stored one equals n exactly as long as nothing is missing.
        let to: Option<i64> = sqlx::query_scalar(
            "SELECT max(sequence) FROM (SELECT sequence, row_number() OVER (ORDER BY sequence) AS place \
             FROM receipts WHERE broker = ? AND node = ?) WHERE sequence = place",
        )
        .bind(broker)
        .bind(node)
        .fetch_one(&self.pool)
        .await?;
        Ok(to.map_or(0, |to| to.unsigned_abs()))
    }
}

async fn insert(
    write: &mut sqlx::SqliteConnection,
    signed_receipt: SignedReceipt<'_>,
    raw: &[u8],
    now: UnixMillis,
) -> Result<(), StoreError> {
    let SignedReceipt { broker, receipt, node_signature } = signed_receipt;
    sqlx::query(
        "INSERT INTO receipts (broker, node, sequence, job, attempt, model, first_position, positions, \
         input_tokens, input_price, output_price, share, pay, settled_at, broker_signature, node_signature, \
         raw, stored_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(broker)
    .bind(&receipt.node)
    .bind(signed(receipt.sequence))
    .bind(&receipt.job)
    .bind(receipt.attempt)
    .bind(&receipt.model)
    .bind(receipt.first_position)
    .bind(receipt.positions)
    .bind(receipt.input_tokens)
    .bind(receipt.input_price)
    .bind(receipt.output_price)
    .bind(receipt.share)
    .bind(receipt.pay)
    .bind(receipt.settled_at)
    .bind(&receipt.broker_signature)
    .bind(node_signature)
    .bind(raw)
    .bind(now.0)
    .execute(write)
    .await?;
    Ok(())
}

async fn set_aside(
    write: &mut sqlx::SqliteConnection,
    broker: &[u8],
    raw: &[u8],
    cause: &str,
    now: UnixMillis,
) -> Result<(), StoreError> {
    if raw.len() > REFUSED_BYTES {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO refused_receipts (raw, broker, cause, seen_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
    )
    .bind(raw)
    .bind(broker)
    .bind(cause)
    .bind(now.0)
    .execute(&mut *write)
    .await?;
    sqlx::query(
        "DELETE FROM refused_receipts WHERE raw IN \
         (SELECT raw FROM refused_receipts ORDER BY seen_at DESC LIMIT -1 OFFSET ?)",
    )
    .bind(REFUSED_KEPT)
    .execute(write)
    .await?;
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn receipt(sequence: u64, pay: i64) -> Receipt {
        Receipt {
            sequence,
            node: vec![2; 32],
            job: vec![sequence as u8; 16],
            attempt: 1,
            model: vec![9; 32],
            positions: 7,
            input_tokens: 3,
            input_price: 50_000_000,
            output_price: 100_000_000,
            share: 700,
            pay,
            settled_at: 1_000 * sequence as i64,
            ..Receipt::default()
        }
    }

    pub(crate) async fn keep(store: &Store, receipt: &Receipt) -> Kept {
        let signed = SignedReceipt { broker: &[8; 32], receipt, node_signature: &[1; 64] };
        store.keep_receipt(signed, UnixMillis(1)).await.unwrap()
    }

    #[tokio::test]
    async fn a_receipt_sent_twice_is_stored_once_and_a_changed_one_is_kept_aside() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("a.sqlite"), "x").await.unwrap().store;
        assert_eq!(keep(&store, &receipt(1, 595)).await, Kept::New);
        assert_eq!(keep(&store, &receipt(1, 595)).await, Kept::Already);
        assert_eq!(keep(&store, &receipt(1, 594)).await, Kept::Conflict);
        // The same attempt under a new sequence would be paid twice.
        let twice = Receipt { sequence: 2, ..receipt(1, 595) };
        assert_eq!(keep(&store, &twice).await, Kept::Conflict);
        let stored: i64 =
            sqlx::query_scalar("SELECT sum(pay) FROM receipts").fetch_one(&store.pool).await.unwrap();
        assert_eq!(stored, 595);
        let aside: i64 =
            sqlx::query_scalar("SELECT count(*) FROM refused_receipts").fetch_one(&store.pool).await.unwrap();
        assert_eq!(aside, 2);
    }

    #[tokio::test]
    async fn of_refused_receipts_the_newest_thousand_are_kept_and_none_that_is_huge() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("a.sqlite"), "x").await.unwrap().store;
        let refuse = async |receipt: &Receipt, at: u64| {
            store.refuse_receipt(&[8; 32], receipt, "test", UnixMillis(signed(at))).await.unwrap();
        };
        refuse(&Receipt { job: vec![1; 4 << 10], ..receipt(1, 1) }, 9_999).await;
        for sequence in 1..=1_003 {
            refuse(&receipt(sequence, 1), sequence).await;
        }
        let kept: (i64, i64) = sqlx::query_as("SELECT count(*), min(seen_at) FROM refused_receipts")
            .fetch_one(&store.pool)
            .await
            .unwrap();
        assert_eq!(kept, (1_000, 4));
    }

    #[tokio::test]
    async fn receipts_are_counted_up_to_the_first_gap() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("a.sqlite"), "x").await.unwrap().store;
        let to = async || store.receipts_to(&[8; 32], &[2; 32]).await.unwrap();
        assert_eq!(to().await, 0);
        for (sequence, expected) in [(2, 0), (1, 2), (5, 2), (3, 3), (4, 5)] {
            keep(&store, &receipt(sequence, 1)).await;
            assert_eq!(to().await, expected, "after {sequence}");
        }
        // Another broker counts by itself.
        assert_eq!(store.receipts_to(&[7; 32], &[2; 32]).await.unwrap(), 0);
    }
}
