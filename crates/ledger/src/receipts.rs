//! The outbox of receipts: each is sent again until its node has acknowledged it.

use prost::Message;
use sqlx::SqliteConnection;
use wakati_protocol::ids::NodeId;
use wakati_protocol::receipt::{Receipt, verify};
use wakati_protocol::units::UnixMillis;

use crate::error::LedgerError;
use crate::open::{Durable, Ledger};

/// Receipts read from the outbox at once.
pub const RECEIPTS_AT_ONCE: u32 = 100;

/// Why an acknowledgement was not taken.
#[derive(Debug, thiserror::Error)]
pub enum BadAck {
    #[error("there is no such receipt, or its signature does not fit")]
    Unknown,
    #[error(transparent)]
    Failed(#[from] LedgerError),
}

/// Numbers, signs and stores a receipt.
pub(crate) async fn write_receipt(
    on: &mut SqliteConnection,
    mut receipt: Receipt,
    sign: &(dyn Fn(&[u8]) -> Vec<u8> + Sync),
) -> Result<Receipt, LedgerError> {
    let sequence: i64 =
        sqlx::query_scalar("UPDATE nodes SET sequence = sequence + 1 WHERE key = ? RETURNING sequence")
            .bind(&receipt.node)
            .fetch_one(&mut *on)
            .await?;
    receipt.sequence = sequence.unsigned_abs();
    receipt.broker_signature = sign(&receipt.signed_bytes());
    sqlx::query("INSERT INTO receipts (node, sequence, job, attempt, bytes) VALUES (?, ?, ?, ?, ?)")
        .bind(&receipt.node)
        .bind(sequence)
        .bind(&receipt.job)
        .bind(receipt.attempt)
        .bind(receipt.encode_to_vec())
        .execute(on)
        .await?;
    Ok(receipt)
}

impl Ledger {
    /// The node's receipts that it has not acknowledged, oldest first, at most [`RECEIPTS_AT_ONCE`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn unacked(&self, node: &NodeId) -> Result<Vec<Receipt>, LedgerError> {
        let rows: Vec<Vec<u8>> = sqlx::query_scalar(
            "SELECT bytes FROM receipts WHERE node = ? AND acked_at IS NULL ORDER BY sequence LIMIT ?",
        )
        .bind(node.to_vec())
        .bind(RECEIPTS_AT_ONCE)
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(|bytes| read_receipt(bytes)).collect()
    }

    /// The node's receipts after this sequence, acknowledged or not, at most [`RECEIPTS_AT_ONCE`]:
    /// a node that lost its own log gets them again.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn receipts_after(&self, node: &NodeId, sequence: u64) -> Result<Vec<Receipt>, LedgerError> {
        let rows: Vec<Vec<u8>> = sqlx::query_scalar(
            "SELECT bytes FROM receipts WHERE node = ? AND sequence > ? ORDER BY sequence LIMIT ?",
        )
        .bind(node.to_vec())
        .bind(i64::try_from(sequence).unwrap_or(i64::MAX))
        .bind(RECEIPTS_AT_ONCE)
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(|bytes| read_receipt(bytes)).collect()
    }

    /// The node has stored a receipt and signed it. Saying so twice changes nothing, and writes nothing.
    ///
    /// # Errors
    /// [`BadAck::Unknown`] when the node has no such receipt or the signature is not its own.
    pub async fn acknowledge(
        &self,
        node: &NodeId,
        sequence: u64,
        signature: &[u8],
        at: UnixMillis,
    ) -> Result<(), BadAck> {
        let sequence = i64::try_from(sequence).map_err(|_| BadAck::Unknown)?;
        let row: Option<(Vec<u8>, bool)> = sqlx::query_as(
            "SELECT bytes, acked_at IS NOT NULL FROM receipts WHERE node = ? AND sequence = ?",
        )
        .bind(node.to_vec())
        .bind(sequence)
        .fetch_optional(self.readers())
        .await
        .map_err(LedgerError::from)?;
        let (bytes, acked) = row.ok_or(BadAck::Unknown)?;
        if acked {
            return Ok(());
        }
        let receipt = read_receipt(&bytes)?;
        verify(&node.0, &receipt.signed_bytes(), signature).map_err(|_| BadAck::Unknown)?;
        let mut write = self.write(Durable::Process).await?;
        sqlx::query(
            "UPDATE receipts SET acked_at = ?, node_signature = ?
             WHERE node = ? AND sequence = ? AND acked_at IS NULL",
        )
        .bind(at.0)
        .bind(signature)
        .bind(node.to_vec())
        .bind(sequence)
        .execute(write.on())
        .await
        .map_err(LedgerError::from)?;
        Ok(write.commit().await?)
    }
}

pub(crate) fn read_receipt(bytes: &[u8]) -> Result<Receipt, LedgerError> {
    Receipt::decode(bytes)
        .map_err(|error| LedgerError::Wrong(format!("a stored receipt is damaged: {error}")))
}
